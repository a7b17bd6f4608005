"""Messages that must not mislead: counts next to rates, which run is which, and fixes that can be typed."""

from __future__ import annotations

import threading
import webbrowser
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tests.cli.project import Project
from tests.tables import each_row

MEMORY = "a memory: mailbox exists only inside one process"


@pytest.fixture
def run_id(project: Project) -> str:
    """A run of five samples: four pass, one fails with an error."""
    return str(project.proctor("run", "eval.yaml", "--json").json["run_id"])


def test_runs_shows_what_the_pass_rate_covers(project: Project, run_id: str) -> None:
    """100.0% of 4 judged results, next to one error; skipped results have a column if there are any."""
    lines = project.proctor("runs").out.splitlines()
    assert max(map(len, lines)) <= 80
    heading, row = (line.split() for line in lines[:2])
    assert heading[3:] == ["results", "judged", "pass", "rate", "errors"]
    assert row[0] == run_id
    assert row[3:] == ["5", "4", "100.0%", "1"]
    project.write("d.jsonl", '{"id": "1", "input": "a"}\n{"id": "2", "input": "b", "expected": "B"}\n')
    project.proctor("run", "eval.yaml", "--dataset", "d.jsonl", "-q")
    heading, row = (line.split() for line in project.proctor("runs").out.splitlines()[:2])
    assert heading[-3:] == ["rate", "skipped", "errors"]
    assert row[3:] == ["2", "1", "100.0%", "1", "0"]


def test_a_rescored_run_is_marked(project: Project, run_id: str) -> None:
    """It has the name of the old run, so `runs` and `show` name the run that it was made from."""
    assert project.proctor("rescore", run_id, "-e", "contains", "-q").code == 0
    assert f"rescored from {run_id}" in project.proctor("runs").out
    assert f"rescored from {run_id}" in " ".join(project.proctor("show", "exam").out.split())
    assert f"rescored from {run_id}" not in project.proctor("show", run_id).out


def test_compare_says_if_the_new_run_is_the_older_one(project: Project, run_id: str) -> None:
    """`compare old new` is answered, with the command that compares the other way round."""
    project.proctor("run", "eval.yaml", "-q", "--name", "second")
    note = f"Note: {run_id} is older than its reference; to swap them: proctor compare second {run_id}"
    assert note in project.proctor("compare", run_id, "second").out
    assert "older than its reference" not in project.proctor("compare", "second", run_id).out


@pytest.mark.parametrize(
    "command",
    [("submit", "eval.yaml"), ("worker", "eval.yaml"), ("collect", "latest"), ("mailbox",)],
    ids=lambda c: c[0],
)
def test_a_mailbox_in_memory_is_rejected(project: Project, run_id: str, command: tuple[str, ...]) -> None:
    """Other processes cannot reach it; the message says what to write instead."""
    option = () if command[0] == "mailbox" else ("--requests",)
    result = project.proctor(*command, *option, "memory:exams")
    assert (result.code, MEMORY in result.err, "redis://" in result.err) == (2, True, True), run_id


@each_row(
    ("args", "message"),
    [
        (("show", "--outcome", "faild"), "did you mean 'failed'?"),
        (("gate", "latest", "--baseline", "latest", "--inconclusive", "pas"), "did you mean 'pass'?"),
        (("gate", "latest", "--baseline", "latest", "--margin", "abc"), "Fix: write 2% or 0.02"),
        (("gate", "latest", "--baseline", "latest", "--margin", "-2%"), "a margin must be 0 or more, got -2%"),
        (("gate", "latest", "--fail-under", "1", "--max-missing", "abc"), "Fix: write 10%, 0.1 or a number of samples"),
        (("compare", "latest", "exam", "--min-difference", "abc"), "Fix: write 1% or 0.01"),
        (("compare", "latest", "exam", "--min-difference", "200%"), "less than 1, got 200%"),
        (("gate", "latest", "--fail-under", "1", "--max-missing", "300%"), "from 0% to 100%, got 300%"),
        (("gate", "latest", "--fail-under", "abc"), "error: --fail-under must be a number such as 0.8 or 80%"),
        (("rank", "latency_ms.p95", "latest"), "latency_ms.p95 has no value per sample, so it cannot be ranked"),
        (("run", "eval.yaml", "--map", "a=b"), "'b' is not a field"),
        (("run", "eval.yaml", "--retry-errors"), "error: --retry-errors needs --resume"),
        (("compare", "latest", "exam", "--flips", "-3"), "--flips must be an integer, 0 or more, got -3"),
        (("submit", "eval.yaml", "--sample", "q1"), "--sample is an option of `proctor run`; proctor submit --help"),
        (("view", "--port", "99999"), "Fix: write --port 8700"),
        (("view", "--history", "nosuch.db"), "history not found: nosuch.db\nFix: check the path; `proctor runs` lists"),
        (("view", "--history", ".proctor/histroy.db"), "Fix: did you mean '.proctor/history.db'?"),
        (("gate", "latest", "--baseline", "exma"), "unknown baseline or run 'exma'\nFix: did you mean 'exam'?"),
        (("gate", "latest", "--baseline", "x"), "to use the latest run (exam): proctor baseline set x 2"),
        (("gate", "latest", "--fail-under", "1", "--require-card", "2"), "Fix: write --require-card 0.6"),
        (("gate", "eval.ymal", "--baseline", "exam"), "unknown run 'eval.ymal'\nFix: did you mean 'eval.yaml'?"),
        (("show", "eval.yaml"), "this is a file; run it, and name the run that it stores: proctor run eval.yaml"),
        (("plan",), "Fix: write proctor plan latest, or proctor plan --pass-rate 80%"),
        (("plan", "latest", "--baseline", "exam"), "two runs are named, latest and --baseline exam"),
        (("models", "list", "minilm"), "proctor models pull minilm"),
        (("init", "app.py"), "'app.py' is a file"),
    ],
)
def test_an_error_suggests_a_value_that_fits(
    project: Project, run_id: str, args: tuple[str, ...], message: str
) -> None:
    """The suggestion is for this option: 80% would be a useless margin."""
    project.write("app.py", "x = 1\n")
    result = project.proctor(*args)
    assert result.code == 2, run_id
    assert message in result.err + result.out


