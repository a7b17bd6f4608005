"""Packing results: a batch is packed as its results are one by one."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from proctor.history.block import ResultPacker
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Failure, Trial

NOW = datetime(2026, 1, 2, tzinfo=UTC)
RUN = RunMetadata(
    "run",
    "run",
    NOW,
    evaluators=(EvaluatorSpec("a", "a"), EvaluatorSpec("b", "b")),
    configurations=(Configuration(), Configuration("other")),
)
PASS = Score(1.0, True)

scores = st.sampled_from(
    [PASS, Score(1.0, True, "why"), Score(1.0, True, details={"k": 1}), Score(0.5, True), Score(0.0, False),
     Score.skipped("no"), Score.error("broken")]
)  # fmt: skip
score_mappings: st.SearchStrategy[dict[str, Score]] = st.one_of(
    st.just({"a": PASS, "b": PASS}), st.just({"b": PASS, "a": PASS}), st.just({"a": PASS}), st.just({}),
    st.fixed_dictionaries({"a": scores, "b": scores}),
)  # fmt: skip
trials = st.builds(
    Trial,
    st.builds(Sample, st.text(max_size=3), st.text(max_size=3), st.none() | st.text(max_size=3)),
    st.text(max_size=3),
    st.none() | st.just(Failure("ValueError", "no")),
    st.none() | st.floats(0, 1e9),
    st.just(NOW),
    st.sampled_from(["default", "other"]),
    st.integers(0, 3),
)
results = st.builds(EvalResult, trials, score_mappings)


# Batches of texts without errors, most of which passed: these are packed together.
passing_trials = st.builds(
    Trial,
    st.builds(Sample, st.text(max_size=3), st.text(max_size=3), st.none() | st.text(max_size=3)),
    st.text(max_size=3),
    st.none(),
    st.floats(0, 1e9),
    st.just(NOW),
    st.sampled_from(["default", "other"]),
    st.integers(0, 3),
)
passing_results = st.builds(EvalResult, passing_trials, st.just({"a": PASS, "b": PASS}) | score_mappings)


@given(st.lists(results, max_size=6) | st.lists(passing_results, min_size=1, max_size=6))
@example([EvalResult(Trial(Sample("1", "x", "y"), "y", None, 1.5, NOW, "other", 2), {"a": PASS, "b": PASS})])
def test_a_batch_is_packed_as_its_results_are_one_by_one(batch: list[EvalResult]) -> None:
    """Figures, ids and JSON are equal, whichever scores the results have."""
    packer = ResultPacker(RUN)
    items = [(position, result, result.verdict()) for position, result in enumerate(batch)]
    assert packer.pack_batch(items) == [packer.pack(*item) for item in items]


def test_a_run_without_evaluators_has_no_passed_results() -> None:
    packer = ResultPacker(RunMetadata("run", "run", NOW))
    result = EvalResult(Trial(Sample("1", "x", "y"), "y", None, 1.5, NOW))
    (packed,) = packer.pack_batch([(0, result, result.verdict())])
    assert packed == packer.pack(0, result, ("skipped", None))
