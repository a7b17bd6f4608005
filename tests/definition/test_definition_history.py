"""The history of a definition: which runs are stored, for how long, and queries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from proctor import Definition, SQLiteHistory, define
from proctor.errors import ConfigError
from proctor.wiring.definition.definition_history import DefinitionHistory


class Later:
    """A clock that is a number of days ahead."""

    def __init__(self, days: float) -> None:
        self.days = days

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(days=self.days)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing sleeps here")


def checks(where: Path, name: str = "exam", **limits: Any) -> Definition:
    definition = define(name).select("usage.total_tokens", as_="tokens")
    definition.evaluate_field("output", lambda output: True)
    return definition.history(where=where / "h.db", **limits)


def span(tokens: int = 5) -> dict[str, Any]:
    return {"input": "x", "output": "y", "usage": {"total_tokens": tokens}}


def count(where: Path, name: str = "exam") -> int:
    return len(SQLiteHistory(where / "h.db").runs(limit=1000, name=name))


def test_a_save_prunes_old_runs(tmp_path: Path) -> None:
    """Of this definition only."""
    other = checks(tmp_path, "other")
    other.evaluate(span())
    definition = checks(tmp_path, retention_count=3)
    for number in range(5):
        definition.evaluate(span(number))
    assert (count(tmp_path), count(tmp_path, "other")) == (3, 1)
    assert [r.rows()[0]["tokens"] for r in definition.history.last()] == [4, 3, 2]


def test_runs_expire_after_days(tmp_path: Path) -> None:
    """A month later old runs are pruned, unless the count keeps them."""
    definition = checks(tmp_path, retention_days=30)
    first = definition.evaluate(span())
    definition.history = DefinitionHistory(definition, Later(29))
    definition.history(retention_days=30, where=tmp_path / "h.db")
    assert definition.history.prune() == []
    definition.history = DefinitionHistory(definition, Later(31))
    definition.history(retention_days=30, where=tmp_path / "h.db")
    assert definition.history.prune() == [first.run_id]
    assert count(tmp_path) == 0
    kept = checks(tmp_path)
    kept.evaluate(span())
    kept.history = DefinitionHistory(kept, Later(31))
    kept.history(retention_days=30, retention_count=1, where=tmp_path / "h.db")
    assert kept.history.prune() == []


def test_a_running_run_is_not_pruned(tmp_path: Path) -> None:
    """However old it is."""
    definition = checks(tmp_path)
    run_id = definition.evaluate(span()).run_id
    definition.history = DefinitionHistory(definition, Later(100))
    definition.history(retention_days=1, where=tmp_path / "h.db")
    with SQLiteHistory(tmp_path / "h.db").claim(run_id):
        assert definition.history.prune() == []
    assert definition.history.prune() == [run_id]


def test_nothing_is_stored_without_auto_save(tmp_path: Path) -> None:
    """By default, and if it is turned off."""
    definition = checks(tmp_path, auto_save=False)
    assert definition.evaluate(span()).passed
    assert not (tmp_path / "h.db").exists()
    assert definition.history.tags == {}


def test_query_filters_combine(tmp_path: Path) -> None:
    """Configuration, both dates and all tags; newest first."""
    definition = checks(tmp_path, tags={"environment": "production", "feature": "chat"})
    runs = [
        definition.evaluate({"input": "x"}, recorded={name: span(number)})
        for number, name in enumerate(["low", "high", "low"])
    ]
    begun = [run.metadata.started_at for run in runs if run.metadata]
    history = definition.history

    def found(**asked: Any) -> list[int]:
        ids = [run.run_id for run in history.query(**asked)]
        return [next(i for i, run in enumerate(runs) if run.run_id == one) for one in ids]

    assert found() == [2, 1, 0]
    assert found(configuration="low") == [2, 0]
    assert found(configuration="mid") == []
    assert found(date_range=(begun[1], begun[2])) == [2, 1]
    assert found(date_range=(begun[1], begun[1])) == [1]
    assert found(date_range=(None, begun[0])) == [0]
    assert found(tags={"environment": "production", "feature": "chat"}) == [2, 1, 0]
    assert found(tags={"environment": "production", "feature": "search"}) == []
    assert found(configuration="low", date_range=(begun[1], None)) == [2]
    assert len(history.last(2)) == 2


def test_a_trend_has_a_point_per_run(tmp_path: Path) -> None:
    """Oldest first, for each requested configuration."""
    definition = checks(tmp_path)
    for number in (500, 450):
        definition.evaluate({"input": "x"}, recorded={"low": span(number), "high": span(number + 100)})
    trend = definition.history.trend("tokens", configurations=["low"])
    assert [(one.configuration, one.value, one.n) for one in trend.points] == [
        ("low", 500.0, 1), ("low", 450.0, 1),
    ]  # fmt: skip
    assert [point["value"] for point in trend.data] == [500.0, 450.0]
    assert trend.data[0]["date"] < trend.data[1]["date"]
    assert len(definition.history.trend("tokens").points) == 4
    assert [one.value for one in definition.history.trend("pass_rate").points] == [1.0] * 4
    with pytest.raises(ConfigError, match="no run has a metric 'nothing'"):
        definition.history.trend("nothing")
    single = checks(tmp_path, "single")
    single.evaluate(span(7))
    assert [one.value for one in single.history.trend("tokens").points] == [7.0]
