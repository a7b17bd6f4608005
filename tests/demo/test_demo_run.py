"""The demonstration as a whole: its eval file loads, runs quickly, and shows what it promises."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator
from statistics import fmean

import pytest

from proctor.comparison.report import EvalReport
from proctor.core import bridge, resources
from proctor.engine.start import RunControls
from proctor.errors import ModelError
from proctor.models import weights
from proctor.wiring.config import LoadedEvalFile, load_eval_file
from proctor.wiring.evaluate import execute
from proctor.wiring.open_history import open_history


@pytest.fixture(scope="module")
def loaded() -> Iterator[LoadedEvalFile]:
    """The demonstration's eval file. Loading it adds its folder to the path; that is undone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", sys.path.copy())
        yield load_eval_file(resources.path("demo", "eval.yaml"))


@pytest.fixture(scope="module")
def report(loaded: LoadedEvalFile, tmp_path_factory: pytest.TempPathFactory) -> EvalReport:
    """The demonstration, run once for all tests of this file, on a machine without weights."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROCTOR_MODELS", str(tmp_path_factory.mktemp("models")))
        return bridge.run(execute(loaded.evaluation, open_history(False), RunControls()))


def passed(report: EvalReport, configuration: str, evaluator: str) -> int:
    """How many answers of a configuration pass in the eyes of an evaluator."""
    return report.results.for_configuration(configuration).column(evaluator).passed


def test_the_eval_file_compares_two_configurations(loaded: LoadedEvalFile) -> None:
    """It is called demo and names both rankings."""
    assert loaded.evaluation.name == "demo"
    assert loaded.evaluation.configurations == {"overlap": {"ranking": "overlap"}, "bm25": {"ranking": "bm25"}}


def test_every_answer_is_scored_by_every_evaluator(report: EvalReport) -> None:
    """120 questions in two configurations, no errors, nothing left unscored."""
    counts = report.results.counts()
    assert counts.total == 240
    assert counts.error + counts.unscored + counts.skipped == 0
    assert [set(result.scores) for result in report.results[:1]] == [
        {"contains", "citation_format", "cites_source", "brief", "semantic_similarity"}
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
        right[trial.configuration, trial.sample.tags[0]] += result.scores["contains"].passed is True
    kinds = ("direct", "paraphrase", "trap", "unanswerable")
    assert [right["overlap", kind] for kind in kinds] == [56, 2, 13, 0]
    assert [right["bm25", kind] for kind in kinds] == [75, 4, 17, 6]


def test_without_weights_letters_are_compared_and_every_score_says_so(report: EvalReport) -> None:
    """Right answers lie nearer to what was expected than wrong ones do."""
    methods = {r.scores["semantic_similarity"].details["method"] for r in report.results}
    assert methods == {"lexical"}
    assert apart(report) > 0.2


@pytest.mark.no_cover
def test_with_weights_meanings_are_compared(loaded: LoadedEvalFile) -> None:
    """By the local embeddings, on a tenth of the questions."""
    try:
        weights.pull("minilm")
    except ModelError as error:
        pytest.skip(f"the weights cannot be pulled: {error.what}")
    options = {**loaded.evaluation.options, "limit": 12}
    evaluation = dataclasses.replace(loaded.evaluation, options=options)
    report = bridge.run(execute(evaluation, open_history(False), RunControls()))
    names = {r.scores["semantic_similarity"].details["embedder"] for r in report.results}
    assert names == {"local:minilm"}
    assert apart(report) > 0.15


def apart(report: EvalReport) -> float:
    """How much nearer right answers are than wrong ones, on average."""
    near: dict[bool, list[float]] = {True: [], False: []}
    for result in report.results:
        near[result.scores["contains"].passed is True].append(result.scores["semantic_similarity"].value or 0.0)
    return fmean(near[True]) - fmean(near[False])
