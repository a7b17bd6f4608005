"""Whether semantic_similarity notices one changed fact, and keeps the verdict on paraphrases.

`similarity_near_misses.yaml` has English sentences with two paraphrases each, and with a changed number, date, name, unit, negation,
opposite, or exchanged roles. Every second sentence was set aside while most of the rules were written;
`similarity_near_misses_late.yaml` was written after all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.quality.figure import Figure
from benchmarks.quality.intervals import interval, share_at_least
from benchmarks.quality.languages import Pair, score_all

FILE = Path(__file__).with_name("similarity_near_misses.yaml")
LATE_FILE = Path(__file__).with_name("similarity_near_misses_late.yaml")
MARK = 0.8


def measure(data: Path) -> Iterator[Figure]:
    """Return the share of changed facts that fail, and of paraphrases that keep their verdict."""
    del data
    rows, late = map(read, (FILE, LATE_FILE))
    for name, part in (("written with the rules", rows[::2]), ("set aside", rows[1::2]), ("written after", late)):
        yield from compare(name, part)


def read(file: Path) -> list[dict[str, Any]]:
    """Return sentences with their paraphrases and changes."""
    rows: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return rows


def compare(name: str, rows: list[dict[str, Any]]) -> Iterator[Figure]:
    changed = [Pair(text, row["text"], 0) for row in rows for text in row["changed"].values()]
    scores = asyncio.run(score_all(changed))
    caught = [1.0 if score.passed is False else 0.0 for score in scores]
    share = sum(caught) / len(caught)
    before = sum(score.details["cosine"] < MARK for score in scores) / len(scores)
    note = interval(share_at_least(1.0), caught, caught)
    what = "similarity, near misses caught"
    yield Figure(what, name, share, f"cosine {before:.3f}", ">= 0.8", share >= 0.8, note)
    same = [Pair(text, row["text"], 2) for row in rows for text in row["same"]]
    same += [Pair(row["same"][0], row["same"][1], 2) for row in rows]
    scores = asyncio.run(score_all(same))
    kept = [1.0 if score.passed else 0.0 for score in scores if score.details["cosine"] >= MARK]
    share = sum(kept) / len(kept)
    note = interval(share_at_least(1.0), kept, kept)
    yield Figure("similarity, paraphrases that keep their pass", name, share, "1", ">= 0.95", share >= 0.95, note)
