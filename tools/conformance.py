"""The page of specification clauses, read from the decorators in tests/spec."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests" / "spec"

SPECS = {
    "000": "The loop spec",
    "001": "The session spec",
    "002": "The field spec",
    "003": "The runner spec",
    "004": "The rubric spec",
}
HEAD = """
Proctor implements five specifications. Each clause has one test; the tests are in `tests/spec/` and
run with `make test`. A clause with a ruling differs from the text of its specification, or decides
a point that the text leaves open. "Holds" means that the test is part of every test run and must
pass; the test of a clause that is not met must fail.
"""


@dataclass(frozen=True)
class Clause:
    """One clause, and the test that proves it."""

    identifier: str
    heading: str
    statement: str
    test: str = ""
    ruling: str = ""
    unmet: str = ""
    not_applicable: str = ""

    @property
    def spec(self) -> str:
        """The number of the specification."""
        return self.identifier.partition(".")[0]

    @property
    def order(self) -> tuple[str, str, int]:
        """The sort key on the page."""
        spec, topic, number = self.identifier.split(".")
        return spec, topic, int(number)

    @property
    def status(self) -> str:
        """The status of the clause in words."""
        if self.not_applicable:
            return f"does not apply: {self.not_applicable}"
        return f"not met: {self.unmet}" if self.unmet else "holds"


def read_clauses(folder: Path = TESTS) -> list[Clause]:
    """Return all clauses of a folder of tests, in the order of their identifiers."""
    results = [
        clause
        for path in sorted(folder.glob("test_*.py"))
        for clause in _read_module(ast.parse(path.read_text(encoding="utf-8")), path.name)
    ]
    return sorted(results, key=lambda clause: clause.order)


def _read_module(module: ast.Module, file: str) -> Iterator[Clause]:
    for node in module.body:
        if isinstance(node, ast.Expr) and _is_call_of(node.value, "not_applicable"):
            (identifier, heading, statement), options = _arguments(node.value)
            yield Clause(identifier, heading, statement, not_applicable=options["reason"])
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            if _is_call_of(decorator, "clause"):
                (identifier, heading), options = _arguments(decorator)
                statement = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                yield Clause(identifier, heading, statement, f"{file}::{node.name}", **options)


def _is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _arguments(call: ast.expr) -> tuple[list[str], dict[str, str]]:
    assert isinstance(call, ast.Call)
    positional = [ast.literal_eval(argument) for argument in call.args]
    return positional, {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}


def page(notice: str) -> str:
    """Return the page, with one table for each specification."""
    clauses = read_clauses()
    parts = ["# Conformance", notice, HEAD.strip(), _summary(clauses)]
    for spec, of_spec in groupby(clauses, key=lambda clause: clause.spec):
        parts.append(f"## {SPECS[spec]} ({spec})")
        parts.append(_table(list(of_spec)))
    return "\n\n".join(parts) + "\n"


def _summary(clauses: list[Clause]) -> str:
    lines = ["| specification | clauses | hold | not met | do not apply |", "|---|---|---|---|---|"]
    for spec, name in SPECS.items():
        of_spec = [clause for clause in clauses if clause.spec == spec]
        unmet = sum(bool(clause.unmet) for clause in of_spec)
        outside = sum(bool(clause.not_applicable) for clause in of_spec)
        values = len(of_spec) - unmet - outside
        lines.append(f"| {name} ({spec}) | {len(of_spec)} | {values} | {unmet} | {outside} |")
    return "\n".join(lines)


def _table(clauses: list[Clause]) -> str:
    lines = ["| clause | statement | ruling | test | status |", "|---|---|---|---|---|"]
    for clause in clauses:
        test = f"`{clause.test}`" if clause.test else ""
        statement = clause.statement.replace("|", "\\|")
        lines.append(
            f"| {clause.identifier} ({clause.heading}) | {statement} | {clause.ruling} | {test} | {clause.status} |"
        )
    return "\n".join(lines)
