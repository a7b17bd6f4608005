"""A message is parsed in every form that APIs use."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.records.session import Message, ToolCall
from proctor.sessions.genai.message_parser import is_message, parse_messages
from tests.tables import each_row

CALL = ToolCall("go", {"to": "Rome"}, call_id="c1")
ARGUMENTS = '{"to": "Rome"}'


@each_row(
    "given",
    [
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "go", "arguments": ARGUMENTS}}]},
        {"role": "assistant", "toolCalls": [{"id": "c1", "name": "go", "args": {"to": "Rome"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "go", "input": {"to": "Rome"}}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "go", "args": {"to": "Rome"}}}]},
        {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "go", "args": {"to": "Rome"}}}]},
        {"type": "function_call", "id": "fc", "call_id": "c1", "name": "go", "arguments": ARGUMENTS},
        {"toolCallId": "c1", "toolName": "go", "input": ARGUMENTS},
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "go", "args": {"to": "Rome"}}],
        },
        {
            "type": "ai",
            "content": "",
            "tool_calls": [{"id": "c1", "name": "go", "args": {"to": "Rome"}, "type": "tool_call"}],
        },
        {
            "type": "AIMessageChunk",
            "content": "",
            "additional_kwargs": {"tool_calls": [{"id": "c1", "function": {"name": "go", "arguments": ARGUMENTS}}]},
        },
        {
            "lc": 1,
            "id": ["langchain", "AIMessage"],
            "kwargs": {"content": "", "tool_calls": [{"id": "c1", "name": "go", "args": {"to": "Rome"}}]},
        },
        {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "c1", "name": "go", "args": {"to": "Rome"}}]}},
        {
            "index": 0,
            "message": {"role": "assistant", "tool_calls": [{"id": "c1", "name": "go", "arguments": ARGUMENTS}]},
        },
    ],
)
def test_tool_calls_are_parsed_in_every_shape(given: dict[str, Any]) -> None:
    """OpenAI's, Anthropic's, Gemini's, those of responses, Vercel's, LangChain's, and a choice."""
    assert is_message(given)
    assert parse_messages([given], "assistant").messages == [Message("assistant", "", None, (CALL,))]


def test_a_function_call_next_to_the_content_is_parsed() -> None:
    """As OpenAI had it before there were tools."""
    arguments = {"role": "assistant", "content": None, "function_call": {"name": "go", "arguments": ARGUMENTS}}
    assert parse_messages([arguments]).messages == [
        Message("assistant", "", tool_calls=(ToolCall("go", {"to": "Rome"}),))
    ]


@each_row(
    ("given", "name"),
    [
        ({"role": "tool", "tool_call_id": "c1", "content": "done"}, None),
        ({"role": "tool", "content": [{"type": "tool_call_response", "id": "c1", "result": "done"}]}, None),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]}, None),
        ({"type": "function_call_output", "call_id": "c1", "output": "done"}, None),
        ({"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "go", "response": "done"}}]}, "go"),
        ({"role": "user", "parts": [{"function_response": {"id": "c1", "name": "go", "response": "done"}}]}, "go"),
        (
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c1",
                        "toolName": "go",
                        "output": {"type": "text", "value": "done"},
                    }
                ],
            },
            "go",
        ),
        ({"type": "tool", "tool_call_id": "c1", "name": "go", "content": "done", "id": None}, "go"),
        ({"role": "function", "name": "go", "content": "done", "id": "c1"}, "go"),
    ],
)
def test_tool_results_are_parsed_in_every_shape(given: dict[str, Any], name: str | None) -> None:
    """With the id of its call, and the tool name if there is one."""
    assert is_message(given)
    assert parse_messages([given]).messages == [Message("tool", "done", name, call_id="c1")]


@pytest.mark.parametrize(
    "thought",
    [
        {"type": "reasoning", "content": "Hm."},
        {"type": "thinking", "thinking": "Hm."},
        {"text": "Hm.", "thought": True},
    ],
)
def test_thoughts_are_separate_from_messages(thought: dict[str, Any]) -> None:
    """They are no messages, but they are not lost."""
    turns = parse_messages([{"role": "assistant", "content": [thought, {"type": "text", "text": "Hi"}]}])
    assert turns.messages == [Message("assistant", "Hi")]
    assert turns.thoughts == [thought]
    alone = parse_messages([{"type": "reasoning", "summary": []}])
    assert (alone.messages, alone.thoughts) == ([], [{"type": "reasoning", "summary": []}])


def test_offered_tools_are_no_messages() -> None:
    """LangChain's handler for Langfuse writes them among the messages."""
    offer = {"type": "function", "function": {"name": "go", "parameters": {}}}
    turns = parse_messages([{"role": "tool", "content": offer}, {"role": "user", "content": "Hi"}])
    assert (turns.messages, turns.tools) == ([Message("user", "Hi")], [offer])


