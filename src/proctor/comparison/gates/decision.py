"""The gate: is this run as good as its baseline, but for a margin? Yes, no, or not enough evidence.

Every metric must hold. That a gate passes needs no correction for several metrics, for it takes all
of them; that it fails does, for one is enough: with k metrics one fails only where its interval of
1 - 0.05 / k lies wholly beyond the margin. So equal systems are red in at most 2.5 % of all gates,
and in far fewer with a margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from proctor.comparison.compare import COMBINED, compare, compare_all
from proctor.comparison.contents import as_groups, told_apart
from proctor.comparison.deltas import evidence_of
from proctor.comparison.evidence import Evidence
from proctor.comparison.gates import words
from proctor.comparison.gates.gaps import (
    TENTH,
    Gaps,
    gaps_between,
    without_gaps,
    without_silent,
    without_unmatched,
    worst_gap,
)
from proctor.comparison.gates.thresholds import (
    DEFAULT_METRIC,
    in_own_unit,
    likely,
    refuse_unreachable,
    shortfalls,
)
from proctor.comparison.sides import PASS_RATE, STRICT_PASS_RATE, Side
from proctor.comparison.totals import as_share, wider, width
from proctor.comparison.verdicts import (
    PLENTY,
    TIMES_APART,
    Held,
    Part,
    ahead,
    has_rare_ones,
    more_for_a_verdict,
    parts_of,
    with_rare_ones,
)
from proctor.core.stats.descriptive import mean
from proctor.core.stats.differences import difference_interval, differences, paired_interval
from proctor.core.stats.distributions import normal_quantile
from proctor.core.stats.intervals import mean_interval, wilson_interval
from proctor.core.stats.sequential import Better, non_inferiority
from proctor.errors import ConfigError, nearest
from proctor.metrics.warnings import constant_judges
from proctor.records.comparison import NOT_COMPARABLE, Comparison, Interval, MetricDelta, also_known_as
from proctor.records.gate import Check, Early, GateResult, GateVerdict
from proctor.records.report import EvalReport
from proctor.records.rubric import columns_in
from proctor.records.wording import Kind

LEVEL = 0.05


class Judged(NamedTuple):
    """Where a difference lies, whether it keeps the margin, and about how many more would tell."""

    interval: Interval | None
    verdict: GateVerdict
    more_samples: int | None = None


def judged(delta: MetricDelta, found: Evidence, margin: float, family: int = 1) -> Judged:
    """Hold a difference against a margin in its own unit, as one of a family of checks."""
    better: Better = "higher" if delta.higher_is_better else "lower"
    interval = _interval(delta, found, margin, 1 - LEVEL)
    verdict: GateVerdict = "inconclusive"
    if interval is not None:
        verdict = non_inferiority(interval, margin, better)
    if verdict == "fail" and family > 1:
        surer = _interval(delta, found, margin, 1 - LEVEL / family)
        if surer is None or non_inferiority(surer, margin, better) != "fail":
            verdict = "inconclusive"
    needed = _needed(delta, found, margin, family) if verdict == "inconclusive" else None
    return Judged(interval, verdict, needed)


def bounds_of(found: Evidence, kind: Kind, confidence: float = 1 - LEVEL) -> Interval | None:
    """Where the true difference lies, also where all pairs differ by the same.

    None where the samples cannot tell it: one alone, or clusters that are too few. Of scores it
    reaches as far down as so many samples cannot rule out.
    """
    if found.too_few_clusters:
        return None
    interval, units = found.interval(confidence), found.units
    if interval is None and not found.pairs:
        return _of_groups(found, kind, confidence)
    if interval is not None:
        means = mean(found.first) or 0.0, mean(found.second) or 0.0
        if kind == "number" or (found.is_binary and found.clusters is None):
            return interval
        # What is rare may make it worse than it looks; that it is bad is known by what is seen.
        return with_rare_ones(interval, means, units, confidence)[0], interval[1]
    apart = differences(found.first, found.second)
    if units < 2 or any(differences(apart, apart[:1] * len(apart))):
        return None
    if kind == "number":
        return (apart[0], apart[0]) if units >= PLENTY else None
    # At most so many of all samples differ otherwise, and a score by no more than 1.
    share = wilson_interval(0, units, confidence)
    most = (1 + abs(apart[0])) * (1.0 if share is None else share[1])
    return apart[0] - most, apart[0] + most


def _of_groups(found: Evidence, kind: Kind, confidence: float) -> Interval | None:
    """Where the difference of two groups lies if all scores of one are equal.

    Each mean has its own interval, and the ends of both make those of the difference (Newcombe's
    way). That all are equal is no proof: as many may differ as are not ruled out.
    """
    if kind == "number" or found.clusters is not None or found.n < 2:
        return None
    (a, (low_a, high_a)), (b, (low_b, high_b)) = (
        _of_scores(side, confidence) for side in (found.first, found.second)
    )
    return a - b - math.hypot(a - low_a, high_b - b), a - b + math.hypot(high_a - a, b - low_b)


def _of_scores(values: Sequence[float], confidence: float) -> tuple[float, Interval]:
    centre, known = mean(values) or 0.0, mean_interval(values, confidence)
    if known is None or known[0] == known[1]:
        share = wilson_interval(0, len(values), confidence)
        most = 1.0 if share is None else share[1]
        known = centre - most * centre, centre + most * (1 - centre)
    return centre, (max(0.0, known[0]), min(1.0, known[1]))


def _interval(delta: MetricDelta, found: Evidence, margin: float, confidence: float) -> Interval | None:
    """Where the difference lies, seen from the margin.

    A margin that is a part of the baseline is known no better than the baseline. So the new one is
    held against each sample's number with the margin on it, and the interval moved back by the
    margin that is told.
    """
    plain = bounds_of(found, delta.kind, confidence)
    scaled = _on_margin(delta, found, margin)
    if plain is None or plain[0] == plain[1] or scaled is None:
        return plain
    interval, moved = scaled.interval(confidence), (mean(scaled.second) or 0.0) - (delta.b or 0.0)
    return plain if interval is None else (interval[0] + moved, interval[1] + moved)


def _on_margin(delta: MetricDelta, found: Evidence, margin: float) -> Evidence | None:
    if delta.kind != "number" or not margin or not delta.b:
        return None
    factor = 1 + (-margin if delta.higher_is_better else margin) / delta.b
    worse = [factor * value for value in found.second]
    return Evidence(found.first, worse, found.pairs, found.clusters, found.second_clusters)


def _needed(delta: MetricDelta, found: Evidence, margin: float, family: int) -> int | None:
    """About how many more samples lead to a verdict; None where that cannot be told."""
    if found.n < 2 or delta.absolute is None or found.too_few_clusters:
        return None
    room = (delta.absolute if delta.higher_is_better else -delta.absolute) + margin
    if abs(room) < 1e-12:
        return None
    # To fail takes more certainty than to pass, where there are several metrics.
    passes, fails = LEVEL / 2, LEVEL / 2 / family
    if delta.error or not found.pairs:
        error = delta.error or 0.0
        return _needed_of(delta, found, margin, Held(found.n, room, error, passes, fails))
    if delta.kind == "number":
        return max(1, PLENTY - found.n)
    # No two samples differ: how soon the interval of none in n lies within the margin.
    z = normal_quantile(1 - (passes if room > 0 else fails))
    enough = z * math.sqrt(2) / abs(room) - 2
    if not found.is_binary:
        enough = z * z * ((1 + abs(delta.absolute)) / abs(room) - 1)
    return max(1, math.ceil(enough) - found.n)


def _needed_of(delta: MetricDelta, found: Evidence, margin: float, held: Held) -> int | None:
    """The same where the samples differ, or are two groups."""
    scaled = _on_margin(delta, found, margin)
    error = (scaled.error if scaled is not None else None) or held.error
    parts = parts_of(msgspec.structs.replace(delta, error=error))
    levels = 1 - 2 * held.passes, 1 - 2 * held.fails
    passing, failing = (_spread(delta, found, margin, sure) for sure in levels)
    if parts is None or passing is None or failing is None:
        return None
    centre = delta.absolute or 0.0

    def halves(total: int) -> tuple[float, float]:
        lows, highs = zip(
            _grown(found, delta, passing, parts, total, levels[0]),
            _grown(found, delta, failing, parts, total, levels[1]),
            strict=True,
        )
        if delta.higher_is_better:
            return centre - lows[0], highs[1] - centre
        return highs[0] - centre, centre - lows[1]

    beside = parts[1] if len(parts) > 1 else None
    held = held._replace(error=parts[0].error, beside=beside, halves=halves)
    return more_for_a_verdict(held, tells=held.tells)


def _grown(
    found: Evidence,
    delta: MetricDelta,
    interval: Interval,
    parts: Sequence[Part],
    total: int,
    confidence: float,
) -> Interval:
    """The interval that so many samples would have if all were like these.

    Of yes and no it is the same formula with as many more of each; any other narrows as its error
    does.
    """
    more = total - found.n
    if found.is_binary and found.clusters is None:
        return _grown_rates(found, more, confidence)
    first, *others = parts
    beside = others[0] if others else None
    now, then = (ahead(first.n, first.error, n, beside)[0] for n in (first.n, first.n + more))
    centre = delta.absolute or 0.0
    low, high = (centre + (end - centre) * then / now for end in interval)
    if has_rare_ones(delta):
        means = mean(found.first) or 0.0, mean(found.second) or 0.0
        low = with_rare_ones((low, high), means, total, confidence)[0]
    return low, high


def _spread(delta: MetricDelta, found: Evidence, margin: float, confidence: float) -> Interval | None:
    """The interval as the samples spread, without room for what is rare."""
    if has_rare_ones(delta):
        return found.interval(confidence)
    return _interval(delta, found, margin, confidence)


def _grown_rates(found: Evidence, more: int, confidence: float) -> Interval:
    sides = [(mean(side) or 0.0, len(side) + more) for side in (found.first, found.second)]
    if not found.pairs:
        (a, n), (b, its_n) = sides
        return difference_interval(a * n, n, b * its_n, its_n, confidence) or (-1.0, 1.0)
    n = sides[0][1]
    apart = differences(found.first, found.second)
    up, down = (n * apart.count(way) / len(apart) for way in (1, -1))
    return paired_interval(up, down, n, confidence) or (-1.0, 1.0)


DEFAULT_MARGIN = 0.02
NO_FLIPS = "without pairs no sample can be lost"


class Demand(msgspec.Struct, frozen=True):
    """What a gate asks.

    `metrics` are the margins by metric: how much worse it may be, in points of a rate or a score
    (0.02 is two points), as a part of the baseline's value for any other number. `fail_under` are
    least values, `max_flips` how many samples may be lost. `better` says of a field whether higher
    is better, where its name does not tell. With `accept_changes` a run may have other evaluators
    than its baseline: what all of them say together is then another measure in each. It may also
    have many samples that the baseline has not, or lack many of its: the pairs alone decide. With
    `unpaired` all samples of both are compared, as two groups. `max_missing` is how many samples of
    either may be without a number: a share of them, or so many if it is a whole number.
    """

    metrics: Mapping[str, float] = {}
    fail_under: Mapping[str, float] = {}
    max_flips: int | None = None
    better: Mapping[str, bool] = {}
    accept_changes: bool = False
    unpaired: bool = False
    max_missing: float = TENTH

    def refuse_wrong(self) -> None:
        """Refuse what no gate can ask."""
        for name, margin in self.metrics.items():
            if not 0 <= margin < math.inf:
                raise ConfigError(
                    f"the margin of {name} is {margin:g}, and it says how much worse is allowed",
                    where="margin",
                    fix="give 0 or more, such as 2% or 0.02",
                )
        if self.max_flips is not None and self.max_flips < 0:
            raise ConfigError("fewer than no samples cannot be lost", where="max_flips")
        if not (0 <= self.max_missing <= 1 or isinstance(self.max_missing, int)):
            raise ConfigError(
                f"at most {self.max_missing:g} missing is no share",
                where="max_missing",
                fix="give a share such as 10% or 0.1, or a whole number of samples",
            )
        if self.max_missing < 0:
            raise ConfigError("fewer than no samples cannot be missing", where="max_missing")
        if self.unpaired and self.max_flips is not None:
            raise ConfigError(NO_FLIPS, where="max_flips", fix="leave one of the two out")
        refuse_unreachable(self.fail_under)
        asked = {alias for name in self.metrics for alias in also_known_as(name)}
        for name in self.better:
            if not asked & set(also_known_as(name)):
                raise ConfigError(
                    f"which way {name} is better was said, and it is not among the metrics",
                    where="better",
                    fix=nearest(name, self.metrics) if self.metrics else "ask for it: --metric",
                )


def decide(
    pairs: Sequence[tuple[Side, Side]],
    demand: Demand,
    *,
    report: EvalReport | None = None,
    baseline: str = "",
    notes: Iterable[str] = (),
) -> GateResult:
    """Hold a run against its baseline: one pair of sides for each configuration, the new one first.

    `report` is the run, which thresholds are held against.

    >>> passed = {str(i): 1.0 for i in range(200)}
    >>> new, old = (Side(n, {"pass_rate": passed}, samples=tuple(passed)) for n in ("new", "old"))
    >>> decide([(new, old)], Demand({"pass_rate": 0.02})).verdict
    'pass'
    """
    demand.refuse_wrong()
    if not pairs and not demand.fail_under:
        raise ConfigError("there is nothing to check", where="gate")
    pairs = [as_groups(a, b) if demand.unpaired else told_apart(a, b) for a, b in pairs]
    found = compare_all(pairs, better=demand.better, accept_changes=demand.accept_changes) if pairs else []
    for one in found:
        if not one.samples and demand.max_flips is not None:
            raise ConfigError(
                f"{one.a} and {one.b} have no sample in common, and {NO_FLIPS}",
                where="max_flips",
                fix="leave it out: the runs are then compared as two groups",
            )
        refuse_unlike(one, demand)
    for a, b in pairs:
        refuse_unmeasured(a, b, demand)
    checks = [
        *_metric_checks(pairs, found, demand),
        *_threshold_checks(report, demand.fail_under, demand.max_missing),
        *_flip_checks(pairs, found, demand),
    ]
    return concluded(checks, found, report, baseline=baseline, notes=notes)


def concluded(
    checks: Sequence[Check],
    comparisons: Sequence[Comparison],
    report: EvalReport | None,
    *,
    baseline: str,
    notes: Iterable[str] = (),
    early: Early | None = None,
) -> GateResult:
    """The verdict that checks lead to together."""
    verdicts = {check.verdict for check in checks}
    verdict: GateVerdict = "pass"
    if "fail" in verdicts:
        verdict = "fail"
    elif "inconclusive" in verdicts:
        verdict = "inconclusive"
    run = report.metadata if report is not None else None
    suspects = [] if report is None or run is None else constant_judges(report.results, run)
    compared = (note for one in comparisons for note in (*one.notes, *words.unmatched(one)))
    told = [*notes, *suspects, *compared]
    if run is not None and run.cached_outputs is not None and not comparisons:
        told.append(str(run.cached_outputs))
    asked = [one.find(check.name) for one in comparisons for check in checks]
    by_time = any(delta is not None and delta.method == TIMES_APART for delta in asked)
    return GateResult(
        "" if run is None else run.run_id,
        baseline,
        verdict,
        words.answer(verdict, checks, early),
        tuple(checks),
        tuple(comparisons),
        tuple(note for note in dict.fromkeys(told) if note != TIMES_APART or by_time),
        early,
        "" if run is None else run.name,
    )


def _metric_checks(
    pairs: Sequence[tuple[Side, Side]], found: Sequence[Comparison], demand: Demand
) -> Iterator[Check]:
    family = len(pairs) * len(demand.metrics)
    several = len(pairs) > 1
    for (a, b), comparison in zip(pairs, found, strict=True):
        for name, share in demand.metrics.items():
            delta = delta_named(comparison, name)
            margin = margin_of(delta, share)
            evidence = evidence_of(a, b, a.find(delta.name) or {}, b.find(delta.name) or {})
            check = _metric_check(name, delta, evidence, margin, family, comparison.samples)
            gaps = gaps_between(a, b, comparison, delta.name)
            check = without_gaps(check, gaps, demand.max_missing, comparison.b)
            check = without_silent(check, delta.name, a, b, demand.max_missing)
            if not demand.accept_changes:
                check = without_unmatched(check, comparison, a)
            where = a.name if several else ""
            yield msgspec.structs.replace(check, configuration=where)


def delta_named(found: Comparison, name: str) -> MetricDelta:
    """What a comparison has of a metric, under the name that reports or comparisons give it."""
    # Where every trial has a verdict a comparison has the pass rate only, and of an evaluator that
    # says yes or no the score only: each is the same number twice.
    twin = PASS_RATE if name == STRICT_PASS_RATE else name.removesuffix(".pass_rate")
    delta = found.find(name) or found.find(twin)
    if delta is None:
        known = {STRICT_PASS_RATE, *(one.name for one in found.all_deltas())}
        raise ConfigError(f"there is no metric {name!r} to compare", where="metric", fix=likely(name, known))
    if delta.higher_is_better is None:
        raise ConfigError(
            f"whether {name} is better higher or lower is not known",
            where="metric",
            fix=f"say so: --better {name}=higher (or lower)",
        )
    return delta


def refuse_unlike(found: Comparison, demand: Demand) -> None:
    """Refuse to decide by what all evaluators say together, where they are not the same ones."""
    deltas = {name: delta_named(found, name) for name in demand.metrics}
    asked = [
        name
        for name, delta in deltas.items()
        if delta.verdict == NOT_COMPARABLE
        # An evaluator that fell silent leaves a check inconclusive; it does not refuse it.
        and (found.unlike or not found.uneven or delta.name not in COMBINED)
    ]
    if found.unlike and demand.max_flips is not None:
        asked.append("how many samples were lost")
    if not asked:
        return
    shared = [n for n, one in found.scores.items() if one.verdict != NOT_COMPARABLE and one.n]
    by_one = f"ask for what both have: --metric {shared[0]}; " if shared else ""
    otherwise = "" if demand.accept_changes else ", or say --accept-changes"
    raise ConfigError(
        f"{found.a} and {found.b} were not scored by the same evaluators, so that "
        f"{' and '.join(asked)} cannot be compared: {'; '.join(found.unlike or found.notes)}",
        where="baseline",
        fix=f"{by_one}make a new baseline with these evaluators{otherwise}",
    )


def refuse_unmeasured(a: Side, b: Side, demand: Demand) -> None:
    """Refuse a metric that one of the sides has no number of: nothing could come out."""
    for name in demand.metrics:
        twin = PASS_RATE if name == STRICT_PASS_RATE else name.removesuffix(".pass_rate")
        for side in (b, a):
            if side.find(name) is None and side.find(twin) is None:
                raise ConfigError(
                    f"{side.name} has no number of {name}", where="metric", fix=nearest(name, side.names)
                )


def margin_of(delta: MetricDelta, share: float) -> float:
    """A margin in the metric's own unit; refused where it would let everything pass."""
    if delta.kind == "number":
        return share * abs(delta.b or 0.0)
    if share >= 1:
        raise ConfigError(
            f"the margin of {delta.name} is {share:g}: it lies from 0 to 1, so nothing would fail",
            where="margin",
            fix="give it in points: 2% or 0.02",
        )
    return share


