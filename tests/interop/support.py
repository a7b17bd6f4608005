"""Numbers of imported runs, and the public files with their reference numbers."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from proctor.interop.imported import ImportedRun
from proctor.records.results import ResultList

FORMATS = Path(__file__).parents[3] / "shared" / "data" / "11_formats"
HEAD_BYTES = 4096

needs_public_files = pytest.mark.skipif(
    not FORMATS.is_dir(), reason="the folder ../shared with public files is missing"
)


def reference(path: str) -> dict[str, Any]:
    """Return the reference numbers of a public file."""
    numbers: dict[str, Any] = json.loads((FORMATS / "REFERENCE.json").read_text())[path]
    return numbers


def read_head(path: Path, count: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a file, none for a folder."""
    return path.read_bytes()[:count] if path.is_file() else b""


def values(run: ImportedRun, name: str) -> list[float]:
    """Return the values of one evaluator that Proctor's metrics use, in the order of the results."""
    return list(ResultList(run.results).column(name).values)


def mean_by_sample(run: ImportedRun, name: str) -> float:
    """Return the mean over samples of each sample's mean over its epochs."""
    by_sample: dict[str, list[float]] = defaultdict(list)
    for result in run.results:
        score = result.scores.get(name)
        if score is not None and score.value is not None:
            by_sample[result.sample_id].append(score.value)
    return fmean(map(fmean, by_sample.values()))


def outcomes(run: ImportedRun) -> dict[str, int]:
    """Count the results with and without an error of the target."""
    errors = sum(result.error is not None for result in run.results)
    return {"results": len(run.results), "errors": errors}
