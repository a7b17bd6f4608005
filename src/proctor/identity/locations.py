"""Where the file of a call lies: expressions evaluated with the globals of a function.

Only texts, paths and the functions of `os.path` and `pathlib` are evaluated; no user code runs.
"""

from __future__ import annotations

import builtins
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import PurePath
from types import ModuleType
from typing import Any, NamedTuple

from proctor.identity.file_calls import Expression, FileCall

_NOTHING = object()
# Functions and methods that give the same path in another form.
_SAME = frozenset(["str", "fspath", "abspath", "realpath", "normpath"]) | frozenset(
    ["expanduser", "resolve", "absolute", "as_posix"]
)
_FROM = ("os", "posixpath", "ntpath", "genericpath", "pathlib", "builtins", "pathlib._local")


class Location(NamedTuple):
    """A path; if it is not `complete`, its known beginning and its known end."""

    start: str
    complete: bool = True
    end: str = ""

    @property
    def folder(self) -> str:
        """The folder that an incomplete path is known to lie in; "" if that is not known."""
        start = self.start.replace("\\", "/")
        return start[: start.rfind("/")] or "/" if "/" in start else ""


ANYWHERE = Location("", complete=False)


class Names(NamedTuple):
    """What the names in a function stand for.

    `assigned` is for a module that is known by its source alone.
    """

    values: Mapping[str, Any]
    cells: Mapping[str, Any] = {}
    assigned: Mapping[str, Expression] = {}


def location_of(call: FileCall, names: Names) -> Location | None:
    """The file of a call; None if the call is none of a file, as `webbrowser.open`."""
    if call.first is None:
        path = _text(call.path, names)
    elif isinstance(_object(call.path, names), ModuleType):
        module = _object(call.path, names)
        path = None if module.__name__ == "webbrowser" else _text(call.first, names)
    else:
        path = _text(call.path, names)
    if path is None and _is_other_object(call.path, names):
        return None
    return ANYWHERE if path is None else path


def _is_other_object(node: Expression, names: Names) -> bool:
    """True for a known object that is no path, such as a client with a method `open`."""
    value = _object(node, names)
    return value is not _NOTHING and not isinstance(value, str | os.PathLike)


def _object(node: Expression, names: Names) -> Any:
    """The object that an expression stands for, without running code of its class."""
    if node.kind == "constant":
        return node.value
    if node.kind == "global":
        name = str(node.value)
        return names.values.get(name, getattr(builtins, name, _NOTHING))
    if node.kind == "cell":
        return names.cells.get(str(node.value), _NOTHING)
    if node.kind == "module":
        return sys.modules.get(str(node.value), _NOTHING)
    if node.kind == "attribute":
        owner = _object(node.parts[0], names)
        if owner is _NOTHING or isinstance(owner, PurePath | str):
            return _NOTHING
        found = inspect.getattr_static(owner, str(node.value), _NOTHING)
        plain = isinstance(owner, ModuleType) or isinstance(found, str | PurePath | dict | list)
        return found if plain else _NOTHING
    if node.kind == "item":
        owner, key = (_object(part, names) for part in node.parts)
        if type(owner) in (dict, list, tuple) and type(key) in (str, int):
            try:
                return owner[key]
            except (KeyError, IndexError):
                return _NOTHING
    return _NOTHING


