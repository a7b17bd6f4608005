"""Messages in spans: every convention gives the same messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.records.session import Message, ToolCall
from proctor.sessions.genai.messages import SpanEvent, read_call_messages

ASKED_FOR = ToolCall("weather", {"city": "Paris"}, call_id="c1")
CONVERSATION = [
    Message("system", "Be brief."),
    Message("user", "Weather in Paris?"),
    Message("assistant", "", tool_calls=(ASKED_FOR,)),
    Message("tool", "Sunny", call_id="c1"),
]
ANSWER = [Message("assistant", "It is sunny.")]
ARGUMENTS = '{"city": "Paris"}'


def in_json() -> dict[str, Any]:
    call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Paris"}}
    result = {"type": "tool_call_response", "id": "c1", "response": "Sunny"}
    requests = [
        {"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]},
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [result]},
    ]
    messages = [{"role": "assistant", "parts": [{"type": "text", "content": "It is sunny."}], "finish_reason": "stop"}]
    return {
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.input.messages": json.dumps(requests),
        "gen_ai.output.messages": json.dumps(messages),
    }


def in_structures() -> dict[str, Any]:
    """As newer SDKs allow it: no JSON, but lists and mappings."""
    return {name: json.loads(value) for name, value in in_json().items()}


def numbered() -> dict[str, Any]:
    return {
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Be brief.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": "Weather in Paris?",
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.2.tool_calls.0.id": "c1",
        "gen_ai.prompt.2.tool_calls.0.name": "weather",
        "gen_ai.prompt.2.tool_calls.0.arguments": ARGUMENTS,
        "gen_ai.prompt.3.role": "tool",
        "gen_ai.prompt.3.tool_call_id": "c1",
        "gen_ai.prompt.3.content": "Sunny",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "It is sunny.",
        "gen_ai.completion.0.finish_reason": "stop",
    }


def in_openinference() -> dict[str, Any]:
    before, after = "llm.input_messages", "llm.output_messages"
    call = f"{before}.2.message.tool_calls.0.tool_call"
    return {
        f"{before}.0.message.role": "system",
        f"{before}.0.message.content": "Be brief.",
        f"{before}.1.message.role": "user",
        f"{before}.1.message.contents.0.message_content.type": "text",
        f"{before}.1.message.contents.0.message_content.text": "Weather in Paris?",
        f"{before}.2.message.role": "model",
        f"{call}.id": "c1",
        f"{call}.function.name": "weather",
        f"{call}.function.arguments": ARGUMENTS,
        f"{before}.3.message.role": "tool",
        f"{before}.3.message.tool_call_id": "c1",
        f"{before}.3.message.content": "Sunny",
        f"{after}.0.message.role": "model",
        f"{after}.0.message.content": "It is sunny.",
        f"{after}.0.message.finish_reason": "stop",
    }


def in_one_attribute() -> dict[str, Any]:
    """As LangSmith writes it, in Anthropic's format."""
    requests = [
        {"role": "system", "content": "Be brief."},
        {"role": "human", "content": "Weather in Paris?"},
        {"role": "ai", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "Sunny"}]}],
        },
    ]
    message = {"role": "assistant", "content": "It is sunny.", "finish_reason": "stop"}
    return {"gen_ai.prompt": json.dumps({"messages": requests}), "gen_ai.completion": json.dumps(message)}


def events() -> list[tuple[str, dict[str, Any]]]:
    calls = [{"id": "c1", "function": {"name": "weather", "arguments": ARGUMENTS}}]
    return [
        ("gen_ai.system.message", {"content": "Be brief."}),
        ("gen_ai.user.message", {"content": "Weather in Paris?"}),
        ("gen_ai.assistant.message", {"tool_calls": json.dumps(calls)}),
        ("gen_ai.tool.message", {"content": "Sunny", "id": "c1"}),
        (
            "gen_ai.choice",
            {
                "index": 0,
                "finish_reason": "stop",
                "message": json.dumps({"role": "assistant", "content": "It is sunny."}),
            },
        ),
    ]


def events_in_an_attribute() -> dict[str, Any]:
    return {"events": json.dumps([{"event.name": name, **data} for name, data in events()])}


@pytest.mark.parametrize(
    "write", [in_json, in_structures, numbered, in_openinference, in_one_attribute, events_in_an_attribute]
)
def test_every_convention_gives_the_same_messages(write: Any) -> None:
    """System, user, a tool call, its result and the answer, in six formats."""
    spoken = read_call_messages(write())
    assert spoken.inputs == CONVERSATION
    assert spoken.outputs == ANSWER
    assert (spoken.finish_reason, spoken.unreadable) == ("stop", ())


