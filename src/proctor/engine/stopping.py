"""Runs that may end before their end: who decides hears every result with its sample's turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from proctor.engine.crew import Hear
from proctor.engine.plan import Numbered, Plan, samples_in_turn
from proctor.errors import ConfigError, Problem, ResumeRefused
from proctor.models.spending import Spending
from proctor.records.run import RunMetadata, Spent
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import EvalResult


def spending_of(run: RunMetadata, earlier: Iterable[EvalResult] = ()) -> Spending | None:
    """What keeps a run's budget, if it has one; `earlier` are the results it has already.

    A sitting that came to its end left its sum with the run, failed attempts included. One that
    was killed left only its results, so the greater of both counts.
    """
    budget = run.options.budget
    if budget is None:
        return None
    told, kept = spent_in(earlier), run.spent or Spent()
    return Spending(
        budget, Spent(max(told.calls, kept.calls), max(told.tokens, kept.tokens), max(told.cost, kept.cost))
    )


def spent_in(results: Iterable[EvalResult]) -> Spent:
    """What the model calls behind some results used."""
    calls, used = 0, Usage()
    for result in results:
        trial = result.trial
        if not trial.cached:
            # The usage is that of all attempts, the session that of the last.
            used += trial.usage or Usage()
            calls += _calls(trial.session)
        used += result.judging or Usage()
        calls += sum(map(_calls, result.sessions.values()))
    return Spent(calls, used.total_tokens or 0, used.cost or 0.0)


def _calls(session: Session | None) -> int:
    """The model calls that were made; what came from a cache was made before."""
    if session is None:
        return 0
    return sum(not call.details.get("cached") for call in session[ModelCall])


# Hears every result and, as a number from 0, in which turn its sample is run; gives the reason, in
# words, once what the run is for is settled. Results come in any order.
Decide = Callable[[int, EvalResult], str | None]


def in_turn(
    plan: Plan, decide: Decide | None, before: RunMetadata | None = None, changes: Sequence[Problem] = ()
) -> tuple[list[Numbered] | None, Hear | None]:
    """The samples in turn, and who decides, told the turn of each; neither if nobody decides."""
    if decide is None:
        return None, None
    seed = plan.options.shuffle
    if seed is None:
        raise ConfigError(
            "a run that may stop early takes its samples in random order: the first ones must stand for all",
            where="shuffle",
            fix="give a seed: --shuffle 7 (shuffle=7)",
        )
    if before is not None and (changes or before.options.shuffle != seed):
        raise ResumeRefused(
            f"run {before.run_id} cannot go on until it is decided: something has changed, or it "
            f"was begun in another order (shuffle {before.options.shuffle}, now {seed})",
            fix="resume it as it was begun, or run it anew",
        )
    samples = list(samples_in_turn(plan))
    turns = {sample.id: turn for turn, (_, sample) in enumerate(samples)}
    return samples, lambda result: decide(turns[result.sample_id], result)
