"""The names, values, attributes and owners of objects, read without running their code."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
import linecache
import os
import re
import string
import sys
import sysconfig
import time
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CellType, FunctionType, MappingProxyType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import msgspec

from proctor.core.redaction.findings import is_secret_name

_INSTALL_FOLDERS = ("site-packages", "dist-packages")
_OWN_PACKAGE = __name__.partition(".")[0]
_OWN_FOLDER = os.path.dirname(os.path.abspath(str(sys.modules[_OWN_PACKAGE].__file__)))
_EMPTY_CALLS = frozenset(
    {"dict", "list", "set", "deque", "defaultdict", "OrderedDict", "Counter", "bytearray", "count"}
    | {"Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "local", "ContextVar", "WeakKeyDictionary"}
    | {"WeakValueDictionary", "WeakSet"}
)
_COLLECTIONS = (list, tuple, set, frozenset)
# A longer collection of plain data is encoded as a whole.
MIN_ENCODED_LENGTH = 500
MAX_ENCODED_PARTS = 5_000_000
# A constant with more parts is data rather than a prompt: it counts in the digest of the whole, without a name.
MAX_CONSTANT_PARTS = 500
MAX_CONSTANT_BYTES = 1_000_000
# Passwords in URLs and settings, and words that are keys if they have letters and digits.
_PASSWORD = re.compile(r"(?i)://[^/\s:@]*:[^/\s@]+@|(?:pass(?:word|wd)?|pwd|secret|token|key|pin)[\"']?\s*[=:]")
_SHORT_SECRET_NAMES = frozenset({"key", "pin", "pass", "pw"})
_LONG_WORD = re.compile(r"[A-Za-z0-9]{16,}")
MAX_REPR_LENGTH = 10_000
MAX_ARRAY_BYTES = 64_000_000

PLAIN = (str, float, bool, complex, bytes, type(None), type(...))
TEMPLATES = (string.Template,)
_BUILT_IN: tuple[Any, ...] = (list, tuple, dict, set, frozenset, deque)
_VIEWS = (MappingProxyType, UserDict, ChainMap)
# Values that code may modify while it runs.
STATE = (list, dict, set, deque, bytearray, int, float, str, type(None))
# Proctor's classes list the attributes that belong to their identity under this name.
IDENTITY_ATTRIBUTES = "__proctor_identity__"
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")
# Packages of clients, locks and loggers, which contain no prompts.
CONNECTIONS = frozenset(
    {"openai", "anthropic", "httpx", "httpx2", "requests", "aiohttp", "urllib3", "boto3", "botocore"}
    | {"grpc", "redis", "psycopg", "sqlalchemy", "google", "mistralai", "cohere", "groq", "ollama"}
    | {"logging", "threading", "asyncio", "socket", "ssl", "concurrent", "multiprocessing", "queue"}
    | {"weakref", "contextvars", "random", "_thread", "_io", "io"}
)
# Attributes that every class has, and attributes that frameworks compute from the others.
_CLASS_NOISE = frozenset(
    {"__module__", "__dict__", "__weakref__", "__qualname__", "__firstlineno__"}
    | {"__static_attributes__", "__abstractmethods__", "_abc_impl", "__slotnames__"}
    | {"__msgspec_cache__", "__parameters__", "__match_args__", "__slots__", "__annotate__"}
    | {"__annotate_func__", "__annotations_cache__", "__struct_config__", "__dataclass_params__"}
    | {"__signature__", "__class_vars__", "__private_attributes__", "__type_params__", "__orig_bases__"}
    | {"model_computed_fields", "__subclasshook__", "__protocol_attrs__", "_is_protocol"}
    | {"__non_callable_proto_members__"}
)


@functools.cache
def _list_library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths.get(name, "") for name in ("stdlib", "platstdlib")} | {os.path.dirname(os.__file__)}
    all_folders = {real for folder in folders if folder for real in (folder, os.path.realpath(folder))}
    return tuple(f"{folder}{os.sep}" for folder in sorted(all_folders))


@functools.lru_cache(maxsize=10_000)
def is_project_file(filename: str) -> bool:
    """Return True for a file of the project, and for code typed into a notebook or prompt."""
    if filename.startswith("<"):
        return not filename.startswith("<frozen")
    parts = filename.replace("\\", "/").split("/")
    if any(part in _INSTALL_FOLDERS for part in parts):
        return False
    return not filename.startswith((f"{_OWN_FOLDER}{os.sep}", *_list_library_folders()))


def is_part_of_proctor(obj: Any) -> bool:
    """Return True if a function or class belongs to Proctor."""
    module = getattr(obj, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == _OWN_PACKAGE


def is_project_function(function: FunctionType) -> bool:
    """Return whether a function belongs to the project."""
    return is_project_file(function.__code__.co_filename) and not is_part_of_proctor(function)


def is_project_class(cls: type) -> bool:
    """Return whether a class belongs to the project."""
    name = cls.__dict__.get("__module__")
    if not isinstance(name, str) or name == "builtins" or is_part_of_proctor(cls):
        return False
    if name.partition(".")[0] in sys.stdlib_module_names:
        return False
    module = sys.modules.get(name)
    if module is not None and (file := get_file(module)) is not None:
        return is_project_file(file)
    functions = (part for part in vars(cls).values() if isinstance(part, FunctionType))
    return all(is_project_file(function.__code__.co_filename) for function in functions)


def is_project_module(module: ModuleType) -> bool:
    """Return whether a module belongs to the project."""
    name = module.__name__
    if name.partition(".")[0] in (_OWN_PACKAGE, *sys.builtin_module_names):
        return False
    file = get_file(module)
    if name == "__main__":
        return file is None or is_project_file(file)
    # A namespace package has a path instead of a file.
    folders = list(getattr(module, "__path__", ())) if file is None else []
    return is_project_file(file or f"{folders[0]}{os.sep}" if file or folders else "<frozen>")


def get_file(module: ModuleType) -> str | None:
    """Return the source file of a module."""
    file = vars(module).get("__file__")
    return file if isinstance(file, str) else None


def get_folder(filename: str | None) -> str | None:
    """Return the folder of a source file; None for code without a file."""
    if not filename or filename.startswith("<"):
        return None
    return os.path.dirname(os.path.abspath(filename))


def is_cacheable(modified_ns: int) -> bool:
    """Return False for a file that has just changed: a second change may not alter its time and size."""
    return time.time_ns() - modified_ns > 2_000_000_000


class InitialValue(NamedTuple):
    """The source of the values assigned to a global, and whether they are all empty or numbers."""

    source: str
    is_empty: bool


# The lines of each file, to notice changes, and its assignments.
_parsed_files: dict[str, tuple[list[str], dict[str, list[ast.expr]]]] = {}


def find_initial_value(filename: str | None, name: str) -> InitialValue | None:
    """Return the value that a module's source assigns to a global; None without a source or an assignment."""
    assigned = _read_assignments(filename).get(name) if filename else None
    if not assigned:
        return None
    source = "\n".join(ast.dump(value) for value in assigned)
    return InitialValue(source, all(_is_empty(value) for value in assigned))


