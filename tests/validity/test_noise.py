"""The noise budget: shares by hand, planted components, advice, and what a run cannot show."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import Reply, Usage, evaluate, exact_match, llm_judge, rescore
from proctor.cli.main import run_cli
from proctor.cli.noise import _compare_costs, advise, describe_range
from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError
from proctor.validity.noise import Design, NoiseBudget, _Levels, choose_step, list_steps, measure_noise
from proctor.validity.prices import CallPrices
from proctor.validity.verdicts import find_repeats, parse_measure

DESIGN = Design(100, 2.0, 1.0)
PRICES = CallPrices(target=0.03, judge=0.01, judges=1)


def run_agent(
    chances: list[float], epochs: int, *, judge: Any = exact_match, seed: int = 1, **options: Any
) -> EvalReport:
    """Evaluate samples that pass with these probabilities, at 3 cents a call."""
    rng = random.Random(seed)

    def answer(sample: str) -> Reply:
        text = "yes" if rng.random() < chances[int(sample)] else "nope"
        return Reply(text, usage=Usage(output_tokens=10, cost=0.03))

    data = [{"id": str(n), "input": str(n), "expected": "yes"} for n in range(len(chances))]
    return evaluate(answer, data, {"correct": judge}, epochs=epochs, concurrency=1, **options)


def make_judge(error: float, seed: int = 2, samples: int = 1) -> Any:
    """A judge that is wrong with this probability, and asked several times."""
    rng = random.Random(seed)

    def ask(prompt: str) -> str:
        line = prompt.rpartition("\n")[2].partition("<")[0]
        return line + ("good" if ("nope" not in prompt) != (rng.random() < error) else "poor")

    return llm_judge(ask, "Is it right?", samples=samples, combine="vote") if samples > 1 else llm_judge(ask, "ok?")


def noise_of(report: EvalReport, **options: Any) -> NoiseBudget:
    return measure_noise(report, "default", **options)


def test_the_shares_by_hand() -> None:
    """Samples .1 / 100, agent .1 / 200, judge .2 / 200: 40%, 20% and 40% of .0025."""
    levels = _Levels(0.1, 0.1, 0.2)
    assert levels.variance(DESIGN) == pytest.approx(0.0025)
    assert levels.parts(DESIGN) == pytest.approx([0.001, 0.0005, 0.001])


def test_the_steps_by_hand() -> None:
    """Doubling: verdicts halve the judge's .001 for 200 judge calls ($2), epochs .0015 for 200 of each ($8)."""
    levels = _Levels(0.1, 0.1, 0.2)
    samples, epochs, verdicts = list_steps(levels, DESIGN, PRICES, None)
    assert [(step.target_calls, step.judge_calls) for step in (samples, epochs, verdicts)] == [
        (200, 200),
        (200, 200),
        (0, 200),
    ]
    assert [step.cost for step in (samples, epochs, verdicts)] == pytest.approx([8.0, 8.0, 2.0])
    assert [(step.half_width / 1.959964) ** 2 for step in (samples, epochs, verdicts)] == pytest.approx(
        [0.00125, 0.00175, 0.002]
    )
    # Variance removed per dollar: .00125 / 8, .00075 / 8 and .0005 / 2.
    assert choose_step([samples, epochs, verdicts], 0.0025) == "verdicts"


def test_a_margin_is_reached_with_the_fewest() -> None:
    """± 8 points is a variance of .001666: 151 samples, 5 epochs, 7 verdicts; verdicts alone never reach ± 6."""
    levels = _Levels(0.1, 0.1, 0.2)
    samples, epochs, verdicts = list_steps(levels, DESIGN, PRICES, 0.08)
    assert (samples.design.samples, samples.reaches) == (151, True)
    assert (epochs.design.epochs, epochs.reaches) == (5, True)
    assert (verdicts.design.verdicts, verdicts.reaches) == (7, True)
    assert list_steps(levels, DESIGN, PRICES, 0.06)[2].reaches is False
    for step in (samples, epochs, verdicts):
        assert step.half_width <= 0.08


