"""A gate that is checked after every sample: the verdict does not depend on the order of results."""

from __future__ import annotations

import random

import pytest
from benchmarks.simulations.claim import AT_MOST, simulate
from benchmarks.simulations.early_gates import early_gates
from hypothesis import given
from hypothesis import strategies as st

from proctor.comparison.gates.early import (
    EarlyGate,
    average_numbers,
    make_metric_reader,
    make_score_reader,
    replay_results,
)
from proctor.errors import ConfigError, StopRun
from proctor.records.order import shuffle_key
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Failure, Trial

NAMES = [f"s{n}" for n in range(60)]


def result(
    name: str, value: float | None, epoch: int = 0, *, configuration: str = "default", **metadata: str
) -> EvalResult:
    """A result with one score; without a value its target failed."""
    sample: Sample[str, str] = Sample(name, "?", metadata=metadata)
    if value is None:
        failed = Trial(sample, error=Failure("E", "no"), epoch=epoch, configuration=configuration)
        return EvalResult(failed)
    trial = Trial(sample, epoch=epoch, configuration=configuration)
    return EvalResult(trial, {"exact": Score(value, value >= 0.5)})


def add_all(gate: EarlyGate, answer: list[tuple[int, EvalResult]]) -> int | None:
    """How many results a run would have begun with when the gate was settled."""
    for count, (turn, item) in enumerate(answer, start=1):
        if gate.add_result(turn, item) is not None:
            return count
    return None


def test_a_clearly_worse_one_fails_and_a_clearly_better_one_passes() -> None:
    """Nine wrong answers of nine are enough; the text names the verdict and its basis."""
    gate = EarlyGate(dict.fromkeys(NAMES, 1.0), margin=0.02)
    assert add_all(gate, [(n, result(name, 0.0)) for n, name in enumerate(NAMES)]) == 9
    assert (gate.verdict, gate.n, gate.sample_count) == ("fail", 9, 9)
    low, high = gate.interval
    assert low == -1
    assert high < -0.02
    assert gate.reason == (
        "strict_pass_rate is worse than the baseline by more than 2 points; the difference is "
        f"from -100.0 to {100 * high:+.1f} points (95% confidence sequence) after 9 samples"
    )
    better = EarlyGate(dict.fromkeys(NAMES, 0.0))
    assert add_all(better, [(n, result(name, 1.0)) for n, name in enumerate(NAMES)]) == 9
    assert better.verdict == "pass"
    assert better.reason.startswith("strict_pass_rate is not worse than the baseline; the diff")


def test_equal_ones_are_not_settled_by_a_few_samples() -> None:
    """Sixty equal samples do not prove a margin of 2 points: the gate is inconclusive."""
    gate = EarlyGate(dict.fromkeys(NAMES, 1.0), margin=0.02)
    assert add_all(gate, [(n, result(name, 1.0)) for n, name in enumerate(NAMES)]) is None
    assert gate.verdict == "inconclusive"
    assert gate.reason.startswith("strict_pass_rate is not decided; the difference is")


@given(
    values=st.lists(
        st.tuples(st.sampled_from([0.0, 0.0, 0.0, 0.3, 1.0, None]), st.sampled_from([0.0, 1.0])),
        min_size=1,
        max_size=50,
    ),
    epochs=st.integers(1, 3),
    chance=st.randoms(use_true_random=False),
    known=st.sets(st.integers(0, 49), max_size=5),
)
def test_any_order_of_completion_stops_at_the_same_point(
    values: list[tuple[float | None, float]], epochs: int, chance: random.Random, known: set[int]
) -> None:
    """Verdict, interval and n are those of the shuffled order, whatever was finished first."""
    baseline = {f"s{n}": old for n, (_, old) in enumerate(values) if n not in known} | {"x": 1.0}
    answer = [(n, result(f"s{n}", new, epoch)) for n, (new, _) in enumerate(values) for epoch in range(epochs)]
    in_turn, mixed = EarlyGate(baseline, epochs=epochs), EarlyGate(baseline, epochs=epochs)
    add_all(in_turn, answer)
    chance.shuffle(answer)
    add_all(mixed, answer)
    for fact in ("verdict", "interval", "n", "unmatched", "unscored"):
        assert getattr(mixed, fact) == getattr(in_turn, fact)


def test_what_is_finished_early_waits_for_its_turn() -> None:
    """Quick samples say nothing before the slow one that was drawn first has spoken."""
    gate = EarlyGate(dict.fromkeys(NAMES, 1.0))
    late = [(n, result(NAMES[n], 0.0)) for n in range(1, 30)]
    assert add_all(gate, late) is None
    assert (gate.n, gate.sample_count, gate.interval) == (0, 29, (-1.0, 1.0))
    assert gate.add_result(0, result(NAMES[0], 0.0)) is not None
    assert (gate.verdict, gate.n) == ("fail", 9)


def test_a_sample_counts_with_the_mean_of_its_epochs_once_all_have_arrived() -> None:
    """Half right is half a point worse; one epoch of two does not count yet."""
    gate = EarlyGate(dict.fromkeys(NAMES, 1.0), epochs=2)
    assert gate.add_result(0, result("s0", 1.0)) is None
    assert gate.n == 0
    gate.add_result(0, result("s0", 0.0, epoch=1))
    assert gate.n == 1
    single = EarlyGate(dict.fromkeys(NAMES, 0.5))
    single.add_result(0, result("s0", 0.0))
    assert gate.interval == single.interval


