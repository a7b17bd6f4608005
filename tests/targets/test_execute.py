"""Objects with `execute`, as in the loop specification."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from proctor.errors import TargetError
from proctor.records.sample import Sample
from proctor.records.session import CustomEvent, Session, ToolCall, Usage
from proctor.records.trial import Reply
from proctor.targets.replies import convert_execute_result
from proctor.targets.resolve import from_execute
from tests.tables import each_row

SAMPLE: Sample[str, str] = Sample("1", "capital of France?")


@dataclass
class Response:
    output: Any
    usage: Any = None


@dataclass
class ForeignSession:
    events: Any = field(default_factory=list)


class QALoop:
    def execute(self, request: str, *, model: str = "small") -> tuple[Response, Session]:
        session = Session()
        session.append(ToolCall("search", {"q": request}, result=model))
        return Response("Paris"), session


def test_the_response_gives_the_output_and_the_session_is_kept() -> None:
    """`execute(input) -> (response, session)`: response.output is the output."""
    target = from_execute(QALoop(), "qa")
    reply = target.call(SAMPLE, {})
    assert target.blocking
    assert target.spec.kind == "execute"
    assert reply.output == "Paris"
    assert [call.name for call in reply.session[ToolCall]] == ["search"]


def test_options_go_to_execute() -> None:
    """Options reach `execute` by name and are checked against what it takes."""
    target = from_execute(QALoop(), "qa")
    assert target.call(SAMPLE, {"model": "large"}).session[ToolCall][0].result == "large"
    assert target.check_options({"modle": "large"}) == ["unknown option 'modle': did you mean 'model'?"]


def test_a_loop_that_yields_is_refused() -> None:
    """A generator has no single output to score, so the error comes before the run."""

    class Pieces:
        def execute(self, request: str) -> Iterator[str]:
            yield request

    with pytest.raises(TargetError, match=r"pieces.execute: the target is a generator"):
        from_execute(Pieces(), "pieces")


def test_an_async_execute_does_not_block() -> None:
    """An async loop gives its reply when awaited."""

    class AsyncLoop:
        async def execute(self, request: str) -> tuple[Response, None]:
            return Response(request.upper()), None

    target = from_execute(AsyncLoop(), "qa")
    assert not target.blocking
    assert asyncio.run(target.call(SAMPLE, {})) == Reply("CAPITAL OF FRANCE?")


def test_the_identity_is_that_of_execute() -> None:
    """Two loops with other code in `execute` are told apart."""

    class OtherLoop:
        def execute(self, request: str) -> str:
            return request

    ours, other = from_execute(QALoop(), "qa").spec, from_execute(OtherLoop(), "qa").spec
    assert ours.identity != other.identity
    assert ours.identity == from_execute(QALoop(), "qa").spec.identity


@each_row(
    ("answer", "output"),
    [
        ("Paris", "Paris"),
        (Response("Paris"), "Paris"),
        (("Paris", None), "Paris"),
        ((Response("Paris"), object()), "Paris"),
        ((48.9, 2.4), (48.9, 2.4)),
        (("Paris", ForeignSession("not events")), ("Paris", ForeignSession("not events"))),
        ((1, 2, 3), (1, 2, 3)),
        ((Reply("Paris"), None), "Paris"),
    ],
)
def test_what_execute_gives_becomes_the_output(answer: Any, output: Any) -> None:
    """A pair is taken apart only if it is a response and a session; other values are outputs."""
    assert convert_execute_result(answer) == Reply(output)


def test_a_reply_is_kept_as_it_is() -> None:
    """A loop that knows our reply may return one."""
    reply = Reply("Paris", latency_ms=2.0)
    assert convert_execute_result(reply) is reply


def test_usage_is_kept_when_it_is_ours() -> None:
    """`response.usage` is taken if it is a Usage, and nothing is guessed otherwise."""
    assert convert_execute_result(Response("Paris", Usage(3, 1))).usage == Usage(3, 1)
    assert convert_execute_result(Response("Paris", {"tokens": 3})).usage is None


def test_events_of_another_session_are_carried_over() -> None:
    """An object with events becomes our session: its events in order, foreign ones named."""
    call = ToolCall("search")
    session = convert_execute_result(("Paris", ForeignSession([call, 7]))).session
    assert session == Session([call, CustomEvent("int", 7)])
