"""The runner spec: what it leaves open (async, caching, progress) as Proctor answers it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from proctor import ProgressEvent, Sample, aevaluate, evaluate, exact_match, rescore
from tests.spec.clauses import clause
from tests.spec.runner_examples import double


@clause("003.OPEN.1", "Open Questions", ruling="samples run concurrently up to a limit")
def test_samples_run_at_the_same_time() -> None:
    """Three samples that wait for each other all pass, because they run at the same time."""
    together = threading.Barrier(3, timeout=30)

    def target(text: str) -> str:
        together.wait()
        return text

    data = [Sample(str(n), "a", "a") for n in range(3)]
    assert evaluate(target, data, exact_match, history=False, concurrency=3).pass_rate == 1.0


@clause("003.OPEN.2", "Open Questions")
def test_a_run_can_be_awaited() -> None:
    """`aevaluate` runs inside an event loop and gives the same report."""

    async def main() -> Any:
        return await aevaluate(double, [Sample("1", "a", "aa")], exact_match, history=False)

    assert asyncio.run(main()).pass_rate == 1.0


@clause("003.OPEN.3", "Open Questions")
def test_an_async_target_is_awaited() -> None:
    """A target may be an async function."""

    async def target(text: str) -> str:
        await asyncio.sleep(0)
        return text * 2

    assert evaluate(target, [Sample("1", "a", "aa")], exact_match, history=False).pass_rate == 1.0


@clause("003.OPEN.4", "Open Questions")
def test_outputs_can_be_cached(tmp_path: Path) -> None:
    """With `cache=True` a second run of the same target takes its outputs from the first."""
    data = [Sample("1", "a", "aa"), Sample("2", "b", "bb")]
    reports = [evaluate(double, data, exact_match, history=tmp_path / "h.db", cache=True) for _ in range(2)]
    assert [report.pass_rate for report in reports] == [1.0, 1.0]
    assert [[result.trial.cached for result in report.results] for report in reports] == [
        [False, False], [True, True],
    ]  # fmt: skip


@clause("003.OPEN.5", "Open Questions")
def test_outputs_can_be_scored_again_with_other_evaluators(tmp_path: Path) -> None:
    """A stored run is scored by other evaluators without calling the target."""
    calls: list[str] = []

    def target(text: str) -> str:
        calls.append(text)
        return text

    evaluate(target, [Sample("1", "a", "x")], exact_match, history=tmp_path / "h.db", name="r")
    again = rescore("r", {"short": lambda output: len(output) < 5}, history=tmp_path / "h.db")
    assert (calls, again.pass_rate) == (["a"], 1.0)


@clause("003.OPEN.6", "Open Questions")
def test_a_run_reports_its_progress() -> None:
    """A callback hears of the run from start to end; the percentage never falls and ends at 100."""
    events: list[ProgressEvent] = []
    data = [Sample(str(n), "a", "aa") for n in range(4)]
    evaluate(double, data, exact_match, history=False, on_progress=events.append)
    progress = [event.progress for event in events]
    assert (events[0].kind, events[-1].kind) == ("start", "end")
    assert progress == sorted(progress)
    assert progress[-1] == 100.0


@clause("003.OPEN.7", "Open Questions", ruling="a failing callback does not stop the run")
def test_a_progress_callback_is_optional_and_harmless() -> None:
    """A callback that raises is reported in the warnings, and the run goes on."""

    def broken(event: ProgressEvent) -> None:
        raise RuntimeError("no display")

    report = evaluate(double, [Sample("1", "a", "aa")], exact_match, history=False, on_progress=broken)
    assert report.pass_rate == 1.0
    assert report.metadata is not None
    assert any("no display" in warning for warning in report.metadata.warnings)
