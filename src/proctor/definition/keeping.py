"""What a definition keeps of its runs, for how long, and how they are found again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from proctor.clock import Clock, SystemClock
from proctor.definition.report import FieldReport
from proctor.errors import ConfigError, Problem, UsageError, nearest
from proctor.lookback import look_up, open_history
from proctor.ports import History
from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata

Where = History | str | Path | None
ALL = 2**31


class Owner(Protocol):
    """Whose runs are kept: a name, and someone to tell what is wrong."""

    @property
    def name(self) -> str | None: ...

    def note(self, fault: UsageError) -> None: ...


OwnerT = TypeVar("OwnerT", bound=Owner)


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long runs are kept: a run stays while it is within the days or within the count."""

    days: float | None = None
    count: int | None = None

    def over(self, runs: Sequence[RunMetadata], now: datetime) -> list[RunMetadata]:
        """Of one definition's runs, newest first, those that need not be kept any more."""
        if self.days is None and self.count is None:
            return []
        return [
            run
            for place, run in enumerate(runs)
            if not self._within_days(run, now) and not self._within_count(place)
        ]

    def _within_days(self, run: RunMetadata, now: datetime) -> bool:
        return self.days is not None and now - run.started_at <= timedelta(days=self.days)

    def _within_count(self, place: int) -> bool:
        return self.count is not None and place < self.count


class TrendPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One number of one run: when it was, in which configuration, and what it rests on."""

    date: datetime
    run_id: str
    configuration: str
    value: float
    n: int
    interval: tuple[float, float] | None = None


class Trend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field or metric over time, the oldest run first."""

    field: str
    points: tuple[TrendPoint, ...]

    @property
    def data(self) -> list[dict[str, Any]]:
        """One plain mapping for each point, for a table or a plot."""
        return [{**msgspec.structs.asdict(p), "date": p.date.isoformat()} for p in self.points]


class Keeping(Generic[OwnerT]):
    """The history of a definition: call it to switch it on, ask it for what was kept."""

    def __init__(self, definition: OwnerT, clock: Clock | None = None) -> None:
        self._definition = definition
        self._clock = clock or SystemClock()
        self._where: Where = None
        self._retention = Retention()
        self.auto_save = False
        self.tags: dict[str, str] = {}

    def __call__(
        self,
        auto_save: bool = True,
        *,
        retention_days: float | None = None,
        retention_count: int | None = None,
        tags: Mapping[str, str] | None = None,
        where: Where = None,
    ) -> OwnerT:
        """Keep every run of this definition under its name, with these tags.

        A run is kept while it is within the days or among the last `retention_count`; with
        neither, for ever. `where` is a history or its file; the usual one without it.
        """
        limits = {"retention_days": retention_days, "retention_count": retention_count}
        problems = [*_limit_faults(limits), *_tag_faults(tags or {})]
        if problems:
            self._definition.note(
                ConfigError("the history cannot be kept like this", problems=problems)
            )
            return self._definition
        self.auto_save = auto_save
        self.tags = dict(tags or {})
        self._where = where
        self._retention = Retention(retention_days, retention_count)
        return self._definition

    def opened(self) -> History | bool:
        """Where runs go: the history, or none that lasts."""
        return open_history(self._where) if self.auto_save else False

    def last(self, n: int = 10) -> list[FieldReport]:
        """The last runs of this definition, newest first."""
        return [self._report(run) for run in self._runs()[:n]]

    def query(
        self,
        *,
        configuration: str | None = None,
        date_range: tuple[datetime | None, datetime | None] = (None, None),
        tags: Mapping[str, str] | None = None,
    ) -> list[FieldReport]:
        """The runs that fit all that is asked, newest first; both ends of the range included."""
        return [self._report(run) for run in self._found(configuration, date_range, tags)]

    def trend(
        self,
        field: str,
        *,
        configurations: Sequence[str] | None = None,
        date_range: tuple[datetime | None, datetime | None] = (None, None),
        tags: Mapping[str, str] | None = None,
    ) -> Trend:
        """A field's mean, or any metric, run by run, the oldest first."""
        runs = self._found(None, date_range, tags)
        points = [
            point
            for run in reversed(runs)
            for point in _points(self._report(run), run, field)
            if configurations is None or point.configuration in configurations
        ]
        if runs and not points and configurations is None:
            newest = self._report(runs[0])
            known = [name.removeprefix("field.") for name in newest.metrics]
            raise ConfigError(
                f"no run has a number for {field!r}", where="trend", fix=nearest(field, known)
            )
        return Trend(field, tuple(points))

    def prune(self) -> list[str]:
        """Delete the runs that need not be kept any more; gives their ids."""
        history = self._history()
        over = self._retention.over(self._runs(), self._clock.now())
        gone = [run.run_id for run in over if not history.is_held(run.run_id)]
        for run_id in gone:
            history.delete(run_id)
        return gone

    def _history(self) -> History:
        if not self._definition.name:
            raise ConfigError(
                "a definition without a name has no history", fix='write define("name")'
            )
        return open_history(self._where)

    def _runs(self, tags: Mapping[str, str] | None = None) -> list[RunMetadata]:
        return list(self._history().runs(limit=ALL, tags=tags, name=self._definition.name))

    def _found(
        self,
        configuration: str | None,
        date_range: tuple[datetime | None, datetime | None],
        tags: Mapping[str, str] | None,
    ) -> list[RunMetadata]:
        _refuse_naive(date_range)
        since, until = date_range
        return [
            run
            for run in self._runs(tags)
            if (since is None or run.started_at >= since)
            and (until is None or run.started_at <= until)
            and (configuration is None or configuration in {c.name for c in run.configurations})
        ]

    def _report(self, run: RunMetadata) -> FieldReport:
        return FieldReport.of(look_up(self._history(), run.run_id))


def _limit_faults(limits: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in limits.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and value > 0):
            yield Problem(name, f"a number above 0, got {value!r}")
        elif name == "retention_count" and value is not None and value != int(value):
            yield Problem(name, f"a whole number, got {value!r}")


def _tag_faults(tags: Any) -> Iterator[Problem]:
    if not isinstance(tags, Mapping):
        yield Problem("tags", f"a mapping of words to words, got {tags!r}")
        return
    for key, value in tags.items():
        if not isinstance(value, str):
            yield Problem(f"tags.{key}", f"a text, got {value!r}")


def _refuse_naive(date_range: Any) -> None:
    if not isinstance(date_range, tuple | list) or len(date_range) != 2:
        raise ConfigError(
            f"a range of dates has two ends, got {date_range!r}",
            where="date_range",
            fix="write (since, until), None for an open end",
        )
    for moment in date_range:
        if moment is not None and not isinstance(moment, datetime):
            raise ConfigError(f"a date is a datetime, got {moment!r}", where="date_range")
        if moment is not None and moment.tzinfo is None:
            raise ConfigError(
                f"a date without a time zone: {moment.isoformat()}",
                where="date_range",
                fix="say which zone is meant: datetime(…, tzinfo=UTC)",
            )


def _points(report: EvalReport, run: RunMetadata, field: str) -> Iterator[TrendPoint]:
    tables = report.by_configuration or {run.configurations[0].name: report.metrics}
    for name, table in tables.items():
        found = table.get(f"field.{field}") or table.get(field)
        if found is not None and found.value is not None:
            yield TrendPoint(run.started_at, run.run_id, name, found.value, found.n, found.interval)
