"""What a code object refers to: globals, imports, files, environment variables.

Bytecode is read, never run. Nested functions, lambdas and comprehensions belong to their function.
"""

from __future__ import annotations

import dis
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import NamedTuple

from proctor.core.identity.file_calls import UNKNOWN, Expression, FileCall, Use, follow
from proctor.core.identity.file_calls import Step as _Step
from proctor.core.identity.special_functions import NAMES as _SPECIAL_NAMES
from proctor.core.redaction.findings import says_secret

# Methods that change the list, dict or set they are called on.
_MUTATORS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "add",
        "discard",
        "update",
        "setdefault",
        "popitem",
        "appendleft",
        "extendleft",
        "popleft",
        "sort",
        "reverse",
        "move_to_end",
        "subtract",
        "put",
        "put_nowait",
    ]
)
# Variables of the machine rather than of the program.
_MACHINE = re.compile(r"(\w+_)?PROXY|HOME|PATH|USER|TMPDIR|PWD|CI", re.IGNORECASE)
_FILE_CALLS = frozenset(["open", "read_text", "read_bytes", "write_text", "write_bytes"])
_LISTERS = frozenset(
    ["get_template", "FileSystemLoader", "iterdir", "glob", "rglob", "iglob", "listdir", "scandir"]
)
_READERS = (_LISTERS | {"open", "read_text", "read_bytes"}) | {
    "from_file",
    "load_prompt",
    "from_template_file",
}
# Code that uses one of these names is followed instruction by instruction.
_FOLLOWED = _FILE_CALLS | _SPECIAL_NAMES
_WRITE_MODES = re.compile(r"[wax]b?t?\+?|r\+b?|[wax]\+?[bt]")
_PROGRAMS = {
    "subprocess": ("run", "Popen", "call", "check_call", "check_output", "getoutput"),
    "os": ("system", "popen"),
}
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_SIMPLE = (*_LOADS, *_CELLS, "LOAD_FAST", "LOAD_CONST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK")
_NO_EFFECT = ("CACHE", "PUSH_NULL", "NOP", "RESUME", "PRECALL", "EXTENDED_ARG", "NOT_TAKEN")
# A constant that something is added to.
_JOINED = ("LOAD_FAST", "BINARY_OP")
COMPUTED = ""
# Instructions whose argument holds flags besides the index of a name.
_SHIFTS = {"LOAD_GLOBAL": 1, "LOAD_SUPER_ATTR": 2}
if sys.version_info >= (3, 12):
    _SHIFTS["LOAD_ATTR"] = 1
_SKIPPED = [name in _NO_EFFECT or name.startswith("CACHE") for name in dis.opname]
_GLOBALS_AND_CELLS = frozenset((*_LOADS, *_CELLS))
_ATTRIBUTES_AND_GLOBALS = frozenset((*_ATTRIBUTES, *_LOADS))
_USES_NAME, _USES_CONSTANT, _USES_CELL = map(frozenset, (dis.hasname, dis.hasconst, dis.hasfree))


class Import(NamedTuple):
    """An import statement inside a function."""

    name: str
    level: int
    attributes: tuple[str, ...]


class CodeFacts(NamedTuple):
    """What one function refers to, nested functions included.

    `globals` are dotted chains such as ("prompts", "SYSTEM"). `changed` are the globals and closed
    over names whose content the code changes itself. `environment` are names of variables, and
    `COMPUTED` for one whose name is computed. `lists` is true if it takes what files a folder has,
    and `assigned` are the globals of a module that it assigns once. `uses` says how it uses
    functions that reach other code and files.
    """

    globals: tuple[tuple[str, ...], ...]
    changed: frozenset[str]
    imports: tuple[Import, ...]
    strings: tuple[str, ...]
    environment: tuple[str, ...]
    reads: bool
    writes: bool
    lists: bool
    file_calls: tuple[FileCall, ...]
    uses: tuple[Use, ...]
    assigned: dict[str, Expression]
    dynamic: tuple[str, ...]


# Code objects compare by value, which is as good a key as any: equal code has equal facts.
_known: dict[tuple[CodeType, bool], CodeFacts] = {}
_MOST_KNOWN = 20_000


def facts_of(code: CodeType, *, followed: bool = False) -> CodeFacts:
    """The facts of a code object, computed once.

    With `followed` it is followed whatever names it uses: one may be another name of `open`.
    """
    known = _known.get((code, followed))
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[code, followed] = _read(code, followed)
    return known


def _read(code: CodeType, followed: bool) -> CodeFacts:
    chains: set[tuple[str, ...]] = set()
    changed: set[str] = set()
    imports: set[Import] = set()
    strings: set[str] = set()
    environment: set[str] = set()
    dynamic: set[str] = set()
    reads = writes = lists = False
    calls: list[FileCall] = []
    uses: dict[Use, None] = {}
    assigned: dict[str, Expression] = {}
    iterables: dict[CodeType, Expression] = {}
    parts = list(_with_nested(code))
    followed |= any(map(_is_followed, parts))
    for part in parts:
        steps = list(steps_of(part))
        mine = set(_chains(steps))
        chains |= mine
        changed |= set(_changed(steps))
        imports |= set(_imports(steps))
        strings |= set(_strings(part.co_consts))
        environment |= set(_environment(steps))
        dynamic |= set(_dynamic(steps))
        names = set(part.co_names)
        reads |= bool(names & _READERS)
        writes |= bool(names & {"write_text", "write_bytes"}) or _has_write_mode(part, names)
        lists |= bool(names & _LISTERS)
        if followed or part.co_name == "<module>":
            iterable = iterables.get(part, UNKNOWN)
            reading = follow(part, steps, _jump_targets(part), iterable)
            calls += reading.calls
            uses |= dict.fromkeys(reading.uses)
            iterables |= reading.iterables
            assigned = reading.assigned if part is code else assigned
    return CodeFacts(
        tuple(sorted(chains)),
        frozenset(changed),
        tuple(sorted(imports)),
        tuple(sorted(strings)),
        tuple(sorted(environment)),
        reads,
        writes,
        lists,
        tuple(calls),
        tuple(uses),
        assigned,
        tuple(sorted(dynamic)),
    )


