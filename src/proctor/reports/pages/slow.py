"""The pages that read all samples of a run or compute statistics, for the viewer and the one-file report."""

from __future__ import annotations

from typing import Any

from proctor.comparison.report import EvalReport
from proctor.errors import UsageError, suggest_name
from proctor.records.grid import Grid
from proctor.reports.pages import judging, runs, samples

SLOW_PAGES = ("metadata", "comparisons", "slices", "rubrics", "judges")


def make_slow_page(report: EvalReport, grid: Grid, name: str, detail: str = "") -> Any:
    """Make a page below a run; `detail` is the key of slices, or the configuration of rubrics."""
    match name:
        case "metadata":
            return metadata_page(report, grid)
        case "comparisons":
            return [
                {"a": found.a, "b": found.b, "answer": found.answer, "samples": found.samples}
                for found in report.compare_with_baseline()
            ]
        case "slices":
            return runs.slices_page(report, detail)
        case "rubrics":
            if detail not in grid.configurations:
                raise UsageError(f"unknown configuration {detail!r}", fix=suggest_name(detail, grid.configurations))
            return judging.rubrics_page(report, grid, grid.configurations.index(detail))
        case "judges":
            return judging.judges_page(report, grid)
    raise UsageError(f"unknown page {name!r}", fix=suggest_name(name, SLOW_PAGES))


def metadata_page(report: EvalReport, grid: Grid) -> dict[str, Any]:
    """Describe the metadata of all samples: its keys, and a column for each key."""
    rows = {sample_id: row for row, sample_id in enumerate(grid.sample_ids)}
    results = report.results
    if len(grid.configurations) > 1:
        # A configuration may lack samples in a run that has not finished.
        results = results.for_configuration(grid.configurations[0])
    columns = samples.list_metadata(results.samples(), rows)
    return {
        "keys": [{"key": key, "values": len(column["values"])} for key, column in columns.items()],
        "columns": columns,
    }
