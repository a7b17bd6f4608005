"""The runner spec: data models."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from proctor import EvalRunner, ProctorError, Sample, evaluate, exact_match
from proctor.reports.json import load
from tests.spec.clauses import clause
from tests.spec.runner_examples import FRANCE, GOOD, LIGHT, double, report_of


@clause("003.MODEL.1", "1. Data Models", ruling="runner: Example is Sample")
def test_a_sample_has_id_input_expected_and_metadata() -> None:
    """A sample has an id, an input, an expected value and metadata."""
    sample = Sample("ex-1", {"query": "Q", "response": "R"}, ["F"], {"source": "chat"})
    assert (sample.id, sample.input) == ("ex-1", {"query": "Q", "response": "R"})
    assert (sample.expected, sample.metadata) == (["F"], {"source": "chat"})


@clause("003.MODEL.2", "1. Data Models", ruling="runner: Example is Sample")
def test_a_sample_can_be_read_by_the_names_of_the_spec() -> None:
    """`query` and `response` are parts of a sample's input, `expected_followups` is expected."""
    assert FRANCE.query == "What is the capital of France?"
    assert FRANCE.response == "Paris."
    assert FRANCE.expected_followups == ["Interested in learning about Paris landmarks?"]


@clause("003.MODEL.3", "1. Data Models")
def test_expected_labels_context_and_metadata_may_be_left_out() -> None:
    """Expected value, labels, context and metadata are optional, and empty by default."""
    sample: Sample[str, str] = Sample("1", "Q")
    assert (sample.expected, dict(sample.labels), sample.context) == (None, {}, None)
    assert sample.metadata == {}


@clause("003.MODEL.4", "1. Data Models")
def test_a_sample_may_have_labels_for_classification() -> None:
    """Labels are a mapping of name to value, such as a quality and a strategy."""
    labels = {"quality": "good", "strategy": "clarifying"}
    assert Sample("1", "Q", metadata={"labels": labels}).labels == labels


@clause("003.MODEL.5", "1. Data Models")
def test_a_sample_may_have_a_context() -> None:
    """The context holds what else belongs to the sample, such as the conversation before."""
    assert Sample("1", "Q", metadata={"context": {"history": ["Hi"]}}).context == {"history": ["Hi"]}


@clause("003.MODEL.6", "1. Data Models")
def test_the_id_of_a_sample_is_unique_in_its_dataset() -> None:
    """Two samples with one id are refused, and both places are named."""
    with pytest.raises(ProctorError, match=r"item 1: id: 'a' is already used at item 0"):
        evaluate(double, [{"id": "a", "input": "x"}, {"id": "a", "input": "y"}], exact_match)


@clause("003.MODEL.7", "1. Data Models", ruling="runner: ExampleResult is EvalResult")
def test_a_result_names_its_sample_and_output() -> None:
    """A result has the id of its sample, the sample itself, and the output of the target."""
    (result,) = EvalRunner(GOOD, exact_match).run([FRANCE], history=False).results
    assert result.sample_id == "ex-1"
    assert result.trial.sample.input == FRANCE.input
    assert result.trial.sample.expected == FRANCE.expected
    assert result.output == ["Interested in learning about Paris landmarks?"]


@clause("003.MODEL.8", "1. Data Models", ruling="one score")
def test_a_result_has_a_score_for_each_evaluator() -> None:
    """The scores of a result are a mapping of evaluator name to score from 0 to 1."""
    report = report_of([("1", "a", "aa"), ("2", "b", "x")])
    values = [{name: score.value for name, score in r.scores.items()} for r in report.results]
    assert values == [{"exact_match": 1.0}, {"exact_match": 0.0}]


@clause("003.MODEL.9", "1. Data Models")
def test_a_result_has_an_error_or_none() -> None:
    """The error of a result is a text with its kind and message; without one it is None."""
    report = report_of([("1", "a", "aa"), ("2", "bad", "x")])
    assert [result.error for result in report.results] == [None, "ValueError: no such word"]


