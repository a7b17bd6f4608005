"""What objects of different kinds hold, read without running their code."""

from __future__ import annotations

import ast
import dataclasses
import enum
import linecache
import re
import string
import sys
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Iterator, Mapping
from types import CellType, MappingProxyType, MemberDescriptorType, SimpleNamespace
from typing import Any, NamedTuple

import msgspec

from proctor.core.identity.project import is_own, is_project_class
from proctor.core.redaction.findings import says_secret

_EMPTY_CALLS = (
    *("dict", "list", "set", "deque", "defaultdict", "OrderedDict", "Counter", "bytearray"),
    *("count", "Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "local", "ContextVar"),
    *("WeakKeyDictionary", "WeakValueDictionary", "WeakSet"),
)
_COLLECTIONS = (list, tuple, set, frozenset)


class StartingValue(NamedTuple):
    """The expressions that a global is assigned, and whether they are empty or only count."""

    source: str
    is_empty: bool


# By file: its lines, which say whether it was read before, and its assignments.
_known: dict[str, tuple[list[str], dict[str, list[ast.expr]]]] = {}


def starting_value(filename: str | None, name: str) -> StartingValue | None:
    """What a module's source assigns to a global; None if there is no such source."""
    assigned = _assignments(filename).get(name) if filename else None
    if not assigned:
        return None
    source = "\n".join(ast.dump(value) for value in assigned)
    return StartingValue(source, all(_is_empty(value) for value in assigned))


def is_empty_value(value: Any) -> bool:
    """True for a value that is empty, or that only counts.

    >>> [is_empty_value(value) for value in ([], 3, {"a": 1}, {"system": "be nice"})]
    [True, True, True, False]
    """
    if value is None or isinstance(value, int | float):
        return True
    if isinstance(value, dict):
        return all(is_empty_value(each) for each in dict.values(value))
    if type(value) in _COLLECTIONS:
        return all(is_empty_value(each) for each in value)
    return isinstance(value, str | bytes | bytearray) and not value


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        name = function.id if isinstance(function, ast.Name) else name
        # Of a deque its length, of a default dict the type of its values.
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        return name in _EMPTY_CALLS and all(
            isinstance(each, ast.Name | ast.Lambda) or _is_empty(each) for each in arguments
        )
    try:
        return is_empty_value(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def _assignments(filename: str) -> Mapping[str, list[ast.expr]]:
    linecache.checkcache(filename)
    lines = linecache.getlines(filename)
    known = _known.get(filename)
    if known is not None and known[0] == lines:
        return known[1]
    found: dict[str, list[ast.expr]] = {}
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return found
    for statement in _at_top(tree.body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Name) and statement.value is not None:
                found.setdefault(target.id, []).append(statement.value)
    _known[filename] = lines, found
    return found


def _at_top(body: list[ast.stmt]) -> list[ast.Assign | ast.AnnAssign | ast.AugAssign]:
    """Assignments that run with the module: those inside `if` and `try` too."""
    found: list[ast.Assign | ast.AnnAssign | ast.AugAssign] = []
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            found.append(statement)
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                found += _at_top(getattr(statement, part, []))
    return found


# A longer collection of plain data is written in one go.
LONG = 500
LONGEST_REPR = 10_000
MOST_ARRAY_BYTES = 64_000_000

PLAIN = (str, float, bool, complex, bytes, type(None), type(...))
TEMPLATES = (string.Template,)
_BUILT_IN: tuple[Any, ...] = (list, tuple, dict, set, frozenset, deque)
_VIEWS = (MappingProxyType, UserDict, ChainMap)
_STATE = (list, dict, set, deque, bytearray, int, float, str, type(None))
# Where a class of Proctor's names the attributes that are part of what an object is.
COUNTED = "__proctor_identity__"
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")
# Packages whose objects hold connections: what they send is in the code that uses them.
_CONNECTIONS = frozenset(
    [
        "openai",
        "anthropic",
        "httpx",
        "httpx2",
        "requests",
        "aiohttp",
        "urllib3",
        "boto3",
        "botocore",
        "grpc",
        "redis",
        "psycopg",
        "sqlalchemy",
        "google",
        "mistralai",
        "cohere",
        "groq",
        "ollama",
        "logging",
        "threading",
        "asyncio",
        "socket",
        "ssl",
        "concurrent",
        "multiprocessing",
        "queue",
        "weakref",
        "contextvars",
        "random",
        "_thread",
        "_io",
        "io",
    ]
)
# Attributes that every class has, and those that frameworks compute from the others.
_CLASS_NOISE = frozenset(
    [
        "__module__",
        "__dict__",
        "__weakref__",
        "__qualname__",
        "__firstlineno__",
        "__static_attributes__",
        "__abstractmethods__",
        "_abc_impl",
        "__slotnames__",  # by `copy`
        "__msgspec_cache__",
        "__parameters__",
        "__match_args__",
        "__slots__",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "__struct_config__",
        "__dataclass_params__",
        "__signature__",
        "__class_vars__",
        "__private_attributes__",
        "__type_params__",
        "__orig_bases__",
        "model_computed_fields",
        "__subclasshook__",
        "__protocol_attrs__",
        "_is_protocol",
        "__non_callable_proto_members__",
    ]
)


def of_cell(cell: CellType) -> Any:
    """What a closure holds; None for a name that is bound only later."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def is_collection(thing: Any) -> bool:
    """True for collections of the standard library and what is derived from built-in ones."""
    return isinstance(thing, _BUILT_IN) or type(thing) in _VIEWS


def bare_collection(things: Any) -> Any:
    """A collection as the built-in one that it is derived from; no method of the user's runs."""
    if isinstance(things, dict):
        return things if type(things) is dict else dict(dict.items(things))
    for base in _BUILT_IN:
        if isinstance(things, base):
            return things if type(things) is base else base(base.__iter__(things))
    return dict(things.items())


def written(things: Any) -> bytes | None:
    """Plain data as text, or None if there is more to it."""
    try:
        return msgspec.json.encode(things, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        return None


def is_state(value: Any) -> bool:
    """True for a value that code may change while it runs."""
    return isinstance(value, _STATE)


def is_data(thing: Any) -> bool:
    """True for objects that are their fields: dataclasses, structs, pydantic models, namespaces."""
    kind = type(thing)
    if dataclasses.is_dataclass(kind) or isinstance(thing, msgspec.Struct | SimpleNamespace | UserList):
        return True
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(thing, pydantic.BaseModel)


def is_connection(kind: type) -> bool:
    """True for clients, locks, loggers and the like: they hold no part of a prompt."""
    return kind.__module__.partition(".")[0] in _CONNECTIONS


def base_address(client: Any) -> str:
    """Where a client connects to, if it says so in an attribute."""
    address = vars(client).get("_base_url") if hasattr(client, "__dict__") else None
    return str(address) if address is not None and type(address).__module__ != "builtins" else ""


def value_of(thing: Any) -> bytes | None:
    """The value of a built-in or foreign object that shows itself whole, or None."""
    kind = type(thing)
    if kind.__module__ == "numpy" and callable(getattr(kind, "tobytes", None)):
        size = getattr(thing, "nbytes", 0)
        data = thing.tobytes() if size <= MOST_ARRAY_BYTES else b""
        return f"{thing.dtype} {thing.shape} {size} ".encode() + data
    if isinstance(thing, bytearray | memoryview):
        return bytes(thing)
    if isinstance(thing, str | int | float | bytes):
        return _text_of_derived(thing)
    if hasattr(thing, "__dict__") or hasattr(kind, "__next__") or is_project_class(kind):
        return None
    try:
        text = repr(thing)
    except Exception:
        return None
    if _ADDRESS.search(text) or len(text) > LONGEST_REPR:
        return None
    return text.encode(errors="backslashreplace")


def _text_of_derived(thing: Any) -> bytes:
    """The value of an object of a class that is derived from str, int, float or bytes."""
    if isinstance(thing, int):
        return hex(int.__index__(thing)).encode()
    kinds: tuple[type, ...] = (str, float, bytes)
    base = next(kind for kind in kinds if isinstance(thing, kind))
    return str(base.__repr__(thing)).encode(errors="backslashreplace")  # type: ignore[call-arg]


def parts_of_class(kind: type) -> Iterator[tuple[str, Any]]:
    """What a class of the project defines, by name and in order."""
    if isinstance(kind, enum.EnumMeta):
        members = dict.items(kind._member_map_)
        yield "members", [(name, member._value_) for name, member in members]
    for name in sorted(vars(kind)):
        part = vars(kind)[name]
        if name in _CLASS_NOISE or isinstance(part, MemberDescriptorType):
            continue
        if name.startswith("__pydantic_") and name != "__pydantic_fields__":
            continue
        if isinstance(kind, enum.EnumMeta) and (name in kind._member_map_ or name[0] == "_"):
            continue
        if name == "__dataclass_fields__":
            yield name, [(f.name, f.default, f.default_factory) for f in part.values()]
        elif name == "__annotations__":
            yield name, {key: _annotation(value) for key, value in part.items()}
        elif type(part).__name__ == "getset_descriptor":
            continue
        else:
            yield name, _bare(part)


def _bare(part: Any) -> Any:
    """The functions inside a property, a static method or a class method."""
    if isinstance(part, property):
        return [part.fget, part.fset]
    if isinstance(part, staticmethod | classmethod):
        return [type(part).__name__, part.__func__]
    inner = getattr(part, "func", None) if type(part).__name__ == "cached_property" else None
    return part if inner is None else inner


def _annotation(value: Any) -> Any:
    if isinstance(value, type | str):
        return value
    text = repr(value)
    return "" if _ADDRESS.search(text) else text


def attributes_of(thing: Any) -> dict[str, Any]:
    """What an object holds, in its slots and in its dictionary."""
    attributes: dict[str, Any] = {}
    for kind in type(thing).__mro__:
        for name, part in vars(kind).items():
            if isinstance(part, MemberDescriptorType) and not name.startswith("__pydantic_"):
                try:
                    attributes[name] = part.__get__(thing)
                except AttributeError:
                    continue
    own = getattr(thing, "__dict__", None)
    return {**attributes, **own} if isinstance(own, dict) else attributes


def counted_attributes_of(thing: Any) -> dict[str, Any]:
    """What an object holds that scores rest on.

    A class of Proctor's may name its attributes that count in `__proctor_identity__`; of any other
    class all of them do.
    """
    attributes, kind = attributes_of(thing), type(thing)
    counted = getattr(kind, COUNTED, None) if is_own(kind) else None
    if counted is None:
        return attributes
    return {name: value for name, value in attributes.items() if name in counted}


def is_passing(name: str, value: Any) -> bool:
    """True for an attribute of a foreign object that is a secret, or a figure of its own use."""
    if says_secret(name):
        return True
    if name.startswith("__") and name != "__wrapped__":
        return True
    if "cache" in name.lower() or "cache" in type(value).__name__.lower():
        return True
    return name.startswith("_") and isinstance(value, int | float)