def test_unknown_prices_count_calls() -> None:
    """Without a price of the judge, calls are compared, and the cost is not invented."""
    steps = list_steps(_Levels(0.1, 0.1, 0.2), DESIGN, CallPrices(target=0.03, judges=1), None)
    assert [step.cost for step in steps] == [None, None, None]
    assert choose_step(steps, 0.0025) == "samples"


def test_rules_leave_samples_and_agent() -> None:
    """A coin that passes with 1/2 on every sample has no noise from the samples; the intervals contain the truth."""
    budget = noise_of(run_agent([0.5] * 80, 4))
    by_source = {part.source: part for part in budget.components}
    assert set(by_source) == {"samples", "agent"}
    assert by_source["agent"].variance == pytest.approx(0.25, abs=0.02)
    assert by_source["agent"].interval[1] > 0.9
    assert by_source["samples"].interval[0] < 0.1
    assert budget.unknown == ()
    assert budget.paired_half_width == pytest.approx(1.96 * (2 * by_source["agent"].variance / 320) ** 0.5, rel=1e-3)


def test_a_sure_agent_leaves_only_the_samples() -> None:
    """Every epoch is equal: all the noise comes from the samples, and more epochs are not advised."""
    budget = noise_of(run_agent([1.0] * 30 + [0.0] * 30, 2))
    assert {part.source: part.share for part in budget.components} == {"samples": 1.0, "agent": 0.0}
    assert (budget.best, budget.best_agreement) == ("samples", 1.0)


def test_repeated_opinions_show_the_judge() -> None:
    """A judge that errs in 20%, asked three times, on an agent without noise: the variance is .2 * .8."""
    budget = noise_of(run_agent([1.0] * 40 + [0.0] * 40, 1, judge=make_judge(0.2, samples=3)))
    judge = budget.components[-1]
    assert judge.source == "judge"
    assert judge.variance == pytest.approx(0.16, abs=0.06)
    assert budget.design.verdicts == 3
    assert "--epochs 2" in budget.unknown[0]


def test_a_rescored_run_shows_the_judge(tmp_path: Path) -> None:
    """One verdict each cannot be told from the agent; the same judge asked again can, without the target."""
    history = tmp_path / "history.db"
    judge = make_judge(0.2)
    report = run_agent([0.9] * 30 + [0.1] * 30, 2, judge=judge, history=history, name="it")
    budget = noise_of(report)
    assert [part.source for part in budget.components] == ["samples", "agent and judge"]
    assert f"proctor rescore {report.run_id}" in budget.unknown[0]
    again = rescore(report.run_id, {"correct": judge}, history=history)
    assert report.metadata is not None
    assert again.metadata is not None
    measure = parse_measure("pass_rate", report.metadata)
    assert find_repeats(report.metadata, [report.metadata, again.metadata], measure) == [again.run_id]
    budget = noise_of(report, repeats=[again])
    assert [part.source for part in budget.components] == ["samples", "agent", "judge"]
    assert budget.components[2].variance == pytest.approx(0.16, abs=0.06)
    # The run itself was judged once.
    assert budget.design == Design(60, 2.0, 1.0)
    assert {step.more: step.target_calls for step in budget.steps}["verdicts"] == 0


