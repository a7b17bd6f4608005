"""Combine several evaluators into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from msgspec.structs import replace

from proctor.core.identity import compute_digest, compute_identity
from proctor.core.names import UniqueNames
from proctor.errors import EvaluatorError, suggest_name
from proctor.evaluators.bound_evaluator import BoundEvaluator, CallMode, attach
from proctor.evaluators.decorator import evaluator
from proctor.evaluators.measurements import check_fraction
from proctor.evaluators.options import format_choices, to_data
from proctor.evaluators.plain_values import NO_OUTPUT
from proctor.evaluators.score_conversion import as_error, as_score
from proctor.ports import EvaluatorObject
from proctor.records.numbers import is_number
from proctor.records.rubric import weighted_mean
from proctor.records.run import EvaluatorSpec
from proctor.records.score import (
    INCOMPLETE,
    UNCERTAIN,
    Score,
    Skipped,
    combine_all,
    combine_any,
    drop_verdict,
    find_failures,
    find_undecided,
)
from proctor.records.trial import Trial

NamedEvaluators = dict[str, BoundEvaluator]
CombineRule = Callable[[Mapping[str, Score]], Score]


@evaluator(category="combination", factory=True, parts="evaluators")
def all_of(*evaluators: EvaluatorObject, skipped: Skipped = "skip") -> BoundEvaluator:
    """Passes if all of its evaluators pass; the value is their mean.

    If one does not pass, the combination does not pass; otherwise an error makes it an error, and a skip makes it
    skipped. `skipped="ignore"` leaves out evaluators that skip. If any evaluator is async, so is the combination.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> all_of(exact_match, contains)("hello world", "hello").value
    0.5
    """
    return _combine_by("all_of", evaluators, combine_all, skipped)


@evaluator(category="combination", factory=True, parts="evaluators")
def any_of(*evaluators: EvaluatorObject, skipped: Skipped = "skip") -> BoundEvaluator:
    """Passes if any of its evaluators passes; the value is the highest.

    If one passes, the combination passes; otherwise a skip makes it skipped. An evaluator with an error counts as not
    passed, and the details name it. `skipped="ignore"` leaves out evaluators that skip.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> any_of(exact_match, contains)("hello world", "hello").passed
    True
    """
    return _combine_by("any_of", evaluators, combine_any, skipped)


@evaluator(category="combination", factory=True, parts="evaluators")
def weighted(
    *evaluators: tuple[EvaluatorObject, float] | Mapping[Any, Any] | list[Any],
    threshold: float = 0.5,
    skipped: Skipped = "skip",
) -> BoundEvaluator:
    """Passes if the weighted mean of its evaluators reaches the threshold.

    Pass pairs (evaluator, weight), one mapping of evaluators to weights, or, in an eval file, a
    list of {evaluator, weight}. An error in one makes it an error, a skip makes it skipped;
    `skipped="ignore"` leaves out evaluators that skip.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> weighted((exact_match, 1), (contains, 3))("hello world", "hello").value
    0.75
    """
    pairs = [pair for argument in evaluators for pair in _read_pairs(argument)]
    parts = name_evaluators((part for part, _ in pairs), "weighted", "weighted((exact_match, 1), (contains, 3))")
    weights = dict(zip(parts, (_check_weight(weight) for _, weight in pairs), strict=True))
    check_fraction("weighted", "threshold", threshold)
    check_skipped(skipped, "weighted")

    def rule(scores: Mapping[str, Score]) -> Score:
        scores = {name: drop_verdict(score) if INCOMPLETE in score.details else score for name, score in scores.items()}
        combined = combine_all(scores, skipped)
        if not combined.ok:
            return combined
        # A part that does not pass does not decide here, so every part needs a value for the mean.
        errors = {name: score for name, score in scores.items() if score.status == "error"}
        if missing := errors or find_undecided(scores, skipped):
            reason = "; ".join(f"{name}: {score.reason}" for name, score in missing.items())
            return (Score.error if errors else Score.skipped)(reason, combined.details)
        values = [(weights[name], score.value) for name, score in scores.items() if score.value is not None]
        mean = min(1.0, max(0.0, weighted_mean(values)))
        details = {**combined.details, "weights": dict(weights)}
        return Score(mean, mean >= threshold, combined.reason, details)

    weighted_parts = [{"evaluator": to_data(part), "weight": weights[name]} for name, part in parts.items()]
    parameters = {"evaluators": weighted_parts, "threshold": threshold, **_skipped_parameter(skipped)}
    return _attach_combination("weighted", parts, rule, parameters)


@evaluator(category="combination", factory=True, parts="evaluator")
def negate(evaluator: EvaluatorObject) -> BoundEvaluator:
    """Passes if its evaluator does not; the value is 1 minus its value.

    Errors and skips do not change. With a built-in evaluator of outputs, a target that returned nothing (None) does not
    pass: there is nothing to judge. An evaluator of yours judges None itself.

    >>> from proctor.evaluators.matching import contains
    >>> negate(contains)("I cannot help with that", "cannot").passed
    False
    >>> negate(contains)(None, "cannot").passed
    False
    """
    parts = name_evaluators([evaluator], "negate")
    (name,) = parts

    def rule(scores: Mapping[str, Score]) -> Score:
        score = scores[name]
        if score.value is None:
            return score
        if UNCERTAIN in score.details:
            return drop_verdict(score)
        if score.reason == NO_OUTPUT:
            return score
        reason = f"negated: {score.reason}" if score.reason else ""
        return Score(1.0 - score.value, not score.passed, reason, {"parts": dict(scores)})

    return _attach_combination("negate", parts, rule, {"evaluator": to_data(parts[name])}, f"not-{name}")


@evaluator(category="combination", factory=True, parts="evaluator")
def threshold(evaluator: EvaluatorObject, threshold: float) -> BoundEvaluator:
    """Passes if the value of its evaluator is at least `threshold`.

    >>> from proctor.evaluators.matching import contains
    >>> threshold(contains, 0.6)("red and green", ["red", "green", "blue"]).passed
    True
    """
    parts = name_evaluators([evaluator], "threshold")
    (name,) = parts
    check_fraction("threshold", "threshold", threshold)

    def rule(scores: Mapping[str, Score]) -> Score:
        score = scores[name]
        if score.value is None:
            return score
        if INCOMPLETE in score.details:
            return drop_verdict(score)
        return Score(score.value, score.value >= threshold, score.reason, score.details)

    parameters = {"evaluator": to_data(parts[name]), "threshold": threshold}
    return _attach_combination("threshold", parts, rule, parameters, name)


def combine(
    parts: Sequence[EvaluatorObject] | Mapping[str, EvaluatorObject],
    function: Callable[[Mapping[str, Score]], Any],
    *,
    name: str = "combine",
) -> BoundEvaluator:
    """Combine evaluators with your own function.

    The function gets a mapping of names to scores, including errors and skips. It returns a score,
    a boolean, a number from 0 to 1, or a mapping with passed and score.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> def lenient(scores):
    ...     return max(score.value for score in scores.values())
    >>> combine([exact_match, contains], lenient)("hello world", "hello").value
    1.0
    """
    if not callable(function):
        raise EvaluatorError(f"function must take the scores by name, got {function!r}", where=name)
    if isinstance(parts, Mapping):
        parts = [attach(part, name=key) for key, part in parts.items()]
    named_parts = name_evaluators(parts, name, "combine([exact_match, contains], function)")
    parameters = {"evaluators": to_data(list(named_parts.values())), "function": to_data(function)}
    combined = _attach_combination("combine", named_parts, make_rule(function), parameters, name)
    identity, uncovered, _ = compute_identity([function, combined.spec.identity])
    uncovered = tuple(dict.fromkeys((*uncovered, *combined.spec.uncovered)))
    combined.spec = EvaluatorSpec(name, "combine", parameters, identity, uncovered)
    return combined


def make_rule(function: Callable[[Mapping[str, Score]], Any]) -> CombineRule:
    """Wrap a user's function so that it always returns a score."""

    def rule(scores: Mapping[str, Score]) -> Score:
        try:
            score = as_score(function(scores))
        except (Exception, SystemExit) as error:
            return as_error(error)
        if any(find_failures(part) or part.status == "error" for part in scores.values()):
            # The failure of a part stays visible, whatever the function makes of it.
            return replace(score, details={**score.details, "parts": dict(scores)})
        return score

    return rule


