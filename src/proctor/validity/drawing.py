"""Draw the outputs that people label: at random, by verdict, or where evaluators disagree."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from proctor.errors import ConfigError, UsageError, list_names
from proctor.records import codec
from proctor.records.label import LabelledItem, Strategy
from proctor.records.results import find_cluster, find_outcome
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.trial import EvalResult

Stratum = tuple[bool, int]
# The options of evaluators that say what is asked.
CRITERIA = ("criterion", "criteria", "question", "rubric", "prompt")
# The share of the labels that each verdict has at least in a stratified draw.
MIN_VERDICT_SHARE = 0.25
# With fewer labels per level of the score, strata are the verdicts alone.
MIN_PER_SCORE = 4
# The range of pass probabilities for which a judge's score is believed.
TRUST = (0.05, 0.95)


class JudgedOutput(NamedTuple):
    """An output with the verdict and score of the evaluator in question, and the verdicts of the others."""

    item: LabelledItem
    passed: bool
    others: tuple[bool, ...]
    cluster: str
    length: int
    output_digest: str
    score: float | None = None

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
        raise ConfigError(f"run {run.run_id} has no evaluator {name!r}", fix=list_names(name, specs))
    return specs[name]


def digest_evaluator(run: RunMetadata, name: str) -> str:
    """Return the digest of an evaluator's prompt, model, options and code; of all evaluators for the overall verdict.

    Labels and cards belong to this digest.
    """
    specs = [find_evaluator(run, name)] if name else run.evaluators
    content = codec.encode([(spec.name, spec.uses, spec.parameters, spec.identity) for spec in specs])
    return blake2b(content, digest_size=8).hexdigest()


def has_same_question(first: RunMetadata, second: RunMetadata, name: str) -> bool:
    """True if an evaluator, or all of them (""), asks the same in two runs: criterion, rubric, prompt and scale.

    Model, threshold and other options may differ. A function without these options may ask anything, so its code must
    be the same.
    """
    specs, others = ([spec for spec in run.evaluators if name in ("", spec.name)] for run in (first, second))
    return [spec.name for spec in specs] == [spec.name for spec in others] and all(
        questions == list(_list_questions(b.parameters))
        if (questions := list(_list_questions(a.parameters)))
        else a.uses == b.uses and (":" not in a.uses or a.identity == b.identity)
        for a, b in zip(specs, others, strict=True)
    )


def _list_questions(parameters: Any) -> Iterator[tuple[str, Any]]:
    """Yield the options that say what is asked, also those of the evaluators inside."""
    pairs = sorted(parameters.items()) if isinstance(parameters, Mapping) else []
    for key, value in pairs or ([("", part) for part in parameters] if isinstance(parameters, list | tuple) else []):
        if key in (*CRITERIA, "scale"):
            yield key, value
        else:
            yield from _list_questions(value)


def digest_output(output: Any) -> str:
    """Return a short digest of an output, so that a label is not applied to another output."""
    return blake2b(codec.encode_any_text(output), digest_size=8).hexdigest()


def list_judged_outputs(run_id: str, results: Iterable[EvalResult], evaluator: str) -> Iterator[JudgedOutput]:
    """Yield the outputs on which an evaluator, or all of them together (""), has a verdict."""
    for result in results:
        outcome = find_outcome(result, evaluator or None)
        if outcome not in ("passed", "failed"):
            continue
        trial = result.trial
        others = (score.passed for name, score in result.scores.items() if name != evaluator)
        output = trial.output if isinstance(trial.output, str) else codec.encode_any_text(trial.output)
        yield JudgedOutput(
            LabelledItem(run_id, trial.sample.id, trial.configuration, trial.epoch, evaluator),
            outcome == "passed",
            tuple(passed for passed in others if passed is not None),
            find_cluster(result),
            len(output),
            digest_output(trial.output),
            result.scores[evaluator].value if evaluator in result.scores else None,
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
        return _draw_stratified(shuffled, size)
    disputed = [output for output in shuffled if output.disagreements]
    if not disputed:
        raise UsageError(
            "no evaluator disagrees with another on any output",
            where="--strategy disagreement",
            fix="add a second judge with `proctor rescore`, or write --strategy random",
        )
    ordered = sorted(disputed, key=lambda output: -output.disagreements / len(output.others))
    return [DrawnOutput(output, None) for output in ordered[:size]]


def stratify(outputs: Iterable[JudgedOutput], *, by_score: bool = True) -> dict[Stratum, list[JudgedOutput]]:
    """Group outputs by the judge's verdict and, if it has a score, by the nearest quarter of it."""
    strata: dict[Stratum, list[JudgedOutput]] = {}
    for output in outputs:
        has_score = by_score and output.score is not None
        level = min(4, max(0, round(4 * (output.score or 0.0)))) if has_score else -1
        strata.setdefault((output.passed, level), []).append(output)
    return strata


def allocate(size: int, strata: Mapping[Stratum, Sequence[JudgedOutput]]) -> dict[Stratum, int]:
    """Share labels among strata so that the pass rate gets the smallest error (Neyman; exact by Wright 2012).

    The score of the judge is its probability of a pass, which is not believed beyond 5% and 95%; strata without scores
    count as equally uncertain. Each stratum gets two labels at least, and each verdict a quarter, if there are as many.
    """
    importance = {key: len(outputs) * _expect_spread(outputs) for key, outputs in strata.items()}
    least = min(2, size // max(1, len(strata)))
    counts = {key: min(least, len(outputs)) for key, outputs in strata.items()}

    def give(total: int, keys: Sequence[Stratum]) -> None:
        for _ in range(total - sum(counts[key] for key in keys)):
            free = [key for key in keys if counts[key] < len(strata[key])]
            if not free:
                return
            gains = {key: importance[key] ** 2 / (max(counts[key], 0.5) * (counts[key] + 1)) for key in free}
            counts[max(free, key=gains.__getitem__)] += 1

    for passed in (True, False):
        give(round(size * MIN_VERDICT_SHARE), [key for key in strata if key[0] is passed])
    give(size, list(strata))
    return counts


def _expect_spread(outputs: Sequence[JudgedOutput]) -> float:
    """Return the standard deviation of people's verdicts that the scores of a stratum suggest."""
    scores = [output.score for output in outputs if output.score is not None]
    if len(scores) < len(outputs):
        return 0.5
    rate = TRUST[0] + (TRUST[1] - TRUST[0]) * min(1.0, max(0.0, math.fsum(scores) / len(scores)))
    return math.sqrt(rate * (1 - rate))


def _draw_stratified(shuffled: Sequence[JudgedOutput], size: int) -> list[DrawnOutput]:
    """Draw from each stratum at random, spread over the list, so that its first part is such a draw too."""
    strata = stratify(shuffled)
    if size < MIN_PER_SCORE * len(strata):
        strata = stratify(shuffled, by_score=False)
    drawn = []
    for key, count in allocate(size, strata).items():
        stratum = strata[key]
        drawn += [
            ((index + 0.5) / count, DrawnOutput(output, count / len(stratum)))
            for index, output in enumerate(stratum[:count])
        ]
    return [each for _, each in sorted(drawn, key=lambda entry: entry[0])]
