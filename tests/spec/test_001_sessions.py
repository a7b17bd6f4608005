"""The session spec: evaluators that read the session of a trial."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    Dataset,
    ModelCall,
    Sample,
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
    tool_call_count,
    tool_called,
    tool_not_called,
)
from tests.spec.clauses import clause

SAMPLE = Sample(id="1", input="Capital of France?", expected="Paris")


@dataclass
class Step:
    number: int


def a_session(*events: Any) -> Session:
    return Session(list(events))


SEARCHED = a_session(
    ToolCall("search", {"query": "France"}, result="Paris"), Step(1), Step(2), ModelCall("m", Usage(40, 2))
)


class Agent:
    """A main loop that leaves a given session."""

    def __init__(self, session: Session | None) -> None:
        self._session = session

    def execute(self, question: str) -> tuple[str, Session | None]:
        return "Paris", self._session


def score(evaluator: Any, session: Session | None = SEARCHED) -> Score:
    """The score of an evaluator for a recorded session."""
    report = evaluate(Agent(session), [SAMPLE], {"check": evaluator}, history=False)
    return report.results[0].scores["check"]


def verdicts(evaluator: Any, *sessions: Session) -> list[bool | None]:
    return [score(evaluator, session).passed for session in sessions]


@clause("001.TYPES.1", "Sample / Dataset")
def test_samples_and_datasets_are_those_of_the_loop_spec(tmp_path: Path) -> None:
    """`Dataset.load(path, input_type, expected_type)` gives typed samples."""
    (tmp_path / "d.jsonl").write_text('{"id": "1", "input": "a", "expected": 2}\n')
    (sample,) = Dataset.load(tmp_path / "d.jsonl", str, int)
    assert (sample.id, sample.input, sample.expected) == ("1", "a", 2)


@clause("001.TYPES.2", "Evaluator")
def test_a_session_evaluator_takes_the_session_as_third_parameter() -> None:
    """A function `(output, expected, session) -> Score` is given the session of the trial."""

    def brief(output: str, expected: str, session: SessionView) -> Score:
        calls = len(session[ToolCall])
        return Score(1.0 if calls < 3 else 0.0, calls < 3, f"{calls} calls")

    typed: SessionEvaluator = brief
    assert score(typed).reason == "1 calls"


@clause("001.TYPES.3", "Evaluator", ruling="whether an evaluator wants the session")
def test_partials_and_objects_are_given_the_session_too() -> None:
    """An evaluator receives a session if it has a third parameter, annotated or not."""

    def counts(output: str, expected: str, session: Any, *, most: int) -> Score:
        return Score(1.0, len(session[ToolCall]) <= most)

    class Counts:
        def __call__(self, output: str, expected: str, trace: Any) -> Score:
            return Score(1.0, len(trace[ToolCall]) == 1)

    assert score(functools.partial(counts, most=1)).passed is True
    assert score(Counts()).passed is True


@clause("001.TOOL_CALLED.1", "Session-Aware Evaluators")
def test_tool_called_passes_if_the_tool_was_called() -> None:
    """`tool_called(name)` passes if the session has a call of that tool."""
    assert [score(tool_called(name)).passed for name in ("search", "delete")] == [True, False]


@clause("001.TOOL_NOT_CALLED.1", "Session-Aware Evaluators")
def test_tool_not_called_passes_if_the_tool_was_not_called() -> None:
    """`tool_not_called(name)` fails if the session has a call of that tool."""
    assert [score(tool_not_called(name)).passed for name in ("delete", "search")] == [True, False]


@clause("001.SUCCEEDED.1", "Session-Aware Evaluators")
def test_all_tools_succeeded_fails_if_one_tool_failed() -> None:
    """`all_tools_succeeded()` passes exactly if no tool call failed."""
    failed = a_session(ToolCall("search", {}, error="no network"), ToolCall("read", {}, result="x"))
    assert verdicts(all_tools_succeeded(), SEARCHED, failed) == [True, False]


@clause("001.SUCCEEDED.2", "Session-Aware Evaluators", ruling="mappings and objects alike")
def test_failed_tools_are_seen_in_mappings_and_objects() -> None:
    """A result with `success: false` is a failure, as a mapping and as an object."""

    @dataclass
    class Outcome:
        success: bool

    sessions = [
        a_session(ToolCall("t", {}, result={"success": False})),
        a_session(ToolCall("t", {}, result=Outcome(False))),
        a_session(ToolCall("t", {}, result={"success": True})),
    ]
    assert verdicts(all_tools_succeeded(), *sessions) == [False, False, True]


@clause("001.TOKENS.1", "Session-Aware Evaluators", ruling="token_usage_under is ≤")
def test_token_usage_under_includes_its_limit() -> None:
    """`token_usage_under(max)` passes if input and output tokens together are at most max."""
    assert [score(token_usage_under(most)).passed for most in (41, 42, 43)] == [False, True, True]


@clause("001.TOKENS.2", "Session-Aware Evaluators", ruling="a say for `usage unknown`")
def test_unknown_usage_is_no_pass() -> None:
    """With an unknown usage there is no verdict, unless the evaluator has an option for it."""
    unknown = a_session(ToolCall("search", {}, result="x"), ModelCall("m"))
    assert score(token_usage_under(100), unknown).passed is not True
    assert score(token_usage_under(100, unknown="fail"), unknown).passed is False
    assert score(token_usage_under(100, unknown="skip"), unknown).status == "skipped"


@clause("001.SLICE.1", "Session-Aware Evaluators")
def test_slice_contains_looks_for_events_of_a_type() -> None:
    """`slice_contains(type, predicate)` passes if an event of that type fits the predicate."""
    assert score(slice_contains(Step, lambda step: step.number == 2)).passed is True
    assert score(slice_contains(Step, lambda step: step.number == 3)).passed is False


@clause("001.SLICE.2", "Session-Aware Evaluators", ruling="slice_contains has a min_count")
def test_slice_contains_can_ask_for_several_events() -> None:
    """`min_count` events of the type have to fit."""
    checks = [slice_contains(Step, lambda step: True, min_count=n) for n in (1, 2, 3)]
    assert [score(check).passed for check in checks] == [True, True, False]


@clause("001.COUNT.1", "Session-Aware Evaluators", ruling="tool_call_count is there too")
def test_tool_call_count_has_a_minimum_and_a_maximum() -> None:
    """`tool_call_count(name, min_count, max_count)` passes if the count lies between them."""
    twice = a_session(ToolCall("search", {}), ToolCall("search", {}))
    check = tool_call_count("search", min_count=2, max_count=2)
    assert verdicts(check, SEARCHED, twice) == [False, True]


@clause("001.COMBINE.1", "Built-in Evaluators", ruling="combinators work with a session")
def test_combinators_take_session_evaluators() -> None:
    """`all_of` and `any_of` mix plain evaluators with session evaluators."""
    assert score(all_of(exact_match, tool_called("search"))).passed is True
    assert score(all_of(exact_match, tool_called("delete"))).passed is False
    assert score(any_of(contains, tool_called("delete"))).passed is True


@clause("001.NO_SESSION.1", "Session-Aware Evaluators", ruling="no evidence, no verdict")
@pytest.mark.parametrize(
    "evaluator",
    [
        tool_called("search"),
        tool_not_called("search"),
        all_tools_succeeded(),
        token_usage_under(10),
        slice_contains(Step, lambda step: True),
        tool_call_count("search", max_count=1),
    ],
    ids=["called", "not_called", "succeeded", "tokens", "slice", "count"],
)
def test_without_a_recorded_session_there_is_no_verdict(evaluator: Any) -> None:
    """A session evaluator skips a trial that left no session, with the reason."""
    report = evaluate(lambda text: "Paris", [SAMPLE], {"check": evaluator}, history=False)
    check = report.results[0].scores["check"]
    assert (check.status, check.passed) == ("skipped", None)
    assert "session" in check.reason


@clause("001.MESSAGES.1", "EvalLoop", ruling="message lists become the session")
def test_a_list_of_messages_in_the_output_becomes_the_session() -> None:
    """An agent that returns its messages has them as its session, and the last as its output."""

    def agent(question: str) -> dict[str, Any]:
        call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
        return {
            "messages": [
                {"role": "user", "content": question},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "Paris"},
                {"role": "assistant", "content": "Paris"},
            ]
        }

    evaluators = {"called": tool_called("search"), "not": tool_not_called("search"), "eq": exact_match}
    report = evaluate(agent, [SAMPLE], evaluators, history=False)
    scores = report.results[0].scores
    assert {name: result.passed for name, result in scores.items()} == {"called": True, "not": False, "eq": True}


@clause("001.SESSION.1", "Session-Aware Evaluators", ruling="Session([...]) wraps as append does")
def test_a_session_made_of_a_list_is_the_same_as_one_appended_to() -> None:
    """`Session([...])` takes mappings and objects as `append` does."""
    events: list[Any] = [{"note": 1}, Step(1), ToolCall("search", {})]
    appended = Session()
    for event in events:
        appended.append(event)
    assert list(Session(events)) == list(appended)


@clause("001.RESULTS.1", "Results")
def test_a_report_gives_the_numbers_of_the_spec() -> None:
    """A report has pass_rate, mean_score, mean_latency_ms and failed_samples()."""
    report = evaluate(Agent(SEARCHED), [SAMPLE], [exact_match], history=False)
    assert (report.pass_rate, report.mean_score, report.failed_samples()) == (1.0, 1.0, ())
    assert report.mean_latency_ms is not None
