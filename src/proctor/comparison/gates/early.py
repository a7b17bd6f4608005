"""A gate that is heard while its run goes on, and that may end it: settled is settled.

After every sample it tells where the difference to the baseline lies, by an interval that holds at
every moment (`statistics.confidence_sequences`). So it may be asked after each, and the run stopped
at the first yes or no, with 95 % certainty as a whole. That takes samples in random order: those
that are finished first may be the easy ones. What comes before its turn is held back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from proctor.comparison.compare import compare
from proctor.comparison.gates import words
from proctor.comparison.gates.decision import Demand, concluded, delta_named, margin_of, refuse_unlike
from proctor.comparison.gates.gaps import (
    TENTH,
    Gap,
    Gaps,
    gaps_between,
    without_gaps,
    without_silent,
    without_unmatched,
)
from proctor.comparison.gates.thresholds import DEFAULT_METRIC
from proctor.comparison.sides import Side
from proctor.core.stats.intervals import Interval
from proctor.core.stats.sequential import Betting, Verdict, non_inferiority
from proctor.errors import ConfigError, StopRun, nearest
from proctor.records.gate import Check, Early, GateResult
from proctor.records.order import drawn
from proctor.records.report import EvalReport
from proctor.records.results import Results, outcome_for
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

# What a metric makes of one result: a number from 0 to 1, None if it leaves the result out.
Read = Callable[[EvalResult], float | None]

OVERALL = (DEFAULT_METRIC, "pass_rate", "mean_score")
WORTH = {"passed": 1.0, "failed": 0.0}


def reader_of(metric: str, evaluators: Sequence[str] = ()) -> Read:
    """How a metric reads one result, by its name; of those that are means of numbers from 0 to 1.

    These are `strict_pass_rate` (what failed to run or to be scored has not passed), `pass_rate`,
    `mean_score`, and the `.pass_rate` and `.mean` of each evaluator.
    """
    if metric == DEFAULT_METRIC:
        return strict_pass
    if metric == "pass_rate":
        return lambda result: WORTH.get(result.outcome)
    if metric == "mean_score":
        return lambda result: result.verdict()[1]
    name, _, kind = metric.rpartition(".")
    if name in evaluators and kind == "pass_rate":
        return lambda result: WORTH.get(outcome_for(result, name))
    if name in evaluators and kind == "mean":
        return score_of(name)
    known = [*OVERALL, *(f"{one}.{kind}" for one in evaluators for kind in ("pass_rate", "mean"))]
    raise ConfigError(f"a run cannot stop early by {metric!r}", where="metric", fix=nearest(metric, known))


def strict_pass(result: EvalResult) -> float | None:
    """1 if a result passed and 0 if not, whatever the reason; None if nothing was asked of it."""
    outcome = result.outcome
    return None if outcome == "skipped" else float(outcome == "passed")


def score_of(evaluator: str) -> Read:
    """The score that one evaluator gave; None where it gave none."""

    def read(result: EvalResult) -> float | None:
        score = result.scores.get(evaluator) if result.success else None
        return None if score is None else score.value

    return read


def numbers_of(results: Iterable[EvalResult], read: Read) -> dict[str, float]:
    """One number a sample: the mean over its epochs. Results are those of one configuration."""
    found: dict[str, list[float]] = {}
    for result in results:
        if (number := read(result)) is not None:
            found.setdefault(result.sample_id, []).append(number)
    return {name: math.fsum(numbers) / len(numbers) for name, numbers in found.items()}


class _Heard:
    """What is known of one sample so far: its cluster, and a number (or none) for each epoch."""

    __slots__ = ("cluster", "name", "numbers")

    def __init__(self, result: EvalResult) -> None:
        self.name = result.sample_id
        self.cluster = result.trial.sample.cluster
        self.numbers: dict[int, float | None] = {}


class EarlyGate:
    """Is the new one no worse than the baseline, but for a margin? Told as soon as it is settled.

    `baseline` are its numbers by sample id, `read` makes them of results. `hear` is what a run asks
    (`evaluate(…, shuffle=7, decide=gate.hear)`). A sample counts once all its epochs are heard, in
    its turn. `configuration` is the one that is judged; without it the run must have only one.
    Samples that the baseline lacks are left out and counted (`unmatched`), as are those without any
    number (`unscored`). The verdict is about all that samples like these might be, not about this
    dataset, and each side of it is wrong in at most 2.5 %.

    >>> from proctor.records.sample import Sample
    >>> from proctor.records.score import Score
    >>> from proctor.records.trial import Trial
    >>> gate = EarlyGate({f"s{n}": 1.0 for n in range(100)}, margin=0.02)
    >>> for n in range(100):
    ...     wrong = EvalResult(Trial(Sample(f"s{n}", "?")), {"exact": Score(0.0, False)})
    ...     if gate.hear(n, wrong) is not None:
    ...         break
    >>> gate.verdict, gate.n
    ('fail', 9)
    """

    def __init__(
        self,
        baseline: Mapping[str, float],
        read: Read = strict_pass,
        *,
        metric: str = DEFAULT_METRIC,
        margin: float = 0.0,
        epochs: int = 1,
        configuration: str | None = None,
        confidence: float = 0.95,
    ) -> None:
        if not 0 <= margin < 1:
            raise ConfigError(f"a margin lies from 0 to 1, got {margin!r}", where="margin")
        if not baseline:
            raise ConfigError(f"the baseline has no number for {metric}", where="baseline")
        self.metric, self.margin = metric, margin
        self.n = self.heard = self.unmatched = self.unscored = 0
        self.verdict: Verdict = "inconclusive"
        self._baseline, self._read = baseline, read
        self._epochs, self._configuration = epochs, configuration
        self._only: str | None = None
        self._percent = 100 * confidence
        self._sequence = Betting(-1.0, 1.0, confidence)
        self._sums = (0.0, 0.0)
        self._waiting: dict[int, _Heard] = {}
        self._next = 0
        self._clusters: dict[str, str] = {}

    @property
    def interval(self) -> Interval:
        """Where the new one's mean minus the baseline's lies."""
        return self._sequence.interval

    @property
    def means(self) -> tuple[float, float] | None:
        """The new one's mean and the baseline's, over the samples that count; None before any."""
        return None if not self.n else (self._sums[0] / self.n, self._sums[1] / self.n)

    def hear(self, turn: int, result: EvalResult) -> str | None:
        """Hear a result and the turn of its sample, in any order; the reason once it is settled."""
        if not self._is_meant(result.trial.configuration):
            return None
        if turn >= self._next:
            self._note(turn, result)
            while self._next in self._waiting and self.verdict == "inconclusive":
                if len(self._waiting[self._next].numbers) < self._epochs:
                    break
                self._take(self._waiting.pop(self._next))
                self._next += 1
        return None if self.verdict == "inconclusive" else self.reason

    def _is_meant(self, configuration: str) -> bool:
        if self._configuration is not None:
            return configuration == self._configuration
        self._only = self._only or configuration
        if configuration != self._only:
            both = " and ".join(sorted(map(repr, (configuration, self._only))))
            raise StopRun(
                f"the run has several configurations ({both}), and a gate is about one of them",
                fix="name the one that is judged, and resume",
            )
        return True

    def _note(self, turn: int, result: EvalResult) -> None:
        if turn not in self._waiting:
            self._waiting[turn] = _Heard(result)
            self.heard += 1
        self._waiting[turn].numbers[result.trial.epoch] = self._read(result)

    def _take(self, sample: _Heard) -> None:
        """Let a sample count whose turn it is."""
        numbers = [number for number in sample.numbers.values() if number is not None]
        before = self._baseline.get(sample.name)
        if before is None:
            self.unmatched += 1
        elif not numbers:
            self.unscored += 1
        else:
            self._refuse_shared(sample)
            self.n += 1
            number = math.fsum(numbers) / len(numbers)
            self._sums = (self._sums[0] + number, self._sums[1] + before)
            interval = self._sequence.add(number - before)
            self.verdict = non_inferiority(interval, self.margin)

    def _refuse_shared(self, sample: _Heard) -> None:
        """Samples of one cluster say the same thing twice, and then the interval does not hold."""
        if sample.cluster is None:
            return
        other = self._clusters.setdefault(sample.cluster, sample.name)
        if other != sample.name:
            raise StopRun(
                f"samples {other!r} and {sample.name!r} share the cluster {sample.cluster!r}, and "
                "no verdict holds at every moment for samples that are not independent",
                fix="run all samples and let the gate allow for clusters: resume without stopping early",
            )

    @property
    def reason(self) -> str:
        """What is known by now, in words."""
        low, high = (f"{100 * end:+.1f}" for end in self.interval)
        left_out = "".join(
            f"; {count:,} left out that {why}"
            for count, why in ((self.unmatched, "the baseline lacks"), (self.unscored, NO_NUMBER))
            if count
        )
        return (
            f"{self.metric} is {self._words()}; the difference lies from {low} to {high} points "
            f"({self._percent:g} %, whenever one looks) after {_samples(self.n)}{left_out}"
        )

    def _words(self) -> str:
        by = f" by more than {100 * self.margin:g} points" if self.margin else ""
        return {
            "pass": f"not worse than the baseline{by}",
            "fail": f"worse than the baseline{by}",
            "inconclusive": "not settled",
        }[self.verdict]

    def sentence(self, of: int | None = None) -> str:
        """The verdict in a sentence, with how many samples it saved of how many there are."""
        if of is None or self.verdict == "inconclusive":
            return self.reason
        return f"{self.reason}; {max(0, of - self.heard):,} of {_samples(of)} were saved"


NO_NUMBER = "have no number"


def replayed(gate: EarlyGate, results: Results | Sequence[EvalResult], seed: int) -> EarlyGate:
    """Let a gate hear a stored run that was shuffled with a seed, to have its verdict again.

    The run must have completed, early or not: its samples are then the first of the order.
    """
    names = sorted({result.sample_id for result in results}, key=lambda name: drawn(seed, name))
    turns = {name: turn for turn, name in enumerate(names)}
    for result in results:
        gate.hear(turns[result.sample_id], result)
    return gate


def _samples(count: int) -> str:
    return f"{count:,} sample{'' if count == 1 else 's'}"


ONE_ONLY = "a gate that may end its run early asks for one metric"


def early_gate(
    demand: Demand,
    baseline: Iterable[EvalResult],
    evaluators: Sequence[str],
    *,
    epochs: int = 1,
    configuration: str | None = None,
) -> EarlyGate:
    """The gate that hears a run: the baseline's results of one configuration are read once."""
    refuse_more_than_one(demand)
    (metric, margin), *_ = demand.metrics.items()
    read = reader_of(metric, evaluators)
    numbers = numbers_of(baseline, read)
    return EarlyGate(numbers, read, metric=metric, margin=margin, epochs=epochs, configuration=configuration)


