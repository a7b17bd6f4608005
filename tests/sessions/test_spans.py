"""Spans become events: which ones, and their usage, arguments, results and errors."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.records.session import Message, ModelCall, ToolCall, Usage
from proctor.sessions.genai.messages import SpanEvent
from proctor.sessions.genai.spans import SpanData, classify_span, read_span
from tests.tables import each_row


def chat(**attributes: Any) -> dict[str, Any]:
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small", **named}


def model_call(attributes: dict[str, Any], **about: Any) -> ModelCall:
    reading = read_span(SpanData("chat small", attributes, **about))
    assert reading is not None
    assert isinstance(reading.call, ModelCall)
    return reading.call


def tool_call(attributes: dict[str, Any], name: str = "execute_tool x", **about: Any) -> ToolCall:
    reading = read_span(SpanData(name, attributes, **about))
    assert reading is not None
    assert isinstance(reading.call, ToolCall)
    assert [*reading.inputs, *reading.outputs, reading.call] == [reading.call]
    return reading.call


@each_row(
    ("attributes", "kind"),
    [
        ({"gen_ai.operation.name": "chat"}, "model"),
        ({"gen_ai.operation.name": "text_completion"}, "model"),
        ({"gen_ai.operation.name": "generate_content"}, "model"),
        ({"gen_ai.operation.name": "embeddings"}, "embeddings"),
        ({"gen_ai.operation.name": "execute_tool"}, "tool"),
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 7}, None),
        ({"gen_ai.operation.name": "create_agent", "gen_ai.request.model": "small"}, None),
        ({"openinference.span.kind": "LLM"}, "model"),
        ({"openinference.span.kind": "TOOL"}, "tool"),
        ({"openinference.span.kind": "EMBEDDING"}, "embeddings"),
        ({"openinference.span.kind": "CHAIN"}, None),
        ({"llm.request.type": "completion"}, "model"),
        ({"traceloop.span.kind": "tool"}, "tool"),
        ({"traceloop.span.kind": "workflow"}, None),
        ({"gen_ai.tool.name": "search"}, "tool"),
        ({"gen_ai.system": "openai", "gen_ai.request.model": "small"}, "model"),
        ({"gen_ai.usage.input_tokens": 7, "agent_name": "qa"}, None),
        ({"http.request.method": "POST"}, None),
        ({}, None),
    ],
)
def test_spans_are_classified(attributes: dict[str, Any], kind: str | None) -> None:
    """Agents and chains are made of calls: counting them too would count everything twice."""
    assert classify_span(attributes) == kind
    assert (read_span(SpanData("a span", attributes)) is None) == (kind is None)


@each_row(
    "names",
    [
        ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
        ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
        ("llm.token_count.prompt", "llm.token_count.completion"),
    ],
)
@each_row("write", [int, float, str])
def test_token_counts_are_found_under_all_names(names: tuple[str, str], write: Any) -> None:
    """The names have changed over the years, and OTLP writes numbers as text."""
    call = model_call(chat() | dict(zip(names, (write(12) if write is not str else "12", 3), strict=True)))
    assert (call.usage.input_tokens, call.usage.output_tokens) == (12, 3)


@pytest.mark.parametrize("odd", [True, -1, "many", None, [3]])
def test_invalid_token_counts_are_unknown(odd: Any) -> None:
    """Unknown is not zero."""
    assert model_call(chat(gen_ai__usage__input_tokens=odd)).usage == Usage()


def test_a_model_call_has_all_attributes() -> None:
    """Cached tokens, cost, latency, why it ended, and which model answered in the end."""
    attributes = chat(
        gen_ai__response__model="small-2026",
        gen_ai__response__finish_reasons=("tool_call", "stop"),
        operation__cost=0.25,
    )
    attributes["gen_ai.usage.cache_read.input_tokens"] = 5
    assert model_call(attributes, duration_ms=12.5) == ModelCall(
        "small", Usage(cached_tokens=5, cost=0.25), 12.5, "tool_calls", {"response_model": "small-2026"}
    )
    assert model_call(chat(operation__cost=True)).usage.cost is None
    assert model_call({"openinference.span.kind": "LLM"}).model == "unknown"


def test_a_failed_call_has_its_error() -> None:
    """The error type and the status message, or one of them."""
    kind = chat(error__type="NotFoundError")
    assert model_call(kind, error="404").details == {"error": "NotFoundError: 404"}
    assert model_call(kind).details == {"error": "NotFoundError"}
    assert model_call(chat(), error="").details == {"error": "unknown error"}


def test_unreadable_messages_are_named_in_the_call() -> None:
    """A truncated conversation is reported, not ignored."""
    call = model_call(chat() | {"gen_ai.input.messages": '[{"role": "us'})
    assert call.details == {"unreadable": ["gen_ai.input.messages"]}


def test_messages_come_before_their_call() -> None:
    """As our own models write it: request, answer, call."""
    span = SpanData(
        "chat small",
        chat(),
        (
            SpanEvent("gen_ai.user.message", {"content": "Hi"}),
            SpanEvent("gen_ai.choice", {"content": "Hello", "finish_reason": "stop"}),
        ),
    )
    reading = read_span(span)
    assert reading is not None
    assert [*reading.inputs, *reading.outputs, reading.call] == [
        Message("user", "Hi"),
        Message("assistant", "Hello"),
        ModelCall("small", finish_reason="stop"),
    ]


def test_embeddings_are_calls_without_messages() -> None:
    """The embedded texts are no messages."""
    attributes = {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "vectors"}
    attributes["gen_ai.input.messages"] = '[{"role": "user", "content": "no"}]'
    reading = read_span(SpanData("embeddings vectors", attributes))
    assert reading is not None
    assert [*reading.inputs, *reading.outputs, reading.call] == [
        ModelCall("vectors", details={"operation": "embeddings"})
    ]


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"q": "Paris"}',
            "gen_ai.tool.call.result": '{"found": 3}',
        },
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "search",
            "gen_ai.tool.call.id": "c1",
            "input.value": '{"q": "Paris"}',
            "output.value": '{"found": 3}',
        },
        {
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": "c1",
            "tool_arguments": {"q": "Paris"},
            "tool_response": {"found": 3},
        },
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "search",
            "gen_ai.tool.call.id": "c1",
            "traceloop.entity.input": '{"q": "Paris"}',
            "traceloop.entity.output": '{"found": 3}',
        },
    ],
)
def test_a_tool_call_is_the_same_in_every_convention(attributes: dict[str, Any]) -> None:
    """Name, arguments, result, id and duration."""
    assert tool_call(attributes, duration_ms=2.0) == ToolCall("search", {"q": "Paris"}, {"found": 3}, None, 2.0, "c1")


@pytest.mark.parametrize("name", ["execute_tool search", "running tool: search", "search"])
def test_a_tool_may_be_named_by_its_span(name: str) -> None:
    """Where no attribute has it."""
    assert tool_call({"gen_ai.operation.name": "execute_tool"}, name).name == "search"


def test_a_tool_that_failed_has_an_error() -> None:
    """So that `all_tools_succeeded` sees it."""
    call = tool_call({"gen_ai.operation.name": "execute_tool"}, error="no such page")
    assert (call.success, call.error) == (False, "no such page")
