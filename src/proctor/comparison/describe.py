"""Describe a comparison in a sentence or two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.comparison.sides import PASS_RATE, STRICT_PASS_RATE
from proctor.records.comparison import NOT_COMPARABLE, Comparison, MetricDelta
from proctor.records.formatting import (
    change_unit,
    format_change,
    format_changes,
    format_estimate,
    format_probability,
    format_value,
)

MAX_LISTED_NAMES = 4


def describe_comparison(comparison: Comparison) -> str:
    """Say which side is better, by how much and how surely, and what else changed.

    If the sides were judged by different evaluators, or an evaluator judged far fewer samples on one
    side, the answer starts with that.
    """
    if comparison.unlike or comparison.uneven:
        return " ".join([_describe_changes(comparison), *_list_verdicts(comparison.essential())])
    strict, rate = comparison.metrics.get(STRICT_PASS_RATE), comparison.metrics.get(PASS_RATE)
    if strict is not None and rate is not None and strict.has_same_numbers(rate):
        strict = None
    candidates = [delta for delta in (strict, rate, *comparison.essential()) if delta is not None]
    headline = next((delta for delta in candidates if delta.absolute is not None), None)
    if headline is None:
        return f"{comparison.a} and {comparison.b} have no number in common that could be compared."
    others = [delta for delta in comparison.essential() if not delta.has_same_numbers(headline)]
    sentences = [_describe_delta(comparison, headline), *_list_verdicts(others, also=headline.verdict)]
    if not headline.paired:
        sentences.append(describe_grouping(comparison))
    return " ".join(sentences)


def _describe_delta(comparison: Comparison, delta: MetricDelta) -> str:
    a, b = comparison.a, comparison.b
    difference = f"{format_change(delta.absolute, delta.kind)}{change_unit(delta.kind)}"
    if delta.kind == "number" and delta.percentage is not None:
        difference += f" ({delta.percentage:+.1f} %)"
    figures = (
        f"{delta.name} {format_value(delta.a, delta.kind)} against {format_value(delta.b, delta.kind)}, "
        f"{difference} ({', '.join(_describe_certainty(delta, comparison.tests))})"
    )
    if delta.verdict == "no relevant difference":
        limit = f"±{format_change(delta.min_difference, delta.kind, sign='')}{change_unit(delta.kind)}"
        return f"{a} and {b} show no relevant difference: {figures}; more than {limit} is unlikely."
    if delta.verdict == "not enough evidence":
        more = delta.more_samples
        side = "" if delta.paired else " on each side"
        noun = "sample" if more == 1 else "samples"
        needed = f"; about {format_estimate(more)} more {noun}{side} would decide it" if more else ""
        return f"Not enough evidence that {a} and {b} differ: {figures}{needed}."
    relation = {"better": "better than", "worse": "worse than"}.get(delta.verdict, "different from")
    return f"{a} is {relation} {b}: {figures}."


def _describe_certainty(delta: MetricDelta, tests: int) -> Iterator[str]:
    yield f"n = {delta.n:,}"
    if delta.interval is not None:
        yield f"95 % interval {format_changes(delta.interval, delta.kind)}"
    if delta.p_adjusted is not None:
        p = format_probability(delta.p_adjusted)
        corrected = f" corrected for {tests} tests" if tests > 1 else ""
        yield f"p {'' if p.startswith('<') else '= '}{p.replace('<', '< ')}{corrected}"


def _describe_changes(comparison: Comparison) -> str:
    names = [delta.name for delta in comparison.essential() if delta.verdict == NOT_COMPARABLE]
    consequence = f", so {' and '.join(names)} cannot be compared" if names else ""
    frequency = "" if comparison.unlike else "equally often "
    return (
        f"{comparison.a} and {comparison.b} were not scored {frequency}by the same evaluators"
        f"{consequence}: {'; '.join((*comparison.unlike, *comparison.uneven))}."
    )


def _list_verdicts(deltas: Sequence[MetricDelta], also: str = "") -> Iterator[str]:
    for verdict in ("better", "worse", "different"):
        names = [delta.name for delta in deltas if delta.verdict == verdict]
        if names:
            rest = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
            label = f"Also {verdict}" if verdict == also else verdict.capitalize()
            yield f"{label}: {', '.join(names[:MAX_LISTED_NAMES])}{rest}."


def describe_grouping(comparison: Comparison) -> str:
    """Say that two sides are compared without pairs, and why."""
    if comparison.unpaired:
        return "All samples of both are compared, as two independent groups."
    same = "the same in both" if comparison.other_content else "in both"
    return f"No sample is {same}: they are compared as two independent groups."
