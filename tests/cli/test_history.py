"""`proctor runs` as a query, and `proctor history`: prune, trend, export, import, info."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from inline_snapshot import snapshot

from proctor import SQLiteHistory
from proctor.cli.filters import parse_date
from proctor.errors import ConfigError
from proctor.records.metric import MetricValue
from tests.cli.project import Project
from tests.history.history_contract import make_result, make_run, run_ids, store_run

NOW = datetime.now(UTC)
WHERE = ".proctor/history.db"


def kept(project: Project, run_id: str, name: str = "exam", *, days: float = 0, value: float = 0.5) -> SQLiteHistory:
    """Store a run that began this number of days ago in the project's history."""
    history = SQLiteHistory(project.folder / WHERE)
    run = msgspec.structs.replace(
        make_run(run_id, name, tags={"branch": "main" if days < 10 else "old"}),
        started_at=NOW - timedelta(days=days),
        status="completed",
    )
    store_run(history, run, [make_result("a", value), make_result("b", value)])
    metric = MetricValue(value, 2, interval=(value / 2, (1 + value) / 2), kind="rate")
    history.finish(run, {"mean_score": metric}, {})
    return history


@pytest.fixture
def month(project: Project) -> SQLiteHistory:
    """Runs of today, of 5, 20 and 40 days ago, and one of another name."""
    kept(project, "other", "quiz", days=3)
    for number, days in enumerate((40, 20, 5, 0)):
        history = kept(project, f"r{days}", days=days, value=0.5 + number / 10)
    return history


def listed(project: Project, *options: str) -> list[str]:
    return [run["run_id"] for run in project.proctor("runs", "--json", *options).json]


def test_runs_are_selected_by_filters(project: Project, month: SQLiteHistory) -> None:
    """By name, evaluator, configuration, dates and tags; all must hold; pages are turned."""
    assert listed(project) == ["r0", "other", "r5", "r20", "r40"]
    assert listed(project, "--name", "exam") == ["r0", "r5", "r20", "r40"]
    assert listed(project, "--since", "7d") == ["r0", "other", "r5"]
    assert listed(project, "--since", "24h") == ["r0"]
    assert listed(project, "--until", "7d", "--name", "exam") == ["r20", "r40"]
    assert listed(project, "--tag", "branch=old", "--since", "30d") == ["r20"]
    assert listed(project, "--evaluator", "exact", "--limit", "2", "--offset", "1") == ["other", "r5"]
    assert listed(project, "--evaluator", "exact_match", "--limit", "1") == ["r0"]
    assert listed(project, "--configuration", "large") == []
    day = (NOW - timedelta(days=20)).date().isoformat()
    assert listed(project, "--since", f"{day}T00:00Z", "--until", f"{day}T23:59:59.999999Z") == ["r20"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--name", "exma"), "no run is named 'exma'; did you mean 'exam'?\n"),
        (("--evaluator", "exat"), "no run has the evaluator 'exat'; did you mean 'exact'?\n"),
        (("--configuration", "defalt"),
         "no run has the configuration 'defalt'; did you mean 'default'?\n"),
        (("--until", "100d"), "no run matches; `proctor runs` lists all runs\n"),
        (("--offset", "9"), "no run matches; `proctor runs` lists all runs\n"),
    ],
)  # fmt: skip
def test_the_reason_why_no_run_matches_is_shown(
    project: Project, month: SQLiteHistory, options: tuple[str, ...], message: str
) -> None:
    """A misspelt name gets a suggestion; an empty history has its own message."""
    assert project.proctor("runs", *options).out == message
    empty = project.proctor("runs", "--history", "none.db", *options)
    command = "`proctor run eval.yaml --history none.db` stores one"
    assert empty.out == f"no runs in none.db; {command}, `proctor init` writes an eval file\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--since", "yesterday"), "--since: 'yesterday' is not a date"),
        (("--until", "2026-13-01"), "--until: '2026-13-01' is not a date"),
        (("--since", "99999999999d"), "is not a date"),
        (("--until", "9999-12-31"), "is not a date"),
        (("--since", "2026-02-01", "--until", "2026-01-01"), "--since 2026-02-01 is after --until"),
        (("--tag", "branch"), "must be KEY=VALUE"),
        (("--limit", "-1"), "--limit must be"),
    ],
)
def test_invalid_settings_are_rejected(project: Project, options: tuple[str, ...], message: str) -> None:
    """With how it is written."""
    result = project.proctor("runs", *options)
    assert (result.code, message in result.err) == (2, True)


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine nine hours east."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_dates_without_a_zone_are_local() -> None:
    """A day begins at midnight here, and its last moment is a microsecond before the next."""

    def parse(text: str, *, last: bool = False) -> str:
        return parse_date(text, NOW, "--since", is_end=last).astimezone(UTC).isoformat()

    assert os.environ["TZ"] == "Asia/Tokyo"
    assert parse("2026-01-31") == "2026-01-30T15:00:00+00:00"
    assert parse("2026-01-31", last=True) == "2026-01-31T14:59:59.999999+00:00"
    assert parse("2026-01-31T14:30") == "2026-01-31T05:30:00+00:00"
    assert parse("2026-01-31 14:30", last=True) == "2026-01-31T05:30:00+00:00"
    assert parse("2026-01-31T14:30Z") == "2026-01-31T14:30:00+00:00"
    assert parse("2026-01-31T14:30+02:00") == "2026-01-31T12:30:00+00:00"
    assert parse_date("2d", NOW, "--since") == NOW - timedelta(days=2)
    assert parse_date("5m", NOW, "--since") == NOW - timedelta(minutes=5)
    assert parse_date("36h", NOW, "--until", is_end=True) == NOW - timedelta(hours=36)
    with pytest.raises(ConfigError):
        parse_date("7 d", NOW, "--since")


