"""Check a simulated user: did it stay in its role, pursue its goal, and invent nothing?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.errors import CallFailed
from proctor.evaluators.judges.fence import MarkedForm
from proctor.evaluators.judges.judge import JudgeOptions, Question, ask_judge, failed_score, to_text, usage_to_data
from proctor.evaluators.judges.transcript import render_transcript
from proctor.evaluators.score_conversion import NO_SESSION
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import CustomEvent, Message, SessionView

TEMPLATE = "simulated-user"
# The kind of the event that `ConversationTarget` records.
CONVERSATION = "conversation"
NO_USER = "the session has no simulated user"


class RoleCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a judge says about a simulated user."""

    speaks_as_assistant: bool
    reveals_simulation: bool
    pursues_goal: bool
    invented_facts: list[str]
    reason: str


class SimulatedUserCheck(NamedTuple):
    """A judge of simulated users."""

    adapter: ProviderAdapter
    template: PromptTemplate[Any]
    options: JudgeOptions

    async def score(self, sample: Any, session: SessionView | None) -> Score:
        """Return the share of four checks that the user passes; all must pass."""
        if session is None or not session.recorded:
            return Score.skipped(NO_SESSION)
        if not _is_simulated(session):
            return Score.skipped(NO_USER)
        messages = session[Message]
        users = [to_text(message.content) for message in messages if message.role == "user"]
        if copied := _find_copied_answer(messages):
            reason = f"the simulated user repeats an answer of the target as its own message: {copied[:200]!r}"
            return Score(0.0, False, reason, {"checks": {"stays_user": False}})
        persona = sample.input if isinstance(sample, Sample) else None
        texts = {"persona": _render_persona(persona), "conversation": render_transcript(messages)}
        user_text = _normalize(" ".join(users))

        def check_quotes(answer: RoleCheck) -> None:
            if any(_normalize(quote) not in user_text for quote in answer.invented_facts):
                raise ValueError("a quote in invented_facts is not in a message of the user: quote it exactly")

        try:
            response = await ask_judge(
                self.adapter,
                Question(self.template, texts),
                lambda fence: MarkedForm(RoleCheck, fence, prefer=check_quotes),
                self.options,
            )
        except CallFailed as error:
            return failed_score(self.adapter, self.template, [error])
        judge = {"model": self.adapter.model, "prompt": self.template.id, "usage": usage_to_data(response.usage)}
        return _make_score(response.output, user_text, {**judge, **({"cached": True} if response.cached else {})})


def _make_score(answer: RoleCheck, user_text: str, judge: Mapping[str, Any]) -> Score:
    # A quote that the user never wrote is no evidence.
    invented = [quote for quote in answer.invented_facts if _normalize(quote) and _normalize(quote) in user_text]
    checks = {
        "stays_user": not answer.speaks_as_assistant,
        "hides_simulation": not answer.reveals_simulation,
        "pursues_goal": answer.pursues_goal,
        "invents_nothing": not invented,
    }
    failed = [name for name, is_passed in checks.items() if not is_passed]
    reason = f"{', '.join(failed)} failed: {answer.reason}" if failed else answer.reason
    details = {"checks": checks, "invented_facts": invented, "judge": dict(judge)}
    return Score(1 - len(failed) / len(checks), not failed, reason, details)


def _is_simulated(session: SessionView) -> bool:
    events = (event for event in session if isinstance(event, CustomEvent) and event.kind == CONVERSATION)
    return any(isinstance(event.data, Mapping) and event.data.get("user") for event in events)


def _find_copied_answer(messages: tuple[Message, ...]) -> str:
    """Return a long message of the user that repeats an earlier answer, word by word."""
    answers: set[str] = set()
    for message in messages:
        text = _normalize(to_text(message.content))
        if message.role == "assistant":
            answers.add(text)
        elif message.role == "user" and len(text.split()) >= 8 and text in answers:
            return to_text(message.content)
    return ""


def _render_persona(persona: Any) -> str:
    if not isinstance(persona, Mapping):
        return to_text(persona)
    return "\n".join(f"{name}: {to_text(value)}" for name, value in persona.items())


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())
