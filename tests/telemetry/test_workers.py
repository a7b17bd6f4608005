"""Spans of a worker belong to the runs it works for."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from proctor import EvalLoop, EvalRequest, EvalResult, InMemoryMailbox, exact_match, submit_dataset
from tests.telemetry.observation import about, id_of, named, parent_of


def test_the_trials_of_a_worker_have_the_id_of_their_run(
    provider: TracerProvider, exported: InMemorySpanExporter
) -> None:
    """Two runs, one worker: each trial begins a trace, and no span waits for the worker's end."""
    requests: InMemoryMailbox[EvalRequest[Any, Any]] = InMemoryMailbox("requests")
    results: InMemoryMailbox[EvalResult] = InMemoryMailbox("results")
    dataset = [{"id": "fr", "input": "paris", "expected": "PARIS"}]
    for run in ("monday", "tuesday"):
        submit_dataset(dataset, requests, run_id=run)
    loop = EvalLoop(loop=str.upper, evaluator=exact_match, requests=requests, results=results)
    loop.run(max_iterations=1)
    trials = named(exported, "proctor trial")
    assert sorted(about(span)["proctor.run.id"] for span in trials) == ["monday", "tuesday"]
    assert all(about(span)["session.id"] == about(span)["proctor.run.id"] for span in trials)
    assert [parent_of(span) for span in trials] == [None, None]
    scored = {parent_of(span): about(span) for span in named(exported, "evaluate exact_match")}
    assert {id_of(span): about(span)["session.id"] for span in trials} == {
        parent: result["session.id"] for parent, result in scored.items()
    }
    assert not [span for span in exported.get_finished_spans() if "run" in span.name.split()]
