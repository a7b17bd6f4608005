"""Progress events of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Literal

import msgspec

from proctor.records.score import Score

EventKind = Literal["start", "config_start", "evaluator_start", "evaluator_end", "config_end", "end"]
ProgressStatus = Literal["pending", "running", "evaluating", "completed", "failed"]


class ProgressEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One event of a run.

    `progress` is in percent, never decreases, and is 100 at the end. Fields that do not apply to a kind of
    event are None or empty.
    """

    kind: EventKind
    status: ProgressStatus
    progress: float
    timestamp: datetime
    run_id: str
    configuration: str | None = None
    sample_id: str | None = None
    epoch: int | None = None
    evaluator: str | None = None
    score: Score | None = None
    current_field: str | None = None
    field_values: dict[str, Any] = {}
    deltas: dict[str, Any] | None = None
    quality_metrics: dict[str, float] = {}
    done: int = 0
    total: int | None = None
    passed: int = 0
    failed: int = 0
    errors: int = 0


def filter_events(
    callback: Callable[[ProgressEvent], object],
    *,
    kinds: Collection[EventKind] | None = None,
    statuses: Collection[ProgressStatus] | None = None,
    configurations: Collection[str] | None = None,
) -> Callable[[ProgressEvent], object]:
    """Return a callback that receives only some events: by kind, status or configuration.

    >>> events = []
    >>> callback = filter_events(events.append, statuses=["completed"])
    >>> now = datetime(2026, 1, 1)
    >>> for status in ("running", "completed"):
    ...     _ = callback(ProgressEvent("config_end", status, 50.0, now, "run"))
    >>> [event.status for event in events]
    ['completed']
    """

    def filter_event(event: ProgressEvent) -> object:
        is_selected = (
            (kinds is None or event.kind in kinds)
            and (statuses is None or event.status in statuses)
            and (configurations is None or event.configuration in configurations)
        )
        return callback(event) if is_selected else None

    return filter_event
