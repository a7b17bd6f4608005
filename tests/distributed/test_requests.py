"""What becomes of a request: a result, an error, a dead letter, or a return to other workers."""

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
from tests.distributed.failing_mailboxes import (
    LONG,
    FailingMailbox,
    boxes,
    eventually,
    loop_for,
    recording_target,
    request,
    running,
    take_results,
    with_timeout,
)
from tests.support import ManualClock, samples, shout


def test_results_equal_those_of_a_local_run() -> None:
    """Scores, usage, session and configuration of every sample."""

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
    with_timeout(LONG, lambda: loop.run(max_iterations=1))
    report = collect_results(results, submission, timeout_seconds=5)
    assert [comparable_result(result) for result in report.results] == [
        comparable_result(result) for result in local.results
    ]
    assert {name: value.value for name, value in report.metrics.items() if "latency" not in name} == {
        name: value.value for name, value in local.metrics.items() if "latency" not in name
    }
    assert set(report.by_configuration) == {"plain", "loud"}
    assert [result.delivery for result in report.results][1].request_id == "r7-1"  # type: ignore[union-attr]


def comparable_result(result: EvalResult) -> Any:
    """A result without times and delivery."""
    trial = result.trial
    error = None if trial.error is None else (trial.error.kind, trial.error.message)
    session = [] if trial.session is None else [_timeless(event) for event in trial.session.events]
    return (
        trial.sample, trial.output, error, trial.configuration, trial.epoch, trial.usage, session,
        result.scores,
    )  # fmt: skip


def _timeless(event: Any) -> Any:
    output = msgspec.to_builtins(event)
    return {key: value for key, value in output.items() if not key.endswith(("at", "ms"))}


def test_targets_of_every_kind() -> None:
    """Sync functions and objects with `execute` run in threads, async ones in the loop."""

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
        with_timeout(LONG, functools.partial(loop.run, max_iterations=1))
        outputs += [found.output for found in take_results(results)]
    blocking = "word 0, proctor-call"
    assert outputs[:2] == [blocking, blocking]
    assert outputs[2] != blocking


def test_a_failing_target_gives_an_error_result() -> None:
    """With message, traceback and duration; the request is not repeated."""
    requests, results = boxes()
    calls: list[str] = []

    def broken(text: str) -> str:
        calls.append(text)
        time.sleep(0.01)
        raise ConnectionError("the line is dead")

    requests.send(request(0))
    summary = with_timeout(LONG, lambda: loop_for(broken, requests, results).run(until_empty=True))
    assert (summary.sent, summary.errors, len(calls)) == (1, 1, 1)
    [result] = take_results(results)
    assert result.error == "ConnectionError: the line is dead"
    assert result.trial.error is not None
    assert "in broken" in result.trial.error.traceback
    assert (result.latency_ms or 0) >= 10
    assert requests.dead_letters() == []


def test_retries_can_be_set() -> None:
    """The third attempt succeeds."""
    requests, results = boxes()
    calls: list[str] = []

    def flaky(text: str) -> str:
        calls.append(text)
        if len(calls) < 3:
            raise ConnectionError("the line is dead")
        return text.upper()

    requests.send(request(0))
    loop = loop_for(flaky, requests, results, retries=2, retry_delay=0.001)
    with_timeout(LONG, lambda: loop.run(max_iterations=1))
    [result] = take_results(results)
    assert (result.success, result.trial.attempts, result.passed) == (True, 3, True)


def test_a_timeout_is_an_error_and_the_next_sample_runs() -> None:
    """An async target is cancelled, the thread of a sync target is abandoned."""
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
        with_timeout(LONG, functools.partial(loop.run, until_empty=True))
        slow, quick = take_results(results)
        assert slow.error == "TimeoutError: the target took longer than 1 s"
        assert quick.output == "WORD 1"
    release.set()


def test_a_message_that_is_not_a_request_is_rejected() -> None:
    """The dead letter has the reason; other requests are answered."""
    requests: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    results: InMemoryMailbox[EvalResult] = InMemoryMailbox("results")
    requests.send_all(["garbage", request(0), {"sample": {"id": 1}}])
    summary = with_timeout(LONG, lambda: loop_for(shout, requests, results).run(until_empty=True))
    assert summary.sent == 1
    reasons = [dead_letter.reason for dead_letter in requests.dead_letters()]
    assert reasons == [
        "it is not a valid evaluation request: sample.id must be a string, got an integer",
        "it is not a valid evaluation request: it must be a mapping, got a string",
    ]


