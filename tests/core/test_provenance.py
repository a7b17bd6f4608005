"""The provenance of a run: recorded where it is known, and never a reason to fail."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from proctor import EvalReport, evaluate
from proctor.engine import provenance
from proctor.engine.provenance import collect_provenance, package_versions, read_git_state, redact_command
from proctor.errors import RunStopped
from proctor.records.run import Provenance
from proctor.reports.console import render_report
from proctor.reports.json import JSONReporter, load
from tests.tables import each_row

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> str:
    """Run git with a fixed user."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(("git", *who, *words), cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def repository(folder: Path) -> Path:
    """A folder with one commit on the branch `trunk`."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    (folder / "app.py").write_text("A = 1\n")
    git(folder, "add", "app.py")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@needs_git
def test_commit_branch_and_changes_are_recorded(tmp_path: Path) -> None:
    """Also from a subfolder; an untracked file is no change."""
    clean = repository(tmp_path / "clean")
    (clean / "inside").mkdir()
    (clean / "new.txt").write_text("x")
    commit = git(clean, "rev-parse", "HEAD")
    assert read_git_state(clean / "inside") == Provenance(commit, "trunk", dirty=False)
    changed = repository(tmp_path / "changed")
    (changed / "app.py").write_text("A = 2\n")
    assert read_git_state(changed).dirty is True
    assert read_git_state(changed).code.endswith(" on trunk, with changes")


@needs_git
def test_a_detached_head_has_no_branch_and_an_empty_repository_no_commit(tmp_path: Path) -> None:
    loose = repository(tmp_path / "loose")
    git(loose, "checkout", "-q", "--detach")
    state = read_git_state(loose)
    assert state.branch is None
    assert state.commit is not None
    assert state.code == state.commit[:12]
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q", "-b", "trunk")
    assert read_git_state(empty).code == ""


def test_no_program_is_started_in_a_folder_without_git(tmp_path: Path) -> None:
    assert read_git_state(tmp_path) == Provenance()


def install_fake_git(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program called git first on the path."""
    folder.mkdir()
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.parametrize("script", ["sleep 60; touch finished", "exit 128", "kill -9 $$", "printf '\\377'"])
def test_a_git_that_hangs_or_fails_does_not_stop_the_run(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "GIT_SECONDS", 0.3)
    (tmp_path / "code" / ".git").mkdir(parents=True)
    install_fake_git(tmp_path / "bin", script, monkeypatch)
    assert read_git_state(tmp_path / "code").code == ""
    assert not list(tmp_path.rglob("finished"))


def test_without_git_no_commit_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert read_git_state(tmp_path) == Provenance()


def test_only_names_of_variables_and_ci_ids_are_recorded(tmp_path: Path) -> None:
    """No value of a variable of the user."""
    environment = {
        "OPENAI_API_KEY": "sk-1",
        "PROCTOR_HISTORY": "h.db",
        "MY_BASE_URL": "https://u:p@h",
        "HOME": "/home/ann",
        "GITHUB_SHA": "0d1f3a",
        "GITHUB_RUN_ID": "42",
        "GITHUB_REF_NAME": "has spaces in it",
        "GITHUB_TOKEN": "ghs_1",
        "CI_JOB_ID": "",
    }
    result = collect_provenance(tmp_path, environment, ["/usr/bin/proctor", "run"])
    assert result.variables == ("MY_BASE_URL", "OPENAI_API_KEY", "PROCTOR_HISTORY")
    assert result.ci == {"GITHUB_SHA": "0d1f3a", "GITHUB_RUN_ID": "42"}
    assert result.command == ("proctor", "run")
    assert result.packages["msgspec"]
    assert package_versions() is package_versions()


@each_row(
    ("command", "kept"),
    [
        ([], ()),
        (["-c"], ("-c",)),
        (["x", "--api-key", "abc", "rest"], ("x", "--api-key", "[secret: assigned secret]", "rest")),
        (["x", "--api-key", "--limit", "3"], ("x", "--api-key", "--limit", "3")),
        (["x", "--set", "j.api_key=abc"], ("x", "--set", "j.api_key=[secret: assigned secret]")),
        (["x", "--pass", "p1"], ("x", "--pass", "[secret: assigned secret]")),
        (["x", "-p", "hunter"], ("x", "-p", "[secret: assigned secret]")),
        (["x", "-p", "8080", "-p", "--y"], ("x", "-p", "8080", "-p", "--y")),
        (["x", "-p", "Be brief.", "-p", "a/b"], ("x", "-p", "Be brief.", "-p", "a/b")),
        (["x", "--max-tokens", "3", "--t="], ("x", "--max-tokens", "3", "--t=")),
        (["x", "AKIA" + "Z7QW2MKX5RTB6PLN"], ("x", "[secret: aws access key]")),
        (["x", "a" * 2_000], ("x", "a" * 500)),
    ],
)
def test_a_command_line_is_recorded_without_secrets(command: list[str], kept: tuple[str, ...]) -> None:
    """They are recognised by option, name or shape."""
    assert redact_command(command) == kept


@needs_git
def test_a_run_reports_its_provenance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the report as a line, in its JSON completely."""
    code = repository(tmp_path / "code")
    monkeypatch.chdir(code)
    report = evaluate(str.upper, [{"id": "1", "input": "a"}], "exact_match", history="h.db", progress=False)
    assert report.metadata is not None
    commit = git(code, "rev-parse", "HEAD")
    assert report.metadata.provenance.commit == commit
    assert f"code {commit[:12]} on trunk" in " ".join(render_report(report).split())
    again = load(JSONReporter().generate(report))
    assert again.metadata is not None
    assert again.metadata.provenance == report.metadata.provenance


def fails_once(question: str) -> str:
    """A target that fails until a file exists."""
    if not Path("mended.tmp").exists():
        raise RuntimeError(question)
    return question


@needs_git
def test_a_run_resumed_at_another_commit_has_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = repository(tmp_path / "code")
    monkeypatch.chdir(code)

    def run(resume: bool) -> EvalReport:
        return evaluate(
            fails_once,
            [{"id": "1", "input": "a", "expected": "a"}],
            "exact_match",
            history="h.db",
            progress=False,
            resume=resume,
            retry_errors=resume,
            on_error="raise",
        )

    with pytest.raises(RunStopped):
        run(resume=False)
    first = git(code, "rev-parse", "HEAD")[:12]
    (code / "mended.tmp").touch()
    git(code, "commit", "-q", "--allow-empty", "-m", "second")
    read_git_state.cache_clear()
    report = run(resume=True)
    second = git(code, "rev-parse", "HEAD")[:12]
    assert report.metadata is not None
    assert report.metadata.warnings == (f"resumed with other code: started at {first} on trunk, now {second} on trunk",)


def test_provenance_is_collected_once_in_a_process_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later calls start no program."""
    (tmp_path / ".git").mkdir()
    first = collect_provenance(tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a program was started"))
    assert collect_provenance(tmp_path) == first
