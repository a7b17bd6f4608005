"""Contract tests that every mailbox must pass."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from proctor.errors import ConfigError, MailboxClosed, MailboxError, MailboxFull, MailboxGone, ReceiptExpired
from proctor.ports import Mailbox, Message
from proctor.records.mail import EvalRequest
from proctor.records.sample import Sample
from proctor.testing.assertions import assert_raises
from proctor.testing.mailbox_concurrency import (
    LONG_LEASE,
    MailboxConcurrencyContract,
    get_bodies,
    receive_many,
    receive_one,
    run_concurrently,
    wait_for_dead_letters,
)


@dataclasses.dataclass
class Parcel:
    """A message body of a user-defined type."""

    label: str
    weights: list[float]
    inner: dict[str, int] | None = None


class MailboxContract(MailboxConcurrencyContract):
    """Tests that every mailbox must pass. Inherit from it and implement `make` (needs pytest).

    `make` returns a new, empty mailbox for bodies of a type, in the same location as the earlier mailboxes. Set the
    class attributes of `MailboxHooks`, such as `SHORT` or `IN_ORDER`, if your mailbox differs.

    >>> class TestMyMailbox(MailboxContract):
    ...     def make(self, body_type, *, capacity=None, max_deliveries=None):
    ...         return my_mailbox(body_type, capacity, max_deliveries)
    """

    def test_a_new_mailbox_is_open_and_empty(self, mailbox: Mailbox[Any]) -> None:
        assert mailbox.name
        assert not mailbox.closed
        assert mailbox.approximate_count() == 0
        assert list(mailbox.receive()) == []
        assert list(mailbox.dead_letters()) == []

    def test_a_message_is_received_and_gone_once_acknowledged(self, mailbox: Mailbox[Any]) -> None:
        sent = mailbox.send("Grüße, “you” 🙂")
        message = receive_one(mailbox)
        assert (message.id, message.body) == (sent, "Grüße, “you” 🙂")
        assert message.delivery_count == 1
        assert message.receipt_handle
        assert message.reply_to is None
        message.acknowledge()
        assert mailbox.approximate_count() == 0
        assert list(mailbox.receive()) == []

    def test_the_send_time_is_utc_and_stays_the_same(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        message = receive_one(mailbox)
        assert message.enqueued_at.utcoffset() == timedelta(0)
        assert abs(message.enqueued_at - datetime.now(UTC)) < timedelta(minutes=1)
        message.nack()
        assert receive_one(mailbox).enqueued_at == message.enqueued_at

    def test_bodies_keep_their_type_and_content(self) -> None:
        request = EvalRequest(Sample("1", {"question": "2 + 2?"}, 4), run_id="r", epoch=2)
        for body in (Parcel("ä", [0.1, 1e300], {"a": 1}), request, "é" * 100_000):
            with self.open_mailbox(type(body)) as mailbox:
                mailbox.send(body)
                assert receive_one(mailbox).body == body

    def test_a_body_that_cannot_be_encoded_is_refused_when_sent(self, mailbox: Mailbox[Any]) -> None:
        assert_raises(MailboxError, mailbox.send, "half a character: \ud800")
        assert mailbox.approximate_count() == 0

    def test_a_sender_can_check_how_a_body_arrives(self) -> None:
        bodies: list[Any] = [{"a": [1, 2.5, None, "ä"]}, {"a": (1, 2)}, {"a": math.nan}]
        with self.open_mailbox(dict) as mailbox:
            expected = [mailbox.as_received(body) for body in bodies]
            assert mailbox.approximate_count() == 0
            ids = mailbox.send_all(bodies)
            arrived = {message.id: message.body for message in receive_many(mailbox, 3)}
            # repr shows NaN and distinguishes a tuple from a list.
            assert [repr(arrived[id_]) for id_ in ids] == list(map(repr, expected))
        with self.open_mailbox(int) as mailbox:
            assert_raises(ValueError, mailbox.as_received, "no number")

    def test_send_all_returns_the_ids_in_order(self) -> None:
        with self.open_mailbox(int) as mailbox:
            assert mailbox.send_all([]) == []
            ids = mailbox.send_all(iter(range(25)))
            assert len(set(ids)) == 25
            bodies = {message.id: message.body for message in receive_many(mailbox, 25)}
            assert [bodies[id_] for id_ in ids] == list(range(25))

    def test_new_messages_arrive_in_the_order_sent(self) -> None:
        if not self.IN_ORDER:
            return
        with self.open_mailbox(int) as mailbox:
            for number in range(5):
                mailbox.send(number)
            mailbox.send_all(range(5, 30))
            assert get_bodies(receive_many(mailbox, 30)) == list(range(30))

    def test_a_returned_message_goes_behind_waiting_ones(self, mailbox: Mailbox[Any]) -> None:
        if not self.IN_ORDER:
            return
        mailbox.send_all(["a", "b"])
        receive_one(mailbox).nack()
        assert get_bodies(receive_many(mailbox, 2)) == ["b", "a"]

    def test_a_batch_has_at_most_max_messages_and_no_duplicates(self) -> None:
        with self.open_mailbox(int) as mailbox:
            mailbox.send_all(range(12))
            first = list(mailbox.receive(max_messages=10, visibility_timeout=LONG_LEASE))
            assert 1 <= len(first) <= 10
            rest = receive_many(mailbox, 12 - len(first))
            assert sorted(get_bodies(first + rest)) == list(range(12))

    def test_arguments_out_of_range_are_refused(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        for count in (0, 11, -1, True, 1.5, "2", None):
            assert_raises(ConfigError, mailbox.receive, max_messages=count)
        for seconds in (-1, 43_201, True, "30", None, math.nan, math.inf):
            assert_raises(ConfigError, mailbox.receive, visibility_timeout=seconds)
        for seconds in (-1, True, "1", None, math.nan, math.inf):
            assert_raises(ConfigError, mailbox.receive, wait_time_seconds=seconds)
        assert_raises(ConfigError, mailbox.send, "b", delay_seconds=-1)
        assert_raises(ConfigError, mailbox.send, "b", reply_to="no such: name")
        assert_raises(ConfigError, mailbox.open_mailbox, "", str)
        message = receive_one(mailbox)
        assert_raises(ConfigError, message.nack, -1)
        assert_raises(ConfigError, message.extend_visibility, 43_201)
        message.acknowledge()

    def test_a_lease_hides_a_message_until_it_ends(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        with self.assert_takes_short():
            first = receive_one(mailbox, self.SHORT)
            second = receive_one(mailbox)
        assert list(mailbox.receive()) == []
        assert (second.id, second.body) == (first.id, first.body)
        assert second.delivery_count == 2
        assert second.receipt_handle != first.receipt_handle

    def test_a_stale_receipt_is_refused(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        first = receive_one(mailbox, self.SHORT)
        self.wait_for_expiry()
        second = receive_one(mailbox)
        _assert_expired(first)
        second.acknowledge()
        assert mailbox.approximate_count() == 0
        assert list(mailbox.dead_letters()) == []

    def test_an_expired_receipt_is_refused(self, mailbox: Mailbox[Any]) -> None:
        if not self.STRICT_LEASES:
            return
        mailbox.send("a")
        first = receive_one(mailbox, self.SHORT)
        self.wait_for_expiry()
        _assert_expired(first)
        assert receive_one(mailbox).delivery_count == 2

    def test_a_receipt_can_be_used_only_once(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send_all(["a", "b", "c"])
        messages = receive_many(mailbox, 3)
        messages[0].acknowledge()
        messages[1].nack(LONG_LEASE)
        messages[2].reject("broken")
        for message in messages:
            _assert_expired(message)
        assert mailbox.approximate_count() == 1

    def test_a_returned_message_is_available_after_its_delay(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        first = receive_one(mailbox)
        first.nack()
        second = receive_one(mailbox)
        assert second.delivery_count == 2
        assert second.receipt_handle != first.receipt_handle
        with self.assert_takes_short():
            second.nack(self.SHORT)
            assert receive_one(mailbox).delivery_count == 3

    def test_a_lease_can_be_extended(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        # Long enough to extend it in time on a busy machine.
        lease = max(self.SHORT, 0.5)
        message = receive_one(mailbox, lease)
        message.extend_visibility(LONG_LEASE)
        time.sleep(lease + 0.05)
        assert list(mailbox.receive()) == []
        message.extend_visibility(LONG_LEASE)
        message.acknowledge()
        assert mailbox.approximate_count() == 0

    def test_an_extension_counts_from_now_and_can_shorten_a_lease(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        message = receive_one(mailbox)
        with self.assert_takes_short():
            message.extend_visibility(self.SHORT)
            assert receive_one(mailbox).delivery_count == 2
        assert_raises(ReceiptExpired, message.acknowledge)

    def test_a_delayed_message_arrives_after_its_delay(self, mailbox: Mailbox[Any]) -> None:
        with self.assert_takes_short():
            mailbox.send("later", delay_seconds=self.SHORT)
            message = receive_one(mailbox)
        assert (message.body, message.delivery_count) == ("later", 1)

    def test_acknowledge_all_counts_only_valid_receipts(self) -> None:
        with self.open_mailbox(int) as mailbox:
            mailbox.send_all(range(12))
            messages = receive_many(mailbox, 12)
            assert mailbox.acknowledge_all([]) == 0
            messages[0].acknowledge()
            messages[11].nack()
            assert mailbox.acknowledge_all(messages) == 10
            assert mailbox.acknowledge_all(messages) == 0
            assert mailbox.approximate_count() == 1

    def test_waiting_delayed_and_leased_messages_are_counted_and_purged(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send_all(["a", "b", "c"])
        mailbox.send("d", delay_seconds=LONG_LEASE)
        receive_one(mailbox).reject("broken")
        leased = receive_one(mailbox)
        assert mailbox.approximate_count() == 3
        assert mailbox.purge() == 3
        assert mailbox.approximate_count() == 0
        assert list(mailbox.receive()) == []
        assert len(mailbox.dead_letters()) == 1
        if self.STRICT_LEASES:
            assert_raises(ReceiptExpired, leased.acknowledge)
        mailbox.send("e")
        assert receive_one(mailbox).body == "e"

    def test_leased_and_delayed_messages_count_toward_the_capacity(self) -> None:
        if not self.HAS_CAPACITY:
            return
        with self.open_mailbox(capacity=2) as mailbox:
            mailbox.send("a")
            message = receive_one(mailbox)
            mailbox.send("b", delay_seconds=LONG_LEASE)
            assert_raises(MailboxFull, mailbox.send, "c")
            assert_raises(MailboxFull, mailbox.send_all, ["c"])
            message.acknowledge()
            mailbox.send("c")
            assert mailbox.approximate_count() == 2

    def test_a_batch_beyond_the_capacity_is_refused_as_a_unit(self) -> None:
        if not self.HAS_CAPACITY:
            return
        with self.open_mailbox(int, capacity=5) as mailbox:
            assert_raises(MailboxFull, mailbox.send_all, range(10))
            assert mailbox.approximate_count() == 0
            mailbox.send_all(range(5))
            messages = receive_many(mailbox, 5)
            assert_raises(MailboxFull, mailbox.send_all, [5])
            assert mailbox.acknowledge_all(messages) == 5
            mailbox.send_all(range(5, 10))
            assert get_bodies(receive_many(mailbox, 5)) == [5, 6, 7, 8, 9]

    def test_a_reply_goes_to_the_mailbox_named_in_reply_to(self, mailbox: Mailbox[Any]) -> None:
        with self.open_mailbox(Parcel) as replies:
            for reply_to in (replies.name, replies):
                mailbox.send("question", reply_to=reply_to)
                message = receive_one(mailbox)
                assert message.reply_to == replies.name
                sent = message.reply(Parcel("answer", []))
                message.acknowledge()
                reply = receive_one(replies)
                assert (reply.id, reply.body) == (sent, Parcel("answer", []))
                reply.acknowledge()
            same_replies = mailbox.open_mailbox(replies.name, Parcel)
            mailbox.send_all(["more"], reply_to=same_replies)
            receive_one(mailbox).reply(Parcel("again", []))
            assert receive_one(same_replies).body == Parcel("again", [])
            same_replies.close()

    def test_a_reply_without_reply_to_is_refused(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        assert "reply_to" in str(assert_raises(MailboxError, receive_one(mailbox).reply, "b"))

    def test_closing_affects_only_one_handle_and_keeps_messages(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send("a")
        handle = mailbox.open_mailbox(mailbox.name, str)
        handle.close()
        handle.close()
        assert handle.closed
        assert_raises(MailboxClosed, handle.send, "b")
        assert_raises(MailboxClosed, handle.send_all, ["b"])
        calls: list[Callable[[], object]] = [handle.receive, handle.purge, handle.approximate_count]
        for call in (*calls, handle.dead_letters):
            assert_raises(MailboxClosed, call)
        assert not mailbox.closed
        assert receive_one(mailbox).body == "a"

    def test_removing_a_mailbox_deletes_its_messages_and_dead_letters(self, mailbox: Mailbox[Any]) -> None:
        removed = self.make(str)
        removed.send_all(["a", "b"])
        receive_one(removed).reject("broken")
        removed.remove()
        assert removed.closed
        reopened = mailbox.open_mailbox(removed.name, str)
        assert reopened.approximate_count() == 0
        assert list(reopened.dead_letters()) == []
        reopened.remove()

    def test_a_mailbox_removed_for_good_refuses_messages(self, mailbox: Mailbox[Any]) -> None:
        if not self.REMEMBERS_REMOVAL:
            return
        replies = mailbox.open_mailbox("late-answers", str)
        other = mailbox.open_mailbox("late-answers", str)
        replies.send("in time")
        replies.remove(for_good=True)
        assert_raises(MailboxGone, other.send, "late")
        assert_raises(MailboxGone, mailbox.open_mailbox("late-answers", str).send_all, ["late"])
        assert other.approximate_count() == 0
        assert list(other.receive()) == []
        other.send("again")
        assert receive_one(other).body == "again"
        other.remove()

    def test_unreadable_messages_become_dead_letters(self) -> None:
        with self.open_mailbox(int) as mailbox:
            texts = ["{no JSON", '"a text"', "[" * 100_000, "12"]
            for text in texts:
                self.put_raw(mailbox, text)
            assert get_bodies(receive_many(mailbox, 1)) == [12]
            letters = {letter.body: letter for letter in wait_for_dead_letters(mailbox, 3)}
            assert sorted(letters) == sorted(texts[:3])
            assert all(letter.reason for letter in letters.values())
            assert "str" in letters['"a text"'].reason
            assert mailbox.approximate_count() == 1

    def test_unreadable_messages_do_not_block_the_queue(self) -> None:
        with self.open_mailbox(int) as mailbox:
            # More than fit into a batch.
            for _ in range(12):
                self.put_raw(mailbox, "poison")
            mailbox.send(1)
            message = receive_one(mailbox)
            assert message.body == 1
            message.acknowledge()
            wait_for_dead_letters(mailbox, 12)
            assert mailbox.approximate_count() == 0

    def test_an_unreadable_message_received_without_a_lease_is_a_dead_letter(self) -> None:
        with self.open_mailbox(int) as mailbox:
            self.put_raw(mailbox, "poison")
            # In a thread, because a faulty mailbox may loop forever.
            [messages] = run_concurrently(lambda: mailbox.receive(visibility_timeout=0))
            assert list(messages) == []
            wait_for_dead_letters(mailbox, 1)

    def test_a_return_with_counts_false_does_not_count(self) -> None:
        if not self.HAS_UNCOUNTED_DELIVERIES:
            return
        with self.open_mailbox(max_deliveries=2) as mailbox:
            mailbox.send("a")
            for _ in range(4):
                message = receive_one(mailbox)
                assert message.delivery_count == 1
                message.nack(reason="another kind of worker", counts=False)
                assert_raises(ReceiptExpired, message.acknowledge)
            receive_one(mailbox).nack(reason="busy")
            message = receive_one(mailbox)
            assert message.delivery_count == 2
            message.reject("enough")
            [letter] = wait_for_dead_letters(mailbox, 1)
            if self.HAS_DELIVERY_HISTORY:
                assert ["another kind" in line for line in letter.history] == [*[True] * 4, False]

    def test_losing_a_provisional_delivery_does_not_count(self) -> None:
        with self.open_mailbox(max_deliveries=2) as mailbox:
            assert mailbox.max_deliveries == 2
            mailbox.send("a")
            for count in (1, 2, 3):
                message = receive_one(mailbox, self.SHORT, provisional=True)
                assert (message.body, message.delivery_count) == ("a", count)
                self.wait_for_expiry()
            assert list(mailbox.dead_letters()) == []
            if not self.HAS_UNCOUNTED_DELIVERIES:
                return
            assert receive_one(mailbox, self.SHORT).delivery_count == 4
            self.wait_for_expiry()
            assert list(mailbox.receive()) == []
            [letter] = wait_for_dead_letters(mailbox, 1)
            assert letter.delivery_count == 4

    def test_a_confirmed_provisional_delivery_counts(self) -> None:
        if not self.HAS_UNCOUNTED_DELIVERIES:
            return
        with self.open_mailbox(max_deliveries=1) as mailbox:
            mailbox.send_all(["deadly", "innocent"])
            deadly, innocent = [receive_one(mailbox, provisional=True) for _ in range(2)]
            deadly.confirm_delivery()
            deadly.extend_visibility(self.SHORT)
            innocent.extend_visibility(self.SHORT)
            self.wait_for_expiry()
            assert receive_one(mailbox).body == "innocent"
            assert list(mailbox.receive()) == []
            [letter] = wait_for_dead_letters(mailbox, 1)
            assert (letter.body, letter.delivery_count) == ('"deadly"', 1)

    def test_a_provisional_delivery_can_be_acknowledged_and_returned(self) -> None:
        if not self.HAS_UNCOUNTED_DELIVERIES:
            return
        with self.open_mailbox(max_deliveries=1) as mailbox:
            mailbox.send_all(["done", "counted", "uncounted"])
            messages = [receive_one(mailbox, provisional=True) for _ in range(3)]
            messages[0].acknowledge()
            messages[1].nack(reason="it failed")
            messages[2].nack(counts=False)
            assert receive_one(mailbox).body == "uncounted"
            assert [letter.body for letter in wait_for_dead_letters(mailbox, 1)] == ['"counted"']

    def test_a_rejected_message_becomes_a_dead_letter_with_its_reason(self, mailbox: Mailbox[Any]) -> None:
        sent = mailbox.send("a", reply_to="answers")
        message = receive_one(mailbox)
        message.reject("the target does not take it")
        [letter] = wait_for_dead_letters(mailbox, 1)
        assert (letter.id, letter.body) == (sent, '"a"')
        assert letter.reason == "the target does not take it"
        assert (letter.delivery_count, letter.reply_to) == (1, "answers")
        assert abs(letter.enqueued_at - message.enqueued_at) < timedelta(seconds=1)
        assert letter.died_at.utcoffset() == timedelta(0)
        assert letter.died_at >= letter.enqueued_at - timedelta(seconds=1)
        assert mailbox.approximate_count() == 0
        assert_raises(ReceiptExpired, message.reject, "again")

    def test_reading_dead_letters_keeps_them(self, mailbox: Mailbox[Any]) -> None:
        mailbox.send_all(["a", "b", "c"])
        for message in receive_many(mailbox, 3):
            message.reject(f"no {message.body}")
        letters = wait_for_dead_letters(mailbox, 3)
        assert {letter.reason for letter in letters} == {"no a", "no b", "no c"}
        assert {letter.id for letter in wait_for_dead_letters(mailbox, 3)} == {letter.id for letter in letters}
        assert len(mailbox.dead_letters(2)) == 2
        if self.IN_ORDER:
            assert [letter.body for letter in mailbox.dead_letters(2)] == ['"c"', '"b"']

    def test_a_message_returned_too_often_becomes_a_dead_letter(self) -> None:
        with self.open_mailbox(max_deliveries=2) as mailbox:
            sent = mailbox.send("a")
            receive_one(mailbox).nack(reason="the target was busy")
            assert receive_one(mailbox, self.SHORT).delivery_count == 2
            self.wait_for_expiry()
            assert list(mailbox.receive()) == []
            [letter] = wait_for_dead_letters(mailbox, 1)
            assert (letter.id, letter.body) == (sent, '"a"')
            assert "2 times" in letter.reason
            assert letter.delivery_count >= 2
            if self.HAS_DELIVERY_HISTORY:
                first, second = letter.history
                assert "1" in first
                assert "the target was busy" in first
                assert "2" in second
            assert mailbox.approximate_count() == 0

    def test_messages_returned_too_often_do_not_block_the_queue(self) -> None:
        with self.open_mailbox(max_deliveries=1) as mailbox:
            mailbox.send_all(["a", "b"])
            for message in receive_many(mailbox, 2):
                message.nack()
            mailbox.send("c")
            assert receive_one(mailbox).body == "c"
            wait_for_dead_letters(mailbox, 2)

    def test_the_last_delivery_can_be_acknowledged(self) -> None:
        with self.open_mailbox(max_deliveries=1) as mailbox:
            mailbox.send("a")
            receive_one(mailbox).acknowledge()
            assert list(mailbox.receive()) == []
            assert list(mailbox.dead_letters()) == []

    def test_a_delivery_history_keeps_at_most_ten_lines(self, mailbox: Mailbox[Any]) -> None:
        if not self.HAS_DELIVERY_HISTORY:
            return
        mailbox.send("a")
        for turn in range(1, 13):
            receive_one(mailbox).nack(reason=f"turn {turn}!")
        receive_one(mailbox).reject("enough")
        [letter] = wait_for_dead_letters(mailbox, 1)
        assert letter.delivery_count == 13
        assert len(letter.history) <= 10
        assert any("turn 12!" in line for line in letter.history)
        assert not any("turn 1!" in line for line in letter.history)


def _assert_expired(message: Message[Any]) -> None:
    """Assert that a message can be neither acknowledged, returned nor extended."""
    assert_raises(ReceiptExpired, message.acknowledge)
    assert_raises(ReceiptExpired, message.nack)
    assert_raises(ReceiptExpired, message.nack, 1, reason="no")
    assert_raises(ReceiptExpired, message.extend_visibility, LONG_LEASE)
    assert_raises(ReceiptExpired, message.confirm_delivery)
    assert_raises(ReceiptExpired, message.reject, "no")
