"""Outputs take the place of nothing but earlier outputs of the same kind, by whichever door."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.cli.outputs import EXPORTS, RESULT, check_file
from proctor.errors import ConfigError
from tests.cli.project import Project
from tests.tables import each_row

CHAT = [{"role": "user", "content": 'Say "rubric_scores"'}, {"role": "assistant", "content": "No"}]
JUDGE = """
import pathlib
from proctor import ModelRequest, ModelResponse

async def mine(request: ModelRequest) -> ModelResponse:
    pathlib.Path("asked").touch()
    line = request.messages[-1].content.rpartition("\\n")[2].partition("<")[0]
    return ModelResponse(f"Fine.\\n{line}4")
"""
GATE = ("gate", "eval.yaml", "--fail-under", "0.1")
ONE = ("sessions", "evaluate", "--rubrics", "starter", "--session", "logs/a.json")
BATCH = ("sessions", "evaluate-batch", "--rubrics", "starter", "--sessions-dir", "logs")
JUDGED = ("--judge", "judges:mine")
# By every door: what comes before the path.
DOORS = [
    (*ONE, *JUDGED, "--output"),
    (*GATE, "--junit"),
    (*GATE, "--markdown"),
    ("compare", "latest", "first", "--markdown"),
    ("history", "trend", "pass_rate", "--svg"),
    *(("history", "export", "--format", form) for form in ("jsonl", "csv", "parquet")),
]
FOLDERS = [
    ("run", "eval.yaml", "--output"),
    (*GATE, "--output"),
    ("rescore", "latest", "-e", "exact_match", "--output"),
    ("show", "latest", "--output"),
    ("demo", "--output"),
]


@pytest.fixture
def stored(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a run, two logs and a judge, on a machine without weights."""
    monkeypatch.setenv("PROCTOR_MODELS", str(project.folder / "models"))
    (project.folder / "logs").mkdir()
    for name in ("a", "b"):
        project.write(f"logs/{name}.json", json.dumps(CHAT))
    project.write("judges.py", JUDGE)
    project.prepare_history(("run", "eval.yaml"), ("baseline", "set", "first", "latest"), ("run", "eval.yaml"))
    return project


def contents(project: Project) -> dict[str, bytes]:
    """Every file of the project but the history, which changes when its connection is closed."""
    result = (project.folder / name for name in project.files() if ".proctor" not in name)
    return {str(item): item.read_bytes() for item in result if item.is_file()}


@each_row("door", DOORS)
@each_row(
    ("path", "taken_for"),
    [
        ("eval.yaml", "the file exists and is a YAML file"),
        ("judges.py", "the file exists and is a Python file"),
        ("logs/b.json", "the file exists and is a JSON file"),
        (".proctor/history.db", "this file is the history"),
        ("copy.db", "the file exists and is a database"),
        ("data.jsonl", "the file exists and is a JSON Lines file"),
    ],
)
def test_nothing_else_is_written_over(stored: Project, door: tuple[str, ...], path: str, taken_for: str) -> None:
    """Another file is never overwritten: the command refuses before it runs, and suggests a fix."""
    stored.write("copy.db", (stored.folder / ".proctor/history.db").read_bytes())
    before = contents(stored)
    result = stored.proctor(*door, path)
    assert (result.code, result.out) == (2, "")
    assert taken_for in result.err
    assert "name another file" in result.err
    assert contents(stored) == before
    assert len(stored.proctor("runs", "--json").json) == 2


@pytest.mark.parametrize("door", DOORS, ids=lambda door: " ".join(door[:2] + door[-1:]))
def test_an_earlier_output_of_the_same_kind_is_written_over(stored: Project, door: tuple[str, ...]) -> None:
    """An empty file too, as mktemp makes it; but no output of another kind."""
    stored.write("new.out", "")
    for _ in range(2):
        result = stored.proctor(*door, "new.out")
        assert result.code == 0, result.err
        assert (stored.folder / "new.out").stat().st_size
    others = [other for other in DOORS if other != door]
    assert {stored.proctor(*other, "new.out").code for other in others} == {2}


def test_the_history_is_not_written_over_before_it_is_there(project: Project) -> None:
    """Nor its write-ahead files, wherever the history is."""
    project.write("a.json", json.dumps(CHAT))
    project.write("judges.py", JUDGE)
    item = ("sessions", "evaluate", "--rubrics", "starter", "--session", "a.json", *JUDGED)
    for history, output in (
        ((), ".proctor/history.db"),
        ((), ".proctor/../.proctor/history.db-wal"),
        (("--history", "mine.db"), "mine.db"),
    ):
        result = project.proctor(*item, *history, "--output", output)
        assert result.code == 2
        assert "this file is the history" in result.err
    assert not (project.folder / "asked").exists()


