"""Score whole sessions with rubrics and a model."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.core.aliases import accept_aliases, use_common_names
from proctor.errors import ConfigError, EvaluatorError, Problem, suggest_name
from proctor.evaluators.bound_evaluator import BoundEvaluator, attach
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.judges.judge import check_judge_options, create_judge_options, is_count
from proctor.evaluators.judges.scale import DEFAULT_THRESHOLD, create_number_scale, is_scale
from proctor.evaluators.judges.session_rubric import (
    ConcurrencyLimit,
    SessionRubric,
    create_transcript_cache,
    fill_judge_template,
)
from proctor.evaluators.judges.transcript import TranscriptCache
from proctor.evaluators.options import Model
from proctor.evaluators.rubric_files import load_rubric, load_rubrics
from proctor.models.connect import provider
from proctor.records.numbers import is_number
from proctor.records.rubric import DEFAULT_SCALE, ChatSession, Rubric, describe_unknown_keys, find_scale
from proctor.records.score import Score
from proctor.records.session import Session, SessionView

__all__ = ["rubric", "rubric_evaluators"]


def _spread_rubrics(parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Expand an eval file entry without a rubric into one entry for each rubric of the set."""
    if "rubric" in parameters:
        return [parameters]
    with _evaluator_errors("rubric"):
        rubrics = load_rubrics(parameters.get("rubrics", "starter"))
    return [{**parameters, "rubric": item.id} for item in rubrics] or [parameters]


@evaluator(category="session", factory=True, needs=("session",), spread=_spread_rubrics)
def rubric(
    model: Model,
    rubric: Any,
    *,
    rubrics: Any = None,
    prompt: Any = None,
    scale: tuple[float, float] = DEFAULT_SCALE,
    threshold: float = DEFAULT_THRESHOLD,
    temperature: float | None = 0.1,
    max_tokens: int | None = 1024,
    timeout: float | None = None,
    max_content_chars: int = 4_000,
    max_session_chars: int = 100_000,
    retry_on_parse_failure: bool = True,
) -> BoundEvaluator:
    """A model scores the whole session by one rubric, on the rubric's scale.

    The rubric is a `Rubric`, a mapping with id, name, description, scoring_criteria and weight, or the id of a rubric
    in `rubrics`: a rubric file, or "starter", the built-in set; an entry of an eval file without `rubric` means all of
    them. Scores have the rubric's id as their name. The judge sees the turns, tool calls and results, with the middle
    of long ones left out. `prompt` is your own prompt. A trial without a recorded session is skipped. An unreadable
    answer is requested once more with a reminder of the format, unless `retry_on_parse_failure` is False; `timeout`
    covers both calls.

    >>> from proctor.records.session import Message, Session
    >>> def polite_judge(messages):
    ...     *_, line = messages[-1].content.splitlines()
    ...     return "It greets back.\\n" + line.partition("<")[0] + "4"
    >>> session = Session([Message("user", "Hello"), Message("assistant", "Good morning!")])
    >>> judge = rubric(polite_judge, "communication")
    >>> judge("Good morning!", None, session).details["score"]
    4
    """
    transcripts = create_transcript_cache(max_content_chars, max_session_chars, "rubric")
    return _attach_rubric(rubric, locals(), transcripts)


