"""Two evaluators of the demo: plain functions that its eval file names."""

from __future__ import annotations

import re

from proctor.records.sample import Sample
from proctor.records.score import Score


def cites_source(output: str, sample: Sample[str, str]) -> Score:
    """Passes if the answer cites the right passage, or nothing if there is none."""
    match = re.search(r"\[([^\]]+)\]$", output)
    cited = match[1] if match else None
    if cited == sample.context:
        return Score(1.0, True)
    reason = f"cites {cited or 'nothing'}; the answer is in {sample.context or 'no passage'}"
    return Score(0.0, False, reason)


def brief(output: str, *, limit: int = 20) -> float:
    """Scores brevity: 1 up to `limit` words, 0.5 at twice as many."""
    return min(1.0, limit / max(1, len(output.split())))
