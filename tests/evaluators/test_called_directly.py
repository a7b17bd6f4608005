"""Judges called directly: outside an event loop they return a score, inside they are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from proctor import Score, all_of, any_of, attach, contains, llm_judge, panel, quality_score, rubric_evaluation
from proctor.evaluators.rubrics import rubric
from proctor.evaluators.safety.detection import bias_detection, compliance, toxicity_detection
from proctor.evaluators.text.quality import coherence, hallucination_detection, relevance
from tests.evaluators.judging.rehearsed import rates, scores
from tests.evaluators.judging.scripted import Scripted
from tests.tables import each_row


async def own(output: str) -> bool:
    return bool(output)


def mute() -> Scripted:
    return Scripted(lambda _: "well")


MADE: dict[str, Callable[[], Any]] = {
    "llm_judge": lambda: llm_judge(rates("good"), "Polite"),
    "quality_score": lambda: quality_score(scores(4)),
    "rubric_evaluation": lambda: rubric_evaluation(mute(), ["clear"]),
    "rubric": lambda: rubric(mute(), "communication"),
    "hallucination_detection": lambda: hallucination_detection(model=mute()),
    "toxicity_detection": lambda: toxicity_detection(model=mute()),
    "bias_detection": lambda: bias_detection(model=mute()),
    "compliance": lambda: compliance(),
    "coherence": lambda: attach(coherence(embedder="lexical")),
    "relevance": lambda: relevance(embedder="lexical"),
    "panel": lambda: panel([contains, llm_judge(rates("good"), "Polite")]),
    "all_of": lambda: all_of(contains, llm_judge(rates("good"), "Polite")),
    "any_of": lambda: any_of(own, contains),
    "attach": lambda: attach(own),
}


@each_row("name", MADE)
def test_outside_an_event_loop_a_call_gives_a_score(name: str) -> None:
    """In one line, as every other evaluator."""
    assert isinstance(MADE[name]()("Good morning!", "Good morning!"), Score)


@each_row("name", MADE)
def test_inside_an_event_loop_the_same_call_is_awaited(name: str) -> None:
    """It does not block the loop."""

    async def main() -> Any:
        return await MADE[name]()("Good morning!", "Good morning!")

    assert isinstance(asyncio.run(main()), Score)


def test_a_judge_in_one_line() -> None:
    """The example of the ruling."""
    assert llm_judge(rates("good"), "Polite")("output", "expected").value == 0.75


def test_a_judge_keeps_its_identity_and_is_awaited_in_a_run() -> None:
    """Its identity is that of its own code and options."""
    attached = attach(llm_judge(rates("good"), "Polite"))
    assert (attached.mode, attached.spec.name) == ("async", "llm_judge")
    assert attached.spec.identity == attach(llm_judge(rates("good"), "Polite")).spec.identity
    assert attached.spec.identity != attach(llm_judge(rates("good"), "Rude")).spec.identity
