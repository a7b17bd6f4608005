"""Fit the weights and the threshold of hallucination_detection on the data folder, and print the figures of each set.

Usage: python -m benchmarks.quality.fit_grounding [--write]

Two logistic regressions, on the features of words and on these with the cross-encoder (if it is installed), drawn to
equal weights, in which each set and each label count the same. AUROC and the shares that pass are also measured on each
set with weights and threshold fitted on the four others. The threshold is the highest at which 80% of the supported
claims pass on each set with an AUROC of at least 0.75; the bias moves it to 0.5. With --write, weights.json is replaced.
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
from proctor.evaluators.grounding import support
from proctor.evaluators.grounding.features import Features
from proctor.evaluators.grounding.support import CHANGED_FACTOR, Grounding, check_grounding
from proctor.evaluators.text.relevance import find_cross_encoder
from proctor.models.cross_encoder import CrossEncoder

FILE = Path(proctor.evaluators.grounding.__file__).with_name("weights.json")
PENALTY = 10.0
STEPS = 30
# Known beforehand: support raises the value, differences lower it. Without data, all weights would be 1 or -1.
SIGNS = np.array([1, 1, 1, 1, -1, -1, -1, -1, 1, 1])
MIN_SUPPORTED, MIN_AUROC = 0.8, 0.75


class Texts:
    """The texts of one set that contain a claim: their features by sentence, sizes, changed facts and labels."""

    def __init__(self, replies: Sequence[Reply], encoder: CrossEncoder | None) -> None:
        checked = [
            (reply, asyncio.run(check_grounding(reply.text, [reply.context], encoder=encoder))) for reply in replies
        ]
        self.texts: list[tuple[Reply, Grounding]] = [(reply, result) for reply, result in checked if result]
        self.labels = [reply.grounded for reply, _ in self.texts]
        self.signs = SIGNS if encoder else SIGNS[:8]
        width = len(self.signs)
        self.rows = np.array([item.features[:width] for _, result in self.texts for item in result.sentences])
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
    free, signs = np.ones(rows.shape[1], bool), sets[0].signs
    while True:
        model = np.zeros(rows.shape[1])
        model[free] = _regress(rows[:, free], labels, weights, np.append(signs, 0)[free])
        wrong = np.flatnonzero((model[:-1] * signs < 0) & free[:-1])
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
    """Return the lowest bias at which enough supported claims pass at 0.5, on each set that can be separated."""
    separable = [item for item in sets if auroc(list(item.score(model)), item.labels) >= MIN_AUROC]
    return next(
        float(bias)
        for bias in np.arange(-6.0, 6.0, 0.05)
        if all(_share_passing(item, np.append(model[:-1], bias), grounded=True) >= MIN_SUPPORTED for item in separable)
    )


def _share_passing(item: Texts, model: Any, *, grounded: bool) -> float:
    return float(np.mean((item.score(model) >= 0.5)[np.array(item.labels) == grounded]))


def main(arguments: list[str]) -> None:
    replies = {
        name: replies[::EVERY]
        for name, replies in read_sets(Path(os.environ.get("PROCTOR_DATA") or "../shared/data")).items()
    }
    models = json.loads(FILE.read_text(encoding="utf-8"))
    # All sentences are scored, so that all have the same features.
    support.MAX_SCORED_SENTENCES = support.MAX_SENTENCES
    for method, encoder in {"words": None, "cross_encoder": find_cross_encoder()}.items():
        if encoder is None and method != "words":
            continue
        print(method)
        sets = {name: Texts(items, encoder) for name, items in replies.items()}
        model = fit(list(sets.values()))
        model[-1] = choose_bias(list(sets.values()), model)
        _print_sets(sets, model)
        _print_near_misses(model, encoder)
        weights = {name: round(float(value), 3) for name, value in zip(Features._fields, model[:-1], strict=False)}
        models[method] = {"weights": weights, "bias": round(float(model[-1]), 3)}
    print(content := json.dumps(models, indent=2))
    if "--write" in arguments:
        FILE.write_text(content + "\n", encoding="utf-8")


def _print_sets(sets: dict[str, Texts], model: Any) -> None:
    for name, item in sets.items():
        rest = [other for other in sets.values() if other is not item]
        others = fit(rest)
        others[-1] = choose_bias(rest, others)
        baseline = auroc([token_precision(reply) for reply, _ in item.texts], item.labels)
        area, crossed = (auroc(list(item.score(weights)), item.labels) for weights in (model, others))
        shares = [
            _share_passing(item, weights, grounded=label) for weights in (model, others) for label in (True, False)
        ]
        print(
            f"{name}, n={len(item.labels)}: AUROC {area:.3f}, fitted on the others {crossed:.3f}, "
            f"token precision {baseline:.3f}; passing: supported {shares[0]:.2f}, others {shares[1]:.2f}, "
            f"fitted on the others {shares[2]:.2f} and {shares[3]:.2f}"
        )


def _print_near_misses(model: Any, encoder: CrossEncoder | None) -> None:
    grounded, changed = near_misses()
    for name, replies in (("grounded", grounded), ("near misses", [reply for _, reply in changed])):
        item = Texts(replies, encoder)
        print(f"{name}: {np.mean([value >= 0.5 for value in item.score(model)]):.3f} of {len(item.texts)} pass")


if __name__ == "__main__":
    main(sys.argv[1:])
