"""`proctor mailbox`: what lies in a mailbox, and how to empty it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from proctor import RedisMailbox
from tests.cli.project import Project
from tests.servers import RedisServer


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(persistent=False) as running:
        yield running


@pytest.fixture
def box(server: RedisServer) -> Iterator[RedisMailbox[int]]:
    box = RedisMailbox("exams", server.client(), int)
    box.send_all(range(4))
    (message,) = box.receive()
    message.reject("nobody can read it")
    yield box
    box.remove()


def test_what_lies_there_is_shown(server: RedisServer, box: RedisMailbox[int], project: Project) -> None:
    """How many messages, and each dead letter with its reason; nothing is changed."""
    address = f"{server.url}/exams"
    result = project.proctor("mailbox", address)
    assert result.code == 0
    assert result.out.startswith("exams: 3 messages\ndead letter ")
    assert "nobody can read it" in result.out
    as_json = project.proctor("mailbox", address, "--json").json
    assert as_json["messages"] == 3
    assert [dead_letter["reason"] for dead_letter in as_json["dead_letters"]] == ["nobody can read it"]


def test_a_dead_letter_cannot_write_to_the_terminal(server: RedisServer, project: Project) -> None:
    """Control characters in the reason of a dead letter are shown as text."""
    box = RedisMailbox("hostile", server.client(), int)
    box.send_all([1])
    box.receive()[0].nack(reason="\x1b[2Jwiped\x07 \u202egnorw")
    box.receive()[0].reject("\x1b]0;title\x07 first line\nsecond line")
    result = project.proctor("mailbox", f"{server.url}/hostile")
    box.remove()
    assert not any(c in result.out for c in "\x1b\x07\u202e")
    assert "␛]0;title␇ first line ⏎ second line" in result.out
    assert "␛[2Jwiped␇" in result.out


def test_messages_are_dropped_and_dead_letters_stay(
    server: RedisServer, box: RedisMailbox[int], project: Project
) -> None:
    """--purge is for what abandoned runs left; --remove takes the dead letters too."""
    address = f"{server.url}/exams"
    assert project.proctor("mailbox", address, "--purge", "--json").json["purged"] == 3
    assert (box.approximate_count(), len(box.dead_letters())) == (0, 1)
    assert project.proctor("mailbox", address, "--remove").out.startswith("exams: 0 messages, delete")
    assert list(box.dead_letters()) == []


def test_broken_records_are_shown_and_can_be_dropped(
    server: RedisServer, box: RedisMailbox[int], project: Project
) -> None:
    """With invalid data in every key, each command works and shows the dead letters."""
    client, address = server.client(), f"{server.url}/exams"
    client.hset("proctor:{exams}:mail", "garbage", b"\xff\xfe")
    client.rpush("proctor:{exams}:ready", "garbage", "nothing")
    client.xadd("proctor:{exams}:dead", {"odd": b"\xff"})
    client.set("proctor:{exams}:leases", "a string")
    assert [message.body for message in box.receive(max_messages=10)] == [1, 2, 3]
    output = project.proctor("mailbox", address)
    assert (output.code, output.err) == (0, "")
    assert output.out.startswith("exams: 3 messages\ndead letter ")
    result = project.proctor("mailbox", address, "--json").json["dead_letters"]
    assert sorted(letter["reason"].partition(";")[0] for letter in result) == [
        "nobody can read it",
        "unreadable: its record has no valid header",
        "unreadable: its record has no valid header",
        "unreadable: its record is missing",
        "unreadable: the key proctor:{exams}:leases was a string instead of a hash",
    ]
    assert project.proctor("mailbox", address, "--purge", "--json").json["purged"] == 3
    assert project.proctor("mailbox", address, "--remove").code == 0
    assert client.keys("*exams*") == []


@pytest.mark.parametrize(
    ("address", "code", "message"),
    [
        ("memory://exams", 2, "a memory: mailbox exists only inside one process"),
        ("redis:/:secret@localhost/exams", 2, "is not a valid Redis mailbox address"),
        ("redis://127.0.0.1:1/0/exams", 3, "the server cannot be reached"),
    ],
)
def test_errors_show_no_secrets(project: Project, address: str, code: int, message: str) -> None:
    """Usage is 2, trouble is 3, and a password is never shown."""
    result = project.proctor("mailbox", address)
    assert result.code == code
    assert message in result.err
    assert "secret" not in result.err
