"""The references of a code object: globals, imports, files and environment variables.

The bytecode is read, never run. Nested functions, lambdas and comprehensions belong to their function.
"""

from __future__ import annotations

import dis
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

from proctor.core.identity.file_calls import UNKNOWN, Expression, FileCall, Step, Trace, Use
from proctor.core.identity.special_functions import NAMES as _SPECIAL_NAMES
from proctor.core.redaction.findings import is_secret_name

# Methods that change the list, dict or set that they are called on.
_MUTATORS = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "add", "discard", "update", "setdefault"}
    | {"popitem", "appendleft", "extendleft", "popleft", "sort", "reverse", "move_to_end", "subtract"}
    | {"put", "put_nowait"}
)
# Environment variables that describe the machine, not the program.
_MACHINE_VARIABLES = re.compile(r"(\w+_)?PROXY|HOME|PATH|USER|TMPDIR|PWD|CI", re.IGNORECASE)
_FILE_CALLS = frozenset(["open", "read_text", "read_bytes", "write_text", "write_bytes"])
_LISTERS = frozenset(["get_template", "FileSystemLoader", "iterdir", "glob", "rglob", "iglob", "listdir", "scandir"])
_READERS = _LISTERS | frozenset(["open", "read_text", "read_bytes", "from_file", "load_prompt", "from_template_file"])
# Code that uses one of these names is traced instruction by instruction.
_TRACED_NAMES = _FILE_CALLS | _SPECIAL_NAMES
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
# The instructions after a constant that is part of a concatenation.
_CONCATENATION = ("LOAD_FAST", "BINARY_OP")
DYNAMIC_NAME = ""
ERRORS = "backslashreplace"
# Instructions whose argument has flag bits below the index of a name.
_SHIFTS = {"LOAD_GLOBAL": 1, "LOAD_SUPER_ATTR": 2}
if sys.version_info >= (3, 12):
    _SHIFTS["LOAD_ATTR"] = 1
_IS_SKIPPED = [name in _NO_EFFECT or name.startswith("CACHE") for name in dis.opname]
_GLOBALS_AND_CELLS = frozenset((*_LOADS, *_CELLS))
_ATTRIBUTES_AND_GLOBALS = frozenset((*_ATTRIBUTES, *_LOADS))
_USES_NAME, _USES_CONSTANT, _USES_CELL = map(frozenset, (dis.hasname, dis.hasconst, dis.hasfree))


class Import(NamedTuple):
    """An import statement inside a function."""

    name: str
    level: int
    attributes: tuple[str, ...]


class CodeFacts(NamedTuple):
    """The references of one function, including nested functions.

    `globals` are dotted chains such as ("prompts", "SYSTEM"). `modified_names` are the globals and closure variables
    that the code modifies. `environment` has variable names, and `DYNAMIC_NAME` for computed names. `lists_folders` is
    true if the code lists folders, `assigned_globals` are the module globals that it assigns once, and `uses` are its
    uses of functions that access other code and files.
    """

    globals: tuple[tuple[str, ...], ...]
    modified_names: frozenset[str]
    imports: tuple[Import, ...]
    strings: tuple[str, ...]
    environment: tuple[str, ...]
    reads: bool
    writes: bool
    lists_folders: bool
    file_calls: tuple[FileCall, ...]
    uses: tuple[Use, ...]
    assigned_globals: dict[str, Expression]
    dynamic_features: tuple[str, ...]


# Code objects compare by value, and equal code has equal facts.
_cache: dict[tuple[CodeType, bool], CodeFacts] = {}
_CACHE_SIZE = 20_000


def read_facts(code: CodeType, *, traced: bool = False) -> CodeFacts:
    """Return the cached facts of a code object.

    With `traced`, always trace the code: it may use an alias of `open`.
    """
    facts = _cache.get((code, traced))
    if facts is None:
        if len(_cache) >= _CACHE_SIZE:
            _cache.clear()
        facts = _cache[code, traced] = _extract_facts(code, traced)
    return facts


