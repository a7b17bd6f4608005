"""Measure how long it takes to extract a hundred fields from a result.

    python -m benchmarks.fields [--rounds 200]

The result is a span of a common size: half of the fields are at the top level, a third one level down, the rest in
lists. Each round looks up a hundred different paths, compiled before; the median of the rounds is printed with its limit.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from proctor.records.fields.path import parse_path

FIELDS = 100
ASKED_SECONDS = 100e-6
TIMES = 20


def span() -> tuple[dict[str, Any], list[str]]:
    """Return a result, and the paths of a hundred of its fields."""
    top = {f"field_{number}": number for number in range(50)}
    usage = {f"part_{number}": number for number in range(33)}
    items = [{"name": f"item {number}"} for number in range(17)]
    paths = [*top, *(f"usage.{name}" for name in usage)]
    paths += [f"items.{number}.name" for number in range(17)]
    return {**top, "usage": usage, "items": items}, paths


def seconds_per_round(times: int = TIMES) -> float:
    """Return the mean time of extracting all fields once."""
    result, paths = span()
    assert len({parse_path(path).find(result) for path in paths}) > FIELDS // 2
    began = time.perf_counter()
    for _ in range(times):
        for path in paths:
            parse_path(path).find(result)
    return (time.perf_counter() - began) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = [seconds_per_round() for _ in range(parser.parse_args().rounds)]
    median = statistics.median(rounds)
    values = "holds" if median < ASKED_SECONDS else "DOES NOT HOLD"
    print(
        f"extracting {FIELDS} fields: {median * 1e6:.1f} µs "
        f"(median of {len(rounds)}; asked: below {ASKED_SECONDS * 1e6:.0f} µs; {values})"
    )


if __name__ == "__main__":
    main()
