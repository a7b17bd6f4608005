"""The loop spec: mailboxes and what travels through them, in memory and on a Redis server."""

from __future__ import annotations

import inspect
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    EvalLoop,
    EvalRequest,
    EvalResult,
    InMemoryMailbox,
    Mailbox,
    RedisMailbox,
    Sample,
    SQLiteHistory,
    Trial,
    collect_results,
    evaluate,
    exact_match,
    submit_dataset,
)
from proctor.errors import ConfigError, MailboxClosed, MailboxError, MailboxFull, ReceiptExpired
from proctor.records.trial import Delivery, Failure
from tests.servers import RedisServer
from tests.spec.clauses import clause

# Long enough for anything that must come, on a busy machine.
PATIENCE = 120.0
LEASE = 0.2

names = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(persistent=False) as running:
        yield running


Make = Callable[..., Any]


@pytest.fixture(params=["memory", "redis"])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes new mailboxes of one kind."""
    if request.param == "memory":
        return lambda body_type=None, **how: InMemoryMailbox(f"box-{next(names)}", body_type, **how)
    client = request.getfixturevalue("server").client()
    return lambda body_type=None, **how: RedisMailbox(f"box-{next(names)}", client, body_type, **how)


def receive_one(box: Any, **how: Any) -> Any:
    [message] = box.receive(wait_time_seconds=PATIENCE, **how)
    return message


def loop_over(requests: Any, results: Any, target: Any = str.upper, **how: Any) -> Any:
    how = {"wait_seconds": 0.05, **how}
    return EvalLoop(loop=target, evaluator=exact_match, requests=requests, results=results, **how)


def three() -> list[dict[str, str]]:
    return [{"id": item, "input": item, "expected": item.upper()} for item in "abc"]


@clause("000.MAILBOX.1", "EvalLoop", ruling="Mailbox contract")
def test_send_gives_an_id_and_receive_the_message(make: Make) -> None:
    """`send` returns the message's id, and `receive` gives a message with that id and the body."""
    box = make()
    sent = box.send({"a": 1})
    message = receive_one(box)
    assert (message.id, message.body) == (sent, {"a": 1})


@clause("000.MAILBOX.2", "EvalLoop", ruling="Mailbox contract")
def test_send_takes_reply_to_and_a_delay(make: Make) -> None:
    """A delayed message is received only after its delay, with the `reply_to` it was sent with."""
    box = make()
    began = time.monotonic()
    box.send(1, reply_to="answers", delay_seconds=LEASE)
    assert receive_one(box).reply_to == "answers"
    assert time.monotonic() - began >= LEASE * 0.9


@clause("000.MAILBOX.3", "EvalLoop", ruling="Mailbox contract")
def test_receive_has_the_defaults_of_the_contract() -> None:
    """By default, `receive` leases one message for 30 seconds and does not wait."""
    for kind in (InMemoryMailbox, RedisMailbox):
        parameters = inspect.signature(kind.receive).parameters
        defaults = {name: parameter.default for name, parameter in parameters.items()}
        assert defaults["max_messages"] == 1
        assert defaults["visibility_timeout"] == 30
        assert defaults["wait_time_seconds"] == 0


@clause("000.MAILBOX.4", "EvalLoop", ruling="Mailbox contract")
@pytest.mark.parametrize("most", [0, 11])
def test_one_to_ten_messages_can_be_asked_for(make: Make, most: int) -> None:
    """`max_messages` is 1 to 10; other numbers are refused and nothing is lost."""
    box = make()
    box.send_all(range(10))
    with pytest.raises(ConfigError):
        box.receive(max_messages=most)
    assert len(box.receive(max_messages=10)) == 10


@clause("000.MAILBOX.5", "EvalLoop", ruling="Mailbox contract")
@pytest.mark.parametrize("seconds", [-1, 43_201])
def test_a_lease_lasts_at_most_twelve_hours(make: Make, seconds: float) -> None:
    """`visibility_timeout` is 0 to 43200 seconds; other numbers are refused."""
    box = make()
    box.send(1)
    with pytest.raises(ConfigError):
        box.receive(visibility_timeout=seconds)
    assert len(box.receive(visibility_timeout=43_200)) == 1


@clause("000.MAILBOX.6", "EvalLoop", ruling="Mailbox contract")
def test_a_long_poll_returns_as_soon_as_something_is_there(make: Make) -> None:
    """A receiver that waits gets a message that is sent meanwhile, long before its wait is over."""
    box = make()
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.extend(box.receive(wait_time_seconds=600)), daemon=True)
    waiting.start()
    box.send("now")
    waiting.join(PATIENCE)
    assert [message.body for message in results] == ["now"]


