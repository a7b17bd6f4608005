"""Configurations of a run beside their baseline, for the screen and for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.records.report import EvalReport

if TYPE_CHECKING:
    from proctor.comparison.deltas import Comparison


def comparisons(report: EvalReport) -> list[Comparison]:
    """Every configuration of a run beside its baseline; none where no baseline was named."""
    run = report.metadata
    if run is None or run.baseline is None or not report.total:
        return []
    from proctor.definition.report import FieldReport

    fields = FieldReport.of(report)
    others = [one.name for one in run.configurations if one.name != run.baseline]
    return [fields.compare(name, run.baseline) for name in others]


def in_words(found: list[Comparison]) -> str:
    """Comparisons as plain tables, each under what it compares."""
    return "\n\n".join(f"{one.a} beside {one.b}, the baseline\n{one}" for one in found)
