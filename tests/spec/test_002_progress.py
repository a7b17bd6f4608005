"""The field spec: progress events while an evaluation runs."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from proctor import ProgressEvent, define
from tests.spec.clauses import clause
from tests.spec.spans import GOOD, SPAN, agent, half, passes, raises

BOTH: dict[str, Any] = {"low": {"temperature": 0.3}, "high": {"temperature": 1.0}}


def broken(question: str, *, temperature: float = 0.0) -> str:
    raise ValueError("the target is down")


def events_of(*evaluators: Any, target: Any = agent, configurations: Any = None, **filters: Any) -> list[ProgressEvent]:
    """The events of an evaluation of one span."""
    events: list[ProgressEvent] = []
    checks = define().select("usage.total_tokens", as_="tokens")
    checks.evaluate_field("output", *(evaluators or (passes, half)))
    checks.on_progress(events.append, **filters)
    checks.evaluate(SPAN, target=target, configurations=configurations)
    return events


def of_kind(kind: str, *evaluators: Any, **how: Any) -> list[ProgressEvent]:
    return [event for event in events_of(*evaluators, **how) if event.kind == kind]


@clause("002.PROGRESS.1", "Real-Time Progress Streaming")
def test_events_come_at_every_milestone_in_order() -> None:
    """Start, each configuration with all its evaluators from start to end, and the end."""
    lines = [(e.kind, e.configuration, e.evaluator) for e in events_of(configurations=BOTH)]
    expected: list[Any] = [("start", None, None)]
    for name in ("low", "high"):
        expected.append(("config_start", name, None))
        for evaluator in ("output.passes", "output.half"):
            expected.append(("evaluator_start", name, evaluator))
            expected.append(("evaluator_end", name, evaluator))
        expected.append(("config_end", name, None))
    assert lines == [*expected, ("end", None, None)]


@clause("002.PROGRESS.2", "Real-Time Progress Streaming")
def test_the_start_is_pending() -> None:
    """The first event has the status "pending"."""
    assert [event.status for event in of_kind("start")] == ["pending"]


@clause("002.PROGRESS.3", "Real-Time Progress Streaming")
def test_a_configuration_that_starts_is_running() -> None:
    """The event `config_start` has the status "running"."""
    assert [event.status for event in of_kind("config_start")] == ["running"]


@clause("002.PROGRESS.4", "Real-Time Progress Streaming")
def test_an_evaluator_at_work_is_evaluating() -> None:
    """The events of an evaluator that works have the status "evaluating"."""
    assert [event.status for event in of_kind("evaluator_start", passes)] == ["evaluating"]
    assert [event.status for event in of_kind("evaluator_end", passes)] == ["evaluating"]


@clause("002.PROGRESS.5", "Real-Time Progress Streaming")
def test_what_ended_well_is_completed() -> None:
    """A configuration and a run that ended well have the status "completed"."""
    ended = [e.status for e in events_of() if e.kind in ("config_end", "end")]
    assert ended == ["completed", "completed"]


@clause("002.PROGRESS.6", "Real-Time Progress Streaming")
def test_an_evaluator_that_raised_has_failed() -> None:
    """The end of an evaluator that raised has the status "failed" and the error score."""
    (event,) = of_kind("evaluator_end", raises)
    assert event.status == "failed"
    assert event.score is not None
    assert event.score.status == "error"


@clause("002.PROGRESS.7", "Real-Time Progress Streaming")
def test_a_configuration_whose_target_failed_has_failed() -> None:
    """Where the target failed, the configuration ends with the status "failed"."""
    lines = [(e.kind, e.status) for e in events_of(target=broken) if "end" in e.kind]
    assert lines == [("config_end", "failed"), ("end", "failed")]


@clause("002.PROGRESS.8", "Real-Time Progress Streaming")
def test_the_percentage_counts_configurations_and_evaluators() -> None:
    """Two configurations with two evaluators each are four steps of 25 percent."""
    ended = of_kind("evaluator_end", configurations=BOTH)
    assert sorted(event.progress for event in ended)[-1] == 100.0
    single = of_kind("evaluator_end", passes, half)
    assert [event.progress for event in single] == [50.0, 100.0]
    one_at_a_time = define().evaluate_field("output", passes, half)
    values: list[float] = []
    one_at_a_time.on_progress(lambda e: values.append(e.progress), kinds=["evaluator_end"])
    one_at_a_time.evaluate(SPAN, target=agent, configurations=BOTH, concurrency=1)
    assert values == [25.0, 50.0, 75.0, 100.0]


@clause("002.PROGRESS.9", "Real-Time Progress Streaming", ruling="progress: never falls, ends at 100")
def test_the_percentage_never_falls_and_ends_at_100() -> None:
    """From 0 at the start to 100 at the end, also when the target fails."""
    for target in (agent, broken):
        progress = [event.progress for event in events_of(target=target, configurations=BOTH)]
        assert (progress[0], progress[-1]) == (0.0, 100.0)
        assert all(a <= b for a, b in pairwise(progress))


@clause("002.PROGRESS.10", "Real-Time Progress Streaming")
def test_events_have_the_values_of_selected_fields() -> None:
    """An evaluator's events hold the current values of all selected fields."""
    (event,) = of_kind("evaluator_end", passes)
    assert event.field_values == {"tokens": 400, "output": GOOD}


@clause("002.PROGRESS.11", "Real-Time Progress Streaming")
def test_events_name_the_current_field() -> None:
    """An evaluator's events name the field that is evaluated."""
    assert {event.current_field for event in of_kind("evaluator_end")} == {"output"}


