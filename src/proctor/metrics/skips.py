"""How often an evaluator skipped or failed, and its most frequent reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from proctor.metrics.fields import FIELD
from proctor.records.results import Results
from proctor.records.run import RunMetadata
from proctor.records.score import NOT_ASKED
from proctor.records.trial import Outcome

# Metrics of the result as a whole, over all its evaluators.
WHOLE = ("pass_rate", "strict_pass_rate", "mean_score")
# An evaluator that gives no verdict on a larger share of the results is worth a warning.
TENTH = 0.1
READ_AT_MOST = 1_000
REASON_LENGTH = 200


class Missing(NamedTuple):
    """How many of how many results have no verdict, and the most frequent reason."""

    number: int
    of: int
    reason: str = ""

    @property
    def is_much(self) -> bool:
        """True if it is more than a tenth.

        >>> Missing(1, 10).is_much, Missing(2, 10).is_much
        (False, True)
        """
        return self.number > TENTH * self.of + 1e-9


def count_skipped(results: Results, evaluator: str | None, run: RunMetadata | None) -> Missing:
    """The results that an evaluator skipped, or that were skipped as a whole.

    Scores that are left out by design are not counted: those of all epochs but the last for an
    evaluator of repeats, and those of the baseline for an evaluator that compares.
    """
    column = results.column(evaluator)
    found = Missing(column.skipped, len(column.values) + column.errors + column.skipped)
    if not found.is_much:
        return found
    by_design = run is None or run.options.epochs > 1 or run.baseline is not None
    limit = len(results) if by_design else READ_AT_MOST
    reasons = _reasons(results, evaluator, "skipped", limit)
    not_asked = sum(reasons.pop(reason, 0) for reason in NOT_ASKED)
    return Missing(found.number - not_asked, found.of - not_asked, _most_frequent(reasons))


def count_failed(results: Results, evaluator: str) -> Missing:
    """The results on which an evaluator failed, among those whose target gave an output."""
    counts = results.counts()
    of = counts.total - counts.error
    column = results.column(evaluator)
    found = Missing(column.errors - counts.error, of)
    if not found.is_much:
        return found
    reasons = _reasons(results, evaluator, "unscored", READ_AT_MOST)
    return found._replace(reason=_most_frequent(reasons))


def evaluator_of(metric: str, run: RunMetadata | None) -> tuple[bool, str | None]:
    """Whether a metric is made of scores, and of which evaluator's; None is the whole result.

    >>> evaluator_of("pass_rate", None), evaluator_of("latency_ms.p50", None)
    ((True, None), (False, None))
    """
    if metric in WHOLE:
        return True, None
    specs = run.evaluators if run is not None else ()
    labels = {f"{FIELD}.{s.name}" if s.uses == FIELD else s.name: s.name for s in specs}
    known = [label for label in labels if metric == label or metric.startswith(f"{label}.")]
    return (True, labels[max(known, key=len)]) if known else (False, None)


def evaluators_without_verdicts(results: Results, run: RunMetadata) -> Iterator[str]:
    """A sentence about every evaluator that skipped, or failed on, more than a tenth."""
    for spec in run.evaluators:
        skipped = count_skipped(results, spec.name, run)
        failed = count_failed(results, spec.name)
        for missing, how in ((skipped, "skipped"), (failed, "failed on")):
            # Without any verdict the run says so in another sentence.
            if missing.is_much and missing.number < missing.of:
                yield (
                    f"{spec.name} {how} {missing.number:,} of {missing.of:,} results; "
                    f"most frequent reason: {missing.reason or 'none was given'}"
                )


def _reasons(results: Results, evaluator: str | None, outcome: Outcome, limit: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for result in results.page(outcome=outcome, evaluator=evaluator, limit=limit):
        score = result.score if evaluator is None else result.scores.get(evaluator)
        found["" if score is None else score.reason[:REASON_LENGTH]] += 1
    return found


def _most_frequent(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0] if reasons else ""
