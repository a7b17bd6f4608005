"""A model with a budget of its own, which several models may share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.asking.spending import Spending
from proctor.providers.wrappers.behind import behind
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.run import Budget


class Budgeted:
    """A model that may be asked as long as its budget lasts; then `StopRun` ends the run.

    Give the same `Spending` to several models and they share one budget.

    >>> spending = Spending(Budget(calls=100))
    >>> target = Budgeted(lambda messages: "Paris", spending)
    >>> judge = Budgeted(lambda messages: "RATING: good", spending)
    """

    def __init__(self, adapter: Any, budget: Budget | Spending | Mapping[str, Any]) -> None:
        self._adapter, self.model, self.identity = behind(adapter)
        self.spending = budget if isinstance(budget, Spending) else Spending(budget)

    @property
    def fits_schema(self) -> bool:
        """As the model itself says."""
        return self._adapter.fits_schema

    async def complete(
        self, request: ModelRequest, *, timeout: float | None = None
    ) -> ModelResponse:
        """Ask within the budget; what comes from a cache was paid for before and is free."""
        self.spending.begin()
        response = await self._adapter.complete(request, timeout=timeout)
        if response.cached:
            self.spending.take_back()
        else:
            self.spending.end(self.model, response.usage)
        return response
