"""Claude Code's logs: messages on several lines, side chains, tools that fail, odd lines."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from proctor.evaluators.session import tool_called
from proctor.records.session import CustomEvent, Message, ModelCall, SessionView, ToolCall, Usage
from proctor.records.session_events import ORPHAN_RESULT, UNANSWERED
from proctor.sessions.importers import claude_code
from proctor.sessions.importers import claude_code as claude_lines
from proctor.sessions.importers import claude_code as claude_usage
from tests.importers.examples import CLAUDE
from tests.importers.logs import kinds, only, read, real, values_in


def said(content: Any, kind: str = "user", **more: Any) -> dict[str, Any]:
    return {"type": kind, "message": {"role": kind, "content": content}, **more}


def test_a_session_is_read_in_order() -> None:
    """Lines of one message are one message; a tool's answer is in its call."""
    imported = only(claude_code, *CLAUDE)
    assert kinds(imported) == [
        "CustomEvent summary", "user", "CustomEvent thinking", "ModelCall claude-x", "assistant",
        "ToolCall Bash", "CustomEvent toolUseResult", "assistant", "ToolCall Bash",
        "ModelCall claude-x", "user meta", "assistant", "ModelCall claude-x",
    ]  # fmt: skip
    assert (imported.id, imported.input, imported.output) == ("cc-1", "How many files are here?", "Two files.")
    assert imported.recorded["title"] == "Counting files"
    assert imported.recorded["started_at"] == "2026-01-02T10:00:01.000Z"
    listed, refused = imported.session[ToolCall]
    assert (listed.result, listed.error, listed.duration_ms) == ("a.py\nb.py", None, 12.0)
    assert refused.error == "The user doesn't want this."
    assert imported.unknown_parts == {}


def test_usage_is_counted_once_a_message() -> None:
    """The last line of a message counts; the sums of all lines are recorded too."""
    imported = only(claude_code, *CLAUDE)
    assert [call.usage for call in imported.session[ModelCall]] == [
        Usage(125, 30, 100, cache_write_tokens=20),
        Usage(125, 7, 100, cache_write_tokens=20),
        Usage(125, 4, 100, cache_write_tokens=20),
    ]
    assert imported.recorded["tokens"]["once_a_message"]["output_tokens"] == 41
    assert imported.recorded["tokens"]["of_all_lines"]["output_tokens"] == 43
    assert imported.recorded["tokens"]["of_all_lines"]["input_tokens"] == 25


def test_a_side_chain_has_the_name_of_its_agent() -> None:
    """What sub-agents say is no answer to the user; what they call is called."""
    imported = only(
        claude_code,
        said("Do it."),
        said([{"type": "text", "text": "Sub"}], "assistant", isSidechain=True, agentId="a1"),
        said([{"type": "text", "text": "Done."}], "assistant"),
        said([{"type": "text", "text": "Late"}], "assistant", isSidechain=True),
    )
    assert [m.name for m in imported.session[Message]] == [None, "sub-agent a1", None, "sub-agent"]
    assert imported.output == "Done."


def test_the_file_of_a_sub_agent_is_its_own_session() -> None:
    """All lines are a side chain: they are the conversation, and the agent is recorded."""
    lines = [
        said("Look.", isSidechain=True, agentId="a1", sessionId="s1"),
        said([{"type": "text", "text": "Seen."}], "assistant", isSidechain=True, agentId="a1"),
    ]
    imported = only(claude_code, *lines)
    assert (imported.id, imported.input, imported.output) == ("s1/a1", "Look.", "Seen.")
    assert imported.recorded["sub_agent_of"] == "s1"
    assert {m.name for m in imported.session[Message]} == {None}


