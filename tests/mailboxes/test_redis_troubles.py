"""The mailbox on Redis when the server or the connection fails."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis

from proctor.errors import MailboxClosed, MailboxError, ReceiptExpired
from proctor.mailboxes import redis_connection
from proctor.mailboxes.redis import RedisMailbox, connect
from tests.servers import RedisServer

PATIENCE = 20.0
MOVED = b"-MOVED 3999 127.0.0.1:1\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(password="secret") as running:
        yield running


@pytest.fixture
def client(server: RedisServer) -> Any:
    made = server.client()
    made.flushall()
    return made


class Between:
    """A way to the server that loses answers, cuts connections or gives answers of its own.

    `lose` is how many answers are lost with their connections; `hang` keeps all to itself;
    `instead` is said in place of the next answer.
    """

    def __init__(self, port: int) -> None:
        self.lose = 0
        self.hang = False
        self.instead = b""
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._start(self._accept)

    @property
    def address(self) -> str:
        port = self._listening.getsockname()[1]
        return f"redis://:secret@127.0.0.1:{port}/0/b?socket_timeout=0.3"

    def close(self) -> None:
        for one in (self._listening, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _start(self, do: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=do, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                self._sockets += (near, far)
                self._start(self._pass_on, near, far, False)
                self._start(self._pass_on, far, near, True)

    def _pass_on(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.hang:
                    continue
                if answers and self.lose:
                    self.lose -= 1
                    break
                if answers and self.instead:
                    data, self.instead = self.instead, b""
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def between(server: RedisServer, client: Any) -> Iterator[Between]:
    way = Between(server.port)
    yield way
    way.close()


@pytest.mark.parametrize("hard", [False, True], ids=["ended", "killed"])
def test_a_restart_loses_nothing(server: RedisServer, client: Any, hard: bool) -> None:
    """Waiting, leased, delayed and dead messages survive it, and leases stay valid."""
    box = RedisMailbox("b", client, int)
    box.send_all(range(120))
    box.send(120, delay_seconds=300)
    held = box.receive(max_messages=10)
    held[0].reject("broken")
    server.restart(hard=hard)
    assert box.approximate_count() == 120
    assert box.acknowledge_all(held) == 9
    assert [letter.body for letter in box.dead_letters()] == ["0"]
    found = []
    while messages := box.receive(max_messages=10):
        found += [message.body for message in messages]
    assert found == list(range(10, 120))


def test_a_long_poll_outlasts_a_restart(server: RedisServer, client: Any) -> None:
    """A receiver that waits during a restart gets the message that is sent afterwards."""
    for box in (RedisMailbox("b", client, int), connect(f"{server.url}/b", int)):
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(box.receive, wait_time_seconds=PATIENCE)
            _until(lambda: client.info("clients")["blocked_clients"] == 1)
            server.restart(hard=True, pause=0.3)
            box.send(7)
            [message] = waiting.result(PATIENCE)
        assert message.body == 7
        message.acknowledge()
        box.close()


def test_a_lost_connection_is_opened_again(server: RedisServer, client: Any) -> None:
    """Whether a receiver waits on it or it is idle."""
    box = connect(f"{server.url}/b", int)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(box.receive, wait_time_seconds=PATIENCE)
        _until(lambda: client.info("clients")["blocked_clients"] == 1)
        client.client_kill_filter(_type="normal", skipme=True)
        box.send(7)
        assert [message.body for message in waiting.result(PATIENCE)] == [7]
    client.client_kill_filter(_type="normal", skipme=True)
    assert box.approximate_count() == 1
    box.close()


def test_scripts_are_loaded_again(client: Any) -> None:
    """After a restart, or after SCRIPT FLUSH by another client."""
    box = RedisMailbox("b", client, int)
    for number in range(2):
        client.script_flush()
        box.send(number)
        client.script_flush()
        [message] = box.receive()
        client.script_flush()
        message.acknowledge()
    assert client.keys() == []


def test_a_retry_after_a_lost_answer_sends_no_duplicate(between: Between) -> None:
    """The server stored the message, the answer was lost, and the sender retries: it is stored once."""
    box = connect(between.address, int)
    assert box.approximate_count() == 0
    between.lose = 2
    sent = box.send(7)
    assert between.lose == 0
    [message] = box.receive(max_messages=10)
    assert (message.id, message.body) == (sent, 7)
    box.close()


def test_a_lost_answer_to_an_acknowledgement_is_not_a_success(between: Between) -> None:
    """It was done, but nobody knows by whom: the caller gets `ReceiptExpired`."""
    box = connect(between.address, int)
    box.send_all([6, 7])
    [known, message] = box.receive(max_messages=2)
    # The server knows the script from here on, whatever ran before this test.
    known.acknowledge()
    between.lose = 1
    with pytest.raises(ReceiptExpired):
        message.acknowledge()
    assert box.approximate_count() == 0
    box.close()


def test_a_hanging_connection_is_replaced(between: Between) -> None:
    """A half-open connection is given up and a new one is used."""
    box = connect(between.address, int)
    box.send(7)
    between.hang = True
    threading.Timer(0.5, setattr, (between, "hang", False)).start()
    assert [message.body for message in box.receive()] == [7]
    box.close()


def test_an_unreachable_server_is_an_error() -> None:
    """The error names the server and a fix, not the password, and it comes within seconds."""
    with RedisServer(password="secret") as server:
        port = server.port
        box = connect(f"{server.url}/b", int)
        box.send(1)
    started = time.monotonic()
    with pytest.raises(MailboxError) as caught:
        box.receive(wait_time_seconds=30)
    assert time.monotonic() - started > 1
    message = str(caught.value)
    assert f"127.0.0.1:{port}" in message
    assert "check that it is running" in message
    assert "secret" not in message + repr(box)
    box.close()


@pytest.mark.parametrize("leave", ["woken", "closed"])
def test_a_receiver_of_an_unreachable_server_can_be_woken(leave: str) -> None:
    """Waking and closing work without the server."""
    with RedisServer() as server:
        box = connect(f"{server.url}/b", int)
        watching = server.client()
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(box.receive, wait_time_seconds=PATIENCE)
            _until(lambda: watching.info("clients")["blocked_clients"] == 1)
            server.stop()
            time.sleep(0.3)
            if leave == "woken":
                box.wake()
            box.close()
            assert list(waiting.result(PATIENCE)) == []
    with pytest.raises(MailboxClosed):
        box.receive()


def test_a_server_that_does_not_return_within_the_wait_is_an_error() -> None:
    """It is not an empty mailbox."""
    with RedisServer() as server:
        box = connect(f"{server.url}/b", int)
        watching = server.client()
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(box.receive, wait_time_seconds=1)
            _until(lambda: watching.info("clients")["blocked_clients"] == 1)
            server.stop()
            with pytest.raises(MailboxError, match="cannot be reached"):
                waiting.result(PATIENCE)
    box.close()


def test_a_wrong_password_is_an_error_at_once(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not retried, and no password is shown."""
    # Without pauses, a retry would raise an IndexError.
    monkeypatch.setattr(redis_connection, "_PAUSES", ())
    for user in ("", ":guess@"):
        box = connect(f"redis://{user}127.0.0.1:{server.port}/0/b", int)
        with pytest.raises(MailboxError, match="rejected the user or password") as caught:
            box.send(1)
        assert "guess" not in str(caught.value)
        box.close()


