"""Trajectories, chats and sessions of other agents: counts of real files, and what each format means."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import DatasetError
from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.records.session_events import UNANSWERED
from proctor.sessions.importers import (
    atif,
    chatgpt,
    claude_ai,
    claude_code,
    copilot_cli,
    crewai_log,
    openai_agents,
    pydantic_ai_messages,
    smolagents_steps,
    vscode_chat,
)
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.sessions.importers.json_values import as_mapping
from proctor.sessions.importers.session_files import SessionFiles, load_format
from tests.importers.agent_examples import (
    AGENT_EXAMPLES,
    ATIF,
    CHATGPT,
    CLAUDE_AI,
    COPILOT,
    CREWAI,
    OPENAI_AGENTS,
    PYDANTIC_AI,
    SMOLAGENTS,
    STREAM_JSON,
    VSCODE,
)
from tests.importers.growth import assert_linear
from tests.importers.logs import DATA, kinds, only, read

FILES = DATA / "11_formats"
REFERENCE = json.loads((FILES / "REFERENCE.json").read_text()) if (FILES / "REFERENCE.json").exists() else {}
needs_files = pytest.mark.skipif(not REFERENCE, reason=f"there are no real files at {FILES} (set PROCTOR_DATA)")


def list_files(*folders: str) -> list[str]:
    """The files of some folders that have reference counts."""
    return [name for name in REFERENCE if name.startswith(tuple(f"{folder}/" for folder in folders))]


def read_file(name: str) -> list[ImportedSession]:
    return list(SessionFiles(FILES / name))


def count_tokens(session: ImportedSession) -> tuple[int, int]:
    usage = session.session.usage
    return usage.input_tokens or 0, usage.output_tokens or 0


def list_calls(session: ImportedSession) -> list[Any]:
    """The calls of a session, answered or not."""
    events = session.session
    return [*events[ToolCall], *(e for e in events if isinstance(e, CustomEvent) and e.kind == UNANSWERED)]


def list_kinds(session: ImportedSession, kind: str) -> list[CustomEvent]:
    return [event for event in session.session if isinstance(event, CustomEvent) and event.kind == kind]


@needs_files
@pytest.mark.parametrize("name", [name for name in list_files("atif") if "schema" in REFERENCE[name]])
def test_trajectories_have_the_steps_calls_and_tokens_of_harbor(name: str) -> None:
    """Each step is a message, tokens are those of the steps, and the stated totals are recorded."""
    root, *sub_agents = read_file(name)
    expected = REFERENCE[name]
    assert root.format == "atif"
    copied = [note for note in root.recorded["log"] if note.get("is_copied_context")]
    observations = [item for item in root.session[Message] if item.name == "observation"]
    unknown_steps = sum(root.unknown_parts.values())
    assert len(root.session[Message]) - len(observations) + unknown_steps == expected["steps"]
    assert len(copied) == expected["copied_context_steps"]
    copied_calls = sum(len(note.get("tool_calls", ())) for note in copied)
    assert len(list_calls(root)) + copied_calls == expected["tool_calls"]
    copied_results = sum(len(note["observation"]["results"]) for note in copied if note.get("observation"))
    assert len(root.session[ToolCall]) + len(observations) + copied_results == expected["observation_results"]
    assert (*count_tokens(root), root.session.usage.cached_tokens or 0) == tuple(expected["step_metric_sums"])
    assert root.recorded["final_metrics"].items() >= expected["final_metrics"].items()
    assert len(sub_agents) == expected["embedded_subagents"]


@needs_files
def test_an_embedded_sub_agent_is_a_session_of_its_own() -> None:
    """The sub-agent of the generated file has its 2 steps, 1 call and 300 + 20 tokens."""
    root, sub_agent = read_file("atif/generated_v1.8_subagent_multimodal.json")
    assert sub_agent.id == f"{root.id}/sub-1"
    assert (len(sub_agent.session[Message]), len(sub_agent.session[ToolCall])) == (2, 1)
    assert count_tokens(sub_agent) == (300, 20)
    assert sub_agent.recorded["sub_agent_of"] == root.id


@needs_files
@pytest.mark.parametrize("name", [name for name in list_files("atif") if "schema" not in REFERENCE[name]])
def test_files_beside_trajectories_are_not_taken_for_them(name: str) -> None:
    """Training traces are refused; the raw files of agents are read as what they are, or refused."""
    raw = {"gemini-cli-trajectory.json": "gemini", "mini-swe-agent-trajectory.json": "openai"}
    if (form := raw.get(Path(name).name)) is not None:
        assert [item.format for item in read_file(name)] == [form]
        return
    with pytest.raises(DatasetError, match="unknown log format"):
        read_file(name)


@needs_files
@pytest.mark.parametrize("name", list_files("chatgpt-export"))
def test_chatgpt_conversations_are_the_active_path(name: str) -> None:
    """Messages, thoughts and results of the session are the messages of the active path; the rest is rewound."""
    sessions = read_file(name)
    assert {item.format for item in sessions} == {"chatgpt"}
    assert len(sessions) == REFERENCE[name]["conversations"]
    for session, expected in zip(sessions, REFERENCE[name]["each"], strict=True):
        thoughts, rewound = list_kinds(session, "thinking"), list_kinds(session, "rewound")
        active = len(session.session[Message]) + len(thoughts) + len(session.session[ToolCall])
        assert active == expected["active_path_messages"]
        roles = Counter(item.role for item in session.session[Message])
        roles["assistant"] += len(thoughts)
        roles["tool"] += len(session.session[ToolCall])
        assert +roles == expected["active_roles"]
        inactive = [node for event in rewound for node in event.data["taken"] if node["node"].get("message")]
        assert active + len(inactive) == expected["messages_all"]


@needs_files
@pytest.mark.parametrize("name", list_files("claude-ai-export"))
def test_claude_ai_conversations_have_their_messages(name: str) -> None:
    """Each message of the export is in the session, empty conversations are sessions, unknown parts are counted."""
    sessions, expected = read_file(name), REFERENCE[name]
    assert {item.format for item in sessions} == {"claude-ai"}
    assert [len(_list_message_numbers(item)) for item in sessions] == expected["messages"]
    attachments = [event.data for item in sessions for event in list_kinds(item, "attachments")]
    assert sum(map(len, attachments)) == expected["attachments"]
    known = ("text", "thinking", "tool_use", "tool_result")
    unknown = {kind: number for kind, number in expected["blocks"].items() if kind not in known}
    counts = sum((Counter(item.unknown_parts) for item in sessions), Counter[str]())
    assert counts == {f"content: {kind}": number for kind, number in unknown.items()}
    assert sum(len(item.session[ToolCall]) for item in sessions) == expected["blocks"].get("tool_use", 0)
    assert sum(len(list_kinds(item, "thinking")) for item in sessions) == expected["blocks"].get("thinking", 0)


def _list_message_numbers(session: ImportedSession) -> set[int]:
    return {note["line"] for note in session.recorded.get("log", ())}


@needs_files
def test_a_copilot_session_has_all_executions_and_the_tokens_of_its_shutdown() -> None:
    """2 user and 6 assistant messages, 11 requested calls, 13 executed ones, and the totals by model."""
    (session,) = read_file("copilot/copilot_cli_session.jsonl")
    messages = session.session[Message]
    assert Counter(item.role for item in messages) == {"system": 2, "user": 2, "assistant": 6}
    assert sum(len(item.tool_calls) for item in messages) == 11
    calls = session.session[ToolCall]
    assert (len(calls), all(call.success for call in calls)) == (13, True)
    assert session.session.usage == Usage(186809, 2848, 151738, cache_write_tokens=0)
    assert session.unknown_parts == {}


@needs_files
@pytest.mark.parametrize("name", [name for name in list_files("copilot") if "vscode" in name])
def test_vscode_sessions_have_their_requests(name: str) -> None:
    """Each request is a question; tool invocations are calls."""
    (session,) = read_file(name)
    assert session.format == "vscode-chat"
    assert sum(item.role == "user" for item in session.session[Message]) == REFERENCE[name]["requests"]
    assert len(session.session[ToolCall]) == REFERENCE[name]["tool_invocations"]
    assert session.unknown_parts == {}


@needs_files
@pytest.mark.parametrize("name", [name for name in list_files("claude") if "types" in REFERENCE[name]])
def test_claude_sessions_count_usage_once_per_message(name: str) -> None:
    """Calls, results, errors and tokens of Claude Code's files and of stream-json are those of the reference."""
    (session,) = read_file(name)
    expected, calls = REFERENCE[name], session.session[ToolCall]
    assert session.format == "claude-code"
    assert len(calls) == expected["blocks"].get("tool_result", 0)
    assert len(list_calls(session)) == expected["blocks"].get("tool_use", 0)
    assert len([call for call in calls if call.error]) == expected["tool_result_errors"]
    assert len(list_kinds(session, "thinking")) == expected["blocks"].get("thinking", 0)
    tokens = session.recorded.get("tokens", {}).get("once_a_message", {})
    assert tokens.get("output_tokens", 0) == expected["output_tokens_by_last_line_per_id"]
    assert tokens.get("input_tokens", 0) == expected["input_tokens_by_last_line_per_id"]


