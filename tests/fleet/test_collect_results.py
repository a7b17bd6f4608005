"""`collect_results`: each request once, until all are there or time is up."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import (
    EvalResult,
    InMemoryMailbox,
    ProgressEvent,
    Sample,
    Score,
    Trial,
    collect_results,
    submit_dataset,
)
from proctor.errors import ConfigError, MailboxError
from proctor.records.trial import Delivery, Failure
from proctor.wiring.dispatch import Submission
from tests.fleet.surroundings import LONG, Timed, Troubled, boxes, loop_for, results_in, within
from tests.surroundings import ManualClock, samples, shout


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


def test_the_deadline_is_kept_on_the_monotonic_clock() -> None:
    """What is left is waited for, not what has passed; and the wall clock has no say."""
    clock = ManualClock()
    box: Any = Timed(mailbox_with(result(0)), clock, receive=5.0, acknowledge_all=5.0)
    report = within(LONG, lambda: collect_results(box, 2, timeout_seconds=10.5, clock=clock))
    # 10.5 s are left at first, 0.5 s after a receive and an acknowledgement, then none.
    assert box.waits == [1.0, 0.5, 0.0]
    assert report.total == 1
    assert report.metadata is not None
    assert report.metadata.duration_seconds == clock.seconds
    assert report.metadata.status == "interrupted"


def test_a_report_of_what_there_is_names_what_is_missing() -> None:
    """Three of five requests were answered when the time was up."""
    requests, results = boxes()
    submission = submit_dataset(samples(5), requests)
    loop_for(shout, requests, results, batch_size=3).run(max_iterations=1)
    report = collect_results(results, submission, timeout_seconds=0)
    assert [found.sample_id for found in report.results] == ["s0", "s1", "s2"]
    assert (report.total, report.pass_rate) == (3, 1.0)
    assert report.metadata is not None
    assert report.metadata.warnings == ("2 of 5 results are missing: s3, s4",)
    assert (report.metadata.total, report.metadata.status) == (5, "interrupted")
    loop_for(shout, requests, results).run(until_empty=True)
    rest = collect_results(results, 2, timeout_seconds=5)
    assert [found.sample_id for found in rest.results] == ["s3", "s4"]


def test_of_many_missing_ones_twenty_are_named() -> None:
    """And how many more there are; without names only their number is told."""
    requests, results = boxes()
    submission = submit_dataset(samples(23), requests)
    report = collect_results(results, submission, timeout_seconds=0)
    assert report.metadata is not None
    [said] = report.metadata.warnings
    assert said.startswith("23 of 23 results are missing: s0, s1, ")
    assert said.endswith("s19, … and 3 more")
    nameless = collect_results(results, 4, timeout_seconds=0)
    assert nameless.metadata is not None
    assert nameless.metadata.warnings == ("4 of 4 results are missing",)


def test_when_the_time_is_up_what_is_there_is_still_taken() -> None:
    """Twenty-five wait and no time is given: all are in the report, not the ten of one receive."""
    report = collect_results(mailbox_with(*map(result, range(25))), 30, timeout_seconds=0)
    assert report.total == 25


def test_a_long_poll_ends_with_the_last_result() -> None:
    """Nothing is waited for once all are there."""
    report = within(
        LONG, lambda: collect_results(mailbox_with(*map(result, range(3))), 3, timeout_seconds=600)
    )
    assert report.total == 3


@pytest.mark.parametrize("order", list(permutations(["error", "success", "success again"])))
def test_a_success_wins_over_an_error_in_every_order(order: tuple[str, ...]) -> None:
    """One result is counted, the success; the report says that others came."""
    made = {"error": result(0, error="no"), "success": result(0), "success again": result(0)}
    box = mailbox_with(*(made[name] for name in order))
    report = within(LONG, lambda: collect_results(box, 2, timeout_seconds=0.2))
    assert [found.success for found in report.results] == [True]
    assert report.metadata is not None
    assert report.metadata.warnings == (
        "workers: 2 results came a second time and were not counted again",
        "1 of 2 results are missing",
    )
    assert box.approximate_count() == 0


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=25))
def test_each_request_is_counted_once_whatever_comes(told: list[tuple[int, bool]]) -> None:
    """As many results as requests; one is an error only if no success came for it."""
    box = mailbox_with(*(result(number, error="" if good else "no") for number, good in told))
    report = collect_results(box, 6, timeout_seconds=0)
    expected = {f"s{n}": any(good for m, good in told if m == n) for n, _ in told}
    assert {found.sample_id: found.success for found in report.results} == expected
    assert report.total == len(expected)
    assert box.approximate_count() == 0


def test_results_of_other_runs_are_left_for_their_collector() -> None:
    """Each of two collectors that share a mailbox finds all of its own."""
    clock = ManualClock()
    requests, results = boxes(clock=clock)
    first = submit_dataset(samples(2), requests)
    second = submit_dataset(samples(3), requests)
    loop_for(shout, requests, results).run(max_iterations=1)
    report = collect_results(results, second, timeout_seconds=5)
    assert {found.delivery.run_id for found in report.results if found.delivery} == {second.run_id}
    assert report.total == 3
    assert results.approximate_count() == 2
    # They were given back for a moment; then their own collector has them.
    clock.seconds += 5.1
    report = within(LONG, lambda: collect_results(results, first, timeout_seconds=10))
    assert report.total == 2


def test_a_result_without_a_delivery_is_told_by_its_sample() -> None:
    """Whoever sends results by hand need not know of requests; of a run they are none."""
    by_hand = EvalResult(Trial(Sample("s1", "in"), "out"), {"e": Score(1.0, True)})
    report = collect_results(mailbox_with(by_hand, by_hand), 2, timeout_seconds=0)
    assert report.total == 1
    box = mailbox_with(by_hand)
    assert collect_results(box, 1, run_id="r1", timeout_seconds=0).total == 0
    assert box.approximate_count() == 1


def test_dead_letters_become_error_results() -> None:
    """Not a hang: the sample is an error that says why it was set aside, and what went before."""
    requests, results = boxes(max_deliveries=2)
    submission = submit_dataset(samples(1), requests)
    for _ in range(2):
        [message] = requests.receive()
        message.nack(reason="no memory")
    assert requests.receive() == []
    report = within(LONG, lambda: collect_results(results, submission, requests=requests, timeout_seconds=15))
    [found] = report.results
    assert found.error == (
        "DeadLetter: it was delivered 2 times and never acknowledged; "
        "delivery 1: no memory; delivery 2: no memory"
    )
    assert found.delivery is not None
    assert found.delivery.count == 2
    assert report.metadata is not None
    assert report.metadata.warnings == (
        "workers: 1 request ended as a dead letter: delivered too often, or rejected (s0)",
    )
    # Also where nothing is waited for.
    again = collect_results(results, submission, requests=requests, timeout_seconds=0)
    assert again.errors == 1


def test_dead_letters_are_found_behind_those_of_others() -> None:
    """A mailbox that is used for long has many; the newest of more than a thousand are seen."""
    requests, results = boxes()
    submit_dataset(samples(1_050), requests)
    submission = submit_dataset(samples(2), requests)
    while messages := requests.receive(max_messages=10):
        for message in messages:
            message.reject("no")
    report = collect_results(results, submission, requests=requests, timeout_seconds=0)
    assert report.errors == 2


def test_an_answer_is_better_than_a_dead_letter() -> None:
    """A worker that was given up may still answer: then the letter is not counted."""
    requests, results = boxes()
    submission = submit_dataset(samples(1), requests)
    [message] = requests.receive()
    message.reject("given up")
    [key] = submission.samples
    trial = Trial(Sample("s0", "in"), "out")
    results.send(EvalResult(trial, delivery=Delivery(submission.run_id, key)))
    report = collect_results(results, submission, requests=requests, timeout_seconds=5)
    assert [found.success for found in report.results] == [True]


def test_whose_dead_letters_are_meant_must_be_known() -> None:
    """A number of results says nothing of the run they belong to."""
    requests, results = boxes()
    with pytest.raises(ConfigError, match="whose dead letters") as refused:
        collect_results(results, 3, requests=requests)
    assert "submit_dataset" in refused.value.fix


def test_progress_begins_at_nothing_never_falls_and_ends_at_a_hundred() -> None:
    """Three results of two evaluators each, then an error: a quarter for each of them."""
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


def test_progress_of_a_part_says_that_it_failed() -> None:
    """Two callbacks hear the same; the end is `failed` when something is missing."""
    one: list[ProgressEvent] = []
    other: list[ProgressEvent] = []
    collect_results(mailbox_with(result(0)), 2, on_progress=[one.append, other.append], timeout_seconds=0)
    assert one == other
    assert one[-1].status == "failed"
    assert all(a.progress <= b.progress for a, b in pairwise(one))


def test_a_poison_result_is_set_aside_and_the_others_are_collected() -> None:
    """In a mailbox that was not told its type, where anything may lie."""
    box: InMemoryMailbox[Any] = InMemoryMailbox("results")
    box.send_all([{"no": "result"}, result(0), "garbage"])
    report = within(LONG, lambda: collect_results(box, 1, timeout_seconds=5))
    assert report.total == 1
    reasons = [letter.reason for letter in box.dead_letters()]
    assert reasons == [
        "it is not a result: Expected `object`, got `str`",
        "it is not a result: Object contains unknown field `no`",
    ]


def test_configurations_come_out_side_by_side() -> None:
    """A report of several configurations has a table for each."""
    box = mailbox_with(result(0, configuration="a"), result(1, configuration="b"))
    report = collect_results(box, 2, timeout_seconds=5)
    assert set(report.by_configuration) == {"a", "b"}
    assert report.by_configuration["a"]["e0.mean"].value == 1.0


def test_results_come_in_the_order_of_the_dataset() -> None:
    """However they were finished, and although errors are decided last."""
    requests, results = boxes()
    submission = submit_dataset(samples(4), requests)
    run = submission.run_id
    found = [
        EvalResult(Trial(Sample(f"s{n}", "in"), None, error), delivery=Delivery(run, f"{run}-{n}"))
        for n, error in ((3, None), (0, Failure("E", "no")), (2, None), (1, None))
    ]
    results.send_all(found)
    report = collect_results(results, submission, timeout_seconds=5)
    assert [one.sample_id for one in report.results] == ["s0", "s1", "s2", "s3"]


def test_what_cannot_be_acknowledged_comes_again_and_is_not_counted_again() -> None:
    """The server fails at the acknowledgement: the report is whole, the results stay."""
    inner = mailbox_with(result(0), result(1, error="no"))
    box: Any = Troubled(inner, acknowledge_all=[MailboxError("the server is away")] * 9)
    assert collect_results(box, 2, timeout_seconds=5).total == 2
    assert inner.approximate_count() == 2


def test_a_stranger_that_cannot_be_given_back_is_no_trouble() -> None:
    """Its lease runs out by itself."""
    box: Any = Troubled(mailbox_with(result(0, run_id="r2"), result(0)), nack=[MailboxError("away")])
    assert collect_results(box, 1, run_id="r1", timeout_seconds=5).total == 1


def test_an_error_whose_lease_ran_out_meanwhile_is_no_second_result() -> None:
    """Errors are acknowledged at the end, and may come back to their own collector before."""
    clock = ManualClock()
    inner = InMemoryMailbox("results", EvalResult, clock=clock)
    inner.send(result(0, error="no"))

    box: Any = Timed(inner, clock, receive=61.0)
    report = collect_results(box, 2, timeout_seconds=200, clock=clock)
    assert report.errors == 1
    assert report.metadata is not None
    assert report.metadata.warnings == ("1 of 2 results are missing",)
    assert results_in(inner) == []


def test_what_others_left_does_not_prolong_the_wait() -> None:
    """Thousands of results of another run lie there when the time is up: one look, no search."""
    inner = mailbox_with(*(result(n, run_id="other") for n in range(3_000)))
    box: Any = Troubled(inner)
    submission = Submission("mine", {"mine-0": "s0"})
    report = within(LONG, lambda: collect_results(box, submission, timeout_seconds=0))
    assert (report.total, box.calls.count("receive")) == (0, 1)
    assert inner.approximate_count() == 3_000


def test_what_comes_after_the_deadline_is_left() -> None:
    """Workers answer quicker than one can collect: what was there when the time was up is taken."""
    inner = mailbox_with(*map(result, range(25)))
    numbers = iter(range(25, 10_000))

    class Busy(Troubled):
        def stumble(self, name: str) -> None:
            super().stumble(name)
            if name == "receive":
                inner.send_all([result(next(numbers)) for _ in range(10)])

    box: Any = Busy(inner)
    report = within(LONG, lambda: collect_results(box, 10_000, timeout_seconds=0))
    assert (report.total, box.calls.count("receive")) == (30, 3)


def test_a_mailbox_that_cannot_be_counted_is_looked_at_once_more() -> None:
    """When the time is up."""
    box: Any = Troubled(mailbox_with(*map(result, range(15))), approximate_count=[MailboxError("away")])
    assert collect_results(box, 20, timeout_seconds=0).total == 10
