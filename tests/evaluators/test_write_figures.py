"""`python -m benchmarks.quality --write` writes measured figures to the evaluator cards."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from benchmarks.quality.__main__ import row
from benchmarks.quality.figure import Figure
from benchmarks.quality.intervals import Interval, bootstrap, pearson, rate
from benchmarks.quality.write_figures import write_figures

from proctor.evaluators.cards import MeasuredFigure

OLD = MeasuredFigure("AUROC", "set A", 0.5, 10, 0.25, 0.75)
OTHER = MeasuredFigure("AUROC", "set B", 0.5, 10, 0.25, 0.75)
NEW = Figure("AUROC", "set A", 0.91234567, evaluator="relevance", interval=Interval(0.85, 0.95, 40))
WRITTEN = MeasuredFigure("AUROC", "set A", 0.9123, 40, 0.85, 0.95)


@pytest.mark.parametrize(
    ("before", "replace_all", "after"),
    [
        ({}, False, {"relevance": [WRITTEN]}),
        ({"relevance": [OLD, OTHER]}, False, {"relevance": [WRITTEN, OTHER]}),
        ({"coherence": [OLD], "relevance": [OTHER]}, False, {"coherence": [OLD], "relevance": [OTHER, WRITTEN]}),
        ({"coherence": [OLD], "relevance": [OTHER]}, True, {"relevance": [WRITTEN]}),
    ],
)
def test_a_figure_replaces_only_the_same_figure_unless_the_run_is_complete(
    tmp_path: Path, before: dict[str, list[MeasuredFigure]], replace_all: bool, after: dict[str, list[MeasuredFigure]]
) -> None:
    file = tmp_path / "figures.json"
    file.write_bytes(msgspec.json.encode(before))
    assert write_figures([NEW], file, replace_all=replace_all) == 1
    assert msgspec.json.decode(file.read_bytes(), type=dict[str, list[MeasuredFigure]]) == after


def test_a_figure_without_an_evaluator_or_an_interval_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text("{}")
    figures = [NEW._replace(evaluator=""), NEW._replace(interval=None)]
    assert write_figures(figures, file) == 0
    assert msgspec.json.decode(file.read_bytes()) == {}


def test_a_rate_has_the_wilson_interval() -> None:
    """By hand for 0 of 10: the upper limit is z² / (n + z²) with z = 1.96."""
    share, interval = rate([False] * 10)
    assert share == 0.0
    assert (interval.low, interval.n) == (0.0, 10)
    assert interval.high == pytest.approx(3.8416 / 13.8416, abs=1e-4)


def test_the_bootstrap_interval_of_a_perfect_correlation_is_1() -> None:
    numbers = [float(number) for number in range(20)]
    interval = bootstrap(pearson, numbers, numbers)
    assert (interval.low, interval.high) == pytest.approx((1.0, 1.0))
    assert interval.n == 20


def test_the_table_names_the_evaluator_and_the_interval() -> None:
    what, *_, note = row(NEW)
    assert (what, note) == ("relevance, AUROC", "95% 0.850 to 0.950, n = 40")
