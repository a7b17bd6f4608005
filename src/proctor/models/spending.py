"""A budget that is kept: what the model calls of a run have used, and when it is enough."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import msgspec

from proctor.errors import ModelError, StopRun
from proctor.records.run import Budget, Spent
from proctor.records.session import Usage
from proctor.sessions.current import checked_usage


class Spending:
    """Counts calls, tokens and USD against a budget, from any thread.

    Calls that are under way when the budget runs out are finished, so tokens and money may go over
    by what those use; the number of calls never does. A price that is not known is not guessed:
    with a budget in USD it ends the run.

    >>> spending = Spending(Budget(calls=1))
    >>> spending.begin()
    >>> spending.begin()
    Traceback (most recent call last):
        ...
    proctor.errors.StopRun: the budget is spent: 1 of 1 calls
    Fix: raise the budget and resume the run
    """

    def __init__(self, budget: Budget | Mapping[str, Any], before: Spent = Spent()) -> None:  # noqa: B008 - it is frozen
        self._budget = budget_from(budget)
        self._lock = threading.Lock()
        self._calls, self._tokens, self._cost = before.calls, before.tokens, before.cost

    @property
    def so_far(self) -> Spent:
        """What has been used up to now."""
        with self._lock:
            return Spent(self._calls, self._tokens, self._cost)

    def begin(self) -> None:
        """Take leave for one call, or raise `StopRun`."""
        with self._lock:
            self._refuse_if_spent()
            self._calls += 1

    def check(self) -> None:
        """Raise `StopRun` if the budget is spent."""
        with self._lock:
            self._refuse_if_spent()

    def add(self, spent: Spent) -> None:
        """Count calls that were made elsewhere."""
        with self._lock:
            self._calls += max(0, spent.calls)
            self._tokens += max(0, spent.tokens)
            self._cost += max(0.0, spent.cost)

    def take_back(self) -> None:
        """Give the leave for a call back: it was answered from a cache, so no call was made."""
        with self._lock:
            self._calls -= 1

    def end(self, model: str, usage: Usage) -> None:
        """Note what a call used."""
        budget = self._budget
        usage = checked_usage(usage, model)
        with self._lock:
            self._tokens += usage.total_tokens or 0
            self._cost += usage.cost or 0.0
        if budget.cost is not None and usage.cost is None:
            raise StopRun(
                f"a budget in USD cannot be kept: the price of {model} is not known",
                fix=f'write "{model}": {{input: …, output: …}}, in USD per million tokens, into '
                "a YAML file and name the file in PROCTOR_PRICES; or set the budget in tokens or "
                "calls",
            )
        if budget.tokens is not None and usage.total_tokens is None:
            raise StopRun(
                f"a budget in tokens cannot be kept: {model} does not tell what it used",
                fix="set the budget in calls",
            )

    def _refuse_if_spent(self) -> None:
        spent = self._spent()
        if spent:
            raise StopRun(f"the budget is spent: {spent}", fix="raise the budget and resume the run")

    def _spent(self) -> str:
        budget = self._budget
        if budget.calls is not None and self._calls >= budget.calls:
            return f"{self._calls} of {budget.calls} calls"
        if budget.tokens is not None and self._tokens >= budget.tokens:
            return f"{self._tokens:,} of {budget.tokens:,} tokens"
        if budget.cost is not None and self._cost >= budget.cost:
            return f"{self._cost:.4f} of {budget.cost:g} USD"
        return ""


def budget_from(given: Budget | Mapping[str, Any]) -> Budget:
    """A budget out of a mapping, or one that was made by hand held to its types like that.

    >>> budget_from({"cost": 5}).cost
    5.0
    """
    try:
        return msgspec.convert(msgspec.to_builtins(given), Budget)
    except msgspec.ValidationError as error:
        raise ModelError(
            f"that is no budget: {error}", fix="give calls, tokens or cost, each a number above 0"
        ) from None
