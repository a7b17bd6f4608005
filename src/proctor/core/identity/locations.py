"""Find the file that a call opens, by evaluating its argument with the globals of the function.

Only strings, paths and the functions of `os.path` and `pathlib` are evaluated; no user code runs.
"""

from __future__ import annotations

import builtins
import inspect
import os
import re
import sys
from collections.abc import Mapping
from pathlib import PurePath
from types import ModuleType
from typing import Any, NamedTuple

from proctor.core.identity.file_calls import Expression, FileCall
from proctor.core.identity.modules import find_package_folder
from proctor.core.identity.special_functions import PATH_LISTERS, SpecialFunctions

_MISSING = object()
# Functions and methods that return the same path in a different form.
_SAME_PATH = frozenset(
    {"str", "fspath", "abspath", "realpath", "normpath", "expanduser", "expandvars", "resolve", "absolute", "as_posix"}
)
_WRAPPERS = _SAME_PATH | {"Path", "PurePath"}
_PATH_MODULES = ("os", "posixpath", "ntpath", "genericpath", "pathlib", "builtins", "pathlib._local")


class Location(NamedTuple):
    """A path; if it is not `complete`, its known start and end.

    `recursive` is true if the unknown middle may contain folders; None if that is unknown.
    """

    start: str
    complete: bool = True
    end: str = ""
    recursive: bool | None = None

    @property
    def folder(self) -> str:
        """The known folder of an incomplete path, or ""."""
        start = self.start.replace("\\", "/")
        return start[: start.rfind("/")] or "/" if "/" in start else ""


ANYWHERE = Location("", complete=False)
# Functions that return the same elements.
_SAME_ELEMENTS = frozenset(["sorted", "list", "tuple", "set", "reversed", "iter", "frozenset"])
_WILDCARDS = re.compile(r"[*?\[]")


class Names(NamedTuple):
    """The values of the names in a function, and the defaults of its parameters.

    `assigned_globals` is for a module that is not loaded.
    """

    values: Mapping[str, Any]
    cells: Mapping[str, Any] = {}
    assigned_globals: Mapping[str, Expression] = {}
    special: SpecialFunctions = SpecialFunctions()
    defaults: Mapping[str, Any] = {}


def find_effect(node: Expression, names: Names) -> tuple[str, str] | None:
    """Return the effect of a special function and the phrase for it; None for other expressions."""
    value = resolve_object(node, names)
    if value is not _MISSING:
        return names.special.find_object(value)
    path = _get_dotted_name(node, names)
    return names.special.find_path(path) if path else None


def _get_dotted_name(node: Expression, names: Names) -> str:
    """Return the dotted name of a function in a module that is not loaded, or ""."""
    if node.kind == "module":
        return str(node.value)
    if node.kind == "attribute":
        owner = _get_dotted_name(node.parts[0], names)
        return f"{owner}.{node.value}" if owner else ""
    if node.kind == "global" and node.value in names.assigned_globals:
        return _get_dotted_name(*_find_assigned_expression(str(node.value), names))
    return ""


def _find_assigned_expression(name: str, names: Names) -> tuple[Expression, Names]:
    """Return the expression of a global, and the names without it, which ends cycles."""
    others = {key: node for key, node in names.assigned_globals.items() if key != name}
    return names.assigned_globals[name], names._replace(assigned_globals=others)


def resolve_string(node: Expression | None, names: Names) -> str | None:
    """Return the string value of an expression, if all of it is known."""
    text = resolve_text(node, names) if node is not None else None
    return text.start if text is not None and text.complete else None


def resolve_location(call: FileCall, names: Names) -> Location | None:
    """Return the file of a call; None if it opens something else, as `webbrowser.open` does."""
    if call.first is None:
        path = resolve_text(call.path, names)
    elif isinstance(resolve_object(call.path, names), ModuleType):
        module = resolve_object(call.path, names)
        path = None if module.__name__ == "webbrowser" else resolve_text(call.first, names)
    else:
        path = resolve_text(call.path, names)
    if path is None and _is_other_object(call.path, names):
        return None
    return ANYWHERE if path is None else path


