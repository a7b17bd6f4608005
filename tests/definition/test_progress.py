"""The progress events of a definition: complete, in order, and never falling."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import ProgressEvent, attach, configuration, define
from proctor.errors import ConfigError, RunStopped
from proctor.wiring.definition.definition import OrderedEvents

Told = list[tuple[str, str | None, str | None]]


async def target(text: str, *, temperature: float = 0.0) -> str:
    await asyncio.sleep(0.001 * (1 - temperature))
    if temperature == 0.5:
        raise ValueError("no halves")
    return text.upper()


def quick(output: Any) -> bool:
    return True


def fails(output: Any) -> bool:
    raise ValueError("no")


async def waits(output: Any) -> float:
    await asyncio.sleep(0.002)
    return 0.25


def sleeps(output: Any) -> bool:
    time.sleep(0.001)
    return True


EVALUATORS = (quick, fails, waits, sleeps)


def shape(events: list[ProgressEvent]) -> Told:
    return [(event.kind, event.configuration, event.evaluator) for event in events]


def expected(configurations: list[str], steps: dict[str, list[str]]) -> Told:
    """The specified order: start, each configuration from start to end, end."""
    found: Told = [("start", None, None)]
    for name in configurations:
        found.append(("config_start", name, None))
        for step in steps[name]:
            found += [("evaluator_start", name, step), ("evaluator_end", name, step)]
        found.append(("config_end", name, None))
    return [*found, ("end", None, None)]


@settings(max_examples=15)
@given(
    fields=st.lists(st.lists(st.sampled_from(EVALUATORS), min_size=1, max_size=3), min_size=1, max_size=3),
    temperatures=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=4),
    concurrency=st.integers(1, 5),
    has_baseline=st.booleans(),
)
def test_the_events_of_a_span_come_in_the_specified_order(
    fields: list[list[Any]], temperatures: list[float], concurrency: int, has_baseline: bool
) -> None:
    """Property: complete, in order and up to 100, despite errors and concurrency."""
    events: list[ProgressEvent] = []
    checks = define().on_progress(events.append)
    steps = []
    for number, evaluators in enumerate(fields):
        path = f"metadata.field{number}"
        checks.evaluate_field(path)
        for place, one in enumerate(evaluators):
            checks.evaluate_with(attach(one, name=f"e{place}"))
            steps.append(f"{path}.e{place}")
    names = [f"c{number}" for number in range(len(temperatures))]
    for name, temperature in zip(names, temperatures, strict=True):
        checks.configuration(name, temperature=temperature)
    in_order = names
    if has_baseline:
        checks.baseline(names[-1])
        in_order = [names[-1], *names[:-1]]
    span = {"input": "x", **{f"field{number}": 1 for number in range(len(fields))}}
    checks.evaluate(span, target=target, concurrency=concurrency)
    spoken = {name: [] if temperature == 0.5 else steps for name, temperature in zip(names, temperatures, strict=True)}
    assert shape(events) == expected(in_order, spoken)
    assert all(a.progress <= b.progress for a, b in pairwise(events))
    assert events[-1].progress == 100.0
    assert events[0].progress == 0.0
    assert {event.status for event in events} <= {
        "pending", "running", "evaluating", "completed", "failed",
    }  # fmt: skip
    assert all(event.timestamp.utcoffset() is not None for event in events)
    assert all(0.0 <= event.progress <= 100.0 for event in events)


@settings(max_examples=8)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2))
def test_events_of_a_dataset_are_ordered_within_a_configuration(
    count: int, configurations: int, concurrency: int, epochs: int
) -> None:
    """Configurations run concurrently."""
    events: list[ProgressEvent] = []
    checks = define().on_progress(events.append).evaluate_field("output", quick, waits, fails)
    names = [f"c{number}" for number in range(configurations)]
    checks.evaluate(
        [{"input": "x"}] * count,
        target=target,
        configurations=[configuration(name) for name in names],
        concurrency=concurrency,
        epochs=epochs,
    )
    assert (events[0].kind, events[-1].kind, events[-1].progress) == ("start", "end", 100.0)
    assert all(a.progress <= b.progress for a, b in pairwise(events))
    for name in names:
        kinds = [event.kind for event in events if event.configuration == name]
        assert (kinds[0], kinds[-1]) == ("config_start", "config_end")
        assert kinds.count("config_start") == kinds.count("config_end") == 1
        trials: dict[Any, Told] = {}
        for event in events:
            if event.configuration == name and event.evaluator:
                trials.setdefault((event.sample_id, event.epoch), []).append((event.kind, None, event.evaluator))
        each = [
            (kind, None, f"output.{one}")
            for one in ("quick", "waits", "fails")
            for kind in ("evaluator_start", "evaluator_end")
        ]
        assert list(trials.values()) == [each] * (count * epochs)


def test_an_event_has_field_values_and_deltas() -> None:
    """Selected fields, their deltas from the baseline, and the score."""
    events: list[ProgressEvent] = []
    span = {
        "input": "x", "output": "hello", "usage": {"total_tokens": 450},
        "baseline_usage": {"total_tokens": 500},
    }  # fmt: skip
    (
        define()
        .select("usage.total_tokens", as_="tokens")
        .select("latency_ms", as_="latency")
        .evaluate_field("output", waits)
        .on_progress(events.append, kinds=["evaluator_end"])
        .evaluate({**span, "latency_ms": 12.0})
    )
    (event,) = events
    assert event.current_field == "output"
    assert event.field_values == {"tokens": 450, "latency": 12.0, "output": "hello"}
    assert event.deltas is not None
    assert event.deltas["tokens"].percentage == -10.0
    assert "latency" not in event.deltas
    assert event.quality_metrics == {"output.waits": 0.25}
    assert event.score is not None
    assert event.score.value == 0.25


def test_without_a_baseline_there_are_no_deltas() -> None:
    """None rather than an empty mapping."""
    events: list[ProgressEvent] = []
    define().evaluate_field("output", quick).on_progress(events.append).evaluate({"output": 1})
    assert {event.deltas for event in events} == {None}


def run(*callbacks: Any, **filters: Any) -> Any:
    checks = define().evaluate_field("output", quick, fails)
    for callback in callbacks:
        checks.on_progress(callback, **filters)
    return checks.evaluate(
        {"input": "x"},
        target=target,
        configurations=[configuration("a", temperature=0.0), configuration("b", temperature=1.0)],
    )


@pytest.mark.parametrize(
    ("filters", "kinds"),
    [
        ({"kinds": ["start", "end"]}, ["start", "end"]),
        ({"statuses": ["failed"]}, ["evaluator_end", "evaluator_end"]),
        ({"configurations": ["b"], "kinds": ["config_start", "config_end"]}, ["config_start", "config_end"]),
        ({"statuses": ["completed"], "configurations": ["a"]}, ["config_end"]),
        ({"kinds": []}, []),
    ],
)
def test_events_can_be_filtered(filters: dict[str, Any], kinds: list[str]) -> None:
    """By kind, status and configuration."""
    events: list[ProgressEvent] = []
    run(events.append, **filters)
    assert [event.kind for event in events] == kinds
    if "configurations" in filters:
        assert {event.configuration for event in events} == set(filters["configurations"])


@pytest.mark.parametrize("wrong", [{"kinds": ["evaluater_end"]}, {"statuses": ["complete"]}, {"callback": waits}])
def test_a_filter_that_matches_nothing_is_refused(wrong: dict[str, Any]) -> None:
    """As is an async callback, when it is added."""
    callback = wrong.pop("callback", print)
    with pytest.raises(ConfigError, match=r"did you mean 'evaluator_end'|'completed'|plain function"):
        define().on_progress(callback, **wrong)


@pytest.mark.parametrize("failing", ["start", "config_start", "evaluator_end", "config_end", "end"])
def test_a_failing_callback_stops_nothing(failing: str) -> None:
    """It receives the other events, and the report has a warning."""
    heard: list[ProgressEvent] = []
    others: list[ProgressEvent] = []

    def broken(event: ProgressEvent) -> None:
        heard.append(event)
        if event.kind == failing:
            raise RuntimeError("display is off")

    report = run(broken, others.append)
    assert shape(heard) == shape(others)
    assert shape(others) == expected(["a", "b"], {name: ["output.quick", "output.fails"] for name in "ab"})
    warned = [w for w in report.metadata.warnings if "display is off" in w]
    # At the very end of a run its warnings are written already.
    assert len(warned) == (failing != "end")


def test_a_stopped_run_sends_delayed_events() -> None:
    """Before the end event."""
    events: list[ProgressEvent] = []

    async def stops(text: str, *, temperature: float) -> str:
        if temperature == 0.0:
            await asyncio.sleep(0.1)
            raise ValueError("no")
        return text

    checks = define().evaluate_field("output", quick).on_progress(events.append)
    checks.configuration("first", temperature=0.0).configuration("second", temperature=1.0)
    with pytest.raises(RunStopped):
        checks.evaluate({"input": "x"}, target=stops, on_error="raise", concurrency=2)
    assert (events[-1].kind, events[-1].status) == ("end", "failed")
    assert [e.kind for e in events if e.configuration == "second"] == [
        "config_start", "evaluator_start", "evaluator_end", "config_end",
    ]  # fmt: skip
    assert [e.kind for e in events if e.configuration == "first"] == ["config_start", "config_end"]


ALLOWED = {"calls": 2}


async def limited(text: str) -> str:
    ALLOWED["calls"] -= 1
    if ALLOWED["calls"] < 0:
        raise ConnectionError("gone")
    return text


def test_the_progress_of_a_resumed_run_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished trials count in full."""
    monkeypatch.setitem(ALLOWED, "calls", 2)
    checks = define("exam").history(where=tmp_path / "h.db")
    checks.evaluate_field("output", quick, waits)
    spans = [{"id": str(number), "input": "x"} for number in range(4)]
    with pytest.raises(RunStopped):
        checks.evaluate(spans, target=limited, on_error="raise", concurrency=1)
    events: list[ProgressEvent] = []
    ALLOWED["calls"] = 10
    checks.on_progress(events.append)
    checks.evaluate(spans, target=limited, resume=True, concurrency=1, on_error="raise")
    ended = [event.progress for event in events if event.kind == "evaluator_end"]
    assert ended == [87.5, 100.0]