def _metric_check(
    name: str, delta: MetricDelta, evidence: Evidence, margin: float, family: int, samples: int
) -> Check:
    # What is judged is a share of the scale, what is told lies on it. Where there are pairs, and
    # none of them has the number on both sides, the rest is not two groups of the same kind.
    wide, apart = width(delta), bool(samples) and not evidence.pairs
    found = Judged(None, "inconclusive") if apart else judged(as_share(delta), evidence, margin, family)
    in_groups = not evidence.pairs and not apart
    check = Check(
        name,
        found.verdict,
        "",
        value=delta.a,
        baseline=delta.b,
        difference=delta.absolute,
        interval=wider(found.interval, wide),
        margin=margin * wide,
        n=0 if apart else len(evidence.first),
        more_samples=found.more_samples,
        kind=delta.kind,
        clusters=delta.clusters,
        baseline_n=len(evidence.second) if in_groups else None,
    )
    missing = 0 if in_groups else samples - check.n
    return msgspec.structs.replace(check, sentence=words.of_metric(check, delta, family, missing=missing))


def _threshold_checks(report: EvalReport | None, least: Mapping[str, float], most: float) -> Iterator[Check]:
    if report is None:
        return
    for metric, value in in_own_unit(least, columns_in(report.metadata)).items():
        below = shortfalls(report, {metric: value})
        known = report.metrics.get(metric)
        reached = None if known is None else known.value
        told = "; ".join(below) or words.of_threshold(metric, reached, value)
        check = Check(
            f"{metric} at least {value:g}",
            "fail" if below else "pass",
            f"{told}{words.of_count(known)}",
            value=reached,
            n=0 if known is None else known.n,
            kind="rate" if known is not None and known.kind == "rate" else "number",
        )
        yield without_gaps(check, Gaps(worst_gap(report, metric, most)), most)


