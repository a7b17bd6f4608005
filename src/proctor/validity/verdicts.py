"""The repeated verdicts of a run: for each sample its epochs, for each epoch the verdicts of its evaluators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core.stats.descriptive import mean
from proctor.errors import ConfigError, suggest_name
from proctor.records.results import PASS_VALUES, find_cluster
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.score import SKIPPED_BY_DESIGN, Score
from proctor.records.trial import EvalResult

PASS_RATE, MEAN_SCORE = "pass_rate", "mean_score"
_PASSES = f".{PASS_RATE}"


class Measure(msgspec.Struct, frozen=True):
    """A metric that is a mean of verdicts: of one evaluator, or of all combined (None); passes (1, 0) or values."""

    metric: str
    evaluator: str | None
    counts_passes: bool

    def selects(self, spec: EvaluatorSpec) -> bool:
        """True if the metric depends on this evaluator."""
        return self.evaluator is None or spec.name == self.evaluator


def parse_measure(metric: str, run: RunMetadata) -> Measure:
    """Find the verdicts that a metric averages; raise an error for a metric that is not a mean of verdicts."""
    if metric in (PASS_RATE, MEAN_SCORE):
        return Measure(metric, None, metric == PASS_RATE)
    names = [spec.name for spec in run.evaluators]
    evaluator = metric.removesuffix(_PASSES).removesuffix(".mean")
    if evaluator not in names:
        known = [PASS_RATE, MEAN_SCORE, *names, *(f"{name}{_PASSES}" for name in names)]
        raise ConfigError(f"{metric!r} is not a mean of verdicts", where="--metric", fix=suggest_name(metric, known))
    return Measure(metric, evaluator, metric.endswith(_PASSES))


class RepeatedVerdicts(msgspec.Struct, frozen=True):
    """The verdicts of one configuration: by sample, then by epoch, then repeated.

    `value` is the metric of the run itself, and `asked` has the number of its own verdicts on each output. `missing`
    counts trials without a verdict, `copies` verdicts from a cache, which repeat nothing. `clusters` has the cluster of
    each sample.
    """

    samples: dict[str, list[list[float]]]
    value: float
    asked: list[int]
    clusters: dict[str, str]
    missing: int = 0
    copies: int = 0


def read_repeated_verdicts(
    report: EvalReport, configuration: str, measure: Measure, repeats: Sequence[EvalReport] = ()
) -> RepeatedVerdicts:
    """Read the verdicts of a run; `repeats` are runs that scored the same outputs with the same evaluators."""
    verdicts: dict[tuple[str, int], list[float]] = {}
    clusters: dict[str, str] = {}
    missing = copies = 0
    for result in report.results.for_configuration(configuration):
        clusters[result.sample_id] = find_cluster(result)
        values = list_verdicts(result, measure)
        missing += not values
        if values:
            verdicts[result.sample_id, result.trial.epoch] = values
    value, asked = _average(verdicts), [len(values) for values in verdicts.values()]
    for repeat in repeats:
        for result in repeat.results.for_configuration(configuration):
            key = result.sample_id, result.trial.epoch
            if key in verdicts:
                is_copy = _is_cached(result, measure)
                copies += is_copy
                verdicts[key] += [] if is_copy else list_verdicts(result, measure)
    return RepeatedVerdicts(_group(verdicts), value, asked, clusters, missing, copies)


def _group(verdicts: Mapping[tuple[str, int], list[float]]) -> dict[str, list[list[float]]]:
    samples: dict[str, list[list[float]]] = {}
    for (sample, _), values in verdicts.items():
        samples.setdefault(sample, []).append(values)
    return samples


def _average(verdicts: Mapping[tuple[str, int], list[float]]) -> float:
    """Return the mean over samples, each of which is the mean of its epochs."""
    means = [mean([mean(epoch) or 0.0 for epoch in sample]) or 0.0 for sample in _group(verdicts).values()]
    return mean(means) or 0.0


def list_verdicts(result: EvalResult, measure: Measure) -> list[float]:
    """List the verdicts on one output, as many as its judges were asked for; empty without a verdict."""
    if not result.success or (measure.evaluator is None and result.outcome not in PASS_VALUES):
        return []
    scores = result.scores if measure.evaluator is None else {"": result.scores.get(measure.evaluator)}
    opinions = [
        list(_list_opinions(score, passes=measure.counts_passes))
        for score in scores.values()
        if score is not None and score.reason not in SKIPPED_BY_DESIGN and score.value is not None
    ]
    if not opinions:
        return []
    repeats = min((len(values) for values in opinions if len(values) > 1), default=1)
    rows = [[values[index] if len(values) > 1 else values[0] for values in opinions] for index in range(repeats)]
    return [min(row) if measure.counts_passes else fsum(row) / len(row) for row in rows]


def _list_opinions(score: Score, *, passes: bool) -> Iterator[float]:
    judge = score.details.get("judge")
    opinions = judge.get("opinions") if isinstance(judge, Mapping) else None
    if isinstance(opinions, Sequence) and len(opinions) > 1:
        for opinion in opinions:
            yield float(opinion["passed"] if passes else opinion["value"])
    else:
        yield float(bool(score.passed) if passes else score.value or 0.0)


def _is_cached(result: EvalResult, measure: Measure) -> bool:
    """True if a judge's answer came from a cache."""
    scores = result.scores.values() if measure.evaluator is None else [result.scores.get(measure.evaluator)]
    judges = [score.details.get("judge") for score in scores if score is not None]
    return any(isinstance(judge, Mapping) and bool(judge.get("cached")) for judge in judges)


def find_repeats(run: RunMetadata, others: Sequence[RunMetadata], measure: Measure) -> list[str]:
    """Return the ids of the runs that scored the outputs of a run again, with the same evaluators."""
    source = run.rescored_from or run.run_id
    identities = _identify(run, measure)
    return [
        other.run_id
        for other in others
        if other.run_id != run.run_id
        and source in (other.run_id, other.rescored_from)
        and _identify(other, measure) == identities
    ]


def _identify(run: RunMetadata, measure: Measure) -> list[tuple[str, str]]:
    return [(spec.name, spec.identity) for spec in run.evaluators if measure.selects(spec)]
