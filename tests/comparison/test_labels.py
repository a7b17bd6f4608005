"""Precision, recall, F1 and the confusion table of outputs that are labels, and why other outputs have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.comparison.report import EvalReport
from proctor.records.sample import Sample
from proctor.records.slices import LabelReport
from proctor.records.trial import EvalResult, Failure, Trial
from tests.tables import each_row

Pair = tuple[Any, Any]


def labels_of(pairs: Sequence[Pair], *, epochs: int = 1) -> LabelReport:
    """The labels of a run with these expected values and outputs; an exception is a target that failed."""
    results = [
        EvalResult(
            Trial(
                Sample(f"s{number}", "?", expected),
                None if isinstance(output, Exception) else output,
                Failure("ValueError", "no") if isinstance(output, Exception) else None,
                epoch=epoch,
            )
        )
        for number, (expected, output) in enumerate(pairs)
        for epoch in range(epochs)
    ]
    [report] = EvalReport(results).labels()
    return report


PETS: list[Pair] = [
    *[("cat", "cat")] * 3,
    (" Cat ", "CAT\n"),
    ("cat", "dog"),
    ("cat", "bird"),
    *[("dog", "dog")] * 3,
    ("dog", "cat"),
]


def test_labels_of_ten_pets() -> None:
    """Of 6 cats 4 are right, one is called a dog and one a bird; of 4 dogs 3 are right and one is called a cat.

    F1 of cat is 2 · 4 / (5 + 6) = 8/11, of dog 2 · 3 / (4 + 4) = 3/4. A cat is involved in 4 hits, 1 false alarm
    and 2 misses.
    """
    report = labels_of([*PETS, ("dog", ValueError()), (None, "cat")])
    cat, dog = report.labels
    assert (report.problem, report.n, report.errors, report.skipped) == ("", 10, 1, 1)
    assert (cat.label, cat.precision.value, cat.precision.n) == ("cat", 4 / 5, 5)
    assert (cat.recall.value, cat.recall.n) == (4 / 6, 6)
    assert cat.f1.value == pytest.approx(8 / 11)
    assert cat.f1.n == 7
    assert [dog.precision.value, dog.recall.value, dog.f1.value] == [3 / 4, 3 / 4, pytest.approx(3 / 4)]
    macro = report.macro
    assert macro is not None
    assert [macro.precision.value, macro.recall.value, macro.f1.value] == [
        pytest.approx((4 / 5 + 3 / 4) / 2),
        pytest.approx((2 / 3 + 3 / 4) / 2),
        pytest.approx((8 / 11 + 3 / 4) / 2),
    ]
    assert report.accuracy is not None
    assert (report.accuracy.value, report.accuracy.n, report.accuracy.errors) == (0.7, 10, 1)
    assert report.confusion == {"cat": {"cat": 4, "dog": 1, "(other)": 1}, "dog": {"cat": 1, "dog": 3, "(other)": 0}}
    assert report.notes == ("1 output is none of the labels, for example 'bird'",)
    # Wilson's interval of 4 of 6.
    assert cat.recall.interval == pytest.approx((0.3000, 0.9032), abs=1e-4)


def test_intervals_of_f1_come_from_the_share_of_hits() -> None:
    """Wilson's interval of 4 hits in 7 is 0.2505 to 0.8418, so F1 lies between 2 · 0.2505 / 1.2505 and 0.9141."""
    report = labels_of(PETS)
    assert report.labels[0].f1.interval == pytest.approx((0.4006, 0.9141), abs=1e-4)


def test_a_label_that_is_never_an_output_has_no_precision() -> None:
    """Its precision is unknown and left out of the mean, not 0; its recall and F1 are 0."""
    report = labels_of([("yes", "yes")] * 4 + [("no", "yes")] * 4)
    no, yes = report.labels
    assert (no.precision.value, no.precision.n, no.recall.value, no.f1.value) == (None, 0, 0.0, 0.0)
    assert report.macro is not None
    assert report.macro.precision.value == yes.precision.value == 0.5
    assert report.notes == ("never an output, so without a precision: no",)


def test_epochs_of_a_sample_are_not_independent() -> None:
    """Ten epochs give ten times the results, and intervals that are hardly narrower."""
    once, often = labels_of(PETS), labels_of(PETS, epochs=10)
    assert once.accuracy is not None
    assert often.accuracy is not None
    widths = [high - low for metric in (once.accuracy, often.accuracy) for low, high in [metric.interval or (0, 0)]]
    assert often.n == 100
    assert widths[1] > 0.9 * widths[0]


@each_row(
    "pairs, problem",
    [
        ([], "no result has an expected text and an output"),
        ([(None, "yes")] * 3, "no result has an expected text and an output"),
        ([("yes", "yes")] * 5, "the expected text is always 'yes'"),
        ([(4, "4")] * 5, "the expected value of sample 's0' is a number, not a text"),
        ([({"a": 1}, "4")] * 5, "the expected value of sample 's0' is a mapping, not a text"),
        ([("x" * 51, "x")], "the expected text of sample 's0' is longer than 50 characters"),
        ([(f"answer {n // 3}", "x") for n in range(90)], "there are more than 20 different expected texts"),
        ([(f"answer {n}", f"answer {n}") for n in range(12)], "12 different expected texts in 12 samples are answers"),
        (
            [("yes", "Yes, it is.")] * 4 + [("no", "no")] * 2 + [("no", "No way")] * 2,
            "75% of the outputs are none of the 2 labels, for example 'Yes, it is.'",
        ),
        ([("yes", {"label": "yes"})] * 4 + [("no", 3)] * 4, "100% of the outputs are none of the 2 labels"),
    ],
)
def test_outputs_that_are_not_labels_have_a_reason(pairs: list[Pair], problem: str) -> None:
    """Without labels there are no numbers, and a sentence why."""
    report = labels_of(pairs) if pairs else next(iter(EvalReport([EvalResult(Trial(Sample("s", "?")))]).labels()))
    assert problem in report.problem
    assert (report.labels, report.macro, report.confusion) == ((), None, {})


def test_booleans_are_labels() -> None:
    """True and the text "true" are the same label."""
    report = labels_of([(True, True), (True, "true"), (False, "False"), (False, True)])
    assert [score.label for score in report.labels] == ["false", "true"]
    assert report.accuracy is not None
    assert report.accuracy.value == 0.75


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["a", "b", "c"])), min_size=6, max_size=40))
def test_the_numbers_agree_with_the_confusion_table(pairs: list[Pair]) -> None:
    """Rows of the table add up to the n of recall, columns to the n of precision, the diagonal to the accuracy."""
    report = labels_of(pairs)
    if report.problem:
        return
    table = report.confusion
    for score in report.labels:
        column = sum(row.get(score.label, 0) for row in table.values())
        assert (sum(table[score.label].values()), column) == (score.recall.n, score.precision.n)
        for metric in (score.precision, score.recall, score.f1):
            if metric.value is not None and metric.interval is not None:
                assert metric.interval[0] <= metric.value <= metric.interval[1]
    assert report.accuracy is not None
    assert report.accuracy.value == pytest.approx(sum(table[name].get(name, 0) for name in table) / len(pairs))
