"""Metrics by slice (the samples with one value of a metadata key, or one tag), and the quality of labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proctor.records.metric import MetricValue

Tables = dict[str, dict[str, MetricValue]]


class Slice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The samples with one value: its label, the number of samples, and the metrics by configuration."""

    label: str
    samples: int
    metrics: Tables = {}


class Slices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The metrics of a run by the values of a metadata key or by tag, for each configuration.

    `total` holds the metrics of all samples. With `overlapping` slices, a sample with several values is in several
    of them; otherwise every sample is in exactly one. `binned` numbers are grouped into ranges of similar size. The
    95% interval of a slice is its own: with many slices, some lie apart by chance. `notes` name the slices that
    contradict the total.
    """

    key: str
    slices: tuple[Slice, ...] = ()
    total: Tables = {}
    overlapping: bool = False
    binned: bool = False
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Slice]:
        return iter(self.slices)

    def __len__(self) -> int:
        return len(self.slices)

    def __getitem__(self, label: str) -> Slice:
        for part in self.slices:
            if part.label == label:
                return part
        raise KeyError(label)

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping for each slice, configuration and metric, for a table or a plot."""
        return [
            {
                self.key: part.label,
                "configuration": configuration,
                "metric": name,
                "value": metric.value,
                "n": metric.n,
                "errors": metric.errors,
                "skipped": metric.skipped,
                "low": metric.interval and metric.interval[0],
                "high": metric.interval and metric.interval[1],
            }
            for part in self.slices
            for configuration, metrics in part.metrics.items()
            for name, metric in metrics.items()
        ]


class LabelScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How well one label is predicted.

    `precision` is the share of the outputs with this label that are right, `recall` the share of the samples with
    this label whose output is right, and `f1` their harmonic mean; each has its own n.
    """

    label: str
    precision: MetricValue
    recall: MetricValue
    f1: MetricValue


class LabelReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Precision, recall, F1 and a confusion table of one configuration.

    `confusion[expected][output]` counts results; outputs that are not a label are counted under `other`. `errors` are
    results without an output, `skipped` results without an expected label; both are left out. If outputs are not
    labels, `problem` says why, and there are no numbers.
    """

    configuration: str
    problem: str = ""
    labels: tuple[LabelScore, ...] = ()
    macro: LabelScore | None = None
    accuracy: MetricValue | None = None
    confusion: dict[str, dict[str, int]] = {}
    other: str = ""
    n: int = 0
    errors: int = 0
    skipped: int = 0
    notes: tuple[str, ...] = ()

    def find(self, label: str) -> LabelScore | None:
        """Return the scores of a label, or None."""
        return next((quality for quality in self.labels if quality.label == label), None)

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping for each label, and one for their mean, for a table or a plot."""
        scores = [*self.labels, *([] if self.macro is None else [self.macro])]
        return [{"configuration": self.configuration, "label": score.label, **_flatten(score)} for score in scores]


def _flatten(score: LabelScore) -> Mapping[str, float | int | None]:
    row: dict[str, float | int | None] = {}
    for name in ("precision", "recall", "f1"):
        metric: MetricValue = getattr(score, name)
        low, high = metric.interval or (None, None)
        row |= {name: metric.value, f"{name}_low": low, f"{name}_high": high, f"{name}_n": metric.n}
    return row
