"""Traces of OTLP/JSON become sessions: orders, nesting, log records, tools and what is counted."""

from __future__ import annotations

import json
from typing import Any

from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.sessions.importers import otlp
from tests.importers.logs import kinds, only, read, written
from tests.importers.traces import (
    ANSWER,
    ASKED,
    CALLED,
    CHAT,
    GIVEN,
    OTLP,
    OTLP_LOGS,
    TRACE,
    log,
    logs,
    pairs,
    said,
    span,
    spans,
    words,
)


def test_an_odd_role_is_not_a_thought() -> None:
    """Also where the reasoning of the same span is the same word; in JSON, or numbered."""
    for name, shape in (("gen_ai.input.messages", json.dumps), ("gen_ai.prompt.0", None)):
        result = []
        for role in ("user", "A tool knows."):
            asked = (
                {name: shape([said(role, words("Weather?"))])}
                if shape
                else {f"{name}.role": role, f"{name}.content": "Weather?"}
            )
            output = {"gen_ai.output.messages": json.dumps([{**CALLED[0], "acme": 1}])}
            result.append(written(only(otlp, spans(span("chat", 0, {**CHAT, **asked, **output})))))
        assert result[0] != result[1]


def test_an_agent_becomes_a_session() -> None:
    """In the order in which spans began, over several documents; each message and call once."""
    (imported,) = read(otlp, OTLP, "traces.jsonl")
    assert kinds(imported) == [
        "CustomEvent span: invoke_agent",
        "system",
        "user",
        "CustomEvent thinking",
        "assistant",
        "ModelCall small",
        "ToolCall weather",
        "assistant",
        "ModelCall small",
        "CustomEvent span",
    ]
    assert (imported.id, imported.format, imported.source) == (TRACE, "otlp", "traces.jsonl:1")
    assert (imported.input, imported.output) == ("Weather in Paris?", "It is sunny.")
    first, _ = imported.session[ModelCall]
    assert first == ModelCall("small", Usage(12, 3), 5.0, "tool_calls")
    assert imported.session[ToolCall] == (ToolCall("weather", {"city": "Paris"}, "Sunny", "late", 5.0, "c1"),)
    assert imported.unknown_parts == {"attribute: acme.blob": 1, "event: first_token": 1, "span": 1}
    assert imported.recorded["model"] == "small"
    assert imported.recorded["started_at"] == "2027-01-15T08:00:00+00:00"
    assert imported.recorded["latency_ms"] == 5.00004
    assert imported.recorded["resources"] == [{"service.name": "shop"}]
    names = [(session["name"], session["event"]) for session in imported.recorded["spans"]]
    assert names[1] == ("first", 5)
    assert imported.recorded["spans"][1]["attributes"]["acme.blob"] == {"a": [1, True, 0.5]}


def test_messages_in_log_records_are_read() -> None:
    """Records belong to their span; without the span in the file they are a separate call."""
    (imported,) = read(otlp, OTLP_LOGS)
    assert kinds(imported) == [
        "user",
        "assistant",
        "ModelCall small",
        "user",
        "ModelCall small",
        "CustomEvent log record",
    ]
    assert [message.content for message in imported.session[Message]] == ["Weather in Paris?", "Sunny.", "And Rome?"]
    assert imported.session[ModelCall][0].finish_reason == "stop"
    assert imported.unknown_parts == {"event: app.note": 1, "log record": 1}
    assert "a line of the program" in str(imported.recorded["spans"][0]["events"])


def test_an_event_may_describe_a_complete_call_without_a_span() -> None:
    """`gen_ai.client.inference.operation.details`, as a log record alone."""
    about: dict[str, Any] = {**CHAT, "gen_ai.input.messages": ASKED}
    about["gen_ai.usage.input_tokens"] = 12
    record = log("gen_ai.client.inference.operation.details", 1, "", **about)
    del record["body"]
    imported = only(otlp, logs(record))
    assert kinds(imported) == ["user", "ModelCall small"]
    assert imported.session.usage == Usage(12)


