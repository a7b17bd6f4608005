"""What tells one callable from another: its address, its code, and what is bound into it."""

from __future__ import annotations

import functools
import hashlib
from types import CodeType, FunctionType, MethodType
from typing import Any

from proctor import codec


def identity_of(thing: Any) -> str:
    """A short digest that changes when a function's own code or bound arguments change.

    Functions that it calls are not followed: give a version where that matters.

    >>> identity_of(len) == identity_of(len)
    True
    """
    state = hashlib.sha256()
    _feed(state, thing, depth=0)
    return state.hexdigest()[:16]


def name_of(thing: Any) -> str:
    """The name that people know a callable by.

    >>> name_of(functools.partial(len))
    'len'
    """
    while isinstance(thing, functools.partial):
        thing = thing.func
    name = getattr(thing, "name", None) or getattr(thing, "__name__", None)
    return name if isinstance(name, str) else type(thing).__name__


def _feed(state: hashlib._Hash, thing: Any, depth: int) -> None:
    """Add what a callable is made of; values are followed a few steps, not for ever."""
    if isinstance(thing, functools.partial):
        _feed(state, [thing.func, thing.args, sorted(thing.keywords.items())], depth)
    elif isinstance(thing, FunctionType):
        state.update(f"{thing.__module__}:{thing.__qualname__}".encode())
        _feed_code(state, thing.__code__)
        cells = [_cell(cell) for cell in thing.__closure__ or ()]
        _feed(state, [thing.__defaults__, thing.__kwdefaults__, cells], depth + 1)
    elif isinstance(thing, MethodType):
        _feed(state, thing.__func__, depth)
        _feed(state, thing.__self__, depth + 1)
    elif isinstance(thing, list | tuple) and depth < 4:
        for part in thing:
            _feed(state, part, depth + 1)
    else:
        state.update(_value(thing, depth))


def _feed_code(state: hashlib._Hash, code: CodeType) -> None:
    state.update(code.co_code)
    state.update(repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _feed_code(state, constant)
        else:
            state.update(repr(constant).encode())


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _value(thing: Any, depth: int) -> bytes:
    """A value as bytes that are the same in the next process: never an address in memory."""
    kind = type(thing)
    label = f"{kind.__module__}:{kind.__qualname__}".encode()
    if isinstance(thing, type):
        return f"{thing.__module__}:{thing.__qualname__}".encode()
    if hasattr(thing, "__dict__") and depth < 3 and not isinstance(thing, BaseException):
        state = hashlib.sha256(label)
        call = getattr(kind, "__call__", None)  # noqa: B004 - the class's own code is wanted
        _feed(state, [call, sorted(vars(thing).items())], depth + 1)
        return state.digest()
    text = codec.canonical(codec.plain(thing))
    return label if b"$repr" in text else label + text
