"""Walk over everything that a callable uses in the user's project.

It never hashes memory addresses, the order of sets or the location of the project, so the digest is the same
in every process and folder. No user code runs. See `docs/decisions/014-identity.md`.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple

from proctor.core.identity import contents
from proctor.core.identity.code import CodeFacts, Import, encode_code, read_facts
from proctor.core.identity.contents import (
    find_address,
    find_initial_value,
    get_file,
    get_folder,
    is_empty_value,
    is_part_of_proctor,
    is_project_class,
    is_project_file,
    is_project_function,
    is_project_module,
    qualified_name,
)
from proctor.core.identity.dynamic_access import DynamicAccess
from proctor.core.identity.file_calls import UNKNOWN
from proctor.core.identity.locations import Location, Names
from proctor.core.identity.modules import Source, compile_file, find_sources
from proctor.core.identity.named_files import NamedFiles, Scope, Uncovered
from proctor.core.identity.special_functions import SpecialFunctions

# Increase it when the same code would get another digest: older runs are then reported as
# "cannot be compared" instead of "has changed".
SCHEME = 5
_PREFIXED = re.compile(r"(\d+):[0-9a-f]{16}")
_FIRST_SCHEME = re.compile(r"[0-9a-f]{16}")
# Limits of the walk.
MAX_DEPTH = 40
MAX_OBJECT_DEPTH = 8
MAX_PARTS = 20_000
MAX_NAMED_PARTS = 500
PART_DIGITS = 8
TOO_LARGE = "objects beyond the size limit"

_IGNORED_GLOBALS = frozenset(
    {"__file__", "__path__", "__spec__", "__loader__", "__cached__", "__name__", "__builtins__"} | {"__package__"}
)
_MISSING = object()


class Identity(NamedTuple):
    """A digest with its scheme, and phrases for the things that the digest does not cover.

    `parts` are short digests of functions, constants and files, by names that a person can find.
    """

    digest: str
    uncovered: tuple[str, ...] = ()
    parts: Mapping[str, str] = MappingProxyType({})


def compute_digest(obj: Any) -> str:
    """Return a short digest that changes with the code that a callable reaches and with its data."""
    return compute_identity(obj).digest


def compute_identity(obj: Any) -> Identity:
    """Return the digest of a callable, with phrases for the things that it does not cover, and its named parts."""
    walk = Walk(frozenset())
    walk.visit_all(obj)
    while walk.modified_names - walk.ignored:
        # Collections that the code fills while it runs are state: walk again without them.
        walk = Walk(walk.modified_names | walk.ignored)
        walk.visit_all(obj)
    for label, digest in walk.files.digests(walk.uncovered):
        walk.note("file", f"{label} {digest}".encode(errors="backslashreplace"))
        if not contents.may_name_secret(os.path.splitext(os.path.basename(label))[0]):
            walk.name_part(f"the file {label}", digest.encode())
    return Identity(f"{SCHEME}:{walk.state.hexdigest()[:16]}", walk.uncovered.phrases(), walk.list_parts())


def _parse_scheme(identity: str) -> int | None:
    """Return the scheme of an identity, or None if it is not a digest of code."""
    digest = identity.partition("@")[0]
    prefixed = _PREFIXED.fullmatch(digest)
    if prefixed is not None:
        return int(prefixed[1])
    return 1 if _FIRST_SCHEME.fullmatch(digest) else None


def have_different_schemes(first: str, second: str) -> bool:
    """Return True if two identities have different schemes and therefore cannot be compared."""
    schemes = _parse_scheme(first), _parse_scheme(second)
    return None not in schemes and schemes[0] != schemes[1]


def _read_defaults(function: FunctionType) -> dict[str, Any]:
    """Return the default arguments of a function by name."""
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    values = function.__defaults__ or ()
    named = zip(positional[len(positional) - len(values) :], values, strict=False)
    return {**dict(named), **(function.__kwdefaults__ or {})}


class Walk:
    """A walk over the objects that a callable uses; `ignored` are the cells and globals that hold state."""

    def __init__(self, ignored: frozenset[tuple[int, str]]) -> None:
        self.state = hashlib.sha256()
        self.ignored = ignored
        self.modified_names: frozenset[tuple[int, str]] = frozenset()
        self.files = NamedFiles()
        self.uncovered = Uncovered()
        self._named_contents: dict[str, set[bytes]] = {}
        self._substance = 0
        self._parts_left = MAX_PARTS
        self._path: tuple[int, ...] = ()
        self._object_depth = 0
        self._numbers: dict[int, int] = {}
        self._visited: list[Any] = []
        self._scope = Scope("", get_folder(os.path.join(os.getcwd(), "-")))
        self._sources: set[str] = set()
        self._special = SpecialFunctions()
        self._foreign = 0
        self._queue: deque[tuple[Callable[[], None], Scope]] = deque()

    def visit_all(self, obj: Any) -> None:
        """Hash an object, then every function, class and module that it reaches.

        They are queued, because a chain of calls may be deeper than Python's stack.
        """
        self.visit(obj)
        outer = self._scope, self._path, self._object_depth
        self._path, self._object_depth = (), 0
        while self._queue:
            read, self._scope = self._queue.popleft()
            read()
        self._scope, self._path, self._object_depth = outer

    def visit(self, obj: Any) -> None:
        """Hash an object and, within limits, its contents."""
        self._parts_left -= 1
        cls = type(obj)
        if cls is int:
            # Python does not convert very long integers to decimal.
            self.note("int", hex(obj))
        elif cls is str:
            self.note("str", repr(self.files.add_name(obj, self._scope)))
        elif cls in contents.PLAIN:
            self.note(cls.__name__, repr(obj))
        elif self._visit_by_name(obj):
            return
        elif id(obj) in self._path:
            self.note("itself", qualified_name(cls), substance=False)
        elif self._parts_left < 0 or len(self._path) >= MAX_DEPTH:
            self.uncovered.add(TOO_LARGE, self._scope.name)
            self.note("and so on", substance=False)
        else:
            self._path += (id(obj),)
            self._visit_compound(obj)
            self._path = self._path[:-1]

    def _visit_by_name(self, obj: Any) -> bool:
        """Hash only the name of `os.environ` and of functions that access other code."""
        if obj is os.environ:
            self.note("environment", substance=False)
            return True
        meaning = self._special.find_object(obj)
        if meaning is None:
            return False
        # It is passed as a value, so its calls cannot be traced.
        self.note("builtin", meaning[0])
        if not self._foreign:
            self.uncovered.add(meaning[1], self._scope.name)
        return True

    def note(self, word: str, content: bytes | str = b"", *, substance: bool = True) -> None:
        """Hash a word and its content; `substance` is False for words that carry no information."""
        if isinstance(content, str):
            content = content.encode(errors="backslashreplace")
        # The length separates ("ab", "c") from ("a", "bc").
        self.state.update(f"{word} {len(content)}:".encode())
        self.state.update(content)
        self._substance += substance

    def name_part(self, label: str, content: bytes | None) -> None:
        """Record the digest of a function, constant or file, to say later what has changed."""
        if content is not None and len(self._named_contents) < MAX_NAMED_PARTS:
            for folder in self._scope.folders:
                content = content.replace(folder.encode(errors="backslashreplace"), b"")
            # Two objects may have the same name.
            self._named_contents.setdefault(label, set()).add(hashlib.sha256(content).digest())

    def list_parts(self) -> dict[str, str]:
        """Return a short digest of each named part."""
        joined = {label: b"".join(sorted(digests)) for label, digests in self._named_contents.items()}
        return {label: hashlib.sha256(content).hexdigest()[:PART_DIGITS] for label, content in joined.items()}

    def _visit_compound(self, obj: Any) -> None:
        if isinstance(obj, type):
            self._visit_class(obj)
        elif isinstance(obj, ModuleType):
            self._visit_module(obj)
        elif isinstance(obj, functools.partial):
            self.note("partial")
            arguments = {**{f"argument {place}": value for place, value in enumerate(obj.args, 1)}, **obj.keywords}
            for name, value in arguments.items():
                bound = f"{name} bound to {getattr(obj.func, '__qualname__', 'a function')}"
                self.name_part(bound, contents.encode_constant(name, value))
            self._visit_items([obj.func, obj.args, obj.keywords])
        elif isinstance(obj, FunctionType):
            self._enqueue("function", self._read_function, obj)
        elif isinstance(obj, MethodType):
            self.note("method")
            self._visit_items([obj.__func__, obj.__self__])
        elif isinstance(obj, BuiltinFunctionType):
            self.note("builtin", qualified_name(obj))
            self.visit(obj.__self__ if not isinstance(obj.__self__, ModuleType) else None)
        elif contents.is_collection(obj):
            self._visit_collection(obj)
            if is_project_class(type(obj)):
                self._visit_class(type(obj))
                self._visit_attributes(contents.read_attributes(obj), complete=True)
        else:
            self._visit_object(obj)

    def _visit_again(self, obj: Any) -> bool:
        """Return True if an object was visited before, and hash its number."""
        number = self._numbers.get(id(obj))
        if number is not None:
            self.note("known", str(number))
            return True
        self._numbers[id(obj)] = len(self._numbers)
        self._visited.append(obj)
        return False

    def _enqueue(self, word: str, read: Callable[[Any], None], obj: Any) -> None:
        if not self._visit_again(obj):
            self.note(word)
            self._queue.append((functools.partial(read, obj), self._scope))

    def _read_function(self, function: FunctionType) -> None:
        in_project = is_project_function(function)
        if not in_project and not is_part_of_proctor(function):
            # Only the name of an installed function counts, with the project's objects that it closes over.
            self.note("function", qualified_name(function))
        else:
            name = function.__qualname__ if in_project else qualified_name(function)
            self.note("function", name)
            self._visit_code(function.__code__)
        outer_scope = self._scope
        if in_project:
            name = function.__qualname__.replace("<locals>.", "")
            self._scope = Scope(name, get_folder(function.__code__.co_filename))
            self._name_function(function)
        self._foreign += not in_project
        self._visit_items([function.__defaults__, function.__kwdefaults__])
        self._visit_cells(function)
        self._foreign -= not in_project
        if in_project:
            self._visit_references(function)
        if function.__dict__:
            self._visit_collection(dict(function.__dict__))
        self._scope = outer_scope

    def _name_function(self, function: FunctionType) -> None:
        """Name the code of a function and its default arguments, unless it was generated."""
        code = function.__code__
        if code.co_filename.startswith("<"):
            return
        # A decorator may give its function the name of another.
        label = contents.name_place(code.co_qualname.replace("<locals>.", ""), function.__globals__)
        self.name_part(f"the function {label}", encode_code(code))
        for name, value in _read_defaults(function).items():
            self.name_part(f"the default {name} of {label}", contents.encode_constant(name, value))

    def _visit_cells(self, function: FunctionType) -> None:
        names, cells = function.__code__.co_freevars, function.__closure__ or ()
        changed = read_facts(function.__code__).modified_names if cells else frozenset()
        self.note("cells", str(len(cells)), substance=False)
        for name, cell in zip(names, cells, strict=True):
            value = contents.read_cell(cell)
            if name in changed:
                self._mark_changed(id(cell), "", value)
            if (id(cell), "") in self.ignored and isinstance(value, contents.STATE):
                self._visit_state(name, value, None)
            else:
                self.name_part(f"{name} in {self._scope.name}", contents.encode_constant(name, value))
                self.visit(value)

    def _visit_state(self, name: str, value: Any, filename: str | None) -> None:
        """Hash the initial value of a variable that the code modifies, not the current one."""
        self.note("state")
        start = find_initial_value(filename, name.rpartition(".")[2])
        if start is not None:
            self.note("starts with", start.source)
        if not (is_empty_value(value) if start is None else start.is_empty):
            self.uncovered.add(f"{name}, which the code changes", self._scope.name)

    def _visit_references(self, function: FunctionType) -> None:
        facts = read_facts(function.__code__)
        names = function.__globals__
        if any(self._special.find_object(names.get(name)) for name, *_ in facts.globals):
            # A special function may have an alias.
            facts = read_facts(function.__code__, traced=True)
        for name in facts.modified_names & names.keys():
            self._mark_changed(id(names), name, names[name], rebound=True)
        for chain in facts.globals:
            self._visit_global(names, chain)
        package = names.get("__package__") or ""
        self._visit_imports(facts.imports, package if isinstance(package, str) else "")
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closed = {name: contents.read_cell(cell) for name, cell in cells}
        self._visit_uses(facts, Names(names, closed, special=self._special, defaults=_read_defaults(function)))

    def _visit_uses(self, facts: CodeFacts, names: Names) -> None:
        """Record the files that code names and opens, and the objects that it accesses through strings."""
        self.files.add_facts(facts, self._scope, names)
        self.uncovered.add_facts(facts, self._scope.name)
        if not facts.uses:
            return
        access = DynamicAccess(facts, names)
        for phrase in access.phrases:
            self.uncovered.add(phrase, self._scope.name)
        self.files.add_locations(access.reads, access.writes, self._scope)
        package = names.values.get("__package__")
        self._visit_imports(access.imports, package if isinstance(package, str) else "")
        self._visit_scripts(access.scripts)
        if isinstance(names.values, dict) and not names.assigned_globals:
            for name in access.assigned_globals & names.values.keys():
                self._mark_changed(id(names.values), name, names.values[name], rebound=True)
            self._visit_variables(names.values, access)

    def _visit_variables(self, names: dict[str, Any], access: DynamicAccess) -> None:
        """Hash the globals that code looks up by a string."""
        for name in sorted(names.keys() if access.whole_module else access.variables):
            if not (name.startswith("__") and name.endswith("__")):
                self._visit_global(names, (name,))

    def _mark_changed(self, owner_id: int, name: str, value: Any, *, rebound: bool = False) -> None:
        if rebound or isinstance(value, contents.STATE):
            self.modified_names |= {(owner_id, name)}

    def _visit_global(self, names: dict[str, Any], chain: tuple[str, ...]) -> None:
        """Hash a global, or the attributes of a project module that the code uses."""
        name, *attributes = chain
        value = names.get(name, _MISSING)
        if name in _IGNORED_GLOBALS or (value is _MISSING and hasattr(builtins, name)):
            return
        owner, last = names, name
        while attributes and isinstance(value, ModuleType) and is_project_module(value):
            module = value
            owner, last = vars(value), attributes.pop(0)
            # A missing attribute may come from `__getattr__`, so the whole module counts.
            value = owner.get(last, module)
            name = f"{name}.{last}"
            if value is module:
                break
        self.note("global", name, substance=False)
        if value is _MISSING:
            self.note("missing", substance=False)
        elif self._special.find_object(value) is not None:
            # The calls of a special function are traced instead.
            self.note("builtin", substance=False)
        elif (id(owner), last) in self.ignored and not callable(value):
            file = owner.get("__file__")
            self._visit_state(name, value, file if isinstance(file, str) else None)
        else:
            self.name_part(contents.name_place(last, owner), contents.encode_constant(last, value))
            self.visit(value)

    def _visit_imports(self, imports: Iterable[Import], package: str) -> None:
        """Hash the sources of imports inside functions, which may not have run yet."""
        for source in find_sources(imports, package, self._sources):
            self._visit_source(source)

    def _visit_scripts(self, locations: Iterable[Location]) -> None:
        """Hash Python files that are run by path, and their imports."""
        for location in locations:
            paths = [os.path.join(folder, location.start) for folder in self._scope.folders]
            file = next(filter(os.path.isfile, map(os.path.normpath, paths)), None)
            if file is None or file in self._sources or not is_project_file(file):
                continue
            self._sources.add(file)
            source = Source(os.path.basename(file), file, compile_file(file))
            self._visit_source(source)
            if source.code is not None:
                self._visit_imports(read_facts(source.code).imports, "")

    def _visit_source(self, source: Source) -> None:
        """Hash the source of a module that may not be loaded."""
        if source.code is None:
            self.uncovered.add(f"the module {source.name}", self._scope.name)
            return
        outer_scope, self._scope = self._scope, Scope(source.name, get_folder(source.file))
        self.note("module source", source.name)
        self.name_part(f"the module {source.name}", encode_code(source.code))
        self._visit_code(source.code)
        facts = read_facts(source.code)
        is_package = os.path.basename(source.file) == "__init__.py"
        values = {
            "__file__": source.file,
            "__name__": source.name,
            "__package__": source.name if is_package else source.name.rpartition(".")[0],
        }
        # Empty `assigned_globals` would mean a loaded module.
        assigned = facts.assigned_globals or {"__doc__": UNKNOWN}
        self._visit_uses(facts, Names(values, assigned_globals=assigned, special=self._special))
        self._scope = outer_scope

    def _visit_code(self, code: CodeType) -> None:
        self.note("code", code.co_code)
        self.note("handlers", code.co_exceptiontable)
        for name in (*code.co_names, *code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
            self.note("name", name)
        for obj in code.co_consts:
            if isinstance(obj, CodeType):
                self._visit_code(obj)
            elif isinstance(obj, str):
                # A constant in code is the same in every folder.
                self.note("str", repr(obj))
            else:
                self.visit(obj)

    def _visit_class(self, cls: type) -> None:
        if not is_project_class(cls):
            self.note("class", qualified_name(cls))
        else:
            self._enqueue("class", self._read_class, cls)

    def _read_class(self, cls: type) -> None:
        self.note("class", cls.__qualname__)
        self._visit_items(cls.__bases__)
        outer_scope = self._scope
        module = sys.modules.get(cls.__module__)
        folder = get_folder(get_file(module)) if module is not None else outer_scope.folder
        self._scope = Scope(cls.__qualname__, folder)
        for name, member in contents.list_class_members(cls):
            self.note("attribute", name, substance=False)
            if not name.startswith("__"):
                self.name_part(f"{cls.__qualname__}.{name}", contents.encode_constant(name, member))
            self.visit(member)
        self._scope = outer_scope

    def _visit_module(self, module: ModuleType) -> None:
        """Hash everything in a project module that is used as a value."""
        if not is_project_module(module):
            self.note("module", module.__name__)
        else:
            self._enqueue("module", self._read_module, module)

    def _read_module(self, module: ModuleType) -> None:
        self.note("module", substance=False)
        outer_scope = self._scope
        self._scope = Scope(module.__name__, get_folder(get_file(module)))
        for name in sorted(vars(module)):
            if name == "__getattr__" or not (name.startswith("__") and name.endswith("__")):
                self._visit_global(vars(module), (name,))
        self._scope = outer_scope

    def _visit_collection(self, obj: Any) -> None:
        name, obj = type(obj).__name__, contents.to_builtin(obj)
        self.note(name, str(len(obj)), substance=bool(obj))
        content = contents.encode_plain(obj) if len(obj) >= contents.MIN_ENCODED_LENGTH else None
        if content is not None:
            self.note("data", content)
        elif len(obj) > self._parts_left:
            self.uncovered.add(TOO_LARGE, self._scope.name)
            self.note("and so on")
        elif isinstance(obj, Mapping):
            pairs = [(self._digest(key), value) for key, value in obj.items()]
            for content, value in sorted(pairs, key=lambda pair: pair[0]):
                self.note("key", content)
                self.visit(value)
        elif isinstance(obj, Set):
            for content in sorted(map(self._digest, obj)):
                self.note("part", content)
        else:
            self._visit_items(obj)

    def _visit_items(self, items: Iterable[Any]) -> None:
        for obj in items:
            if self._parts_left < 0:
                self.uncovered.add(TOO_LARGE, self._scope.name)
                return
            self.visit(obj)

    def _digest(self, obj: Any) -> bytes:
        """Return the digest of an item of an unordered collection."""
        if type(obj) is str or type(obj) is int:
            return repr(obj).encode(errors="backslashreplace")
        # Numbers assigned inside would depend on the order of the set.
        numbers, queue = dict(self._numbers), self._queue
        self._queue = deque()
        digest = self._digest_separately(lambda: self.visit_all(obj))[0]
        self._numbers, self._queue = numbers, queue
        return digest

    def _digest_separately(self, visit: Callable[[], object]) -> tuple[bytes, int]:
        """Return the digest of a part of the walk, and how much of it has substance."""
        outer_state, self.state = self.state, hashlib.sha256()
        substance, self._substance = self._substance, 0
        visit()
        result = self.state.digest(), self._substance
        self.state, self._substance = outer_state, substance
        return result

    def _visit_object(self, obj: Any) -> None:
        cls = type(obj)
        if (address := find_address(obj)) is not None:
            # A model counts by its address and identity, not by its key and connections.
            self.note("model", f"{address} {getattr(obj, 'identity', '')}")
            return
        if self._visit_again(obj):
            return
        if is_project_class(cls) or is_part_of_proctor(cls) or contents.is_data(obj):
            self.note("object", substance=False)
            self._visit_class(cls)
            if is_part_of_proctor(cls) and isinstance(getattr(cls, "__call__", None), FunctionType):  # noqa: B004
                self._visit_code(cls.__call__.__code__)
            self._visit_attributes(contents.read_identity_attributes(obj), complete=True, owner=cls.__qualname__)
            return
        self.note("object", qualified_name(cls), substance=False)
        if cls.__module__.partition(".")[0] in contents.CONNECTIONS:
            self.note("at", contents.read_base_url(obj), substance=False)
        elif isinstance(obj, os.PathLike):
            self.visit(os.path.normpath(os.fspath(obj)))
        elif isinstance(obj, BaseException):
            self.visit(obj.args)
        elif (content := contents.encode_value(obj)) is not None:
            self.note("value", content)
        elif isinstance(obj, contents.TEMPLATES):
            self.visit(obj.template)
        else:
            self._visit_attributes(contents.read_attributes(obj), complete=False)

    def _visit_attributes(self, attributes: dict[str, Any], *, complete: bool, owner: str = "") -> None:
        """Hash all attributes of an object, or only the persistent attributes of a foreign object."""
        if self._object_depth >= MAX_OBJECT_DEPTH:
            if complete:
                self.uncovered.add(TOO_LARGE, self._scope.name)
            return
        self._object_depth += 1
        outer_foreign, self._foreign = self._foreign, int(not complete)
        for name in sorted(attributes):
            value = attributes[name]
            if not complete and contents.is_transient(name, value):
                continue
            if owner:
                self.name_part(f"{name} of {owner}", contents.encode_constant(name, value))
            content, substance = self._digest_separately(functools.partial(self.visit, value))
            # The first call fills the empty caches of a library, so they must not count.
            if complete or substance:
                self.note("attribute", name)
                self.note("value", content)
        self._object_depth -= 1
        self._foreign = outer_foreign
