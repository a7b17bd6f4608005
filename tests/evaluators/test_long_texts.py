"""Long texts do not block a run."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from proctor.evaluators.text.quality import coherence, hallucination_detection, relevance, semantic_similarity
from proctor.records.fields.context import FieldContext


def test_a_timeout_ends_the_wait_for_long_texts() -> None:
    """The work is done in another thread, so the event loop is free in the meantime."""
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

    async def abandon(call: Any) -> None:
        # A call that blocks the loop would return its score before the timeout is noticed.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call(), 0.1)

    for call in calls:
        asyncio.run(abandon(call))
