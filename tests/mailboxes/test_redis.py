"""The mailbox on Redis: its properties besides the contract."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
import redis
import redis.asyncio

from proctor.errors import ConfigError, MailboxError, MailboxFull, MessageTooLarge
from proctor.mailboxes.redis import RedisMailbox, connect
from proctor.mailboxes.redis_connection import read_address
from proctor.models import connect as connections
from proctor.records.mail import EvalRequest
from proctor.records.sample import Sample
from tests.servers import RedisServer

names = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(persistent=False) as running:
        yield running


@pytest.fixture
def client(server: RedisServer) -> Any:
    made = server.client()
    made.flushall()
    return made


def test_without_a_type_bodies_are_plain_data(client: Any) -> None:
    """Name and client are all that is needed."""
    box: RedisMailbox[Any] = RedisMailbox(name="eval-requests", client=client)
    box.send({"sample": [1, None, "ü"]})
    [message] = box.receive()
    assert message.body == {"sample": [1, None, "ü"]}


def test_open_mailbox_with_its_own_name_keeps_its_limits(client: Any) -> None:
    """Other names get only the size limit of bodies."""
    plain: RedisMailbox[Any] = RedisMailbox("b", client, capacity=1, max_deliveries=1, max_body_bytes=500)
    request = EvalRequest(Sample("1", "2 + 2", "4"), run_id="r")
    plain.send(request)
    typed = plain.open_mailbox("b", EvalRequest)
    with pytest.raises(MailboxFull, match="1"):
        typed.send(request)
    [message] = typed.receive()
    assert message.body == request
    message.nack(reason="first\nsecond")
    assert list(typed.receive()) == []
    [letter] = plain.dead_letters()
    assert letter.history == ("delivery 1: first second",)
    other = plain.open_mailbox("other", str)
    other.send_all(["a", "b"])
    with pytest.raises(MessageTooLarge):
        other.send("c" * 500)


def test_a_body_that_is_too_large_is_refused(client: Any) -> None:
    """The error names both sizes; nothing is sent."""
    box = RedisMailbox("b", client, str, max_body_bytes=10)
    assert box.send("12345678")
    with pytest.raises(MessageTooLarge, match="11 bytes, the limit is 10"):
        box.send("123456789")
    assert box.approximate_count() == 1


def test_an_empty_mailbox_leaves_no_keys(client: Any) -> None:
    """After all messages are acknowledged only dead letters remain, until the mailbox is removed."""
    box = RedisMailbox("b", client, int, max_deliveries=3)
    box.send_all(range(250))
    box.send(250, delay_seconds=0.05)
    assert list(box.open_mailbox("b", int).receive(max_messages=10, visibility_timeout=0))
    time.sleep(0.06)
    while messages := box.receive(max_messages=10):
        box.acknowledge_all(messages[:-1])
        messages[-1].nack() if messages[-1].delivery_count == 1 else messages[-1].acknowledge()
    assert client.keys() == []
    box.send(1)
    box.receive()[0].reject("broken")
    assert client.keys() == [b"proctor:{b}:dead"]
    assert list(box.receive(wait_time_seconds=0.01)) == []
    box.remove()
    assert client.keys() == []


def test_all_keys_share_one_hash_tag_and_messages_never_expire(client: Any) -> None:
    """A cluster stores them on one node; only wake keys have a time to live."""
    box = RedisMailbox("b", client, int)
    box.send_all(range(5))
    box.send(5, delay_seconds=100)
    first, _ = box.receive(max_messages=2)
    first.reject("broken")
    keys = client.keys()
    assert all(key.startswith(b"proctor:{b}:") for key in keys)
    kinds = {key.decode().rpartition(":")[2]: client.ttl(key) for key in keys}
    assert 0 < kinds.pop("bell") <= 60
    assert kinds == dict.fromkeys(("ready", "later", "mail", "leases", "dead"), -1)


def test_a_long_poll_does_not_poll(client: Any) -> None:
    """Waiting for a second takes a handful of commands."""
    box = RedisMailbox("b", client, int)
    box.send(1)
    box.receive()[0].extend_visibility(100)
    client.config_resetstat()
    started = time.monotonic()
    assert list(box.receive(wait_time_seconds=1)) == []
    assert time.monotonic() - started >= 1
    made = client.info("commandstats")
    assert made["cmdstat_evalsha"]["calls"] <= 3
    assert made["cmdstat_blpop"]["calls"] <= 3


def test_a_long_poll_outlasts_the_clients_timeout(server: RedisServer, client: Any) -> None:
    """A client with a short socket timeout is not silent for longer than it allows."""
    for options in ({"socket_timeout": 0.2}, {"socket_timeout": None}):
        box = RedisMailbox("b", server.client(**options), int)
        client.config_resetstat()
        assert list(box.receive(wait_time_seconds=0.7)) == []
        assert client.info("commandstats")["cmdstat_blpop"]["failed_calls"] == 0
    pool = redis.ConnectionPool(host="127.0.0.1", port=server.port)
    box = RedisMailbox("b", redis.Redis.from_pool(pool), int)
    box.send(1)
    assert box.receive(wait_time_seconds=1)[0].body == 1
    pool.disconnect()


def test_a_client_that_decodes_responses_works(server: RedisServer, client: Any) -> None:
    """Bodies are bytes whatever the client's settings, also bodies that are not UTF-8."""
    box = RedisMailbox("b", server.client(decode_responses=True), str)
    box.send("ü")
    box.send(msgspec.Raw(b'"\xff"'))  # type: ignore[arg-type]
    messages = box.receive(max_messages=10, wait_time_seconds=1)
    assert [message.body for message in messages] == ["ü"]
    assert list(box.receive(wait_time_seconds=0.01)) == []
    [letter] = box.dead_letters()
    assert letter.body == '"\N{REPLACEMENT CHARACTER}"'
    assert letter.reason.startswith("it cannot be read: ")


