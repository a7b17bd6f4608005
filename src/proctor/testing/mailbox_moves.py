"""Any sequence of moves on a mailbox, held against a model of what must be true (hypothesis)."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from proctor.errors import ReceiptExpired
from proctor.ports import Mailbox, Message
from proctor.records.mail import DeadLetter

# The longest that a test waits for what must come. A lease that must not end within a test is
# longer than that.
PATIENCE = 10.0
LONG_SECONDS = 300


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
        self, body_type: Any, *, capacity: int | None = None, max_deliveries: int | None = None
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


def receive_one(mailbox: Mailbox[Any], lease: float = LONG_SECONDS) -> Message[Any]:
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
            max_messages=most, visibility_timeout=LONG_SECONDS, wait_time_seconds=PATIENCE
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

    threads = [threading.Thread(target=made, args=[place], daemon=True) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * PATIENCE)
        assert not thread.is_alive(), "a call did not come back"
    return outcomes


MAX_DELIVERIES = 2
MOST_LINES = 10
POISON = "{not a number"
NO_TIME, SHORT, LONG = "no time", "short", "long"
# Where a message is: to be had now, after the next `advance`, or not within this test.
WAITING, SOON, LATER = "waiting", "soon", "later"
_AFTER = {NO_TIME: WAITING, SHORT: SOON, LONG: LATER}

durations = st.sampled_from([NO_TIME, SHORT, LONG])
# Which of the deliveries so far, the latest is 0. A number, because how many there are may depend
# on time, and the choices of hypothesis must not.
deliveries = st.integers(0, 20)


@dataclass
class Known:
    """What the model knows of a message that is in the mailbox."""

    body: int
    place: str
    fresh: bool
    deliveries: int = 0
    # Every delivery, those that were taken back too.
    lines: int = 0
    # True if losing the latest delivery does not count.
    forgiven: bool = False
    receipt: str | None = None

    def moved(self, duration: str) -> None:
        """It is somebody's, or nobody's, for so long."""
        self.place = _AFTER[duration]
        if self.place == WAITING:
            self.receipt = None


class MailboxMoves(RuleBasedStateMachine):
    """Moves of one mailbox, in any order; inherit it, say how to make one and how time passes.

    A mailbox whose time is set by hand is `EXACT`: what is short lasts until `advance`. For others
    it may be over before; then both are taken as right.

    >>> class Moves(MailboxMoves):
    ...     def make(self, max_deliveries): return my_mailbox(int, max_deliveries)
    ...     def advance(self): time.sleep(2 * self.SECONDS["short"])
    >>> TestMoves = Moves.TestCase
    """

    EXACT = False
    SECONDS: ClassVar[dict[str, float]] = {NO_TIME: 0.0, SHORT: 0.005, LONG: 600.0}

    def __init__(self) -> None:
        super().__init__()
        self.box = self.make(MAX_DELIVERIES)
        self.known: dict[str, Known] = {}
        self.poison = 0
        self.dead: dict[str, DeadLetter] = {}
        self.received: list[Message[int]] = []
        self.numbers = itertools.count()

    def make(self, max_deliveries: int) -> Mailbox[int]:
        """A new, empty mailbox for whole numbers."""
        raise NotImplementedError("say how to make a new, empty mailbox")

    def advance(self) -> None:
        """Let what is short pass."""
        raise NotImplementedError("say how time passes")

    @rule(count=st.integers(0, 4))
    def send_all(self, count: int) -> None:
        bodies = [next(self.numbers) for _ in range(count)]
        ids = self.box.send_all(bodies)
        for one, body in zip(ids, bodies, strict=True):
            self.known[one] = Known(body, WAITING, fresh=True)

    @rule(delay=durations)
    def send(self, delay: str) -> None:
        body = next(self.numbers)
        sent = self.box.send(body, delay_seconds=self.SECONDS[delay])
        self.known[sent] = Known(body, _AFTER[delay], fresh=delay == NO_TIME)

    @rule()
    def send_what_cannot_be_read(self) -> None:
        poison: Any = msgspec.Raw(POISON.encode())
        self.box.send(poison)
        self.poison += 1

    @rule(most=st.integers(1, 10), lease=durations, provisional=st.booleans())
    def receive(self, most: int, lease: str, provisional: bool = False) -> None:
        poisoned = self.poison > 0
        found = self.box.receive(
            max_messages=most, visibility_timeout=self.SECONDS[lease], provisional=provisional
        )
        assert len(found) <= most
        came = [message.id for message in found if self.known[message.id].fresh]
        fresh = [one for one, known in self.known.items() if known.fresh]
        assert came == fresh[: len(came)], "fresh messages came out of order"
        for message in found:
            self._delivered(message, lease, provisional)
        self._bury()
        given = {message.id for message in found}
        left = [one for one, known in self.known.items() if known.place == WAITING]
        if not found or (len(found) < most and not poisoned):
            assert set(left) <= given, "something was there and did not come"

    @rule(which=deliveries)
    def acknowledge(self, which: int) -> None:
        message = self._delivery(which)
        if message and self._settled(message, message.acknowledge):
            del self.known[message.id]

    @rule(which=deliveries, delay=durations, counts=st.booleans())
    def nack(self, which: int, delay: str, counts: bool) -> None:
        message = self._delivery(which)
        seconds = self.SECONDS[delay]
        if message and self._settled(
            message, partial(message.nack, seconds, reason="not now", counts=counts)
        ):
            known = self.known[message.id]
            known.moved(delay)
            known.receipt = None
            known.deliveries -= not counts
            known.forgiven = not counts

    @rule(which=deliveries)
    def confirm_delivery(self, which: int) -> None:
        message = self._delivery(which)
        if message and self._settled(message, message.confirm_delivery):
            self.known[message.id].forgiven = False

    @rule(which=deliveries, lease=durations)
    def extend(self, which: int, lease: str) -> None:
        message = self._delivery(which)
        seconds = self.SECONDS[lease]
        if message and self._settled(message, partial(message.extend_visibility, seconds)):
            self.known[message.id].moved(lease)

    @rule(which=deliveries)
    def reject(self, which: int) -> None:
        message = self._delivery(which)
        if message and self._settled(message, partial(message.reject, "broken")):
            [letter] = self._new_letters()
            assert (letter.id, letter.body) == (message.id, str(message.body))
            assert letter.reason == "broken"
            del self.known[message.id]

    @rule(which=st.lists(deliveries, max_size=4))
    def acknowledge_all(self, which: list[int]) -> None:
        found = [message for one in which if (message := self._delivery(one))]
        sure = [message for message in found if self._owned(message) is not None]
        owned = {message.id for message in sure if self._owned(message)}
        assert self.box.acknowledge_all(sure) == len(owned)
        for one in owned:
            del self.known[one]

    @rule()
    def pass_time(self) -> None:
        self.advance()
        for known in self.known.values():
            if known.place == SOON:
                known.moved(NO_TIME)

    @rule()
    def purge(self) -> None:
        assert self.box.purge() == len(self.known) + self.poison
        self.known.clear()
        self.poison = 0

    @invariant()
    def everything_is_counted(self) -> None:
        """Nothing is lost and nothing is there twice."""
        assert self.box.approximate_count() == len(self.known) + self.poison

    @invariant()
    def dead_letters_stay(self) -> None:
        """What was set aside is there as it was, and nothing else."""
        assert self._letters() == self.dead

    def teardown(self) -> None:
        """In the end all that can be had is had."""
        self.pass_time()
        for _ in range(len(self.known) + 1):
            self.receive(10, LONG)
        assert all(known.place == LATER for known in self.known.values())
        self.box.remove()

    def _delivery(self, which: int) -> Message[int] | None:
        """The delivery of that number, the latest is 0, counted round; None if there was none."""
        return self.received[-1 - which % len(self.received)] if self.received else None

    def _delivered(self, message: Message[int], lease: str, provisional: bool) -> None:
        known = self.known[message.id]
        assert known.place == WAITING or self._may_be_over(known), "it was somebody else's"
        assert known.deliveries < MAX_DELIVERIES or known.forgiven, "it came too often"
        known.deliveries += 1
        known.lines += 1
        known.forgiven = provisional
        assert (message.body, message.delivery_count) == (known.body, known.deliveries)
        assert message.receipt_handle not in {one.receipt_handle for one in self.received}
        self.received.append(message)
        known.fresh = False
        known.receipt = message.receipt_handle
        known.moved(lease)

    def _bury(self) -> None:
        """Whatever was set aside in passing was so for a reason."""
        for letter in self._new_letters():
            known = self.known.pop(letter.id, None)
            if known is None:
                self.poison -= 1
                assert letter.body == POISON
                continue
            assert known.place == WAITING or self._may_be_over(known)
            assert known.deliveries == letter.delivery_count >= MAX_DELIVERIES
            assert not known.forgiven, "losing its latest delivery does not count"
            assert f"{known.deliveries} times" in letter.reason
            assert len(letter.history) == min(known.lines, MOST_LINES)

    def _owned(self, message: Message[int]) -> bool | None:
        """True if the lease holds, False if it does not, None if it may be over by now."""
        known = self.known.get(message.id)
        if known is None or known.receipt != message.receipt_handle:
            return False
        return None if self._may_be_over(known) else True

    def _may_be_over(self, known: Known) -> bool:
        return known.place == SOON and not self.EXACT

    def _settled(self, message: Message[int], settle: Callable[[], None]) -> bool:
        owned = self._owned(message)
        try:
            settle()
        except ReceiptExpired:
            assert not owned, "a lease that holds was refused"
            if owned is None:
                self.known[message.id].moved(NO_TIME)
            return False
        assert owned is not False, "a stale receipt was taken"
        return True

    def _letters(self) -> dict[str, DeadLetter]:
        return {letter.id: letter for letter in self.box.dead_letters(1000)}

    def _new_letters(self) -> list[DeadLetter]:
        letters = self._letters()
        new = [letter for one, letter in letters.items() if one not in self.dead]
        self.dead = letters
        return new
