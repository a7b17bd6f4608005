"""Functions as models: their arguments, results and exceptions."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from proctor.errors import CallFailed, ModelError, StopRun
from proctor.models.clients.python import FunctionAdapter, connect
from proctor.models.connect import provider
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Message, Session, ToolCall, Usage
from proctor.sessions import current as sessions
from tests.models.providers.scripted import asked

TALK = ModelRequest(
    (
        Message("system", "Be brief."),
        Message("user", "2 + 2?"),
        Message("assistant", "5"),
        Message("user", {"really": True}),
    ),
    temperature=0.0,
)


def complete(adapter: Any, request: ModelRequest | None = None, timeout: float | None = None) -> ModelResponse:
    result: ModelResponse = asyncio.run(adapter.complete(request or asked(), timeout=timeout))
    return result


# What a function is given


def test_without_an_annotation_a_function_gets_the_messages() -> None:
    """As a list of records."""
    values: list[Any] = []

    def plain(messages):  # type: ignore[no-untyped-def]
        values.append(messages)
        return "ok"

    complete(FunctionAdapter(plain), TALK)
    assert values == [list(TALK.messages)]


def test_a_function_of_a_text_gets_one_text() -> None:
    """Chosen by the annotation or a common parameter name; roles are included only if needed."""

    def annotated(question: str) -> str:
        return question

    named = FunctionAdapter(lambda prompt: prompt)
    two = ModelRequest(TALK.messages[:2])
    others = (FunctionAdapter(lambda text: text), FunctionAdapter(lambda question: question))
    for adapter in (FunctionAdapter(annotated), named, *others):
        assert complete(adapter, two).text == "Be brief.\n\n2 + 2?"
    assert complete(named, TALK).text == (
        'System:\nBe brief.\n\nUser:\n2 + 2?\n\nAssistant:\n5\n\nUser:\n{"really":true}'
    )


def test_a_function_of_a_request_gets_all_of_it() -> None:
    """By its annotation or the name `request`."""

    def annotated(question: ModelRequest) -> str:
        return str(question.temperature)

    assert complete(FunctionAdapter(annotated), TALK).text == "0.0"
    assert complete(FunctionAdapter(lambda request: str(request.temperature)), TALK).text == "0.0"


def test_a_function_of_dicts_gets_dicts() -> None:
    """What SDKs take: role and content."""
    values: list[Any] = []

    def annotated(messages: list[dict[str, Any]]) -> str:
        values.extend(messages)
        return "ok"

    complete(FunctionAdapter(annotated), ModelRequest(TALK.messages[:2]))
    assert values == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}]


def test_an_unresolvable_annotation_is_ignored() -> None:
    """Names that only type checkers know do not fail: the function gets the messages."""

    def annotated(messages: Sequence[Unknown]) -> str:  # type: ignore[name-defined]  # noqa: F821
        return str(len(messages))

    assert complete(FunctionAdapter(annotated), TALK).text == "4"


class Speaker:
    """An object of the user's that can be called."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def __call__(self, prompt: str) -> str:
        return f"{self.word} {prompt}"

    def method(self, prompt: str, loud: bool = False) -> str:
        return self.word.upper() if loud else self.word


def test_objects_methods_partials_and_lambdas_work() -> None:
    """Whether they are async, and what they take, is detected."""
    value = Speaker("so")
    assert complete(FunctionAdapter(value), asked("x")).text == "so x"
    assert complete(FunctionAdapter(value.method)).text == "so"
    assert complete(FunctionAdapter(functools.partial(value.method, loud=True))).text == "SO"
    assert complete(FunctionAdapter(functools.partial(value)), asked("x")).text == "so x"
    assert complete(FunctionAdapter(lambda prompt: value(prompt)), asked("x")).text == "so x"


def test_a_function_of_anything_gets_the_messages() -> None:
    """`*args` takes them too, and a built-in function that does not tell its parameters."""
    assert complete(FunctionAdapter(lambda *args: str(len(args[0]))), TALK).text == "4"
    assert complete(FunctionAdapter(str)).text.startswith("[Message(")


@pytest.mark.parametrize(
    "function",
    [lambda: "no", lambda a, b: "no", lambda messages, *, must: "no", lambda *, messages: "no", lambda **options: "no"],
)
def test_a_function_with_other_parameters_is_refused(function: Any) -> None:
    """Before anything runs, with what it should look like."""
    with pytest.raises(ModelError, match="takes one argument") as caught:
        FunctionAdapter(function)
    assert "(prompt: str)" in str(caught.value)


# What it may return


def test_a_mapping_has_the_fields_of_a_response() -> None:
    """Text, usage, tool calls: checked like a record."""
    error = {
        "text": "4", "usage": {"input_tokens": 3}, "tool_calls": [{"name": "add"}],
    }  # fmt: skip
    response = complete(FunctionAdapter(lambda messages: error, name="sum"))
    assert response == ModelResponse("4", "python:sum", (ToolCall("add"),), Usage(input_tokens=3))


