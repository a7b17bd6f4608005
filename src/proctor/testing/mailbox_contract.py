"""What every mailbox must be able to do, as tests to inherit."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from proctor.errors import ConfigError, MailboxClosed, MailboxError, MailboxFull, ReceiptExpired
from proctor.ports import Mailbox, Message
from proctor.records.mail import EvalRequest
from proctor.records.sample import Sample
from proctor.testing.mailbox_fates import MailboxFates, MailboxWaiting
from proctor.testing.mailbox_moves import LONG_SECONDS as LONG
from proctor.testing.mailbox_moves import receive_many, receive_one, refused


@dataclasses.dataclass
class Parcel:
    """A body of a user's own type."""

    label: str
    weights: list[float]
    inner: dict[str, int] | None = None


class MailboxContract(MailboxFates, MailboxWaiting):
    """Tests that every mailbox must pass; inherit them and say how to make one.

    `make` gives a new, empty mailbox for bodies of a type, at the same place as those it gave
    before. Where its kind differs, say so: `SHORT` is the shortest lease worth testing,
    `STRICT_LEASES` is False if a lease that is over may still be settled while nobody else has the
    message, `IN_ORDER` is False if order is not kept, `BOUNDED` if it has no capacity,
    `KEEPS_HISTORY` if dead letters have no history, `FORGIVES` if every delivery counts,
    `REMEMBERS` if a mailbox that was removed for good can be opened anew; `CROWD` is how many
    messages go through when many send and receive at once.

    >>> class TestMine(MailboxContract):
    ...     def make(self, body_type, *, capacity=None, max_deliveries=None):
    ...         return my_mailbox(body_type, capacity, max_deliveries)
    """

    def test_what_is_sent_is_received_and_gone_when_acknowledged(self) -> None:
        """A message has the id that sending gave, its body, and is gone for good in the end."""
        with self.box() as box:
            sent = box.send("Grüße, “you” 🙂")
            message = receive_one(box)
            assert (message.id, message.body) == (sent, "Grüße, “you” 🙂")
            assert message.delivery_count == 1
            assert message.receipt_handle
            assert message.reply_to is None
            message.acknowledge()
            assert box.approximate_count() == 0
            assert list(box.receive()) == []

    def test_it_has_a_name_and_is_open(self) -> None:
        """A new mailbox is open, empty, and knows its name."""
        with self.box() as box:
            assert box.name
            assert not box.closed
            assert box.approximate_count() == 0
            assert list(box.receive()) == []
            assert list(box.dead_letters()) == []

    def test_when_it_was_sent_is_told_in_aware_utc(self) -> None:
        """The time of sending is aware, in UTC, near now, and the same at every delivery."""
        with self.box() as box:
            box.send("a")
            message = receive_one(box)
            assert message.enqueued_at.utcoffset() == timedelta(0)
            assert abs(message.enqueued_at - datetime.now(UTC)) < timedelta(minutes=1)
            message.nack()
            assert receive_one(box).enqueued_at == message.enqueued_at

    def test_bodies_come_back_in_their_type(self) -> None:
        """A dataclass comes back as itself, and so does a request with its sample."""
        parcel = Parcel("ä", [0.1, 1e300], {"a": 1})
        with self.box(Parcel) as box:
            box.send(parcel)
            assert receive_one(box).body == parcel
        request = EvalRequest(Sample("1", {"question": "2 + 2?"}, 4), run_id="r", epoch=2)
        with self.box(EvalRequest) as box:
            box.send(request)
            assert receive_one(box).body == request

    def test_large_bodies_arrive_whole(self) -> None:
        """A body of 100,000 characters is no trouble."""
        with self.box() as box:
            box.send("é" * 100_000)
            assert receive_one(box).body == "é" * 100_000

    def test_what_cannot_be_written_is_refused_when_it_is_sent(self) -> None:
        """The sender is told, not the receiver."""
        with self.box() as box:
            refused(MailboxError, lambda: box.send("half a character: \ud800"))
            assert box.approximate_count() == 0

    def test_several_are_sent_in_order(self) -> None:
        """Sending several gives their ids in order; sending none is fine."""
        with self.box(int) as box:
            assert box.send_all([]) == []
            ids = box.send_all(iter(range(25)))
            assert len(set(ids)) == 25
            found = {message.id: message.body for message in receive_many(box, 25)}
            assert [found[one] for one in ids] == list(range(25))

    def test_fresh_messages_come_in_the_order_they_were_sent(self) -> None:
        """First in, first out, whether they are sent or received singly or together."""
        if not self.IN_ORDER:
            return
        with self.box(int) as box:
            for number in range(5):
                box.send(number)
            box.send_all(range(5, 30))
            assert [message.body for message in receive_many(box, 30)] == list(range(30))

    def test_what_comes_back_goes_behind_what_is_waiting(self) -> None:
        """A message that was given back does not hold up those that wait already."""
        if not self.IN_ORDER:
            return
        with self.box() as box:
            box.send_all(["a", "b"])
            receive_one(box).nack()
            assert [message.body for message in receive_many(box, 2)] == ["b", "a"]

    def test_no_more_are_given_than_asked_for(self) -> None:
        """A batch holds at most as many as were asked for, and no message twice."""
        with self.box(int) as box:
            box.send_all(range(12))
            first = box.receive(max_messages=10, visibility_timeout=LONG)
            assert 1 <= len(first) <= 10
            bodies = [message.body for message in first]
            rest = 12 - len(first)
            bodies += [message.body for message in receive_many(box, rest)]
            assert sorted(bodies) == list(range(12))

    def test_arguments_out_of_range_are_refused(self) -> None:
        """What no mailbox can serve is refused at once, and nothing is lost by it."""
        with self.box() as box:
            box.send("a")
            for most in (0, 11, -1, True, 1.5, "2", None):
                _refuses(box, max_messages=most)
            for seconds in (-1, 43_201, True, "30", None, math.nan, math.inf):
                _refuses(box, visibility_timeout=seconds)
            for seconds in (-1, True, "1", None, math.nan, math.inf):
                _refuses(box, wait_time_seconds=seconds)
            refused(ConfigError, lambda: box.send("b", delay_seconds=-1))
            refused(ConfigError, lambda: box.send("b", reply_to="no such: name"))
            refused(ConfigError, lambda: box.beside("", str))
            message = receive_one(box)
            refused(ConfigError, lambda: message.nack(-1))
            refused(ConfigError, lambda: message.extend_visibility(43_201))
            message.acknowledge()

    def test_a_lease_hides_a_message_until_it_is_over(self) -> None:
        """Nobody else gets it meanwhile; then it comes with a new receipt and a higher count."""
        with self.box() as box:
            box.send("a")
            with self.a_short_while():
                first = receive_one(box, self.SHORT)
                second = receive_one(box)
            assert list(box.receive()) == []
            assert (second.id, second.body) == (first.id, first.body)
            assert second.delivery_count == 2
            assert second.receipt_handle != first.receipt_handle

    def test_a_stale_receipt_is_refused(self) -> None:
        """Once another has the message, the first can do nothing with it; the other can."""
        with self.box() as box:
            box.send("a")
            first = receive_one(box, self.SHORT)
            self.pass_a_short_lease()
            second = receive_one(box)
            for settle in _ways(first):
                refused(ReceiptExpired, settle)
            second.acknowledge()
            assert box.approximate_count() == 0
            assert list(box.dead_letters()) == []

    def test_a_lease_that_is_over_is_over(self) -> None:
        """A receipt is refused after its time though nobody else has the message yet."""
        if not self.STRICT_LEASES:
            return
        with self.box() as box:
            box.send("a")
            first = receive_one(box, self.SHORT)
            self.pass_a_short_lease()
            for settle in _ways(first):
                refused(ReceiptExpired, settle)
            assert receive_one(box).delivery_count == 2

    def test_what_is_settled_cannot_be_settled_again(self) -> None:
        """After an acknowledgement, a return or a rejection the receipt is worth nothing."""
        with self.box() as box:
            box.send_all(["a", "b", "c"])
            messages = receive_many(box, 3)
            messages[0].acknowledge()
            messages[1].nack(LONG)
            messages[2].reject("broken")
            for message in messages:
                for settle in _ways(message):
                    refused(ReceiptExpired, settle)
            assert box.approximate_count() == 1

    def test_what_is_given_back_is_seen_again_at_once(self) -> None:
        """A return without a delay ends the lease."""
        with self.box() as box:
            box.send("a")
            first = receive_one(box)
            first.nack()
            second = receive_one(box)
            assert second.delivery_count == 2
            assert second.receipt_handle != first.receipt_handle

    def test_what_is_given_back_with_a_delay_is_seen_after_it(self) -> None:
        """Not before, and not never."""
        with self.box() as box:
            box.send("a")
            message = receive_one(box)
            with self.a_short_while():
                message.nack(self.SHORT)
                assert receive_one(box).delivery_count == 2

    def test_an_extended_lease_lasts(self) -> None:
        """The message stays one's own beyond the first lease, by the same receipt."""
        with self.box() as box:
            box.send("a")
            # Long enough to be extended in time on a busy machine.
            lease = max(self.SHORT, 0.5)
            message = receive_one(box, lease)
            message.extend_visibility(LONG)
            time.sleep(lease + 0.05)
            assert list(box.receive()) == []
            message.extend_visibility(LONG)
            message.acknowledge()
            assert box.approximate_count() == 0

    def test_extending_counts_from_now(self) -> None:
        """A long lease can be made short, and is over then."""
        with self.box() as box:
            box.send("a")
            message = receive_one(box)
            with self.a_short_while():
                message.extend_visibility(self.SHORT)
                assert receive_one(box).delivery_count == 2
            refused(ReceiptExpired, message.acknowledge)

    def test_a_delayed_message_is_seen_after_its_delay(self) -> None:
        """Not before; and it is a first delivery then."""
        with self.box() as box:
            with self.a_short_while():
                box.send("later", delay_seconds=self.SHORT)
                message = receive_one(box)
            assert (message.body, message.delivery_count) == ("later", 1)

    def test_acknowledging_several_passes_over_those_that_are_not_ones_own(self) -> None:
        """The number tells how many were."""
        with self.box(int) as box:
            box.send_all(range(12))
            messages = receive_many(box, 12)
            assert box.acknowledge_all([]) == 0
            messages[0].acknowledge()
            messages[11].nack()
            assert box.acknowledge_all(messages) == 10
            assert box.acknowledge_all(messages) == 0
            assert box.approximate_count() == 1

    def test_the_count_has_waiting_delayed_and_leased_messages(self) -> None:
        """All that is not settled is counted."""
        with self.box() as box:
            box.send_all(["a", "b"])
            box.send("c", delay_seconds=LONG)
            receive_one(box)
            assert box.approximate_count() == 3

    def test_a_purge_drops_everything_but_dead_letters(self) -> None:
        """Waiting, delayed and leased messages go, and are counted; dead letters stay."""
        with self.box() as box:
            box.send_all(["a", "b", "c"])
            box.send("d", delay_seconds=LONG)
            receive_one(box).reject("broken")
            held = receive_one(box)
            assert box.purge() == 3
            assert box.approximate_count() == 0
            assert list(box.receive()) == []
            assert len(box.dead_letters()) == 1
            if self.STRICT_LEASES:
                refused(ReceiptExpired, held.acknowledge)
            box.send("e")
            assert receive_one(box).body == "e"

    def test_capacity_counts_what_is_in_flight(self) -> None:
        """A full mailbox refuses until something is settled; leased and delayed ones count."""
        if not self.BOUNDED:
            return
        with self.box(capacity=2) as box:
            box.send("a")
            message = receive_one(box)
            box.send("b", delay_seconds=LONG)
            refused(MailboxFull, lambda: box.send("c"))
            refused(MailboxFull, lambda: box.send_all(["c"]))
            message.acknowledge()
            box.send("c")
            assert box.approximate_count() == 2

    def test_an_answer_goes_where_the_message_says(self) -> None:
        """By name or by the mailbox itself; the answer can be read there in its type."""
        with self.box() as box, self.box(Parcel) as answers:
            for reply_to in (answers.name, answers):
                box.send("question", reply_to=reply_to)
                message = receive_one(box)
                assert message.reply_to == answers.name
                sent = message.reply(Parcel("answer", []))
                message.acknowledge()
                answer = receive_one(answers)
                assert (answer.id, answer.body) == (sent, Parcel("answer", []))
                answer.acknowledge()
            beside = box.beside(answers.name, Parcel)
            box.send_all(["more"], reply_to=beside)
            receive_one(box).reply(Parcel("again", []))
            assert receive_one(beside).body == Parcel("again", [])
            beside.close()

    def test_an_answer_to_nobody_is_refused(self) -> None:
        """A message without a place for answers says so."""
        with self.box() as box:
            box.send("a")
            told = refused(MailboxError, lambda: receive_one(box).reply("b"))
            assert "reply_to" in str(told)

    def test_a_closed_mailbox_refuses_and_keeps_what_is_in_it(self) -> None:
        """Closing is for this object alone, and may be done twice."""
        with self.box() as box:
            box.send("a")
            closed = box.beside(box.name, str)
            closed.close()
            closed.close()
            assert closed.closed
            calls: list[Callable[[], object]] = [
                lambda: closed.send("b"),
                lambda: closed.send_all(["b"]),
                closed.receive,
                closed.purge,
                closed.approximate_count,
                closed.dead_letters,
            ]
            for call in calls:
                refused(MailboxClosed, call)
            assert not box.closed
            assert receive_one(box).body == "a"

    def test_a_removed_mailbox_leaves_nothing_behind(self) -> None:
        """Removing closes it; a new one of its name is empty, dead letters and all."""
        with self.box() as neighbour:
            box = self.make(str)
            box.send_all(["a", "b"])
            receive_one(box).reject("broken")
            box.remove()
            assert box.closed
            again = neighbour.beside(box.name, str)
            assert again.approximate_count() == 0
            assert list(again.dead_letters()) == []
            again.remove()


def _ways(message: Message[Any]) -> list[Callable[[], object]]:
    """Every way to settle a message or to keep it."""
    return [
        message.acknowledge,
        message.nack,
        lambda: message.nack(1, reason="no"),
        lambda: message.extend_visibility(LONG),
        message.confirm_delivery,
        lambda: message.reject("no"),
    ]


def _refuses(box: Mailbox[Any], **arguments: Any) -> None:
    refused(ConfigError, lambda: box.receive(**arguments))
