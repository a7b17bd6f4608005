"""The walk over everything that a callable reaches in the user's project.

What is noted is the same in the next process and in another folder: never an address in memory,
never the order of a set, never the place of the project. No user code runs. See
`docs/decisions/014-identity.md`.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from proctor.core.identity import contents
from proctor.core.identity.code import CodeFacts, Import, facts_of
from proctor.core.identity.contents import LONG, PLAIN, is_empty_value, starting_value
from proctor.core.identity.dynamic_access import DynamicAccess
from proctor.core.identity.file_calls import UNKNOWN
from proctor.core.identity.locations import Location, Names
from proctor.core.identity.modules import Source, script_of, sources_of
from proctor.core.identity.named_files import NamedFiles, Scope
from proctor.core.identity.names import address_in, address_of_type
from proctor.core.identity.project import (
    Uncovered,
    file_of,
    folder_of,
    is_own,
    is_project_class,
    is_project_file,
    is_project_function,
    is_project_module,
)
from proctor.core.identity.special_functions import Special

# The walk is bounded in depth and in the number of things noted.
DEEPEST = 40
DEEPEST_OBJECT = 8
MOST_PARTS = 20_000
TOO_LARGE = "more objects than are looked at"

_NO_GLOBALS = frozenset(
    [
        "__file__",
        "__path__",
        "__spec__",
        "__loader__",
        "__cached__",
        "__name__",
        "__builtins__",
        "__package__",
    ]
)
_NOTHING = object()


class Walk:
    """One walk; `ignored` are cells and globals that hold state rather than constants."""

    def __init__(self, ignored: frozenset[tuple[int, str]]) -> None:
        self.state = hashlib.sha256()
        self.ignored = ignored
        self.changed: frozenset[tuple[int, str]] = frozenset()
        self.files = NamedFiles()
        self.uncovered = Uncovered()
        self._substance = 0
        self._parts_left = MOST_PARTS
        self._within: tuple[int, ...] = ()
        self._objects = 0
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._scope = Scope("", folder_of(os.path.join(os.getcwd(), "-")))
        self._sources: set[str] = set()
        self._special = Special()
        self._foreign = 0
        self._waiting: deque[tuple[Callable[[], None], Scope]] = deque()

    def all_from(self, thing: Any) -> None:
        """Note a thing, then every function, class and module that was met on the way.

        These wait for their turn: a chain of calls may be longer than Python's stack.
        """
        self.at(thing)
        before = self._scope, self._within, self._objects
        self._within, self._objects = (), 0
        while self._waiting:
            look, self._scope = self._waiting.popleft()
            look()
        self._scope, self._within, self._objects = before

    def at(self, thing: Any) -> None:
        """Note a thing and, within bounds, what it is made of."""
        self._parts_left -= 1
        kind = type(thing)
        if kind is int:
            # Not in decimal, which Python refuses to write for very long ones.
            self.note("int", hex(thing).encode())
        elif kind is str:
            self.note("str", repr(self.files.named(thing, self._scope)).encode())
        elif kind in PLAIN:
            self.note(kind.__name__, repr(thing).encode())
        elif self._is_by_name(thing):
            return
        elif id(thing) in self._within:
            self.note("itself", address_of_type(kind).encode(), substance=False)
        elif self._parts_left < 0 or len(self._within) >= DEEPEST:
            self.uncovered.add(TOO_LARGE, self._scope.name)
            self.note("and so on", substance=False)
        else:
            self._within += (id(thing),)
            self._at_compound(thing)
            self._within = self._within[:-1]

    def _is_by_name(self, thing: Any) -> bool:
        """True for the environment and for functions that reach other code: only they are noted."""
        if thing is os.environ:
            self.note("environment", substance=False)
            return True
        meaning = self._special.of_object(thing)
        if meaning is None:
            return False
        # It is not called by a name: what it reaches cannot be followed.
        self.note("builtin", meaning[0].encode())
        if not self._foreign:
            self.uncovered.add(meaning[1], self._scope.name)
        return True

    def note(self, word: str, content: bytes = b"", *, substance: bool = True) -> None:
        # With their lengths, so that ("ab", "c") is not ("a", "bc").
        self.state.update(f"{word} {len(content)}:".encode())
        self.state.update(content)
        self._substance += substance

    def _at_compound(self, thing: Any) -> None:
        if isinstance(thing, type):
            self._at_class(thing)
        elif isinstance(thing, ModuleType):
            self._at_module(thing)
        elif isinstance(thing, functools.partial):
            self.note("partial")
            self._at_all([thing.func, thing.args, thing.keywords])
        elif isinstance(thing, FunctionType):
            self._at_function(thing)
        elif isinstance(thing, MethodType):
            self.note("method")
            self._at_all([thing.__func__, thing.__self__])
        elif isinstance(thing, BuiltinFunctionType):
            self.note("builtin", address_of_type(thing).encode())
            self.at(thing.__self__ if not isinstance(thing.__self__, ModuleType) else None)
        elif contents.is_collection(thing):
            self._at_collection(thing)
            if is_project_class(type(thing)):
                self._at_class(type(thing))
                self._at_attributes(contents.attributes_of(thing), whole=True)
        else:
            self._at_object(thing)

    def _is_known(self, thing: Any) -> bool:
        """True if a function, class or object was noted before; then its number says which."""
        number = self._numbers.get(id(thing))
        if number is not None:
            self.note("known", str(number).encode())
            return True
        self._numbers[id(thing)] = len(self._numbers)
        self._alive.append(thing)
        return False

    def _later(self, look: Callable[[], None]) -> None:
        self._waiting.append((look, self._scope))

    def _at_function(self, function: FunctionType) -> None:
        if not self._is_known(function):
            self.note("function")
            self._later(functools.partial(self._read_function, function))

    def _read_function(self, function: FunctionType) -> None:
        mine = is_project_function(function)
        if not mine and not is_own(function):
            # Of installed packages the name counts, and what of the project is bound into it.
            self.note("function", address_of_type(function).encode())
        else:
            name = function.__qualname__ if mine else address_of_type(function)
            self.note("function", name.encode(errors="backslashreplace"))
            self._at_code(function.__code__)
        before = self._scope
        if mine:
            name = function.__qualname__.replace("<locals>.", "")
            self._scope = Scope(name, folder_of(function.__code__.co_filename))
        self._foreign += not mine
        self._at_all([function.__defaults__, function.__kwdefaults__])
        self._at_cells(function)
        self._foreign -= not mine
        if mine:
            self._at_facts(function)
        if function.__dict__:
            self._at_collection(dict(function.__dict__))
        self._scope = before

    def _at_cells(self, function: FunctionType) -> None:
        names, cells = function.__code__.co_freevars, function.__closure__ or ()
        changed = facts_of(function.__code__).changed if cells else frozenset()
        self.note("cells", str(len(cells)).encode(), substance=False)
        for name, cell in zip(names, cells, strict=True):
            value = contents.of_cell(cell)
            if name in changed:
                self._mark_changed(id(cell), "", value)
            if (id(cell), "") in self.ignored and contents.is_state(value):
                self._at_state(name, value, None)
            else:
                self.at(value)

    def _at_state(self, name: str, value: Any, filename: str | None) -> None:
        """A value that the code changes: what it starts with counts, not what it holds now."""
        self.note("state")
        start = starting_value(filename, name.rpartition(".")[2])
        if start is not None:
            self.note("starts with", start.source.encode(errors="backslashreplace"))
        if not (is_empty_value(value) if start is None else start.is_empty):
            self.uncovered.add(f"{name}, which the code changes", self._scope.name)

    def _at_facts(self, function: FunctionType) -> None:
        """What a function of the project refers to."""
        facts = facts_of(function.__code__)
        names = function.__globals__
        if any(self._special.of_object(names.get(name)) for name, *_ in facts.globals):
            # A special function, maybe under another name, as `load`.
            facts = facts_of(function.__code__, followed=True)
        for name in facts.changed & names.keys():
            self._mark_changed(id(names), name, names[name], rebound=True)
        for chain in facts.globals:
            self._at_global(names, chain)
        package = names.get("__package__") or ""
        self._at_imports(facts.imports, package if isinstance(package, str) else "")
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closed = {name: contents.of_cell(cell) for name, cell in cells}
        self._at_uses(facts, Names(names, closed, special=self._special))

    def _at_uses(self, facts: CodeFacts, names: Names) -> None:
        """The files that code names and opens, and what it reaches by text."""
        self.files.add_facts(facts, self._scope, names)
        self.uncovered.add_facts(facts, self._scope.name)
        if not facts.uses:
            return
        access = DynamicAccess(facts, names)
        for phrase in access.phrases:
            self.uncovered.add(phrase, self._scope.name)
        self.files.add_reads(access.reads, self._scope)
        package = names.values.get("__package__")
        self._at_imports(access.imports, package if isinstance(package, str) else "")
        self._at_scripts(access.scripts)
        if isinstance(names.values, dict) and not names.assigned:
            for name in access.assigned & names.values.keys():
                self._mark_changed(id(names.values), name, names.values[name], rebound=True)
            self._at_variables(names.values, access)

    def _at_variables(self, names: dict[str, Any], access: DynamicAccess) -> None:
        """Globals that code looks up by text."""
        wanted = names.keys() if access.whole_module else access.variables
        for name in sorted(wanted):
            if not (name.startswith("__") and name.endswith("__")):
                self._at_global(names, (name,))

    def _mark_changed(self, place: int, name: str, value: Any, *, rebound: bool = False) -> None:
        if rebound or contents.is_state(value):
            self.changed |= {(place, name)}

    def _at_global(self, names: dict[str, Any], chain: tuple[str, ...]) -> None:
        """A global, and of a module of the project the attribute that is used."""
        name, *attributes = chain
        value = names.get(name, _NOTHING)
        if name in _NO_GLOBALS or (value is _NOTHING and hasattr(builtins, name)):
            return
        holder, last = names, name
        while attributes and isinstance(value, ModuleType) and is_project_module(value):
            module = value
            holder, last = vars(value), attributes.pop(0)
            # What a module makes up, or all of it at once, is looked for in the whole of it.
            value = holder.get(last, module)
            name = f"{name}.{last}"
            if value is module:
                break
        self.note("global", name.encode(errors="backslashreplace"), substance=False)
        if value is _NOTHING:
            self.note("missing", substance=False)
        elif self._special.of_object(value) is not None:
            # How it is used says what it reaches.
            self.note("builtin", substance=False)
        elif (id(holder), last) in self.ignored and not callable(value):
            file = holder.get("__file__")
            self._at_state(name, value, file if isinstance(file, str) else None)
        else:
            self.at(value)

    def _at_imports(self, imports: Iterable[Import], package: str) -> None:
        """Imports inside functions: by their source, for they may not have happened yet."""
        for source in sources_of(imports, package, self._sources):
            self._at_source(source)

    def _at_scripts(self, locations: Iterable[Location]) -> None:
        """Python files that are run by their paths, and what they import."""
        for location in locations:
            paths = [os.path.join(folder, location.start) for folder in self._scope.folders]
            file = next(filter(os.path.isfile, map(os.path.normpath, paths)), None)
            if file is None or file in self._sources or not is_project_file(file):
                continue
            self._sources.add(file)
            source = script_of(file)
            self._at_source(source)
            if source.code is not None:
                self._at_imports(facts_of(source.code).imports, "")

    def _at_source(self, source: Source) -> None:
        """A module that may not be loaded, as its file has it."""
        if source.code is None:
            self.uncovered.add(f"the module {source.name}", self._scope.name)
            return
        before, self._scope = self._scope, Scope(source.name, folder_of(source.file))
        self.note("module source", source.name.encode())
        self._at_code(source.code)
        facts = facts_of(source.code)
        is_package = os.path.basename(source.file) == "__init__.py"
        values = {
            "__file__": source.file,
            "__name__": source.name,
            "__package__": source.name if is_package else source.name.rpartition(".")[0],
        }
        # Without a name of its own, a module would be taken for one that is not loaded.
        assigned = facts.assigned or {"__doc__": UNKNOWN}
        self._at_uses(facts, Names(values, assigned=assigned, special=self._special))
        self._scope = before

    def _at_code(self, code: CodeType) -> None:
        arguments = code.co_argcount + code.co_kwonlyargcount
        self.note("code", code.co_code)
        self.note("handlers", code.co_exceptiontable)
        for name in (*code.co_names, *code.co_varnames[:arguments]):
            self.note("name", name.encode(errors="backslashreplace"))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._at_code(constant)
            elif isinstance(constant, str):
                # As it is written: a constant is the same in every folder.
                self.note("str", repr(constant).encode())
            else:
                self.at(constant)

    def _at_class(self, kind: type) -> None:
        if not is_project_class(kind):
            self.note("class", address_of_type(kind).encode())
            return
        if not self._is_known(kind):
            self.note("class")
            self._later(functools.partial(self._read_class, kind))

    def _read_class(self, kind: type) -> None:
        self.note("class", kind.__qualname__.encode(errors="backslashreplace"))
        self._at_all(kind.__bases__)
        before = self._scope
        module = sys.modules.get(kind.__module__)
        folder = folder_of(file_of(module)) if module is not None else before.folder
        self._scope = Scope(kind.__qualname__, folder)
        for name, part in contents.parts_of_class(kind):
            self.note("attribute", name.encode(errors="backslashreplace"), substance=False)
            self.at(part)
        self._scope = before

    def _at_module(self, module: ModuleType) -> None:
        """A module as a value: of the project all that it holds, for anything may be used."""
        if not is_project_module(module):
            self.note("module", module.__name__.encode())
            return
        if not self._is_known(module):
            self.note("module")
            self._later(functools.partial(self._read_module, module))

    def _read_module(self, module: ModuleType) -> None:
        self.note("module", substance=False)
        before = self._scope
        self._scope = Scope(module.__name__, folder_of(file_of(module)))
        for name in sorted(vars(module)):
            if name == "__getattr__" or not (name.startswith("__") and name.endswith("__")):
                self._at_global(vars(module), (name,))
        self._scope = before

    def _at_collection(self, things: Any) -> None:
        name, things = type(things).__name__, contents.bare_collection(things)
        self.note(name, str(len(things)).encode(), substance=bool(things))
        written = contents.written(things) if len(things) >= LONG else None
        if written is not None:
            self.note("data", written)
        elif len(things) > self._parts_left:
            self.uncovered.add(TOO_LARGE, self._scope.name)
            self.note("and so on")
        elif isinstance(things, Mapping):
            pairs = [(self._digest(key), value) for key, value in things.items()]
            for digest, value in sorted(pairs, key=lambda pair: pair[0]):
                self.note("key", digest)
                self.at(value)
        elif isinstance(things, Set):
            for digest in sorted(map(self._digest, things)):
                self.note("part", digest)
        else:
            self._at_all(things)

    def _at_all(self, parts: Iterable[Any]) -> None:
        for part in parts:
            if self._parts_left < 0:
                self.uncovered.add(TOO_LARGE, self._scope.name)
                return
            self.at(part)

    def _digest(self, part: Any) -> bytes:
        """Of something whose place among others is not settled yet."""
        if type(part) is str or type(part) is int:
            return repr(part).encode(errors="backslashreplace")
        # Numbers given out inside would depend on the order of a set.
        before, waiting = dict(self._numbers), self._waiting
        self._waiting = deque()
        digest = self._apart(lambda: self.all_from(part))[0]
        self._numbers, self._waiting = before, waiting
        return digest

    def _apart(self, walk: Callable[[], object]) -> tuple[bytes, int]:
        """The digest of what a part of the walk notes, and how much of it says something."""
        before, self.state = self.state, hashlib.sha256()
        substance, self._substance = self._substance, 0
        walk()
        found = self.state.digest(), self._substance
        self.state, self._substance = before, substance
        return found

    def _at_object(self, thing: Any) -> None:
        kind = type(thing)
        if (address := address_in(thing)) is not None:
            # Of a model the address counts, and of one in the user's code what tells it from
            # another; its key and connections are not what it says.
            self.note("model", f"{address} {getattr(thing, 'identity', '')}".encode())
            return
        if self._is_known(thing):
            return
        if is_project_class(kind) or is_own(kind) or contents.is_data(thing):
            self.note("object", substance=False)
            self._at_class(kind)
            if is_own(kind) and isinstance(getattr(kind, "__call__", None), FunctionType):  # noqa: B004
                self._at_code(kind.__call__.__code__)
            self._at_attributes(contents.counted_attributes_of(thing), whole=True)
            return
        self.note("object", address_of_type(kind).encode(), substance=False)
        if contents.is_connection(kind):
            self.note("at", contents.base_address(thing).encode(), substance=False)
        elif isinstance(thing, os.PathLike):
            self.at(os.path.normpath(os.fspath(thing)))
        elif isinstance(thing, BaseException):
            self.at(thing.args)
        elif (value := contents.value_of(thing)) is not None:
            self.note("value", value)
        elif isinstance(thing, contents.TEMPLATES):
            self.at(thing.template)
        else:
            self._at_attributes(contents.attributes_of(thing), whole=False)

    def _at_attributes(self, attributes: dict[str, Any], *, whole: bool) -> None:
        """What an object holds: all of it, or what of a foreign object is no passing state."""
        if self._objects >= DEEPEST_OBJECT:
            if whole:
                self.uncovered.add(TOO_LARGE, self._scope.name)
            return
        self._objects += 1
        before, self._foreign = self._foreign, int(not whole)
        for name in sorted(attributes):
            value = attributes[name]
            if not whole and contents.is_passing(name, value):
                continue
            digest, substance = self._apart(functools.partial(self.at, value))
            # An empty cache of a library's is filled by the first call: it must not count.
            if whole or substance:
                self.note("attribute", name.encode(errors="backslashreplace"))
                self.note("value", digest)
        self._objects -= 1
        self._foreign = before
