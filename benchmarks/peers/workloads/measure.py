"""What every workload script shares: the rows, the arguments and the printed figures.

A script is called as `python SCRIPT N SLEEP CONCURRENCY RUNS` in the environment of its framework. It imports the
framework between `started()` and `imported()`, and passes a function that runs the evaluation once to `measure`.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

N, SLEEP, CONCURRENCY, RUNS = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
ROWS = [
    {"id": f"s{i}", "input": f"question {i} : what is {i} + {i} ?", "expected": f"answer {2 * i}"} for i in range(N)
]
ANSWERS = {row["input"]: row["expected"] for row in ROWS}
_PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
_import_cpu = 0.0


def started() -> None:
    """Note the CPU time before the framework is imported."""
    global _import_cpu
    _import_cpu = time.process_time()


def imported() -> None:
    """Note the CPU time after the framework was imported."""
    global _import_cpu
    _import_cpu = time.process_time() - _import_cpu


async def answer(question: str) -> str:
    """The target: the expected answer, after a pause."""
    if SLEEP:
        await asyncio.sleep(SLEEP)
    return ANSWERS[question]


async def answer_all() -> list[str]:
    """Run the target on all rows, for frameworks that only score outputs."""
    semaphore = asyncio.Semaphore(CONCURRENCY)

    async def limited(question: str) -> str:
        async with semaphore:
            return await answer(question)

    return await asyncio.gather(*(limited(row["input"]) for row in ROWS))


def measure(run: Callable[[], Any], passed: Callable[[Any], int]) -> None:
    """Run the evaluation several times in this process, check that all rows passed, and print the figures."""
    figures = []
    for _ in range(RUNS):
        cpu, wall = _cpu(), time.perf_counter()
        report = run()
        figures.append({"cpu": _cpu() - cpu, "wall": time.perf_counter() - wall})
        if (count := passed(report)) != N:
            raise SystemExit(f"{count} of {N} rows passed; the workload is wrong")
    later = figures[1:] or figures
    print(
        json.dumps(
            figures[0]
            | {
                "warm": min(row["cpu"] for row in later),
                "import": _import_cpu,
                "peak_mb": max(resource.getrusage(who).ru_maxrss for who in _PROCESSES) / 1024,
            }
        )
    )


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
