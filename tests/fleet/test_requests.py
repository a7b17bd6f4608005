"""What comes out of a request: results, errors, dead letters, or another worker's turn."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from proctor import (
    EvalLoop,
    EvalRequest,
    EvalResult,
    InMemoryMailbox,
    ModelCall,
    Sample,
    ToolCall,
    Usage,
    all_of,
    collect_results,
    contains,
    evaluate,
    exact_match,
    record,
    submit_dataset,
    token_usage_under,
    tool_called,
)
from proctor.distributed.inbox import MISMATCH_SECONDS
from proctor.errors import ConfigError, DatasetError, MailboxError, StopRun
from tests.fleet.surroundings import (
    LONG,
    Troubled,
    at_work,
    boxes,
    eventually,
    loop_for,
    noting,
    request,
    results_in,
    within,
)
from tests.surroundings import ManualClock, samples, shout


def test_the_same_comes_out_as_of_a_local_run() -> None:
    """Scores, usage, session and configuration of every sample, with judges of the session too."""

    def target(text: str, *, suffix: str = "") -> str:
        record(ToolCall("search", {"q": text}, result="found"))
        record(ModelCall("m", usage=Usage(input_tokens=5, output_tokens=2)))
        if text == "word 3":
            raise ValueError("no threes")
        return text.upper() + suffix

    evaluators = [exact_match, all_of(contains, tool_called("search")), token_usage_under(max_tokens=7)]
    configurations = {"plain": {}, "loud": {"suffix": "!"}}
    local = evaluate(
        target, samples(5), evaluators, configurations=configurations, epochs=2, history=False,
        progress=False,
    )  # fmt: skip
    requests, results = boxes()
    submission = submit_dataset(samples(5), requests, configurations=configurations, epochs=2, run_id="r7")
    loop = loop_for(target, requests, results, evaluators)
    within(LONG, lambda: loop.run(max_iterations=1))
    report = collect_results(results, submission, timeout_seconds=5)
    assert [_told(found) for found in report.results] == [_told(found) for found in local.results]
    assert {name: value.value for name, value in report.metrics.items() if "latency" not in name} == {
        name: value.value for name, value in local.metrics.items() if "latency" not in name
    }
    assert set(report.by_configuration) == {"plain", "loud"}
    assert [found.delivery for found in report.results][1].request_id == "r7-1"  # type: ignore[union-attr]


def _told(result: EvalResult) -> Any:
    """A result without what differs between two sittings: times, and how it came."""
    trial = result.trial
    error = None if trial.error is None else (trial.error.kind, trial.error.message)
    session = [] if trial.session is None else [_timeless(event) for event in trial.session.events]
    return (
        trial.sample, trial.output, error, trial.configuration, trial.epoch, trial.usage, session,
        result.scores,
    )  # fmt: skip


def _timeless(event: Any) -> Any:
    told = msgspec.to_builtins(event)
    return {key: value for key, value in told.items() if not key.endswith(("at", "ms"))}


def test_targets_of_every_kind() -> None:
    """Sync ones and objects with `execute` in threads, async ones in the loop."""

    class Agent:
        def execute(self, text: str) -> tuple[str, None]:
            return f"{text}, {threading.current_thread().name}", None

    async def waits(text: str) -> str:
        await asyncio.sleep(0)
        return f"{text}, {threading.current_thread().name}"

    requests, results = boxes()
    outputs = []
    for target in (Agent(), lambda text: f"{text}, {threading.current_thread().name}", waits):
        requests.send(request(0))
        loop = loop_for(target, requests, results)
        within(LONG, functools.partial(loop.run, max_iterations=1))
        outputs += [found.output for found in results_in(results)]
    blocking = "word 0, proctor-call"
    assert outputs[:2] == [blocking, blocking]
    assert outputs[2] != blocking


def test_a_failing_target_gives_an_error_result_and_is_not_tried_again() -> None:
    """With its message, where it happened and how long it took; the request is done."""
    requests, results = boxes()
    calls: list[str] = []

    def broken(text: str) -> str:
        calls.append(text)
        time.sleep(0.01)
        raise ConnectionError("the line is dead")

    requests.send(request(0))
    tally = within(LONG, lambda: loop_for(broken, requests, results).run(until_empty=True))
    assert (tally.sent, tally.errors, len(calls)) == (1, 1, 1)
    [found] = results_in(results)
    assert found.error == "ConnectionError: the line is dead"
    assert found.trial.error is not None
    assert "in broken" in found.trial.error.traceback
    assert (found.latency_ms or 0) >= 10
    assert requests.dead_letters() == []


def test_retries_are_an_option() -> None:
    """Two more attempts after an error that may pass: the third one succeeds."""
    requests, results = boxes()
    calls: list[str] = []

    def flaky(text: str) -> str:
        calls.append(text)
        if len(calls) < 3:
            raise ConnectionError("the line is dead")
        return text.upper()

    requests.send(request(0))
    loop = loop_for(flaky, requests, results, retries=2, retry_delay=0.001)
    within(LONG, lambda: loop.run(max_iterations=1))
    [found] = results_in(results)
    assert (found.success, found.trial.attempts, found.passed) == (True, 3, True)


def test_a_target_that_takes_too_long_is_an_error_and_the_next_one_runs() -> None:
    """By cancellation where it is async, by giving up its thread where it is not."""
    release = threading.Event()

    async def endless(text: str) -> str:
        if text == "word 0":
            await asyncio.sleep(60)
        return text.upper()

    def stuck(text: str) -> str:
        if text == "word 0":
            release.wait(LONG)
        return text.upper()

    for target in (endless, stuck):
        requests, results = boxes()
        requests.send_all([request(0), request(1)])
        loop = loop_for(target, requests, results, timeout=1.0, concurrency=1)
        within(LONG, functools.partial(loop.run, until_empty=True))
        slow, quick = results_in(results)
        assert slow.error == "TimeoutError: the target took longer than 1 s"
        assert quick.output == "WORD 1"
    release.set()


def test_what_is_no_request_is_set_aside_at_once_and_blocks_nobody() -> None:
    """Also in a mailbox that was not told its type: the reason stands with the dead letter."""
    requests: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    results: InMemoryMailbox[EvalResult] = InMemoryMailbox("results")
    requests.send_all(["garbage", request(0), {"sample": {"id": 1}}])
    tally = within(LONG, lambda: loop_for(shout, requests, results).run(until_empty=True))
    assert tally.sent == 1
    reasons = [letter.reason for letter in requests.dead_letters()]
    assert reasons == [
        "it is not an evaluation request: Expected `str`, got `int` - at `$.sample.id`",
        "it is not an evaluation request: Expected `object`, got `str`",
    ]


def test_what_cannot_be_set_aside_does_not_stop_the_loop() -> None:
    """It comes again when its lease is over."""
    inner: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    requests: Any = Troubled(inner, reject=[MailboxError("away")])
    results: InMemoryMailbox[EvalResult] = InMemoryMailbox("results")
    inner.send_all(["garbage", request(0)])
    loop = loop_for(shout, requests, results, lease_seconds=0.1)
    assert within(LONG, lambda: loop.run(until_empty=True)).sent == 1
    assert len(inner.dead_letters()) == 1


def test_a_request_that_says_no_place_for_its_answer_is_set_aside_unrun() -> None:
    """Where the loop has no mailbox for results either: it could only be run in vain."""
    requests, _ = boxes()
    calls: list[str] = []
    requests.send(request(0))
    requests.send(request(1), reply_to="answers")
    loop = loop_for(noting(calls), requests)
    assert within(LONG, lambda: loop.run(until_empty=True)).sent == 1
    assert calls == ["word 1"]
    [letter] = requests.dead_letters()
    assert letter.reason == "it has no reply_to"
    [found] = results_in(requests.beside("answers", EvalResult))
    assert found.sample_id == "s1"


def test_a_request_for_other_code_goes_back_and_says_why() -> None:
    """Another worker, which runs it, answers; if there is none the dead letter tells the story."""
    clock = ManualClock()
    requests, results = boxes(max_deliveries=2, clock=clock)
    requests.send_all([request(0, expects="other@1234abcd"), request(1)])
    loop = loop_for(shout, requests, results)
    tally = within(LONG, lambda: loop.run(max_iterations=1))
    assert tally.sent == 1
    # It is left for a while, so that another may take it first.
    assert requests.receive() == []
    clock.seconds += MISMATCH_SECONDS + 0.1
    within(LONG, lambda: loop.run(max_iterations=1))
    clock.seconds += MISMATCH_SECONDS + 0.1
    within(LONG, lambda: loop.run(max_iterations=1))
    [letter] = requests.dead_letters()
    assert letter.reason == "it was delivered 2 times and never acknowledged"
    assert len(letter.history) == 2
    for line in letter.history:
        assert "this worker runs 'shout@" in line
        assert "exact_match@" in line
        assert "the request is for 'other@1234abcd'" in line


def test_a_misfit_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand of them do not fill the log."""
    requests, results = boxes()
    requests.send_all([request(n, expects="other") for n in range(3)])
    within(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1))
    [said] = [entry.message for entry in caplog.records if "this worker runs" in entry.message]
    assert said.endswith("start it from the same code, on the same Python")


