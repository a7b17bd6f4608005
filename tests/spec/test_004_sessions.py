"""The rubric spec: chat sessions, from the logs of agents to what the judge reads."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from proctor import ChatSession, Message, RubricScorer, Session, SessionDataset, ToolCall, evaluate, rubric_evaluators
from tests.evaluators.judging.rehearsed import Scripted, scores
from tests.spec.chats import CHAT, CLARITY, EFFICIENCY, Chats, read_log, session_in
from tests.spec.clauses import clause

QUESTION, LISTING, ANSWER = "How many files?", "a.py\nb.py", "Two files."
ARGUMENTS = {"command": "ls"}


def claude_line(number: int, role: str, content: Any) -> dict[str, Any]:
    above = f"u{number - 1}" if number > 1 else None
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"m{number}", "model": "m", "type": "message"}
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": above,
        "sessionId": "0fb7d8cd",
        "timestamp": f"2026-01-02T10:00:0{number}.000Z",
        "message": message,
    }


CLAUDE_CODE = [
    claude_line(1, "user", QUESTION),
    claude_line(2, "assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": ARGUMENTS}]),
    claude_line(3, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": LISTING}]),
    claude_line(4, "assistant", [{"type": "text", "text": ANSWER}]),
]
GEMINI_CLI = {
    "sessionId": "0fb7d8cd",
    "projectHash": "h",
    "startTime": "2026-01-02T10:00:00.000Z",
    "lastUpdated": "2026-01-02T10:00:03.000Z",
    "messages": [
        {"id": "1", "type": "user", "content": QUESTION},
        {
            "id": "2",
            "type": "gemini",
            "content": ANSWER,
            "model": "m",
            "toolCalls": [
                {
                    "id": "t1",
                    "name": "Bash",
                    "args": ARGUMENTS,
                    "status": "success",
                    "result": [{"functionResponse": {"id": "t1", "name": "Bash", "response": {"output": LISTING}}}],
                }
            ],
        },
    ],
}


def codex_line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-02T10:00:00.000Z", "type": kind, "payload": payload}


CODEX = [
    codex_line("session_meta", id="0fb7d8cd", cwd="/p", cli_version="1"),
    codex_line("response_item", type="message", role="user", content=[{"type": "input_text", "text": QUESTION}]),
    codex_line("response_item", type="function_call", name="Bash", call_id="t1", arguments=json.dumps(ARGUMENTS)),
    codex_line("response_item", type="function_call_output", call_id="t1", output=LISTING),
    codex_line("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": ANSWER}]),
]
FUNCTION = {"name": "Bash", "arguments": json.dumps(ARGUMENTS)}
OPENAI = [
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "t1", "type": "function", "function": FUNCTION}]},
    {"role": "tool", "tool_call_id": "t1", "content": LISTING},
    {"role": "assistant", "content": ANSWER},
]
OWN = {
    "id": "0fb7d8cd",
    "output": ANSWER,
    "session": {
        "events": [
            {"type": "message", "role": "user", "content": QUESTION},
            {"type": "tool_call", "name": "Bash", "arguments": ARGUMENTS, "result": LISTING},
            {"type": "message", "role": "assistant", "content": ANSWER},
        ]
    },
}


def check_log(path: Path, log: Any, format_name: str) -> None:
    """All logs above contain a question, one call with its result, and an answer."""
    metadata, session = session_in(path, log)
    assert (metadata["format"], metadata["session_id"]) == (format_name, "0fb7d8cd")
    answer_text = [(message.role, message.content) for message in session[Message] if message.content]
    assert answer_text == [("user", QUESTION), ("assistant", ANSWER)]
    calls = [(call.name, call.arguments, call.result) for call in session[ToolCall]]
    assert calls == [("Bash", ARGUMENTS, LISTING)]


@clause("004.CHATS.1", "3. Chat Session", ruling="chat logs: Claude Code JSONL")
def test_claude_code_logs_are_read(tmp_path: Path) -> None:
    """A JSONL log of Claude Code is a session with its messages, calls and results."""
    check_log(tmp_path / "log.jsonl", CLAUDE_CODE, "claude-code")


@clause("004.CHATS.2", "3. Chat Session", ruling="chat logs: Gemini CLI JSON")
def test_gemini_cli_logs_are_read(tmp_path: Path) -> None:
    """A JSON log of Gemini CLI is a session with its messages, calls and results."""
    check_log(tmp_path / "log.json", GEMINI_CLI, "gemini")


@clause("004.CHATS.3", "3. Chat Session", ruling="chat logs: Codex JSONL")
def test_codex_logs_are_read(tmp_path: Path) -> None:
    """A JSONL log of Codex is a session with its messages, calls and results."""
    check_log(tmp_path / "log.jsonl", CODEX, "codex")


@clause("004.CHATS.4", "3. Chat Session", ruling="chat logs: OpenAI-style messages")
def test_openai_messages_are_read(tmp_path: Path) -> None:
    """A list of OpenAI-style messages is a session; its id is the name of the file."""
    check_log(tmp_path / "0fb7d8cd.jsonl", OPENAI, "openai")


@clause("004.CHATS.5", "3. Chat Session", ruling="chat logs: our own session format")
def test_sessions_of_proctor_are_read(tmp_path: Path) -> None:
    """A session that Proctor wrote is read back with its messages, calls and results."""
    check_log(tmp_path / "log.jsonl", OWN, "proctor")


@clause("004.CHATS.6", "3. Chat Session", ruling="unknown line types are counted")
def test_unknown_line_types_are_passed_over_and_counted(tmp_path: Path) -> None:
    """Lines of an unknown type do not stop the log from being read; they are counted."""
    unknown = {"type": "holo-deck", "uuid": "x1", "sessionId": "0fb7d8cd"}
    log = [CLAUDE_CODE[0], unknown, *CLAUDE_CODE[1:], unknown]
    dataset = read_log(tmp_path / "log.jsonl", log)
    (sample,) = dataset
    assert sample.metadata["output"] == ANSWER
    assert sample.metadata["passed_over"] == {"holo-deck": 2}
    assert any("holo-deck" in warning for warning in dataset.warnings)


@clause("004.CHATS.7", "3. Chat Session", ruling="tool results are matched to their calls")
def test_tool_results_are_matched_to_their_calls(tmp_path: Path) -> None:
    """Results that come in another order than the calls are matched to them by their ids."""
    calls = [
        {"id": key, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for key, name in (("t1", "first"), ("t2", "second"))
    ]
    log = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "t2", "content": "of the second"},
        {"role": "tool", "tool_call_id": "t1", "content": "of the first"},
    ]
    _, session = session_in(tmp_path / "log.json", log)
    assert {call.name: call.result for call in session[ToolCall]} == {
        "first": "of the first",
        "second": "of the second",
    }


@clause("004.CHATS.8", "3. Chat Session")
def test_a_single_session_is_evaluated(tmp_path: Path) -> None:
    """`proctor sessions evaluate --session FILE` scores one session of a JSONL file."""
    chats = Chats(tmp_path)
    answer = "Task Completion Efficiency deserves 4. Clear Communication deserves 5."
    log = [*CLAUDE_CODE[:3], claude_line(4, "assistant", [{"type": "text", "text": answer}])]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in log))
    result = tmp_path / "result.json"
    assert chats.run("evaluate", "--session", str(path), "--output", str(result)) == 0
    results = json.loads(result.read_text())
    assert results["session_id"] == "0fb7d8cd"
    assert [entry["score"] for entry in results["rubric_scores"]] == [4.0, 5.0]


@clause("004.CHATS.9", "3. Chat Session")
def test_a_chat_session_is_a_session_with_an_id() -> None:
    """`ChatSession(session_id, session)` and a plain `Session` are scored alike."""
    judge = scores(3)
    scorer = RubricScorer(judge)
    named = asyncio.run(scorer.score(EFFICIENCY, ChatSession("0fb7d8cd", CHAT)))
    plain = asyncio.run(scorer.score(EFFICIENCY, CHAT))
    assert (named.details["score"], plain.details["score"]) == (3, 3)
    first, second = (request.part("CHAT SESSION") for request in judge.asked)
    assert first == second


@clause("004.CHATS.10", "3. Chat Session", ruling="no evidence, no verdict")
def test_an_empty_session_is_skipped() -> None:
    """A session without messages and tool calls is skipped without calling the judge."""
    judge = scores(3)
    score = asyncio.run(RubricScorer(judge).score(EFFICIENCY, Session()))
    assert (score.status, score.value, score.passed) == ("skipped", None, None)
    assert judge.asked == []


@clause("004.CHATS.11", "3. Chat Session", ruling="every planned trial ends as a result")
def test_a_recorded_session_without_events_is_a_session_of_the_batch(tmp_path: Path) -> None:
    """A recorded session without events is counted as skipped."""
    chats = Chats(tmp_path, EFFICIENCY)
    chats.add("a", 4)
    empty = [{"id": "e1", "session": {"events": []}}, {"id": "e2", "session": {}}, OWN]
    log = "".join(json.dumps(row) + "\n" for row in empty)
    (tmp_path / "sessions" / "log.jsonl").write_text(log)
    batch_summary = chats.evaluate_batch()["batch_summary"]
    assert batch_summary["total_sessions"] == 4
    assert batch_summary["score_distribution"] == {
        "1": 0,
        "2": 0,
        "3": 0,
        "4": 1,
        "5": 0,
        "evaluation_failed": 1,
        "skipped": 2,
    }


@clause("004.RUN.1", "4. Evaluation Orchestrator", ruling="an evaluation like any other")
def test_sessions_are_a_dataset_and_rubrics_are_evaluators(tmp_path: Path) -> None:
    """`evaluate(None, SessionDataset(folder), rubric_evaluators(model, rubrics))` is a run."""
    chats = Chats(tmp_path)
    chats.add("a", 4, 5)
    chats.add("b", 2, 2)
    judge = Scripted(lambda asked: asked.score(5 if "deserves 5" in asked.text else 2))
    report = evaluate(
        None, SessionDataset(tmp_path / "sessions"), rubric_evaluators(judge, [EFFICIENCY, CLARITY]), history=False
    )
    arguments = {result.sample_id: result.scores["rubric_002"].value for result in report.results}
    assert arguments == {"a": 1.0, "b": 0.25}
    assert report.metrics["total_score"].value == 3.5
