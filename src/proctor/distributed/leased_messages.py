"""The messages a worker has in hand: their leases are kept alive as long as it works on them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from proctor.distributed.batches import Aside
from proctor.errors import MailboxError, ReceiptExpired
from proctor.ports import Message
from proctor.records.mail import EvalRequest

# Two beats may fail before a lease is over.
BEATS_A_LEASE = 3
# What a returned request's history says if nothing was wrong with it.
STOPPED = "its worker was stopped"
# How long a worker that ends goes on returning what it holds; the rest comes back by itself.
RETURN_ALL_SECONDS = 5.0

Trouble = Callable[[str], object]


class Item(NamedTuple):
    """A message in hand, and what it asks for."""

    message: Message[Any]
    request: EvalRequest[Any, Any]


class Held:
    """Messages by number, each extended three times within its lease, by a thread of its own.

    If that ends against all expectation `fail` is called, and the error is raised at the end.
    """

    def __init__(
        self, lease: float, trouble: Trouble, fail: Callable[[Exception], object] = lambda _: None
    ) -> None:
        self.lease = lease
        self._trouble = trouble
        self._items: dict[int, Item] = {}
        self._lost: set[int] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = Aside(self._beat, "proctor-heartbeat", fail)

    def __enter__(self) -> Held:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self._over.set()
        self._thread.join()
        if error is None and self._thread.failure is not None:
            raise self._thread.failure

    def __len__(self) -> int:
        return len(self._items)

    def take(self, number: int, item: Item) -> None:
        """It is in hand from now on."""
        with self._lock:
            self._items[number] = item

    def find(self, number: int) -> Item:
        """What is in hand under a number."""
        return self._items[number]

    def is_lost(self, number: int) -> bool:
        """True if its lease is over: another worker has it, or will."""
        return number in self._lost

    def let_go(self, number: int) -> None:
        """It was settled."""
        with self._lock:
            self._items.pop(number, None)
            self._lost.discard(number)

    def give_back(self, number: int, delay: float = 0, reason: str = "", *, counts: bool = True) -> bool:
        """Return a message, which never fails: at worst its lease runs out.

        With `counts=False` the delivery was no fault of the message, and is not counted.
        """
        item = self._items[number]
        self.let_go(number)
        try:
            item.message.nack(delay, reason=reason, counts=counts)
        except MailboxError:
            return False
        return True

    def give_back_all(self, seconds: float = RETURN_ALL_SECONDS) -> int:
        """Return everything that is left, for a while; says how many were still one's own."""
        until = time.monotonic() + seconds
        returned = 0
        for number in list(self._items):
            if time.monotonic() > until:
                break
            returned += self.give_back(number, reason=STOPPED, counts=False)
        return returned

    def _beat(self) -> None:
        while not self._over.wait(self.lease / BEATS_A_LEASE):
            with self._lock:
                alive = [(n, item) for n, item in self._items.items() if n not in self._lost]
            failed: MailboxError | None = None
            for number, item in alive:
                try:
                    item.message.extend_visibility(self.lease)
                except ReceiptExpired:
                    self._note_lost(number)
                except MailboxError as error:
                    failed = error
            if failed is not None:
                self._trouble(f"a lease could not be extended: {failed.what}")

    def _note_lost(self, number: int) -> None:
        # Not if it was acknowledged between the look and the call.
        with self._lock:
            if number in self._items:
                self._lost.add(number)
