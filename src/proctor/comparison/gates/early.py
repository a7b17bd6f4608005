"""A gate that is checked during its run, and stops the run as soon as it is decided.

After every sample it updates a confidence sequence: an interval of the difference from the baseline that is valid at
every moment, so that the run can stop at the first verdict with 95% certainty. This requires samples in random order:
samples that finish first may be the easy ones. Results are processed in sample order; early ones are queued.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from proctor.comparison.compare import compare
from proctor.comparison.deltas import Pair
from proctor.comparison.describe import describe_metric
from proctor.comparison.flips import add_flip_texts
from proctor.comparison.gates import decision
from proctor.comparison.gates.gaps import (
    DEFAULT_MAX_MISSING,
    Gap,
    apply_cache_limit,
    apply_coverage_limit,
    apply_missing_limit,
    apply_unmatched_limit,
    find_gaps,
)
from proctor.comparison.gates.thresholds import DEFAULT_METRIC
from proctor.comparison.report import EvalReport
from proctor.core.stats.intervals import Interval
from proctor.core.stats.sequential import Betting, Verdict, non_inferiority
from proctor.errors import ConfigError, StopRun, suggest_name
from proctor.records.formatting import format_count
from proctor.records.gate import Check, Early, GateResult
from proctor.records.order import shuffle_key
from proctor.records.results import Results, find_outcome
from proctor.records.trial import EvalResult

# Reads a metric from one result: a number from 0 to 1, None if the result does not count.
Reader = Callable[[EvalResult], float | None]

_OVERALL = (DEFAULT_METRIC, "pass_rate", "mean_score")
_PASS_VALUES = {"passed": 1.0, "failed": 0.0}
SINGLE_METRIC = "a gate that stops its run early supports exactly one metric"


def make_metric_reader(metric: str, evaluators: Sequence[str] = ()) -> Reader:
    """Return a function that reads a metric from one result.

    Supported are `strict_pass_rate` (errors count as not passed), `pass_rate`, `mean_score`, and the
    `.pass_rate` and `.mean` of each evaluator.
    """
    if metric == DEFAULT_METRIC:
        return read_strict_pass
    if metric == "pass_rate":
        return lambda result: _PASS_VALUES.get(result.outcome)
    if metric == "mean_score":
        return lambda result: result.verdict()[1]
    name, _, statistic = metric.rpartition(".")
    if name in evaluators and statistic == "pass_rate":
        return lambda result: _PASS_VALUES.get(find_outcome(result, name))
    if name in evaluators and statistic == "mean":
        return make_score_reader(name)
    known_metrics = [*_OVERALL, *(f"{evaluator}.{s}" for evaluator in evaluators for s in ("pass_rate", "mean"))]
    raise ConfigError(
        f"a gate that stops its run early does not support the metric {metric!r}",
        where="metric",
        fix=suggest_name(metric, known_metrics),
    )


def read_strict_pass(result: EvalResult) -> float | None:
    """Return 1 if a result passed, 0 if it failed or has an error, None if it was skipped."""
    outcome = result.outcome
    return None if outcome == "skipped" else float(outcome == "passed")


def make_score_reader(evaluator: str) -> Reader:
    """Return a function that reads the score of one evaluator; None if it has none."""

    def read(result: EvalResult) -> float | None:
        score = result.scores.get(evaluator) if result.success else None
        return None if score is None else score.value

    return read


def average_numbers(results: Iterable[EvalResult], read: Reader) -> dict[str, float]:
    """Average the numbers of each sample over its epochs, for results of one configuration."""
    by_sample: dict[str, list[float]] = {}
    for result in results:
        if (number := read(result)) is not None:
            by_sample.setdefault(result.sample_id, []).append(number)
    return {name: math.fsum(numbers) / len(numbers) for name, numbers in by_sample.items()}


class _PendingSample:
    """A sample whose turn has not come: its cluster, and a number (or None) for each epoch."""

    __slots__ = ("cluster", "name", "numbers")

    def __init__(self, result: EvalResult) -> None:
        self.name = result.sample_id
        self.cluster = result.trial.sample.cluster
        self.numbers: dict[int, float | None] = {}


class EarlyGate:
    """A gate that decides during a run whether the run is no worse than its baseline, within a margin.

    `baseline` holds the baseline's numbers by sample id, `read` reads a number from a result. Pass `add_result` to a
    run: `evaluate(…, shuffle=7, decide=gate.add_result)`. A sample counts when all its epochs have arrived and its turn
    has come. `configuration` is the configuration to judge; without it the run must have only one. Samples that the
    baseline lacks (`unmatched`) and samples without a number (`unscored`) are left out and counted. The verdict
    generalizes beyond this dataset. A false pass and a false fail each occur in at most 2.5% of runs.
    """

    def __init__(
        self,
        baseline: Mapping[str, float],
        read: Reader = read_strict_pass,
        *,
        metric: str = DEFAULT_METRIC,
        margin: float = 0.0,
        epochs: int = 1,
        configuration: str | None = None,
        confidence: float = 0.95,
    ) -> None:
        if not 0 <= margin < 1:
            raise ConfigError(f"must be 0 or more and less than 1, got {margin!r}", where="margin", fix="write 0.02")
        if not baseline:
            raise ConfigError(
                f"the baseline has no values for {metric}", where="baseline", fix="choose another baseline or metric"
            )
        self.metric, self.margin = metric, margin
        self.n = self.sample_count = self.unmatched = self.unscored = 0
        self.verdict: Verdict = "inconclusive"
        self._baseline, self._read = baseline, read
        self._epochs, self._configuration = epochs, configuration
        self._first_configuration: str | None = None
        self._percent = 100 * confidence
        self._sequence = Betting(-1.0, 1.0, confidence)
        self._sums = (0.0, 0.0)
        self._pending: dict[int, _PendingSample] = {}
        self._next_turn = 0
        self._clusters: dict[str, str] = {}

    @property
    def interval(self) -> Interval:
        """The interval of the run's mean minus the baseline's."""
        return self._sequence.interval

    @property
    def means(self) -> tuple[float, float] | None:
        """The means of the run and of the baseline, over the samples that count; None before any."""
        return None if not self.n else (self._sums[0] / self.n, self._sums[1] / self.n)

    def add_result(self, turn: int, result: EvalResult) -> str | None:
        """Add a result with the turn of its sample, in any order; return the reason when decided."""
        if not self._is_judged(result.trial.configuration):
            return None
        if turn >= self._next_turn:
            if turn not in self._pending:
                self._pending[turn] = _PendingSample(result)
                self.sample_count += 1
            self._pending[turn].numbers[result.trial.epoch] = self._read(result)
            while self._next_turn in self._pending and self.verdict == "inconclusive":
                if len(self._pending[self._next_turn].numbers) < self._epochs:
                    break
                self._count(self._pending.pop(self._next_turn))
                self._next_turn += 1
        return None if self.verdict == "inconclusive" else self.reason

    def _is_judged(self, configuration: str) -> bool:
        if self._configuration is not None:
            return configuration == self._configuration
        self._first_configuration = self._first_configuration or configuration
        if configuration != self._first_configuration:
            both = " and ".join(sorted(map(repr, (configuration, self._first_configuration))))
            raise StopRun(
                f"the run has several configurations ({both}), but a gate judges only one of them",
                fix="name the configuration to judge, and resume",
            )
        return True

    def _count(self, sample: _PendingSample) -> None:
        numbers = [number for number in sample.numbers.values() if number is not None]
        reference = self._baseline.get(sample.name)
        if reference is None:
            self.unmatched += 1
        elif not numbers:
            self.unscored += 1
        else:
            self._require_new_cluster(sample)
            self.n += 1
            number = math.fsum(numbers) / len(numbers)
            self._sums = (self._sums[0] + number, self._sums[1] + reference)
            self.verdict = non_inferiority(self._sequence.add(number - reference), self.margin)

    def _require_new_cluster(self, sample: _PendingSample) -> None:
        if sample.cluster is None:
            return
        other = self._clusters.setdefault(sample.cluster, sample.name)
        if other != sample.name:
            raise StopRun(
                f"samples {other!r} and {sample.name!r} share the cluster {sample.cluster!r}, but a run "
                "can stop early only if its samples are independent",
                fix="resume without stopping early: a gate over all samples allows for clusters",
            )

    @property
    def reason(self) -> str:
        """One sentence with the verdict and its numbers."""
        low, high = (f"{100 * end:+.1f}" for end in self.interval)
        by = f" by more than {100 * self.margin:g} points" if self.margin else ""
        verdict = {
            "pass": f"not worse than the baseline{by}",
            "fail": f"worse than the baseline{by}",
            "inconclusive": "not decided",
        }[self.verdict]
        left_out = "".join(
            f"; {format_count(count, 'sample')} ignored ({reason})"
            for count, reason in ((self.unmatched, "not in the baseline"), (self.unscored, "no value"))
            if count
        )
        return (
            f"{self.metric} is {verdict}; the difference is from {low} to {high} points "
            f"({self._percent:g}% confidence sequence) after {format_count(self.n, 'sample')}{left_out}"
        )


def replay_results(gate: EarlyGate, results: Results | Sequence[EvalResult], seed: int) -> EarlyGate:
    """Pass the results of a stored run that was shuffled with a seed to a gate.

    The run must have completed, early or not, so that its samples are the first in the shuffled order.
    """
    names = sorted({result.sample_id for result in results}, key=lambda name: shuffle_key(seed, name))
    turns = {name: turn for turn, name in enumerate(names)}
    for result in results:
        gate.add_result(turns[result.sample_id], result)
    return gate


def make_early_gate(
    config: decision.GateConfig,
    baseline: Iterable[EvalResult],
    evaluators: Sequence[str],
    *,
    epochs: int = 1,
    configuration: str | None = None,
) -> EarlyGate:
    """Make a gate for a run from the baseline's results of one configuration."""
    require_single_metric(config)
    [(metric, margin)] = config.metrics.items()
    read = make_metric_reader(metric, evaluators)
    numbers = average_numbers(baseline, read)
    return EarlyGate(numbers, read, metric=metric, margin=margin, epochs=epochs, configuration=configuration)


