"""Codex's rollouts: items, events that repeat them, exit codes and tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from proctor.evaluators.session import tool_called
from proctor.records.session import CustomEvent, Message, ModelCall, SessionView, ToolCall, Usage
from proctor.records.session_events import UNANSWERED
from proctor.sessions.importers import codex
from proctor.sessions.importers.imported_session import ImportedSession
from tests.importers.examples import CODEX
from tests.importers.growth import assert_linear
from tests.importers.logs import kinds, only, read, real, values_in


def event(**payload: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": payload}


def item(**payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": payload}


def output(text: Any, call_id: str = "c") -> list[Any]:
    call = item(type="function_call", name="shell", call_id=call_id, arguments="{}")
    return [call, item(type="function_call_output", call_id=call_id, output=text)]


def test_a_session_is_read_in_order() -> None:
    """Items that events repeat are read once; the context is not a user message."""
    imported = only(codex, *CODEX)
    assert kinds(imported) == [
        "CustomEvent turn_context", "user context", "user", "CustomEvent user_message",
        "CustomEvent reasoning", "ToolCall shell", "CustomEvent token_count", "ModelCall gpt-x",
        "assistant",
    ]  # fmt: skip
    assert (imported.id, imported.input, imported.output) == ("cx-1", "Run the tests.", "One test fails.")
    (call,) = imported.session[ToolCall]
    assert (call.arguments, call.result) == ({"command": ["pytest"]}, "1 failed")
    assert (call.error, call.duration_ms) == ("exit code 1", 2000.0)
    assert imported.session.usage == Usage(90, 9, 50)


def test_the_same_total_is_the_same_call() -> None:
    """Repeated totals count once; without single counts the differences of totals count."""
    first, more = {"input_tokens": 10, "output_tokens": 1}, {"input_tokens": 30, "output_tokens": 3}
    events = [event(type="token_count", info={"total_token_usage": total}) for total in (first, first, more)]
    imported = only(codex, CODEX[0], *events, event(type="token_count", info=None))
    assert [call.usage for call in imported.session[ModelCall]] == [Usage(10, 1), Usage(20, 2)]


def test_the_exit_code_of_a_command_is_read() -> None:
    """By its own event, before or after; by the line the program writes; or by a failed status."""
    end = event(type="exec_command_end", call_id="c", exit_code=2, duration={"secs": 1, "nanos": 0})
    before = only(codex, *output("x")[:1], end, output("x")[1])
    assert before.session[ToolCall][0].error == "exit code 2"
    assert before.session[ToolCall][0].duration_ms == 1000.0
    after = only(codex, *output("x"), end)
    assert after.session[ToolCall][0].error == "exit code 2"
    failed = event(type="mcp_tool_call_end", call_id="c", success=False)
    assert only(codex, *output("x"), failed).session[ToolCall][0].error == "the call failed"
    written = only(codex, *output("oops\nProcess exited with code 127"))
    assert written.session[ToolCall][0].error == "exit code 127"
    above = "Chunk ID: 1\nProcess exited with code 2\nOutput:\nExit code: 0"
    assert only(codex, *output(above)).session[ToolCall][0].error == "exit code 2"
    fine = only(codex, *output("Exit code: 0\nOutput:\nok"))
    assert fine.session[ToolCall][0].success
    no = only(codex, *output({"content": "x", "success": False}))
    assert no.session[ToolCall][0].error == "the call failed"


def test_an_exit_code_in_the_output_of_a_command_is_ignored() -> None:
    """The program writes the exit code above "Output:" or in the last line; the rest is output."""
    for printed in (
        "Exit code: 0\nOutput:\nlog of CI:\nExit code: 1\n",
        "Process exited with code 0\nOutput:\nProcess exited with code 1",
        "Process exited with code 1\nand was started again",
        "Exit code: 1",
    ):
        assert only(codex, *output(printed)).session[ToolCall][0].error is None, printed


def test_other_fields_of_an_output_are_recorded() -> None:
    """An output may be JSON with more fields than the output and its exit code."""
    result = {"output": "ok", "metadata": {"exit_code": 0, "odd": "x"}, "more": 7}
    imported = only(codex, *output(json.dumps(result)))
    assert imported.session[ToolCall][0].result == "ok"
    assert imported.recorded["log"][-1]["beside output"] == {
        "metadata": {"exit_code": 0, "odd": "x"}, "more": 7,
    }  # fmt: skip


def test_a_message_that_only_an_event_has_keeps_its_position() -> None:
    """A question without an item comes before the events that follow it."""
    imported = only(
        codex,
        CODEX[0],
        event(type="user_message", message="First?"),
        *output("done", "c1"),
        item(type="message", role="assistant", content="Answer"),
        event(type="agent_message", message="Answer"),
        event(type="user_message", message="Second?"),
        event(type="user_message", message=" "),
        *output("done", "c2"),
    )
    assert [kind for kind in kinds(imported) if not kind.startswith("Custom")] == [
        "user", "ToolCall shell", "assistant", "user", "ToolCall shell",
    ]  # fmt: skip
    assert [message.content for message in imported.session[Message]] == [
        "First?", "Answer", "Second?",
    ]  # fmt: skip


def test_a_question_with_an_image_is_read_once() -> None:
    """The event repeats its text alone."""
    parts = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": "x"}]
    asked = item(type="message", role="user", content=parts)
    imported = only(codex, asked, event(type="user_message", message="What is it?"))
    assert [message.content for message in imported.session[Message]] == [parts]


def test_a_message_that_only_an_event_has_is_added() -> None:
    """A message without an item comes from its event."""
    imported = only(codex, CODEX[0], event(type="agent_message", message="Only here."))
    assert imported.output == "Only here."


def test_older_logs_have_no_envelope() -> None:
    """A head with an id, then bare items and states."""
    lines = [
        {"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "developer", "content": "Be kind."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "local_shell_call", "call_id": "s", "action": {"command": ["ls"]}},
        {"type": "function_call_output", "call_id": "s", "output": [{"type": "text", "text": "a"}]},
    ]
    assert codex.looks_like(lines)
    imported = only(codex, *lines)
    assert (imported.id, imported.input) == ("old", "Hi")
    assert [message.role for message in imported.session[Message]] == ["system", "user"]
    assert imported.session[ToolCall][0].name == "local_shell"
    assert imported.session[ToolCall][0].result == "a"


def test_another_header_starts_another_session_unless_forked() -> None:
    """A file with two sessions gives two; a fork contains the header of its source."""
    other = {"type": "session_meta", "payload": {"id": "cx-2"}}
    assert [imported.id for imported in read(codex, [*CODEX, other])] == ["cx-1", "cx-2"]
    fork = {"type": "session_meta", "payload": {"id": "f", "forked_from_id": "cx-1"}}
    assert [imported.id for imported in read(codex, [fork, *CODEX])] == ["f"]


def test_odd_items_are_counted() -> None:
    """Messages of unknown roles, calls without a name, items and events of new kinds."""
    imported = only(
        codex,
        item(type="message", role="ghost", content="x"),
        item(type="function_call"),
        item(type="hologram"),
        event(type="hologram"),
        {"type": "compacted", "payload": {"message": "short"}},
        7,
    )
    assert imported.unknown_parts == {
        "message: ghost": 1, "function_call": 1, "hologram": 1, "event: hologram": 1, "a number": 1,
    }  # fmt: skip


def test_real_codex_logs() -> None:
    """All three: answers, tools and tokens."""
    imported = [read(codex, values_in(path))[0] for path in sorted(real("mlflow/codex").iterdir())]
    assert [session.session.usage.total_tokens for session in imported] == [110, None, 250]
    assert [call.success for session in imported for call in session.session[ToolCall]] == [False, True, True]
    assert [session.unknown_parts for session in imported] == [{}, {}, {}]


def test_each_call_with_a_reused_id_gets_its_own_outcome() -> None:
    """An outcome belongs to one call, not to the next or previous one."""
    end = event(type="exec_command_end", call_id="c", exit_code=1, duration={"secs": 2, "nanos": 0})
    again = item(type="message", role="assistant", content="Again.")
    call, fine = output("fine")
    bad = output("bad")[1]
    for lines, failed in (
        ((call, end, bad, again, call, fine), [True, False]),
        ((call, bad, end, again, call, fine), [True, False]),
        ((call, fine, again, call, end, bad), [False, True]),
        ((call, fine, again, call, bad, end), [False, True]),
    ):
        calls = only(codex, CODEX[0], *lines).session[ToolCall]
        assert [entry.result == "bad" for entry in calls] == failed
        assert [entry.error == "exit code 1" for entry in calls] == failed
        assert [entry.duration_ms == 2000.0 for entry in calls] == failed


def test_a_repeated_text_is_two_messages() -> None:
    """An event repeats the nearest item; without one it is a message."""
    asked, recorded = item(type="message", role="user", content="Go on."), "Go on."
    echo = event(type="user_message", message=recorded)
    reply = item(type="message", role="assistant", content="Yes.")
    for lines in (
        (echo, asked, reply, echo, reply),
        (echo, reply, echo, asked, reply),
        (asked, echo, reply, echo, reply),
        (echo, reply, asked, echo, reply),
        (echo, asked, reply, echo, asked, reply),
    ):
        messages = only(codex, CODEX[0], *lines).session[Message]
        assert [message.content for message in messages] == [recorded, "Yes.", recorded, "Yes."]


def test_totals_that_were_reset_count_again() -> None:
    """Where a count falls, all of it was used since."""
    totals = [{"input_tokens": inputs, "output_tokens": outputs} for inputs, outputs in ((100, 10), (30, 4), (60, 9))]
    events = [event(type="token_count", info={"total_token_usage": total}) for total in totals]
    imported = only(codex, CODEX[0], *events)
    used = [Usage(100, 10), Usage(30, 4), Usage(30, 5)]
    assert [call.usage for call in imported.session[ModelCall]] == used


def asked(words: Any, **more: Any) -> dict[str, Any]:
    return item(type="message", role="user", content=words, **more)


def replied(words: str) -> dict[str, Any]:
    return item(type="message", role="assistant", content=words)


def rolled_back(turns: Any) -> dict[str, Any]:
    return event(type="thread_rolled_back", num_turns=turns)


def contents(found: ImportedSession) -> list[Any]:
    return [message.content for message in found.session[Message]]


def test_rolled_back_turns_are_kept_outside_the_conversation() -> None:
    """The last user turns are removed with their calls and events; their tokens count."""
    used = {"total_token_usage": {"input_tokens": 10, "output_tokens": 1}}
    imported = only(
        codex,
        CODEX[0],
        asked("First?"),
        replied("1."),
        asked("Wrong?"),
        event(type="user_message", message="Wrong?"),
        *output("wrong"),
        event(type="token_count", info=used),
        event(type="user_message", message="Worse?"),
        asked("Worse?"),
        asked("<turn_aborted>The user stopped it.</turn_aborted>"),
        rolled_back(2),
        asked("Right?"),
        replied("2."),
    )
    assert contents(imported) == ["First?", "1.", "Right?", "2."]
    assert imported.session[ToolCall] == ()
    assert imported.session.usage == Usage(10, 1)
    assert imported.unknown_parts == {}
    (rewound,) = (entry.data for entry in imported.session[CustomEvent] if entry.kind == "rewound")
    assert rewound["line"] == rolled_back(2)
    assert len(rewound["taken"]) == 7


def test_the_first_question_was_not_rolled_back() -> None:
    """All turns can be rolled back, even more than there are; messages before them stay."""
    for turns in (1, 9):
        context = asked("<environment_context>x</environment_context>")
        lines = (context, asked("Tpyo?"), replied("?"), rolled_back(turns), asked("Typo?"))
        imported = only(codex, CODEX[0], *lines)
        assert imported.input == "Typo?"
        assert [message.name for message in imported.session[Message]] == ["context", None]


def test_an_event_with_other_words_is_the_same_turn() -> None:
    """An event next to its item, or after a thought, is rolled back together with the item."""
    thought = item(type="reasoning", summary=[])
    first = (asked("A"), replied("a"))
    echoes = (event(type="user_message", message="Fix it"), event(type="user_message", message="B"))
    for turn in ((asked("[pasted] Fix it"), echoes[0]), (asked("B"), thought, echoes[1])):
        imported = only(codex, CODEX[0], *first, *turn, replied("b"), rolled_back(1))
        assert contents(imported) == ["A", "a"]


def test_turns_are_rolled_back_repeatedly() -> None:
    """Removed turns are not counted again, and questions that only events have are turns too."""
    echo = event(type="user_message", message="Again?")
    lines = [asked("A"), replied("a"), echo, replied("b"), echo, asked("Again?"), replied("c")]
    back = rolled_back(1)
    for times, left in enumerate((["A", "a", "Again?", "b"], ["A", "a"], []), start=1):
        imported = only(codex, CODEX[0], *lines, *[back] * times)
        assert contents(imported) == left
    assert only(codex, *lines, *[back] * 4).unknown_parts == {"event: thread_rolled_back": 1}
    for odd in (0, None, "1", -1):
        imported = only(codex, *lines, rolled_back(odd))
        assert len(contents(imported)) == 6
        assert imported.unknown_parts == {"event: thread_rolled_back": 1}


def test_the_work_for_many_rollbacks_is_linear() -> None:
    """Each line is read once, however many turns are rolled back."""
    used = event(type="token_count", info=None)

    def prepare(count: int) -> Callable[[], object]:
        lines = [*[asked("Q"), used] * count, *[rolled_back(1)] * count]
        return partial(only, codex, *lines)

    assert_linear(prepare, 200)
    assert contents(only(codex, *[asked("Q"), used] * 10, *[rolled_back(1)] * 10)) == []


def test_a_question_with_a_marked_image_is_read_once() -> None:
    """The program marks each image with a separate part, which the event does not repeat."""
    parts = [
        {"type": "input_text", "text": '<image name=[Image #1] path="/tmp/a.png">'},
        {"type": "input_image", "image_url": "x"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "What is in [Image #1]?"},
    ]
    echo = event(type="user_message", message="What is in [Image #1]?")
    imported = only(codex, CODEX[0], asked(parts), echo, replied("A cat."))
    assert contents(imported) == [[parts[1], parts[3]], "A cat."]
    assert imported.input == "What is in [Image #1]?"
    assert [line["frames"] for line in imported.recorded["log"] if "frames" in line] == [parts[::2][:2]]
    unframed = [{"type": "input_text", "text": words} for words in ("<image>", "</image>", "Why?")]
    assert contents(only(codex, asked(unframed))) == ["<image>\n</image>\nWhy?"]


def test_an_event_may_repeat_one_part_of_a_question() -> None:
    """It repeats the complete text, the joined parts, or one part, in this order of preference."""
    parts = [{"type": "input_text", "text": words} for words in ("See here.", "Why?")]
    for words in ("See here.\nWhy?", "See here.Why?", "Why?"):
        imported = only(codex, asked(parts), event(type="user_message", message=words))
        assert contents(imported) == ["See here.\nWhy?"]
    echo = event(type="user_message", message="Why?")
    assert contents(only(codex, asked("Why?"), echo, asked(parts))) == ["Why?", "See here.\nWhy?"]


def test_calls_of_hosted_tools_are_read() -> None:
    """A search succeeded or failed; without a status it has no result."""
    action = {"type": "search", "query": "weather Paris"}
    lines = [
        item(type="web_search_call", status=status, action=action) for status in ("in_progress", "completed", "failed")
    ]
    ended = event(type="web_search_end", call_id="ws", query="weather Paris")
    drawn = item(type="image_generation_call", status="completed", result="AA", revised_prompt="x")
    imported = only(codex, CODEX[0], *lines, ended, drawn)
    assert imported.unknown_parts == {}
    searched, failed, picture = imported.session[ToolCall]
    assert (searched.name, searched.arguments, searched.success) == ("web_search", action, True)
    assert failed.error == "the call failed"
    assert (picture.name, picture.arguments, picture.result) == (
        "image_generation", {"": "x"}, "AA",
    )  # fmt: skip
    assert kinds(imported)[0] == f"CustomEvent {UNANSWERED}"
    seen = SessionView(imported.session.events)
    assert tool_called("web_search")("", None, seen).passed
