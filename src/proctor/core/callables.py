"""Inspect callables that users pass in: functions, partials, methods and callable objects."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def unwrap_partial(function: Any) -> Any:
    """Return the function inside nested partials."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def get_function(function: Any) -> Any:
    """Return the function that a partial or a callable object runs."""
    function = unwrap_partial(function)
    return function if inspect.isroutine(function) else type(function).__call__


def is_async_callable(function: Callable[..., Any]) -> bool:
    """Return True if a call returns a coroutine, including for partials and callable objects."""
    return inspect.iscoroutinefunction(get_function(function))


def is_generator_callable(function: Callable[..., Any]) -> bool:
    """Return True if a call returns a generator, sync or async."""
    code = get_function(function)
    return inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code)


def resolve_hints(function: Callable[..., Any], *, include_extras: bool = False) -> dict[str, Any]:
    """Return the annotations of a callable by parameter; raises NameError or TypeError."""
    return get_type_hints(get_function(function), include_extras=include_extras)
