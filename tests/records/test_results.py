"""Results in memory: columns, pages and counts of known results."""

from __future__ import annotations

from array import array

import pytest

from proctor.records.results import Column, Counts, ResultList, find_outcome
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import OUTCOMES, EvalResult, Trial
from tests.records.examples import failed, scored, skipped

MIXED = ResultList(
    [
        scored("a", 1.0, 0.0),
        scored("b", 0.5, None),
        failed("c", kind="KeyError"),
        failed("d"),
        skipped("e"),
        scored("f", 0.0, 1.0, latency_ms=3.0),
        failed("g"),
    ]
)


def ids(results: object) -> list[str]:
    assert isinstance(results, list | tuple)
    return [result.sample_id for result in results]


def test_a_column_holds_one_evaluators_verdicts() -> None:
    """Three verdicts, two of them passed; three failed trials are errors, one skip."""
    column = MIXED.column("exact")
    assert column == Column(array("d", [1.0, 0.5, 0.0]), bytes([1, 1, 0]), errors=3, skipped=1, no_output=3)
    assert column.passed == 2
    assert MIXED.column("judge") == Column(array("d", [0.0, 1.0]), bytes([0, 1]), errors=4, skipped=1, no_output=3)


def test_an_unknown_evaluator_has_an_empty_column() -> None:
    """All is skipped but the failed trials."""
    assert MIXED.column("unknown") == Column(array("d"), errors=3, skipped=4, no_output=3)


def test_scores_of_a_failed_trial_do_not_count_twice() -> None:
    """A trial without output is an error, whatever scores it may carry."""
    odd = EvalResult(failed("a").trial, {"exact": Score(1.0, True)})
    assert ResultList([odd]).column("exact") == Column(array("d"), errors=1, no_output=1)


def test_without_a_name_the_column_holds_the_combined_scores() -> None:
    """Only results with a verdict have a value: (1 + 0) / 2 and (0 + 1) / 2."""
    assert MIXED.column() == Column(array("d", [0.5, 0.5]), bytes([0, 0]), errors=4, skipped=1, no_output=3)
    assert MIXED.counts() == Counts(failed=2, error=3, unscored=1, skipped=1)
    assert [OUTCOMES[place] for place in MIXED.outcomes()] == [
        "failed",
        "unscored",
        "error",
        "error",
        "skipped",
        "failed",
        "error",
    ]


def test_clusters_are_returned_only_if_results_share_one() -> None:
    """Epochs of one sample and samples of one cluster share a cluster."""
    sample: Sample[str, str] = Sample("a", "?", metadata={"cluster": "doc"})
    usage = Usage(1, 1)
    twin = EvalResult(Trial(sample, "!", usage=usage), {"exact": Score(1.0, True)})
    results = ResultList([twin, scored("b", None), scored("b", 1.0), twin])
    assert results.clusters() == ["doc", "b", "b", "doc"]
    assert results.column("exact").clusters == ["doc", "b", "doc"]
    assert results.column().clusters == ["doc", "b", "doc"]
    assert results.latencies().clusters == ["doc", "b", "b", "doc"]
    assert results.tokens().clusters == ["doc", "doc"]
    alone = ResultList([twin, scored("b", 1.0)])
    assert alone.clusters() is None
    assert alone.column().clusters is None


def test_ruling_4_latencies_are_of_all_trials() -> None:
    """Ruling 4: failures took their time too."""
    assert list(MIXED.latencies().values) == [100.0, 100.0, 100.0, 100.0, 0.0, 3.0, 100.0]


def test_tokens_come_from_trials_that_report_usage() -> None:
    """Unknown is not zero, and is counted."""
    sample: Sample[str, str] = Sample("a", "?")
    usages = [None, Usage(), Usage(0, 0), Usage(2, 3)]
    results = ResultList(EvalResult(Trial(sample, usage=usage)) for usage in usages)
    assert list(results.tokens().values) == [0.0, 5.0]
    assert results.tokens().skipped == 2


def test_error_kinds_are_counted_the_most_frequent_first() -> None:
    """Ties are in the order of their names."""
    assert list(MIXED.error_kinds().items()) == [("TimeoutError", 2), ("KeyError", 1)]
    tied = ResultList([failed("a", kind="Z"), failed("b", kind="A")])
    assert list(tied.error_kinds()) == ["A", "Z"]


def test_pages_show_the_worst_first() -> None:
    """Without a value first, then by value; ties in the order given; filtered by outcome."""
    assert ids(MIXED.page()) == ["b", "c", "d", "e", "g", "a", "f"]
    assert ids(MIXED.page(offset=1, limit=2)) == ["c", "d"]
    assert ids(MIXED.page(outcome="error")) == ["c", "d", "g"]
    assert ids(MIXED.page(outcome="failed", evaluator="exact")) == ["f"]
    assert ids(MIXED.page(outcome="unscored", evaluator="judge")) == ["b"]
    assert ids(MIXED.page(outcome="skipped", evaluator="unknown")) == ["b", "e", "a", "f"]
    assert ids(MIXED.page(offset=-3, limit=1)) == ["b"]
    assert ids(MIXED.page(offset=9)) == ids(MIXED.page(limit=0)) == ids(MIXED.page(limit=-1)) == []


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (scored("a", 1.0), "passed"),
        (scored("a", 0.0), "failed"),
        (scored("a", None), "unscored"),
        (skipped("a"), "skipped"),
        (scored("a"), "skipped"),
        (failed("a"), "error"),
    ],
)
def test_an_outcome_of_one_evaluator(result: EvalResult, outcome: str) -> None:
    """The same five outcomes for one evaluator and for the result."""
    assert find_outcome(result, "exact") == outcome
    assert find_outcome(result) == outcome


def test_results_are_a_sequence() -> None:
    """Length, order, indexes from both ends and slices, by sample and by configuration."""
    assert len(MIXED) == 7
    assert ids(list(MIXED)) == ["a", "b", "c", "d", "e", "f", "g"]
    assert MIXED[-1].sample_id == "g"
    assert ids(MIXED[1:6:2]) == ["b", "d", "f"]
    assert ids(MIXED.for_sample("c")) == ["c"]
    assert len(MIXED.for_configuration("default")) == 7
    assert len(MIXED.for_configuration("other")) == 0
