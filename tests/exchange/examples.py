"""Runs with every kind of value that an export could lose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from proctor import JSONReporter, MarkdownReporter
from proctor.history.exchange.parts import Format
from proctor.history.exchange.read import ImportedRun, import_runs
from proctor.history.exchange.write import export_runs
from proctor.history.sqlite import SQLiteHistory
from proctor.ports import History
from proctor.records.metric import MetricValue
from proctor.records.run import DatasetInfo, EvaluatorSpec, Provenance, RunMetadata, RunOptions, RunStatus
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Configuration, Delivery, EvalResult, Failure, Trial

BEGAN = datetime(2026, 3, 1, 8, 30, 15, 123456, tzinfo=UTC)
ODD = 'größer, "quoted"; 🙂\nnext line\r\ttab \x00 zero \u2028 \N{ZERO WIDTH JOINER}'
SESSION = Session(
    [
        Message("user", ODD),
        ToolCall("search", {"query": ODD, "deep": {"n": [1, 2.5, None]}}, result=["x"]),
        ToolCall("fail", error="no such tool"),
        ModelCall("m", usage=Usage(input_tokens=3, output_tokens=4, cost=0.01)),
    ]
)


def results() -> list[EvalResult]:
    """Two configurations and two epochs: passes, failures, errors, skips, sessions, numbers."""
    usage = Usage(input_tokens=10, output_tokens=5, cost=0.1 + 0.2)
    return [
        EvalResult(
            Trial(
                Sample("a", ODD, {"city": ODD}, {"cluster": "c1", "tags": ["x"], "deep": [ODD]}),
                output={"answer": ODD, "n": 2**70, "x": 1e-320, "list": [True, None, -0.0]},
                latency_ms=1 / 3,
                started_at=BEGAN,
                usage=usage,
                session=SESSION,
                attempts=3,
            ),
            {"exact": Score(1.0, True, ODD, {"method": "letters", "n": 1e22}), "judge": Score(0.1, False)},
            {"judge": SESSION},
            Delivery("r1", "r1/a", "w7", 2),
        ),
        EvalResult(
            Trial(Sample("=1+1", "=cmd|'/c calc'!A1", "-5"), "@SUM(A1)", cached=True),
            {"exact": Score(1 / 3, False, "=HYPERLINK()"), "judge": Score.error("no answer")},
        ),
        EvalResult(
            Trial(
                Sample("a", ODD),
                error=Failure("TimeoutError", ODD, f"Traceback\n{ODD}"),
                latency_ms=None,
                configuration="large",
                epoch=1,
            )
        ),
        EvalResult(
            Trial(Sample("", None), None, configuration="large"),
            {"exact": Score.skipped("nothing to compare"), "judge": Score(0.0, False)},
        ),
    ]


RUN = RunMetadata(
    "20260301-083015-abcdef",
    "exam ü",
    BEGAN,
    status="completed",
    finished_at=BEGAN + timedelta(seconds=9),
    duration_seconds=9.000001,
    total=9,
    dataset=DatasetInfo("qa.jsonl", "/data/qa.jsonl", 2, "f" * 64, {"lines": 2}),
    configurations=(Configuration(), Configuration("large", {"temperature": 0.7})),
    evaluators=(EvaluatorSpec("exact", "exact_match"), EvaluatorSpec("judge", "llm_judge", {"p": ODD})),
    options=RunOptions(epochs=2),
    tags={"branch": "main", "note": "größer 🙂, = 1"},
    warnings=("one", ODD),
    provenance=Provenance("0d1f", "main", dirty=True, packages={"x": "1"}),
    redacted={"key": 2},
)


def metrics(n: int) -> dict[str, MetricValue]:
    """The counts of verdicts without a pass."""
    rate = MetricValue(0.0, n, errors=1, interval=(0.06, 0.79), kind="rate")
    return {"pass_rate": rate, "latency_ms.mean": MetricValue(None, 0, unit="ms", note=ODD)}


def filled(path: Path) -> SQLiteHistory:
    """A history of four runs: complete, with gaps, killed, just started."""
    history = SQLiteHistory(path)
    history.begin(RUN)
    with history.writer(RUN.run_id) as writer:
        # Finished in another order than they were planned.
        for place, result in reversed(list(enumerate(results()))):
            writer.add(place, result)
    history.finish(RUN, metrics(3), {"default": metrics(2), "large": {}})
    others: dict[str, tuple[RunStatus, tuple[int, ...]]] = {
        "gaps": ("interrupted", (1, 5, 300)),
        "killed": ("running", (0, 2)),
        "begun": ("running", ()),
    }
    for run_id, (status, places) in others.items():
        run = msgspec.structs.replace(RUN, run_id=run_id, name="other", status=status, tags={})
        history.begin(run)
        with history.writer(run_id) as writer:
            for place in places:
                writer.add(place, results()[place % 4])
        if status == "interrupted":
            history.finish(run, metrics(3), {})
    history.set_baseline("main", RUN.run_id)
    history.set_baseline("größer", RUN.run_id)
    history.set_baseline("old", "gaps")
    return history


def write(history: History, path: Path, as_: Format) -> Path:
    """All runs of a history in a file, the oldest first."""
    path.write_bytes(b"".join(export_runs(history, list(reversed(history.runs(limit=1000))), as_)))
    return path


def take(history: History, path: Path) -> list[ImportedRun]:
    return list(import_runs(history, path))


def everything(history: History) -> dict[str, object]:
    """All that can be seen of a history."""
    result: dict[str, object] = {"baselines": {name: run.run_id for name, run in history.baselines().items()}}
    for run in history.runs(limit=1000):
        report = history.report(run.run_id)
        result[run.run_id] = (
            run,
            JSONReporter().generate(report),
            MarkdownReporter().generate(report),
            sorted(history.finished_trials(run.run_id)),
            report.results.outcomes() and report.counts,
            report.results.error_kinds(),
            report.metrics,
            report.by_configuration,
        )
    return result
