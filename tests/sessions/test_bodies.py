"""Parse bodies of requests and responses into messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.records.session import Message
from proctor.sessions.genai.bodies import parse_request, parse_response, parse_response_instructions
from proctor.sessions.genai.values import MAX_DEPTH, decode_json, is_too_deep
from tests.tables import each_row

HI = {"role": "user", "content": "Hi"}
ASKED = [Message("system", "Be brief."), Message("user", "Hi")]
SAID = [Message("assistant", "Hello")]


@each_row(
    "body",
    [
        [{"role": "system", "content": "Be brief."}, HI],
        [[{"role": "system", "content": "Be brief."}, HI]],
        {"messages": [{"role": "developer", "content": "Be brief."}, HI]},
        {"system": "Be brief.", "messages": [HI]},
        {"system": [{"type": "text", "text": "Be brief."}], "messages": [HI]},
        {"instructions": "Be brief.", "input": "Hi"},
        {"instructions": "Be brief.", "input": [HI]},
        {"system": "Be brief.", "prompt": "Hi"},
        {"system": "Be brief.", "prompt": HI},
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "config": {"system_instruction": "Be brief."}},
        {
            "contents": [{"parts": [{"text": "Hi"}], "role": "user"}],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
        },
    ],
)
def test_requests_of_all_apis_are_parsed(body: Any) -> None:
    """Chat, responses, Anthropic, Gemini and prompts, as structure or as JSON."""
    for value in (body, json.dumps(body)):
        turns = parse_request(value)
        assert turns is not None
        assert turns.messages == ASKED


def test_one_message_is_a_request() -> None:
    """As ADK and LangSmith write a user message."""
    for body in (HI, {"new_message": {"role": "user", "parts": [{"text": "Hi"}]}}):
        turns = parse_request(body)
        assert turns is not None
        assert turns.messages == [Message("user", "Hi")]


@each_row(
    "body",
    [
        {"role": "assistant", "content": "Hello"},
        [{"role": "assistant", "content": "Hello"}],
        {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello"}]}}]},
        {"content": {"parts": [{"text": "Hello"}]}, "finish_reason": "STOP"},
        {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}]},
        {"generations": [[{"text": "Hello", "message": {"type": "ai", "content": "Hello"}}]]},
        {"messages": [{"type": "ai", "content": "Hello"}]},
        {"index": 0, "message": {"content": "Hello", "role": "assistant"}},
    ],
)
def test_responses_of_all_apis_are_parsed(body: Any) -> None:
    """Chat, Gemini, ADK, responses, LangChain, and a choice."""
    for value in (body, json.dumps(body)):
        turns = parse_response(value)
        assert turns is not None
        assert turns.messages == SAID


@each_row(
    "body",
    [
        None,
        "text",
        3,
        [],
        [1],
        [HI, 1],
        {},
        {"question": "Hi"},
        {"messages": []},
        {"messages": 3},
        {"prompt": {"a": 1}},
        {"content": "role"},
    ],
)
def test_other_values_are_no_bodies(body: Any) -> None:
    """The caller keeps it; the parser does not guess."""
    assert parse_request(body) is None
    assert parse_response(body) is None


def test_responses_repeat_their_instructions() -> None:
    """Only they do; an answer of another kind has none."""
    assert parse_response_instructions({"object": "response", "instructions": "Be brief."}) == ASKED[:1]
    assert parse_response_instructions({"instructions": "Be brief."}) == []
    assert parse_response_instructions("text") == []


def test_nesting_is_limited() -> None:
    """JSON that is nested unreasonably deep stays a text."""
    fine, deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH, "[" * (MAX_DEPTH + 9) + "]" * (MAX_DEPTH + 9)
    assert decode_json(deep) == deep
    assert isinstance(decode_json(fine), list)
    far = "[" * 100_000 + "]" * 100_000
    assert decode_json(far) == far
    assert is_too_deep(json.loads(deep))
    wide = json.dumps([[]] * 500)
    assert decode_json(wide) == [[]] * 500


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"index": n, "message": {"content": message}} for n, message in enumerate("ab")]},
        {"choices": [{"message": {"content": message}} for message in "ab"]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": it}]}} for it in "ab"]},
        {"generations": [[{"message": {"type": "ai", "content": message}} for message in "ab"]]},
    ],
)
def test_the_first_of_several_choices_is_the_answer(body: Any) -> None:
    """The other choices are alternatives, not further messages."""
    turns = parse_response(body)
    assert turns is not None
    assert turns.messages == [Message("assistant", "a")]
    (other,) = turns.alternatives
    assert "b" in json.dumps(other)


def test_choices_with_the_same_index_are_one_answer() -> None:
    """As some services split text and calls; answers to several prompts are no alternatives."""
    messages = [{"index": 0, "message": {"role": "assistant", "content": it}} for it in "ab"]
    questions = [[{"message": {"type": "ai", "content": it}}] for it in "ab"]
    for body in ({"choices": messages}, {"generations": questions}):
        turns = parse_response(body)
        assert turns is not None
        assert [message.content for message in turns.messages] == ["a", "b"]
        assert turns.alternatives == []
