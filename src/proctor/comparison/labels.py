"""Precision, recall, F1 and a confusion table of outputs that are labels."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.core.stats.descriptive import mean
from proctor.metrics.estimates import estimate_clustered_rate, estimate_rate
from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.records.results import Column, Results, find_cluster, list_shared_clusters
from proctor.records.sample import type_name
from proctor.records.selection import label_value
from proctor.records.slices import LabelReport, LabelScore
from proctor.records.trial import EvalResult

MAX_LABELS = 20
MAX_LABEL_LENGTH = 50
# If more of the outputs than this are none of the labels, the outputs are not labels.
MAX_OTHER_SHARE = 0.5
MAX_EXAMPLE_LENGTH = 40
RESULTS_CHECKED = 100
OTHER = "(other)"
MACRO = "macro mean"
_NO_KEY = ""


class _Case(NamedTuple):
    """One result with an expected label and an output; outputs that are no label have an empty key."""

    expected: str
    output: str
    cluster: str


class _Reader:
    """Reads expected labels and outputs, and stops at the first value that cannot be a label."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.cases: list[_Case] = []
        self.samples: set[str] = set()
        self.outputs: Counter[str] = Counter()
        self.errors = self.skipped = 0
        self.problem = ""

    def read(self, results: Results) -> None:
        for result in results:
            self.problem = self.add(result)
            if self.problem:
                return
        self.problem = self._check_all()

    def add(self, result: EvalResult) -> str:
        """Add a result; return why its expected value cannot be a label, or an empty string."""
        expected = result.trial.sample.expected
        if expected is None:
            self.skipped += 1
            return ""
        if not isinstance(expected, str | bool):
            return f"the expected value of sample {result.sample_id!r} is {type_name(expected)}, not a text"
        label = label_value(expected).strip()
        if len(label) > MAX_LABEL_LENGTH:
            return f"the expected text of sample {result.sample_id!r} is longer than {MAX_LABEL_LENGTH} characters"
        key = label.casefold()
        self.names.setdefault(key, label)
        self.samples.add(result.sample_id)
        if len(self.names) > MAX_LABELS:
            return f"there are more than {MAX_LABELS} different expected texts"
        if not result.success:
            self.errors += 1
            return ""
        output = _read_output(result.output)
        self.outputs[output] += 1
        self.cases.append(_Case(key, output.casefold(), find_cluster(result)))
        return ""

    def _check_all(self) -> str:
        if not self.cases:
            return "no result has an expected text and an output"
        if len(self.names) < 2:
            return f"the expected text is always {next(iter(self.names.values()))!r}"
        if 2 * len(self.names) > len(self.samples):
            samples = format_count(len(self.samples), "sample")
            return f"{len(self.names)} different expected texts in {samples} are answers, not labels"
        others = self.list_others()
        if (count := sum(others.values())) > MAX_OTHER_SHARE * len(self.cases):
            share = f"{100 * count / len(self.cases):.0f}%"
            return f"{share} of the outputs are none of the {len(self.names)} labels, for example {_quote(others)}"
        return ""

    def list_others(self) -> Counter[str]:
        """Count the outputs that are none of the labels."""
        return Counter({text: n for text, n in self.outputs.items() if text.casefold() not in self.names})


def may_be_labels(results: Results) -> bool:
    """True if the first results do not rule out labels."""
    reader = _Reader()
    return bool(len(results)) and not any(map(reader.add, results[:RESULTS_CHECKED])) and bool(reader.names)


def measure_labels(configuration: str, results: Results) -> LabelReport:
    """Measure how well the labels of one configuration are predicted; say why if its outputs are not labels."""
    reader = _Reader()
    reader.read(results)
    if reader.problem:
        return LabelReport(configuration, reader.problem)
    cases = [case if case.output in reader.names else case._replace(output=_NO_KEY) for case in reader.cases]
    keys = sorted(reader.names)
    scores = [_score_label(key, reader.names[key], cases) for key in keys]
    is_clustered = list_shared_clusters(case.cluster for case in cases) is not None
    columns = [*keys, *([_NO_KEY] if any(case.output == _NO_KEY for case in cases) else [])]
    counts = Counter((case.expected, case.output) for case in cases)
    names = {**reader.names, _NO_KEY: OTHER}
    return LabelReport(
        configuration,
        labels=tuple(scores),
        macro=_average_labels(scores, len(cases), is_clustered),
        accuracy=msgspec.structs.replace(
            _estimate(cases, lambda case: case.expected == case.output), errors=reader.errors, skipped=reader.skipped
        ),
        confusion={names[row]: {names[column]: counts[row, column] for column in columns} for row in keys},
        other=OTHER if _NO_KEY in columns else "",
        n=len(cases),
        errors=reader.errors,
        skipped=reader.skipped,
        notes=tuple(_describe_notes(reader, scores)),
    )


