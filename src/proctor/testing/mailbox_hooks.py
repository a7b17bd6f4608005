"""The methods and options of a mailbox contract, and helpers for its tests."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from proctor.ports import Mailbox, Message
from proctor.records.mail import DeadLetter

# The longest wait for a message that must arrive, and a lease that outlasts every test, in seconds.
PATIENCE = 10.0
LONG = 300


class MailboxHooks:
    """The method that a subclass implements, the options it can set, and fixtures."""

    # The shortest lease and delay worth testing, and how late a message may arrive, in seconds.
    SHORT = 0.2
    SLACK = 4.0
    STRICT_LEASES = True  # an expired lease is refused even if nobody else has received the message
    IN_ORDER = True  # new messages arrive in the order in which they were sent
    HAS_CAPACITY = True  # the mailbox can limit how many messages it holds
    HAS_DELIVERY_HISTORY = True  # a dead letter lists what happened to every delivery
    HAS_UNCOUNTED_DELIVERIES = True  # provisional deliveries and `nack(counts=False)` do not count
    REMEMBERS_REMOVAL = True  # a mailbox removed for good refuses messages until somebody receives from it
    MESSAGE_COUNT = 200  # messages to send when many threads send and receive concurrently

    def make(
        self, body_type: Any, *, capacity: int | None = None, max_deliveries: int | None = None
    ) -> Mailbox[Any]:
        """Return a new, empty mailbox in the same location as all others that this method returns."""
        raise NotImplementedError("implement make() to return a new, empty mailbox")

    def put_raw(self, mailbox: Mailbox[Any], text: str) -> None:
        """Send a text that need not be JSON, as a foreign program might."""
        mailbox.send(msgspec.Raw(text.encode()))

    @contextlib.contextmanager
    def open_mailbox(self, body_type: Any = str, **options: int) -> Iterator[Mailbox[Any]]:
        """Make a mailbox and remove it after the test."""
        mailbox = self.make(body_type, **options)
        try:
            yield mailbox
        finally:
            mailbox.remove()

    @pytest.fixture
    def mailbox(self) -> Iterator[Mailbox[Any]]:
        with self.open_mailbox() as mailbox:
            yield mailbox

    @contextlib.contextmanager
    def takes_short(self) -> Iterator[None]:
        """Assert that the block takes at least `SHORT` seconds."""
        started = time.monotonic()
        yield
        # Servers may have coarse clocks.
        assert time.monotonic() - started >= self.SHORT * 0.9, "the message arrived too early"

    def wait_for_expiry(self) -> None:
        """Wait until a lease or a delay of `SHORT` has ended."""
        time.sleep(self.SHORT * 1.1 + 0.01)


def receive_one(mailbox: Mailbox[Any], lease: float = LONG, *, provisional: bool = False) -> Message[Any]:
    """Receive a message that must arrive."""
    messages = mailbox.receive(visibility_timeout=lease, wait_time_seconds=PATIENCE, provisional=provisional)
    assert len(messages) == 1, f"expected one message, received {len(messages)}"
    return messages[0]


def receive_many(mailbox: Mailbox[Any], count: int) -> list[Message[Any]]:
    """Receive `count` messages that must arrive."""
    messages: list[Message[Any]] = []
    while len(messages) < count:
        limit = min(10, count - len(messages))
        batch = mailbox.receive(max_messages=limit, visibility_timeout=LONG, wait_time_seconds=PATIENCE)
        assert 0 < len(batch) <= limit, f"received {len(messages)} of {count}, then {len(batch)}"
        messages += batch
    return messages


def bodies_of(messages: list[Message[Any]]) -> list[Any]:
    return [message.body for message in messages]


def wait_for_dead_letters(mailbox: Mailbox[Any], count: int) -> list[DeadLetter]:
    """Wait until the mailbox has `count` dead letters."""
    deadline = time.monotonic() + PATIENCE
    while len(letters := list(mailbox.dead_letters())) < count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(letters) == count, f"expected {count} dead letters, found {len(letters)}"
    return letters


def run_concurrently(*calls: Callable[[], Any]) -> list[Any]:
    """Run calls in threads that start at the same moment; return their results or exceptions."""
    barrier = threading.Barrier(len(calls))
    outcomes: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        barrier.wait(PATIENCE)
        try:
            outcomes[index] = calls[index]()
        except Exception as error:
            outcomes[index] = error

    threads = [threading.Thread(target=run, args=[index], daemon=True) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * PATIENCE)
        assert not thread.is_alive(), "a call did not return"
    return outcomes
