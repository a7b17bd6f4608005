"""Where a key was refused: it is not sent there again and again."""

from __future__ import annotations

from typing import NamedTuple

from proctor.clock import Clock
from proctor.providers.transport.complaints import Complaint

# A gateway may refuse a good key now and then, but hardly so often in a row.
IN_A_ROW = 3
# Then for so long nobody asks. Whoever makes a key valid meanwhile need not start anew.
SECONDS = 30.0


class Refusal(NamedTuple):
    """What was answered last, how often in a row, and until when nobody asks."""

    what: str
    complaint: Complaint
    times: int
    until: float


class Refusals:
    """The URLs of an endpoint that refuse its key; each by itself, as a key may be for some only.

    >>> from proctor.clock import SystemClock
    >>> refusals = Refusals(SystemClock())
    >>> for _ in range(IN_A_ROW):
    ...     refusals.add("/v1/models", "answered 401", Complaint())
    >>> refusals.of("/v1/models").times, refusals.of("/v1/chat/completions")
    (3, None)
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: dict[str, Refusal] = {}

    def add(self, url: str, what: str, complaint: Complaint) -> None:
        """Note that the key was refused."""
        before = self._found.get(url)
        times = 1 if before is None else before.times + 1
        self._found[url] = Refusal(what, complaint, times, self._clock.monotonic() + SECONDS)

    def clear(self, url: str) -> None:
        """Note that the key was taken."""
        self._found.pop(url, None)

    def of(self, url: str) -> Refusal | None:
        """Why this URL is not worth a request now, or None if it is."""
        found = self._found.get(url)
        if found is None or found.times < IN_A_ROW or self._clock.monotonic() >= found.until:
            return None
        return found
