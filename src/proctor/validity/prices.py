"""What a call of the target and a verdict of a judge cost, measured on a stored run."""

from __future__ import annotations

import msgspec

from proctor.core.stats.descriptive import mean
from proctor.records.results import Results
from proctor.records.session import Usage
from proctor.validity.verdicts import Measure, list_verdicts


class CallPrices(msgspec.Struct, frozen=True, kw_only=True):
    """The mean price of a call in US dollars, None if unknown; `judges` is the number of judges asked per verdict.

    `again` has the price and number of the judges to ask for one more verdict, if the metric needs only some of them.
    """

    target: float | None = None
    judge: float | None = None
    judges: int = 0
    again: CallPrices | None = None

    def price(self, target_calls: int, judge_calls: int) -> float | None:
        """Return the price of some calls; None if a price is unknown."""
        parts = (self.target, target_calls), (self.judge, judge_calls)
        if any(price is None and calls for price, calls in parts):
            return None
        return sum((price or 0.0) * calls for price, calls in parts)


def measure_prices(results: Results, has_judge: bool, measure: Measure) -> CallPrices:
    """Measure the prices of a run's calls: the mean over the trials whose cost is known."""
    spent = [usage for usage in results.model_usage() or () if usage is not None]
    target = mean([usage.cost for usage in spent if usage.cost is not None])
    if not has_judge:
        return CallPrices(target=target)
    again = None if measure.evaluator is None else _measure_judges(results, measure, measure.evaluator)
    return msgspec.structs.replace(_measure_judges(results, measure, None), target=target, again=again)


def _measure_judges(results: Results, measure: Measure, evaluator: str | None) -> CallPrices:
    """Measure the price of a call of the judges of one evaluator, or of all (None)."""
    judges, verdicts, costs = 0, 0, []
    for result in results:
        sessions = [
            session
            for label, session in result.sessions.items()
            if evaluator is None or label == evaluator or label.startswith(f"{evaluator}.")
        ]
        judges = max(judges, len(sessions))
        verdicts += max(1, len(list_verdicts(result, measure))) * len(sessions)
        cost = sum((session.usage for session in sessions), Usage()).cost
        costs += [] if cost is None else [cost]
    return CallPrices(judge=sum(costs) / verdicts if costs and verdicts else None, judges=max(1, judges))
