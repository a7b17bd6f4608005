"""Runs with a baseline configuration: other configurations are compared with it, despite errors."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import EvalReport, FieldContext, InMemoryMailbox, Sample, Score, SQLiteHistory, evaluate, evaluator
from proctor.engine import timeouts as limits
from proctor.errors import ConfigError, RunStopped, StopRun

CONFIGURATIONS = {"base": {"shift": 0}, "up": {"shift": 5}, "down": {"shift": -5}}


def numbers(count: int, **metadata: Any) -> list[Sample[int, None]]:
    return [Sample(f"s{i}", 10 * (i + 1), metadata=metadata) for i in range(count)]


async def target(number: int, *, shift: int) -> int:
    return number + shift


def compared(field_context: FieldContext) -> Score:
    """Tells what it was given."""
    delta = field_context.delta
    told = {
        "value": field_context.value,
        "baseline": field_context.baseline_value,
        "delta": None if delta is None else [delta.absolute, delta.percentage],
        "options": dict(field_context.configuration),
    }
    return Score(1.0, True, details=told)


@evaluator(needs=("epochs",))
def repeats(field_context: FieldContext) -> Score:
    """Tells which repeats it was given."""
    told = [list(field_context.epochs), list(field_context.baseline_epochs)]
    return Score(1.0, True, details={"epochs": told})


def run(called: Any = target, *evaluators: Any, count: int = 2, **options: Any) -> EvalReport:
    metadata = options.pop("metadata", {})
    options = {"history": False, "configurations": CONFIGURATIONS, "baseline": "base", **options}
    return evaluate(called, numbers(count, **metadata), list(evaluators) or [compared], **options)


def told(report: EvalReport, name: str = "compared") -> dict[tuple[str, str, int], Any]:
    return {
        (r.sample_id, r.trial.configuration, r.trial.epoch): r.scores[name].details
        for r in report.results
        if name in r.scores
    }


def test_every_configuration_is_compared_with_the_baseline() -> None:
    """Of the same sample and epoch; the baseline itself is compared with nothing."""
    result = told(run(metadata={"baseline_output": 8}))
    assert len(result) == 6
    assert result["s0", "up", 0] == {
        "value": 15, "baseline": 10, "delta": [5, 50.0], "options": {"name": "up", "shift": 5},
    }  # fmt: skip
    assert result["s1", "down", 0]["delta"] == [-5, -25.0]
    assert result["s0", "base", 0]["baseline"] is None


def test_the_recorded_result_is_the_default_baseline() -> None:
    """For every configuration."""
    result = told(run(baseline=None, metadata={"baseline": {"output": 20}}))
    assert {name: result["s0", name, 0]["delta"] for name in CONFIGURATIONS} == {
        "base": [-10, -50.0], "up": [-5, -25.0], "down": [-15, -75.0],
    }  # fmt: skip


def test_the_baseline_is_stored_with_the_run(tmp_path: Path) -> None:
    """Readers of the run know what was compared."""
    run(history=tmp_path / "h.db", name="exam")
    assert SQLiteHistory(tmp_path / "h.db").find("exam").baseline == "base"


def test_an_unknown_baseline_is_refused() -> None:
    """Before anything runs, with the nearest name."""
    with pytest.raises(ConfigError, match="did you mean 'base'"):
        run(baseline="bse")


@pytest.mark.parametrize("recorded", [{}, {"baseline_output": 1}])
def test_a_failed_baseline_is_no_baseline(recorded: dict[str, Any]) -> None:
    """The other trials of the sample are scored without one; the recorded result is not used instead."""

    async def fails(number: int, *, shift: int) -> int:
        if shift == 0 and number == 10:
            raise ValueError("no baseline today")
        return number + shift

    result = told(run(fails, metadata=recorded))
    assert result["s0", "up", 0]["baseline"] is None
    assert result["s0", "down", 0]["delta"] is None
    assert result["s1", "up", 0]["baseline"] == 20
    assert ("s0", "base", 0) not in result


released = threading.Event()


def blocks(number: int, *, shift: int) -> int:
    if shift == 0:
        released.wait(60)
    return number + shift


async def hangs(number: int, *, shift: int) -> int:
    if shift == 0:
        await asyncio.sleep(60)
    return number + shift


async def ignores(number: int, *, shift: int) -> int:
    until = time.monotonic() + 60
    while shift == 0 and time.monotonic() < until:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)
    return number + shift


@pytest.mark.parametrize("called", [blocks, hangs, ignores])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_baseline_with_a_timeout_does_not_block_others(
    called: Any, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled, left in its thread or abandoned: the others run without a baseline."""
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.1)
    released.clear()
    report = run(called, timeout=0.2, concurrency=concurrency, count=1)
    released.set()
    assert report.errors == 1
    result = told(report)
    assert {name: result["s0", name, 0]["baseline"] for name in ("up", "down")} == {
        "up": None, "down": None,
    }  # fmt: skip


