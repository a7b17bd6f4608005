"""Recorded sessions as a dataset: ids, metadata, and runs without a target."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import evaluate
from proctor.datasets.sessions import SessionDataset, make_sample, name_sessions_uniquely
from proctor.errors import ConfigError, DatasetError
from proctor.records.session import Session, ToolCall, Usage
from proctor.sessions import current as sessions
from proctor.sessions.importers import claude_code
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.wiring.prepare import Evaluation, prepare
from proctor.wiring.registry import Registry
from tests.importers.examples import CLAUDE, OPENAI
from tests.importers.growth import assert_linear
from tests.importers.logs import only, real


def folder(tmp_path: Path, **files: Any) -> Path:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, values in files.items():
        (logs / f"{name}.jsonl").write_text("".join(json.dumps(v) + "\n" for v in values))
    return logs


def test_samples_contain_the_recorded_data(tmp_path: Path) -> None:
    """Input, output, session, usage and recorded scores; a task is a cluster."""
    first, second = SessionDataset(folder(tmp_path, chat=OPENAI))
    assert (first.id, first.input, first.metadata["output"]) == ("7-1", "Weather in Rome?", "Sunny.")
    assert first.metadata["session"][ToolCall][0].name == "weather"
    assert first.metadata["scores"] == {"reward": 1.0}
    assert first.cluster == "7"
    assert "usage" not in first.metadata
    assert second.metadata["session_id"] == "second"
    assert second.metadata["recorded_id"] == "second"


def claude_result(**fields: Any) -> list[Any]:
    return [{"type": "result", "session_id": "s", "num_turns": 1, "usage": {"input_tokens": 5}, **fields}]


def agents_trace(kind: str) -> list[Any]:
    span = {"object": "trace.span", "id": "1", "trace_id": "t", "error": {"message": "tripwire"}}
    return [{"object": "trace", "id": "t"}, {**span, "span_data": {"type": kind, "name": "x"}}]


def copilot_events(*types: str) -> list[Any]:
    data = {"sessionId": "s", "content": "hello", "message": "no quota"}
    return [{"type": name, "data": data, "id": str(number)} for number, name in enumerate(types)]


def smolagents_run(state: str) -> list[Any]:
    step = {"step_number": 1, "model_output": "hm", "observations": None, "tool_calls": [], "is_final_answer": False}
    return [{"state": state, "output": "no answer", "steps": [{"task": "find it"}, step]}]


COPILOT = ("session.start", "user.message", "assistant.message")
ENDINGS: list[tuple[list[Any], str | None]] = [
    (claude_result(subtype="error_max_turns", is_error=True, errors=["too many"]), "error_max_turns: too many"),
    (claude_result(subtype="success", is_error=True, result="API Error: 500"), "API Error: 500"),
    (claude_result(subtype="success", is_error=False, result="done"), None),
    (agents_trace("agent"), "tripwire"),
    (agents_trace("function"), None),
    (copilot_events(*COPILOT, "session.error"), "no quota"),
    (copilot_events("session.start", "session.error", *COPILOT[1:]), None),
    (smolagents_run("max_steps_error"), "the run ended with max_steps_error"),
    (smolagents_run("success"), None),
]


@pytest.mark.parametrize(("log", "error"), ENDINGS)
def test_a_session_that_ended_with_an_error_is_an_error(tmp_path: Path, log: list[Any], error: str | None) -> None:
    """The trial has the error and the session, and no score; errors that the agent survived do not count."""
    data = SessionDataset(folder(tmp_path, log=log))
    (sample,) = data
    report = evaluate(None, data, lambda output: True, history=False)
    (result,) = report.results
    expected = None if error is None else f"CallFailed: the recorded session ended with an error: {error}"
    assert (result.error, result.outcome) == (expected, "passed" if error is None else "error")
    assert result.trial.session == sample.metadata["session"]


def test_duplicate_ids_get_a_suffix(tmp_path: Path) -> None:
    """Each sample has a unique id, the same in every iteration."""
    logs = folder(tmp_path, a=CLAUDE, b=CLAUDE, c=[{"id": "cc-1-2", "messages": [
        {"role": "user", "content": "x"}]}])  # fmt: skip
    data = SessionDataset(logs)
    assert [sample.id for sample in data] == ["cc-1", "cc-1-2", "cc-1-2-2"]
    assert data.inspect().length == 3
    assert data.info == data.inspect()


def test_the_work_for_unique_names_is_linear() -> None:
    """The search for the next number does not start from the beginning."""

    def prepare(count: int) -> Callable[[], object]:
        sessions = [ImportedSession("chat", Session(), "openai", "f") for _ in range(count)]

        def assign_names() -> None:
            names = [name for name, _ in name_sessions_uniquely(sessions)]
            assert (names[:2], names[-1]) == (["chat", "chat-2"], f"chat-{count}")
            assert len(set(names)) == count

        return assign_names

    assert_linear(prepare, 300)


def test_one_session_can_be_chosen(tmp_path: Path) -> None:
    """By the id that it has among all; else by being the only one."""
    logs = folder(tmp_path, a=CLAUDE, b=[*CLAUDE, {"type": "hologram"}], c=OPENAI)
    (logs / "d.jsonl").write_text("{")
    data = SessionDataset.for_session(logs, "cc-1-2")
    (sample,) = data
    assert sample.metadata["source"].endswith("b.jsonl")
    assert data.inspect().details["passed_over"] == {"hologram": 1}
    assert [problem.where for problem in data.problems] == [str(logs / "d.jsonl:1")]
    with pytest.raises(ConfigError, match="did you mean 'cc-1-2'"):
        SessionDataset.for_session(logs, "cc-1-3")
    with pytest.raises(ConfigError, match=r"name one with --id: cc-1, cc-1-2, 7-1, second$"):
        SessionDataset.for_session(logs)
    assert len(list(SessionDataset.for_session(logs / "a.jsonl", format="claude-code"))) == 1


def test_iterating_warns_about_unreadable_files(tmp_path: Path) -> None:
    """Without a description made before: by the dataset, and as warnings of the run."""
    logs = folder(tmp_path, a=[*CLAUDE, {"type": "hologram"}])
    (logs / "b.jsonl").write_text("{")
    data = SessionDataset(logs)
    notes: list[str] = []
    recorded = sessions.warnings.set(notes)
    try:
        assert len(list(data)) == 1
    finally:
        sessions.warnings.reset(recorded)
    assert [problem.where for problem in data.problems] == [str(logs / "b.jsonl:1")]
    assert notes == data.warnings
    assert "1 line or file of the dataset" in notes[0]
    assert "hologram (1)" in notes[1]
    list(data)
    assert data.warnings == notes  # each pass counts anew


def test_a_warning_names_every_file_that_could_not_be_read(tmp_path: Path) -> None:
    """It explains the first problem; a file is named once, even with many damaged lines."""
    logs = folder(tmp_path, a=CLAUDE)
    for number in range(26):
        (logs / f"bad{number:02}.json").write_text("{\n{\n{\n{\n")
    data = SessionDataset(logs)
    list(data)
    (warning,) = data.warnings
    assert ", in 26 files: " in warning
    assert all(warning.count(f"bad{number:02}.json") == 1 for number in range(26))
    for number in range(60):
        (logs / f"c{number:02}.json").write_text("")
    list(data)
    assert data.warnings[0].endswith(", c23.json and 36 more")


def test_names_of_results_are_not_used() -> None:
    """What was recorded under a name that means something else here gets another."""
    recorded = {"recorded": 1, "tags": "a b", "error": "x", "task_id": True, "model": "m"}
    metadata = make_sample(ImportedSession("s", Session(), "openai", "f", recorded=recorded), "s").metadata
    assert metadata["recorded_recorded"] == 1
    assert metadata["recorded_tags"] == "a b"
    assert metadata["recorded_error"] == "x"
    assert metadata["model"] == "m"
    assert "cluster" not in metadata
    assert make_sample(ImportedSession(" ", Session(), "openai", "f"), "s").input == ""


def test_sessions_of_one_conversation_are_grouped() -> None:
    """By the id of a task, a conversation, a session or a thread, or whose sub-agent it is."""

    def cluster(name: str = "s", **recorded: Any) -> str | None:
        return make_sample(ImportedSession(name, Session(), "openai", "f", recorded=recorded), name).cluster

    assert cluster(conversation_id="c", session_id="d") == "c"
    assert cluster(session_id=7) == "7"
    assert cluster(conversation_id=" ", thread_id="t") == "t"
    assert cluster(sub_agent_of="main") == "main"
    assert cluster(task_id="1", session_id="d") == "1"
    assert cluster(session_id="d", cluster="own") == "own"
    # What has only an id of its own is as it was without.
    assert cluster("s", session_id="s") is None
    assert cluster("s-2", session_id="s") == "s"
    assert cluster(session_id={"id": 1}, user_id="u") is None


def test_traces_of_one_conversation_are_one_cluster(tmp_path: Path) -> None:
    """Of Langfuse and OpenTelemetry; a trace that names none is alone."""
    rows = [
        {"id": f"t{n}", "timestamp": "2025-01-01T00:00:00Z", "name": "chat", "input": "Hello",
         "output": "Hi", "observations": [], **({"sessionId": "talk"} if n else {})}
        for n in range(3)
    ]  # fmt: skip
    spans = [
        {"traceId": f"{n}" * 32, "spanId": f"{n}" * 16, "name": "chat", "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.conversation.id", "value": {"stringValue": "call"}}]}
        for n in (1, 2)
    ]  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(rows))
    otlp = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    (tmp_path / "b.json").write_text(json.dumps(otlp))
    result = [(sample.metadata["format"], sample.cluster) for sample in SessionDataset(tmp_path)]
    assert result == [("langfuse", None), *[("langfuse", "talk")] * 2, *[("otlp", "call")] * 2]


def test_the_file_of_a_sub_agent_belongs_to_its_session(tmp_path: Path) -> None:
    """The session itself is called what the cluster of its sub-agents is called."""
    aside = [{**line, "isSidechain": True, "agentId": "helper"} for line in CLAUDE]
    result = {item.id: item.cluster for item in SessionDataset(folder(tmp_path, a=CLAUDE, b=aside))}
    assert result == {"cc-1": None, "cc-1/helper": "cc-1"}


def test_conflicting_names_lose_nothing() -> None:
    """What keeps its name has it; what would get the same gets a number."""
    recorded = {"output": 1, "recorded_output": 2, "recorded_output_2": 3, "usage": 4}
    metadata = make_sample(ImportedSession("s", Session(), "openai", "f", recorded=recorded), "s").metadata
    assert metadata["recorded_output"] == 2
    assert metadata["recorded_output_2"] == 3
    assert metadata["recorded_output_3"] == 1
    assert metadata["recorded_usage"] == 4


def test_the_description_counts_what_could_not_be_read(tmp_path: Path) -> None:
    """The run records formats, damaged lines and unknown values."""
    logs = folder(tmp_path, a=[*CLAUDE, {"type": "hologram"}])
    (logs / "b.jsonl").write_text("{")
    info = SessionDataset(logs).inspect()
    assert info.details["formats"] == {"claude-code": 1}
    assert info.details["passed_over"] == {"hologram": 1}
    assert info.details["damaged"] == 1
    assert "b.jsonl:1" in info.details["problems"][0]
    assert info.fingerprint is not None


def test_sessions_need_no_target_and_with_one_are_the_baseline(tmp_path: Path) -> None:
    """Without a target what was recorded is scored; with one it is what was before."""
    data = SessionDataset(folder(tmp_path, a=CLAUDE))
    plan = prepare(Evaluation(None, data, ["all_tools_succeeded"]), Registry.standard())
    assert plan.target.spec.kind == "recorded"
    plan = prepare(Evaluation(len, data, ["all_tools_succeeded"]), Registry.standard())
    (sample,) = plan.dataset
    assert sample.metadata["baseline"]["output"] == "Two files."


def test_no_readable_session_is_an_error(tmp_path: Path) -> None:
    """A dataset without one session is refused before the run."""
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(DatasetError, match="no session"):
        SessionDataset(tmp_path).inspect()


def test_tau_bench_rewards_are_fields(tmp_path: Path) -> None:
    """All 200 trajectories are samples with their reward; tasks are clusters."""
    data = list(SessionDataset(real("tau_bench_airline/gpt-4o-airline.json.gz"), "openai"))
    assert len({sample.id for sample in data}) == 200
    assert sum(sample.metadata["scores"]["reward"] for sample in data) == 84
    assert len({sample.cluster for sample in data}) == 50


def test_usage_is_read_by_name() -> None:
    """Tokens of the session, the cache's included."""
    metadata = make_sample(only(claude_code, *CLAUDE), "x").metadata
    assert metadata["usage"] == {
        "input_tokens": 375, "output_tokens": 41, "cached_tokens": 300, "cache_write_tokens": 60,
    }  # fmt: skip
    assert metadata["session"].usage == Usage(375, 41, 300, cache_write_tokens=60)