def test_a_failed_rejection_does_not_stop_the_loop() -> None:
    """The message comes again when its lease ends."""
    inner: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    requests: Any = FailingMailbox(inner, reject=[MailboxError("away")])
    results: InMemoryMailbox[EvalResult] = InMemoryMailbox("results")
    inner.send_all(["garbage", request(0)])
    loop = loop_for(shout, requests, results, lease_seconds=0.1)
    assert with_timeout(LONG, lambda: loop.run(until_empty=True)).sent >= 1
    assert len(inner.dead_letters()) == 1


def test_a_request_without_reply_to_is_rejected() -> None:
    """If the loop has no mailbox for results either."""
    requests, _ = boxes()
    calls: list[str] = []
    requests.send(request(0))
    requests.send(request(1), reply_to="answers")
    loop = loop_for(recording_target(calls), requests)
    assert with_timeout(LONG, lambda: loop.run(until_empty=True)).sent == 1
    assert calls == ["word 1"]
    [letter] = requests.dead_letters()
    assert letter.reason == "it has no reply_to"
    [result] = take_results(requests.open_mailbox("answers", EvalResult))
    assert result.sample_id == "s1"


def test_a_request_for_other_code_is_returned() -> None:
    """Another worker answers it; without one, the dead letter has the reasons."""
    clock = ManualClock()
    requests, results = boxes(max_deliveries=2, clock=clock)
    requests.send_all([request(0, expects="other@1234abcd"), request(1)])
    loop = loop_for(shout, requests, results)
    summary = with_timeout(LONG, lambda: loop.run(max_iterations=1))
    assert summary.sent == 1
    # It is left for a while, so that another may take it first.
    assert requests.receive() == []
    clock.seconds += MISMATCH_SECONDS + 0.1
    with_timeout(LONG, lambda: loop.run(max_iterations=1))
    clock.seconds += MISMATCH_SECONDS + 0.1
    with_timeout(LONG, lambda: loop.run(max_iterations=1))
    [letter] = requests.dead_letters()
    assert letter.reason == "it was delivered 2 times and never acknowledged"
    assert len(letter.history) == 2
    for line in letter.history:
        assert "this worker runs 'shout@" in line
        assert "exact_match@" in line
        assert "the request is for 'other@1234abcd'" in line


def test_a_mismatch_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """However many requests there are."""
    requests, results = boxes()
    requests.send_all([request(n, expects="other") for n in range(3)])
    with_timeout(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1))
    [text] = [entry.message for entry in caplog.records if "this worker runs" in entry.message]
    assert text.endswith("start this worker with the code and the Python version of the run")


def test_a_worker_with_other_code_pauses_and_can_be_stopped(caplog: pytest.LogCaptureFixture) -> None:
    """Other workers find the requests at once, and their deliveries are not counted."""
    requests, results = boxes()
    requests.send_all([request(n, expects="other") for n in range(2)])
    with running(loop_for(shout, requests, results)):
        eventually(lambda: "this worker runs" in caplog.text)
        eventually(lambda: requests.approximate_count() == 2)
        messages = requests.open_mailbox("requests", EvalRequest).receive(max_messages=10)
        assert [message.delivery_count for message in messages] == [1, 1]


def test_workers_with_other_code_do_not_block_requests() -> None:
    """One slow worker with the right code and two idle others: everything is answered."""
    requests, results = boxes(max_deliveries=2)

    def slowly(text: str) -> str:
        time.sleep(0.05)
        return text.upper()

    right = loop_for(slowly, requests, results, concurrency=1)
    requests.send_all([request(n, expects=right._worker.expects) for n in range(20)])
    with running(right, loop_for(shout, requests, results), loop_for(str.lower, requests, results)):
        eventually(lambda: results.approximate_count() == 20)
    assert list(requests.dead_letters()) == []
    assert all(result.delivery.count == 1 for result in take_results(results))  # type: ignore[union-attr]


def test_a_request_for_the_same_code_runs() -> None:
    """The loop knows what it expects."""
    requests, results = boxes()
    loop = loop_for(shout, requests, results)
    requests.send(request(0, expects=loop._worker.expects))
    assert with_timeout(LONG, lambda: loop.run(max_iterations=1)).sent == 1


