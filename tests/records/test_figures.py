"""All numbers of all results at once: in memory and from the history they are the same."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from proctor import Reply, Score, SQLiteHistory, Usage, evaluate
from proctor.records.results import Figures, ResultList
from proctor.records.trial import OUTCOMES


def target(text: str) -> Reply:
    if text == "breaks":
        raise ValueError("it breaks")
    usage = Usage(10, len(text), cost=0.5) if text != "silent" else None
    return Reply(text, usage=usage, latency_ms=float(len(text)))


def graded(output: Any) -> float:
    if output == "odd":
        raise RuntimeError("cannot grade this")
    return min(1.0, len(output) / 10)


def picky(output: Any) -> Score:
    return Score.skipped("too short") if len(output) < 4 else Score(1.0, True)


DATASET = [
    {"id": "a", "input": "word", "metadata": {"cluster": "doc"}},
    {"id": "b", "input": "silent", "metadata": {"cluster": "doc"}},
    {"id": "c", "input": "breaks"},
    {"id": "d", "input": "odd"},
    {"id": "e", "input": "longer words"},
]


def plain(figures: Figures) -> dict[str, Any]:
    """Everything in plain lists, NaN as None."""

    def clean(column: Any) -> list[float | None]:
        return [None if math.isnan(value) else value for value in column]

    return {
        "ids": figures.sample_ids,
        "outcomes": [OUTCOMES[mark] for mark in figures.outcomes],
        "values": clean(figures.values),
        "latencies": clean(figures.latencies),
        "tokens": clean(figures.tokens),
        "costs": None if figures.costs is None else clean(figures.costs),
        "clusters": figures.clusters,
        "passes": {name: clean(column) for name, column in figures.passes.items()},
        "scores": {name: clean(column) for name, column in figures.scores.items()},
    }


@pytest.fixture
def stored(tmp_path: Path) -> Any:
    history = SQLiteHistory(tmp_path / "h.db")
    report = evaluate(target, DATASET, [graded, picky], epochs=2, concurrency=1, history=history, progress=False)
    return history.report(report.run_id).results


def test_the_columns_of_known_results(stored: Any) -> None:
    """Missing numbers are missing: an error has no score, what was skipped no verdict."""
    found = plain(stored.figures())
    once = {name: column[::2] for name, column in found.items() if isinstance(column, list)}
    assert once["ids"] == ["a", "b", "c", "d", "e"]
    assert once["outcomes"] == ["failed", "passed", "error", "unscored", "passed"]
    assert once["latencies"] == [4.0, 6.0, pytest.approx(once["latencies"][2]), 3.0, 12.0]
    assert once["tokens"] == [14.0, None, None, 13.0, 22.0]
    assert once["costs"] == [0.5, None, None, 0.5, 0.5]
    assert once["clusters"] == ["doc", "doc", None, None, None]
    assert found["scores"]["graded"][::2] == [0.4, 0.6, None, None, 1.0]
    assert found["passes"]["graded"][::2] == [0.0, 1.0, None, None, 1.0]
    assert found["scores"]["picky"][::2] == [1.0, 1.0, None, None, 1.0]


def test_columns_in_memory_are_the_same(stored: Any) -> None:
    """In memory and from the history, for all results or one configuration."""
    held = ResultList(list(stored))
    assert plain(held.figures()) == plain(stored.figures())
    name = held[0].trial.configuration
    assert plain(held.for_configuration(name).figures()) == plain(stored.for_configuration(name).figures())


def test_no_results_have_no_columns() -> None:
    """No results have no numbers, and nothing breaks."""
    assert plain(ResultList([]).figures()) == {
        "ids": [], "outcomes": [], "values": [], "latencies": [], "tokens": [], "costs": None,
        "clusters": None, "passes": {}, "scores": {},
    }  # fmt: skip


def test_an_unknown_configuration_has_no_results(stored: Any) -> None:
    """Empty columns, with the evaluators' names."""
    found = plain(stored.for_configuration("nowhere").figures())
    assert found["ids"] == []
    assert set(found["scores"]) <= {"graded", "picky"}