@clause("000.MAILBOX.7", "EvalLoop", ruling="Mailbox contract")
def test_fresh_messages_are_first_in_first_out(make: Make) -> None:
    """Fresh messages are received in the order in which they were sent."""
    box = make()
    box.send(0)
    box.send_all([1, 2, 3])
    assert [message.body for message in box.receive(max_messages=10)] == [0, 1, 2, 3]


@clause("000.MAILBOX.8", "EvalLoop", ruling="Mailbox contract")
def test_each_delivery_has_a_new_receipt_and_a_higher_count(make: Make) -> None:
    """`delivery_count` is 1 at first; each delivery has another `receipt_handle`."""
    box = make()
    box.send(1)
    first = receive_one(box)
    first.nack()
    second = receive_one(box)
    assert (first.delivery_count, second.delivery_count) == (1, 2)
    assert first.receipt_handle != second.receipt_handle
    assert first.id == second.id


@clause("000.MAILBOX.9", "EvalLoop", ruling="Mailbox contract")
def test_enqueued_at_is_aware_utc(make: Make) -> None:
    """`enqueued_at` is when the message was sent, aware and in UTC."""
    box = make()
    box.send(1)
    moment = receive_one(box).enqueued_at
    assert moment.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=5)


@clause("000.MAILBOX.10", "EvalLoop", ruling="Mailbox contract")
def test_what_is_acknowledged_is_gone(make: Make) -> None:
    """An acknowledged message never comes again."""
    box = make()
    box.send(1)
    receive_one(box, visibility_timeout=LEASE).acknowledge()
    assert box.approximate_count() == 0
    assert list(box.receive(wait_time_seconds=2 * LEASE)) == []


@clause("000.MAILBOX.11", "EvalLoop", ruling="Mailbox contract")
def test_a_returned_message_is_seen_again_after_its_delay(make: Make) -> None:
    """`nack()` returns a message immediately, `nack(seconds)` after this delay."""
    box = make()
    box.send(1)
    receive_one(box).nack()
    message = receive_one(box)
    began = time.monotonic()
    message.nack(LEASE)
    assert list(box.receive()) == []
    assert receive_one(box).delivery_count == 3
    assert time.monotonic() - began >= LEASE * 0.9


@clause("000.MAILBOX.12", "EvalLoop", ruling="Mailbox contract")
def test_an_extended_lease_hides_the_message_for_longer(make: Make) -> None:
    """`extend_visibility` keeps a message beyond its first lease."""
    box = make()
    box.send(1)
    message = receive_one(box, visibility_timeout=5)
    message.extend_visibility(600)
    other = box.open_mailbox(box.name, None)
    assert list(other.receive()) == []
    message.acknowledge()
    assert box.approximate_count() == 0


@clause("000.MAILBOX.13", "EvalLoop", ruling="Mailbox contract")
def test_an_answer_goes_to_reply_to(make: Make) -> None:
    """`reply` sends an answer to the mailbox that the message names."""
    box, answers = make(), make()
    box.send("question", reply_to=answers)
    receive_one(box).reply("answer")
    assert receive_one(box.open_mailbox(answers.name, None)).body == "answer"


@clause("000.MAILBOX.14", "EvalLoop", ruling="Mailbox contract")
@pytest.mark.parametrize("way", ["acknowledge", "nack", "extend"])
def test_a_stale_handle_is_refused(make: Make, way: str) -> None:
    """Once its lease is over, a delivery can be neither acknowledged, returned nor extended."""
    box = make()
    box.send(1)
    stale = receive_one(box, visibility_timeout=LEASE)
    current = receive_one(box)
    ways: dict[str, Callable[[], object]] = {
        "acknowledge": stale.acknowledge,
        "nack": stale.nack,
        "extend": lambda: stale.extend_visibility(1),
    }
    with pytest.raises(ReceiptExpired):
        ways[way]()
    current.acknowledge()
    assert box.approximate_count() == 0


@clause("000.MAILBOX.15", "EvalLoop", ruling="Mailbox contract")
def test_capacity_counts_what_is_in_flight(make: Make) -> None:
    """A mailbox with a capacity refuses more, messages in flight counted, until one is settled."""
    box = make(capacity=2)
    box.send_all([1, 2])
    message = receive_one(box)
    with pytest.raises(MailboxFull):
        box.send(3)
    message.acknowledge()
    box.send(3)
    assert box.approximate_count() == 2


