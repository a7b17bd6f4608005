"""Calls in bytecode that access files or other code, with their arguments.

The instructions of a function are traced in order. Values that cannot be traced (branches, loops,
parameters) are `UNKNOWN`; a call that is not recognized counts as a call with an unknown name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from types import CodeType
from typing import NamedTuple

_MAX_DEPTH = 30
_READS = ("read_text", "read_bytes")
_WRITES = ("write_text", "write_bytes")
_ADD, _DIVIDE, _REMAINDER, _SUBSCRIPT = (0, 13), (11, 24), (6, 19), 26
_LOCALS = ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK")
_TWO_LOCALS = ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_DOUBLE_STORES = ("STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST")
_MODES = frozenset("rwaxbt+U")
_TRACED_KINDS = ("global", "attribute", "cell", "call", "item")
_COMPARISONS = ("COMPARE_OP", "CONTAINS_OP", "IS_OP")


class Expression(NamedTuple):
    """A node of an expression tree: its kind, its name or value, and its child nodes."""

    kind: str
    value: object = None
    parts: tuple[Expression, ...] = ()
    depth: int = 0


class FileCall(NamedTuple):
    """One call that reads or writes a file.

    `first` is the first argument of a method `open`: the path, if `open` is a function of a module. `mode` is the mode
    if it is not a constant, or what may be one: the first argument. If it is a variable, `mode_values` are the strings
    that are assigned to it.
    """

    writes: bool
    path: Expression
    first: Expression | None = None
    mode: Expression | None = None
    mode_values: frozenset[str] = frozenset()


class Use(NamedTuple):
    """The use of an expression: a "call", "item", "attribute", "store" (to an item) or "value".

    `arguments` are the arguments of a call, the key of an item, or the name of an attribute. A "value" is passed to
    other code and cannot be traced.
    """

    kind: str
    node: Expression
    arguments: tuple[Expression, ...] = ()
    keywords: tuple[tuple[str, Expression], ...] = ()

    def argument(self, position: int, name: str) -> Expression | None:
        """Return an argument by position or name."""
        return self.arguments[position] if position < len(self.arguments) else self.keyword(name)

    def keyword(self, name: str) -> Expression | None:
        """Return an argument by name."""
        return dict(self.keywords).get(name)


class Step(NamedTuple):
    """An instruction with its name, constant or number."""

    name: str
    value: object


UNKNOWN = Expression("unknown")


def _node(kind: str, value: object, *parts: Expression) -> Expression:
    depth = 1 + max((part.depth for part in parts), default=0)
    return Expression(kind, value, parts, depth) if depth <= _MAX_DEPTH else UNKNOWN


class Trace:
    """The trace of one code object; `iterable` is what a comprehension iterates over.

    `assigned_globals` are the globals that it assigns once, and `iterables` the expressions that its comprehensions
    iterate over, by their code.
    """

    def __init__(self, code: CodeType, steps: Sequence[Step], iterable: Expression) -> None:
        self.calls: list[FileCall] = []
        self.uses: list[Use] = []
        self.iterables: dict[CodeType, Expression] = {}
        self.assigned_globals: dict[str, Expression] = {}
        self._code = code
        self._steps = steps
        self._stack: list[Expression] = []
        self._locals: dict[object, Expression] = {}
        if code.co_varnames[:1] == (".0",):
            self._locals[0] = _node("iterator", None, iterable)
        self._assigned_strings: dict[object, set[str]] = {}
        # Strings of both branches of a conditional expression, until it is assigned.
        self._branch_strings: set[str] = set()
        self._unused_counts: Counter[Expression] = Counter()
        self._keywords: tuple[object, ...] = ()
        self._stores = Counter(stored for step in steps for stored in _list_stored_names(step))
        for step in steps:
            if step.name == "LOAD_FAST_AND_CLEAR":
                # A comprehension of Python 3.12 restores its variable at the end and on errors.
                self._stores["STORE_FAST", step.value] -= 2

    def run(self, targets: Set[int]) -> None:
        """Trace all steps; `targets` are the positions of the steps that jumps lead to."""
        for position, step in enumerate(self._steps):
            if position in targets:
                # Where branches meet, values are ambiguous, except for a new iterator.
                keep = self._stack[-1:] if step.name == "FOR_ITER" else []
                self._stack = [UNKNOWN] * (len(self._stack) - len(keep)) + keep
            self._trace(step)
        recognizable = sum(
            (step.name in _GLOBALS and step.value == "open")
            or (step.name in ("LOAD_ATTR", "LOAD_METHOD") and step.value in (*_READS, *_WRITES))
            or (step.name == "LOAD_METHOD" and step.value == "open")
            for step in self._steps
        )
        if recognizable > len(self.calls):
            self.calls.append(FileCall(writes=False, path=UNKNOWN))
        self.calls = [self._add_mode_values(call) for call in self.calls]
        self.uses += [Use("value", node) for node, count in self._unused_counts.items() if count > 0]

    def _add_mode_values(self, call: FileCall) -> FileCall:
        if call.mode is None or call.mode.kind != "local":
            return call
        return call._replace(mode_values=frozenset(self._assigned_strings.get(call.mode.value, ())))

    def _push(self, node: Expression) -> None:
        self._stack.append(node)
        if node.kind in _TRACED_KINDS:
            self._unused_counts[node] += 1

    def _use(self, kind: str, node: Expression, *arguments: Expression) -> None:
        self._unused_counts[node] -= 1
        if node.kind in _TRACED_KINDS:
            self.uses.append(Use(kind, node, arguments))

    def _pop(self, count: int = 1) -> tuple[Expression, ...]:
        popped = [self._stack.pop() if self._stack else UNKNOWN for _ in range(count)]
        self._branch_strings -= {node.value for node in popped if isinstance(node.value, str)}
        return tuple(reversed(popped))

    def _load_local(self, variable: object) -> None:
        node = self._locals.get(variable, UNKNOWN)
        self._push(_node("local", self._find_local_name(variable)) if node is UNKNOWN else node)

    def _find_local_name(self, variable: object) -> object:
        names = self._code.co_varnames
        return names[variable] if isinstance(variable, int) and variable < len(names) else variable

    def _trace(self, step: Step) -> None:
        name, value = step
        if name in _LOCALS:
            self._load_local(value)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            self._push(_node("constant", value))
            self._branch_strings |= {value} if isinstance(value, str) else set()
        elif name in _GLOBALS:
            self._push(_node("global", value))
        elif name in _CELLS:
            self._push(_node("cell", value))
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            self._attribute(self._pop()[0], value)
        elif name in ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL"):
            self._store(step)
        elif name in ("CALL", "CALL_KW") and isinstance(value, int):
            self._call(value, with_names=name == "CALL_KW")
        else:
            self._combine(name, value)

    def _attribute(self, owner: Expression, name: object) -> None:
        self._use("attribute", owner, _node("constant", name))
        self._push(_node("attribute", name, owner))

    def _combine(self, name: str, value: object) -> None:
        if name == "POP_TOP":
            self._unused_counts[self._pop()[0]] -= 1
        elif name == "KW_NAMES":
            names = self._code.co_consts[value] if isinstance(value, int) else value
            self._keywords = names if isinstance(names, tuple) else ()
        elif name == "IMPORT_NAME":
            _, from_list = self._pop(2)
            # `import a.b` binds a; `from a.b import c` binds an attribute of a.b.
            is_top = from_list.kind == "constant" and from_list.value is None
            self._push(_node("module", str(value).partition(".")[0] if is_top else value))
        elif name == "IMPORT_FROM":
            owner = self._stack[-1] if self._stack else UNKNOWN
            self._push(_node("attribute", value, owner))
        else:
            self._operate(name, value)

    def _operate(self, name: str, value: object) -> None:
        if name in _TWO_LOCALS and isinstance(value, int):
            for index in (value >> 4, value & 15):
                self._load_local(index)
        elif name == "BINARY_OP" and value in (*_ADD, *_DIVIDE, *_REMAINDER):
            kind = "text" if value in _ADD else "join" if value in _DIVIDE else "template"
            self._push(_node(kind, None, *self._pop(2)))
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and value == _SUBSCRIPT):
            owner, key = self._pop(2)
            self._use("item", owner, key)
            self._push(_node("item", None, owner, key))
        elif name == "STORE_SUBSCR":
            _, owner, key = self._pop(3)
            self._use("store", owner, key)
        elif name == "BINARY_OP" or name in _COMPARISONS:
            _, container = self._pop(2)
            self._unused_counts[container] -= name == "CONTAINS_OP"
            self._push(UNKNOWN)
        elif name == "FORMAT_SIMPLE" or (name == "FORMAT_VALUE" and value == 0):
            self._push(_node("text", None, *self._pop()))
        elif name in ("BUILD_STRING", "BUILD_TUPLE", "BUILD_LIST") and isinstance(value, int):
            kind = "text" if name == "BUILD_STRING" else "tuple"
            self._push(_node(kind, None, *self._pop(value)))
        else:
            self._iterate(name, value)

    def _iterate(self, name: str, value: object) -> None:
        """Trace the instructions of loops and comprehensions."""
        if name == "GET_ITER":
            self._push(_node("iterator", None, *self._pop()))
        elif name == "FOR_ITER":
            top = self._stack[-1] if self._stack else UNKNOWN
            self._push(_node("element", None, *top.parts) if top.kind == "iterator" else UNKNOWN)
        elif name in ("LOAD_CLOSURE", "LOAD_FAST_AND_CLEAR"):
            self._push(UNKNOWN)
        elif name == "SWAP" and isinstance(value, int) and 1 < value <= len(self._stack):
            stack = self._stack
            stack[-1], stack[-value] = stack[-value], stack[-1]
        elif name == "STORE_FAST_LOAD_FAST" and isinstance(value, int):
            self._store(Step("STORE_FAST", value >> 4))
            self._load_local(value & 15)
        elif name == "MAKE_FUNCTION" and value in (0, 8):
            *_, code = self._pop(2 if value else 1)
            self._push(_node("function", code.value))
        else:
            self._stack.clear()

    def _store(self, step: Step) -> None:
        (stored,) = self._pop()
        strings = {stored.value} if stored.kind == "constant" and isinstance(stored.value, str) else set()
        if stored is UNKNOWN:
            strings = self._branch_strings
        self._assigned_strings.setdefault(self._find_local_name(step.value), set()).update(strings)
        self._branch_strings = set()
        is_import = stored.kind == "module" and stored.value == step.value
        if self._stores[step.name, step.value] > 1 and not is_import:
            stored = UNKNOWN
        if step.name != "STORE_FAST":
            self.assigned_globals[str(step.value)] = stored
            self._unused_counts[stored] -= 1
            return
        code = self._code
        index = code.co_varnames.index(step.value) if isinstance(step.value, str) else step.value
        parameters = code.co_argcount + code.co_kwonlyargcount
        if isinstance(index, int) and index >= parameters:
            self._locals[step.value] = stored
            self._unused_counts[stored] -= 1

    def _call(self, count: int, *, with_names: bool) -> None:
        if with_names:
            (names,) = self._pop()
            self._keywords = names.value if isinstance(names.value, tuple) else ()
        arguments = self._pop(count)
        (callee,) = self._pop()
        if callee.kind == "iterator" and count == 0:
            # Before Python 3.12 a comprehension is a function that is called with the iterator.
            (function,) = self._pop()
            if isinstance(function.value, CodeType):
                self.iterables[function.value] = callee.parts[0]
            self._push(UNKNOWN)
            return
        positional = len(arguments) - len(self._keywords)
        keywords = dict(zip(map(str, self._keywords), arguments[positional:], strict=False))
        self._keywords = ()
        arguments = arguments[:positional]
        self._record(callee, arguments, keywords)
        self._unused_counts[callee] -= 1
        if (callee.kind, callee.value) == ("global", "getattr") and len(arguments) > 1:
            owner, name = arguments[:2]
            if name.kind == "constant" and isinstance(name.value, str):
                self._attribute(owner, name.value)
                return
        if callee.kind in _TRACED_KINDS:
            self.uses.append(Use("call", callee, arguments, tuple(keywords.items())))
        self._push(_node("call", tuple(keywords.items()), callee, *arguments))

    def _record(self, callee: Expression, arguments: tuple[Expression, ...], keywords: dict[str, Expression]) -> None:
        mode = keywords.get("mode")
        if callee.kind == "global" and callee.value == "open":
            path = arguments[0] if arguments else keywords.get("file", UNKNOWN)
            modes = (*arguments[1:2], *([mode] if mode else ()))
            self.calls.append(FileCall(_is_write(modes), path, mode=_find_unknown(modes)))
        elif callee.kind != "attribute":
            return
        elif callee.value in (*_READS, *_WRITES):
            self.calls.append(FileCall(callee.value in _WRITES, callee.parts[0]))
        elif callee.value == "open":
            modes = (*arguments[:2], *([mode] if mode else ()))
            first = arguments[0] if arguments else None
            # The first argument may be the path.
            unknown_mode = _find_unknown(modes[1:] if arguments else modes) or _find_unknown(arguments[:1])
            self.calls.append(FileCall(_is_write(modes), callee.parts[0], first, unknown_mode))


def _list_stored_names(step: Step) -> Iterator[tuple[str, object]]:
    """Yield the names that an instruction stores; some Python 3.13 instructions store two."""
    if step.name in _DOUBLE_STORES and isinstance(step.value, int):
        yield "STORE_FAST", step.value >> 4
        if step.name == "STORE_FAST_STORE_FAST":
            yield "STORE_FAST", step.value & 15
    elif step.name.startswith("STORE_"):
        yield step.name, step.value


def _is_write(modes: tuple[Expression, ...]) -> bool:
    return any(is_write_mode(mode.value) for mode in modes if mode.kind == "constant" and isinstance(mode.value, str))


def is_write_mode(text: str) -> bool:
    """Return whether a string is a mode of `open` that writes."""
    return bool(text and set(text) <= _MODES and set(text) & set("wax+"))


def _find_unknown(modes: tuple[Expression, ...]) -> Expression | None:
    return next((mode for mode in modes if mode.kind != "constant"), None)
