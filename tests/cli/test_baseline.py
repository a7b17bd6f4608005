"""`proctor baseline`, and baselines wherever a run is named."""

from __future__ import annotations

import io
import re
import sqlite3

import msgspec
import pytest
from inline_snapshot import snapshot

from proctor import SQLiteHistory
from proctor.errors import RunNotFound
from tests.cli.project import Project
from tests.history.history_contract import make_failure, make_result, make_run, store_run


@pytest.fixture
def history(project: Project) -> SQLiteHistory:
    """Three runs: two that came to their end, and one that was killed."""
    created = SQLiteHistory(project.folder / ".proctor/history.db")
    for number, run_id in enumerate(("r1", "r2", "killed")):
        run = make_run(run_id, hours=number)
        store_run(created, run, [make_result("a"), make_result("b", 0.0)])
        if run_id != "killed":
            created.finish(msgspec.structs.replace(run, status="completed"), {}, {})
    return created


def test_a_baseline_is_set_listed_moved_and_dropped(project: Project, history: SQLiteHistory) -> None:
    """Each command prints what it did."""
    assert project.proctor("baseline", "list").out == (
        "no baselines yet; `proctor baseline set NAME RUN` creates one\n"
    )
    assert project.proctor("baseline", "set", "main", "r1").out == ("baseline main now points to run r1 (exam)\n")
    assert project.proctor("baseline", "set", "main", "r1").out == ("baseline main now points to run r1 (exam)\n")
    assert project.proctor("baseline", "set", "main", "r2").out == snapshot("""\
baseline main now points to run r2 (exam)
previously: r1 (exam)
""")
    assert project.proctor("baseline", "list").out == snapshot("""\
baseline  run  name  status     results  pass rate  errors
main      r2   exam  completed        2      50.0%     0/2
""")
    assert project.proctor("baseline", "drop", "main").out == (
        "deleted the baseline main; run r2 (exam) is still stored\n"
    )
    assert len(history.runs()) == 3


def test_programs_get_json(project: Project, history: SQLiteHistory) -> None:
    """From every step."""
    result = project.proctor("baseline", "set", "main", "r1", "--json").json
    assert result == {"name": "main", "run_id": "r1", "before": None, "missing": 0}
    assert project.proctor("baseline", "set", "main", "r2", "--json").json["before"] == "r1"
    assert project.proctor("baseline", "list", "--json").json["main"]["run_id"] == "r2"
    dropped = project.proctor("baseline", "drop", "main", "--json").json
    assert dropped == {"dropped": "main", "run_id": "r2"}
    assert project.proctor("baseline", "list", "--json").json == {}


def test_a_run_without_an_end_is_no_baseline(project: Project, history: SQLiteHistory) -> None:
    """An interrupted run becomes a baseline only with --force."""
    result = project.proctor("baseline", "set", "main", "latest")
    assert (result.code, history.baselines()) == (2, {})
    assert result.err == snapshot("""\
error: run killed is interrupted; a baseline must be a complete run
Fix: resume it: proctor run eval.yaml --resume killed, or add --force
""")
    assert project.proctor("baseline", "set", "main", "latest", "--force").code == 0
    assert history.baseline("main").run_id == "killed"


def test_a_run_without_any_verdict_is_no_baseline(project: Project, history: SQLiteHistory) -> None:
    """All of it failed, so nothing can be compared with it; unless one insists."""
    run = msgspec.structs.replace(make_run("boom", hours=9), status="completed")
    store_run(history, run, [make_failure("a"), make_result("b", None)])
    result = project.proctor("baseline", "set", "main", "boom")
    assert (result.code, "no result of run boom has a verdict" in result.err) == (2, True)
    assert project.proctor("baseline", "set", "main", "boom", "--force").code == 0


def test_a_run_with_many_errors_is_no_baseline(project: Project, history: SQLiteHistory) -> None:
    """With --max-missing 10% and 2 of 12 results missing the old baseline stays; 1 of 10 is allowed."""
    history.set_baseline("main", "r1")
    for number, (run_id, errors, judged) in enumerate((("bad", 2, 10), ("good", 1, 9))):
        run = make_run(run_id, hours=9 + number)
        results = [make_failure(f"e{n}") for n in range(errors)] + [make_result(f"s{n}") for n in range(judged)]
        store_run(history, run, results)
        history.finish(msgspec.structs.replace(run, status="completed"), {}, {})
    limit = ("--max-missing", "10%")
    result = project.proctor("baseline", "set", "main", "bad", *limit)
    assert (result.code, history.baseline("main").run_id) == (2, "r1")
    assert "2 of 12 results of run bad have no verdict, more than --max-missing 10%" in result.err
    assert "proctor show bad --outcome error; or add --force" in result.err
    assert project.proctor("baseline", "set", "main", "good", *limit).code == 0
    assert project.proctor("baseline", "set", "main", "bad", *limit, "--force").code == 0
    assert "2/12" in project.proctor("baseline", "list").out


