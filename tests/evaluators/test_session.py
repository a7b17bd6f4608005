"""Session evaluators, alone and combined with others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pydantic
import pytest
from inline_snapshot import snapshot

from proctor.comparison.report import EvalReport
from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.combination import all_of, any_of, negate, weighted
from proctor.evaluators.decorator import evaluator, needs_session
from proctor.evaluators.matching import contains, exact_match
from proctor.evaluators.session import (
    all_tools_succeeded,
    slice_contains,
    token_usage_under,
    tool_call_count,
    tool_called,
    tool_not_called,
    tool_sequence,
)
from proctor.records import codec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Message, ModelCall, Session, SessionView, ToolCall, Usage
from proctor.records.trial import Reply, Trial
from proctor.sessions.current import record
from proctor.targets.recorded import RecordedTarget
from proctor.wiring.evaluate import evaluate, rescore
from proctor.wiring.registry import Registry
from tests.tables import each_row

SEARCHED = Session(
    [
        Message("user", "Capital of France?"),
        ToolCall("search", {"q": "France"}, result="Paris"),
        ToolCall("search", {"q": "Paris"}, result="a city"),
        ToolCall("open", {"page": 1}, error="404"),
        ModelCall("m", Usage(60, 40)),
    ]
)
NOTHING = Session()


@dataclass
class Retrieval:
    documents: int
    source: str = "wiki"


class Page(pydantic.BaseModel):
    url: str


class Opaque:
    """What cannot be written down."""


def many(event: Any) -> bool:
    return bool(event.documents > 2)


async def later(event: Any) -> bool:
    return False


def says(check: Callable[..., Score], session: Any = SEARCHED, expected: Any = None) -> Any:
    """Whether it passed, or the status without a verdict."""
    score = check("out", expected, session)
    assert score == attach(check).score(Trial(Sample("1", None, expected), "out", session=session))
    return score.passed if score.ok else score.status


@each_row(
    ("check", "searched", "nothing"),
    [
        (tool_called("search"), True, False),
        (tool_called("close"), False, False),
        (tool_not_called("search"), False, True),
        (tool_not_called("close"), True, True),
        (tool_call_count("search", 2), True, False),
        (tool_call_count("search", 3), False, False),
        (tool_call_count("search", max_count=1), False, True),
        (tool_call_count("search", 1, 2), True, False),
        (tool_call_count("close", max_count=0), True, True),
        (tool_call_count(max_count=3), True, True),
        (tool_call_count(max_count=2), False, True),
        (all_tools_succeeded(), False, True),
        (token_usage_under(100), True, "error"),
        (token_usage_under(99), False, "error"),
        (slice_contains(ToolCall, lambda call: call.name == "open"), True, False),
        (slice_contains(ToolCall, min_count=3), True, False),
        (slice_contains(ToolCall, {"name": "search"}, 3), False, False),
        (tool_sequence(["search", "open"]), True, False),
        (tool_sequence(["open", "search"]), False, False),
        (tool_sequence(["open", "search"], "any_order"), True, False),
        (tool_sequence([], "exact"), False, True),
        (tool_sequence(), "skipped", "skipped"),
    ],
)
def test_each_check_does_what_its_name_says(check: Callable[..., Score], searched: Any, nothing: Any) -> None:
    """On a session with calls, and on one that is empty."""
    assert says(check) == searched
    assert says(check, NOTHING) == nothing


@each_row(
    "check",
    [
        tool_called("search"),
        tool_not_called("search"),
        tool_call_count(max_count=3),
        all_tools_succeeded(),
        token_usage_under(100),
        slice_contains(ToolCall),
        tool_sequence(["search"]),
        tool_sequence([], "exact"),
    ],
)
def test_a_trial_without_a_recorded_session_is_skipped(check: Callable[..., Score]) -> None:
    """No session is not "no tool was called": the verdict is skipped, and says how to record."""
    score = check("out", None, None)
    assert (score.status, score.value) == ("skipped", None)
    assert "no session was recorded" in score.reason
    assert "Fix: return the agent's messages" in score.reason
    attached = attach(check)
    assert attached.score(Trial(Sample("1", None, "x"), "out")) == score
    assert attached("out") == score
    assert attached("out", None, SessionView(recorded=False)) == score


def test_a_users_session_evaluator_is_skipped_without_a_session() -> None:
    """Functions, async functions, objects, classes, marked functions and factories."""

    def quiet(output: Any, expected: Any, session: SessionView) -> bool:
        return not session[ToolCall]

    def lenient(output: Any, expected: Any = None, session: Any = None) -> bool:
        return not session or not session[ToolCall]

    async def later(output: Any, session: SessionView) -> bool:
        return not session[ToolCall]

    @needs_session
    def marked(*evidence: Any) -> bool:
        return not evidence[2]

    @evaluator(factory=True)
    def made_quiet() -> Any:
        return lambda output, expected, session: not session[ToolCall]

    class Quiet:
        def evaluate(self, output: Any, expected: Any, session: SessionView) -> bool:
            return not session[ToolCall]

    for own in (quiet, lenient, later, marked, made_quiet, Quiet, Quiet()):
        attached = attach(own)
        for session, status in ((None, "skipped"), (Session(), "ok")):
            given = attached.score(Trial(Sample("1", None, "x"), "out", session=session))
            score = asyncio.run(given) if attached.mode == "async" else given
            assert (score.status, score.passed is True) == (status, status == "ok"), own
    together = all_of(quiet, lenient)("out", "x")
    assert together.status == "skipped"


def test_reasons_name_the_calls() -> None:
    """A reader need not open the session."""
    checks = [
        tool_called("close"),
        tool_called("search"),
        tool_not_called("search"),
        tool_call_count("search", 3),
        tool_call_count(max_count=1),
        all_tools_succeeded(),
        token_usage_under(10),
        slice_contains("Retrieval", {"documents": 3}, 2),
    ]
    assert [check("out", None, SEARCHED).reason for check in checks] == snapshot(
        [
            "'close' was not called; called: search, open",
            "called 2 times",
            "'search' was called 2 times: search(q='France')",
            "'search' was called 2 times, at least 3 required",
            "a tool was called 3 times, at most 1 allowed",
            "1 of 3 tool calls failed: open(page=1) ('404')",
            "100 tokens were used, 10 are allowed",
            "0 of 0 events of type Retrieval match, at least 2 must",
        ]
    )
    empty = [tool_called("a"), all_tools_succeeded(), tool_call_count("a", max_count=1)]
    assert [check("out", None, NOTHING).reason for check in empty] == snapshot(
        ["'a' was not called; no tool was called", "no tool was called", "'a' was called 0 times"]
    )


def test_a_call_with_an_unknown_outcome_does_not_pass() -> None:
    """Requested calls, or calls without an outcome, give an error; a failure still decides."""
    asked = Session([Message("assistant", "", tool_calls=(ToolCall("search"),))])
    assert says(all_tools_succeeded(), asked) == "error"
    silent = Session([ToolCall("a")])
    silent.append({"tool": "b"})
    score = all_tools_succeeded()("out", None, silent)
    assert score.reason == "it is unknown whether these calls succeeded: b()"
    silent.append(ToolCall("c", error="down"))
    assert says(all_tools_succeeded(), silent) is False


def test_a_failure_in_a_text_is_detected() -> None:
    """As JSON always; in words unless they are not to count."""
    json = Session([ToolCall("pay", result='{"error": "timeout"}')])
    assert (says(all_tools_succeeded(), json), says(all_tools_succeeded(words=False), json)) == (False, False)
    words = Session([ToolCall("pay", result="Error: the amount does not add up")])
    assert all_tools_succeeded()("out", None, words).reason == (
        "1 of 1 tool calls failed: pay() (its result starts with 'Error: the amount does not add up')"
    )
    assert says(all_tools_succeeded(words=False), words) is True


@pytest.mark.parametrize(
    ("unknown", "verdict"), [("error", "error"), ("skip", "skipped"), ("fail", False), ("pass", True)]
)
def test_the_user_decides_about_unknown_usage(unknown: Any, verdict: Any) -> None:
    """Ruling: by an option of `token_usage_under`; also if only one call has no usage."""
    check = token_usage_under(100, unknown=unknown)
    assert says(check, Session([ToolCall("search")])) == verdict
    assert says(check, Session([ModelCall("m", Usage(50, 50)), ModelCall("m")])) == verdict
    assert says(check, Session([ModelCall("m", Usage(50, 51)), ModelCall("m")])) is False
    assert says(check, Session([ModelCall("m", Usage(100))])) is True


def test_usage_from_the_target_overrides_that_of_the_session() -> None:
    """A target without a session can be checked too."""
    attached = attach(token_usage_under(100))
    output = Trial(Sample("1", None), "out", usage=Usage(80, 21), session=SEARCHED)
    assert attached.score(output).reason == "101 tokens were used, 100 are allowed"
    bare = Trial(Sample("1", None), "out", usage=Usage(80, 20))
    assert attached.score(bare).passed
    assert all_of(token_usage_under(100))("out", None, SessionView((), Usage(101))).passed is False


@each_row(
    ("kind", "predicate", "count"),
    [
        (Retrieval, None, 2),
        (Retrieval, many, 1),
        (Retrieval, {"documents": 3}, 1),
        ("Retrieval", {"source": "wiki"}, 2),
        (f"{__name__}:Retrieval", f"{__name__}:many", 1),
        (Page, lambda page: page.url.endswith("fr"), 1),
        ("Page", {"url": "a.fr"}, 1),
        ("dict", {"found": {"title": "Paris"}}, 1),
        (dict, {"lost": 1}, 0),
        (ToolCall, {"success": True}, 1),
        ("ToolCall", {"arguments": {"q": "x"}, "error": None}, 1),
        ("Message", {"role": "user"}, 1),
        ("Nobody", None, 0),
    ],
)
def test_a_slice_is_the_same_live_and_from_a_file(kind: Any, predicate: Any, count: int) -> None:
    """Users' own objects are found by class or name, also after a session was written down."""
    session = Session([Message("user", "hi"), ToolCall("search", {"q": "x", "n": 1})])
    for event in (Retrieval(1), Retrieval(3), Page(url="a.fr"), {"found": {"title": "Paris", "rank": 1}}):
        session.append(event)
    for seen in (session, codec.decode(codec.encode(session), Session)):
        score = slice_contains(kind, predicate)("out", None, seen)
        assert (score.passed, score.details["count"]) == (count > 0, count)
        assert says(slice_contains(kind, predicate, count + 1), seen) is False