def test_messages_may_be_span_events() -> None:
    """One event a message, as the conventions wanted it at first."""
    spoken = read_call_messages({}, [SpanEvent(name, data) for name, data in events()])
    assert (spoken.inputs, spoken.outputs, spoken.finish_reason) == (CONVERSATION, ANSWER, "stop")


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("gen_ai.client.inference.operation.details", in_json()),
        ("gen_ai.content.prompt", {"gen_ai.prompt": in_one_attribute()["gen_ai.prompt"]}),
    ],
)
def test_one_event_may_contain_a_conversation(name: str, keys: dict[str, Any]) -> None:
    """The newest event has the attributes themselves, one of the oldest the complete prompt."""
    noise: list[tuple[str, dict[str, Any]]] = [
        ("exception", {"exception.message": "no"}),
        ("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "relevance"}),
        ("gen_ai.first_token", {}),
    ]
    written = [SpanEvent(*event) for event in (*noise, (name, keys))]
    assert read_call_messages({}, written).inputs == CONVERSATION


def test_a_choice_may_be_flat() -> None:
    """Some put the fields of the answer into the event itself."""
    choice = SpanEvent("gen_ai.choice", {"content": "Hi"})
    assert read_call_messages({}, [choice]).outputs == [Message("assistant", "Hi")]


def test_truncated_json_is_reported() -> None:
    """An SDK may limit the length of attributes; half a conversation is none."""
    whole = in_json()["gen_ai.input.messages"]
    spoken = read_call_messages({"gen_ai.input.messages": whole[:50]})
    assert (spoken.inputs, spoken.unreadable) == ([], ("gen_ai.input.messages",))


def test_a_bare_prompt_is_a_user_message() -> None:
    """Text completions have no roles."""
    spoken = read_call_messages({"gen_ai.prompt": "Once upon", "gen_ai.completion": "a time"})
    assert spoken.inputs == [Message("user", "Once upon")]
    assert spoken.outputs == [Message("assistant", "a time")]


def test_instructions_may_be_a_text() -> None:
    """Not all writers of instructions make parts of them."""
    assert read_call_messages({"gen_ai.system_instructions": "Be brief."}).inputs == [Message("system", "Be brief.")]


def of_parts(*parts: Any, role: str = "user") -> list[Message]:
    return read_call_messages({"gen_ai.input.messages": [{"role": role, "parts": list(parts)}]}).inputs


def test_texts_are_joined_and_thoughts_left_out() -> None:
    """What a model only thought is not repeated to it, so it would look new each time."""
    parts = [
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "One."},
        {"type": "text", "content": "Two."},
    ]
    assert of_parts(*parts, role="assistant") == [Message("assistant", "One.\nTwo.")]


def test_other_contents_are_unchanged() -> None:
    """A picture stays in its place among the texts."""
    parts = [
        {"type": "text", "content": "What is this?"},
        {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
    ]
    assert of_parts(*parts) == [Message("user", parts)]


def test_a_result_and_a_text_are_two_messages() -> None:
    """Anthropic's users speak in the same breath as their tools."""
    parts = [
        {"type": "tool_result", "tool_use_id": "c1", "content": {"degrees": [20]}},
        {"type": "text", "text": "And tomorrow?"},
    ]
    assert of_parts(*parts) == [Message("tool", {"degrees": [20]}, call_id="c1"), Message("user", "And tomorrow?")]


def test_json_parts_are_parsed_but_not_tool_outputs() -> None:
    """A JSON list is what a tool gave; in any other message it may be its parts."""
    parts = json.dumps([{"type": "text", "text": "Hi"}])
    message = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": parts}
    assert read_call_messages(message).outputs == [Message("assistant", "Hi")]
    arguments = {"gen_ai.prompt.0.role": "tool", "gen_ai.prompt.0.content": parts}
    assert read_call_messages(arguments).inputs == [Message("tool", parts)]
    numbers = {"gen_ai.prompt.0.content": "[1, 2]"}
    assert read_call_messages(numbers).inputs == [Message("user", "[1, 2]")]


def test_odd_shapes_are_parsed() -> None:
    """Any attribute value gives messages or none, without an error."""
    odd = {
        "gen_ai.prompt.0": "flat",
        "gen_ai.prompt.0.role": "robot",
        "gen_ai.prompt.x.content": "not a number",
        "gen_ai.prompt.1.content": "Hi",
    }
    assert read_call_messages(odd).inputs == []
    assert read_call_messages({"gen_ai.input.messages": [1, {"role": None}]}).inputs == [
        Message("user", [1]),
        Message("user", ""),
    ]
    assert read_call_messages({"events": "[1]"}).inputs == []
    calls = {"gen_ai.completion.0.tool_calls": '["go", {"call_id": 7}]'}
    assert read_call_messages(calls).outputs == [
        Message("assistant", "", tool_calls=(ToolCall("go"), ToolCall("", call_id="7")))
    ]


def test_a_name_and_a_speaker_are_kept() -> None:
    """Agents with different names stay separate."""
    arguments = {"gen_ai.input.messages": [{"role": "user", "name": "Bob", "content": "Hi"}]}
    assert read_call_messages(arguments).inputs == [Message("user", "Hi", "Bob")]
