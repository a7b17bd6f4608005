"""The report as JSON, and back."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.comparison.report import EvalReport
from proctor.errors import UsageError
from proctor.records.metric import MetricValue
from proctor.records.results import ResultList
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import EvalResult, Failure, Trial
from proctor.reports.json import JSONReporter, load
from tests.reports.examples import mixed_report, result, two_configurations
from tests.tables import each_row


def parts(report: EvalReport) -> tuple[Any, ...]:
    """Everything in which two reports can differ."""
    return tuple(report.results), report.metadata, report.metrics, report.by_configuration


@each_row("indent", [0, 2, 4])
@each_row("report", [mixed_report(), two_configurations(), EvalReport([])])
def test_a_report_comes_back_equal(report: EvalReport, indent: int) -> None:
    """What was written is what is read, whatever the indent."""
    assert parts(load(JSONReporter(indent).generate(report))) == parts(report)


def test_a_file_comes_back_equal(tmp_path: Path) -> None:
    """Saved and loaded by path, as a string or as a path, or as the bytes in it."""
    path = tmp_path / "report.json"
    JSONReporter().save(mixed_report(), path)
    for given_as in (path, str(path), path.read_bytes(), path.read_text("utf-8")):
        assert parts(load(given_as)) == parts(mixed_report())


def test_the_layout_is_that_of_pretty_json() -> None:
    """The streamed text is to the letter what json.dumps would write."""
    text = JSONReporter(indent=2).generate(mixed_report())
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def test_what_is_in_it() -> None:
    """A schema version first, then the run, what it amounts to, and every result."""
    actual = json.loads(JSONReporter().generate(mixed_report()))
    assert list(actual) == ["proctor_report", "metadata", "aggregated", "metrics", "by_configuration", "results"]
    assert actual["proctor_report"] == 1
    assert actual["aggregated"] == {
        "total": 7,
        "successful": 5,
        "passed": 2,
        "failed": 2,
        "errors": 2,
        "skipped": 1,
        "pass_rate": 0.5,
        "strict_pass_rate": 2 / 6,
        "mean_score": pytest.approx(0.55),
        "mean_latency_ms": 120.0,
    }


TEXT = st.text(st.characters(codec="utf-8"), max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
SCORES = st.builds(Score, st.floats(0, 1), st.booleans(), TEXT) | st.builds(Score.error, TEXT)
SAMPLES = st.builds(Sample, TEXT, JSON, JSON)
TRIALS = st.builds(
    Trial,
    SAMPLES,
    JSON,
    st.none() | st.builds(Failure, TEXT, TEXT),
    latency_ms=st.floats(0, 1e9),
    usage=st.none() | st.builds(Usage, st.none() | st.integers(0, 10**9)),
)
RESULTS = st.builds(EvalResult, TRIALS, st.dictionaries(TEXT, SCORES, max_size=2))
METRICS = st.dictionaries(
    TEXT, st.builds(MetricValue, st.none() | st.floats(-1e9, 1e9), st.integers(0, 99)), max_size=2
)
RUNS = st.builds(
    RunMetadata,
    TEXT,
    TEXT,
    st.datetimes(timezones=st.just(UTC), min_value=datetime(1970, 1, 1)),  # noqa: DTZ001
    tags=st.dictionaries(TEXT, TEXT, max_size=2),
)


@given(st.lists(RESULTS, max_size=3), st.none() | RUNS, METRICS, st.dictionaries(TEXT, METRICS, max_size=2))
def test_every_report_comes_back_equal(
    results: list[EvalResult],
    run: RunMetadata | None,
    metrics: dict[str, MetricValue],
    by_configuration: dict[str, dict[str, MetricValue]],
) -> None:
    """Whatever is in a report, it comes back as it went."""
    report = EvalReport(results, run, metrics, by_configuration)
    assert parts(load(JSONReporter().generate(report))) == parts(report)


def test_nan_never_appears() -> None:
    """An output that is no number is null in the file, which every reader understands."""
    text = JSONReporter().generate(EvalReport([result("a", output=[math.nan, math.inf])]))
    assert json.loads(text, parse_constant=pytest.fail)["results"][0]["trial"]["output"] == [None, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"proctor_report": 2, "surprise": []}', "schema version 2; this version of Proctor reads 1"),
        ('{"results": []}', 'it has no "proctor_report"'),
        ('{"proctor_report": 1}', "not a valid ReportFile: metadata is missing"),
        ('{"proctor_report": 1', "truncated"),
        ("[]", r"file not found: \[\]"),
        (b"[]", "not a valid"),
    ],
)
def test_what_is_no_report_of_this_version_is_refused(text: str | bytes, message: str) -> None:
    """A newer schema, another JSON file or half of one: the error says which."""
    with pytest.raises(UsageError, match=message):
        load(text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The path that was tried is in the error."""
    with pytest.raises(UsageError, match=r"file not found: .*nowhere\.json"):
        load(tmp_path / "nowhere.json")


def test_a_negative_indent_is_refused() -> None:
    """There is no such layout."""
    with pytest.raises(UsageError, match="must be 0 or more"):
        JSONReporter(indent=-1)


class Stream(ResultList):
    """As many results as one likes, made while they are read, and never two at a time."""

    def __init__(self, length: int) -> None:
        super().__init__([])
        self._length = length

    def __iter__(self) -> Iterator[EvalResult]:
        return (result(str(i), output="x" * 1000) for i in range(self._length))


def test_saving_streams_the_results(tmp_path: Path) -> None:
    """Memory does not grow with the number of results: 5 MB are written in a tenth of that."""
    path = tmp_path / "report.json"
    tracemalloc.start()
    try:
        JSONReporter().save(EvalReport(Stream(5000)), path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 5_000_000
    assert peak < 500_000
