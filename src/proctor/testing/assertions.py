"""Assertions that the contract tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def assert_raises(
    error_type: type[Exception], function: Callable[..., object], *arguments: Any, **options: Any
) -> Exception:
    """Call a function that must raise an error of this type, and return the error."""
    try:
        result = function(*arguments, **options)
    except error_type as error:
        return error
    raise AssertionError(f"expected {error_type.__name__}, but the call returned {result!r}")
