"""Columns that are read at once give the same numbers as reading sample by sample."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.comparison.compare import compare_all
from proctor.comparison.coverage import Coverage, compute_coverage
from proctor.comparison.deltas import collect_evidence
from proctor.comparison.evidence import MIN_COUNTED, Evidence, estimate_interval
from proctor.comparison.sides import Side, average_by_sample, make_side
from proctor.comparison.slices import slice_results
from proctor.core.stats.differences import ROUNDING, is_binary, paired_differences
from proctor.core.stats.intervals import skew_adjusted_interval
from proctor.core.stats.permutations import Direction, sign_test
from proctor.history.sqlite import SQLiteHistory
from proctor.records.results import ResultList
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Failure, Trial
from tests.support import count_calls

NAMES = ("contains", "judge")
SCORES = {
    "passed": Score(1.0, True),
    "half": Score(0.5, True),
    "failed": Score(0.0, False),
    "skipped": Score.skipped("nothing to read"),
    "error": Score.error("the judge was away"),
}
# One trial: the verdict of each evaluator, or an error of the target.
TRIALS = st.one_of(st.none(), st.tuples(*(st.sampled_from(sorted(SCORES)) for _ in NAMES)))
# The trials of each of some samples, on each of two sides.
SIDES = st.lists(st.tuples(st.lists(TRIALS, max_size=3), st.lists(TRIALS, max_size=3)), max_size=6)
NUMBERS = st.sampled_from([0.0, 1.0, 0.5, 0.3, 0.1 + 0.2, 1e-13, 2.0, 7.25, -3.0])


def make_results(trials: list[list[tuple[str, str] | None]], configuration: str = "default") -> list[EvalResult]:
    """The results of samples s0, s1 … with these trials."""
    return [
        EvalResult(
            Trial(Sample(f"s{number}", "Q"), "A", epoch=epoch, configuration=configuration),
            {name: SCORES[score] for name, score in zip(NAMES, scores, strict=True)},
        )
        if scores is not None
        else EvalResult(
            Trial(
                Sample(f"s{number}", "Q"),
                None,
                epoch=epoch,
                configuration=configuration,
                error=Failure("TimeoutError", "late"),
            ),
            {},
        )
        for number, epochs in enumerate(trials)
        for epoch, scores in enumerate(epochs)
    ]


def make_run(*configurations: str) -> RunMetadata:
    return RunMetadata(
        "run",
        "run",
        datetime(2026, 1, 1, tzinfo=UTC),
        configurations=tuple(Configuration(name) for name in configurations),
        evaluators=tuple(EvaluatorSpec(name, name) for name in NAMES),
    )


def count_coverage(name: str, first: list[EvalResult], second: list[EvalResult]) -> Coverage | None:
    """Count the coverage of an evaluator sample by sample; None if no sample is on both sides."""
    ids = [{result.sample_id for result in results} for results in (first, second)]
    judged: list[Counter[str]] = [Counter(), Counter()]
    unjudged: list[Counter[str]] = [Counter(), Counter()]
    for index, results in enumerate((first, second)):
        for result in results:
            score = result.scores.get(name)
            if score is not None and score.ok:
                judged[index][result.sample_id] += 1
            elif result.outcome not in ("error", "unscored"):
                unjudged[index][result.sample_id] += 1
    shared = ids[0] & ids[1]
    most = [max((judged[i][s] + unjudged[i][s] for s in shared), default=0) for i in (0, 1)]
    if most[0] != most[1]:
        for index in (0, 1):
            unjudged[index] = Counter(s for s, n in unjudged[index].items() if n > 0 and not judged[index][s])
            judged[index] = Counter(s for s, n in judged[index].items() if n > 0)
        most = [1, 1]
    (a, b), (u, v) = judged, unjudged
    return (
        None
        if not shared
        else Coverage(
            name,
            sum(a[s] for s in shared),
            sum(b[s] for s in shared),
            sum(max(a[s] + u[s], b[s] + v[s]) for s in shared),
            sum(min(b[s], max(0, u[s] - v[s])) for s in shared),
            sum(min(a[s], max(0, v[s] - u[s])) for s in shared),
            "samples" if most[0] <= 1 else "trials",
        )
    )


# Few different numbers, as of rates, scores and token counts, of a thousand samples or more.
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(1, 700)), min_size=1, max_size=12)


def describe_evidence(evidence: Evidence) -> tuple[object, ...]:
    """Everything that a comparison takes from its evidence."""
    interval = evidence.interval()
    sides = [estimate_interval(side, counts=evidence.counts) for side in (evidence.first, evidence.second)]
    numbers = (evidence.n, evidence.means, evidence.difference, evidence.error, evidence.effect, evidence.units)
    tests = (evidence.probability, evidence.is_binary, evidence.are_scores)
    return numbers, tests, interval, evidence.interval(0.99), evidence.percentage_interval(interval), sides


@given(PAIRS)
@example([(1.0, 0.0, 700), (1.0, 1.0, 500)])
@example([(7.25, 7.25, 700), (2.0, 2.0, 500)])
@example([(2.0, 7.25, 900), (7.25, 7.25, 100), (0.5, 0.3, 25)])
def test_counted_pairs_give_exactly_the_numbers_of_all_pairs(pairs: list[tuple[float, float, int]]) -> None:
    """To the last bit, because a count is a shortcut and no other method."""
    total = sum(count for _, _, count in pairs)
    pairs = [(a, b, count * (1 + MIN_COUNTED // total)) for a, b, count in pairs]
    first, second = ([pair[side] for pair in pairs for _ in range(pair[2])] for side in (0, 1))
    evidence = Evidence(first, second)
    assert describe_evidence(evidence.compact()) == describe_evidence(evidence)


def test_zeros_and_ones_are_counted_whatever_their_order() -> None:
    """Two thousand pairs become three with counts, and distinct pairs stay as they are."""
    first = [float(index % 3 == 0) for index in range(2_000)]
    compact = Evidence(first, [*reversed(first)]).compact()
    assert (len(compact.first), compact.n) == (3, 2_000)
    distinct = Evidence(first, [0.1 * n for n in range(2_000)])
    assert distinct.compact() is distinct


def test_siblings_count_in_the_correction_only() -> None:
    """A pair has the same deltas as if its siblings were compared too."""
    sides = [
        make_side(name, ResultList(make_results([[(verdict, "half")] for verdict in verdicts])), make_run("default"))
        for name, verdicts in (
            ("base", ["failed"] * 12 + ["passed"] * 8),
            ("good", ["passed"] * 20),
            ("other", ["failed"] * 9 + ["passed"] * 11),
        )
    ]
    base, good, other = sides
    pairs, siblings = [(good, base)], [(other, base)]
    [comparison] = compare_all(pairs, siblings=siblings)
    assert comparison == compare_all([*pairs, *siblings])[0]
    assert comparison.tests > compare_all(pairs)[0].tests


def test_the_configurations_of_a_run_are_read_at_once(tmp_path: Path) -> None:
    """The second and third side of a comparison take far less work than the first one."""
    history = SQLiteHistory(tmp_path / "history.db")
    run = msgspec.structs.replace(make_run("x", "y", "z"), status="completed")
    history.begin(run)
    with history.writer("run") as writer:
        for position in range(3_000):
            [result] = make_results([[("passed", "half")]], "xyz"[position % 3])
            trial = msgspec.structs.replace(result.trial, sample=Sample(f"s{position // 3}", "Q"))
            writer.add(position, msgspec.structs.replace(result, trial=trial))
    history.finish(run, {}, {})
    report = history.report("run")
    first, second, third = (count_calls(report.side, name) for name in "xyz")
    assert second + third < first
    assert count_calls(report.side, "x") < 100


@given(SIDES)
def test_coverage_is_that_of_counting_sample_by_sample(
    trials: list[tuple[list[tuple[str, str] | None], list[tuple[str, str] | None]]],
) -> None:
    """With and without epochs, skips and errors, and with samples that only one side has."""
    first, second = (make_results([sides[index] for sides in trials]) for index in (0, 1))
    run = make_run("default")
    a, b = (make_side(name, ResultList(results), run) for name, results in (("a", first), ("b", second)))
    for coverage in compute_coverage(a, b):
        expected = count_coverage(coverage.evaluator, first, second)
        assert expected is None or coverage == expected


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), NUMBERS))))
def test_the_numbers_of_a_sample_are_averaged(readings: list[tuple[str, float | None]]) -> None:
    """A sample has the mean of its known numbers; one without any is left out."""
    by_sample: dict[str, list[float]] = {}
    for name, value in readings:
        if value is not None:
            by_sample.setdefault(name, []).append(value)
    assert average_by_sample(readings) == {name: math.fsum(n) / len(n) for name, n in by_sample.items()}


@given(st.dictionaries(st.sampled_from("abcdef"), NUMBERS), st.dictionaries(st.sampled_from("abcdef"), NUMBERS))
def test_numbers_are_paired_by_sample(first: dict[str, float], second: dict[str, float]) -> None:
    """In the order of the first side, without the samples whose content differs."""
    for excluded in (frozenset[str](), frozenset("bd")):
        a, b = (Side(name, samples=tuple(n), different_samples=excluded) for name, n in (("a", first), ("b", second)))
        evidence = collect_evidence(a, b, first, second)
        shared = [name for name in first if name in second and name not in excluded]
        if shared:
            assert [*evidence.first] == [first[name] for name in shared]
            assert [*evidence.second] == [second[name] for name in shared]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1))
def test_differences_are_those_of_each_pair(pairs: list[tuple[float, float]]) -> None:
    """A difference within the rounding of its own pair is 0."""
    first, second = ([pair[index] for pair in pairs] for index in (0, 1))
    expected = [0.0 if abs(a - b) <= ROUNDING * max(abs(a), abs(b)) else a - b for a, b in pairs]
    assert paired_differences(first, second) == expected
    assert is_binary(first, second) is all(value in (0, 1) for value in [*first, *second])
    assert Evidence(first, second).are_scores is all(0 <= value <= 1 for value in [*first, *second])
    # An interval needs two numbers, and a spread beyond rounding unless they are binary.
    spread = any(abs(value - first[0]) > ROUNDING * max(abs(value), abs(first[0])) for value in first)
    assert (estimate_interval(first) is not None) is (len(first) > 1 and (is_binary(first) or spread))


def test_the_interval_of_rare_values_is_skewed() -> None:
    """Of 0, 0, 0 and 1, the upper limit is further from the mean than the lower one; worked out by the formula."""
    values, center, variance, n, t = [0.0, 0.0, 0.0, 1.0], 0.25, 0.25, 4, 3.182446305284263
    skew = (3 * (-0.25) ** 3 + 0.75**3) / (variance * 3) * t * t / n
    interval = skew_adjusted_interval(values)
    assert interval is not None
    upper = (skew + math.sqrt(skew**2 + 4 * t * t * variance / n)) / 2
    assert math.isclose(interval[1], center + upper, rel_tol=1e-9)
    assert math.isclose(interval[0], center - t * math.sqrt(variance / n), rel_tol=1e-9)


def sum_exactly(up: int, down: int, direction: Direction) -> float:
    """The p-value of McNemar's test, from all terms of the tail as integers."""
    n = up + down
    last = {"any": min(up, down), "higher": down, "lower": up}[direction]
    tail = sum(math.comb(n, k) for k in range(last + 1))
    return min(1.0, (2 if direction == "any" else 1) * tail / (1 << n))


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from(["any", "higher", "lower"]))
def test_the_sign_test_has_the_exact_tail(up: int, down: int, direction: Direction) -> None:
    """Leaving out terms that are too small to count changes no digit."""
    assert sign_test(up, down, direction) == sum_exactly(up, down, direction)


