"""A hypothesis state machine that compares a mailbox with a simple model of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from proctor.errors import ReceiptExpired
from proctor.ports import Mailbox, Message
from proctor.records.mail import DeadLetter

MAX_DELIVERIES = 2
MAX_HISTORY_LINES = 10
POISON = "{not a number"
NO_TIME, SHORT, LONG = "no time", "short", "long"
# When a message is available: now, after the next `advance`, or not within this test.
WAITING, SOON, LATER = "waiting", "soon", "later"
_STATE_AFTER = {NO_TIME: WAITING, SHORT: SOON, LONG: LATER}

durations = st.sampled_from([NO_TIME, SHORT, LONG])
# How many deliveries back, 0 for the latest. An integer, because the number of deliveries may depend
# on time, and hypothesis must draw the same choices on a replay.
deliveries = st.integers(0, 20)


@dataclass
class ExpectedMessage:
    """The expected state of a message in the mailbox."""

    body: int
    state: str
    is_new: bool
    # Deliveries that count, and all deliveries.
    deliveries: int = 0
    history_lines: int = 0
    # Losing the latest delivery does not count.
    is_uncounted: bool = False
    receipt: str | None = None

    def hide(self, duration: str) -> None:
        self.state = _STATE_AFTER[duration]
        if self.state == WAITING:
            self.receipt = None


class MailboxStateMachine(RuleBasedStateMachine):
    """Calls the methods of a mailbox in any order; inherit from it and implement `make` and `advance`.

    Set `EXACT` if the clock of the mailbox moves only in `advance`. Otherwise a short lease may end
    earlier, and the machine accepts both outcomes.
    """

    EXACT = False
    SECONDS: ClassVar[dict[str, float]] = {NO_TIME: 0.0, SHORT: 0.005, LONG: 600.0}

    def __init__(self) -> None:
        super().__init__()
        self.box = self.make(MAX_DELIVERIES)
        self.expected: dict[str, ExpectedMessage] = {}
        self.poison_count = 0
        self.letters: dict[str, DeadLetter] = {}
        self.received: list[Message[int]] = []
        self.numbers = itertools.count()

    def make(self, max_deliveries: int) -> Mailbox[int]:
        """Return a new, empty mailbox for integers."""
        raise NotImplementedError("implement make() to return a new, empty mailbox")

    def advance(self) -> None:
        """Let more than a short lease pass."""
        raise NotImplementedError("implement advance() to let time pass")

    @rule(count=st.integers(0, 4))
    def send_all(self, count: int) -> None:
        bodies = [next(self.numbers) for _ in range(count)]
        for id_, body in zip(self.box.send_all(bodies), bodies, strict=True):
            self.expected[id_] = ExpectedMessage(body, WAITING, is_new=True)

    @rule(delay=durations)
    def send(self, delay: str) -> None:
        body = next(self.numbers)
        sent = self.box.send(body, delay_seconds=self.SECONDS[delay])
        self.expected[sent] = ExpectedMessage(body, _STATE_AFTER[delay], is_new=delay == NO_TIME)

    @rule()
    def send_unreadable(self) -> None:
        poison: Any = msgspec.Raw(POISON.encode())
        self.box.send(poison)
        self.poison_count += 1

    @rule(limit=st.integers(1, 10), lease=durations, provisional=st.booleans())
    def receive(self, limit: int, lease: str, provisional: bool = False) -> None:
        had_poison = self.poison_count > 0
        messages = self.box.receive(max_messages=limit, visibility_timeout=self.SECONDS[lease], provisional=provisional)
        assert len(messages) <= limit
        arrived = [message.id for message in messages if self.expected[message.id].is_new]
        new = [id_ for id_, expected in self.expected.items() if expected.is_new]
        assert arrived == new[: len(arrived)], "new messages arrived out of order"
        for message in messages:
            self._record_delivery(message, lease, provisional)
        self._check_new_letters()
        waiting = {id_ for id_, expected in self.expected.items() if expected.state == WAITING}
        if not messages or (len(messages) < limit and not had_poison):
            assert waiting <= {message.id for message in messages}, "a waiting message did not arrive"

    @rule(age=deliveries)
    def acknowledge(self, age: int) -> None:
        message = self._find_delivery(age)
        if message and self._settle(message, message.acknowledge):
            del self.expected[message.id]

    @rule(age=deliveries, delay=durations, counts=st.booleans())
    def nack(self, age: int, delay: str, counts: bool) -> None:
        message = self._find_delivery(age)
        seconds = self.SECONDS[delay]
        if message and self._settle(message, partial(message.nack, seconds, reason="not now", counts=counts)):
            expected = self.expected[message.id]
            expected.hide(delay)
            expected.receipt = None
            expected.deliveries -= not counts
            expected.is_uncounted = not counts

    @rule(age=deliveries)
    def confirm_delivery(self, age: int) -> None:
        message = self._find_delivery(age)
        if message and self._settle(message, message.confirm_delivery):
            self.expected[message.id].is_uncounted = False

    @rule(age=deliveries, lease=durations)
    def extend(self, age: int, lease: str) -> None:
        message = self._find_delivery(age)
        if message and self._settle(message, partial(message.extend_visibility, self.SECONDS[lease])):
            self.expected[message.id].hide(lease)

    @rule(age=deliveries)
    def reject(self, age: int) -> None:
        message = self._find_delivery(age)
        if message and self._settle(message, partial(message.reject, "broken")):
            [letter] = self._take_new_letters()
            assert (letter.id, letter.body) == (message.id, str(message.body))
            assert letter.reason == "broken"
            del self.expected[message.id]

    @rule(ages=st.lists(deliveries, max_size=4))
    def acknowledge_all(self, ages: list[int]) -> None:
        messages = [message for age in ages if (message := self._find_delivery(age))]
        certain = [message for message in messages if self._is_leased(message) is not None]
        leased = {message.id for message in certain if self._is_leased(message)}
        assert self.box.acknowledge_all(certain) == len(leased)
        for id_ in leased:
            del self.expected[id_]

    @rule()
    def pass_time(self) -> None:
        self.advance()
        for expected in self.expected.values():
            if expected.state == SOON:
                expected.hide(NO_TIME)

    @rule()
    def purge(self) -> None:
        assert self.box.purge() == len(self.expected) + self.poison_count
        self.expected.clear()
        self.poison_count = 0

    @invariant()
    def count_is_exact(self) -> None:
        assert self.box.approximate_count() == len(self.expected) + self.poison_count

    @invariant()
    def dead_letters_stay_unchanged(self) -> None:
        assert self._read_letters() == self.letters

    def teardown(self) -> None:
        """Check that every available message arrives in the end."""
        self.pass_time()
        for _ in range(len(self.expected) + 1):
            self.receive(10, LONG)
        assert all(expected.state == LATER for expected in self.expected.values())
        self.box.remove()

    def _find_delivery(self, age: int) -> Message[int] | None:
        return self.received[-1 - age % len(self.received)] if self.received else None

    def _record_delivery(self, message: Message[int], lease: str, provisional: bool) -> None:
        expected = self.expected[message.id]
        assert expected.state == WAITING or self._may_have_expired(expected), "another receiver has it"
        assert expected.deliveries < MAX_DELIVERIES or expected.is_uncounted, "it arrived too often"
        expected.deliveries += 1
        expected.history_lines += 1
        expected.is_uncounted = provisional
        assert (message.body, message.delivery_count) == (expected.body, expected.deliveries)
        assert message.receipt_handle not in {earlier.receipt_handle for earlier in self.received}
        self.received.append(message)
        expected.is_new = False
        expected.receipt = message.receipt_handle
        expected.hide(lease)

    def _check_new_letters(self) -> None:
        for letter in self._take_new_letters():
            expected = self.expected.pop(letter.id, None)
            if expected is None:
                self.poison_count -= 1
                assert letter.body == POISON
                continue
            assert expected.state == WAITING or self._may_have_expired(expected)
            assert expected.deliveries == letter.delivery_count >= MAX_DELIVERIES
            assert not expected.is_uncounted, "losing the latest delivery does not count"
            assert f"{expected.deliveries} times" in letter.reason
            assert len(letter.history) == min(expected.history_lines, MAX_HISTORY_LINES)

    def _is_leased(self, message: Message[int]) -> bool | None:
        """Return whether the lease is valid; None if it may have ended by now."""
        expected = self.expected.get(message.id)
        if expected is None or expected.receipt != message.receipt_handle:
            return False
        return None if self._may_have_expired(expected) else True

    def _may_have_expired(self, expected: ExpectedMessage) -> bool:
        return expected.state == SOON and not self.EXACT

    def _settle(self, message: Message[int], call: Callable[[], None]) -> bool:
        is_leased = self._is_leased(message)
        try:
            call()
        except ReceiptExpired:
            assert not is_leased, "a valid lease was refused"
            if is_leased is None:
                self.expected[message.id].hide(NO_TIME)
            return False
        assert is_leased is not False, "a stale receipt was accepted"
        return True

    def _read_letters(self) -> dict[str, DeadLetter]:
        return {letter.id: letter for letter in self.box.dead_letters(1000)}

    def _take_new_letters(self) -> list[DeadLetter]:
        known, self.letters = self.letters, self._read_letters()
        return [letter for id_, letter in self.letters.items() if id_ not in known]