@settings(max_examples=10)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.integers(0, 3), st.booleans())
def test_any_concurrency_with_epochs_and_a_baseline(
    concurrency: int, epochs: int, count: int, failing: int, listened: bool
) -> None:
    """No deadlock, and every score has what it should, also with one worker and failing trials."""
    calls: Counter[tuple[int, int]] = Counter()

    async def varies(number: int, *, shift: int) -> int:
        calls[number, shift] += 1
        await asyncio.sleep(0.0001 * (number % 3))
        if number <= 10 * failing and shift == 5:
            raise ValueError("not this one")
        return number + shift

    report = run(
        varies, compared, repeats, count=count, epochs=epochs, concurrency=concurrency,
        on_progress=[lambda event: None] if listened else (),
    )  # fmt: skip
    assert report.total == 3 * epochs * count
    assert report.errors == epochs * min(failing, count)
    for (sample_id, name, _), details in told(report).items():
        number = 10 * (int(sample_id[1:]) + 1)
        assert details["baseline"] == (None if name == "base" else number)
    for (sample_id, name, epoch), details in told(report, "repeats").items():
        if epoch != epochs - 1:
            assert details == {}
            continue
        number = 10 * (int(sample_id[1:]) + 1)
        own = [number + CONFIGURATIONS[name]["shift"]] * epochs
        assert details["epochs"] == [own, [] if name == "base" else [number] * epochs]
    assert set(calls.values()) == {epochs}


def test_repeats_are_seen_once_and_skipped_elsewhere() -> None:
    """In the last epoch; where an epoch failed, the values of the others."""
    seen: list[int] = []

    async def second_fails(number: int, *, shift: int) -> int:
        seen.append(shift)
        if seen.count(shift) == 2:
            raise ValueError("no")
        return number + shift

    report = run(second_fails, repeats, count=1, epochs=3, concurrency=1)
    statuses = [r.scores["repeats"].status for r in report.results if r.scores]
    assert Counter(statuses) == {"skipped": 3, "ok": 3}
    assert told(report, "repeats")["s0", "up", 2]["epochs"] == [[15, None, 15], [10, None, 10]]


def test_a_field_that_one_epoch_lacks_is_missing_there_alone() -> None:
    """The field is missing only in that epoch, with its path; the run continues."""
    from proctor import define

    epoch = iter(range(100))

    async def sometimes(number: int) -> dict[str, int]:
        return {"a": number} if next(epoch) % 2 == 0 else {"b": number}

    values: list[Any] = []
    report = (
        define()
        .evaluate_field("output.b", repeats)
        .on_progress(values.append)
        .evaluate(numbers(2), target=sometimes, epochs=2, concurrency=1)
    )
    first, last = ([r.scores["output.b"] for r in report.results if r.trial.epoch == at] for at in (0, 1))
    assert {score.status for score in last} == {"ok"}
    assert {score.status for score in first} == {"error"}
    assert "FieldMissing" in first[0].reason
    parts = [score.details["parts"]["repeats"] for score in last]
    assert [part["details"]["epochs"][0][0] for part in parts] == [None, None]
    assert values[-1].kind == "end"


def test_a_stopped_baseline_stops_the_run() -> None:
    """A spent budget in the baseline ends the run at once, those that wait for it included."""

    async def spent(number: int, *, shift: int) -> int:
        if shift == 0:
            await asyncio.sleep(0.05)
            raise StopRun("the budget is spent", fix="raise it")
        return number

    with pytest.raises(RunStopped, match="the budget is spent"):
        run(spent, concurrency=6)


def test_max_errors_does_not_wait_for_ever() -> None:
    """The baselines fail, and the run stops without hanging."""

    async def fails(number: int, *, shift: int) -> int:
        if shift == 0:
            raise ConnectionError("gone")
        return number

    with pytest.raises(RunStopped):
        run(fails, on_error="raise", retries=2, retry_delay=0.01, concurrency=6)


def test_workers_are_refused_where_trials_are_compared() -> None:
    """They see one trial at a time; the message says so, and what to leave out."""
    requests: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    with pytest.raises(ConfigError) as caught:
        run(workers=requests)
    assert str(caught.value).startswith("baseline: workers see one trial at a time")
    with pytest.raises(ConfigError, match="evaluators: workers see one trial") as caught:
        run(target, repeats, workers=requests, baseline=None)
    assert "consistency" in caught.value.fix
    assert requests.approximate_count() == 0


class Page:
    """Something that can be watched going away."""

    def __init__(self, text: str) -> None:
        self.text = text


def test_samples_are_released_during_a_run() -> None:
    """Trials of a sample stay in memory only until the last one is scored."""
    alive: weakref.WeakSet[Page] = weakref.WeakSet()
    most = [0]

    async def page(number: int, *, shift: int) -> Page:
        gc.collect(0)
        most[0] = max(most[0], len(alive))
        page = Page(str(number))
        alive.add(page)
        return page

    def any_text(field_context: FieldContext) -> bool:
        return bool(field_context.value.text)

    report = run(page, any_text, count=200, concurrency=2)
    assert report.total == 600
    # Three trials of each sample under way, and what the writer has not yet written.
    assert most[0] < 60, f"{most[0]} of 600 outputs were alive at once"


def test_the_options_reach_evaluators_without_a_baseline() -> None:
    """A context knows the configuration it ran in, also where nothing is compared."""
    result = told(run(baseline=None))
    assert result["s0", "down", 0]["options"] == {"name": "down", "shift": -5}
