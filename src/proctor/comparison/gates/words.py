"""What a gate found, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from proctor.comparison.sentences import in_groups
from proctor.core.stats.intervals import FEWEST_CLUSTERS
from proctor.records.comparison import Comparison, MetricDelta
from proctor.records.gate import Check, Early, GateVerdict
from proctor.records.metric import MetricValue
from proctor.records.wording import Kind, about, change, in_clusters, unit, value

NAMED = 3
# Nobody runs so many times as many samples as there are.
HOPELESS = 1_000
OPENINGS = {"pass": "The gate passes", "fail": "The gate fails", "inconclusive": "The gate is inconclusive"}


def answer(verdict: GateVerdict, checks: Sequence[Check], early: Early | None) -> str:
    """The whole gate in a sentence: the check that it hangs on, and how many more."""
    deciding = [check for check in checks if check.verdict == verdict]
    many, all_of = len(deciding), len(checks)
    part = f"{many} of {all_of}"
    if many == all_of:
        part = "both" if many == 2 else f"all {all_of}"
    within = f" in {part} checks" if all_of > 1 else ""
    hardest = max(deciding, key=_hardness) if verdict == "inconclusive" else deciding[0]
    text = f"{OPENINGS[verdict]}{within}: {named(hardest)}"
    if early is not None:
        text += f"; {of_early(early, verdict)}"
    return f"{text}."


def _hardness(check: Check) -> float:
    """How many more samples a check takes; no number of them, where it is not to be settled."""
    return math.inf if _is_hopeless(check) else check.more_samples or 0


def _is_hopeless(check: Check) -> bool:
    return check.more_samples is None or check.more_samples > HOPELESS * max(1, check.n)


def named(check: Check) -> str:
    """The sentence of a check, with its configuration where there are several."""
    return f"{check.configuration}: {check.sentence}" if check.configuration else check.sentence


def of_metric(
    check: Check, delta: MetricDelta, family: int = 1, missing: int = 0, *, further: bool = True
) -> str:
    """What a metric is beside the baseline, how bad that is at worst, and what is allowed.

    Without `further` it says nothing of how many more samples it takes.
    """
    kind = delta.kind
    figures = f"{check.name} {value(check.value, kind)} against {value(check.baseline, kind)}"
    gaps = f"; {_samples(missing)} without a number left out" if missing and check.n else ""
    allowed = _allowed(check, delta)
    if check.interval is None:
        return f"{figures}, {_cannot_tell(check, delta)} ({allowed}){gaps}{_more(check)}"
    low, high = check.interval
    if not delta.higher_is_better:
        low, high = -high, -low
    if check.verdict == "pass":
        worst = "at least" if low > 0 else "at most"
        return f"{figures}, {worst} {_way(kind, low, check.margin)} ({allowed}){gaps}"
    if check.verdict == "fail":
        return f"{figures}, at least {_way(kind, high, check.margin)} ({allowed}){gaps}"
    span = f"from {_way(kind, low, check.margin)} to {_way(kind, high, check.margin)}"
    beyond = high < -(check.margin or 0.0)
    doubt = f", which is not sure enough for one of {family} metrics" if beyond else ""
    return f"{figures}, {span} ({allowed}){doubt}{gaps}{_more(check) if further else ''}"


def of_threshold(metric: str, reached: float | None, least: float) -> str:
    """That a threshold was reached."""
    known = "" if reached is None else f" is {reached:.4g},"
    return f"{metric}{known} at least {least:g}"


def of_count(found: MetricValue | None) -> str:
    """How many values a number rests on, and how many it could not use.

    >>> of_count(MetricValue(0.9, 38, errors=22))
    ' (n = 38, 22 missing)'
    """
    if found is None:
        return ""
    partial = f", {found.partial:,} lack a rubric that failed" if found.partial else ""
    missing = f", {found.errors:,} missing" if found.errors else ""
    skipped = f", {found.skipped:,} skipped" if found.skipped else ""
    return f" (n = {found.n:,}{partial}{missing}{skipped})"


def of_flips(lost: int, most: int) -> str:
    """How many samples were lost, and how many may be.

    >>> of_flips(1, 3)
    '1 sample was lost, at most 3 may be'
    """
    return f"{_samples(lost)} {'was' if lost == 1 else 'were'} lost, at most {most} may be"


def of_early(early: Early, verdict: GateVerdict) -> str:
    """After how many samples it was decided, and how many that saved."""
    whole = "" if early.of is None else f" of {early.of:,}"
    if verdict == "inconclusive":
        return (
            f"not decided after {early.n:,}{whole} samples, for looking after every one of them "
            "takes a wider interval than looking once at the end"
        )
    saved = f"; {early.saved:,} saved" if early.of is not None else ""
    return f"decided after {early.n:,}{whole} samples{saved}"


def unmatched(found: Comparison) -> Iterator[str]:
    """Which samples have no partner, and so are left out; that none has, and what that leads to."""
    if not found.samples:
        told = in_groups(found)
        yield f"{found.a} and {found.b}: {told[0].lower()}{told[1:-1]}"
        return
    for ids, mine, other in ((found.only_a, found.a, found.b), (found.only_b, found.b, found.a)):
        if ids:
            some = ", ".join(ids[:NAMED]) + (", …" if len(ids) > NAMED else "")
            are = "is" if len(ids) == 1 else "are"
            yield f"{_samples(len(ids))} of {mine} {are} not in {other} and left out: {some}"


def _cannot_tell(check: Check, delta: MetricDelta) -> str:
    if not check.n:
        return "no sample has this number in both"
    if delta.clusters is not None and delta.clusters < FEWEST_CLUSTERS:
        return f"{delta.clusters} clusters of samples cannot tell the difference"
    if delta.clusters is not None and delta.p is None and delta.method:
        return f"{delta.method}, which cannot tell the difference"
    return f"{_samples(check.n)} cannot tell the difference"


def _allowed(check: Check, delta: MetricDelta) -> str:
    margin = check.margin or 0.0
    text = f"margin {_size(delta.kind, margin)}"
    if delta.kind == "number" and delta.b:
        text += f", {100 * margin / abs(delta.b):.3g} %"
    return f"{text}, {of_samples(check)}"


def _more(check: Check) -> str:
    if check.more_samples is not None and not _is_hopeless(check):
        more = check.more_samples
        each = "" if check.baseline_n is None else " on each side"
        return f"; about {about(more)} more sample{'' if more == 1 else 's'}{each} would settle it"
    if check.interval is None or not check.n:
        return ""
    if not check.margin and not check.difference:
        return "; with a margin of 0 equal systems never pass"
    room = abs(abs(check.difference or 0.0) - (check.margin or 0.0))
    if check.more_samples is None and room > 1e-9:
        return ""
    return "; the difference is so near to the margin that more samples hardly settle it"


def _way(kind: Kind, number: float, margin: float | None) -> str:
    """How far better or worse; above 0 is better. What is not the margin does not look like it."""
    text = _size(kind, abs(number))
    is_near = margin is not None and text == _size(kind, margin)
    if kind == "rate" and is_near and abs(abs(number) - (margin or 0.0)) > 1e-9:
        text = f"{100 * abs(number):.3f} points"
    return f"{text} {'better' if number > 0 else 'worse'}"


def _size(kind: Kind, number: float) -> str:
    return f"{change(number, kind, sign='')}{unit(kind)}"


def of_samples(check: Check) -> str:
    """How many samples decided a check, and how many clusters they belong to."""
    if check.baseline_n is None:
        return in_clusters(_samples(check.n), check.clusters)
    groups = f"two groups of {check.n:,} and {check.baseline_n:,} samples"
    return in_clusters(groups, check.clusters)


def _samples(count: int) -> str:
    return f"{count:,} sample{'' if count == 1 else 's'}"
