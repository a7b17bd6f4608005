"""Requests that the real servers reject are rejected; Gemini's format is read and rendered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec
import pytest

from proctor.records.model import TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.testing import Fault, RecordedRequest, ScriptedReply
from tests.servers.model_server import ModelServer
from tests.tables import each_row

OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
CLOSED = {**OBJECT, "additionalProperties": False}
ASK: dict[str, dict[str, Any]] = {
    "openai": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    "gemini": {"contents": [{"parts": [{"text": "Hi"}]}]},
}
PATHS = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-x:generateContent",
}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def post(server: ModelServer, wire: str, **fields: Any) -> httpx2.Response:
    return httpx2.post(
        server.url + PATHS[wire],
        json={**ASK[wire], **fields},
        headers={"anthropic-version": "2023-06-01"},
        timeout=10,
        trust_env=False,
    )


def schema_format(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    wanted = {"name": "answer", "schema": schema, "strict": True, **more}
    return {"response_format": {"type": "json_schema", "json_schema": wanted}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASSISTANT = {"role": "assistant", "tool_calls": [CALL]}
BROKEN_CALL = {**CALL, "function": {"name": "f", "arguments": "{"}}
TOOL_USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}


@each_row(
    ("wire", "fields", "why"),
    [
        ("openai", {"messages": []}, "too short"),
        ("openai", {"messages": "Hi"}, "Expected `array`"),
        ("openai", {"nonsense": 1}, "unknown field `nonsense`"),
        ("openai", {"stream": True}, "neither streams"),
        ("openai", {"n": 2}, "several choices"),
        ("openai", {"temperature": 3.0}, "between 0 and 2"),
        ("openai", {"max_tokens": 1, "max_completion_tokens": 1}, "exclude each other"),
        ("openai", {"top_logprobs": 2}, "needs 'logprobs'"),
        ("openai", {"messages": [{"role": "tool", "content": "?"}]}, "must answer"),
        ("openai", {"messages": [ASSISTANT, user("?")]}, "not answered: c1"),
        ("openai", {"messages": [{"role": "assistant", "tool_calls": [BROKEN_CALL]}]}, "arguments of 'f' are not JSON"),
        ("openai", schema_format(OBJECT), "'additionalProperties' must be false"),
        ("openai", schema_format({**CLOSED, "required": []}), "must name every key"),
        ("openai", schema_format(CLOSED, name="an answer"), "needs a name"),
        ("openai", {"response_format": {"type": "json_schema"}}, "needs a name"),
        ("anthropic", {"messages": []}, "first message"),
        ("anthropic", {"messages": [{"role": "assistant", "content": "?"}]}, "first message"),
        ("anthropic", {"messages": [{"role": "system", "content": "?"}]}, "Invalid enum value"),
        ("anthropic", {"max_tokens": 0}, "greater than or equal to 1"),
        ("anthropic", {"max_tokens": None}, "Expected `int`"),
        ("anthropic", {"stream": True}, "does not stream"),
        ("anthropic", {"temperature": 1.5}, "between 0 and 1"),
        ("anthropic", {"seed": 1}, "unknown field `seed`"),
        ("anthropic", {"messages": [user("?"), {"role": "assistant", "content": [TOOL_USE]}, user("?")]}, "differ"),
        ("anthropic", {"output_config": {"format": {"type": "json_schema", "schema": OBJECT}}}, "must be set to false"),
        (
            "anthropic",
            {"output_format": {"type": "json_schema", "schema": {"type": "integer", "minimum": 1}}},
            "'minimum'",
        ),
        ("anthropic", {"messages": [user([{"type": "text", "text": "?"}, {"type": "tool_result"}])]}, "differ"),
        (
            "anthropic",
            {"messages": [user("?"), {"role": "assistant", "content": [{"type": "tool_use"}]}]},
            "cannot be read: KeyError: 'name'",
        ),
        ("gemini", {"contents": [{"parts": [{"functionResponse": "?"}]}]}, "cannot be read: AttributeError"),
        ("gemini", {"contents": []}, "not specified"),
        ("gemini", {"contents": [{"parts": []}]}, "must not be empty"),
        ("gemini", {"system_prompt": "?"}, "unknown field `system_prompt`"),
        ("gemini", {"generationConfig": {"temperature": 2.5}}, "in the range"),
        ("gemini", {"generationConfig": {"responseSchema": {}}}, "MIME type"),
        ("gemini", {"generationConfig": {"responseSchema": {}, "responseJsonSchema": {}}}, "exclude each other"),
        ("gemini", {"generationConfig": {"logprobs": 3}}, "needs responseLogprobs"),
    ],
)
def test_requests_that_the_real_server_rejects_are_rejected(
    server: ModelServer, wire: str, fields: dict[str, Any], why: str
) -> None:
    """With status 400 and the reason; they are not recorded."""
    before = len(server.calls)
    response = post(server, wire, **fields)
    assert response.status_code == 400
    assert why in response.json()["error"]["message"]
    assert len(server.calls) == before


def test_a_version_and_texts_are_required(server: ModelServer) -> None:
    """Anthropic requires a version header, and embeddings a text."""
    url = server.url + PATHS["anthropic"]
    response = httpx2.post(url, json=ASK["anthropic"], trust_env=False)
    assert "header is required" in response.json()["error"]["message"]
    for texts in ([], [""]):
        asked = {"model": "m", "input": texts}
        response = httpx2.post(f"{server.url}/v1/embeddings", json=asked, trust_env=False)
        assert response.status_code == 400
    response = httpx2.post(url, content=b"{half", headers={"anthropic-version": "x"})
    assert "cannot be read" in response.json()["error"]["message"]


def test_one_text_can_be_embedded(server: ModelServer) -> None:
    """Like a list of one."""
    asked = {"model": "m", "input": "ab"}
    response = httpx2.post(f"{server.url}/v1/embeddings", json=asked, trust_env=False)
    assert len(response.json()["data"]) == 1
    assert server.calls[-1].texts == ("ab",)


@pytest.mark.parametrize(
    ("wire", "fields"),
    [
        ("openai", schema_format(CLOSED)),
        ("openai", schema_format(OBJECT, strict=False)),
        ("anthropic", {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}}),
        ("anthropic", {"output_format": {"type": "json_schema", "schema": CLOSED}}),
        ("gemini", {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": OBJECT}}),
        (
            "gemini",
            {
                "generationConfig": {
                    "responseMimeType": "application/json",
                    "responseSchema": {**OBJECT, "type": "OBJECT"},
                }
            },
        ),
    ],
)
def test_the_default_reply_is_valid_for_the_schema(server: ModelServer, wire: str, fields: dict[str, Any]) -> None:
    """It is the smallest valid JSON."""
    told = post(server, wire, **fields).json()
    text = {
        "openai": lambda: told["choices"][0]["message"]["content"],
        "anthropic": lambda: told["content"][0]["text"],
        "gemini": lambda: told["candidates"][0]["content"]["parts"][0]["text"],
    }[wire]()
    assert msgspec.json.decode(text) == {"a": 0}


TOOL = {"name": "f", "description": "d"}


@pytest.mark.parametrize(
    ("wire", "fields"),
    [
        ("openai", {"tools": [{"type": "function", "function": {**TOOL, "parameters": OBJECT}}], "tool_choice": choice})
        for choice in ("required", {"type": "function", "function": {"name": "f"}})
    ]
    + [
        ("anthropic", {"tools": [{**TOOL, "input_schema": OBJECT}], "tool_choice": choice})
        for choice in ({"type": "any"}, {"type": "tool", "name": "f"})
    ]
    + [
        (
            "gemini",
            {
                "tools": [{"functionDeclarations": [{**TOOL, "parametersJsonSchema": OBJECT}]}],
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", **allowed}},
            },
        )
        for allowed in ({}, {"allowedFunctionNames": ["f"]})
    ],
)
def test_the_default_reply_calls_a_required_tool(server: ModelServer, wire: str, fields: dict[str, Any]) -> None:
    """With the smallest valid arguments."""
    told = post(server, wire, **fields).json()
    assert server.calls[-1].must_call == "f"
    assert server.calls[-1].tools == (ToolSpec("f", "d", OBJECT),)
    call = {
        "openai": lambda: told["choices"][0]["message"]["tool_calls"][0]["function"],
        "anthropic": lambda: told["content"][0],
        "gemini": lambda: told["candidates"][0]["content"]["parts"][0]["functionCall"],
    }[wire]()
    assert call["name"] == "f"
    arguments = call.get("arguments") or call.get("input") or call.get("args")
    arguments = msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments
    assert arguments == {"a": 0}


def gemini(answer: Any, **fields: Any) -> tuple[RecordedRequest, dict[str, Any]]:
    """Send one request in Gemini's format."""
    with ModelServer(answer) as server:
        told = post(server, "gemini", **fields).json()
        return server.calls[0], told


