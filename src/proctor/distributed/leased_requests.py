"""The messages that a worker has leased, with a thread that extends their leases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from proctor.distributed.batches import SupervisedThread
from proctor.errors import MailboxError, ReceiptExpired
from proctor.ports import Message
from proctor.records.mail import EvalRequest

# Two extensions may fail before a lease expires.
EXTENSIONS_PER_LEASE = 3
# The reason in the history of a request that was returned without an error.
WORKER_STOPPED = "its worker was stopped"
# The time limit for returning messages when a worker stops; the rest return when their leases expire.
RETURN_ALL_SECONDS = 5.0

Warn = Callable[[str], object]


class LeasedRequest(NamedTuple):
    """A leased message and its request."""

    message: Message[Any]
    request: EvalRequest[Any, Any]


class LeasedRequests:
    """Leased messages by number; a thread extends each three times per lease.

    An unexpected error of the thread is passed to `on_failure`, and raised at the end.
    """

    def __init__(self, lease: float, warn: Warn, on_failure: Callable[[Exception], object] = lambda _: None) -> None:
        self.lease = lease
        self._warn = warn
        self._items: dict[int, LeasedRequest] = {}
        self._lost_numbers: set[int] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = SupervisedThread(self._extend_leases, "proctor-heartbeat", on_failure)

    def __enter__(self) -> LeasedRequests:
        self._thread.start()
        return self

    def __exit__(self, _type: object, error: object, _trace: object) -> None:
        self._stopped.set()
        self._thread.join()
        if error is None and self._thread.failure is not None:
            raise self._thread.failure

    def __len__(self) -> int:
        return len(self._items)

    def add(self, number: int, item: LeasedRequest) -> None:
        with self._lock:
            self._items[number] = item

    def get(self, number: int) -> LeasedRequest:
        return self._items[number]

    def is_lost(self, number: int) -> bool:
        """True if the lease has expired, so that another worker gets the message."""
        return number in self._lost_numbers

    def remove(self, number: int) -> None:
        with self._lock:
            self._items.pop(number, None)
            self._lost_numbers.discard(number)

    def return_request(self, number: int, delay: float = 0, reason: str = "", *, counts: bool = True) -> bool:
        """Return a message to the mailbox; errors are ignored, because its lease expires anyway.

        With `counts=False` the delivery does not count towards the maximum.
        """
        item = self._items[number]
        self.remove(number)
        try:
            item.message.nack(delay, reason=reason, counts=counts)
        except MailboxError:
            return False
        return True

    def return_all(self, seconds: float = RETURN_ALL_SECONDS) -> int:
        """Return all messages to the mailbox, within `seconds`; return how many were still leased."""
        deadline = time.monotonic() + seconds
        returned = 0
        for number in list(self._items):
            if time.monotonic() > deadline:
                break
            returned += self.return_request(number, reason=WORKER_STOPPED, counts=False)
        return returned

    def _extend_leases(self) -> None:
        while not self._stopped.wait(self.lease / EXTENSIONS_PER_LEASE):
            with self._lock:
                leased = [(n, item) for n, item in self._items.items() if n not in self._lost_numbers]
            failure: MailboxError | None = None
            for number, item in leased:
                try:
                    item.message.extend_visibility(self.lease)
                except ReceiptExpired:
                    self._mark_lost(number)
                except MailboxError as error:
                    failure = error
            if failure is not None:
                self._warn(f"a lease could not be extended: {failure.what}")

    def _mark_lost(self, number: int) -> None:
        # Skip messages that were acknowledged in the meantime.
        with self._lock:
            if number in self._items:
                self._lost_numbers.add(number)
