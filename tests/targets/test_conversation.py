"""Conversations with a target: scripts of user messages, and simulated users on the local model server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import ConversationTarget, Message, ModelCall, Reply, Sample, Session, ToolCall, Usage, evaluate, record
from proctor.errors import CallFailed, TargetError
from proctor.records.session import CustomEvent
from proctor.targets.resolve import as_target
from proctor.testing import ModelServer, RecordedRequest, ScriptedReply
from tests.support import run_command

PERSONA = {"persona": "a busy parent", "goal": "book a table for four", "facts": "Friday, 19:00"}
Turn = tuple[str, str]


def hold(target: Any, sample_input: Any, **options: Any) -> Reply:
    reply: Reply = asyncio.run(as_target(target).call(Sample("s", sample_input), options))
    return reply


def texts(reply: Reply) -> list[tuple[str, Any]]:
    assert reply.session is not None
    return [(message.role, message.content) for message in reply.session[Message]]


def facts(reply: Reply) -> dict[str, Any]:
    assert reply.session is not None
    last = reply.session.events[-1]
    assert isinstance(last, CustomEvent)
    data: dict[str, Any] = last.data
    return data


def play(*turns: Turn) -> Callable[[RecordedRequest], str]:
    """Return a model that plays these turns: message and status, by the messages that it has written."""

    def answer(request: RecordedRequest) -> str:
        message, status = turns[sum(message.role == "assistant" for message in request.messages)]
        return json.dumps({"message": message, "status": status})

    return answer


def address(server: ModelServer) -> str:
    return f"{server.url}/v1#loopback"


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=6))
def test_a_target_gets_the_whole_conversation_so_far(turns: list[str]) -> None:
    """Property: call k gets 2k + 1 messages in turn, which end with message k of the script."""
    received: list[list[dict[str, str]]] = []

    async def count(messages: list[dict[str, str]]) -> str:
        received.append(messages)
        return f"answer {len(received)}"

    reply = hold(ConversationTarget(count), turns)
    for number, messages in enumerate(received):
        assert [m["role"] for m in messages] == [["user", "assistant"][i % 2] for i in range(2 * number + 1)]
        assert messages[-1]["content"] == turns[number]
    assert [text for role, text in texts(reply) if role == "user"] == turns
    assert reply.output == f"answer {len(turns)}"
    assert facts(reply) == {"end": "script", "turns": len(turns)}


def test_scripts_have_several_forms_and_a_target_may_remember_itself() -> None:
    """Strings, messages, `turns`, or one string; `history=False` sends only the new text."""
    forms = (["a", "b"], [{"role": "user", "content": "a"}, {"content": "b"}], {"turns": ["a", "b"]})
    for form in forms:
        assert hold(ConversationTarget(str.upper, history=False), form).output == "B"
    assert hold(ConversationTarget(str.upper, history=False), "a").output == "A"
    transcript = ConversationTarget(str.upper, history=False, output="transcript")
    assert hold(transcript, ["a", "b"]).output == "user: a\n\nassistant: A\n\nuser: b\n\nassistant: B"


def test_the_session_has_tool_and_model_calls_of_every_turn_once() -> None:
    """Recorded, returned with a Reply, or in returned messages; the usage is that of the target."""

    def recorder(messages: Any) -> str:
        record(ToolCall("look", {"n": len(messages)}))
        record(ModelCall("m", Usage(3, 1)))
        return "ok"

    def replier(messages: Any) -> Reply:
        return Reply("ok", Usage(3, 1), Session([Message("user", "x"), ToolCall("look", {"n": len(messages)})]))

    def agent(messages: Any) -> list[dict[str, Any]]:
        function = {"name": "look", "arguments": json.dumps({"n": len(messages)})}
        call = {"id": "1", "type": "function", "function": function}
        return [
            *messages,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "found"},
            {"role": "assistant", "content": "ok"},
        ]

    for target in (recorder, replier, agent):
        report = evaluate(ConversationTarget(target), [Sample("1", ["a", "b"], "ok")], "exact_match", history=False)
        [result] = report.results
        session = result.trial.session
        assert result.passed, result.error
        assert session is not None
        assert [call.arguments for call in session[ToolCall]] == [{"n": 1}, {"n": 3}], target.__name__
        assert [message.role for message in session[Message]] == ["user", "assistant"] * 2
        if target is not agent:
            assert session.usage == Usage(6, 2)


def test_a_failed_turn_keeps_the_conversation_up_to_it() -> None:
    def fail_second(messages: Any) -> str:
        if len(messages) > 1:
            raise ValueError("no")
        return "ok"

    report = evaluate(ConversationTarget(fail_second), [Sample("1", ["a", "b", "c"])], "exact_match", history=False)
    [result] = report.results
    assert result.error == "ValueError: no"
    assert result.trial.session is not None
    assert [message.content for message in result.trial.session[Message]] == ["a", "ok", "b"]
    with pytest.raises(CallFailed, match="sent no answer to message 2 of the user"):
        hold(ConversationTarget(lambda messages: "ok" if len(messages) == 1 else ""), ["a", "b"])


def test_a_simulated_user_talks_until_the_goal_is_reached() -> None:
    """The model sees persona, goal, facts and the target's answers as user messages; its usage is kept apart."""
    turns = [("A table, please", "continue"), ("Four, Friday 19:00", "continue"), ("Great, bye", "goal_reached")]
    with ModelServer(lambda r: ScriptedReply(play(*turns)(r), usage=Usage(10, 2))) as server:
        target = ConversationTarget(lambda messages: f"answer {len(messages)}", user=address(server))
        reply = hold(target, PERSONA)
        calls = server.calls
    assert texts(reply) == [
        ("user", "A table, please"),
        ("assistant", "answer 1"),
        ("user", "Four, Friday 19:00"),
        ("assistant", "answer 3"),
        ("user", "Great, bye"),
    ]
    assert reply.output == "answer 3"
    assert facts(reply)["end"] == "goal_reached"
    assert facts(reply)["turns"] == 2
    assert facts(reply)["user"]["usage"] == {"input_tokens": 30, "output_tokens": 6}
    assert reply.session is not None
    assert reply.session.known_usage() is None
    system = calls[0].messages[0].content
    assert all(text in system for text in PERSONA.values())
    roles = [message.role for message in calls[2].messages if message.role != "system"]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert [message.content for message in calls[2].messages][-1].startswith("answer 3")


