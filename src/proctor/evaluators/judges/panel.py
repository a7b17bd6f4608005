"""A panel: several judges are asked at once, one rule decides, and how far they agree is told."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from math import fsum
from typing import Any, Literal

import msgspec

from proctor.core.stats.agreement import fleiss_kappa, krippendorff_alpha, percent_agreement
from proctor.evaluators.attached import Attached
from proctor.evaluators.combination import Parts, score_later
from proctor.evaluators.judges.opinion import side_by_side
from proctor.evaluators.verdict import as_error
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial

Rule = Literal["majority", "mean", "unanimous"]
RULES: tuple[Rule, ...] = ("majority", "mean", "unanimous")
VERDICTS = "verdicts"


class PanelAgreement(msgspec.Struct, frozen=True):
    """How far the judges of a panel agreed over a whole run.

    `agreement` is the share of all pairs of verdicts on one sample that are the same; `kappa`
    (Fleiss) takes only the samples on which every judge had a verdict, `alpha` (Krippendorff) all
    of them. Both are beyond chance, and None where nothing varies. `pass_rates` tells the base
    rate of each judge, without which neither can be read.
    """

    samples: int
    agreement: float | None
    kappa: float | None
    alpha: float | None
    pass_rates: dict[str, float]


def panel_score(judges: Parts, rule: Rule, threshold: float) -> Callable[[Trial], Any]:
    """How a panel scores a trial."""

    async def score(trial: Trial) -> Score:
        scores = await ask_all((judge, trial) for judge in judges.values())
        return settle(dict(zip(judges, scores, strict=True)), rule, threshold)

    return score


async def ask_all(asked: Iterable[tuple[Attached, Trial]]) -> list[Score]:
    """The scores of several evaluators, asked at once, each with an exchange of its own."""
    asks = [functools.partial(score_later, judge, trial) for judge, trial in asked]
    found = await side_by_side(asks)
    return [one if isinstance(one, Score) else as_error(one) for one in found]


def settle(scores: Mapping[str, Score], rule: Rule, threshold: float = 0.5) -> Score:
    """One score out of those of several judges.

    >>> told = {"a": Score(1.0, True), "b": Score(0.75, True), "c": Score(0.0, False)}
    >>> settle(told, "majority").passed, settle(told, "unanimous").passed
    (True, False)
    """
    verdicts = {name: score for name, score in scores.items() if score.ok}
    failed = [name for name, score in scores.items() if score.status == "error"]
    silent = [name for name, score in scores.items() if score.status == "skipped"]
    details = _details(scores, verdicts, failed, rule)
    passes = sum(score.passed is True for score in verdicts.values())
    # As in `all_of`: one who does not pass it decides, else one without a verdict leaves it open.
    # By another rule the judges with a verdict decide, if they are at least half of all.
    missing = len(scores) - len(verdicts)
    undecided = passes == len(verdicts) if rule == "unanimous" else missing > len(verdicts)
    if failed and undecided:
        reasons = "; ".join(f"{name}: {scores[name].reason}" for name in failed)
        return Score.error(f"{len(failed)} of {len(scores)} judges failed: {reasons}", details)
    if silent and (undecided or not verdicts):
        reasons = "; ".join(f"{name}: {scores[name].reason}" for name in silent)
        return Score.skipped(f"{len(silent)} of {len(scores)} judges skipped: {reasons}", details)
    value = fsum(score.value or 0.0 for score in verdicts.values()) / len(verdicts)
    value = min(1.0, max(0.0, value))
    passed = {
        "majority": 2 * passes > len(verdicts),
        "unanimous": passes == len(verdicts),
        "mean": value >= threshold,
    }[rule]
    if rule == "mean":
        against = f"{'no less' if passed else 'less'} than {threshold:g}"
        told = f"the mean of {len(verdicts)} judges is {value:.3g}, {against}"
    else:
        told = f"{passes} of {len(verdicts)} judges passed it"
    if rule == "majority" and 2 * passes == len(verdicts):
        told += ", a tie, which does not pass"
    return Score(value, passed, _reason(told, verdicts, failed), details)


def panel_agreement(results: Iterable[EvalResult], name: str = "panel") -> PanelAgreement:
    """How far the judges of a panel agreed, over the results of a run or a report's `results`.

    >>> panel_agreement([]).agreement is None
    True
    """
    scores = (result.scores.get(name) for result in results)
    told = [score.details.get(VERDICTS) or {} for score in scores if score is not None]
    judges = list(dict.fromkeys(judge for verdicts in told for judge in verdicts))
    rows = [[verdicts.get(judge) for judge in judges] for verdicts in told if verdicts]
    by_judge = zip(judges, zip(*rows, strict=True), strict=True)
    return PanelAgreement(
        len(rows),
        percent_agreement(rows),
        fleiss_kappa(row for row in rows if None not in row),
        krippendorff_alpha(rows),
        {judge: _rate(column) for judge, column in by_judge},
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


def _reason(outcome: str, verdicts: Mapping[str, Score], failed: list[str]) -> str:
    told = [outcome]
    if failed:
        told.append(f"left out because they failed: {', '.join(failed)}")
    told += [f"{name}: {score.reason}" for name, score in verdicts.items() if score.reason]
    return "; ".join(told)


def _rate(verdicts: Iterable[bool | None]) -> float:
    known = [passed for passed in verdicts if passed is not None]
    return sum(known) / len(known)
