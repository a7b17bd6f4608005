"""The mailbox in memory: the contract, and its own properties."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from proctor.errors import ConfigError, MailboxClosed, MailboxFull, ReceiptExpired
from proctor.mailboxes.memory import InMemoryMailbox, MemoryBroker
from proctor.models import connect as connections
from proctor.ports import Mailbox
from proctor.testing import MailboxContract
from tests.support import ManualClock


class TestContract(MailboxContract):
    """What every mailbox can do."""

    SHORT = 0.05

    place = MemoryBroker(encodes=True)
    names = itertools.count()

    def make(
        self, body_type: Any, *, capacity: int | None = None, max_deliveries: int | None = None
    ) -> InMemoryMailbox[Any]:
        return InMemoryMailbox(
            f"box-{next(self.names)}", body_type, capacity=capacity, max_deliveries=max_deliveries, broker=self.place
        )


@dataclass(eq=False)
class Thing:
    """An object that is equal to nothing but itself."""

    number: int


def test_it_implements_the_mailbox_protocol() -> None:
    """mypy accepts a mailbox in memory as a `Mailbox`."""
    box: Mailbox[int] = InMemoryMailbox("box", int)
    assert box.name == "box"


def test_without_a_type_the_same_object_is_received() -> None:
    """Nothing is encoded or copied, also for replies."""
    requests: InMemoryMailbox[Thing] = InMemoryMailbox("requests")
    results: InMemoryMailbox[Thing] = InMemoryMailbox("results")
    thing = Thing(1)
    requests.send(thing, reply_to=results)
    [message] = requests.receive()
    assert message.body is thing
    message.reply(thing)
    assert results.receive()[0].body is thing


def test_with_a_type_a_copy_is_received() -> None:
    """Details that a server would lose are lost here too, so that tests detect it."""
    box = InMemoryMailbox("box", Thing)
    thing = Thing(1)
    box.send(thing)
    [message] = box.receive()
    assert isinstance(message.body, Thing)
    assert message.body is not thing
    untyped = box.open_mailbox("box", None)
    message.nack()
    assert untyped.receive()[0].body == {"number": 1}


def test_leases_end_exactly_on_time() -> None:
    """A lease of 30 seconds is valid at 29.9 and over at 30."""
    clock = ManualClock()
    box = InMemoryMailbox("box", str, clock=clock)
    box.send("a")
    [first] = box.receive(visibility_timeout=30)
    clock.seconds = 29.9
    assert box.receive() == []
    first.extend_visibility(30)
    clock.seconds = 59.8
    first.extend_visibility(0.1)
    assert box.receive() == []
    clock.seconds = 59.9
    with pytest.raises(ReceiptExpired, match="the lease of the message has expired"):
        first.acknowledge()
    [second] = box.receive()
    assert second.enqueued_at == first.enqueued_at == ManualClock().now()


def test_a_woken_receiver_checks_again() -> None:
    """With a manual clock, the test moves the time and wakes the receivers."""
    clock = ManualClock()
    box = InMemoryMailbox("box", str, clock=clock)
    box.send("a", delay_seconds=600)
    found: list[str] = []

    def wait() -> None:
        found.extend(message.body for message in box.receive(wait_time_seconds=20))

    thread = threading.Thread(target=wait)
    thread.start()
    clock.seconds = 601
    ends = time.monotonic() + 120
    while thread.is_alive() and time.monotonic() < ends:
        box.wake()
        thread.join(0.01)
    assert found == ["a"]


def test_every_waiting_receiver_gets_a_message() -> None:
    """Ten receivers get ten messages that are sent together, one each."""
    box = InMemoryMailbox("box", int)
    found: list[int] = []

    def wait() -> None:
        found.extend(message.body for message in box.receive(wait_time_seconds=10))

    threads = [threading.Thread(target=wait) for _ in range(10)]
    for thread in threads:
        thread.start()
    box.send_all(range(10))
    for thread in threads:
        thread.join(120)
    assert sorted(found) == list(range(10))


def test_several_messages_are_sent_together_or_not_at_all() -> None:
    """A batch that exceeds the capacity is refused as a whole."""
    box = InMemoryMailbox("box", int, capacity=3)
    box.send(0)
    with pytest.raises(MailboxFull, match="capacity of 3"):
        box.send_all([1, 2, 3])
    assert box.approximate_count() == 1
    box.send_all([1, 2])


def test_a_message_cannot_be_settled_through_a_closed_mailbox() -> None:
    """Further use is refused, and the message comes back when its lease is over."""
    box = InMemoryMailbox("box", str)
    second = box.open_mailbox("box", str)
    box.send("a", reply_to="answers")
    [message] = box.receive(visibility_timeout=0.01)
    box.close()
    for use in (message.acknowledge, message.nack, lambda: message.reply("b"), box.remove):
        with pytest.raises(MailboxClosed, match="is closed"):
            use()
    with pytest.raises(MailboxClosed):
        box.open_mailbox("box", str)
    assert second.receive(wait_time_seconds=10)[0].delivery_count == 2


def test_dead_letters_show_the_body_that_was_sent() -> None:
    """An object is shown as JSON, or with the reason why it cannot be encoded."""
    box: InMemoryMailbox[Any] = InMemoryMailbox("box")
    ring: list[Any] = []
    ring.append(ring)
    box.send_all([Thing(1), ring])
    for message in box.receive(max_messages=10):
        message.reject("no")
    second, first = box.dead_letters()
    assert first.body == '{"number":1}'
    assert second.body.startswith("<list, which cannot be encoded: ")


def test_invalid_utf8_in_a_dead_letter_is_replaced() -> None:
    """A dead letter is always text."""
    box = InMemoryMailbox("box", str)
    poison: Any = msgspec.Raw(b'"\xff"')
    box.send(poison)
    assert box.receive() == []
    [letter] = box.dead_letters()
    assert letter.body == '"\N{REPLACEMENT CHARACTER}"'
    assert letter.reason.startswith("it cannot be read: ")


def test_the_newest_dead_letters_are_kept() -> None:
    """A mailbox with many bad messages does not fill the memory."""
    box = InMemoryMailbox("box", int)
    poison: Any = msgspec.Raw(b"no")
    box.send_all([poison] * 10_001)
    first = box.send(poison)
    assert box.receive() == []
    letters = box.dead_letters(20_000)
    assert len(letters) == 10_000
    assert letters[0].id == first


def test_acknowledged_messages_free_their_memory() -> None:
    """A long lease does not keep a message that was acknowledged early."""
    box: InMemoryMailbox[Thing] = InMemoryMailbox("box")
    alive: weakref.WeakSet[Thing] = weakref.WeakSet()
    for number in range(1000):
        thing = Thing(number)
        alive.add(thing)
        box.send(thing)
        [message] = box.receive(visibility_timeout=43_200)
        message.acknowledge()
    del thing, message
    gc.collect()
    assert len(alive) < 100


def test_repeated_extensions_keep_one_lease() -> None:
    """Extending for hours costs no memory, and the message stays leased."""
    clock = ManualClock()
    box = InMemoryMailbox("box", int, clock=clock)
    box.send_all([1, 2])
    beating, left = box.receive(max_messages=2, visibility_timeout=10)
    for _ in range(200):
        clock.seconds += 9
        beating.extend_visibility(10)
    [again] = box.receive()
    assert (again.body, again.delivery_count) == (2, 2)
    with pytest.raises(ReceiptExpired):
        left.acknowledge()
    assert box.receive() == []
    beating.acknowledge()
    assert box.approximate_count() == 1


def test_a_mailbox_for_replies_is_found_by_name() -> None:
    """A worker that has only the requests can open the results."""
    requests = InMemoryMailbox("requests", str)
    results = InMemoryMailbox("results", str)
    requests.send("a", reply_to=results)
    requests.send("b", reply_to=results)
    requests.open_mailbox("results", str).send("from a worker")
    assert results.receive()[0].body == "from a worker"


def test_two_mailboxes_with_the_same_name_are_refused() -> None:
    """A reply could go to the wrong mailbox, so the message is not sent."""
    requests: InMemoryMailbox[str] = InMemoryMailbox()
    results: InMemoryMailbox[str] = InMemoryMailbox()
    with pytest.raises(ConfigError, match="another mailbox is already named 'mailbox'"):
        requests.send("a", reply_to=results)
    assert requests.approximate_count() == 0


def test_replies_may_go_to_another_kind_of_mailbox() -> None:
    """Any object with a name and `send` works."""

    class Elsewhere:
        name = "elsewhere"

        def __init__(self) -> None:
            self.sent: list[Any] = []

        def send(self, body: Any) -> str:
            self.sent.append(body)
            return "an-id"

    elsewhere: Any = Elsewhere()
    box = InMemoryMailbox("box", str)
    box.send("a", reply_to=elsewhere)
    [message] = box.receive()
    assert message.reply_to == "elsewhere"
    assert message.reply("b") == "an-id"
    assert elsewhere.sent == ["b"]


def test_a_memory_address_is_one_mailbox_per_process() -> None:
    """Messages sent through one handle are received through another, until it is removed."""
    first = connections.mailbox("memory://test-of-addresses", int, max_deliveries=1)
    second = connections.mailbox("memory://test-of-addresses", int)
    second.send(1)
    [message] = first.receive()
    message.nack()
    assert list(first.receive()) == []
    assert len(second.dead_letters()) == 1
    first.remove()
    assert second.approximate_count() == 0
    second.close()


def test_a_removed_name_can_be_used_again() -> None:
    """A new mailbox with the name is independent of the old handles."""
    place = MemoryBroker(encodes=True)
    old = InMemoryMailbox("box", int, broker=place)
    other = InMemoryMailbox("box", int, broker=place)
    old.send(0)
    old.receive()[0].reject("no")
    old.remove()
    assert other.dead_letters() == []
    new = InMemoryMailbox("box", int, broker=place)
    new.send(1)
    assert other.approximate_count() == 0
    other.remove()
    assert InMemoryMailbox("box", int, broker=place).approximate_count() == 1


@pytest.mark.parametrize(
    "wrong", [{"name": "a b"}, {"capacity": 0}, {"max_deliveries": True}, {"body_type": threading.Lock}]
)
def test_invalid_arguments_are_refused_on_creation(wrong: dict[str, Any]) -> None:
    """Names, limits and types are checked."""
    with pytest.raises(ConfigError):
        InMemoryMailbox(**wrong)


@pytest.mark.parametrize("address", ["memory://", "memory://a/b", "memory:a b"])
def test_an_address_with_an_invalid_name_is_refused(address: str) -> None:
    """An address in memory consists of its name only."""
    with pytest.raises(ConfigError, match="cannot be the name"):
        connections.mailbox(address, int)
