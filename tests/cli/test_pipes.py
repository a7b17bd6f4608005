"""Whoever reads the output may go away before the end: `proctor … | head -1`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.project import Project

CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


@pytest.fixture
def run(project: Project) -> Project:
    """A project with a run that is a baseline too, and with sessions."""
    assert project.proctor("run", "eval.yaml", "-q").code == 0
    assert project.proctor("baseline", "set", "main", "latest").code == 0
    (project.folder / "logs").mkdir()
    for name in ("a", "b"):
        project.write(f"logs/{name}.json", json.dumps(CHAT))
    return project


def piped(project: Project, command: str) -> tuple[int, str]:
    """Return the exit code and the errors of a command whose reader closed the pipe before it started."""
    done = subprocess.run(
        f"set -o pipefail; {sys.executable} -m proctor {command} | true",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        cwd=project.folder,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "runs",
        "runs --json",
        "baseline list",
        "show latest",
        "show latest --sample s0",
        "sessions list logs",
        "sessions show logs --id a",
        "evaluators",
        "init piped",
        "--help",
    ],
)
def test_output_that_nobody_reads_any_more_is_no_error(run: Project, command: str) -> None:
    """Every command ends quietly, with the code that it would have ended with: no script breaks."""
    assert piped(run, command) == (0, "")


@pytest.mark.parametrize(
    ("command", "code"),
    [("run eval.yaml --fail-under 0.99 2>&1", 1), ("show nobody 2>&1", 2), ("run eval.yaml 2>&1", 0)],
)
def test_a_code_is_the_same_where_nobody_reads_the_complaints(run: Project, command: str, code: int) -> None:
    """The run completes, and a run below its threshold still exits with 1."""
    assert piped(run, command) == (code, "")
    statuses = {item["status"] for item in run.proctor("runs", "--json").json}
    assert statuses == {"completed"}


def test_a_target_that_closes_standard_output_changes_no_exit_code(project: Project) -> None:
    """The report is printed nevertheless."""
    project.write("closing.py", "import sys\ndef answer(q):\n    sys.stdout.close()\n    return q\n")
    command = ["run", "--dataset", "data.jsonl", "--target", "closing.py:answer", "-e", "exact_match"]
    done = subprocess.run(
        [sys.executable, "-m", "proctor", *command], capture_output=True, text=True, cwd=project.folder
    )
    assert (done.returncode, "pass_rate" in done.stdout) == (0, True), done.stderr