@clause("000.MAILBOX.16", "EvalLoop", ruling="Mailbox contract")
def test_the_count_has_waiting_and_in_flight_messages(make: Make) -> None:
    """`approximate_count` counts messages that wait and messages in flight."""
    box = make()
    box.send_all([1, 2, 3])
    box.receive()
    assert box.approximate_count() == 3


@clause("000.MAILBOX.17", "EvalLoop", ruling="Mailbox contract")
def test_a_purge_drops_every_message(make: Make) -> None:
    """`purge` deletes waiting and leased messages and returns their number."""
    box = make()
    box.send_all([1, 2, 3])
    box.receive()
    assert box.purge() == 3
    assert box.approximate_count() == 0


@clause("000.MAILBOX.18", "EvalLoop", ruling="Mailbox contract")
def test_a_closed_mailbox_refuses_and_wakes_who_waits(make: Make) -> None:
    """`close` ends waiting receivers; then `closed` is true and every use is refused."""
    box = make()
    done = threading.Event()

    def wait() -> None:
        box.receive(wait_time_seconds=600)
        done.set()

    threading.Thread(target=wait, daemon=True).start()
    time.sleep(0.05)
    box.close()
    assert done.wait(PATIENCE)
    assert box.closed
    with pytest.raises(MailboxClosed):
        box.send(1)


