"""Plans of a gate: the formula, what the gate itself decides, and the command."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.cli.main import run_cli
from proctor.cli.plan import _describe_same_samples
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.sides import Side
from proctor.validity.plan import Spread, assume_spread, find_epochs, find_samples, make_plan, predict_pass
from tests.validity.test_noise import run_agent


def test_the_formula_of_pairs() -> None:
    """Rate .8: 32% flip at most. (1.96 + .84)² x .32 / .03² = 2,791; the gate's interval needs two more at most."""
    assert 2791 <= find_samples(assume_spread(0.8), 0.03, 0.8, 1) <= 2800
    # Four epochs divide the variance by four.
    assert find_samples(assume_spread(0.8), 0.03, 0.8, 4) == pytest.approx(2791 / 4, rel=0.02)


def passes(rng: random.Random, spread: Spread, samples: int, epochs: int, margin: float) -> bool:
    """Run the gate itself on two equal runs."""

    def draw() -> dict[str, float]:
        chance = spread.rate
        return {str(n): sum(rng.random() < chance for _ in range(epochs)) / epochs for n in range(samples)}

    sides = [Side(name, scores={"it": draw()}, samples=tuple(map(str, range(samples)))) for name in ("new", "old")]
    return decide([(sides[0], sides[1])], GateConfig({"it": margin})).verdict == "pass"


@pytest.mark.parametrize("epochs", [1, 3])
def test_the_gate_passes_equal_runs_as_often_as_planned(epochs: int) -> None:
    """100 gates of the planned size: 80% pass, up to four Monte Carlo errors."""
    spread, margin = assume_spread(0.75), 0.2
    samples = find_samples(spread, margin, 0.8, epochs)
    rng = random.Random(epochs)
    share = sum(passes(rng, spread, samples, epochs, margin) for _ in range(100)) / 100
    assert share == pytest.approx(predict_pass(spread, margin, samples, epochs), abs=4 * (0.16 / 100) ** 0.5)


@given(st.floats(0.1, 0.9), st.floats(0.05, 0.2), st.floats(0.5, 0.95), st.integers(1, 5), st.sampled_from([0.0, 0.05]))
def test_the_plan_is_the_smallest_that_is_enough(
    rate: float, margin: float, power: float, epochs: int, judge: float
) -> None:
    """The planned number reaches the power; a tenth fewer do not. A wider margin never needs more."""
    spread = Spread(agent=rate * (1 - rate) / 2, judge=judge, rate=rate)
    samples = find_samples(spread, margin, power, epochs)
    assert predict_pass(spread, margin, samples, epochs) >= power
    if samples > 40:
        assert predict_pass(spread, margin, samples * 9 // 10, epochs) < power
    assert find_samples(spread, margin * 1.5, power, epochs) <= samples


def test_more_verdicts_divide_the_judge_only() -> None:
    """Agent .1, judge .1: two verdicts leave .15 of .2."""
    spread = Spread(agent=0.1, judge=0.1, rate=0.5, is_binary=False)
    one, two = (find_samples(spread, 0.03, 0.8, 1, verdicts) for verdicts in (1, 2))
    assert two / one == pytest.approx(0.75, rel=0.01)


def test_fixed_samples_need_epochs_or_are_too_few() -> None:
    """200 samples and a margin of 5 points: about 5 epochs; 20 samples never rule out a loss of 3 points."""
    spread = assume_spread(0.8)
    epochs = find_epochs(spread, 0.05, 0.8, 200)
    assert epochs is not None
    assert predict_pass(spread, 0.05, 200, epochs) >= 0.8 > predict_pass(spread, 0.05, 200, epochs - 1)
    assert find_epochs(spread, 0.03, 0.8, 20) is None
    assert make_plan(spread, margin=0.03, baseline_samples=20).same_samples is None


def test_epochs_that_barely_help_are_not_a_plan() -> None:
    """With 58 samples no number of epochs is enough, with 61 hundreds, which 1,007 samples save; with 88 they help."""
    spread = assume_spread(0.8)
    texts = {
        samples: _describe_same_samples(samples, make_plan(spread, margin=0.05, baseline_samples=samples))
        for samples in (58, 61, 88)
    }
    assert texts[58] == "The 58 samples of the baseline are too few for this margin, with any number of epochs."
    assert texts[61].startswith("The 61 samples of the baseline cannot reach this margin with epochs alone: ")
    assert texts[61].endswith("Add samples: 1,007 with 1 epoch take 1,007 target calls.")
    assert texts[88] == "With the 88 samples of the baseline: 12 epochs, 1,056 target calls."


def test_the_command_plans_from_a_run_or_a_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run shows the spread and the prices; a rate only an upper bound."""
    monkeypatch.chdir(tmp_path)
    run_agent([0.0, 1.0] * 20 + [0.5] * 20, 2, history=True, name="main")
    assert run_cli(["plan", "--baseline", "main", "--margin", "5%", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["plan"]["spread"]["is_upper_bound"] is False
    assert plan["cheapest"]["cost"] == pytest.approx(0.03 * plan["cheapest"]["target_calls"])
    assert run_cli(["plan", "--pass-rate", "0.5", "--margin", "5%", "--epochs", "1", "--json"]) == 0
    worst = json.loads(capsys.readouterr().out)["cheapest"]
    assert worst["samples"] > plan["plan"]["runs"][0]["samples"]
    assert worst["cost"] is None
    assert run_cli(["plan", "--pass-rate", "80%"]) == 0
    assert "the largest for a pass rate of 80%" in " ".join(capsys.readouterr().out.split())
    assert run_cli(["plan", "--baseline", "main"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"measured on 60 samples: \d+% of them \(95% interval \d+% to \d+%\) change from run to run", text)


def test_a_baseline_with_two_configurations_is_chosen_by_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fix can be typed as it is."""
    monkeypatch.chdir(tmp_path)
    report = run_agent([0.5] * 12, 2, history=True, configurations={"plain": {}, "rag": {}})
    assert run_cli(["plan", "--baseline", "latest"]) == 2
    fix = f"--baseline {report.run_id}@plain"
    assert f"Fix: write {fix}\n" in capsys.readouterr().err
    assert run_cli(["plan", *fix.split()]) == 0


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        ([], "write proctor plan latest, or proctor plan --pass-rate 80%"),
        (["--pass-rate", "1"], "write --pass-rate 80%"),
        (["--pass-rate", "80%", "--margin", "0"], "write --margin 2%"),
        (["--pass-rate", "80%", "--power", "100%"], "write --power 80%"),
    ],
)
def test_what_cannot_be_planned_names_the_fix(
    arguments: list[str], fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["plan", *arguments]) == 2
    assert fix in capsys.readouterr().err
