"""A gate that ends its run: its verdict is that of the interval which holds at every moment."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from proctor.comparison.gates.decision import GateConfig
from proctor.comparison.gates.early import EarlyGate, conclude_early_gate, make_early_gate, replay_early_gate
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import Side
from proctor.errors import ConfigError
from proctor.records.order import shuffle_key
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata, RunOptions, StoppedEarly
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial

STRICT, SEED = "strict_pass_rate", 7
CONFIG = GateConfig({STRICT: 0.02})
NAMES = [f"s{n}" for n in range(400)]
IN_TURN = sorted(NAMES, key=lambda name: shuffle_key(SEED, name))


def results(names: list[str], passed: bool) -> list[EvalResult]:
    score = Score(float(passed), passed)
    return [EvalResult(Trial(Sample(name, "?")), {"exact": score}) for name in names]


def report(names: list[str], passed: bool, *, shuffle: int | None = SEED) -> EvalReport:
    run = RunMetadata(
        "RUN" if shuffle else "OLD",
        "exam",
        datetime(2026, 1, 1, tzinfo=UTC),
        "completed",
        dataset=DatasetInfo("data.jsonl", length=len(NAMES)),
        evaluators=(EvaluatorSpec("exact", "exact"),),
        options=RunOptions(shuffle=shuffle),
        stopped_early=StoppedEarly("settled", len(names), 400) if shuffle else None,
    )
    return EvalReport(results(names, passed), run)


def run_gate(demand: GateConfig, new: list[EvalResult], *, passed: bool = True) -> EarlyGate:
    """A gate that has counted a run, whose samples come in turn."""
    gate = make_early_gate(demand, results(NAMES, passed), ["exact"])
    for turn, item in enumerate(new):
        gate.add_result(turn, item)
    return gate


def pair(new: EvalReport, old: EvalReport) -> tuple[Side, Side]:
    return new.side(name="new"), old.side(name="main")


def test_the_verdict_comes_with_what_it_saved() -> None:
    """Nine count when it is decided, eleven were started: 389 of 400 are saved."""
    new, old = report(IN_TURN[:11], False), report(NAMES, True, shuffle=None)
    gate = run_gate(CONFIG, results(IN_TURN[:11], False))
    result = conclude_early_gate(gate, pair(new, old), new, baseline="main", notes=["a word"])
    [check] = result.checks
    assert (result.verdict, result.run_id, result.name) == ("fail", "RUN", "exam")
    assert (check.n, check.value, check.baseline, check.difference) == (9, 0.0, 1.0, -1.0)
    assert check.interval == gate.interval
    assert result.early is not None
    assert (result.early.n, result.early.run, result.early.total, result.early.saved) == (9, 11, 400, 389)
    assert result.answer.endswith("; decided after 9 of 400 samples; 389 saved.")
    assert len(result.lost) == 11


def test_figures_for_a_fixed_number_of_samples_are_left_out() -> None:
    """The comparison has no intervals, and samples that were not run are not missed."""
    new, old = report(IN_TURN[:11], False), report(NAMES, True, shuffle=None)
    gate = run_gate(CONFIG, results(IN_TURN[:11], False))
    result = conclude_early_gate(gate, pair(new, old), new, baseline="main")
    [comparison] = result.comparisons
    assert (comparison.metrics, comparison.scores, comparison.only_b) == ({}, {}, ())
    assert result.notes == ()


def test_a_stored_run_has_the_same_verdict_again() -> None:
    """Whatever the order in which its results are stored, and for a further margin as well."""
    new, old = report(sorted(IN_TURN[:11]), False), report(NAMES, True, shuffle=None)
    result = (new, old.results, pair(new, old), "default")
    first = conclude_early_gate(run_gate(CONFIG, results(IN_TURN[:11], False)), pair(new, old), new, baseline="main")
    assert replay_early_gate(CONFIG, *result, baseline="main") == first
    wide = replay_early_gate(GateConfig({STRICT: 0.5}), *result, baseline="main")
    assert wide.verdict == "inconclusive"
    assert "not decided after 11 of 400 samples" in wide.answer
    assert wide.checks[0].more_samples is None


def test_a_run_that_was_not_shuffled_is_not_judged_so() -> None:
    """Where it was stopped may have to do with its order."""
    new, old = report(IN_TURN[:11], False, shuffle=None), report(NAMES, True, shuffle=None)
    with pytest.raises(ConfigError, match="not shuffled"):
        replay_early_gate(CONFIG, new, old.results, pair(new, old), "default", baseline="main")


def test_runs_without_a_common_sample_are_refused() -> None:
    """Nothing was decided, because no result counted."""
    new, old = report(["x", "y"], False), report(NAMES, True, shuffle=None)
    gate = run_gate(CONFIG, results(["x", "y"], False))
    with pytest.raises(ConfigError, match="no sample in common"):
        conclude_early_gate(gate, pair(new, old), new, baseline="main")


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        (GateConfig({STRICT: 0.02, "exact.mean": 0.02}), "supports exactly one metric"),
        (GateConfig({}), "supports exactly one metric"),
        (GateConfig({STRICT: 0.02}, fail_under={STRICT: 0.9}), "fail_under: requires all samples"),
        (GateConfig({STRICT: 0.02}, max_flips=0), "max_flips: requires all samples"),
        (GateConfig({STRICT: -1.0}), "must be 0 or more"),
        (GateConfig({"latency_ms.mean": 0.02}), "does not support the metric"),
    ],
)
def test_what_part_of_a_run_cannot_answer_is_refused(demand: GateConfig, message: str) -> None:
    """One metric from 0 to 1, and nothing about the run as a whole."""
    with pytest.raises(ConfigError) as caught:
        make_early_gate(demand, results(NAMES, True), ["exact"])
    assert message in str(caught.value)


def test_the_number_of_samples_may_be_unknown_or_limited() -> None:
    """The number of saved samples refers to those that would have run."""
    new, old = report(IN_TURN[:11], False), report(NAMES, True, shuffle=None)
    gate = run_gate(CONFIG, results(IN_TURN[:11], False))
    assert new.metadata is not None
    for length, limit, of in ((None, None, None), (400, 50, 50)):
        run = RunMetadata(
            "RUN",
            "exam",
            new.metadata.started_at,
            dataset=DatasetInfo("data", length=length),
            options=RunOptions(limit=limit),
        )
        repeated = EvalReport(new.results, run)
        result = conclude_early_gate(gate, pair(new, old), repeated, baseline="main")
        assert result.early is not None
        assert result.early.total == of
    assert result.answer.endswith("decided after 9 of 50 samples; 39 saved.")
    assert conclude_early_gate(gate, pair(new, old), EvalReport(new.results), baseline="main").early is not None


def test_every_number_is_of_the_samples_that_decided_it() -> None:
    """Nine were wrong when it was settled; the two that were under way then were right."""
    new, old = report(IN_TURN[:11], False), report(NAMES, True, shuffle=None)
    late = [*results(IN_TURN[:9], False), *results(IN_TURN[9:11], True)]
    gate = run_gate(CONFIG, late)
    repeated = EvalReport(late, new.metadata)
    [check] = conclude_early_gate(gate, pair(repeated, old), repeated, baseline="main").checks
    assert (check.n, check.value, check.baseline, check.difference) == (9, 0.0, 1.0, -1.0)