def test_an_event_that_cannot_be_read_back_is_an_error() -> None:
    """JSON cannot represent the object."""
    session = Session()
    session.append(Opaque())
    assert says(slice_contains(Opaque), session) is True
    stored = codec.decode(codec.encode(session), Session)
    assert says(slice_contains(Opaque), stored) == "error"
    assert says(slice_contains("Opaque", {"size": 1}), stored) == "error"
    assert says(slice_contains("Opaque"), stored) is True


def test_expected_tools_may_come_from_the_sample() -> None:
    """A list, or the `tools` in it; nothing to look for is a skip, nonsense is an error."""
    check = tool_sequence()
    assert says(check, expected=["search", {"name": "open", "arguments": {"page": 1}}]) is True
    assert says(check, expected={"answer": "Paris", "tools": ["open", "search"]}) is False
    assert says(check, expected=[]) == "skipped"
    assert says(tool_sequence(mode="exact"), NOTHING, expected=[]) is True
    assert says(check, expected=[7]) == "error"
    assert says(check, expected={"answer": "Paris"}) == "error"


def same_letters(found: str, expected: str) -> bool:
    return found.casefold() == expected.casefold()


def test_arguments_may_be_compared_by_a_function_at_an_address() -> None:
    """It can be written in a file."""
    check = tool_sequence([{"name": "search", "arguments": {"q": "FRANCE"}}], compare={"q": f"{__name__}:same_letters"})
    assert says(check) is True


