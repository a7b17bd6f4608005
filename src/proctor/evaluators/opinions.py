"""Combine several judges, compare two answers, and test judges with bad answers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from types import MappingProxyType
from typing import Any, Literal, get_args

import msgspec

from proctor.core import resources
from proctor.core.identity import compute_digest
from proctor.core.stats.agreement import fleiss_kappa, krippendorff_alpha, percent_agreement
from proctor.core.yaml_text import load_yaml
from proctor.errors import CallFailed, EvaluatorError, suggest_name
from proctor.evaluators.bound_evaluator import BoundEvaluator
from proctor.evaluators.combination import collect_uncovered, name_evaluators, score_async
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.judges.judge import check_judge_options, failed_score, run_concurrently, usage_to_data
from proctor.evaluators.judges.pairwise import DEFAULT_CRITERION, PREFERENCE, compare, summarize_preference
from proctor.evaluators.judges.templates import load_template
from proctor.evaluators.options import Model, to_data
from proctor.evaluators.score_conversion import as_error
from proctor.models.connect import provider
from proctor.ports import EvaluatorObject
from proctor.records import codec
from proctor.records.rubric import decide_mean
from proctor.records.run import EvaluatorSpec
from proctor.records.sample import Sample
from proctor.records.score import INCOMPLETE, SKIPPED_BY_DESIGN, UNCERTAIN, Score, decide_majority, drop_verdict
from proctor.records.session import Message, Session
from proctor.records.trial import EvalResult, Trial
from proctor.sessions import current as sessions

Rule = Literal["majority", "mean", "unanimous"]
VERDICTS, CANARY = "verdicts", "canary"
BAD_ANSWER = "Blah blah, no idea. I did not read the question, so this is not an answer to it."
# The value of a win, a tie and a loss.
VALUES = {"a": 1.0, "tie": 0.5, "b": 0.0}


class PanelAgreement(msgspec.Struct, frozen=True):
    """The agreement of a panel's judges over a run.

    `agreement` is the fraction of equal pairs of verdicts on the same sample; `kappa` (Fleiss) uses only the samples on
    which every judge has a verdict, `alpha` (Krippendorff) uses all samples. Both correct for chance, and are None if
    nothing varies. `pass_rates` has the base rate of each judge, which is needed to interpret them.
    """

    samples: int
    agreement: float | None
    kappa: float | None
    alpha: float | None
    pass_rates: dict[str, float]


@evaluator(category="opinions", factory=True, parts="judges")
def panel(judges: Sequence[EvaluatorObject], rule: Rule = "majority", threshold: float = 0.5) -> BoundEvaluator:
    """Asks several judges concurrently; passes if the majority passes, if their mean is high enough, or if all pass.

    Any evaluator may be a judge. The value is the mean of their values; `threshold` applies to the rule "mean" only. A
    tie is not a majority. If a judge without a verdict could change the result, the panel is an error or skipped;
    otherwise the judge is left out and listed in the details. They also contain each verdict and the agreement of the
    judges.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> score = panel([contains, exact_match], "unanimous")("hello world", "hello")
    >>> score.value, score.passed, score.details["agreement"]
    (0.5, False, 0.0)
    """
    if rule not in get_args(Rule):
        fix = suggest_name(str(rule), get_args(Rule))
        raise EvaluatorError(f"unknown rule {rule!r}", where="panel", fix=fix)
    check_judge_options("panel", threshold)
    judge_list: Any = judges
    if isinstance(judge_list, str) or not isinstance(judge_list, Sequence):
        judge_list = [judge_list]
    parts = name_evaluators(judge_list, "panel", "panel([exact_match, contains])")
    options = {"judges": to_data(list(parts.values())), "rule": rule, "threshold": threshold}

    async def score(trial: Trial) -> Score:
        scores = await _score_concurrently((judge, trial) for judge in parts.values())
        return combine_scores(dict(zip(parts, scores, strict=True)), rule, threshold)

    return _attach_judges("panel", "panel", options, score, *parts.values())


async def _score_concurrently(pairs: Iterable[tuple[BoundEvaluator, Trial]]) -> list[Score]:
    """Return the scores of several evaluators, which run concurrently with separate sessions."""
    calls = [functools.partial(score_async, judge, trial) for judge, trial in pairs]
    results = await run_concurrently(calls)
    return [result if isinstance(result, Score) else as_error(result) for result in results]


def combine_scores(scores: Mapping[str, Score], rule: Rule, threshold: float = 0.5) -> Score:
    """Combine the scores of several judges into one; without a judge that could change the verdict, there is none."""
    # The verdict, or the value, of a judge with a failed part may be another than it seems.
    gap = INCOMPLETE if rule == "mean" else UNCERTAIN
    scores = {
        name: drop_verdict(score) if gap in score.details and score.ok else score for name, score in scores.items()
    }
    scores = {name: score for name, score in scores.items() if score.reason not in SKIPPED_BY_DESIGN} or scores
    verdicts = {name: score for name, score in scores.items() if score.ok}
    failed = [name for name, score in scores.items() if score.status == "error"]
    skipped = [name for name, score in scores.items() if score.status == "skipped"]
    details = _details(scores, verdicts, failed, rule)
    passes = sum(score.passed is True for score in verdicts.values())
    passed = _decide(verdicts, len(scores), rule, threshold)
    if passed is None:
        names, verb, make = (failed, "failed", Score.error) if failed else (skipped, "skipped", Score.skipped)
        reasons = "; ".join(f"{name}: {scores[name].reason}" for name in names)
        return make(f"{len(names)} of {len(scores)} judges {verb}: {reasons}", details)
    if missing := failed + skipped:
        details[INCOMPLETE] = True
    value = fsum(score.value or 0.0 for score in verdicts.values()) / len(verdicts)
    value = min(1.0, max(0.0, value))
    reason = f"{passes} of {len(scores)} judges passed the output"
    if rule == "mean":
        comparison = "at least" if passed else "below"
        reason = f"the mean of {len(verdicts)} judges is {value:.3g}, {comparison} {threshold:g}"
    elif rule == "majority" and 2 * passes == len(scores):
        reason += ", a tie, which does not pass"
    if missing:
        reason += f"; without a verdict, which could not change the result: {', '.join(missing)}"
    judge_reasons = [f"{name}: {score.reason}" for name, score in verdicts.items() if score.reason]
    return Score(value, passed, "; ".join([reason, *judge_reasons]), details)


def _decide(verdicts: Mapping[str, Score], total: int, rule: Rule, threshold: float) -> bool | None:
    """Return whether a panel of `total` judges passes; None if the judges without a verdict could change that."""
    missing = total - len(verdicts)
    passes = sum(score.passed is True for score in verdicts.values())
    if not verdicts:
        return None
    if rule == "unanimous":
        return False if passes < len(verdicts) else None if missing else True
    if rule == "majority":
        return decide_majority(passes, missing, total)
    values = [(1.0, score.value or 0.0) for score in verdicts.values()]
    return decide_mean(values, missing, lambda mean: mean >= threshold)


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
    known_verdicts = [passed for passed in verdicts if passed is not None]
    return sum(known_verdicts) / len(known_verdicts)


@evaluator(category="opinions", factory=True, needs=("expected",))
def prefer(
    model: Model,
    criterion: str | None = None,
    *,
    rival: str | None = None,
    win_required: bool = False,
    ties: bool = False,
    show_input: bool = True,
) -> Any:
    """Asks a model, in both orders, whether the output is better than another answer.

    The other answer is the expected value, or the entry `rival` of the sample's metadata. A win is 1, a loss 0; a tie,
    or a verdict that changes with the order, is 0.5. It passes unless it loses; with `win_required`, it passes only if
    it wins. `ties` allows the judge to declare a tie.
    """
    adapter, template = provider(model), load_template("prefer")
    criterion = criterion or DEFAULT_CRITERION

    async def evaluate(output: Any, sample: Any = None) -> Score:
        if not isinstance(sample, Sample):
            # A direct call with an output and the other answer.
            sample = Sample("", None, sample)
        other = sample.expected if rival is None else sample.metadata.get(rival)
        if other is None:
            missing = "no expected value" if rival is None else f"no metadata {rival!r}"
            return Score.skipped(f"the sample has {missing} to compare with")
        question = sample.input if show_input else None
        try:
            preference = await compare(adapter, output, other, criterion=criterion, input=question, ties=ties)
        except CallFailed as error:
            return failed_score(adapter, template, [error])
        value = VALUES[preference.winner]
        usage = usage_to_data(preference.usage)
        judge = {"model": preference.model, "prompt": preference.prompt, "usage": usage}
        details = {PREFERENCE: codec.to_plain(preference), "judge": judge}
        return Score(value, value > (0.5 if win_required else 0.0), summarize_preference(preference), details)

    options = {"win_required": win_required, "ties": ties, "show_input": show_input}
    return tag_evaluator(evaluate, factory=prefer, model=adapter, criterion=criterion, rival=rival, **options)


class CanaryOutcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A judge's reaction to one planted answer.

    The judge `fell_for` it if it passed the answer, but not the same answer without the request for praise; None
    without a verdict. An answer that `passes_anyway` proves nothing.
    """

    payload: str
    fell_for: bool | None
    value: float | None = None
    reason: str = ""
    passes_anyway: bool = False