@accept_aliases
def rubric_evaluators(
    model: Model, rubrics: Any = "starter", *, concurrency: int | ConcurrencyLimit | None = None, **options: Any
) -> tuple[BoundEvaluator, ...]:
    """Return all rubrics of a set as evaluators that ask one model; `options` as for `rubric`.

    `concurrency` is the number of concurrent calls over all sessions and rubrics, or a limit that is
    shared with other evaluators.

    >>> [evaluator.spec.name for evaluator in rubric_evaluators(lambda messages: "4", "starter")][-1]
    'safety'
    """
    where, defaults = "rubric_evaluators", _read_defaults()
    options = use_common_names(options, defaults)
    if unknown_options := [name for name in options if name not in defaults]:
        raise EvaluatorError(
            f"unknown option {unknown_options[0]!r}", where=where, fix=suggest_name(unknown_options[0], defaults)
        )
    with _evaluator_errors(where):
        rubric_set = load_rubrics(rubrics)
    values = {**defaults, "scale": rubric_set.scale or DEFAULT_SCALE, **options, "model": provider(model)}
    if not isinstance(concurrency, ConcurrencyLimit | None):
        check_judge_options(where, None, concurrency=concurrency)
        concurrency = ConcurrencyLimit(concurrency)
    transcripts = create_transcript_cache(values["max_content_chars"], values["max_session_chars"], where)
    return tuple(_attach_rubric(item, values, transcripts, concurrency) for item in rubric_set)


def _attach_rubric(
    source: Any, values: Mapping[str, Any], transcripts: TranscriptCache, limit: ConcurrencyLimit | None = None
) -> BoundEvaluator:
    where, remind, timeout = "rubric", values["retry_on_parse_failure"], values["timeout"]
    check_judge_options(where, values["threshold"], max_tokens=values["max_tokens"])
    if not isinstance(remind, bool):
        raise EvaluatorError(
            f"retry_on_parse_failure must be True or False, got {remind!r}",
            where=where,
            fix="write retry_on_parse_failure: false",
        )
    with _evaluator_errors(where):
        loaded_rubric = load_rubric(source, values["rubrics"])
    adapter = provider(values["model"])
    if timeout is not None and not (is_number(timeout) and timeout > 0):
        raise EvaluatorError(f"timeout must be a number of seconds greater than 0, got {timeout!r}", where=where)
    scale = create_number_scale(find_scale(loaded_rubric, values["scale"]), values["threshold"], where)
    judge = SessionRubric(
        adapter,
        fill_judge_template(values["prompt"], loaded_rubric, scale),
        scale,
        create_judge_options(values["temperature"], values["max_tokens"], remind=remind),
        transcripts,
        timeout,
        limit or ConcurrencyLimit(),
        describe_unknown_keys(loaded_rubric),
    )

    async def evaluate(output: Any, sample: Any = None, session: Any = None) -> Any:
        return await judge.score(output, sample, session)

    # The stored options contain the rubric itself, so that the run can be read without its file, and the scale only
    # once. They leave out the timeout, which does not affect scores, so a resumed run may change it.
    values = {**values, "scale": (float(scale.low), float(scale.high))}
    loaded_rubric = msgspec.structs.replace(loaded_rubric, scale=None)
    options = {
        name: values[name]
        for name, default in _read_defaults().items()
        if name not in ("rubrics", "timeout") and values[name] != default
    }
    marked = tag_evaluator(evaluate, factory=rubric, model=adapter, rubric=loaded_rubric, **options)
    return attach(marked, name=loaded_rubric.id)


