"""Test evaluators with mutants: which planted faults they notice, and which harmless changes they complain about."""

from __future__ import annotations

import hashlib
import heapq
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil
from typing import Any

import msgspec

from proctor.metrics.estimates import estimate_clustered_rate, estimate_rate
from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.records.results import Column, Results, list_shared_clusters
from proctor.records.run import EvaluatorSpec
from proctor.records.score import Score
from proctor.records.session import ModelCall
from proctor.records.trial import EvalResult, Trial
from proctor.validity.mutations import MUTATIONS, UNCHANGED, Kind, Mutant, Mutation, Part, mutate
from proctor.validity.text_mutations import mark_changes

PARTS: tuple[Part, ...] = ("output", "session")
# How many outputs are scored at most for each output to change, if the run has no verdicts of a rule.
CANDIDATES_PER_OUTPUT = 20
# Scores trials with one evaluator; None for a trial that a budget left out.
ScoreTrials = Callable[[str, Sequence[Trial]], Sequence[Score | None]]


class MutationPlan(msgspec.Struct):
    """The mutants that one evaluator will score.

    `passed` counts the trials that it passed, None if the run has no such verdicts: then the `trials` are scored first,
    and only the mutants of those that pass are used. A rule has more `trials` than `sample_size`: they are scored until
    enough of them pass, and only then `mutants` are made.
    """

    spec: EvaluatorSpec
    passed: int | None
    trials: list[Trial]
    mutants: list[Mutant]
    not_applied: Counter[str]
    calls_per_verdict: float = 0.0
    left_out: int = 0
    mutations: Sequence[Mutation] = ()
    sample_size: int = 0
    seed: int = 0

    @property
    def calls(self) -> int:
        """The number of model calls to expect, at most."""
        verdicts = len(self.mutants) + (len(self.trials) if self.passed is None else 0)
        return ceil(verdicts * self.calls_per_verdict)


class MutantVerdict(msgspec.Struct, frozen=True):
    """A mutant that an evaluator scored; `marked` shows the changed words."""

    mutation: str
    sample_id: str
    configuration: str
    epoch: int
    marked: str
    reason: str = ""


class MutationRow(msgspec.Struct, frozen=True):
    """The verdicts on the mutants of one mutation: `rate` is the share that no longer passed."""

    mutation: str
    kind: Kind
    part: Part
    rate: MetricValue
    not_applied: int = 0


class EvaluatorMutations(msgspec.Struct, frozen=True):
    """How one evaluator judged its mutants.

    `kills` are the shares of noticed faults by part of the trial; `false_alarms` is the share of harmless changes that
    it failed, and `instability` the share of unchanged outputs that a judge failed when it was asked again. `left_out`
    counts the mutants that a limit on calls left out.
    """

    evaluator: str
    judges: tuple[str, ...]
    trials: int
    passed: int | None
    rows: list[MutationRow]
    kills: dict[str, MetricValue]
    false_alarms: MetricValue
    instability: MetricValue | None
    survivors: list[MutantVerdict]
    alarms: list[MutantVerdict]
    left_out: int = 0

    @property
    def strength(self) -> MetricValue | None:
        """The kill rate on the part of the trial where the evaluator notices most."""
        known = [kills for kills in self.kills.values() if kills.value is not None]
        return max(known, key=lambda kills: kills.value or 0.0, default=None)


class MutationReport(msgspec.Struct, frozen=True):
    """The evaluators of a run, tested with mutants.

    `any_evaluator` is the share of faults that at least one evaluator noticed, among those put to all of them.
    `undecided` counts the faults in it that nobody noticed while an evaluator gave no verdict (an error, say), and
    `not_shared` the faults that only some evaluators were asked about.
    """

    run_id: str
    run_name: str
    seed: int
    evaluators: list[EvaluatorMutations]
    any_evaluator: MetricValue | None
    weakest: str | None
    answer: str
    undecided: int = 0
    not_shared: int = 0