def encode_code(code: CodeType) -> bytes:
    """Return the instructions, names and constants of a function and of the functions inside it."""
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    constants = [
        encode_code(constant) if isinstance(constant, CodeType) else _describe_constant(constant).encode(errors=ERRORS)
        for constant in code.co_consts
    ]
    names = repr((code.co_names, parameters)).encode(errors=ERRORS)
    return b"\0".join([code.co_code, code.co_exceptiontable, names, *constants])


def _describe_constant(value: object) -> str:
    if type(value) is int:
        # Python does not convert very long integers to decimal.
        return hex(value)
    if isinstance(value, tuple | frozenset):
        parts = map(_describe_constant, value)
        # The order of a set differs between processes.
        return f"({', '.join(parts if isinstance(value, tuple) else sorted(parts))})"
    return repr(value)


def _extract_facts(code: CodeType, traced: bool) -> CodeFacts:
    blocks = list(_list_code_objects(code))
    all_steps = [list(iterate_steps(block)) for block in blocks]
    names = {name for block in blocks for name in block.co_names}
    calls: list[FileCall] = []
    uses: dict[Use, None] = {}
    assigned: dict[str, Expression] = {}
    iterables: dict[CodeType, Expression] = {}
    traced |= any(map(_is_traced, blocks))
    for block, steps in zip(blocks, all_steps, strict=True):
        if traced or block.co_name == "<module>":
            trace = Trace(block, steps, iterables.get(block, UNKNOWN))
            trace.run(_find_jump_targets(block))
            calls += trace.calls
            uses |= dict.fromkeys(trace.uses)
            iterables |= trace.iterables
            assigned = trace.assigned_globals if block is code else assigned

    def collect(read: Callable[[Sequence[Step]], Iterator[Any]]) -> tuple[Any, ...]:
        return tuple(sorted({item for steps in all_steps for item in read(steps)}))

    return CodeFacts(
        globals=collect(_find_globals),
        modified_names=frozenset(collect(_find_changed_names)),
        imports=collect(_find_imports),
        strings=tuple(sorted({text for block in blocks for text in _find_strings(block.co_consts)})),
        environment=collect(_find_environment_variables),
        reads=not names.isdisjoint(_READERS),
        writes=not names.isdisjoint(("write_text", "write_bytes")) or any(map(_has_write_mode, blocks)),
        lists_folders=not names.isdisjoint(_LISTERS),
        file_calls=tuple(calls),
        uses=tuple(uses),
        assigned_globals=assigned,
        dynamic_features=collect(_find_subprocesses),
    )


def _is_traced(code: CodeType) -> bool:
    names = code.co_names
    by_text = "getattr" in names and not _SPECIAL_NAMES.isdisjoint(_find_strings(code.co_consts))
    return by_text or not _TRACED_NAMES.isdisjoint(names)


def iterate_steps(code: CodeType) -> Iterator[Step]:
    """Yield the instructions of a code object with their names and constants.

    Equivalent to `dis.get_instructions`, but much faster.
    """
    names, constants = code.co_names, code.co_consts
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    variables = [*code.co_varnames, *cells, *code.co_freevars]
    high = 0
    data = code.co_code
    for operation, low in zip(data[::2], data[1::2], strict=True):
        argument = high | low
        high = argument << 8 if operation == dis.EXTENDED_ARG else 0
        if _IS_SKIPPED[operation]:
            continue
        name = dis.opname[operation]
        if operation in _USES_NAME:
            yield Step(name, names[argument >> _SHIFTS.get(name, 0)])
        elif operation in _USES_CONSTANT:
            yield Step(name, constants[argument])
        elif operation in _USES_CELL:
            yield Step(name, variables[argument])
        else:
            yield Step(name, argument)