def refuse_more_than_one(demand: Demand) -> None:
    """Refuse what a run that stops early cannot answer."""
    demand.refuse_wrong()
    if len(demand.metrics) != 1:
        raise ConfigError(ONE_ONLY, where="metric", fix="name one, or run all samples")
    if demand.unpaired:
        raise ConfigError(
            "a gate that may end its run early compares pairs", where="unpaired", fix="run all samples"
        )
    for name, asked in (("fail_under", demand.fail_under), ("max_flips", demand.max_flips)):
        if asked not in (None, {}):
            raise ConfigError(
                f"{ONE_ONLY}, and what part of the samples reaches is no answer to {name}",
                where=name,
                fix="leave one of the two out",
            )


def settled(
    gate: EarlyGate,
    pair: tuple[Side, Side],
    report: EvalReport,
    *,
    baseline: str,
    notes: Iterable[str] = (),
    accept_changes: bool = False,
    max_missing: float = TENTH,
) -> GateResult:
    """What a gate that heard a run says of it.

    All its numbers are of the samples that decided it, which may be fewer than those that were run.
    """
    found = compare(_as_if_whole(pair[0]), pair[1], accept_changes=accept_changes)
    means = gate.means
    if means is None:
        raise ConfigError(
            f"{found.a} and {found.b} have no sample in common, so nothing could be decided", where="baseline"
        )
    refuse_unlike(found, Demand({gate.metric: gate.margin}))
    delta = delta_named(found, gate.metric)
    check = Check(
        gate.metric,
        gate.verdict,
        "",
        value=means[0],
        baseline=means[1],
        difference=means[0] - means[1],
        interval=gate.interval,
        margin=margin_of(delta, gate.margin),
        n=gate.n,
        kind=delta.kind,
    )
    check = msgspec.structs.replace(
        check, sentence=words.of_metric(check, delta, missing=gate.unscored, further=False)
    )
    lacking = gaps_between(*pair, found, delta.name).baseline
    gaps = Gaps(Gap(gate.unscored, gate.n + gate.unscored), lacking)
    check = without_gaps(check, gaps, max_missing, found.b)
    check = without_silent(check, delta.name, *pair, max_missing)
    if not accept_changes:
        check = without_unmatched(check, found, pair[0])
    early = Early(gate.n, found.samples + len(found.only_a), _planned(report.metadata))
    # Its intervals and probabilities would not hold; nor are samples missing that were not run.
    shown = msgspec.structs.replace(found, answer="", metrics={}, scores={}, fields={}, only_b=())
    return concluded([check], [shown], report, baseline=baseline, notes=notes, early=early)


