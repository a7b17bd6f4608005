"""Damaged records on a Redis server become dead letters and block nothing."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.errors import MailboxError
from proctor.mailboxes.redis import RedisMailbox
from tests.servers import RedisServer

names = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(persistent=False) as running:
        yield running


@pytest.fixture
def box(server: RedisServer) -> Iterator[RedisMailbox[Any]]:
    box = RedisMailbox(f"broken-{next(names)}", server.client(), str, max_deliveries=3)
    yield box
    box.remove()


def key(box: RedisMailbox[Any], kind: str) -> str:
    return f"proctor:{{{box.name}}}:{kind}"


def take_all(box: RedisMailbox[Any]) -> list[Any]:
    """Everything that can be received, acknowledged."""
    bodies = []
    while messages := box.receive(max_messages=10):
        bodies += [message.body for message in messages]
        assert box.acknowledge_all(messages) == len(messages)
    return bodies


BROKEN_RECORDS = [
    b"",
    b"garbage",
    b'garbage\n"body"',
    b'\xff\xfe\x00\n"body"',
    b'only-an-id\n"body"',
    b'ID not-a-time results\n"body"',
    b'ID 99999999999999999999 results\n"body"',
    b'ID 999999999999999 results\n"body"',
    b'ID 1735689600000 two words\n"body"',
    b'another1 1735689600000 results\n"body"',
]


@pytest.mark.parametrize("record", BROKEN_RECORDS)
def test_a_broken_record_becomes_a_dead_letter_at_its_first_receipt(
    server: RedisServer, box: RedisMailbox[Any], record: bytes
) -> None:
    """The message before it and the one behind it arrive; it is shown with its id and content."""
    box.send("before")
    broken = box.send("broken")
    box.send("behind")
    record = record.replace(b"ID", broken.encode())
    server.client().hset(key(box, "mail"), broken, record)
    assert take_all(box) == ["before", "behind"]
    assert box.approximate_count() == 0
    [letter] = box.dead_letters()
    assert letter.id in (broken, "another1")
    assert letter.reason.startswith("unreadable: its record ")
    assert letter.delivery_count == 0


def test_an_id_without_a_record_becomes_a_dead_letter(server: RedisServer, box: RedisMailbox[Any]) -> None:
    """Garbage among the ids that wait is counted, and what is behind it arrives."""
    server.client().rpush(key(box, "ready"), "no such id", b"\xff")
    box.send("behind")
    assert take_all(box) == ["behind"]
    reasons = [letter.reason for letter in box.dead_letters()]
    assert reasons == ["unreadable: its record is missing"] * 2


@pytest.mark.parametrize("record", [b"", b"garbage", b"a b c\n", b"7f 99999999999999999999 1\n", b"7f 1 9999999999\n"])
def test_a_broken_lease_record_loses_only_the_count(server: RedisServer, box: RedisMailbox[Any], record: bytes) -> None:
    """The message is intact: it is delivered again, and its history says what happened."""
    sent = box.send("sound")
    [message] = box.receive()
    message.nack()
    server.client().hset(key(box, "leases"), sent, record)
    [message] = box.receive()
    assert (message.body, message.delivery_count) == ("sound", 1)
    message.reject("seen enough")
    [letter] = box.dead_letters()
    assert letter.history == ("delivery 0: its lease record was unreadable",)


def test_a_message_without_a_queue_is_recovered(server: RedisServer, box: RedisMailbox[Any]) -> None:
    """Deleting the queues loses no message, and receivers get it."""
    box.send_all(["a", "b", "c"])
    box.send("d", delay_seconds=600)
    server.client().delete(key(box, "ready"), key(box, "later"))
    assert sorted(take_all(box)) == ["a", "b", "c", "d"]


def test_a_lease_beyond_the_maximum_ends(server: RedisServer, box: RedisMailbox[Any]) -> None:
    """A time beyond the longest lease is damage: the message returns."""
    sent = box.send("a")
    box.receive()
    server.client().zadd(key(box, "later"), {sent: float("inf")})
    [message] = box.receive()
    assert (message.body, message.delivery_count) == ("a", 2)


@pytest.mark.parametrize("kind", ["ready", "later", "mail", "leases", "dead"])
def test_a_key_of_the_wrong_type_is_moved_aside(server: RedisServer, box: RedisMailbox[Any], kind: str) -> None:
    """Messages go through again at once, and a dead letter says what was found and where it is."""
    client = server.client()
    client.delete(key(box, kind))
    client.set(key(box, kind), "someone else's")
    assert list(box.receive(wait_time_seconds=0.05)) == []
    box.send("after")
    assert take_all(box) == ["after"]
    [letter] = box.dead_letters()
    expected = {"ready": "list", "later": "zset", "dead": "stream"}.get(kind, "hash")
    assert f"was a string instead of a {expected}" in letter.reason
    assert client.get(key(box, f"broken:{kind}")) == b"someone else's"
    other = RedisMailbox(box.name, client, str)
    other.remove()
    assert client.keys(f"*{{{box.name}}}*") == []


def test_a_key_that_was_moved_aside_is_not_overwritten_by_the_next(server: RedisServer, box: RedisMailbox[Any]) -> None:
    """Damage that happens again is moved to another name; both values are still there."""
    client = server.client()
    for value in ("first", "second"):
        client.delete(key(box, "ready"))
        client.set(key(box, "ready"), value)
        box.send("after")
        assert take_all(box) == ["after"]
    assert client.get(key(box, "broken:ready")) == b"first"
    assert client.get(key(box, "broken:ready:2")) == b"second"
    reasons = " ".join(letter.reason for letter in box.dead_letters())
    assert f"renamed to {key(box, 'broken:ready')}" in reasons
    assert f"renamed to {key(box, 'broken:ready:2')}" in reasons
    RedisMailbox(box.name, client, str).remove()
    assert client.keys(f"*{{{box.name}}}*") == []


def test_damage_that_cannot_be_moved_aside_is_an_error_and_nothing_is_lost(
    server: RedisServer, box: RedisMailbox[Any]
) -> None:
    """When all 16 names are taken the error names the keys to delete; no value is replaced."""
    client = server.client()
    names = [key(box, "broken:ready"), *(key(box, f"broken:ready:{n}") for n in range(2, 17))]
    for name in names:
        client.set(name, f"kept in {name}")
    client.set(key(box, "ready"), "someone else's")
    with pytest.raises(MailboxError, match=r"all 16 names .* are taken; delete or rename the keys"):
        box.send("a")
    assert [client.get(name) for name in names] == [f"kept in {name}".encode() for name in names]
    assert client.get(key(box, "ready")) == b"someone else's"


def test_a_waiting_receiver_survives_a_wake_key_of_the_wrong_type(server: RedisServer, box: RedisMailbox[Any]) -> None:
    """The key has no content: the receiver moves it away and gets the message in time."""
    box.send("a")
    box.receive(visibility_timeout=0.3)
    server.client().set(key(box, "bell"), "someone else's")
    [message] = box.receive(wait_time_seconds=10)
    assert message.delivery_count == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"odd": "field"},
        {"letter": "garbage", "count": "many", "past": "x\ny z", "reason": ""},
        {"letter": b"\xff\xfe", "count": b"\xff", "past": b"\xff", "reason": b"\xff"},
        {"letter": "7f 99999999999999999999 \nbody", "count": "1", "past": "", "reason": "r"},
        {"letter": "7f 1 \nbody", "count": "9" * 30, "past": "9" * 30 + " x", "reason": "r"},
    ],
)
def test_a_broken_dead_letter_is_shown_as_far_as_possible(
    server: RedisServer, box: RedisMailbox[Any], fields: dict[Any, Any]
) -> None:
    """It hides neither itself nor the others."""
    box.send("a")
    box.receive()[0].reject("first")
    server.client().xadd(key(box, "dead"), fields)
    box.send("b")
    box.receive()[0].reject("last")
    letters = box.dead_letters()
    assert [letters[0].reason, letters[2].reason] == ["last", "first"]
    assert letters[1].reason


garbage = st.one_of(st.binary(max_size=20), st.text(max_size=20).map(str.encode))
damage = st.one_of(
    st.tuples(st.just("RPUSH"), st.sampled_from(["ready", "bell"]), garbage),
    st.tuples(st.just("HSET"), st.sampled_from(["mail", "leases"]), garbage, garbage),
    st.tuples(st.just("XADD"), st.just("dead"), st.sampled_from(["*", f"{2**60}-1"]), garbage, garbage),
    st.tuples(st.just("ZADD"), st.just("later"), st.floats(allow_nan=False), garbage),
    st.tuples(st.just("SET"), st.sampled_from(["ready", "later", "mail", "leases", "bell", "dead", "gone"]), garbage),
)


@settings(max_examples=30, deadline=None)
@given(before=st.lists(damage, max_size=4), after=st.lists(damage, max_size=4))
def test_a_mailbox_works_whatever_its_keys_contain(before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]) -> None:
    """Every call still returns, a new message arrives, and no keys remain in the end."""
    server = SERVERS[0]
    client = server.client()
    box = RedisMailbox(f"fuzz-{next(names)}", client, str, max_deliveries=2)

    def spoil(moves: list[tuple[Any, ...]]) -> None:
        for command, kind, *rest in moves:
            # A key may have another type by now.
            with contextlib.suppress(redis.ResponseError):
                client.execute_command(command, key(box, kind), *rest)

    spoil(before)
    box.receive(max_messages=10)
    box.send("one")
    spoil(after)
    box.dead_letters()
    box.approximate_count()
    list(box.receive(max_messages=10, visibility_timeout=0))
    box.send("two") if not client.exists(key(box, "gone")) else box.receive()
    box.purge()
    box.receive()
    box.send("three")
    assert take_all(box) == ["three"]
    assert box.approximate_count() == 0
    box.remove()
    assert client.keys(f"*{{{box.name}}}*") == []


SERVERS: list[RedisServer] = []


@pytest.fixture(autouse=True)
def _shared(server: RedisServer) -> None:
    SERVERS[:] = [server]
