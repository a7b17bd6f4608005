"""The mailbox on Redis when the server or the way to it fails."""

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
    """What waits, is leased, delayed or set aside is so after a restart; a lease still holds."""
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
    """One who waits while the server goes and comes back gets what is sent then."""
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


def test_a_connection_that_is_cut_is_no_trouble(server: RedisServer, client: Any) -> None:
    """Whether one waits on it or it lies idle."""
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


def test_scripts_that_the_server_forgot_are_told_again(client: Any) -> None:
    """As after a restart, or a flush by somebody else."""
    box = RedisMailbox("b", client, int)
    for number in range(2):
        client.script_flush()
        box.send(number)
        client.script_flush()
        [message] = box.receive()
        client.script_flush()
        message.acknowledge()
    assert client.keys() == []


def test_what_is_sent_again_after_a_lost_answer_is_not_doubled(between: Between) -> None:
    """The server took it in, the sender was not told and sends it again: it is there once."""
    box = connect(between.address, int)
    assert box.approximate_count() == 0
    between.lose = 2
    sent = box.send(7)
    assert between.lose == 0
    [message] = box.receive(max_messages=10)
    assert (message.id, message.body) == (sent, 7)
    box.close()


def test_a_lost_answer_to_an_acknowledgement_is_not_taken_for_a_success(between: Between) -> None:
    """It is done, but nobody can tell by whom: the caller is told that it is not his any more."""
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


def test_a_way_that_hangs_is_noticed(between: Between) -> None:
    """A half-open connection is given up and another is tried; then it goes on."""
    box = connect(between.address, int)
    box.send(7)
    between.hang = True
    threading.Timer(0.5, setattr, (between, "hang", False)).start()
    assert [message.body for message in box.receive()] == [7]
    box.close()


def test_a_server_that_is_away_is_an_error_in_the_end() -> None:
    """It says which server and what to do, not the password, and does not take for ever."""
    with RedisServer(password="secret") as server:
        port = server.port
        box = connect(f"{server.url}/b", int)
        box.send(1)
    started = time.monotonic()
    with pytest.raises(MailboxError) as caught:
        box.receive(wait_time_seconds=30)
    assert 1 < time.monotonic() - started < 20
    told = str(caught.value)
    assert f"127.0.0.1:{port}" in told
    assert "check that it runs" in told
    assert "secret" not in told + repr(box)
    box.close()


@pytest.mark.parametrize("leave", ["woken", "closed"])
def test_one_who_waits_for_a_server_that_is_away_can_be_let_go(leave: str) -> None:
    """Waking and closing work without the server."""
    with RedisServer() as server:
        box = connect(f"{server.url}/b", int)
        watching = server.client()
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(box.receive, wait_time_seconds=PATIENCE)
            _until(lambda: watching.info("clients")["blocked_clients"] == 1)
            server.stop()
            time.sleep(0.3)
            started = time.monotonic()
            if leave == "woken":
                box.wake()
            box.close()
            assert list(waiting.result(PATIENCE)) == []
            assert time.monotonic() - started < PATIENCE / 2
    with pytest.raises(MailboxClosed):
        box.receive()


def test_one_who_waits_too_long_for_a_server_is_told() -> None:
    """A server that does not come back within the wait is an error, not an empty mailbox."""
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


def test_a_wrong_password_is_told_at_once(server: RedisServer) -> None:
    """Waiting would not help, and no password is shown."""
    for user in ("", ":guess@"):
        box = connect(f"redis://{user}127.0.0.1:{server.port}/0/b", int)
        started = time.monotonic()
        with pytest.raises(MailboxError, match="does not accept the user or password") as caught:
            box.send(1)
        assert time.monotonic() - started < 5
        assert "guess" not in str(caught.value)
        box.close()


def test_a_user_who_may_not_run_scripts_is_told_what_is_needed(server: RedisServer, client: Any) -> None:
    """The error names the commands."""
    client.acl_setuser("poor", enabled=True, passwords=["+poor"], keys=["*"], commands=["+ping"])
    box = connect(f"redis://poor:poor@127.0.0.1:{server.port}/0/b", int)
    with pytest.raises(MailboxError, match="allow the user EVAL"):
        box.send(1)
    box.close()
    client.acl_deluser("poor")


def test_a_server_without_memory_says_so(client: Any) -> None:
    """What is in it can still be received, and then there is room again."""
    box = RedisMailbox("b", client, str)
    box.send("a" * 1000)
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(MailboxError, match="no memory left"):
            box.send("b")
        (message,) = box.receive(wait_time_seconds=1)
        message.extend_visibility(60)
        message.nack(reason="again")
        (message,) = box.receive(wait_time_seconds=1)
        message.acknowledge()
    finally:
        client.config_set("maxmemory", 0)
    assert box.approximate_count() == 0


def test_a_plain_client_of_a_cluster_is_told_what_to_write(between: Between) -> None:
    """A server that sends one on to another is one of a cluster."""
    box = connect(between.address, int)
    assert box.approximate_count() == 0
    between.instead = MOVED
    with pytest.raises(MailboxError, match=r"\?cluster=true"):
        box.send(1)
    box.close()


def test_other_refusals_are_told_in_the_servers_words(between: Between) -> None:
    """What we have no words of our own for."""
    box = connect(between.address, int)
    assert box.approximate_count() == 0
    between.instead = b"-ERR not on a Sunday\r\n"
    with pytest.raises(MailboxError, match="the server refuses: not on a Sunday"):
        box.send(1)
    box.close()


def test_a_server_that_threw_keys_away_is_survived(client: Any) -> None:
    """What is lost is lost, but what comes later is delivered."""
    box = RedisMailbox("b", client, int)
    box.send_all(range(15))
    client.delete("proctor:{b}:mail")
    box.send(15)
    assert [message.body for message in box.receive(max_messages=10)] == [15]
    assert box.approximate_count() == 1


def test_faults_that_are_not_the_servers_stay_what_they_are() -> None:
    """They are not taken for trouble that passes."""
    pool = redis.ConnectionPool(no_such_option=True)
    with pytest.raises(TypeError, match="no_such_option"):
        RedisMailbox("b", redis.Redis(connection_pool=pool), int).send(1)


def test_a_server_that_is_busy_or_read_only_is_waited_for(server: RedisServer, client: Any) -> None:
    """A script that runs long, or a change of the leader: both pass."""
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


def test_processes_lose_nothing_though_one_is_killed(server: RedisServer, client: Any) -> None:
    """What a killed process held comes to another when its lease is over; all is done once."""
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
    done, results = [], box.beside("done", int)
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
    deadline = time.monotonic() + 5
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
