"""The front door: a short list, namespaces for the rest, everything loaded on first use."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import proctor
from tests.tables import each_row

HEAVY = ("rich", "httpx2", "yaml", "pydantic", "asyncio", "sqlite3", "msgspec", "click")
NAMESPACES = (
    *("datasets", "evaluators", "judges", "mailboxes", "metrics"),
    *("models", "reports", "targets", "testing"),
)
PACKAGES = ("proctor", *(f"proctor.{name}" for name in NAMESPACES))
EXPORTED = [
    (package, home, name)
    for package in PACKAGES
    for home, names in importlib.import_module(package).EXPORTS.items()
    for name in names
]


def fresh(code: str) -> str:
    """Return what a new Python prints, without coverage, which would load modules too."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={name: value for name, value in os.environ.items() if not name.startswith("COV")},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout


@each_row("package", PACKAGES)
def test_importing_a_namespace_loads_nothing_heavy(package: str) -> None:
    """`import proctor` in a new process costs next to nothing, and so does each namespace."""
    code = f"import sys, {package}; print([n for n in {HEAVY} if n in sys.modules])"
    assert fresh(code) == "[]\n"


def test_the_records_load_neither_engine_nor_database() -> None:
    """A script that only makes a sample waits for neither SQLite nor a display."""
    code = "import sys; from proctor import Sample, Score; Score(1.0, True); "
    code += "print([n for n in ('rich', 'httpx2', 'sqlite3', 'proctor.engine') if n in sys.modules])"
    assert fresh(code) == "[]\n"


# What a plain run does not need: comparisons, judge cards, models, recorded spans, entry points, patterns of secrets.
UNUSED_BY_A_RUN = (
    *("comparison.compare", "comparison.ranking", "comparison.sides", "comparison.verdicts", "core.stats.differences"),
    *("core.redaction.secrets", "datasets.table", "engine.rescore", "evaluators.combination", "history.postgres"),
    *("models.http.errors", "models.prompts", "reports.comparison", "sessions.telemetry.run_tracer"),
    *("sessions.genai.messages", "validity.cards", "wiring.compare_runs"),
)


def test_a_plain_run_loads_only_what_it_uses(tmp_path: Path) -> None:
    """`proctor run` with a function and one evaluator waits for no part that it does not use."""
    (tmp_path / "app.py").write_text("def answer(question):\n    return question\n", encoding="utf-8")
    (tmp_path / "data.jsonl").write_text('{"input": "a", "expected": "a"}\n', encoding="utf-8")
    code = f"import os, sys; os.chdir({str(tmp_path)!r}); from proctor.cli.main import run_cli; "
    code += "run_cli('run --dataset data.jsonl --generate-ids --target app.py:answer -e exact_match -q'.split()); "
    code += f"unused = [f'proctor.{{name}}' for name in {UNUSED_BY_A_RUN}] + ['importlib.metadata', 'yaml', 'csv']; "
    code += "print([name for name in unused if name in sys.modules], 'proctor.evaluators.matching' in sys.modules)"
    assert fresh(code) == "[] True\n"


@each_row(("package", "home", "name"), EXPORTED)
def test_every_public_name_resolves_and_is_explained(package: str, home: str, name: str) -> None:
    """Each is found at its home and has a docstring."""
    module: ModuleType = importlib.import_module(package)
    value = getattr(module, name)
    assert value is getattr(importlib.import_module(f"proctor.{home}"), name)
    if name not in ("Rating", "RATING_VALUES", "PASSING_RATINGS"):  # constants
        assert (value.__doc__ or "").strip(), f"{name} has no docstring"


def test_the_front_door_is_short() -> None:
    """At most 45 names, all of them exported; the others stay importable from the front."""
    exported = {name for names in proctor.EXPORTS.values() for name in names}
    assert len(proctor.__all__) <= 45
    assert set(proctor.__all__) <= exported
    assert dir(proctor) == sorted([*proctor.__all__, "__version__"])


@each_row("package", PACKAGES[1:])
def test_a_namespace_lists_all_its_names(package: str) -> None:
    """In `__all__` and `dir`."""
    module = importlib.import_module(package)
    exported = sorted(name for names in module.EXPORTS.values() for name in names)
    assert sorted(module.__all__) == exported == dir(module)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="module 'proctor' has no attribute 'evalute'"):
        getattr(proctor, "evalute")  # noqa: B009


def test_the_package_explains_itself() -> None:
    """Its docstring shows how to begin, and the version is a version."""
    assert "evaluate(" in (proctor.__doc__ or "")
    assert proctor.__version__[0].isdigit()


def test_the_top_level_has_few_loose_modules() -> None:
    """`ls src/proctor` shows folders, and at most six files."""
    assert proctor.__file__ is not None
    assert len(list(Path(proctor.__file__).parent.glob("*.py"))) <= 6