def test_an_unreadable_message_is_rejected_even_with_a_lease_of_zero(client: Any) -> None:
    """The message behind it arrives in the same call."""
    box = RedisMailbox("b", client, int)
    box.send(msgspec.Raw(b"{"))  # type: ignore[arg-type]
    box.send(7)
    assert [message.body for message in box.receive(visibility_timeout=0)] == [7]
    assert [letter.body for letter in box.dead_letters()] == ["{"]


def test_reasons_may_contain_invalid_characters(client: Any) -> None:
    """A lone surrogate in an error text does not break `nack` or `reject`."""
    box = RedisMailbox("b", client, int)
    box.send(1)
    box.receive()[0].nack(reason="half \ud800")
    box.receive()[0].reject("half \ud800\nof it")
    [letter] = box.dead_letters()
    assert (letter.reason, letter.history) == ("half ?\nof it", ("delivery 1: half ?",))


def test_a_history_keeps_the_last_ten_lines(client: Any) -> None:
    """However often a message returns."""
    box = RedisMailbox("b", client, int)
    box.send(1)
    for turn in range(12):
        [message] = box.receive()
        message.nack(reason=f"turn {turn}" if turn else "")
    [message] = box.receive(visibility_timeout=0)
    [message] = box.receive()
    message.reject("enough")
    [letter] = box.dead_letters()
    assert letter.delivery_count == 14
    values = [f"delivery {turn + 1}: turn {turn}" for turn in range(3, 12)]
    assert list(letter.history) == [*values, "delivery 13: its lease expired"]


def test_the_newest_ten_thousand_dead_letters_are_kept(client: Any) -> None:
    """More do not fill the server; `dead_letters(limit)` returns the newest first."""
    box = RedisMailbox("b", client, int)
    box.send_all(range(2))
    box.receive()[0].reject("the first")
    [(_, fields)] = client.xrange("proctor:{b}:dead")
    with client.pipeline(transaction=False) as pipeline:
        for _ in range(9_999):
            pipeline.xadd("proctor:{b}:dead", fields)
        pipeline.execute()
    assert [letter.body for letter in box.dead_letters(3)] == ["0", "0", "0"]
    box.receive()[0].reject("the last")
    letters = box.dead_letters(20_000)
    assert len(letters) == 10_000
    assert [letter.reason for letter in letters[:2]] == ["the last", "the first"]


def test_many_messages_with_too_many_deliveries_are_rejected_in_turns(client: Any) -> None:
    """One call rejects a part of them; all are rejected, and the message behind them arrives."""
    box = RedisMailbox("b", client, int, max_deliveries=1)
    box.send_all(range(250))
    for _ in range(25):
        assert len(box.receive(max_messages=10, visibility_timeout=0.2)) == 10
    # Well behind the last of them, and not in the same millisecond.
    box.send(1000, delay_seconds=0.25)
    time.sleep(0.3)
    [message] = box.receive()
    assert message.body == 1000
    assert len(box.dead_letters(1000)) == 250


