"""Helpers for runs by workers: a target, workers with a mailbox, a run with a backend."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proctor import EvalReport, EvalRequest, InMemoryMailbox, ModelCall, Usage, exact_match, record
from proctor.distributed.remote_runner import MailboxBackend
from proctor.engine.start import RunControls
from proctor.reports.json import JSONReporter
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from tests.distributed.failing_mailboxes import LONG, loop_for, running, with_timeout
from tests.support import ManualClock, samples

QUIET: dict[str, Any] = {"progress": False}


def loud(text: str, *, suffix: str = "") -> str:
    """A target that fails on one sample and records its usage."""
    record(ModelCall("m", usage=Usage(input_tokens=3, output_tokens=1, cost=0.5)))
    if text == "word 3":
        raise ValueError("no threes")
    return text.upper() + suffix


@contextlib.contextmanager
def workers(target: Any = loud, evaluator: Any = exact_match, count: int = 1, **options: Any) -> Iterator[Any]:
    """A mailbox with running workers."""
    requests: InMemoryMailbox[Any] = InMemoryMailbox("evals", EvalRequest, max_deliveries=3)
    loops = [loop_for(target, requests, None, evaluator, name=f"w{n}", **options) for n in range(count)]
    with running(*loops):
        yield requests


def warnings(report: EvalReport) -> tuple[str, ...]:
    assert report.metadata is not None
    return report.metadata.warnings


def comparable_report(report: EvalReport, folder: Path) -> Any:
    """A report as JSON, without times, run ids and workers."""
    path = folder / "report.json"
    JSONReporter().save(report, path)
    return _timeless(json.loads(path.read_text()))


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        skipped = ("_at", "_ms", "run_id", "delivery", "seconds", "throughput", "traceback")
        return {k: _timeless(v) for k, v in value.items() if not any(s in k for s in skipped)}
    if isinstance(value, list):
        results = [_timeless(item) for item in value]
        ids = all(isinstance(item, dict) and "trial" in item for item in results)
        return sorted(results, key=_place) if ids else results
    return value


def _place(result: Any) -> Any:
    trial = result["trial"]
    return trial["sample"]["id"], trial.get("configuration", ""), trial.get("epoch", 0)


def run_by_workers(
    target: Any, count: int, place: MailboxBackend, history: Any, resume: bool = False, **options: Any
) -> EvalReport:
    """Run an evaluation with this backend."""
    evaluation = Evaluation(target, samples(count), exact_match, name="exam", options=options)
    how = RunControls(backend=place, watch=options.pop("watch", None))
    return with_timeout(LONG, lambda: asyncio.run(execute(evaluation, history, how, resume_from=resume)))


@contextlib.contextmanager
def fast_clock(clock: ManualClock, seconds: float) -> Iterator[None]:
    """Let a manual clock run fast during the block."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(0.05):
            clock.seconds += seconds

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