def _is_followed(code: CodeType) -> bool:
    names = code.co_names
    by_text = "getattr" in names and not _SPECIAL_NAMES.isdisjoint(_strings(code.co_consts))
    return by_text or not _FOLLOWED.isdisjoint(names)


def steps_of(code: CodeType) -> Iterator[_Step]:
    """The instructions of a code object with the names and constants that they use.

    As `dis.get_instructions` gives them, which takes many times longer.
    """
    names, constants = code.co_names, code.co_consts
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    variables = [*code.co_varnames, *cells, *code.co_freevars]
    high = 0
    data = code.co_code
    for operation, low in zip(data[::2], data[1::2], strict=True):
        argument = high | low
        high = argument << 8 if operation == dis.EXTENDED_ARG else 0
        if _SKIPPED[operation]:
            continue
        name = dis.opname[operation]
        if operation in _USES_NAME:
            yield _Step(name, names[argument >> _SHIFTS.get(name, 0)])
        elif operation in _USES_CONSTANT:
            yield _Step(name, constants[argument])
        elif operation in _USES_CELL:
            yield _Step(name, variables[argument])
        else:
            yield _Step(name, argument)


def _jump_targets(code: CodeType) -> set[int]:
    """Which of the steps of a code object are reached by jumps, by their places."""
    labels = set(dis.findlabels(code.co_code))  # type: ignore[arg-type]
    targets: set[int] = set()
    place, is_target = 0, False
    for offset, operation in enumerate(code.co_code[::2]):
        is_target |= 2 * offset in labels
        if _SKIPPED[operation]:
            continue
        if is_target:
            targets.add(place)
        place, is_target = place + 1, False
    return targets


def _with_nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_nested(constant)


def _chains(steps: Sequence[_Step]) -> Iterator[tuple[str, ...]]:
    """Every global that is read, with the attributes that are taken of it at once."""
    for place, step in enumerate(steps):
        if step.name not in _LOADS:
            continue
        chain = [str(step.value)]
        for following in steps[place + 1 : place + 6]:
            if following.name not in _ATTRIBUTES:
                break
            chain.append(str(following.value))
        yield tuple(chain)


def _changed(steps: Sequence[_Step]) -> Iterator[str]:
    """Names whose content the code changes: counters, caches, lists of calls."""
    for place, step in enumerate(steps):
        if step.name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            yield str(step.value)
        elif step.name in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            container = _before_key(steps, place - 1)
            if container is not None and container.name in _GLOBALS_AND_CELLS:
                yield str(container.value)
        elif step.name in _GLOBALS_AND_CELLS:
            after = steps[place + 1 : place + 6]
            if after and after[0].name in _ATTRIBUTES and after[0].value in _MUTATORS:
                yield str(step.value)
            elif [s.name for s in after[1:4]] == ["COPY", "COPY", "BINARY_SUBSCR"]:
                # counts[key] += 1
                yield str(step.value)


def _before_key(steps: Sequence[_Step], place: int) -> _Step | None:
    """The step that loaded the container, where the key is a name, a constant or an attribute."""
    while place >= 0 and steps[place].name in _ATTRIBUTES:
        place -= 1
    if place >= 1 and steps[place].name in _SIMPLE:
        return steps[place - 1]
    return None


def _imports(steps: Sequence[_Step]) -> Iterator[Import]:
    for place, step in enumerate(steps):
        if step.name != "IMPORT_NAME":
            continue
        level, attributes = 0, ()
        constants = [before.value for before in steps[max(0, place - 2) : place]]
        if len(constants) == 2:
            level = constants[0] if isinstance(constants[0], int) else 0
            attributes = constants[1] if isinstance(constants[1], tuple) else ()
        yield Import(str(step.value), level, tuple(map(str, attributes)))


def _strings(constants: Sequence[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _strings(tuple(constant))


def _environment(steps: Sequence[_Step]) -> Iterator[str]:
    """Environment variables that are read by name; names of secrets are left out.

    A key that changes does not change what a model answers.
    """
    for place, step in enumerate(steps):
        if step.value not in ("environ", "getenv") or step.name not in _ATTRIBUTES_AND_GLOBALS:
            continue
        following = [s for s in steps[place + 1 : place + 6] if s.name not in _ATTRIBUTES]
        is_constant = bool(following) and following[0].name == "LOAD_CONST"
        is_joined = [s.name.startswith(n) for s, n in zip(following[1:3], _JOINED, strict=False)]
        name = following[0].value if is_constant and is_joined != [True, True] else COMPUTED
        if not isinstance(name, str):
            name = COMPUTED
        if not says_secret(name) and not _MACHINE.fullmatch(name):
            yield name


def _dynamic(steps: Sequence[_Step]) -> Iterator[str]:
    """What leads to code that cannot be seen from here."""
    for step, after in itertools.pairwise(steps):
        is_attribute = step.name in _LOADS and after.name in _ATTRIBUTES
        if is_attribute and after.value in _PROGRAMS.get(str(step.value), ()):
            yield "programs that it starts"


def _has_write_mode(code: CodeType, names: set[str]) -> bool:
    return "open" in names and any(
        isinstance(constant, str) and _WRITE_MODES.fullmatch(constant) for constant in code.co_consts
    )
