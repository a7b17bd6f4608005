"""Agents that return their messages: session, answer and scores, for every kind of target."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from proctor import (
    EvalLoop,
    InMemoryMailbox,
    Message,
    ModelCall,
    Reply,
    Session,
    SQLiteHistory,
    ToolCall,
    Usage,
    all_of,
    all_tools_succeeded,
    collect_results,
    contains,
    define,
    evaluate,
    exact_match,
    field,
    json_subset,
    record,
    rescore,
    submit_dataset,
    token_usage_under,
    tool_called,
    tool_not_called,
)
from proctor.records.fields.path import parse_path
from proctor.records.fields.view import view_as_mapping
from proctor.records.sample import Sample
from proctor.records.trial import EvalResult, Trial
from proctor.targets.command import CommandTarget
from proctor.targets.http import HttpTarget
from proctor.targets.recorded import RecordedTarget
from tests.importers.conversations import ANSWER, QUESTION, SHAPES, chat, langchain

SAMPLES = [{"id": "1", "input": QUESTION, "expected": ANSWER}]
CHECKS = {
    "answer": exact_match,
    "searched": tool_called("search"),
    "no_search": tool_not_called("search"),
    "no_delete": tool_not_called("delete"),
    "thrifty": token_usage_under(38),
}
VERDICTS = {"answer": True, "searched": True, "no_search": False, "no_delete": True, "thrifty": True}


def agent(question: str) -> Any:
    return {"messages": langchain()}


async def async_agent(question: str) -> Any:
    return {"messages": langchain()}


class Loop:
    def execute(self, request: str) -> Any:
        return {"messages": langchain()}


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"output": {"messages": chat()}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def verdicts(result: EvalResult) -> dict[str, bool | None]:
    return {name: None if score.value is None else score.passed for name, score in result.scores.items()}


TARGETS: dict[str, Callable[[], Any]] = {
    "function": lambda: agent,
    "async function": lambda: async_agent,
    "lambda of a Reply": lambda: lambda question: Reply({"messages": langchain()}),
    "runnable": lambda: RunnableLambda(lambda question: {"messages": langchain()}),
    "execute": Loop,
    "recorded": lambda: RecordedTarget({"1": {"messages": chat()}}),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_an_unmodified_agent_is_scored_by_its_calls(kind: str) -> None:
    """For every kind of target; the output is the last answer."""
    (result,) = evaluate(TARGETS[kind](), SAMPLES, CHECKS, history=None).results
    assert (result.error, result.output) == (None, ANSWER)
    assert verdicts(result) == VERDICTS
    assert result.trial.usage == Usage(30, 8)


def test_a_program_is_scored_by_its_calls(tmp_path: Path) -> None:
    """Messages in its JSON output are read."""
    (tmp_path / "answer.json").write_text(json.dumps({"output": chat()}))
    target = CommandTarget(["sh", "-c", f"cat > /dev/null; cat {tmp_path}/answer.json"])
    (result,) = evaluate(target, SAMPLES, CHECKS, history=None).results
    assert (result.error, result.output, verdicts(result)) == (None, ANSWER, VERDICTS)


def test_an_endpoint_is_scored_by_its_calls() -> None:
    """Messages in its JSON response are read."""
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        target = HttpTarget(f"http://127.0.0.1:{server.server_port}/")
        (result,) = evaluate(target, SAMPLES, CHECKS, history=None).results
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (result.output, verdicts(result)) == (ANSWER, VERDICTS)


def test_a_worker_and_a_recorded_span_judge_by_the_same_session() -> None:
    """The same holds for trials on workers and for outputs recorded in the samples."""
    requests, results = InMemoryMailbox[Any]("requests"), InMemoryMailbox[Any]("results")
    loop = EvalLoop(loop=agent, evaluator=tool_called("search"), requests=requests, results=results)
    submit_dataset([Sample("1", QUESTION, ANSWER)], requests)
    loop.run(max_iterations=1)
    (worked,) = collect_results(results, 1, timeout_seconds=5).results
    assert (worked.output, worked.score.passed) == (ANSWER, True)
    span = {"input": QUESTION, "output": {"messages": chat()}}
    judged = define("span").evaluate_field("output", exact_match, tool_not_called("search"))
    (recorded,) = judged.evaluate({**span, "expected": ANSWER}).results
    passed = recorded.scores["output"].details["parts"]
    assert recorded.output == ANSWER
    assert {name: part["passed"] for name, part in passed.items()} == {"exact_match": True, "tool_not_called": False}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_cache_and_the_history_give_the_same_verdicts(shape: str, tmp_path: Path) -> None:
    """The first time, from the cache, and scored again from the history."""
    history = SQLiteHistory(tmp_path / "h.db")

    def target(question: str) -> Any:
        return SHAPES[shape]()

    checks = {name: CHECKS[name] for name in CHECKS if name != "thrifty"}
    wanted = {name: VERDICTS[name] for name in checks}
    fresh = evaluate(target, SAMPLES, checks, history=history)
    runs = [
        fresh,
        evaluate(target, SAMPLES, checks, history=history, cache=True),
        evaluate(target, SAMPLES, checks, history=history, cache=True),
        rescore(fresh.run_id, checks, history=history),
    ]
    for run in runs:
        (result,) = run.results
        assert (result.output, verdicts(result)) == (ANSWER, wanted)
        assert result.trial.session == fresh.results[0].trial.session
    assert runs[2].results[0].trial.cached


def test_the_returned_value_is_stored(tmp_path: Path) -> None:
    """In the trial and the history; paths below `output` lead into it."""
    history = SQLiteHistory(tmp_path / "h.db")

    def target(question: str) -> Any:
        return {"messages": chat(), "sources": ["a", "b"]}

    (result,) = evaluate(target, SAMPLES, exact_match, history=history).results
    assert result.trial.raw_output == {"messages": chat(), "sources": ["a", "b"]}
    paths = {
        "output.sources.1": "b",
        "output.messages.1.content": QUESTION,
        "output": ANSWER,
        "raw_output.sources": ["a", "b"],
    }
    for stored in (result, history.results(history.runs()[0].run_id)[0]):
        seen = view_as_mapping(stored.trial)
        assert {path: parse_path(path).find(seen) for path in paths} == paths


def test_where_a_conversation_is_expected_the_messages_are_the_output() -> None:
    """A target whose product is a conversation is compared as it was; the session is there."""

    def generator(topic: str) -> Any:
        return {"messages": chat()}

    samples = [{"id": "1", "input": "a chat about Paris", "expected": {"messages": chat()}}]
    checks = {"same": exact_match, "searched": tool_called("search")}
    (result,) = evaluate(generator, samples, checks, history=None).results
    assert verdicts(result) == {"same": True, "searched": True}
    assert (result.output, result.trial.raw_output) == ({"messages": chat()}, None)


def test_a_state_is_compared_with_a_mapping_as_it_is() -> None:
    """If a mapping is expected, the other keys of the state are judged too."""
    state = {"messages": chat(), "category": "refund"}
    samples = [{"id": "1", "input": QUESTION, "expected": {"category": "refund"}}]
    checks = {"part": json_subset, "searched": tool_called("search")}
    report = evaluate(lambda question: state, samples, checks, history=None)
    (result,) = report.results
    assert verdicts(result) == {"part": True, "searched": True}
    assert (result.output, result.trial.raw_output) == (state, None)
    assert report.metadata is not None
    assert report.metadata.warnings == ()


def test_a_json_answer_is_still_compared_with_a_mapping() -> None:
    """Other keys of the state do not hide an answer that is the expected JSON."""
    texts = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": '{"category": "refund"}'}]
    samples = [{"id": "1", "input": QUESTION, "expected": {"category": "refund"}}]
    for state in ({"messages": texts}, {"messages": texts, "steps": 2}):
        (result,) = evaluate(lambda question: state, samples, json_subset, history=None).results  # noqa: B023
        assert result.output == '{"category": "refund"}'


def test_other_keys_of_a_state_are_a_warning_once() -> None:
    """The output is the last answer; the report says where the rest of the state is."""
    samples = [{"id": str(n), "input": QUESTION, "expected": ANSWER} for n in range(3)]
    state = {"messages": chat(), "category": "refund", "usage": {"input_tokens": 1}}
    report = evaluate(lambda question: state, samples, exact_match, history=None)
    assert [result.output for result in report.results] == [ANSWER] * 3
    assert report.metadata is not None
    (warning,) = report.metadata.warnings
    assert warning == (
        "the target returns messages and other keys: the output is the last message. The other "
        "keys are at the paths output.category, and everything is in raw_output"
    )


def test_a_reply_with_a_session_is_left_alone() -> None:
    """Who says what happened is believed, also if nothing did; the output stays as it is."""
    own = Session([ToolCall("delete")])
    for session, deleted in ((own, True), (Session(), False)):

        def target(question: str, session: Session = session) -> Reply:
            return Reply({"messages": chat()}, session=session)

        checks = {"deleted": tool_called("delete"), "searched": tool_called("search")}
        (result,) = evaluate(target, SAMPLES, checks, history=None).results
        assert verdicts(result) == {"deleted": deleted, "searched": False}
        assert result.output == {"messages": chat()}
        assert result.trial.session == session


def test_a_recorded_call_is_not_duplicated() -> None:
    """By an agent that also returns its messages."""

    def target(question: str) -> Any:
        record(ToolCall("search", {"q": "France"}, result="live"))
        record(ModelCall("m", Usage(1, 2)))
        return {"messages": langchain()}

    (result,) = evaluate(target, SAMPLES, exact_match, history=None).results
    session = result.trial.session
    assert session is not None
    assert [call.name for call in session[ToolCall]] == ["search", "open"]
    assert session[ToolCall][0].result == "live"
    assert result.trial.usage == session.usage == Usage(1, 2)
    assert [m.role for m in session[Message]][:2] == ["system", "user"]


def test_a_target_that_records_nothing_is_not_judged_by_it() -> None:
    """The case of old: `tool_called` gave 0.0 and `tool_not_called` passed."""
    (result,) = evaluate(lambda question: ANSWER, SAMPLES, CHECKS, history=None).results
    assert verdicts(result) == {**dict.fromkeys(CHECKS), "answer": True}
    assert result.trial.session is None


def test_messages_that_cannot_be_read_are_a_warning() -> None:
    """An object that fails when it is looked at costs its session, not its sample."""

    class Odd(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            raise RuntimeError("do not look")

    report = evaluate(lambda question: Odd(a=1), SAMPLES, tool_called("x"), history=None)
    assert [r.scores["tool_called"].status for r in report.results] == ["skipped"]
    assert report.metadata is not None
    (warning,) = [w for w in report.metadata.warnings if "could not be read" in w]
    assert "RuntimeError: do not look" in warning


def test_old_trials_have_no_raw_output() -> None:
    """The field has a default, so that what was stored before can be read."""
    assert Trial(Sample("1", None), "out").raw_output is None
    assert Reply("out").raw_output is None


def test_a_lone_answer_does_not_tell_which_tools_were_called() -> None:
    """An agent that returns only its last message is not judged as if it had called nothing."""

    def agent(question: str) -> dict[str, Any]:
        return {"role": "assistant", "content": "Paris"}

    checks = {"not": tool_not_called("delete"), "all": all_tools_succeeded(), "eq": exact_match}
    data = [{"id": "1", "input": "Capital of France?", "expected": "Paris"}]
    scores = evaluate(agent, data, checks, history=False).results[0].scores
    assert {name: score.status for name, score in scores.items()} == {"not": "skipped", "all": "skipped", "eq": "ok"}


CALLING = {"role": "assistant", "content": None, "tool_calls": chat()[2]["tool_calls"]}
UNANSWERED = {
    "a tool call": [{"role": "user", "content": "Is it Paris?"}, CALLING],
    "a tool result": chat()[:5],
    "a user turn": [*chat(), {"role": "user", "content": "Paris, really?"}],
    "only the user": [{"role": "user", "content": "Is it Paris?"}],
    "nothing": [],
}


@pytest.mark.parametrize("end", UNANSWERED)
@pytest.mark.parametrize("cached", [False, True])
def test_an_agent_without_an_answer_is_not_judged_by_the_words_of_others(
    end: str, cached: bool, tmp_path: Path
) -> None:
    """The user's "Paris" is no answer: evaluators of the output skip, also when rescored; those of
    the session judge what was done; a warning says so once."""
    requests: list[Any] = []

    def agent(question: str) -> Any:
        return {"messages": UNANSWERED[end]}

    def not_rude(output: Any) -> bool:
        requests.append(output)
        return True

    data = [{"id": str(n), "input": "Is it Paris?", "expected": "Paris"} for n in range(2)]
    checks = {
        "has": contains,
        "eq": exact_match,
        "rude": not_rude,
        "field": field("output", [contains]),
        "all": all_of(contains, not_rude),
        "searched": tool_called("search"),
    }
    history = SQLiteHistory(tmp_path / "h.db")
    report = evaluate(agent, data, checks, history=history, cache=cached)
    run_id = history.runs()[0].run_id
    again = rescore(run_id, checks, history=history)
    for result in [*report.results, *again.results]:
        judged = dict(result.scores)
        searched = judged.pop("searched")
        assert {score.status for score in judged.values()} == {"skipped"}, judged
        assert "the agent ended without an answer" in judged["has"].reason
        assert result.trial.output is None
        assert result.trial.raw_output == {"messages": UNANSWERED[end]}
        if end == "a tool result":
            assert searched.passed is True
        assert (result.trial.session is None) == (end in ("nothing", "only the user"))
    assert requests == []
    assert report.metadata is not None
    assert len([w for w in report.metadata.warnings if "do not end with an answer" in w]) == 1


def test_a_state_is_still_looked_at_by_its_fields() -> None:
    """Without an answer, other keys of a state can be judged, and a state that is expected."""

    def agent(question: str) -> Any:
        return {"messages": UNANSWERED["a tool call"], "category": "refund"}

    data = [{"id": "1", "input": "q", "expected": "refund"}]
    (result,) = evaluate(agent, data, {"kind": field("output.category", [exact_match])}, history=False).results
    assert result.scores["kind"].passed is True
    with_fields = [{"id": "1", "input": "q", "expected": {"category": "refund"}}]
    (result,) = evaluate(agent, with_fields, {"kind": json_subset}, history=False).results
    assert result.scores["kind"].passed is True


RESPONSES: dict[str, tuple[dict[str, Any], str | None]] = {
    "chat completion": (
        {
            "object": "chat.completion",
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": "I look it up.",
                        "tool_calls": [
                            {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
                        ],
                    },
                    "finish_reason": "tool_calls",
                }
            ],
        },
        "I look it up.",
    ),
    "message": (
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "search", "input": {}}],
            "stop_reason": "tool_use",
        },
        None,
    ),
}


@pytest.mark.parametrize("kind", RESPONSES)
def test_a_single_response_shows_the_tool_that_the_model_chose(kind: str) -> None:
    """Its calls are in the session, and its text is the output."""
    response, text = RESPONSES[kind]
    checks = {"search": tool_called("search"), "delete": tool_not_called("delete"), "none": tool_not_called("search")}
    [result] = evaluate(lambda _: response, [{"id": "1", "input": "Who?"}], checks, history=False).results
    assert {name: score.passed for name, score in result.scores.items()} == {
        "search": True,
        "delete": True,
        "none": False,
    }
    assert result.trial.output == text