def test_stop_run_ends_the_loop_and_returns_its_requests() -> None:
    """The trial is not an error: another worker runs it."""
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
        with_timeout(LONG, loop.run)
    assert len(take_results(results)) == 2
    rest = [message.body.sample.id for message in requests.receive(max_messages=10)]
    assert len(rest) == 3
    assert loop_for(shout, requests, results).run(max_iterations=1).sent == 0


def test_an_invalid_lease_is_an_error() -> None:
    """The loop ends with it."""
    requests, results = boxes()
    loop = loop_for(shout, requests, results, lease_seconds=50_000)
    with pytest.raises(ConfigError, match="got 50000"):
        with_timeout(LONG, lambda: loop.run(max_iterations=1))


def test_faults_are_reported_when_a_loop_is_created() -> None:
    """All at once, as for `evaluate`."""
    requests, results = boxes()
    with pytest.raises(ConfigError) as refused:
        EvalLoop(
            loop="nowhere.py:nobody", evaluator="exact_macth", requests=requests, results=results,
            concurrency=0,
        )  # fmt: skip
    assert "3 problems" in str(refused.value)
    assert "did you mean 'exact_match'?" in str(refused.value)


def test_typed_inputs_keep_their_type() -> None:
    """A typed mailbox returns samples with objects."""
    kind: Any = EvalRequest[Problem, int]
    requests: InMemoryMailbox[EvalRequest[Problem, int]] = InMemoryMailbox("requests", kind)
    results = requests.open_mailbox("results", EvalResult)
    submit_dataset([Sample("1", Problem(3, 4), 7)], requests)

    def add(problem: Problem) -> int:
        assert isinstance(problem, Problem)
        return problem.a + problem.b

    with_timeout(LONG, lambda: loop_for(add, requests, results).run(max_iterations=1))
    [result] = take_results(results)
    assert result.passed
    requests.send(EvalRequest({"id": "2", "input": {"a": "no"}}))  # type: ignore[arg-type]
    with_timeout(LONG, lambda: loop_for(add, requests, results).run(max_iterations=1))
    [letter] = requests.dead_letters()
    assert "sample.input.a must be an integer, got a string" in letter.reason


@dataclass(frozen=True)
class Problem:
    """Two numbers to add."""

    a: int
    b: int


def test_outputs_that_json_does_not_support_arrive_as_their_repr() -> None:
    """With their delivery, so that the request counts as answered."""
    requests, results = boxes()
    submission = submit_dataset(samples(1), requests)
    loop = loop_for(lambda text: {1, "a"}, requests, results)
    with_timeout(LONG, lambda: loop.run(max_iterations=1))
    report = collect_results(results, submission, timeout_seconds=0)
    [result] = report.results
    assert result.delivery is not None
    assert result.delivery.run_id == submission.run_id


def test_a_loop_can_be_used_again() -> None:
    """As in the spec: submit, run, collect, twice."""
    requests, results = boxes()
    loop = loop_for(shout, requests, results)
    for count in (3, 5):
        submission = submit_dataset(samples(count), requests)
        with_timeout(LONG, lambda: loop.run(max_iterations=1))
        assert collect_results(results, submission, timeout_seconds=5).total == count


def test_requests_that_are_sent_again_have_the_same_ids() -> None:
    """A run that is submitted twice is counted once."""
    requests, results = boxes()
    first = submit_dataset(samples(150), requests, run_id="r1")
    assert submit_dataset(samples(150), requests, run_id="r1") == first
    assert len(first) == 150
    assert first.samples["r1-149"] == "s149"
    with_timeout(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1))
    report = collect_results(results, first, timeout_seconds=0)
    assert report.total == 150


def test_an_invalid_dataset_is_refused_before_anything_is_sent() -> None:
    """All faults at once, and the mailbox stays empty."""
    requests, _ = boxes()
    with pytest.raises(DatasetError):
        submit_dataset([{"id": "1", "input": "a"}, {"id": "1", "input": "b"}], requests)
    assert requests.approximate_count() == 0


def test_a_body_that_raises_an_error_is_rejected() -> None:
    """The next request is answered."""

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
    tally = with_timeout(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1))
    assert tally.sent == 1
    assert len(requests.dead_letters()) == 3