@clause("000.MAILBOX.19", "EvalLoop", ruling="Heartbeats")
def test_heartbeats_keep_a_sample_that_runs_longer_than_its_lease(make: Make) -> None:
    """A sample that takes longer than its lease is run once, by the worker that has it."""
    requests, results = make(EvalRequest), make(EvalResult)
    calls: list[str] = []

    def slow(text: str) -> str:
        calls.append(text)
        time.sleep(4.5)
        return text.upper()

    submission = submit_dataset(three()[:1], requests)
    loops = [loop_over(requests, results, slow, lease_seconds=2.0) for _ in range(2)]
    threads = [threading.Thread(target=loop.run, daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
    report = collect_results(results, submission, timeout_seconds=PATIENCE)
    for loop in loops:
        loop.stop()
    for thread in threads:
        thread.join(PATIENCE)
    assert (calls, report.pass_rate) == (["a"], 1.0)


@clause("000.MAILBOX.20", "EvalLoop", ruling="Evaluating and delivering are separate steps")
def test_a_result_that_cannot_be_sent_returns_its_request(make: Make) -> None:
    """If sending a result fails, its request is returned with a delay; no other result is sent."""
    requests, results = make(EvalRequest), make(EvalResult)
    submit_dataset(three()[:1], requests)
    results.close()
    loop_over(requests, results, lease_seconds=0.5).run(max_iterations=1)
    assert requests.approximate_count() == 1
    # It is delayed, and its only delivery was no success.
    assert list(requests.receive()) == []
    assert list(requests.dead_letters()) == []


@clause("000.MAILBOX.21", "EvalLoop", ruling="Evaluating and delivering are separate steps")
def test_a_closed_mailbox_ends_the_loop(make: Make) -> None:
    """A loop whose requests' mailbox is closed ends by itself."""
    requests, results = make(EvalRequest), make(EvalResult)
    loop = loop_over(requests, results, wait_seconds=600.0)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    time.sleep(0.05)
    requests.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@clause("000.MAILBOX.22", "EvalLoop", ruling="Evaluating and delivering are separate steps")
def test_a_stopped_loop_finishes_its_sample_and_returns_the_rest(make: Make) -> None:
    """`stop` lets the current sample finish and returns the other requests immediately."""
    requests, results = make(EvalRequest), make(EvalResult)
    begun, may_end = threading.Event(), threading.Event()

    def target(text: str) -> str:
        begun.set()
        assert may_end.wait(PATIENCE)
        return text.upper()

    submit_dataset(three(), requests)
    loop = loop_over(requests, results, target, concurrency=1)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE)
    loop.stop()
    may_end.set()
    thread.join(PATIENCE)
    assert results.approximate_count() == 1
    waiting = requests.receive(max_messages=10)
    assert [message.body.sample.id for message in waiting] == ["b", "c"]


@clause("000.MAILBOX.23", "EvalLoop", ruling="Failures of the target")
def test_a_failing_target_gives_an_error_result_and_no_retry(make: Make) -> None:
    """A target that raises gives an error result; its request is acknowledged, not run again."""
    requests, results = make(EvalRequest), make(EvalResult)
    calls: list[str] = []

    def target(text: str) -> str:
        calls.append(text)
        raise ValueError("no")

    submission = submit_dataset(three()[:1], requests)
    loop_over(requests, results, target).run(max_iterations=1)
    report = collect_results(results, submission, timeout_seconds=PATIENCE)
    assert (calls, report.errors, requests.approximate_count()) == (["a"], 1, 0)
    assert report.results[0].error == "ValueError: no"


@clause("000.MAILBOX.24", "Multiple Workers", ruling="Dead letters and undecodable messages")
def test_a_message_is_a_dead_letter_after_its_deliveries(make: Make) -> None:
    """A message that was delivered `max_deliveries` times and comes back is set aside."""
    box = make(max_deliveries=2)
    sent = box.send(1)
    receive_one(box).nack(reason="first")
    receive_one(box).nack(reason="second")
    assert list(box.receive()) == []
    [letter] = box.dead_letters()
    assert (letter.id, letter.delivery_count) == (sent, 2)
    assert letter.history == ("delivery 1: first", "delivery 2: second")


@clause("000.MAILBOX.25", "EvalLoop", ruling="Dead letters and undecodable messages")
def test_an_undecodable_message_is_set_aside_at_once(make: Make) -> None:
    """A body that is not of the mailbox's type becomes a dead letter and blocks nothing."""
    box = make(int)
    box.send("no number")
    box.send(7)
    assert receive_one(box).body == 7
    [letter] = box.dead_letters()
    assert letter.body == '"no number"'


@clause("000.MAILBOX.26", "EvalLoop", ruling="Dead letters and undecodable messages")
def test_an_undecodable_request_costs_no_worker(make: Make) -> None:
    """A worker rejects a message that is not a request, and continues with the next one."""
    requests, results = make(), make(EvalResult)
    requests.send({"garbage": True})
    submission = submit_dataset(three(), requests)
    loop_over(requests, results).run(max_iterations=1)
    report = collect_results(results, submission, timeout_seconds=PATIENCE)
    assert (report.total, report.pass_rate) == (3, 1.0)
    assert len(requests.dead_letters()) == 1


@clause("000.MAILBOX.27", "Worker Process", ruling="A Redis mailbox is told the type of its body")
def test_typed_bodies_come_back_typed(make: Make) -> None:
    """A mailbox that is given a body type gives objects of that type back."""
    box = make(EvalRequest[str, int])
    request = EvalRequest(Sample("1", "2 + 2", 4), run_id="r")
    box.send(request)
    received = receive_one(box).body
    assert (type(received), received) == (EvalRequest, request)


@clause("000.MAILBOX.28", "Worker Process", ruling="Nothing is ever pickled")
def test_what_json_cannot_hold_is_refused(make: Make) -> None:
    """Requests travel as JSON: a sample that would arrive changed is refused when submitted."""
    requests = make(EvalRequest)
    with pytest.raises(MailboxError, match="a set arrives as a list"):
        submit_dataset([Sample("1", {1, 2})], requests)
    assert requests.approximate_count() == 0


@clause("000.MAILBOX.29", "Collecting Results", ruling="At least once, counted once")
def test_results_are_counted_once_and_a_success_wins(make: Make) -> None:
    """Of several results for one request one counts, a success before an error."""
    results = make(EvalResult)
    sample: Sample[Any, Any] = Sample("a", "a")
    delivery = Delivery("r", "r-0")
    failed = EvalResult(Trial(sample, error=Failure("E", "no")), delivery=delivery)
    good = EvalResult(Trial(sample, "A"), delivery=delivery)
    results.send_all([failed, good, failed])
    report = collect_results(results, 2, timeout_seconds=0)
    assert [result.output for result in report.results] == ["A"]


@clause("000.MAILBOX.30", "Collecting Results", ruling="At least once, counted once")
def test_results_of_other_runs_are_left_alone(make: Make) -> None:
    """Results of another run stay in the mailbox until they are collected for that run."""
    requests, results = make(EvalRequest), make(EvalResult)
    first = submit_dataset(three(), requests)
    second = submit_dataset(three()[:1], requests)
    loop_over(requests, results).run(max_iterations=1)
    assert collect_results(results, second, timeout_seconds=PATIENCE).total == 1
    assert collect_results(results, first, timeout_seconds=PATIENCE).total == 3


@clause("000.MAILBOX.31", "Collecting Results", ruling="A partial report on time-out")
def test_a_partial_report_names_what_is_missing(make: Make) -> None:
    """When the time is up, the report is not completed and names each missing sample."""
    requests, results = make(EvalRequest), make(EvalResult)
    submission = submit_dataset(three(), requests)
    loop_over(requests, results, batch_size=1).run(max_iterations=1)
    report = collect_results(results, submission, timeout_seconds=0.2)
    assert report.total == 1
    assert report.metadata is not None
    assert report.metadata.status == "interrupted"
    assert report.metadata.warnings == ("2 of 3 results are missing: b, c",)


@clause("000.MAILBOX.32", "EvalLoop", ruling="`run(max_iterations=1)` handles one poll")
def test_one_poll_takes_all_that_is_waiting(make: Make) -> None:
    """`run(max_iterations=1)` handles every message that waits, up to the batch size."""
    requests, results = make(EvalRequest), make(EvalResult)
    submit_dataset([{"id": str(number), "input": "a"} for number in range(25)], requests)
    loop_over(requests, results).run(max_iterations=1)
    assert (results.approximate_count(), requests.approximate_count()) == (25, 0)


@clause("000.MAILBOX.33", "EvalLoop", ruling="There is a run-until-empty")
def test_a_loop_can_run_until_nothing_is_left(make: Make) -> None:
    """`run(until_empty=True)` ends when nothing waits and nothing is in flight."""
    requests, results = make(EvalRequest), make(EvalResult)
    submit_dataset(three(), requests)
    requests.send(EvalRequest(Sample("later", "d")), delay_seconds=LEASE)
    loop_over(requests, results).run(until_empty=True)
    assert (results.approximate_count(), requests.approximate_count()) == (4, 0)


@clause("000.MAILBOX.34", "Multiple Workers")
def test_each_sample_is_processed_by_one_of_several_workers(make: Make) -> None:
    """Several loops on one mailbox share the samples, and each sample is run once."""
    requests, results = make(EvalRequest), make(EvalResult)
    calls: list[str] = []
    data = [{"id": str(number), "input": str(number)} for number in range(60)]
    submission = submit_dataset(data, requests)
    loops = [loop_over(requests, results, lambda text: calls.append(text)) for _ in range(3)]
    threads = [threading.Thread(target=lambda one=loop: one.run(until_empty=True)) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(calls, key=int) == [str(number) for number in range(60)]
    assert collect_results(results, submission, timeout_seconds=PATIENCE).total == 60


@clause("000.MAILBOX.35", "Worker Process", ruling="Every planned trial ends as a result")
def test_a_run_that_loses_a_trial_to_a_dead_letter_names_it(make: Make, tmp_path: Path) -> None:
    """A trial that workers cannot finish is an error result, and a warning names its sample."""
    requests = make(EvalRequest, max_deliveries=1)
    history = SQLiteHistory(tmp_path / "h.db")

    def reject_one() -> None:
        receive_one(requests).reject("no memory")
        loop_over(requests, None).run(max_iterations=1)

    worker = threading.Thread(target=reject_one, daemon=True)
    worker.start()
    report = evaluate(str.upper, three(), exact_match, workers=requests, history=history, progress=False)
    worker.join(PATIENCE)
    assert (report.total, report.errors) == (3, 1)
    [lost] = [result.sample_id for result in report.results if not result.success]
    assert report.metadata is not None
    assert any(
        f"dead letter: delivered too often, or rejected ({lost})" in warning for warning in report.metadata.warnings
    )


@clause("000.MAILBOX.36", "EvalLoop", ruling="Evaluating and delivering are separate steps")
def test_an_expired_receipt_is_dropped_in_silence(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that has lost its request meanwhile sends its success without a complaint."""
    requests, results = make(EvalRequest), make(EvalResult)

    def target(text: str) -> str:
        # Whoever empties the mailbox makes every receipt worthless.
        requests.purge()
        return text.upper()

    submission = submit_dataset(three()[:1], requests)
    with caplog.at_level(logging.WARNING):
        loop_over(requests, results, target).run(max_iterations=1)
    assert collect_results(results, submission, timeout_seconds=PATIENCE).pass_rate == 1.0
    assert caplog.records == []


@clause("000.MAILBOX.37", "EvalLoop")
def test_every_mailbox_is_a_mailbox(make: Make) -> None:
    """Mailboxes in memory and on Redis satisfy one protocol, `Mailbox`."""
    box: Mailbox[Any] = make()
    members = {name for name in vars(Mailbox) if not name.startswith("_")}
    assert {name for name in members if not hasattr(box, name)} == set()