def _find_jump_targets(code: CodeType) -> set[int]:
    """Return the positions of the steps that jumps lead to."""
    labels = set(dis.findlabels(code.co_code))  # type: ignore[arg-type]
    targets: set[int] = set()
    position, is_target = 0, False
    for offset, operation in enumerate(code.co_code[::2]):
        is_target |= 2 * offset in labels
        if _IS_SKIPPED[operation]:
            continue
        if is_target:
            targets.add(position)
        position, is_target = position + 1, False
    return targets


def _list_code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_code_objects(constant)


def _find_globals(steps: Sequence[Step]) -> Iterator[tuple[str, ...]]:
    """Yield every global that is read, with the attributes that follow it directly."""
    for position, step in enumerate(steps):
        if step.name not in _LOADS:
            continue
        chain = [str(step.value)]
        for following in steps[position + 1 : position + 6]:
            if following.name not in _ATTRIBUTES:
                break
            chain.append(str(following.value))
        yield tuple(chain)


def _find_changed_names(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the names whose content the code modifies: counters, caches, lists of calls."""
    for position, step in enumerate(steps):
        if step.name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            yield str(step.value)
        elif step.name in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            container = _find_container(steps, position - 1)
            if container is not None and container.name in _GLOBALS_AND_CELLS:
                yield str(container.value)
        elif step.name in _GLOBALS_AND_CELLS:
            after = steps[position + 1 : position + 6]
            if after and after[0].name in _ATTRIBUTES and after[0].value in _MUTATORS:
                yield str(step.value)
            elif [s.name for s in after[1:4]] == ["COPY", "COPY", "BINARY_SUBSCR"]:
                # counts[key] += 1
                yield str(step.value)


def _find_container(steps: Sequence[Step], position: int) -> Step | None:
    """Return the step that loads the container, if the key is a name, a constant or an attribute."""
    while position >= 0 and steps[position].name in _ATTRIBUTES:
        position -= 1
    if position >= 1 and steps[position].name in _SIMPLE:
        return steps[position - 1]
    return None


def _find_imports(steps: Sequence[Step]) -> Iterator[Import]:
    for position, step in enumerate(steps):
        if step.name != "IMPORT_NAME":
            continue
        level, attributes = 0, ()
        constants = [previous.value for previous in steps[max(0, position - 2) : position]]
        if len(constants) == 2:
            level = constants[0] if isinstance(constants[0], int) else 0
            attributes = constants[1] if isinstance(constants[1], tuple) else ()
        yield Import(str(step.value), level, tuple(map(str, attributes)))


def _find_strings(constants: Sequence[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _find_strings(tuple(constant))


def _find_environment_variables(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the environment variables that are read, except secrets: rotating a key does not change the behavior."""
    for position, step in enumerate(steps):
        if step.value not in ("environ", "getenv") or step.name not in _ATTRIBUTES_AND_GLOBALS:
            continue
        following = [s for s in steps[position + 1 : position + 6] if s.name not in _ATTRIBUTES]
        is_constant = bool(following) and following[0].name == "LOAD_CONST"
        concatenation = [s.name.startswith(n) for s, n in zip(following[1:3], _CONCATENATION, strict=False)]
        name = following[0].value if is_constant and concatenation != [True, True] else DYNAMIC_NAME
        if not isinstance(name, str):
            name = DYNAMIC_NAME
        if not is_secret_name(name) and not _MACHINE_VARIABLES.fullmatch(name):
            yield name


def _find_subprocesses(steps: Sequence[Step]) -> Iterator[str]:
    for step, after in itertools.pairwise(steps):
        is_attribute = step.name in _LOADS and after.name in _ATTRIBUTES
        if is_attribute and after.value in _PROGRAMS.get(str(step.value), ()):
            yield "subprocesses"


def _has_write_mode(code: CodeType) -> bool:
    return "open" in code.co_names and any(
        isinstance(constant, str) and _WRITE_MODES.fullmatch(constant) for constant in code.co_consts
    )
