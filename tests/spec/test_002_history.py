"""The field spec: runs that are kept, found again, and deleted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from proctor import Definition, SQLiteHistory, define
from proctor.errors import ConfigError
from proctor.records.run import RunMetadata
from tests.history.history_contract import make_run
from tests.history.test_query_growth import fill
from tests.spec.clauses import clause
from tests.spec.spans import GOOD, SPAN, agent, half, passes

BOTH: dict[str, Any] = {"low": {"temperature": 0.3}, "high": {"temperature": 1.0}}


def checks_in(folder: Path, name: str = "chat", **terms: Any) -> Definition:
    """A definition that keeps its runs in a folder."""
    checks = define(name).select("usage.total_tokens", as_="tokens")
    return checks.evaluate_field("output", half).history(where=folder / "history.db", **terms)


def with_runs_aged(folder: Path, *days: float) -> None:
    """Runs of the definition "chat" that began these numbers of days ago; each is named by its age."""
    history = SQLiteHistory(folder / "history.db")
    for age in sorted(days, reverse=True):
        began = datetime.now(UTC) - timedelta(days=age)
        run = RunMetadata(f"{age:g}-days", "chat", began, status="completed", finished_at=began)
        history.begin(run)
        history.finish(run, {}, {})


def kept_in(folder: Path) -> list[str]:
    runs = SQLiteHistory(folder / "history.db").runs(limit=1000)
    return [run.run_id for run in runs]


@clause("002.HISTORY.1", "Automatic Historical Storage")
def test_a_run_is_stored_when_it_is_complete(tmp_path: Path) -> None:
    """Every evaluation is in the database as soon as it returns."""
    checks = checks_in(tmp_path)
    for expected in (1, 2):
        run_id = checks.evaluate(SPAN).run_id
        assert kept_in(tmp_path)[0] == run_id
        assert len(kept_in(tmp_path)) == expected


@clause("002.HISTORY.2", "Automatic Historical Storage")
def test_without_auto_save_nothing_is_stored(tmp_path: Path) -> None:
    """`auto_save=False`, or no `history` at all, leaves no run behind."""
    checks_in(tmp_path, auto_save=False).evaluate(SPAN)
    assert kept_in(tmp_path) == []


@clause("002.HISTORY.3", "Automatic Historical Storage")
def test_a_stored_run_has_its_configurations(tmp_path: Path) -> None:
    """The names and options of configurations are stored with the run."""
    checks = checks_in(tmp_path)
    checks.evaluate(SPAN, target=agent, configurations=BOTH)
    (stored,) = checks.history.last()
    assert stored.metadata is not None
    options = {configuration.name: configuration.options for configuration in stored.metadata.configurations}
    assert options == {"low": {"temperature": 0.3}, "high": {"temperature": 1.0}}


@clause("002.HISTORY.4", "Automatic Historical Storage")
def test_a_stored_run_has_its_field_values(tmp_path: Path) -> None:
    """The values of selected fields are read from the stored run."""
    checks = checks_in(tmp_path)
    checks.evaluate(SPAN)
    (row,) = checks.history.last()[0].rows()
    assert (row["tokens"], row["output"]) == (500, GOOD)


@clause("002.HISTORY.5", "Automatic Historical Storage")
def test_a_stored_run_has_its_evaluator_results(tmp_path: Path) -> None:
    """Value, verdict and reason of every evaluator are read from the stored run."""
    checks = checks_in(tmp_path)
    checks.evaluate(SPAN)
    score = checks.history.last()[0].field_results["output"].evaluators["half"]
    assert (score.value, score.passed, score.reason) == (0.5, True, "half")


@clause("002.HISTORY.6", "Automatic Historical Storage")
def test_a_stored_run_has_its_metadata(tmp_path: Path) -> None:
    """Name, times, tags and selected fields are stored with the run."""
    checks = checks_in(tmp_path, tags={"environment": "production"})
    before = datetime.now(UTC)
    checks.evaluate(SPAN)
    run = checks.history.last()[0].metadata
    assert run is not None
    assert (run.name, run.status) == ("chat", "completed")
    assert run.tags == {"environment": "production"}
    assert run.fields == {"tokens": "usage.total_tokens", "output": "output"}
    assert run.finished_at is not None
    assert before <= run.started_at <= run.finished_at


@clause("002.HISTORY.7", "Automatic Historical Storage")
def test_runs_older_than_the_days_are_deleted(tmp_path: Path) -> None:
    """With `retention_days=30` a run of 31 days goes and a run of 29 days stays."""
    with_runs_aged(tmp_path, 31, 29, 1)
    assert checks_in(tmp_path, retention_days=30).history.prune() == ["31-days"]
    assert kept_in(tmp_path) == ["1-days", "29-days"]


@clause("002.HISTORY.8", "Automatic Historical Storage")
def test_only_the_last_runs_are_kept(tmp_path: Path) -> None:
    """With `retention_count=2` the two newest runs stay, whatever their age."""
    with_runs_aged(tmp_path, 400, 300, 200)
    checks_in(tmp_path, retention_count=2).history.prune()
    assert kept_in(tmp_path) == ["200-days", "300-days"]


@clause("002.HISTORY.9", "Automatic Historical Storage")
def test_the_count_is_per_definition(tmp_path: Path) -> None:
    """Runs of another definition are neither counted nor deleted."""
    with_runs_aged(tmp_path, 3, 2, 1)
    other = checks_in(tmp_path, "other", retention_count=1)
    run_id = other.evaluate(SPAN).run_id
    assert kept_in(tmp_path) == [run_id, "1-days", "2-days", "3-days"]


@clause("002.HISTORY.10", "Automatic Historical Storage", ruling="retention: days or count")
def test_a_run_is_kept_by_days_or_by_count(tmp_path: Path) -> None:
    """A run is deleted only if it is older than the days and beyond the count."""
    with_runs_aged(tmp_path, 50, 40, 20, 10)
    both = checks_in(tmp_path, retention_days=30, retention_count=3)
    # 10, 20 and 40 days are the last three; 50 days is beyond both limits.
    assert both.history.prune() == ["50-days"]
    few = checks_in(tmp_path, retention_days=30, retention_count=1)
    # 20 days is beyond the count, but within the days.
    assert few.history.prune() == ["40-days"]
    assert kept_in(tmp_path) == ["10-days", "20-days"]


@clause("002.HISTORY.11", "Automatic Historical Storage", ruling="retention: days or count")
def test_without_limits_all_runs_are_kept(tmp_path: Path) -> None:
    """A history without retention deletes nothing."""
    with_runs_aged(tmp_path, 4000, 1)
    assert checks_in(tmp_path).history.prune() == []


@clause("002.HISTORY.12", "Automatic Historical Storage", ruling="retention runs after a save")
def test_retention_runs_by_itself_after_a_save(tmp_path: Path) -> None:
    """Evaluating once deletes what the limits no longer keep, without a further call."""
    with_runs_aged(tmp_path, 50, 40)
    run_id = checks_in(tmp_path, retention_days=30, retention_count=2).evaluate(SPAN).run_id
    assert kept_in(tmp_path) == [run_id, "40-days"]


@clause("002.HISTORY.13", "Automatic Historical Storage")
def test_retention_can_be_run_by_hand(tmp_path: Path) -> None:
    """`prune` deletes on request and returns the ids; a dry run only lists them."""
    with_runs_aged(tmp_path, 50, 1)
    history = checks_in(tmp_path, retention_days=30).history
    assert history.prune(dry_run=True) == ["50-days"]
    assert kept_in(tmp_path) == ["1-days", "50-days"]
    assert history.prune() == ["50-days"]
    assert kept_in(tmp_path) == ["1-days"]


@clause("002.HISTORY.14", "Automatic Historical Storage")
def test_runs_are_found_by_the_name_of_the_definition(tmp_path: Path) -> None:
    """A definition finds its own runs and no others."""
    chat, other = checks_in(tmp_path), checks_in(tmp_path, "other")
    mine = chat.evaluate(SPAN).run_id
    other.evaluate(SPAN)
    assert [report.run_id for report in chat.history.query()] == [mine]


@clause("002.HISTORY.15", "Automatic Historical Storage")
def test_runs_are_found_by_configuration(tmp_path: Path) -> None:
    """`query(configuration=…)` gives the runs that had this configuration."""
    checks = checks_in(tmp_path)
    with_low = checks.evaluate(SPAN, target=agent, configurations=BOTH).run_id
    checks.evaluate(SPAN)
    assert [report.run_id for report in checks.history.query(configuration="low")] == [with_low]
    assert checks.history.query(configuration="none") == []


@clause("002.HISTORY.16", "Automatic Historical Storage", ruling="date ranges include both ends")
def test_runs_are_found_by_date_range(tmp_path: Path) -> None:
    """`query(date_range=(since, until))` gives the runs between, both ends included."""
    with_runs_aged(tmp_path, 5, 3, 1)
    checks = checks_in(tmp_path)
    five, three, item = reversed(SQLiteHistory(tmp_path / "history.db").runs(limit=9))
    result = checks.history.query(date_range=(five.started_at, three.started_at))
    assert [report.run_id for report in result] == ["3-days", "5-days"]
    later = three.started_at + timedelta(microseconds=1)
    assert [r.run_id for r in checks.history.query(date_range=(later, None))] == [item.run_id]


@clause("002.HISTORY.17", "Automatic Historical Storage")
def test_runs_have_tags(tmp_path: Path) -> None:
    """Runs are stored with the tags of their definition, and are found by them."""
    tags = {"environment": "production", "feature": "chat"}
    run_id = checks_in(tmp_path, tags=tags).evaluate(SPAN).run_id
    checks_in(tmp_path, tags={"environment": "test"}).evaluate(SPAN)
    result = checks_in(tmp_path).history.query(tags={"environment": "production"})
    assert [report.run_id for report in result] == [run_id]


@clause("002.HISTORY.18", "Automatic Historical Storage", ruling="queries combine with AND")
def test_filters_must_all_match(tmp_path: Path) -> None:
    """All tags and all other filters of a query must match."""
    checks = checks_in(tmp_path, tags={"a": "1", "b": "2"})
    run_id = checks.evaluate(SPAN, configurations=["low"]).run_id
    query = checks.history.query
    assert [r.run_id for r in query(tags={"a": "1", "b": "2"}, configuration="low")] == [run_id]
    assert query(tags={"a": "1", "b": "3"}) == []
    assert query(tags={"a": "1"}, configuration="high") == []


@clause("002.HISTORY.19", "Automatic Historical Storage", ruling="newest first")
def test_the_newest_run_comes_first(tmp_path: Path) -> None:
    """A query and `last` give the newest run first."""
    checks = checks_in(tmp_path)
    ids = [checks.evaluate(SPAN).run_id for _ in range(3)]
    assert [report.run_id for report in checks.history.query()] == ids[::-1]
    assert [report.run_id for report in checks.history.last(2)] == [ids[2], ids[1]]


@clause("002.HISTORY.20", "Automatic Historical Storage")
@pytest.mark.parametrize(
    "condition",
    [
        "SELECT id FROM runs WHERE name = 'chat' ORDER BY began DESC, id DESC",
        "SELECT id FROM runs WHERE began > 5 ORDER BY began",
        "SELECT run FROM tags WHERE key = 'a' AND value = 'b'",
        "SELECT run FROM configurations WHERE name = 'low'",
    ],
)
def test_queries_use_an_index(tmp_path: Path, condition: str) -> None:
    """Runs are found by name, time, tag and configuration without reading the whole table."""
    checks_in(tmp_path).evaluate(SPAN)
    with closing(sqlite3.connect(tmp_path / "history.db")) as database, database:
        plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {condition}")]
    assert all(step.startswith("SEARCH") for step in plan), plan
    assert all("INDEX" in step or "PRIMARY KEY" in step for step in plan), plan


@clause("002.HISTORY.21", "Automatic Historical Storage")
def test_stored_results_are_compressed(tmp_path: Path) -> None:
    """A hundred long answers with much repetition take a tenth of the room of their text."""
    answer = "The museum opens at nine. " * 400
    spans = [{**SPAN, "id": str(n), "output": f"{n} {answer}"} for n in range(100)]
    checks_in(tmp_path).evaluate(spans)
    with closing(sqlite3.connect(tmp_path / "history.db")) as database, database:
        (stored,) = database.execute("SELECT sum(length(results)) FROM blocks").fetchone()
    assert stored < 100 * len(answer) / 10


@clause("002.HISTORY.22", "DSL API Surface")
def test_last_gives_the_last_runs(tmp_path: Path) -> None:
    """`history.last(n)` gives at most n runs as reports that can be read like new ones."""
    checks = checks_in(tmp_path)
    ids = [checks.evaluate(SPAN).run_id for _ in range(3)]
    (report,) = checks.history.last(1)
    assert report.run_id == ids[-1]
    assert report.passed


@clause("002.HISTORY.23", "DSL API Surface")
def test_trend_gives_a_field_over_time(tmp_path: Path) -> None:
    """`history.trend(field)` gives the field's mean in each run, the oldest first."""
    checks = checks_in(tmp_path)
    for tokens in (500, 450):
        checks.evaluate({**SPAN, "usage": {"total_tokens": tokens}})
    data = checks.history.trend("tokens").data
    assert [point["value"] for point in data] == [500.0, 450.0]
    assert data[0]["date"] < data[1]["date"]


