"""A run as JUnit XML: one test case for each sample and configuration, whatever the texts hold."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.comparison.report import EvalReport
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Failure, Trial
from proctor.reports.formats import write_reports
from proctor.reports.junit import JUnitReporter
from tests.reports.examples import mixed_report, run, two_configurations


def test_outcomes_are_failures_errors_and_skipped_tests() -> None:
    """With the reason as the message, and the texts below."""
    declaration, root, suite, *cases = JUnitReporter().generate(mixed_report()).splitlines(keepends=True)
    counts = 'tests="7" failures="2" errors="2" skipped="1"'
    assert declaration == "<?xml version='1.0' encoding='utf-8'?>\n"
    assert root == f'<testsuites name="proctor run capitals" {counts} time="45.200">\n'
    assert suite == f'  <testsuite name="capitals/default" {counts} time="0.840" timestamp="2024-01-27T14:30:00">\n'
    assert "".join(cases) == snapshot("""\
    <testcase classname="capitals/default" name="q1" time="0.120" />
    <testcase classname="capitals/default" name="q2" time="0.120">
      <failure message="exact: not the same" type="failed">input: What is the capital of France?
expected: Paris
output: Lyon,
I think
exact: 0.2 failed  not the same</failure>
    </testcase>
    <testcase classname="capitals/default" name="q3" time="0.120" />
    <testcase classname="capitals/default" name="q4" time="0.120">
      <failure message="exact: expected 'Paris', found 'Lyon'" type="failed">input: What is the capital of France?
expected: Paris
output: Lyon
exact: 0 failed  expected 'Paris', found 'Lyon'</failure>
    </testcase>
    <testcase classname="capitals/default" name="q5" time="0.120">
      <error message="TimeoutError: no answer after 30 s" type="TimeoutError">input: What is the capital of France?
expected: Paris
error: TimeoutError: no answer after 30 s</error>
    </testcase>
    <testcase classname="capitals/default" name="q6" time="0.120">
      <error message="exact: the judge gave no verdict" type="evaluation">input: What is the capital of France?
expected: Paris
output: Lyon
exact: error  the judge gave no verdict</error>
    </testcase>
    <testcase classname="capitals/default" name="q7" time="0.120">
      <skipped message="no expected value" />
    </testcase>
  </testsuite>
</testsuites>
""")


def test_each_configuration_is_a_suite() -> None:
    """The counts of the suites add up to those of the run."""
    suites = ET.fromstring(JUnitReporter().generate(two_configurations()))
    facts = [(suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) for suite in suites]
    assert facts == [("capitals/careful", "2", "0", "0"), ("capitals/fast", "2", "1", "1")]
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("4", "1", "1")
    assert {case.get("classname") for case in suites.iter("testcase")} == {"capitals/careful", "capitals/fast"}


def test_epochs_are_told_apart() -> None:
    """The first has the name of the sample alone."""
    results = [EvalResult(Trial(Sample("q", "x"), "x", epoch=epoch), {"e": Score(1.0, True)}) for epoch in range(2)]
    suites = ET.fromstring(JUnitReporter().generate(EvalReport(results, run())))
    assert [case.get("name") for case in suites.iter("testcase")] == ["q", "q (epoch 2)"]


NASTY = ']]></failure><x y="&amp;"> \x00\x1b\x07\ud800\uffff \'"'


@given(st.one_of(st.text(), st.just(NASTY)))
def test_no_text_breaks_it(text: str) -> None:
    """Control characters, half characters and markup in every field: the file has the same structure."""
    sample = Sample(text, text, text)
    results = [
        EvalResult(Trial(sample, text, configuration=text), {text: Score(0.0, False, text)}),
        EvalResult(Trial(sample, error=Failure(text, text, text), configuration=text)),
        EvalResult(Trial(sample, text, configuration=text), {text: Score.skipped(text)}),
    ]
    data = JUnitReporter().generate(EvalReport(results, run(name=text, configurations=())))
    suites = ET.fromstring(data.encode())
    assert suites.tag == "testsuites"
    full = JUnitReporter().generate(EvalReport(results))
    tags = [element.tag for element in ET.fromstring(full.encode()).iter()]
    case = "testcase"
    assert tags == ["testsuites", "testsuite", case, "failure", case, "error", case, "skipped"]


def test_an_earlier_file_is_replaced(tmp_path: Path) -> None:
    """Also if the name of the run has quotes."""
    for name in ("capitals", 'a "b"'):
        [path] = write_reports(mixed_report(name=name), tmp_path, ["junit"])
    assert path.name == "report.xml"
    assert ET.parse(path).getroot().get("name") == 'proctor run a "b"'
