"""Every value of a trace is in the record: for changed traces and for any JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proctor.sessions.importers import langfuse, otlp
from tests.importers.logs import DATA, marked_in, read, written
from tests.importers.traces import LANGFUSE, LANGFUSE_SESSION, OTLP, OTLP_LOGS
from tests.support import pair_in_turn
from tests.tables import each_row

MARK = "\u2042mark\u2042"
PUTS = [MARK, {MARK: 1}, [MARK], {"type": MARK}]
REAL = sorted((DATA / "08_traces" / "otlp_openai_v2").glob("*.json"))[::23]
REAL += sorted((DATA / "08_traces" / "langfuse").glob("*.trace.json"))
FORMATS = {"otlp": otlp, "langfuse": langfuse}
EXAMPLES = {"otlp": OTLP, "logs": OTLP_LOGS, "langfuse": LANGFUSE, "langfuse session": LANGFUSE_SESSION}
lenient = settings(deadline=None, suppress_health_check=list(HealthCheck))
# Keys and words that mean something in a trace, so that odd shapes come up.
WORDS = """resourceSpans scopeSpans spans resourceLogs scopeLogs logRecords attributes key value
    stringValue intValue arrayValue kvlistValue values traceId spanId parentSpanId name events body
    startTimeUnixNano gen_ai.operation.name gen_ai.input.messages gen_ai.prompt.0.content chat
    execute_tool role content parts type text tool_calls function arguments trace observations id
    GENERATION SPAN TOOL startTime input output metadata usageDetails scores data meta messages
    choices candidates contents message kwargs lc thought functionCall toolName toolCallId
    traces timestamp args"""
MEANING = frozenset(WORDS.split())
words = st.sampled_from(sorted(MEANING))
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8) | words
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=5), inner, max_size=6),
    max_leaves=25,
)


class Text:
    """JSON inside a text, whose values can be changed too."""

    def __init__(self, value: Any) -> None:
        self.inside = [value]


def opened(value: Any) -> Any:
    """A value whose texts, where they are JSON, are opened."""
    if isinstance(value, dict):
        return {key: opened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [opened(item) for item in value]
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return Text(opened(json.loads(value)))
        except ValueError:
            return value
    return value


def closed(value: Any) -> Any:
    """The same with its texts closed again."""
    if isinstance(value, Text):
        return json.dumps(closed(value.inside[0]), ensure_ascii=False)
    if isinstance(value, dict):
        return {key: closed(item) for key, item in value.items()}
    return [closed(item) for item in value] if isinstance(value, list) else value


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a value that can be written to, as (container, key)."""
    if isinstance(value, Text):
        yield from spots(value.inside)
    elif isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from spots(value[key])


@pytest.mark.parametrize("name", FORMATS)
@given(values=st.lists(anything, max_size=6))
@example(values=[[], {}, None, [[]], {"": []}])
@example(values=[{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}])
@example(values=[{"trace": {"id": "t"}, "observations": [{"type": "GENERATION", "id": 1}]}])
@settings(lenient)
def test_any_json_is_kept(name: str, values: list[Any]) -> None:
    """Any JSON, read as a trace, neither fails nor loses a text, a number or a key."""
    marks: list[str] = []
    marked = [marked_in(value, MEANING, marks) for value in values]
    assert written(read(FORMATS[name], values))
    stored = written(read(FORMATS[name], marked))
    assert [mark for mark in marks if mark not in stored] == []
    for form in FORMATS.values():
        form.looks_like(values)


@pytest.mark.thorough
@each_row("name", EXAMPLES)
def test_nothing_in_a_trace_can_be_lost(name: str) -> None:
    """A word in any place of a trace, as one of four values in turn (all in `make properties`), is in the record."""
    lost = []
    form = FORMATS.get(name.partition(" ")[0], otlp)
    values = opened(EXAMPLES[name])
    for container, key, put in pair_in_turn(list(spots(values)), PUTS):
        before, container[key] = container[key], put
        if MARK not in written(read(form, closed(values))):
            lost.append((key, before))
        container[key] = before
    assert lost == []


