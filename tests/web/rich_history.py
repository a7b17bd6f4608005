"""A history with everything that the viewer must show, for the browser tests and for screenshots.

Ten runs: errors, skips, unicode, right-to-left and long texts, images, epochs, clusters, rubrics, a judge, texts that
look like markup, a run in progress and an interrupted one.
"""

from __future__ import annotations

import base64
import struct
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from proctor.engine.finish import aggregate
from proctor.history.sqlite import SQLiteHistory
from proctor.records.run import (
    CachedOutputs,
    DatasetInfo,
    EvaluatorSpec,
    Provenance,
    RunMetadata,
    RunOptions,
    RunStatus,
    TargetSpec,
)
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Trial

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
TOPICS = ("moons", "planets", "comets", "probes")
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
LONG = "The probe measured the field again and again, and every value was a little lower than the one before. " * 40
HEBREW = "כמה ירחים יש לצדק? השאלה הזאת נכתבת מימין לשמאל."


def make_image() -> str:
    """A small picture as a data address: a blue square of 8 × 8 pixels."""
    rows = b"".join(b"\x00" + b"\x00\x72\xb2" * 8 for _ in range(8))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def make_samples(count: int) -> list[Sample[Any, Any]]:
    """Questions by topic and level; some are long, right to left, or look like markup."""
    samples = []
    for n in range(count):
        topic = TOPICS[n % len(TOPICS)]
        text = f"Question {n} about {topic}: how far is object {n} from its star?"
        text = {5: LONG, 7: HEBREW, 11: MARKUP, 13: "多言語：木星の衛星はいくつ？ 🪐"}.get(n, text)
        metadata = {"topic": topic, "level": n % 5, "cluster": f"doc-{n // 4}", "tags": ["hard"] if n % 7 == 0 else []}
        samples.append(Sample(f"{topic}-{n}" if n != 11 else MARKUP, text, f"{10 * n} million kilometres", metadata))
    return samples


def make_session(sample: Sample[Any, Any], answer: str, n: int) -> Session:
    picture = [
        {"type": "text", "text": "Here is the plate."},
        {"type": "image_url", "image_url": {"url": make_image()}},
    ]
    return Session(
        [
            Message("system", "Answer briefly. Use the catalogue."),
            Message("user", picture if n % 6 == 0 else sample.input),
            ModelCall("example:small", Usage(120, 20, cost=0.0002), latency_ms=310.0, finish_reason="tool_calls"),
            ToolCall("catalogue", {"object": n, "note": MARKUP}, result={"distance": 10 * n}, duration_ms=42.0),
            ToolCall("archive", {"object": n}, error="the archive is closed", duration_ms=5.0),
            Message("assistant", answer),
        ]
    )


class RunPlan(msgspec.Struct):
    """How a run comes out: the share of right answers by configuration, and its other properties."""

    name: str
    shares: dict[str, float]
    samples: int = 120
    epochs: int = 1
    status: RunStatus = "completed"
    days: float = 0.0
    target: str = "v1"
    tags: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    rubrics: bool = False
    finished: float = 1.0


PLANS = (
    RunPlan("observatory", {"small": 0.52}, target="v1"),
    RunPlan("observatory", {"small": 0.58}, days=1, target="v2"),
    RunPlan("observatory", {"small": 0.61}, days=2, target="v2", tags={"branch": MARKUP}),
    RunPlan("observatory", {"small": 0.74, "medium": 0.83, "large": 0.86}, samples=200, days=3, target="v3"),
    RunPlan("flaky agent", {"default": 0.6}, samples=40, epochs=5, days=4),
    RunPlan("support chats", {"default": 0.7}, samples=30, days=5, rubrics=True),
    RunPlan("all errors", {"default": -1.0}, samples=12, days=6, warnings=("12 of 12 trials failed",)),
    RunPlan("stopped", {"small": 0.6}, days=7, status="interrupted", finished=0.4),
    RunPlan("nightly", {"small": 0.75, "medium": 0.8}, days=8, target="v4", tags={"commit": "abc123"}),
    RunPlan("nightly", {"small": 0.71, "medium": 0.84}, days=9, target="v5", warnings=("contains skipped 14 of 120",)),
)


def make_history(path: Path, plans: tuple[RunPlan, ...] = PLANS) -> SQLiteHistory:
    """Store all runs; the last one is a run in progress, if it is claimed."""
    history = SQLiteHistory(path)
    for number, plan in enumerate(plans):
        store(history, plan, f"run-{number:02}", Random(number))
    history.set_baseline("main", "run-08")
    return history