def resolve_locations(call: FileCall, names: Names) -> list[Location]:
    """Return all files that a call may open; [ANYWHERE] if they are unknown.

    An item of a constant mapping or list (`PROMPTS[name]`) may be any of its values.
    """
    location = resolve_location(call, names)
    if location != ANYWHERE:
        return [] if location is None else [location]
    is_function = isinstance(resolve_object(call.path, names), ModuleType)
    path = call.first if call.first is not None and is_function else call.path
    if path.kind == "call" and len(path.parts) == 2 and path.parts[1].kind == "item":
        function = resolve_object(path.parts[0], names)
        path = path.parts[1] if _get_function_name(path.parts[0], function) in _WRAPPERS else path
    values = _list_values(resolve_object(path.parts[0], names)) if path.kind == "item" else []
    if values and all(isinstance(value, str | PurePath) for value in values):
        return [Location(os.fspath(value)) for value in values]
    return [location]


def _list_values(container: Any) -> list[Any]:
    """Return the values of a built-in container, which runs no user code."""
    if type(container) is dict:
        return list(container.values())
    return list(container) if type(container) in (list, tuple) else []


def _is_other_object(node: Expression, names: Names) -> bool:
    """Return whether an object is known and not a path, such as a client with a method `open`."""
    value = resolve_object(node, names)
    return value is not _MISSING and not isinstance(value, str | os.PathLike)


def resolve_object(node: Expression, names: Names) -> Any:
    """Return the object of an expression without running code of its class."""
    if node.kind == "constant":
        return node.value
    if node.kind == "global":
        name = str(node.value)
        is_defined = name in names.values or name in names.assigned_globals
        return (names.values if is_defined else vars(builtins)).get(name, _MISSING)
    if node.kind == "cell":
        return names.cells.get(str(node.value), _MISSING)
    if node.kind == "module":
        return sys.modules.get(str(node.value), _MISSING)
    if node.kind == "attribute":
        owner = resolve_object(node.parts[0], names)
        if owner is _MISSING or isinstance(owner, PurePath | str):
            return _MISSING
        value = inspect.getattr_static(owner, str(node.value), _MISSING)
        is_plain = isinstance(owner, ModuleType) or isinstance(value, str | PurePath | dict | list)
        return value if is_plain else _MISSING
    return _resolve_item(node, names) if node.kind == "item" else _MISSING


def _resolve_item(node: Expression, names: Names) -> Any:
    owner, key = (resolve_object(part, names) for part in node.parts)
    if type(owner) in (dict, list, tuple) and type(key) in (str, int):
        try:
            return owner[key]
        except (KeyError, IndexError):
            return _MISSING
    return _MISSING


def resolve_text(node: Expression, names: Names) -> Location | None:
    """Return the path or string value of an expression; None if nothing of it is known."""
    if node.kind in ("text", "join"):
        parts = [resolve_text(part, names) or ANYWHERE for part in node.parts]
        return _concatenate(parts) if node.kind == "text" else _join(parts)
    if node.kind == "template":
        return _fill_template(resolve_text(node.parts[0], names), "%")
    if node.kind == "call":
        return _resolve_call(node, names)
    if node.kind in ("element", "attribute", "item"):
        related = _resolve_related_path(node, names)
        if related is not None:
            return related
    value = resolve_object(node, names)
    if type(value) is str or (isinstance(value, PurePath) and type(value).__module__ in _PATH_MODULES):
        return Location(os.fspath(value))
    if node.kind == "global" and value is _MISSING and node.value in names.assigned_globals:
        return resolve_text(*_find_assigned_expression(str(node.value), names))
    return None