def test_other_log_records_are_kept() -> None:
    """With a trace they are its own; without one they go to the first session there is."""
    lonely = log("gen_ai.unheard_of", 1, "x", of="lost")
    stray = {"body": {"stringValue": "no trace"}, "severityText": "INFO"}
    imported = only(otlp, logs(lonely, stray))
    assert imported.unknown_parts == {"span": 1, "log record": 1}
    alone = only(otlp, logs(stray))
    assert alone.unknown_parts == {"log record": 1}
    assert alone.id == "chat"
    (event,) = alone.session
    assert isinstance(event, CustomEvent)
    assert event.data["found"]["body"] == "no trace"


def test_a_framework_around_a_client_is_one_call() -> None:
    """The inner span is the call; the messages come from whichever has them."""
    outer = span("outer", 0, {**CHAT, "gen_ai.input.messages": json.dumps(ASKED)})
    middle = span("middle", 1, {"gen_ai.operation.name": "chain"}, parent="outer")
    inner = span("inner", 2, {**CHAT, "gen_ai.usage.input_tokens": 7}, parent="middle")
    imported = only(otlp, spans(inner, middle, outer))
    assert kinds(imported) == ["user", "CustomEvent span: chat", "CustomEvent span: chain", "ModelCall small"]
    assert imported.session.usage == Usage(7)
    assert imported.unknown_parts == {}


