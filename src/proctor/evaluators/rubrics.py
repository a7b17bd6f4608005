"""Rubrics: a model scores a whole session by each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.errors import EvaluatorError, nearest
from proctor.evaluators.judging.scale import PASS_AT
from proctor.evaluators.judging.terms import asking, check_terms, connected
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.options import Model
from proctor.records.rubric import USUAL_SCALE, scale_of

if TYPE_CHECKING:
    from proctor.evaluators.attach import Attached
    from proctor.evaluators.judging.session_rubric import Places
    from proctor.evaluators.judging.transcript import Shown

__all__ = ["rubric", "rubric_evaluators"]


def _of_the_set(parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Without a rubric all of the set are meant."""
    from proctor.evaluators.judging.session_rubric import rubrics_of

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
    from proctor.evaluators.judging.session_rubric import shown_as

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
    from proctor.evaluators.judging.session_rubric import Places, rubrics_of, shown_as

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


def _rubric(
    one: Any, given: Mapping[str, Any], shown: Shown, places: Places | None = None
) -> Attached:
    from proctor.evaluators.attach import attach
    from proctor.evaluators.judging.session_rubric import Places, rubric_for, session_rubric

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
        how=asking(
            given["temperature"], given["max_tokens"], remind=given["retry_on_parse_failure"]
        ),
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
