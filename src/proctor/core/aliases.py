"""Aliases of option names: the spellings of the specifications are mapped to the common names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Mapping
from typing import Any, TypedDict, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

# Alias -> common name. A function that has an option with the alias as its name keeps it.
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
    """The alias of `model`, for type checkers."""

    adapter: Any


class TimeoutAlias(TypedDict, total=False):
    """The alias of `timeout`, for type checkers."""

    timeout_seconds: float | None


def common_name(name: str, option_names: Container[str]) -> str:
    """Return the common name of an option if the function knows only the common name."""
    common = COMMON_NAMES.get(name, name)
    return common if name not in option_names and common in option_names else name


def use_common_names(options: Mapping[str, Any], option_names: Container[str]) -> dict[str, Any]:
    """Replace aliases with common names, unless an option appears under both names."""
    names = {name: common_name(name, option_names) for name in options}
    return {name if names[name] in options else names[name]: value for name, value in options.items()}


def accept_aliases(function: F) -> F:
    """Let a function accept the aliases of its options.

    Its parameter `**_aliases` declares them for type checkers and is always empty.
    """
    parameters = inspect.signature(function).parameters
    is_closed = "_aliases" in parameters

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not COMMON_NAMES.keys().isdisjoint(options):
            options = use_common_names(options, parameters)
        if is_closed and (unknown_option := next((name for name in options if name not in parameters), None)):
            raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {unknown_option!r}")
        return function(*args, **options)

    return cast(F, call)
