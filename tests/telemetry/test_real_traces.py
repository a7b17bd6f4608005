"""Traces that others' programs wrote: every span, its tokens and its messages.

The data is not part of the project: it is read from PROCTOR_DATA (by default ../shared/data).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.records.session import Message, ModelCall
from proctor.telemetry.genai import Reading, SpanData, reading_of
from tests.surroundings import ROOT

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data")) / "08_traces"

pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason=f"the traces are not at {DATA} (set PROCTOR_DATA)"
)


def value_of(given: dict[str, Any]) -> Any:
    """An attribute's value out of OTLP/JSON."""
    ((kind, value),) = given.items()
    if kind == "arrayValue":
        return [value_of(item) for item in value.get("values", [])]
    return int(value) if kind == "intValue" else value


def otlp_spans() -> Iterator[SpanData]:
    for file in sorted((DATA / "otlp_openai_v2").glob("*.json")):
        for resource in json.loads(file.read_text(encoding="utf-8"))["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    status = span.get("status", {})
                    yield SpanData(
                        span["name"],
                        {item["key"]: value_of(item["value"]) for item in span["attributes"]},
                        error=status.get("message", "") if status.get("code") == 2 else None,
                    )


def read(span: SpanData) -> Reading:
    reading = reading_of(span)
    assert reading is not None
    return reading


def test_every_span_of_the_official_instrumentation_is_a_call() -> None:
    """116 chats and 30 embeddings, of which 29 failed, with all tokens that they tell."""
    spans = list(otlp_spans())
    readings = [read(span) for span in spans]
    assert Counter(reading.kind for reading in readings) == {"model": 116, "embeddings": 30}
    tokens = [0, 0, 0]
    for span, reading in zip(spans, readings, strict=True):
        call = reading.call
        assert isinstance(call, ModelCall)
        assert call.model == span.attributes["gen_ai.request.model"]
        assert ("error" in call.details) == (span.error is not None)
        for number, name in enumerate(("input_tokens", "output_tokens", "cache_read.input_tokens")):
            tokens[number] += span.attributes.get(f"gen_ai.usage.{name}", 0)
    usage = [reading.call.usage for reading in readings if isinstance(reading.call, ModelCall)]
    assert sum("error" in r.call.details for r in readings if isinstance(r.call, ModelCall)) == 29
    assert [
        sum(used.input_tokens or 0 for used in usage),
        sum(used.output_tokens or 0 for used in usage),
        sum(used.cached_tokens or 0 for used in usage),
    ] == tokens


def test_every_message_of_the_official_instrumentation_is_read() -> None:
    """As many as there are in the JSON, in the same order and with the same roles."""
    seen = 0
    for span in otlp_spans():
        reading = read(span)
        asked = json.loads(span.attributes.get("gen_ai.input.messages", "[]"))
        said = json.loads(span.attributes.get("gen_ai.output.messages", "[]"))
        system = "gen_ai.system_instructions" in span.attributes
        assert [m.role for m in reading.asked] == ["system"] * system + [m["role"] for m in asked]
        assert [m.role for m in reading.said] == [m["role"] for m in said]
        assert [len(m.tool_calls) for m in reading.said] == [
            sum(part["type"] == "tool_call" for part in m["parts"]) for m in said
        ]
        assert all(isinstance(m.content, str) for m in (*reading.asked, *reading.said))
        seen += len(asked) + len(said)
    assert seen > 60


# Frameworks whose spans have their messages in attributes, and how many model calls each made.
FRAMEWORKS = {
    "google-adk-2025-08-28": 2,
    "koog-2025-08-26": 2,
    "openai-agents-2025-09-30": 2,
    "pydantic-ai-tools-2025-06-06": 1,
    "vertex-ai-2025-08-01": 1,
}


def observations(framework: str) -> Iterator[tuple[str, SpanData]]:
    file = DATA / "langfuse" / f"{framework}.trace.json"
    for found in json.loads(file.read_text(encoding="utf-8"))["observations"]:
        about = found["metadata"]
        about = json.loads(about) if isinstance(about, str) else about or {}
        attributes = about.get("attributes") or {}
        attributes = json.loads(attributes) if isinstance(attributes, str) else attributes
        yield found["id"], SpanData(found["name"] or "", attributes)


def words(content: Any) -> str:
    """What was said, whatever the white space of its JSON."""
    return "".join(str(content or "").split())


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_messages_of_agent_frameworks_are_those_of_the_gold(framework: str) -> None:
    """What a message says is what people found that it says; only roles have our names."""
    file = DATA / "langfuse" / f"{framework}.chatml.json"
    gold = json.loads(file.read_text(encoding="utf-8"))
    calls = 0
    for identity, span in observations(framework):
        reading = reading_of(span)
        if reading is None or reading.kind != "model":
            continue
        calls += 1
        for side, ours in (("input", reading.asked), ("output", reading.said)):
            expected = gold.get(identity, {}).get(side, {}).get("data", [])
            known = [words(one["content"]) for one in expected if one.get("content")]
            assert [text for text in known if text not in spoken(ours)] == []
    assert calls == FRAMEWORKS[framework]


def spoken(messages: tuple[Message, ...]) -> list[str]:
    return [words(message.content) for message in messages]
