"""Conversations in outputs: the same one in every shape gives the same session and answer."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from langchain_core.messages import AIMessage
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from proctor import evaluate, exact_match
from proctor.evaluators.session import token_usage_under
from proctor.records.session import CustomEvent, Message, ModelCall, Session, ToolCall, Usage
from proctor.sessions.importers.conversation import Conversation, merge_sessions, read_conversation
from tests.importers.conversations import ANSWER, QUESTION, SHAPES, SYSTEM, chat
from tests.tables import each_row

USAGE = {"input_tokens": 10, "output_tokens": 5}


def read(output: Any, given: Any = None) -> Conversation:
    result = read_conversation(output, given)
    assert result is not None
    return result


@each_row("shape", SHAPES)
@each_row("given", [None, QUESTION, {"messages": [("user", QUESTION)]}], ids=["-", "text", "messages"])
def test_the_same_conversation_in_every_shape_gives_the_same_session(shape: str, given: Any) -> None:
    """Order, roles, calls with their results and failures, and the answer do not depend on it."""
    imported = read(SHAPES[shape](), given)
    assert (imported.answer, imported.has_answer) == (ANSWER, True)
    messages = [(m.role, m.content) for m in imported.session[Message] if m.content and m.role != "tool"]
    assert messages == [("system", SYSTEM), ("user", QUESTION), ("assistant", ANSWER)]
    assert [
        (call.name, call.arguments, call.result, call.error, call.call_id) for call in imported.session[ToolCall]
    ] == [
        ("search", {"q": "France"}, "Paris is the capital.", None, "c1"),
        ("open", {"page": 1}, "404 Not Found", "404 Not Found", "c2"),
    ]
    kinds = [type(event) for event in imported.session]
    assert kinds.index(ToolCall) > 2
    assert max(n for n, kind in enumerate(kinds) if kind is ToolCall) < max(
        n for n, kind in enumerate(kinds) if kind is Message
    )
    if shape != "responses items":
        assert imported.session.usage == Usage(30, 8)
        assert len(imported.session[ModelCall]) == 2


@each_row(
    "output",
    [
        "It is Paris.",
        '{"answer": "Paris"}',
        None,
        7,
        [],
        {},
        ["a", "b"],
        [{"role": "user"}],
        {"messages": [], "ok": True},
        {"messages": ["Hello", "there"]},
        {"messages": 3},
        {"role": "admin", "content": "x"},
        [{"role": "user", "content": "Only a question?"}],
        [{"role": "assistant", "content": "x"}, {"name": "no message"}],
        [{"role": "manager", "content": "x"}, {"role": "assistant", "content": "y"}],
        [{"type": "model", "content": "T4"}, {"type": "tool", "content": "hammer"}],
        [{"type": "event", "data": {"content": "clicked"}}],
        {"choices": ["a", "b"]},
        {"output": [{"type": "text", "text": "x"}]},
        {"type": "person", "content": "x"},
        object(),
        Message,
    ],
)
def test_other_outputs_are_not_conversations(output: Any) -> None:
    """Only what clearly is a conversation in which an agent spoke or acted is read as one."""
    assert read_conversation(output) is None


def test_a_conversation_that_does_not_end_with_an_answer_has_none() -> None:
    """The calls are recorded; a requested call without a result stays open."""
    asked = read(chat()[:3])
    assert (asked.answer, asked.has_answer, asked.session[ToolCall]) == (None, False, ())
    assert [event.kind for event in asked.session[CustomEvent]] == ["unanswered tool call"] * 2
    answered = read(chat()[:5])
    assert (answered.answer, answered.has_answer) == (None, False)
    assert [call.name for call in answered.session[ToolCall]] == ["search", "open"]
    empty = read([*chat()[:5], {"role": "assistant", "content": ""}])
    assert (empty.answer, empty.has_answer) == ("", True)


@pytest.mark.parametrize("messages", [[], chat()[:1], chat()[:2]], ids=len)
def test_a_state_without_an_answer_is_a_conversation(messages: list[Any]) -> None:
    """The items under `messages` are messages, even without an answer."""
    state = read({"messages": messages})
    assert (state.answer, state.has_answer) == (None, False)
    assert len(state.session) == len(messages)


def test_tool_calls_before_the_end_of_the_input_are_history() -> None:
    """History is in the session in its order, but its calls and tokens are not this trial's."""
    more = [
        {"role": "user", "content": "And of Italy?"},
        {"role": "assistant", "tool_calls": [{"id": "c3", "function": {"name": "recall"}}]},
        {"role": "tool", "tool_call_id": "c3", "content": "Rome"},
        {"role": "assistant", "content": "Rome.", "usage": {"prompt_tokens": 7}},
    ]
    whole: list[Any] = [*chat(), *more]
    given: Any
    for given in (
        {"messages": whole[:7]},
        whole[:7],
        "And of Italy?",
        [*chat()[1:2], {"role": "user", "content": "And of Italy?"}],
    ):
        imported = read({"messages": whole}, given)
        assert [call.name for call in imported.session[ToolCall]] == ["recall"]
        assert imported.session.usage == Usage(7)
        assert [m.role for m in imported.session[Message] if m.role != "tool"] == [
            *("system", "user", "assistant", "assistant", "user", "assistant", "assistant")
        ]
        assert not any(message.tool_calls for message in imported.session[Message][:-2])
    for given in ("Something else", {"question": "?"}, None):
        calls = read({"messages": whole}, given).session[ToolCall]
        assert [call.name for call in calls] == ["search", "open", "recall"]


