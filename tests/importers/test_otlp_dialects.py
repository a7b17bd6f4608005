"""Spans that do not follow the conventions, but those of a vendor."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.records.session import Message, ModelCall, ToolCall, Usage
from proctor.sessions.importers import otlp
from tests.importers.logs import kinds, only, written
from tests.importers.traces import span, spans

VERCEL = {
    "ai.operationId": "ai.generateText.doGenerate",
    "ai.model.id": "small",
    "ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": "Weather in Paris?"}]}]),
    "ai.response.text": "Let me see.",
    "ai.response.toolCalls": '[{"toolCallId":"c1","toolName":"weather","input":"{\\"city\\":1}"}]',
    "ai.response.finishReason": "tool-calls",
    "ai.usage.promptTokens": 12,
    "ai.usage.completionTokens": 3,
}
LANGSMITH = {
    "langsmith.span.kind": "llm",
    "gen_ai.request.model": "small",
    "gen_ai.prompt": json.dumps(
        {
            "messages": [
                [
                    {
                        "lc": 1,
                        "type": "constructor",
                        "id": ["langchain", "schema", "messages", "HumanMessage"],
                        "kwargs": {"content": "Weather in Paris?", "type": "human"},
                    }
                ]
            ]
        }
    ),
    "gen_ai.completion": json.dumps(
        {
            "generations": [
                [
                    {
                        "text": "Let me see.",
                        "message": {
                            "kwargs": {
                                "content": "Let me see.",
                                "tool_calls": [{"name": "weather", "args": {"city": 1}, "id": "c1"}],
                            },
                            "lc": 1,
                            "id": ["AIMessage"],
                        },
                    }
                ]
            ]
        }
    ),
    "gen_ai.usage.input_tokens": 12,
    "gen_ai.usage.output_tokens": 3,
    "gen_ai.response.finish_reasons": ["tool_calls"],
}
GEMINI = {
    "gen_ai.system": "gcp.vertex.agent",
    "gen_ai.request.model": "small",
    "gcp.vertex.agent.llm_request": json.dumps(
        {"contents": [{"role": "user", "parts": [{"text": "Weather in Paris?"}]}]}
    ),
    "gcp.vertex.agent.llm_response": json.dumps(
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Let me see."},
                    {"function_call": {"id": "c1", "name": "weather", "args": {"city": 1}}},
                ],
            }
        }
    ),
    "gen_ai.usage.input_tokens": 12,
    "gen_ai.usage.output_tokens": 3,
    "gen_ai.response.finish_reasons": ["tool_calls"],
}
BODIES = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "small",
    "input.value": '{"model":"small","input":"Weather in Paris?"}',
    "output.value": json.dumps(
        {
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
                {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":1}'},
            ]
        }
    ),
    "llm.token_count.prompt": 12,
    "llm.token_count.completion": 3,
    "gen_ai.response.finish_reasons": ["tool_calls"],
}


@pytest.mark.parametrize("dialect", [VERCEL, LANGSMITH, GEMINI, BODIES])
def test_other_dialects_give_the_same_session(dialect: dict[str, Any]) -> None:
    """The Vercel AI SDK, LangSmith, Google's ADK, and bodies of OpenAI's responses."""
    imported = only(otlp, spans(span("call", 0, dialect)))
    (call,) = imported.session[ModelCall]
    assert (call.model, call.usage, call.finish_reason) == ("small", Usage(12, 3), "tool_calls")
    messages = imported.session[Message]
    assert messages[0] == Message("user", "Weather in Paris?")
    assert [message.content for message in messages[1:] if message.content] == ["Let me see."]
    asked = [item for message in messages for item in message.tool_calls]
    assert asked == [ToolCall("weather", {"city": 1}, call_id="c1")]


def test_a_tool_of_the_vercel_sdk() -> None:
    """It has its own attribute names."""
    attributes = {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "weather",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": '{"city": 1}',
        "ai.toolCall.result": '"Sunny"',
    }
    imported = only(otlp, spans(span("ai.toolCall", 0, attributes)))
    assert imported.session[ToolCall] == (ToolCall("weather", {"city": 1}, "Sunny", None, 5.0, "c1"),)


def test_a_hosted_tool_is_one_call_with_its_result() -> None:
    """A later call repeats it; where an answer has other choices, those stay in the span."""
    parts = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "Rome"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": "sunny"},
        {"type": "text", "text": "Sunny."},
    ]
    asked, message = {"role": "user", "content": "Weather?"}, {"role": "assistant", "content": parts}
    model = {"openinference.span.kind": "LLM", "llm.model_name": "small"}
    choices = [{"message": {"role": "assistant", "content": it}} for it in ("Rain.", "Snow.")]
    imported = only(
        otlp,
        spans(
            span("one", 0, {
                **model,
                "input.value": json.dumps({"messages": [asked]}),
                "output.value": json.dumps(message),
            }),
            span("two", 10_000_000, {
                **model,
                "input.value": json.dumps({"messages": [asked, message, asked]}),
                "output.value": json.dumps({"choices": choices}),
            }),
        ),
    )  # fmt: skip
    assert imported.session[ToolCall] == (ToolCall("web_search", {"query": "Rome"}, "sunny", call_id="s1"),)
    assert kinds(imported) == [
        "user", "assistant", "ToolCall web_search", "tool", "assistant", "ModelCall small",
        "user", "assistant", "ModelCall small",
    ]  # fmt: skip
    assert imported.output == "Rain."
    assert "Snow." in written(imported)