def plan_mutants(
    spec: EvaluatorSpec,
    results: Results,
    *,
    is_scored: bool,
    sample_size: int = 50,
    seed: int = 0,
    mutations: Iterable[Mutation] = MUTATIONS.values(),
) -> MutationPlan:
    """Draw trials that the evaluator passed, and apply every mutation to each.

    The draw depends only on the seed and the trials, so evaluators with the same passed trials get the same mutants.
    """
    passed = 0
    calls: list[int] = []

    def candidates() -> Iterator[EvalResult]:
        nonlocal passed
        for result in results:
            score = result.scores.get(spec.name)
            if result.success and (not is_scored or (score is not None and score.passed)):
                passed += 1
                yield result

    judges = spec.judges_inside
    pool = sample_size if is_scored or judges else sample_size * CANDIDATES_PER_OUTPUT
    drawn = heapq.nsmallest(pool, candidates(), key=lambda result: _draw_key(result.trial, seed))
    for result in drawn:
        sessions = [s for name, s in result.sessions.items() if name.partition(".")[0] == spec.name]
        calls += [sum(len(session[ModelCall]) for session in sessions)] if sessions else []
    per_verdict = (sum(calls) / len(calls) if calls else 1.0) if judges else 0.0
    plan = MutationPlan(
        spec, passed if is_scored else None, [result.trial for result in drawn], [], Counter(), per_verdict,
        mutations=[*mutations, *([UNCHANGED] if judges else [])], sample_size=sample_size, seed=seed,
    )  # fmt: skip
    if is_scored or judges:
        _make_mutants(plan)
    return plan


def _make_mutants(plan: MutationPlan) -> None:
    for trial in plan.trials:
        for mutation in plan.mutations:
            mutant = mutate(trial, mutation, plan.seed)
            if mutant is None:
                plan.not_applied[mutation.name] += 1
            else:
                plan.mutants.append(mutant)


