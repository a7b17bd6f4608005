"""Grounded: the score of a text whose sentences were looked up in a context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.evaluators.grounding.support import Grounding, Sentence, ground
from proctor.evaluators.language import JUDGE_INSTEAD, first_unreadable
from proctor.evaluators.meanings import Meanings, aside
from proctor.evaluators.verdict import shown
from proctor.evaluators.wording import texts_in
from proctor.records.score import Score

# So much of the weakest sentence must stand in the context.
GROUNDED = 0.75
# Of texts with more sentences the weakest ones are listed.
MOST_LISTED = 100


class Grounded:
    """The support that a context gives to the weakest sentence of the output."""

    def __init__(self, meanings: Meanings, threshold: float) -> None:
        self._meanings, self._threshold = meanings, threshold
        self.given = meanings.given

    async def score(self, output: Any, beside: Sequence[str] = ()) -> Score:
        """The support of the weakest sentence; skipped if nothing is said."""
        text, details = "\n\n".join(texts_in(output)), self._meanings.details
        if not text:
            return Score.skipped("there is no text to check", details)
        problem = await aside(len(text), first_unreadable, [text, "\n".join(beside)])
        if problem:
            return Score.skipped(f"{problem}, and the local method knows English; {JUDGE_INSTEAD}", details)
        found = await ground(text, beside, self._meanings)
        if found is None:
            return Score.skipped("the output says nothing that could be looked up", details)
        details["overall"] = round(found.overall, 4)
        if found.left_out:
            details["sentences_left_out"] = found.left_out
        details["sentences"] = [_told(one) for one in _listed(found)]
        return Score(found.value, found.value >= self._threshold, _reason(found), details)


def _listed(found: Grounding) -> Sequence[Sentence]:
    """All sentences, or of very many the weakest ones."""
    if len(found.sentences) <= MOST_LISTED:
        return found.sentences
    return sorted(found.sentences, key=found.worth)[:MOST_LISTED]


def _told(one: Sentence) -> dict[str, Any]:
    return {
        "text": one.text,
        "support": round(one.support, 4),
        "wrong": one.wrong,
        "unsupported": list(one.unsupported),
        "passages": list(one.passages),
    }


def _reason(found: Grounding) -> str:
    weakest = found.weakest
    reason = f"least support {found.value:.2f}"
    if weakest.unsupported:
        listed = ", ".join(weakest.unsupported)
        reason += f", in {shown(weakest.text)}: not in the context: {listed}"
    if found.left_out:
        reason += f"; {found.left_out:,} further sentences were not looked at"
    return reason
