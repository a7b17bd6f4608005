"""Hundreds of judges at once, at a server that rejects some of them (a thousand: benchmarks/judges.py)."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest

from proctor import llm_judge
from proctor.core import resource_scope
from proctor.models.openai import OpenAIAdapter
from proctor.records.score import Score
from proctor.testing import Fault, ModelServer, RecordedRequest

CALLS = 300


@pytest.mark.no_cover
def test_all_judges_get_a_verdict_and_the_rate_adapts() -> None:
    """5% of the requests get 429 and 1% get 500: every judge has a verdict, and the window shrinks."""
    chance, lock = random.Random(7), threading.Lock()

    def misbehave(_asked: RecordedRequest) -> Fault | None:
        with lock:
            drawn = chance.random()
        return Fault.status(429) if drawn < 0.05 else Fault.status(500) if drawn < 0.06 else None

    async def main(url: str) -> tuple[list[Score], int, int]:
        adapter = OpenAIAdapter("m", base_url=f"{url}/v1", retry_delay=0.01, retries=8)
        limiter = adapter.endpoint.limiter
        first = smallest = limiter.window
        judge = llm_judge(adapter, "Is it polite?")

        async def one(number: int) -> Score:
            nonlocal smallest
            score: Score = await judge(f"Good morning, {number}!")
            smallest = min(smallest, limiter.window)
            return score

        async with resource_scope.ResourceScope(), asyncio.timeout(120):
            scores = await asyncio.gather(*map(one, range(CALLS)))
        return scores, first, smallest

    with ModelServer(choose_fault=misbehave) as server:
        scores, first, smallest = asyncio.run(main(server.url))
        count = len(server.calls)
    assert [score.status for score in scores] == ["ok"] * CALLS
    assert count > CALLS
    assert smallest <= first // 4