@each_row(
    ("make", "message"),
    [
        (lambda: tool_called(""), "a tool name must be a non-empty string, got ''"),
        (lambda: tool_not_called(cast(Any, 7)), "a tool name must be a non-empty string, got 7"),
        (lambda: tool_call_count(""), "a tool name must be a non-empty string, got ''"),
        (lambda: tool_call_count("a"), "without min_count and max_count it would always pass"),
        (lambda: tool_call_count("a", -1), "min_count must be an integer, 0 or more, got -1"),
        (lambda: tool_call_count("a", 3, 2), "max_count must be an integer, 3 or more, got 2"),
        (lambda: token_usage_under(True), "max_tokens must be an integer, 0 or more, got True"),
        (lambda: token_usage_under(1, cast(Any, "ok")), "unknown must be one of 'error', 'skip', 'fail', 'pass'"),
        (lambda: slice_contains(7), "type must be a class or its name, got 7"),
        (lambda: slice_contains(""), "type must be a class or its name, got ''"),
        (lambda: slice_contains("json:dumps"), "type must be a class or its name"),
        (lambda: slice_contains("json:nothing"), "'json' has no attribute 'nothing'"),
        (lambda: slice_contains(dict, min_count=0), "min_count must be an integer, 1 or more"),
        (lambda: slice_contains(dict, 7), "expected a plain function, got 7"),
        (lambda: slice_contains(dict, later), "expected a plain function"),
        (lambda: tool_sequence([]), "expected is an empty list of tools, so it would always pass"),
        (lambda: tool_sequence(["a"], cast(Any, "ordered")), "mode must be one of 'in_order', 'any_order', 'exact'"),
        (lambda: tool_sequence(["a"], arguments=cast(Any, "x")), "arguments must be 'exact', 'subset'"),
        (lambda: tool_sequence(["a"], compare={"q": 7}), "compare.q: expected a plain function"),
        (lambda: tool_sequence([7]), "the expected tool calls cannot be read"),
    ],
)
def test_contradictory_options_are_refused_on_creation(make: Any, message: str) -> None:
    """Before anything runs."""
    with pytest.raises(EvaluatorError) as caught:
        make()
    assert message in str(caught.value)


