"""Calls in bytecode that read or write files, with the expression that names the file.

The instructions of one function are followed from first to last. What cannot be followed (branches,
loops, parameters) is `UNKNOWN`; a call that is not recognized counts as one with an unknown name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from types import CodeType
from typing import NamedTuple

_DEEPEST = 30
_READS = ("read_text", "read_bytes")
_WRITES = ("write_text", "write_bytes")
_ADD, _DIVIDE, _REMAINDER, _SUBSCRIPT = (0, 13), (11, 24), (6, 19), 26
_LOCALS = ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK")
_TWO_LOCALS = ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_STORES_AND_MORE = ("STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST")
_MODES = frozenset("rwaxbt+U")


class Expression(NamedTuple):
    """A node of an expression tree: what it is, its name or value, and its parts."""

    kind: str
    value: object = None
    parts: tuple[Expression, ...] = ()
    depth: int = 0


class FileCall(NamedTuple):
    """One call that reads or writes a file.

    `first` is the first argument of a method `open`: the path, if the method is a module's.
    """

    writes: bool
    path: Expression
    first: Expression | None = None


class Step(NamedTuple):
    """An instruction with the name, the constant or the number that it uses."""

    name: str
    value: object


UNKNOWN = Expression("unknown")


def _made(kind: str, value: object, *parts: Expression) -> Expression:
    depth = 1 + max((part.depth for part in parts), default=0)
    return Expression(kind, value, parts, depth) if depth <= _DEEPEST else UNKNOWN


class _Reading:
    """One pass over the instructions of a code object."""

    def __init__(self, code: CodeType, steps: Sequence[Step]) -> None:
        self.calls: list[FileCall] = []
        self.assigned: dict[str, Expression] = {}
        self._code = code
        self._steps = steps
        self._stack: list[Expression] = []
        self._locals: dict[object, Expression] = {}
        self._keywords: tuple[object, ...] = ()
        self._stores = Counter(stored for step in steps for stored in _stored(step))

    def read(self, targets: Set[int]) -> None:
        for place, step in enumerate(self._steps):
            if place in targets:
                # Where branches meet, a value may come from either.
                self._stack = [UNKNOWN] * len(self._stack)
            self._follow(step)
        named = sum(
            (step.name in _GLOBALS and step.value == "open")
            or (step.name in ("LOAD_ATTR", "LOAD_METHOD") and step.value in (*_READS, *_WRITES))
            or (step.name == "LOAD_METHOD" and step.value == "open")
            for step in self._steps
        )
        if named > len(self.calls):
            self.calls.append(FileCall(writes=False, path=UNKNOWN))

    def _pop(self, count: int = 1) -> tuple[Expression, ...]:
        popped = [self._stack.pop() if self._stack else UNKNOWN for _ in range(count)]
        return tuple(reversed(popped))

    def _follow(self, step: Step) -> None:
        name, value = step
        if name in _LOCALS:
            self._stack.append(self._locals.get(value, UNKNOWN))
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            self._stack.append(_made("constant", value))
        elif name in _GLOBALS:
            self._stack.append(_made("global", value))
        elif name in _CELLS:
            self._stack.append(_made("cell", value))
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            self._stack.append(_made("attribute", value, *self._pop()))
        elif name in ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL"):
            self._store(step)
        elif name in ("CALL", "CALL_KW") and isinstance(value, int):
            self._call(value, with_names=name == "CALL_KW")
        else:
            self._combine(name, value)

    def _combine(self, name: str, value: object) -> None:
        if name == "POP_TOP":
            self._pop()
        elif name == "KW_NAMES":
            names = self._code.co_consts[value] if isinstance(value, int) else value
            self._keywords = names if isinstance(names, tuple) else ()
        elif name in ("IMPORT_NAME", "IMPORT_FROM"):
            owner = self._pop(2) if name == "IMPORT_NAME" else self._stack[-1:] or [UNKNOWN]
            is_module = name == "IMPORT_NAME"
            made = _made("module", value) if is_module else _made("attribute", value, *owner)
            self._stack.append(made)
        else:
            self._operate(name, value)

    def _operate(self, name: str, value: object) -> None:
        if name in _TWO_LOCALS and isinstance(value, int):
            self._stack += [self._locals.get(each, UNKNOWN) for each in (value >> 4, value & 15)]
        elif name == "BINARY_OP" and value in (*_ADD, *_DIVIDE, *_REMAINDER):
            kind = "text" if value in _ADD else "join" if value in _DIVIDE else "template"
            self._stack.append(_made(kind, None, *self._pop(2)))
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and value == _SUBSCRIPT):
            self._stack.append(_made("item", None, *self._pop(2)))
        elif name == "BINARY_OP":
            self._pop(2)
            self._stack.append(UNKNOWN)
        elif name == "FORMAT_SIMPLE" or (name == "FORMAT_VALUE" and value == 0):
            self._stack.append(_made("text", None, *self._pop()))
        elif name in ("BUILD_STRING", "BUILD_TUPLE") and isinstance(value, int):
            kind = "text" if name == "BUILD_STRING" else "tuple"
            self._stack.append(_made(kind, None, *self._pop(value)))
        else:
            self._stack.clear()

    def _store(self, step: Step) -> None:
        (stored,) = self._pop()
        if self._stores[step.name, step.value] > 1:
            stored = UNKNOWN
        if step.name != "STORE_FAST":
            self.assigned[str(step.value)] = stored
            return
        code = self._code
        index = code.co_varnames.index(step.value) if isinstance(step.value, str) else step.value
        parameters = code.co_argcount + code.co_kwonlyargcount
        if isinstance(index, int) and index >= parameters:
            self._locals[step.value] = stored

    def _call(self, count: int, *, with_names: bool) -> None:
        if with_names:
            (names,) = self._pop()
            self._keywords = names.value if isinstance(names.value, tuple) else ()
        arguments = self._pop(count)
        (called,) = self._pop()
        positional = len(arguments) - len(self._keywords)
        keywords = dict(zip(map(str, self._keywords), arguments[positional:], strict=False))
        self._keywords = ()
        self._record(called, arguments[:positional], keywords)
        self._stack.append(_made("call", None, called, *arguments[:positional]))

    def _record(
        self,
        called: Expression,
        arguments: tuple[Expression, ...],
        keywords: dict[str, Expression],
    ) -> None:
        mode = keywords.get("mode")
        if called.kind == "global" and called.value == "open":
            path = arguments[0] if arguments else keywords.get("file", UNKNOWN)
            modes = (*arguments[1:2], *([mode] if mode else ()))
            self.calls.append(FileCall(_is_write(modes), path))
        elif called.kind != "attribute":
            return
        elif called.value in (*_READS, *_WRITES):
            self.calls.append(FileCall(called.value in _WRITES, called.parts[0]))
        elif called.value == "open":
            modes = (*arguments[:2], *([mode] if mode else ()))
            first = arguments[0] if arguments else None
            self.calls.append(FileCall(_is_write(modes), called.parts[0], first))


def _stored(step: Step) -> Iterator[tuple[str, object]]:
    """The names that an instruction stores; some of Python 3.13 store two."""
    if step.name in _STORES_AND_MORE and isinstance(step.value, int):
        yield "STORE_FAST", step.value >> 4
        yield "STORE_FAST", step.value & 15
    elif step.name.startswith("STORE_"):
        yield step.name, step.value


def _is_write(modes: tuple[Expression, ...]) -> bool:
    texts = [mode.value for mode in modes if isinstance(mode.value, str)]
    return any(text and set(text) <= _MODES and set(text) & set("wax+") for text in texts)


def file_calls(
    code: CodeType, steps: Sequence[Step], targets: Set[int]
) -> tuple[list[FileCall], dict[str, Expression]]:
    """The file calls of a code object, and the globals that it assigns once.

    `targets` are the places of the steps that jumps lead to.
    """
    reading = _Reading(code, steps)
    reading.read(targets)
    return reading.calls, reading.assigned
