"""Progress events: the specified order, a percentage that never falls, failing callbacks."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import ProgressEvent, Sample, contains, evaluate, exact_match
from tests.support import samples, shout


def events_of(count: int, concurrency: int, epochs: int, failing: int) -> list[ProgressEvent]:
    """The events of a run in two configurations."""
    events: list[ProgressEvent] = []

    async def target(text: str, *, loud: bool) -> str:
        await asyncio.sleep(0)
        if int(text.split()[1]) < failing:
            raise ValueError(text)
        return text.upper() if loud else text

    evaluate(
        target, samples(count), [exact_match, contains], history=False, epochs=epochs,
        concurrency=concurrency, on_progress=events.append,
        configurations={"loud": {"loud": True}, "quiet": {"loud": False}},
    )  # fmt: skip
    return events


def test_one_sample_gives_the_ruled_sequence() -> None:
    """start; for each configuration its start, evaluators in order, its end; then end."""
    events = events_of(1, concurrency=1, epochs=1, failing=0)
    lines = [(e.kind, e.configuration, e.evaluator) for e in events]
    expected: list[tuple[str, str | None, str | None]] = [("start", None, None)]
    for name in ("loud", "quiet"):
        expected.append(("config_start", name, None))
        for evaluator in ("exact_match", "contains"):
            expected.append(("evaluator_start", name, evaluator))
            expected.append(("evaluator_end", name, evaluator))
        expected.append(("config_end", name, None))
    assert lines == [*expected, ("end", None, None)]
    assert [e.status for e in events][:4] == ["pending", "running", "evaluating", "evaluating"]
    assert [e.progress for e in events if e.kind == "evaluator_end"] == [25.0, 50.0, 75.0, 100.0]
    assert events[3].quality_metrics == {"exact_match": 1.0}
    assert (events[-1].status, events[-1].done, events[-1].total) == ("completed", 2, 2)


@settings(max_examples=8)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 2), st.integers(0, 3))
def test_the_percentage_never_falls_and_ends_at_100(count: int, concurrency: int, epochs: int, failing: int) -> None:
    """Whatever runs side by side: monotone, 100 at the end, every start has its end."""
    events = events_of(count, concurrency, epochs, failing)
    assert all(a.progress <= b.progress for a, b in pairwise(events))
    assert (events[0].kind, events[-1].kind, events[-1].progress) == ("start", "end", 100.0)
    kinds = [e.kind for e in events]
    assert kinds.count("config_start") == kinds.count("config_end") == 2
    assert kinds.count("evaluator_start") == kinds.count("evaluator_end")
    assert kinds.count("evaluator_end") == 2 * 2 * epochs * max(0, count - failing)
    assert all(e.timestamp.utcoffset() is not None for e in events)


def test_a_failing_callback_is_reported_and_does_not_stop_the_run() -> None:
    """The run continues, other callbacks are called, and the report has one warning."""
    seen: list[ProgressEvent] = []

    def broken(event: ProgressEvent) -> None:
        raise RuntimeError("display is off")

    report = evaluate(shout, samples(5), exact_match, history=False, on_progress=[broken, seen.append])
    assert report.pass_rate == 1.0
    assert len(seen) == 14
    assert report.metadata is not None
    assert report.metadata.warnings == ("a progress callback failed: RuntimeError: display is off",)


def test_a_stream_without_a_length_has_no_total() -> None:
    """It still ends at 100."""
    events: list[ProgressEvent] = []
    evaluate(shout, iter(samples(3)), exact_match, history=False, on_progress=events.append)
    assert events[0].total is None
    assert {e.progress for e in events[:-1]} == {0.0}
    assert events[-1].progress == 100.0


def test_a_failed_evaluator_has_an_event() -> None:
    """With the status failed and the error score."""
    events: list[ProgressEvent] = []

    def broken(output: str) -> bool:
        raise ValueError("no")

    evaluate(shout, [Sample("a", "x")], broken, history=False, on_progress=events.append)
    match = next(e for e in events if e.kind == "evaluator_end")
    assert match.status == "failed"
    assert match.score is not None
    assert "ValueError: no" in match.score.reason


def test_a_stopped_run_ends_as_failed() -> None:
    """The last event of a run that was stopped says failed, and configurations that began end."""
    from proctor.errors import RunStopped

    events: list[ProgressEvent] = []

    async def target(_: str) -> str:
        raise ValueError("no")

    with pytest.raises(RunStopped):
        evaluate(
            target, samples(5), exact_match, history=False, on_error="raise", concurrency=1,
            on_progress=events.append,
        )  # fmt: skip
    assert [e.kind for e in events] == ["start", "config_start", "config_end", "end"]
    assert events[-1].status == "failed"
