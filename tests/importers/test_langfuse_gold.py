"""Traces of ten agent frameworks, as Langfuse exports them, against Langfuse's own reading.

The gold (`*.chatml.json`) is what Langfuse's viewer makes of the input and the output of each
observation: a list of messages, or an error where it finds none. Two things in it are rendering and
are set aside here: `tools` (the tools on offer, repeated with every message) and `json` (whatever
else stood beside a message). A message without a role is none: it is how the viewer shows any other
JSON, such as what a tool gave. What remains is compared word by word: role (`model` is what Gemini
calls the assistant), text, tool calls with id, name and arguments, and which call a tool answers.

The data is not part of the project: it is read from PROCTOR_DATA (by default ../shared/data).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall
from proctor.sessions.importers import langfuse, otlp
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.sessions.importers.langfuse_rows import get_attributes, read_observation_messages
from tests.support import ROOT
from tests.tables import each_row

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))
FOLDER = DATA / "08_traces" / "langfuse"

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=f"the traces are not at {FOLDER} (set PROCTOR_DATA)")

FRAMEWORKS = (
    "agno-2025-06-11",
    "claude-agent-2025-12-22",
    "google-adk-2025-08-28",
    "koog-2025-08-26",
    "langgraph-python-2025-08-22",
    "openai-agents-2025-09-30",
    "pydantic-ai-tools-2025-06-06",
    "pydantic-ai-with-gemini-2025-12-24",
    "vercel-aisdk-2025-11-17",
    "vertex-ai-2025-08-01",
)

# Where we read more than the gold or call it otherwise, exactly: by observation and side, what
# the gold has (as compared here), and what we have in its place.
Said = tuple[str, Any, tuple[Any, ...], str | None]
DIFFERENCES: dict[tuple[str, str], tuple[list[Said], list[Said]]] = {
    # Gemini has no role for tools: what a tool gave stands with the user. We say that it is a tool.
    ("bded677884f031ce", "input"): (
        [("user", {"greeting": "Hello Langfuse 👋"}, (), None)],
        [("tool", {"greeting": "Hello Langfuse 👋"}, (), None)],
    ),
    # The instructions of the Responses API stand in its answer; the viewer does not look there.
    ("90d94774e8e3724d", "input"): ([], [("system", "You are a helpful agent.", (), None)]),
    ("98870087af69bf06", "input"): ([], [("system", "You are a helpful agent.", (), None)]),
}


def load(framework: str, kind: str) -> Any:
    return json.loads((FOLDER / f"{framework}.{kind}.json").read_text(encoding="utf-8"))


def imported(framework: str) -> ImportedSession:
    (result,) = langfuse.read([(1, load(framework, "trace"))], f"{framework}.json")
    return result


def opened(value: Any) -> Any:
    """JSON in a text as what it is; rendering may have opened it or not."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def gold_of(framework: str) -> Iterator[tuple[str, str, list[Said]]]:
    for identity, sides in load(framework, "chatml").items():
        for side, outcome in sides.items():
            if outcome["success"]:
                messages = [form for item in outcome["data"] for form in gold_message(item)]
                yield identity, side, messages


def gold_message(one: dict[str, Any]) -> Iterator[Said]:
    content, calls = one.get("content", ""), one.get("tool_calls", [])
    if "role" not in one and not calls:
        return
    asked = [(call["id"] or None, call["name"], opened(call["arguments"])) for call in calls]
    if isinstance(content, list) and all(part.get("type") for part in content):
        # Anthropic's parts, which the gold leaves as they are.
        uses = [part for part in content if part["type"] == "tool_use"]
        asked += [(part["id"], part["name"], part["input"]) for part in uses]
        content = "\n".join(part["text"] for part in content if part["type"] == "text")
    role = "assistant" if one["role"] == "model" else one["role"]
    yield role, opened(content), tuple(asked), one.get("tool_call_id")


def ours(messages: list[Message]) -> list[Said]:
    return [
        (
            message.role,
            opened(message.content),
            tuple((call.call_id, call.name, call.arguments) for call in message.tool_calls),
            message.call_id,
        )
        for message in messages
    ]


@each_row("framework", FRAMEWORKS)
def test_the_messages_of_every_observation_match_the_gold_data(framework: str) -> None:
    """In order and word by word, but for the differences that are written down above."""
    rows = {row["id"]: row for row in load(framework, "trace")["observations"]}
    for identity, side, gold in gold_of(framework):
        row = rows[identity]
        spoken, _ = read_observation_messages(row, get_attributes(row))
        result = ours(spoken.inputs if side == "input" else spoken.outputs)
        theirs, instead = DIFFERENCES.get((identity, side), ([], []))
        if not gold:
            continue
        assert [message for message in result if message not in instead] == [
            message for message in gold if message not in theirs
        ]
        assert all(message in result for message in instead)
        assert all(message in gold for message in theirs)


def test_the_gold_data_is_not_empty() -> None:
    """76 messages are compared, in all frameworks."""
    assert {name: sum(len(gold) for *_, gold in gold_of(name)) for name in FRAMEWORKS} == {
        "agno-2025-06-11": 2,
        "claude-agent-2025-12-22": 5,
        "google-adk-2025-08-28": 11,
        "koog-2025-08-26": 11,
        "langgraph-python-2025-08-22": 29,
        "openai-agents-2025-09-30": 6,
        "pydantic-ai-tools-2025-06-06": 5,
        "pydantic-ai-with-gemini-2025-12-24": 2,
        "vercel-aisdk-2025-11-17": 3,
        "vertex-ai-2025-08-01": 2,
    }


