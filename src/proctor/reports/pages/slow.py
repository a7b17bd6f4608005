"""The pages that read all samples of a run or compute statistics, for the viewer and the one-file report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.errors import UsageError, suggest_name
from proctor.records.grid import NO_RESULT, Grid
from proctor.records.sample import Sample
from proctor.reports.pages import judging, runs
from proctor.reports.pages.samples import list_metadata

SLOW_PAGES = ("metadata", "comparisons", "slices", "rubrics", "judges")


def make_slow_page(
    report: EvalReport, grid: Grid, name: str, detail: str = "", samples: Sequence[Sample[Any, Any]] | None = None
) -> Any:
    """Make a page below a run; `detail` is the key of slices, or the configuration of rubrics.

    `samples` are those that `read_metadata` returned, if they are known.
    """
    match name:
        case "metadata":
            return metadata_page(read_metadata(report, grid) if samples is None else samples, grid)
        case "comparisons":
            return [
                {"a": found.a, "b": found.b, "answer": found.answer, "samples": found.samples}
                for found in report.compare_with_baseline()
            ]
        case "slices":
            return runs.slices_page(report, detail, samples)
        case "rubrics":
            if detail not in grid.configurations:
                raise UsageError(f"unknown configuration {detail!r}", fix=suggest_name(detail, grid.configurations))
            return judging.rubrics_page(report, grid, grid.configurations.index(detail))
        case "judges":
            return judging.judges_page(report, grid)
    raise UsageError(f"unknown page {name!r}", fix=suggest_name(name, SLOW_PAGES))


def read_metadata(report: EvalReport, grid: Grid) -> list[Sample[Any, Any]]:
    """Read the samples of a run without their inputs and expected values, which may need much memory."""
    known: set[str] = set()
    found: list[Sample[Any, Any]] = []
    for index, name in enumerate(grid.configurations):
        outcomes = [grid.outcomes[cells] for cells in grid.cells_of(index)]
        ids = compress(grid.sample_ids, (min(marks) != NO_RESULT for marks in zip(*outcomes, strict=True)))
        # Most often, the first configuration has all samples; it may lack some in a run that has not finished.
        if new := set(ids) - known:
            known |= new
            for sample in report.results.for_configuration(name).samples():
                if sample.id in new:
                    new.remove(sample.id)
                    found.append(Sample(sample.id, None, metadata=sample.metadata))
    return found


def metadata_page(known: Iterable[Sample[Any, Any]], grid: Grid) -> dict[str, Any]:
    """Describe the metadata of all samples: its keys, and a column for each key."""
    rows = {sample_id: row for row, sample_id in enumerate(grid.sample_ids)}
    columns = list_metadata(known, rows)
    return {
        "keys": [{"key": key, "values": len(column["values"])} for key, column in columns.items()],
        "columns": columns,
    }