def require_single_metric(config: decision.GateConfig) -> None:
    """Raise `ConfigError` for options that a run with an early stop cannot check."""
    config.validate()
    if len(config.metrics) != 1:
        raise ConfigError(
            f"{SINGLE_METRIC}, got {len(config.metrics)}",
            where="metric",
            fix="keep one --metric, or leave out --until-decided",
        )
    if config.unpaired:
        raise ConfigError(
            "a gate that stops its run early requires paired samples",
            where="unpaired",
            fix="leave out --unpaired or --until-decided",
        )
    for name, value in (("fail_under", config.fail_under), ("max_flips", config.max_flips)):
        if value not in (None, {}):
            raise ConfigError(
                "requires all samples, but the gate may stop its run early",
                where=name,
                fix=f"leave out --{name.replace('_', '-')} or --until-decided",
            )


def conclude_early_gate(
    gate: EarlyGate,
    pair: Pair,
    report: EvalReport,
    *,
    baseline: str,
    notes: Iterable[str] = (),
    accept_changes: bool = False,
    max_missing: float = DEFAULT_MAX_MISSING,
) -> GateResult:
    """Return the result of a gate that has checked a run.

    Its numbers cover the samples that decided it, which may be fewer than the samples that ran.
    """
    new, old = pair
    # Drop the early-stop note: this interval is valid at any stopping time.
    run = new.run and msgspec.structs.replace(new.run, stopped_early=None)
    comparison = compare(msgspec.structs.replace(new, run=run), old, accept_changes=accept_changes)
    if gate.means is None:
        raise ConfigError(
            f"{comparison.a} and {comparison.b} have no sample in common, so the gate cannot decide",
            where="baseline",
            fix="choose a baseline with the same samples, or leave out --until-decided and add --unpaired",
        )
    value, reference = gate.means
    decision.require_same_evaluators(comparison, decision.GateConfig({gate.metric: gate.margin}))
    delta = decision.find_delta(comparison, gate.metric)
    check = Check(
        gate.metric,
        gate.verdict,
        "",
        value=value,
        baseline=reference,
        difference=value - reference,
        interval=gate.interval,
        margin=decision.convert_margin(delta, gate.margin),
        n=gate.n,
        kind=delta.kind,
    )
    sentence = describe_metric(check, delta, missing=gate.unscored)
    check = msgspec.structs.replace(check, sentence=sentence)
    gaps = find_gaps(new, old, comparison, delta.name)
    if not gaps.run.evaluator:
        gaps = gaps._replace(run=Gap(gate.unscored, gate.n + gate.unscored))
    check = apply_missing_limit(check, gaps, max_missing, comparison.b)
    check = apply_coverage_limit(check, delta.name, new, old, max_missing)
    check = apply_unmatched_limit(check, comparison, new, accept_changes=accept_changes)
    check = apply_cache_limit(check, new.results, report.metadata)
    planned_samples = report.metadata.planned_length if report.metadata is not None else None
    early = Early(gate.n, comparison.samples + len(comparison.only_a), planned_samples)
    # Usual intervals and p-values do not hold here, and samples that did not run are not missing.
    shown = msgspec.structs.replace(comparison, answer="", metrics={}, scores={}, fields={}, only_b=())
    shown = add_flip_texts(shown, new, old)
    return decision.conclude_gate([check], [shown], report, [pair], baseline=baseline, notes=notes, early=early)


def replay_early_gate(
    config: decision.GateConfig,
    report: EvalReport,
    baseline_results: Iterable[EvalResult],
    pair: Pair,
    configuration: str,
    *,
    baseline: str,
    notes: Iterable[str] = (),
) -> GateResult:
    """Return the result of a gate for a stored run that was stopped early."""
    run = report.metadata
    if run is None or run.options.shuffle is None:
        raise ConfigError(
            "the run was not shuffled, so its early stop cannot be checked again",
            fix="run the eval file again: proctor gate eval.yaml --baseline NAME --until-decided",
        )
    names = [spec.name for spec in run.evaluators]
    gate = make_early_gate(config, baseline_results, names, epochs=run.options.epochs, configuration=configuration)
    return conclude_early_gate(
        replay_results(gate, list(report.results), run.options.shuffle),
        pair,
        report,
        baseline=baseline,
        notes=notes,
        accept_changes=config.accept_changes,
        max_missing=config.max_missing,
    )