def test_baselines_are_shown_among_the_tags(project: Project, month: SQLiteHistory) -> None:
    """The list of runs shows the name of the baseline."""
    month.set_baseline("main", "r0")
    assert "baseline:main" in "".join(project.proctor("runs", "--limit", "1").out.split())


def test_prune_deletes_what_neither_limit_keeps(project: Project, month: SQLiteHistory) -> None:
    """A dry run deletes nothing; baselines and running runs stay, with the reason."""
    month.set_baseline("main", "r40")
    dry = project.proctor("history", "prune", "--days", "10", "--dry-run")
    assert dry.out == snapshot("""\
would delete 1 run: r20 (exam)
kept although it is old: r40 (the baseline main)
""")
    assert len(month.runs()) == 5
    with month.claim("r20"):
        result = project.proctor("history", "prune", "--count", "1", "--yes")
    assert result.out == snapshot("""\
deleted 1 run: r5 (exam)
kept although it is old: r20 (a process is working on it)
kept although it is old: r40 (the baseline main)
""")
    assert run_ids(month.runs()) == ["r0", "other", "r20", "r40"]
    repeated = project.proctor("history", "prune", "--days", "1", "--count", "2", "--yes", "--json")
    assert repeated.json == {
        "dry_run": False, "deleted": [], "outputs": 0, "kept": {"r40": "the baseline main"}
    }  # fmt: skip
    named = project.proctor("history", "prune", "--days", "1", "--name", "quiz", "--yes")
    assert named.out == "deleted 1 run: other (quiz)\n"
    wrong = project.proctor("history", "prune", "--days", "1", "--name", "exan", "--yes")
    assert wrong.out == "no run is named 'exan'; did you mean 'exam'?\n"


