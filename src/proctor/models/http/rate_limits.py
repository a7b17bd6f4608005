"""Limit the concurrent calls to an endpoint, adapting to its responses.

One limiter serves all users of an endpoint, from any thread and event loop. It halves its window when the
endpoint is overloaded and widens it again while calls succeed.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import threading
from collections import deque
from collections.abc import Iterable
from datetime import datetime

from proctor.core import stopwatch
from proctor.core.clock import Clock, SystemClock
from proctor.core.http_status import parse_retry_after

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# OpenAI writes x-ratelimit-remaining-requests, Anthropic anthropic-ratelimit-requests-remaining;
# the strings before and after the word identify the limit.
_RATE_HEADER = re.compile(r"(.*ratelimit.*)-(remaining|reset)(.*)")

INITIAL_WINDOW = 64
MAX_WINDOW = 1024
# After a pause, calls restart spread over this fraction of it, but at most over these seconds.
SPREAD_SHARE, MAX_SPREAD_SECONDS = 0.1, 2.0
# A longer pause is probably a mistake, and one wrong header must not block an endpoint for good.
MAX_PAUSE_SECONDS = 3600.0


class RateHeaders:
    """The rate-limit headers of a response; None if a header is missing.

    `retry_after` is the pause that the endpoint requests; `reset_after` is the time in seconds until an exhausted limit
    resets.
    """

    __slots__ = ("reset_after", "retry_after", "should_retry")

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], now: datetime) -> None:
        self.retry_after: float | None = None
        self.should_retry: bool | None = None
        limits: dict[tuple[str, str], dict[str, str]] = {}
        milliseconds: float | None = None
        for raw_name, raw_value in headers:
            name, value = raw_name.lower(), raw_value.decode("latin-1")
            if b"ratelimit" in name:
                if match := _RATE_HEADER.fullmatch(name.decode("latin-1")):
                    before, field, after = match.groups()
                    limits.setdefault((before, after), {})[field] = value
            elif name == b"retry-after":
                self.retry_after = parse_retry_after(value, now)
            elif name == b"retry-after-ms":
                milliseconds = _parse_number(value)
            elif name == b"x-should-retry":
                self.should_retry = {"true": True, "false": False}.get(value.lower())
        if milliseconds is not None:
            # The more precise header wins.
            self.retry_after = milliseconds / 1000.0
        waits = [
            parse_retry_after(limit.get("reset", ""), now)
            for limit in limits.values()
            if _parse_number(limit.get("remaining", "")) == 0
        ]
        self.reset_after = max((wait for wait in waits if wait is not None), default=None)


def _parse_number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


class PauseTooLong(Exception):
    """The endpoint requests a longer pause than the caller can wait.

    `reason` is the error response that requested the pause, if there was one.
    """

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(f"a pause of {seconds:.3g} s")
        self.seconds = seconds
        self.reason = reason


class _Waiter:
    __slots__ = ("future", "is_granted", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: asyncio.Future[None] = loop.create_future()
        self.is_granted = False

    def wake(self, running_loop: asyncio.AbstractEventLoop | None) -> bool:
        """Let the call proceed; return False if its loop is closed."""
        if self.loop is running_loop:
            self._resolve()
            return True
        try:
            self.loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:
            return False
        return True

    def _resolve(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Limiter:
    """Grants slots to calls, first come, first served.

    A call that waits for the end of a pause keeps its slot: no other call could use it. A call whose event loop stops
    without being closed keeps its slot too.
    """

    def __init__(
        self,
        window: int = INITIAL_WINDOW,
        *,
        max_window: int = MAX_WINDOW,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()
        self._lock = threading.Lock()
        self._queue: deque[_Waiter] = deque()
        self.window = window
        self._max_window = max(max_window, window)
        self.in_flight = 0
        self._generation = 0
        self._success_count = 0
        self._paused_until = -math.inf
        self._spread = 0.0
        self._pause_reason = ""

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def set_max_window(self, max_window: int) -> None:
        with self._lock:
            self.window, self._max_window = min(self.window, max_window), max_window

    def remaining_pause(self) -> float:
        return max(0.0, self._paused_until - self._clock.monotonic())

    async def acquire(self, max_pause: float = math.inf, *, at_front: bool = False) -> int:
        """Wait for a slot and for the end of a pause; return the generation for `record_overload`.

        `at_front` is for a retry. A pause of more than `max_pause` seconds raises `PauseTooLong`. Every
        `acquire` needs a `release`.
        """
        self._check_pause(max_pause)
        with self._lock:
            waiter = self._take_slot(at_front)
        if waiter is not None:
            try:
                with stopwatch.paused():
                    await waiter.future
            except BaseException:
                self._withdraw(waiter)
                raise
        if self._paused_until > self._clock.monotonic():
            try:
                with stopwatch.paused():
                    while (left := self.remaining_pause()) > 0:
                        self._check_pause(max_pause)
                        await self._clock.sleep(left + self._rng.uniform(0.0, self._spread))
            except BaseException:
                self.release()
                raise
        return self._generation

    def release(self) -> None:
        with self._lock:
            self.in_flight -= 1
            granted = self._grant()
        self._wake(granted)

    def record_success(self) -> None:
        """Count a success before `release`; after as many successes as it has slots, the window grows by one.

        A success counts only while at least half of the window is in use.
        """
        with self._lock:
            if 2 * self.in_flight < self.window:
                return
            self._success_count += 1
            if self._success_count < self.window:
                return
            self._success_count = 0
            self.window = min(self._max_window, self.window + 1)
            granted = self._grant()
        self._wake(granted)

    def record_overload(self, generation: int) -> None:
        """Halve the window, once for all calls of the same generation."""
        with self._lock:
            if generation == self._generation:
                self._generation += 1
                self._success_count = 0
                self.window = max(1, self.window // 2)

    def pause(self, seconds: float, reason: str = "") -> None:
        """Stop sending for some seconds, at most an hour; a longer pause stays in effect."""
        seconds = min(seconds, MAX_PAUSE_SECONDS)
        with self._lock:
            until = self._clock.monotonic() + seconds
            if until > self._paused_until:
                self._paused_until, self._pause_reason = until, reason
                self._spread = min(SPREAD_SHARE * seconds, MAX_SPREAD_SECONDS)

    def _check_pause(self, max_pause: float) -> None:
        left = self.remaining_pause()
        if left > max_pause:
            raise PauseTooLong(left, self._pause_reason)

    def _take_slot(self, at_front: bool) -> _Waiter | None:
        """Take a free slot, or join the queue. The caller holds the lock."""
        if self.in_flight < self.window and not self._queue:
            self.in_flight += 1
            return None
        waiter = _Waiter(asyncio.get_running_loop())
        if at_front:
            self._queue.appendleft(waiter)
        else:
            self._queue.append(waiter)
        return waiter

    def _grant(self) -> list[_Waiter]:
        """Give free slots to the first calls in the queue. The caller holds the lock."""
        granted = []
        while self._queue and self.in_flight < self.window:
            waiter = self._queue.popleft()
            waiter.is_granted = True
            self.in_flight += 1
            granted.append(waiter)
        return granted

    def _wake(self, granted: list[_Waiter]) -> None:
        while granted:
            try:
                running_loop = asyncio.get_running_loop()
            except RuntimeError:
                running_loop = None
            lost = sum(not waiter.wake(running_loop) for waiter in granted)
            if not lost:
                return
            # Calls in a closed loop never use their slots, so pass the slots on.
            with self._lock:
                self.in_flight -= lost
                granted = self._grant()

    def _withdraw(self, waiter: _Waiter) -> None:
        """Remove a cancelled call from the queue, or release its slot."""
        with self._lock:
            if not waiter.is_granted:
                self._queue.remove(waiter)
                return
        self.release()
