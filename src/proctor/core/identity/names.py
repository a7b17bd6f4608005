"""How callables and models are called, without running any of their code."""

from __future__ import annotations

import functools
import inspect
from typing import Any


def name_of(thing: Any) -> str:
    """The name that people know a callable by.

    >>> name_of(functools.partial(len))
    'len'
    """
    while isinstance(thing, functools.partial):
        thing = thing.func
    names = (getattr(thing, "name", None), getattr(thing, "__name__", None))
    return next((name for name in names if name and isinstance(name, str)), type(thing).__name__)


def address_in(value: Any) -> str | None:
    """The address of a model or an embedder, for what is stored; None for anything else."""
    for method, attribute in (("complete", "model"), ("embed", "name")):
        found = inspect.getattr_static(value, method, None)
        # A property would run, and so would whatever makes up attributes as they are asked for.
        if callable(found) or isinstance(found, staticmethod | classmethod):
            address = getattr(value, attribute, None)
            if isinstance(address, str):
                return address
    return None


def address_of_type(thing: Any) -> str:
    """Module and qualified name of a function or class that is not in the project."""
    return f"{thing.__module__}:{thing.__qualname__}"