def test_a_history_in_a_missing_place_has_a_fix(project: Project) -> None:
    """No raw error of the operating system."""
    project.write("taken", "x")
    result = project.proctor("run", "eval.yaml", "-q", "--history", "taken/h.db")
    assert result.code == 3
    assert "[Errno" not in result.err
    assert "Fix: " in result.err


def test_a_viewer_of_an_empty_history_says_how_to_fill_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts, because a first run may follow; without a browser, it says so."""
    monkeypatch.setattr("proctor.cli.view.make_server", lambda *_: SimpleNamespace(run=lambda sockets: None))
    monkeypatch.setattr("webbrowser.get", Mock(side_effect=webbrowser.Error))
    result = project.proctor("view", "--open", "--port", "0")
    assert result.code == 0
    assert "no runs in .proctor/history.db; `proctor run eval.yaml` stores one" in result.out
    assert "The viewer shows a run as soon as it starts." in result.out
    assert "warning: no browser found. Fix: open the address above in a browser" in result.err


@each_row("command", ["w3m", "/usr/bin/lynx", "links", "elinks", "www-browser"])
def test_a_viewer_does_not_open_a_browser_in_the_terminal(
    command: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.cli.view.make_server", lambda *_: SimpleNamespace(run=lambda sockets: None))
    monkeypatch.setattr("webbrowser.get", lambda: webbrowser.GenericBrowser(command))
    monkeypatch.setattr("webbrowser.GenericBrowser.open", Mock(side_effect=AssertionError))
    assert "warning: no browser found." in project.proctor("view", "--open", "--port", "0").err


def test_a_viewer_answers_while_the_command_of_a_browser_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BROWSER may be a script that opens the address elsewhere, as in a remote editor."""
    is_serving, is_opened = threading.Event(), threading.Event()
    opened = []

    def open_address(_: webbrowser.GenericBrowser, address: str) -> bool:
        opened.append((address, is_serving.wait(60)))
        is_opened.set()
        return True

    def serve(sockets: object) -> None:
        is_serving.set()
        assert is_opened.wait(60)

    monkeypatch.setattr("webbrowser.get", lambda: webbrowser.GenericBrowser("/editor/browser.sh"))
    monkeypatch.setattr("webbrowser.GenericBrowser.open", open_address)
    monkeypatch.setattr("proctor.cli.view.make_server", lambda *_: SimpleNamespace(run=serve))
    result = project.proctor("view", "--open", "--port", "0")
    assert (result.code, result.err) == (0, "")
    assert opened == [(result.out.splitlines()[1], True)]


def test_a_plan_names_its_run_as_other_commands_do(project: Project) -> None:
    """`proctor plan RUN` is `proctor plan --baseline RUN`, and asks for samples if there are too few."""
    rows = [f'{{"id": "{i}", "input": "{"ab"[i % 2]}", "expected": "A"}}\n' for i in range(12)]
    project.write("data.jsonl", "".join(rows))
    project.proctor("run", "eval.yaml", "-q")
    plans = [project.proctor("plan", *run, "--margin", "20%", "--json") for run in (["exam"], ["--baseline", "exam"])]
    assert plans[0].json["cheapest"]["samples"] > 12
    assert plans[0] == plans[1]
    project.proctor("run", "eval.yaml", "-q", "--limit", "1")
    error = project.proctor("plan", "latest").err
    assert "verdicts on 1 sample; fewer than 10 do not show how much samples differ\nFix: run at least 10" in error
