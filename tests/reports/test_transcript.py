"""Sessions as people read them."""

from __future__ import annotations

from inline_snapshot import snapshot

from proctor.records.sample import Sample
from proctor.records.session import (
    CustomEvent,
    Message,
    ModelCall,
    Session,
    ToolCall,
    Usage,
)
from proctor.records.trial import EvalResult, Trial
from proctor.reports.transcript import transcripts


def test_a_result_is_told_with_all_that_was_said() -> None:
    """The target's session comes first, then the evaluators'; tools, usage and errors are in it."""
    call = ToolCall("search", {"query": "capital of\nFrance"}, call_id="1")
    target = Session(
        [
            Message("system", "Be brief."),
            Message("user", "Capital of France?"),
            Message("assistant", "", tool_calls=(call,)),
            ToolCall("search", {"query": "capital of France"}, result={"answer": "Paris"}),
            ToolCall("open", {}, error="no such page"),
            ModelCall("openai:gpt-4o-mini", Usage(1200, 5, cost=0.000183), 412.4, "length"),
            CustomEvent("Note", {"a": 1}),
        ]
    )
    judge = Session(
        [
            Message("user", "Rate it.\nAt once.", name="grader"),
            ModelCall("local:smollm2", details={"cached": True, "attempts": 2}),
        ]
    )
    trial = Trial(Sample("fr", "Capital of France?"), "Paris", session=target)
    assert transcripts(EvalResult(trial, {}, {"llm_judge": judge})) == snapshot("""\
── target ──
system:
    Be brief.
user:
    Capital of France?
assistant:
    → search(query=capital of ⏎ France)
tool search(query=capital of France)
    {"answer":"Paris"}
tool open()
    failed: no such page
[openai:gpt-4o-mini, 1,200 + 5 tokens, 0.000183 USD, 412 ms, ended by length]
Note: {"a":1}

── llm_judge ──
user (grader):
    Rate it.
    At once.
[local:smollm2, cached, attempts: 2]\
""")


def test_where_nothing_was_said_that_is_said() -> None:
    """No empty page."""
    assert transcripts(EvalResult(Trial(Sample("a", "?")))) == "no model or tool was called"