@needs_files
def test_the_result_of_stream_json_states_the_tokens_and_the_cost() -> None:
    """The totals by model count, sub-agents and cache included; a run that failed at once is a session."""
    (session,) = read_file("claude/stream_json_session.jsonl")
    # 20 + 3700 + 250 of the large model and 300 of the small one.
    assert session.session.usage == Usage(4270, 117, 3700, 0.0123, 250)
    assert [item.name for item in session.session[Message]].count("sub-agent") == 1
    (failed,) = read_file("claude/stream_json_error.jsonl")
    assert failed.session.usage == Usage(5, 1, 0, 0.001, 0)
    assert list_kinds(failed, "result")[0].data["subtype"] == "error_max_turns"


@needs_files
@pytest.mark.parametrize("name", [name for name in list_files("openai-agents") if "objects" in REFERENCE[name]])
def test_agents_traces_count_tokens_of_generations_only(name: str) -> None:
    """Spans of turns and tasks repeat the usage; functions are calls; errors are recorded."""
    (session,) = read_file(name)
    expected, spans = REFERENCE[name], [note["span"] for note in session.recorded["log"] if "span" in note]
    assert session.format == "openai-agents"
    assert Counter(span["span_data"]["type"] for span in spans) + Counter(trace=1) == expected["spans"]
    assert count_tokens(session) == (expected["input_tokens"], expected["output_tokens"])
    assert len(session.session[ModelCall]) == expected["spans"].get("generation", 0)
    assert len(session.session[ToolCall]) == expected["spans"].get("function", 0)
    failures = [call for call in session.session[ToolCall] if call.error]
    assert len(failures) + len(list_kinds(session, "error")) == expected["errors"]