def agent(question: str) -> str:
    """Looks it up, once too often for Italy."""
    record(ToolCall("search", {"q": question}, result="…"))
    if question == "Italy":
        record(ToolCall("search", {"q": "Rome"}, error="rate limit"))
    record(ModelCall("m", Usage(90, 10)))
    return {"France": "Paris", "Italy": "Rome"}[question]


CITIES = [{"id": "fr", "input": "France", "expected": "Paris"}, {"id": "it", "input": "Italy", "expected": "Rome"}]


def passed(report: EvalReport, name: str) -> dict[str, bool | None]:
    return {result.sample_id: result.scores[name].passed for result in report.results}


def test_they_mix_with_plain_evaluators(tmp_path: Path) -> None:
    """In combinators, in a run, and when the stored run is scored again."""
    evaluators = {
        "sound": all_of(exact_match, tool_called("search"), all_tools_succeeded()),
        "either": any_of(all_tools_succeeded(), tool_call_count("search", 2)),
        "careful": weighted((contains, 1), (token_usage_under(99), 3)),
        "once": negate(tool_call_count("search", min_count=2)),
    }
    report = evaluate(agent, CITIES, evaluators, history=tmp_path / "runs.db")
    verdicts = {name: passed(report, name) for name in evaluators}
    assert verdicts == {
        "sound": {"fr": True, "it": False},
        "either": {"fr": True, "it": True},
        "careful": {"fr": False, "it": False},
        "once": {"fr": True, "it": False},
    }
    assert report.results[0].scores["careful"].value == 0.25
    again = rescore(report.run_id, evaluators, history=tmp_path / "runs.db")
    assert {name: passed(again, name) for name in evaluators} == verdicts