def test_the_progress_of_an_agent_is_read() -> None:
    """Lines inside lines of progress are messages; other progress and queue operations are known events."""
    inner = said([{"type": "tool_use", "id": "g", "name": "Grep", "input": {}}], "assistant")
    imported = only(
        claude_code,
        said("Find."),
        {"type": "progress", "data": {"agentId": "x", "message": inner}},
        {"type": "progress", "data": {"type": "hook_progress"}},
        {"type": "queue-operation", "operation": "dequeue", "sessionId": "s"},
    )
    assert kinds(imported)[1] == "assistant sub-agent x"
    assert [event.kind for event in imported.session[CustomEvent]][1:] == ["progress", "queue-operation"]
    assert imported.unknown_parts == {}


def test_repeated_progress_is_read_and_counted_once() -> None:
    """A repeated part of a message is read once; the recorded usage is that of the session."""

    def progress(*parts: Any, used: int, **more: Any) -> dict[str, Any]:
        usage = {"input_tokens": 7, "output_tokens": used}
        message = {"id": "m1", "model": "claude-x", "content": [*parts], "usage": usage}
        inner = {"type": "assistant", "message": message}
        return {"type": "progress", "data": {"agentId": "x", "message": inner}, **more}

    text = {"type": "text", "text": "Sub"}
    call = {"type": "tool_use", "id": "g", "name": "Grep", "input": {}}
    answered = said([{"type": "tool_result", "tool_use_id": "g", "content": "a.py"}], uuid="u")
    answer = {"type": "progress", "data": {"agentId": "x", "message": answered}}
    usage = {"input_tokens": 10, "output_tokens": 5}
    last = said([{"type": "text", "text": "Done."}], "assistant")
    last["message"] |= {"id": "m2", "model": "claude-x", "usage": usage}
    imported = only(
        claude_code, said("Find."), progress(text, used=1), progress(text, call, used=3, more=[8]), answer, answer, last
    )
    assert [message.content for message in imported.session[Message]] == ["Find.", "Sub", "Done."]
    assert [call.result for call in imported.session[ToolCall]] == ["a.py"]
    assert imported.unknown_parts == {}
    assert imported.session.usage == Usage(17, 8)
    assert imported.recorded["tokens"] == {
        "once_a_message": {"input_tokens": 17, "output_tokens": 8},
        "of_all_lines": {"input_tokens": 24, "output_tokens": 9},
    }
    assert [line["more"] for line in imported.recorded["log"] if "more" in line] == [[8]]


def test_messages_of_the_program_are_not_user_messages() -> None:
    """Commands, caveats, summaries and synthetic errors are named, and no input or output."""
    imported = only(
        claude_code,
        said("<command-name>/clear</command-name>"),
        said([{"type": "text", "text": claude_lines.CAVEAT}]),
        said("This session is continued…", isCompactSummary=True),
        said("Real question"),
        said([{"type": "text", "text": "Real answer"}], "assistant"),
        {"type": "assistant", "message": {"model": "<synthetic>", "content": [
            {"type": "text", "text": "API Error"}]}},
    )  # fmt: skip
    names = [message.name for message in imported.session[Message]]
    assert names == ["command", "meta", "summary", None, None, "synthetic"]
    assert (imported.input, imported.output) == ("Real question", "Real answer")
    assert imported.session[ModelCall] == ()


def test_unmatched_calls_and_results_are_kept() -> None:
    """An unanswered call is no success, and an answer to nothing is counted."""
    imported = only(
        claude_code,
        said([{"type": "tool_use", "id": "t", "name": "Bash", "input": "odd"}], "assistant"),
        said([{"type": "tool_result", "tool_use_id": "other", "content": "lost"}]),
    )
    assert [(e.kind, e.data) for e in imported.session[CustomEvent]] == [
        (UNANSWERED, {"tool_name": "Bash", "arguments": {"": "odd"}, "call_id": "t"}),
        (ORPHAN_RESULT, {"call_id": "other", "content": "lost"}),
    ]
    assert imported.unknown_parts == {ORPHAN_RESULT: 1}


