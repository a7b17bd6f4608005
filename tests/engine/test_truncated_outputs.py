"""Outputs that reached the token limit, and responses with several choices, are mentioned."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import ModelCall, ModelTarget, SQLiteHistory, contains, evaluate, record
from proctor.errors import RunStopped, StopRun
from proctor.records.model import ModelResponse
from proctor.sessions.current import describe_cut_off

SAMPLES = [{"id": str(n), "input": f"question {n}", "expected": "Par"} for n in range(4)]
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def cut(question: str) -> bool:
    """The answers to questions 0 and 1 are cut off."""
    return question in ("question 0", "question 1")


def completion(question: str) -> dict[str, Any]:
    reason = "length" if cut(question) else "stop"
    message = {"role": "assistant", "content": "Par"}
    choice = {"index": 0, "finish_reason": reason, "message": message}
    return {"object": "chat.completion", "model": "m", "choices": [choice], "usage": USAGE}


def anthropic(question: str) -> dict[str, Any]:
    reason = "max_tokens" if cut(question) else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 2}
    content = [{"type": "text", "text": "Par"}]
    about = {"type": "message", "role": "assistant", "model": "m", "usage": usage}
    return {**about, "content": content, "stop_reason": reason}


def recorded(question: str) -> str:
    """An agent of two calls: only the last one is the output."""
    record(ModelCall("m", finish_reason="length"))
    record(ModelCall("m", finish_reason="MAX_TOKENS" if cut(question) else "STOP"))
    return "Par"


def long_text(question: str) -> str:
    recorded(question)
    return "Par" * 10_000


@pytest.mark.parametrize("target", [completion, anthropic, recorded, long_text])
def test_a_run_says_how_many_outputs_were_cut_off(target: Callable[[str], Any]) -> None:
    """Two of four, whatever the provider calls it; they are judged as they are."""
    report = evaluate(target, SAMPLES, [contains], history=False)
    assert report.pass_rate == 1.0
    assert report.metadata is not None
    assert describe_cut_off(2) in report.metadata.warnings


def test_models_that_are_asked_by_proctor_are_counted_as_well() -> None:
    """The adapter knows why the answer ended."""

    class Brief:
        model = "brief"
        identity = "1"

        async def complete(self, request: Any, *, timeout: float | None = None) -> ModelResponse:
            reason = "length" if cut(str(request.messages[-1].content)) else "stop"
            return ModelResponse("Par", "brief", finish_reason=reason)

    report = evaluate(ModelTarget(Brief()), SAMPLES, [contains], history=False)
    assert report.metadata is not None
    assert describe_cut_off(2) in report.metadata.warnings


def test_a_run_without_such_outputs_says_nothing() -> None:
    """A cut-off call before the last one is no cut-off output."""
    report = evaluate(recorded, SAMPLES[2:], [contains], history=False)
    assert report.metadata is not None
    assert not [warning for warning in report.metadata.warnings if "cut off" in warning]


def test_several_choices_are_mentioned() -> None:
    """The first is judged, and the run says so once."""

    def two(question: str) -> dict[str, Any]:
        body = completion("other")
        return {**body, "choices": body["choices"] * 2}

    report = evaluate(two, SAMPLES, [contains], history=False)
    assert report.metadata is not None
    assert [warning[:41] for warning in report.metadata.warnings] == ["outputs have several choices, and only th"]


def test_a_resumed_run_adds_what_was_cut_off_before(tmp_path: Path) -> None:
    """One of two before it stopped, one of the other two afterwards."""
    history = tmp_path / "history.db"
    stopped: list[str] = []

    def target(question: str) -> dict[str, Any]:
        if question == "question 1" and not stopped:
            stopped.append(question)
            raise StopRun("the server is down")
        return completion(question)

    with contextlib.suppress(RunStopped):
        evaluate(target, SAMPLES, [contains], history=history, concurrency=1)
    before = SQLiteHistory(history).find("latest")
    assert before.status != "completed"
    assert describe_cut_off(1) in before.warnings
    report = evaluate(target, SAMPLES, [contains], history=history, concurrency=1, resume="latest", allow_changes=True)
    assert report.metadata is not None
    assert describe_cut_off(1) not in report.metadata.warnings
    assert describe_cut_off(2) in report.metadata.warnings
