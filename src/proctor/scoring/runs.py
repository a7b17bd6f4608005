"""Sessions scored by rubrics: a run like any other, with the rubrics as its evaluators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from proctor.evaluators.rubrics import rubric_evaluators
from proctor.prepare import Evaluation
from proctor.records.rubric import RubricSet
from proctor.records.rubric_scores import RUBRICS_VERSION, Columns, columns_of
from proctor.records.run import Redact
from proctor.records.sample import Sample
from proctor.session_dataset import SessionDataset
from proctor.targets.recorded import RecordedTarget

PARALLEL, MAX_CONCURRENT, TIMEOUT = 5, 10, 60.0


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """How sessions are scored.

    `parallel` sessions are in hand at a time, `max_concurrent` calls under way over all of them.
    `judged` are options of the evaluator `rubric`; its time-out begins when a call has its place.
    With `cache`, what a judge has answered is not asked again, in this run or another. `redact`
    says what is taken out before anything is stored; judges see it all. With `canary`, the judge
    is shown a planted bad answer on about one of so many sessions.
    """

    parallel: int = PARALLEL
    max_concurrent: int = MAX_CONCURRENT
    cache: bool = True
    budget: Any = None
    limit: int | None = None
    judged: dict[str, Any] = {}
    redact: Redact = "secrets"
    canary: int | None = None


class ToldSessions(SessionDataset):
    """Sessions of a folder; `told` hears the id of each, in order, before it is scored."""

    def __init__(self, *given: Any, told: Callable[[str], object], **options: Any) -> None:
        super().__init__(*given, **options)
        self._told = told

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        for sample in super().__iter__():
            self._told(sample.id)
            yield sample


def scoring_of(
    sessions: Any,
    rubrics: RubricSet,
    judge: Any,
    scoring: Scoring,
    *,
    name: str = "sessions",
    tags: Mapping[str, str] | None = None,
) -> Evaluation:
    """The evaluation that scores a dataset of recorded sessions by rubrics."""
    judged = {"timeout": TIMEOUT, **scoring.judged}
    evaluators = rubric_evaluators(judge, rubrics, at_once=scoring.max_concurrent, **judged)
    options = {
        "concurrency": scoring.parallel,
        # The rubrics watch their own time, which begins later than the engine could know.
        "evaluator_timeout": None,
        "cache": scoring.cache,
        "budget": scoring.budget,
        "limit": scoring.limit,
        "redact": scoring.redact,
    }
    # Files of sessions are looked at without a target; other samples hold theirs as recordings do.
    from_files = isinstance(sessions, SessionDataset)
    return Evaluation(
        None if from_files else RecordedTarget(name=name),
        sessions,
        evaluators,
        name=name,
        tags={RUBRICS_VERSION: rubrics.version, **(tags or {})},
        options=options,
        canary=scoring.canary,
    )


def columns_for(evaluation: Evaluation) -> Columns:
    """The rubrics that an evaluation scores by."""
    specs = [one.spec for one in evaluation.evaluators]
    return columns_of(specs, evaluation.tags[RUBRICS_VERSION])
