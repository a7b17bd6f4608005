"""Asking a model: the request, the parsed answer, the recorded call, and the cost."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any, Literal

import msgspec
import pydantic
import pytest

from proctor.errors import CallFailed, ModelError, StopRun, Unreadable
from proctor.models.model_calls import CallContext, aask, ask, call_context
from proctor.models.prompts import MarkdownSection, Prompt, PromptTemplate
from proctor.models.spending import Spending
from proctor.records.model import ModelResponse, ToolSpec
from proctor.records.run import Budget
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.sessions import current as sessions
from tests.models.providers.scripted import Scripted
from tests.tables import each_row


def says(*answers: Any, **about: Any) -> Scripted:
    """A model that gives its answers one after the other."""
    left = list(answers)
    return Scripted(lambda request: left.pop(0), **about)


@pytest.fixture
def session() -> Any:
    """The session of a running trial."""
    result = Session()
    token = sessions.current.set(result)
    yield result
    sessions.current.reset(token)


class Memory:
    """A store in memory."""

    def __init__(self) -> None:
        self.things: dict[str, bytes] = {}

    def find(self, key: str) -> bytes | None:
        return self.things.get(key)

    def put(self, key: str, data: bytes) -> None:
        self.things[key] = data


@pytest.fixture
def under() -> Any:
    """Set the conditions of a run for one test."""
    token = call_context.set(CallContext())
    yield lambda *args: call_context.set(CallContext(*args))
    call_context.reset(token)


# What is sent


def test_a_question_is_a_text_a_prompt_or_messages() -> None:
    """All become messages."""
    template = PromptTemplate[str]("test", "greet", [MarkdownSection("", "Greet $name.", key="task")])
    prompt = Prompt(template).bind(name="Ada")
    model = Scripted()
    mine = Message("user", "Hi")
    for question in ("Hi", mine, [mine], ({"role": "user", "content": "Hi"},)):
        ask(model, question)  # type: ignore[arg-type]
    ask(model, prompt)
    assert [request.messages for request in model.requests[:4]] == [(mine,)] * 4
    assert [m.content for m in model.requests[4].messages] == ["Greet Ada."]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (42, "it must be a string, a Prompt or messages, got an integer"),
        ([42], r"\[0\] must be a mapping, got an integer"),
        ([{"role": "king", "content": "x"}], r"\[0\]\.role: invalid enum value 'king'"),
        ([{"a": 1}], r"\[0\]: unknown key 'a'"),
    ],
)
def test_other_objects_are_refused(question: Any, reason: str) -> None:
    """The error says what is wrong and lists the accepted kinds."""
    with pytest.raises(ModelError, match=f"the prompt is invalid: {reason}") as caught:
        ask(Scripted(), question)
    assert "messages, each with a role and content" in str(caught.value)


def test_an_empty_question_is_refused() -> None:
    """No message, no question."""
    with pytest.raises(ModelError, match="the prompt has no messages"):
        ask(Scripted(), [])


def test_settings_reach_the_model() -> None:
    """Each in its field of the request; the time is for the whole call."""
    model = Scripted()
    tool = ToolSpec("search")
    ask(
        model, "x", tools=[tool], temperature=0.5, max_tokens=7, seed=3, top_logprobs=2, opinion=1,
        timeout=9.0,
    )  # fmt: skip
    (request,) = model.requests
    assert (request.tools, request.temperature, request.max_tokens) == ((tool,), 0.5, 7)
    assert (request.seed, request.top_logprobs, request.opinion) == (3, 2, 1)
    assert model.timeouts[0] == pytest.approx(9.0, abs=0.5)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"temperature": -1}, "temperature must be a number, 0 or more"),
        ({"max_tokens": 0}, "max_tokens must be an integer, 1 or more"),
        ({"top_logprobs": 21}, "top_logprobs must be an integer, 20 or less"),
        ({"tokens": 5}, "unknown key 'tokens'"),
    ],
)
def test_invalid_settings_are_refused(options: dict[str, Any], reason: str) -> None:
    """Before the first call."""
    model = Scripted()
    with pytest.raises(ModelError, match=f"the request is invalid: {reason}"):
        ask(model, "x", **options)
    assert model.requests == []


# What is read


class Point(msgspec.Struct):
    x: int
    y: int


@dataclasses.dataclass
class Pair:
    left: str
    right: str


class Model(pydantic.BaseModel):
    name: str
    number: int


@each_row(
    ("kind", "answer", "read"),
    [
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Pair, '{"left": "a", "right": "b"}', Pair("a", "b")),
        (Model, '{"name": "a", "number": 1}', Model(name="a", number=1)),
        (list[int], "[1, 2]", [1, 2]),
        (Literal["yes", "no"], '"yes"', "yes"),
        (bool, "true", True),
    ],
)
@each_row("supports_json_schema", [True, False])
def test_an_answer_is_read_into_its_type(kind: Any, answer: str, read: Any, supports_json_schema: bool) -> None:
    """For any type; with a schema if the model supports it, otherwise with instructions."""
    model = says(answer, supports_json_schema=supports_json_schema)
    assert ask(model, "x", kind).output == read
    (request,) = model.requests
    assert (request.schema is not None) == supports_json_schema
    assert ("JSON Schema" in request.messages[0].content) != supports_json_schema


def test_an_answer_in_a_code_block_is_read() -> None:
    """Of a model without schemas: the last block counts, thinking aloud before it does not."""
    answer = 'Perhaps\n```json\n{"x": 9, "y": 9}\n```\nno:\n```json\n{"x": 1, "y": 2}\n```\nDone.'
    assert ask(says(answer), "x", Point).output == Point(1, 2)
    with pytest.raises(Unreadable):
        ask(says(answer, answer, supports_json_schema=True), "x", Point)


def test_the_type_may_come_from_the_prompt() -> None:
    """A template knows what its answer is."""
    template = PromptTemplate[Point]("test", "point", [MarkdownSection("", "Where?", key="task")])
    assert ask(says('{"x": 1, "y": 2}'), Prompt(template)).output == Point(1, 2)


def test_an_unreadable_answer_leads_to_one_reminder() -> None:
    """The reminder says what was wrong; usage, attempts and time are added up."""
    first = ModelResponse("{}", usage=Usage(10, 1, cost=0.5), latency_ms=100.0, attempts=2)
    second = ModelResponse('{"x": 1, "y": 2}', usage=Usage(20, 2, cost=0.25), latency_ms=50.0)
    model = says(first, second)
    response = ask(model, "Where?", Point)
    assert response.output == Point(1, 2)
    assert (response.usage, response.attempts) == (Usage(30, 3, cost=0.75), 3)
    assert response.latency_ms == 150.0
    roles = [(m.role, m.content.split(":")[0]) for m in model.requests[1].messages]
    assert roles[1:] == [("assistant", "{}"), ("user", "That answer cannot be read")]
    assert "That answer cannot be read: x is missing." in model.requests[1].messages[2].content


def test_two_unreadable_answers_are_an_error_with_the_answer() -> None:
    """Exactly two calls; the error has the last answer."""
    model = says("no", "still " * 100)
    with pytest.raises(Unreadable, match="not even after a reminder") as caught:
        ask(model, "Where?", Point)
    assert len(model.requests) == 2
    assert caught.value.answer == "still " * 100
    assert len(str(caught.value)) < 600


def test_an_answer_that_was_cut_off_says_so() -> None:
    """In the reminder and in the error."""
    cut = ModelResponse('{"x": ', finish_reason="length")
    model = says(cut, cut)
    with pytest.raises(Unreadable, match="cut off at max_tokens"):
        ask(model, "Where?", Point)
    assert "be brief" in model.requests[1].messages[-1].content


def test_an_empty_answer_is_reminded_too() -> None:
    """As nothing, which some providers refuse to be sent back."""
    model = says("", '{"x": 1, "y": 2}')
    assert ask(model, "Where?", Point).output == Point(1, 2)
    assert model.requests[1].messages[1] == Message("assistant", "(nothing)")


@pytest.mark.parametrize(
    "refusal", [ModelResponse(refusal="I will not."), ModelResponse("I will not.", finish_reason="refusal")]
)
def test_a_refusal_is_not_repeated(refusal: ModelResponse) -> None:
    """If a type was requested; without one, the refusal is the response."""
    model = says(refusal, refusal)
    with pytest.raises(Unreadable, match=r"refused to answer: 'I will not\.'"):
        ask(model, "Where?", Point)
    assert len(model.requests) == 1
    plain = ask(model, "Where?")
    assert (plain.text, plain.refusal) == (refusal.text, refusal.refusal)


def test_a_users_format_parses_the_answer() -> None:
    """Anything with a schema, instructions and a strict reader."""

    class Shout:
        instructions = "SHOUT"

        @property
        def schema(self) -> dict[str, Any]:
            return {"type": "string"}

        def read(self, text: str, *, structured: bool) -> str:
            if text != text.upper():
                raise ValueError("it is not loud")
            return text

    model = says("quiet", "LOUD")
    assert ask(model, "x", Shout()).output == "LOUD"
    assert model.requests[0].messages[0].content == "x\n\nSHOUT"
    assert "it is not loud" in model.requests[1].messages[-1].content


def test_instructions_are_a_separate_message_unless_a_user_text_comes_last() -> None:
    """After a turn of the assistant, or parts."""
    model = says("[1]", "[1]")
    parts = [{"type": "text", "text": "hi"}]
    ask(model, [Message("user", parts)], list[int])
    ask(model, [Message("user", "x"), Message("assistant", "y")], list[int])
    for request in model.requests:
        assert request.messages[-1].content.startswith("Answer with JSON alone")


def test_a_type_that_json_has_no_schema_for_is_refused() -> None:
    """With the type's name."""
    with pytest.raises(ModelError, match="cannot have the type"):
        ask(Scripted(), "x", threading.Lock)


