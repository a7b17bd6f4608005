"""Configurations of a run beside their baseline, for the screen and for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from proctor.records.report import EvalReport

if TYPE_CHECKING:
    from proctor.records.comparison import Comparison

FLIPS_SHOWN = 3


def comparisons(report: EvalReport) -> list[Comparison]:
    """Every configuration of a run beside its baseline; none where no baseline was named."""
    run = report.metadata
    if run is None or run.baseline is None or not report.total:
        return []
    from proctor.comparison.compare import compare_all
    from proctor.comparison.report import FieldReport

    sides = FieldReport.of(report)
    baseline = sides.side(run.baseline)
    others = [one.name for one in run.configurations if one.name != run.baseline]
    return compare_all([(sides.side(name), baseline) for name in others])


def show_beside(report: EvalReport) -> None:
    """Print every configuration beside the baseline, below the report."""
    from proctor.reports.comparison import show

    if found := comparisons(report):
        click.echo()
        show(found, flips=FLIPS_SHOWN)


def as_markdown(found: Sequence[Comparison], *, flips: int = FLIPS_SHOWN) -> str:
    """Comparisons as Markdown, one after the other."""
    from proctor.reports.comparison import markdown

    return "\n".join(markdown(one, flips=flips) for one in found)