@clause("003.MODEL.10", "1. Data Models", ruling="latency is measured also for failures")
def test_a_result_has_a_duration() -> None:
    """The latency in milliseconds is measured for every result, failures included."""
    report = report_of([("1", "a", "aa"), ("2", "bad", "x")])
    assert all(isinstance(r.latency_ms, float) and r.latency_ms >= 0 for r in report.results)


@clause("003.MODEL.11", "1. Data Models", ruling="runner: AggregatedMetrics is EvalReport")
def test_a_report_counts_all_successful_and_failed_samples() -> None:
    """A report counts all samples, those with an output and those with an error."""
    report = report_of([("1", "a", "aa"), ("2", "b", "x"), ("3", "bad", "x")])
    assert (report.total, report.successful, report.counts.error) == (3, 2, 1)


@clause("003.MODEL.12", "1. Data Models")
def test_a_report_has_metrics_by_name() -> None:
    """The metrics of a report are a mapping of name to value."""
    report = report_of([("1", "a", "aa"), ("2", "b", "x")])
    assert report.metrics["exact_match.mean"].value == 0.5


@clause("003.MODEL.13", "1. Data Models")
def test_a_report_has_all_scores_of_an_evaluator() -> None:
    """The score distribution of an evaluator is the list of all its values."""
    report = report_of([("1", "a", "aa"), ("2", "b", "x"), ("3", "c", "cc")])
    assert sorted(report.results.column("exact_match").values) == [0.0, 1.0, 1.0]


@clause("003.MODEL.14", "1. Data Models")
def test_the_metadata_of_a_run_says_what_it_was() -> None:
    """A run has an id, a start in UTC, the version of Proctor, and a duration in seconds."""
    before = datetime.now(UTC)
    run = report_of([("1", "a", "aa")]).metadata
    assert run is not None
    assert run.run_id
    assert before <= run.started_at <= datetime.now(UTC)
    assert run.environment["proctor"]
    assert run.duration_seconds >= 0.0


@clause("003.MODEL.15", "1. Data Models", ruling="runner: config is a configuration")
def test_the_metadata_of_a_run_holds_the_configuration_of_the_target() -> None:
    """A run keeps the name of its target and the options of every configuration."""

    def answer(text: str, *, suffix: str = "") -> str:
        return text + suffix

    report = evaluate(
        answer, [{"id": "1", "input": "a"}], [lambda output: True], history=False,
        configurations={"loud": {"suffix": "!"}},
    )  # fmt: skip
    assert report.metadata is not None
    assert report.metadata.target.name == "answer"
    assert [(c.name, c.options) for c in report.metadata.configurations] == [("loud", {"suffix": "!"})]


@clause("003.MODEL.16", "1. Data Models")
def test_the_metadata_of_a_run_describes_its_dataset() -> None:
    """A run keeps the source of its dataset and how many samples it has."""
    run = evaluate(double, [{"id": "1", "input": "a"}], exact_match, history=False).metadata
    assert run is not None
    assert (run.dataset.source, run.dataset.length) == ("memory", 1)


@clause("003.MODEL.17", "1. Data Models", ruling="runner: EvalResults is EvalReport")
def test_a_report_holds_metadata_results_and_metrics() -> None:
    """A report is the metadata of a run, its metrics, and its results in the dataset's order."""
    report = EvalRunner(GOOD, exact_match, concurrency=2).run([FRANCE, LIGHT], history=False)
    assert report.metadata is not None
    assert [result.sample_id for result in report.results] == ["ex-1", "ex-2"]
    assert report.metrics["pass_rate"].value == 1.0


@clause("003.MODEL.18", "1. Data Models")
def test_a_report_survives_json() -> None:
    """A report that is written as JSON and read again has the same results and metrics."""
    from proctor import JSONReporter

    report = report_of([("1", "a", "aa"), ("2", "bad", "x")])
    again = load(JSONReporter().generate(report))
    assert list(again.results) == list(report.results)
    assert again.metrics == report.metrics