def test_a_simulated_user_gives_up_or_reaches_the_limit() -> None:
    """At most max_turns messages are answered; an empty farewell is not part of the conversation."""
    for turns, end, count, messages in (
        ([("a", "continue"), ("", "gave_up")], "gave_up", 1, 2),
        ([("a", "continue")] * 9, "max_turns", 3, 6),
        ([("a", "goal_reached"), ("b", "gave_up")], "gave_up", 1, 3),
    ):
        with ModelServer(play(*turns)) as server:
            reply = hold(ConversationTarget(lambda _: "no", user=address(server), max_turns=3), PERSONA)
        assert (facts(reply)["end"], facts(reply)["turns"], len(texts(reply))) == (end, count, messages)


def test_an_opening_is_the_first_message() -> None:
    with ModelServer(play(("", ""), ("bye", "goal_reached"))) as server:
        reply = hold(ConversationTarget(lambda _: "ok", user=address(server)), {**PERSONA, "opening": "Hello!"})
        assert len(server.calls) == 1
    assert [text for _, text in texts(reply)] == ["Hello!", "ok", "bye"]


def test_a_user_without_a_message_is_an_error_of_the_trial() -> None:
    for turns, message in (
        ([(" ", "continue")], "wrote an empty message"),
        ([("", "gave_up")], "ended before its first message"),
    ):
        with ModelServer(play(*turns)) as server, pytest.raises(CallFailed, match=message):
            hold(ConversationTarget(lambda _: "ok", user=address(server)), PERSONA)


