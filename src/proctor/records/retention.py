"""How long runs are kept."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from proctor.records.run import RunMetadata


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long runs are kept: a run stays while it is within the days or within the count.

    The count is for runs of one name. With one limit set, that one rules; with none, all stay.

    >>> from datetime import UTC
    >>> now = datetime(2026, 6, 1, tzinfo=UTC)
    >>> Retention(days=30).keeps(0, now - timedelta(days=30), now)
    True
    >>> Retention(count=100).keeps(99, now, now), Retention(count=100).keeps(100, now, now)
    (True, False)
    """

    days: float | None = None
    count: int | None = None

    def keeps(self, place: int, began: datetime, now: datetime) -> bool:
        """True if a run stays: `place` counts the runs of its name from 0, the newest first."""
        if self.days is None and self.count is None:
            return True
        within_days = self.days is not None and now - began <= timedelta(days=self.days)
        return within_days or (self.count is not None and place < self.count)


class Pruned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What tidying up came to: the runs that went, and those that no limit keeps but that stay.

    `staying` has the reason by the run's id. Of a dry run, `gone` are those that would go.
    """

    gone: tuple[RunMetadata, ...] = ()
    staying: dict[str, str] = {}
