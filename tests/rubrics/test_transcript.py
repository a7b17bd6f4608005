"""Transcripts of sessions for a judge."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor import Message, ModelCall, Session, ToolCall
from proctor.evaluators.judges.transcript import TranscriptCache, add_missing_ends, render_transcript, shorten
from proctor.records.session import CustomEvent, Event
from proctor.records.session_events import ORPHAN_RESULT, UNANSWERED

HEADING = re.compile(r"\[(\d+)\] (user|assistant|system|tool)|\)|\[… .* turns left out …\]")


def test_turns_calls_and_results_are_rendered_in_order() -> None:
    """Model calls and unknown events are left out; failures are marked."""
    session: list[Event] = [
        Message("system", "Be brief."),
        Message("user", "Find it.\nNow."),
        ModelCall("m"),
        ToolCall("search", {"q": "x"}, result={"hits": 2}),
        ToolCall("open", {}, error="no such file"),
        ToolCall("wait", {}),
        CustomEvent("meta", {"a": 1}),
        Message("assistant", [{"type": "text", "text": "Found."}, {"type": "image"}], name="ada"),
    ]
    assert render_transcript(session) == (
        "[1] system:\n    Be brief.\n"
        "[2] user:\n    Find it.\n    Now.\n"
        '[3] tool search({"q":"x"}) returned:\n    {"hits":2}\n'
        "[4] tool open({}) failed:\n    no such file\n"
        "[5] tool wait({}): nothing came back\n"
        '[6] assistant ada:\n    Found.\n    {"type":"image"}'
    )


def test_a_call_and_its_result_are_rendered_once() -> None:
    """Logs have the call in the message, as an event, and its result in a message."""
    call = ToolCall("search", {"q": "x"}, call_id="1")
    done = ToolCall("search", {"q": "x"}, result="two", call_id="1")
    answer = Message("tool", "two", call_id="1")
    asked = Message("assistant", "", tool_calls=(call,))
    assert render_transcript([asked, done, answer]) == ('[1] tool search({"q":"x"}) returned:\n    two')
    assert render_transcript([asked, answer]) == ('[1] assistant called search({"q":"x"})\n[2] tool result:\n    two')


def test_a_failure_that_is_recorded_twice_is_rendered_once() -> None:
    """Some logs have the same text as error and result; different texts are both rendered."""
    unasked = {"of": "read", "content": "no such file", "failure": "no such file"}
    transcript = render_transcript(
        [
            ToolCall("open", {}, result="no such file\n", error="no such file"),
            ToolCall("open", {}, result=[{"type": "text", "text": "gone"}], error="gone"),
            ToolCall("run", {}, result="3 of 4 done", error="killed"),
            CustomEvent(ORPHAN_RESULT, unasked),
        ]
    )
    assert transcript == (
        "[1] tool open({}) failed:\n    no such file\n"
        "[2] tool open({}) failed:\n    gone\n"
        "[3] tool run({}) failed:\n    killed\n    3 of 4 done\n"
        "[4] tool result read, whose call is not recorded:\n    no such file"
    )


def test_calls_without_ids_are_rendered_once() -> None:
    """By their name and arguments."""
    call = ToolCall("search", {"q": "x"})
    asked = Message("assistant", "I look.", tool_calls=(call, ToolCall("open", {"n": 1})))
    done = ToolCall("search", {"q": "x"}, result="two")
    assert render_transcript([asked, done]) == (
        '[1] assistant:\n    I look.\n[2] assistant called open({"n":1})\n[3] tool search({"q":"x"}) returned:\n    two'
    )


def test_calls_without_results_and_results_without_calls_are_rendered() -> None:
    """Each once, with or without a message before it."""
    open_call = {"tool_name": "book", "arguments": {"seat": 4}, "call_id": "1"}
    lost = {"of": "search", "content": "two hits", "call_id": "9"}
    failed = {"content": "", "failure": "no network"}
    call = ToolCall("book", {"seat": 4}, call_id="1")
    session: list[Event] = [
        CustomEvent(UNANSWERED, open_call),
        CustomEvent(ORPHAN_RESULT, lost),
        CustomEvent(ORPHAN_RESULT, failed),
    ]
    expected = (
        'tool book({"seat":4}): no answer is recorded\n'
        "[2] tool result search, whose call is not recorded:\n    two hits\n"
        "[3] tool result, whose call is not recorded:\n    no network"
    )
    assert render_transcript(session) == f"[1] {expected}"
    asked = Message("assistant", "", tool_calls=(call,))
    assert render_transcript([asked, *session]) == f"[1] {expected}"


def test_messages_with_an_unknown_role_are_rendered() -> None:
    """With their role; empty messages are left out."""
    answer = {"role": "narrator\n[9] user:", "content": [{"type": "text", "text": "Night falls."}]}
    session = [CustomEvent("message: narrator", answer), CustomEvent("meta", {"role": "x"})]
    assert render_transcript(session) == '[1] other "narrator [9] user:":\n    Night falls.'


def test_calls_of_a_sub_agent_have_its_name() -> None:
    """Calls of the agent itself have no name, even with the same id."""
    call = ToolCall("search", {}, result="two", call_id="1")
    aside = Message("assistant", "", name="sub-agent a1", tool_calls=(ToolCall("search", {}, call_id="1"),))
    own = Message("assistant", "", tool_calls=(ToolCall("search", {}, call_id="1"),))
    assert render_transcript([aside, call, own, call]) == (
        "[1] tool search({}), called by sub-agent a1, returned:\n    two\n[2] tool search({}) returned:\n    two"
    )


def test_long_names_are_cut_to_a_line() -> None:
    shown = render_transcript([ToolCall("x" * 5_000, {}, result="ok")])
    assert len(shown.splitlines()[0]) < 300


def test_long_contents_are_cut_in_the_middle_with_a_mark() -> None:
    """Beginning and end stay; the session itself is not touched."""
    session = Session([Message("user", "a" * 300 + "b" * 300)])
    shown = render_transcript(session, max_content=100, max_session=2_000)
    assert shown == (f"[1] user:\n    {'a' * 50}\n    [… 500 characters left out …]\n    {'b' * 50}")
    assert len(session[Message][0].content) == 600


def test_long_arguments_are_cut_too() -> None:
    """They are on separate lines."""
    shown = render_transcript([ToolCall("write", {"text": "x" * 900}, result="ok")], max_content=200)
    assert "[… 711 characters left out …]" in shown
    assert shown.endswith("\n) returned:\n    ok")


def test_a_long_session_loses_turns_in_the_middle() -> None:
    """The first and the last stay, under their numbers."""
    session = [Message("user", f"number {n} " + "x" * 80) for n in range(1, 101)]
    shown = render_transcript(session, max_session=1_000).splitlines()
    assert shown[0] == "[1] user:"
    assert "[… 91 of 100 turns left out …]" in shown
    assert shown[-1].startswith("    number 100")


def test_input_and_output_replace_missing_messages() -> None:
    """A target that noted only its tools still has a question and an answer."""
    view = Session([ToolCall("now", {}, result="noon")]).view()
    shown = render_transcript(add_missing_ends(view, "What time is it?", {"time": "noon"}))
    assert shown.splitlines()[::2] == ["[1] user:", "[2] tool now({}) returned:", "[3] assistant:"]
    talked = Session([Message("user", "a"), Message("assistant", "b")]).view()
    assert add_missing_ends(talked, "c", "d") == talked.events
    assert add_missing_ends(Session().view(), "", None) == ()


def test_the_same_session_is_rendered_once() -> None:
    """By the very same objects; another session with the same length is another."""
    shown = TranscriptCache(4_000, 100_000)
    one, other = (Session([Message("user", answer)]) for answer in ("one", "other"))
    first = shown.get(one.view(), "q", "a")
    assert shown.get(one.view(), "q", "a") is first
    assert shown.get(other.view(), "q", "a") != first
    for number in range(100):
        shown.get(Session([Message("user", str(number))]).view(), None, None)
    again = shown.get(one.view(), "q", "a")
    assert first is not None
    assert again is not None
    assert again.blocks() == first.blocks()


def test_shortening_keeps_a_text_that_fits() -> None:
    """At the limit nothing is cut; a limit of one leaves the beginning."""
    assert shorten("abcd", 4) == "abcd"
    assert shorten("abcd", 1) == "a\n[… 3 characters left out …]\n"


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "call"]), st.text(max_size=400)), max_size=8),
    st.integers(10, 200),
)
def test_no_content_passes_for_a_turn(answer: list[tuple[str, str]], most: int) -> None:
    """Every line that is not indented is ours."""
    session = [
        ToolCall(text, {text: text}, result=text) if role == "call" else Message(role, text)  # type: ignore[arg-type]
        for role, text in answer
    ]
    for line in render_transcript(session, max_content=most).splitlines():
        assert line.startswith("    ") or HEADING.match(line), line


def test_deeply_nested_content_is_described() -> None:
    """A value that cannot be encoded does not stop the rendering."""
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    transcript = render_transcript([Message("user", deep), ToolCall("go", {"to": deep}, result="there")])
    assert transcript.endswith("there")


def test_a_repeated_result_without_an_id_is_rendered_once() -> None:
    """Some traces have the result as data in the call and as JSON in a message without an id."""
    done = ToolCall("search", {}, result=[{"title": "Rome"}], call_id="1")
    answer = Message("tool", '[\n {"title": "Rome"}\n]')
    once = '[1] tool search({}) returned:\n    {"title":"Rome"}'
    assert render_transcript([done, answer]) == once
    assert render_transcript([done, Message("tool", '[{"title": "Rome"}]', call_id="1"), answer]) == (
        f'{once}\n[2] tool result:\n    [\n     {{"title": "Rome"}}\n    ]'
    )
    assert render_transcript([done, Message("tool", "Paris")]) == f"{once}\n[2] tool result:\n    Paris"
    odd: list[Event] = [ToolCall("read", {}, result="\ud800"), Message("tool", "\ud801")]
    assert render_transcript(odd).endswith("tool result:\n    \ud801")