def _resolve_related_path(node: Expression, names: Names) -> Location | None:
    """Return the parent of a path, or a file of a listing."""
    if node.kind == "element":
        return _resolve_listed_file(node.parts[0], names)
    if node.kind == "attribute" and node.value == "path" and node.parts[0].kind == "element":
        return resolve_listing(node.parts[0].parts[0], names)
    if node.kind == "attribute" and node.value == "parent":
        return _find_parent(resolve_text(node.parts[0], names))
    if node.kind == "item" and node.parts[0].kind == "attribute":
        owner, index = node.parts[0], node.parts[1].value
        if owner.value == "parents" and isinstance(index, int) and 0 <= index < 50:
            path = resolve_text(owner.parts[0], names)
            for _ in range(index + 1):
                path = _find_parent(path)
            return path
    return None


def _resolve_call(node: Expression, names: Names) -> Location | None:
    callee, arguments = node.parts[0], node.parts[1:]
    receiver = callee.parts[0] if callee.kind == "attribute" else None
    meaning = find_effect(callee, names)
    if meaning is not None and meaning[0] == "package":
        return resolve_package(arguments[0] if arguments else None, names)
    function = resolve_object(callee, names)
    if function is not _MISSING or receiver is None:
        return _resolve_function_call(_get_function_name(callee, function), arguments, names)
    if isinstance(resolve_object(receiver, names), ModuleType):
        return None
    base = resolve_text(receiver, names)
    if callee.value == "format":
        return _fill_template(base, "{")
    if base is None and receiver.kind in ("global", "module"):
        # A module or class that is not loaded is identified by its name.
        return _resolve_function_call(str(callee.value), arguments, names)
    texts = [resolve_text(argument, names) or ANYWHERE for argument in arguments]
    if callee.value == "joinpath":
        return _join([base or ANYWHERE, *texts])
    if callee.value == "with_name" and texts:
        return _join([_find_parent(base) or ANYWHERE, texts[0]])
    if callee.value == "with_suffix" and base and base.complete and texts:
        return _concatenate([Location(os.path.splitext(base.start)[0]), texts[0]])
    return base if callee.value in _SAME_PATH else None


def _get_function_name(callee: Expression, function: Any) -> str:
    if function is _MISSING:
        return str(callee.value)
    if isinstance(function, type) and issubclass(function, PurePath):
        return "Path"
    from_library = getattr(function, "__module__", None) in _PATH_MODULES
    name = function.__name__ if from_library and hasattr(function, "__name__") else ""
    return str(name)


def _resolve_function_call(name: str, arguments: tuple[Expression, ...], names: Names) -> Location | None:
    texts = [resolve_text(argument, names) or ANYWHERE for argument in arguments]
    if name in ("Path", "PurePath", "join"):
        return _join(texts) if texts else Location(".")
    if name == "getcwd":
        return Location(os.getcwd())
    if not texts:
        return None
    return _find_parent(texts[0]) if name == "dirname" else texts[0] if name in _SAME_PATH else None


def _find_parent(path: Location | None) -> Location | None:
    if path is None or not path.complete:
        return None
    return Location(os.path.dirname(path.start) or ".")


def _concatenate(parts: list[Location]) -> Location:
    start = ""
    for position, part in enumerate(parts):
        start += part.start
        if not part.complete:
            end = _find_end(parts[position:])
            return Location(start, complete=False, end=end, recursive="/" in end or None)
    return Location(start)


def _find_end(parts: list[Location]) -> str:
    """Return the known end of concatenated strings; the first string is incomplete."""
    end = ""
    for part in reversed(parts):
        end = (part.start if part.complete else part.end) + end
        if not part.complete:
            break
    return end


def _join(parts: list[Location]) -> Location:
    start = ""
    for position, part in enumerate(parts):
        if not part.complete:
            start = os.path.join(start, part.start) if start else part.start
            last = parts[-1]
            end = last.start if last.complete else last.end
            recursive = True if position + 1 < len(parts) else part.recursive
            return Location(start, complete=False, end=end, recursive=recursive)
        start = os.path.join(start, part.start)
    return Location(start)


def _fill_template(template: Location | None, mark: str) -> Location | None:
    """Return the location of a template such as "prompts/%s.txt"."""
    if template is None or not template.complete:
        return None
    start, placeholder, _ = template.start.partition(mark)
    if not placeholder:
        return template
    tail = template.start.rpartition("}")[2] if mark == "{" else template.start.rpartition("%")[2][1:]
    return Location(start, complete=False, end=tail, recursive="/" in tail or None)


