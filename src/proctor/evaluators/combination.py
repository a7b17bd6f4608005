"""Combination: several evaluators as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from proctor.core.identity import examine, identity_of
from proctor.errors import EvaluatorError, nearest
from proctor.evaluators.attached import Attached, Mode, attach
from proctor.evaluators.marking import evaluator
from proctor.evaluators.options import data_of
from proctor.evaluators.verdict import as_error, as_score
from proctor.records.numbers import is_fraction, is_number
from proctor.records.run import EvaluatorSpec
from proctor.records.score import (
    INCOMPLETE,
    UNCERTAIN,
    Score,
    Skipped,
    combine_all,
    combine_any,
    undecided,
    without_verdict,
)
from proctor.records.trial import Trial

Parts = dict[str, Attached]
Rule = Callable[[Mapping[str, Score]], Score]


@evaluator(category="combination", factory=True, parts="evaluators")
def all_of(*evaluators: Any, skipped: Skipped = "skip") -> Attached:
    """Passes if all of its evaluators pass; the value is their mean.

    One that did not pass decides; else an error makes it an error, and one that skipped makes it
    skipped. `skipped="ignore"` leaves out those that skip. If any is async, so is the combination.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> all_of(exact_match, contains)("hello world", "hello").value
    0.5
    """
    return _by_rule("all_of", evaluators, combine_all, skipped)


@evaluator(category="combination", factory=True, parts="evaluators")
def any_of(*evaluators: Any, skipped: Skipped = "skip") -> Attached:
    """Passes if any of its evaluators passes; the value is the greatest.

    One that passed decides; else one that skipped makes it skipped. One that fails counts as not
    passed, and the details name it. `skipped="ignore"` leaves out those that skip.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> any_of(exact_match, contains)("hello world", "hello").passed
    True
    """
    return _by_rule("any_of", evaluators, combine_any, skipped)


@evaluator(category="combination", factory=True, parts="evaluators")
def weighted(*evaluators: Any, threshold: float = 0.5, skipped: Skipped = "skip") -> Attached:
    """Passes if the weighted mean of its evaluators reaches the threshold.

    Give pairs (evaluator, weight), one mapping of evaluators to weights, or, in an eval file, a
    list of {evaluator, weight}. One that fails makes it an error, one that skips makes it skipped;
    `skipped="ignore"` leaves out those that skip.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> weighted((exact_match, 1), (contains, 3))("hello world", "hello").value
    0.75
    """
    pairs = [pair for given in evaluators for pair in _pairs(given)]
    things = [thing for thing, _ in pairs]
    parts = parts_of(things, "weighted", "weighted((exact_match, 1), (contains, 3))")
    weights = dict(zip(parts, (_weight(weight) for _, weight in pairs), strict=True))
    _check_threshold(threshold, "weighted")
    check_skipped(skipped, "weighted")

    def rule(scores: Mapping[str, Score]) -> Score:
        scores = {
            name: without_verdict(score) if INCOMPLETE in score.details else score
            for name, score in scores.items()
        }
        together = combine_all(scores, skipped)
        if not together.ok:
            return together
        # Here a part that did not pass does not decide: the mean lacks every part without a value.
        errors = {name: score for name, score in scores.items() if score.status == "error"}
        if missing := errors or undecided(scores, skipped):
            reason = "; ".join(f"{name}: {score.reason}" for name, score in missing.items())
            return (Score.error if errors else Score.skipped)(reason, together.details)
        told = {name: score.value for name, score in scores.items() if score.value is not None}
        total = math.fsum(weights[name] for name in told)
        value = math.fsum(weights[name] * value for name, value in told.items()) / total
        value = min(1.0, max(0.0, value))
        details = {**together.details, "weights": dict(weights)}
        return Score(value, value >= threshold, together.reason, details)

    listed = [{"evaluator": data_of(part), "weight": weights[name]} for name, part in parts.items()]
    parameters = {"evaluators": listed, "threshold": threshold, **_unless_usual(skipped)}
    return _combined("weighted", parts, rule, parameters=parameters)


@evaluator(category="combination", factory=True, parts="evaluator")
def negate(evaluator: Any) -> Attached:
    """Passes if its evaluator does not; the value is 1 minus its value.

    Errors and skips stay what they are: not knowing is not a pass.

    >>> from proctor.evaluators.matching import contains
    >>> negate(contains)("I cannot help with that", "cannot").passed
    False
    """
    parts = parts_of([evaluator], "negate")
    (name,) = parts

    def rule(scores: Mapping[str, Score]) -> Score:
        score = scores[name]
        if score.value is None:
            return score
        if UNCERTAIN in score.details:
            return without_verdict(score)
        reason = f"negated: {score.reason}" if score.reason else ""
        return Score(1.0 - score.value, not score.passed, reason, {"parts": dict(scores)})

    return _combined(
        "negate", parts, rule, name=f"not-{name}", parameters={"evaluator": data_of(parts[name])}
    )


@evaluator(category="combination", factory=True, parts="evaluator")
def threshold(evaluator: Any, at_least: float) -> Attached:
    """Passes if the value of its evaluator is at least so much.

    >>> from proctor.evaluators.matching import contains
    >>> threshold(contains, 0.6)("red and green", ["red", "green", "blue"]).passed
    True
    """
    parts = parts_of([evaluator], "threshold")
    (name,) = parts
    _check_threshold(at_least, "threshold")

    def rule(scores: Mapping[str, Score]) -> Score:
        score = scores[name]
        if score.value is None:
            return score
        if INCOMPLETE in score.details:
            return without_verdict(score)
        return Score(score.value, score.value >= at_least, score.reason, score.details)

    parameters = {"evaluator": data_of(parts[name]), "at_least": at_least}
    return _combined("threshold", parts, rule, name=name, parameters=parameters)


def combine(
    parts: Sequence[Any] | Mapping[str, Any],
    function: Callable[[Mapping[str, Score]], Any],
    *,
    name: str = "combine",
) -> Attached:
    """Combine evaluators by a function of your own.

    It gets a mapping of names to scores, errors and skips among them, and returns a score, or
    anything that makes one: a boolean, a number from 0 to 1, a mapping with passed and score.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> def lenient(scores):
    ...     return max(score.value for score in scores.values())
    >>> combine([exact_match, contains], lenient)("hello world", "hello").value
    1.0
    """
    if not callable(function):
        raise EvaluatorError(f"a combination is a function of the scores, got {function!r}", where=name)
    if isinstance(parts, Mapping):
        parts = [attach(part, name=key) for key, part in parts.items()]
    settled = parts_of(parts, name, "combine([exact_match, contains], function)")
    rule = rule_of(function)
    parameters = {"evaluators": data_of(list(settled.values())), "function": data_of(function)}
    made = _combined("combine", settled, rule, name=name, parameters=parameters)
    identity, uncovered = examine([function, made.spec.identity])
    uncovered = tuple(dict.fromkeys((*uncovered, *made.spec.uncovered)))
    spec = EvaluatorSpec(name, "combine", parameters, identity, uncovered)
    return Attached(spec, made.mode, made.score, made.needs)


def rule_of(function: Callable[[Mapping[str, Score]], Any]) -> Rule:
    """A function of the scores as a rule: what it returns is held to what a score is."""

    def rule(scores: Mapping[str, Score]) -> Score:
        try:
            return as_score(function(scores))
        except (Exception, SystemExit) as error:
            return as_error(error)

    return rule


def parts_of(evaluators: Iterable[Any], label: str, example: str = "") -> Parts:
    """The evaluators of a combination, each under a name of its own.

    `example` is how to write one, where that is not `label(exact_match, contains)`.
    """
    parts: Parts = {}
    for thing in evaluators:
        part = attach(thing)
        name, count = part.spec.name, 1
        while name in parts:
            count += 1
            name = f"{part.spec.name}_{count}"
        parts[name] = part if name == part.spec.name else part.known_by(name)
    if not parts:
        raise EvaluatorError(
            "a combination of no evaluators says nothing",
            where=label,
            fix=f"give at least one, as in {example or f'{label}(exact_match, contains)'}",
        )
    return parts


def check_skipped(skipped: Any, label: str) -> None:
    """Refuse anything but "skip" and "ignore"."""
    if skipped not in get_args(Skipped):
        raise EvaluatorError(
            f"`skipped` is {skipped!r}", where=label, fix=f"{nearest(str(skipped), ['skip', 'ignore'])}"
        )


def _by_rule(
    uses: str,
    evaluators: Iterable[Any],
    combine: Callable[[Mapping[str, Score], Skipped], Score],
    skipped: Skipped,
) -> Attached:
    parts = parts_of(evaluators, uses)
    check_skipped(skipped, uses)
    parameters = {"evaluators": data_of(list(parts.values())), **_unless_usual(skipped)}
    return _combined(uses, parts, lambda scores: combine(scores, skipped), parameters=parameters)


def _unless_usual(skipped: Skipped) -> dict[str, Any]:
    """The option as a parameter; left out at its default, so that identities stay the same."""
    return {} if skipped == "skip" else {"skipped": skipped}


def _combined(
    uses: str, parts: Parts, rule: Rule, *, name: str | None = None, parameters: Mapping[str, Any]
) -> Attached:
    """One evaluator out of several: async if any is, and quick only if all are."""
    data = dict(parameters)
    identity = identity_of([uses, data])
    spec = EvaluatorSpec(name or uses, uses, data, identity, uncovered_by(parts.values()))
    mode, score = scored_together(parts, rule)
    return Attached(spec, mode, score, needs_of(parts))


def uncovered_by(parts: Iterable[Attached]) -> tuple[str, ...]:
    """What the identities of some evaluators do not cover, together."""
    return tuple(dict.fromkeys(phrase for part in parts for phrase in part.spec.uncovered))


def scored_together(parts: Parts, rule: Rule) -> tuple[Mode, Callable[[Trial], Any]]:
    """How several evaluators are called as one: waiting if any waits, quick only if all are."""
    modes = {part.mode for part in parts.values()}
    if "async" in modes:
        return "async", _score_together(parts, rule)

    def score(trial: Trial) -> Score:
        return rule({name: part.score(trial) for name, part in parts.items()})

    return "thread" if "thread" in modes else "inline", score


def needs_of(parts: Parts) -> frozenset[str]:
    """What any of the parts looks at beside the trial."""
    return frozenset().union(*(part.needs for part in parts.values()))


def _score_together(parts: Parts, rule: Rule) -> Callable[[Trial], Any]:
    """All parts at once, for they wait; the order of the scores is that of the parts."""
    # Whoever awaits a score has it loaded; the others need not wait for the import.
    import asyncio

    async def score(trial: Trial) -> Score:
        scores = await asyncio.gather(*(score_later(part, trial) for part in parts.values()))
        return rule(dict(zip(parts, scores, strict=True)))

    return score


async def score_later(part: Attached, trial: Trial) -> Score:
    """The score of any evaluator to be awaited, in a thread if it may block."""
    from proctor.core.threads import in_thread

    if part.mode == "thread":
        return await in_thread(part.score, trial)  # type: ignore[no-any-return]
    found = part.score(trial)
    return await found if part.mode == "async" else found  # type: ignore[no-any-return]


def _pairs(given: Any) -> list[tuple[Any, Any]]:
    """Evaluators with their weights, from any of the ways to write them."""
    if isinstance(given, Mapping):
        if set(given) == {"evaluator", "weight"}:
            return [(given["evaluator"], given["weight"])]
        return list(given.items())
    if isinstance(given, list | tuple) and len(given) == 2:
        return [(given[0], given[1])]
    raise EvaluatorError(
        f"an evaluator without a weight: {given!r}",
        where="weighted",
        fix="write pairs, weighted((exact_match, 1), (contains, 2)), or {evaluator, weight}",
    )


def _weight(weight: Any) -> float:
    if not is_number(weight) or weight <= 0:
        raise EvaluatorError(f"a weight is a number above 0, got {weight!r}", where="weighted")
    return float(weight)


def _check_threshold(value: Any, label: str) -> None:
    if not is_fraction(value):
        raise EvaluatorError(f"a threshold is from 0 to 1, got {value!r}", where=label)
