"""pass^k and pass@k of runs with epochs, and the samples that are flaky."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from proctor import compare, evaluate, exact_match
from proctor.comparison.gates.thresholds import find_shortfalls
from proctor.comparison.report import EvalReport
from proctor.metrics.builtin import PassKMetric, list_pass_sizes
from proctor.records.results import ResultList
from proctor.reports.comparison import render_comparison
from proctor.reports.markdown import MarkdownReporter
from proctor.reports.pages.runs import overview_page
from proctor.reports.summary import find_flaky_samples, table_metrics
from tests.statistics.published import tau_bench


def run(outcomes: dict[str, str], **options: Any) -> EvalReport:
    """Evaluate samples whose epochs pass ("1"), fail ("0") or raise an error ("x"), in this order."""
    epochs = len(next(iter(outcomes.values())))
    calls = {sample: count() for sample in outcomes}

    def answer(sample: str) -> str:
        mark = outcomes[sample][next(calls[sample])]
        if mark == "x":
            raise ValueError("no answer")
        return mark

    data = [{"id": sample, "input": sample, "expected": "1"} for sample in outcomes]
    return evaluate(answer, data, exact_match, epochs=epochs, concurrency=1, **options)


def test_pass_k_by_hand() -> None:
    """Of 4 epochs a passes 4, b 2, c 0: pass^2 is (1 + 1/6 + 0) / 3, pass@2 is (1 + 5/6 + 0) / 3."""
    report = run({"a": "1111", "b": "0110", "c": "0000"})
    metrics = report.metrics
    assert metrics["pass_hat_k.2"].value == pytest.approx(7 / 18)
    assert metrics["pass_at_k.2"].value == pytest.approx(11 / 18)
    assert (metrics["pass_hat_k.4"].value, metrics["pass_at_k.4"].value) == pytest.approx((1 / 3, 2 / 3))
    assert {metrics[name].n for name in metrics if "_k." in name} == {3}
    assert "pass_hat_k.2" in str(report)


def test_a_sample_with_fewer_than_k_verdicts_has_no_value() -> None:
    """It is counted as skipped, not as 0; without any value there is no number."""
    metrics = run({"a": "111", "b": "1x1"}).metrics
    assert (metrics["pass_hat_k.3"].value, metrics["pass_hat_k.3"].n, metrics["pass_hat_k.3"].skipped) == (1.0, 1, 1)
    assert (metrics["pass_hat_k.2"].value, metrics["pass_hat_k.2"].n) == (1.0, 2)
    undefined = run({"a": "1x"}).metrics["pass_at_k.2"]
    assert (undefined.value, undefined.n, undefined.skipped, undefined.interval) == (None, 0, 1, None)


def test_pass_k_and_the_pass_rate_have_an_interval_from_five_samples_on() -> None:
    """Four samples of two epochs are too few clusters for both; five are enough for both."""
    for count_ in (4, 5):
        metrics = run({str(n): "11" if n else "10" for n in range(count_)}).metrics
        names = ("pass_rate", "pass_hat_k.2", "pass_at_k.2")
        assert {metrics[name].interval is not None for name in names} == {count_ == 5}
        assert all(("fewer than 5 clusters" in metrics[name].note) == (count_ == 4) for name in names)


def run_two_checks() -> EvalReport:
    """Two samples with three epochs: `right` passes 3 and 1 of them, `brief` all, `silent` gives no verdict."""
    calls = iter(("1", "1", "1", "0", "1", "0"))
    checks = {"right": lambda output: output == "1", "brief": lambda output: len(output) < 2, "silent": lambda _: None}
    data = [{"id": sample, "input": sample} for sample in "ab"]
    return evaluate(lambda _: next(calls), data, checks, epochs=3, concurrency=1, skipped="ignore")


def test_every_evaluator_has_its_own_pass_k() -> None:
    """pass^2 of `right` is (1 + 0) / 2, pass@2 (1 + 2/3) / 2; tables show the largest k, without repetitions."""
    report = run_two_checks()
    metrics = report.metrics
    assert metrics["right.pass_hat_k.2"].value == 0.5
    assert metrics["right.pass_at_k.2"].value == pytest.approx(5 / 6)
    assert metrics["brief.pass_hat_k.3"].value == 1.0
    assert (metrics["silent.pass_at_k.2"].value, metrics["silent.pass_at_k.2"].n) == (None, 0)
    shown = [name for name in table_metrics(metrics) if "_k." in name and not name.startswith("pass")]
    assert shown == ["right.pass_hat_k.3", "brief.pass_hat_k.3", "right.pass_at_k.3", "brief.pass_at_k.3"]
    assert "right.pass_hat_k.3" not in str(report)
    assert "brief.pass_hat_k.3" in str(report)


def test_pass_k_of_an_evaluator_is_compared_and_has_thresholds() -> None:
    """By its name in the report, in percent."""
    report = run_two_checks()
    delta = compare(report, run_two_checks(), metrics=["right.pass_hat_k.2"]).metrics["right.pass_hat_k.2"]
    assert (delta.a, delta.b, delta.kind) == (0.5, 0.5, "rate")
    assert find_shortfalls(report, {"right.pass_hat_k.3": 0.4}) == []
    assert find_shortfalls(report, {"right.pass_hat_k.3": 0.6})[0].startswith("right.pass_hat_k.3 is 0.5, below 0.6")


def test_an_evaluator_without_any_verdict_has_no_note_about_clusters() -> None:
    """There is nothing that could have an interval."""
    metrics = run_two_checks().metrics
    assert (metrics["silent.pass_rate"].n, metrics["silent.pass_rate"].note) == (0, "")


def test_one_epoch_has_no_pass_k() -> None:
    """There is nothing to repeat; and no sample is flaky."""
    report = run({"a": "1", "b": "0"})
    assert not [name for name in report.metrics if "_k." in name]
    assert find_flaky_samples(report) == []


def test_flaky_samples_are_listed_everywhere() -> None:
    """The least reliable first, in the terminal, in Markdown and on the page of the run."""
    report = run({"a": "1111", "b": "0111", "c": "0100", "d": "0000"})
    assert [(flaky.sample_id, flaky.passed, flaky.trials) for flaky in find_flaky_samples(report)] == [
        ("c", 1, 4),
        ("b", 3, 4),
    ]
    assert "2 of 4 repeated samples passed some epochs but not all\n  c 1/4, b 3/4" in str(report)
    assert "| c | default | 1 of 4 |" in MarkdownReporter().generate(report)
    assert [flaky.sample_id for flaky in overview_page(report, report.results.grid())["flaky"]] == ["c", "b"]


def test_flips_of_epochs_are_named_by_their_rule() -> None:
    """2 of 3 epochs pass a sample, 1 of 2 does not; the text says so, and that the numbers of epochs differ."""
    old = run({"a": "111", "b": "110", "c": "100", "d": "111"}, name="old")
    new = run({"a": "10", "b": "11", "c": "11", "d": "01"}, name="new")
    comparison = compare(new, old)
    assert ([flip.sample_id for flip in comparison.lost], [flip.sample_id for flip in comparison.won]) == (
        ["a", "d"],
        ["c"],
    )
    text = " ".join(render_comparison(comparison).split())
    assert "2 samples passed in more than half of the epochs only in old (lost), 1 only in new (won)" in text
    assert "new has 2 epochs and old has 3" in text
    assert "a sample passes if more than half of its own epochs pass" in text


def test_pass_k_is_compared_by_sample() -> None:
    """Each sample has one value on each side, so the difference is paired."""
    old = run({str(n): "10" if n % 2 else "11" for n in range(20)}, name="old")
    new = run({str(n): "11" for n in range(20)}, name="new")
    delta = compare(new, old, metrics=["pass_hat_k.2"]).metrics["pass_hat_k.2"]
    assert (delta.a, delta.b, delta.verdict) == (1.0, 0.5, "better")
    assert delta.n == 20


def test_several_configurations_are_not_repeats_of_each_other() -> None:
    """Each configuration has its own pass^k; all together have none."""
    data = [{"id": "a", "input": "a", "expected": "1"}]
    report = evaluate(lambda _: "1", data, exact_match, configurations={"x": {}, "y": {}}, epochs=2)
    assert "pass_hat_k.2" not in report.metrics
    assert report.by_configuration["x"]["pass_hat_k.2"].n == 1


def test_tau_bench_is_reproduced_by_the_metric() -> None:
    """gpt-4o on 50 airline tasks x 4 trials: pass^1..4 = .420 .273 .220 .200."""
    tasks = tau_bench()
    report = run({str(task): "".join(str(int(reward)) for reward in rewards) for task, rewards in tasks.items()})
    values = [report.metrics[name].value for name in ("pass_rate", *(f"pass_hat_k.{k}" for k in (2, 3, 4)))]
    assert [round(value or 0.0, 3) for value in values] == [0.42, 0.273, 0.22, 0.2]


def test_the_sizes_stay_few() -> None:
    """2, 3, 4, further powers of two, and all epochs; an empty run has no values."""
    assert list_pass_sizes(1) == []
    assert list_pass_sizes(100) == [2, 3, 4, 8, 16, 32, 64, 100]
    assert PassKMetric("all", 2).compute(ResultList(())) == {"2": PassKMetric("any", 2).compute(ResultList(()))["2"]}
