"""Example results, fixed and random, for the tests of records and of the history."""

from __future__ import annotations

from hypothesis import strategies as st

from proctor.records.run import EvaluatorSpec, RunMetadata, RunOptions
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Trial
from tests.support import ManualClock

EVALUATORS = ("exact", "judge")
CONFIGURATIONS = ("small", "large")


def scored(sample_id: str, *values: float | None, latency_ms: float = 100.0) -> EvalResult:
    """A result whose scores pass from 0.5 on; None is a failed evaluator."""
    scores = {
        name: Score.error("no verdict") if value is None else Score(value, value >= 0.5)
        for name, value in zip(EVALUATORS, values, strict=False)
    }
    return EvalResult(Trial(Sample(sample_id, "?"), "!", latency_ms=latency_ms), scores)


def failed(sample_id: str, *, kind: str = "TimeoutError", latency_ms: float = 100.0) -> EvalResult:
    """A result whose target gave no output."""
    return EvalResult(Trial(Sample(sample_id, "?"), error=Failure(kind, "too slow"), latency_ms=latency_ms))


def skipped(sample_id: str) -> EvalResult:
    """A result on which the evaluator had nothing to say."""
    return EvalResult(Trial(Sample(sample_id, "?"), "!"), {"exact": Score.skipped("no answer key")})


def run_of(
    run_id: str = "20260101-120000-abcdef",
    *,
    name: str = "exam",
    configurations: tuple[str, ...] = ("default",),
    epochs: int = 1,
    tags: dict[str, str] | None = None,
) -> RunMetadata:
    """A run with two evaluators."""
    return RunMetadata(
        run_id,
        name,
        ManualClock().now(),
        configurations=tuple(Configuration(name) for name in configurations),
        evaluators=tuple(EvaluatorSpec(name, name) for name in EVALUATORS),
        options=RunOptions(epochs=epochs),
        tags=tags or {},
    )


any_score = (
    st.builds(Score, st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0]), st.booleans())
    | st.just(Score.error("it failed"))
    | st.just(Score.skipped("nothing to say"))
)
any_tokens = st.none() | st.integers(0, 1000)
any_usage = st.builds(Usage, any_tokens, any_tokens, cost=st.none() | st.sampled_from([0.0, 0.25]))
any_scores = st.fixed_dictionaries({}, optional=dict.fromkeys(EVALUATORS, any_score))


@st.composite
def any_runs(draw: st.DrawFn) -> tuple[RunMetadata, list[EvalResult]]:
    """A run and its results, in the order of its plan: samples, configurations, epochs."""
    names = draw(st.sampled_from([("default",), CONFIGURATIONS]))
    epochs = draw(st.integers(1, 2))
    results = []
    for number in range(draw(st.integers(0, 5))):
        cluster = draw(st.sampled_from([None, None, "", "doc", "s1"]))
        metadata = {} if cluster is None else {"cluster": cluster}
        sample: Sample[int, None] = Sample(f"s{number}", number, metadata=metadata)
        for name in names:
            results += [draw(_result(sample, name, epoch)) for epoch in range(epochs)]
    return run_of(configurations=names, epochs=epochs), results


@st.composite
def _result(draw: st.DrawFn, sample: Sample[int, None], name: str, epoch: int) -> EvalResult:
    trial = Trial(
        sample,
        output="!",
        latency_ms=draw(st.sampled_from([0.0, 1.5, 20.0])),
        configuration=name,
        epoch=epoch,
        usage=draw(st.none() | any_usage),
    )
    if draw(st.integers(0, 4)):
        asked = draw(st.none() | any_usage)
        sessions = {} if asked is None else {"judge": Session([ModelCall("m", asked)])}
        return EvalResult(trial, draw(any_scores), sessions)
    kind = draw(st.sampled_from(["TimeoutError", "KeyError", "OSError"]))
    return EvalResult(
        Trial(sample, error=Failure(kind, ""), latency_ms=trial.latency_ms, configuration=name, epoch=epoch)
    )