def test_a_response_is_used_unchanged() -> None:
    """Only a missing model is filled in."""
    response = ModelResponse("4", "mine", finish_reason="length")
    assert complete(FunctionAdapter(lambda messages: response)) is response


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "'NoneType'"), (4, "'int'"), ({"txt": "4"}, "txt"), ({"text": 4}, "text must be a string, got an integer")],
)
def test_other_results_are_errors(value: Any, words: str) -> None:
    """The error names the type."""
    with pytest.raises(CallFailed, match=words) as caught:
        complete(FunctionAdapter(lambda messages: value))
    assert not caught.value.retryable


# How it runs, and fails


def test_a_plain_function_runs_in_a_thread_with_the_callers_session() -> None:
    """The loop continues meanwhile, and its events are recorded in the right session."""
    here, there = threading.get_ident(), []
    turned = threading.Event()

    def slow(messages: Any) -> str:
        there.append(threading.get_ident())
        sessions.record(Message("user", "from the thread"))
        turned.wait(120)
        return "ok"

    async def main() -> tuple[int, Session]:
        session = Session()
        sessions.current.set(session)
        call = asyncio.create_task(FunctionAdapter(slow).complete(asked()))
        turns = 0
        while not call.done():
            await asyncio.sleep(0.005)
            turns += 1
            if turns == 3:
                turned.set()
        return turns, session

    turns, session = asyncio.run(main())
    assert there != [here]
    assert turns >= 3
    assert [event.content for event in session[Message]] == ["from the thread"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_slow_function_times_out(waits: bool) -> None:
    """Whether it blocks or waits; the error is retryable."""
    release = threading.Event()

    async def waiting(messages: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    def blocking(messages: Any) -> str:
        release.wait(60)
        return "late"

    with pytest.raises(CallFailed, match=r"did not answer within 0\.05 s") as caught:
        complete(FunctionAdapter(waiting if waits else blocking), timeout=0.05)
    release.set()
    assert caught.value.retryable


class Limited(Exception):
    """What a client library may raise."""

    status_code = 429
    retry_after = 7


class Broken(Exception):
    """An error that says of itself that it is final."""

    retryable = False


@pytest.mark.parametrize(
    ("error", "retryable", "retry_after"),
    [
        (ValueError("bad  \n prompt"), False, None),
        (ConnectionResetError("gone"), True, None),
        (TimeoutError(), True, None),
        (Limited("slow down"), True, 7.0),
        (Broken("for good"), False, None),
    ],
)
def test_exceptions_become_call_failed(error: Exception, retryable: bool, retry_after: float | None) -> None:
    """With their information about retries, and the cause."""

    async def fails(messages: Any) -> str:
        raise error

    with pytest.raises(CallFailed) as caught:
        complete(FunctionAdapter(fails, name="f"))
    assert (caught.value.retryable, caught.value.retry_after) == (retryable, retry_after)
    assert caught.value.__cause__ is error
    assert str(caught.value).startswith("python:f ")


def test_a_long_error_is_cut() -> None:
    """What is stored with every failed trial stays readable."""

    def fails(messages: Any) -> str:
        raise ValueError("x" * 10_000)

    with pytest.raises(CallFailed) as caught:
        complete(FunctionAdapter(fails))
    assert len(str(caught.value)) < 700


def test_proctor_errors_are_raised_unchanged() -> None:
    """A budget inside a function ends the run, not the call."""

    def fails(messages: Any) -> str:
        raise StopRun("enough")

    with pytest.raises(StopRun):
        complete(FunctionAdapter(fails))


# Who it is


def judge(messages: Sequence[Message]) -> str:
    """A judge for tests."""
    return "good"


def test_a_function_is_named_after_itself() -> None:
    """Or by `name`; `supports_json_schema` is its own promise."""
    adapter = provider(judge)
    assert (adapter.model, adapter.supports_json_schema) == ("python:judge", False)
    assert repr(adapter) == "FunctionAdapter('python:judge')"
    named = provider({"model": judge, "name": "mine", "supports_json_schema": True})
    assert (named.model, named.supports_json_schema) == ("python:mine", True)
    assert provider(Speaker("x")).model == "python:Speaker"


def test_identity_follows_the_code() -> None:
    """The same function is the same model; other code or other bound values are not."""
    assert FunctionAdapter(judge).identity == FunctionAdapter(judge).identity
    item, two = (FunctionAdapter(functools.partial(Speaker(word).method)) for word in "ab")
    assert item.identity != two.identity


@pytest.mark.parametrize(
    ("thing", "words"), [(42, "'int'"), (None, "'NoneType'"), (Speaker, "Speaker is a class"), (object(), "object")]
)
def test_other_objects_are_refused(thing: Any, words: str) -> None:
    """The error lists what is accepted."""
    with pytest.raises(ModelError, match=words):
        connect(thing)
