"""A session of Langfuse with its traces: one conversation, its turns in order of time."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall
from proctor.sessions.importers import langfuse
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.sessions.importers.session_files import detect_format
from tests.importers.logs import only, read
from tests.importers.traces import LANGFUSE_SESSION, REPLY, SECOND, row, turn

SESSION: dict[str, Any] = LANGFUSE_SESSION[0]


def said(found: ImportedSession) -> list[tuple[str, Any]]:
    return [(message.role, message.content) for message in found.session[Message]]


def session(*traces: Any, **more: Any) -> dict[str, Any]:
    return {"id": "s1", "traces": [*traces], **more}


def test_a_session_is_one_conversation() -> None:
    """Turns are in order of time; history that the second turn repeats is read once."""
    form = detect_format([SESSION])
    assert form is not None
    assert form.NAME == "langfuse"
    imported = only(langfuse, SESSION)
    assert said(imported) == [
        ("system", "Be kind."),
        ("user", "My parcel?"),
        ("assistant", "Which order?"),
        ("user", "1234"),
        ("assistant", "Shipped!"),
    ]
    assert (imported.id, imported.input, imported.output) == ("s1", "My parcel?", "Shipped!")
    recorded = imported.recorded
    assert (recorded["session_id"], recorded["title"], recorded["cost"]) == ("s1", "support", 0.75)
    assert recorded["started_at"] == "2026-01-01T00:01:00+00:00"
    assert recorded["ended_at"] == "2026-01-01T00:02:00+00:00"
    assert [trace["id"] for trace in recorded["traces"]] == ["t1", "t2"]
    assert [trace.get("repeats") for trace in recorded["traces"]] == [None, [0, 1, 2]]
    assert recorded["session_row"] == {"createdAt": "2026-01-01T00:00:00Z", "projectId": "p1"}


@pytest.mark.parametrize("values", [[[SESSION]], [{"data": [SESSION], "meta": {}}], [7, SESSION]])
def test_sessions_are_read_from_lists_pages_and_lines(values: list[Any]) -> None:
    """As traces do."""
    (imported,) = read(langfuse, values)
    assert imported.id == "s1"
    assert len(imported.session[Message]) == 5


def test_equal_messages_of_two_turns_are_both_kept() -> None:
    """Only messages before the last user message can be history."""
    imported = only(langfuse, session(turn(1, "yes", "OK."), turn(2, "yes", "OK.")))
    assert said(imported) == [("user", "yes"), ("assistant", "OK.")] * 2
    several = [{"role": "user", "content": "b"}, {"role": "assistant", "content": "OK."}]
    more = [*several, {"role": "user", "content": "c"}]
    imported = only(langfuse, session(turn(1, "yes", "OK."), turn(2, more, "Done.")))
    assert [words for _, words in said(imported)] == ["yes", "OK.", "b", "OK.", "c", "Done."]


def test_changed_instructions_do_not_repeat_the_history() -> None:
    """A changed system message is added each time, and nothing else is."""
    second = [{"role": "system", "content": "It is noon."}, *SECOND[1:]]
    imported = only(langfuse, session(turn(1, SECOND[:2], REPLY), turn(2, second, "Shipped!")))
    assert [role for role, _ in said(imported)] == [*("system", "user", "assistant"), *("system", "user", "assistant")]


def test_observations_of_all_turns_have_event_indexes() -> None:
    """Their own, and those of the messages that their models were given."""
    ask = {"model": "small", "usageDetails": {"input": 3, "output": 1}}
    first = row("g1", "GENERATION", 1, input=SECOND[:2], output=REPLY, **ask)
    outer = row("g2", "GENERATION", 2, input=SECOND, output="Shipped!")
    inner = row("g3", "GENERATION", 2, parentObservationId="g2", **ask)
    traces = [turn(1, None, None, observations=[first]), turn(2, None, None, observations=[outer, inner])]
    imported = only(langfuse, session(*traces))
    events = imported.session.events
    assert imported.session.usage.total_tokens == 8
    about = {entry["id"]: entry for entry in imported.recorded["observations"]}
    assert isinstance(events[about["g1"]["event"]], ModelCall)
    around = events[about["g2"]["event"]]
    assert isinstance(around, CustomEvent)
    assert [events[place].content for place in around.data["found"]["asked"]] == [
        *("Be kind.", "My parcel?", "Which order?", "1234")
    ]
    assert len(imported.session[Message]) == 5


def test_rows_outside_a_session_belong_to_its_traces() -> None:
    """Scores and observations may have separate lines; other traces are separate sessions."""
    score = {"id": "x", "traceId": "t2", "name": "tone", "value": 1}
    other = {**turn(3, "Hi", "Yo"), "userId": "u"}
    first, second = read(langfuse, [SESSION, score, other])
    assert first.recorded["scores"] == {"tone": 1}
    assert (second.id, second.recorded["session_id"]) == ("t3", "s1")


def test_other_values_in_a_session_are_kept() -> None:
    """As a stray, which is counted; so is a second session that has the same traces."""
    document = copy.deepcopy(SESSION)
    document["traces"].append({"odd": "one"})
    imported = only(langfuse, document)
    assert imported.unknown_parts == {"row": 1}
    assert {"found": {"odd": "one"}} in [event.data for event in imported.session[CustomEvent]]
    (imported,) = read(langfuse, [SESSION, {**SESSION, "id": "s2"}])
    assert (imported.id, imported.unknown_parts) == ("s1", {"odd row": 2})
    assert not langfuse.looks_like([{"id": "s1", "traces": ["t1"]}])


def test_a_session_without_traces_is_empty() -> None:
    """The log names it, unless its traces are elsewhere or belong to another session."""
    about = {"createdAt": "2026-01-01T00:00:00Z", "projectId": "p"}
    empty = {"id": "s9", **about, "traces": []}
    assert langfuse.looks_like([empty])
    imported = only(langfuse, empty)
    assert (imported.id, len(imported.session), imported.is_named) == ("s9", 0, True)
    assert imported.recorded == {"session_id": "s9", "session_row": about}
    assert [item.id for item in read(langfuse, [empty, SESSION])] == ["s1", "s9"]
    assert [item.id for item in read(langfuse, [{"id": "s1", "traces": []}, SESSION])] == ["s1"]
    assert not langfuse.looks_like([{"id": "a", "traces": [], "messages": []}])


def test_turns_without_times_stay_in_their_order_after_those_with() -> None:
    """Zones are seen: an hour earlier elsewhere may be later."""
    early = turn(1, "a", "A", timestamp="2026-01-01T02:00:00+02:00")
    late = turn(2, "b", "B", timestamp="2026-01-01T00:30:00+00:00")
    never = turn(3, "c", "C", timestamp=None)
    imported = only(langfuse, session(never, late, early))
    assert [words for _, words in said(imported)] == ["a", "A", "b", "B", "c", "C"]


@pytest.mark.parametrize("spans", [False, True], ids=["without spans", "with spans"])
def test_a_tool_call_that_later_turns_repeat_is_one_call(spans: bool) -> None:
    """Each turn repeats the calls before it; its own span belongs to its own call."""
    traces, history = [], list[dict[str, Any]]()
    for number in (1, 2, 3):
        trace, history = looked_up(number, history, spans)
        traces.append(trace)
    imported = only(langfuse, session(*traces))
    calls = imported.session[ToolCall]
    assert [(call.arguments, call.result, call.call_id) for call in calls] == [
        ({"order": number}, f"Sent on day {number}", f"c{number}") for number in (1, 2, 3)
    ]
    assert len(imported.session[Message]) == 12
    # Alone, the last trace tells of all three, each with its own result.
    alone = only(langfuse, traces[-1]).session[ToolCall]
    assert {call.call_id: call.result for call in alone} == {
        f"c{number}": f"Sent on day {number}" for number in (1, 2, 3)
    }


def looked_up(number: int, history: list[dict[str, Any]], spans: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A turn in which a tool is called, and the conversation after it."""

    def at(second: int) -> dict[str, Any]:
        when = f"2026-01-01T00:0{number}:0{second}Z"
        return {"traceId": f"t{number}", "startTime": when, "endTime": when}

    function = {"name": "find", "arguments": json.dumps({"order": number})}
    call = {"role": "assistant", "content": "", "tool_calls": [
        {"id": f"c{number}", "type": "function", "function": function}]}  # fmt: skip
    asked = [*history, {"role": "user", "content": f"Where is {number}?"}]
    result = f"Sent on day {number}"
    given = [*asked, call, {"role": "tool", "tool_call_id": f"c{number}", "content": result}]
    answer = {"role": "assistant", "content": f"{result}."}
    model = {"type": "GENERATION", "model": "m"}
    rows = [
        {"id": f"a{number}", **model, **at(1), "input": asked, "output": call},
        {"id": f"b{number}", **model, **at(3), "input": given, "output": answer},
    ]
    tool = {"type": "TOOL", "name": "find", "input": {"order": number}, "output": result}
    rows += [{"id": f"s{number}", **tool, **at(2)}] if spans else []
    trace = {"id": f"t{number}", "timestamp": f"2026-01-01T00:0{number}:00Z", "observations": rows}
    return trace, [*given, answer]