def test_a_missing_permission_names_the_commands(server: RedisServer, client: Any) -> None:
    """The error names the commands to allow."""
    client.acl_setuser("poor", enabled=True, passwords=["+poor"], keys=["*"], commands=["+ping"])
    box = connect(f"redis://poor:poor@127.0.0.1:{server.port}/0/b", int)
    with pytest.raises(MailboxError, match="allow the user EVAL"):
        box.send(1)
    box.close()
    client.acl_deluser("poor")


def test_a_server_without_memory_is_an_error(client: Any) -> None:
    """Its messages can still be received, and then there is room again."""
    box = RedisMailbox("b", client, str)
    box.send("a" * 1000)
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(MailboxError, match="out of memory"):
            box.send("b")
        (message,) = box.receive(wait_time_seconds=1)
        message.extend_visibility(60)
        message.nack(reason="again")
        (message,) = box.receive(wait_time_seconds=1)
        message.acknowledge()
    finally:
        client.config_set("maxmemory", 0)
    assert box.approximate_count() == 0


def test_a_plain_client_of_a_cluster_gets_a_fix(between: Between) -> None:
    """A redirect to another node means that the server is part of a cluster."""
    box = connect(between.address, int)
    assert box.approximate_count() == 0
    between.instead = MOVED
    with pytest.raises(MailboxError, match=r"\?cluster=true"):
        box.send(1)
    box.close()


