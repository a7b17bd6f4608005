"""Samples that repeat each other are noticed: in the run, in comparisons and in gates."""

from __future__ import annotations

from typing import Any

from proctor import evaluate, exact_match
from proctor.comparison.compare import compare
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.report import EvalReport
from proctor.metrics.warnings import is_repetition_warning
from tests.tables import each_row


def run(records: list[dict[str, Any]], **options: Any) -> EvalReport:
    return evaluate(lambda sample: sample, records, [exact_match], **options)


def repeat(count: int, distinct: int, **metadata: Any) -> list[dict[str, Any]]:
    """Samples with few distinct inputs; the values of the metadata are functions of the place."""
    return [
        {
            "id": f"s{n}",
            "input": f"q{n % distinct}",
            "expected": f"q{n % distinct % 2}",
            "metadata": {key: value(n) for key, value in metadata.items()},
        }
        for n in range(count)
    ]


def find_warnings(report: EvalReport) -> list[str]:
    assert report.metadata is not None
    return [text for text in report.metadata.warnings if is_repetition_warning(text)]


def test_a_run_of_few_distinct_inputs_has_a_warning() -> None:
    """It has the counts, the consequence and both fixes; epochs are not repeats."""
    [warning] = find_warnings(run(repeat(200, 4)))
    assert warning == (
        "200 samples have only 4 distinct contents (input, expected value and metadata other than row numbers). "
        "Repeats are not independent: intervals are too narrow, and verdicts of comparisons and gates too certain. "
        "Fix: give the repeats of a sample the same `metadata: {cluster: NAME}`, or keep one of them and repeat it "
        "with `--epochs N`"
    )
    assert find_warnings(run(repeat(200, 4), epochs=2)) == [warning]


@each_row(
    ("count", "distinct", "metadata", "warns"),
    [
        (200, 4, {}, True),
        (12, 6, {}, True),
        (200, 150, {}, True),
        (200, 190, {}, False),
        (200, 200, {}, False),
        (9, 1, {}, False),
        (200, 4, {"row": lambda n: n}, True),
        (200, 4, {"age": lambda n: n // 4, "smoker": lambda n: n % 8 < 4}, False),
        (200, 4, {"tags": lambda n: [f"t{n}"]}, True),
        (200, 4, {"context": lambda n: f"document {n}"}, False),
        (200, 4, {"cluster": lambda n: f"q{n % 4}"}, False),
    ],
)
def test_repeats_are_counted_where_they_matter(
    count: int, distinct: int, metadata: dict[str, Any], warns: bool
) -> None:
    """From a tenth fewer effective samples on; another context is another sample, a row number or tag is not."""
    assert bool(find_warnings(run(repeat(count, distinct, **metadata)))) is warns


def test_a_large_run_is_judged_by_its_first_samples() -> None:
    [warning] = find_warnings(run(repeat(2_500, 4)))
    assert warning.startswith("the first 2,000 samples have only 4 distinct contents")


def test_epochs_of_distinct_samples_are_no_repeats() -> None:
    assert find_warnings(run(repeat(20, 20), epochs=5)) == []


def test_comparisons_and_gates_repeat_the_warning_once() -> None:
    """Both sides have it; a side that has it alone is named."""
    first, second, other = (run(repeat(200, distinct)) for distinct in (4, 4, 200))
    new, old, clean = (report.side(name=name) for report, name in ((first, "new"), (second, "old"), (other, "clean")))
    [warning] = find_warnings(first)
    assert compare(new, old).notes.count(warning) == 1
    assert f"{new.name}: {warning}" in compare(new, clean).notes
    result = decide([(new, old)], GateConfig({"pass_rate": 0.02}), report=first)
    assert [*result.warnings, *result.notes].count(warning) == 1