# What is written down


def test_the_exchange_is_in_the_session(session: Session) -> None:
    """Question, answer, and the call with its usage, attempts and time."""
    call = (ToolCall("search"),)
    answer_text = ModelResponse("hi", "m", call, Usage(1, 2), "stop", latency_ms=5.0, attempts=3)
    ask(says(answer_text), "Hello")
    assert list(session) == [
        Message("user", "Hello"),
        Message("assistant", "hi", tool_calls=call),
        ModelCall("test:scripted", Usage(1, 2), 5.0, "stop", {"attempts": 3}),
    ]


def test_a_reminder_is_in_the_session_once(session: Session) -> None:
    """Every message occurs once, although the second call sends the first ones again."""
    ask(says("no", "[1]"), "x", list[int])
    assert [m.role for m in session[Message]] == ["user", "assistant", "user", "assistant"]
    assert len(session[ModelCall]) == 2


def test_a_refusal_is_in_the_session(session: Session) -> None:
    ask(says(ModelResponse(refusal="no")), "x")
    assert session[Message][-1].content == "no"


def test_a_failed_call_is_in_the_session(session: Session) -> None:
    """With what went wrong."""
    with pytest.raises(CallFailed):
        ask(says(CallFailed("down")), "x")
    assert session[ModelCall] == (ModelCall("test:scripted", details={"error": "down"}),)