def name_evaluators(evaluators: Iterable[EvaluatorObject], label: str, example: str = "") -> NamedEvaluators:
    """Attach the evaluators of a combination and give each a unique name."""
    parts: NamedEvaluators = {}
    names = UniqueNames("_")
    for part in map(attach, evaluators):
        name = names.make_unique(part.spec.name)
        parts[name] = part if name == part.spec.name else part.with_name(name)
    if not parts:
        fix = f"pass at least one, as in {example or f'{label}(exact_match, contains)'}"
        raise EvaluatorError("no evaluator is given", where=label, fix=fix)
    return parts


def check_skipped(skipped: Any, label: str) -> None:
    """Raise an error for anything but "skip" and "ignore"."""
    choices = list(get_args(Skipped))
    if skipped not in choices:
        what = f"skipped must be {format_choices(choices)}, got {skipped!r}"
        raise EvaluatorError(what, where=label, fix=suggest_name(str(skipped), choices))


def _combine_by(
    uses: str,
    evaluators: Iterable[EvaluatorObject],
    combine: Callable[[Mapping[str, Score], Skipped], Score],
    skipped: Skipped,
) -> BoundEvaluator:
    parts = name_evaluators(evaluators, uses)
    check_skipped(skipped, uses)
    parameters = {"evaluators": to_data(list(parts.values())), **_skipped_parameter(skipped)}
    return _attach_combination(uses, parts, lambda scores: combine(scores, skipped), parameters)