def test_they_look_at_recorded_sessions(tmp_path: Path) -> None:
    """A recording's session and usage are evidence like those of a live run."""
    target = RecordedTarget(
        [
            {
                "id": "fr",
                "output": "Paris",
                "session": {
                    "events": [
                        {"type": "tool_call", "name": "search", "arguments": {"q": "France"}},
                        {"type": "custom", "kind": "Retrieval", "data": {"documents": 3}},
                    ]
                },
                "usage": {"input_tokens": 10, "output_tokens": 5},
            }
        ]
    )
    checks = {
        "in_order": tool_sequence([{"name": "search", "arguments": {"q": "France"}}]),
        "cheap": token_usage_under(15),
        "found": slice_contains(Retrieval, many),
    }
    report = evaluate(target, CITIES[:1], checks, history=None)
    assert {name: passed(report, name)["fr"] for name in checks} == dict.fromkeys(checks, True)


def test_a_reply_without_a_session_is_checked_by_its_usage() -> None:
    report = evaluate(
        lambda question: Reply("Paris", usage=Usage(10, 5)), CITIES[:1], token_usage_under(14), history=None
    )
    assert report.results[0].scores["token_usage_under"].reason == ("15 tokens were used, 14 are allowed")


def test_they_can_be_written_in_an_eval_file() -> None:
    """Alone and inside combinations, and built again from a stored run."""
    registry = Registry.standard()
    written = [
        {"tool_called": "search"},
        {"not-tool_called": {"name": "close"}},
        {"uses": "tool_called", "name": "opened", "parameters": {"name": "open"}},
        {"tool_call_count": {"name": "search", "min_count": 1, "max_count": 2}},
        "all_tools_succeeded",
        {"uses": "all_tools_succeeded", "name": "by_field", "words": False},
        {"token_usage_under": 100},
        {"slice_contains": {"type": "ToolCall", "predicate": {"name": "open"}}},
        {"tool_sequence": {"expected": ["search", {"name": "open", "arguments": {"page": 1}}]}},
        {"all_of": ["contains", {"tool_not_called": "close"}]},
    ]
    built = registry.build_all(written)
    scores = {one.spec.name: one("Paris", "Paris", SEARCHED).passed for one in built}
    failed = [name for name, verdict in scores.items() if not verdict]
    assert failed == ["all_tools_succeeded", "by_field"]
    for one in built:
        again = registry.build(one.spec)
        assert (again.spec.parameters, again("Paris", "Paris", SEARCHED)) == (
            one.spec.parameters,
            one("Paris", "Paris", SEARCHED),
        )


def test_functions_and_classes_are_stored_by_their_address() -> None:
    """So the stored evaluator can be built again, in another process too."""
    check = attach(slice_contains(Retrieval, many))
    assert check.spec.parameters == {"type": f"{__name__}:Retrieval", "predicate": f"{__name__}:many", "min_count": 1}
    session = Session()
    session.append(Retrieval(3))
    assert Registry.standard().build(check.spec)("out", None, session).passed


def test_wrong_parameters_in_a_file_are_reported_together() -> None:
    with pytest.raises(EvaluatorError) as caught:
        Registry.standard().build_all([{"tool_sequence": {"mode": "any"}}, {"token_usage_under": "many"}])
    assert [problem.where for problem in caught.value.problems] == [
        "evaluators[0] (tool_sequence), mode",
        "evaluators[1] (token_usage_under), max_tokens",
    ]


