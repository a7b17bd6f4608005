"""The conformance suite itself: every test has a clause, and every clause one test."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from pathlib import Path

from tools import conformance

from tests.tables import each_row

MODULES = sorted(path for path in Path(__file__).parent.glob("test_00*.py"))
read_clauses = functools.cache(conformance.read_clauses)


def test_every_clause_is_proved_once() -> None:
    """No two tests claim the same clause."""
    counts = Counter(clause.identifier for clause in read_clauses())
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_clause_is_a_statement() -> None:
    """Each clause has a statement of at least four words that ends with a full stop."""
    vague = [
        clause.identifier
        for clause in read_clauses()
        if len(clause.statement.split()) < 4 or not clause.statement.endswith(".")
    ]
    assert vague == []


@each_row("path", MODULES)
def test_every_test_names_its_clause(path: Path) -> None:
    """A test in this folder without a clause would not be on the page."""
    tests = [
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    named = {clause.test.partition("::")[2] for clause in read_clauses()}
    assert [name for name in tests if name not in named] == []