def _skipped_parameter(skipped: Skipped) -> dict[str, Any]:
    # The default is left out, so that identities from before this option stay the same.
    return {} if skipped == "skip" else {"skipped": skipped}


def _attach_combination(
    uses: str, parts: NamedEvaluators, rule: CombineRule, parameters: dict[str, Any], name: str | None = None
) -> BoundEvaluator:
    identity = compute_digest([uses, parameters])
    spec = EvaluatorSpec(name or uses, uses, parameters, identity, collect_uncovered(parts.values()))
    return BoundEvaluator(spec, *combine_scorers(parts, rule), collect_needs(parts))


def collect_uncovered(parts: Iterable[BoundEvaluator]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(phrase for part in parts for phrase in part.spec.uncovered))


def combine_scorers(parts: NamedEvaluators, rule: CombineRule) -> tuple[CallMode, Callable[[Trial], Any]]:
    """Return a function that calls several evaluators as one: async if any of them is, inline only if all are."""
    modes = {part.mode for part in parts.values()}

    def score(trial: Trial) -> Score:
        return rule({name: part.score(trial) for name, part in parts.items()})

    async def score_concurrently(trial: Trial) -> Score:
        import asyncio

        scores = await asyncio.gather(*(score_async(part, trial) for part in parts.values()))
        return rule(dict(zip(parts, scores, strict=True)))

    if "async" in modes:
        return "async", score_concurrently
    mode: CallMode = "thread" if "thread" in modes else "compute" if "compute" in modes else "inline"
    return mode, score


def collect_needs(parts: NamedEvaluators) -> frozenset[str]:
    return frozenset().union(*(part.needs for part in parts.values()))


async def score_async(part: BoundEvaluator, trial: Trial) -> Score:
    """Await the score of any evaluator, in a thread if it may block."""
    from proctor.core.threads import compute, run_in_thread

    if part.mode in ("compute", "thread"):
        run = compute if part.mode == "compute" else run_in_thread
        return await run(part.score, trial)  # type: ignore[no-any-return]
    score = part.score(trial)
    return await score if part.mode == "async" else score  # type: ignore[no-any-return]


def _read_pairs(argument: Any) -> list[tuple[Any, Any]]:
    if isinstance(argument, Mapping):
        if set(argument) == {"evaluator", "weight"}:
            return [(argument["evaluator"], argument["weight"])]
        return list(argument.items())
    if isinstance(argument, list | tuple) and len(argument) == 2:
        return [(argument[0], argument[1])]
    raise EvaluatorError(
        f"an evaluator without a weight: {argument!r}",
        where="weighted",
        fix="write pairs, weighted((exact_match, 1), (contains, 2)), or {evaluator, weight}",
    )


def _check_weight(weight: Any) -> float:
    if not is_number(weight) or weight <= 0:
        raise EvaluatorError(f"a weight must be a number greater than 0, got {weight!r}", where="weighted")
    return float(weight)