def test_an_expected_answer_is_no_list_of_tools() -> None:
    """A text that names no called tool is skipped with the Fix; a called tool, a list of names and `tools` are read."""
    session = Session([ToolCall("book trip", {"to": "Rome"}), ToolCall("pay")])
    check = tool_sequence()
    for prose in ("Booked Rome.", "42", "Done.", "shipped", "in_transit", "Paris", "yes", ["pay", "Booked Rome."]):
        score = check("", prose, session)
        assert score.status == "skipped", prose
        assert "does not name a called tool, so it may be an answer: write tool_sequence:" in score.reason
        assert "metadata: {expected_tools: [search]}" in score.reason
    for tools, value in (
        ("book trip", 1.0),
        (["refund"], 0.0),
        ({"name": "refund"}, 0.0),
        ("mcp__bank:pay-now/v1", 0.0),
        (["book trip", "pay"], 1),
        (["pay", "shipped"], 0.5),
    ):
        assert check("", tools, session).value == value, tools
    assert check("", {"tools": ["Booked Rome."]}, session).value == 0.0
    assert tool_sequence(["refund"])("", "shipped", session).value == 0.0


@each_row(
    ("expected", "outcome"),
    [
        ("search", True),
        ("`search`", True),
        ("search()", True),
        ("search, open", True),
        ("search; open", True),
        ("search -> open", True),
        ("search → open", True),
        ("search\nopen", True),
        ("open -> search", False),
        ("search, close", False),
        ("search -> open -> close", False),
        ("search, search", False),
        ("close", "skipped"),
        ("close, delete", "skipped"),
        ("Paris, France", "skipped"),
        ("A -> B", "skipped"),
        ("1, 2", "skipped"),
        ("I will search, then open it", "skipped"),
        ("search, because it is open", "skipped"),
        ("Use search", "skipped"),
    ],
)
def test_a_text_of_tool_names_is_a_list(expected: str, outcome: Any) -> None:
    """A text passes or fails if it lists names of which one was called; otherwise it may be an answer."""
    session = Session([ToolCall("search"), ToolCall("open")])
    score = tool_sequence()("", expected, session)
    assert (score.passed if score.status == "ok" else score.status) == outcome
    if outcome != "skipped":
        # The names in an eval file are always tools.
        assert tool_sequence(expected)("", None, session).passed is outcome


@each_row(
    ("tools", "outcome"),
    [
        (["search", "open"], True),
        ("search -> open", True),
        (["search", "close"], False),
        ("search;open", True),
        ("search, close", False),
        ('["search", {"name": "open", "input_parameters": {"page": 1}}]', True),
        ([{"name": "search", "inputParameters": {"q": "France"}, "reasoning": "find it", "output": "Paris"}], True),
        ([{"name": "search", "input_parameters": {"q": "Rome"}, "description": "a search"}], False),
        ([{"name": "search", "inputParameters": None}], True),
        ([{"function": {"name": "search", "arguments": '{"q": "France"}'}}], True),
        ({"name": "open", "args": {"page": 1}}, True),
        ([], "skipped"),
        (None, "skipped"),
        (["call the search tool"], "skipped"),
        ("[broken", "skipped"),
        ([7], "error"),
        ([{"arguments": {}}], "error"),
    ],
)
def test_expected_tools_in_the_metadata_come_before_the_expected_answer(tools: Any, outcome: Any) -> None:
    """They are read as other frameworks write them; an option of the evaluator comes before both."""
    sample = Sample("1", None, "shipped", {"expected_tools": tools})
    trial = Trial(sample, "out", session=SEARCHED)
    score = attach(tool_sequence()).score(trial)
    assert (score.passed if score.ok else score.status) == outcome, score.reason
    assert attach(tool_sequence(["search"])).score(trial).passed is True
    combined = attach(all_of(tool_sequence(), tool_called("search"))).score(trial)
    assert combined.passed == (outcome if score.ok else combined.passed)
