"""`proctor completion`, and `proctor` without arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from proctor.cli.main import COMPLETION_VARIABLE, proctor
from tests.cli.project import Project
from tests.support import run_command


def complete(*words: str) -> list[str]:
    """Return what follows the words; the last one is incomplete."""
    completion = ShellComplete(proctor, {}, "proctor", COMPLETION_VARIABLE)
    return [item.value for item in completion.get_completions(list(words[:-1]), words[-1])]


def test_runs_evaluators_and_eval_files_are_completed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids, names and baselines of the history; built-in evaluators; YAML files and folders."""
    project.make_baseline()
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    assert complete("show", "l") == ["latest"]
    assert complete("show", "") == complete("compare", "latest", "")
    assert {"latest", "main", "exam"} < set(complete("show", ""))
    assert complete("show", "--history", "missing.db", "") == []
    assert complete("run", "-e", "exact") == ["exact_match"]
    assert "not-exact_match" in complete("run", "-e", "not-exact")
    assert "eval.yaml" in complete("run", "ev")
    assert complete("run", "--wat") == ["--watch"]
    (project.folder / "broken.db").write_text("x" * 200)
    assert complete("show", "--history", "broken.db", "") == []


def test_each_shell_gets_a_script_that_is_valid(tmp_path: Path) -> None:
    for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])):
        result = run_command("completion", shell, cwd=tmp_path)
        assert result.returncode == 0
        assert COMPLETION_VARIABLE in result.stdout
        if shutil.which(shell):
            (tmp_path / "script").write_text(result.stdout)
            subprocess.run([*check, str(tmp_path / "script")], check=True)
    assert run_command("completion", "tcsh", cwd=tmp_path).returncode == 2


def test_the_shell_asks_through_a_variable(tmp_path: Path) -> None:
    """The script starts `proctor` with the words so far; the answer is one completion per line."""
    variables = {COMPLETION_VARIABLE: "bash_complete", "COMP_WORDS": "proctor compl", "COMP_CWORD": "1"}
    finished = subprocess.run(
        [sys.executable, "-m", "proctor"],
        env={**os.environ, **variables},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.stdout == "plain,completion\n"
    assert finished.returncode == 0
    assert isinstance(proctor, click.Group)


def test_proctor_without_arguments_says_what_to_type_next(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It depends on the folder: nothing yet, an eval file, or runs; nothing is created, and the exit code is 0."""
    empty = tmp_path_factory.mktemp("empty")
    result = run_command(cwd=empty)
    assert result.returncode == 0
    assert "proctor init my-evals" in result.stdout
    assert "proctor demo" in result.stdout
    assert list(empty.iterdir()) == []
    assert "  proctor run   " in run_command(cwd=project.folder).stdout
    project.proctor("run", "eval.yaml", "-q")
    text = run_command(cwd=project.folder).stdout
    assert "proctor view" in text
    assert "the latest is exam (" in text
    (empty / "smoke.eval.yml").write_text("")
    assert "proctor run smoke.eval.yml" in run_command(cwd=empty).stdout
