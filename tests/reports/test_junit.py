"""The gate as JUnit XML: what CI services read, whatever the texts hold."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.records.comparison import Comparison, Flip
from proctor.records.gate import Check, GateResult
from proctor.reports.gate import FLIPS_IN_JUNIT, Inconclusive, render_error_junit, render_junit
from tests.reports.examples import run

CHECKS = (
    Check("strict_pass_rate", "pass", "it holds", n=200),
    Check("latency_ms.mean", "fail", "slower", "long", 2.0, 1.0, 1.0, (0.5, 1.5), 0.1, 200),
    Check("exact", "inconclusive", "who knows"),
)


def result(**changes: object) -> GateResult:
    given = {"checks": CHECKS, "name": "exam", **changes}
    return GateResult("RUN", "main", "fail", "The gate fails.", **given)  # type: ignore[arg-type]


def parsed(data: bytes) -> ET.Element:
    suites = ET.fromstring(data)
    assert suites.tag == "testsuites"
    [suite] = suites
    assert suite.tag == "testsuite"
    for name in ("tests", "failures", "errors", "skipped", "time"):
        assert suite.get(name) == suites.get(name)
    return suite


def test_each_check_is_a_test_case() -> None:
    """One passed, one failed with its numbers, one skipped with its reason."""
    suite = parsed(render_junit(result(), run()))
    facts = {name: suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")}
    assert facts == {
        "name": "proctor gate exam", "tests": "3", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    assert (suite.get("time"), suite.get("timestamp")) == ("45.200", "2024-01-27T14:30:00")
    passed, failed, skipped = suite.findall("testcase")
    assert (passed.get("classname"), passed.get("name")) == ("gate.exam", "strict_pass_rate")
    assert passed.find("failure") is None
    assert failed.get("classname") == "gate.exam.long"
    failure = failed.find("failure")
    assert failure is not None
    assert failure.get("message") == "slower"
    assert failure.text == ("long: latency_ms.mean 2 vs. 1, +1 (95% interval +0.5 to +1.5), margin 0.1, 200 samples")
    reason = skipped.find("skipped")
    assert reason is not None
    assert reason.get("message") == "inconclusive: who knows"


@pytest.mark.parametrize(
    ("choice", "failures", "skipped"), [("code", "1", "1"), ("pass", "1", "0"), ("fail", "2", "0")]
)
def test_inconclusive_is_what_was_chosen(choice: Inconclusive, failures: str, skipped: str) -> None:
    """Skipped, passed or failed."""
    suite = parsed(render_junit(result(), None, choice))
    assert (suite.get("failures"), suite.get("skipped")) == (failures, skipped)


def test_lost_samples_are_listed_and_are_not_tests() -> None:
    """The first of them, and how many more."""
    flips = tuple(Flip(f"q{i}", lost=True, a=0.0, b=1.0) for i in range(FLIPS_IN_JUNIT + 2))
    suite = parsed(render_junit(result(comparisons=(Comparison("a", "b", flips=flips),), notes=("odd",))))
    out = suite.find("system-out")
    assert out is not None
    assert out.text is not None
    lines = out.text.splitlines()
    assert lines[0] == "The gate fails."
    assert lines[1] == "lost: q0"
    assert lines[-2:] == ["… and 2 more", "note: odd"]


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    """Control characters, half characters, markup and ]]> come back as text or as a mark."""
    check = Check(text, "fail", text)
    suite = parsed(render_junit(GateResult("R", "b", "fail", text, (check,), notes=(text,), name=text)))
    case = suite.find("testcase")
    assert case is not None
    allowed = "".join(c if c in "\t\n\r" or " " <= c <= "\ud7ff" or c > "\udfff" else "�" for c in text)
    assert case.get("name") == allowed.replace("\ufffe", "�").replace("\uffff", "�")


def test_markup_and_ends_of_sections_are_only_text() -> None:
    """What looks like XML stays a message."""
    nasty = ']]></failure><x y="&amp;"> \x00\x1b\ud800'
    suite = parsed(render_junit(result(checks=(Check("a", "fail", nasty),))))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == ']]></failure><x y="&amp;"> ���'


@given(st.text(), st.text(), st.text())
def test_trouble_is_one_test_with_an_error(message: str, kind: str, name: str) -> None:
    """Whatever the texts hold, it can be read, and counts as no test that passed."""
    suite = parsed(render_error_junit(message, kind, name))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "1")
    [case] = suite.iter("testcase")
    assert [item.tag for item in case] == ["error"]