def store(history: SQLiteHistory, plan: RunPlan, run_id: str, random: Random) -> RunMetadata:
    samples = make_samples(plan.samples)
    run = RunMetadata(
        run_id,
        plan.name,
        NOON + timedelta(days=plan.days),
        dataset=DatasetInfo("questions.jsonl", "file", plan.samples, "f1"),
        target=TargetSpec("answer", "function", plan.target),
        configurations=tuple(Configuration(name, {"size": name}) for name in plan.shares),
        evaluators=_evaluators(rubrics=plan.rubrics),
        options=RunOptions(epochs=plan.epochs),
        tags=plan.tags,
        warnings=plan.warnings,
        total=plan.samples * len(plan.shares) * plan.epochs,
        baseline=next(iter(plan.shares)) if len(plan.shares) > 1 else None,
        provenance=Provenance(f"{plan.target}c0ffee", "main", False),
        cached_outputs=CachedOutputs(3, 120) if plan.name == "nightly" else None,
    )
    history.begin(run)
    with history.writer(run_id) as writer:
        position = 0
        for n, sample in enumerate(samples[: int(plan.samples * plan.finished)]):
            for name, share in plan.shares.items():
                for epoch in range(plan.epochs):
                    writer.add(position, _result(plan, sample, n, name, share, epoch, random))
                    position += 1
    seconds = 12.0 + plan.samples / 10
    done = msgspec.structs.replace(
        run, status=plan.status, finished_at=run.started_at + timedelta(seconds=seconds), duration_seconds=seconds
    )
    if plan.status == "completed":
        history.finish(done, *aggregate(history.results(run_id), done))
    else:
        history.update(done)
    return done


def _evaluators(*, rubrics: bool) -> tuple[EvaluatorSpec, ...]:
    if rubrics:
        texts = {"description": "d", "scoring_criteria": "1: bad … 5: good"}
        return tuple(
            EvaluatorSpec(name, "rubric", {"rubric": {"id": name, "name": name, **texts}, "scale": [1, 5]})
            for name in ("clarity", "tone", "correctness")
        )
    return (
        EvaluatorSpec("contains", "contains"),
        EvaluatorSpec("brief", "text_count", {"unit": "words", "at_most": 30}),
        EvaluatorSpec("judge", "llm_judge", {"model": "example:judge"}),
    )


def _result(
    plan: RunPlan, sample: Sample[Any, Any], n: int, name: str, share: float, epoch: int, random: Random
) -> EvalResult:
    if share < 0 or random.random() < 0.03:
        failure = Failure("TimeoutError", f"no answer within 30 s to {sample.input!r}", "Traceback …")
        return EvalResult(Trial(sample, error=failure, latency_ms=30_000.0, configuration=name, epoch=epoch))
    right = random.random() < share
    answer = (
        f"It is {10 * n} million kilometres away." if right else f"About {random.randint(1, 900)} light years {MARKUP}"
    )
    usage = Usage(120 + n % 40, 12 + n % 9, cost=0.0003)
    trial = Trial(
        sample,
        answer,
        latency_ms=random.lognormvariate(6, 0.5),
        started_at=NOON,
        configuration=name,
        epoch=epoch,
        usage=usage,
        session=make_session(sample, answer, n),
        cached=n < 3,
    )
    if plan.rubrics:
        scores = {spec.name: _graded(random) for spec in _evaluators(rubrics=True)}
        return EvalResult(trial, scores)
    agrees = right if random.random() < 0.9 else not right
    judged = Score(float(agrees), agrees, "The distance agrees." if agrees else f"The distance is not {MARKUP}.")
    if n % 17 == 0:
        judged = Score.skipped("the question has no expected value in the catalogue")
    scores = {
        "contains": Score(float(right), right, "" if right else f"{sample.expected!r} is not in the output"),
        "brief": Score(1.0, True, "8 words"),
        "judge": judged,
    }
    exchange = Session([Message("user", f"Is this right? {answer}"), Message("assistant", judged.reason)])
    return EvalResult(trial, scores, {"judge": exchange})


def _graded(random: Random) -> Score:
    value = random.choice((0.0, 0.25, 0.5, 0.75, 1.0, 1.0))
    return Score(value, value >= 0.5, f"{1 + 4 * value:g} of 5: fits the criteria")
