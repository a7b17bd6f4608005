"""The report as CSV: everything about each trial, and no cell is a formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor.comparison.report import EvalReport
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import EvalResult, Failure, Trial
from proctor.reports.csv import FORMULA_STARTS, CSVReporter, format_cell
from proctor.reports.formats import find_format, write_reports
from tests.tables import each_row

RESULTS = [
    EvalResult(
        Trial(
            Sample("q1", {"city": "Paris"}, "France", {"topic": "geo", "level": -1}),
            "France, I think",
            latency_ms=12.5,
            usage=Usage(10, 5, cost=0.0003),
        ),
        {"exact": Score(0.0, False, "not 'France'"), "judge": Score.skipped("no rubric")},
    ),
    EvalResult(
        Trial(
            Sample("q2", "=1+1", metadata={"tags": ["a", "b"], "session": "a long log"}),
            error=Failure("TimeoutError", "30 s"),
            latency_ms=None,
            configuration="fast",
            epoch=1,
            attempts=3,
            cached=True,
        )
    ),
]


def parsed(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_everything_about_each_trial() -> None:
    """Inputs, outputs, scores with reasons, metadata, latency, tokens and cost; sessions are too long."""
    text = CSVReporter().generate(EvalReport(RESULTS))
    names = (
        "sample_id,configuration,epoch,outcome,score,input,expected,output,error,"
        "exact.score,exact.passed,exact.status,exact.reason,judge.score,judge.passed,judge.status,judge.reason,"
        "metadata.topic,metadata.level,metadata.tags,latency_ms,input_tokens,output_tokens,total_tokens,cost,"
        "judge_tokens,judge_cost,attempts,cached"
    )
    first = (
        'q1,default,1,failed,0.0,"{""city"":""Paris""}",France,"France, I think",,'
        "0.0,false,ok,not 'France',,,skipped,no rubric,geo,-1,,12.5,10,5,15,0.0003,,,1,false"
    )
    second = 'q2,fast,2,error,,\'=1+1,,,TimeoutError: 30 s,,,,,,,,,,,"[""a"",""b""]",,,,,,,,3,true'
    assert text.splitlines() == [names, first, second]


@each_row("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_no_text_is_a_formula(start: str) -> None:
    """In every field, in names of columns too; numbers stay numbers."""
    hostile = f'{start}HYPERLINK("http://evil";"x")|cmd'
    sample = Sample(hostile, hostile, hostile, {hostile: hostile})
    trial = Trial(sample, hostile, configuration=hostile)
    text = CSVReporter().generate(EvalReport([EvalResult(trial, {hostile: Score(0.0, False, hostile)})]))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(FORMULA_STARTS)]
    assert cells.count(f"'{hostile}") == 7
    assert format_cell(-0.5) == "-0.5"


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_any_text_comes_back(texts: list[str]) -> None:
    """Line breaks, quotes and NUL characters do not break a row."""
    results = [EvalResult(Trial(Sample(f"q{at}", text), text)) for at, text in enumerate(texts)]
    rows = parsed(CSVReporter().generate(EvalReport(results)))
    assert [row["output"].removeprefix("'") for row in rows] == [text.removeprefix("'") for text in texts]


def test_an_empty_report_has_a_heading() -> None:
    """The first columns."""
    assert CSVReporter().generate(EvalReport([])) == "sample_id,configuration,epoch,outcome\r\n"


def test_it_is_written_in_parts_and_replaces_itself(tmp_path: Path) -> None:
    """More rows than one part has; half characters are replaced."""
    results = [EvalResult(Trial(Sample(f"q{at}", "x"), "\ud800")) for at in range(1201)]
    for _ in range(2):
        [path] = write_reports(EvalReport(results), tmp_path, ["csv"])
    lines = path.read_text(encoding="utf-8").splitlines()
    assert (path.name, len(lines)) == ("report.csv", 1202)
    assert find_format("csv").signature == "sample_id,configuration,epoch,outcome"


def test_columns_of_later_rows_keep_their_place() -> None:
    """A key that only some samples have stands beside the other metadata."""
    results: list[Any] = [
        EvalResult(Trial(Sample("a", "x", metadata={"one": 1, "three": 3}), "x")),
        EvalResult(Trial(Sample("b", "x", metadata={"one": 1, "two": 2}), "x")),
    ]
    header = CSVReporter().generate(EvalReport(results)).splitlines()[0]
    assert "metadata.one,metadata.three,metadata.two,latency_ms" in header