def test_prune_asks_first(project: Project, month: SQLiteHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answering no, or not answering, keeps everything; without a limit there is no limit is set."""
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    result = project.proctor("history", "prune", "--count", "3")
    assert result.out.startswith("Delete 1 run: r40 (exam)? [y/N]")
    assert result.out.endswith("[y/N]: nothing was deleted\n")
    assert len(month.runs()) == 5
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    for args in (("history", "prune", "--count", "3"), ("delete", "r0")):
        silent = project.proctor(*args)
        assert (silent.code, "no confirmation was given, so nothing was done" in silent.err) == (2, True)
        as_json = project.proctor(*args, "--json")
        assert (as_json.code, as_json.out, "add --yes" in as_json.err) == (2, "", True)
    assert len(month.runs()) == 5
    refused = project.proctor("history", "prune")
    assert (refused.code, "--days N, --count N" in refused.err) == (2, True)
    for option in ("--days", "--count"):
        assert project.proctor("history", "prune", option, "0").code == 2


def test_prune_deletes_no_more_than_it_showed(
    project: Project, month: SQLiteHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that start, or become a baseline, during the question are kept."""

    class Answer(io.StringIO):
        def readline(self, *_: Any) -> Any:
            kept(project, "late")
            month.set_baseline("main", "r20")
            return "y\n"

    monkeypatch.setattr("sys.stdin", Answer())
    result = project.proctor("history", "prune", "--count", "2")
    assert result.out.startswith("Delete 2 runs: r20 (exam), r40 (exam)? [y/N]")
    assert result.out.endswith("""\
deleted 1 run: r40 (exam)
kept although it is old: r20 (the baseline main)
""")
    assert run_ids(month.runs()) == ["late", "r0", "other", "r5", "r20"]


def test_outputs_in_the_cache_are_deleted_on_demand(project: Project) -> None:
    """All of them, or the older ones; deleting a run keeps them, and `info` counts them."""
    history = kept(project, "r0")
    with history.writer("r0") as writer:
        for days in (0, 10, 40):
            moment = NOW - timedelta(days=days)
            writer.cache_output(f"{days} days", moment.isoformat(), b"patient John")
    prune = ("history", "prune", "--cache")
    dry = project.proctor(*prune, "--days", "30", "--dry-run").out
    assert dry == "would delete 1 cached output\n"
    assert project.proctor(*prune, "--days", "30", "--yes").out == "deleted 1 cached output\n"
    assert history.get_cached_output("40 days") is None
    project.proctor("delete", "r0", "--yes")
    assert ", 2 cached outputs, " in project.proctor("history", "info").out
    assert b"patient John" in (project.folder / WHERE).read_bytes()
    assert project.proctor(*prune, "--yes", "--json").json["outputs"] == 2
    history.close()
    left = [file for file in (project.folder / ".proctor").iterdir() if file.is_file()]
    assert not [file for file in left if b"patient" in file.read_bytes()]
    assert project.proctor(*prune, "--yes").out == "nothing to delete\n"
    assert project.proctor(*prune, "--name", "exam").code == 2


def test_several_configurations_have_no_rate_together(project: Project) -> None:
    """The lowest and the highest are listed, not the mean of what are different systems."""
    history = SQLiteHistory(project.folder / WHERE)
    for run_id, rates in (("far", (0.5, 0.97, 0.74)), ("same", (0.5, 0.5)), ("none", (None, None))):
        names = [f"c{number}" for number in range(len(rates))]
        run = msgspec.structs.replace(make_run(run_id, configurations=names), status="completed")
        store_run(history, run, [make_result("a", configuration="c0")])
        tables = {n: {"pass_rate": MetricValue(rate, 2)} for n, rate in zip(names, rates, strict=True)}
        history.finish(run, {"pass_rate": MetricValue(0.7, 2)}, tables)
    result = {row.split()[0]: row for row in project.proctor("runs").out.splitlines()}
    assert " 50.0% … 97.0% " in result["far"]
    assert " 50.0% " in result["same"]
    assert " — " in result["none"]


@pytest.mark.parametrize("where", ["mysql://bob:hunter2@127.0.0.1/x", "sqlite:///tmp/q.db"])
def test_an_address_that_no_history_has_is_refused(
    project: Project, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would become a folder, with the password in its name."""
    before = sorted(project.folder.iterdir())
    for args in (("runs", "--history", where), ("run", "-q", "--history", where)):
        result = project.proctor(*args)
        assert (result.code, "unsupported URL" in result.err) == (2, True)
        assert "hunter2" not in result.out + result.err
    monkeypatch.setenv("PROCTOR_HISTORY", where)
    assert project.proctor("history", "info").code == 2
    assert sorted(project.folder.iterdir()) == before


def test_names_from_files_do_not_move_the_cursor(project: Project) -> None:
    """Wherever they are shown: on import, before and after a deletion, as a baseline."""
    evil = "ex\x1b[2Jam"
    kept(project, "r0", evil).set_baseline(evil, "r0")
    project.proctor("history", "export", "runs.jsonl")
    for args in (
        ("history", "import", "runs.jsonl", "--history", "new.db"),
        ("history", "import", "runs.jsonl"),
        ("history", "prune", "--days", "1", "--dry-run"),
        ("runs", "--name", "unknown"),
        ("baseline", "set", "main", "r0"),
        ("baseline", "drop", "main"),
        ("delete", "r0", "--yes"),
    ):
        result = project.proctor(*args)
        assert result.code == 0
        assert "\x1b" not in result.out, args


def test_many_runs_are_listed_briefly(project: Project) -> None:
    """Ten by name and how many more."""
    for number in range(13):
        history = kept(project, f"r{number:02}", days=number + 1)
    result = project.proctor("history", "prune", "--count", "1", "--dry-run").out
    assert result.startswith("would delete 12 runs: r01 (exam), ")
    assert result.endswith("r10 (exam), … and 2 more\n")
    assert len(history.runs()) == 13


def test_a_trend_is_shown_drawn_and_given_as_data(project: Project, month: SQLiteHistory) -> None:
    """Blocks in the terminal, a table, a picture, JSON."""
    result = project.proctor("history", "trend", "mean_score", "--name", "exam", "--svg", "out/t.svg")
    heading, line = result.out.splitlines()[1:]
    assert result.out.startswith("wrote out/t.svg\nmean_score, 4 runs, ")
    assert heading.startswith("mean_score, 4 runs, ")
    assert line == snapshot("default  ▁▃▆█  50.0% → 80.0%  min 50.0%  max 80.0%  4 runs")
    assert ET.parse(project.folder / "out" / "t.svg").getroot().tag.endswith("svg")
    table = project.proctor("history", "trend", "mean_score", "--table", "--since", "7d").out
    assert [text.split()[2] for text in table.splitlines()[-3:]] == ["r5", "other", "r0"]
    data = project.proctor("history", "trend", "mean_score", "--json", "--tag", "branch=old").json
    assert [point["value"] for point in data["points"]] == [0.5, 0.6]
    assert data["kind"] == "rate"


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("mean_scor",), 2, "did you mean 'mean_score'?"),
        (("mean_score", "--configuration", "defalt"), 2, "did you mean 'default'?"),
        (("mean_score", "--name", "exma"), 0, "no run is named 'exma'; did you mean 'exam'?"),
        (("mean_score", "--until", "99d"), 0, "no run matches"),
    ],
)
def test_a_trend_of_nothing_says_why(
    project: Project, month: SQLiteHistory, args: tuple[str, ...], code: int, message: str
) -> None:
    """Misspelt, or nothing fits."""
    result = project.proctor("history", "trend", *args)
    assert (result.code, message in result.out + result.err) == (code, True)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_runs_go_out_and_come_in(project: Project, month: SQLiteHistory, ending: str) -> None:
    """All, chosen or named; into another history, where they are the same."""
    file = f"runs.{ending}"
    month.set_baseline("main", "r0")
    assert project.proctor("history", "export", file).out == f"wrote 5 runs to {file}\n"
    result = project.proctor("history", "import", file, "--history", "new.db")
    assert result.out.splitlines() == [
        "imported run r40 (exam), 2 results", "imported run r20 (exam), 2 results",
        "imported run r5 (exam), 2 results", "imported run other (quiz), 2 results",
        "imported run r0 (exam), 2 results", "  baseline main now points to this run",
    ]  # fmt: skip
    assert project.proctor("runs", "--history", "new.db").out == project.proctor("runs").out
    repeated = project.proctor("history", "import", file, "--history", "new.db", "--json").json
    assert [run["new"] for run in repeated["runs"]] == [False] * 5
    some = project.proctor("history", "export", file, "--name", "exam", "--since", "7d", "--json")
    assert some.json == {"file": file, "format": ending, "runs": ["r5", "r0"]}
    named = project.proctor("history", "export", file, "baseline:main", "r0", "quiz")
    assert named.out == f"wrote 2 runs to {file}\n"


def test_what_cannot_be_exported_is_refused(project: Project, month: SQLiteHistory) -> None:
    """And no file is written; runs at work are left out, or refused if they were named."""
    for args, message in [
        (("out.txt",), "unknown file extension"),
        (("out.csv", "nothing"), "unknown run 'nothing'"),
        (("out.csv", "--name", "exma"), "did you mean 'exam'?"),
        (("out.csv", "r0", "--name", "exam"), "run names and filters cannot be combined"),
        (("out.csv", "--history", "none.db"), "no runs in"),
    ]:
        result = project.proctor("history", "export", *args)
        assert (result.code, message in result.err) == (2, True), result
    with month.claim("r0"):
        assert "r0 is still running" in project.proctor("history", "export", "out.csv", "r0").err
        only = project.proctor("history", "export", "out.csv", "--since", "1h")
        assert (only.code, "skipped: run r0 (exam)" in only.err) == (2, True)
        assert not (project.folder / "out.csv").exists()
        rest = project.proctor("history", "export", "out.csv")
        assert rest.out == "wrote 4 runs to out.csv\n"
    result = project.proctor("history", "export", "out.csv/x.csv")
    assert (result.code, "cannot write the file" in result.err) == (2, True)


def test_what_cannot_be_imported_is_refused(project: Project, month: SQLiteHistory) -> None:
    """With file and line; another run under the same id, too."""
    project.proctor("history", "export", "runs.jsonl", "r0")
    text = (project.folder / "runs.jsonl").read_text()
    project.write("runs.jsonl", text.replace('"name":"exam"', '"name":"exom"'))
    result = project.proctor("history", "import", "runs.jsonl")
    assert result.code == 2
    assert result.err == snapshot("""\
error: runs.jsonl:1: the history has a different run r0; they differ in its metadata
Fix: to replace the stored run, delete it and import again: proctor delete r0
""")
    project.write("runs.jsonl", text.splitlines()[0])
    cut = project.proctor("history", "import", "runs.jsonl", "--history", "new.db")
    assert "runs.jsonl:1: the file is damaged" in cut.err
    assert project.proctor("history", "import", "none.jsonl").code == 2
    project.write("export.txt", text)
    assert project.proctor("history", "import", "export.txt", "--format", "jsonl").out == (
        "already stored: run r0 (exam), 2 results\n"
    )


def test_a_baseline_name_that_is_taken_is_mentioned(project: Project, month: SQLiteHistory) -> None:
    """It stays with the run it has here."""
    month.set_baseline("main", "r0")
    project.proctor("history", "export", "runs.csv", "r0")
    month.set_baseline("main", "r5")
    result = project.proctor("history", "import", "runs.csv")
    assert result.out.endswith("  baseline main already points to another run; add --move-baselines to replace it\n")
    moved = project.proctor("history", "import", "runs.csv", "--move-baselines")
    assert moved.out.endswith("  baseline main now points to this run (previously: r5)\n")
    assert month.baseline("main").run_id == "r0"


def test_info_says_where_and_how_much(project: Project, month: SQLiteHistory) -> None:
    """Looking at a history that is not there makes none."""
    index, values = project.proctor("history", "info").out.splitlines()
    assert index == WHERE
    assert values.startswith("5 runs, 10 results, 0.")
    empty = project.proctor("history", "info", "--history", "none.db").out
    assert empty == "none.db\nempty: the first run creates it\n"
    assert not Path("none.db").exists()
    assert project.proctor("history", "info", "--json").json["runs"] == 5


def test_a_misspelt_subcommand_is_recognised(project: Project) -> None:
    """The nearest is named; every subcommand has help."""
    assert "did you mean 'prune'?" in project.proctor("history", "prnue").err
    for name in ("prune", "trend", "export", "import", "info"):
        result = project.proctor("history", name, "--help")
        assert result.out.startswith(f"Usage: proctor history {name}")
    assert json.loads(project.proctor("runs", "--json").out) == []


def test_an_eval_file_says_how_long_its_runs_are_kept(project: Project) -> None:
    """After each run, older runs of this name are deleted; mistakes are reported."""
    old = kept(project, "old", days=5)
    kept(project, "quiz", "quiz", days=500)
    text = (project.folder / "eval.yaml").read_text()
    project.write("eval.yaml", f"{text}history: {{retention_count: 2}}\n")
    for _ in range(3):
        assert project.proctor("run", "-q").code == 0
    assert [run.name for run in old.runs()] == ["exam", "exam", "quiz"]
    project.write("eval.yaml", f"{text}history: {{retention_days: 0}}\n")
    result = project.proctor("run", "-q")
    assert (result.code, "greater than 0" in result.err) == (2, True)


def test_an_eval_module_says_it_too(project: Project) -> None:
    """As a mapping; whatever else it may call history is its own affair."""
    text = "name = 'exam'\ndataset = 'data.jsonl'\ntarget = 'app.py:shout'\n"
    text += "evaluators = ['contains']\n"
    history = kept(project, "old", days=5)
    project.write("e1.py", f"{text}history = {{'retention_days': 2.5}}\n")
    assert project.proctor("run", "e1.py", "-q").code == 0
    assert "old" not in run_ids(history.runs())
    project.write("e2.py", f"{text}history = [1, 2]\n")
    assert project.proctor("run", "e2.py", "-q").code == 0
    project.write("e3.py", f"{text}history = {{'days': 2}}\n")
    result = project.proctor("run", "e3.py", "-q")
    assert (result.code, "unknown key 'days'" in result.err) == (2, True)
