"""One registry: whatever a report prints can be compared, gated and trended."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from proctor import MetricRegistry, Reply, Usage, compare, evaluate, exact_match
from proctor.comparison import statistics
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.report import EvalReport
from proctor.core import imports
from proctor.errors import ConfigError, ProctorError
from proctor.history.sqlite import SQLiteHistory
from proctor.history.trends import trend
from proctor.records.results import Results
from proctor.wiring import compare_runs
from proctor.wiring.registry import Registry, load_custom_metrics


def words(results: Results) -> dict[str, float]:
    lengths = [len(str(result.output).split()) for result in results]
    return {"mean": sum(lengths) / len(lengths), "share_of_long": sum(each > 1 for each in lengths) / len(lengths)}


def run(name: str, tokens: int, history: Path) -> EvalReport:
    def answer(question: str) -> Reply:
        text = "yes" if int(question) % 4 else "not at all"
        return Reply(text, usage=Usage(output_tokens=tokens + int(question), cost=0.01), latency_ms=5.0 + int(question))

    data = [{"id": str(n), "input": str(n), "expected": "yes"} for n in range(24)]
    fields = {"length": "usage.output_tokens"}
    return evaluate(
        answer, data, {"exact": exact_match}, name=name, metrics=[words], fields=fields, history=history
    )  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[EvalReport, EvalReport, Path]:
    history = tmp_path_factory.mktemp("runs") / "history.db"
    return run("old", 100, history), run("new", 90, history), history


def list_printed(report: EvalReport) -> list[str]:
    """The metrics of a report that have a value."""
    return [name for name, metric in report.metrics.items() if metric.value is not None]


def test_every_metric_that_a_report_prints_is_compared_gated_and_trended(
    runs: tuple[EvalReport, EvalReport, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each by the printed name, with the printed value, from the stored runs, whose own metrics are a plugin."""
    monkeypatch.setattr(statistics, "RESAMPLES", 50)
    _, new, history = runs
    names = list_printed(new)
    assert {"latency_ms.p95", "latency_ms.max", "tokens.total", "cost.total", "exact.p25", "success_rate"} <= {*names}
    assert {"words.mean", "words.share_of_long", "field.length"} <= {*names}
    opened = compare_runs.add_custom_metrics(
        *compare_runs.open_pair("new", "old", history=history), custom_metrics=[words]
    )
    pair = compare_runs.build_sides(*opened)
    store = SQLiteHistory(history)
    for name in names:
        [comparison], _ = compare_runs.compare_configurations(*opened, metrics=[name])
        [delta] = comparison.all_deltas()
        assert delta.a == pytest.approx(new.metrics[name].value), name
        gate = decide([pair], GateConfig({name: 0.5}, better={name: True}))
        assert gate.checks[0].value == pytest.approx(new.metrics[name].value), name
        assert len(trend(store, name).points) == 2, name


@pytest.mark.parametrize("name", ["latency_ms.p59", "tokens.totl", "words.men"])
def test_an_unknown_metric_is_refused_with_the_nearest(name: str, runs: tuple[EvalReport, EvalReport, Path]) -> None:
    """By comparisons, by gates and by trends."""
    old, new, history = runs
    nearest = {"latency_ms.p59": "latency_ms.p95", "tokens.totl": "tokens.total", "words.men": "words.mean"}[name]
    pair = compare_runs.build_sides(*compare_runs.open_pair(new, old))
    for refused in (
        lambda: compare(new, old, metrics=[name]),
        lambda: decide([pair], GateConfig({name: 0.1})),
        lambda: trend(SQLiteHistory(history), name),
    ):
        with pytest.raises(ConfigError, match=nearest):
            refused()


def test_a_comparison_takes_the_metric_itself(runs: tuple[EvalReport, EvalReport, Path]) -> None:
    """A function stands for all its numbers: 12 of 24 answers have one word more, 18 one word and 6 three."""
    old, new, _ = runs
    comparison = compare(new, old, metrics=[words])
    assert list(comparison.metrics) == ["words.mean", "words.share_of_long"]
    assert comparison.metrics["words.mean"].a == (18 * 1 + 6 * 3) / 24
    assert comparison.metrics["words.share_of_long"].verdict == "no relevant difference"


def test_a_new_registry_has_the_built_in_metrics_and_a_list_only_its_own() -> None:
    assert MetricRegistry().get("latency_ms").name == "latency_ms"
    assert MetricRegistry().get("strict_pass_rate").name == "strict_pass_rate"
    with pytest.raises(ProctorError, match="unknown metric 'latency_ms'"):
        MetricRegistry([words]).get("latency_ms")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers a metric, and one that is broken."""
    points = [
        EntryPoint("words", "tests.metrics.test_one_registry:words", imports.METRICS),
        EntryPoint("broken", "tests.metrics.no_such_module:words", imports.METRICS),
    ]

    def find(group: str) -> Iterable[Any]:
        return points if group == imports.METRICS else ()

    monkeypatch.setattr(imports, "entry_points", find)


@pytest.mark.usefixtures("installed")
def test_installed_metrics_are_found_by_name() -> None:
    """An eval file names them; an unknown name is refused with the nearest; a broken package says why."""
    assert Registry().load_metric("words") is words
    with pytest.raises(ProctorError, match="did you mean 'words'"):
        Registry().load_metric("wrds")
    with pytest.raises(ProctorError, match="no_such_module"):
        Registry().load_metric("broken")


@pytest.mark.usefixtures("installed")
def test_comparisons_load_installed_metrics_and_leave_out_broken_ones() -> None:
    assert load_custom_metrics() == (words,)
    assert len(load_custom_metrics(["proctor.metrics:SuccessRateMetric"])) == 2
