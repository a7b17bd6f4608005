"""Helpers for threads that exchange messages with a mailbox: batches, backoff, decoding."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar, cast

import msgspec

from proctor.records.lossless import restore_result
from proctor.records.trial import EvalResult
from proctor.records.validation import explain

BATCH_SIZE = 100

T = TypeVar("T")


def split_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Split items into lists of at most a hundred."""
    rest = iter(items)
    while batch := list(islice(rest, BATCH_SIZE)):
        yield batch


FIRST_SECONDS, LONGEST_SECONDS = 0.1, 5.0
# How often a waiting receiver is woken until it has stopped.
WAKE_SECONDS = 0.02


class Backoff:
    """Pauses that double from 0.1 to 5 seconds, with jitter; the event `stopped` interrupts them."""

    def __init__(self, stopped: threading.Event, rng: random.Random | None = None) -> None:
        self._stopped = stopped
        self._rng = rng or random.Random()
        self._next = FIRST_SECONDS

    def pause(self) -> None:
        self._stopped.wait(self._next * self._rng.uniform(0.5, 1.0))
        self._next = min(2 * self._next, LONGEST_SECONDS)

    def reset(self) -> None:
        self._next = FIRST_SECONDS


BodyT = TypeVar("BodyT")


def decode_body(body: Any, body_type: type[BodyT]) -> BodyT:
    """Convert a message body to its type; raise a `ValueError` if it does not match."""
    if isinstance(body, body_type):
        return body
    try:
        record = msgspec.convert(body, body_type)
        return cast(BodyT, restore_result(record)) if isinstance(record, EvalResult) else record
    except msgspec.ValidationError as error:
        raise ValueError(explain(error)) from None
    except ValueError:
        raise
    except Exception as error:
        # User-defined types may raise anything, and an invalid message must not stop its reader.
        raise ValueError(f"{type(error).__name__}: {error}") from None


class SupervisedThread:
    """A thread that passes an unexpected error to a callback and stores it in `failure`."""

    def __init__(self, work: Callable[[], object], name: str, on_failure: Callable[[Exception], object]) -> None:
        self._work = work
        self._on_failure = on_failure
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
            self._on_failure(error)