def test_finish_reasons_are_parsed() -> None:
    """In two spellings, and in the choice around it."""
    values = [
        {"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"},
        {"role": "model", "parts": [{"text": "b"}], "finishReason": "STOP"},
        {"role": "assistant", "content": "c", "finish_reason": None},
    ]
    assert parse_messages(values).finish_reasons == ["stop", "STOP"]


@each_row(
    "given",
    [
        None,
        3,
        "text",
        [],
        {},
        {"content": "role"},
        {"role": "user"},
        {"role": 3, "content": ""},
        {"type": "function", "name": "go"},
        {"name": "go", "arguments": {}},
        {"lc": 1, "kwargs": 3},
    ],
)
def test_other_values_are_no_messages(given: Any) -> None:
    """Any other mapping, and what is none."""
    assert not is_message(given)


def test_odd_calls_and_names_are_parsed() -> None:
    """A call without a name, and a name that is none."""
    arguments = {"role": "assistant", "name": 3, "content": "x", "tool_calls": [{"id": "", "name": None}]}
    assert parse_messages([arguments]).messages == [Message("assistant", "x", None, (ToolCall(""),))]


@pytest.mark.parametrize(
    "given",
    [
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        {"role": "assistant", "content": "", "refusal": "I cannot."},
        {"role": "assistant", "refusal": "I cannot."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]},
        {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "I cannot."}},
        {"type": "ai", "content": "", "additional_kwargs": {"refusal": "I cannot."}},
        {"index": 0, "message": {"role": "assistant", "content": None, "refusal": "I cannot."}},
    ],
)
def test_a_refusal_or_transcript_replaces_a_missing_content(given: dict[str, Any]) -> None:
    """A refusal or an audio transcript is the text of the message."""
    assert is_message(given)
    assert parse_messages([given], "assistant").messages == [Message("assistant", "I cannot.")]


def test_a_content_takes_precedence_over_a_refusal() -> None:
    """The content is the message; tools have no refusals."""
    both = {"role": "assistant", "content": "Yes.", "refusal": "No.", "audio": {"transcript": 7}}
    assert parse_messages([both]).messages == [Message("assistant", "Yes.")]
    tool = {"role": "tool", "tool_call_id": "c1", "content": None, "refusal": "No."}
    assert parse_messages([tool]).messages == [Message("tool", "", call_id="c1")]


def test_a_hosted_tool_is_a_call_with_its_result() -> None:
    """A call, its result and the following text are parts of one message; they become three."""
    use = {"type": "server_tool_use", "id": "s1", "name": "go", "input": {"to": "Rome"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u"}]}
    before, after = {"type": "text", "text": "Wait."}, {"type": "text", "text": "Done."}
    turns = parse_messages([{"role": "assistant", "content": [before, use, result, after]}])
    call = ToolCall("go", {"to": "Rome"}, call_id="s1")
    assert turns.messages == [
        Message("assistant", "Wait.", tool_calls=(call,)),
        Message("tool", [{"url": "u"}], call_id="s1"),
        Message("assistant", "Done."),
    ]
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    turns = parse_messages([{"role": "assistant", "content": [use, {**result, "content": error}]}])
    assert (turns.messages[1].content, turns.failed) == (error, {1})


@pytest.mark.parametrize(
    ("item", "call", "answer", "has_failed"),
    [
        (
            {"type": "web_search_call", "status": "completed", "action": {"query": "Rome"}},
            ToolCall("web_search", {"query": "Rome"}, call_id="i1"),
            "completed",
            False,
        ),
        (
            {"type": "file_search_call", "queries": ["a"], "results": [{"text": "b"}]},
            ToolCall("file_search", {"queries": ["a"]}, call_id="i1"),
            [{"text": "b"}],
            False,
        ),
        (
            {"type": "mcp_call", "name": "go", "arguments": ARGUMENTS, "error": "no", "output": None},
            ToolCall("go", {"to": "Rome"}, call_id="i1"),
            "no",
            True,
        ),
    ],
)
def test_response_items_contain_their_results(
    item: dict[str, Any], call: ToolCall, answer: Any, has_failed: bool
) -> None:
    """OpenAI's hosted tools are named by their items, which contain the result or a status."""
    turns = parse_messages([{"id": "i1", **item}])
    request, answered = turns.messages
    assert request == Message("assistant", "", tool_calls=(call,))
    assert answered == Message("tool", answer, call.name, call_id="i1")
    assert turns.failed == ({1} if has_failed else set())


def test_local_tools_wait_for_their_output() -> None:
    """A shell or computer call is one item, its output another."""
    request = {"type": "local_shell_call", "call_id": "c1", "action": {"command": ["ls"]}}
    (message,) = parse_messages([request]).messages
    assert message.tool_calls == (ToolCall("local_shell", {"command": ["ls"]}, call_id="c1"),)
    answer = {"type": "local_shell_call_output", "call_id": "c1", "output": "a.py"}
    assert parse_messages([answer]).messages == [Message("tool", "a.py", call_id="c1")]
