"""The weighted total of rubrics over the sessions of a run."""

from __future__ import annotations

from array import array
from itertools import compress

from proctor.metrics.estimates import any_mean_of
from proctor.records.metric import MetricValue
from proctor.records.results import Column, Results
from proctor.records.rubric_scores import TOTAL_SCORE, Columns, total_of


class RubricTotalMetric:
    """The mean of the sessions' weighted totals, on the scale of the rubrics.

    Sessions without any score are left out and counted.
    """

    name = TOTAL_SCORE

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def compute(self, results: Results) -> MetricValue:
        """The mean with its interval."""
        totals = [total_of(result.scores, self._columns) for result in results]
        known = array("d", (total.score for total in totals if total is not None))
        clusters = results.clusters()
        if clusters is not None:
            clusters = list(compress(clusters, (total is not None for total in totals)))
        return any_mean_of(Column(known, errors=len(totals) - len(known), clusters=clusters))
