"""Draw the outputs that people label: at random, by verdict, or where evaluators disagree."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from proctor.errors import ConfigError, UsageError, suggest_name
from proctor.records import codec
from proctor.records.label import LabelledItem, Strategy
from proctor.records.results import find_cluster, find_outcome
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.trial import EvalResult

# The share of the labels that each verdict has at least in a stratified draw.
MIN_STRATUM_SHARE = 0.25


class JudgedOutput(NamedTuple):
    """An output with the verdict of the evaluator in question, and the verdicts of the others."""

    item: LabelledItem
    passed: bool
    others: tuple[bool, ...]
    cluster: str
    length: int
    output_digest: str

    @property
    def disagreements(self) -> int:
        """How many other verdicts differ."""
        return sum(other is not self.passed for other in self.others)


class DrawnOutput(NamedTuple):
    """An output to label, and the probability with which it was drawn; None if that is unknown."""

    output: JudgedOutput
    probability: float | None


def find_evaluator(run: RunMetadata, name: str) -> EvaluatorSpec:
    """Return an evaluator of a run by the name of its scores."""
    specs = {spec.name: spec for spec in run.evaluators}
    if name not in specs:
        raise ConfigError(f"run {run.run_id} has no evaluator {name!r}", fix=suggest_name(name, specs))
    return specs[name]


def digest_evaluator(run: RunMetadata, name: str) -> str:
    """Return the digest of an evaluator's prompt, model, options and code; of all evaluators for the overall verdict.

    Labels and cards belong to this digest.
    """
    specs = [find_evaluator(run, name)] if name else run.evaluators
    content = codec.encode([(spec.name, spec.uses, spec.parameters, spec.identity) for spec in specs])
    return blake2b(content, digest_size=8).hexdigest()


def digest_output(output: Any) -> str:
    """Return a short digest of an output, so that a label is not applied to another output."""
    return blake2b(codec.encode(output), digest_size=8).hexdigest()


def list_judged_outputs(run_id: str, results: Iterable[EvalResult], evaluator: str) -> Iterator[JudgedOutput]:
    """Yield the outputs on which an evaluator, or all of them together (""), has a verdict."""
    for result in results:
        outcome = find_outcome(result, evaluator or None)
        if outcome not in ("passed", "failed"):
            continue
        trial = result.trial
        others = (score.passed for name, score in result.scores.items() if name != evaluator)
        output = trial.output if isinstance(trial.output, str) else codec.encode(trial.output)
        yield JudgedOutput(
            LabelledItem(run_id, trial.sample.id, trial.configuration, trial.epoch, evaluator),
            outcome == "passed",
            tuple(passed for passed in others if passed is not None),
            find_cluster(result),
            len(output),
            digest_output(trial.output),
        )


def draw(outputs: Sequence[JudgedOutput], strategy: Strategy, size: int, seed: int = 0) -> list[DrawnOutput]:
    """Draw outputs to label, in an order in which any first part is itself such a draw.

    The same outputs, strategy and seed give the same list; a larger size extends it, except for a stratified draw.
    """
    if not outputs:
        return []
    rng = random.Random(f"{outputs[0].item.run_id} {outputs[0].item.evaluator} {strategy} {seed}")
    shuffled = sorted(outputs, key=lambda output: output.item)
    rng.shuffle(shuffled)
    if strategy == "random":
        return [DrawnOutput(output, min(1.0, size / len(outputs))) for output in shuffled[:size]]
    if strategy == "stratified":
        return _draw_by_verdict(shuffled, size)
    disputed = [output for output in shuffled if output.disagreements]
    if not disputed:
        raise UsageError(
            "no evaluator disagrees with another on any output",
            where="--strategy disagreement",
            fix="add a second judge with `proctor rescore`, or write --strategy random",
        )
    ordered = sorted(disputed, key=lambda output: -output.disagreements / len(output.others))
    return [DrawnOutput(output, None) for output in ordered[:size]]


def _draw_by_verdict(shuffled: Sequence[JudgedOutput], size: int) -> list[DrawnOutput]:
    """Draw in proportion to the verdicts, but at least a quarter of each, so that both kinds of error show."""
    strata = [[output for output in shuffled if output.passed is passed] for passed in (True, False)]
    sizes = [round(size * len(stratum) / len(shuffled)) for stratum in strata]
    least = round(size * MIN_STRATUM_SHARE)
    for index, stratum in enumerate(strata):
        if sizes[index] < min(least, len(stratum)):
            sizes[index] = min(least, len(stratum))
            sizes[1 - index] = size - sizes[index]
    drawn = []
    for stratum, count in zip(strata, sizes, strict=True):
        count = min(count, len(stratum))
        drawn += [
            ((index + 0.5) / count, DrawnOutput(output, count / len(stratum)))
            for index, output in enumerate(stratum[:count])
        ]
    return [each for _, each in sorted(drawn, key=lambda entry: entry[0])]
