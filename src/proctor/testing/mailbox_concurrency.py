"""Options and helpers of the mailbox contract, and its tests of long polls, races and many threads."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from proctor.errors import ReceiptExpired
from proctor.ports import Mailbox, Message
from proctor.records.mail import DeadLetter

# The longest wait for a message that must arrive, and a lease that outlasts every test, in seconds.
TIMEOUT_SECONDS = 20.0
LONG_LEASE = 300
# Long enough for another thread to start waiting.
SHORT_DELAY = 0.1
RACES = 25


class MailboxHooks:
    """The method that a subclass implements, the options it can set, and fixtures."""

    # The shortest lease and delay worth testing, and how late a message may arrive, in seconds.
    SHORT = 0.2
    SLACK = 15.0
    STRICT_LEASES = True  # An expired lease is refused even if nobody else has received the message.
    IN_ORDER = True  # New messages arrive in the order in which they were sent.
    HAS_CAPACITY = True  # The mailbox can limit how many messages it holds.
    HAS_DELIVERY_HISTORY = True  # A dead letter lists every failed delivery.
    HAS_UNCOUNTED_DELIVERIES = True  # Provisional deliveries and `nack(counts=False)` do not count.
    REMEMBERS_REMOVAL = True  # A mailbox removed for good refuses messages until somebody receives from it.
    MESSAGE_COUNT = 200  # The number of messages when many threads send and receive concurrently.

    def make(self, body_type: Any, *, capacity: int | None = None, max_deliveries: int | None = None) -> Mailbox[Any]:
        """Return a new, empty mailbox in the same location as all other mailboxes of this method."""
        raise NotImplementedError("implement make() to return a new, empty mailbox")

    def put_raw(self, mailbox: Mailbox[Any], text: str) -> None:
        """Send a string that need not be JSON, as another program might do."""
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
    def assert_takes_short(self) -> Iterator[None]:
        """Assert that the block takes at least `SHORT` seconds."""
        started = time.monotonic()
        yield
        # Servers may have coarse clocks.
        assert time.monotonic() - started >= self.SHORT * 0.9, "the message arrived too early"

    def wait_for_expiry(self) -> None:
        """Wait until a lease or a delay of `SHORT` has ended."""
        time.sleep(self.SHORT * 1.1 + 0.01)


def receive_one(mailbox: Mailbox[Any], lease: float = LONG_LEASE, *, provisional: bool = False) -> Message[Any]:
    """Receive a message that must arrive."""
    messages = mailbox.receive(visibility_timeout=lease, wait_time_seconds=TIMEOUT_SECONDS, provisional=provisional)
    assert len(messages) == 1, f"expected one message, received {len(messages)}"
    return messages[0]


def receive_many(mailbox: Mailbox[Any], count: int) -> list[Message[Any]]:
    """Receive `count` messages that must arrive."""
    messages: list[Message[Any]] = []
    while len(messages) < count:
        limit = min(10, count - len(messages))
        batch = mailbox.receive(max_messages=limit, visibility_timeout=LONG_LEASE, wait_time_seconds=TIMEOUT_SECONDS)
        assert 0 < len(batch) <= limit, f"received {len(messages)} of {count}, then {len(batch)}"
        messages += batch
    return messages


def get_bodies(messages: list[Message[Any]]) -> list[Any]:
    return [message.body for message in messages]


def wait_for_dead_letters(mailbox: Mailbox[Any], count: int) -> list[DeadLetter]:
    """Wait until the mailbox has `count` dead letters."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(letters := list(mailbox.dead_letters())) < count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(letters) == count, f"expected {count} dead letters, found {len(letters)}"
    return letters


def run_concurrently(*calls: Callable[[], Any]) -> list[Any]:
    """Run calls in threads that start at the same moment; return their results or exceptions."""
    barrier = threading.Barrier(len(calls))
    outcomes: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        barrier.wait(TIMEOUT_SECONDS)
        try:
            outcomes[index] = calls[index]()
        except Exception as error:
            outcomes[index] = error

    threads = [threading.Thread(target=run, args=[index], daemon=True) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * TIMEOUT_SECONDS)
        assert not thread.is_alive(), "a call did not return"
    return outcomes


