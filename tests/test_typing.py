"""The types of the public API: checked by mypy, and run."""

from __future__ import annotations

from typing import Any, assert_type

from proctor import Definition, EvalReport, FieldContext, Score, configuration, define
from proctor.records.comparison import Comparison, Ranking
from proctor.records.fields.field_result import FieldResult
from proctor.records.trial import Configuration


def polite(field_context: FieldContext, *, word: str = "please") -> Score:
    return Score(1.0, word in field_context.value)


def test_every_step_of_a_definition_is_typed() -> None:
    checks = (
        define("letters")
        .select("output", as_="letter")
        .evaluate_field("letter")
        .evaluate_with(polite, word="thanks")
        .evaluate_with("format_compliance", format="markdown")
        .combine_with("or")
        .on_progress(lambda event: event.progress)
        .history(auto_save=False)
        .baseline("short")
    )
    assert_type(checks, Definition)
    long, short = configuration("long"), configuration("short")
    assert_type(short, Configuration)
    recorded = {"long": {"output": "Many thanks"}, "short": {"output": "Thanks"}}
    report = checks.evaluate({}, configurations=[long, short], recorded=recorded)
    assert_type(report, EvalReport)
    assert_type(report.passed, bool)
    assert_type(report.field_results["letter"], FieldResult)
    assert_type(report.compare("long", "short"), Comparison)
    assert_type(report.rank_by("letter.score", "desc"), Ranking)
    assert_type(report.rows(), list[dict[str, Any]])