def test_an_unknown_part_is_no_tool_call() -> None:
    """Even with a name and an input, like a call; its data is kept."""
    part = {"type": "hologram", "name": "Bash", "input": {"command": "ls"}}
    imported = only(claude_code, said("Hello"), said([part], "assistant"))
    assert tool_called("Bash")("", None, SessionView(imported.session.events)).passed is False
    assert imported.session[CustomEvent][0].data == {"found": part}


def test_a_resumed_session_continues_and_others_are_separate() -> None:
    """A new id that hangs on a known line goes on; one that hangs on nothing is another session."""
    item = said("A", sessionId="s1", uuid="u1", parentUuid=None)
    again = {**item, "sessionId": "s2", "parentUuid": "u1"}
    more = said([{"type": "text", "text": "B"}], "assistant", sessionId="s2", parentUuid="u1")
    other = said("C", sessionId="s3", uuid="u9", parentUuid=None)
    first, second = read(claude_code, [item, again, more, other])
    assert (first.id, first.recorded["sessions"], second.id) == ("s2", ["s1", "s2"], "s3")
    assert [m.content for m in first.session[Message]] == ["A", "B"]
    assert {"line": 2, "repeats_line": 1}.items() <= first.recorded["log"][1].items()


def test_images_and_odd_parts() -> None:
    """Parts that are no text stay as they are; those that are not known are counted."""
    image = {"type": "image", "source": {"data": "AA"}}
    text = {"type": "text", "text": "What is this?"}
    imported = only(claude_code, said([image, text, {"type": "hologram"}, "bare"]))
    assert imported.session[Message][0].content == [image, text]
    assert imported.input == "What is this?"
    assert imported.unknown_parts == {"content: hologram": 1, "content: a string": 1}


def test_the_real_log_adds_up() -> None:
    """The expected sums count every line; counted once per message they match the API calls."""
    folder = real("vibecodingtracker")
    values = values_in(folder / "claude_code.jsonl")
    (imported,) = read(claude_code, values)
    wanted = json.loads((folder / "claude_code.expected.json").read_text())["records"][0]
    (usage,) = wanted["conversationUsage"].values()
    names = claude_usage.COUNTS
    recorded = imported.recorded["tokens"]
    assert [recorded["of_all_lines"][name] for name in names] == [usage[name] for name in names]
    assert [usage[name] for name in names] == [252, 3_921, 1_298_818, 124_169]
    last = {v["message"]["id"]: v["message"]["usage"] for v in values if v["type"] == "assistant"}
    once = [sum(each.get(name, 0) for each in last.values()) for name in names]
    assert once == [158, 3_860, 1_093_509, 99_004]
    assert [recorded["once_a_message"][name] for name in names] == once
    assert imported.session.usage == Usage(sum(once) - 3_860, 3_860, once[2], None, once[3])
    called = Counter(call.name for call in imported.session[ToolCall])
    # The expected counts are of answers, one of which stands there twice: line 49 repeats 48.
    repeated = wanted["toolCallCounts"] | {"TodoWrite": wanted["toolCallCounts"]["TodoWrite"] - 1}
    assert {name: called[name] for name in repeated} == repeated
    assert imported.id == wanted["taskId"]
    assert imported.unknown_parts == {"file-history-delta": 1}


def test_real_edge_cases() -> None:
    """Lines that are no lines, messages without content: each is counted, the rest is read."""
    imported, stray = read(claude_code, values_in(real("claude_code_log/edge_cases.jsonl")))
    assert imported.unknown_parts == {
        "user without content": 2, "a string": 1, "mapping with silly": 1, "a number": 2,
        "content: a string": 1,
    }  # fmt: skip
    assert (imported.id, stray.id) == ("edge_cases", "todowrite_session")
    assert [(call.name, call.success) for call in imported.session[ToolCall]] == [("FailingTool", False)]


def test_a_document_of_lines_is_read_like_the_lines() -> None:
    """`loglines` and a plain list give the same session; other fields are kept."""
    imported = only(claude_code, {"loglines": CLAUDE, "more": 1})
    assert imported.unknown_parts == {"document": 1}
    assert imported.session.usage == only(claude_code, CLAUDE).session.usage