@contextlib.contextmanager
def _evaluator_errors(where: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        where = error.where or where
        raise EvaluatorError(error.what, where=where, fix=error.fix, problems=error.problems) from None


def _read_defaults() -> dict[str, Any]:
    parameters = inspect.signature(rubric).parameters
    return {n: p.default for n, p in parameters.items() if p.default is not p.empty}


class EvaluationConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a scorer: concurrent calls, model settings, seconds per rubric, and the scale.

    One error lists all invalid settings.
    """

    max_concurrent: int = 10
    llm_temperature: float | None = 0.1
    llm_max_tokens: int | None = 1024
    timeout_per_rubric: float | None = 60.0
    retry_on_parse_failure: bool = True
    score_scale: tuple[float, float] = DEFAULT_SCALE

    def __post_init__(self) -> None:
        count, seconds = "an integer, 1 or more", self.timeout_per_rubric
        has_timeout = seconds is None or (is_number(seconds) and seconds > 0)
        has_temperature = self.llm_temperature is None or (
            is_number(self.llm_temperature) and self.llm_temperature >= 0
        )
        checks = {
            "max_concurrent": (is_count(self.max_concurrent), count),
            "llm_temperature": (has_temperature, "a number, 0 or more"),
            "llm_max_tokens": (self.llm_max_tokens is None or is_count(self.llm_max_tokens), count),
            "timeout_per_rubric": (has_timeout, "a number of seconds greater than 0, or None"),
            "retry_on_parse_failure": (isinstance(self.retry_on_parse_failure, bool), "True or False"),
            "score_scale": (is_scale(self.score_scale), "the lowest and the highest score, as in (1, 5)"),
        }
        problems = [
            Problem(name, f"expected {allowed}, got {getattr(self, name)!r}")
            for name, (is_valid, allowed) in checks.items()
            if not is_valid
        ]
        if problems:
            raise EvaluatorError("the settings are invalid", where="EvaluationConfig", problems=problems)


class RubricScorer:
    """Scores sessions by rubrics with one model. To read files, resume and write reports, use a run.

    >>> def polite_judge(messages):
    ...     *_, line = messages[-1].content.splitlines()
    ...     return "Polite.\\n" + line.partition("<")[0] + "4"
    >>> from proctor.records.session import Message
    >>> chat = ChatSession("s1", Session([Message("user", "Hi"), Message("assistant", "Hello!")]))
    >>> tone = Rubric("tone", "Tone", "Is the agent polite?", "1: rude … 5: polite")
    >>> asyncio.run(RubricScorer(polite_judge).score(tone, chat)).details["score"]
    4
    """

    def __init__(self, model: Any, config: EvaluationConfig | None = None) -> None:
        # Connected here, so that a wrong model fails before the first session.
        self._model = provider(model)
        self.config = config or EvaluationConfig()
        self._limit = ConcurrencyLimit(self.config.max_concurrent)
        self._cache: tuple[Sequence[Rubric], tuple[BoundEvaluator, ...]] = ((), ())

    async def score(self, rubric: Rubric, session: Session | ChatSession) -> Score:
        """Score a session by one rubric; an answer without a verdict results in an error."""
        if not isinstance(rubric, Rubric):
            raise EvaluatorError(
                f"rubric must be a Rubric, got {type(rubric).__name__!r}",
                where="RubricScorer",
                fix='pass a rubric of a set, as in load_rubrics("starter")["safety"]',
            )
        return (await self.score_all([rubric], session))[rubric.id]

    async def score_all(self, rubrics: Sequence[Rubric], session: Session | ChatSession) -> dict[str, Score]:
        """Score a session by all rubrics concurrently."""
        evaluators = self._make_evaluators(list(rubrics))
        events = session.session if isinstance(session, ChatSession) else session
        if not isinstance(events, Session | SessionView):
            raise EvaluatorError(
                f"session must be a Session or a ChatSession, got {type(events).__name__!r}",
                where="RubricScorer",
                fix='write Session([Message("user", "…"), Message("assistant", "…")])',
            )
        scores = await asyncio.gather(*(evaluator(None, None, events) for evaluator in evaluators))
        return {evaluator.spec.name: score for evaluator, score in zip(evaluators, scores, strict=True)}

    def _make_evaluators(self, rubrics: list[Rubric]) -> tuple[BoundEvaluator, ...]:
        if self._cache[0] == rubrics:
            return self._cache[1]
        config = self.config
        evaluators = rubric_evaluators(
            self._model,
            rubrics,
            concurrency=self._limit,
            scale=config.score_scale,
            temperature=config.llm_temperature,
            max_tokens=config.llm_max_tokens,
            timeout=config.timeout_per_rubric,
            retry_on_parse_failure=config.retry_on_parse_failure,
        )
        self._cache = (rubrics, evaluators)
        return evaluators
