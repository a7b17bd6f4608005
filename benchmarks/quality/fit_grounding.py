"""Fit the weights and the threshold of hallucination_detection on the data folder, and print the figures of each set.

Usage: python -m benchmarks.quality.fit_grounding [--write]

A logistic regression on the features of a text, drawn to equal weights, in which each set and each label count the same. AUROC is also
measured on each set with weights fitted on the four others. The threshold has the highest balanced accuracy (the mean
of supported claims that pass and others that fail), averaged over the sets; the bias moves it to 0.5. The shares that
pass are also measured with weights and threshold of the four other sets. With --write, weights.json is replaced.
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
from benchmarks.quality.grounding import EVERY
from benchmarks.quality.grounding_sets import Reply, near_misses, read_sets, token_precision
from benchmarks.quality.intervals import auroc
from proctor.evaluators.grounding.features import Features
from proctor.evaluators.grounding.support import CHANGED_FACTOR, Grounding, check_grounding

FILE = Path(proctor.evaluators.grounding.__file__).with_name("weights.json")
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
        self.rows = np.array([item.features for _, result in self.texts for item in result.sentences])
        self.starts = np.cumsum([0, *(len(result.sentences) for _, result in self.texts)])[:-1]
        self.changed = [any(item.changes for item in result.sentences) for _, result in self.texts]
        sizes = np.array([[item.size] for _, result in self.texts for item in result.sentences])
        self.means = np.add.reduceat(self.rows * sizes, self.starts) / np.add.reduceat(sizes, self.starts)

    def score(self, model: Any) -> Any:
        """Return the value of each text, as in `Grounding.value`."""
        weakest = np.minimum.reduceat(self.rows @ model[:-1], self.starts)
        values = sum(1 / (1 + np.exp(-logits - model[-1])) for logits in (weakest, self.means @ model[:-1])) / 2
        return values * np.where(self.changed, CHANGED_FACTOR, 1.0)


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
    """Return the bias with the highest mean balanced accuracy at 0.5; of equal ones, the middle."""
    biases = np.arange(-6.0, 3.0, 0.05)
    accuracies = np.array([np.mean([_balance(item, np.append(model[:-1], bias)) for item in sets]) for bias in biases])
    return float(np.median(biases[accuracies >= accuracies.max() - 1e-9]))


def _balance(item: Texts, model: Any) -> float:
    return (_share_passing(item, model, grounded=True) + 1 - _share_passing(item, model, grounded=False)) / 2


def _share_passing(item: Texts, model: Any, *, grounded: bool) -> float:
    return float(np.mean((item.score(model) >= 0.5)[np.array(item.labels) == grounded]))


def main(arguments: list[str]) -> None:
    sets = {
        name: Texts(replies[::EVERY])
        for name, replies in read_sets(Path(os.environ.get("PROCTOR_DATA") or "../shared/data")).items()
    }
    model = fit(list(sets.values()))
    model[-1] = choose_bias(list(sets.values()), model)
    for name, item in sets.items():
        rest = [other for other in sets.values() if other is not item]
        others = fit(rest)
        others[-1] = choose_bias(rest, others)
        baseline = auroc([token_precision(reply) for reply, _ in item.texts], item.labels)
        shares = [
            _share_passing(item, weights, grounded=label) for weights in (model, others) for label in (True, False)
        ]
        area, crossed = (auroc(list(item.score(weights)), item.labels) for weights in (model, others))
        print(
            f"{name}: AUROC {area:.3f}, fitted on the others {crossed:.3f}, token precision {baseline:.3f}; "
            "passing: supported {:.2f}, others {:.2f}, fitted on the others {:.2f} and {:.2f}; changed facts: ".format(
                *shares
            )
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