def test_we_have_the_messages_that_the_gold_data_lacks() -> None:
    """Agno's messages are Python in texts, PydanticAI's answer stands in a choice: the viewer shows
    four messages without role and words, and one answer as JSON. Both are in the session."""
    messages = [(m.role, m.content) for m in imported("agno-2025-06-11").session[Message]]
    assert [role for role, _ in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert messages[1] == ("user", "What is currently trending on Twitter?")
    gold = load("pydantic-ai-tools-2025-06-06", "chatml")["5cb389a3bdd21a6e"]["output"]["data"]
    answer = imported("pydantic-ai-tools-2025-06-06").output
    assert answer == gold[0]["json"]["message"]["content"]


# Each session in short: who speaks, M for a model call, T for a tool call, in order.
SESSIONS = {
    "agno-2025-06-11": "system user assistant M T tool assistant M",
    "claude-agent-2025-12-22": "user assistant M assistant M assistant M T T assistant M",
    "google-adk-2025-08-28": "system user assistant M T tool assistant M",
    "koog-2025-08-26": ("system user assistant assistant M T T tool tool tool tool assistant M"),
    "langgraph-python-2025-08-22": "user user assistant M T tool assistant M",
    "openai-agents-2025-09-30": "system user assistant M T tool assistant M",
    "pydantic-ai-tools-2025-06-06": "system user assistant M",
    "pydantic-ai-with-gemini-2025-12-24": "user assistant M",
    "vercel-aisdk-2025-11-17": "user assistant M T",
    "vertex-ai-2025-08-01": "user assistant M",
}


@each_row("framework", FRAMEWORKS)
def test_a_session_has_everything_once_and_in_order(framework: str) -> None:
    """Repeated history, and the outer span of a client's call, add nothing."""
    document = load(framework, "trace")
    assert langfuse.looks_like([document])
    assert not otlp.looks_like([document])
    session = imported(framework).session
    short = {ModelCall: "M", ToolCall: "T"}
    result = [e.role if isinstance(e, Message) else short.get(type(e), "") for e in session]
    assert " ".join(filter(None, result)) == SESSIONS[framework]
    stored = [event for event in session if isinstance(event, CustomEvent)]
    calls = len(session[ModelCall]) + len(session[ToolCall])
    assert calls + len(stored) == len(document["observations"])


@each_row("framework", FRAMEWORKS)
def test_tokens_costs_latencies_scores_and_tags_are_recorded(framework: str) -> None:
    """Each observation keeps its own; the session counts the innermost ones."""
    document = load(framework, "trace")
    trace_session = imported(framework)
    rows = {row["id"]: row for row in document["observations"]}
    outer = {row["parentObservationId"] for row in rows.values() if row["type"] == "GENERATION"}
    innermost = [r for r in rows.values() if r["type"] == "GENERATION" and r["id"] not in outer]
    used = [row["usageDetails"] for row in innermost]
    assert trace_session.session.usage.input_tokens == sum(item["input"] for item in used)
    assert trace_session.session.usage.total_tokens == sum(item["total"] for item in used)
    assert trace_session.session.usage.cost == pytest.approx(sum(row["totalCost"] for row in innermost))
    result = sorted(call.latency_ms or 0 for call in trace_session.session[ModelCall])
    assert result == pytest.approx(sorted(row["latency"] * 1e3 for row in innermost))
    for entry in trace_session.recorded["observations"]:
        event = trace_session.session.events[entry["event"]]
        about = event.data["found"] if isinstance(event, CustomEvent) else entry
        for name in ("usageDetails", "costDetails", "latency", "model", "startTime"):
            assert (about.get(name) or None) == (rows[entry["id"]][name] or None)
    trace = document["trace"]
    assert trace_session.id == trace["id"]
    assert trace_session.recorded["title"] == trace["name"]
    assert trace_session.recorded["latency_ms"] == pytest.approx(trace["latency"] * 1e3)
    assert trace_session.recorded.get("tags", []) == trace["tags"]
    scores = {row["name"]: row["value"] for row in trace["scores"]}
    assert trace_session.recorded.get("scores", {}) == scores
    assert [row["comment"] for row in trace_session.recorded.get("score_rows", [])] == [
        row["comment"] for row in trace["scores"]
    ]


def test_unknown_values_are_counted() -> None:
    """Three frameworks have attributes of no known convention."""
    counted = {name: imported(name).unknown_parts for name in FRAMEWORKS}
    assert {name: result for name, result in counted.items() if result} == {
        "agno-2025-06-11": {"attribute: agno{key_suffix}.tools": 1},
        "koog-2025-08-26": {"attribute: koog.agent.strategy.name": 1, "attribute: koog.node.name": 5},
        "pydantic-ai-tools-2025-06-06": {
            "attribute: agent_name": 1,
            "attribute: model_name": 1,
            "attribute: model_request_parameters": 1,
        },
        "pydantic-ai-with-gemini-2025-12-24": {"attribute: model_request_parameters": 1},
    }
