"""The input and output of a trace: texts, data, arguments of functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proctor.records.session import CustomEvent, Message
from proctor.sessions.importers import langfuse
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.sessions.importers.session_files import SessionFiles
from tests.importers.logs import kinds, only, read
from tests.importers.traces import row
from tests.tables import each_row


def trace(given: Any, answer: Any, *observations: dict[str, Any]) -> ImportedSession:
    whole = {"id": "t", "input": given, "output": answer}
    return only(langfuse, {"trace": whole, "observations": [*observations]})


def said(found: ImportedSession) -> list[tuple[str, Any]]:
    return [(message.role, message.content) for message in found.session[Message]]


@each_row(
    ("given", "words"),
    [
        ({"question": "Where?"}, "Where?"),
        ('{"question": "Where?"}', "Where?"),
        ({"question": "Where?", "user": 7}, {"question": "Where?", "user": 7}),
        ({"city": "Paris"}, {"city": "Paris"}),
        ({"args": [], "kwargs": {"q": "Where?"}}, "Where?"),
        ({"args": ["Where?"], "kwargs": {}}, "Where?"),
        ({"args": ["Where?", 2], "kwargs": {}}, ["Where?", 2]),
        ({"args": [], "kwargs": {"messages": [{"role": "user", "content": "Where?"}]}}, "Where?"),
        ({"args": [1], "kwargs": {"q": "Where?"}}, {"args": [1], "kwargs": {"q": "Where?"}}),
        ([{"page": 1}], [{"page": 1}]),
        (7, 7),
    ],
)
def test_other_values_become_messages(given: Any, words: Any) -> None:
    """The one text that there is, else all of the data; nothing of it counts as not understood."""
    result = trace(given, {"answer": "There."})
    assert said(result) == [("user", words), ("assistant", "There.")]
    assert (result.input, result.output, result.unknown_parts) == (words, "There.", {})


def test_an_unwrapped_text_is_still_recorded_as_logged() -> None:
    """Under which name it stood is part of the record."""
    result = trace({"question": "Where?"}, {"answer": "There."})
    assert result.recorded["trace"] == {"input": {"question": "Where?"}, "output": {"answer": "There."}}


def test_a_function_without_arguments_has_no_input() -> None:
    """Its empty arguments stay in the record."""
    result = trace({"args": [], "kwargs": {}}, "There.")
    assert said(result) == [("assistant", "There.")]
    assert result.recorded["trace"] == {"input": {"args": [], "kwargs": {}}}


def test_the_trace_adds_the_side_that_its_observations_lack() -> None:
    """A generation with only its answer or only its question; event indexes are shifted."""
    answered = row("ask", "GENERATION", 1, input={"k": 1}, output="There.")
    result = trace({"args": [], "kwargs": {"q": "Where?"}}, "other", answered)
    assert said(result) == [("user", "Where?"), ("assistant", "There.")]
    asked = row("ask", "GENERATION", 1, input=[{"role": "user", "content": "Where?"}])
    result = trace("other", {"role": "assistant", "content": "There."}, asked)
    assert said(result) == [("user", "Where?"), ("assistant", "There.")]
    system = row("ask", "GENERATION", 1, input=[{"role": "system", "content": "Be kind."}])
    result = trace("Where?", "There.", system)
    (entry,) = result.recorded["observations"]
    assert [result.session.events[place] for place in entry["asked"]] == [Message("system", "Be kind.")]


def test_a_conversation_that_a_graph_returns_is_read_once() -> None:
    """What comes back begins with what went in."""
    asked, answer = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}
    result = trace({"messages": [asked]}, {"messages": [asked, answer]})
    assert said(result) == [("user", "Hi"), ("assistant", "Yo")]


def test_the_outermost_observation_replaces_a_missing_trace_row() -> None:
    """In exports without trace rows, an outer span has them; arguments of a tool are no message."""
    outer = row("run", "SPAN", 0, input={"question": "Where?"}, output={"answer": "There."})
    inner = row("step", "SPAN", 1, parentObservationId="run", input="inner", output="inner")
    (imported,) = read(langfuse, [{**inner, "traceId": "t"}, {**outer, "traceId": "t"}])
    assert said(imported) == [("user", "Where?"), ("assistant", "There.")]
    tool = row("weather", "TOOL", 0, input={"city": "Paris"}, output="Sunny")
    (imported,) = read(langfuse, [{**tool, "traceId": "t"}])
    assert kinds(imported) == ["ToolCall weather"]


def test_every_row_with_a_trace_id_is_in_a_session(tmp_path: Path) -> None:
    """A trace with only data or without messages is not reported as empty."""
    about = {"timestamp": "2026-01-01T00:00:00Z", "sessionId": "s", "userId": "u", "tags": []}
    data = {"id": "t1", **about, "input": {"question": "Where?"}, "output": {"answer": "There."}}
    silent = {"id": "t2", **about, "input": None, "output": None}
    spans = {"id": "t3", **about, "observations": [row("f", "SPAN", 0)]}
    path = tmp_path / "traces.json"
    path.write_text(json.dumps([data, silent, spans]))
    files = SessionFiles(path)
    imported = list(files)
    assert [session.id for session in imported] == ["t1", "t2", "t3"]
    assert [len(session.session) for session in imported] == [2, 0, 1]
    assert isinstance(imported[2].session.events[0], CustomEvent)
    assert files.problems == []
