"""Measure how the cost of every evaluator, finder and parser grows with the length of its input.

python -m benchmarks.growth                     every subject, from 10 kB to 10 MB
python -m benchmarks.growth --only redaction    the subjects whose name contains a word
python -m benchmarks.growth --largest 100000    stop at a smaller size

Each subject reads hostile texts of every shape, doubled until the largest size is reached or one
call takes longer than the limit. The growth of a pair is the exponent k in `CPU time ~ length^k`
over its last four doublings: 1 is linear, 2 is quadratic. A pair that seems to grow too fast is
measured again, and the smallest exponent counts. A subject that refuses a text with an error, or
skips it, is "refused". The exit code is 1 if a subject grows faster than LARGEST_GROWTH.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.growth_subjects import SHAPES, SUBJECTS, Refused

SMALLEST, LARGEST = 2_500, 10_000_000
# CPU seconds after which a pair is not doubled any more, and after which its process is killed.
ENOUGH_SECONDS, KILL_SECONDS = 0.6, 120
# Shorter calls show the step from cache to memory, and page faults, as growth: copying 10 MB takes 0.05 s.
LEAST_SECONDS = 0.03
LARGEST_GROWTH = 1.35
# How often a suspicious pair is measured before it is reported.
ATTEMPTS = 3


@dataclass(frozen=True)
class Growth:
    """The measured cost of one subject on texts of one shape."""

    subject: str
    shape: str
    size: int
    seconds: float
    exponent: float | None
    outcome: str

    @property
    def is_bad(self) -> bool:
        """True if the subject hung, crashed, or grew faster than it may."""
        if self.outcome not in ("", "refused"):
            return True
        return self.exponent is not None and self.exponent > LARGEST_GROWTH


def main() -> int:
    """Measure all pairs and print the worst shape of each subject."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="measure subjects whose name contains this")
    parser.add_argument("--largest", type=int, default=LARGEST, help="the largest text, in bytes")
    parser.add_argument("--all", action="store_true", help="print every shape, not the worst")
    options = parser.parse_args()
    bad = 0
    print(f"{'subject':<34} {'shape':<22} {'size':>11} {'CPU s':>9} {'s/MB':>8} {'growth':>7}")
    for subject in (name for name in SUBJECTS if options.only in name):
        measured = [measure_confirmed(subject, shape, options.largest) for shape in SHAPES]
        bad += sum(growth.is_bad for growth in measured)
        worst = max(measured, key=lambda growth: (growth.is_bad, growth.exponent or 0.0, growth.seconds))
        slowest = max(measured, key=lambda growth: growth.seconds / growth.size)
        faulty = [growth for growth in measured if growth.is_bad]
        for growth in measured if options.all else dict.fromkeys((worst, slowest, *faulty)):
            print(_line(growth), flush=True)
    return 1 if bad else 0


def _line(growth: Growth) -> str:
    exponent = "-" if growth.exponent is None else f"{growth.exponent:.2f}"
    rate = growth.seconds / growth.size * 1e6
    flag = f"  {growth.outcome}{' <-- BAD' if growth.is_bad else ''}"
    return (
        f"{growth.subject:<34} {growth.shape:<22} {growth.size:>11,} {growth.seconds:>9.3f} {rate:>8.2f} "
        f"{exponent:>7}{flag}"
    )


def measure_confirmed(subject: str, shape: str, largest: int = LARGEST) -> Growth:
    """Measure a pair until it grows slowly enough; a busy machine cannot make it grow fast three times."""
    for _ in range(ATTEMPTS):
        growth = measure(subject, shape, largest)
        if not growth.is_bad:
            break
    return growth


def measure(subject: str, shape: str, largest: int = LARGEST) -> Growth:
    """Measure one pair in a process of its own, which is killed if it hangs."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            _measure_into(write, SUBJECTS[subject], SHAPES[shape], largest)
        finally:
            os._exit(0)
    os.close(write)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(KILL_SECONDS)
    with os.fdopen(read) as lines:
        records = [line.split("\t", 1) for line in lines.read().splitlines()]
    signal.alarm(0)
    _, status = os.waitpid(child, 0)
    times = [(int(key), float(value)) for key, value in records if key.isdigit()]
    outcomes = [value for key, value in records if not key.isdigit()]
    outcome = outcomes[-1] if outcomes else ""
    if os.WIFSIGNALED(status):
        outcome = f"killed after {KILL_SECONDS} s at {_next_size(times):,}"
    size, seconds = times[-1] if times else (SMALLEST, 0.0)
    return Growth(subject, shape, size, seconds, exponent(times), outcome)


def _next_size(times: list[tuple[int, float]]) -> int:
    return times[-1][0] * 2 if times else SMALLEST


def _measure_into(pipe: int, call: Callable[[str], object], make: Callable[[int], str], largest: int) -> None:
    size = SMALLEST
    with os.fdopen(pipe, "w") as lines:
        run_subject(call, make(1_000))  # imports and compiled patterns are not growth
        while True:
            text = make(size)
            began = time.process_time()
            outcome = run_subject(call, text)
            seconds = time.process_time() - began
            lines.write(f"{size}\t{seconds}\n")
            if outcome:
                lines.write(f"outcome\t{outcome}\n")
            lines.flush()
            if size >= largest or seconds > ENOUGH_SECONDS or outcome not in ("", "refused"):
                return
            size = min(size * 2, largest)


def run_subject(call: Callable[[str], object], text: str) -> str:
    try:
        result = call(text)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
    except Refused:
        return "refused"
    except Exception as error:
        return f"raised {type(error).__name__}: {str(error)[:80]}"
    return "refused" if getattr(result, "status", "ok") != "ok" else ""


def exponent(times: list[tuple[int, float]]) -> float | None:
    """Return the slope of log time over log size in the last doublings that are well above the noise.

    >>> round(exponent([(1, 1.0), (2, 4.0), (4, 16.0)]), 6)
    2.0
    """
    measurable = [pair for pair in times if pair[1] >= LEAST_SECONDS]
    if len(measurable) < 3 and times and times[-1][1] > ENOUGH_SECONDS:
        # The time exploded within two doublings, so the shorter times count too.
        measurable = times[-3:]
    points = [(math.log(size), math.log(max(seconds, 1e-6))) for size, seconds in measurable][-5:]
    return _slope(points) if len(points) >= 3 else None


def _slope(points: list[tuple[float, float]]) -> float:
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    above = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return above / sum((x - middle_x) ** 2 for x, _ in points)


if __name__ == "__main__":
    sys.exit(main())