@pytest.mark.thorough
@each_row("name", EXAMPLES)
def test_the_same_word_in_another_place_is_kept(name: str) -> None:
    """A word of the trace, put in the place of another text or number, makes another record."""
    form = FORMATS.get(name.partition(" ")[0], otlp)
    before = written(read(form, EXAMPLES[name]))
    unseen = []
    values = opened(EXAMPLES[name])
    for container, key, put in pair_in_turn(list(spots(values)), ["Weather in Paris?", "Sunny", "c1", "user", 12]):
        was = container[key]
        if str(was).strip('"') == str(put) or not isinstance(was, str | int | float):
            continue
        container[key] = put
        if written(read(form, closed(values))) == before:
            unseen.append((key, was))
        container[key] = was
    assert unseen == []


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[:60])
@given(place=st.floats(0, 1, exclude_max=True), put=st.sampled_from(PUTS))
@settings(lenient, max_examples=4)
def test_changes_of_a_real_trace_are_kept(path: Path, place: float, put: Any) -> None:
    """A word put anywhere into a real trace, in the place of anything, is found in the record."""
    values = opened([json.loads(path.read_text(encoding="utf-8"))])
    change(values, place, put)
    form = otlp if "otlp" in path.name else langfuse
    assert MARK in written(read(form, closed(values)))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[:60])
@given(random=st.randoms(use_true_random=False), is_swapped=st.booleans())
@settings(lenient, max_examples=6)
def test_the_same_word_in_a_real_trace_is_kept(path: Path, random: Random, is_swapped: bool) -> None:
    """A long text in the place of another one, or two that change places, make another record."""
    values = opened([json.loads(path.read_text(encoding="utf-8"))])
    form = otlp if "otlp" in path.name else langfuse
    before = written(read(form, closed(values)))
    texts = [(c, k) for c, k in spots(values) if isinstance(c[k], str) and len(c[k]) > 12]
    container, key = random.choice(texts)
    other, place = random.choice([(c, k) for c, k in texts if c[k] != container[key]])
    before_it, container[key] = container[key], other[place]
    if is_swapped:
        other[place] = before_it
    assert written(read(form, closed(values))) != before


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[:60])
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), anything), max_size=5))
@settings(lenient, max_examples=3)
def test_odd_values_in_a_real_trace_are_read(path: Path, changes: list[tuple[float, Any]]) -> None:
    """Several places of a real trace hold any JSON: what there is can be read, and written."""
    values = opened([json.loads(path.read_text(encoding="utf-8"))])
    for place, put in changes:
        change(values, place, put)
    form = otlp if "otlp" in path.name else langfuse
    imported = read(form, closed(values))
    assert written(imported)
    # Where nothing but empty lists and mappings is left, there is no session.
    matcher = [c[k] for c, k in spots(values) if not isinstance(c[k], dict | list)]
    assert imported or not any(values) or not matcher


def change(values: list[Any], place: float, put: Any) -> None:
    """Replace one value by another."""
    places = list(spots(values))
    container, key = places[int(place * len(places))]
    container[key] = put


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("depth", [50, 150, 700])
def test_nesting_is_limited(form: Any, depth: int) -> None:
    """Values that are too deeply nested are kept as text, everywhere."""
    deep: Any = MARK
    for _ in range(depth):
        deep = [deep]
    text = "[" * depth + json.dumps(MARK, ensure_ascii=False) + "]" * depth
    for value in (deep, text):
        span = {"traceId": "t", "spanId": "s", "name": "chat"}
        about = [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.input.messages", "value": {"stringValue": value}},
        ]
        trace = {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": about}]}]}]}
        row = {"id": "o", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z", "input": value}
        export = {"trace": {"id": "t"}, "observations": [row]}
        assert MARK in written(read(form, [trace if form is otlp else export]))
    long = ".".join(["gen_ai.prompt"] + ["0"] * 5000)
    about = [{"key": long, "value": {"stringValue": MARK}}]
    trace = {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": about}]}]}]}
    assert MARK in written(read(otlp, [trace]))
