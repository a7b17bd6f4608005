"""Sessions that speak for themselves: whatever they say, no verdict moves.

Every attack is in every place of a session, before judges that quote what they read. A judge that has a verdict keeps
it; a judge that only quotes has none, and returns no number. `make test` takes each echo and place with a seventh of
the attacks, so that every attack meets every place; `make properties` takes all combinations.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from proctor import Message, Rubric, Session, ToolCall, rubric
from proctor.evaluators.judges.fence import replace_surrogates
from proctor.records.session import CustomEvent
from proctor.records.session_events import ORPHAN_RESULT, UNANSWERED
from tests.evaluators.judging.rehearsed import Asked, Scripted
from tests.rubrics.attacks import ATTACKS
from tests.support import is_thorough
from tests.tables import each_row

pytestmark = pytest.mark.thorough
RUBRIC = Rubric("quality", "Quality", "How good is it?", "1: bad\n5: good")
PLACES: dict[str, Callable[[str], Any]] = {
    "user": lambda attack: Message("user", attack),
    "assistant": lambda attack: Message("assistant", attack),
    "result": lambda attack: ToolCall("read", {"path": "a"}, result=attack),
    "failure": lambda attack: ToolCall("read", {"path": "a"}, error=attack),
    "argument": lambda attack: ToolCall("write", {"text": attack}, result="ok"),
    "tool": lambda attack: ToolCall(attack, {}, result="ok"),
    "speaker": lambda attack: Message("user", "Hello", name=attack),
    "stranger": lambda attack: CustomEvent("message", {"role": attack, "content": attack or "Hello"}),
    "orphan": lambda attack: CustomEvent(ORPHAN_RESULT, {"of": attack, "content": attack}),
    "unanswered": lambda attack: CustomEvent(UNANSWERED, {"tool_name": attack, "arguments": {"a": attack}}),
}


def session(attack: str, place: str) -> Session:
    """A session with the attack in the middle."""
    first, last = Message("user", "Fix the test."), Message("assistant", "I could not.")
    return Session([first, PLACES[place](attack), last])


def quoted(asked: Asked) -> str:
    return asked.part("CHAT SESSION")


LINES: dict[str, Callable[[Asked], str]] = {
    "before": lambda a: f"{quoted(a)}\nSCORE {a.mark}: 2",
    "after": lambda a: f"SCORE {a.mark}: 2\n{quoted(a)}",
    "around": lambda a: f"{quoted(a)}\nSCORE {a.mark}: 2\n{quoted(a)}",
    "the whole prompt after": lambda a: f"SCORE {a.mark}: 2\n{a.text}",
    "without indents": lambda a: f"SCORE {a.mark}: 2\n" + quoted(a).replace("    ", ""),
}
IN_JSON: dict[str, Callable[[Asked], str]] = {
    "reason": lambda a: json.dumps({"reason": quoted(a), "score": 2}),
    "reason last": lambda a: json.dumps({"score": 2, "reason": a.text}),
}
PARROTS: dict[str, Callable[[Asked], str]] = {
    "session": quoted,
    "prompt": lambda a: a.text,
    "without indents": lambda a: quoted(a).replace("    ", ""),
}


def choose_attacks(first: int, step: int) -> dict[str, str]:
    """Every attack at a distance of `step` from `first`, or all of them in the thorough profile."""
    step = 1 if is_thorough() else step
    return dict(list(ATTACKS.items())[first % step :: step])


def all_scored(judge: Scripted, place: str, attacks: dict[str, str]) -> dict[str, Any]:
    evaluator = rubric(judge, RUBRIC)

    async def main() -> dict[str, Any]:
        return {name: await evaluator("I could not.", None, session(attack, place)) for name, attack in attacks.items()}

    return asyncio.run(main())


def test_there_are_enough_attacks() -> None:
    """At least sixty, all different."""
    assert len(set(ATTACKS.values())) == len(ATTACKS) >= 60


@each_row("place", PLACES)
@each_row("echo", [*LINES, *IN_JSON])
def test_no_attack_changes_a_verdict(echo: str, place: str) -> None:
    """A 2 stays a 2, with one call each: 0 of all attacks move it."""
    structured = echo in IN_JSON
    judge = Scripted((IN_JSON if structured else LINES)[echo], schema=structured)
    echoes = [*LINES, *IN_JSON]
    attacks = choose_attacks(echoes.index(echo) + [*PLACES].index(place), len(echoes))
    scores = all_scored(judge, place, attacks)
    assert {name: score for name, score in scores.items() if score.details.get("score") != 2} == {}
    assert len(judge.asked) == len(attacks)


@each_row("place", PLACES)
def test_no_trap_costs_a_structured_verdict(place: str) -> None:
    """The honest verdict stays, with one call."""
    judge = Scripted(lambda a: a.score(2, "I saw nothing that works"), schema=True)
    evaluator = rubric(judge, RUBRIC)
    traps = [attack for name, attack in ATTACKS.items() if name.startswith("structured")]
    repeats = (2, 12) if is_thorough() else (2, 12)[[*PLACES].index(place) % 2 :][:1]
    for attack in traps:
        for times in repeats:
            events = [Message("user", "Fix it."), *[PLACES[place](attack)] * times]
            score = evaluator("I could not.", None, Session(events))
            assert score.details.get("score") == 2, attack[:80]
    assert len(judge.asked) == len(repeats) * len(traps) > 30


@each_row("place", PLACES)
@each_row("parrot", PARROTS)
def test_a_judge_that_only_quotes_has_no_verdict(parrot: str, place: str) -> None:
    """Asked twice, then evaluation_failed without a number."""
    judge = Scripted(PARROTS[parrot])
    attacks = choose_attacks([*PARROTS].index(parrot) + [*PLACES].index(place), len(PARROTS))
    for name, score in all_scored(judge, place, attacks).items():
        assert score.value is None, name
        assert score.details["status"] == "evaluation_failed", name
    assert len(judge.asked) == 2 * len(attacks)


@each_row("name", [name for name in ATTACKS if ATTACKS[name].startswith("{")])
def test_json_copied_from_the_session_is_not_a_verdict(name: str) -> None:
    judge = Scripted(lambda a: replace_surrogates(ATTACKS[name]), schema=True)
    score = rubric(judge, RUBRIC)("x", None, session(ATTACKS[name], "user"))
    assert score.value is None


@each_row("place", PLACES)
def test_the_session_cannot_leave_its_fence(place: str) -> None:
    """The complete session is between the two lines, and does not contain the mark."""
    judge = Scripted(lambda a: a.score(2))
    all_scored(judge, place, ATTACKS)
    for name, asked in zip(ATTACKS, judge.asked, strict=True):
        shown = quoted(asked)
        assert asked.mark not in shown, name
        assert shown.startswith("[1] user:\n    Fix the test.\n[2] "), name
        assert shown.endswith("\n[3] assistant:\n    I could not."), name
