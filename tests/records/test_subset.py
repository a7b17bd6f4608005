"""Some samples of a run give the same numbers as a run that has only those samples."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import SQLiteHistory
from proctor.metrics.registry import MetricRegistry
from proctor.records.results import ResultList
from proctor.records.run import RunMetadata
from proctor.records.subset import ResultSubset
from proctor.records.trial import OUTCOMES, EvalResult
from tests.records.examples import CONFIGURATIONS, EVALUATORS, any_runs

Run = tuple[RunMetadata, list[EvalResult]]
KEPT = {"s0", "s2", "s3"}


def comparable(value: Any) -> Any:
    """A value in which NaN equals NaN."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if hasattr(value, "__struct_fields__"):
        return {name: comparable(getattr(value, name)) for name in value.__struct_fields__}
    return [comparable(item) for item in value] if hasattr(value, "__iter__") and not isinstance(value, str) else value


def without_empty(figures: dict[str, Any]) -> dict[str, Any]:
    """Figures without the evaluators that scored none of the samples."""
    unscored = {name for name, numbers in figures["scores"].items() if set(numbers) <= {"nan"}}
    tables = {key: {n: v for n, v in figures[key].items() if n not in unscored} for key in ("passes", "scores")}
    return {**figures, **tables, "marks": {}}


@given(any_runs())
def test_a_subset_has_the_numbers_of_its_results(run: Run) -> None:
    """Every method of a subset gives what a list of the same results gives."""
    _, results = run
    subset, expected = ResultSubset(ResultList(results), KEPT), ResultList(r for r in results if r.sample_id in KEPT)
    assert len(subset) == len(expected)
    assert list(subset) == list(expected)
    assert subset[:2] == list(expected[:2])
    assert subset.counts() == expected.counts()
    assert subset.clusters() == expected.clusters()
    assert list(subset.samples()) == list(expected.samples())
    assert subset.model_usage() == expected.model_usage()
    assert subset.error_kinds() == expected.error_kinds()
    figures, expected_figures = (comparable(each.figures()) for each in (subset, expected))
    assert without_empty(figures) == without_empty(expected_figures)
    for name in (None, *EVALUATORS, "no such evaluator"):
        assert comparable(subset.column(name)) == comparable(expected.column(name))
        for outcome in (None, *OUTCOMES):
            page: Any = {"outcome": outcome, "evaluator": name, "offset": 1, "limit": 3}
            assert subset.page(**page) == expected.page(**page)
    for sample in ("s0", "s1"):
        assert list(subset.for_sample(sample)) == list(expected.for_sample(sample))


@given(any_runs())
def test_a_subset_has_the_metrics_of_its_results(run: Run) -> None:
    """The metrics of a subset, and of one configuration of it, are those of its results."""
    _, results = run
    registry = MetricRegistry.standard(EVALUATORS)
    subset, expected = ResultSubset(ResultList(results), KEPT), ResultList(r for r in results if r.sample_id in KEPT)
    assert registry.compute_all(subset) == registry.compute_all(expected)
    name = CONFIGURATIONS[1]
    assert registry.compute_all(subset.for_configuration(name)) == registry.compute_all(
        expected.for_configuration(name)
    )


@settings(max_examples=15, deadline=None)
@given(run=any_runs(), kept=st.sets(st.sampled_from(["s0", "s1", "s2", "s3"])))
def test_a_subset_of_stored_results_is_the_same(run: Run, kept: set[str]) -> None:
    """A subset of results on disk has the same results and metrics as a subset in memory."""
    metadata, results = run
    history = SQLiteHistory.temporary()
    history.begin(metadata)
    with history.writer(metadata.run_id) as writer:
        for position, result in enumerate(results):
            writer.add(position, result)
    stored, in_memory = ResultSubset(history.results(metadata.run_id), kept), ResultSubset(ResultList(results), kept)
    registry = MetricRegistry.standard(EVALUATORS)
    assert list(stored) == list(in_memory)
    assert registry.compute_all(stored) == registry.compute_all(in_memory)
