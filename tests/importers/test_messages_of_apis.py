"""Messages as OpenAI's API, LangChain and Proctor itself write them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from proctor.evaluators.judges.transcript import render_transcript
from proctor.records import codec
from proctor.records.sample import Sample
from proctor.records.session import CustomEvent, Message, ModelCall, Session, ToolCall, Usage
from proctor.records.session_events import UNANSWERED
from proctor.records.trial import EvalResult, Trial
from proctor.sessions.importers import codex, langchain_messages, openai_messages, proctor_sessions
from proctor.sessions.importers.session_files import detect_format
from tests.importers.examples import LANGCHAIN, OPENAI, PROCTOR
from tests.importers.logs import kinds, only, read, real, values_in

HELLO = {"role": "user", "content": "Hello"}


def test_sessions_of_messages() -> None:
    """Calls get their results; other fields are recorded, a reward as a score."""
    first, second = read(openai_messages, OPENAI)
    assert kinds(first) == ["system", "user", "assistant", "ToolCall weather", "assistant"]
    (call,) = first.session[ToolCall]
    assert (call.arguments, call.result) == ({"city": "Rome"}, "sunny")
    assert (first.id, first.input, first.output) == ("7-1", "Weather in Rome?", "Sunny.")
    assert first.recorded["scores"] == {"reward": 1.0}
    assert first.recorded["info"] == {"cost": 0.2}
    assert (second.id, second.source) == ("second", "logs/chat.jsonl:2")


def test_every_way_to_write_a_list_of_messages() -> None:
    """A list, a list of lists, a list of objects, and one message a line."""
    assert [message.id for message in read(openai_messages, [[HELLO]])] == ["chat"]
    assert [message.id for message in read(openai_messages, [[[HELLO], [HELLO]]])] == ["chat:1", "chat:2"]
    assert [message.id for message in read(openai_messages, [[{"id": 3, "messages": [HELLO]}]])] == ["3"]
    lines = [HELLO, {"role": "assistant", "content": "Hi"}, 5]
    imported = only(openai_messages, *lines)
    assert (imported.output, imported.unknown_parts) == ("Hi", {"a number": 1})


def test_stray_values_are_stored_with_a_neighbouring_session() -> None:
    """Odd values before, between and after sessions are kept and counted; alone, too."""
    first, second = read(openai_messages, [1, {"messages": [HELLO]}, 2, {"messages": [HELLO]}, "3"])
    assert first.unknown_parts == {"a number": 1}
    assert second.unknown_parts == {"a number": 1, "a string": 1}
    assert only(openai_messages, 1, []).unknown_parts == {"a number": 1, "a list": 1}


def test_old_and_odd_tool_calls() -> None:
    """Functions of the older API, custom tools, arguments that are no JSON, calls without names."""
    imported = only(
        openai_messages,
        [
            {"role": "assistant", "content": None, "function_call": {
                "name": "f", "arguments": "{broken"}},
            {"role": "function", "name": "f", "content": "ok"},
            {"role": "assistant", "tool_calls": [
                {"id": "x", "type": "custom", "custom": {"name": "g", "input": "raw"}}, {"id": 1}]},
            {"role": "assistant", "content": "", "tool_calls": "none"},
            {"role": "narrator", "content": "Meanwhile"},
        ],
    )  # fmt: skip
    assert imported.session[ToolCall] == (ToolCall("f", {"": "{broken"}, "ok"),)
    waiting = [event.data for event in imported.session[CustomEvent] if event.kind == UNANSWERED]
    assert waiting == [{"tool_name": "g", "arguments": {"": "raw"}, "call_id": "x"}]
    assert imported.unknown_parts == {"tool call without a name": 2, "message: narrator": 1}


def test_other_role_names_are_mapped_and_recorded() -> None:
    """A model, a bot or an agent is the assistant, a human or a customer the user."""
    spoken = [("human", "a"), ("model", "b"), ("Customer", "c"), ("agent", "d"), ("user", "e")]
    imported = only(openai_messages, [{"role": role, "content": message} for role, message in spoken])
    assert [(m.role, m.content) for m in imported.session[Message]] == [
        ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("user", "e"),
    ]  # fmt: skip
    assert (imported.input, imported.output, imported.unknown_parts) == ("a", "d", {})
    assert [note["role"] for note in imported.recorded["log"]] == [role for role, _ in spoken[:4]]


@pytest.mark.parametrize("form", ["openai", "langchain", "codex"])
def test_a_judge_sees_messages_of_unknown_roles(form: str) -> None:
    """It keeps its position and its role; other fields of the message are kept."""
    other = {"role": "critic", "content": "That was wrong.", "mood": "sour"}
    if form == "openai":
        imported = only(openai_messages, [HELLO, other])
    elif form == "langchain":
        human = {"type": "human", "data": {"content": "Hello"}}
        imported = only(langchain_messages, [human, {"type": "chat", "data": other}])
    else:
        items = [{**HELLO, "type": "message"}, {**other, "type": "message"}]
        imported = only(codex, *({"type": "response_item", "payload": item} for item in items))
    assert render_transcript(imported.session) == ('[1] user:\n    Hello\n[2] other "critic":\n    That was wrong.')
    assert imported.unknown_parts == {"message: critic": 1}
    assert "sour" in codec.encode(imported).decode()


def test_a_separate_system_prompt_comes_first() -> None:
    """As Anthropic's API has it, a text or parts; where the messages have it too, it is once."""
    parts = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    for system in ("Be brief.", parts[:1]):
        imported = only(openai_messages, {"system": system, "messages": [HELLO]})
        assert kinds(imported) == ["system", "user"]
        assert "Be brief." in render_transcript(imported.session)
        assert imported.recorded["system"] == system
    message = {"role": "system", "content": "Be brief."}
    imported = only(openai_messages, {"system": "Be brief.", "messages": [message, HELLO]})
    assert kinds(imported) == ["system", "user"]
    assert kinds(only(openai_messages, {"system": 7, "messages": [HELLO]})) == ["user"]


