"""Long texts do not block a run."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest

from proctor.evaluators.text.quality import coherence, hallucination_detection, relevance, semantic_similarity
from proctor.records.fields.context import FieldContext


def test_a_time_out_acts_however_long_the_texts_are() -> None:
    """The work is done aside, so the loop is free in the meantime."""
    chance = random.Random(5)
    vocabulary = ["".join(chance.choices("aeioudnrst", k=6)) for _ in range(3000)]
    text = " ".join(f"The {' '.join(chance.choices(vocabulary, k=9))} and so on." for _ in range(20_000))
    context = FieldContext("output", {"context": text, "input": text})
    calls: list[Any] = [
        lambda: semantic_similarity("lexical")(text, [f"{w} tree" for w in vocabulary[:40]]),
        lambda: coherence(embedder="lexical")(text),
        lambda: hallucination_detection(embedder="lexical")(text, None, context),
        lambda: relevance(embedder="lexical")(text, None, context),
    ]

    async def given_up(call: Any) -> float:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call(), 0.1)
        return time.monotonic() - began

    for call in calls:
        assert asyncio.run(given_up(call)) < 5.0