@needs_files
@pytest.mark.parametrize("name", [name for name in list_files("openai-agents") if "items" in REFERENCE[name]])
def test_items_of_the_agents_sdk_are_messages(name: str) -> None:
    """A list of input items is read as messages, with each call and its output."""
    (session,) = read_file(name)
    expected = REFERENCE[name]["kinds"]
    assert session.format == "openai"
    assert len(session.session[ToolCall]) == expected.get("function_call", 0)
    texts = [item for item in session.session[Message] if item.role == "assistant" and item.content]
    assert len(texts) == expected["message"]


@needs_files
def test_saved_run_states_are_refused() -> None:
    """A run state of the Agents SDK is not a session; the error says what the file contains."""
    states = sorted((FILES / "openai-agents").glob("run_state_*.json"))
    assert len(states) == 3
    for state in states:
        with pytest.raises(DatasetError, match="schemaVersion"):
            list(SessionFiles(state))


@needs_files
@pytest.mark.parametrize("name", list_files("pydantic-ai"))
def test_pydantic_ai_messages_have_their_parts(name: str) -> None:
    """Calls, thoughts, retries and tokens are those of the reference."""
    (session,) = read_file(name)
    expected, calls = REFERENCE[name], session.session[ToolCall]
    assert len({note["line"] for note in session.recorded["log"]}) == expected["messages"]
    assert len(calls) == expected["parts"].get("tool-call", 0)
    assert len([call for call in calls if call.error]) == expected["retried"]
    assert len(list_kinds(session, "thinking")) == expected["parts"].get("thinking", 0)
    assert count_tokens(session) == (expected["input_tokens"], expected["output_tokens"])
    assert session.unknown_parts == {}


@needs_files
@pytest.mark.parametrize("name", [*list_files("smolagents"), "smolagents/toolcalling_run.json"])
def test_smolagents_steps_have_their_calls_and_tokens(name: str) -> None:
    """Listed calls are calls; a call that raised is recovered from the message of the model."""
    (session,) = read_file(name)
    expected, calls = REFERENCE.get(name, REFERENCE["smolagents/toolcalling_steps.json"]), session.session[ToolCall]
    failed = [call for call in calls if call.error]
    recovered = 0 if "codeagent" in name else 1
    assert len(failed) == expected["errors"]
    assert len(calls) - recovered == expected["tool_calls"]
    assert count_tokens(session) == (expected["input_tokens"], expected["output_tokens"])
    assert len({note["line"] for note in session.recorded["log"]}) == expected["steps"]
    assert session.output == (5 if "codeagent" in name else "2.1 million")


