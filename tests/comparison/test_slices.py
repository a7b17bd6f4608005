"""Metrics and comparisons by metadata and tag: what the slices are, their numbers, and the correction for many."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, isclose
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import compare, evaluate
from proctor.comparison.compare import compare as compare_sides
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import Side
from proctor.comparison.slices import _correct_interval, slice_samples
from proctor.errors import ConfigError
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Failure, Trial
from tests.tables import each_row

NEW, OLD = "new", "old"


def samples_of(key: str, *values: Any) -> list[Sample[str, None]]:
    """One sample for each value of a key; None leaves the key out."""
    rows = ({} if value is None else {key: value} for value in values)
    return [Sample(f"s{number}", "?", metadata=row) for number, row in enumerate(rows)]


def groups(samples: Sequence[Sample[Any, Any]], key: str) -> dict[str, int]:
    """The size of each slice by its label, in the order of the slices."""
    return {label: len(ids) for label, ids in slice_samples(samples, key).groups.items()}


@each_row(
    "values, expected",
    [
        (("b", "a", "b", None), {"b": 2, "a": 1, "(none)": 1}),
        ((True, False, True), {"true": 2, "false": 1}),
        ((10, 9, 9.0, "9"), {"9": 3, "10": 1}),
        ((["x", "y"], ["y"], []), {"y": 2, "x": 1, "(none)": 1}),
        (tuple(range(12)), {str(number): 1 for number in range(12)}),
        # 20 numbers in 5 ranges of 4.
        (tuple(range(1, 21)), {"1 to 4": 4, "5 to 8": 4, "9 to 12": 4, "13 to 16": 4, "17 to 20": 4}),
        # Equal numbers stay together: zeros fill three fifths of 43 numbers, and the fourth ends at the 35th, a 5.
        ((*[0] * 30, *range(1, 14)), {"0": 30, "1 to 5": 5, "6 to 13": 8}),
        # Numbers of a CSV file are strings.
        (tuple(f"{number}.5" for number in range(13)), None),
    ],
)
def test_samples_are_grouped_by_value(values: tuple[Any, ...], expected: dict[str, int] | None) -> None:
    """Each value is a slice; lists count in several; more than 12 numbers become at most 5 ranges."""
    found = groups(samples_of("key", *values), "key")
    if expected is None:
        assert len(found) == 5
        assert next(iter(found)) == "0.5 to 2.5"
    else:
        assert found == expected


def test_keys_may_be_nested_or_contain_dots() -> None:
    """`user.plan` is a key of a mapping, or a key with a dot; `metadata.` may come first."""
    samples: list[Sample[str, None]] = [
        Sample("1", "?", metadata={"user": {"plan": "free"}}),
        Sample("2", "?", metadata={"user.plan": "paid"}),
        Sample("3", "?", metadata={"user": {"plan": "free"}}),
    ]
    assert groups(samples, "user.plan") == {"free": 2, "paid": 1}
    assert groups(samples, "metadata.user.plan") == {"free": 2, "paid": 1}


@each_row(
    "key, what, fix",
    [
        ("topik", "no sample has the metadata key 'topik' (known keys: id, topic, user.plan)", "did you mean 'topic'?"),
        ("zzz", "no sample has the metadata key 'zzz'", "choose one of: id, topic, user.plan"),
        ("user", "'user' is a mapping", "choose one of: user.plan"),
        ("id", "'id' has 60 different values in 60 samples", "choose a key with fewer values"),
    ],
)
def test_a_key_that_forms_no_slices_is_refused(key: str, what: str, fix: str) -> None:
    """The error lists the known keys and suggests a similar one."""
    samples: list[Sample[str, None]] = [
        Sample(f"s{n}", "?", metadata={"topic": "x", "user": {"plan": "free"}, "id": f"unique {n}"}) for n in range(60)
    ]
    with pytest.raises(ConfigError) as raised:
        slice_samples(samples, key)
    assert what in raised.value.what
    assert raised.value.fix == fix


def result_of(number: int, topic: str, passed: bool | None, configuration: str = NEW) -> EvalResult:
    """A result of one sample; None is a target that failed."""
    trial = Trial(
        Sample(f"{topic}{number}", "?", metadata={"topic": topic}),
        error=Failure("ValueError", "no") if passed is None else None,
        configuration=configuration,
    )
    return EvalResult(trial, {} if passed is None else {"exact": Score(float(passed), passed)})


def test_each_slice_has_its_own_counts() -> None:
    """Three of four passed in x with one error; y has one skipped sample, which is missing and not zero."""
    skipped = EvalResult(Trial(Sample("y1", "?", metadata={"topic": "y"})), {"exact": Score.skipped("no key")})
    results = [result_of(n, "x", passed, "default") for n, passed in enumerate([True, True, True, False, None])]
    results += [result_of(0, "y", True, "default"), skipped]
    slices = EvalReport(results).by("topic")
    rates = {each.label: each.metrics["default"]["pass_rate"] for each in slices}
    assert [(each.label, each.samples) for each in slices] == [("x", 5), ("y", 2)]
    assert (rates["x"].value, rates["x"].n, rates["x"].errors, rates["x"].skipped) == (0.75, 4, 1, 0)
    assert (rates["y"].value, rates["y"].n, rates["y"].errors, rates["y"].skipped) == (1.0, 1, 0, 1)
    # Wilson's interval of 3 of 4.
    assert rates["x"].interval == pytest.approx((0.3006, 0.9544), abs=1e-4)
    assert [row["n"] for row in slices.rows() if row["metric"] == "pass_rate"] == [4, 1]


any_outcome = st.sampled_from([True, False, None])
any_results = st.lists(st.tuples(st.sampled_from("xyz"), any_outcome, any_outcome), min_size=1, max_size=30)


@given(any_results)
def test_slices_are_a_partition_of_the_results(rows: list[tuple[str, bool | None, bool | None]]) -> None:
    """Counts add up to the total, and the mean of the slices weighted by n is the mean of the total."""
    results = [
        result_of(number, topic, outcome, configuration)
        for number, (topic, *outcomes) in enumerate(rows)
        for configuration, outcome in zip((NEW, OLD), outcomes, strict=True)
    ]
    report = EvalReport(results)
    slices = report.by("topic")
    assert sum(each.samples for each in slices) == len(rows)
    for name in (NEW, OLD):
        whole = EvalReport([result for result in results if result.trial.configuration == name])
        for metric, total in (("pass_rate", whole.pass_rate), ("mean_score", whole.mean_score)):
            values = [each.metrics[name][metric] for each in slices]
            assert sum(value.n + value.missing for value in values) == len(rows)
            weighted = fsum(value.value * value.n for value in values if value.value is not None)
            n = sum(value.n for value in values)
            assert total is None if not n else isclose(weighted / n, total or 0.0, abs_tol=1e-12)


def report_of(outcomes: dict[str, Sequence[tuple[bool, bool]]]) -> EvalReport:
    """A run with the configurations new and old; the outcomes of both for each topic."""
    return EvalReport(
        [
            result_of(number, topic, passed, configuration)
            for topic, pairs in outcomes.items()
            for number, pair in enumerate(pairs)
            for configuration, passed in zip((NEW, OLD), pair, strict=True)
        ]
    )


WON, LOST, SAME = (True, False), (False, True), (True, True)


def test_a_slice_that_contradicts_the_total_is_noted() -> None:
    """Of 40 common samples 30 are won, of 12 rare ones all are lost: +34.6 points in total, -100 in the rare slice.

    Exact p-values are 2 / 2^30 and 2 / 2^12; Holm doubles the smaller one. Bonett and Price's interval of the rare
    slice at 97.5%: -12/14 ± 2.2414 · sqrt((1 - (12/14)²) / 14) = -1.166 to -0.549.
    """
    report = report_of({"common": [WON] * 30 + [SAME] * 10, "rare": [LOST] * 12})
    comparison = report.compare(NEW, OLD, by="topic")
    slices = comparison.slices
    assert slices is not None
    assert comparison.metrics["pass_rate"].absolute == pytest.approx(18 / 52)
    common, rare = slices["common"], slices["rare"]
    assert (common.samples, rare.samples) == (40, 12)
    assert (slices.tests, slices.confidence) == (2, 0.975)
    assert common.deltas["pass_rate"].p_adjusted == pytest.approx(2 * 2 / 2**30)
    assert rare.deltas["pass_rate"].p_adjusted == pytest.approx(2 / 2**12)
    assert rare.deltas["pass_rate"].interval == pytest.approx((-1.0, -0.5486), abs=1e-4)
    assert (common.reversed, rare.reversed) == ((), ("pass_rate",))
    assert [delta.verdict for delta in (common.deltas["pass_rate"], rare.deltas["pass_rate"])] == ["better", "worse"]
    [note] = slices.notes
    assert note == (
        "topic rare says the opposite of the total: pass_rate -100.0 points (97.5% -100.0 to -54.9, n = 12), total "
        "+34.6 points (better)"
    )
    assert report.by("topic").notes == (f"new compared with old: {note}",)


@each_row(
    "outcomes",
    [
        # Three lost samples: p = 2 / 2^3.
        {"common": [WON] * 30, "rare": [LOST] * 3},
        # Six lost samples: p = 2 / 2^6 = 0.031 alone, and 0.0625 corrected for two slices.
        {"common": [WON] * 5 + [SAME] * 3, "rare": [LOST] * 6 + [WON] * 2 + [SAME] * 20, "third": [WON] * 3},
        # The same direction.
        {"common": [WON] * 30, "rare": [WON] * 12},
        # No difference at all.
        {"common": [WON] * 30, "rare": [SAME] * 12},
    ],
)
def test_chance_contradicts_nothing(outcomes: dict[str, Sequence[tuple[bool, bool]]]) -> None:
    """A slice needs the other sign, a corrected p-value of at most 5%, and an interval without 0."""
    slices = report_of(outcomes).compare(NEW, OLD, by="topic").slices
    assert slices is not None
    assert slices.notes == ()
    assert all(each.reversed == () for each in slices)


def test_the_correction_covers_all_slices() -> None:
    """Ten slices with seven won samples each: p = 2 / 2^7 = 0.0156 alone and 0.156 together, so none is decided."""
    slices = report_of({f"topic {n}": [WON] * 7 for n in range(10)}).compare(NEW, OLD, by="topic").slices
    assert slices is not None
    deltas = [each.deltas["pass_rate"] for each in slices]
    assert slices.tests == 10
    assert slices.confidence == pytest.approx(0.995)
    assert [delta.p_adjusted for delta in deltas] == [pytest.approx(0.15625)] * 10
    assert {delta.verdict for delta in deltas} == {"not enough evidence"}


def test_the_slices_of_two_runs_follow_the_metadata_of_the_first() -> None:
    """Two runs are compared by slice too; a sample with other metadata in the second run counts as in the first."""
    rows = [{"id": f"s{n}", "input": n, "expected": n, "metadata": {"topic": "x" if n < 5 else "y"}} for n in range(10)]
    others = [{**row, "metadata": {"topic": "z"}} for row in rows]
    first, second = (
        evaluate(lambda value: value, data, "exact_match", history=False, progress=False) for data in (rows, others)
    )
    compared = compare(first, second, by="topic").slices
    assert compared is not None
    assert [each.label for each in compared] == ["x", "y"]


def test_tags_overlap() -> None:
    """A sample with two tags is in both slices, and the report says so."""
    rows = [
        {"id": "1", "input": "a", "expected": "a", "metadata": {"tags": ["hard", "long"]}},
        {"id": "2", "input": "b", "expected": "x", "metadata": {"tags": ["long"]}},
        {"id": "3", "input": "c", "expected": "c"},
    ]
    slices = evaluate(lambda text: text, rows, "exact_match", history=False, progress=False).by("tags")
    assert slices.overlapping
    assert {each.label: each.metrics["default"]["pass_rate"].value for each in slices} == {
        "long": 0.5,
        "hard": 1.0,
        "(none)": 1.0,
    }


def test_percentages_of_slices_have_their_confidence() -> None:
    """The interval of a percentage is widened like that of the difference."""
    values = [{f"s{n}": float(n % modulus + 1) for n in range(30)} for modulus in (7, 5)]
    a, b = (Side(name, fields={"tokens": each}, samples=tuple(each)) for name, each in zip("ab", values, strict=True))
    delta = compare_sides(a, b).fields["tokens"]
    wide = _correct_interval(delta, (a, b), 0.99)
    assert delta.percentage_interval is not None
    assert wide.percentage_interval is not None
    assert wide.percentage_interval[0] < delta.percentage_interval[0]
    assert wide.percentage_interval[1] > delta.percentage_interval[1]
