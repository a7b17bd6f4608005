"""Every evaluator with parts: a part that fails decides nothing, and the run says that it failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import evaluate
from proctor.errors import CallFailed, RunStopped
from proctor.evaluators.combination import all_of, any_of, combine, negate, threshold, weighted
from proctor.evaluators.llm import llm_judge, quality_score, rubric_evaluation
from proctor.evaluators.opinions import panel
from proctor.records.score import UNCERTAIN, Score, find_failures
from tests.evaluators.judging.rehearsed import Asked, Scripted
from tests.tables import each_row

# A part's score on the scale from 1 to 5; None is a call that fails. 4 and 5 pass.
Ratings = Sequence[int | None]
DEAD = CallFailed("the judge is down")
RATINGS = st.lists(st.sampled_from([1, 3, 4, 5, None]), min_size=1, max_size=3)


def _answer(asked: Asked, rating: int | None) -> str | Exception:
    return DEAD if rating is None else asked.score(rating)


def _part(rating: int | None) -> Any:
    return quality_score(Scripted(lambda asked: _answer(asked, rating)))


def _parts(ratings: Ratings) -> list[Any]:
    return [_part(rating) for rating in ratings]


def _rubric(ratings: Ratings) -> Any:
    """The weights are 1, 2, 3 …; every criterion has its own call."""
    names = {f"quality{n}": n + 1 for n in range(len(ratings))}

    def judge(asked: Asked) -> str | Exception:
        return _answer(asked, ratings[next(n for n, name in enumerate(names) if name in asked.part("CRITERION"))])

    return rubric_evaluation(Scripted(judge), names, one_call=False)


def _sheet(ratings: Ratings) -> Any:
    """One call for all criteria; the judge omits the lines of the missing ones."""

    def judge(asked: Asked) -> str | Exception:
        lines = [f"SCORE {asked.mark} criterion_{n}: {rating}" for n, rating in enumerate(ratings, 1) if rating]
        return "\n".join(lines)

    return rubric_evaluation(Scripted(judge), {f"quality{n}": n + 1 for n in range(len(ratings))})


def _samples(mode: Any) -> Callable[[Ratings], Any]:
    def make(ratings: Ratings) -> Any:
        judge = Scripted(lambda asked: _answer(asked, ratings[asked.request.opinion]))
        return llm_judge(judge, rubric="r", samples=len(ratings), combine=mode)

    return make


MAKERS: dict[str, Callable[[Ratings], Any]] = {
    "all_of": lambda ratings: all_of(*_parts(ratings)),
    "any_of": lambda ratings: any_of(*_parts(ratings)),
    "weighted": lambda ratings: weighted(*((part, n + 1) for n, part in enumerate(_parts(ratings))), threshold=0.6),
    "negate": lambda ratings: negate(any_of(*_parts(ratings))),
    "threshold": lambda ratings: threshold(panel(_parts(ratings)), 0.6),
    "majority": lambda ratings: panel(_parts(ratings)),
    "unanimous": lambda ratings: panel(_parts(ratings), "unanimous"),
    "mean": lambda ratings: panel(_parts(ratings), "mean", 0.6),
    "panel of any_of": lambda ratings: panel([any_of(*_parts(ratings)), _part(5)]),
    "mean of panels": lambda ratings: panel([panel(_parts(ratings)), _part(5)], "mean", 0.8),
    "rubric": _rubric,
    "sheet": _sheet,
    "samples": _samples("mean"),
    "vote": _samples("vote"),
    "threshold of a rubric": lambda ratings: threshold(_rubric(ratings), 0.6),
    "weighted rubric": lambda ratings: weighted((_rubric(ratings), 1), threshold=0.6),
}


@each_row("name", list(MAKERS))
@given(RATINGS)
def test_a_verdict_does_not_depend_on_a_part_that_failed(name: str, ratings: list[int | None]) -> None:
    """Whatever the failed parts would have said, the verdict is the same; otherwise there is none.

    Only `any_of` counts a failed part as not passed, as its documentation says: that verdict is marked as uncertain.
    """
    score: Score = MAKERS[name](ratings)("output")
    failed = [n for n, rating in enumerate(ratings) if rating is None]
    if not failed:
        assert score.ok
        return
    assert score.status != "skipped"
    assert score.status == "error" or find_failures(score)
    if score.ok and not (name == "any_of" and UNCERTAIN in score.details and score.passed is False):
        for values in product((1, 5), repeat=len(failed)):
            complete = list(ratings)
            for n, value in zip(failed, values, strict=True):
                complete[n] = value
            assert MAKERS[name](complete)("output").passed is score.passed


def _count_verdicts(scores: Any) -> bool:
    return sum(score.passed is True for score in scores.values()) > 1


@each_row(
    ("check", "part"),
    [
        (panel([_part(5), _part(5), _part(None)]), "quality_score_3"),
        (_rubric([None, 5, 5, 5]), "quality0"),
        (_sheet([None, 5, 5, 5]), "quality0"),
        (_samples("vote")([5, 5, None]), "opinion"),
        (combine(_parts([5, 5, None]), _count_verdicts), "quality_score_3"),
    ],
)
def test_a_run_warns_about_a_part_that_failed_beside_a_verdict(check: Any, part: str) -> None:
    """The verdict stands, but the warning names the part, and it counts for `max_errors`."""
    data = [{"id": str(n), "input": "a"} for n in range(4)]
    report = evaluate(str.upper, data, {"check": check}, history=False, progress=False)
    assert report.metadata is not None
    assert report.pass_rate == 1.0
    assert any(
        f"check has verdicts without its part {part}, which failed on 4 of 4 results" in warning
        for warning in report.metadata.warnings
    )
    with pytest.raises(RunStopped, match=f"the part '{part}' of 'check' failed"):
        evaluate(str.upper, data, {"check": check}, history=False, progress=False, max_errors=2)