def test_a_baseline_with_the_name_of_a_run_is_mentioned(project: Project, history: SQLiteHistory) -> None:
    """The bare name is the run's; with the word before it, it is the baseline."""
    result = project.proctor("baseline", "set", "exam", "r1")
    assert "a run is also named exam: write baseline:exam for the baseline" in result.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("set", "main", "r9"), "unknown run 'r9'"),
        (("set", "latest", "r1"), "'latest' cannot be the name of a baseline"),
        (("set", "a@b", "r1"), "'a@b' cannot be the name of a baseline"),
        (("drop", "mian"), "did you mean 'main'?"),
        (("lst",), "did you mean 'list'?"),
    ],
)
def test_misspelt_names_get_a_suggestion(
    project: Project, history: SQLiteHistory, args: tuple[str, ...], message: str
) -> None:
    """Misspelt runs, baselines and commands come with the nearest."""
    history.set_baseline("main", "r1")
    result = project.proctor("baseline", *args)
    assert (result.code, message in result.err) == (2, True)


def test_a_baseline_stands_wherever_a_run_is_named(project: Project, history: SQLiteHistory) -> None:
    """show, rescore, export and delete; a misspelt one comes with the nearest."""
    history.set_baseline("main", "r1")
    assert project.proctor("show", "baseline:main", "--json").json["run_id"] == "r1"
    assert project.proctor("show", "main", "--json").json["run_id"] == "r1"
    repeated = project.proctor("rescore", "baseline:main", "-e", "contains", "--json").json
    assert repeated["metadata"]["rescored_from"] == "r1"
    result = project.proctor("history", "export", "x.jsonl", "baseline:main", "--json").json
    assert result["runs"] == ["r1"]
    wrong = project.proctor("show", "baseline:mian")
    assert (wrong.code, "did you mean 'main'?" in wrong.err) == (2, True)
    assert project.proctor("delete", "baseline:main", "--yes").code == 0


def test_delete_tells_which_baselines_go(
    project: Project, history: SQLiteHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it asks, and afterwards."""
    history.set_baseline("main", "r1")
    history.set_baseline("alpha", "r1")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    options = project.proctor("delete", "r1", "r2").out
    assert options.startswith('Delete run r1 (exam; baseline "alpha"; baseline "main"), r2 (exam)? [y/N]')
    assert len(history.baselines()) == 2
    result = project.proctor("delete", "r1", "r2", "--yes")
    assert result.out == snapshot("""\
deleted run r1 (exam), r2 (exam)
the baseline alpha was deleted with its run
the baseline main was deleted with its run
""")
    history.set_baseline("main", "killed")
    gone = project.proctor("delete", "killed", "--yes", "--json").json
    assert gone == {"deleted": ["killed"], "baselines": ["main"]}


def test_a_rescoring_of_an_incomplete_run_is_incomplete_too(project: Project) -> None:
    """It is no baseline and passes no gate, with the way to complete it; `proctor runs` shows what is missing."""
    project.proctor("run", "-q", "--on-error", "raise", "--concurrency", "1", "--name", "half")
    assert project.proctor("rescore", "half", "-e", "contains", "-q", "--name", "again").code == 0
    assert "4 of 5" in project.proctor("runs", "--name", "again").out
    refused = project.proctor("baseline", "set", "main", "again")
    assert (refused.code, "a baseline must be a complete run" in refused.err) == (2, True)
    assert re.search(r"Fix: resume run \S+ and rescore it, or add --force", refused.err)
    gate = project.proctor("gate", "again", "--fail-under", "0.1")
    assert (gate.code, "failed, with 4 of 5 results; a gate needs a complete run" in gate.err) == (3, True)
    assert "; then rescore it" in gate.err


def test_missing_values_of_several_epochs_are_trials(project: Project) -> None:
    """The target fails on one of five samples, in each of two epochs."""
    project.proctor("run", "eval.yaml", "-q", "--epochs", "2")
    out = project.proctor("baseline", "set", "main", "latest").out
    assert "warning: 2 of 10 trials have no value of" in out


def test_fixes_of_a_history_can_be_typed(project: Project, history: SQLiteHistory) -> None:
    """An unknown baseline and damaged metrics name the baseline and the run, not a placeholder."""
    with pytest.raises(RunNotFound, match=r"Fix: set it to the latest run: proctor baseline set 'a b' latest$"):
        history.baseline("a b")
    with sqlite3.connect(project.folder / ".proctor/history.db") as connection:
        connection.execute("UPDATE runs SET metrics = ?", (b"{",))
    connection.close()
    assert "or delete the run: proctor delete r1\n" in project.proctor("show", "r1").err
