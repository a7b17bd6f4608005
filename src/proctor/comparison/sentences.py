"""A comparison in a sentence or two, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.comparison.sides import PASS_RATE, STRICT_PASS_RATE
from proctor.records.comparison import NOT_COMPARABLE, Comparison, MetricDelta
from proctor.records.wording import about, change, changes, probability, unit, value

# As many names of what else differs as one can take in.
NAMED = 4


def answer(found: Comparison) -> str:
    """What is to be known first: which is better, by how much, how sure; then what else moved.

    Of sides that other evaluators judged, or of which one judged far fewer samples, that is the
    first thing to be known.
    """
    if found.unlike or found.uneven:
        return " ".join([_unlike(found), *_moved(found.essential())])
    headline = _headline(found)
    if headline is None or headline.absolute is None:
        return f"{found.a} and {found.b} have no number in common that could be compared."
    return " ".join([_about(found, headline), *_besides(found, headline)])


def _headline(found: Comparison) -> MetricDelta | None:
    """The number that the answer is about: what passed, else the first there is."""
    strict, rate = found.metrics.get(STRICT_PASS_RATE), found.metrics.get(PASS_RATE)
    if strict is not None and rate is not None and strict.says_the_same_as(rate):
        strict = None
    told = [one for one in (strict, rate, *found.essential()) if one is not None]
    return next((one for one in told if one.absolute is not None), None)


def _about(found: Comparison, delta: MetricDelta) -> str:
    figures = f"{delta.name} {value(delta.a, delta.kind)} against {value(delta.b, delta.kind)}"
    apart = f"{figures}, {_change(delta)} ({', '.join(_sure(delta, found.tests))})"
    if delta.verdict == "no difference worth the name":
        worth = f"±{change(delta.worth, delta.kind, sign='')}{unit(delta.kind)}"
        return (
            f"{found.a} and {found.b} do not differ by anything worth the name: {apart}; "
            f"more than {worth} is unlikely."
        )
    if delta.verdict == "not enough evidence":
        more = delta.more_samples
        each = "" if delta.paired else " on each side"
        noun = "sample" if more == 1 else "samples"
        needed = f"; about {about(more)} more {noun}{each} would settle it" if more else ""
        return f"Not enough evidence that {found.a} and {found.b} differ: {apart}{needed}."
    word = {"better": "better than", "worse": "worse than"}.get(delta.verdict, "different from")
    return f"{found.a} is {word} {found.b}: {apart}."


def _change(delta: MetricDelta) -> str:
    """A difference in points of a share, else as it is and in percent."""
    text = f"{change(delta.absolute, delta.kind)}{unit(delta.kind)}"
    if delta.kind == "number" and delta.percentage is not None:
        return f"{text} ({delta.percentage:+.1f} %)"
    return text


def _sure(delta: MetricDelta, tests: int) -> Iterator[str]:
    yield f"n = {delta.n:,}"
    if delta.interval is not None:
        yield f"95 % interval {changes(delta.interval, delta.kind)}"
    if delta.p_adjusted is not None:
        p = probability(delta.p_adjusted)
        corrected = f" corrected for {tests} tests" if tests > 1 else ""
        yield f"p {'' if p.startswith('<') else '= '}{p.replace('<', '< ')}{corrected}"


def _unlike(found: Comparison) -> str:
    lost = [one.name for one in found.essential() if one.verdict == NOT_COMPARABLE]
    so = f", so that {' and '.join(lost)} {'do' if len(lost) > 1 else 'does'} not compare"
    how = "by the same evaluators" if found.unlike else "equally often by the same evaluators"
    return (
        f"{found.a} and {found.b} were not scored {how}"
        f"{so if lost else ''}: {'; '.join((*found.unlike, *found.uneven))}."
    )


def _moved(deltas: Sequence[MetricDelta], also: str = "") -> Iterator[str]:
    for verdict in ("better", "worse", "different"):
        names = [one.name for one in deltas if one.verdict == verdict]
        if names:
            rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            word = f"Also {verdict}" if verdict == also else verdict.capitalize()
            yield f"{word}: {', '.join(names[:NAMED])}{rest}."


def _besides(found: Comparison, headline: MetricDelta) -> Iterator[str]:
    others = [one for one in found.essential() if not one.says_the_same_as(headline)]
    yield from _moved(others, also=headline.verdict)
    if not headline.paired:
        yield in_groups(found)


def in_groups(found: Comparison) -> str:
    """That two sides are compared without pairs, and why.

    >>> in_groups(Comparison("a", "b"))
    'No sample is in both: they are compared as two independent groups.'
    """
    if found.unpaired:
        return "All samples of both are compared, as two independent groups."
    same = "the same in both" if found.other_content else "in both"
    return f"No sample is {same}: they are compared as two independent groups."
