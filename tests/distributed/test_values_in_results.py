"""Results are received unchanged, whatever values they contain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from proctor import EvalResult, InMemoryMailbox, Sample
from proctor.distributed.batches import decode_body
from proctor.distributed.ray_actor import TrialActor, TrialResponse
from proctor.history.payload import decode_result, encode_result
from proctor.mailboxes.core import BodyCodec
from proctor.records import codec
from proctor.records.lossless import restore_result
from proctor.records.mail import EvalRequest
from proctor.records.session import Session, ToolCall
from proctor.records.trial import Trial
from proctor.wiring.prepare import Evaluation, build_recipe
from tests.distributed.failing_mailboxes import boxes, loop_for, request, take_results, with_timeout
from tests.engine.test_rescored_as_evaluated import same, values


def result_of(value: Any) -> EvalResult:
    """A result with this value in every field that may hold anything."""
    session = Session([ToolCall("search", {"query": value}, value)])
    sample = Sample("1", value, value, {"note": value})
    return EvalResult(Trial(sample, value, session=session, raw_output=value), {}, {"j": session})


def assert_same(received: EvalResult, sent: EvalResult) -> None:
    item, other = received.trial, sent.trial
    assert same(item.output, other.output)
    assert same(item.raw_output, other.raw_output)
    assert same(item.sample.input, other.sample.input)
    assert same(item.sample.expected, other.sample.expected)
    assert same(item.sample.metadata, other.sample.metadata)
    for here, there in ((item.session, other.session), (received.sessions["j"], other.session)):
        assert here is not None
        assert there is not None
        (first,), (second,) = there[ToolCall], here[ToolCall]
        assert same(second.arguments, first.arguments)
        assert same(second.result, first.result)


@given(values)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_a_result_is_received_unchanged(value: Any) -> None:
    """Through mailboxes with and without a type, and the history: NaN, tuples, sets and keys."""
    sent = result_of(value)
    assert_same(BodyCodec(EvalResult).read(BodyCodec(EvalResult).write(sent)), sent)
    plain: BodyCodec[Any] = BodyCodec(None)
    assert_same(decode_body(plain.read(plain.write(sent)), EvalResult), sent)
    assert_same(decode_result(encode_result(sent)[0]), sent)


def test_a_reformatted_message_is_restored() -> None:
    """A proxy may indent messages."""
    data = codec.encode_pretty(codec.decode(BodyCodec(EvalResult).write(result_of((1, 2))), dict))
    assert_same(BodyCodec(EvalResult).read(data), result_of((1, 2)))


OUTPUTS = [float("nan"), (1, 2), {"pair": (1, float("inf"))}, {1: "a"}, {"a"}, b"\x00\xff"]


@pytest.mark.parametrize("output", OUTPUTS, ids=repr)
def test_the_output_of_a_worker_arrives_unchanged(output: Any) -> None:
    """From the target, through a mailbox with JSON, to the collector."""
    requests, results = boxes()
    requests.send(request(1), reply_to="results")
    with_timeout(20, lambda: loop_for(lambda _: output, requests).run(until_empty=True))
    [result] = take_results(results)
    assert same(result.output, output)


def test_a_typed_mailbox_of_results_hides_type_tags() -> None:
    """Readers get the output itself."""
    box: InMemoryMailbox[EvalResult] = InMemoryMailbox("results", EvalResult)
    box.send(EvalResult(Trial(Sample("1", "2 + 2"), (4,))))
    [message] = box.receive()
    assert message.body.output == (4,)


def test_the_output_of_a_ray_actor_arrives_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tuple with NaN stays one, although the response is JSON."""
    (tmp_path / "exam.py").write_text("def pair(text):\n    return (text, float('nan'))\n")
    monkeypatch.chdir(tmp_path)
    evaluation = Evaluation("exam.py:pair", (), ["exact_match"])
    actor = TrialActor("proctor.wiring.prepare:build_setup", build_recipe(evaluation))

    async def answer() -> bytes:
        await actor.prepare()
        try:
            return await actor.trial(codec.encode(EvalRequest(Sample("1", "a", "a"))))
        finally:
            await actor.close()

    result = codec.decode(asyncio.run(answer()), TrialResponse).result
    assert result is not None
    assert same(restore_result(result).output, ("a", float("nan")))
