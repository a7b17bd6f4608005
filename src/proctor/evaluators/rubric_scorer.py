"""`RubricScorer`: sessions scored by rubrics from a program, without a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.connections import provider
from proctor.errors import EvaluatorError, Problem
from proctor.evaluators.attach import Attached
from proctor.evaluators.rubrics import rubric_evaluators
from proctor.records.numbers import is_number
from proctor.records.rubric import USUAL_SCALE, ChatSession, Rubric
from proctor.records.score import Score
from proctor.records.session import Session, SessionView


class EvaluationConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a scorer asks: calls at a time, the judge's settings, seconds a rubric, the scale.

    Settings that nothing could be asked with are refused here, all at once.
    """

    max_concurrent: int = 10
    llm_temperature: float | None = 0.1
    llm_max_tokens: int | None = 1024
    timeout_per_rubric: float | None = 60.0
    retry_on_parse_failure: bool = True
    score_scale: tuple[float, float] = USUAL_SCALE

    def __post_init__(self) -> None:
        most, words, warmth = self.max_concurrent, self.llm_max_tokens, self.llm_temperature
        seconds = self.timeout_per_rubric
        checked = {
            "max_concurrent": (_counts(most), most, "a whole number from 1 up"),
            "llm_temperature": (_is_from(warmth, 0), warmth, "a number from 0 up"),
            "llm_max_tokens": (words is None or _counts(words), words, "a whole number from 1 up"),
            "timeout_per_rubric": (
                _is_from(seconds, 0) and seconds != 0,
                seconds,
                "a number of seconds above 0, or None",
            ),
            "retry_on_parse_failure": (
                isinstance(self.retry_on_parse_failure, bool),
                self.retry_on_parse_failure,
                "True or False",
            ),
            "score_scale": (
                _is_scale(self.score_scale),
                self.score_scale,
                "the least and the greatest score, as in (1, 5)",
            ),
        }
        problems = [
            Problem(name, f"expected {wanted}, got {given!r}")
            for name, (fits, given, wanted) in checked.items()
            if not fits
        ]
        if problems:
            raise EvaluatorError(
                "nothing can be asked like that", where="EvaluationConfig", problems=problems
            )


def _counts(value: Any) -> bool:
    return is_number(value) and value == int(value) >= 1


def _is_from(value: Any, least: float) -> bool:
    return value is None or (is_number(value) and value >= least)


def _is_scale(value: Any) -> bool:
    ends = tuple(value) if isinstance(value, list | tuple) else ()
    return len(ends) == 2 and all(map(is_number, ends)) and ends[0] < ends[1]


class RubricScorer:
    """Scores sessions by rubrics with one model; for files, resume and reports use a run.

    >>> def kind(messages):
    ...     *_, line = messages[-1].content.splitlines()
    ...     return "Polite.\\n" + line.partition("<")[0] + "4"
    >>> from proctor.records.session import Message
    >>> chat = ChatSession("s1", Session([Message("user", "Hi"), Message("assistant", "Hello!")]))
    >>> tone = Rubric("tone", "Tone", "Is the agent polite?", "1: rude … 5: polite")
    >>> asyncio.run(RubricScorer(kind).score(tone, chat)).details["score"]
    4
    """

    def __init__(self, model: Any, config: EvaluationConfig | None = None) -> None:
        # Whatever cannot be asked is refused here, not when the first session is scored.
        self._model = provider(model)
        self.config = config or EvaluationConfig()
        self._places: Any = None
        self._made: tuple[Sequence[Rubric], tuple[Attached, ...]] = ((), ())

    async def score(self, rubric: Rubric, session: Session | ChatSession) -> Score:
        """The score of a session by one rubric; without a verdict an error, never a number."""
        if not isinstance(rubric, Rubric):
            raise EvaluatorError(
                f"it takes a Rubric, got {type(rubric).__name__!r}",
                where="RubricScorer",
                fix='take one out of a set, load_rubrics("starter") say',
            )
        return (await self.score_all([rubric], session))[rubric.id]

    async def score_all(
        self, rubrics: Sequence[Rubric], session: Session | ChatSession
    ) -> dict[str, Score]:
        """The scores by all rubrics, asked side by side."""
        evaluators = self._evaluators(list(rubrics))
        held = session.session if isinstance(session, ChatSession) else session
        if not isinstance(held, Session | SessionView):
            raise EvaluatorError(
                f"it takes a Session or a ChatSession, got {type(held).__name__!r}",
                where="RubricScorer",
                fix='put what was said into one: Session([Message("user", "…"), …])',
            )
        scores = await asyncio.gather(*(one(None, None, held) for one in evaluators))
        return {one.spec.name: score for one, score in zip(evaluators, scores, strict=True)}

    def _evaluators(self, rubrics: list[Rubric]) -> tuple[Attached, ...]:
        """The rubrics as evaluators; all that this scorer asks share its calls at a time."""
        if self._made[0] == rubrics:
            return self._made[1]
        from proctor.evaluators.judging.session_rubric import Places

        config = self.config
        self._places = self._places or Places(config.max_concurrent)
        made = rubric_evaluators(
            self._model,
            rubrics,
            at_once=self._places,
            scale=config.score_scale,
            temperature=config.llm_temperature,
            max_tokens=config.llm_max_tokens,
            timeout=config.timeout_per_rubric,
            retry_on_parse_failure=config.retry_on_parse_failure,
        )
        self._made = (rubrics, made)
        return made