def _text(node: Expression, names: Names) -> Location | None:
    """The path or text that an expression gives; None if nothing of it is known."""
    if node.kind in ("text", "join"):
        parts = [_text(part, names) or ANYWHERE for part in node.parts]
        return _concatenated(parts) if node.kind == "text" else _joined(parts)
    if node.kind == "template":
        return _filled(_text(node.parts[0], names), "%")
    if node.kind == "call":
        return _called(node, names)
    if node.kind == "attribute" and node.value == "parent":
        return _above(_text(node.parts[0], names))
    if node.kind == "item" and node.parts[0].kind == "attribute":
        owner, index = node.parts[0], node.parts[1].value
        if owner.value == "parents" and isinstance(index, int) and 0 <= index < 50:
            path = _text(owner.parts[0], names)
            for _ in range(index + 1):
                path = _above(path)
            return path
    value = _object(node, names)
    if type(value) is str or (isinstance(value, PurePath) and type(value).__module__ in _FROM):
        return Location(os.fspath(value))
    if node.kind == "global" and value is _NOTHING and node.value in names.assigned:
        inner = names.assigned[str(node.value)]
        # A name that is made from itself is not followed round and round.
        rest = {key: each for key, each in names.assigned.items() if key != node.value}
        return _text(inner, names._replace(assigned=rest))
    return None


def _called(node: Expression, names: Names) -> Location | None:
    called, arguments = node.parts[0], node.parts[1:]
    receiver = called.parts[0] if called.kind == "attribute" else None
    function = _object(called, names)
    if function is not _NOTHING or receiver is None:
        return _of_function(_function_name(called, function), arguments, names)
    if isinstance(_object(receiver, names), ModuleType):
        return None
    base = _text(receiver, names)
    if called.value == "format":
        return _filled(base, "{")
    if base is None and receiver.kind in ("global", "module"):
        # A module or class that is not loaded: by its name.
        return _of_function(str(called.value), arguments, names)
    texts = [_text(argument, names) or ANYWHERE for argument in arguments]
    if called.value == "joinpath":
        return _joined([base or ANYWHERE, *texts])
    if called.value == "with_name" and texts:
        return _joined([_above(base) or ANYWHERE, texts[0]])
    if called.value == "with_suffix" and base and base.complete and texts:
        return _concatenated([Location(os.path.splitext(base.start)[0]), texts[0]])
    return base if called.value in _SAME else None


def _function_name(called: Expression, function: Any) -> str:
    if function is _NOTHING:
        return str(called.value)
    if isinstance(function, type) and issubclass(function, PurePath):
        return "Path"
    from_library = getattr(function, "__module__", None) in _FROM
    name = function.__name__ if from_library and hasattr(function, "__name__") else ""
    return str(name)


def _of_function(name: str, arguments: tuple[Expression, ...], names: Names) -> Location | None:
    texts = [_text(argument, names) or ANYWHERE for argument in arguments]
    if name in ("Path", "PurePath", "join"):
        return _joined(texts) if texts else Location(".")
    if name == "getcwd":
        return Location(os.getcwd())
    if not texts:
        return None
    return _above(texts[0]) if name == "dirname" else texts[0] if name in _SAME else None


def _above(path: Location | None) -> Location | None:
    if path is None or not path.complete:
        return None
    return Location(os.path.dirname(path.start) or ".")


def _concatenated(parts: list[Location]) -> Location:
    start = ""
    for place, part in enumerate(parts):
        start += part.start
        if not part.complete:
            return Location(start, complete=False, end=_end(parts[place:]))
    return Location(start)


def _end(parts: list[Location]) -> str:
    """What is known of the end of some texts, the first of which is not complete."""
    end = ""
    for part in reversed(parts):
        end = (part.start if part.complete else part.end) + end
        if not part.complete:
            break
    return end


def _joined(parts: list[Location]) -> Location:
    start = ""
    for place, part in enumerate(parts):
        if not part.complete:
            known = os.path.join(start, part.start) if start else part.start
            last = parts[-1]
            end = (last.start if last.complete else last.end) if place < len(parts) else ""
            return Location(known, complete=False, end=end)
        start = os.path.join(start, part.start)
    return Location(start)


def _filled(template: Location | None, mark: str) -> Location | None:
    """A text with places for other texts in it, as "prompts/%s.txt"."""
    if template is None or not template.complete:
        return None
    start, found, _ = template.start.partition(mark)
    if not found:
        return template
    tail = (
        template.start.rpartition("}")[2] if mark == "{" else template.start.rpartition("%")[2][1:]
    )
    return Location(start, complete=False, end=tail)
