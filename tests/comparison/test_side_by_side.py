"""The Python door: which runs and configurations are meant, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import (
    EvalReport,
    EvalResult,
    Reply,
    Sample,
    Score,
    SQLiteHistory,
    Trial,
    Usage,
    compare,
    evaluate,
    rescore,
)
from proctor.errors import ConfigError, RunNotFound, UsageError
from proctor.wiring.compare_runs import compare_configurations, default_order, open_pair, rank
from proctor.wiring.open_history import load_report

DATASET = [{"id": f"q{at}", "input": str(at), "expected": str(at)} for at in range(12)]


def answers(wrong: int, tokens: int = 10) -> Any:
    """A target that has the first so many wrong."""

    def target(text: str, *, more: int = 0) -> Reply:
        right = int(text) >= wrong + more
        return Reply(text if right else "?", usage=Usage(1, tokens), latency_ms=float(tokens))

    return target


@pytest.fixture
def history(tmp_path: Path) -> SQLiteHistory:
    """Two runs called new and old, and one of two configurations."""
    stored = SQLiteHistory(tmp_path / "h.db")
    how: dict[str, Any] = {"history": stored, "progress": False}
    evaluate(answers(8, 20), DATASET, ["exact_match"], name="old", **how)
    evaluate(answers(0), DATASET, ["exact_match"], name="new", **how)
    both = {"plain": {}, "careless": {"more": 9}}
    evaluate(answers(1), DATASET, ["exact_match"], name="both", configurations=both, **how)
    stored.set_baseline("main", stored.find("old").run_id)
    return stored


def test_runs_are_compared_by_any_reference(history: SQLiteHistory) -> None:
    """By name, id, baseline; the answer calls them as the caller did."""
    result = compare("new", "main", history=history)
    assert result.answer.startswith("new is better than main: pass_rate 100.0% vs. 33.3%")
    assert (result.a_run, result.b_run) == (history.find("new").run_id, history.find("old").run_id)
    assert (result.metrics["pass_rate"].n, len(result.won)) == (12, 8)
    by_id = compare(history.find("new").run_id, "baseline:main", history=history)
    assert by_id.metrics == result.metrics
    assert compare("new", "old", history=history, min_difference=0.5).metrics["pass_rate"].min_difference == 0.5
    narrow = compare("new", "old", history=history, metrics=["tokens.mean"])
    assert [item.name for item in narrow.all_deltas()] == ["tokens.mean"]


def test_reports_are_compared_as_they_are(history: SQLiteHistory) -> None:
    """Reports from evaluate, from the history, and one compared with a reference."""
    how: dict[str, Any] = {"history": False, "progress": False}
    new = evaluate(answers(0), DATASET, ["exact_match"], name="fresh", **how)
    assert isinstance(new, EvalReport)
    result = compare(new, load_report(history, "old"))
    assert (result.a, result.b, result.metrics["pass_rate"].verdict) == ("fresh", "old", "better")
    assert compare(new, "old", history=history).metrics == result.metrics
    plain = EvalReport(list(new.results), new.metadata)
    assert compare(plain, "old", history=history).scores == result.scores


def test_reports_without_a_run(history: SQLiteHistory) -> None:
    """Results alone are enough; two of one name are distinguished."""

    def report(right: bool) -> EvalReport:
        score = Score(float(right), right)
        trials = [Trial(Sample(str(at), at), output=at) for at in range(8)]
        return EvalReport([EvalResult(trial, {"judge": score}) for trial in trials])

    result = compare(report(True), report(False))
    assert (result.a, result.b) == ("the report (a)", "the report (b)")
    assert result.scores["judge"].verdict == "better"
    with pytest.raises(ConfigError, match="no results"):
        compare(EvalReport([]), report(True))


def test_two_runs_of_one_name_are_called_by_their_ids(history: SQLiteHistory) -> None:
    """Both are "old" to a report; to tell them apart takes the id."""
    repeated = evaluate(answers(2), DATASET, ["exact_match"], name="old", history=history, progress=False)
    first = load_report(history, "baseline:main")
    result = compare(repeated, first)
    assert (result.a, result.b) == (repeated.run_id, first.run_id)


def test_configurations_are_named_with_an_at(history: SQLiteHistory) -> None:
    """RUN@CONFIGURATION, or configuration= for both; the error names a missing configuration."""
    result = compare("both@plain", "both@careless", history=history)
    assert (result.a, result.b) == ("plain", "careless")
    assert result.metrics["pass_rate"].a == pytest.approx(11 / 12)
    comparison_text = compare("both@plain", "old", history=history)
    assert (comparison_text.a, comparison_text.b) == ("both@plain", "old")
    with pytest.raises(ConfigError, match="has 2 configurations") as caught:
        compare("both", "old", history=history)
    assert caught.value.fix == "name one of: plain, careless"
    with pytest.raises(ConfigError, match="no configuration 'plan'") as caught:
        compare("both@plan", "old", history=history)
    assert caught.value.fix == "did you mean 'plain'?"
    with pytest.raises(UsageError, match="'both@plain' and the configuration 'careless' contradict each other"):
        compare("both@plain", "old", history=history, configuration="careless")
    with pytest.raises(ConfigError, match="no configuration 'careless'"):
        compare("both", "old", history=history, configuration="careless")


def test_comparing_a_run_with_itself_is_rejected(history: SQLiteHistory) -> None:
    """Nothing could differ."""
    with pytest.raises(ConfigError, match="new and new are the same run"):
        compare("new", "new", history=history)
    with pytest.raises(ConfigError, match="the same run"):
        compare("both@plain", "both", history=history)
    with pytest.raises(RunNotFound, match="unknown run 'nowhere'"):
        compare("nowhere", "new", history=history)
    with pytest.raises(RunNotFound):
        compare("nowhere@x", "new", history=history)


def test_every_common_configuration(history: SQLiteHistory) -> None:
    """One comparison for each, corrected together; what only one has is named."""
    three = {"plain": {}, "careless": {"more": 2}, "third": {}}
    evaluate(
        answers(0), DATASET, ["exact_match"], name="again", configurations=three, history=history,
        progress=False,
    )  # fmt: skip
    result, single = compare_configurations(*open_pair("again", "both", history=history))
    assert [(item.a, item.b) for item in result] == [("again@plain", "both@plain"), ("again@careless", "both@careless")]
    assert single == ("again@third",)
    assert result[0].tests == result[1].tests
    with pytest.raises(ConfigError, match="no configuration in common"):
        compare_configurations(*open_pair("again", "old", history=history))


def test_configurations_of_one_run(history: SQLiteHistory) -> None:
    """With a run, a and b are its configurations."""
    [result], single = compare_configurations(*open_pair("plain", "careless", history=history, run="both"))
    assert (result.a, result.b, single) == ("plain", "careless", ())
    with pytest.raises(ConfigError, match="no configuration 'oops'"):
        open_pair("plain", "oops", history=history, run="both")


def test_reports_of_any_kind_can_compare_and_rank(history: SQLiteHistory) -> None:
    """evaluate, look_up and rescore give reports that can; by metric, score, path."""
    report = load_report(history, "both")
    assert report.compare("plain", "careless").metrics["pass_rate"].verdict == "better"
    assert report.rank_by("pass_rate", "desc").best == "plain"
    assert report.rank_by("exact_match", "desc").best == "plain"
    assert report.rank_by("usage.output_tokens").places[0].n == 12
    repeated = rescore("both", ["contains"], history=history, progress=False)
    assert repeated.rank_by("contains.mean", "desc").best == "plain"


def test_runs_in_order(history: SQLiteHistory) -> None:
    """The best first; a single run is taken apart into its configurations."""
    ranking = rank("pass_rate", ["old", "new", "both"], history=history)
    assert [item.configuration for item in ranking.places] == [
        "new", "both@plain", "old", "both@careless",
    ]  # fmt: skip
    assert rank("tokens.mean", ["old", "new"], history=history).best == "new"
    assert rank("tokens.mean", ["old", "new"], history=history, order="desc").best == "old"
    assert rank("pass_rate", ["both"], history=history).best == "plain"
    assert rank("pass_rate", ["both@careless", "new"], history=history).worst == "both@careless"
    with pytest.raises(ConfigError, match="only new has"):
        rank("pass_rate", ["new"], history=history)


def test_the_best_first_by_the_metrics_name() -> None:
    """Tokens and errors lower, scores and what nobody knows higher."""
    assert [default_order(name) for name in ("cost", "error_rate", "judge", "tokens.mean")] == [
        "asc", "asc", "desc", "asc",
    ]  # fmt: skip
