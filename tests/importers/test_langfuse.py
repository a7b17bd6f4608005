"""Langfuse in all its shapes: an export, an answer of the API, pages and rows; what is counted."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.sessions.importers import langfuse, otlp
from tests.importers.logs import kinds, only, read, written
from tests.importers.traces import LANGFUSE, row
from tests.tables import each_row

EXPORT: dict[str, Any] = LANGFUSE[0]
ROWS: list[dict[str, Any]] = EXPORT["observations"]
SCORE = {"id": "s1", "traceId": "t1", "name": "tone", "value": 0.5, "comment": "fine"}


def generation(**about: Any) -> dict[str, Any]:
    return {"trace": {"id": "t1"}, "observations": [row("ask", "GENERATION", 1, **about)]}


def test_an_export_becomes_a_session() -> None:
    """Messages, calls, scores and tags; the tool call gets the id of its request."""
    imported = only(langfuse, EXPORT)
    assert kinds(imported) == [
        "CustomEvent observation: agent",
        "user",
        "assistant",
        "ModelCall small",
        "ToolCall weather",
    ]
    assert (imported.id, imported.format, imported.source) == ("t1", "langfuse", "logs/chat.jsonl")
    assert imported.session[ModelCall] == (ModelCall("small", Usage(12, 3, cost=0.25), 500.0),)
    assert imported.session[ToolCall] == (ToolCall("weather", {"city": "Paris"}, "Sunny", "late", 500.0, "c1"),)
    assert (imported.input, imported.output) == ("Weather in Paris?", None)
    assert imported.unknown_parts == {"attribute: acme.x": 1}
    recorded = imported.recorded
    assert (recorded["title"], recorded["tags"], recorded["scores"]) == ("agent run", ["a"], {"tone": 0.5})
    assert recorded["started_at"] == "2026-01-01T00:00:00+00:00"
    assert recorded["ended_at"] == "2026-01-01T00:00:02.500000+00:00"
    assert recorded["trace"]["input"] == EXPORT["trace"]["input"]
    assert [entry["event"] for entry in recorded["observations"]] == [0, 3, 4]


def test_an_odd_call_type_is_not_a_message() -> None:
    """The type of a call without a name is kept, even if a message has the same text."""
    result = []
    for kind in ("function", "Weather "):
        asked = {"role": "us", "content": "Weather "}
        message = {"role": "assistant", "tool_calls": [{"id": 0, "type": kind}]}
        result.append(written(only(langfuse, generation(input=asked, output=message))))
    assert result[0] != result[1]


def snake(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {
        "traceId": "trace_id",
        "parentObservationId": "parent_observation_id",
        "startTime": "start_time",
        "endTime": "end_time",
        "usageDetails": "usage_details",
        "costDetails": "cost_details",
        "statusMessage": "status_message",
        "model": "provided_model_name",
    }
    return [{names.get(key, key): value for key, value in item.items()} for item in rows]


API = {**EXPORT["trace"], "observations": ROWS, "htmlPath": "/trace/t1"}


@pytest.mark.parametrize(
    "values",
    [
        [API],
        [[API]],
        [{"data": [API], "meta": {"page": 1}}],
        [*ROWS, SCORE],
        [[*ROWS, SCORE]],
        [{"data": ROWS, "meta": {}}, {"data": [SCORE], "meta": {}}],
        [*snake(ROWS), {**SCORE, "traceId": "t1"}],
    ],
    ids=["api", "list", "page", "rows", "list of rows", "pages of rows", "files"],
)
def test_every_shape_gives_the_same_session(values: list[Any]) -> None:
    """Traces or rows, in lists, pages or lines, in camel case or snake case."""
    assert langfuse.looks_like(values)
    assert not otlp.looks_like(values)
    (imported,) = read(langfuse, values)
    assert imported.session[Message] == only(langfuse, EXPORT).session[Message]
    assert imported.session.usage == Usage(12, 3, cost=0.25)
    assert imported.recorded["scores"] == {"tone": 0.5}


def test_rows_of_several_traces_are_several_sessions() -> None:
    """In the order in which they are first named, with their lines."""
    other = {**ROWS[1], "traceId": "t2"}
    first, second = read(langfuse, [ROWS[1], other, ROWS[2]], "rows.jsonl")
    assert (first.id, second.id) == ("t1", "t2")
    assert (first.source, second.source) == ("rows.jsonl:1", "rows.jsonl:2")
    assert len(first.session[ToolCall]) == 1


def test_a_repeated_observation_counts_once() -> None:
    """Each fills what the other lacks; where they differ both are kept."""
    short = [{**item, "input": None, "output": None, "metadata": "{}"} for item in ROWS]
    short[1] = {**short[1], "model": "large"}
    document = copy.deepcopy(EXPORT)
    document["trace"]["observations"] = short
    imported = only(langfuse, document)
    assert kinds(imported) == [k.replace("small", "large") for k in kinds(only(langfuse, EXPORT))]
    assert imported.recorded["observations"][1]["also"] == [{"model": "small"}]


@pytest.mark.parametrize(
    ("about", "usage"),
    [
        ({"usage": {"input": 3, "output": 1, "unit": "TOKENS"}}, Usage(3, 1)),
        ({"usage": {"input": 3, "output": 1, "unit": "CHARACTERS"}}, Usage()),
        ({"usageDetails": {}, "totalCost": 0}, Usage()),
        ({"costDetails": {"total": 0}}, Usage(cost=0.0)),
        ({"calculatedTotalCost": 0.5, "usageDetails": '{"input": 3}'}, Usage(3, cost=0.5)),
        (
            {"usageDetails": {"input": 3, "input_cache_read": 2, "input_cache_creation": 1}},
            Usage(6, cached_tokens=2, cache_write_tokens=1),
        ),
        ({"metadata": {"attributes": {"gen_ai.usage.input_tokens": "7"}}}, Usage(7)),
    ],
)
def test_tokens_and_costs_of_all_versions(about: dict[str, Any], usage: Usage) -> None:
    """Older exports have a unit; where Langfuse counted nothing, the span's own figures hold, and a
    zero that stands for no price is no price."""
    assert only(langfuse, generation(**about)).session.usage == usage


@each_row(
    ("details", "usage"),
    [
        # Beside each other, as Langfuse counts: all kinds together are the total.
        (
            {"input": 2140, "input_cached_tokens": 1024, "output": 96}
            | {"output_reasoning_tokens": 310, "total": 3570},
            Usage(3164, 406, 1024),
        ),
        # The same without a total: all kinds add up.
        ({"input": 5, "cache_read_input_tokens": 40, "output": 2, "output_reasoning": 3}, Usage(45, 5, 40)),
        # Told again: the kinds are in the input and the output already.
        (
            {"input": 100, "prompt_details.cache_read": 40, "output": 20}
            | {"completion_details.reasoning": 7, "total": 120},
            Usage(100, 20, 40),
        ),
        # The cache is in the input already, the reasoning stands beside the output.
        (
            {"input": 100, "input_cache_read": 40, "output": 20} | {"output_reasoning": 7, "total": 127},
            Usage(100, 27, 40),
        ),
        # The cache stands beside the input, what was heard is in it.
        ({"input": 100, "input_cache_read": 40, "input_audio": 10, "output": 5, "total": 145}, Usage(140, 5, 40)),
        # What only the total counts was thought; where no input is told, it is that.
        ({"input": 5, "output": 845, "total": 2023}, Usage(5, 2018)),
        ({"input": 5, "total": 12}, Usage(5, 7)),
        ({"output": 5, "total": 12}, Usage(7, 5)),
        # A total that is less than its parts is none; one alone is of neither side.
        ({"input": 5, "output": 5, "total": 1}, Usage(5, 5)),
        ({"total": 12}, Usage()),
        # The same count by two names is one, and prices are no tokens.
        ({"input": 5, "prompt_tokens": 5, "output": 1, "inputCost": 1}, Usage(5, 1)),
    ],
)
def test_all_tokens_are_counted_and_none_twice(details: dict[str, int], usage: Usage) -> None:
    """The kinds of tokens add up to the total, if there is one that can be had from them."""
    assert only(langfuse, generation(usageDetails=details)).session.usage == usage


def test_texts_become_messages() -> None:
    """A generation whose input is no list of messages; other values are kept as data."""
    imported = only(langfuse, generation(input="Hi", output='"Hello"'))
    assert [(m.role, m.content) for m in imported.session[Message]] == [("user", "Hi"), ("assistant", "Hello")]
    odd = only(langfuse, generation(input={"question": "Hi"}, output=[1]))
    assert kinds(odd) == ["user", "ModelCall unknown", "assistant"]
    assert (odd.input, odd.output, odd.unknown_parts) == ("Hi", [1], {})
    assert odd.recorded["observations"][0]["input"] == {"question": "Hi"}


def test_messages_of_a_framework_replace_the_text_of_its_client() -> None:
    """The inner generation is the call, the outer one has the messages."""
    outer = row("outer", "GENERATION", 1, input=[{"role": "user", "content": "Hi"}], model="x")
    plain = {"input": "user: Hi", "usageDetails": {"input": 3}, "model": "small"}
    inner = row("inner", "GENERATION", 1, parentObservationId="outer", **plain)
    imported = only(langfuse, {"trace": {"id": "t1"}, "observations": [inner, outer]})
    assert kinds(imported) == ["user", "CustomEvent observation: generation", "ModelCall small"]
    assert imported.session[Message] == (Message("user", "Hi"),)


def test_a_trace_without_calls_has_its_input_and_output() -> None:
    """As decorators log functions: texts, data and messages become messages."""
    spans = [row("f", "SPAN", 0)]
    imported = only(langfuse, {"trace": {"id": "t", "input": '"2 + 2"', "output": "4"}, "observations": spans})
    assert kinds(imported) == ["user", "CustomEvent observation: span", "assistant"]
    assert (imported.input, imported.output) == ("2 + 2", "4")
    assert imported.recorded["observations"] == [{"id": "f", "name": "f", "event": 1}]
    other = {"trace": {"id": "t", "input": {"n": 2}, "output": [4]}, "observations": spans}
    imported = only(langfuse, other)
    assert kinds(imported) == ["user", "CustomEvent observation: span", "assistant"]
    assert (imported.input, imported.output, imported.unknown_parts) == ({"n": 2}, [4], {})
    assert "trace" not in imported.recorded
    chat = {
        "input": {"messages": [{"role": "user", "content": "Hi"}]},
        "output": {"role": "assistant", "content": "Yo"},
    }
    imported = only(langfuse, {"trace": {"id": "t", **chat}, "observations": []})
    assert kinds(imported) == ["user", "assistant"]


def test_langchain_tools_are_recognized_by_their_output() -> None:
    """A tool message with its id; the arguments are separate."""
    given = {"type": "tool", "content": "no such page", "name": "search", "tool_call_id": "c1", "status": "error"}
    about = {"input": "{'q': 1}", "output": json.dumps(given), "metadata": '{"inputs": {"q": 1}}'}
    imported = only(langfuse, {"trace": {"id": "t"}, "observations": [row("search", "SPAN", 0, **about)]})
    assert imported.session[ToolCall] == (ToolCall("search", {"q": 1}, "no such page", "no such page", 500.0, "c1"),)


def test_embeddings_are_calls_without_messages() -> None:
    """The embedded texts are no messages."""
    rows = [row("embed", "EMBEDDING", 0, input="a text", model="vectors", usageDetails={"input": 4})]
    imported = only(langfuse, {"trace": {"id": "t"}, "observations": rows})
    assert kinds(imported) == ["ModelCall vectors"]
    assert imported.session.usage == Usage(4)


def test_a_failed_generation_has_its_error() -> None:
    """By its level and status message."""
    imported = only(langfuse, generation(level="ERROR", statusMessage="429", latency=0.25, endTime=None))
    (call,) = imported.session[ModelCall]
    assert call.details == {"error": "429"}
    assert call.latency_ms == 250
    silent = only(langfuse, generation(level="ERROR"))
    assert silent.session[ModelCall][0].details == {"error": "unknown error"}


def test_scores_may_be_texts() -> None:
    """Categories, and numbers with a label."""
    scores = [
        {"name": "tone", "dataType": "CATEGORICAL", "value": 1, "stringValue": "kind"},
        {"name": "safe", "stringValue": "yes", "value": None},
        {"name": "n", "value": 0.5},
    ]
    document = {"trace": {"id": "t", "scores": scores}, "observations": []}
    assert only(langfuse, document).recorded["scores"] == {"tone": "kind", "safe": "yes", "n": 0.5}


def test_a_trace_may_list_only_ids_of_observations_and_scores() -> None:
    """As lists of traces do: that is understood, and kept with the trace."""
    about = {"id": "t", "timestamp": "2026-01-01T00:00:00Z", "input": "Hi", "output": "Ho"}
    document = {**about, "observations": ["o1", "o2"], "scores": ["s1"]}
    imported = only(langfuse, document)
    assert imported.unknown_parts == {}
    stored = imported.recorded["trace"]
    assert (stored["observations"], stored["scores"]) == (["o1", "o2"], ["s1"])


def test_unknown_values_are_kept_and_counted() -> None:
    """Kinds of observations, fields, numbers among them, and lines that are no rows."""
    odd = row("new", "HOLOGRAM", 0, shade="blue")
    document = {"trace": {"id": "t", "observations": [5]}, "observations": [odd]}
    imported = only(langfuse, document, 7, {"no": "row"}, {"data": [3], "meta": {}, "extra": 1})
    assert imported.unknown_parts == {"field: shade": 1, "observation: hologram": 1, "odd row": 1, "row": 4}
    assert imported.source == "logs/chat.jsonl:1"
    stored = [event.data["found"] for event in imported.session[CustomEvent]]
    assert stored[0]["shade"] == "blue"
    assert stored[1:] == [7, {"no": "row"}, 3, {"extra": 1}, {"observations": 5}]
    alone = only(langfuse, {"trace": {}, "observations": []})
    assert (alone.id, alone.unknown_parts) == ("chat", {"row": 1})
    assert not langfuse.looks_like([7, {}, [], {"data": [], "meta": {}}])
    assert not langfuse.looks_like([{"traceId": "t", "startTime": "x", "type": "user"}])
