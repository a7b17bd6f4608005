"""New messages are found in conversations that every call repeats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.records.session import Message, ToolCall
from proctor.sessions.genai.transcript import MAX_CONVERSATIONS, Transcript

SYSTEM = Message("system", "Be brief.")


def user(text: str) -> Message:
    return Message("user", text)


def said(text: str) -> Message:
    return Message("assistant", text)


def calling(*ids: str) -> Message:
    return Message("assistant", "", tool_calls=tuple(ToolCall("go", call_id=i) for i in ids))


def result(call_id: str) -> Message:
    return Message("tool", f"result of {call_id}", call_id=call_id)


def test_each_call_adds_only_its_turn() -> None:
    """A chat of two rounds, the second of which repeats the first."""
    transcript = Transcript()
    assert transcript.add([SYSTEM, user("a")], [said("b")]) == [SYSTEM, user("a"), said("b")]
    again = [SYSTEM, user("a"), said("b"), user("c")]
    assert transcript.add(again, [said("d")]) == [user("c"), said("d")]


def test_a_repeated_message_is_new() -> None:
    """Agents say "continue" more than once."""
    transcript = Transcript()
    transcript.add([user("go on")], [said("one")])
    assert transcript.add([user("go on"), said("one"), user("go on")], [said("two")]) == [user("go on"), said("two")]


def test_a_repeated_request_adds_only_its_answer() -> None:
    """Several samples of one prompt."""
    transcript = Transcript()
    transcript.add([user("a")], [said("b")])
    assert transcript.add([user("a")], [said("c")]) == [said("c")]


def test_a_shortened_history_is_recognized() -> None:
    """Agents drop old turns when the window is full."""
    transcript = Transcript()
    transcript.add([SYSTEM, user("a")], [said("b")])
    transcript.add([SYSTEM, user("a"), said("b"), user("c")], [said("d")])
    assert transcript.add([SYSTEM, said("d"), user("e")], [said("f")]) == [user("e"), said("f")]


def test_two_agents_that_take_turns_are_not_mixed_up() -> None:
    """Each conversation continues where it stopped, even after the same prompt."""
    transcript = Transcript()
    first, second = Message("system", "one"), Message("system", "two")
    transcript.add([first, user("a")], [said("1")])
    transcript.add([second, user("next")], [said("2")])
    assert transcript.add([first, user("a"), said("1"), user("next")], [said("3")]) == [user("next"), said("3")]
    assert transcript.add([second, user("next"), said("2"), user("b")], [said("4")]) == [user("b"), said("4")]


def test_tool_calls_may_be_repeated_one_by_one() -> None:
    """Some clients split an answer with two calls into two messages."""
    transcript = Transcript()
    transcript.add([user("a")], [calling("1", "2")])
    repeated = [user("a"), calling("1"), calling("2"), result("1"), result("2")]
    assert transcript.add(repeated, [said("b")]) == [result("1"), result("2"), said("b")]
    in_other_words = Message("tool", {"is": "the same"}, call_id="1")
    again = [user("a"), calling("1", "2"), in_other_words, result("2"), said("b"), user("c")]
    assert transcript.add(again, []) == [user("c")]


def test_reused_ids_are_new_calls() -> None:
    """Some servers number the calls of each answer from the start."""
    transcript = Transcript()
    transcript.add([user("a")], [calling("0")])
    transcript.add([user("a"), calling("0"), result("0")], [calling("0")])
    again = [user("a"), calling("0"), result("0"), calling("0"), result("0")]
    assert transcript.add(again, [said("b")]) == [result("0"), said("b")]


def test_tool_calls_without_ids_are_compared_by_arguments() -> None:
    """Gemini's have none."""
    transcript = Transcript()
    asking = Message("assistant", "", tool_calls=(ToolCall("go", {"to": "Rome"}),))
    transcript.add([user("a")], [asking])
    given = Message("tool", "gone", name="go")
    assert transcript.add([user("a"), asking, given], [said("b")]) == [given, said("b")]


def test_a_call_without_messages_adds_none() -> None:
    """Where contents are not captured."""
    assert Transcript().add([], []) == []


def test_the_number_of_conversations_is_limited() -> None:
    """Memory stays small when an agent starts many conversations; dropped ones are added again."""
    transcript = Transcript()
    for number in range(MAX_CONVERSATIONS + 1):
        transcript.add([user(f"question {number}")], [said("yes")])
    assert transcript.add([user("question 0")], []) == [user("question 0")]
    assert transcript.add([user(f"question {MAX_CONVERSATIONS}")], []) == []


TURN = st.sampled_from(["a", "b", "go on", ""])


@given(st.lists(st.tuples(TURN, TURN), min_size=1, max_size=12))
def test_one_conversation_is_returned_unchanged(turns: list[tuple[str, str]]) -> None:
    """Even with repeated texts, every message is there once, in order."""
    transcript = Transcript()
    history: list[Message] = [SYSTEM]
    actual: list[Message] = []
    for question, answer in turns:
        history.append(user(question))
        actual += transcript.add(history, [said(answer)])
        history.append(said(answer))
    assert actual == history
