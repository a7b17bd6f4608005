"""The pages that read all samples of a run or compute statistics, for the viewer and the one-file report."""

from __future__ import annotations

from collections import Counter
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.comparison.totals import share_to_scale
from proctor.core.stats.intervals import wilson_interval
from proctor.errors import UsageError, suggest_name
from proctor.records.grid import Grid
from proctor.records.rubric import read_run_columns, weighted_mean
from proctor.records.trial import OUTCOMES
from proctor.reports.pages import runs, samples

SLOW_PAGES = ("metadata", "comparisons", "slices", "rubrics", "judges")


MAX_SESSIONS = 2_000
MAX_DISAGREEMENTS = 1_000


def make_slow_page(report: EvalReport, grid: Grid, name: str, detail: str = "") -> Any:
    """Make a page below a run; `detail` is the key of slices, or the configuration of rubrics."""
    match name:
        case "metadata":
            return metadata_page(report, grid)
        case "comparisons":
            return [
                {"a": comparison.a, "b": comparison.b, "answer": comparison.answer, "samples": comparison.samples}
                for comparison in report.compare_with_baseline()
            ]
        case "slices":
            return runs.slices_page(report, detail)
        case "rubrics":
            if detail not in grid.configurations:
                raise UsageError(f"unknown configuration {detail!r}", fix=suggest_name(detail, grid.configurations))
            return rubrics_page(report, grid, grid.configurations.index(detail))
        case "judges":
            return judges_page(report, grid)
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


_PASSED, _FAILED = OUTCOMES.index("passed"), OUTCOMES.index("failed")


def rubrics_page(report: EvalReport, grid: Grid, configuration: int = 0) -> dict[str, Any]:
    """Describe the scores of every session by rubric, on the scale of the rubrics; None for a missing score."""
    columns = read_run_columns(report.metadata)
    rows = range(min(MAX_SESSIONS, len(grid.sample_ids)))
    cells = [row * grid.width + configuration * grid.epochs for row in rows]
    scores, totals = [], []
    for cell in cells:
        shares = [grid.scores[column.name][cell] for column in columns.columns]
        scores.append(
            [
                round(share_to_scale(share, column.scale), 3) if share == share else None
                for share, column in zip(shares, columns.columns, strict=True)
            ]
        )
        weighted = [
            (column.rubric.weight, share)
            for share, column in zip(shares, columns.columns, strict=True)
            if share == share and column.rubric.weight
        ]
        totals.append(round(share_to_scale(weighted_mean(weighted), columns.scale), 3) if weighted else None)
    return {
        "rubrics": [{"name": column.name, "scale": list(column.scale)} for column in columns.columns],
        "sessions": grid.sample_ids[: len(rows)],
        "scores": scores,
        "totals": totals,
        "scale": list(columns.scale),
        "left_out": len(grid.sample_ids) - len(rows),
    }


def judges_page(report: EvalReport, grid: Grid) -> dict[str, Any]:
    """Describe how often each two evaluators agree, and the results on which a judge and another one disagree."""
    run = report.metadata
    judges = {spec.name: list(spec.judges_inside) for spec in run.evaluators if spec.judges_inside} if run else {}
    names = list(grid.marks)
    pairs = [_compare_pair(grid, a, b) for index, a in enumerate(names) for b in names[index + 1 :]]
    disagreements: list[dict[str, Any]] = []
    count = 0
    for cell in range(len(grid.outcomes)):
        verdicts = {name: marks[cell] for name, marks in grid.marks.items() if marks[cell] in (_PASSED, _FAILED)}
        if len(set(verdicts.values())) < 2 or not judges.keys() & verdicts.keys():
            continue
        count += 1
        if len(disagreements) < MAX_DISAGREEMENTS:
            row, place = divmod(cell, grid.width)
            disagreements.append(
                {
                    "row": row,
                    "sample_id": grid.sample_ids[row],
                    "configuration": grid.configurations[place // grid.epochs],
                    "epoch": place % grid.epochs,
                    "verdicts": {name: OUTCOMES[mark] for name, mark in verdicts.items()},
                }
            )
    return {"judges": judges, "pairs": pairs, "disagreements": disagreements, "count": count}


def _compare_pair(grid: Grid, a: str, b: str) -> dict[str, Any]:
    counts = Counter(zip(grid.marks[a], grid.marks[b], strict=True))
    n = sum(counts[first, second] for first in (_PASSED, _FAILED) for second in (_PASSED, _FAILED))
    agree = counts[_PASSED, _PASSED] + counts[_FAILED, _FAILED]
    return {
        "a": a,
        "b": b,
        "n": n,
        "agree": agree,
        "interval": wilson_interval(agree, n),
        "only_a_passed": counts[_PASSED, _FAILED],
        "only_b_passed": counts[_FAILED, _PASSED],
    }