@clause("002.HISTORY.24", "DSL API Surface")
def test_a_trend_can_be_of_some_configurations(tmp_path: Path) -> None:
    """`trend(field, configurations=[…])` gives only the points of these configurations."""
    checks = checks_in(tmp_path)
    checks.evaluate(SPAN, target=agent, configurations=BOTH)
    trend = checks.history.trend("tokens", configurations=["low"])
    assert [(p["configuration"], p["value"]) for p in trend.data] == [("low", 430.0)]


@clause("002.HISTORY.25", "Automatic Historical Storage", ruling="fields: history needs a name")
def test_a_history_needs_a_name(tmp_path: Path) -> None:
    """A definition without a name cannot store its runs."""
    checks = define().evaluate_field("output", passes).history(where=tmp_path / "h.db")
    with pytest.raises(ConfigError, match="a definition needs a name to store runs"):
        checks.evaluate(SPAN)


@clause("002.STORY.4", "Story 4: Automatic Historical Storage with Retention")
def test_runs_are_saved_purged_and_queried(tmp_path: Path) -> None:
    """With 30 days and a count of 2, runs are saved, the oldest goes, and the rest is found."""
    with_runs_aged(tmp_path, 60, 45)
    checks = checks_in(tmp_path, retention_days=30, retention_count=2)
    run_id = checks.evaluate(SPAN).run_id
    assert [report.run_id for report in checks.history.query()] == [run_id, "45-days"]


@clause("002.DELIVERABLE.4", "Functional Deliverables")
def test_of_150_runs_the_last_100_remain(tmp_path: Path) -> None:
    """150 runs with a count of 100 leave the last 100: of the first 130, and 20 evaluations after them."""
    checks = define("many").evaluate_field("output", passes)
    checks.history(retention_count=100, where=tmp_path / "history.db")
    before = [f"run-{number}" for number in range(130)]
    with closing(SQLiteHistory(tmp_path / "history.db")) as history:
        fill(history, [make_run(run_id, "many", hours=hours - 5_000) for hours, run_id in enumerate(before)])
    ids = before + [checks.evaluate(SPAN).run_id for _ in range(20)]
    assert kept_in(tmp_path) == ids[:49:-1]


@clause("002.DELIVERABLE.5", "Functional Deliverables")
def test_runs_older_than_30_days_are_deleted(tmp_path: Path) -> None:
    """With 30 days, evaluating deletes the run of 31 days and keeps the one of 29."""
    with_runs_aged(tmp_path, 31, 29)
    run_id = checks_in(tmp_path, retention_days=30).evaluate(SPAN).run_id
    assert kept_in(tmp_path) == [run_id, "29-days"]
