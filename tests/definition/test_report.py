"""Reports of definitions: by field, by configuration, and as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import EvalReport, FieldMissing, Reply, Score, Usage, configuration, define
from proctor.errors import ConfigError
from tests.tables import each_row

TEMPERATURES = {"low": 0.3, "mid": 0.6, "high": 1.0}


def target(text: str, *, temperature: float) -> Reply:
    if text == "fails" and temperature == 1.0:
        raise ValueError("too hot")
    return Reply(text, Usage(10, round(100 * temperature)), latency_ms=100 * temperature)


def closeness(output: Any, field_context: Any) -> float:
    return 1.0 - float(field_context.configuration["temperature"]) / 2


def some(output: Any) -> Score | None:
    return None if output == "nothing" else Score(1.0, True)


def checks() -> Any:
    return (
        define("exam")
        .select("usage.total_tokens", as_="tokens")
        .select("usage", as_="all")
        .evaluate_field("output", closeness, some)
        .evaluate_field("tokens", lambda tokens: tokens < 100)
    )


def run(*texts: str, **options: Any) -> EvalReport:
    configurations = [configuration(name, temperature=t) for name, t in TEMPERATURES.items()]
    span: Any = [{"input": text} for text in texts] if len(texts) > 1 else {"input": texts[0]}
    report = checks().evaluate(span, target=target, configurations=configurations, **options)
    assert isinstance(report, EvalReport)
    return report


def test_a_trial_has_one_score_per_field() -> None:
    """The combined score, the score of each evaluator, and whether it passed."""
    report = checks().evaluate({"input": "x"}, target=target, configurations={"low": {"temperature": 0.3}})
    assert report.passed
    assert list(report.field_results) == ["output", "tokens"]
    output = report.field_results["output"]
    assert output.passed
    assert output.score.value == pytest.approx((0.85 + 1.0) / 2)
    assert {name: one.value for name, one in output.evaluators.items()} == {
        "closeness": 0.85, "some": 1.0,
    }  # fmt: skip
    assert report.configurations == ("low",)


def test_trials_have_separate_scores() -> None:
    """The score of the field covers all trials; each configuration has its own."""
    report = run("x")
    tokens = report.field_results["tokens"]
    assert [(one.configuration, one.passed) for one in tokens.scores] == [
        ("low", True), ("mid", True), ("high", False),
    ]  # fmt: skip
    assert not tokens.passed
    assert not report.passed
    assert tokens.score.passed is False
    assert tokens.score.value == pytest.approx(2 / 3)
    assert tokens.score.reason == "high: did not pass"
    assert tokens.for_configuration("high").score.passed is False
    with pytest.raises(ConfigError, match="did you mean 'high'"):
        tokens.for_configuration("hihg")


def test_a_failed_trial_fails_every_field() -> None:
    """And the report does not pass."""
    report = run("fails")
    failed = report.field_results["output"].for_configuration("high").score
    assert failed.status == "error"
    assert "ValueError: too hot" in failed.reason
    assert not report.field_results["output"].passed
    assert not report.passed


def test_a_skipped_score_neither_passes_nor_fails() -> None:
    """A field passes if every trial passes, or every trial with a result."""
    skipping = define().evaluate_field("output", some)
    assert not skipping.evaluate({"output": "nothing"}).passed
    assert not skipping.evaluate({"output": "nothing"}).field_results["output"].passed
    both = skipping.evaluate([{"output": "nothing"}, {"output": "x"}])
    assert not both.passed
    assert not both.field_results["output"].passed
    ignoring = skipping.evaluate([{"output": "nothing"}, {"output": "x"}], skipped="ignore")
    assert ignoring.passed


def test_comparing_two_configurations() -> None:
    """Numbers and scores of fields: a minus b, in percent of b."""
    report = run("x")
    compared = report.compare("low", "high")
    assert compared.deltas == {
        "tokens": {"absolute": -70.0, "percentage": pytest.approx(-70 / 1.1)},
    }  # fmt: skip
    scores = compared.score_deltas
    assert scores["output.closeness"]["absolute"] == pytest.approx(0.35)
    assert scores["output.closeness"]["percentage"] == pytest.approx(70.0)
    assert scores["tokens.score"] == {"absolute": 1.0, "percentage": None}
    kinds = {(row["of"], row["name"]) for row in compared.rows()}
    assert ("field", "tokens") in kinds
    assert ("score", "output.some") in kinds
    assert ("metric", "pass_rate") in kinds
    assert "tokens" in str(compared)
    with pytest.raises(ConfigError, match="unknown configuration 'lwo' in this run") as caught:
        report.compare("lwo", "high")
    assert caught.value.fix == "did you mean 'low'?"


def test_intervals_need_enough_samples() -> None:
    """Ten equal differences are decided by their signs; one is not."""
    many, one = run(*"abcdefghij").compare("low", "high"), run("x").compare("low", "high")
    assert many.fields["tokens"].interval is None
    assert many.fields["tokens"].decided
    assert many.fields["tokens"].a_is_better
    assert not one.fields["tokens"].decided


@each_row(
    ("field", "order", "best", "worst"),
    [
        ("tokens", "asc", "low", "high"),
        ("tokens", "desc", "high", "low"),
        ("usage.output_tokens", "asc", "low", "high"),
        ("latency_ms", "desc", "high", "low"),
        ("output.closeness", "desc", "low", "high"),
        ("configuration.temperature", "asc", "low", "high"),
        ("tokens.score", "desc", "low", "high"),
        ("latency_ms.mean", "asc", "low", "high"),
        ("field.tokens", "asc", "low", "high"),
        # All alike: ties go by name.
        ("output.some", "desc", "high", "mid"),
    ],
)
def test_ranking(field: str, order: str, best: str, worst: str) -> None:
    """By a selected field, a path or a score, in either order."""
    ranking = run("x").rank_by(field, order)
    assert (ranking.best, ranking.worst) == (best, worst)
    assert ranking.data[0]["rank"] == 1


def test_the_options_of_a_configuration_are_fields() -> None:
    """Also in stored runs."""
    selected = define().select("configuration.temperature", as_="heat")
    selected.evaluate_field("output", some)
    report = selected.evaluate({"input": "x"}, target=target, configurations={"low": {"temperature": 0.3}})
    assert report.rows()[0]["heat"] == 0.3


def test_failed_configurations_are_ranked_last() -> None:
    """They have no number."""
    ranking = run("fails").rank_by("tokens", "desc")
    assert [one.configuration for one in ranking.places] == ["mid", "low", "high"]
    assert (ranking.best, ranking.worst) == ("mid", "low")
    assert ranking.places[-1].value is None


def test_invalid_rankings() -> None:
    """Unknown fields, fields without numbers and unknown orders, each with a fix."""
    report = run("x")
    with pytest.raises(FieldMissing, match="unknown metric or field 'tokns'"):
        report.rank_by("tokns")
    with pytest.raises(ConfigError, match="'all' has no numbers to rank by") as caught:
        report.rank_by("all")
    assert "tokens" in caught.value.fix
    assert "output.closeness" in caught.value.fix
    with pytest.raises(ConfigError):
        report.rank_by("tokens", "best")


def test_rows_for_a_table() -> None:
    """One mapping for each trial, including failed ones."""
    rows = run("fails").rows()
    assert [row["configuration"] for row in rows] == ["low", "mid", "high"]
    assert rows[0]["outcome"] == "passed"
    assert rows[0]["tokens"] == 40
    assert rows[0]["output"] == "fails"
    assert rows[0]["tokens.score"] == 1.0
    assert rows[2]["tokens"] is None
    assert rows[2]["outcome"] == "error"
    assert set(rows[0]) >= {"sample_id", "epoch", "output.score", "all"}


def test_a_stored_report_is_equal(tmp_path: Path) -> None:
    """With the same parts and numbers."""
    definition = checks().history(where=tmp_path / "h.db")
    configurations = [configuration(name, temperature=t) for name, t in TEMPERATURES.items()]
    first = definition.evaluate({"input": "x"}, target=target, configurations=configurations)
    (again,) = definition.history.last()
    assert again.field_results == first.field_results
    assert again.compare("low", "high") == first.compare("low", "high")
    assert again.rank_by("tokens").data == first.rank_by("tokens").data
    assert again.rows() == first.rows()
    assert again.passed == first.passed


def test_epochs_are_averaged_by_sample() -> None:
    """A configuration is ranked by its samples, not by their repetitions."""
    ranking = run("x", "y", epochs=3).rank_by("tokens")
    assert [(one.configuration, one.n) for one in ranking.places] == [
        ("low", 2), ("mid", 2), ("high", 2),
    ]  # fmt: skip


def test_custom_details_are_allowed() -> None:
    """An evaluator may use the name `parts`."""

    def odd(output: Any) -> dict[str, Any]:
        return {"passed": True, "details": {"parts": {"a": 1}}}

    report = define().evaluate_field("output", odd).evaluate({"output": "x"})
    assert report.passed
    assert list(report.field_results["output"].evaluators) == ["odd"]
    assert report.metrics["field.output.odd"].value == 1.0
