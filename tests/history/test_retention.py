"""Retention, from the option of a definition to the deletion in the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from proctor import define
from proctor.wiring.definition.definition import Definition
from proctor.wiring.definition.definition_history import DefinitionHistory
from proctor.wiring.open_history import open_history
from tests.history.history_contract import make_run
from tests.history.test_query_growth import fill

SPAN = {"input": "x", "output": "y"}
MOMENT = timedelta(microseconds=1)


class SetClock:
    """A clock that shows the time it was set to."""

    def __init__(self) -> None:
        self.time = datetime.now(UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing sleeps here")


@pytest.fixture(params=["file", "server"])
def where(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """A file, and a server."""
    return tmp_path / "h.db" if request.param == "file" else request.getfixturevalue("url")


def checks(where: Any, clock: SetClock | None = None, name: str = "exam", **limits: Any) -> Definition:
    definition = define(name).evaluate_field("output", lambda output: True)
    definition.history = DefinitionHistory(definition, clock)
    return definition.history(where=where, **limits)


def saved(definition: Definition, number: int) -> list[str]:
    return [definition.evaluate(SPAN).run_id for _ in range(number)]


def left(where: Any, name: str = "exam") -> list[str]:
    history = open_history(where)
    try:
        return [run.run_id for run in reversed(history.runs(limit=1_000, name=name))]
    finally:
        history.close()


def test_of_150_saved_runs_the_last_100_remain(where: Any) -> None:
    """The last hundred stay, older ones are deleted, and other names are unaffected."""
    history: Any = open_history(where)
    # Most of them are stored in one transaction; single saves take much longer.
    before = [f"r{number:03}" for number in range(97)]
    fill(history, [make_run(run_id, "exam", hours=hours - 5_000) for hours, run_id in enumerate(before)])
    history.begin(make_run("other", "other", hours=-9_999))
    definition = checks(where, retention_count=100)
    ids = before + saved(definition, 3)
    assert left(where) == ids
    ids += saved(definition, 1)
    assert left(where) == ids[-100:]
    fill(history, [make_run(f"s{hours:03}", "exam", hours=hours - 4_000) for hours in range(44)])
    ids = [*ids[:97], *(f"s{hours:03}" for hours in range(44)), *ids[97:], *saved(definition, 5)]
    assert len(ids) == 150
    assert left(where) == ids[50:]
    assert left(where, "other") == ["other"]
    history.close()


def test_a_save_deletes_what_is_older_than_thirty_days(where: Any) -> None:
    """Exactly thirty days old stays; a microsecond later it goes, and only by then."""
    clock = SetClock()
    definition = checks(where, clock, retention_days=30)
    report = definition.evaluate(SPAN)
    assert report.metadata is not None
    old, began = report.run_id, report.metadata.started_at
    clock.time = began + timedelta(days=30)
    second = definition.evaluate(SPAN).run_id
    assert left(where) == [old, second]
    clock.time += MOMENT
    third = definition.evaluate(SPAN).run_id
    assert left(where) == [second, third]


def test_a_saved_run_goes_only_when_both_limits_are_exceeded(where: Any) -> None:
    """Too old but among the last stays, too many but young stays; the ruling, after saves."""
    clock = SetClock()
    definition = checks(where, clock, retention_days=30, retention_count=2)
    ids = saved(definition, 4)
    assert left(where) == ids
    clock.time += timedelta(days=31)
    assert [*left(where), *saved(definition, 1)][-3:] == [*ids[-2:], left(where)[-1]]
    assert left(where)[0] == ids[-1]
    assert len(left(where)) == 2


def test_baselines_outlive_both_limits(where: Any) -> None:
    """Until their names are dropped."""
    definition = checks(where, retention_count=1)
    first = saved(definition, 1)[0]
    history = open_history(where)
    history.set_baseline("main", first)
    later = saved(definition, 2)
    assert left(where) == [first, later[-1]]
    history.drop_baseline("main")
    last = saved(definition, 1)
    assert left(where) == last
    history.close()
