"""Interrupt a run, then resume it: finished samples are not run again.

Run: python resume_after_interrupt.py
On the command line: Ctrl-C, then proctor run eval.yaml --resume
"""

import os
import signal

from proctor import evaluate, exact_match
from proctor.errors import RunInterrupted

calls: list[int] = []
interrupts = [True]  # one interrupt


def double(number: int) -> int:
    calls.append(number)
    if number == 12 and interrupts:
        interrupts.clear()
        os.kill(os.getpid(), signal.SIGINT)  # as if somebody pressed Ctrl-C
    return number * 2


dataset = [{"id": str(n), "input": n, "expected": n * 2} for n in range(200)]
try:
    evaluate(double, dataset, exact_match, concurrency=1)
except RunInterrupted as interrupted:
    run_id = interrupted.run_id
first = len(calls)
report = evaluate(double, dataset, exact_match, concurrency=1, resume=run_id)
print(f"{report.total} results, {report.pass_rate:.0%} passed")
print("stopped early:", first < 200, "- samples that ran twice:", len(calls) - len(set(calls)))

# Output:
# 200 results, 100% passed
# stopped early: True - samples that ran twice: 0
