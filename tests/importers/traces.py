"""Small traces for the tests: spans of an agent, the same talk in log records, and an export."""

from __future__ import annotations

import json
from typing import Any

TRACE = "a" * 32


def value(given: Any) -> dict[str, Any]:
    """A value as OTLP/JSON writes it."""
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(item) for item in given]}}
    if isinstance(given, dict):
        return {"kvlistValue": {"values": pairs(given)}}
    return {"stringValue": given}


def pairs(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP/JSON writes them."""
    return [{"key": name, "value": value(item)} for name, item in given.items()]


def span(
    name: str, start: int, attributes: dict[str, Any], *, parent: str | None = None, **more: Any
) -> dict[str, Any]:
    """A span that took 5 ms; its id is its name."""
    times = {
        "startTimeUnixNano": f"{1_800_000_000_000_000_000 + start}",
        "endTimeUnixNano": f"{1_800_000_000_005_000_000 + start}",
    }
    above = {} if parent is None else {"parentSpanId": parent}
    ids = {"traceId": TRACE, "spanId": name, **above}
    return {**ids, "name": name, "kind": 3, **times, "attributes": pairs(attributes), **more}


def spans(*given: dict[str, Any], scope: str = "an.instrumentation") -> dict[str, Any]:
    """A document with some spans."""
    about = {"attributes": pairs({"service.name": "shop"})}
    inner = {"scope": {"name": scope, "version": "1"}, "spans": list(given)}
    return {"resourceSpans": [{"resource": about, "scopeSpans": [inner]}]}


def logs(*given: dict[str, Any]) -> dict[str, Any]:
    """A document with some log records."""
    inner = {"scope": {"name": "an.instrumentation"}, "logRecords": list(given)}
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [inner]}]}


def log(name: str, at: int, body: Any, *, of: str = "chat", **attributes: Any) -> dict[str, Any]:
    """A log record that was written in a span."""
    about = {"timeUnixNano": f"{1_800_000_000_000_000_000 + at}", "severityNumber": 9}
    ids = {"traceId": TRACE, "spanId": of}
    written = {"attributes": pairs({"event.name": name, **attributes}), "body": value(body)}
    return {**about, **ids, **written}


def said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    """A message in the form of the conventions."""
    return {"role": role, "parts": list(parts)}


def words(content: str) -> dict[str, Any]:
    """A part that is a text."""
    return {"type": "text", "content": content}


CALL = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Paris"}}
ASKED = [said("user", words("Weather in Paris?"))]
CALLED = [said("assistant", {"type": "reasoning", "content": "A tool knows."}, CALL)]
GIVEN = [said("tool", {"type": "tool_call_response", "id": "c1", "response": "Sunny"})]
ANSWER = [said("assistant", words("It is sunny."), words("Enjoy it."))]
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"}

OTLP: list[Any] = [
    spans(
        span("agent", 0, {"gen_ai.operation.name": "invoke_agent", "input.value": "Weather?"}),
        span(
            "first",
            10,
            {
                **CHAT,
                "gen_ai.usage.input_tokens": 12,
                "gen_ai.usage.output_tokens": 3,
                "gen_ai.response.finish_reasons": ["tool_calls"],
                "gen_ai.system_instructions": json.dumps([words("Be brief.")]),
                "gen_ai.input.messages": json.dumps(ASKED),
                "gen_ai.output.messages": json.dumps(CALLED),
                "acme.blob": {"a": [1, True, 0.5]},
            },
            parent="agent",
            events=[{"name": "first_token", "timeUnixNano": "5", "attributes": pairs({"n": 1})}],
            links=[{"traceId": "b", "spanId": "x", "attributes": pairs({"why": "retry"})}],
        ),
        span(
            "execute_tool weather",
            20,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "weather",
                "gen_ai.tool.call.id": "c1",
                "gen_ai.tool.call.arguments": '{"city": "Paris"}',
                "gen_ai.tool.call.result": '"Sunny"',
            },
            parent="agent",
            status={"code": 2, "message": "late"},
        ),
    ),
    spans(
        span(
            "second",
            30,
            {
                **CHAT,
                "gen_ai.prompt.0.role": "user",
                "gen_ai.prompt.0.content": "Weather in Paris?",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "It is sunny.",
            },
            parent="agent",
        ),
        span("GET /", 40, {"http.request.method": "GET"}, parent="agent"),
    ),
]

OTLP_LOGS: list[Any] = [
    spans(span("chat", 0, CHAT)),
    logs(
        log("gen_ai.user.message", 1, {"content": "Weather in Paris?"}),
        log("gen_ai.choice", 2, {"index": 0, "message": {"content": "Sunny."}, "finish_reason": "stop"}),
        log("gen_ai.user.message", 3, {"content": "And Rome?"}, of="lost", **CHAT),
        log("app.note", 4, "a line of the program"),
        log("app.note", 5, "another", of="nowhere"),
    ),
]


def row(name: str, kind: str, start: int, **about: Any) -> dict[str, Any]:
    """An observation of a Langfuse trace; its id is its name."""
    times = {"startTime": f"2026-01-01T00:00:0{start}.000Z", "endTime": f"2026-01-01T00:00:0{start}.500Z"}
    return {"id": name, "traceId": "t1", "type": kind, "name": name, **times, **about}


LANGFUSE: list[Any] = [
    {
        "trace": {
            "id": "t1",
            "name": "agent run",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "tags": ["a"],
            "input": '"{\\"question\\": \\"Weather?\\"}"',
            "scores": [{"id": "s1", "name": "tone", "value": 0.5, "comment": "fine"}],
        },
        "observations": [
            row("root", "AGENT", 0, input="Weather?", metadata='{"attributes": {"acme.x": 1}}'),
            row(
                "ask",
                "GENERATION",
                1,
                parentObservationId="root",
                model="small",
                usageDetails={"input": 12, "output": 3, "total": 15},
                costDetails={"total": 0.25},
                input='[{"role": "user", "content": "Weather in Paris?"}]',
                output={
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"city": "Paris"}'},
                        }
                    ],
                },
            ),
            row(
                "weather",
                "TOOL",
                2,
                parentObservationId="root",
                input={"city": "Paris"},
                output="Sunny",
                level="ERROR",
                statusMessage="late",
            ),
        ],
    }
]


def turn(number: int, given: Any, answer: Any, **more: Any) -> dict[str, Any]:
    """A trace as a session of Langfuse's API has it, without observations."""
    at = {"id": f"t{number}", "timestamp": f"2026-01-01T00:0{number}:00Z", "sessionId": "s1"}
    return {**at, "name": "support", "input": given, "output": answer, "tags": [], **more}


# The second turn is given what was said in the first.
FIRST = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "My parcel?"}]
REPLY = {"role": "assistant", "content": "Which order?"}
SECOND = [*FIRST, REPLY, {"role": "user", "content": "1234"}]
LANGFUSE_SESSION: list[Any] = [
    {
        "id": "s1",
        "createdAt": "2026-01-01T00:00:00Z",
        "projectId": "p1",
        "traces": [
            turn(2, SECOND, {"answer": "Shipped!"}, userId="u1", totalCost=0.5),
            turn(1, {"messages": FIRST}, {"messages": [*FIRST, REPLY]}, totalCost=0.25),
        ],
    }
]
