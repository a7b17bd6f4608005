"""The floor: plain asyncio, the same two checks, one JSON line for each sample."""

import asyncio
import json
from pathlib import Path

from measure import CONCURRENCY, ROWS, answer, measure


async def run() -> int:
    semaphore = asyncio.Semaphore(CONCURRENCY)
    passed = 0
    with Path("floor.jsonl").open("w", encoding="utf-8") as file:

        async def score(row: dict[str, str]) -> None:
            nonlocal passed
            async with semaphore:
                output = await answer(row["input"])
                scores = {"exact_match": output == row["expected"], "contains": row["expected"] in output}
                file.write(json.dumps({"id": row["id"], "output": output, "scores": scores}) + "\n")
                passed += all(scores.values())

        await asyncio.gather(*(score(row) for row in ROWS))
    return passed


measure(lambda: asyncio.run(run()), int)
