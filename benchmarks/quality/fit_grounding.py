"""Fit the weights and the threshold of hallucination_detection on the data folder, and print the figures of each set.

Usage: python -m benchmarks.quality.fit_grounding [--write]

A logistic regression on the features of a text, drawn to equal weights, in which each set and each label count the same. AUROC is also
measured on each set with weights fitted on the four others. The threshold is the highest value at which at least
`PASSING` of the supported claims of every set pass; it is moved to 0.5 by the bias. With --write, weights.json is replaced.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import proctor.evaluators.grounding
from benchmarks.quality.grounding_sets import Reply, near_misses, read_sets, token_precision
from benchmarks.quality.intervals import auroc
from proctor.evaluators.grounding.features import Features
from proctor.evaluators.grounding.support import CHANGED_FACTOR, Grounding, check_grounding

FILE = Path(proctor.evaluators.grounding.__file__).with_name("weights.json")
PASSING = 0.8
PENALTY = 10.0
STEPS = 30
# Known beforehand: support raises the value, differences lower it. Without data, all weights would be 1 or -1.
SIGNS = np.array([1, 1, 1, 1, -1, -1, -1, -1])


class Texts:
    """The texts of one set that contain a claim: their features by sentence, sizes, changed facts and labels."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        checked = [(reply, asyncio.run(check_grounding(reply.text, [reply.context]))) for reply in replies]
        self.texts: list[tuple[Reply, Grounding]] = [(reply, result) for reply, result in checked if result]
        self.labels = [reply.grounded for reply, _ in self.texts]
        self.sentences = [np.array([item.features for item in result.sentences]) for _, result in self.texts]
        self.sizes = [np.array([item.size for item in result.sentences]) for _, result in self.texts]
        self.changed = [any(item.changes for item in result.sentences) for _, result in self.texts]
        pairs = zip(self.sentences, self.sizes, strict=True)
        self.means = np.array([np.average(rows, axis=0, weights=sizes) for rows, sizes in pairs])

    def score(self, model: Any) -> list[float]:
        """Return the value of each text, as in `Grounding.value`."""
        values = []
        for rows, mean, changed in zip(self.sentences, self.means, self.changed, strict=True):
            logits = [*(rows @ model[:-1] + model[-1]), mean @ model[:-1] + model[-1]]
            weakest, overall = (1 / (1 + np.exp(-logit)) for logit in (min(logits[:-1]), logits[-1]))
            values.append((weakest + overall) / 2 * (CHANGED_FACTOR if changed else 1.0))
        return values


def fit(sets: Sequence[Texts]) -> Any:
    """Return the weights and, as the last number, the bias; weights with an impossible sign are 0."""
    rows = np.vstack([np.c_[item.means, np.ones(len(item.means))] for item in sets])
    labels = np.concatenate([np.array(item.labels, float) for item in sets])
    weights = np.concatenate(
        [100 / np.where(item.labels, sum(item.labels), len(item.labels) - sum(item.labels)) for item in sets]
    )
    free = np.ones(rows.shape[1], bool)
    while True:
        model = np.zeros(rows.shape[1])
        model[free] = _regress(rows[:, free], labels, weights, np.append(SIGNS, 0)[free])
        wrong = np.flatnonzero((model[:-1] * SIGNS < 0) & free[:-1])
        if not len(wrong):
            return model
        free[wrong[np.argmax(abs(model[wrong]))]] = False


def _regress(rows: Any, labels: Any, weights: Any, prior: Any) -> Any:
    model = np.zeros(rows.shape[1])
    penalty = np.eye(len(model)) * PENALTY
    penalty[-1, -1] = 1e-6
    for _ in range(STEPS):
        expected = 1 / (1 + np.exp(-rows @ model))
        slope = rows.T @ (weights * (expected - labels)) + penalty @ (model - prior)
        curve = (rows * (weights * expected * (1 - expected))[:, None]).T @ rows + penalty
        model = model - np.linalg.solve(curve, slope)
    return model


def choose_bias(sets: Sequence[Texts], model: Any) -> float:
    """Return the bias at which enough supported claims of every set reach 0.5."""
    low, high = -10.0, 10.0
    for _ in range(40):
        bias = (low + high) / 2
        shares = (_share_passing(item, np.append(model[:-1], bias), grounded=True) for item in sets)
        low, high = (low, bias) if min(shares) >= PASSING else (bias, high)
    return high


def _share_passing(item: Texts, model: Any, *, grounded: bool) -> float:
    passed = [v >= 0.5 for v, label in zip(item.score(model), item.labels, strict=True) if label is grounded]
    return sum(passed) / len(passed)


def main(arguments: list[str]) -> None:
    sets = {
        name: Texts(replies)
        for name, replies in read_sets(Path(os.environ.get("PROCTOR_DATA") or "../shared/data")).items()
    }
    model = fit(list(sets.values()))
    model[-1] = choose_bias(list(sets.values()), model)
    for name, item in sets.items():
        others = fit([other for other in sets.values() if other is not item])
        baseline = auroc([token_precision(reply) for reply, _ in item.texts], item.labels)
        shares = [_share_passing(item, model, grounded=label) for label in (True, False)]
        area, crossed = (auroc(item.score(weights), item.labels) for weights in (model, others))
        print(
            f"{name}: AUROC {area:.3f}, fitted on the others {crossed:.3f}, token precision {baseline:.3f}; "
            f"passing: supported {shares[0]:.2f}, others {shares[1]:.2f}; changed facts: "
            + ", ".join(
                f"{np.mean([c for c, label in zip(item.changed, item.labels, strict=True) if label is wanted]):.2f}"
                for wanted in (True, False)
            )
        )
    grounded, changed = near_misses()
    for name, replies in (("grounded", grounded), ("near misses", [reply for _, reply in changed])):
        item = Texts(replies)
        print(f"{name}: {np.mean([value >= 0.5 for value in item.score(model)]):.3f} of {len(item.texts)} pass")
    weights = {name: round(float(value), 3) for name, value in zip(Features._fields, model[:-1], strict=True)}
    print(content := json.dumps({"weights": weights, "bias": round(float(model[-1]), 3)}, indent=2))
    if "--write" in arguments:
        FILE.write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
