"""Trends of a metric over runs: which runs are included, and that only stored metrics are read."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor.errors import ConfigError
from proctor.history.sqlite import SQLiteHistory
from proctor.history.trends import Trend, trend
from proctor.records.metric import MetricValue
from proctor.records.run import StoppedEarly
from tests.history.history_contract import NOON, make_result, make_run, store_run


def rate(value: float | None, n: int = 10) -> dict[str, MetricValue]:
    metric = MetricValue(value, n, interval=(0.1, 0.9), kind="rate")
    return {"pass_rate": metric, "field.tokens": MetricValue(100.0, n, kind="mean", unit="tokens")}


@pytest.fixture
def history(tmp_path: Path) -> SQLiteHistory:
    """Three runs of an exam in two configurations, one of a quiz, one that was killed."""
    made = SQLiteHistory(tmp_path / "h.db")
    for number in range(3):
        run = make_run(f"r{number}", hours=number, configurations=("small", "large"), tags={"n": str(number)})
        store_run(made, run, [make_result("a", configuration="small")])
        tables = {"small": rate(0.5 + number / 10), "large": rate(None if number == 1 else 0.9)}
        made.finish(msgspec.structs.replace(run, status="completed"), rate(0.7), tables)
    quiz = make_run("q", "quiz", hours=5)
    made.begin(quiz)
    made.finish(quiz, rate(0.25), {})
    made.begin(make_run("killed", hours=6, configurations=("small", "large")))
    return made


def seen(found: Trend) -> list[tuple[str, str, float]]:
    return [(point.run_id, point.configuration, point.value) for point in found.points]


def test_a_trend_has_a_point_for_each_run_and_configuration(history: SQLiteHistory) -> None:
    """The oldest first; a run without a number, or killed before it had one, is not in it."""
    found = trend(history, "pass_rate", name="exam")
    assert seen(found) == [
        ("r0", "small", 0.5), ("r0", "large", 0.9), ("r1", "small", 0.6), ("r2", "small", 0.7),
        ("r2", "large", 0.9),
    ]  # fmt: skip
    assert (found.kind, found.unit, found.points[0].n) == ("rate", "", 10)
    assert found.points[0].interval == (0.1, 0.9)
    assert found.data[0] == {
        "date": "2026-01-01T12:00:00+00:00", "run_id": "r0", "configuration": "small",
        "value": 0.5, "n": 10, "interval": (0.1, 0.9), "name": "exam", "unfinished": "",
    }  # fmt: skip


def test_a_field_is_found_by_its_name(history: SQLiteHistory) -> None:
    """With and without the prefix of its metric; its unit is known."""
    found = trend(history, "tokens", name="quiz")
    assert seen(found) == [("q", "default", 100.0)]
    assert (found.kind, found.unit) == ("mean", "tokens")
    assert seen(trend(history, "field.tokens", name="quiz")) == seen(found)


def test_a_trend_is_narrowed(history: SQLiteHistory) -> None:
    """By configuration, dates with both ends, and tags."""
    small = trend(history, "pass_rate", configurations=["small"])
    assert [run for run, *_ in seen(small)] == ["r0", "r1", "r2"]
    hour = timedelta(hours=1)
    dated = trend(history, "pass_rate", since=NOON + hour, until=NOON + 2 * hour)
    assert [run for run, *_ in seen(dated)] == ["r1", "r2", "r2"]
    assert [run for run, *_ in seen(trend(history, "pass_rate", tags={"n": "2"}))] == ["r2", "r2"]
    assert trend(history, "pass_rate", name="none") == Trend("pass_rate", ())
    assert trend(history, "whatever", name="none") == Trend("whatever", ())


def test_runs_of_several_names_are_told_apart(history: SQLiteHistory) -> None:
    """Lines are named after the run and the configuration, or after the configuration alone."""
    assert list(trend(history, "pass_rate").series) == ["exam: small", "exam: large", "quiz: default"]
    assert list(trend(history, "pass_rate", name="exam").series) == ["small", "large"]


@pytest.mark.parametrize(
    ("metric", "configurations", "said"),
    [
        ("pass_rat", None, "no run has a metric 'pass_rat'.*did you mean 'pass_rate'"),
        ("token", None, "did you mean 'tokens'"),
        ("pass_rate", ["smal"], "no run has a configuration 'smal'.*did you mean 'small'"),
    ],
)
def test_a_misspelt_name_is_told(
    history: SQLiteHistory, metric: str, configurations: list[str] | None, said: str
) -> None:
    """An empty trend would look like a metric that no run has."""
    with pytest.raises(ConfigError) as error:
        trend(history, metric, configurations=configurations)
    import re

    assert re.search(said, str(error.value), re.DOTALL)


def test_an_evaluator_means_its_mean(history: SQLiteHistory) -> None:
    """As it does where runs are compared; its pass rate is asked for by its full name."""
    run = make_run("e", hours=9)
    history.begin(run)
    metrics = {"exact.pass_rate": MetricValue(1.0, 1), "exact.mean": MetricValue(0.75, 1)}
    history.finish(run, metrics, {})
    assert seen(trend(history, "exact")) == [("e", "default", 0.75)]
    assert seen(trend(history, "exact.pass_rate")) == [("e", "default", 1.0)]


def test_a_run_that_left_trials_out_is_marked(history: SQLiteHistory) -> None:
    """Stopped early or interrupted: its number rests on less than was planned."""
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("early", {"status": "completed", "stopped_early": StoppedEarly("settled", 31, 100)}),
        ("cut", {"status": "interrupted"}),
        ("whole", {"status": "completed"}),
    ]
    for run_id, changes in kinds:
        run = msgspec.structs.replace(make_run(run_id, "marks"), **changes)
        history.begin(run)
        history.finish(run, rate(0.5), {})
    points = trend(history, "pass_rate", name="marks").points
    assert {point.run_id: point.unfinished for point in points} == {
        "early": "stopped early",
        "cut": "interrupted",
        "whole": "",
    }


class Unread(SQLiteHistory):
    """A history whose results must not be read."""

    def results(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a result was read")

    report = done = results


def test_a_trend_of_many_runs_reads_no_results(tmp_path: Path) -> None:
    """Only the metrics that were stored with them are asked for."""
    history = Unread(tmp_path / "h.db")
    table = {f"metric{number}": MetricValue(0.5, 100, interval=(0.4, 0.6)) for number in range(30)}
    for number in range(200):
        with history.import_run(make_run(f"r{number}", hours=number)) as run:
            run.finish(table, {"small": table, "large": table})
    assert len(trend(history, "metric7").points) == 400
