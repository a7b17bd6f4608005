"""How many calls may be under way at an endpoint, and from when: learned from what it answers.

One limiter serves all who use an endpoint, from any thread and any event loop. Its window is
halved when the endpoint says that it is too much, and creeps up again while all goes well. When
the endpoint names a moment before which it wants to hear nothing, nobody sends until then.
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
from proctor.core.http_status import seconds_until

_PLAIN = re.compile(r"\d+(?:\.\d+)?")

# OpenAI and its kin write x-ratelimit-remaining-requests, Anthropic anthropic-ratelimit-
# requests-remaining; what stands before and after the word tells which limit it is.
_RATE = re.compile(r"(.*ratelimit.*)-(remaining|reset)(.*)")


class Said:
    """The headers of an answer that are about time, read once.

    `retry_after` is what the endpoint asks for by name; `exhausted` how long until a limit is
    renewed of which nothing is left. None where it says nothing.

    >>> Said([(b"Retry-After", b"7")], datetime.fromisoformat("2026-05-01T12:00Z")).retry_after
    7.0
    """

    __slots__ = ("exhausted", "retry_after", "should_retry")

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], now: datetime) -> None:
        self.retry_after: float | None = None
        self.should_retry: bool | None = None
        limits: dict[tuple[str, str], dict[str, str]] = {}
        milliseconds: float | None = None
        for raw_name, raw_value in headers:
            name = raw_name.lower()
            if b"ratelimit" in name:
                _note(limits, name.decode("latin-1"), raw_value.decode("latin-1"))
            elif name == b"retry-after":
                self.retry_after = seconds_until(raw_value.decode("latin-1"), now)
            elif name == b"retry-after-ms":
                milliseconds = _number(raw_value.decode("latin-1"))
            elif name == b"x-should-retry":
                self.should_retry = {b"true": True, b"false": False}.get(raw_value.lower())
        if milliseconds is not None:
            # The finer of the two counts.
            self.retry_after = milliseconds / 1000.0
        self.exhausted = _exhausted(limits, now) if limits else None


def _number(text: str) -> float | None:
    return float(text) if _PLAIN.fullmatch(text.strip()) else None


def _note(limits: dict[tuple[str, str], dict[str, str]], name: str, value: str) -> None:
    if found := _RATE.fullmatch(name):
        before, what, after = found.groups()
        limits.setdefault((before, after), {})[what] = value


def _exhausted(limits: dict[tuple[str, str], dict[str, str]], now: datetime) -> float | None:
    waits = [
        seconds_until(limit.get("reset", ""), now)
        for limit in limits.values()
        if _number(limit.get("remaining", "")) == 0
    ]
    return max((wait for wait in waits if wait is not None), default=None)


WINDOW = 64
MOST = 1024
# After a pause the calls start again spread over this part of it, and never over more seconds.
SPREAD, LONGEST_SPREAD = 0.1, 2.0
# A header that names more than this is odd, and one odd header must not end an endpoint.
LONGEST_PAUSE = 3600.0


class PauseTooLong(Exception):
    """The endpoint wants to hear nothing for longer than the caller can wait.

    `why` is what it answered to the call that it wanted the pause from, if it was an error.
    """

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(f"a pause of {seconds:.3g} s")
        self.seconds = seconds
        self.why = why


class _Waiter:
    """Somebody in the queue: where to wake them, and whether a place is theirs already."""

    __slots__ = ("future", "granted", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: asyncio.Future[None] = loop.create_future()
        self.granted = False

    def wake(self, here: asyncio.AbstractEventLoop | None) -> bool:
        """Tell them that the place is theirs; False if their loop is closed."""
        if self.loop is here:
            self._done()
            return True
        try:
            self.loop.call_soon_threadsafe(self._done)
        except RuntimeError:
            return False
        return True

    def _done(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Limiter:
    """Places for calls, given in the order in which they are asked for.

    A call that waits out a pause keeps its place meanwhile: nobody else could use it. An event
    loop that is stopped in the middle of a call and neither closed nor run again keeps the place
    of that call, too: nobody can tell that it will not go on.

    >>> async def main() -> tuple[int, int]:
    ...     limiter = Limiter(window=8)
    ...     generation = await limiter.enter()
    ...     limiter.too_much(generation)
    ...     limiter.leave()
    ...     return limiter.window, limiter.in_flight
    >>> asyncio.run(main())
    (4, 0)
    """

    def __init__(
        self,
        window: int = WINDOW,
        *,
        most: int = MOST,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()
        self._lock = threading.Lock()
        self._queue: deque[_Waiter] = deque()
        self._window = window
        self._most = max(most, window)
        self._in_flight = 0
        self._generation = 0
        self._succeeded = 0
        self._paused_until = -math.inf
        self._spread = 0.0
        self._why = ""

    @property
    def window(self) -> int:
        """How many calls may be under way now."""
        return self._window

    @property
    def in_flight(self) -> int:
        """How many places are taken."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._queue)

    def hold_to(self, most: int) -> None:
        """Let at most this many calls be under way, however well it goes."""
        with self._lock:
            self._window, self._most = min(self._window, most), most

    def pause_left(self) -> float:
        """Seconds until the endpoint may be asked again; 0 if it may be now."""
        return max(0.0, self._paused_until - self._clock.monotonic())

    async def enter(self, patience: float = math.inf, *, first: bool = False) -> int:
        """Wait for a place and for the end of a pause; gives the generation to tell `too_much`.

        `first` is for a call that had a place before. A pause of more than `patience` seconds is
        not waited for but raised. Whoever enters must `leave`.
        """
        self._refuse_long(patience)
        with self._lock:
            waiter = self._place(first)
        if waiter is not None:
            try:
                with stopwatch.halted():
                    await waiter.future
            except BaseException:
                self._withdraw(waiter)
                raise
        if self._paused_until > self._clock.monotonic():
            try:
                with stopwatch.halted():
                    await self._sit_out(patience)
            except BaseException:
                self.leave()
                raise
        return self._generation

    def leave(self) -> None:
        """Give a place back."""
        with self._lock:
            self._in_flight -= 1
            woken = self._grant()
        self._wake(woken)

    def went_well(self) -> None:
        """Note a success, while the place is still taken: a window's worth of them makes room
        for one more. Where most of the window is not used, they prove nothing and do not count.
        """
        with self._lock:
            if 2 * self._in_flight < self._window:
                return
            self._succeeded += 1
            if self._succeeded < self._window:
                return
            self._succeeded = 0
            self._window = min(self._most, self._window + 1)
            woken = self._grant()
        self._wake(woken)

    def too_much(self, generation: int) -> None:
        """Halve the window, once for all calls that began under the same window."""
        with self._lock:
            if generation == self._generation:
                self._generation += 1
                self._succeeded = 0
                self._window = max(1, self._window // 2)

    def pause(self, seconds: float, why: str = "") -> None:
        """Nobody sends for so long, an hour at most; a pause that lasts longer already stays."""
        seconds = min(seconds, LONGEST_PAUSE)
        with self._lock:
            until = self._clock.monotonic() + seconds
            if until > self._paused_until:
                self._paused_until, self._why = until, why
                self._spread = min(SPREAD * seconds, LONGEST_SPREAD)

    def _refuse_long(self, patience: float) -> None:
        left = self.pause_left()
        if left > patience:
            raise PauseTooLong(left, self._why)

    async def _sit_out(self, patience: float) -> None:
        while (left := self.pause_left()) > 0:
            self._refuse_long(patience)
            await self._clock.sleep(left + self._chance.uniform(0.0, self._spread))

    def _place(self, first: bool) -> _Waiter | None:
        """Take a place if there is one, else a place in the queue. Needs the lock."""
        if self._in_flight < self._window and not self._queue:
            self._in_flight += 1
            return None
        waiter = _Waiter(asyncio.get_running_loop())
        if first:
            self._queue.appendleft(waiter)
        else:
            self._queue.append(waiter)
        return waiter

    def _grant(self) -> list[_Waiter]:
        """Give free places to those who have waited longest. Needs the lock."""
        granted = []
        while self._queue and self._in_flight < self._window:
            waiter = self._queue.popleft()
            waiter.granted = True
            self._in_flight += 1
            granted.append(waiter)
        return granted

    def _wake(self, granted: list[_Waiter]) -> None:
        while granted:
            here = _running_loop()
            lost = sum(not waiter.wake(here) for waiter in granted)
            if not lost:
                return
            # Nobody will ever use the places of those whose loop is gone: pass them on.
            with self._lock:
                self._in_flight -= lost
                granted = self._grant()

    def _withdraw(self, waiter: _Waiter) -> None:
        """Somebody who waited has gone: out of the queue, or the place back that was theirs."""
        with self._lock:
            if not waiter.granted:
                self._queue.remove(waiter)
                return
        self.leave()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
