"""Calls evenly spaced: so many a second, whoever makes them."""

from __future__ import annotations

import asyncio
import heapq
import re
import threading
from collections.abc import Mapping
from typing import Any

from proctor.core import stopwatch
from proctor.core.clock import Clock, SystemClock
from proctor.errors import CallFailed, ModelError
from proctor.models.spending import Spending
from proctor.models.wrappers.cached import behind
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

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Ask within the budget; what comes from a cache was paid for before and is free."""
        self.spending.begin()
        response = await self._adapter.complete(request, timeout=timeout)
        if response.cached:
            self.spending.take_back()
        else:
            self.spending.end(self.model, response.usage)
        return response


_PACE = re.compile(r"(\d+(?:\.\d+)?)/(s|min)")


def connect(address: str, *, of: Any) -> Paced:
    """The model `of`, at the pace that the address names: `paced:5/s`, `paced:300/min`.

    >>> connect("paced:5/s", of=lambda messages: "yes").model
    'python:<lambda>'
    """
    found = _PACE.fullmatch(address.partition(":")[2].strip())
    if found is None:
        raise ModelError("it names no pace", where=address, fix="write paced:5/s or paced:300/min")
    number = float(found[1])
    if found[2] == "s":
        return Paced(of, per_second=number)
    return Paced(of, per_minute=number)


class Paced:
    """A model that is asked at an even pace, over all who share this object.

    A call whose turn would come after its time-out fails at once and says how long to wait.

    >>> Paced(lambda messages: "yes", per_minute=300).interval
    0.2
    """

    def __init__(
        self,
        adapter: Any,
        *,
        per_second: float | None = None,
        per_minute: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._adapter, self.model, self.identity = behind(adapter)
        self.interval = _interval(per_second, per_minute)
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._next = self._clock.monotonic()
        # Turns of those who gave up waiting, to be taken by others.
        self._given_back: list[float] = []

    @property
    def fits_schema(self) -> bool:
        """As the model itself says."""
        return self._adapter.fits_schema

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Ask when its turn has come; the wait is part of the `timeout`, not of a stopwatch."""
        began = self._clock.monotonic()
        turn = self._take(began)
        wait = turn - began
        if timeout is not None and wait >= timeout:
            self._give_back(turn)
            raise CallFailed(
                f"{self.model} is asked at a pace: the next turn is in {wait:.1f} s, "
                f"the call had {timeout:g} s",
                retryable=True,
                retry_after=wait,
            )
        if wait > 0:
            try:
                with stopwatch.halted():
                    await self._clock.sleep(wait)
            except asyncio.CancelledError:
                self._give_back(turn)
                raise
        left = None if timeout is None else max(0.0, began + timeout - self._clock.monotonic())
        return await self._adapter.complete(request, timeout=left)

    def _take(self, now: float) -> float:
        with self._lock:
            while self._given_back:
                turn = heapq.heappop(self._given_back)
                if turn >= now:
                    return turn
            turn = max(now, self._next)
            self._next = turn + self.interval
            return turn

    def _give_back(self, turn: float) -> None:
        with self._lock:
            heapq.heappush(self._given_back, turn)


def _interval(per_second: float | None, per_minute: float | None) -> float:
    rates = [rate for rate in (per_second, per_minute and per_minute / 60.0) if rate is not None]
    if len(rates) != 1 or not 0 < rates[0] < float("inf"):
        raise ModelError("a pace is one number above 0", fix="give per_second= or per_minute=, not both")
    return 1.0 / rates[0]
