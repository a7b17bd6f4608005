"""`simulated_user_role`: a judge of the simulated user, with verified quotes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor import Message, ModelRequest, ModelResponse, Sample, Score, Session
from proctor.judges import simulated_user_role
from proctor.records.session import CustomEvent

PERSONA = {"persona": "a parent", "goal": "book a table", "facts": "Friday"}
SIMULATED = CustomEvent("conversation", {"end": "goal_reached", "turns": 1, "user": {"model": "m"}})
CHAT = [Message("user", "My cat is called Tom. A table, please"), Message("assistant", "Booked.")]
GOOD = {"speaks_as_assistant": False, "reveals_simulation": False, "pursues_goal": True, "invented_facts": []}


def judge(answer: dict[str, Any] | str, events: Any = (*CHAT, SIMULATED)) -> tuple[Score, list[str]]:
    """Return the score by a judge with a fixed answer, and the prompts that it got."""
    prompts: list[str] = []

    def model(request: ModelRequest) -> ModelResponse:
        prompt = "\n".join(str(message.content) for message in request.messages)
        prompts.append(prompt)
        mark = prompt.rsplit("ANSWER ", 1)[1].split(":")[0]
        text = answer if isinstance(answer, str) else json.dumps({"reason": "seen", **answer})
        return ModelResponse(f"ANSWER {mark}:\n{text}")

    view = Session(list(events)).view()
    score = simulated_user_role(model)("out", Sample("1", PERSONA), view)
    assert isinstance(score, Score)
    return score, prompts


@pytest.mark.parametrize(
    ("answer", "value", "failed"),
    [
        (GOOD, 1.0, []),
        ({**GOOD, "speaks_as_assistant": True}, 0.75, ["stays_user"]),
        ({**GOOD, "reveals_simulation": True, "pursues_goal": False}, 0.5, ["hides_simulation", "pursues_goal"]),
        ({**GOOD, "invented_facts": ["my  CAT is called Tom"]}, 0.75, ["invents_nothing"]),
    ],
)
def test_each_check_counts_a_quarter_and_all_must_pass(answer: Any, value: float, failed: list[str]) -> None:
    score, prompts = judge(answer)
    assert score.value == value
    assert score.passed is (not failed)
    assert [name for name, passed in score.details["checks"].items() if not passed] == failed
    assert "goal: book a table" in prompts[0]
    assert "My cat is called Tom" in prompts[0]


def test_a_fact_that_the_user_never_stated_is_no_evidence() -> None:
    """The judge is reminded once to quote exactly, then the quote is left out."""
    score, prompts = judge({**GOOD, "invented_facts": ["I own a yacht"]})
    assert score.passed
    assert score.details["invented_facts"] == []
    assert len(prompts) == 2


def test_a_user_who_repeats_an_answer_fails_without_a_judge() -> None:
    answer = "Your table for four on Friday evening is booked now."
    events = [*CHAT, Message("assistant", answer), Message("user", answer), SIMULATED]
    score, prompts = judge(GOOD, events)
    assert not score.passed
    assert "repeats an answer of the target" in score.reason
    assert prompts == []


def test_other_sessions_are_skipped_and_a_broken_judge_is_an_error() -> None:
    script = CustomEvent("conversation", {"end": "script", "turns": 1})
    for events in (CHAT, (*CHAT, script)):
        assert judge(GOOD, events)[0].reason == "the session has no simulated user"
    assert simulated_user_role(lambda _: "")("out", None, None).status == "skipped"
    assert judge("no verdict")[0].status == "error"
