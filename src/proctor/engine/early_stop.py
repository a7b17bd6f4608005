"""Budgets and early stopping: what a run has spent, and the rule that may end it early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from proctor.engine.plan import NumberedSample, Plan, ordered_samples
from proctor.engine.worker_pool import StopCheck
from proctor.errors import ConfigError, Problem, ResumeRefused
from proctor.models.spending import Spending
from proctor.records.run import RunMetadata, Spent
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import EvalResult


def restore_spending(run: RunMetadata, earlier_results: Iterable[EvalResult] = ()) -> Spending | None:
    """Track the budget of a run, if it has one; `earlier_results` are the results it already has.

    An execution that ended normally stored its total, including failed attempts. A killed execution left only its
    results, so the larger of the two totals counts.
    """
    budget = run.options.budget
    if budget is None:
        return None
    results, stored = sum_spending(earlier_results), run.spent or Spent()
    calls, tokens = max(results.calls, stored.calls), max(results.tokens, stored.tokens)
    return Spending(budget, Spent(calls, tokens, max(results.cost, stored.cost)))


def sum_spending(results: Iterable[EvalResult]) -> Spent:
    """Add up the model calls, tokens and cost of results."""
    calls, usage = 0, Usage()
    for result in results:
        trial = result.trial
        if not trial.cached:
            # The usage covers all attempts, the session only the last one.
            usage += trial.usage or Usage()
            calls += _count_calls(trial.session)
        usage += result.judging or Usage()
        calls += sum(map(_count_calls, result.sessions.values()))
    return Spent(calls, usage.total_tokens or 0, usage.cost or 0.0)


def _count_calls(session: Session | None) -> int:
    """Count model calls, except calls answered by a cache."""
    if session is None:
        return 0
    return sum(not call.details.get("cached") for call in session[ModelCall])


# Receives the rank of a sample in the run's order, from 0, and its result; returns the reason once
# the run is decided. Results come in any order.
StopRule = Callable[[int, EvalResult], str | None]


def order_samples(
    plan: Plan, rule: StopRule | None, stored_run: RunMetadata | None = None, changes: Sequence[Problem] = ()
) -> tuple[list[NumberedSample] | None, StopCheck | None]:
    """Return the samples in order and a check that applies the rule; None for both without a rule."""
    if rule is None:
        return None, None
    seed = plan.options.shuffle
    if seed is None:
        raise ConfigError(
            "a run that may stop early needs its samples in random order, so that the first ones represent all of them",
            where="shuffle",
            fix="give a seed: --shuffle 7 (shuffle=7)",
        )
    if stored_run is not None and (changes or stored_run.options.shuffle != seed):
        raise ResumeRefused(
            f"run {stored_run.run_id} cannot continue to its decision: the evaluation has changed, or it "
            f"started in another order (shuffle {stored_run.options.shuffle}, now {seed})",
            fix="resume it with its original settings, or start a new run",
        )
    samples = list(ordered_samples(plan))
    ranks = {sample.id: rank for rank, (_, sample) in enumerate(samples)}
    return samples, lambda result: rule(ranks[result.sample_id], result)
