"""Differences between configurations, compared with published results on the same data.

Each is asked to agree with the published figure to its last digit.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.quality.figure import Figure
from proctor import EvalReport, compare, evaluate
from proctor.evaluators.statistical import effect_size
from proctor.records.fields.context import FieldContext


def measure(data: Path) -> Iterator[Figure]:
    yield from gsm8k(data / "01_qa_reference" / "gsm8k" / "example_model_solutions.jsonl")
    yield from silver(data / "10_stats" / "nist_anova" / "AtmWtAg.dat")
    yield from airline(data / "07_sessions" / "tau_bench_airline" / "gpt-4o-airline.json.gz")


def gsm8k(file: Path) -> Iterator[Figure]:
    """Evaluate and compare recorded models on the same questions."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    dataset = [{"id": str(place), "input": place} for place in range(len(rows))]

    def report(model: str) -> EvalReport:
        def recorded(place: int) -> bool:
            return bool(rows[place][model]["is_correct"])

        return evaluate(recorded, dataset, [is_right], name=model, history=False, progress=False, concurrency=1)

    small, large, best = map(report, ("6b_verification", "175b_finetuning", "175b_verification"))
    found = compare(large, small, metrics=["pass_rate"])
    delta = found.metrics["pass_rate"]
    flips = len(found.lost), len(found.won)
    yield _near("samples lost", "gsm8k", flips[0], 209, 0)
    yield _near("samples won", "gsm8k", flips[1], 152, 0)
    yield _near("difference of pairs, %", "gsm8k", 100 * (delta.absolute or 0.0), -4.32, 0.005)
    yield _near("its standard error, %", "gsm8k", 100 * (delta.error or 0.0), 1.436, 0.0005)
    yield _near("exact McNemar p", "gsm8k", delta.p or 0.0, 0.003151, 5e-7)
    wilson = compare(best, small, metrics=["pass_rate"]).metrics["pass_rate"].a_interval
    for what, end, published in zip(("from", "to"), wilson or (0, 0), (53.56, 58.91), strict=True):
        yield _near(f"Wilson interval {what}, %", "gsm8k", 100 * end, published, 0.005)


def is_right(output: bool) -> bool:
    return output


def silver(file: Path) -> Iterator[Figure]:
    """Return the effect size of NIST's silver data (two instruments): d = sqrt(F (1/n + 1/m))."""
    text = file.read_text(encoding="latin-1")
    certified = re.search(r"Between Instrument\s+\S+\s+\S+\s+\S+\s+(\S+)", text)
    if certified is None:
        raise ValueError(f"{file} contains no certified F")
    pairs = re.findall(r"^\s*([12])\s+(107\.\d+)\s*$", text, re.MULTILINE)
    first, second = ([float(v) for which, v in pairs if which == one] for one in "12")
    score = effect_size(FieldContext("weight", {}, epochs=first, baseline_epochs=second))
    wanted = math.sqrt(float(certified[1]) * (1 / len(first) + 1 / len(second)))
    yield _near("Cohen's d of NIST's F", "AtmWtAg", abs(score.details["d"]), wanted, 1e-6)


def airline(file: Path) -> Iterator[Figure]:
    """Compare four trials of each of 50 tasks, one cluster per task, with a system that never succeeds."""
    runs = json.loads(gzip.decompress(file.read_bytes()))
    dataset = [
        {"id": f"{run['task_id']}-{run['trial']}", "input": place, "metadata": {"cluster": str(run["task_id"])}}
        for place, run in enumerate(runs)
    ]

    def report(name: str, share: float) -> EvalReport:
        def reward(place: int) -> float:
            return share * float(runs[place]["reward"])

        return evaluate(reward, dataset, [as_it_is], name=name, history=False, progress=False, concurrency=1)

    found = compare(report("recorded", 1.0), report("nothing", 0.0), metrics=["as_it_is"])
    delta = found.scores["as_it_is"]
    tasks = delta.clusters or 0
    yield _near("clusters", "tau-bench", tasks, 50, 0)
    yield _near("mean over tasks", "tau-bench", delta.a or 0.0, 0.420, 0.0005)
    # The published value lacks the correction for the number of clusters.
    error = (delta.error or 0.0) * math.sqrt((tasks - 1) / tasks)
    yield _near("its clustered standard error", "tau-bench", error, 0.0517, 0.00005)


def as_it_is(output: float) -> float:
    return output


def _near(what: str, data: str, value: float, published: float, within: float) -> Figure:
    holds = abs(value - published) <= within
    return Figure(what, data, value, f"{published:.6g}", f"within {within:g}", holds)