@needs_files
def test_crewai_logs_have_their_tasks() -> None:
    """Four entries of two tasks are two questions and two answers; the output of a crew has the same."""
    for name in ("crew_log.json", "crew_output.json"):
        (session,) = read_file(f"crewai/{name}")
        assert [item.role for item in session.session[Message]] == ["user", "assistant"] * 2
        assert session.unknown_parts == {}


def test_atif_results_belong_to_calls_and_copied_steps_do_not_count() -> None:
    """A result without an id answers the open call; one more is the environment's; copies have no calls."""
    root, sub_agent = read(atif, ATIF)
    assert [(call.name, call.result) for call in root.session[ToolCall]] == [("ls", "one.py"), ("ask", "see below")]
    assert [(item.role, item.name) for item in root.session[Message] if item.name] == [
        ("user", "context"),
        ("user", "observation"),
    ]
    assert (root.input, root.output) == ("Count the files.", "One file.")
    assert root.session.usage == Usage(230, 27, 60, 0.25)
    assert root.unknown_parts == {"message: critic": 1}
    # Without metrics in the steps, the totals of the trajectory are its usage.
    assert (sub_agent.id, sub_agent.session.usage) == ("a-1/scout-1", Usage(50, 4))
    assert {call.model for call in root.session[ModelCall]} == {"large", "small"}


def test_chatgpt_reads_tools_thoughts_and_the_chosen_branch() -> None:
    """A recipient is a tool; a second result is a message of the tool; the edited question is rewound."""
    session = only(chatgpt, *CHATGPT)
    assert session.session[ToolCall] == (ToolCall("python", {"": "print(2 + 2)"}, "4", call_id="m-c"),)
    assert (session.id, session.input, session.output) == ("g-7", "Two and two?", "It is\nfour.")
    assert [node["key"] for node in list_kinds(session, "rewound")[0].data["taken"]] == ["a"]
    assert kinds(session)[-3:] == ["tool canvas", "assistant", "CustomEvent rewound"]


def test_chatgpt_without_a_current_node_ends_at_the_last_leaf() -> None:
    """A missing current node, or parents in a circle, still give a conversation."""
    conversation = {**CHATGPT[0], "current_node": None}
    assert only(chatgpt, conversation).output == "It is\nfour."
    nodes = {**CHATGPT[0]["mapping"]}
    nodes["b"] = {**nodes["b"], "parent": "e"}
    assert len(only(chatgpt, {**CHATGPT[0], "mapping": nodes}).session[Message]) == 4


def test_claude_ai_reads_tools_and_empty_conversations() -> None:
    """A failed search is a failed call, the last text is the answer, and an unknown sender is shown."""
    first, second = read(claude_ai, CLAUDE_AI)
    (call,) = first.session[ToolCall]
    assert (call.name, call.error is not None) == ("web_search", True)
    assert (first.input, first.output) == ("Rain in Rome?", "No rain.")
    assert first.unknown_parts == {"message: judge": 1}
    assert (second.id, len(second.session), second.is_named) == ("k-2", 0, True)


def test_copilot_counts_unrequested_executions_and_failures() -> None:
    """An execution without a request is a call; messages of the program are not the question."""
    session = only(copilot_cli, *COPILOT)
    assert [(call.name, call.error) for call in session.session[ToolCall]] == [("view", None), ("glob", "denied")]
    assert [item.name for item in session.session[Message]] == [None, None, None, "meta", "sub-agent"]
    assert (session.input, session.output) == ("Find the bug.", "I read.")
    assert session.session.usage == Usage(400, 17, 300, cache_write_tokens=0)
    without_totals = only(copilot_cli, *COPILOT[:-1])
    assert without_totals.session.usage == Usage(None, 17)
    assert len(read(copilot_cli, [*COPILOT, *COPILOT])) == 2