@pytest.mark.parametrize("evaluators", [(quick, fails), EVALUATORS])
def test_callbacks_do_not_change_scores(evaluators: tuple[Any, ...]) -> None:
    """Evaluators take another code path without callbacks."""

    def scores(checks: Any) -> Any:
        found = checks.evaluate_field("output", *evaluators).evaluate({"output": "x"})
        return [(s.status, s.value, s.reason) for s in found.field_results["output"].evaluators.values()]

    assert scores(define()) == scores(define().on_progress(lambda event: None))


def test_an_evaluator_of_a_field_has_a_timeout() -> None:
    """It is an error, and the others of the field run."""

    async def hangs(output: Any) -> bool:
        await asyncio.sleep(60)
        return True

    checks = define().evaluate_field("output", hangs, quick, waits)
    found = checks.evaluate({"output": "x"}, evaluator_timeout=0.1).field_results["output"]
    assert "no verdict within 0.1 s" in found.evaluators["hangs"].reason
    assert found.evaluators["waits"].value == 0.25
    assert not found.passed


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_ordered_events_are_complete(order: list[str], failing: list[bool]) -> None:
    """Property: any interleaving of three configurations, with a callback that sometimes fails."""
    from datetime import UTC, datetime

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    heard: list[tuple[str, str | None]] = []
    fails_at = iter(failing)

    def callback(event: ProgressEvent) -> None:
        heard.append((event.kind, event.configuration))
        if event.kind == "evaluator_end" and next(fails_at, False):
            raise RuntimeError("now and then")

    tell = OrderedEvents(callback, ["a", "b", "c"])

    def say(kind: Any, name: str | None) -> None:
        try:
            tell(ProgressEvent(kind, "running", 0.0, moment, "r", name))
        except RuntimeError:
            assert any(failing)

    for name in "cba":
        say("config_start", name)
    for name in order:
        say("evaluator_end", name)
    for name in "bca":
        say("config_end", name)
    say("end", None)
    told: list[tuple[str, str | None]] = []
    for name in "abc":
        told.append(("config_start", name))
        told += [("evaluator_end", name)] * order.count(name)
        told.append(("config_end", name))
    assert heard == [*told, ("end", None)]