def is_empty_value(value: Any) -> bool:
    """Return whether a value is empty or a number, or has only such items."""
    if value is None or isinstance(value, int | float):
        return True
    if isinstance(value, dict):
        return all(is_empty_value(item) for item in dict.values(value))
    if type(value) in _COLLECTIONS:
        return all(is_empty_value(item) for item in value)
    return isinstance(value, str | bytes | bytearray) and not value


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        name = function.id if isinstance(function, ast.Name) else name
        # A deque has its length as argument, a default dict the type of its values.
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        return name in _EMPTY_CALLS and all(
            isinstance(argument, ast.Name | ast.Lambda) or _is_empty(argument) for argument in arguments
        )
    try:
        return is_empty_value(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def _read_assignments(filename: str) -> Mapping[str, list[ast.expr]]:
    linecache.checkcache(filename)
    lines = linecache.getlines(filename)
    cached = _parsed_files.get(filename)
    if cached is not None and cached[0] == lines:
        return cached[1]
    assignments: dict[str, list[ast.expr]] = {}
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return assignments
    for statement in _list_assignments(tree.body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Name) and statement.value is not None:
                assignments.setdefault(target.id, []).append(statement.value)
    _parsed_files[filename] = lines, assignments
    return assignments


def _list_assignments(body: list[ast.stmt]) -> Iterator[ast.Assign | ast.AnnAssign | ast.AugAssign]:
    """Yield the assignments that run with the module, including those inside `if` and `try`."""
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            yield statement
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                yield from _list_assignments(getattr(statement, field, []))


def read_cell(cell: CellType) -> Any:
    """Return the value of a closure variable; None if it is not bound yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def is_collection(obj: Any) -> bool:
    """Return whether an object is a standard collection or derives from a built-in one."""
    return isinstance(obj, _BUILT_IN) or type(obj) in _VIEWS


def to_builtin(obj: Any) -> Any:
    """Convert a collection to its built-in base type without running overridden methods."""
    if isinstance(obj, dict):
        return obj if type(obj) is dict else dict(dict.items(obj))
    for base in _BUILT_IN:
        if isinstance(obj, base):
            return obj if type(obj) is base else base(base.__iter__(obj))
    return dict(obj.items())


def encode_plain(obj: Any) -> bytes | None:
    """Return plain data as JSON, or None if it contains other objects or too many parts."""
    if _count_parts(obj, MAX_ENCODED_PARTS) is None:
        return None
    try:
        return msgspec.json.encode(obj, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        return None


def encode_constant(name: str, value: Any) -> bytes | None:
    """Return a constant as JSON; None if it may contain a secret, is large, or is not plain data."""
    if may_name_secret(name) or _count_parts(value, MAX_CONSTANT_PARTS) is None or not _is_harmless(value):
        return None
    content = encode_plain(value)
    return content if content is not None and len(content) <= MAX_CONSTANT_BYTES else None


def may_name_secret(name: str) -> bool:
    """Return whether a constant or file of this name may be a key or password."""
    return is_secret_name(name) or name.lower() in _SHORT_SECRET_NAMES


def _is_harmless(value: Any) -> bool:
    """Return whether a value is plain data without a key or password, so that its digest may be stored."""
    stack = [value]
    while stack:
        part = stack.pop()
        if type(part) is dict:
            if not all(type(key) is str and not may_name_secret(key) for key in part):
                return False
            stack.extend(part.values())
        elif type(part) in _COLLECTIONS:
            stack.extend(part)
        elif type(part) is str:
            if _PASSWORD.search(part) is not None or any(map(_is_mixed, _LONG_WORD.findall(part))):
                return False
        elif part is not None and type(part) not in (bool, int, float):
            return False
    return True


def _is_mixed(word: str) -> bool:
    """Return whether a word has both letters and digits, as keys do."""
    return not word.isalpha() and not word.isdigit()


def _count_parts(obj: Any, limit: int) -> int | None:
    """Count the parts of nested collections, an object as often as it appears; None above the limit.

    The methods of other collections may be user code.
    """
    count, stack = 0, [obj]
    while stack:
        part = stack.pop()
        if type(part) is dict:
            count += 2 * len(part)
        elif type(part) in _COLLECTIONS:
            count += len(part)
        else:
            continue
        if count > limit:
            return None
        if type(part) is dict:
            stack.extend(part.values())
        stack.extend(part)
    return count


def name_place(name: str, variables: Mapping[str, Any]) -> str:
    """Return a name with the file of its module, in the folders of its package; the name alone if it has no file."""
    file, package = variables.get("__file__"), variables.get("__package__") or ""
    if not isinstance(file, str) or not isinstance(package, str):
        return name
    folders = len(package.split(".")) if package else 0
    return f"{name} in {'/'.join(Path(file).parts[-folders - 1 :])}"


def is_data(obj: Any) -> bool:
    """Return whether an object is defined by its fields: a dataclass, struct, pydantic model or namespace."""
    if dataclasses.is_dataclass(type(obj)) or isinstance(obj, msgspec.Struct | SimpleNamespace | UserList):
        return True
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(obj, pydantic.BaseModel)


def read_base_url(obj: Any) -> str:
    """Return the base URL of a client, or ""."""
    address = vars(obj).get("_base_url") if hasattr(obj, "__dict__") else None
    return str(address) if address is not None and type(address).__module__ != "builtins" else ""


def encode_value(obj: Any) -> bytes | None:
    """Return the complete value of a built-in or foreign object as bytes, or None."""
    cls = type(obj)
    if cls.__module__ == "numpy" and callable(getattr(cls, "tobytes", None)):
        size = getattr(obj, "nbytes", 0)
        data = obj.tobytes() if size <= MAX_ARRAY_BYTES else b""
        return f"{obj.dtype} {obj.shape} {size} ".encode() + data
    if isinstance(obj, bytearray | memoryview):
        return bytes(obj)
    if isinstance(obj, int):
        return hex(int.__index__(obj)).encode()
    for base in (str, float, bytes):
        if isinstance(obj, base):
            return base.__repr__(obj).encode(errors="backslashreplace")
    if hasattr(obj, "__dict__") or hasattr(cls, "__next__") or is_project_class(cls):
        return None
    try:
        text = repr(obj)
    except Exception:
        return None
    if _ADDRESS.search(text) or len(text) > MAX_REPR_LENGTH:
        return None
    return text.encode(errors="backslashreplace")


def list_class_members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the members that a class of the project defines, sorted by name."""
    if isinstance(cls, enum.EnumMeta):
        members = dict.items(cls._member_map_)
        yield "members", [(name, member._value_) for name, member in members]
    for name in sorted(vars(cls)):
        member = vars(cls)[name]
        if name in _CLASS_NOISE or isinstance(member, MemberDescriptorType):
            continue
        if name.startswith("__pydantic_") and name != "__pydantic_fields__":
            continue
        if isinstance(cls, enum.EnumMeta) and (name in cls._member_map_ or name[0] == "_"):
            continue
        if name == "__dataclass_fields__":
            yield name, [(f.name, f.default, f.default_factory) for f in member.values()]
        elif name == "__annotations__":
            yield name, {key: _describe_annotation(value) for key, value in member.items()}
        elif type(member).__name__ != "getset_descriptor":
            yield name, _unwrap_descriptor(member)


def _unwrap_descriptor(member: Any) -> Any:
    """Return the functions inside a property, a static method or a class method."""
    if isinstance(member, property):
        return [member.fget, member.fset]
    if isinstance(member, staticmethod | classmethod):
        return [type(member).__name__, member.__func__]
    inner = getattr(member, "func", None) if type(member).__name__ == "cached_property" else None
    return member if inner is None else inner


def _describe_annotation(value: Any) -> Any:
    if isinstance(value, type | str):
        return value
    text = repr(value)
    return "" if _ADDRESS.search(text) else text


def read_attributes(obj: Any) -> dict[str, Any]:
    """Return the attributes of an object, from its slots and its dictionary."""
    attributes: dict[str, Any] = {}
    for cls in type(obj).__mro__:
        for name, member in vars(cls).items():
            if isinstance(member, MemberDescriptorType) and not name.startswith("__pydantic_"):
                try:
                    attributes[name] = member.__get__(obj)
                except AttributeError:
                    continue
    instance_attributes = getattr(obj, "__dict__", None)
    return {**attributes, **instance_attributes} if isinstance(instance_attributes, dict) else attributes


def read_identity_attributes(obj: Any) -> dict[str, Any]:
    """Return the attributes that affect scores.

    Proctor's classes may list them in `__proctor_identity__`; for other classes these are all attributes.
    """
    attributes, cls = read_attributes(obj), type(obj)
    attribute_names = getattr(cls, IDENTITY_ATTRIBUTES, None) if is_part_of_proctor(cls) else None
    if attribute_names is None:
        return attributes
    return {name: value for name, value in attributes.items() if name in attribute_names}


def is_transient(name: str, value: Any) -> bool:
    """Return whether an attribute of a foreign object is a secret, a cache or a counter."""
    if is_secret_name(name) or (name.startswith("__") and name != "__wrapped__"):
        return True
    if "cache" in name.lower() or "cache" in type(value).__name__.lower():
        return True
    return name.startswith("_") and isinstance(value, int | float)


def get_callable_name(obj: Any) -> str:
    """Return the name of a callable."""
    while isinstance(obj, functools.partial):
        obj = obj.func
    names = (getattr(obj, "name", None), getattr(obj, "__name__", None))
    return next((name for name in names if name and isinstance(name, str)), type(obj).__name__)


def find_address(obj: Any) -> str | None:
    """Return the address of a model or an embedder; None for other objects."""
    for method, attribute in (("complete", "model"), ("embed", "name")):
        function = inspect.getattr_static(obj, method, None)
        # A property or `__getattr__` would run the user's code.
        if callable(function) or isinstance(function, staticmethod | classmethod):
            address = getattr(obj, attribute, None)
            if isinstance(address, str):
                return address
    return None


def qualified_name(obj: Any) -> str:
    """Return module and qualified name of a function or class."""
    return f"{obj.__module__}:{obj.__qualname__}"