def test_vscode_joins_texts_and_reads_declined_calls() -> None:
    """Adjacent texts and references are one message; a declined call failed; unknown parts are counted."""
    session = only(vscode_chat, *VSCODE)
    assistant = [item.content for item in session.session[Message] if item.role == "assistant"]
    assert assistant == ["Reading a.py", "", "Done.", "Nothing."]
    first, second = session.session[ToolCall]
    assert (first.arguments, first.result, first.success) == ({"path": "a.py"}, {"output": "text of a"}, True)
    assert (second.arguments, second.error) == ({"command": "rm a.py"}, "the user declined the call")
    assert session.unknown_parts == {"part: hologram": 1}


def test_agents_traces_are_in_order_of_their_start() -> None:
    """Messages come once, in order; a failed function is a failed call; its error is the span's."""
    session = only(openai_agents, *OPENAI_AGENTS)
    assert [item.content for item in session.session[Message]] == ["Weather in Rome?", "", "I do not know."]
    (call,) = session.session[ToolCall]
    assert (call.arguments, call.error) == ({"city": "Rome"}, "no such city")
    assert session.session.usage == Usage(100, 31)
    assert [event.kind for event in session.session if isinstance(event, CustomEvent)] == [
        "handoff",
        "guardrail",
        "error",
    ]


def test_pydantic_ai_reads_both_kinds_of_retries() -> None:
    """Returns with the outcome "retried" and retry prompts are failures; final_result is the output."""
    session = only(pydantic_ai_messages, *PYDANTIC_AI)
    assert [(call.name, call.error) for call in session.session[ToolCall]] == [
        ("lookup", "unknown city"),
        ("weather", "too late"),
        ("final_result", None),
    ]
    assert (session.id, session.output) == ("run-1", {"size": 2})
    system = [item.content for item in session.session[Message] if item.role == "system"]
    assert system == ["Be brief.", "You know cities."]
    assert session.unknown_parts == {"part: odour": 1}


def test_smolagents_recovers_the_call_that_raised() -> None:
    """The failed call is named in the model's message; an error without a call is an event."""
    session = only(smolagents_steps, *SMOLAGENTS)
    assert [(call.name, call.error) for call in session.session[ToolCall]] == [
        ("lookup", None),
        ("lookup", "no such city"),
        ("final_answer", None),
    ]
    assert [event.data["message"] for event in list_kinds(session, "error")] == ["no action"]
    assert (session.input, session.output) == ("How large is Paris?", "two million")
    assert session.session.usage == Usage(440, 53)


def test_crewai_reads_logs_and_outputs() -> None:
    """A log has no tokens; an output has the tokens of its crew."""
    log, output = read(crewai_log, CREWAI)
    assert (log.input, log.output, log.session.usage) == ("How large is Paris?", "two million", Usage())
    assert (output.output, output.session.usage) == ("Two million.", Usage(40, 4))


def test_stream_json_counts_the_totals_of_its_result() -> None:
    """The lines have placeholders; a message of a sub-agent has its name and is not the answer."""
    session = only(claude_code, *STREAM_JSON)
    assert session.session.usage == Usage(132, 42, 100, 0.75, 20)
    assert (session.id, session.output) == ("st-1", "It is gone.")
    assert [item.name for item in session.session[Message]] == [None, "sub-agent", None]
    (call,) = session.session[ToolCall]
    assert (call.name, call.error) == ("Task", "gone")


def _repeat(name: str, number: int) -> list[Any]:
    """The example of a format, with its messages repeated."""
    first = AGENT_EXAMPLES[name][0]
    if name == "chatgpt":
        nodes = [_link(index, node) for index, node in enumerate([*first["mapping"].values()] * number)]
        return [{"mapping": {node["id"]: node for node in nodes}, "current_node": nodes[-1]["id"]}]
    if name == "copilot-cli":
        return COPILOT[1:] * number
    if isinstance(first, list):
        return [first * number]
    # Each generation of a trace repeats the conversation before it, so only its other spans are repeated.
    kinds = {"openai-agents": "data", "atif": "steps", "claude-ai": "chat_messages", "vscode-chat": "requests"}
    items = [item for item in first[kinds[name]] if as_mapping(item.get("span_data")).get("type") != "generation"]
    return [{**first, kinds[name]: items * number}]


def _link(index: int, node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "id": str(index), "parent": str(index - 1) if index else None}


@pytest.mark.parametrize("name", AGENT_EXAMPLES)
def test_reading_takes_steps_in_proportion_to_the_log(name: str) -> None:
    """A log of four times the length takes about four times the work."""

    def prepare(number: int) -> Callable[[], object]:
        log = _repeat(name, number)
        return lambda: read(load_format(name), log)

    assert_linear(prepare, 10)
