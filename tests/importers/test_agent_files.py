"""Trajectories, chats and sessions of other agents: counts of real files, and what each format means."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import DatasetError
from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.records.session_events import UNANSWERED
from proctor.sessions.importers import atif, chatgpt, claude_ai, copilot_cli, vscode_chat
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.sessions.importers.session_files import SessionFiles
from tests.importers.agent_examples import ATIF, CHATGPT, CLAUDE_AI, COPILOT, VSCODE
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
