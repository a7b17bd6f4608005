"""One name for one option: the spellings of the specifications become the common names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Mapping
from typing import Any, TypedDict, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

# Other spelling -> common name. A callable that has an option of the other spelling keeps it.
COMMON_NAMES: Mapping[str, str] = {
    "adapter": "model",
    "judge": "model",
    "min_score": "threshold",
    "at_least": "threshold",
    "parallel": "concurrency",
    "on": "cluster",
    "patience": "worker_timeout",
    "template": "prompt",
    "timeout_seconds": "timeout",
}


class AdapterAlias(TypedDict, total=False):
    """For type checkers, where the specification calls by the other name."""

    adapter: Any


class TimeoutAlias(TypedDict, total=False):
    """For type checkers, where the specification calls by the other name."""

    timeout_seconds: float | None


def common_name(name: str, known: Container[str]) -> str:
    """Return the common name of an option, if the known options contain that instead.

    >>> common_name("adapter", ["model", "criterion"]), common_name("judge", ["judge", "model"])
    ('model', 'judge')
    """
    common = COMMON_NAMES.get(name, name)
    return common if name not in known and common in known else name


def use_common_names(options: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """Rename the options with another spelling; one that is also given by its common name stays."""
    names = {name: common_name(name, known) for name in options}
    return {name if names[name] in options else names[name]: value for name, value in options.items()}


def accept_aliases(function: F) -> F:
    """Let a function take the other spellings of its options too.

    Its parameter `**_aliases` declares them for type checkers, and receives nothing.

    >>> @accept_aliases
    ... def connect(model, *, timeout=30.0):
    ...     return model, timeout
    >>> connect(adapter="local:smollm2", timeout_seconds=5)
    ('local:smollm2', 5)
    """
    parameters = inspect.signature(function).parameters
    is_closed = "_aliases" in parameters

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not COMMON_NAMES.keys().isdisjoint(options):
            options = use_common_names(options, parameters)
        if is_closed and (unknown := next((name for name in options if name not in parameters), None)):
            raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {unknown!r}")
        return function(*args, **options)

    return cast(F, call)