def _read_output(output: Any) -> str:
    """Return an output as text; anything but a text or a boolean is no label."""
    return label_value(output).strip() if isinstance(output, str | bool) else f"({type_name(output)})"


def _score_label(key: str, name: str, cases: Sequence[_Case]) -> LabelScore:
    predicted = [case for case in cases if case.output == key]
    expected = [case for case in cases if case.expected == key]
    involved = [case for case in cases if key in (case.output, case.expected)]

    def is_right(case: _Case) -> bool:
        return case.expected == case.output

    return LabelScore(
        name, _estimate(predicted, is_right), _estimate(expected, is_right), _to_f1(_estimate(involved, is_right))
    )


def _estimate(cases: Sequence[_Case], is_right: Callable[[_Case], bool]) -> MetricValue:
    flags = array("d", (float(is_right(case)) for case in cases))
    clusters = list_shared_clusters(case.cluster for case in cases)
    if clusters is None:
        return estimate_rate(int(sum(flags)), len(flags))
    return estimate_clustered_rate(Column(flags, clusters=clusters))


def _to_f1(share: MetricValue) -> MetricValue:
    """Convert the share of right results among all that involve a label: F1 = 2 share / (1 + share).

    A result involves a label as a hit, a false alarm or a miss, and never as two of them, so the interval of the share
    becomes the interval of F1.
    """

    def convert(number: float) -> float:
        return 2 * number / (1 + number)

    value = None if share.value is None else convert(share.value)
    interval = share.interval and (convert(share.interval[0]), convert(share.interval[1]))
    return msgspec.structs.replace(share, value=value, interval=interval)


def _average_labels(scores: Sequence[LabelScore], n: int, is_clustered: bool) -> LabelScore:
    columns = {name: [getattr(score, name) for score in scores] for name in ("precision", "recall", "f1")}
    averages = {
        name: _average(values, n, is_independent=name != "f1" and not is_clustered) for name, values in columns.items()
    }
    return LabelScore(MACRO, **averages)


def _average(metrics: Sequence[MetricValue], n: int, *, is_independent: bool) -> MetricValue:
    """Return the mean of the labels that have a value.

    The distances to the ends of independent intervals are added as squares (Zou and Donner 2008). F1 of two labels
    depends on the same results, so its distances are added as they are: the interval covers at least 95%.
    """
    known = [metric for metric in metrics if metric.value is not None]
    value = mean([metric.value for metric in known if metric.value is not None])
    if value is None or any(metric.interval is None for metric in known):
        return MetricValue(value, n, kind="rate")
    distances = [
        (metric.value - metric.interval[0], metric.interval[1] - metric.value)
        for metric in known
        if metric.value is not None and metric.interval is not None
    ]
    add = math.hypot if is_independent else (lambda *parts: math.fsum(parts))
    low, high = (add(*side) / len(known) for side in zip(*distances, strict=True))
    return MetricValue(value, n, interval=(max(0.0, value - low), min(1.0, value + high)), kind="rate")


def _describe_notes(reader: _Reader, scores: Sequence[LabelScore]) -> Iterator[str]:
    others = reader.list_others()
    if count := sum(others.values()):
        verb = "is" if count == 1 else "are"
        yield f"{format_count(count, 'output')} {verb} none of the labels, for example {_quote(others)}"
    if unused := [score.label for score in scores if not score.precision.n]:
        yield f"never an output, so without a precision: {', '.join(unused)}"


def _quote(outputs: Counter[str]) -> str:
    text = min(outputs, key=lambda each: (-outputs[each], each))
    return repr(text if len(text) <= MAX_EXAMPLE_LENGTH else f"{text[:MAX_EXAMPLE_LENGTH]}…")