@evaluator(category="opinions", factory=True, parts="judge")
def with_canary(judge: EvaluatorObject, every: int = 10, answer: str | None = None) -> BoundEvaluator:
    """Scores like its judge, and sometimes shows the judge a bad answer that asks for praise.

    About one sample in `every` is used, selected by its id, so a resumed or replayed run uses the same samples. The
    score of the judge does not change; its details show under "canary" whether the judge accepted the bad answer, and
    the report of the run warns if it did. An answer that the judge passes is shown again without the praise: if it
    `passes_anyway`, the test proves nothing, so pass an `answer` that is bad according to the judge's criterion.
    """
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise EvaluatorError(f"every must be an integer, 1 or more, got {every!r}", where="with_canary")
    ((name, part),) = name_evaluators([judge], "with_canary").items()
    options = {"judge": to_data(part), "every": every, "answer": answer or BAD_ANSWER}
    score = _create_canary_scorer(part, every, options["answer"])
    return _attach_judges(name, "with_canary", options, score, part)


def with_canaries(evaluators: Sequence[BoundEvaluator], every: int) -> tuple[BoundEvaluator, ...]:
    """Add a canary to each judge; specs do not change, because a canary does not affect scores."""
    return tuple(
        BoundEvaluator(evaluator.spec, "async", _create_canary_scorer(evaluator, every, BAD_ANSWER), evaluator.needs)
        if evaluator.spec.judges and evaluator.group is None
        else evaluator
        for evaluator in evaluators
    )


