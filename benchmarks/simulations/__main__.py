"""Check the claims of the statistics by simulation.

    python -m benchmarks.simulations [--replicates 4000] [--seed 20240607] [--only WORD] [--jobs 2]

Each claim generates data with a known truth many times and counts how often the product's own function
is right (or raises a false alarm). The table shows the measured share, its Monte Carlo error and the
required range. The seed of a claim is the printed seed plus its name, so that each claim can be repeated
alone. A share that chance may have moved out of its range is undecided; repeat it with more replicates. The exit
code is 1 if a claim does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from benchmarks.simulations.claim import REPLICATES, SEED, UNDECIDED, Claim, Found, simulate
from benchmarks.simulations.comparing import compared
from benchmarks.simulations.covering import covered
from benchmarks.simulations.deciding import early, gates
from benchmarks.simulations.early_gates import early_gates
from benchmarks.simulations.equal import equal_systems
from benchmarks.simulations.finding import power
from benchmarks.simulations.gated import gated
from benchmarks.simulations.items import analyzed
from benchmarks.simulations.judging import judged
from benchmarks.simulations.panels import correlated_judges
from benchmarks.simulations.slicing import sliced
from benchmarks.simulations.trust import trusted


def claims() -> list[Claim]:
    return [
        *equal_systems(),
        *covered(),
        *power(),
        *compared(),
        *sliced(),
        *early(),
        *gates(),
        *gated(),
        *early_gates(),
        *trusted(),
        *judged(),
        *analyzed(),
        *correlated_judges(),
    ]


def line(found: Found) -> str:
    low, high = found.claim.asked
    return (
        f"{found.claim.name:<56} {found.share:7.4f} ± {found.error:.4f} of {found.replicates:>5}"
        f"   required {low:.3f} to {high:.3f}   {found.verdict}"
        f"   ({found.seconds:.0f} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="", help="run only the claims whose name contains this text")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    chosen = [claim for claim in claims() if arguments.only in claim.name]
    print(f"claims: {len(chosen)}, seed: {arguments.seed}; ± is the Monte Carlo standard error")
    verdicts: Counter[str] = Counter()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        trial = partial(simulate, replicates=arguments.replicates, seed=arguments.seed)
        for result in pool.map(trial, chosen):
            verdicts[result.verdict] += 1
            print(line(result), flush=True)
    print(f"{verdicts['holds']} of {len(chosen)} hold; {verdicts[UNDECIDED]} undecided")
    sys.exit(1 if verdicts["DOES NOT HOLD"] else 0)


if __name__ == "__main__":
    main()
