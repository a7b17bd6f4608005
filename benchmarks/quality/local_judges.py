"""How often local models prefer the answer that people prefer, on LLMBar.

Every pair is shown in both orders; a judge that changes its mind with the order has no preference,
and that is not an agreement. Chance is less than one half. The figures belong into `as_judge` of
`proctor.weights.KNOWN`, with their n and interval: `proctor models` and every run that such a model
judges show them. Models whose weights are not here are passed over.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.quality.figure import Figure
from proctor import weights
from proctor.connections import provider
from proctor.errors import CallFailed
from proctor.evaluators.judging.pairwise import compare
from proctor.ports import ProviderAdapter
from proctor.statistics.intervals import wilson_interval

FOLDER = "06_judge_llmbar"
SETS = ("Natural", "Adversarial_Neighbor")
MODELS = ("smollm2", "qwen-judge")
# Pairs of each set; a small model on a slow machine takes a minute for a pair.
PAIRS = int(os.environ.get("PROCTOR_JUDGE_PAIRS", "40"))


class Pair(NamedTuple):
    """An instruction, two answers, and which of them people prefer: "a" or "b"."""

    instruction: str
    a: str
    b: str
    preferred: str


def measure(data: Path) -> Iterator[Figure]:
    """The share of pairs on which the model agrees with people, with its 95 % interval."""
    here = [name for name in MODELS if weights.find(name) is not None]
    if not here:
        missing = weights.folder() / weights.KNOWN[MODELS[0]].files[0].name
        raise FileNotFoundError(2, "no weights", str(missing))
    for name in here:
        model = provider(f"local:{name}")
        for part in SETS:
            agreed, flips, failed = asyncio.run(judged(model, pairs_of(data, part)))
            n = PAIRS
            low, high = wilson_interval(agreed, n) or (0.0, 1.0)
            note = f"n = {n}, {100 * low:.0f}–{100 * high:.0f} %; {flips} flips, {failed} unread"
            yield Figure(
                f"local:{name} agrees with people", f"LLMBar {part}", agreed / n, note=note
            )


def pairs_of(data: Path, part: str) -> list[Pair]:
    """The first pairs of one set."""
    rows = json.loads((data / FOLDER / f"{part}.dataset.json").read_text(encoding="utf-8"))
    return [
        Pair(row["input"], row["output_1"], row["output_2"], "a" if row["label"] == "1" else "b")
        for row in rows[:PAIRS]
    ]


async def judged(model: ProviderAdapter, pairs: list[Pair]) -> tuple[int, int, int]:
    """On how many pairs a model agrees, on how many it has no preference, and gives no verdict."""
    agreed = flips = failed = 0
    for pair in pairs:
        try:
            found = await compare(model, pair.a, pair.b, input=pair.instruction)
        except CallFailed:
            failed += 1
            continue
        agreed += found.winner == pair.preferred
        flips += found.favours is not None
    return agreed, flips, failed
