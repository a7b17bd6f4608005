"""The session spec, "Session-Aware Evaluators": its table in our imports."""

from __future__ import annotations

from dataclasses import dataclass

import proctor
from proctor import (
    Message,
    ModelCall,
    Score,
    Session,
    SessionEvaluator,
    SessionView,
    ToolCall,
    Usage,
    all_of,
    all_tools_succeeded,
    any_of,
    contains,
    evaluate,
    exact_match,
    slice_contains,
    token_usage_under,
    tool_called,
    tool_not_called,
)


@dataclass
class Plan:
    steps: int


class QALoop:
    """A main loop: it answers, and tells in its session what it did."""

    def execute(self, question: str) -> tuple[str, Session]:
        """Look it up, then ask the model."""
        session = Session([Message("user", question)])
        session.append(Plan(2))
        session.append(ToolCall("search", {"query": question}, result="Paris"))
        session.append(ModelCall("m", Usage(40, 2)))
        return "Paris", session


def brief(output: str, expected: str, session: SessionView) -> Score:
    """A session evaluator as the spec writes its type."""
    calls = len(session[ToolCall])
    return Score(1.0 if calls < 3 else 0.0, calls < 3)


def test_the_evaluators_of_the_table_run_on_a_main_loop() -> None:
    """Each by itself, and mixed with plain ones in all_of and any_of."""
    typed: SessionEvaluator = brief
    evaluators = {
        "tool_called": tool_called("search"),
        "tool_not_called": tool_not_called("delete"),
        "all_tools_succeeded": all_tools_succeeded(),
        "token_usage_under": token_usage_under(42),
        "slice_contains": slice_contains(Plan, lambda plan: plan.steps == 2),
        "own": typed,
        "all_of": all_of(exact_match, tool_called("search"), brief),
        "any_of": any_of(contains, tool_called("delete")),
    }
    samples = [proctor.Sample(id="1", input="Capital of France?", expected="Paris")]
    report = evaluate(QALoop(), samples, evaluators, history=None)
    (result,) = report.results
    assert {name: (score.value, score.passed) for name, score in result.scores.items()} == (
        dict.fromkeys(evaluators, (1.0, True))
    )


def test_the_evaluators_of_the_table_fail_where_they_should() -> None:
    """The other side of each."""
    evaluators = {
        "tool_called": tool_called("delete"),
        "tool_not_called": tool_not_called("search"),
        "token_usage_under": token_usage_under(41),
        "slice_contains": slice_contains(Plan, lambda plan: plan.steps > 2),
    }
    report = evaluate(QALoop(), [{"id": "1", "input": "?"}], evaluators, history=None)
    assert [score.passed for score in report.results[0].scores.values()] == [False] * 4
