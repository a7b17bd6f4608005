"""Rubrics: a model scores a whole session by each of them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.errors import EvaluatorError, Problem, nearest
from proctor.evaluators.attached import Attached
from proctor.evaluators.judges.criteria import asking, check_terms, connected
from proctor.evaluators.judges.scale import PASS_AT
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.options import Model
from proctor.models.connect import provider
from proctor.records.numbers import is_number
from proctor.records.rubric import USUAL_SCALE, ChatSession, Rubric, scale_of
from proctor.records.score import Score
from proctor.records.session import Session, SessionView

if TYPE_CHECKING:
    from proctor.evaluators.attached import Attached
    from proctor.evaluators.judges.session_rubric import Places
    from proctor.evaluators.judges.transcript import Shown


__all__ = ["rubric", "rubric_evaluators"]


def _of_the_set(parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Without a rubric all of the set are meant."""
    from proctor.evaluators.judges.session_rubric import rubrics_of

    among = parameters.get("rubrics", "starter")
    known = () if "rubric" in parameters else rubrics_of(among, "rubric")
    return [{**parameters, "rubric": one.id} for one in known] or [parameters]


@evaluator(category="session", factory=True, needs=("session",), spread=_of_the_set)
def rubric(
    adapter: Model,
    rubric: Any,
    *,
    rubrics: Any = None,
    template: Any = None,
    scale: tuple[float, float] = USUAL_SCALE,
    threshold: float = PASS_AT,
    temperature: float | None = 0.1,
    max_tokens: int | None = 1024,
    timeout: float | None = None,
    max_content_chars: int = 4_000,
    max_session_chars: int = 100_000,
    retry_on_parse_failure: bool = True,
) -> Attached:
    """A model scores the whole session by one rubric, on the rubric's scale.

    The rubric is a `Rubric`, a mapping with id, name, description, scoring_criteria and weight,
    or an id among those of `rubrics`: a rubric file, or "starter", the set that ships; an entry
    of an eval file without it stands for all of them. Scores are kept under the rubric's id. The
    judge sees the turns, tool calls and results, long ones cut in the middle; `template` is one of
    your own. A trial without a recorded session is skipped. An answer that cannot be read
    is asked for once more, with a reminder of the format, unless `retry_on_parse_failure` is False;
    the `timeout` is for both calls.

    >>> from proctor.records.session import Message, Session
    >>> def kind(messages):
    ...     *_, line = messages[-1].content.splitlines()
    ...     return "It greets back.\\n" + line.partition("<")[0] + "4"
    >>> session = Session([Message("user", "Hello"), Message("assistant", "Good morning!")])
    >>> judge = rubric(kind, "communication")
    >>> judge("Good morning!", None, session).details["score"]
    4
    """
    from proctor.evaluators.judges.session_rubric import shown_as

    shown = shown_as(max_content_chars, max_session_chars, "rubric")
    return _rubric(rubric, locals(), shown)


def rubric_evaluators(
    adapter: Model, rubrics: Any = "starter", *, at_once: int | Places | None = None, **options: Any
) -> tuple[Attached, ...]:
    """All rubrics of a set as evaluators, asked by one model; `options` as for `rubric`.

    `at_once` is how many calls are under way at a time, over all sessions and rubrics; or places
    that are shared with others.

    >>> [one.spec.name for one in rubric_evaluators(lambda messages: "4", "starter")][-1]
    'safety'
    """
    from proctor.evaluators.judges.session_rubric import Places, rubrics_of, shown_as

    where, known = "rubric_evaluators", _defaults(rubric)
    if unknown := [name for name in options if name not in known]:
        raise EvaluatorError(
            f"there is no option {unknown[0]!r}", where=where, fix=nearest(unknown[0], known)
        )
    found = rubrics_of(rubrics, where)
    given = {**known, "scale": found.scale or USUAL_SCALE, **options}
    given["adapter"] = connected(adapter)
    places = at_once
    if not isinstance(places, Places | None):
        check_terms(where, None, at_once=places)
        places = Places(places)
    shown = shown_as(given["max_content_chars"], given["max_session_chars"], where)
    return tuple(_rubric(one, given, shown, places) for one in found)


def _rubric(one: Any, given: Mapping[str, Any], shown: Shown, places: Places | None = None) -> Attached:
    from proctor.evaluators.attached import attach
    from proctor.evaluators.judges.session_rubric import Places, rubric_for, session_rubric

    where = "rubric"
    check_terms(where, given["threshold"], max_tokens=given["max_tokens"])
    if not isinstance(given["retry_on_parse_failure"], bool):
        raise EvaluatorError(
            f"retry_on_parse_failure is True or False, got {given['retry_on_parse_failure']!r}",
            where=where,
            fix="write retry_on_parse_failure: false",
        )
    chosen = rubric_for(one, given["rubrics"], where)
    adapter = connected(given["adapter"])
    judge = session_rubric(
        adapter,
        chosen,
        template=given["template"],
        scale=given["scale"],
        threshold=given["threshold"],
        how=asking(given["temperature"], given["max_tokens"], remind=given["retry_on_parse_failure"]),
        shown=shown,
        timeout=given["timeout"],
        places=places or Places(),
        where=where,
    )

    async def evaluate(output: Any, sample: Any = None, session: Any = None) -> Any:
        return await judge.score(output, sample, session)

    # The rubric itself, so that whoever reads the run needs no file for it, with its scale in one
    # place; and without the time-out, which no score rests on: a resumed run may have another.
    given = {**given, "scale": tuple(map(float, scale_of(chosen, given["scale"])))}
    chosen = msgspec.structs.replace(chosen, scale=None)
    options = {
        name: given[name]
        for name, usual in _defaults(rubric).items()
        if name not in ("rubrics", "timeout") and given[name] != usual
    }
    marked = made(evaluate, by=rubric, adapter=adapter, rubric=chosen, **options)
    return attach(marked, name=chosen.id)


def _defaults(factory: Callable[..., Any]) -> dict[str, Any]:
    """The options of a factory that have a default, with it."""
    parameters = inspect.signature(factory).parameters
    return {n: p.default for n, p in parameters.items() if p.default is not p.empty}


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

    async def score_all(self, rubrics: Sequence[Rubric], session: Session | ChatSession) -> dict[str, Score]:
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
        from proctor.evaluators.judges.session_rubric import Places

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
