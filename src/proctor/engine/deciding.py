"""Runs that may end before their end: who decides hears every result with its sample's turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proctor.engine.crew import Hear
from proctor.engine.plan import Numbered, Plan, samples_in_turn
from proctor.errors import ConfigError, Problem, ResumeRefused
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

# Hears every result and, as a number from 0, in which turn its sample is run; gives the reason, in
# words, once what the run is for is settled. Results come in any order.
Decide = Callable[[int, EvalResult], str | None]


def in_turn(
    plan: Plan,
    decide: Decide | None,
    before: RunMetadata | None = None,
    changes: Sequence[Problem] = (),
) -> tuple[list[Numbered] | None, Hear | None]:
    """The samples in turn, and who decides, told the turn of each; neither if nobody decides."""
    if decide is None:
        return None, None
    seed = plan.options.shuffle
    if seed is None:
        raise ConfigError(
            "a run that may stop early takes its samples in random order: the first ones must "
            "stand for all",
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
