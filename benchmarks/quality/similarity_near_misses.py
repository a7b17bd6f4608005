"""Whether semantic_similarity notices one changed fact, and keeps the verdict on paraphrases.

`similarity_near_misses.yaml` has English sentences with two paraphrases each, and with a changed number, date, name, unit, negation,
opposite, or exchanged roles. Every second sentence was set aside while most of the rules were written;
`similarity_near_misses_late.yaml` was written after all of them. `similarity_opposites.yaml` has freely chosen opposites,
written after the list of opposites; the rule that skips other replaced phrases was chosen with it, and
`similarity_opposites_late.yaml` was written after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.quality.figure import Figure
from benchmarks.quality.intervals import rate
from benchmarks.quality.languages import Pair, score_all

FILE = Path(__file__).with_name("similarity_near_misses.yaml")
LATE_FILE = Path(__file__).with_name("similarity_near_misses_late.yaml")
OPPOSITES = {
    "written before the last rule": Path(__file__).with_name("similarity_opposites.yaml"),
    "written after": Path(__file__).with_name("similarity_opposites_late.yaml"),
}
MARK = 0.8


def measure(data: Path) -> Iterator[Figure]:
    """Return the share of changed facts that fail, and of paraphrases that keep their verdict."""
    del data
    rows, late = map(read, (FILE, LATE_FILE))
    for name, part in (("written with the rules", rows[::2]), ("set aside", rows[1::2]), ("written after", late)):
        yield from compare(name, part)
    for name, file in OPPOSITES.items():
        yield from compare_opposites(name, read(file))


def compare_opposites(name: str, rows: list[dict[str, Any]]) -> Iterator[Figure]:
    """Return the share of freely chosen opposites that fail, that are skipped, and of paraphrases that pass."""
    changed = [Pair(text, row["text"], 0) for row in rows for text in row["changed"].values()]
    scores = asyncio.run(score_all(changed))
    same = [Pair(text, row["text"], 2) for row in rows for text in row["same"]]
    same_scores = asyncio.run(score_all(same))
    data = f"English sentences with an opposite, {name}"
    for what, verdicts in (
        ("replaced words that fail", [score.passed is False for score in scores]),
        ("replaced words that fail or are skipped", [not score.passed for score in scores]),
        ("paraphrases that pass", [score.passed is True for score in same_scores]),
    ):
        share, interval = rate(verdicts)
        yield Figure(what, data, share, evaluator="semantic_similarity", interval=interval)


def read(file: Path) -> list[dict[str, Any]]:
    """Return sentences with their paraphrases and changes."""
    rows: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return rows


def compare(name: str, rows: list[dict[str, Any]]) -> Iterator[Figure]:
    changed = [Pair(text, row["text"], 0) for row in rows for text in row["changed"].values()]
    scores = asyncio.run(score_all(changed))
    share, interval = rate([score.passed is False for score in scores])
    before = sum(score.details["cosine"] < MARK for score in scores) / len(scores)
    data = f"English sentences with a changed fact, {name}"
    yield Figure(
        "changed facts that fail",
        data,
        share,
        f"cosine {before:.3f}",
        ">= 0.8",
        share >= 0.8,
        evaluator="semantic_similarity",
        interval=interval,
    )
    same = [Pair(text, row["text"], 2) for row in rows for text in row["same"]]
    same += [Pair(row["same"][0], row["same"][1], 2) for row in rows]
    scores = asyncio.run(score_all(same))
    share, interval = rate([score.passed is True for score in scores if score.details["cosine"] >= MARK])
    yield Figure(
        f"paraphrases with a cosine from {MARK} that pass",
        f"English sentences, {name}",
        share,
        "1",
        ">= 0.95",
        share >= 0.95,
        evaluator="semantic_similarity",
        interval=interval,
    )
