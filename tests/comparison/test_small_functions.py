"""Small functions of `proctor.comparison`, each by an example."""

from __future__ import annotations

from proctor.comparison.compare import OptionChange, compare, describe_code_change
from proctor.comparison.contents import content_key
from proctor.comparison.coverage import Coverage
from proctor.comparison.describe import describe_grouping
from proctor.comparison.evidence import estimate_interval
from proctor.comparison.ranking import RankingEntry, rank
from proctor.comparison.sides import Side, average_by_sample
from proctor.comparison.totals import delta_to_scale, describe_scale_difference
from proctor.comparison.verdicts import (
    DifferenceEvidence,
    MarginEvidence,
    estimate_more_samples,
    find_min_difference,
    project_error,
    widen_for_rare_samples,
)
from proctor.records.comparison import Comparison, MetricDelta
from proctor.records.run import EvaluatorSpec
from proctor.records.sample import Sample


def test_option_change_describe() -> None:
    """Describe the change, with the names of both runs."""
    assert OptionChange("weight", "2", "3").describe("new", "old") == "weight is 2 in new and 3 in old"


def test_describe_code_change() -> None:
    """Say what may differ in an evaluator with equal options: its code, or a function it calls."""
    assert (
        describe_code_change(EvaluatorSpec("tone", "rubric", {"adapter": "python:judge"}, "1f"))
        == "the code of python:judge, or code and constants that it uses"
    )


def test_compare() -> None:
    """Compare side `a` with side `b`: deltas are a minus b, percentages are relative to b."""
    low, high = (Side(n, fields={"tokens": {"1": v}}) for n, v in [("low", 450), ("high", 500)])
    assert compare(low, high).deltas == {"tokens": {"absolute": -50.0, "percentage": -10.0}}


def test_content_key() -> None:
    """Return a key of a sample's content; None if the content has no stable form."""
    assert content_key(Sample("1", "What?", "a")) == content_key(Sample("1", "What?", "b"))


def test_coverage_is_uneven() -> None:
    """True if more than a tenth of the verdicts of one side are missing on the other."""
    assert Coverage("toxicity", 0, 60, 60, 60, 0).is_uneven
    assert not Coverage("toxicity", 54, 60, 60, 6, 0).is_uneven


def test_coverage_describe() -> None:
    """Say how many trials were judged on each side."""
    assert (
        Coverage("toxicity", 0, 60, 60, 60, 0).describe("new", "main")
        == "toxicity judged 0 of 60 samples in new, and 60 of 60 in main"
    )


def test_describe_grouping() -> None:
    """Say that two sides are compared without pairs, and why."""
    assert (
        describe_grouping(Comparison("a", "b")) == "No sample is in both: they are compared as two independent groups."
    )


def test_estimate_interval() -> None:
    """Return the 95% confidence interval of a mean; None if it cannot be estimated."""
    assert (estimate_interval([5.0] * 9) is None, estimate_interval([1.0, 3.0]) is None) == (True, False)


def test_rank() -> None:
    """Rank configurations by a number: "asc" puts the lowest first, "desc" the highest."""
    ranking = rank("tokens", "asc", {"high": RankingEntry({"1": 500}), "low": RankingEntry({"1": 450})})
    assert (ranking.best, ranking.worst) == ("low", "high")


def test_average_by_sample() -> None:
    """Average the numbers of each sample, so that more epochs do not give it more weight."""
    assert average_by_sample([("a", 1.0), ("a", 3.0), ("b", None)]) == {"a": 2.0}


def test_delta_to_scale() -> None:
    """Convert the delta of a total to the scale of its rubrics; return any other delta unchanged."""
    delta = MetricDelta("total_score", 0.75, 0.5, 0.25, interval=(0.125, 0.375))
    scaled = delta_to_scale(delta, (1, 5), (1, 5))
    assert (scaled.a, scaled.b, scaled.absolute, scaled.interval) == (4.0, 3.0, 1.0, (0.5, 1.5))


def test_describe_scale_difference() -> None:
    """Say that totals are on different scales; empty if they are on one."""
    assert (
        describe_scale_difference({"a": (1, 5), "b": (0, 10), "c": None})
        == "total_score is on different scales: a 1 to 5, b 0 to 10"
    )


def test_estimate_more_samples() -> None:
    """Estimate how many more samples lead to a verdict in four of five cases."""
    assert estimate_more_samples(DifferenceEvidence(100, 0.08, 0.045, min_difference=0.01, level=0.05)) == 233
    assert estimate_more_samples(MarginEvidence(100, 0.08, 0.045, passes=0.025, fails=0.025)) == 233


def test_project_error() -> None:
    """Return the error of the mean of `total` samples, and how far it may lie from the mean of n."""
    assert [round(number, 3) for number in project_error(100, 0.2, 400)] == [0.1, 0.173]


def test_find_min_difference() -> None:
    """Return the smallest relevant difference: in points of a rate or score, else relative to b.

    A difference of latencies below 1 ms may come from the scheduling of threads.
    """
    assert find_min_difference("rate", 0.8) == 0.01
    assert find_min_difference("number", 400.0) == find_min_difference("number", 400.0, is_latency=True) == 20.0
    assert find_min_difference("number", 0.02, is_latency=True) == 1.0


def test_widen_for_rare_samples() -> None:
    """Widen the interval of a score difference to at least that of n binary samples."""
    assert [round(end, 3) for end in widen_for_rare_samples((-0.01, 0.01), (0.8, 0.8), 40)] == [-0.07, 0.07]
