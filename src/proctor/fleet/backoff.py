"""Growing pauses between attempts, ended at once by whoever has something better to do."""

from __future__ import annotations

import random
import threading

FIRST_SECONDS, LONGEST_SECONDS = 0.1, 5.0
# How often who waits in a mailbox is woken until it has noticed that it is over.
WAKE_SECONDS = 0.02


class Backoff:
    """Pauses that double from a tenth of a second to five, with some chance in them."""

    def __init__(self, over: threading.Event, chance: random.Random | None = None) -> None:
        self._over = over
        self._chance = chance or random.Random()
        self._next = FIRST_SECONDS

    def pause(self) -> None:
        """Wait, and wait longer the next time; not at all once it is over."""
        self._over.wait(self._next * self._chance.uniform(0.5, 1.0))
        self._next = min(2 * self._next, LONGEST_SECONDS)

    def reset(self) -> None:
        """It went well: the next pause is a short one."""
        self._next = FIRST_SECONDS