def test_gemini_requests_are_read() -> None:
    """System instruction, roles, calls, results and settings."""
    fields: dict[str, Any] = {
        "systemInstruction": {"parts": [{"text": "Be "}, {"text": "brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"result": "18"}}},
                    {"functionResponse": {"name": "g", "id": "7", "response": {"x": 1, "y": 2}}},
                    {"text": "So?"},
                ],
            },
            {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png"}}]},
        ],
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 4, "seed": 1},
    }
    asked, _ = gemini(lambda _: "well", **fields)
    assert asked.model == "gemini-x"
    assert asked.settings == {"temperature": 0.5, "max_tokens": 4, "seed": 1}
    assert asked.messages == (
        Message("system", "Be brief."),
        Message("user", "Weather?"),
        Message("assistant", "", tool_calls=(ToolCall("f", {"a": 1}),)),
        Message("tool", "18", name="f"),
        Message("tool", {"x": 1, "y": 2}, name="g", call_id="7"),
        Message("user", "So?"),
        Message("user", [{"inlineData": {"mimeType": "image/png"}}]),
    )
    assert asked.text == ""


def test_gemini_replies_are_rendered() -> None:
    """Text, finish reason, usage and logprobs."""
    chances = (TokenLogprobs("Yes", -0.5, {"No": -1.0, "Yes": -0.5, "Oh": -3.0}),)
    said = ScriptedReply("Yes", usage=Usage(9, 1, 4), logprobs=chances, finish_reason="length")
    wanted = {"generationConfig": {"responseLogprobs": True, "logprobs": 2}}
    _, told = gemini(lambda _: said, **wanted)
    candidate = told["candidates"][0]
    assert candidate["content"] == {"parts": [{"text": "Yes"}], "role": "model"}
    assert candidate["finishReason"] == "MAX_TOKENS"
    assert told["usageMetadata"] == {
        "promptTokenCount": 9,
        "candidatesTokenCount": 1,
        "totalTokenCount": 10,
        "cachedContentTokenCount": 4,
    }
    assert candidate["logprobsResult"] == {
        "chosenCandidates": [{"token": "Yes", "logProbability": -0.5}],
        "topCandidates": [
            {"candidates": [{"token": "Yes", "logProbability": -0.5}, {"token": "No", "logProbability": -1.0}]}
        ],
    }
    assert candidate["avgLogprobs"] == -0.5


