"""The spending of a run's model calls, and the budget that ends the run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import msgspec

from proctor.errors import ModelError, StopRun, suggest_name
from proctor.records.run import Budget, Spent
from proctor.records.session import Usage
from proctor.records.validation import explain
from proctor.sessions.current import check_usage


class Spending:
    """Counts calls, tokens and USD against a budget, from any thread.

    Running calls finish after the budget is used up, so tokens and cost may exceed it; the number of calls never
    exceeds it. A budget in USD ends the run when the price of a call is unknown.
    """

    def __init__(self, budget: Budget | Mapping[str, Any], spent: Spent = Spent()) -> None:  # noqa: B008 - it is frozen
        self._budget = parse_budget(budget)
        self._lock = threading.Lock()
        self._calls, self._tokens, self._cost = spent.calls, spent.tokens, spent.cost

    @property
    def so_far(self) -> Spent:
        with self._lock:
            return Spent(self._calls, self._tokens, self._cost)

    def begin(self) -> None:
        """Count one call, or raise `StopRun`."""
        with self._lock:
            self._raise_if_spent()
            self._calls += 1

    def check(self) -> None:
        with self._lock:
            self._raise_if_spent()

    def add(self, spent: Spent) -> None:
        """Add the spending of calls in other processes."""
        with self._lock:
            self._calls += max(0, spent.calls)
            self._tokens += max(0, spent.tokens)
            self._cost += max(0.0, spent.cost)

    def take_back(self) -> None:
        """Subtract a call that a cache answered."""
        with self._lock:
            self._calls -= 1

    def end(self, model: str, usage: Usage) -> None:
        usage = check_usage(usage, model)
        with self._lock:
            self._tokens += usage.total_tokens or 0
            self._cost += usage.cost or 0.0
        if self._budget.cost is not None and usage.cost is None:
            raise StopRun(
                f"a budget in USD cannot be enforced: the price of {model} is unknown",
                fix=f'write "{model}": {{input: …, output: …}}, in USD per million tokens, into '
                "a YAML file and name the file in PROCTOR_PRICES; or set the budget in tokens or "
                "calls",
            )
        if self._budget.tokens is not None and usage.total_tokens is None:
            raise StopRun(
                f"a budget in tokens cannot be enforced: {model} does not report its usage",
                fix="set the budget in calls",
            )

    def _raise_if_spent(self) -> None:
        budget, usage = self._budget, ""
        if budget.calls is not None and self._calls >= budget.calls:
            usage = f"{self._calls} of {budget.calls} calls"
        elif budget.tokens is not None and self._tokens >= budget.tokens:
            usage = f"{self._tokens:,} of {budget.tokens:,} tokens"
        elif budget.cost is not None and self._cost >= budget.cost:
            usage = f"{self._cost:.4f} of {budget.cost:g} USD"
        if usage:
            raise StopRun(f"the budget is spent: {usage}", fix="raise the budget and resume the run")


def parse_budget(budget: Budget | Mapping[str, Any]) -> Budget:
    """Convert a mapping to a budget, and check the types of a budget made in Python."""
    unknown_keys = (
        [str(key) for key in budget if key not in Budget.__struct_fields__] if isinstance(budget, Mapping) else []
    )
    if unknown_keys:
        fix = suggest_name(unknown_keys[0], Budget.__struct_fields__)
        raise ModelError(f"unknown key {unknown_keys[0]!r}", where="budget", fix=fix)
    try:
        return msgspec.convert(msgspec.to_builtins(budget), Budget)
    except msgspec.ValidationError as error:
        raise ModelError(
            explain(error, "budget"), fix="set calls, tokens or cost, each to a number greater than 0"
        ) from None
