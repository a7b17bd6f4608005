"""The mailbox on Redis passes the contract, on a server and on a cluster."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from proctor.mailboxes.redis import RedisMailbox, connect
from proctor.testing import MailboxContract
from proctor.testing.mailbox_concurrency import MailboxConcurrencyContract
from tests.mailboxes.mailbox_state_machine import MailboxStateMachine
from tests.servers import RedisServer

names = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(persistent=False) as running:
        yield running


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisServer]:
    with RedisServer(persistent=False, cluster=True) as running:
        yield running


class TestOnAServer(MailboxContract):
    """Over a client that the user holds."""

    SHORT = 0.1
    client: Any

    @pytest.fixture(autouse=True)
    def _with_a_client(self, server: RedisServer) -> None:
        self.client = server.client()

    def make(
        self, body_type: Any, *, capacity: int | None = None, max_deliveries: int | None = None
    ) -> RedisMailbox[Any]:
        return RedisMailbox(
            f"box-{next(names)}", self.client, body_type, capacity=capacity, max_deliveries=max_deliveries
        )


class TestOnACluster(TestOnAServer):
    """A cluster refuses scripts whose keys do not lie together."""

    @pytest.fixture(autouse=True)
    def _with_a_client(self, cluster: RedisServer) -> None:
        self.client = cluster.client()


class TestByAnAddress(MailboxConcurrencyContract):
    """Over a client of its own, which many threads share."""

    SHORT = 0.1
    MESSAGE_COUNT = 800
    url: str

    @pytest.fixture(autouse=True)
    def _with_a_url(self, server: RedisServer) -> None:
        self.url = server.url

    def make(self, body_type: Any, **options: Any) -> RedisMailbox[Any]:
        return connect(f"{self.url}/box-{next(names)}", body_type, **options)


class RedisMachine(MailboxStateMachine):
    """Compare the mailbox with the model.

    A server's clock cannot be set, so `advance` moves all stored times into the past.
    """

    EXACT = True
    SECONDS: ClassVar = {"no time": 0.0, "short": 100.0, "long": 40_000.0}
    client: ClassVar[Any] = None

    def make(self, max_deliveries: int) -> RedisMailbox[int]:
        name = f"machine-{next(names)}"
        return RedisMailbox(name, self.client, int, max_deliveries=max_deliveries)

    def advance(self) -> None:
        tag, passed = f"proctor:{{{self.box.name}}}:", 200_000
        for message_id, at in self.client.zrange(f"{tag}later", 0, -1, withscores=True):
            self.client.zadd(f"{tag}later", {message_id: at - passed})
        for message_id, lease in self.client.hgetall(f"{tag}leases").items():
            receipt, till, rest = lease.split(b" ", 2)
            # A zero in front says that losing the lease does not count.
            zero = b"0" if till.startswith(b"0") and len(till) > 1 else b""
            moved = b"%s %s%d %s" % (receipt, zero, max(0, int(till) - passed), rest)
            self.client.hset(f"{tag}leases", message_id, moved)


def test_any_sequence_of_calls_matches_the_model(server: RedisServer) -> None:
    RedisMachine.client = server.client()
    run_state_machine_as_test(RedisMachine, settings=settings(max_examples=25, stateful_step_count=30, deadline=None))