@clause("002.PROGRESS.12", "Real-Time Progress Streaming")
def test_events_have_deltas_of_numeric_fields() -> None:
    """The span's 500 tokens are the baseline of 400: -100, or -20 percent."""
    (event,) = of_kind("evaluator_end", passes)
    assert event.deltas is not None
    assert (event.deltas["tokens"].absolute, event.deltas["tokens"].percentage) == (-100, -20.0)
    assert "output" not in event.deltas


@clause("002.PROGRESS.13", "Real-Time Progress Streaming")
def test_events_have_quality_metrics() -> None:
    """The end of an evaluator holds its value under its name in `quality_metrics`."""
    (event,) = of_kind("evaluator_end", half)
    assert event.quality_metrics == {"output.half": 0.5}


@clause("002.PROGRESS.14", "Real-Time Progress Streaming")
def test_several_callbacks_hear_the_same() -> None:
    """Every callback of a definition gets every event."""
    first: list[ProgressEvent] = []
    second: list[ProgressEvent] = []
    checks = define().evaluate_field("output", passes)
    checks.on_progress(first.append).on_progress(second.append).evaluate(SPAN)
    assert len(first) == 6
    assert first == second


@clause("002.PROGRESS.15", "Real-Time Progress Streaming")
def test_every_evaluator_that_ends_is_told_of() -> None:
    """Fifty evaluators give fifty events; none is left out."""
    checks = define().evaluate_field("output")
    events: list[ProgressEvent] = []
    for _ in range(50):
        checks.evaluate_with(passes)
    checks.on_progress(events.append, kinds=["evaluator_end"]).evaluate(SPAN)
    assert len({event.evaluator for event in events}) == len(events) == 50


@clause("002.PROGRESS.16", "Real-Time Progress Streaming")
def test_events_are_objects_of_one_class() -> None:
    """All events have one class with the same attributes, and cannot be changed."""
    events = events_of()
    assert {type(event) for event in events} == {ProgressEvent}
    for name in (
        "kind", "status", "progress", "timestamp", "run_id", "configuration", "evaluator",
        "current_field", "field_values", "deltas", "quality_metrics",
    ):  # fmt: skip
        assert all(hasattr(event, name) for event in events)
    with pytest.raises(AttributeError):
        events[0].progress = 3.0  # type: ignore[misc]


@clause("002.PROGRESS.17", "Real-Time Progress Streaming", ruling="time is aware UTC")
def test_events_have_a_timestamp() -> None:
    """Every event has an aware UTC time; the times never go back."""
    before = datetime.now(UTC)
    times = [event.timestamp for event in events_of()]
    assert all(moment.tzinfo is UTC for moment in times)
    assert all(a <= b for a, b in pairwise([before, *times, datetime.now(UTC)]))


@clause("002.PROGRESS.18", "Real-Time Progress Streaming")
def test_events_can_be_filtered_by_status() -> None:
    """A callback with `statuses` gets only events of these statuses."""
    events = events_of(passes, raises, statuses=["failed"])
    assert [(event.kind, event.evaluator) for event in events] == [("evaluator_end", "output.raises")]


@clause("002.PROGRESS.19", "Real-Time Progress Streaming")
def test_events_can_be_filtered_by_configuration() -> None:
    """A callback with `configurations` gets only the events of these configurations."""
    only: list[ProgressEvent] = []
    checks = define().evaluate_field("output", passes)
    checks.on_progress(only.append, configurations=["high"])
    checks.evaluate(SPAN, target=agent, configurations=BOTH)
    assert {event.configuration for event in only} == {"high"}
    assert len(only) == 4


@clause("002.PROGRESS.20", "Real-Time Progress Streaming", ruling="progress: callbacks may fail")
def test_a_callback_that_fails_does_not_stop_the_run() -> None:
    """The run goes on, other callbacks hear everything, and the report has a warning."""
    events: list[ProgressEvent] = []

    def fail(event: ProgressEvent) -> None:
        raise OSError("the display is gone")

    checks = define().evaluate_field("output", passes).on_progress(fail).on_progress(events.append)
    report = checks.evaluate(SPAN)
    assert report.passed
    assert len(events) == 6
    assert report.metadata is not None
    assert ["the display is gone" in text for text in report.metadata.warnings] == [True]


@clause("002.STORY.3", "Story 3: Stream Real-Time Progress with Full Metrics")
def test_a_callback_can_print_a_line_for_every_step() -> None:
    """An operator's callback reads status, percentage, values, deltas and quality metrics."""
    lines: list[str] = []

    def tell(event: ProgressEvent) -> None:
        if event.kind == "evaluator_end" and event.deltas:
            change = event.deltas["tokens"].percentage
            lines.append(f"{event.status} {event.progress:.0f}% {change:+.0f}% {event.quality_metrics}")

    checks = define().select("usage.total_tokens", as_="tokens").evaluate_field("output", half)
    checks.on_progress(tell).evaluate(SPAN, target=agent)
    assert lines == ["evaluating 100% -20% {'output.half': 0.5}"]


@clause("002.DELIVERABLE.3", "Functional Deliverables")
def test_a_callback_receives_all_event_types() -> None:
    """One run emits all six kinds of events, with values, deltas and quality metrics."""
    events = events_of(half)
    assert {event.kind for event in events} == {
        "start", "config_start", "evaluator_start", "evaluator_end", "config_end", "end",
    }  # fmt: skip
    (ended,) = [event for event in events if event.kind == "evaluator_end"]
    assert ended.field_values["tokens"] == 400
    assert ended.deltas is not None
    assert ended.quality_metrics == {"output.half": 0.5}
