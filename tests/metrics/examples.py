"""Results made by hand, for the tests of this folder."""

from __future__ import annotations

from proctor.records.results import ResultList
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import EvalResult, Failure, Trial


def scored(sample_id: str, value: float | None = None, *, cluster: str | None = None, epoch: int = 0) -> EvalResult:
    """A result with one score, which passes from 0.5 on; without a value its evaluator failed."""
    score = Score.error("no verdict") if value is None else Score(value, value >= 0.5)
    metadata = {"cluster": cluster} if cluster else {}
    sample = Sample(sample_id, "?", "!", metadata=metadata)
    return EvalResult(Trial(sample, "!", latency_ms=100.0, epoch=epoch), {"exact": score})


def failed(sample_id: str, *, latency_ms: float = 100.0, epoch: int = 0) -> EvalResult:
    """A result whose target gave no output."""
    trial = Trial(Sample(sample_id, "?"), error=Failure("TimeoutError", "too slow"), latency_ms=latency_ms, epoch=epoch)
    return EvalResult(trial)


def skipped(sample_id: str) -> EvalResult:
    """A result on which the evaluator had nothing to say."""
    scores = {"exact": Score.skipped("no expected value")}
    return EvalResult(Trial(Sample(sample_id, "?"), "!", latency_ms=100.0), scores)


def used(sample_id: str, tokens: int | None, latency_ms: float | None = 0.0, epoch: int = 0) -> EvalResult:
    """A result that took some tokens and some time."""
    usage = None if tokens is None else Usage(input_tokens=tokens)
    trial = Trial(Sample(sample_id, "?"), "!", latency_ms=latency_ms, usage=usage, epoch=epoch)
    return EvalResult(trial)


def mixed() -> ResultList:
    """Scores 1, 1, 0.5, 0; one time-out, one broken evaluator, one skip."""
    return ResultList(
        [scored("a", 1.0), scored("b", 1.0), scored("c", 0.5), scored("d", 0.0), failed("e"), scored("f"), skipped("g")]
    )


def repeated(values_by_sample: dict[str, list[float | None]]) -> ResultList:
    """Each sample asked several times; None is a time-out."""
    return ResultList(
        failed(sample, epoch=epoch) if value is None else scored(sample, value, epoch=epoch)
        for sample, values in values_by_sample.items()
        for epoch, value in enumerate(values)
    )