def test_empty_gemini_replies() -> None:
    """An empty reply has no parts, a refusal no candidates; usage can be omitted."""
    _, empty = gemini(lambda _: ScriptedReply(usage=Usage()))
    assert empty["candidates"][0]["content"] == {"role": "model"}
    assert "usageMetadata" not in empty
    _, refused = gemini(lambda _: ScriptedReply(refusal="No."))
    assert refused["promptFeedback"] == {"blockReason": "SAFETY"}
    assert "candidates" not in refused


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_usage_can_be_omitted(wire: str) -> None:
    """By `Usage()`."""
    with ModelServer(lambda _: ScriptedReply("x", usage=Usage())) as server:
        assert "usage" not in post(server, wire).json()


def test_anthropic_requests_are_read() -> None:
    """System blocks and tool results in blocks become text."""
    with ModelServer(lambda _: "well") as server:
        result = {"type": "tool_result", "tool_use_id": "t1"}
        content = [{"type": "text", "text": "18"}]
        post(
            server,
            "anthropic",
            system=[{"type": "text", "text": "Be brief."}],
            messages=[
                user([{"type": "text", "text": "Weather?"}]),
                {"role": "assistant", "content": [TOOL_USE]},
                user([{**result, "content": content}, {"type": "text", "text": "So?"}]),
            ],
        )
        assert server.calls[0].messages == (
            Message("system", "Be brief."),
            Message("user", "Weather?"),
            Message("assistant", "", tool_calls=(ToolCall("f", {}, call_id="t1"),)),
            Message("tool", "18", call_id="t1"),
            Message("user", "So?"),
        )


def test_errors_have_the_format_of_each_provider(server: ModelServer) -> None:
    """The same status has three bodies."""
    server.faults.extend([Fault.status(429)] * 3)
    assert post(server, "openai").json()["error"]["code"] == "rate_limit_exceeded"
    assert post(server, "anthropic").json()["error"]["type"] == "rate_limit_error"
    assert post(server, "gemini").json()["error"]["status"] == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize(
    ("wire", "headers"),
    [
        ("openai", {"authorization": "Bearer k"}),
        ("anthropic", {"x-api-key": "k"}),
        ("anthropic", {"authorization": "Bearer k"}),
        ("gemini", {"x-goog-api-key": "k"}),
    ],
)
def test_each_provider_has_its_own_header_for_the_key(wire: str, headers: dict[str, str]) -> None:
    """Without the key, the status is 401."""
    with ModelServer(key="k") as server:
        for sent, code in ((headers, 200), ({}, 401)):
            response = httpx2.post(
                server.url + PATHS[wire],
                json=ASK[wire],
                headers={"anthropic-version": "2023-06-01", **sent},
                trust_env=False,
            )
            assert response.status_code == code


def test_an_empty_list_of_models_is_rendered() -> None:
    """In Anthropic's format too."""
    with ModelServer(models=[]) as server:
        told = httpx2.get(f"{server.url}/v1/models", headers={"anthropic-version": "x"}, trust_env=False)
        assert told.json()["data"] == []
