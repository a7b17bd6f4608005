"""The pages about judging: sessions by rubric, and results on which evaluators disagree."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain, compress, repeat
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.comparison.totals import share_to_scale
from proctor.core.stats.intervals import Interval, mean_interval
from proctor.metrics.estimates import estimate_clustered_rate, estimate_rate
from proctor.records.grid import Grid
from proctor.records.results import Column
from proctor.records.rubric import read_run_columns, weighted_mean
from proctor.records.trial import OUTCOMES

MAX_SESSIONS = 2_000
MAX_DISAGREEMENTS = 1_000
_PASSED, _FAILED = _VERDICTS = OUTCOMES.index("passed"), OUTCOMES.index("failed")
_NO_FLAG = 2


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
    by_rubric = list(zip(*scores, strict=True)) or [()] * len(columns.columns)
    return {
        "rubrics": [
            {
                "id": column.name,
                "name": column.rubric.name,
                "weight": column.rubric.weight,
                "scale": list(column.scale),
                "interval": _limit_interval(numbers, column.scale),
            }
            for column, numbers in zip(columns.columns, by_rubric, strict=True)
        ],
        "sessions": grid.sample_ids[: len(rows)],
        "scores": scores,
        "totals": totals,
        "scale": list(columns.scale),
        "left_out": len(grid.sample_ids) - len(rows),
        "epochs": grid.epochs,
    }


def _limit_interval(numbers: Iterable[float | None], scale: tuple[float, float]) -> Interval | None:
    """Return the interval of the mean of known scores, within their scale."""
    interval = mean_interval([number for number in numbers if number is not None])
    return None if interval is None else (max(scale[0], interval[0]), min(scale[1], interval[1]))


def judges_page(report: EvalReport, grid: Grid) -> dict[str, Any]:
    """Describe how often each two evaluators agree, and the results on which a judge and another one disagree.

    Several results of a sample (configurations, epochs) are no independent evidence: intervals count samples.
    """
    run = report.metadata
    judges = {spec.name: list(spec.judges_inside) for spec in run.evaluators if spec.judges_inside} if run else {}
    names = list(grid.marks)
    pairs = [_compare_pair(grid, a, b) for index, a in enumerate(names) for b in names[index + 1 :]]
    disagreements: list[dict[str, Any]] = []
    flags = _flag_cells(grid.marks.values(), lambda marks: _disagrees(dict(zip(names, marks, strict=True)), judges))
    cell = -1
    while len(disagreements) < MAX_DISAGREEMENTS and (cell := flags.find(True, cell + 1)) >= 0:
        row, place = divmod(cell, grid.width)
        verdicts = {name: marks[cell] for name, marks in grid.marks.items() if marks[cell] in _VERDICTS}
        disagreements.append(
            {
                "row": row,
                "sample_id": grid.sample_ids[row],
                "configuration": grid.configurations[place // grid.epochs],
                "epoch": place % grid.epochs,
                "verdicts": {name: OUTCOMES[mark] for name, mark in verdicts.items()},
            }
        )
    return {
        "judges": judges,
        "pairs": pairs,
        "disagreements": disagreements,
        "count": flags.count(True),
        "share": _estimate_share(grid, flags),
        "epochs": grid.epochs,
    }


def _disagrees(marks: Mapping[str, int], judges: Collection[str]) -> bool | None:
    """Return whether a judge and another evaluator have different verdicts; None if there are no two verdicts."""
    verdicts = {name: mark for name, mark in marks.items() if mark in _VERDICTS}
    if len(verdicts) < 2 or verdicts.keys().isdisjoint(judges):
        return None
    return len(set(verdicts.values())) > 1


def _flag_cells(marks: Collection[bytes], find_flag: Callable[[tuple[int, ...]], bool | None]) -> bytes:
    """Return the flag of each cell, or `_NO_FLAG`; a large run has a million cells, but few combinations of marks."""
    combinations = set(zip(*marks, strict=True))
    flags = {each: _NO_FLAG if (flag := find_flag(each)) is None else flag for each in combinations}
    return bytes(map(flags.__getitem__, zip(*marks, strict=True)))


def _compare_pair(grid: Grid, a: str, b: str) -> dict[str, Any]:
    marks = grid.marks[a], grid.marks[b]
    counts = Counter(zip(*marks, strict=True))
    flags = _flag_cells(marks, lambda pair: pair[0] == pair[1] if max(pair) <= _FAILED else None)
    return {
        "a": a,
        "b": b,
        "agree": counts[_PASSED, _PASSED] + counts[_FAILED, _FAILED],
        **_estimate_share(grid, flags),
        "only_a_passed": counts[_PASSED, _FAILED],
        "only_b_passed": counts[_FAILED, _PASSED],
    }


def _estimate_share(grid: Grid, flags: bytes) -> dict[str, Any]:
    """Return the share of true flags, one for each cell; its interval takes each sample as a cluster."""
    samples: Iterable[str] = chain.from_iterable(map(repeat, grid.sample_ids, repeat(grid.width)))
    values = flags.replace(bytes([_NO_FLAG]), b"")
    clusters = list(compress(samples, map(_NO_FLAG.__ne__, flags)))
    independent = len(set(clusters))
    if independent == len(values):
        share = estimate_rate(values.count(True), len(values))
    else:
        share = estimate_clustered_rate(Column(array("d", list(values)), clusters=clusters))
    return {"n": share.n, "samples": independent, "interval": share.interval, "note": share.note}
