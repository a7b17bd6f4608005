"""`collect_results` counts each request once, until all results are there or the timeout is over."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import EvalResult, InMemoryMailbox, ProgressEvent, Sample, Score, Trial, collect_results, submit_dataset
from proctor.errors import ConfigError, MailboxError
from proctor.records.trial import Delivery, Failure
from proctor.wiring.dispatch import Submission
from tests.distributed.failing_mailboxes import (
    LONG,
    FailingMailbox,
    SlowMailbox,
    boxes,
    loop_for,
    take_results,
    with_timeout,
)
from tests.support import ManualClock, samples, shout


def result(
    number: int, *, run_id: str = "r1", error: str = "", scores: int = 1, configuration: str = "a"
) -> EvalResult:
    trial = Trial(
        Sample(f"s{number}", "in"),
        None if error else "out",
        Failure("ValueError", error) if error else None,
        configuration=configuration,
    )
    given_scores = {} if error else {f"e{i}": Score(1.0, True) for i in range(scores)}
    return EvalResult(trial, given_scores, delivery=Delivery(run_id, f"{run_id}-{number}", "w"))


def mailbox_with(*results: EvalResult) -> InMemoryMailbox[EvalResult]:
    mailbox = InMemoryMailbox("results", EvalResult)
    mailbox.send_all(results)
    return mailbox


def test_the_timeout_uses_the_monotonic_clock() -> None:
    """Each wait is limited by the remaining time; the wall clock is not used."""
    clock = ManualClock()
    box: Any = SlowMailbox(mailbox_with(result(0)), clock, receive=5.0, acknowledge_all=5.0)
    report = with_timeout(LONG, lambda: collect_results(box, 2, timeout_seconds=10.5, clock=clock))
    # 10.5 s are left at first, 0.5 s after a receive and an acknowledgement, then none.
    assert box.waits == [1.0, 0.5, 0.0]
    assert report.total == 1
    assert report.metadata is not None
    assert report.metadata.duration_seconds == clock.seconds
    assert report.metadata.status == "interrupted"


def test_a_partial_report_names_the_missing_samples() -> None:
    """Three of five requests are answered before the timeout."""
    requests, results = boxes()
    submission = submit_dataset(samples(5), requests)
    loop_for(shout, requests, results, batch_size=3).run(max_iterations=1)
    report = collect_results(results, submission, timeout_seconds=0)
    assert [actual.sample_id for actual in report.results] == ["s0", "s1", "s2"]
    assert (report.total, report.pass_rate) == (3, 1.0)
    assert report.metadata is not None
    assert report.metadata.warnings == ("2 of 5 results are missing: s3, s4",)
    assert (report.metadata.total, report.metadata.status) == (5, "interrupted")
    loop_for(shout, requests, results).run(until_empty=True)
    rest = collect_results(results, 2, timeout_seconds=5)
    assert [actual.sample_id for actual in rest.results] == ["s3", "s4"]


def test_twenty_missing_samples_are_named_at_most() -> None:
    """The warning adds how many more there are; without names it only gives their number."""
    requests, results = boxes()
    submission = submit_dataset(samples(23), requests)
    report = collect_results(results, submission, timeout_seconds=0)
    assert report.metadata is not None
    [text] = report.metadata.warnings
    assert text.startswith("23 of 23 results are missing: s0, s1, ")
    assert text.endswith("s19, … and 3 more")
    nameless = collect_results(results, 4, timeout_seconds=0)
    assert nameless.metadata is not None
    assert nameless.metadata.warnings == ("4 of 4 results are missing",)


def test_waiting_results_are_collected_after_the_timeout() -> None:
    """With a timeout of 0, all 25 waiting results are in the report, not only one batch of ten."""
    report = collect_results(mailbox_with(*map(result, range(25))), 30, timeout_seconds=0)
    assert report.total == 25


def test_collecting_ends_with_the_last_result() -> None:
    """The rest of the timeout is not waited for."""
    report = with_timeout(LONG, lambda: collect_results(mailbox_with(*map(result, range(3))), 3, timeout_seconds=600))
    assert report.total == 3


@pytest.mark.parametrize("order", list(permutations(["error", "success", "success again"])))
def test_a_success_wins_over_an_error_in_every_order(order: tuple[str, ...]) -> None:
    """Only the success counts; the report says that others came."""
    by_name = {"error": result(0, error="no"), "success": result(0), "success again": result(0)}
    box = mailbox_with(*(by_name[name] for name in order))
    report = with_timeout(LONG, lambda: collect_results(box, 2, timeout_seconds=0.2))
    assert [results.success for results in report.results] == [True]
    assert report.metadata is not None
    assert report.metadata.warnings == (
        "workers: 2 results arrived twice and were not counted again",
        "1 of 2 results are missing",
    )
    assert box.approximate_count() == 0


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=25))
def test_each_request_is_counted_once(told: list[tuple[int, bool]]) -> None:
    """Property: one result per request, which is an error only if no success came."""
    box = mailbox_with(*(result(number, error="" if good else "no") for number, good in told))
    report = collect_results(box, 6, timeout_seconds=0)
    expected = {f"s{n}": any(good for m, good in told if m == n) for n, _ in told}
    assert {results.sample_id: results.success for results in report.results} == expected
    assert report.total == len(expected)
    assert box.approximate_count() == 0


def test_results_of_other_runs_are_left_for_their_collector() -> None:
    """Two collectors that share a mailbox each get all of their own results."""
    clock = ManualClock()
    requests, results = boxes(clock=clock)
    first = submit_dataset(samples(2), requests)
    second = submit_dataset(samples(3), requests)
    loop_for(shout, requests, results).run(max_iterations=1)
    report = collect_results(results, second, timeout_seconds=5)
    assert {actual.delivery.run_id for actual in report.results if actual.delivery} == {second.run_id}
    assert report.total == 3
    assert results.approximate_count() == 2
    # They were given back for a moment; then their own collector has them.
    clock.seconds += 5.1
    report = with_timeout(LONG, lambda: collect_results(results, first, timeout_seconds=10))
    assert report.total == 2


def test_a_result_without_a_delivery_is_identified_by_its_sample() -> None:
    """A result that was sent by hand needs no request; it belongs to no run."""
    by_hand = EvalResult(Trial(Sample("s1", "in"), "out"), {"e": Score(1.0, True)})
    report = collect_results(mailbox_with(by_hand, by_hand), 2, timeout_seconds=0)
    assert report.total == 1
    box = mailbox_with(by_hand)
    assert collect_results(box, 1, run_id="r1", timeout_seconds=0).total == 0
    assert box.approximate_count() == 1


def test_dead_letters_become_error_results() -> None:
    """The error says why the request was rejected and lists its deliveries."""
    requests, results = boxes(max_deliveries=2)
    submission = submit_dataset(samples(1), requests)
    for _ in range(2):
        [message] = requests.receive()
        message.nack(reason="no memory")
    assert requests.receive() == []
    report = with_timeout(LONG, lambda: collect_results(results, submission, requests=requests, timeout_seconds=15))
    [actual] = report.results
    assert actual.error == (
        "DeadLetter: it was delivered 2 times and never acknowledged; delivery 1: no memory; delivery 2: no memory"
    )
    assert actual.delivery is not None
    assert actual.delivery.count == 2
    assert report.metadata is not None
    assert report.metadata.warnings == (
        "workers: 1 request ended as a dead letter: delivered too often, or rejected (s0)",
    )
    # Also where nothing is waited for.
    again = collect_results(results, submission, requests=requests, timeout_seconds=0)
    assert again.errors == 1


def test_dead_letters_are_found_among_those_of_other_runs() -> None:
    """Even if the mailbox has more than a thousand of them."""
    requests, results = boxes()
    submit_dataset(samples(1_050), requests)
    submission = submit_dataset(samples(2), requests)
    while messages := requests.receive(max_messages=10):
        for message in messages:
            message.reject("no")
    report = collect_results(results, submission, requests=requests, timeout_seconds=0)
    assert report.errors == 2


def test_a_result_replaces_a_dead_letter() -> None:
    """A worker may still answer after its request became a dead letter."""
    requests, results = boxes()
    submission = submit_dataset(samples(1), requests)
    [message] = requests.receive()
    message.reject("given up")
    [key] = submission.samples
    trial = Trial(Sample("s0", "in"), "out")
    results.send(EvalResult(trial, delivery=Delivery(submission.run_id, key)))
    report = collect_results(results, submission, requests=requests, timeout_seconds=5)
    assert [actual.success for actual in report.results] == [True]


def test_dead_letters_need_a_run_id() -> None:
    """A number of expected results does not say which run they belong to."""
    requests, results = boxes()
    with pytest.raises(ConfigError, match="whose dead letters") as refused:
        collect_results(results, 3, requests=requests)
    assert "submit_dataset" in refused.value.fix


def test_progress_rises_from_0_to_100() -> None:
    """Three results of two evaluators and one error: each counts for a quarter."""
    events: list[ProgressEvent] = []
    box = mailbox_with(*(result(n, scores=2) for n in range(3)), result(3, error="no"))
    collect_results(box, 4, on_progress=events.append, timeout_seconds=5)
    assert [event.kind for event in events] == [
        "start", "config_start",
        *(["evaluator_start", "evaluator_end"] * 2 * 3),
        "config_end", "end",
    ]  # fmt: skip
    shares = [event.progress for event in events]
    assert shares == sorted(shares)
    ends = [event.progress for event in events if event.kind == "evaluator_end"]
    assert ends == [12.5, 25.0, 37.5, 50.0, 62.5, 75.0]
    assert (shares[0], shares[-1]) == (0.0, 100.0)
    assert (events[-1].done, events[-1].total, events[-1].errors) == (4, 4, 1)
    assert events[-1].status == "completed"


def test_the_progress_of_a_partial_report_ends_as_failed() -> None:
    """Both callbacks receive the same events."""
    events: list[ProgressEvent] = []
    other: list[ProgressEvent] = []
    collect_results(mailbox_with(result(0)), 2, on_progress=[events.append, other.append], timeout_seconds=0)
    assert events == other
    assert events[-1].status == "failed"
    assert all(a.progress <= b.progress for a, b in pairwise(events))


def test_an_unreadable_result_is_rejected_and_the_others_are_collected() -> None:
    """The mailbox has no type, so it can contain anything."""
    box: InMemoryMailbox[Any] = InMemoryMailbox("results")
    box.send_all([{"no": "result"}, result(0), "garbage"])
    report = with_timeout(LONG, lambda: collect_results(box, 1, timeout_seconds=5))
    assert report.total == 1
    reasons = [dead_letter.reason for dead_letter in box.dead_letters()]
    assert reasons == [
        "it is not a valid result: it must be a mapping, got a string",
        "it is not a valid result: unknown key 'no'",
    ]


def test_a_report_has_metrics_for_each_configuration() -> None:
    """The report of several configurations has a table for each."""
    box = mailbox_with(result(0, configuration="a"), result(1, configuration="b"))
    report = collect_results(box, 2, timeout_seconds=5)
    assert set(report.by_configuration) == {"a", "b"}
    assert report.by_configuration["a"]["e0.mean"].value == 1.0


def test_results_come_in_the_order_of_the_dataset() -> None:
    """In whatever order they finished, although errors are accepted last."""
    requests, results = boxes()
    submission = submit_dataset(samples(4), requests)
    run = submission.run_id
    actual = [
        EvalResult(Trial(Sample(f"s{n}", "in"), None, error), delivery=Delivery(run, f"{run}-{n}"))
        for n, error in ((3, None), (0, Failure("E", "no")), (2, None), (1, None))
    ]
    results.send_all(actual)
    report = collect_results(results, submission, timeout_seconds=5)
    assert [item.sample_id for item in report.results] == ["s0", "s1", "s2", "s3"]


def test_a_result_that_cannot_be_acknowledged_is_counted_once() -> None:
    """The report is complete, and the results stay in the mailbox."""
    inner = mailbox_with(result(0), result(1, error="no"))
    box: Any = FailingMailbox(inner, acknowledge_all=[MailboxError("the server is away")] * 9)
    assert collect_results(box, 2, timeout_seconds=5).total == 2
    assert inner.approximate_count() == 2


def test_a_foreign_result_that_cannot_be_returned_is_ignored() -> None:
    """Its lease expires."""
    box: Any = FailingMailbox(mailbox_with(result(0, run_id="r2"), result(0)), nack=[MailboxError("away")])
    assert collect_results(box, 1, run_id="r1", timeout_seconds=5).total == 1


def test_an_error_whose_lease_expired_is_not_counted_twice() -> None:
    """Errors are acknowledged at the end, so their collector may receive them again."""
    clock = ManualClock()
    inner = InMemoryMailbox("results", EvalResult, clock=clock)
    inner.send(result(0, error="no"))

    box: Any = SlowMailbox(inner, clock, receive=61.0)
    report = collect_results(box, 2, timeout_seconds=200, clock=clock)
    assert report.errors == 1
    assert report.metadata is not None
    assert report.metadata.warnings == ("1 of 2 results are missing",)
    assert take_results(inner) == []


def test_foreign_results_do_not_extend_the_timeout() -> None:
    """After the timeout, thousands of results of another run are not searched."""
    inner = mailbox_with(*(result(n, run_id="other") for n in range(3_000)))
    box: Any = FailingMailbox(inner)
    submission = Submission("mine", {"mine-0": "s0"})
    report = with_timeout(LONG, lambda: collect_results(box, submission, timeout_seconds=0))
    assert (report.total, box.calls.count("receive")) == (0, 1)
    assert inner.approximate_count() == 3_000


def test_results_after_the_timeout_are_not_collected() -> None:
    """Only those that were in the mailbox at the timeout are collected."""
    inner = mailbox_with(*map(result, range(25)))
    numbers = iter(range(25, 10_000))

    class Busy(FailingMailbox):
        def stumble(self, name: str) -> None:
            super().stumble(name)
            if name == "receive":
                inner.send_all([result(next(numbers)) for _ in range(10)])

    box: Any = Busy(inner)
    report = with_timeout(LONG, lambda: collect_results(box, 10_000, timeout_seconds=0))
    assert (report.total, box.calls.count("receive")) == (30, 3)


def test_a_mailbox_that_cannot_be_counted_is_read_once_more() -> None:
    """After the timeout."""
    box: Any = FailingMailbox(mailbox_with(*map(result, range(15))), approximate_count=[MailboxError("away")])
    assert collect_results(box, 20, timeout_seconds=0).total == 10
