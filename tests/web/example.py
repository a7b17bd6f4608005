"""A history for tests of the viewer: errors, epochs, tags, sessions, and texts that look like markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor import Message, Reply, Score, Session, SQLiteHistory, ToolCall, Usage, evaluate
from proctor.ports import History

MARKUP = "<img src=x onerror=alert(1)>"
QUESTIONS: list[dict[str, Any]] = [
    {"id": "capital", "input": "What is the capital of France?", "expected": "Paris", "metadata": {"topic": "places"}},
    {"id": "fish", "input": "How many fish live on Europa?", "expected": "unknown", "metadata": {"topic": "moons"}},
    {"id": "hebrew", "input": "מהי בירת צרפת?", "expected": "פריז", "metadata": {"topic": "places", "tags": ["rtl"]}},
    {"id": "broken", "input": "break", "expected": "never", "metadata": {"topic": "faults", "level": 3}},
    {"id": MARKUP, "input": MARKUP, "expected": "safe", "metadata": {"topic": MARKUP}},
]
ANSWERS = {
    "What is the capital of France?": "Paris",
    "How many fish live on Europa?": "Seven fish",
    "מהי בירת צרפת?": "פריז",
    MARKUP: f"safe {MARKUP}",
}


def answer(question: str, *, size: str = "small") -> Reply:
    """Answer from a table; `medium` knows one more answer, and one question raises an error."""
    if question == "break":
        raise ValueError("it breaks")
    text = "unknown" if size == "medium" and "fish" in question else ANSWERS[question]
    session = Session([Message("user", question), ToolCall("search", {"q": question}, result=text)])
    return Reply(text, usage=Usage(10, 5, cost=0.0002), session=session, latency_ms=12.5)


def right(output: str, expected: str) -> Score:
    passed = output == expected
    return Score(float(passed), passed, "it is the expected answer" if passed else f"expected {expected!r}")


def short(output: str) -> bool:
    return len(output) < 20


def make_history(path: Path) -> History:
    """Store three runs: two configurations, two epochs, and a run without errors."""
    history = SQLiteHistory(path)
    sizes = {"small": {"size": "small"}, "medium": {"size": "medium"}}
    evaluate(answer, QUESTIONS, [right, short], configurations=sizes, history=history, name="exam", progress=False)
    evaluate(
        answer, QUESTIONS, [right, short], epochs=2, history=history, name="exam", tags={"v": MARKUP}, progress=False
    )
    evaluate(answer, QUESTIONS[:2], [right], history=history, name="other", progress=False)
    return history