def test_a_model_inside_a_tool_is_another_call() -> None:
    """An agent that is a tool of another: both models were called."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "expert"}
    imported = only(
        otlp,
        spans(
            span("above", 0, CHAT),
            span("expert", 1, tool, parent="above"),
            span("again", 2, tool, parent="expert"),
            span("below", 3, CHAT, parent="again"),
        ),
    )
    assert kinds(imported) == [
        "ModelCall small",
        "CustomEvent span: execute_tool",
        "ToolCall expert",
        "ModelCall small",
    ]


def test_cyclic_parents_and_invalid_times_are_read() -> None:
    """Each is a call; their nesting is unknown."""
    first = span("one", 0, {}, parent="two")
    second = span("two", 0, CHAT, parent="one")
    del second["startTimeUnixNano"]
    imported = only(otlp, spans(first, second))
    assert kinds(imported) == ["CustomEvent span", "ModelCall small"]
    assert imported.session[ModelCall][0].latency_ms is None


def test_a_repeated_span_counts_once() -> None:
    """Exporters try again; another span with the same id is kept all the same."""
    sent = span("chat", 0, CHAT)
    other = span("chat", 1, {**CHAT, "gen_ai.request.model": "large"})
    imported = only(otlp, spans(sent, sent, other))
    assert [call.model for call in imported.session[ModelCall]] == ["small", "large"]
    assert imported.recorded["models"] == ["small", "large"]
    assert imported.unknown_parts == {"span that was sent twice": 1, "span whose id another has": 1}


def test_requested_tools_without_a_span_are_calls() -> None:
    """A requested tool with a result is a call; without a result it is unanswered."""
    later = [*ASKED, *CALLED, *GIVEN]
    messages = {"gen_ai.input.messages": later, "gen_ai.output.messages": ANSWER}
    imported = only(otlp, spans(span("chat", 0, {**CHAT, **messages})))
    assert imported.session[ToolCall] == (ToolCall("weather", {"city": "Paris"}, "Sunny", call_id="c1"),)
    assert imported.output == "It is sunny.\nEnjoy it."
    asked = only(otlp, spans(span("chat", 0, {**CHAT, "gen_ai.output.messages": CALLED})))
    assert kinds(asked)[-1] == "CustomEvent unanswered tool call"
    assert asked.output is None


def test_a_tool_span_gets_the_id_of_its_request() -> None:
    """By its arguments where two tools have one name, else by the name alone."""
    calls = [
        {"type": "tool_call", "id": str(n), "name": "go", "arguments": {"to": to}}
        for n, to in enumerate(["Rome", "Oslo", "Bonn"])
    ]
    tool = {"openinference.span.kind": "TOOL", "tool.name": "go"}
    imported = only(
        otlp,
        spans(
            span("chat", 0, {**CHAT, "gen_ai.output.messages": [said("assistant", *calls)]}),
            span("b", 1, {**tool, "input.value": '{"to": "Oslo"}'}),
            span("a", 2, {**tool, "input.value": '{"to": "Rome"}'}),
            span("c", 3, tool),
        ),
    )
    assert [call.call_id for call in imported.session[ToolCall]] == ["1", "0", "2"]


def test_scores_ids_and_tags_are_recorded() -> None:
    """Evaluation events and attributes that describe the trace."""
    score = {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.value": 0.5}
    label = {"gen_ai.evaluation.name": "safe", "gen_ai.evaluation.score.label": "yes"}
    events = [{"name": "gen_ai.evaluation.result", "attributes": pairs(about)} for about in (score, label)]
    about = {"gen_ai.conversation.id": "k", "session.id": "s", "user.id": "u", "tag.tags": ["a"]}
    imported = only(otlp, spans(span("chat", 0, {**CHAT, **about}, events=events)))
    assert imported.recorded["scores"] == {"tone": 0.5, "safe": "yes"}
    recorded = {name: imported.recorded[name] for name in ("conversation_id", "session_id", "user_id")}
    assert recorded == {"conversation_id": "k", "session_id": "s", "user_id": "u"}
    assert imported.recorded["tags"] == ["a"]
    assert imported.unknown_parts == {}


def test_a_trace_without_messages_has_the_input_of_its_root() -> None:
    """So that evaluators of inputs and outputs have something to look at."""
    root = {"openinference.span.kind": "CHAIN", "input.value": "2 + 2", "output.value": '{"n": 4}'}
    imported = only(otlp, spans(span("root", 0, root)))
    assert (imported.input, imported.output) == ("2 + 2", {"n": 4})


def test_an_error_comes_from_the_status_or_the_exception() -> None:
    """A status without a message, and an exception event."""
    raised = [{"name": "exception", "attributes": pairs({"exception.message": "no answer"})}]
    failed = span("chat", 0, CHAT, events=raised, status={"code": "STATUS_CODE_ERROR"})
    (call,) = only(otlp, spans(failed)).session[ModelCall]
    assert call.details == {"error": "no answer"}


def test_a_repeated_conversation_is_read_once() -> None:
    """Every call repeats the history; the session has it once."""
    first = {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": [said("assistant", words("Hm"))]}
    second = {
        "gen_ai.input.messages": [*ASKED, said("assistant", words("Hm")), said("user", words("Well?"))],
        "gen_ai.output.messages": ANSWER,
    }
    imported = only(otlp, spans(span("b", 1, {**CHAT, **second}), span("a", 0, {**CHAT, **first})))
    assert [message.content for message in imported.session[Message]] == [
        "Weather in Paris?",
        "Hm",
        "Well?",
        "It is sunny.\nEnjoy it.",
    ]


def test_results_without_ids_go_to_the_tools_of_their_names() -> None:
    """Gemini's have none; each answer is given once."""
    parts: list[Any] = [{"functionCall": {"name": name, "args": {}}} for name in ("go", "stop", "go", "wait")]
    given = [{"functionResponse": {"name": name, "response": {"n": n}}} for n, name in enumerate(("stop", "go", "go"))]
    history = [said("model", *parts), said("user", *given)]
    again = {**CHAT, "gen_ai.input.messages": [*history, said("user", words("Well?"))]}
    first = {**CHAT, "gen_ai.input.messages": history}
    imported = only(otlp, spans(span("a", 0, first), span("b", 1, again)))
    result = [(call.name, call.result) for call in imported.session[ToolCall]]
    assert result == [("go", {"n": 1}), ("stop", {"n": 0}), ("go", {"n": 2})]
    assert kinds(imported).count("CustomEvent unanswered tool call") == 1
