"""What becomes of messages that nobody can read or finish: part of a mailbox's contract."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from proctor.errors import MailboxFull, MailboxGone, ReceiptExpired
from proctor.ports import Mailbox, Message
from proctor.testing.mailbox_moves import LONG_SECONDS as LONG
from proctor.testing.mailbox_moves import (
    PATIENCE,
    MailboxHooks,
    at_once,
    dead_letters,
    receive_many,
    receive_one,
    refused,
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
        for message in box.receive(max_messages=3, visibility_timeout=LONG, wait_time_seconds=A_MOMENT):
            message.acknowledge()
            done.append(message.body)


class MailboxFates(MailboxHooks):
    """Tests of dead letters."""

    def test_what_cannot_be_read_is_set_aside(self) -> None:
        """No JSON, other JSON and nothing at all: each is a dead letter, and none is given."""
        with self.box(int) as box:
            texts = ["{no JSON", '"a text"', "[" * 100_000, "12"]
            for text in texts:
                self.put_raw(box, text)
            assert [message.body for message in receive_many(box, 1)] == [12]
            letters = {letter.body: letter for letter in dead_letters(box, 3)}
            assert sorted(letters) == sorted(texts[:3])
            assert all(letter.reason for letter in letters.values())
            assert "str" in letters['"a text"'].reason
            assert box.approximate_count() == 1

    def test_more_than_it_may_hold_is_refused_whole_and_fits_in_parts(self) -> None:
        """A sender that is refused a batch can send a part of it, whatever the batch was."""
        if not self.BOUNDED:
            return
        with self.box(int, capacity=5) as box:
            refused(MailboxFull, lambda: box.send_all(range(10)))
            assert box.approximate_count() == 0
            box.send_all(range(5))
            messages = receive_many(box, 5)
            refused(MailboxFull, lambda: box.send_all([5]))
            assert box.acknowledge_all(messages) == 5
            box.send_all(range(5, 10))
            assert [message.body for message in receive_many(box, 5)] == [5, 6, 7, 8, 9]

    def test_it_can_be_seen_beforehand_how_a_body_arrives(self) -> None:
        """So that a sender can refuse what would change on the way; looking sends nothing."""
        bodies: list[Any] = [{"a": [1, 2.5, None, "ä"]}, {"a": (1, 2)}, {"a": math.nan}]
        with self.box(dict) as box:
            expected = [box.as_received(body) for body in bodies]
            assert box.approximate_count() == 0
            ids = box.send_all(bodies)
            arrived = {message.id: message.body for message in receive_many(box, 3)}
            # repr shows NaN, and tells a tuple from a list.
            assert [repr(arrived[one]) for one in ids] == list(map(repr, expected))
        with self.box(int) as box:
            refused(ValueError, lambda: box.as_received("no number"))

    def test_what_cannot_be_read_never_blocks_the_queue(self) -> None:
        """More of it than a batch holds, and what is behind it still comes in one call."""
        with self.box(int) as box:
            for _ in range(12):
                self.put_raw(box, "poison")
            box.send(1)
            message = receive_one(box)
            assert message.body == 1
            message.acknowledge()
            dead_letters(box, 12)
            assert box.approximate_count() == 0

    def test_what_cannot_be_read_is_set_aside_even_if_leased_for_no_time(self) -> None:
        """A look without a lease does not turn in circles on it."""
        with self.box(int) as box:
            self.put_raw(box, "poison")
            # In a thread of its own, or one that does would never come back.
            [found] = at_once(lambda: box.receive(visibility_timeout=0))
            assert list(found) == []
            dead_letters(box, 1)

    def test_a_return_that_is_no_fault_of_the_message_does_not_count(self) -> None:
        """However often it is given back like that, it is not set aside; the history knows it."""
        if not self.FORGIVES:
            return
        with self.box(max_deliveries=2) as box:
            box.send("a")
            for _ in range(4):
                message = receive_one(box)
                assert message.delivery_count == 1
                message.nack(reason="another kind of worker", counts=False)
                refused(ReceiptExpired, message.acknowledge)
            receive_one(box).nack(reason="busy")
            message = receive_one(box)
            assert message.delivery_count == 2
            message.reject("enough")
            (letter,) = dead_letters(box, 1)
            if self.KEEPS_HISTORY:
                assert ["another kind" in line for line in letter.history] == [*[True] * 4, False]

    def test_losing_a_provisional_delivery_does_not_count(self) -> None:
        """What was lost together with another is not set aside for it; plain deliveries count."""
        with self.box(max_deliveries=2) as box:
            assert box.max_deliveries == 2
            box.send("a")
            for count in (1, 2, 3):
                [message] = self._receive_provisionally(box, self.SHORT)
                assert (message.body, message.delivery_count) == ("a", count)
                self.pass_a_short_lease()
            assert list(box.dead_letters()) == []
            if not self.FORGIVES:
                return
            assert receive_one(box, self.SHORT).delivery_count == 4
            self.pass_a_short_lease()
            assert list(box.receive()) == []
            [letter] = dead_letters(box, 1)
            assert letter.delivery_count == 4

    def test_a_provisional_delivery_counts_once_it_is_confirmed(self) -> None:
        """Whoever loses it after that held nothing else that could be to blame."""
        if not self.FORGIVES:
            return
        with self.box(max_deliveries=1) as box:
            box.send_all(["deadly", "innocent"])
            deadly, innocent = (*self._receive_provisionally(box), *self._receive_provisionally(box))
            deadly.confirm_delivery()
            deadly.extend_visibility(self.SHORT)
            innocent.extend_visibility(self.SHORT)
            self.pass_a_short_lease()
            assert receive_one(box).body == "innocent"
            assert list(box.receive()) == []
            [letter] = dead_letters(box, 1)
            assert (letter.body, letter.delivery_count) == ('"deadly"', 1)

    def test_a_provisional_delivery_is_acknowledged_and_returned_like_any_other(self) -> None:
        """A return that counts does count, and a return that does not keeps it forgiven."""
        if not self.FORGIVES:
            return
        with self.box(max_deliveries=1) as box:
            box.send_all(["done", "blamed", "forgiven"])
            messages = [self._receive_provisionally(box)[0] for _ in range(3)]
            messages[0].acknowledge()
            messages[1].nack(reason="it failed")
            messages[2].nack(counts=False)
            assert receive_one(box).body == "forgiven"
            assert [letter.body for letter in dead_letters(box, 1)] == ['"blamed"']

    def _receive_provisionally(self, box: Mailbox[Any], lease: float = LONG) -> Sequence[Message[Any]]:
        return box.receive(visibility_timeout=lease, wait_time_seconds=PATIENCE, provisional=True)

    def test_what_is_removed_for_good_does_not_come_back(self) -> None:
        """What is sent to it later is refused, by old handles and by new ones."""
        if not self.REMEMBERS:
            return
        with self.box() as box:
            answers = box.beside("late-answers", str)
            other = box.beside("late-answers", str)
            answers.send("in time")
            answers.remove(for_good=True)
            refused(MailboxGone, lambda: other.send("late"))
            refused(MailboxGone, lambda: box.beside("late-answers", str).send_all(["late"]))
            assert other.approximate_count() == 0
            assert list(other.receive()) == []
            other.send("again")
            assert receive_one(other).body == "again"
            other.remove()

    def test_a_rejected_message_is_set_aside_with_its_reason(self) -> None:
        """It is gone from the mailbox, and its letter tells what it was and why."""
        with self.box() as box:
            sent = box.send("a", reply_to="answers")
            message = receive_one(box)
            message.reject("the target does not take it")
            [letter] = dead_letters(box, 1)
            assert (letter.id, letter.body) == (sent, '"a"')
            assert letter.reason == "the target does not take it"
            assert (letter.delivery_count, letter.reply_to) == (1, "answers")
            assert abs(letter.enqueued_at - message.enqueued_at) < timedelta(seconds=1)
            assert letter.died_at.utcoffset() == timedelta(0)
            assert letter.died_at >= letter.enqueued_at - timedelta(seconds=1)
            assert box.approximate_count() == 0
            refused(ReceiptExpired, lambda: message.reject("again"))

    def test_dead_letters_are_looked_at_and_not_taken(self) -> None:
        """They are there the next time too, the newest first, as many as asked for."""
        with self.box() as box:
            box.send_all(["a", "b", "c"])
            for message in receive_many(box, 3):
                message.reject(f"no {message.body}")
            letters = dead_letters(box, 3)
            assert {letter.reason for letter in letters} == {"no a", "no b", "no c"}
            assert {letter.id for letter in dead_letters(box, 3)} == {one.id for one in letters}
            assert len(box.dead_letters(2)) == 2
            if self.IN_ORDER:
                assert [letter.body for letter in box.dead_letters(2)] == ['"c"', '"b"']

    def test_what_comes_back_too_often_is_set_aside(self) -> None:
        """After so many deliveries it is a dead letter, and tells what became of each."""
        with self.box(max_deliveries=2) as box:
            sent = box.send("a")
            receive_one(box).nack(reason="the target was busy")
            last = receive_one(box, self.SHORT)
            assert last.delivery_count == 2
            self.pass_a_short_lease()
            assert list(box.receive()) == []
            [letter] = dead_letters(box, 1)
            assert (letter.id, letter.body) == (sent, '"a"')
            assert "2 times" in letter.reason
            assert letter.delivery_count >= 2
            if self.KEEPS_HISTORY:
                assert len(letter.history) == 2
                assert "1" in letter.history[0]
                assert "the target was busy" in letter.history[0]
                assert "2" in letter.history[1]
            assert box.approximate_count() == 0

    def test_what_comes_back_too_often_does_not_block_the_queue(self) -> None:
        """Those behind it come as if it were not there."""
        with self.box(max_deliveries=1) as box:
            box.send_all(["a", "b"])
            for message in receive_many(box, 2):
                message.nack()
            box.send("c")
            assert receive_one(box).body == "c"
            dead_letters(box, 2)

    def test_the_last_delivery_can_still_be_acknowledged(self) -> None:
        """Only what comes back is set aside, not what is done in time."""
        with self.box(max_deliveries=1) as box:
            box.send("a")
            receive_one(box).acknowledge()
            assert list(box.receive()) == []
            assert list(box.dead_letters()) == []

    def test_a_history_keeps_its_last_lines(self) -> None:
        """However often a message came back, ten lines are kept at most."""
        if not self.KEEPS_HISTORY:
            return
        with self.box() as box:
            box.send("a")
            for turn in range(1, 13):
                receive_one(box).nack(reason=f"turn {turn}!")
            receive_one(box, LONG).reject("enough")
            [letter] = dead_letters(box, 1)
            assert letter.delivery_count == 13
            assert len(letter.history) <= 10
            assert any("turn 12!" in line for line in letter.history)
            assert not any("turn 1!" in line for line in letter.history)