def test_other_refusals_quote_the_server(between: Between) -> None:
    """Errors without a message of our own."""
    box = connect(between.address, int)
    assert box.approximate_count() == 0
    between.instead = b"-ERR not on a Sunday\r\n"
    with pytest.raises(MailboxError, match="the server rejected the command: not on a Sunday"):
        box.send(1)
    box.close()


def test_a_server_that_lost_its_keys_works_again(client: Any) -> None:
    """Lost messages are lost, but later ones are delivered."""
    box = RedisMailbox("b", client, int)
    box.send_all(range(15))
    client.delete("proctor:{b}:mail")
    box.send(15)
    assert [message.body for message in box.receive(max_messages=10)] == [15]
    assert box.approximate_count() == 1


def test_errors_of_other_code_are_not_retried() -> None:
    """They are raised unchanged."""
    pool = redis.ConnectionPool(no_such_option=True)
    with pytest.raises(TypeError, match="no_such_option"):
        RedisMailbox("b", redis.Redis(connection_pool=pool), int).send(1)


def test_a_busy_or_read_only_server_is_retried(server: RedisServer, client: Any) -> None:
    """A long script or a failover is transient."""
    box = RedisMailbox("b", client, int)
    client.config_set("busy-reply-threshold", 20)
    with ThreadPoolExecutor() as pool:
        busy = pool.submit(server.client().eval, "while true do end", 0)
        time.sleep(0.1)
        threading.Timer(0.3, server.client().script_kill).start()
        box.send(1)
        assert isinstance(busy.exception(PATIENCE), redis.ResponseError)
    client.replicaof("127.0.0.1", "1")
    threading.Timer(0.3, server.client().replicaof, ("NO", "ONE")).start()
    box.send(2)
    assert [message.body for message in box.receive(max_messages=10)] == [1, 2]


def test_no_message_is_lost_when_a_process_is_killed(server: RedisServer, client: Any) -> None:
    """Another process gets its messages when the leases end; each is processed once."""
    address = f"{server.url}/b"
    box = connect(address, int)
    for body in range(100):
        box.send(body)
    doomed = _process(address, "die", 0)
    assert doomed.stdout is not None
    taken = json.loads(doomed.stdout.readline())
    doomed.send_signal(signal.SIGKILL)
    doomed.communicate(timeout=PATIENCE)
    workers = [_process(address, "work", 300) for _ in range(2)]
    box.send_all(range(100, 300))
    done = [json.loads(worker.communicate(timeout=PATIENCE)[0]) for worker in workers]
    assert taken == [0, 1, 2, 3, 4]
    assert sorted(itertools.chain.from_iterable(done)) == list(range(300))
    assert box.approximate_count() == 0
    box.remove()


WORKER = """
import json, sys, time
from proctor.mailboxes.redis import connect
_, address, kind, number = sys.argv
box, number = connect(address, int), int(number)
if kind == "die":
    messages = box.receive(max_messages=5, visibility_timeout=1)
    print(json.dumps([message.body for message in messages]), flush=True)
    time.sleep(60)
else:
    done, results = [], box.open_mailbox("done", int)
    while results.approximate_count() < number:
        for message in box.receive(max_messages=10, wait_time_seconds=0.2):
            message.acknowledge()
            done.append(message.body)
            results.send(message.body)
    print(json.dumps(done))
"""


def _process(address: str, kind: str, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, address, kind, str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
