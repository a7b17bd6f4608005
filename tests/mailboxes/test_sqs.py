"""The mailbox on SQS, against a server that speaks SQS over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from proctor.errors import ConfigError, MailboxClosed, MailboxError, MessageTooLarge, ReceiptExpired
from proctor.mailboxes.sqs import SQSMailbox
from proctor.models import connect as connections
from proctor.records.mail import EvalRequest
from proctor.records.sample import Sample
from tests.servers import SQSServer

MIB = 1024 * 1024
Make = Callable[..., SQSMailbox[Any]]


@pytest.fixture(scope="module")
def server() -> Iterator[SQSServer]:
    with SQSServer() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: SQSServer) -> Any:
    return server.client()


@pytest.fixture
def make(client: Any) -> Iterator[Make]:
    made: list[SQSMailbox[Any]] = []

    def new(body_type: Any = str, name: str = "", **options: Any) -> SQSMailbox[Any]:
        mailbox = SQSMailbox(name or f"box-{uuid4().hex}", client, body_type, **options)
        made.append(mailbox)
        return mailbox

    yield new
    for mailbox in made:
        if not mailbox.closed:
            mailbox.remove()


def test_a_message_has_its_body_and_the_data_of_the_queue(make: Make) -> None:
    """The body has its type, times are aware, the count is 1, and an acknowledged message is gone."""
    box = make(EvalRequest[str, str])
    request: EvalRequest[str, str] = EvalRequest(Sample("1", "2 + 2", "4"), run_id="r")
    before = datetime.now(UTC) - timedelta(seconds=1)
    sent = box.send(request, reply_to="results")
    [message] = box.receive(wait_time_seconds=5)
    assert (message.id, message.body, message.delivery_count) == (sent, request, 1)
    assert message.reply_to == "results"
    assert before < message.enqueued_at < datetime.now(UTC) + timedelta(seconds=1)
    assert repr(message) == f"LeasedMessage(id={sent!r}, delivery_count=1)"
    assert box.approximate_count() == 1
    message.acknowledge()
    assert box.approximate_count() == 0
    assert repr(box) == f"SQSMailbox({box.name!r})"


def test_characters_that_sqs_refuses_are_sent_as_escapes(make: Make, client: Any) -> None:
    """U+FFFE, U+FFFF and control characters arrive although SQS refuses them."""
    box = make(str)
    box.send("a\ufffe\uffff\x00\x1fé😀")
    [message] = box.receive(visibility_timeout=0)
    assert message.body == "a\ufffe\uffff\x00\x1fé😀"
    url = client.get_queue_url(QueueName=box.name)["QueueUrl"]
    [raw] = client.receive_message(QueueUrl=url)["Messages"]
    assert raw["Body"] == '"a\\ufffe\\uffff\\u0000\\u001fé😀"'


def test_a_delay_hides_a_message_for_up_to_900_seconds(make: Make) -> None:
    """Fractions are rounded up; SQS has no longer delay."""
    box = make()
    box.send("later", delay_seconds=0.2)
    assert box.receive() == []
    assert box.approximate_count() == 1
    [message] = box.receive(wait_time_seconds=5)
    assert message.body == "later"
    with pytest.raises(ConfigError, match="from 0 to 900"):
        box.send("much later", delay_seconds=901)


def test_an_expired_lease_is_refused_even_if_sqs_would_accept_it(make: Make) -> None:
    """Acknowledge, nack, extend and reject all raise; the next delivery has another receipt."""
    box = make()
    box.send("a")
    [first] = box.receive(visibility_timeout=1)
    [second] = box.receive(visibility_timeout=30, wait_time_seconds=5)
    assert second.delivery_count == 2
    assert second.receipt_handle != first.receipt_handle
    for late in (first.acknowledge, first.nack, lambda: first.extend_visibility(5), lambda: first.reject("no")):
        with pytest.raises(ReceiptExpired, match="the lease of the message has expired"):
            late()
    assert box.acknowledge_all([first, second, second]) == 1
    assert box.approximate_count() == 0
    assert box.dead_letters() == []


def test_one_of_two_concurrent_acknowledgements_wins(make: Make) -> None:
    """Twenty rounds of two threads with one message, with both ways to acknowledge."""
    box = make(int)
    box.send_all(range(20))
    messages = [one for _ in range(2) for one in box.receive(max_messages=10)]
    assert len(messages) == 20
    for message in messages:
        barrier = threading.Barrier(2)
        won: list[int] = []

        def race(call: Callable[[], int], barrier: threading.Barrier = barrier, won: list[int] = won) -> None:
            barrier.wait(120)
            won.append(call())

        def alone(message: Any = message) -> int:
            try:
                message.acknowledge()
            except ReceiptExpired:
                return 0
            return 1

        def together(message: Any = message) -> int:
            return box.acknowledge_all([message])

        threads = [threading.Thread(target=race, args=[call]) for call in (alone, together)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert sorted(won) == [0, 1]
    assert box.approximate_count() == 0


def test_many_are_sent_and_acknowledged_ten_at_a_time(make: Make, server: SQSServer) -> None:
    """25 messages cost three calls each way, and the ids come in the order of sending."""
    box = make(int)
    box.approximate_count()
    server.calls.clear()
    ids = box.send_all(range(25), reply_to="results")
    assert server.calls == ["SendMessageBatch"] * 3
    messages = [one for _ in range(3) for one in box.receive(max_messages=10)]
    assert {one.id: one.body for one in messages} == dict(zip(ids, range(25), strict=True))
    assert {one.reply_to for one in messages} == {"results"}
    server.calls.clear()
    assert box.acknowledge_all(messages) == 25
    assert server.calls == ["DeleteMessageBatch"] * 3
    assert box.send_all([]) == []
    assert box.acknowledge_all([]) == 0


def test_batches_are_split_by_size(make: Make, server: SQSServer) -> None:
    """Three bodies of 400 KiB exceed one call of 1 MiB, so two calls are made."""
    box = make(str)
    box.approximate_count()
    server.calls.clear()
    assert len(box.send_all(["x" * 400 * 1024] * 3)) == 3
    assert server.calls == ["SendMessageBatch", "SendMessage"]


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(make: Make) -> None:
    """1 MiB less 4 KiB is accepted, one byte more is not; a smaller queue has its own limit."""
    box = make(str)
    most = MIB - 4096
    box.send("x" * (most - 2))
    with pytest.raises(MessageTooLarge, match=f"has {most + 1} bytes, the limit is {most}"):
        box.send("x" * (most - 1))
    with pytest.raises(MessageTooLarge):
        box.send("x" * (most - 2), reply_to="a")
    with pytest.raises(MessageTooLarge):
        box.send_all(["a", "x" * MIB])
    assert box.approximate_count() == 1


def test_an_existing_queue_keeps_its_own_limit(make: Make, client: Any) -> None:
    """A queue made for 2 KiB accepts 1 KiB, because the rest is reserved for its dead letter."""
    name = f"small-{uuid4().hex}"
    client.create_queue(QueueName=name, Attributes={"MaximumMessageSize": "2048"})
    box = make(str, name)
    box.send("x" * 1022)
    with pytest.raises(MessageTooLarge, match="the limit is 1024"):
        box.send("x" * 1023)


def test_a_rejected_message_stays_in_the_dead_letter_queue(make: Make, client: Any) -> None:
    """Reading twice gives the same letter; the body in the queue is unchanged."""
    box = make(str)
    sent = box.send("a", reply_to="results")
    [message] = box.receive()
    message.reject("it is \x01 nonsense")
    with pytest.raises(ReceiptExpired):
        message.acknowledge()
    [letter] = box.dead_letters()
    assert box.dead_letters() == [letter]
    assert (letter.id, letter.body, letter.reason) == (sent, '"a"', "it is \x01 nonsense")
    assert (letter.delivery_count, letter.history, letter.reply_to) == (1, (), "results")
    assert letter.enqueued_at == message.enqueued_at <= letter.died_at
    assert box.approximate_count() == 0
    url = client.get_queue_url(QueueName=box.name + "-dead")["QueueUrl"]
    [raw] = client.receive_message(QueueUrl=url)["Messages"]
    assert raw["Body"] == '"a"'


def test_dead_letters_are_limited_and_newest_first(make: Make) -> None:
    """Twelve are more than one call returns; a limit of three returns three."""
    box = make(int)
    box.send_all(range(12))
    for message in [*box.receive(max_messages=10), *box.receive(max_messages=10)]:
        message.reject(f"no {message.body}")
        time.sleep(0.002)
    letters = box.dead_letters()
    assert [letter.reason for letter in letters] == [f"no {n}" for n in reversed(range(12))]
    assert box.dead_letters(limit=3) == letters[:3]
    with pytest.raises(ConfigError):
        box.dead_letters(limit=0)


def test_a_long_reason_is_cut(make: Make) -> None:
    """500 characters are kept."""
    box = make()
    box.send("a")
    box.receive()[0].reject("\x00" * 5000)
    [letter] = box.dead_letters()
    assert letter.reason == "\x00" * 499 + "…"


def test_a_body_too_large_for_a_dead_letter_is_cut(make: Make, client: Any) -> None:
    """Another program may fill the whole MiB, which leaves no room for the reason; the letter says so."""
    box = make(int)
    box.approximate_count()
    url = client.get_queue_url(QueueName=box.name)["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="é" * (MIB // 2))
    assert box.receive() == []
    [letter] = box.dead_letters()
    assert letter.reason.startswith("it cannot be read: ")
    assert letter.reason.endswith("so the end is missing)")
    assert MIB - 1000 < len(letter.body.encode()) < MIB
    assert set(letter.body) == {"é"}


def test_unreadable_messages_become_dead_letters(make: Make, client: Any) -> None:
    """Of three messages the good one arrives, even without a wait."""
    box = make(int)
    box.approximate_count()
    url = client.get_queue_url(QueueName=box.name)["QueueUrl"]
    for text in ("no JSON", '"no number"', "7"):
        client.send_message(QueueUrl=url, MessageBody=text)
    [message] = box.receive()
    assert message.body == 7
    letters = box.dead_letters()
    assert [letter.body for letter in letters] == ['"no number"', "no JSON"]
    assert letters[0].reason == "it cannot be read: it must be an integer, got a string"
    assert box.approximate_count() == 1


def test_sqs_moves_a_message_after_max_deliveries(make: Make, client: Any) -> None:
    """With two allowed, two deliveries without an acknowledgement are enough."""
    box = make(str, max_deliveries=2)
    sent = box.send("a", reply_to="results")
    for count in (1, 2):
        [message] = box.receive()
        assert message.delivery_count == count
        message.nack()
    time.sleep(0.01)
    assert box.receive() == []
    [letter] = box.dead_letters()
    assert (letter.id, letter.body, letter.delivery_count) == (sent, '"a"', 2)
    assert letter.reason == "it was delivered 2 times and never acknowledged"
    assert (letter.history, letter.reply_to) == ((), "results")
    assert box.approximate_count() == 0
    # Whoever opens it without saying how many learns it from the queue.
    assert SQSMailbox(box.name, client, str).dead_letters() == [letter]


def test_without_a_redrive_policy_the_count_is_that_of_sqs(make: Make, client: Any) -> None:
    """The number of deliveries in the dead letter is what SQS reports."""
    box = make(str)
    box.approximate_count()
    url = client.create_queue(QueueName=box.name + "-dead")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="lost")
    [letter] = box.dead_letters()
    assert (letter.body, letter.delivery_count) == ("lost", 1)
    assert letter.reason == "it was delivered once and never acknowledged"


def _arn(client: Any, url: str) -> str:
    result = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(result["Attributes"]["QueueArn"])


def test_max_deliveries_can_be_changed_later(make: Make, client: Any) -> None:
    """Opening the mailbox with another number changes the queue, also if it pointed to another dead-letter
    queue.
    """
    box = make(str, max_deliveries=5)
    box.send("a")
    again = make(str, box.name, max_deliveries=1)
    again.receive()[0].nack()
    time.sleep(0.01)
    assert again.receive() == []
    assert again.dead_letters()[0].delivery_count == 1
    elsewhere = client.create_queue(QueueName=f"{box.name}-elsewhere")["QueueUrl"]
    box._queue.set_redrive_policy(1, _arn(client, elsewhere))
    make(str, box.name, max_deliveries=1).send("b")
    url = client.get_queue_url(QueueName=box.name)["QueueUrl"]
    result = client.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])
    assert f'{box.name}-dead"' in result["Attributes"]["RedrivePolicy"]
    with pytest.raises(ConfigError, match="at most 1000"):
        SQSMailbox("a", client, max_deliveries=1001)
    with pytest.raises(ConfigError, match="invalid max_deliveries: 0"):
        SQSMailbox("a", client, max_deliveries=0)


def test_foreign_messages_among_dead_letters_are_shown(make: Make, client: Any) -> None:
    """An unreadable record hides neither itself nor the others."""
    box = make(str)
    box.send("a")
    box.receive(wait_time_seconds=5)[0].reject("first")
    url = client.get_queue_url(QueueName=f"{box.name}-dead")["QueueUrl"]
    odd = {"proctor": {"DataType": "String", "StringValue": "{garbage"}}
    client.send_message(QueueUrl=url, MessageBody="odd", MessageAttributes=odd)
    assert {letter.body for letter in box.dead_letters()} == {'"a"', "odd"}


def test_open_mailbox_returns_a_second_handle_or_another_mailbox(make: Make) -> None:
    """Closing one handle leaves the other open."""
    box = make(str, max_deliveries=3)
    box.send("7")
    handle = box.open_mailbox(box.name, str)
    box.close()
    assert [one.body for one in handle.receive(wait_time_seconds=5)] == ["7"]
    other = handle.open_mailbox(f"other-{uuid4().hex}", int)
    other.send(1)
    assert other.approximate_count() == 1
    other.remove()
    handle.remove()


def test_a_waiting_receiver_gets_a_message_at_once(make: Make) -> None:
    """In a wait of seconds, and in one of less than a second."""
    box = make(str)
    for wait in (15, 0.9):
        timer = threading.Timer(0.2, box.send, ["a"])
        timer.start()
        # On a slow machine the message may arrive after the short wait.
        while not (messages := box.receive(wait_time_seconds=wait)):
            pass
        timer.join()
        messages[0].acknowledge()


def test_an_empty_wait_lasts_its_full_time(make: Make) -> None:
    """Fractions of a second too, although SQS waits whole seconds."""
    box = make(str)
    box.approximate_count()
    for wait in (0.3, 1.2):
        began = time.monotonic()
        assert box.receive(wait_time_seconds=wait) == []
        assert time.monotonic() - began >= wait


@pytest.mark.parametrize("how", ["wake", "close"])
def test_waiting_receivers_can_be_woken(make: Make, how: str) -> None:
    """Two receivers return without messages, long before their time."""
    box = make(str)
    box.approximate_count()
    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(box.receive(wait_time_seconds=600))) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    getattr(box, how)()
    for thread in threads:
        thread.join(120)
    assert got == [[], []]


def test_a_message_for_a_woken_receiver_is_returned(make: Make) -> None:
    """The request to SQS still waits; its message becomes visible again at once."""
    box = make(str)
    box.approximate_count()
    others = _polls()
    waiting = threading.Thread(target=box.receive, kwargs={"wait_time_seconds": 20})
    waiting.start()
    poll = _poll_besides(others)
    box.wake()
    waiting.join(120)
    box.send("a")
    poll.join(120)
    [message] = box.receive(wait_time_seconds=5)
    assert (message.body, message.delivery_count) == ("a", 2)


def _poll_besides(others: set[threading.Thread]) -> threading.Thread:
    ends = time.monotonic() + 120
    while not (new := _polls() - others):
        assert time.monotonic() < ends, "nobody waits"
        time.sleep(0.01)
    return new.pop()


def _polls() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "proctor-sqs-wait"}


def test_a_closed_mailbox_refuses_all_calls_and_keeps_its_messages(make: Make, client: Any) -> None:
    """Also calls of its messages; closing twice is allowed."""
    box = make(str)
    box.send("a", reply_to="b")
    box.send("b")
    [message] = box.receive()
    box.close()
    box.close()
    assert box.closed
    for use in (
        lambda: box.send("c"),
        lambda: box.send_all(["c"]),
        box.receive,
        box.purge,
        box.approximate_count,
        box.dead_letters,
        box.remove,
        lambda: box.acknowledge_all([message]),
        lambda: box.open_mailbox("b", str),
        message.acknowledge,
        message.nack,
        lambda: message.extend_visibility(3),
        lambda: message.reject("no"),
        lambda: message.reply("no"),
    ):
        with pytest.raises(MailboxClosed):
            use()
    assert make(str, box.name).approximate_count() == 2


def test_purge_drops_all_messages_but_dead_letters(make: Make) -> None:
    """It returns how many waiting, delayed and leased messages there were."""
    box = make(str)
    box.send_all(["a", "b", "c"])
    box.send("d", delay_seconds=60)
    box.receive()[0].reject("no")
    [held] = box.receive()
    assert box.purge() == 3
    assert box.approximate_count() == 0
    assert len(box.dead_letters()) == 1
    with pytest.raises(ReceiptExpired):
        held.acknowledge()
    assert box.acknowledge_all([held]) == 0


def test_purging_twice_within_a_minute_is_an_error(make: Make) -> None:
    """SQS allows it once a minute."""
    box = make(str)
    box.purge()
    with pytest.raises(MailboxError, match="once a minute"):
        box.purge()


def test_remove_deletes_the_queue_and_its_dead_letters(make: Make, client: Any) -> None:
    """Removing a queue that does not exist is allowed."""
    box = make(str)
    box.send("a")
    box.receive()[0].reject("no")
    box.remove()
    assert box.closed
    assert "QueueUrls" not in client.list_queues(QueueNamePrefix=box.name)
    make(str).remove()


def test_a_queue_can_be_given_by_its_url(server: SQSServer, client: Any) -> None:
    """The URL contains the endpoint; a missing queue is not created but an error."""
    name = f"url-{uuid4().hex}"
    url = client.create_queue(QueueName=name)["QueueUrl"]
    box = SQSMailbox(url, client, str)
    assert box.name == name
    box.send("a")
    assert [one.body for one in box.open_mailbox(name, str).receive()] == ["a"]
    box.remove()
    with pytest.raises(MailboxError, match="the queue does not exist") as caught:
        SQSMailbox(url, client, str).send("a")
    assert name in str(caught.value)
    assert server.url in str(caught.value)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("letters.fifo", "FIFO"),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/letters.fifo", "FIFO"),
        ("two words", "cannot be the name"),
        ("x" * 76, "use at most 75 characters"),
    ],
)
def test_invalid_names_are_refused(client: Any, name: str, why: str) -> None:
    """FIFO queues, invalid characters, and names without room for -dead."""
    with pytest.raises(ConfigError, match=why):
        SQSMailbox(name, client)


def test_an_address_uses_the_environments_endpoint_and_credentials(
    server: SQSServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sqs://NAME` is enough where boto3 finds the rest; unknown options are refused."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", server.url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    name = f"address-{uuid4().hex}"
    box = connections.mailbox(f"sqs://{name}", int, max_deliveries=3)
    box.send(1)
    [message] = box.receive(wait_time_seconds=5)
    assert message.body == 1
    url = server.client().get_queue_url(QueueName=name)["QueueUrl"]
    monkeypatch.delenv("AWS_ENDPOINT_URL_SQS")
    assert SQSMailbox(url, None, int).approximate_count() == 1
    box.remove()
    with pytest.raises(ConfigError, match="unknown options: 'capacity'"):
        connections.mailbox(f"sqs://{name}", int, capacity=3)