def test_the_sign_test_has_the_exact_tail_for_thousands_of_pairs() -> None:
    """Close to 1, in between, and close to 0."""
    for up, down in ((2_000, 2_001), (1_900, 2_100), (2_600, 1_400), (0, 3_000), (3_300, 700), (3_440, 560)):
        assert sign_test(up, down) == sum_exactly(up, down, "any")


def test_the_figures_of_a_configuration_are_those_of_its_results(tmp_path: Path) -> None:
    """Read from a history with two configurations in turns, every column is that of the results themselves.

    The configurations of a finished run are read together, those of a run that goes on one by one.
    """
    trials: list[list[tuple[str, str] | None]] = [
        [("passed", "half")],
        [("failed", "skipped")],
        [None],
        [("passed", "error")],
        [("half", "passed")],
    ]
    by_configuration = {name: make_results(trials[::step], name) for name, step in (("x", 1), ("y", -1))}
    history = SQLiteHistory(tmp_path / "history.db")
    history.begin(make_run("x", "y"))
    with history.writer("run") as writer:
        pairs = zip(*by_configuration.values(), strict=True)
        for position, result in enumerate(result for pair in pairs for result in pair):
            writer.add(position, result)
    for run in (make_run("x", "y"), msgspec.structs.replace(make_run("x", "y"), status="completed")):
        if run.status == "completed":
            history.finish(run, {}, {})
        stored_results = history.results("run")
        for name, results in by_configuration.items():
            stored = stored_results.for_configuration(name).figures()
            expected = ResultList(results).figures()
            assert (stored.sample_ids, stored.outcomes, stored.marks) == (
                expected.sample_ids,
                expected.outcomes,
                expected.marks,
            )
            for columns, others in ((stored.scores, expected.scores), (stored.passes, expected.passes)):
                assert {n: list(map(str, c)) for n, c in columns.items()} == {
                    n: list(map(str, c)) for n, c in others.items()
                }


def test_slices_have_the_samples_of_every_configuration() -> None:
    """In a run that has not finished, a configuration may have samples that the first one lacks."""
    results = [
        EvalResult(Trial(Sample(name, "Q", metadata={"topic": topic}), "A", configuration=configuration), {})
        for configuration, name, topic in (("x", "s0", "a"), ("y", "s0", "a"), ("y", "s1", "a"), ("y", "s2", "b"))
    ]
    slices = slice_results(ResultList(results), None, ("x", "y"), "topic", {})
    assert [(part.label, part.samples) for part in slices] == [("a", 2), ("b", 1)]