class MailboxConcurrencyContract(MailboxHooks):
    """Tests of long polls, races, and many senders and receivers."""

    def test_a_long_poll_lasts_if_nothing_arrives(self, mailbox: Mailbox[Any]) -> None:
        started = time.monotonic()
        assert list(mailbox.receive(wait_time_seconds=self.SHORT)) == []
        assert self.SHORT * 0.9 <= time.monotonic() - started <= self.SHORT + self.SLACK

    def test_a_long_poll_returns_as_soon_as_a_message_is_sent(self, mailbox: Mailbox[Any]) -> None:
        self._check_wakes_receiver(mailbox, lambda: mailbox.send("a"))

    def test_a_long_poll_returns_as_soon_as_a_message_is_returned(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        self._check_wakes_receiver(mailbox, receive_one(mailbox).nack)

    def test_a_long_poll_sees_leases_and_delays_end(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("leased")
        receive_one(mailbox, self.SHORT)
        self._check_arrives(mailbox, "leased")
        mailbox.send("delayed", delay_seconds=self.SHORT)
        self._check_arrives(mailbox, "delayed")

    def test_a_long_poll_sees_the_end_of_a_lease_that_began_while_it_waits(self, mailbox: Mailbox[Any]) -> None:
        def send_soon() -> None:
            time.sleep(SHORT_DELAY)
            mailbox.send("a")

        wait = partial(mailbox.receive, visibility_timeout=self.SHORT, wait_time_seconds=TIMEOUT_SECONDS)
        started = time.monotonic()
        first, second, _ = run_concurrently(wait, wait, send_soon)
        assert sorted(message.delivery_count for message in (*first, *second)) == [1, 2]
        assert time.monotonic() - started <= SHORT_DELAY + self.SHORT + self.SLACK

    def test_closing_ends_long_polls(self, mailbox: Mailbox[Any]) -> None:
        handle = mailbox.open_mailbox(mailbox.name, str)
        self._check_ends_polls(handle, handle.close)
        assert handle.closed

    def test_waking_ends_long_polls_and_keeps_the_mailbox_open(self, mailbox: Mailbox[Any]) -> None:
        self._check_ends_polls(mailbox, mailbox.wake)
        assert not mailbox.closed
        mailbox.send("a")
        assert receive_one(mailbox).body == "a"

    def test_one_of_two_racing_acknowledgements_wins(self) -> None:
        with self.open_mailbox(int) as mailbox:
            mailbox.send_all(range(RACES))
            for message in receive_many(mailbox, RACES):
                outcomes = run_concurrently(message.acknowledge, message.acknowledge)
                assert _count_winners(outcomes) == 1
            assert mailbox.approximate_count() == 0

    def test_either_an_acknowledgement_or_a_racing_return_wins(self) -> None:
        with self.open_mailbox(int) as mailbox:
            mailbox.send_all(range(RACES))
            returned = 0
            for message in receive_many(mailbox, RACES):
                outcomes = run_concurrently(message.acknowledge, partial(message.nack, LONG_LEASE))
                assert _count_winners(outcomes) == 1
                returned += outcomes[1] is None
            assert mailbox.approximate_count() == returned

    def test_many_senders_and_receivers_deliver_every_message_once(self) -> None:
        share = self.MESSAGE_COUNT // 4
        done: list[int] = []
        with self.open_mailbox(int) as mailbox:
            receivers = [partial(_acknowledge_until, mailbox, done, 4 * share)] * 4
            senders = [partial(_send_range, mailbox, n * share, share) for n in range(4)]
            outcomes = run_concurrently(*senders, *receivers)
            assert outcomes == [None] * 8, outcomes
            assert sorted(done) == list(range(4 * share))
            assert mailbox.approximate_count() == 0

    def _check_arrives(self, mailbox: Mailbox[Any], body: str) -> None:
        started = time.monotonic()
        assert receive_one(mailbox).body == body
        assert time.monotonic() - started <= self.SHORT + self.SLACK

    def _check_wakes_receiver(self, mailbox: Mailbox[Any], action: Callable[[], object]) -> None:
        def act_soon() -> float:
            time.sleep(SHORT_DELAY)
            action()
            return time.monotonic()

        def wait() -> tuple[Sequence[Message[Any]], float]:
            return mailbox.receive(wait_time_seconds=TIMEOUT_SECONDS), time.monotonic()

        acted, (messages, returned) = run_concurrently(act_soon, wait)
        assert [message.body for message in messages] == ["a"]
        assert returned - acted <= self.SLACK

    def _check_ends_polls(self, mailbox: Mailbox[Any], action: Callable[[], object]) -> None:
        def act_soon() -> None:
            time.sleep(SHORT_DELAY)
            action()

        def wait() -> tuple[int, float]:
            started = time.monotonic()
            return len(mailbox.receive(wait_time_seconds=TIMEOUT_SECONDS)), time.monotonic() - started

        _, *outcomes = run_concurrently(act_soon, wait, wait)
        for count, seconds in outcomes:
            assert count == 0
            assert seconds <= SHORT_DELAY + self.SLACK


def _count_winners(outcomes: list[Any]) -> int:
    losers = [outcome for outcome in outcomes if outcome is not None]
    assert all(isinstance(outcome, ReceiptExpired) for outcome in losers), outcomes
    return len(outcomes) - len(losers)


def _send_range(mailbox: Mailbox[Any], first: int, count: int) -> None:
    for number in range(first, first + count // 2):
        mailbox.send(number)
    mailbox.send_all(range(first + count // 2, first + count))


def _acknowledge_until(mailbox: Mailbox[Any], done: list[int], count: int) -> None:
    """Receive and acknowledge until all receivers together have processed `count` messages."""
    deadline = time.monotonic() + 2 * TIMEOUT_SECONDS
    while len(done) < count and time.monotonic() < deadline:
        for message in mailbox.receive(max_messages=3, visibility_timeout=LONG_LEASE, wait_time_seconds=SHORT_DELAY):
            message.acknowledge()
            done.append(message.body)
