"""Numbers that others published, reproduced by the evaluators and the comparison.

The data is not part of the project: it is read from PROCTOR_DATA (by default ../shared/data). `make quality`
reproduces the same numbers with complete runs.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from benchmarks.quality import differences

from proctor.comparison.compare import compare
from proctor.comparison.sides import Side
from tests.support import ROOT

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))


def data_file(*parts: str) -> Path:
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"there is no {path} (set PROCTOR_DATA)")
    return path


def test_the_published_difference_of_two_models_on_gsm8k_is_reproduced() -> None:
    """Lost and won samples, standard error, exact McNemar p and Wilson interval."""
    file = data_file("01_qa_reference", "gsm8k", "example_model_solutions.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    samples = tuple(map(str, range(len(rows))))
    small, large, best = (
        Side(
            model,
            {"pass_rate": {name: float(row[model]["is_correct"]) for name, row in zip(samples, rows, strict=True)}},
            samples=samples,
        )
        for model in ("6b_verification", "175b_finetuning", "175b_verification")
    )
    comparison = compare(large, small)
    delta = comparison.metrics["pass_rate"]
    assert (len(comparison.lost), len(comparison.won)) == (209, 152)
    assert delta.absolute == pytest.approx(-0.0432, abs=5e-5)
    assert delta.error == pytest.approx(0.01436, abs=5e-6)
    assert delta.p == pytest.approx(0.003151, abs=5e-7)
    interval = compare(best, small).metrics["pass_rate"].a_interval
    assert interval == pytest.approx((0.5356, 0.5891), abs=5e-5)


def test_published_effects_and_clustered_errors_are_reproduced() -> None:
    """NIST's silver and the clustered standard error of tau-bench."""
    figures = [
        *differences.silver(data_file("10_stats", "nist_anova", "AtmWtAg.dat")),
        *differences.airline(data_file("07_sessions", "tau_bench_airline", "gpt-4o-airline.json.gz")),
    ]
    assert len(figures) == 4
    assert [figure.what for figure in figures if not figure.holds] == []
