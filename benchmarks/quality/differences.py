"""Differences of configurations: what others published of the same numbers.

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
from proctor.comparison.deltas import compare
from proctor.comparison.ranking import rank
from proctor.comparison.readings import Reading
from proctor.evaluators.statistical import effect_size, statistical_significance
from proctor.fields.context import FieldContext
from proctor.statistics.differences import paired
from proctor.statistics.distributions import student_t_quantile
from proctor.statistics.intervals import Interval


def measure(data: Path) -> Iterator[Figure]:
    yield from gsm8k(data / "01_qa_reference" / "gsm8k" / "example_model_solutions.jsonl")
    yield from silver(data / "10_stats" / "nist_anova" / "AtmWtAg.dat")
    yield from airline(data / "07_sessions" / "tau_bench_airline" / "gpt-4o-airline.json.gz")


def gsm8k(file: Path) -> Iterator[Figure]:
    """Two of the recorded models on the same questions."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    one, other = (
        [bool(row[name]["is_correct"]) for row in rows]
        for name in ("175b_finetuning", "6b_verification")
    )
    readings = {
        name: [Reading.of(str(place), 0, right) for place, right in enumerate(flags)]
        for name, flags in (("175b", one), ("6b", other))
    }
    delta = compare("175b", "6b", {}, {"is_correct": readings}).scores["is_correct"]
    yield _near("difference of pairs, %", "gsm8k", 100 * (delta.absolute or 0.0), -4.32, 0.005)
    student = paired(one, other)
    error = math.nan if student is None else 100 * student.error
    yield _near("its standard error, %", "gsm8k", error, 1.436, 0.0005)
    context = FieldContext("is_correct", {}, epochs=one, baseline_epochs=other)
    exact = statistical_significance(context, paired=True, method="permutation")
    yield _near("exact McNemar p", "gsm8k", exact.details["p"], 0.003151, 5e-7)


def silver(file: Path) -> Iterator[Figure]:
    """The atomic weight of silver by two instruments: d = sqrt(F (1/n + 1/m)) of NIST's F."""
    text = file.read_text(encoding="latin-1")
    certified = re.search(r"Between Instrument\s+\S+\s+\S+\s+\S+\s+(\S+)", text)
    if certified is None:
        raise ValueError(f"{file} holds no certified F")
    pairs = re.findall(r"^\s*([12])\s+(107\.\d+)\s*$", text, re.MULTILINE)
    first, second = ([float(v) for which, v in pairs if which == one] for one in "12")
    score = effect_size(FieldContext("weight", {}, epochs=first, baseline_epochs=second))
    wanted = math.sqrt(float(certified[1]) * (1 / len(first) + 1 / len(second)))
    yield _near("Cohen's d of NIST's F", "AtmWtAg", abs(score.details["d"]), wanted, 1e-6)


def airline(file: Path) -> Iterator[Figure]:
    """The mean reward over 50 tasks of four trials each, its error clustered by task."""
    runs = json.loads(gzip.decompress(file.read_bytes()))
    readings = [Reading.of(str(run["task_id"]), run["trial"], run["reward"]) for run in runs]
    place = rank("reward", "desc", {"recorded": readings}).places[0]
    tasks = len({one.sample_id for one in readings})
    yield _near("mean over tasks", "tau-bench", place.value or 0.0, 0.420, 0.0005)
    # Published without the correction for the number of clusters, which ours has.
    error = _standard_error(place.interval, tasks) * math.sqrt((tasks - 1) / tasks)
    yield _near("its clustered standard error", "tau-bench", error, 0.0517, 0.00005)


def _standard_error(interval: Interval | None, n: int) -> float:
    if interval is None:
        return math.nan
    return (interval[1] - interval[0]) / 2 / student_t_quantile(0.975, n - 1)


def _near(what: str, data: str, value: float, published: float, within: float) -> Figure:
    holds = abs(value - published) <= within
    return Figure(what, data, value, f"{published:.6g}", f"within {within:g}", holds)
