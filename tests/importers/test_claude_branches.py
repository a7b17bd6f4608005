"""Claude Code's branches: rewound ones are kept as events, other forks are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proctor.records.session import CustomEvent, Message, ToolCall, Usage
from proctor.sessions.importers import claude_code
from proctor.sessions.importers.imported_session import ImportedSession
from tests.importers.growth import assert_linear
from tests.importers.logs import only


def linked(uuid: str, above: str | None, content: Any, kind: str = "user", **more: Any) -> Any:
    ids = {"uuid": uuid, "parentUuid": above, "sessionId": "s"}
    message: dict[str, Any] = {"role": kind, "content": content}
    used = {"id": f"m-{uuid}", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}
    message |= used if kind == "assistant" else {}
    return {"type": kind, **ids, **more, "message": message}


def answer(uuid: str, above: str, words: str) -> Any:
    return linked(uuid, above, [{"type": "text", "text": words}], "assistant")


def contents(found: ImportedSession) -> list[Any]:
    return [message.content for message in found.session[Message]]


ASKED = [linked("1", None, "Hello"), answer("2", "1", "Hi")]


def test_a_rewound_branch_is_kept_outside_the_conversation() -> None:
    """The user rephrased a message: its calls, answers and system lines go, their tokens count."""
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]
    inner = {"type": "assistant", "message": {"id": "p", "model": "m", "content": [], "usage": {
        "input_tokens": 7, "output_tokens": 2}}}  # fmt: skip
    branch = [
        linked("3", "2", "Wrnog"),
        linked("4", "3", [call], "assistant"),
        {"type": "progress", "uuid": "5", "parentUuid": "4", "data": {"message": inner}},
        linked("6", "5", result, toolUseResult={"stdout": "x"}),
        {"type": "system", "subtype": "compact_boundary", "uuid": "7", "parentUuid": None,
         "logicalParentUuid": "6"},
        answer("8", "7", "What?"),
    ]  # fmt: skip
    new = [linked("9", "2", "Right"), answer("10", "9", "Yes.")]
    imported = only(claude_code, *ASKED, *branch, *new)
    assert contents(imported) == ["Hello", "Hi", "Right", "Yes."]
    assert imported.session[ToolCall] == ()
    assert imported.session.usage == Usage(27, 6)
    assert imported.recorded["tokens"]["once_a_message"] == {"input_tokens": 27, "output_tokens": 6}
    assert [(event.kind, event.data) for event in imported.session[CustomEvent]] == [("rewound", {"taken": branch})]
    assert imported.unknown_parts == {}
    again = only(claude_code, *ASKED, *branch, *new, *branch)
    assert (again.session.usage, contents(again)) == (imported.session.usage, contents(imported))


def test_branches_are_rewound_inside_branches() -> None:
    """The last of several branches stays, and nested branches go with their branch."""
    lines = [
        *ASKED,
        linked("3", "2", "One"),
        answer("4", "3", "1"),
        linked("5", "4", "One and a half"),
        linked("6", "4", "One and a bit"),
        linked("7", "2", "Two"),
        linked("8", "2", "Three"),
        answer("9", "8", "3"),
    ]
    imported = only(claude_code, *lines)
    assert contents(imported) == ["Hello", "Hi", "Three", "3"]
    assert [len(event.data["taken"]) for event in imported.session[CustomEvent]] == [4, 1]


def test_other_forks_are_no_branches() -> None:
    """Parallel results, sub-agents, program messages, other sessions and roots are all read."""
    calls = [{"type": "tool_use", "id": it, "name": "Bash", "input": {}} for it in "xy"]
    results = [[{"type": "tool_result", "tool_use_id": it, "content": it}] for it in "xy"]
    forks = [
        [linked("3", "2", calls, "assistant"), linked("4", "3", results[0]),
         linked("5", "3", results[1]), linked("6", "5", "Thanks")],
        [linked("3", "2", "Look", isSidechain=True), linked("4", "2", "Go on")],
        [linked("3", "2", "Go on"), linked("4", "2", "Look", agentId="a")],
        [linked("3", "2", "[Request interrupted by user]"), linked("4", "2", "Go on")],
        [linked("3", "2", "<command-name>/x</command-name>"), linked("4", "2", "Go on")],
        [linked("3", "2", "A note", isMeta=True), linked("4", "2", "Go on")],
        [linked("3", "2", "So far", isCompactSummary=True), linked("4", "2", "Go on")],
        [linked("3", "2", "Go on"), linked("4", "2", "Go on") | {"sessionId": "other"}],
        [linked("3", None, "Go on"), linked("4", None, "Stop")],
        [linked("3", "absent", "Go on"), linked("4", "absent", "Stop")],
        # Both went on: which of them was meant is not known.
        [linked("3", "2", "One"), linked("4", "2", "Two"), answer("5", "3", "1")],
        # Said in between, while a tool ran: nothing was taken back.
        [linked("3", "2", calls[:1], "assistant"), linked("4", "3", "Be quick"),
         linked("5", "3", "And polite"), linked("6", "3", results[0]), answer("7", "6", "Done")],
        # Lines that hang on themselves.
        [linked("3", "4", "One"), linked("4", "3", "Two"), linked("5", "3", "Three")],
    ]  # fmt: skip
    for fork in forks:
        imported = only(claude_code, *ASKED, *fork)
        assert "rewound" not in [event.kind for event in imported.session[CustomEvent]], fork
        words = [line["message"]["content"] for line in fork]
        texts = contents(imported)
        assert [event for event in words if isinstance(event, str) and event not in texts] == []


def test_the_work_for_many_branches_is_linear() -> None:
    """Each line of deep chains and wide forks is read once."""

    def prepare(count: int) -> Callable[[], object]:
        deep = [linked(str(n), str(n - 1) if n else None, f"Q{n}") for n in range(count)]
        wide = [linked(f"w{n}", str(count - 1), f"W{n}") for n in range(count)]
        last = answer("last", f"w{count - 1}", "A")

        def read() -> None:
            assert len(contents(only(claude_code, *deep, *wide, last))) == count + 2

        return read

    assert_linear(prepare, 150)
