"""A panel: asks several judges at once, decides by one rule, and measures their agreement."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from math import fsum
from typing import Any, Literal

import msgspec

from proctor.core.stats.agreement import fleiss_kappa, krippendorff_alpha, percent_agreement
from proctor.evaluators.bound_evaluator import BoundEvaluator
from proctor.evaluators.combination import NamedEvaluators, score_async
from proctor.evaluators.judges.opinion import run_concurrently
from proctor.evaluators.score_conversion import as_error
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial

Rule = Literal["majority", "mean", "unanimous"]
RULES: tuple[Rule, ...] = ("majority", "mean", "unanimous")
VERDICTS = "verdicts"


class PanelAgreement(msgspec.Struct, frozen=True):
    """The agreement of a panel's judges over a run.

    `agreement` is the fraction of equal pairs of verdicts on the same sample; `kappa` (Fleiss) uses only
    the samples on which every judge has a verdict, `alpha` (Krippendorff) all of them. Both correct for
    chance, and are None if nothing varies. `pass_rates` has the base rate of each judge, which is needed
    to interpret them.
    """

    samples: int
    agreement: float | None
    kappa: float | None
    alpha: float | None
    pass_rates: dict[str, float]


def create_panel_scorer(judges: NamedEvaluators, rule: Rule, threshold: float) -> Callable[[Trial], Any]:
    """Return the function by which a panel scores a trial."""

    async def score(trial: Trial) -> Score:
        scores = await score_concurrently((judge, trial) for judge in judges.values())
        return combine_scores(dict(zip(judges, scores, strict=True)), rule, threshold)

    return score


async def score_concurrently(pairs: Iterable[tuple[BoundEvaluator, Trial]]) -> list[Score]:
    """Return the scores of several evaluators, which run at once with separate sessions."""
    calls = [functools.partial(score_async, judge, trial) for judge, trial in pairs]
    results = await run_concurrently(calls)
    return [result if isinstance(result, Score) else as_error(result) for result in results]


def combine_scores(scores: Mapping[str, Score], rule: Rule, threshold: float = 0.5) -> Score:
    """Combine the scores of several judges into one.

    >>> scores = {"a": Score(1.0, True), "b": Score(0.75, True), "c": Score(0.0, False)}
    >>> combine_scores(scores, "majority").passed, combine_scores(scores, "unanimous").passed
    (True, False)
    """
    verdicts = {name: score for name, score in scores.items() if score.ok}
    failed = [name for name, score in scores.items() if score.status == "error"]
    skipped = [name for name, score in scores.items() if score.status == "skipped"]
    details = _details(scores, verdicts, failed, rule)
    passes = sum(score.passed is True for score in verdicts.values())
    # As in `all_of`: a failing verdict decides, otherwise a missing verdict leaves the result open. With
    # the other rules the judges with a verdict decide, if they are at least half of all.
    missing = len(scores) - len(verdicts)
    is_open = passes == len(verdicts) if rule == "unanimous" else missing > len(verdicts)
    if failed and is_open:
        reasons = "; ".join(f"{name}: {scores[name].reason}" for name in failed)
        return Score.error(f"{len(failed)} of {len(scores)} judges failed: {reasons}", details)
    if skipped and (is_open or not verdicts):
        reasons = "; ".join(f"{name}: {scores[name].reason}" for name in skipped)
        return Score.skipped(f"{len(skipped)} of {len(scores)} judges skipped: {reasons}", details)
    value = fsum(score.value or 0.0 for score in verdicts.values()) / len(verdicts)
    value = min(1.0, max(0.0, value))
    passed = {
        "majority": 2 * passes > len(verdicts),
        "unanimous": passes == len(verdicts),
        "mean": value >= threshold,
    }[rule]
    reason = f"{passes} of {len(verdicts)} judges passed it"
    if rule == "mean":
        comparison = f"{'no less' if passed else 'less'} than {threshold:g}"
        reason = f"the mean of {len(verdicts)} judges is {value:.3g}, {comparison}"
    elif rule == "majority" and 2 * passes == len(verdicts):
        reason += ", a tie, which does not pass"
    if failed:
        reason += f"; left out because they failed: {', '.join(failed)}"
    single = [f"{name}: {score.reason}" for name, score in verdicts.items() if score.reason]
    return Score(value, passed, "; ".join([reason, *single]), details)


def panel_agreement(results: Iterable[EvalResult], name: str = "panel") -> PanelAgreement:
    """Measure the agreement of a panel's judges, over the results of a run or a report's `results`.

    >>> panel_agreement([]).agreement is None
    True
    """
    scores = (result.scores.get(name) for result in results)
    verdicts = [score.details.get(VERDICTS) or {} for score in scores if score is not None]
    judges = list(dict.fromkeys(judge for by_judge in verdicts for judge in by_judge))
    rows = [[by_judge.get(judge) for judge in judges] for by_judge in verdicts if by_judge]
    columns = zip(judges, zip(*rows, strict=True), strict=True)
    return PanelAgreement(
        len(rows),
        percent_agreement(rows),
        fleiss_kappa(row for row in rows if None not in row),
        krippendorff_alpha(rows),
        {judge: _pass_rate(column) for judge, column in columns},
    )


def _details(
    scores: Mapping[str, Score], verdicts: Mapping[str, Score], failed: list[str], rule: Rule
) -> dict[str, Any]:
    passed = {name: score.passed for name, score in verdicts.items()}
    details: dict[str, Any] = {"rule": rule, VERDICTS: passed, "parts": dict(scores)}
    agreement = percent_agreement([list(passed.values())])
    if agreement is not None:
        details["agreement"] = agreement
    if failed:
        details["failed"] = failed
    return details


def _pass_rate(verdicts: Iterable[bool | None]) -> float:
    known = [passed for passed in verdicts if passed is not None]
    return sum(known) / len(known)
