"""Many messages in lists that a mailbox takes in one go."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar, cast

import msgspec

from proctor.records.lossless import restored_result
from proctor.records.trial import EvalResult

BATCH = 100

T = TypeVar("T")


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Split into lists of a hundred.

    >>> [len(batch) for batch in batches(range(250))]
    [100, 100, 50]
    """
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch


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


BodyT = TypeVar("BodyT")


def as_record(body: Any, kind: type[BodyT]) -> BodyT:
    """The body as it should be, or a ValueError that says what does not fit.

    >>> from proctor.records.mail import EvalRequest
    >>> as_record({"sample": {"id": "1", "input": "2 + 2"}}, EvalRequest).sample.input
    '2 + 2'
    """
    if isinstance(body, kind):
        return body
    try:
        record = msgspec.convert(body, kind)
        return cast(BodyT, restored_result(record)) if isinstance(record, EvalResult) else record
    except ValueError:
        raise
    except Exception as error:
        # Objects of the user's own may raise anything, and no message may stop those who read.
        raise ValueError(f"{type(error).__name__}: {error}") from None


class Aside:
    """A thread; what ends it against all expectation is told at once, and kept in `failure`."""

    def __init__(self, work: Callable[[], object], name: str, failed: Callable[[Exception], object]) -> None:
        self._work = work
        self._failed = failed
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.failure: Exception | None = None
        self.start = self._thread.start
        self.join = self._thread.join
        self.is_alive = self._thread.is_alive

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self.failure = error
            self._failed(error)