def test_a_worker_among_strangers_leaves_them_alone_for_a_while_and_still_stops_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It rests, and others find all that is there at once; its look was no delivery."""
    requests, results = boxes()
    requests.send_all([request(n, expects="other") for n in range(2)])
    with at_work(loop_for(shout, requests, results)):
        eventually(lambda: "this worker runs" in caplog.text)
        eventually(lambda: requests.approximate_count() == 2)
        found = requests.beside("requests", EvalRequest).receive(max_messages=10)
        assert [message.delivery_count for message in found] == [1, 1]


def test_workers_of_another_kind_do_not_keep_a_busy_one_from_its_requests() -> None:
    """One right worker that is slow, two wrong ones that are idle: all is answered."""
    requests, results = boxes(max_deliveries=2)

    def slowly(text: str) -> str:
        time.sleep(0.05)
        return text.upper()

    right = loop_for(slowly, requests, results, concurrency=1)
    requests.send_all([request(n, expects=right._worker.expects) for n in range(20)])
    with at_work(right, loop_for(shout, requests, results), loop_for(str.lower, requests, results)):
        eventually(lambda: results.approximate_count() == 20)
    assert list(requests.dead_letters()) == []
    assert all(result.delivery.count == 1 for result in results_in(results))  # type: ignore[union-attr]


def test_a_request_for_this_code_is_run() -> None:
    """The loop says what it expects, and requests that ask for that are its own."""
    requests, results = boxes()
    loop = loop_for(shout, requests, results)
    requests.send(request(0, expects=loop._worker.expects))
    assert within(LONG, lambda: loop.run(max_iterations=1)).sent == 1


def test_a_target_that_says_stop_ends_the_loop_and_returns_what_it_holds() -> None:
    """Idle hands do not keep it from ending, and the trial is no error: another worker has it."""
    requests, results = boxes()
    submit_dataset(samples(5), requests)
    calls: list[str] = []

    def target(text: str) -> str:
        calls.append(text)
        if len(calls) > 2:
            raise StopRun("the contract is over", fix="renew it")
        return text.upper()

    loop = loop_for(target, requests, results, concurrency=1)
    with pytest.raises(StopRun, match="the contract is over"):
        within(LONG, loop.run)
    assert len(results_in(results)) == 2
    rest = [message.body.sample.id for message in requests.receive(max_messages=10)]
    assert len(rest) == 3
    assert loop_for(shout, requests, results).run(max_iterations=1).sent == 0


def test_a_lease_that_no_mailbox_grants_is_told() -> None:
    """The loop ends with what is wrong, not with nothing done."""
    requests, results = boxes()
    loop = loop_for(shout, requests, results, lease_seconds=50_000)
    with pytest.raises(ConfigError, match="visibility_timeout: it is 50000"):
        within(LONG, lambda: loop.run(max_iterations=1))


def test_what_is_wrong_is_told_when_the_loop_is_made() -> None:
    """Every fault at once, as for `evaluate`."""
    requests, results = boxes()
    with pytest.raises(ConfigError) as refused:
        EvalLoop(
            loop="nowhere.py:nobody", evaluator="exact_macth", requests=requests, results=results,
            concurrency=0,
        )  # fmt: skip
    assert "3 faults" in str(refused.value)
    assert "did you mean 'exact_match'?" in str(refused.value)


def test_typed_inputs_come_in_their_own_type() -> None:
    """A mailbox that was told the types of samples hands them over as objects."""
    kind: Any = EvalRequest[Problem, int]
    requests: InMemoryMailbox[EvalRequest[Problem, int]] = InMemoryMailbox("requests", kind)
    results = requests.beside("results", EvalResult)
    submit_dataset([Sample("1", Problem(3, 4), 7)], requests)

    def add(problem: Problem) -> int:
        assert isinstance(problem, Problem)
        return problem.a + problem.b

    within(LONG, lambda: loop_for(add, requests, results).run(max_iterations=1))
    [found] = results_in(results)
    assert found.passed
    requests.send(EvalRequest({"id": "2", "input": {"a": "no"}}))  # type: ignore[arg-type]
    within(LONG, lambda: loop_for(add, requests, results).run(max_iterations=1))
    [letter] = requests.dead_letters()
    assert "Expected `int`, got `str` - at `$.sample.input.a`" in letter.reason


@dataclass(frozen=True)
class Problem:
    """Two numbers to add."""

    a: int
    b: int


def test_outputs_that_json_cannot_hold_arrive_as_their_repr() -> None:
    """With their delivery, so that the request is known to be answered."""
    requests, results = boxes()
    submission = submit_dataset(samples(1), requests)
    loop = loop_for(lambda text: {1, "a"}, requests, results)
    within(LONG, lambda: loop.run(max_iterations=1))
    report = collect_results(results, submission, timeout_seconds=0)
    [found] = report.results
    assert found.delivery is not None
    assert found.delivery.run_id == submission.run_id


def test_one_loop_serves_one_dataset_after_another() -> None:
    """As in the spec: submit, run, collect, and again with the same loop."""
    requests, results = boxes()
    loop = loop_for(shout, requests, results)
    for count in (3, 5):
        submission = submit_dataset(samples(count), requests)
        within(LONG, lambda: loop.run(max_iterations=1))
        assert collect_results(results, submission, timeout_seconds=5).total == count


def test_requests_have_the_same_ids_however_often_they_are_sent() -> None:
    """A run that is submitted twice is answered twice and counted once."""
    requests, results = boxes()
    first = submit_dataset(samples(150), requests, run_id="r1")
    assert submit_dataset(samples(150), requests, run_id="r1") == first
    assert len(first) == 150
    assert first.samples["r1-149"] == "s149"
    within(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1))
    report = collect_results(results, first, timeout_seconds=0)
    assert report.total == 150


def test_a_dataset_with_faults_is_refused_before_anything_is_sent() -> None:
    """All faults at once, and the mailbox stays empty."""
    requests, _ = boxes()
    with pytest.raises(DatasetError):
        submit_dataset([{"id": "1", "input": "a"}, {"id": "1", "input": "b"}], requests)
    assert requests.approximate_count() == 0


def test_a_body_that_raises_when_it_is_read_is_set_aside() -> None:
    """Objects may raise anything when they are looked at; the next request is answered."""

    class Spiteful(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            raise RuntimeError("no")

        __iter__ = __getitem__ = keys = get = items  # type: ignore[assignment]

    requests: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    results: InMemoryMailbox[Any] = InMemoryMailbox("results")
    looped: dict[str, Any] = {}
    looped["sample"] = looped
    for body in (Spiteful(sample=1), looped, object(), request(0)):
        requests.send(body)
    tally = within(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1))
    assert tally.sent == 1
    assert len(requests.dead_letters()) == 3
