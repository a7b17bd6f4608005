"""Errors of SQS have our messages, and no message is lost."""

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
from tests.support import ManualClock

NOBODY = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_DEFAULT_REGION": "us-east-1"}


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


def test_failed_entries_of_a_batch_are_sent_again(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """All five arrive once, and the ids are in order."""
    server.between = _partly("SendMessageBatch", {"1", "3"}, BUSY, times=1)
    ids = box.send_all(range(5))
    found = {one.id: one.body for one in box.receive(max_messages=10)}
    assert [found[one] for one in ids] == [0, 1, 2, 3, 4]


def test_an_entry_without_a_result_was_not_sent(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """It is sent again, and reported if that fails too."""
    server.between = _partly("SendMessageBatch", {"0"}, {}, times=1)
    assert len(box.send_all(range(2))) == 2
    assert box.approximate_count() == 2
    server.between = _partly("SendMessageBatch", {"0"}, {}, times=9)
    with pytest.raises(MailboxError, match="1 of 2 messages were not sent"):
        box.send_all(range(2))


def test_refused_entries_of_a_batch_are_named(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """The sender's faults are not retried; the error names the messages."""
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


def test_a_busy_sqs_is_retried_three_times(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """An acknowledgement that failed can be repeated later."""
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


def test_stale_receipts_do_not_count_as_acknowledged(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """SQS decides whether a receipt is valid."""
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
def test_all_codes_for_stale_receipts_raise_receipt_expired(
    server: SQSServer, box: SQSMailbox[Any], code: str, what: str
) -> None:
    """Whatever the code."""
    box.send(1)
    [message] = box.receive()
    server.between = _refusing("DeleteMessage", code, what)
    with pytest.raises(ReceiptExpired):
        message.acknowledge()
    server.between = _refusing("ChangeMessageVisibility", code, what)
    with pytest.raises(ReceiptExpired):
        message.extend_visibility(30)


def test_a_failed_acknowledgement_can_be_repeated(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """The claim is released when SQS could not be reached."""
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


def test_an_extension_beyond_twelve_hours_keeps_the_lease(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """It is not an expired receipt: the message can still be acknowledged."""
    box.send(1)
    [message] = box.receive()
    time.sleep(0.01)
    with pytest.raises(MailboxError, match="beyond the limit") as caught:
        message.extend_visibility(43_200)
    assert not isinstance(caught.value, ReceiptExpired)
    message.acknowledge()


def test_a_failed_rejection_does_not_block_good_messages(server: SQSServer, box: SQSMailbox[Any], client: Any) -> None:
    """The good one is returned; without one, the error is raised."""
    url = client.get_queue_url(QueueName=box.name)["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="no JSON")
    client.send_message(QueueUrl=url, MessageBody="7")
    server.between = _refusing("CreateQueue", "AccessDenied", "you may not")
    assert [one.body for one in box.receive(max_messages=10, visibility_timeout=1)] == [7]
    with pytest.raises(MailboxError, match="you may not"):
        box.receive(visibility_timeout=1, wait_time_seconds=5)


def test_a_message_rejected_twice_is_one_dead_letter(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """It was stored but not deleted; the next time it was."""
    sent = box.send(1)
    [message] = box.receive()
    server.between = _refusing("DeleteMessage", "InternalError", "not now", times=3)
    with pytest.raises(MailboxError, match="not now"):
        message.reject("first")
    server.between = None
    message.reject("second")
    [letter] = box.dead_letters()
    assert (letter.id, letter.reason) == (sent, "first")


def test_dead_letters_that_cannot_be_returned_are_still_shown(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """They become visible again later."""
    box.send(1)
    box.receive()[0].reject("no")
    server.between = _refusing("ChangeMessageVisibilityBatch", "AccessDenied")
    (letter,) = box.dead_letters()
    # Now they are hidden: who saw them knows them, and nobody waits for them for ever.
    assert box.dead_letters() == [letter]
    assert box.open_mailbox(box.name, None).dead_letters() == []


def test_a_new_queue_may_take_a_moment_to_appear(server: SQSServer, client: Any) -> None:
    """SQS creates it and does not know it for a moment."""
    server.between = _refusing("GetQueueAttributes", "QueueDoesNotExist", times=2)
    box = SQSMailbox(f"new-{uuid4().hex}", client, int)
    assert box.approximate_count() == 0


def test_a_queue_removed_by_others_is_an_error(server: SQSServer, box: SQSMailbox[Any], client: Any) -> None:
    """The error names the queue and the endpoint."""
    client.delete_queue(QueueUrl=client.get_queue_url(QueueName=box.name)["QueueUrl"])
    with pytest.raises(MailboxError, match="the queue does not exist") as caught:
        box.receive(wait_time_seconds=5)
    assert box.name in caught.value.where
    assert server.url in caught.value.where


def test_throttling_is_an_error_after_three_attempts(server: SQSServer, surroundings: pytest.MonkeyPatch) -> None:
    """The error says what to do."""
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


def test_an_unreachable_endpoint_is_named(surroundings: pytest.MonkeyPatch) -> None:
    """Within seconds, for sending and receiving, and without the secret."""
    for name, value in NOBODY.items():
        surroundings.setenv(name, value)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        box = SQSMailbox("letters", None, str, endpoint_url=url)
        with pytest.raises(MailboxError) as caught:
            box.send("a")
        with pytest.raises(MailboxError):
            box.receive(wait_time_seconds=20)
    assert url in str(caught.value)
    assert "check the network" in caught.value.fix
    assert "nothing" not in str(caught.value)


def test_missing_credentials_are_an_error_with_a_fix(server: SQSServer, surroundings: pytest.MonkeyPatch) -> None:
    """The call fails before a request is made."""
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
def test_an_invalid_region_or_endpoint_is_refused_on_creation(
    surroundings: pytest.MonkeyPatch, options: dict[str, Any], why: str, fix: str
) -> None:
    """Before anything is sent."""
    with pytest.raises(MailboxError, match=why) as caught:
        SQSMailbox("letters", None, str, **options)
    assert fix in caught.value.fix


def test_a_client_and_an_endpoint_together_are_refused(client: Any) -> None:
    """The client already has an endpoint."""
    with pytest.raises(ConfigError, match="already"):
        SQSMailbox("letters", client, str, region="eu-west-1")


def test_an_amazon_url_contains_the_region(surroundings: pytest.MonkeyPatch) -> None:
    """The endpoint is then Amazon's for that region; older URLs need region=."""
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/letters"
    box = SQSMailbox(url, None, str)
    assert box._client.endpoint == "https://sqs.eu-west-1.amazonaws.com"
    assert box.name == "letters"
    with pytest.raises(MailboxError, match="region"):
        SQSMailbox("https://queue.amazonaws.com/123456789012/letters", None, str)


def test_codes_with_the_old_prefix_are_recognised() -> None:
    """An unknown code is shown as it is."""

    class Refused(Exception):
        def __init__(self, code: str) -> None:
            self.response = {"Error": {"Code": code}}

    purging = sqs_errors.translate_error(Refused("AWS.SimpleQueueService.PurgeQueueInProgress"), "here")
    assert "once a minute" in purging.fix
    assert sqs_errors.is_gone(Refused("AWS.SimpleQueueService.NonExistentQueue"))
    assert not sqs_errors.is_gone(ValueError())
    unknown = sqs_errors.translate_error(Refused("Odd"), "here")
    assert (unknown.what, unknown.fix) == ("Odd", "")


def test_a_late_failure_after_a_wake_is_ignored() -> None:
    """The call that was abandoned fails without an effect."""
    bell, go = WakeSignal(), threading.Event()
    late: list[int] = []

    def call() -> int:
        go.wait(120)
        raise MailboxError("down")

    ringing = threading.Timer(0.05, bell.ring)
    ringing.start()
    assert bell.run(bell.turn, call, late.append) is None
    ringing.join()
    go.set()
    for thread in threading.enumerate():
        if thread.name == "proctor-sqs-wait":
            thread.join(120)
    assert late == []


def test_a_message_that_cannot_be_returned_comes_back_after_its_lease(server: SQSServer, box: SQSMailbox[Any]) -> None:
    """The waiting thread ends without an error."""
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
    assert asking.wait(120)
    box.wake()
    waiting.join(120)
    box.send(1)
    assert given_back.wait(120)
    assert box.receive() == []
    assert box.approximate_count() == 1


def test_a_short_sleep_can_be_woken() -> None:
    """The signal ends a sleep; without it the sleep takes its time."""
    bell = WakeSignal()
    turn = bell.turn
    ringing = threading.Timer(0.05, bell.ring)
    ringing.start()
    assert bell.sleep(turn, 20)
    ringing.join()
    assert not bell.sleep(bell.turn, 0.01)


@pytest.mark.parametrize("how", ["wake", "close"])
def test_a_wake_while_the_queue_is_opened_ends_the_wait(server: SQSServer, client: Any, how: str) -> None:
    """The first use of a queue takes a while, and a wake may come during it."""
    opening, go_on = threading.Event(), threading.Event()

    def between(action: str, asked: dict[str, Any], forward: Forward) -> Answer:
        if action == "GetQueueAttributes":
            opening.set()
            go_on.wait(120)
        return forward(asked)

    box = SQSMailbox(f"slow-{uuid4().hex}", client, int)
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append(box.receive(wait_time_seconds=20)))
    server.between = between
    waiting.start()
    assert opening.wait(120)
    getattr(box, how)()
    go_on.set()
    waiting.join(120)
    assert got == [[]]


def test_a_slow_answer_does_not_make_a_lease_longer(server: SQSServer, client: Any) -> None:
    """Leases are counted from before the request, because SQS starts them before its answer arrives."""
    clock = ManualClock()
    box = SQSMailbox(f"trouble-{uuid4().hex}", client, int, clock=clock)
    box.send_all([1, 2])

    def between(action: str, asked: dict[str, Any], forward: Forward) -> Answer:
        answer = forward(asked)
        if action in ("ReceiveMessage", "ChangeMessageVisibility"):
            clock.seconds += 4
        return answer

    server.between = between
    messages = [message for _ in range(2) for message in box.receive(visibility_timeout=10)]
    first, second = messages  # leased until second 10 and second 14; it is second 8
    first.extend_visibility(10)  # until second 18; it is second 12
    second.confirm_delivery()
    clock.seconds = 14
    first.confirm_delivery()
    with pytest.raises(ReceiptExpired):
        second.confirm_delivery()
    clock.seconds = 18
    with pytest.raises(ReceiptExpired):
        first.confirm_delivery()
