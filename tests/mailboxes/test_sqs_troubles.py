"""What goes wrong with SQS is told in our words, and nothing is lost by it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from proctor.errors import ConfigError, MailboxError, ReceiptExpired
from proctor.mailboxes import sqs_queue as sqs_errors
from proctor.mailboxes.sqs import SQSMailbox, WakeSignal
from tests.servers import SQSServer
from tests.servers.sqs_server import Answer, Forward

NOBODY = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture(scope="module")
def running() -> Iterator[SQSServer]:
    with SQSServer() as server:
        yield server


@pytest.fixture
def server(running: SQSServer) -> Iterator[SQSServer]:
    yield running
    running.between = None


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing that boto3 could find but what a test sets."""
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_SQS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


@pytest.fixture(scope="module")
def client(running: SQSServer) -> Any:
    return running.client()


@pytest.fixture
def box(client: Any) -> SQSMailbox[Any]:
    """A mailbox for whole numbers, whose queue is there."""
    made = SQSMailbox(f"trouble-{uuid4().hex}", client, int)
    made.approximate_count()
    return made


def _refusing(action: str, code: str, what: str = "refused", times: int = 1000) -> Any:
    """Something between that refuses an action, so many times, as SQS writes refusals."""
    left = [times]

    def between(asked_action: str, asked: dict[str, Any], forward: Forward) -> Answer:
        if asked_action != action or not left[0]:
            return forward(asked)
        left[0] -= 1
        return 400, {"__type": f"com.amazonaws.sqs#{code}", "message": what}

    return between


def _partly(action: str, bad: set[str], failure: dict[str, Any], times: int) -> Any:
    """Something between that lets entries of a batch fail, the first so many times."""
    left = [times]

    def between(asked_action: str, asked: dict[str, Any], forward: Forward) -> Answer:
        if asked_action != action or not left[0]:
            return forward(asked)
        left[0] -= 1
        good = [one for one in asked["Entries"] if one["Id"] not in bad]
        code, answer = forward({**asked, "Entries": good}) if good else (200, {})
        missed = [one["Id"] for one in asked["Entries"] if one["Id"] in bad]
        answer["Failed"] = [{"Id": one, **failure} for one in missed] if failure else []
        return code, answer

    return between


BUSY = {"SenderFault": False, "Code": "InternalError", "Message": "try again"}
WRONG = {"SenderFault": True, "Code": "InvalidMessageContents", "Message": "not allowed"}
STALE = {"SenderFault": True, "Code": "ReceiptHandleIsInvalid", "Message": "no such receipt"}


