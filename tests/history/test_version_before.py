"""Files that the version before wrote are read: a history, a JSON report and a cassette.

They were written before the modules were renamed; never write them again with newer code.
"""

from __future__ import annotations

import asyncio
import gzip
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.comparison.report import EvalReport
from proctor.history.sqlite import SQLiteHistory
from proctor.models.wrappers.cassette import ReplayModel
from proctor.records.model import ModelRequest, ToolSpec
from proctor.records.rubric import compute_total, read_run_columns
from proctor.records.score import SKIPPED_BY_DESIGN
from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.reports.json import load

FILES = Path(__file__).parent / "files"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SQLiteHistory]:
    path = tmp_path_factory.mktemp("before") / "history.db"
    path.write_bytes(gzip.decompress((FILES / "version_before_history.db.gz").read_bytes()))
    history = SQLiteHistory(path)
    yield history
    history.close()


@pytest.fixture(scope="module", params=["history", "JSON report"])
def report(request: pytest.FixtureRequest, history: SQLiteHistory) -> EvalReport:
    if request.param == "history":
        return history.report("capitals")
    return load(gzip.decompress((FILES / "version_before_report.json.gz").read_bytes()))


def test_the_outcomes_and_metrics_are_read(report: EvalReport) -> None:
    counts = report.counts
    assert (counts.passed, counts.failed, counts.error, counts.unscored, counts.skipped) == (2, 2, 2, 2, 2)
    assert report.results.error_kinds() == {"ValueError": 2}
    assert report.metrics["pass_rate"].value == 0.5
    assert report.metrics["tokens.total"].value == 150.0
    assert report.metrics["total_score"].n == 8


def test_the_run_is_read(report: EvalReport) -> None:
    run = report.metadata
    assert run is not None
    assert (run.name, run.status, run.total, run.options.epochs) == ("capitals", "completed", 10, 2)
    assert (run.tags, run.target.name, run.dataset.length) == ({"branch": "main"}, "answer", 5)
    assert [spec.name for spec in run.evaluators][-2:] == ["care", "tone"]
    assert len(run.warnings) == 3


def test_a_session_is_read_event_by_event(report: EvalReport) -> None:
    result = report.results.for_sample("fr")[0]
    assert result.trial.session is not None
    message, call, model_call, custom = result.trial.session
    assert message == Message("user", "Capital of France?")
    assert call == ToolCall("search", {"q": "Capital of France?"}, ["a", 1], duration_ms=1.5, call_id="c1")
    assert model_call == ModelCall("test:model", Usage(10, 5, 2, 0.001, 1), 12.5, "stop")
    assert custom == CustomEvent("dict", {"step": 1})
    assert result.trial.usage == Usage(10, 5, 2, 0.001, 1)


def test_values_that_json_lacks_are_read(history: SQLiteHistory) -> None:
    output = history.report("capitals").results.for_sample("nums")[0].trial.output
    assert output == {"pair": (1, math.inf), "bytes": b"\x00\xff"}


def test_errors_and_skipped_scores_are_read(report: EvalReport) -> None:
    failed, unscored, skipped = (report.results.for_sample(name)[0] for name in ("boom", "it", "nums"))
    assert failed.trial.error is not None
    assert (failed.trial.error.kind, failed.trial.error.message) == ("ValueError", "the target failed")
    assert unscored.scores["fragile"].status == "error"
    assert unscored.scores["fragile"].reason == "LookupError: no such city"
    assert skipped.scores["exact_match"].status == "skipped"


def test_scores_skipped_by_design_leave_results_decided(report: EvalReport) -> None:
    first, last = report.results.for_sample("fr")
    assert first.scores["consistency"].reason in SKIPPED_BY_DESIGN
    assert first.outcome == last.outcome == "passed"
    assert last.scores["consistency"].value == 1.0


def test_rubric_scores_and_their_total_are_read(report: EvalReport) -> None:
    result, columns = report.results.for_sample("es")[1], read_run_columns(report.metadata)
    assert result.scores["care"].value == 0.75
    assert result.scores["tone"].reason == "The agent looked it up."
    assert [(c.name, c.scale, c.rubric.weight) for c in columns.columns] == [
        ("care", (1.0, 5.0), 2.0),
        ("tone", (0.0, 5.0), 1.0),
    ]
    total = compute_total(result.scores, columns)
    assert total is not None
    assert total.normalized == pytest.approx(0.766667, abs=1e-6)


def test_clusters_are_read(report: EvalReport) -> None:
    figures = report.results.figures()
    assert figures.clusters is not None
    named = {sample for sample, cluster in zip(figures.sample_ids, figures.clusters, strict=True) if cluster}
    assert named == {"fr", "it"}
    clusters = report.results.clusters()
    assert clusters is not None
    assert set(clusters) == {"capitals", "es", "nums", "boom"}


def test_configurations_and_baselines_are_read(history: SQLiteHistory) -> None:
    report = history.report("marks")
    assert report.metadata is not None
    assert [c.options for c in report.metadata.configurations] == [{"mark": "."}, {"mark": "!"}]
    assert [report.results.for_configuration(name).counts().passed for name in ("plain", "loud")] == [0, 2]
    assert set(report.by_configuration) == {"plain", "loud"}
    assert history.baseline("main").name == "capitals"


def test_a_cassette_answers_as_it_did() -> None:
    request = ModelRequest(
        (Message("system", "Be brief."), Message("user", "où?")),
        tools=(ToolSpec("search", "finds", {"type": "object"}),),
        schema={"type": "object"},
        temperature=0.5,
        seed=7,
        max_tokens=50,
    )
    replay = ReplayModel(FILES / "version_before_calls.jsonl")
    response = asyncio.run(replay.complete(request))
    again = asyncio.run(replay.complete(ModelRequest((Message("user", "où?"),), opinion=1)))
    assert response.text == again.text == "The café is “open”.\n"
    assert response.tool_calls == (ToolCall("search", {"q": ["ä", 1, None]}, call_id="c1"),)
    assert (response.usage, response.attempts, response.raw) == (Usage(3, 4, 1, 0.25), 2, {"id": "x"})
    assert replay.model == "test:full"
