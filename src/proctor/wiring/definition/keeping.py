"""What a definition keeps of its runs, for how long, and how they are found again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from proctor.comparison.report import FieldReport
from proctor.core.clock import Clock, SystemClock
from proctor.errors import ConfigError, Problem, UsageError
from proctor.history.trends import ALL, Trend, trend
from proctor.ports import History
from proctor.records.run import Retention, RunMetadata
from proctor.records.sample import tag_problems
from proctor.wiring.open_history import look_up, open_history

Where = History | str | Path | None


class Owner(Protocol):
    """Whose runs are kept: a name, and someone to tell what is wrong."""

    @property
    def name(self) -> str | None: ...

    def note(self, fault: UsageError) -> None: ...


OwnerT = TypeVar("OwnerT", bound=Owner)


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
        problems = [*_limit_faults(limits), *tag_problems(tags or {})]
        if problems:
            self._definition.note(ConfigError("the history cannot be kept like this", problems=problems))
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
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise ConfigError(
                f"the number of runs is a whole number above 0, got {n!r}", where="last", fix="write last(10)"
            )
        history = self._history()
        return [_report(history, run) for run in history.runs(limit=n, name=self._definition.name)]

    def query(
        self,
        *,
        configuration: str | None = None,
        date_range: tuple[datetime | None, datetime | None] = (None, None),
        tags: Mapping[str, str] | None = None,
    ) -> list[FieldReport]:
        """The runs that fit all that is asked, newest first; both ends of the range included."""
        history = self._history()
        runs = self._found(history, configuration, date_range, tags)
        return [_report(history, run) for run in runs]

    def trend(
        self,
        field: str,
        *,
        configurations: Sequence[str] | None = None,
        date_range: tuple[datetime | None, datetime | None] = (None, None),
        tags: Mapping[str, str] | None = None,
    ) -> Trend:
        """A field's mean, or any metric, run by run, the oldest first."""
        _check_dates(date_range)
        _check_tags(tags)
        since, until = date_range
        return trend(
            self._history(),
            field,
            name=self._definition.name,
            configurations=configurations,
            since=since,
            until=until,
            tags=tags,
        )

    def prune(self, *, dry_run: bool = False) -> list[str]:
        """Delete the runs that need not be kept any more; gives their ids. A dry run only looks."""
        pruned = self._history().prune(
            self._retention, now=self._clock.now(), name=self._definition.name, dry_run=dry_run
        )
        return [run.run_id for run in pruned.gone]

    def _history(self) -> History:
        if not self._definition.name:
            raise ConfigError("a definition without a name has no history", fix='write define("name")')
        return open_history(self._where)

    def _found(
        self,
        history: History,
        configuration: str | None,
        date_range: tuple[datetime | None, datetime | None],
        tags: Mapping[str, str] | None,
    ) -> Sequence[RunMetadata]:
        _check_dates(date_range)
        _check_tags(tags)
        since, until = date_range
        return history.runs(
            limit=ALL,
            name=self._definition.name,
            configuration=configuration,
            since=since,
            until=until,
            tags=tags,
        )


def _report(history: History, run: RunMetadata) -> FieldReport:
    return look_up(history, run.run_id)


def _limit_faults(limits: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in limits.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and value > 0):
            yield Problem(name, f"a number above 0, got {value!r}")
        elif name == "retention_count" and value is not None and value != int(value):
            yield Problem(name, f"a whole number, got {value!r}")


def _check_tags(tags: Any) -> None:
    problems = list(tag_problems(tags or {}))
    if problems:
        raise ConfigError(
            "runs cannot be found by these tags",
            problems=problems,
            fix='write tags={"environment": "production"}',
        )


def _check_dates(date_range: Any) -> None:
    if not isinstance(date_range, tuple | list) or len(date_range) != 2:
        raise ConfigError(
            f"a range of dates has two ends, got {date_range!r}",
            where="date_range",
            fix="write (since, until), None for an open end",
        )
    for moment in date_range:
        if moment is not None and not isinstance(moment, datetime):
            raise ConfigError(
                f"a date is a datetime, got {moment!r}",
                where="date_range",
                fix="write datetime(2026, 1, 31, tzinfo=UTC)",
            )
        if moment is not None and moment.tzinfo is None:
            raise ConfigError(
                f"a date without a time zone: {moment.isoformat()}",
                where="date_range",
                fix="say which zone is meant: datetime(…, tzinfo=UTC)",
            )
    since, until = date_range
    if since is not None and until is not None and since > until:
        raise ConfigError(
            f"the range ends at {until.isoformat()}, before it begins at {since.isoformat()}",
            where="date_range",
            fix="write the earlier date first",
        )