def _flip_checks(
    pairs: Sequence[tuple[Side, Side]], found: Sequence[Comparison], demand: Demand
) -> Iterator[Check]:
    if (most := demand.max_flips) is None:
        return
    for (run, base), one in zip(pairs, found, strict=True):
        lost = len(one.lost)
        check = Check(
            f"at most {most} lost",
            "fail" if lost > most else "pass",
            words.of_flips(lost, most),
            configuration=one.a if len(found) > 1 else "",
            value=float(lost),
            n=one.samples,
        )
        check = without_silent(check, STRICT_PASS_RATE, run, base, demand.max_missing)
        yield check if demand.accept_changes else without_unmatched(check, one, run)


def refuse_unknown_metrics(demand: Demand, baseline: Iterable[Side]) -> None:
    """Refuse a metric that the baseline has not, before a run is paid for."""
    for side in baseline:
        itself = compare(side, side, better=demand.better)
        for name, share in demand.metrics.items():
            margin_of(delta_named(itself, name), share)


def metrics_asked(given: Mapping[str, float | None], margin: float = DEFAULT_MARGIN) -> dict[str, float]:
    """The margin of each metric: its own, or that of all; the strict pass rate if none is named.

    >>> metrics_asked({}), metrics_asked({"latency_ms.mean": 0.1, "pass_rate": None}, 0.03)
    ({'strict_pass_rate': 0.02}, {'latency_ms.mean': 0.1, 'pass_rate': 0.03})
    """
    named = given or {DEFAULT_METRIC: None}
    return {name: margin if own is None else own for name, own in named.items()}