def judged_again(
    demand: Demand,
    report: EvalReport,
    before: Iterable[EvalResult],
    pair: tuple[Side, Side],
    configuration: str,
    *,
    baseline: str,
    notes: Iterable[str] = (),
) -> GateResult:
    """What a gate says of a stored run that was stopped early, by the interval that holds then."""
    run = report.metadata
    if run is None or run.options.shuffle is None:
        raise ConfigError("the run was not shuffled, so where it was stopped tells nothing")
    names = [spec.name for spec in run.evaluators]
    gate = early_gate(demand, before, names, epochs=run.options.epochs, configuration=configuration)
    heard = replayed(gate, list(report.results), run.options.shuffle)
    return settled(
        heard,
        pair,
        report,
        baseline=baseline,
        notes=notes,
        accept_changes=demand.accept_changes,
        max_missing=demand.max_missing,
    )


def _as_if_whole(side: Side) -> Side:
    """The same side, of which need not be said that usual intervals do not hold."""
    run = side.run and msgspec.structs.replace(side.run, stopped_early=None)
    return msgspec.structs.replace(side, run=run)


def _planned(run: RunMetadata | None) -> int | None:
    """How many samples there are to run, if that is known."""
    if run is None or run.dataset.length is None:
        return None
    return min(run.dataset.length, run.options.limit or run.dataset.length)