def resolve_package(node: Expression | None, names: Names) -> Location | None:
    """Return the folder of a package, which is a name or a loaded module."""
    if node is None:
        file = names.values.get("__file__")
        return Location(os.path.dirname(file)) if isinstance(file, str) else None
    value = resolve_object(node, names)
    name = value.__name__ if isinstance(value, ModuleType) else resolve_string(node, names)
    folder = find_package_folder(name) if name else None
    return Location(folder) if folder else None


def is_listing(node: Expression, names: Names) -> bool:
    """Return whether a function or method lists the files of a folder."""
    meaning = find_effect(node, names)
    if meaning is not None:
        return meaning[0] in ("list", "walk", "pattern")
    if node.kind != "attribute" or resolve_object(node, names) is not _MISSING:
        return False
    receiver = node.parts[0]
    if node.value == "walk":
        # Many classes have a method of this name.
        return resolve_text(receiver, names) is not None
    is_other = _is_other_object(receiver, names)
    return node.value in PATH_LISTERS and not is_other and not _get_dotted_name(receiver, names)


def resolve_listing(node: Expression, names: Names) -> Location | None:
    """Return the location of the files that a call lists; None for other expressions."""
    if node.kind != "call":
        return None
    callee, arguments = node.parts[0], node.parts[1:]
    if callee.kind == "global" and callee.value in _SAME_ELEMENTS and arguments:
        return resolve_listing(arguments[0], names)
    if not is_listing(callee, names):
        return None
    meaning = find_effect(callee, names)
    keywords = dict(node.value) if isinstance(node.value, tuple) else {}
    if meaning is None:
        base = resolve_text(callee.parts[0], names)
        if callee.value in ("iterdir", "walk"):
            return _match_pattern(base, "", deep=callee.value == "walk")
        pattern = resolve_string(arguments[0] if arguments else keywords.get("pattern"), names)
        return _match_pattern(base, pattern, deep=callee.value == "rglob")
    if meaning[0] == "pattern":
        root = keywords.get("root_dir")
        base = Location("") if root is None else resolve_text(root, names)
        pattern = resolve_string(arguments[0] if arguments else keywords.get("pathname"), names)
        return _match_pattern(base, pattern, deep=False)
    folder = arguments[0] if arguments else keywords.get("path") or keywords.get("top")
    base = Location(".") if folder is None else resolve_text(folder, names)
    return _match_pattern(base, "", deep=meaning[0] == "walk")


def _match_pattern(base: Location | None, pattern: str | None, *, deep: bool) -> Location:
    """Return the location of the files in a folder that match a pattern; "" matches all."""
    if base is None or not base.complete or pattern is None:
        return ANYWHERE
    wildcard = _WILDCARDS.search(pattern)
    at = wildcard.start() if wildcard else len(pattern)
    fixed_part, wildcard_part = pattern[:at], pattern[at:]
    head, slash, tail = fixed_part.rpartition("/")
    deep = deep or "/" in wildcard_part
    end = "" if pattern.endswith("*") else f"{tail}{wildcard_part}"
    end = os.path.splitext(end)[1]
    start = os.path.join(base.start or ".", f"{head}{slash}" if head or slash else "", "")
    return Location(start, complete=False, end="" if _WILDCARDS.search(end) else end, recursive=deep)


def _resolve_listed_file(iterable: Expression, names: Names) -> Location | None:
    """Return a file of a listing; the names from `os.listdir` have no folder."""
    inner = iterable
    while inner.kind == "call" and inner.parts[0].value in _SAME_ELEMENTS and inner.parts[1:]:
        inner = inner.parts[1]
    callee = inner.parts[0] if inner.kind == "call" else inner
    meaning = find_effect(callee, names)
    if meaning is not None and meaning[0] in ("list", "walk"):
        return resolve_listing(inner, names) if callee.value == "scandir" else None
    return resolve_listing(inner, names)
