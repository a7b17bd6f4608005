"""The weighted total of rubrics over the sessions of a run."""

from __future__ import annotations

from array import array
from itertools import compress

import msgspec

from proctor.metrics.estimates import any_mean_of
from proctor.records.metric import MetricValue
from proctor.records.results import Column, Results
from proctor.records.rubric_scores import TOTAL_SCORE, Columns, has_failed, is_partial, total_of
from proctor.statistics.intervals import Interval


class RubricTotalMetric:
    """The mean of the sessions' weighted totals, on the scale of the rubrics.

    Sessions without any score are left out and counted; totals that lack a rubric which failed are
    in it, and counted too (`partial`). No mean lies beyond the ends of the scale, and so its
    interval does not either.
    """

    name = TOTAL_SCORE

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def compute(self, results: Results) -> MetricValue:
        """The mean with its interval."""
        totals, skipped, partial = [], 0, 0
        for result in results:
            total = total_of(result.scores, self._columns)
            failed = has_failed(result.scores, self._columns)
            totals.append(total)
            partial += total is not None and is_partial(result.scores, self._columns)
            # Where every rubric was skipped nothing is missing.
            skipped += total is None and result.success and not failed
        known = array("d", (total.score for total in totals if total is not None))
        clusters = results.clusters()
        if clusters is not None:
            clusters = list(compress(clusters, (total is not None for total in totals)))
        missing = len(totals) - len(known) - skipped
        found = any_mean_of(Column(known, errors=missing, skipped=skipped, clusters=clusters))
        on_scale = self._on_scale(found.interval)
        return msgspec.structs.replace(found, interval=on_scale, partial=partial)

    def _on_scale(self, interval: Interval | None) -> Interval | None:
        low, high = self._columns.scale
        return interval and (max(low, interval[0]), min(high, interval[1]))
