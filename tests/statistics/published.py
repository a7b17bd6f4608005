"""Data with answers that others published, read from PROCTOR_DATA (by default ../shared/data)."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support import ROOT

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))


def published(*parts: str) -> Path:
    """Return a file or folder of the data; skip the test if it is missing."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"there is no {path} (set PROCTOR_DATA)")
    return path


def gsm8k() -> dict[str, list[float]]:
    """Which problems each of four models solved: 1 or 0, in the order of the file."""
    path = published("01_qa_reference", "gsm8k", "example_model_solutions.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    models = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
    return {model: [float(row[model]["is_correct"]) for row in rows] for model in models}


def tau_bench() -> dict[int, list[float]]:
    """The rewards of four trials of each of fifty airline tasks."""
    path = published("07_sessions", "tau_bench_airline", "gpt-4o-airline.json.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trials = json.load(file)
    rewards: dict[int, list[float]] = defaultdict(list)
    for trial in trials:
        rewards[trial["task_id"]].append(trial["reward"])
    return dict(rewards)


def alpaca() -> list[float]:
    """How far claude-2 was preferred in 805 comparisons, 0 to 1."""
    path = published("10_stats", "alpaca_eval2_claude-2_preferences.json")
    return [row["preference"] - 1 for row in json.loads(path.read_text(encoding="utf-8"))]


def nist_univariate(name: str) -> tuple[list[float], float, float]:
    """The values of one of NIST's sets, with the certified mean and standard deviation."""
    text = published("10_stats", "nist_univariate", f"{name}.txt").read_text(encoding="utf-8")
    lines = text.splitlines()
    ruled = max(position for position, line in enumerate(lines) if line.startswith(("#", "---")))
    mean, deviation = (
        float(re.search(rf"(?m)^.*?(?:{words})\s+(-?[\d.]+)", text)[1])  # type: ignore[index]
        for words in (r"ybar:|mean +=", r"\bs:|standardDeviation +=")
    )
    return [float(line) for line in lines[ruled + 1 :] if line.strip()], mean, deviation


def nist_anova(name: str) -> tuple[list[list[float]], float]:
    """The groups of one of NIST's sets for the analysis of variance, with the certified F."""
    text = published("10_stats", "nist_anova", f"{name}.dat").read_text(encoding="utf-8")
    certified = re.search(r"Between \S+\s+\d+\s+\S+\s+\S+\s+(\S+)", text)
    groups: dict[str, list[float]] = defaultdict(list)
    for line in text[text.rindex("Data:") :].splitlines()[1:]:
        if line.strip():
            group, value = line.split()
            groups[group].append(float(value))
    return list(groups.values()), float(certified[1])  # type: ignore[index]
