"""Totals of rubrics, compared with those of other runs, ranked and gated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project

# It gives the number that the session ends with, and one less for the rubric "Less".
JUDGE = """
def read(prompt: str) -> str:
    line = prompt.rpartition("\\n")[2].partition("<")[0]
    number = int(prompt.partition("I give ")[2].partition(".")[0])
    return f"So it is.\\n{line}{number - ('## Rubric: Less' in prompt)}"
"""
RUBRICS = [("more", 3.0), ("less", 1.0)]


def write(folder: str, numbers: list[int]) -> None:
    Path(folder).mkdir()
    for place, number in enumerate(numbers):
        chat = [
            {"role": "user", "content": f"This is number {place}."},
            {"role": "assistant", "content": f"I give {number}."},
        ]
        Path(folder, f"s{place:03}.json").write_text(json.dumps(chat))


def rubrics(name: str, **more: Any) -> None:
    output = [
        {"id": one, "name": one.title(), "description": "Is it?", "weight": weight,
         "scoring_criteria": "1: no, 5: yes"}
        for one, weight in RUBRICS
    ]  # fmt: skip
    Path(name).write_text(json.dumps({"version": "1", "rubrics": output, **more}))


# The files of the first `scored` project; the others are copies.
_SCORED: dict[Path, bytes] = {}


@pytest.fixture
def scored(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Two runs of 40 sessions each, the new one better by half a point on average."""
    monkeypatch.syspath_prepend(str(Path.cwd()))
    if not _SCORED:
        Path("reading.py").write_text(JUDGE)
        rubrics("mine.json")
        write("old", [3, 4] * 20)
        write("new", [4, 4] * 20)
        for folder in ("old", "new"):
            run(project, folder)
        _SCORED.update({Path(name): Path(name).read_bytes() for name in project.files() if Path(name).is_file()})
    for path, content in _SCORED.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return project


def run(project: Project, folder: str, *more: str) -> None:
    command = ("sessions", "evaluate-batch", "--rubrics", "mine.json", "--sessions-dir", folder)
    result = project.proctor(*command, "--judge", "reading:read", "--output-dir", f"o-{folder}", *more)
    assert result.code == 0, result.err


def test_totals_are_compared_on_their_scale_and_in_pairs(scored: Project) -> None:
    """(3 · 3 + 2) / 4 is 2.75, and 3.75 for a four: 3.75 against 3.25 on average."""
    result = scored.proctor("compare", "new", "old", "--metric", "total_score", "--json")
    assert result.code == 0, result.err
    [found] = json.loads(result.out)["comparisons"]
    delta = found["metrics"]["total_score"]
    assert (delta["a"], delta["b"]) == (3.75, 3.25)
    assert delta["absolute"] == pytest.approx(0.5)
    assert delta["percentage"] == pytest.approx(100 * 0.5 / 3.25)
    low, high = delta["interval"]
    assert low < 0.5 < high
    assert delta["n"] == 40
    assert delta["verdict"] == "better"
    assert delta["scale"] == [1, 5]
    # The smallest relevant difference is a hundredth of the scale, as of any score.
    assert delta["worth"] == pytest.approx(0.04)
    shown = scored.proctor("compare", "new", "old").out
    assert "total_score" in shown
    assert "3.750" in shown


def test_runs_are_put_in_order_of_their_totals(scored: Project) -> None:
    """On the scale, the best first."""
    result = scored.proctor("rank", "total_score", "old", "new", "--json")
    assert result.code == 0, result.err
    places = json.loads(result.out)["ranking"]["places"]
    assert [(one["configuration"], one["value"]) for one in places] == [("new", 3.75), ("old", 3.25)]


def test_a_gate_decides_by_totals_in_points_of_their_scale(scored: Project) -> None:
    """Two percent of four points are 0.08."""
    result = scored.proctor("gate", "new", "--baseline", "old", "--metric", "total_score", "--json")
    assert result.code == 0, result.out + result.err
    [check] = json.loads(result.out)["checks"]
    assert (check["value"], check["baseline"]) == (3.75, 3.25)
    assert check["margin"] == pytest.approx(0.08)
    worse = scored.proctor("gate", "old", "--baseline", "new", "--metric", "total_score")
    assert worse.code == 1, worse.out
    assert "3.250 vs. 3.750" in worse.out


def test_totals_of_other_rubrics_or_scales_have_no_verdict(scored: Project) -> None:
    """Points of two scales are never subtracted."""
    rubrics("mine.json", scale=[1, 10])
    write("wide", [4, 4] * 20)
    run(scored, "wide")
    for more in ((), ("--accept-changes",)):
        result = scored.proctor("compare", "wide", "old", "--metric", "total_score", "--json", *more)
        [found] = json.loads(result.out)["comparisons"]
        assert found["metrics"]["total_score"]["verdict"] == "not comparable"
        assert "total_score is on different scales: wide 1 to 10, old 1 to 5" in found["notes"]
    assert "absolute" not in found["metrics"]["total_score"]
    result = scored.proctor("rank", "total_score", "wide", "old")
    assert result.code == 2
    assert "rank by mean_score" in result.err
    asked = ("--metric", "total_score", "--accept-changes")
    result = scored.proctor("gate", "wide", "--baseline", "old", *asked)
    assert result.code == 2
    assert "different scales" in result.err


def test_runs_without_rubrics_have_no_total(project: Project) -> None:
    """And none is made up for them."""
    for name in ("one", "two"):
        project.proctor("run", "eval.yaml", "--name", name)
    result = project.proctor("compare", "one", "two", "--json")
    assert result.code == 0, result.err
    assert "total_score" not in json.loads(result.out)["comparisons"][0]["metrics"]


def test_a_total_that_only_one_run_has_is_on_its_scale(scored: Project) -> None:
    """The number does not depend on the other run."""
    assert scored.proctor("run", "eval.yaml", "--name", "plain", "-q").code in (0, 1)
    for order in (("new", "plain"), ("plain", "new")):
        [found] = scored.proctor("compare", *order, "--unpaired", "--json").json["comparisons"]
        total = found["metrics"]["total_score"]
        assert total["a" if order[0] == "new" else "b"] == pytest.approx(3.75)


def test_the_interval_of_a_total_lies_on_its_scale(project: Project) -> None:
    """Two sessions of 1 and 5 leave everything open, and nothing beyond the scale."""
    Path("reading.py").write_text(JUDGE)
    rubrics("mine.json")
    write("two", [2, 5])
    run(project, "two")
    result = project.proctor("show", "two", "--json").json["metrics"]["total_score"]
    assert result["interval"] == [1.0, 5.0]
