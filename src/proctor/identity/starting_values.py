"""What a global that the code itself changes starts with, read from the source of its module."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from typing import Any, NamedTuple

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
