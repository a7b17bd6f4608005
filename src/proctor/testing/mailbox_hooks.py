"""What a mailbox's author says about it, and what the tests of its contract start from."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from proctor.ports import Mailbox, Message
from proctor.records.mail import DeadLetter

# The longest that a test waits for what must come. A lease that must not end within a test is
# longer than that.
PATIENCE = 10.0
LONG = 300


class MailboxHooks:
    """How to make a mailbox, and where its kind differs."""

    SHORT = 0.2
    """The shortest lease and delay worth testing, in seconds."""
    SLACK = 4.0
    """How much later than it could something may be seen on a busy machine, in seconds."""
    STRICT_LEASES = True
    """A lease that is over is refused, whether or not somebody else has the message."""
    IN_ORDER = True
    """Fresh messages come in the order they were sent."""
    BOUNDED = True
    """It can be given a capacity."""
    KEEPS_HISTORY = True
    FORGIVES = True
    REMEMBERS = True
    """A dead letter tells what became of every delivery."""
    CROWD = 200
    """How many messages go through when many send and receive at once."""

    def make(
        self,
        body_type: Any,
        *,
        capacity: int | None = None,
        max_deliveries: int | None = None,
    ) -> Mailbox[Any]:
        """A new, empty mailbox, at the same place as all others this method gives."""
        raise NotImplementedError("say how to make a new, empty mailbox")

    def put_raw(self, mailbox: Mailbox[Any], text: str) -> None:
        """Put a text in that need not be JSON, as a stranger might."""
        mailbox.send(msgspec.Raw(text.encode()))

    @contextlib.contextmanager
    def box(self, body_type: Any = str, **options: int) -> Iterator[Mailbox[Any]]:
        """A mailbox that is removed after the test."""
        made = self.make(body_type, **options)
        try:
            yield made
        finally:
            made.remove()

    @contextlib.contextmanager
    def a_short_while(self) -> Iterator[None]:
        """What is done here must not be over before `SHORT` is."""
        started = time.monotonic()
        yield
        # Clocks of servers may be coarse.
        assert time.monotonic() - started >= self.SHORT * 0.9, "it came too early"

    def pass_a_short_lease(self) -> None:
        """Wait until a lease or a delay of `SHORT` is over."""
        time.sleep(self.SHORT * 1.1 + 0.01)


def receive_one(mailbox: Mailbox[Any], lease: float = LONG) -> Message[Any]:
    """The next message, which must come."""
    found = mailbox.receive(visibility_timeout=lease, wait_time_seconds=PATIENCE)
    assert len(found) == 1, f"one message should have come, and {len(found)} came"
    return found[0]


def receive_many(mailbox: Mailbox[Any], count: int) -> list[Message[Any]]:
    """So many messages, which must come, in the order they came."""
    found: list[Message[Any]] = []
    while len(found) < count:
        most = min(10, count - len(found))
        batch = mailbox.receive(
            max_messages=most, visibility_timeout=LONG, wait_time_seconds=PATIENCE
        )
        assert 0 < len(batch) <= most, f"{len(found)} of {count} came, then {len(batch)}"
        found += batch
    return found


def dead_letters(mailbox: Mailbox[Any], count: int) -> list[DeadLetter]:
    """So many dead letters, which must be there soon."""
    ends = time.monotonic() + PATIENCE
    while len(found := list(mailbox.dead_letters())) < count and time.monotonic() < ends:
        time.sleep(0.02)
    assert len(found) == count, f"{count} dead letters should be there, and {len(found)} are"
    return found


def refused(error: type[Exception], call: Callable[[], object]) -> Exception:
    """The error that a call must raise."""
    try:
        gave = call()
    except error as raised:
        return raised
    raise AssertionError(f"it should have raised {error.__name__}, and gave {gave!r}")


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What calls give, or raise, that are made at the same moment from threads of their own."""
    barrier = threading.Barrier(len(calls))
    outcomes: list[Any] = [None] * len(calls)

    def made(place: int) -> None:
        barrier.wait(PATIENCE)
        try:
            outcomes[place] = calls[place]()
        except Exception as error:
            outcomes[place] = error

    threads = [
        threading.Thread(target=made, args=[place], daemon=True) for place in range(len(calls))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * PATIENCE)
        assert not thread.is_alive(), "a call did not come back"
    return outcomes