def test_the_command_prints_shares_advice_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every number has n and an interval; one epoch says how to get the rest."""
    monkeypatch.chdir(tmp_path)
    run_agent([n / 39 for n in range(40)], 3, history=True, name="agent")
    assert run_cli(["noise", "agent", "--margin", "5%"]) == 0
    text = capsys.readouterr().out
    assert "40 samples, 3 epochs, 1 verdict each" in text
    # Samples and agent share the noise about equally, so neither is named.
    assert "Cannot tell which noise is largest, the intervals overlap: " in " ".join(text.split())
    assert "about $" in text
    assert run_cli(["noise", "agent", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["design"] == {"samples": 40, "epochs": 3.0, "verdicts": 1.0}
    assert sum(part["share"] for part in data["components"]) == pytest.approx(1)
    run_agent([0.5] * 20, 1, history=True, name="once")
    assert run_cli(["noise", "once"]) == 0
    assert "Each sample ran once" in " ".join(capsys.readouterr().out.split())
    assert run_cli(["noise", "agent", "--metric", "pass_rat"]) == 2
    assert "pass_rate" in capsys.readouterr().err


def test_a_margin_that_is_already_reached_needs_nothing() -> None:
    """No step is advised."""
    budget = noise_of(run_agent([0.5] * 40, 2), margin=0.9)
    assert budget.best is None
    assert list(advise(budget)) == ["The interval is already within ±90 points: nothing more needs to run."]


def test_too_few_samples_are_refused() -> None:
    """Nine samples do not show how much samples differ."""
    with pytest.raises(ConfigError, match="9 samples; fewer than 10"):
        noise_of(run_agent([0.5] * 9, 2))


def test_clusters_inflate_the_share_of_the_samples() -> None:
    """Ten documents of six equal questions: about six times the variance of independent samples."""
    chances = [float(n // 6 % 2) for n in range(60)]
    data = [{"id": str(n), "input": str(n), "expected": "yes", "cluster": str(n // 6)} for n in range(60)]
    report = evaluate(lambda n: "yes" if chances[int(n)] else "no", data, exact_match, epochs=2)
    budget = noise_of(report)
    alone = noise_of(run_agent(chances, 2))
    assert budget.half_width / alone.half_width == pytest.approx(6**0.5, rel=0.1)
    assert "10 clusters" in budget.notes[0]


def test_one_more_verdict_asks_only_the_judges_of_the_metric() -> None:
    """Two judges at 1 and 3 cents on 100 samples in 2 epochs: 200 more calls of the first, 400 of both."""
    prices = CallPrices(target=0.03, judge=0.02, judges=2, again=CallPrices(judge=0.01, judges=1))
    steps = {step.more: step for step in list_steps(_Levels(0.1, 0.1, 0.2), DESIGN, prices, None)}
    assert (steps["verdicts"].judge_calls, steps["epochs"].judge_calls) == (200, 400)
    assert steps["verdicts"].cost == pytest.approx(2.0)
    assert steps["epochs"].cost == pytest.approx(200 * 0.03 + 400 * 0.02)


def test_the_prices_of_a_metric_are_those_of_its_judges() -> None:
    """`correct` is one of two judges; the pass rate depends on both."""
    data = [{"id": str(n), "input": str(n)} for n in range(12)]
    judges = {"correct": make_judge(0.2), "second": make_judge(0.2, seed=3)}
    report = evaluate(lambda sample: sample, data, judges, epochs=2, concurrency=1)
    prices = noise_of(report, metric="correct.pass_rate").prices
    assert (prices.judges, prices.again and prices.again.judges) == (2, 1)
    assert noise_of(report).prices.again is None


def test_equal_calls_and_narrow_intervals_are_in_words() -> None:
    """Neither "1 times the calls" nor "100–100%"."""
    budget = measure_noise(run_agent([0.5] * 20, 3), "default", "pass_rate")
    step = budget.steps[0]
    assert _compare_costs(step, step) == "about the same price"
    free = [msgspec.structs.replace(step, cost=None, target_calls=calls, judge_calls=0) for calls in (100, 101, 230)]
    assert [_compare_costs(each, free[0]) for each in free] == ["about the same calls"] * 2 + ["2.3 times the calls"]
    assert describe_range((0.9999, 1.0)) == "at least 99.9%"
    assert describe_range((0.996, 0.999)) == "99.6–99.9%"
    assert describe_range((0.25, 0.25)) == "about 25.0%"