@pytest.mark.parametrize("door", FOLDERS, ids=lambda door: door[0])
def test_reports_take_the_place_of_reports_only(stored: Project, door: tuple[str, ...]) -> None:
    """The folder may contain other files, but no report.md or report.json of another program."""
    (stored.folder / "out").mkdir()
    for name in ("report.md", "report.json", "notes.md"):
        stored.write(f"out/{name}", "Mine")
        result = stored.proctor(*door, "out")
        refused = name != "notes.md"
        assert (result.code == 2) is refused, result.err
        assert ("not a report; it is not overwritten" in result.err) is refused
        assert (stored.folder / f"out/{name}").read_text() == "Mine"
        if refused:
            (stored.folder / f"out/{name}").unlink()
    assert stored.proctor(*door, "out").code == 0


def test_two_outputs_do_not_go_to_one_file(stored: Project) -> None:
    """The second would take the place of the first."""
    for args in (("--junit", "x", "--markdown", "./x"), ("--markdown", "out/report.md", "--output", "out")):
        result = stored.proctor(*GATE, *args)
        assert (result.code, "two outputs would be written to this file" in result.err) == (2, True)
    assert not {"x", "out"} & stored.files()


def test_reports_do_not_go_among_the_sessions_that_are_read(stored: Project) -> None:
    """The next run would read them; a pattern that leaves them out, or another file, is no harm."""
    evaluated = "dataset: {path: logs%s}\nevaluators: [{all_tools_succeeded: {}}]\n"
    stored.write("chats.yaml", evaluated % "")
    before = contents(stored)
    for args in (
        ("run", "chats.yaml", "--output", "logs/../logs"),
        ("gate", "chats.yaml", "--fail-under", "0", "--output", "logs/deep"),
        ("gate", "chats.yaml", "--fail-under", "0", "--markdown", "logs/c.json"),
    ):
        result = stored.proctor(*args)
        assert result.code == 2
        assert "this folder contains the recorded sessions" in result.err
        assert contents(stored) == before
    stored.write("chats.yaml", evaluated % ', pattern: "?.json"')
    assert stored.proctor("run", "chats.yaml", "--output", "logs").code in (0, 3)
    assert (stored.folder / "logs/report.json").exists()


def test_a_batch_takes_the_place_of_its_own_files_only(stored: Project) -> None:
    """Neither of a summary nor of a result that is something else; what else is there may stay."""
    (stored.folder / "out").mkdir()
    for name, kind in (("summary", "batch summary"), ("b_result", "session result")):
        path = stored.write(f"out/{name}.json", '{"mine": 1}')
        result = stored.proctor(*BATCH, *JUDGED, "--output-dir", "out")
        assert (result.code, path.read_text()) == (2, '{"mine": 1}')
        assert f"the file exists and is a JSON file, not a {kind}; it is not overwritten" in result.err
        path.unlink()
    assert not (stored.folder / "asked").exists()
    stored.write("out/other_result.json", "{}")
    for _ in range(2):
        assert stored.proctor(*BATCH, *JUDGED, "--output-dir", "out").code == 0


def test_what_is_not_a_file_can_be_written_to(stored: Project, tmp_path: Path) -> None:
    """Standard output and pipes are appended to."""
    command = [sys.executable, "-m", "proctor", "compare", "latest", "first", "--markdown"]
    result = subprocess.run([*command, "/dev/stdout"], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("## ")
    assert result.stdout.endswith("wrote /dev/stdout\n")
    log = tmp_path / "log.txt"
    log.write_text("before\n")
    with log.open("a") as file:
        subprocess.run([*command, "/dev/stdout"], stdout=file, check=True)
    assert log.read_text() == f"before\n{result.stdout}"
    read, write = os.pipe()
    assert stored.proctor("compare", "latest", "first", "--markdown", f"/dev/fd/{write}").code == 0
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read().startswith("## ")


@pytest.mark.parametrize("data", [b"PAR1", b"PAR1PAR1", b"PAR1" + b"\xff" * 4 + b"PAR1", b"{", b"9"])
def test_what_is_cut_off_is_no_earlier_output(tmp_path: Path, data: bytes) -> None:
    """Whatever a file begins with, nothing but a whole one is taken for one's own."""
    path = tmp_path / "x.db"
    path.write_bytes(data)
    for kind in (EXPORTS["parquet"], RESULT):
        with pytest.raises(ConfigError, match="the file exists and is a database"):
            check_file(path, kind, "FILE")
