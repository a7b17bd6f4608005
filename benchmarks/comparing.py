"""Measure the CPU time of comparing two stored runs: opening, reading and comparing.

    python -m benchmarks.comparing [--samples 10000] [--rounds 5] [--epochs 1]

The runs have five evaluators (two that pass or fail, three that grade), times, tokens and costs. Each round is a new
process, as on the command line; its start is measured separately. The median of the rounds is printed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ASKED_SECONDS = 1.0
GRADED = ("helpful", "grounded", "similar")
YES_OR_NO = ("right", "polite")

ROUND = """
import sys, time
began = time.process_time()
from proctor import compare
loaded = time.process_time()
found = compare("new", "old", history=sys.argv[1])
ended = time.process_time()
print(loaded - began, ended - loaded, found.samples, len(list(found.all_deltas())))
"""


def store(where: Path, samples: int, epochs: int) -> None:
    """Store two runs of the same samples, the new one a little better."""
    from proctor import Reply, Score, Usage, evaluate, evaluator

    def graded(name: str) -> Any:
        @evaluator(name=name, category="custom", pure=True)
        def grade(output: Any) -> Score:
            value = output[name]
            return Score(value, value >= 0.5)

        return grade

    def answers(better: float) -> Any:
        def target(number: int) -> Reply:
            chance = random.Random(f"{number} {better}")
            by_name: dict[str, float] = {name: min(1.0, chance.random() + better) for name in GRADED}
            by_name |= {name: float(chance.random() < 0.8 + better) for name in YES_OR_NO}
            used = chance.randrange(100, 200), chance.randrange(20, 90)
            usage = Usage(*used, cost=chance.random() / 100)
            return Reply(by_name, usage=usage, latency_ms=chance.lognormvariate(6, 0.5))

        return target

    dataset = [{"id": f"sample-{number}", "input": number} for number in range(samples)]
    evaluators = [graded(name) for name in (*YES_OR_NO, *GRADED)]
    for name, better in (("old", 0.0), ("new", 0.02)):
        evaluate(answers(better), dataset, evaluators, name=name, history=where, progress=False, epochs=epochs)


def seconds(where: Path) -> tuple[float, float, str]:
    """Return the CPU seconds of loading the program and of comparing, and what was compared."""
    process = subprocess.run([sys.executable, "-c", ROUND, str(where)], check=True, capture_output=True, text=True)
    loading, comparing, samples, numbers = process.stdout.split()
    return float(loading), float(comparing), f"{samples} samples, {numbers} numbers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "history.db"
        store(where, arguments.samples, arguments.epochs)
        rounds = [seconds(where) for _ in range(arguments.rounds)]
    loading = statistics.median(item[0] for item in rounds)
    comparing = statistics.median(item[1] for item in rounds)
    values = "holds" if comparing < ASKED_SECONDS else "DOES NOT HOLD"
    print(
        f"comparing two stored runs ({rounds[0][2]}): {comparing:.2f} s of CPU "
        f"(median of {len(rounds)}; loading the program {loading:.2f} s more; "
        f"asked: below {ASKED_SECONDS:g} s; {values})"
    )
    sys.exit(comparing >= ASKED_SECONDS)


if __name__ == "__main__":
    main()