def limit_calls(plans: Sequence[MutationPlan], max_calls: int) -> None:
    """Leave out mutants of judges until the expected calls fit; the mutants that stay are spread over the mutations."""
    judged = [plan for plan in plans if plan.calls_per_verdict]
    share = max_calls // max(1, len(judged))
    for plan in judged:
        if plan.calls > share:
            verdicts = int(share / plan.calls_per_verdict)
            first = 0
            if plan.passed is None:
                # Half of the verdicts tell which outputs pass.
                plan.trials = plan.trials[: max(1, verdicts // 2)]
                first, drawn = len(plan.trials), {_trial_key(trial) for trial in plan.trials}
                plan.mutants = [mutant for mutant in plan.mutants if _trial_key(mutant.trial) in drawn]
            order = sorted(plan.mutants, key=lambda mutant: _draw_key(mutant.trial, mutant.mutation.name))
            mutants = order[: max(0, verdicts - first)]
            plan.left_out, plan.mutants = len(order) - len(mutants), mutants


def run_mutation_test(
    plans: Sequence[MutationPlan], score: ScoreTrials, *, run_id: str = "", run_name: str = "", seed: int = 0
) -> MutationReport:
    """Score the mutants of every plan, and count the verdicts that changed."""
    tested, verdicts = [], []
    for plan in plans:
        if plan.passed is None:
            _select_passing(plan, score)
        scores = score(plan.spec.name, [mutant.trial for mutant in plan.mutants]) if plan.mutants else []
        pairs = [(m, s) for m, s in zip(plan.mutants, scores, strict=True) if s is not None]
        verdicts += list(zip(plan.mutants, scores, strict=True))
        plan.left_out += len(plan.mutants) - len(pairs)
        tested.append(_tally(plan, pairs))
    weakest = _find_weakest(tested)
    together, undecided, rest = _rate_any_evaluator(verdicts, len(plans)) if len(plans) > 1 else (None, 0, 0)
    answer = _describe(tested, weakest, together, undecided, rest)
    name = weakest.evaluator if weakest else None
    return MutationReport(run_id, run_name, seed, tested, together, name, answer, undecided, rest)


def _select_passing(plan: MutationPlan, score: ScoreTrials) -> None:
    """Score trials in the order of the draw until enough pass; keep those, and the mutants of those."""
    passing: list[Trial] = []
    for start in range(0, len(plan.trials), plan.sample_size):
        if len(passing) < plan.sample_size:
            trials = plan.trials[start : start + plan.sample_size]
            scores = score(plan.spec.name, trials)
            passing += [t for t, s in zip(trials, scores, strict=True) if s is not None and s.passed]
    plan.trials = passing[: plan.sample_size]
    if plan.spec.judges_inside:
        keys = {_trial_key(trial) for trial in plan.trials}
        plan.mutants = [mutant for mutant in plan.mutants if _trial_key(mutant.trial) in keys]
    else:
        _make_mutants(plan)


def _tally(plan: MutationPlan, pairs: Sequence[tuple[Mutant, Score]]) -> EvaluatorMutations:
    if _reads_only_calls(plan.spec):
        pairs = [(mutant, score) for mutant, score in pairs if mutant.mutation.part == "session"]
    by_mutation: dict[Mutation, list[tuple[Mutant, Score]]] = {}
    for mutant, score in pairs:
        by_mutation.setdefault(mutant.mutation, []).append((mutant, score))
    order = [mutation for mutation in (*MUTATIONS.values(), UNCHANGED) if mutation in by_mutation]
    rows = [MutationRow(m.name, m.kind, m.part, _rate(by_mutation[m]), plan.not_applied[m.name]) for m in order]
    faults = [(m, s) for m, s in pairs if m.mutation.kind == "fault"]
    harmless = [(m, s) for m, s in pairs if m.mutation.kind == "harmless"]
    control = [(m, s) for m, s in pairs if m.mutation.kind == "control"]
    parts = {part: [(m, s) for m, s in faults if m.mutation.part == part] for part in PARTS}
    return EvaluatorMutations(
        plan.spec.name,
        plan.spec.judges_inside,
        len(plan.trials),
        plan.passed,
        rows,
        {part: _rate(selected) for part, selected in parts.items() if selected},
        _rate(harmless),
        _rate(control) if control else None,
        [_verdict(m, s) for m, s in faults if s.passed],
        [_verdict(m, s) for m, s in harmless if s.passed is False],
        plan.left_out,
    )


def _reads_only_calls(spec: EvaluatorSpec) -> bool:
    """True for a built-in check of the calls in a session: it cannot see the output, nor messages that repeat it."""
    from proctor.evaluators import session

    factory = getattr(session, spec.uses, None)
    is_session_check = getattr(factory, "__annotations__", {}).get("return") == "SessionCheck"
    return is_session_check and spec.uses != "slice_contains"


def _rate(pairs: Sequence[tuple[Mutant, Score]]) -> MetricValue:
    """Return the share of mutants that did not pass; mutants of one sample or cluster are not independent."""
    known = [(mutant, score.passed is False) for mutant, score in pairs if score.ok]
    statuses = Counter(score.status for _, score in pairs)
    return _share(known, statuses["error"], statuses["skipped"])


def _share(known: Sequence[tuple[Mutant, bool]], errors: int = 0, skipped: int = 0) -> MetricValue:
    clusters = list_shared_clusters(m.trial.sample.cluster or m.trial.sample.id for m, _ in known)
    if clusters is None:
        return estimate_rate(sum(failed for _, failed in known), len(known), errors=errors, skipped=skipped)
    return estimate_clustered_rate(
        Column(array("d", (failed for _, failed in known)), errors=errors, skipped=skipped, clusters=clusters)
    )


def _rate_any_evaluator(
    verdicts: Iterable[tuple[Mutant, Score | None]], evaluators: int
) -> tuple[MetricValue | None, int, int]:
    """Return the share of faults that at least one evaluator notices, the undecided, and those not put to all.

    The share is of the faults that were put to all evaluators and judged by at least one. An undecided fault was
    noticed by nobody while an evaluator gave no verdict: it counts as not noticed.
    """
    by_fault: dict[Any, tuple[Mutant, list[bool | None]]] = {}
    for mutant, score in verdicts:
        if mutant.mutation.kind == "fault":
            key = (*_trial_key(mutant.trial), mutant.mutation.name)
            flag = score.passed is False if score is not None and score.ok else None
            by_fault.setdefault(key, (mutant, []))[1].append(flag)
    judged = [(mutant, flags) for mutant, flags in by_fault.values() if any(flag is not None for flag in flags)]
    known = [(mutant, flags) for mutant, flags in judged if len(flags) == evaluators]
    undecided = sum(None in flags and not any(flags) for _, flags in known)
    return (
        (_share([(mutant, any(flags)) for mutant, flags in known]) if known else None),
        undecided,
        len(judged) - len(known),
    )


def _verdict(mutant: Mutant, score: Score) -> MutantVerdict:
    trial = mutant.trial
    marked = mark_changes(mutant.before, mutant.after)
    return MutantVerdict(mutant.mutation.name, trial.sample.id, trial.configuration, trial.epoch, marked, score.reason)


def _find_weakest(tested: Sequence[EvaluatorMutations]) -> EvaluatorMutations | None:
    rated = [(t.strength.value or 0.0, t) for t in tested if t.strength is not None]
    return min(rated, key=lambda pair: pair[0])[1] if len(rated) > 1 else None


def _describe_errors(tested: EvaluatorMutations) -> str:
    rates = [row.rate for row in tested.rows]
    errors = sum(rate.errors for rate in rates)
    total = errors + sum(rate.n + rate.skipped for rate in rates)
    if not errors:
        return ""
    return f"{tested.evaluator} failed on {errors:,} of {format_count(total, 'mutant')}, which its shares leave out."


def _describe(
    tested: Sequence[EvaluatorMutations],
    weakest: EvaluatorMutations | None,
    together: MetricValue | None,
    undecided: int,
    not_shared: int,
) -> str:
    sentences = [sentence for t in tested if (sentence := _describe_errors(t))]
    if not any(rate.n for t in tested for rate in (*t.kills.values(), t.false_alarms)):
        reason = "" if sentences else ", because no evaluator passed an output that a mutation applies to"
        return " ".join([f"Cannot tell: no mutant was scored{reason}.", *sentences])
    sentences, errors = [], sentences
    if together is not None and together.value is not None:
        rest = f" ({not_shared} put to only some of them are left out)" if not_shared else ""
        sentences.append(
            f"At least one evaluator notices {describe_rate(together)} of the planted faults put to all of them{rest}."
        )
        if undecided:
            ceiling = together.value + undecided / together.n
            sentences.append(
                f"{undecided} of the {together.n} count as not noticed although an evaluator gave no verdict on them; "
                f"if all were noticed, the share would be {ceiling:.0%}."
            )
    if weakest is not None and weakest.strength is not None:
        sentences.append(f"Weakest: {weakest.evaluator}, which notices {describe_rate(weakest.strength)}.")
        others = [t.strength for t in tested if t is not weakest and t.strength is not None]
        ends = [other.interval[0] for other in others if other.interval]
        own = weakest.strength.interval
        if own is None or len(ends) < len(others) or own[1] >= min(ends):
            sentences[-1] += " The intervals overlap, so another evaluator may be weaker."
    elif tested and tested[0].strength is not None:
        sentences.append(f"{tested[0].evaluator} notices {describe_rate(tested[0].strength)} of the planted faults.")
    loudest = max(tested, key=lambda t: t.false_alarms.value or 0.0)
    if loudest.false_alarms.value:
        rate = describe_rate(loudest.false_alarms)
        sentences.append(f"Most false alarms: {loudest.evaluator}, on {rate} of the harmless changes.")
    return " ".join([*sentences, *errors])


def describe_rate(rate: MetricValue) -> str:
    """Describe a rate with its count and interval, or why there is none.

    >>> describe_rate(estimate_rate(9, 10))
    '90% (9 of 10, 95% interval 60% to 98%)'
    """
    if rate.value is None:
        return "none (n = 0)"
    count = f"{round(rate.value * rate.n)} of {rate.n}"
    if rate.interval is None:
        return f"{rate.value:.0%} ({count}; {rate.note or 'no interval'})"
    low, high = rate.interval
    return f"{rate.value:.0%} ({count}, 95% interval {low:.0%} to {high:.0%})"


def _trial_key(trial: Trial) -> tuple[str, str, int]:
    return trial.sample.id, trial.configuration, trial.epoch


def _draw_key(trial: Trial, seed: object) -> bytes:
    return hashlib.sha256(repr((seed, *_trial_key(trial))).encode()).digest()
