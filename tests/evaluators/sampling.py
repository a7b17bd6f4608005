"""Measure the safety evaluators on a sample of the public data; `make quality` takes all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.quality import safety
from benchmarks.quality.figure import Figure

STEP = 5


def measure_sample(
    monkeypatch: pytest.MonkeyPatch, measure: Callable[[Path], Iterator[Figure]], data: Path
) -> dict[tuple[str, str], float]:
    """Return the figures of a measurement with every fifth text, by name and data set."""
    wiki, harmless = safety.wiki, safety.harmless

    def sample_wiki(data: Path, which: str) -> tuple[list[str], list[bool]]:
        comments, labels = wiki(data, which)
        return comments[::STEP], labels[::STEP]

    def sample_harmless(data: Path) -> Iterator[tuple[str, list[str]]]:
        return ((name, texts[::STEP]) for name, texts in harmless(data))

    monkeypatch.setattr(safety, "wiki", sample_wiki)
    monkeypatch.setattr(safety, "harmless", sample_harmless)
    return {(figure.what, figure.data): figure.value for figure in measure(data)}
