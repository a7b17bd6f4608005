"""What tells one callable from another: its address, its code, and what is bound into it."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Set
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import msgspec

# Bound objects are followed a few steps and in so many parts, not for ever.
DEEPEST_OBJECT, DEEPEST = 3, 16
MOST_PARTS = 20_000
# A longer collection of plain data is written in one go.
LONG = 500

_PLAIN = (str, float, bool, complex, bytes, type(None), type(...))
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")


def identity_of(thing: Any) -> str:
    """A short digest that changes when a function's own code or bound arguments change.

    Functions that it calls are not followed: give a version where that matters.

    >>> identity_of(len) == identity_of(len)
    True
    """
    look = _Look()
    look.at(thing)
    return look.state.hexdigest()[:16]


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
    for call, name in (("complete", "model"), ("embed", "name")):
        if callable(getattr(value, call, None)) and isinstance(getattr(value, name, None), str):
            return str(getattr(value, name))
    return None


class _Look:
    """One look at a callable and what is bound into it.

    What is noted is the same in the next process: never an address in memory, never the order of
    a set.
    """

    def __init__(self, within: tuple[int, ...] = (), objects: int = 0) -> None:
        self.state = hashlib.sha256()
        self._parts_left = MOST_PARTS
        self._within = within
        self._objects = objects

    def at(self, thing: Any) -> None:
        """Note a thing and, within reason, what it is made of."""
        self._parts_left -= 1
        kind = type(thing)
        if kind is int:
            # Not in decimal, which Python refuses to write for very long ones.
            self._note("int", hex(thing).encode())
        elif kind in _PLAIN:
            self._note(kind.__name__, repr(thing).encode())
        elif isinstance(thing, type):
            self._note("class", _address(thing))
        elif isinstance(thing, ModuleType):
            self._note("module", thing.__name__.encode())
        elif id(thing) in self._within or len(self._within) >= DEEPEST or self._parts_left < 0:
            self._note("and so on", _address(kind))
        else:
            self._within += (id(thing),)
            self._at_compound(thing)
            self._within = self._within[:-1]

    def _note(self, word: str, content: bytes = b"") -> None:
        # With their lengths, so that ("ab", "c") is not ("a", "bc").
        self.state.update(f"{word} {len(content)}:".encode())
        self.state.update(content)

    def _at_compound(self, thing: Any) -> None:
        if isinstance(thing, functools.partial):
            self._note("partial")
            self._at_all([thing.func, thing.args, thing.keywords])
        elif isinstance(thing, FunctionType):
            self._note("function", _address(thing))
            self._at_code(thing.__code__)
            cells = [_content(cell) for cell in thing.__closure__ or ()]
            self._at_all([thing.__defaults__, thing.__kwdefaults__, cells])
        elif isinstance(thing, MethodType):
            self._note("method")
            self._at_all([thing.__func__, thing.__self__])
        elif isinstance(thing, BuiltinFunctionType):
            self._note("builtin", _address(thing))
            self.at(thing.__self__)
        elif isinstance(thing, list | tuple | Mapping | Set):
            self._at_collection(thing)
        else:
            self._at_object(thing)

    def _at_code(self, code: CodeType) -> None:
        self._note("code", code.co_code)
        self._note("handlers", code.co_exceptiontable)
        self._at_all(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._at_code(constant)
            else:
                self.at(constant)

    def _at_collection(self, things: Any) -> None:
        self._note(type(things).__name__, str(len(things)).encode())
        written = _written(things) if len(things) >= LONG else None
        if written is not None:
            self._note("data", written)
        elif len(things) > self._parts_left:
            self._note("and so on")
        elif isinstance(things, Mapping):
            self._at_all(sorted(things.items(), key=lambda item: self._digest(item[0])))
        elif isinstance(things, Set):
            for digest in sorted(self._digest(part) for part in things):
                self._note("part", digest)
        else:
            self._at_all(things)

    def _at_all(self, parts: Any) -> None:
        for part in parts:
            if self._parts_left < 0:
                return
            self.at(part)

    def _digest(self, part: Any) -> bytes:
        """Of something whose place among others is not settled yet."""
        look = _Look(self._within, self._objects)
        look._parts_left = min(self._parts_left, LONG)
        look.at(part)
        self._parts_left -= 1
        return look.state.digest()

    def _at_object(self, thing: Any) -> None:
        kind = type(thing)
        if (address := address_in(thing)) is not None:
            # Of a model the address counts, and of one in the user's code what tells it from
            # another; its key and connections are not what it says.
            self._note("model", f"{address} {getattr(thing, 'identity', '')}".encode())
            return
        self._note("object", _address(kind))
        call = getattr(kind, "__call__", None)  # noqa: B004 - the class's own code is wanted
        if isinstance(call, FunctionType):
            self._note("call")
            self._at_code(call.__code__)
        if isinstance(thing, BaseException):
            self.at(thing.args)
        elif not hasattr(thing, "__dict__") and (text := _stable_repr(thing)) is not None:
            self._note("repr", text.encode(errors="backslashreplace"))
        elif self._objects < DEEPEST_OBJECT:
            self._objects += 1
            self._at_collection(_attributes(thing))
            self._objects -= 1


def _address(thing: Any) -> bytes:
    return f"{thing.__module__}:{thing.__qualname__}".encode()


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # The name is bound only later.
        return None


def _written(things: Any) -> bytes | None:
    """Plain data as text, or None if there is more to it."""
    try:
        return msgspec.json.encode(things, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        return None


def _stable_repr(thing: Any) -> str | None:
    """What an object says of itself, unless that tells where it lies in memory."""
    try:
        text = repr(thing)
    except Exception:
        return None
    return None if _ADDRESS.search(text) else text


def _attributes(thing: Any) -> dict[str, Any]:
    """What an object holds, in its slots and in its dictionary."""
    held = {}
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                held[name] = getattr(thing, name)
    return held | dict(getattr(thing, "__dict__", {}))
