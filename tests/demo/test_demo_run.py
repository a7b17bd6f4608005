"""The demonstration as a whole: its eval file loads, runs quickly, and shows what it promises."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from proctor import bridge, resources
from proctor.api import execute
from proctor.config import Loaded, load
from proctor.engine.start import Conduct
from proctor.lookback import open_history
from proctor.records.report import EvalReport


@pytest.fixture(scope="module")
def loaded() -> Iterator[Loaded]:
    """The demonstration's eval file. Loading it adds its folder to the path; that is undone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", sys.path.copy())
        yield load(resources.path("demo", "eval.yaml"))


@pytest.fixture(scope="module")
def report(loaded: Loaded) -> EvalReport:
    """The demonstration, run once for all tests of this file."""
    return bridge.run(execute(loaded.evaluation, open_history(False), Conduct()))


def passed(report: EvalReport, configuration: str, evaluator: str) -> int:
    """How many answers of a configuration pass in the eyes of an evaluator."""
    return report.results.only(configuration).column(evaluator).passed


def test_the_eval_file_compares_two_configurations(loaded: Loaded) -> None:
    """It is called demo and names both rankings."""
    assert loaded.evaluation.name == "demo"
    assert loaded.evaluation.configurations == {
        "overlap": {"ranking": "overlap"},
        "bm25": {"ranking": "bm25"},
    }


def test_every_answer_is_scored_by_every_evaluator(report: EvalReport) -> None:
    """120 questions in two configurations, no errors, nothing left unscored."""
    counts = report.results.counts()
    assert counts.total == 240
    assert counts.error + counts.unscored + counts.skipped == 0
    assert [set(result.scores) for result in report.results[:1]] == [
        {"contains", "citation_format", "cites_source", "brief"}
    ]


def test_bm25_answers_more_questions_than_overlap(report: EvalReport) -> None:
    """Of 120: overlap answers between 55 and 70 percent, bm25 between 75 and 88."""
    overlap, bm25 = (passed(report, name, "contains") for name in ("overlap", "bm25"))
    assert (overlap, bm25) == (71, 102)
    assert 0.55 <= overlap / 120 <= 0.70
    assert 0.75 <= bm25 / 120 <= 0.88


def test_bm25_cites_the_right_passage_more_often(report: EvalReport) -> None:
    """Of 120: the right source 93 times, and 111 times."""
    assert passed(report, "overlap", "cites_source") == 93
    assert passed(report, "bm25", "cites_source") == 111


def test_each_kind_of_question_is_as_hard_as_it_should_be(report: EvalReport) -> None:
    """Neither configuration is perfect at anything; paraphrases are the hardest for bm25."""
    right: Counter[tuple[str, str]] = Counter()
    for result in report.results:
        trial = result.trial
        right[trial.configuration, trial.sample.tags[0]] += result.scores["contains"].passed
    kinds = ("direct", "paraphrase", "trap", "unanswerable")
    assert [right["overlap", kind] for kind in kinds] == [56, 2, 13, 0]
    assert [right["bm25", kind] for kind in kinds] == [75, 4, 17, 6]
