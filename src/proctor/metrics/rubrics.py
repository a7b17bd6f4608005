"""The weighted total of rubrics over the sessions of a run."""

from __future__ import annotations

from array import array
from itertools import compress

import msgspec

from proctor.metrics.estimates import any_mean_of
from proctor.records.metric import MetricValue
from proctor.records.results import Column, Results
from proctor.records.rubric_scores import TOTAL_SCORE, Columns, total_of
from proctor.records.trial import EvalResult
from proctor.statistics.intervals import Interval


class RubricTotalMetric:
    """The mean of the sessions' weighted totals, on the scale of the rubrics.

    Sessions without any score are left out and counted. No mean lies beyond the ends of the scale,
    and so its interval does not either.
    """

    name = TOTAL_SCORE

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def compute(self, results: Results) -> MetricValue:
        """The mean with its interval."""
        totals, skipped = [], 0
        for result in results:
            totals.append(total_of(result.scores, self._columns))
            skipped += totals[-1] is None and self._has_nothing_to_say(result)
        known = array("d", (total.score for total in totals if total is not None))
        clusters = results.clusters()
        if clusters is not None:
            clusters = list(compress(clusters, (total is not None for total in totals)))
        failed = len(totals) - len(known) - skipped
        found = any_mean_of(Column(known, errors=failed, skipped=skipped, clusters=clusters))
        return msgspec.structs.replace(found, interval=self._on_scale(found.interval))

    def _has_nothing_to_say(self, result: EvalResult) -> bool:
        """True if every rubric was skipped; where one failed, the total is missing."""
        each = [result.scores.get(column.name) for column in self._columns.columns]
        return result.success and all(one is None or one.status == "skipped" for one in each)

    def _on_scale(self, interval: Interval | None) -> Interval | None:
        low, high = self._columns.scale
        return interval and (max(low, interval[0]), min(high, interval[1]))