@pytest.mark.parametrize("leave", ["its time ends", "it is woken", "it is closed"])
def test_a_receiver_that_leaves_wakes_another_one(client: Any, leave: str) -> None:
    """A message that is due soon arrives in time at another receiver, though only the first knew the time."""
    boxes = [RedisMailbox("b", client, int) for _ in range(2)]
    waits = (0.25 if leave == "its time ends" else 20.0, 20.0)
    with ThreadPoolExecutor() as pool:
        waiting = []
        for box, wait in zip(boxes, waits, strict=True):
            waiting.append(pool.submit(box.receive, wait_time_seconds=wait))
            _until(lambda: client.info("clients")["blocked_clients"] == len(waiting))
        # This rings for the one who has waited longest.
        RedisMailbox("b", client, int).send(7, delay_seconds=0.4)
        time.sleep(0.1)
        if leave == "it is woken":
            boxes[0].wake()
        elif leave == "it is closed":
            boxes[0].close()
        assert list(waiting[0].result()) == []
        assert [message.body for message in waiting[1].result()] == [7]


def test_waking_without_receivers_leaves_no_key(client: Any) -> None:
    """The next receiver waits normally."""
    box = RedisMailbox("b", client, int)
    box.wake()
    assert client.keys() == []
    started = time.monotonic()
    assert list(box.receive(wait_time_seconds=0.1)) == []
    assert time.monotonic() - started >= 0.1


def test_an_own_client_is_closed_with_the_last_mailbox(server: RedisServer, client: Any) -> None:
    """Mailboxes of one server share it; a client that the user passed stays open."""
    before = len(client.client_list())
    first = RedisMailbox("b", url=server.url, body_type=int)
    second = first.open_mailbox("c", int)
    first.send(1)
    assert len(client.client_list()) == before + 1
    first.close()
    assert second.send(2)
    second.close()
    _until(lambda: len(client.client_list()) == before)
    RedisMailbox("b", client, int).close()
    assert client.ping()


def test_addresses_are_parsed() -> None:
    """The database and the name are optional; options go to redis-py, except `cluster`."""
    for address, url, name in (
        ("redis://h/0/box", "redis://h/0", "box"),
        ("redis://h:1/2/box", "redis://h:1/2", "box"),
        ("redis://h:1/box", "redis://h:1/0", "box"),
        ("rediss://u:p%40@h:1/3", "rediss://u:p%40@h:1/3", "proctor"),
        ("redis://h", "redis://h/0", "proctor"),
        ("redis://h/0/b?ssl_cert_reqs=none", "redis://h/0?ssl_cert_reqs=none", "b"),
    ):
        assert read_address(address) == (url, name, False)
    assert read_address("redis://h/0/b?cluster=true") == ("redis://h/0", "b", True)


def test_a_bad_address_is_refused_without_quoting_its_password() -> None:
    """For every kind of error."""
    for address in (
        "redis://:sec/ret@h:6379/0/b",
        "redis://:secret@h:port/0/b",
        "redis://:secret@/0/b",
        "redis://:secret@h/0/b/c",
        "redis://:secret@h/0/no name",
        "redis://:secret@h/0/b?no_such_option=1",
        "redis://:secret@h/0/b?socket_timeout=soon",
        "redis://[:secret@h/0/b",
    ):
        with pytest.raises(ConfigError) as caught:
            connect(address, int)
        assert "ret" not in str(caught.value).replace("retry", "")
        assert "Fix" in str(caught.value)


def test_a_cluster_address_finds_its_node(client: Any) -> None:
    """With cluster=true; an unreachable cluster is an error."""
    with RedisServer(cluster=True, persistent=False, password="secret") as cluster:
        address = f"{cluster.url}/b?cluster=true"
        box = connections.mailbox(address, int)
        box.send(1)
        assert box.receive(wait_time_seconds=1)[0].body == 1
        assert "secret" not in repr(box)
        box.close()
    with pytest.raises(MailboxError, match="cannot be reached") as caught:
        connections.mailbox(address, int)
    assert "secret" not in str(caught.value)


def test_a_client_or_a_url_is_required(client: Any) -> None:
    """Neither, both, or another object is refused on creation."""
    with pytest.raises(ConfigError, match="a Redis mailbox needs either a client or a URL"):
        RedisMailbox("b")
    with pytest.raises(ConfigError, match="a Redis mailbox needs either a client or a URL"):
        RedisMailbox("b", client, url="redis://h")
    with pytest.raises(ConfigError, match="not a Redis client"):
        RedisMailbox("b", redis.asyncio.Redis())
    with pytest.raises(ConfigError, match="max_body_bytes"):
        RedisMailbox("b", client, max_body_bytes=0)


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