def test_messages_without_an_id_stay_apart_in_a_document() -> None:
    """In a document as on lines: turns and their order are those of the log, and so is usage."""
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    used = {"usage": {"input_tokens": 3, "output_tokens": 2}, "model": "m"}
    lines = [
        said("Do it."),
        said([{"type": "text", "text": "First."}, call], "assistant"),
        said([{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]),
        said([{"type": "text", "text": "Then."}], "assistant"),
        said([{"type": "text", "text": "Last."}], "assistant"),
    ]
    for line in lines:
        line["message"] |= used if line["type"] == "assistant" else {}
    apart = only(claude_code, *lines)
    assert [message.content for message in apart.session[Message]] == [
        "Do it.", "First.", "Then.", "Last.",
    ]  # fmt: skip
    for document in ({"loglines": lines}, lines):
        imported = only(claude_code, document)
        assert imported.session.events == apart.session.events
        assert imported.recorded["tokens"] == apart.recorded["tokens"]
        assert imported.session.usage == Usage(9, 6)


def test_the_real_document_keeps_its_turns() -> None:
    """Five assistant messages with tools between stay five."""
    path = real("claude_code_transcripts") / "sample_session.json"
    (document,) = values_in(path)
    imported = only(claude_code, document)
    lines = only(claude_code, *document["loglines"])
    assert imported.session.events == lines.session.events
    spoken = [line for line in document["loglines"] if line["type"] == "assistant"]
    result = [m for m in imported.session[Message] if m.role == "assistant"]
    assert len(result) == len(spoken)


def test_details_without_a_result_are_kept() -> None:
    """`toolUseResult` of a line without a result, or of the assistant, is recorded."""
    for kind, content in (("user", []), ("user", "Hi"), ("assistant", [])):
        line = {"type": kind, "toolUseResult": {"stdout": 7}, "message": {"content": content}}
        assert only(claude_code, line).recorded["log"][0]["toolUseResult"] == {"stdout": 7}
    inner = {"type": "user", "message": {"content": "Hi"}}
    outer = {"type": "progress", "data": {"message": inner}}
    noted = only(claude_code, outer | {"message": 7, "toolUseResult": 8}).recorded["log"][0]
    assert (noted["message"], noted["toolUseResult"]) == (7, 8)


def test_messages_queued_while_the_model_works_are_read() -> None:
    """They are attachments; entries of tasks and other agents have a name."""

    def queued(prompt: Any, **more: Any) -> Any:
        return {"type": "attachment", "uuid": f"q-{prompt}-{more}", "attachment": {
            "type": "queued_command", "prompt": prompt, **more}}  # fmt: skip

    image = [{"type": "image", "source": {}}, {"type": "text", "text": "And this."}]
    lines = [
        queued("Also the README.", commandMode="prompt", origin={"kind": "human"}),
        queued(image),
        queued("<task-notification>done</task-notification>"),
        queued("Done.", commandMode="task-notification"),
        queued("I am done.", origin={"kind": "peer"}),
        queued("Note.", isMeta=True),
    ]
    odd = [queued(""), queued(7), {"type": "attachment", "attachment": {"type": "hook"}}]
    imported = only(claude_code, said("Go"), *lines, lines[0], *odd)
    assert [(m.content, m.name) for m in imported.session[Message]] == [
        ("Go", None), ("Also the README.", None), (image, None),
        ("<task-notification>done</task-notification>", "meta"), ("Done.", "meta"),
        ("I am done.", "meta"), ("Note.", "meta"),
    ]  # fmt: skip
    assert {m.role for m in imported.session[Message]} == {"user"}
    assert imported.unknown_parts == {"attachment": 3}
    assert imported.recorded["log"][0]["attachment"] == {
        "commandMode": "prompt", "origin": {"kind": "human"},
    }  # fmt: skip