def test_what_cannot_be_compared_is_left_out_and_counted() -> None:
    """Unknown to the baseline, or without a score; an error has not passed, but has no score."""
    read = make_score_reader("exact")
    gate = EarlyGate({"s0": 1.0, "s1": 1.0}, read, metric="exact.mean")
    for n, value in enumerate([1.0, None, 1.0]):
        gate.add_result(n, result(f"s{n}", value))
    assert (gate.n, gate.unmatched, gate.unscored) == (1, 1, 1)
    assert gate.reason.endswith("after 1 sample; 1 sample ignored (not in the baseline); 1 sample ignored (no value)")
    strict = EarlyGate({"s1": 1.0})
    strict.add_result(0, result("s1", None))
    assert (strict.n, strict.unscored) == (1, 0)


def test_samples_of_one_cluster_are_refused() -> None:
    """The second one that would count ends it, with both names and a way out."""
    gate = EarlyGate(dict.fromkeys(NAMES, 1.0))
    gate.add_result(0, result("s0", 1.0, cluster="doc"))
    gate.add_result(1, result("s1", 1.0, cluster="other"))
    with pytest.raises(StopRun, match="'s0' and 's2' share the cluster 'doc'") as refused:
        gate.add_result(2, result("s2", 1.0, cluster="doc"))
    assert "resume without stopping early" in str(refused.value)


def test_one_configuration_is_judged() -> None:
    """Only the named one counts; without a name, a second one is rejected."""
    named = EarlyGate(dict.fromkeys(NAMES, 1.0), configuration="new")
    named.add_result(0, result("s0", 0.0, configuration="old"))
    assert named.sample_count == 0
    named.add_result(0, result("s0", 0.0, configuration="new"))
    assert named.n == 1
    only = EarlyGate(dict.fromkeys(NAMES, 1.0))
    only.add_result(0, result("s0", 0.0, configuration="old"))
    with pytest.raises(StopRun, match=r"several configurations \('new' and 'old'\)"):
        only.add_result(0, result("s0", 0.0, configuration="new"))


@pytest.mark.parametrize(
    ("metric", "numbers"),
    [
        ("strict_pass_rate", [1.0, 0.0, 0.0, None]),
        ("pass_rate", [1.0, 0.0, None, None]),
        ("mean_score", [0.9, 0.2, None, None]),
        ("exact.pass_rate", [1.0, 0.0, None, None]),
        ("exact.mean", [0.9, 0.2, None, None]),
    ],
)
def test_metrics_read_a_result_as_they_count_it(metric: str, numbers: list[float | None]) -> None:
    """Passed, failed, an error of the target, and nothing to say."""
    silent = EvalResult(Trial(Sample("d", "?")), {"exact": Score.skipped("nothing expected")})
    results = [result("a", 0.9), result("b", 0.2), result("c", None), silent]
    assert [make_metric_reader(metric, ["exact"])(item) for item in results] == numbers


def test_other_metrics_are_refused() -> None:
    """A latency has no bounds, and a misspelt name gets a suggestion."""
    with pytest.raises(ConfigError, match=r"does not support the metric 'latency_ms\.mean'"):
        make_metric_reader("latency_ms.mean", ["exact"])
    with pytest.raises(ConfigError, match=r"did you mean 'exact.mean'\?"):
        make_metric_reader("exact.men", ["exact"])


@pytest.mark.parametrize(
    ("baseline", "margin", "message"),
    [
        ({}, 0.0, "no values for"),
        ({"a": 1.0}, -0.1, "margin must be 0 or more and less than 1"),
        ({"a": 1.0}, 1.0, "margin must be 0 or more and less than 1"),
    ],
)
def test_what_cannot_be_decided_is_refused_at_once(baseline: dict[str, float], margin: float, message: str) -> None:
    """No baseline, or a margin that is none."""
    with pytest.raises(ConfigError, match=message):
        EarlyGate(baseline, margin=margin)


def test_a_baseline_has_one_number_a_sample() -> None:
    """The mean over the epochs that have a number."""
    results = [result("a", 1.0), result("a", 0.0, 1), result("a", None, 2), result("b", None)]
    assert average_numbers(results, make_score_reader("exact")) == {"a": 0.5}


def test_a_stored_run_gives_its_verdict_again() -> None:
    """The results of a run, in the order of its dataset, count in the order of its seed."""
    chance = random.Random(5)
    results = [result(name, float(chance.random() < 0.4)) for name in NAMES]
    baseline = dict.fromkeys(NAMES, 1.0)
    drawn_first = sorted(results, key=lambda item: shuffle_key(7, item.sample_id))
    live = EarlyGate(baseline)
    stop = add_all(live, list(enumerate(drawn_first)))
    assert stop is not None
    repeated = replay_results(EarlyGate(baseline), results, seed=7)
    part = [item for item in results if item in drawn_first[: stop + 5]]
    cut = replay_results(EarlyGate(baseline), part, seed=7)
    assert live.verdict == repeated.verdict == cut.verdict == "fail"
    assert live.interval == repeated.interval == cut.interval


def test_equal_systems_rarely_fail_a_gate_that_is_checked_after_every_sample() -> None:
    """A few replicates of each claim of `make simulations`; also if worse samples finish last."""
    for claim in early_gates(n=30):
        if claim.asked == AT_MOST:
            assert simulate(claim, replicates=12).share <= 0.25, claim.name


def test_counting_results_in_the_order_of_completion_would_fail_equal_systems() -> None:
    """The claim above can fail: without waiting for their turn, fast samples decide."""
    (warned,) = (claim for claim in early_gates(n=60) if "warning" in claim.name)
    assert simulate(warned, replicates=12).share > 0.3