def test_what_sqs_fails_at_within_a_batch_is_sent_again(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """All five are in once, and the ids stand in the order of sending."""
    server.between = _partly("SendMessageBatch", {"1", "3"}, BUSY, times=1)
    ids = box.send_all(range(5))
    found = {one.id: one.body for one in box.receive(max_messages=10)}
    assert [found[one] for one in ids] == [0, 1, 2, 3, 4]


def test_what_sqs_says_nothing_about_was_not_sent(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """An entry that is neither done nor failed is sent again, and missed if that does not help."""
    server.between = _partly("SendMessageBatch", {"0"}, {}, times=1)
    assert len(box.send_all(range(2))) == 2
    assert box.approximate_count() == 2
    server.between = _partly("SendMessageBatch", {"0"}, {}, times=9)
    with pytest.raises(MailboxError, match="1 of 2 messages were not sent"):
        box.send_all(range(2))


def test_what_cannot_be_sent_of_a_batch_is_told_one_by_one(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """What is the sender's fault is not tried again; the error names the messages."""
    server.between = _partly("SendMessageBatch", {"0", "2"}, WRONG, times=9)
    server.calls.clear()
    with pytest.raises(MailboxError, match="2 of 3 messages were not sent") as caught:
        box.send_all(range(3))
    assert server.calls == ["SendMessageBatch"]
    assert [str(one) for one in caught.value.problems] == [
        "message 1: not allowed (InvalidMessageContents)",
        "message 3: not allowed (InvalidMessageContents)",
    ]
    assert box.approximate_count() == 1


def test_a_busy_sqs_is_asked_three_times_and_then_it_is_an_error(
    server: SQSServer, box: SQSMailbox[Any]
) -> None:
    """An acknowledgement that SQS did not take can be made again later."""
    box.send_all(range(3))
    messages = box.receive(max_messages=10)
    server.between = _partly("DeleteMessageBatch", {"1"}, BUSY, times=3)
    server.calls.clear()
    with pytest.raises(MailboxError, match="1 of 3 messages were not deleted"):
        box.acknowledge_all(messages)
    assert server.calls == ["DeleteMessageBatch"] * 3
    assert box.approximate_count() == 1
    assert box.acknowledge_all(messages[1:2]) == 1
    assert box.approximate_count() == 0


def test_what_sqs_calls_stale_is_not_counted_as_acknowledged(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """SQS has the last word on receipts."""
    box.send_all(range(3))
    messages = box.receive(max_messages=10)
    server.between = _partly("DeleteMessageBatch", {"1"}, STALE, times=1)
    assert box.acknowledge_all(messages) == 2


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("ReceiptHandleIsInvalid", "The input receipt handle is invalid."),
        ("MessageNotInflight", ""),
        ("InvalidIdFormat", ""),
        ("InvalidParameterValue", "Value x for parameter ReceiptHandle is invalid."),
    ],
)
def test_every_way_sqs_says_stale_is_an_expired_receipt(
    server: SQSServer, box: SQSMailbox[Any], code: str, what: str
) -> None:
    """Whatever the word, the message is no longer the caller's."""
    box.send(1)
    [message] = box.receive()
    server.between = _refusing("DeleteMessage", code, what)
    with pytest.raises(ReceiptExpired):
        message.acknowledge()
    server.between = _refusing("ChangeMessageVisibility", code, what)
    with pytest.raises(ReceiptExpired):
        message.extend_visibility(30)


def test_an_acknowledgement_that_failed_can_be_made_again(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """The claim is taken back when SQS could not be told."""
    box.send(1)
    [message] = box.receive()
    server.between = _refusing("DeleteMessage", "AccessDeniedException", "you may not")
    with pytest.raises(MailboxError, match=r"you may not \(AccessDeniedException\)") as caught:
        message.acknowledge()
    assert "allow these credentials" in caught.value.fix
    assert server.url in str(caught.value)
    server.between = None
    message.acknowledge()
    assert box.approximate_count() == 0


def test_beyond_twelve_hours_sqs_refuses_and_the_message_stays_ones_own(
    server: SQSServer, box: SQSMailbox[Any]
) -> None:
    """That is no expired receipt: the message can still be acknowledged."""
    box.send(1)
    [message] = box.receive()
    time.sleep(0.01)
    with pytest.raises(MailboxError, match="beyond the limit") as caught:
        message.extend_visibility(43_200)
    assert not isinstance(caught.value, ReceiptExpired)
    message.acknowledge()


def test_a_message_that_cannot_be_set_aside_does_not_hold_up_the_good_ones(
    server: SQSServer, box: SQSMailbox[Any], client: Any
) -> None:
    """The good one is given; with nothing to give, the trouble is told."""
    url = client.get_queue_url(QueueName=box.name)["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="no JSON")
    client.send_message(QueueUrl=url, MessageBody="7")
    server.between = _refusing("CreateQueue", "AccessDenied", "you may not")
    assert [one.body for one in box.receive(max_messages=10, visibility_timeout=1)] == [7]
    with pytest.raises(MailboxError, match="you may not"):
        box.receive(visibility_timeout=1, wait_time_seconds=5)


def test_one_that_is_set_aside_twice_is_one_dead_letter(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """It was put beside, and could not be deleted; the next time it could."""
    sent = box.send(1)
    [message] = box.receive()
    server.between = _refusing("DeleteMessage", "InternalError", "not now", times=3)
    with pytest.raises(MailboxError, match="not now"):
        message.reject("first")
    server.between = None
    message.reject("second")
    [letter] = box.dead_letters()
    assert (letter.id, letter.reason) == (sent, "first")


def test_dead_letters_that_cannot_be_given_back_are_shown_all_the_same(
    server: SQSServer, box: SQSMailbox[Any]
) -> None:
    """They come back by themselves later."""
    box.send(1)
    box.receive()[0].reject("no")
    server.between = _refusing("ChangeMessageVisibilityBatch", "AccessDenied")
    (letter,) = box.dead_letters()
    # Now they are hidden: who saw them knows them, and nobody waits for them for ever.
    assert box.dead_letters() == [letter]
    assert box.beside(box.name, None).dead_letters() == []


def test_a_queue_that_was_just_made_may_take_a_moment_to_appear(server: SQSServer, client: Any) -> None:
    """SQS makes it, does not know it for a moment, and then does."""
    server.between = _refusing("GetQueueAttributes", "QueueDoesNotExist", times=2)
    box = SQSMailbox(f"new-{uuid4().hex}", client, int)
    assert box.approximate_count() == 0


def test_a_queue_that_is_removed_by_others_is_missed(
    server: SQSServer, box: SQSMailbox[Any], client: Any
) -> None:
    """The error says which and where."""
    client.delete_queue(QueueUrl=client.get_queue_url(QueueName=box.name)["QueueUrl"])
    with pytest.raises(MailboxError, match="there is no such queue") as caught:
        box.receive(wait_time_seconds=5)
    assert box.name in caught.value.where
    assert server.url in caught.value.where


def test_throttling_is_told_after_a_few_attempts(server: SQSServer, surroundings: pytest.MonkeyPatch) -> None:
    """Three calls are made, then it is an error that says what to do."""
    for name, value in NOBODY.items():
        surroundings.setenv(name, value)
    box = SQSMailbox("throttled", None, int, endpoint_url=server.url)
    box.approximate_count()
    server.between = _refusing("SendMessage", "RequestThrottled", "too fast")
    server.calls.clear()
    with pytest.raises(MailboxError, match="too fast") as caught:
        box.send(1)
    assert server.calls == ["SendMessage"] * 3
    assert "fewer workers" in caught.value.fix
    server.between = _refusing("SendMessage", "RequestThrottled", times=1)
    box.send(1)
    box.remove()


def test_an_endpoint_where_nobody_listens_is_named(surroundings: pytest.MonkeyPatch) -> None:
    """Within seconds, for sending and for waiting alike, and without the secret."""
    for name, value in NOBODY.items():
        surroundings.setenv(name, value)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        box = SQSMailbox("letters", None, str, endpoint_url=url)
        began = time.monotonic()
        with pytest.raises(MailboxError) as caught:
            box.send("a")
        with pytest.raises(MailboxError):
            box.receive(wait_time_seconds=20)
    assert time.monotonic() - began < 20
    assert url in str(caught.value)
    assert "check the network" in caught.value.fix
    assert "nothing" not in str(caught.value)


def test_without_credentials_it_says_how_to_give_them(
    server: SQSServer, surroundings: pytest.MonkeyPatch
) -> None:
    """The call fails before it is made."""
    surroundings.setenv("AWS_ENDPOINT_URL", server.url)
    box = SQSMailbox("letters", None, str, region="us-east-1")
    with pytest.raises(MailboxError, match="credentials") as caught:
        box.send("a")
    assert "AWS_ACCESS_KEY_ID" in caught.value.fix


@pytest.mark.parametrize(
    ("options", "why", "fix"),
    [
        ({}, "region", "AWS_DEFAULT_REGION"),
        ({"region": "no such region"}, "region", "eu-central-1"),
        ({"region": "eu-west-1", "endpoint_url": "nowhere"}, "endpoint", "AWS_ENDPOINT_URL_SQS"),
    ],
)
def test_a_region_or_endpoint_that_cannot_be_is_told_when_it_is_opened(
    surroundings: pytest.MonkeyPatch, options: dict[str, Any], why: str, fix: str
) -> None:
    """Before anything is sent."""
    with pytest.raises(MailboxError, match=why) as caught:
        SQSMailbox("letters", None, str, **options)
    assert fix in caught.value.fix


def test_a_client_and_a_place_are_too_much(client: Any) -> None:
    """The client has its place already."""
    with pytest.raises(ConfigError, match="already"):
        SQSMailbox("letters", client, str, region="eu-west-1")


def test_a_url_of_amazon_tells_the_region(surroundings: pytest.MonkeyPatch) -> None:
    """The endpoint is then Amazon's own for that region; of older URLs the region must be told."""
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/letters"
    box = SQSMailbox(url, None, str)
    assert box._access.endpoint == "https://sqs.eu-west-1.amazonaws.com"
    assert box.name == "letters"
    with pytest.raises(MailboxError, match="region"):
        SQSMailbox("https://queue.amazonaws.com/123456789012/letters", None, str)


def test_codes_of_older_services_are_known_too() -> None:
    """They carry a prefix that says nothing; a code that nobody knows stands as it is."""

    class Refused(Exception):
        def __init__(self, code: str) -> None:
            self.response = {"Error": {"Code": code}}

    purging = sqs_errors.translate_error(Refused("AWS.SimpleQueueService.PurgeQueueInProgress"), "here")
    assert "once a minute" in purging.fix
    assert sqs_errors.is_gone(Refused("AWS.SimpleQueueService.NonExistentQueue"))
    assert not sqs_errors.is_gone(ValueError())
    unknown = sqs_errors.translate_error(Refused("Odd"), "here")
    assert (unknown.what, unknown.fix) == ("Odd", "")


def test_what_comes_too_late_and_fails_is_nobodys_trouble() -> None:
    """A call that was called off may fail, and the one who called it off is told nothing."""
    bell, go = WakeSignal(), threading.Event()
    late: list[int] = []

    def call() -> int:
        go.wait(5)
        raise MailboxError("down")

    ringing = threading.Timer(0.05, bell.ring)
    ringing.start()
    assert bell.run(bell.turn, call, late.append) is None
    ringing.join()
    go.set()
    for thread in threading.enumerate():
        if thread.name == "proctor-sqs-wait":
            thread.join(5)
    assert late == []


def test_what_cannot_be_given_back_after_a_wait_comes_back_by_itself(
    server: SQSServer, box: SQSMailbox[Any]
) -> None:
    """The thread that waited ends in silence, and the message stays leased until its time."""
    asking, given_back = threading.Event(), threading.Event()

    def between(action: str, asked: dict[str, Any], forward: Forward) -> Answer:
        if action == "ReceiveMessage":
            asking.set()
        if action != "ChangeMessageVisibilityBatch":
            return forward(asked)
        given_back.set()
        return 400, {"__type": "com.amazonaws.sqs#AccessDenied", "message": "you may not"}

    server.between = between
    waiting = threading.Thread(target=box.receive, kwargs={"wait_time_seconds": 20})
    waiting.start()
    assert asking.wait(5)
    box.wake()
    waiting.join(5)
    box.send(1)
    assert given_back.wait(5)
    assert box.receive() == []
    assert box.approximate_count() == 1


def test_a_short_rest_of_a_wait_is_called_off_too() -> None:
    """The bell ends a sleep, and without it the sleep takes its time."""
    bell = WakeSignal()
    turn = bell.turn
    ringing = threading.Timer(0.05, bell.ring)
    ringing.start()
    assert bell.sleep(turn, 20)
    ringing.join()
    assert not bell.sleep(bell.turn, 0.01)


@pytest.mark.parametrize("how", ["wake", "close"])
def test_who_is_called_off_while_the_queue_is_opened_does_not_wait_afterwards(
    server: SQSServer, client: Any, how: str
) -> None:
    """The first use of a queue takes a while, and a call to stop may come just then."""
    opening, go_on = threading.Event(), threading.Event()

    def between(action: str, asked: dict[str, Any], forward: Forward) -> Answer:
        if action == "GetQueueAttributes":
            opening.set()
            go_on.wait(5)
        return forward(asked)

    box = SQSMailbox(f"slow-{uuid4().hex}", client, int)
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append(box.receive(wait_time_seconds=20)))
    server.between = between
    waiting.start()
    assert opening.wait(5)
    getattr(box, how)()
    go_on.set()
    waiting.join(5)
    assert got == [[]]
