"""The first project that `proctor init` writes: it runs as it is, and shows two failures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from proctor.core import resources
from proctor.core.imports import import_object as at_address

TEMPLATE = resources.path("templates", "project")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the project in it."""
    for file in TEMPLATE.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    return tmp_path


@pytest.fixture
def in_template(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Finds what a file of the template defines, and leaves no trace of its modules."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in ("target", "evaluators"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    return lambda address: at_address(f"{TEMPLATE}/{address}")


def test_it_runs_as_it_is(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """From another folder, too: eight of ten samples pass, which is enough for its threshold."""
    done = subprocess.run(
        [sys.executable, "-m", "proctor", "run", str(project / "eval.yaml"), "--json"],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["strict_pass_rate"]["value"] == 0.8


def test_the_eval_file_begins_with_its_schema() -> None:
    """Editors that know the YAML language server complete and check it."""
    first = (TEMPLATE / "eval.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=.proctor/eval.schema.json"


def test_the_target_converts_units(in_template: Any) -> None:
    """It is right within one kind of unit, does not know others, and mixes up kinds."""
    answer = in_template("target.py:answer")
    assert answer("How much is 26.2 mi in km?") == "42.16 km"
    assert answer("How much is 26.2 mi in km?", digits=0) == "42 km"
    assert answer("How much is 68 F in C?") == "I don't know"
    assert answer("How are you?") == "I don't know"
    assert answer("How much is 5 m in l?") == "5 l"


def test_its_evaluator_compares_numbers(in_template: Any) -> None:
    """A number within the margin passes; without an expected number there is no verdict."""
    right_number = in_template("evaluators.py:right_number")
    assert right_number("4.54 kg", "4.536 kg") is True
    assert right_number("4.54 kg", "4.536 kg", margin=0.0001) is False
    assert right_number("I don't know", "20 C") is False
    assert right_number("5 l", "I don't know") is None


def test_the_readme_gates_as_the_eval_file_does() -> None:
    """The workflow in the README asks for the same threshold as the eval file."""
    assert "--fail-under 0.75" in (TEMPLATE / "README.md").read_text(encoding="utf-8")
    assert "fail_under: 0.75" in (TEMPLATE / "eval.yaml").read_text(encoding="utf-8")