def test_an_abandoned_call_is_in_the_session(session: Session) -> None:
    """It was sent, so it counts."""

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await aask(Scripted(seconds=1), "x")

    asyncio.run(main())
    (call,) = session[ModelCall]
    assert call.details == {"error": "cancelled before it answered"}


def test_latency_is_measured_where_the_model_does_not_tell() -> None:
    """In milliseconds."""
    response = ask(Scripted(seconds=0.03), "x")
    assert response.latency_ms is not None
    assert 25 <= response.latency_ms < 2000


def test_the_timeout_covers_both_requests() -> None:
    """The second request gets the remaining time."""
    model = says("no", "[1]", seconds=0.05)
    ask(model, "x", list[int], timeout=5.0)
    first, second = model.timeouts
    assert first is not None
    assert second is not None
    assert second <= first - 0.05


def test_it_works_inside_a_running_loop() -> None:
    """As in a notebook."""

    async def main() -> str:
        return ask(Scripted(), "x").text

    assert asyncio.run(main()) == "answer to x"


# Budgets and caches of a run


def test_calls_count_against_the_budget(under: Any) -> None:
    """The reminder is a call, too."""
    under(Spending(Budget(calls=2)))
    ask(says("no", "[1]"), "x", list[int])
    with pytest.raises(StopRun):
        ask(Scripted(), "x")


def test_cached_answers_are_free_and_marked(under: Any, session: Session) -> None:
    """The second request has no usage and does not count against the budget."""
    spending = Spending(Budget(calls=1))
    under(spending, Memory())
    model = Scripted()
    first, second = ask(model, "x"), ask(model, "x")
    assert (first.cached, second.cached, first.text == second.text) == (False, True, True)
    assert [call.usage for call in session[ModelCall]] == [Usage(10, 2, cost=0.001), Usage()]
    assert session[ModelCall][1].details == {"cached": True}


def test_answers_from_the_models_own_cache_cost_no_call(under: Any) -> None:
    """An answer marked as cached gives its leave back."""
    under(Spending(Budget(calls=1)), Memory())
    stored = ModelResponse("kept", cached=True)
    model = says(stored, stored, "fresh")
    texts = [ask(model, str(i)).text for i in range(3)]
    assert texts == ["kept", "kept", "fresh"]
    with pytest.raises(StopRun):
        ask(model, "more")


def test_failures_are_not_stored(under: Any) -> None:
    """The next asks again."""
    under(None, Memory())
    model = says(CallFailed("down"), "up")
    with pytest.raises(CallFailed):
        ask(model, "x")
    assert ask(model, "x").text == "up"


def test_an_unknown_usage_ends_a_budget_in_tokens(under: Any) -> None:
    """The error says that the usage is unknown."""
    under(Spending(Budget(tokens=100)))
    with pytest.raises(StopRun, match="does not report its usage"):
        ask(says(ModelResponse("x")), "x")
