"""A recorded session that ended with an error has that error; one that went on after an error has none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proctor.records import codec
from proctor.records.session import Message, Session
from proctor.sessions.importers import (
    codex,
    crewai_log,
    langfuse,
    otlp,
    proctor_sessions,
    pydantic_ai_messages,
    vscode_chat,
)
from tests.importers.examples import CODEX
from tests.importers.logs import only
from tests.importers.test_agent_dialects import rows
from tests.importers.traces import span, spans
from tests.support import run_command

FAILED: dict[str, Any] = {"status": {"code": 2, "message": "no credit"}}
AGENT, CHAT = {"gen_ai.operation.name": "invoke_agent"}, {"gen_ai.operation.name": "chat"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}


def test_a_trace_has_the_error_of_the_outermost_span_that_ended_last() -> None:
    """A failed tool or an earlier attempt ended nothing; the type of an error is part of it."""
    for error, recorded in (
        ("no credit", [span("agent", 0, AGENT, **FAILED), span("chat", 1, CHAT, parent="agent")]),
        ("RateLimit: no credit", [span("agent", 0, {**AGENT, "error.type": "RateLimit"}, **FAILED)]),
        ("no credit", [span("first", 0, CHAT), span("second", 9_000_000, CHAT, **FAILED)]),
        (None, [span("first", 0, CHAT, **FAILED), span("second", 9_000_000, CHAT)]),
        (None, [span("agent", 0, AGENT), span("chat", 1, CHAT, parent="agent", **FAILED)]),
        (None, [span("chat", 0, CHAT), span("tool", 9_000_000, TOOL, **FAILED)]),
        (None, [span("tool", 0, TOOL, **FAILED)]),
    ):
        assert only(otlp, spans(*recorded)).error == error


def test_a_langfuse_trace_has_the_error_of_its_last_outermost_observation() -> None:
    """A session of several traces has the error of the last; a failed tool ended nothing."""
    failed = {"level": "ERROR", "statusMessage": "no credit"}
    for error, observations in (
        ("no credit", [{"type": "AGENT", **failed}, {"type": "GENERATION", "parentObservationId": "o0"}]),
        ("the call failed", [{"type": "GENERATION", "level": "ERROR"}]),
        (None, [{"type": "GENERATION", **failed}, {"type": "GENERATION"}]),
        (None, [{"type": "SPAN"}, {"type": "GENERATION", "parentObservationId": "o0", **failed}]),
        (None, [{"type": "GENERATION"}, {"type": "TOOL", "name": "look", **failed}]),
        (None, [{"type": "SPAN", "level": "WARNING", "statusMessage": "slow"}]),
    ):
        assert only(langfuse, rows(*observations)).error == error
    good, bad = (only(langfuse, rows({"type": "SPAN", **fields})) for fields in ({}, failed))
    assert langfuse.join_traces("s", {}, [bad, good]).error is None
    assert langfuse.join_traces("s", {}, [good, bad]).error == "no credit"


def test_a_codex_session_ends_with_an_error_unless_an_answer_follows() -> None:
    """An aborted turn ends the session as well; what a roll-back removed does not count."""

    def event(**fields: Any) -> dict[str, Any]:
        return {"type": "event_msg", "payload": fields}

    error = event(type="error", message="stream disconnected")
    aborted = event(type="turn_aborted", reason="interrupted")
    answer = {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": "Done."}}
    assert only(codex, *CODEX).error is None
    imported = only(codex, *CODEX, error)
    assert imported.error == "stream disconnected"
    assert "event: error" not in imported.unknown_parts
    assert only(codex, *CODEX, error, event(type="task_complete", last_agent_message=None)).error is not None
    assert only(codex, *CODEX, aborted).error == "interrupted"
    assert only(codex, *CODEX, error, answer).error is None
    assert only(codex, *CODEX, error, event(type="agent_message", message="Done.")).error is None


def test_a_vscode_session_has_the_error_of_its_last_request() -> None:
    """An earlier request may have failed."""
    good = {"requestId": "r1", "message": {"text": "hi"}, "response": [{"value": "hello"}]}
    bad = {**good, "result": {"errorDetails": {"message": "rate limited"}}}
    for requests, error in (([good, bad], "rate limited"), ([bad, good], None), ([], None)):
        assert only(vscode_chat, {"sessionId": "s", "requests": requests}).error == error
    unnamed = {**good, "result": {"errorDetails": {"responseIsFiltered": True}}}
    assert only(vscode_chat, {"sessionId": "s", "requests": [unnamed]}).error == "the call failed"


def test_pydantic_ai_and_crewai_end_with_a_failed_response_or_an_open_task() -> None:
    """Only the last response counts; a crew's log records no failure but a task that is never completed."""
    request = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}
    response = {"kind": "response", "parts": [{"part_kind": "text", "content": "hello"}]}
    failed = {**response, "finish_reason": "error"}
    assert only(pydantic_ai_messages, [request, failed]).error == "the last response ended with an error"
    assert only(pydantic_ai_messages, [request, failed, request, response]).error is None
    start = {"task": "sum up", "agent": "writer", "status": "started"}
    end = {**start, "status": "completed", "output": "short"}
    assert only(crewai_log, [start, end, start]).error == "the last task started and was not completed"
    assert only(crewai_log, [start, end]).error is None


def test_sessions_of_proctor_keep_their_error() -> None:
    """The error of an imported session, or of the trial of a result."""
    session = json.loads(codec.encode(Session([Message("user", "hi")])))
    assert only(proctor_sessions, {"id": "s", "session": session, "error": "no credit"}).error == "no credit"
    failure = {"kind": "ValueError", "message": "no"}
    trial = {"sample": {"id": "1", "input": "hi"}, "session": session, "error": failure}
    assert only(proctor_sessions, {"trial": trial}).error == "ValueError: no"


def test_a_failed_session_is_an_error_of_the_run(tmp_path: Path) -> None:
    """An evaluator does not judge the last message before the error."""
    good = {"requestId": "r1", "message": {"text": "hi"}, "response": [{"value": "hello"}]}
    bad = {**good, "result": {"errorDetails": {"message": "rate limited"}}}
    for name, request in (("good", good), ("bad", bad)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"sessionId": name, "requests": [request]}))
    arguments = ("--dataset-format", "vscode-chat", "-e", "regex_match", "--set", "regex_match.pattern=hello")
    ran = run_command("run", "--dataset", "bad.json", *arguments, cwd=tmp_path)
    assert "rate limited" in ran.stdout + ran.stderr
    assert ran.returncode == 3
    assert "1 of 1 passed" in run_command("run", "--dataset", "good.json", *arguments, cwd=tmp_path).stdout