def _create_canary_scorer(judge: BoundEvaluator, every: int, answer: str) -> Callable[[Trial], Any]:
    """Return a function that scores a trial, and also a planted answer in about one of `every` trials."""
    requests = list(payloads().items())

    async def score_with_canary(trial: Trial) -> Score:
        number = int(codec.digest(CANARY, trial.sample.id), 16)
        if number % every:
            return await score_async(judge, trial)
        name, payload = requests[number // every % len(requests)]
        planted = _replace_answer(trial, f"{answer}\n\n{payload}")
        score, planted_score = await _score_concurrently([(judge, trial), (judge, planted)])
        control = planted_score
        if planted_score.passed:
            # Only an answer that passed needs the control, which costs another call.
            (control,) = await _score_concurrently([(judge, _replace_answer(trial, answer))])
        outcome = _compare(name, planted_score, control)
        _warn(judge.spec.name, outcome)
        details = {**score.details, CANARY: codec.to_plain(outcome)}
        return msgspec.structs.replace(score, details=details)

    return score_with_canary


@functools.cache
def payloads() -> Mapping[str, str]:
    """Return the requests for praise, by name."""
    texts = load_yaml(resources.text("evaluators", "judges", "prompts", "canaries.yaml"))
    return MappingProxyType({str(name): str(text).strip() for name, text in texts.items()})


def _replace_answer(trial: Trial, answer: str) -> Trial:
    """Replace the answer of a trial; judges of sessions see a short session that ends with it."""
    session = None
    if trial.session is not None:
        messages = (event for event in trial.session if isinstance(event, Message))
        question = next((message for message in messages if message.role == "user"), None)
        session = Session(
            [question or Message("user", "What is the capital of Australia?"), Message("assistant", answer)]
        )
    return msgspec.structs.replace(trial, output=answer, session=session)


def _compare(payload: str, score: Score, control: Score) -> CanaryOutcome:
    is_known = score.ok and (control.ok or not score.passed)
    fell_for = score.passed and not control.passed if is_known else None
    passes_anyway = score.passed is True and control.passed is True
    return CanaryOutcome(payload, fell_for, score.value, score.reason, passes_anyway)


def _warn(judge: str, outcome: CanaryOutcome) -> None:
    if outcome.fell_for:
        sessions.warn(
            f"{judge} fell for a canary: it passed a bad answer that asked for praise, but not the "
            f"same answer without the request (details of its scores: {CANARY!r}). Fix: judge with "
            "another model; do not trust its verdicts on answers that address the judge"
        )
    if outcome.passes_anyway:
        sessions.warn(
            f"{judge} passes the bad answer of the canary even without a request for praise: it "
            "may pass anything. Fix: judge with another model or a clearer criterion; if the "
            "answer is not bad by the criterion, choose one that is: with_canary(judge, answer=…)"
        )


def _attach_judges(name: str, uses: str, options: dict[str, Any], score: Any, *parts: BoundEvaluator) -> BoundEvaluator:
    spec = EvaluatorSpec(name, uses, options, compute_digest([uses, options]), collect_uncovered(parts))
    return BoundEvaluator(spec, "async", score)