def _completion(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    about = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    return {**about, "choices": [choice], "usage": usage}


def _anthropic(*content: dict[str, Any]) -> dict[str, Any]:
    about = {"id": "x", "type": "message", "role": "assistant", "model": "m"}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    return {**about, **ended, "content": list(content), "usage": USAGE}


def _response(*output: dict[str, Any]) -> dict[str, Any]:
    about = {"id": "x", "object": "response", "created_at": 1, "model": "m", "tools": []}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "output": list(output)}
    details = {"input_tokens_details": {}, "output_tokens_details": {}, "total_tokens": 15}
    return {**about, **rest, "usage": {**USAGE, **details}}


TEXT = {"type": "text", "text": ANSWER}
OUTPUT_TEXT = {"type": "output_text", "text": ANSWER, "annotations": []}
MESSAGE = {
    "type": "message", "id": "m", "role": "assistant", "status": "completed",
    "content": [OUTPUT_TEXT],
}  # fmt: skip
CALLED = {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "France"}}
FUNCTION = {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q":"France"}'}
CHAT_CALL = {
    "id": "c1", "type": "function",
    "function": {"name": "search", "arguments": '{"q": "France"}'},
}  # fmt: skip
ONE_CALL: Any = [{"name": "search", "args": {"q": "France"}, "id": "c1"}]
USED: Any = {**USAGE, "total_tokens": 15}


@pytest.mark.parametrize(
    ("answer", "call"),
    [
        (_completion({"content": ANSWER}), _completion({"tool_calls": [CHAT_CALL]})),
        (
            ChatCompletion.model_validate(_completion({"content": ANSWER})),
            ChatCompletion.model_validate(_completion({"tool_calls": [CHAT_CALL]})),
        ),
        (_anthropic(TEXT), _anthropic(CALLED)),
        (AnthropicMessage.model_validate(_anthropic(TEXT)), AnthropicMessage.model_validate(_anthropic(CALLED))),
        (_response(MESSAGE), _response(FUNCTION)),
        (Response.model_construct(**_response(MESSAGE)), Response.model_construct(**_response(FUNCTION))),
        (AIMessage(ANSWER, usage_metadata=USED), AIMessage("", tool_calls=ONE_CALL, usage_metadata=USED)),
    ],
    ids=[*("chat", "ChatCompletion", "anthropic", "anthropic.Message", "response", "Response"), "AIMessage"],
)
def test_a_response_of_a_model_is_a_conversation_of_one_message(answer: Any, call: Any) -> None:
    """As data and as an SDK object: the text is the answer, a call is requested."""
    imported = read(answer)
    assert (imported.answer, imported.session.usage) == (ANSWER, Usage(10, 5))
    asked = read(call)
    assert not asked.has_answer
    assert [event.data["tool_name"] for event in asked.session[CustomEvent]] == ["search"]
    assert asked.session.usage == Usage(10, 5)


def test_recorded_events_take_precedence_over_the_conversation() -> None:
    """Nothing is there twice, and nothing that was not recorded is lost."""
    conversation = read(chat()).session
    search = ToolCall("search", {"q": "France"}, result="live", call_id="c1")
    whole = Session([*conversation])
    assert merge_sessions(whole, conversation).events == whole.events
    # Only one of two tools was recorded, by its id or by its name.
    for recorded in (search, ToolCall("search", {"q": "France"}, result="live")):
        merged = merge_sessions(Session([recorded]), conversation)
        assert [call.name for call in merged[ToolCall]] == ["search", "open"]
        assert merged[ToolCall][0].result == "live"
        assert len(merged[Message]) == len(conversation[Message])
    # Model calls were recorded, so their tokens count and not those of the messages.
    counted = merge_sessions(Session([ModelCall("m", Usage(99, 1))]), conversation)
    assert counted.usage == Usage(99, 1)
    assert [call.name for call in counted[ToolCall]] == ["search", "open"]
    # An object of the user's own says nothing of what was said.
    objects: list[Any] = [{"documents": 3}]
    own = merge_sessions(Session(objects), conversation)
    assert own.events == (CustomEvent("dict", {"documents": 3}), *conversation.events)
    # Recorded messages that ask for tools are the record of these calls.
    asked = Session([Message("assistant", "", tool_calls=(search,))])
    assert merge_sessions(asked, conversation) == asked


def test_two_calls_of_one_tool_stay_two_calls() -> None:
    """A recorded call without an id matches one call of that name, not all."""
    calls = Session([ToolCall("search", call_id="c1"), ToolCall("search", call_id="c2")])
    assert len(merge_sessions(Session([ToolCall("search")]), calls)[ToolCall]) == 2


def test_an_answer_without_usage_makes_the_total_unknown() -> None:
    """A sum of some of the calls must not pass for the sum of all."""
    partly: list[Any] = chat()
    del partly[2]["usage"]
    imported = read(partly).session
    assert [call.usage for call in imported[ModelCall]] == [Usage(20, 3), Usage()]
    assert token_usage_under(1_000)("", None, imported).status == "error"
    assert token_usage_under(22)("", None, imported).passed is False
    whole = {"messages": [{**item, "usage": None} for item in chat()], "usage": {"input_tokens": 9}}
    assert read(whole).session.usage == Usage(9)
    assert read([{**item, "usage": None} for item in chat()]).session[ModelCall] == ()


SPLIT = [{"type": "text", "text": "The capital is "}, {"type": "text", "text": "Paris."}]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (SPLIT, "The capital is Paris."),
        ([SPLIT[0], {"type": "thinking", "thinking": "Hm."}, SPLIT[1]], "The capital is \nParis."),
    ],
)
def test_the_texts_of_one_answer_are_joined(content: list[Any], expected: str) -> None:
    """Anthropic splits an answer where a citation begins: a line end there would be another text.

    Texts that another part stands between stay on lines of their own.
    """
    messages = [{"role": "user", "content": "Capital?"}, {"role": "assistant", "content": content}]
    report = evaluate(
        lambda _: {"messages": messages},
        [{"id": "1", "input": "Capital?", "expected": expected}],
        [exact_match],
        history=False,
    )
    assert report.results[0].output == expected
    assert report.pass_rate == 1.0


def test_each_text_of_a_user_begins_a_line() -> None:
    """A document and a question are separate texts, so they are not joined into one line."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Paris is big."},
                                     {"type": "text", "text": "Is it?"}]},
        {"role": "assistant", "content": "Yes."},
    ]  # fmt: skip
    report = evaluate(lambda _: {"messages": messages}, [{"id": "1", "input": "q"}], [exact_match], history=False)
    session = report.results[0].trial.session
    assert session is not None
    assert session.events[0].content == "Paris is big.\nIs it?"  # type: ignore[union-attr]