def test_wrong_inputs_and_settings_have_a_fix() -> None:
    echo = ConversationTarget(lambda _: "ok")
    simulated = ConversationTarget(lambda _: "ok", user=lambda _: "")
    cases: list[tuple[Any, Any, str]] = [
        (echo, [], "must be a list of user messages, the list is empty"),
        (echo, ["Hi", 1], "must be a list of user messages, turn 2 is a number"),
        (echo, {"turns": [{"content": [1]}]}, "must be a list of user messages, the content of turn 1 is a list"),
        (echo, ["Hi", " "], "turn 2 is empty"),
        (echo, 3, "must be a list of user messages, got a number"),
        (echo, [{"role": "assistant", "content": "a"}], "user messages, turn 1 has the role 'assistant'"),
        (echo, PERSONA, "for a persona, set user to a model"),
        (simulated, "hi", "persona is missing"),
        (simulated, {"persona": "a", "gaol": "b"}, "goal is missing"),
        (simulated, {**PERSONA, "goal": 3}, "goal must be a string, got a number"),
    ]
    for target, sample_input, message in cases:
        with pytest.raises(TargetError, match="Fix: ") as caught:
            hold(target, sample_input)
        assert message in str(caught.value)
    with pytest.raises(TargetError) as caught:
        ConversationTarget(lambda _: "ok", max_turns=0, output="all", history="no")  # type: ignore[arg-type]
    assert len(caught.value.problems) == 3
    with pytest.raises(TargetError, match="some keys are unknown"):
        as_target({"conversation": "app.py:chat", "max_turn": 3})


def test_the_identity_covers_target_user_and_settings() -> None:
    def other(_: Any) -> str:
        return "other"

    def user(_: Any) -> str:
        return ""

    targets = [
        ConversationTarget(str.upper),
        ConversationTarget(other),
        ConversationTarget(other, max_turns=3),
        ConversationTarget(other, history=False),
        ConversationTarget(other, user=user),
    ]
    assert len({target.spec.identity for target in targets}) == len(targets)


def test_an_eval_file_holds_conversations_and_checks_the_user(tmp_path: Path) -> None:
    """The evaluator judges the user: two conversations, in one of which the user speaks as the assistant."""

    def answer(request: RecordedRequest) -> str:
        text = "\n".join(str(message.content) for message in request.messages)
        if "You check only how well it played" in text:
            is_bad = "How can I help" in text
            checks = {"speaks_as_assistant": is_bad, "reveals_simulation": False, "pursues_goal": True}
            return json.dumps({**checks, "invented_facts": [], "reason": "read it"})
        first = "How can I help you?" if "bad" in text else "A table, please"
        return play((first, "continue"), ("bye", "goal_reached"))(request)

    (tmp_path / "app.py").write_text("def chat(messages):\n    return 'Booked.'\n")
    rows = [{"id": name, "input": {**PERSONA, "persona": name}} for name in ("good", "bad")]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with ModelServer(answer) as server:
        (tmp_path / "eval.yaml").write_text(
            f"dataset: d.jsonl\ntarget: {{conversation: 'app.py:chat', user: '{address(server)}', max_turns: 2}}\n"
            f"evaluators:\n  - simulated_user_role: {{model: '{address(server)}'}}\n"
        )
        result = run_command("run", "eval.yaml", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    shown = json.loads(run_command("show", "latest", "--outcome", "failed", "--json", cwd=tmp_path).stdout)
    assert [entry["trial"]["sample"]["id"] for entry in shown] == ["bad"]
    score = shown[0]["scores"]["simulated_user_role"]
    assert score["reason"] == "stays_user failed: read it"
    assert score["value"] == 0.75
