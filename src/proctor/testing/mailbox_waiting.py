"""Those who wait, race and crowd: the part of a mailbox's contract that needs threads."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

from proctor.errors import ReceiptExpired
from proctor.ports import Mailbox, Message
from proctor.testing.mailbox_hooks import (
    LONG,
    PATIENCE,
    MailboxHooks,
    at_once,
    receive_many,
    receive_one,
)

# Long enough for a thread to be waiting.
A_MOMENT = 0.1
RACES = 25


class MailboxWaiting(MailboxHooks):
    """Tests of long polls, races and many senders and receivers."""

    def test_a_long_poll_lasts_if_nothing_comes(self) -> None:
        """It does not return early with nothing, and returns with nothing in the end."""
        with self.box() as box:
            started = time.monotonic()
            assert list(box.receive(wait_time_seconds=self.SHORT)) == []
            took = time.monotonic() - started
            assert self.SHORT * 0.9 <= took <= self.SHORT + self.SLACK

    def test_a_long_poll_returns_as_soon_as_something_is_sent(self) -> None:
        """The receiver does not wait for the end of its time."""
        with self.box() as box:
            self._wakes(box, lambda: box.send("a"))

    def test_a_long_poll_returns_as_soon_as_something_is_given_back(self) -> None:
        """A returned message wakes a receiver as a fresh one does."""
        with self.box() as box:
            box.send("a")
            self._wakes(box, receive_one(box).nack)

    def test_a_long_poll_sees_a_lease_end(self) -> None:
        """A message whose receiver is dead comes to one who waits already."""
        with self.box() as box:
            box.send("a")
            receive_one(box, self.SHORT)
            self._comes_in_time(box)

    def test_a_long_poll_sees_a_delay_end(self) -> None:
        """A delayed message comes to one who waits already."""
        with self.box() as box:
            box.send("a", delay_seconds=self.SHORT)
            self._comes_in_time(box)

    def test_a_long_poll_sees_what_is_leased_while_it_waits(self) -> None:
        """Of two who wait one gets the message; when that lease is over the other gets it."""
        with self.box() as box:

            def wait() -> Sequence[Message[Any]]:
                return box.receive(visibility_timeout=self.SHORT, wait_time_seconds=PATIENCE)

            def send_soon() -> None:
                time.sleep(A_MOMENT)
                box.send("a")

            started = time.monotonic()
            first, second, _ = at_once(wait, wait, send_soon)
            took = time.monotonic() - started
            counts = [message.delivery_count for message in (*first, *second)]
            assert sorted(counts) == [1, 2]
            assert took <= A_MOMENT + self.SHORT + self.SLACK

    def test_closing_returns_those_who_wait(self) -> None:
        """With nothing, and at once."""
        with self.box() as box:
            waiting = box.beside(box.name, str)
            self._returns_with_nothing(waiting, waiting.close)
            assert waiting.closed

    def test_waking_returns_those_who_wait(self) -> None:
        """With nothing, and at once; the mailbox stays as it was."""
        with self.box() as box:
            self._returns_with_nothing(box, box.wake)
            assert not box.closed
            box.send("a")
            assert receive_one(box).body == "a"

    def test_two_racing_acknowledgements_have_one_winner(self) -> None:
        """However close they are, one is told that it was done and the other that it was not."""
        with self.box(int) as box:
            box.send_all(range(RACES))
            for message in receive_many(box, RACES):
                outcomes = at_once(message.acknowledge, message.acknowledge)
                assert _winners(outcomes) == 1
            assert box.approximate_count() == 0

    def test_an_acknowledgement_racing_with_a_return_has_one_winner(self) -> None:
        """Either it is gone, or it comes back; never both and never neither."""
        with self.box(int) as box:
            box.send_all(range(RACES))
            returned = 0
            for message in receive_many(box, RACES):
                outcomes = at_once(message.acknowledge, functools.partial(message.nack, LONG))
                assert _winners(outcomes) == 1
                returned += outcomes[1] is None
            assert box.approximate_count() == returned

    def test_many_senders_and_receivers_lose_nothing(self) -> None:
        """What is acknowledged in time is delivered once, and everything is delivered."""
        share = self.CROWD // 4
        done: list[int] = []
        with self.box(int) as box:
            takes = [functools.partial(_worked, box, done, 4 * share)] * 4
            sends = [functools.partial(_sent, box, n * share, share) for n in range(4)]
            outcomes = at_once(*sends, *takes)
            assert outcomes == [None] * 8, outcomes
            assert sorted(done) == list(range(4 * share))
            assert box.approximate_count() == 0

    def _wakes(self, box: Mailbox[Any], move: Callable[[], object]) -> None:
        def soon() -> float:
            time.sleep(A_MOMENT)
            move()
            return time.monotonic()

        def wait() -> tuple[Sequence[Message[Any]], float]:
            return box.receive(wait_time_seconds=PATIENCE), time.monotonic()

        moved, (found, returned) = at_once(soon, wait)
        assert [message.body for message in found] == ["a"]
        assert returned - moved <= self.SLACK

    def _comes_in_time(self, box: Mailbox[Any]) -> None:
        started = time.monotonic()
        assert receive_one(box).body == "a"
        assert time.monotonic() - started <= self.SHORT + self.SLACK

    def _returns_with_nothing(self, box: Mailbox[Any], move: Callable[[], object]) -> None:
        def soon() -> None:
            time.sleep(A_MOMENT)
            move()

        def wait() -> tuple[int, float]:
            started = time.monotonic()
            return len(box.receive(wait_time_seconds=PATIENCE)), time.monotonic() - started

        _, *outcomes = at_once(soon, wait, wait)
        for found, took in outcomes:
            assert found == 0
            assert took <= A_MOMENT + self.SLACK


def _winners(outcomes: list[Any]) -> int:
    """How many calls went well; the others must have been told that they came too late."""
    late = [outcome for outcome in outcomes if outcome is not None]
    assert all(isinstance(outcome, ReceiptExpired) for outcome in late), outcomes
    return len(outcomes) - len(late)


def _sent(box: Mailbox[Any], first: int, count: int) -> None:
    for number in range(first, first + count // 2):
        box.send(number)
    box.send_all(range(first + count // 2, first + count))


def _worked(box: Mailbox[Any], done: list[int], count: int) -> None:
    """Receive and acknowledge until all that were sent are done by somebody."""
    ends = time.monotonic() + 2 * PATIENCE
    while len(done) < count and time.monotonic() < ends:
        for message in box.receive(
            max_messages=3, visibility_timeout=LONG, wait_time_seconds=A_MOMENT
        ):
            message.acknowledge()
            done.append(message.body)
