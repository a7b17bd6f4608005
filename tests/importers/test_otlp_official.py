"""All files of the official OpenAI instrumentation: every span, its tokens and its messages.

What is expected is worked out here from the raw JSON, without any code of the product. The data is
not part of the project: it is read from PROCTOR_DATA (by default ../shared/data).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from proctor.records.session import Message, ModelCall, ToolCall
from proctor.sessions.importers import langfuse, otlp
from proctor.sessions.importers.imported_session import ImportedSession
from tests.support import ROOT

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))
FOLDER = DATA / "08_traces" / "otlp_openai_v2"

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=f"the traces are not at {FOLDER} (set PROCTOR_DATA)")


def documents() -> list[tuple[str, Any]]:
    files = sorted(FOLDER.glob("*.json"))
    return [(file.name, json.loads(file.read_text(encoding="utf-8"))) for file in files]


def raw_spans(document: Any) -> list[dict[str, Any]]:
    return [
        span for resource in document["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]
    ]


def raw_attributes(span: dict[str, Any]) -> dict[str, Any]:
    """Attributes with their value of any type; integers as numbers."""
    result = {}
    for item in span["attributes"]:
        ((kind, value),) = item["value"].items()
        result[item["key"]] = int(value) if kind == "intValue" else value
    return result


def raw_messages(about: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Roles, texts, requested tools and results, as the JSON has them."""
    result: list[tuple[Any, ...]] = []
    if "gen_ai.system_instructions" in about:
        parts = json.loads(about["gen_ai.system_instructions"])
        result.append(("system", "\n".join(part["content"] for part in parts), [], None))
    for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
        for message in json.loads(about.get(name, "[]")):
            texts = [p["content"] for p in message["parts"] if p["type"] == "text"]
            calls = [(p["id"], p["name"], p["arguments"]) for p in message["parts"] if p["type"] == "tool_call"]
            answers = [p for p in message["parts"] if p["type"] == "tool_call_response"]
            texts += [p["response"] for p in answers]
            call_id = answers[0]["id"] if answers else None
            result.append((message["role"], "\n".join(texts), calls, call_id))
    return result


def messages(imported: ImportedSession) -> list[tuple[Any, ...]]:
    return [
        (
            message.role,
            message.content,
            [(call.call_id, call.name, call.arguments) for call in message.tool_calls],
            message.call_id,
        )
        for message in imported.session[Message]
    ]


def test_every_span_its_tokens_and_its_messages() -> None:
    """138 files, 146 spans in 146 traces: model, tokens, latency, end, error and all messages."""
    seen = message = 0
    for name, document in documents():
        assert otlp.looks_like([document])
        assert not langfuse.looks_like([document])
        sessions = {session.id: session for session in otlp.read([(1, document)], name)}
        spans = raw_spans(document)
        assert list(sessions) == list(dict.fromkeys(span["traceId"] for span in spans))
        for span in spans:
            imported = sessions[span["traceId"]]
            (call,) = imported.session[ModelCall]
            about = raw_attributes(span)
            used = call.usage
            assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (
                about.get("gen_ai.usage.input_tokens"),
                about.get("gen_ai.usage.output_tokens"),
                about.get("gen_ai.usage.cache_read.input_tokens"),
            )
            assert call.model == about["gen_ai.request.model"]
            lasted = int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
            assert call.latency_ms == pytest.approx(lasted / 1e6)
            ended = about.get("gen_ai.response.finish_reasons", {"values": []})["values"]
            assert call.finish_reason == (ended[0]["stringValue"] if ended else None)
            assert ("error" in call.details) == (span["status"].get("code") == 2)
            assert messages(imported) == raw_messages(about)
            assert imported.unknown_parts == {}
            seen += 1
            message += len(messages(imported))
    assert (len(documents()), seen, message) == (138, 146, 85)


def test_other_attributes_are_recorded() -> None:
    """Ids, times, settings and the resource: all attributes but those that hold what was said.

    A call has one reason why it ended: where each of several answers has its own, they stay.
    """
    contents = {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"}
    for name, document in documents():
        recorded = {
            span["id"]: span for session in otlp.read([(1, document)], name) for span in session.recorded["spans"]
        }
        for span in raw_spans(document):
            stored = recorded[span["spanId"]]
            about = raw_attributes(span)
            choices = json.loads(about.get("gen_ai.output.messages", "[]"))
            several = {"gen_ai.output.messages"} if len(choices) > 1 else set()
            assert set(stored["attributes"]) == set(about) - (contents - several)
            assert stored["began"] == int(span["startTimeUnixNano"])
            assert stored.get("parent") == span.get("parentSpanId")
            assert stored["flags"] == span["flags"]


def test_requested_tools_are_calls_with_their_results() -> None:
    """With the results that a later call contains; otherwise they are unanswered."""
    file = "test_chat_completions__test_chat_completion_tool_calls_with_content_content_mode0.otlp"
    document = json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8"))
    asking, answering = otlp.read([(1, document)], file)
    assert [event.kind for event in asking.session if hasattr(event, "kind")] == [
        "unanswered tool call",
        "unanswered tool call",
    ]
    assert [(call.arguments, call.result) for call in answering.session[ToolCall]] == [
        ({"location": "Seattle, WA"}, "50 degrees and raining"),
        ({"location": "San Francisco, CA"}, "70 degrees and sunny"),
    ]
    assert str(answering.input).startswith("What's the weather")
    assert str(answering.output).startswith("Today, the weather in Seattle")


def test_a_file_of_a_collector_has_one_document_a_line() -> None:
    """All files as lines of one: a trace on several lines is one session."""
    lines = [(number, document) for number, (_, document) in enumerate(documents(), 1)]
    together = list(otlp.read(lines, "traces.jsonl"))
    spans = [span for _, document in lines for span in raw_spans(document)]
    assert [session.id for session in together] == list(dict.fromkeys(span["traceId"] for span in spans))
    assert len(together) < len(spans)
    calls = [call for session in together for call in session.session[ModelCall]]
    assert len(calls) == len(spans)
    assert sum(call.usage.input_tokens or 0 for call in calls) == sum(
        raw_attributes(span).get("gen_ai.usage.input_tokens", 0) for span in spans
    )
    for session in together:
        began = [span["began"] for span in sorted(session.recorded["spans"], key=lambda s: s["event"])]
        assert began == sorted(began)
    assert together[0].source == "traces.jsonl:1"
