"""The history of a definition: which runs it stores, for how long, and queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from proctor.comparison.report import EvalReport
from proctor.core.clock import Clock, SystemClock
from proctor.errors import ConfigError, Problem, UsageError
from proctor.history.trends import NO_LIMIT, Trend, trend
from proctor.ports import History
from proctor.records.run import Retention
from proctor.records.sample import find_tag_problems
from proctor.wiring.open_history import load_report, open_history

HistoryLike = History | str | Path | None
DateRange = tuple[datetime | None, datetime | None]


class Owner(Protocol):
    """The definition whose runs are stored; it raises or collects errors."""

    @property
    def name(self) -> str | None: ...

    def report_error(self, error: UsageError) -> None: ...


OwnerT = TypeVar("OwnerT", bound=Owner)


class DefinitionHistory(Generic[OwnerT]):
    """The history of a definition: call it to enable it, and query the stored runs."""

    def __init__(self, definition: OwnerT, clock: Clock | None = None) -> None:
        self._definition = definition
        self._clock = clock or SystemClock()
        self._where: HistoryLike = None
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
        where: HistoryLike = None,
    ) -> OwnerT:
        """Store every run of this definition under its name, with these tags.

        A run is kept while it is within the last `retention_days` or among the last `retention_count` runs; without
        either limit, it is kept forever. `where` is a history or its file; default: .proctor/history.db.
        """
        limits = {"retention_days": retention_days, "retention_count": retention_count}
        problems = [*_find_limit_problems(limits), *find_tag_problems(tags or {})]
        if problems:
            self._definition.report_error(ConfigError("the history settings are invalid", problems=problems))
            return self._definition
        self.auto_save = auto_save
        self.tags = dict(tags or {})
        self._where = where
        self._retention = Retention(retention_days, retention_count)
        return self._definition

    def open(self) -> History | bool:
        """Return the history, or False if runs are not stored."""
        return open_history(self._where) if self.auto_save else False

    def last(self, n: int = 10) -> list[EvalReport]:
        """Return the last `n` runs of this definition, newest first."""
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise ConfigError(f"must be an integer, 1 or more, got {n!r}", where="last", fix="write last(10)")
        return self._load_reports(limit=n)

    def query(
        self,
        *,
        configuration: str | None = None,
        date_range: DateRange = (None, None),
        tags: Mapping[str, str] | None = None,
    ) -> list[EvalReport]:
        """Return the runs that match all filters, newest first; both dates are included."""
        filters = _check_filters(date_range, tags)
        return self._load_reports(limit=NO_LIMIT, configuration=configuration, **filters)

    def trend(
        self,
        field: str,
        *,
        configurations: Sequence[str] | None = None,
        date_range: DateRange = (None, None),
        tags: Mapping[str, str] | None = None,
    ) -> Trend:
        """Return the mean of a field, or any metric, of each run, oldest first."""
        filters = _check_filters(date_range, tags)
        history = self._open()
        return trend(history, field, name=self._definition.name, configurations=configurations, **filters)

    def prune(self, *, dry_run: bool = False) -> list[str]:
        """Delete the runs outside the retention limits; return their ids. A dry run deletes nothing."""
        pruned = self._open().prune(self._retention, now=self._clock.now(), name=self._definition.name, dry_run=dry_run)
        return [run.run_id for run in pruned.deleted]

    def _open(self) -> History:
        if not self._definition.name:
            raise ConfigError("a definition without a name has no history", fix='write define("name")')
        return open_history(self._where)

    def _load_reports(self, **query: Any) -> list[EvalReport]:
        history = self._open()
        return [load_report(history, run.run_id) for run in history.runs(name=self._definition.name, **query)]


def _find_limit_problems(limits: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in limits.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and value > 0):
            yield Problem(name, f"must be a number greater than 0, got {value!r}")
        elif name == "retention_count" and value is not None and value != int(value):
            yield Problem(name, f"must be an integer, got {value!r}")


def _check_filters(date_range: Any, tags: Any) -> dict[str, Any]:
    """Return the filters of a history query, after checking dates and tags."""
    if not isinstance(date_range, tuple | list) or len(date_range) != 2:
        raise ConfigError(
            f"a date range has two ends, found {date_range!r}",
            where="date_range",
            fix="write (since, until), with None for an open end",
        )
    for end in date_range:
        if end is not None and not isinstance(end, datetime):
            raise ConfigError(
                f"must be a datetime, got {end!r}", where="date_range", fix="write datetime(2026, 1, 31, tzinfo=UTC)"
            )
        if end is not None and end.tzinfo is None:
            raise ConfigError(
                f"the date {end.isoformat()} has no time zone",
                where="date_range",
                fix="add the zone: datetime(…, tzinfo=UTC)",
            )
    since, until = date_range
    if since is not None and until is not None and since > until:
        raise ConfigError(
            f"the range ends at {until.isoformat()}, before it starts at {since.isoformat()}",
            where="date_range",
            fix="write the earlier date first",
        )
    if problems := list(find_tag_problems(tags or {})):
        raise ConfigError("the tags are invalid", problems=problems, fix='write tags={"environment": "production"}')
    return {"since": since, "until": until, "tags": tags}