def test_messages_made_of_typed_parts_are_read() -> None:
    """As in the Vercel AI SDK; they are not detected as Gemini's."""
    messages = [{"id": role, "role": role, "parts": [{"type": "text", "text": role}]} for role in ("user", "assistant")]
    assert detect_format([messages]) is openai_messages
    imported = only(openai_messages, messages)
    assert (imported.input, imported.output) == ("user", "assistant")


def test_the_only_conversation_of_a_file_is_named_after_it() -> None:
    """Whichever way it is written; of several each has its number."""
    for form, session in (
        (openai_messages, {"messages": [HELLO]}),
        (proctor_sessions, {"events": [{"type": "message", "role": "user", "content": "Hi"}]}),
    ):
        assert [(item.id, item.source) for item in read(form, [session])] == [("chat", "logs/chat.jsonl")]
        assert [item.id for item in read(form, [[session]])] == ["chat"]
        assert [item.id for item in read(form, [session, session])] == ["chat:1", "chat:2"]


TOOL_USE = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}}


def test_messages_of_anthropic_have_their_calls_in_parts() -> None:
    """Calls and results among the parts are calls with answers; a failure is one."""
    failed = {"type": "tool_result", "tool_use_id": "t1", "content": "No city.", "is_error": True}
    imported = only(
        openai_messages,
        [
            HELLO,
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm."}, TOOL_USE],
                "stop_reason": "tool_use",
            },
            {"role": "user", "content": [failed, {"type": "text", "text": "Well?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "No.", "citations": ["a"]}]},
        ],
    )
    assert kinds(imported) == [
        "user", "CustomEvent thinking", "assistant", "ToolCall weather", "user", "assistant",
    ]  # fmt: skip
    assert imported.session[ToolCall] == (ToolCall("weather", {"city": "Rome"}, "No city.", "No city.", call_id="t1"),)
    assert (imported.output, imported.unknown_parts) == ("No.", {})
    stopped, failure, cited = imported.recorded["log"]
    assert stopped == {"line": 2, "stop_reason": "tool_use"}
    assert (failure["line"], failure["content"][0]["is_error"]) == (3, True)
    assert cited["content"][0]["citations"] == ["a"]


def test_items_of_openais_responses_are_messages() -> None:
    """Calls, outputs and reasoning that have a type in place of a role."""
    imported = only(
        openai_messages,
        [
            HELLO,
            {"type": "reasoning", "summary": ["Hm."]},
            {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
            {"type": "web_search_call", "id": "w1", "status": "completed"},
            {"type": "hologram_call", "id": "h1"},
        ],
    )
    assert imported.session[ToolCall] == (
        ToolCall("find", result="ok", call_id="c1"),
        ToolCall("web_search", result="completed", call_id="w1"),
    )
    assert imported.output == "Done."
    assert imported.unknown_parts == {"message: hologram_call": 1}


def test_parallel_calls_with_one_id_are_answered_in_order() -> None:
    """Two calls of one message that share their id have an answer each."""
    calls = [{"id": "c", "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    answers = [{"role": "tool", "tool_call_id": "c", "content": message} for message in ("A", "B")]
    asked = {"role": "assistant", "content": None, "tool_calls": calls}
    imported = only(openai_messages, [HELLO, asked, *answers])
    assert [(call.name, call.result) for call in imported.session[ToolCall]] == [("a", "A"), ("b", "B")]


def test_other_fields_and_parts_of_messages_are_kept() -> None:
    """A word of the message in another field is noted; parts of no known kind are counted."""
    imported = only(
        openai_messages,
        [
            {"role": "developer", "content": "Hi", "id": "Hi"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "smell", "x": 1}]},
            {"role": "assistant", "content": "b", "refusal": "b"},
        ],
    )
    assert imported.recorded["log"] == [{"line": 1, "role": "developer", "id": "Hi"}, {"line": 3, "refusal": "b"}]
    assert imported.unknown_parts == {"part: smell": 1}


def test_a_malformed_call_in_an_answer_is_recorded() -> None:
    """A tool asks for no tools."""
    odd = {"role": "tool", "tool_call_id": "t1", "content": TOOL_USE}
    imported = only(openai_messages, [HELLO, odd])
    assert imported.session[ToolCall] == ()
    assert imported.recorded["log"] == [{"line": 2, "content": TOOL_USE}]


def test_langchain_calls_in_other_places_are_read() -> None:
    """In additional_kwargs, in the parts, or in both: each call is read once."""
    function = {"name": "weather", "arguments": '{"city": "Rome"}'}
    older = {"tool_calls": [{"id": "t1", "type": "function", "function": function}]}
    beside = [{"name": "weather", "args": {"city": "Rome"}, "id": "t1", "type": "tool_call"}]
    answer = {"type": "tool", "data": {"content": "sunny", "tool_call_id": "t1"}}
    for asked in (
        {"content": "", "additional_kwargs": older},
        {"content": [TOOL_USE], "tool_calls": beside},
        {"content": "", "additional_kwargs": {"function_call": function}, "id": "m1"},
    ):
        imported = only(langchain_messages, [{"type": "ai", "data": asked}, answer])
        if "id" in asked:
            answered = {"type": "function", "data": {"content": "sunny", "name": "weather"}}
            imported = only(langchain_messages, [{"type": "ai", "data": asked}, answered])
        (call,) = imported.session[ToolCall]
        assert (call.name, call.arguments, call.result) == ("weather", {"city": "Rome"}, "sunny")
        assert imported.unknown_parts == {}


def test_a_request_logged_with_its_response() -> None:
    """The answer and the tokens come out of the response."""
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {}}
    answer = {"message": {"role": "assistant", "content": "Hi"}}
    result = {"messages": [HELLO], "response": {"model": "m", "choices": [answer], "usage": usage}}
    imported = only(openai_messages, result)
    assert imported.output == "Hi"
    assert imported.session[ModelCall] == (ModelCall("m", Usage(9, 2)),)


def test_all_trajectories_of_tau_bench() -> None:
    """200 sessions, each with its reward, every message and every tool call."""
    path = real("tau_bench_airline/gpt-4o-airline.json.gz")
    (rows,) = values_in(path)
    imported = read(openai_messages, [rows])
    assert len(imported) == len({session.id for session in imported}) == 200
    assert [session.recorded["scores"]["reward"] for session in imported] == [row["reward"] for row in rows]
    assert sum(session.recorded["scores"]["reward"] for session in imported) == 84
    for session, row in zip(imported, rows, strict=True):
        roles = [m["role"] for m in row["traj"] if m["role"] != "tool"]
        assert [message.role for message in session.session[Message]] == roles
        answers = [m["content"] for m in row["traj"] if m["role"] == "tool"]
        assert [call.result for call in session.session[ToolCall]] == answers
        assert session.unknown_parts == {}


MESSAGES: list[BaseMessage] = [
    SystemMessage("Be kind."),
    HumanMessage("Hi", id="h1"),
    AIMessage(
        "",
        tool_calls=[{"name": "find", "args": {"q": 1}, "id": "c1"}],
        usage_metadata={
            "input_tokens": 9, "output_tokens": 2, "total_tokens": 11,
            "input_token_details": {"cache_read": 4},
        },
        response_metadata={"model_name": "m", "finish_reason": "tool_calls"},
    ),
    ToolMessage("boom", tool_call_id="c1", status="error", name="find"),
    AIMessageChunk(content="Sorry."),
    ChatMessage(role="User", content="So?"),
    ChatMessage(role="moderator", content="Stop."),
    AIMessage("", invalid_tool_calls=[{"name": "x", "args": "{", "id": "c9", "error": "no"}]),
    RemoveMessage(id="h1"),
]  # fmt: skip


def test_both_shapes_of_langchain_give_the_same() -> None:
    """What messages_to_dict writes and what dumpd writes are the same session."""
    item = only(langchain_messages, messages_to_dict(MESSAGES))
    other = only(langchain_messages, dumpd(MESSAGES))
    assert [type(event) for event in item.session] == [type(event) for event in other.session]
    assert item.session[Message] == other.session[Message]
    assert item.session[ToolCall] == other.session[ToolCall]
    assert item.unknown_parts == other.unknown_parts
    assert [m.role for m in item.session[Message]] == [
        "system", "user", "assistant", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert item.session[ToolCall] == (ToolCall("find", {"q": 1}, "boom", error="boom", call_id="c1"),)
    assert item.session[ModelCall] == (ModelCall("m", Usage(9, 2, 4), finish_reason="tool_calls"),)
    assert item.unknown_parts == {"message: moderator": 1, "message: remove": 1}
    assert (item.input, item.output) == ("Hi", "Sorry.")


def test_langchain_sessions_in_objects_and_lines() -> None:
    """State with messages, one message a line, several sessions in a list; tokens the old way."""
    (dump,) = LANGCHAIN
    assert only(langchain_messages, {"id": "t1", "messages": dump, "x": 1}).recorded["x"] == 1
    assert only(langchain_messages, *dump, 4).unknown_parts == {"a number": 1}
    assert [item.id for item in read(langchain_messages, [[dump, dump]])] == ["chat:1", "chat:2"]
    usage = {"token_usage": {"prompt_tokens": 3, "completion_tokens": 1}, "model": "old"}
    message = {"type": "ai", "data": {"content": "x", "response_metadata": usage}}
    assert only(langchain_messages, [message]).session.usage == Usage(3, 1)


def test_proctor_sessions_are_read_back_unchanged() -> None:
    """A result, a recording and a bare session are read back event by event."""
    session = Session(
        [Message("user", "Hi"), ToolCall("f", {"a": 1}, error="x"), ModelCall("m", Usage(1, 2)),
         CustomEvent("Note", {"n": 1}), Message("assistant", "Hello")]
    )  # fmt: skip
    result = EvalResult(Trial(Sample("s1", "in"), "out", session=session))
    imported = only(proctor_sessions, codec.to_plain(result))
    assert (imported.id, imported.input, imported.output) == ("s1", "in", "out")
    assert imported.session == session
    bare = only(proctor_sessions, codec.to_plain(session))
    assert (bare.id, bare.input, bare.output) == ("chat", "Hi", "Hello")
    assert bare.session == session


def test_damaged_proctor_sessions_are_read() -> None:
    """Unknown events and values outside sessions are kept and counted."""
    odd: Any = {"id": "x", "events": [{"type": "message", "role": "ghost"}, 3], "recorded": 4}
    first, second = read(proctor_sessions, [1, PROCTOR[0], odd, None])
    assert first.recorded == {"latency_ms": 12.5}
    assert (first.output, first.unknown_parts) == ("Paris", {"a number": 1})
    assert second.unknown_parts == {"message": 1, "a number": 1, "null": 1}
    assert second.recorded == {"recorded": 4}
    assert only(proctor_sessions, 5).unknown_parts == {"a number": 1}
    around = {"session": {"events": [{"type": "custom", "kind": "k", "data": 1}]}, "recorded": {"a": 1}}
    assert only(proctor_sessions, around).recorded == {"a": 1}
    assert only(proctor_sessions, {**around, "recorded": 2}).recorded == {"recorded": 2}
