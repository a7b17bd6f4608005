"""The types of the public API: mypy and pyright accept right code, and report mistakes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, assert_type

from proctor import Definition, EvalReport, FieldContext, Score, configuration, define
from proctor.records.comparison import Comparison, Ranking
from proctor.records.fields.field_result import FieldResult
from proctor.records.trial import Configuration


def polite(field_context: FieldContext, *, word: str = "please") -> Score:
    return Score(1.0, word in field_context.value)


def test_every_step_of_a_definition_is_typed() -> None:
    checks = (
        define("letters")
        .select("output", as_="letter")
        .evaluate_field("letter")
        .evaluate_with(polite, word="thanks")
        .evaluate_with("format_compliance", format="markdown")
        .combine_with("or")
        .on_progress(lambda event: event.progress)
        .history(auto_save=False)
        .baseline("short")
    )
    assert_type(checks, Definition)
    long, short = configuration("long"), configuration("short")
    assert_type(short, Configuration)
    recorded = {"long": {"output": "Many thanks"}, "short": {"output": "Thanks"}}
    report = checks.evaluate({}, configurations=[long, short], recorded=recorded)
    assert_type(report, EvalReport)
    assert_type(report.passed, bool)
    assert_type(report.field_results["letter"], FieldResult)
    assert_type(report.compare("long", "short"), Comparison)
    assert_type(report.rank_by("letter.score", "desc"), Ranking)
    assert_type(report.rows(), list[dict[str, Any]])


ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "typing_cases"
NAMESPACES = (
    *("datasets", "evaluators", "judges", "mailboxes", "metrics"),
    *("models", "reports", "targets", "testing"),
)


def run_checker(*command: object) -> str:
    """Run a type checker, and return what it finds wrong."""
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {name: value for name, value in environment.items() if not name.startswith("COV")}
    run = subprocess.run(
        [sys.executable, "-m", *map(str, command)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    return run.stdout + run.stderr if run.returncode else ""


def write_imports(path: Path) -> Path:
    """Write a module that imports every public name, and those of `__all__` by a star."""
    lines = []
    for package in ("proctor", *(f"proctor.{name}" for name in NAMESPACES)):
        module = importlib.import_module(package)
        alias = package.replace(".", "_")
        lines += [f"from {package} import *", f"import {package} as {alias}", *module.__all__]
        lines += [f"{alias}.{name}" for names in module.EXPORTS.values() for name in names]
    path.write_text("\n".join([*lines, "proctor.__version__.upper()"]) + "\n")
    return path


def test_mypy_accepts_user_code_and_reports_its_mistakes() -> None:
    """In strict mode, in which an unnecessary `type: ignore` is an error too."""
    assert run_checker("mypy", "--no-error-summary", CASES) == ""


def test_pyright_accepts_user_code_and_reports_its_mistakes(tmp_path: Path) -> None:
    """It also finds every public name, which are loaded on first use, through the stubs."""
    names = write_imports(tmp_path / "names.py")
    assert run_checker("pyright", "--pythonpath", sys.executable, CASES, names) == ""
