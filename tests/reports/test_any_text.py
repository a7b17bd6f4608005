"""Every report format can write every text that a run can contain."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proctor.comparison.report import EvalReport
from proctor.records import codec
from proctor.records.run import EvaluatorSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Message, Session, ToolCall
from proctor.records.trial import Configuration, EvalResult, Trial
from proctor.reports.formats import find_format
from proctor.reports.html import list_pages
from tests.reports.examples import run

FORMATS = ("json", "html", "csv", "junit", "markdown", "text", "notebook")
# Half a surrogate pair, as in an emoji that was cut, control characters, and anything else.
TEXTS = st.text(
    st.sampled_from("a\ud83d\ude00\udc80\x00\x1b\x7f\u202e\u2028\ufffe") | st.characters(exclude_categories=()),
    max_size=6,
)


def make_report(text: str) -> EvalReport:
    """A run with the text in every place that users or models fill."""
    judge, names = f"judge{text}", (f"a{text}", f"b{text}")
    results = [
        EvalResult(
            Trial(
                Sample(f"s{n}{text}", text, [text], metadata={f"key{text}": text}),
                {"answer": text, f"k{text}": [text]} if n else text,
                configuration=name,
                session=Session([Message("assistant", text), ToolCall(text, {text: text}, error=text)]),
            ),
            {judge: Score(0.5, False, text, {text: text})},
        )
        for name in names
        for n in range(2)
    ]
    metadata = run(
        name=f"run{text}",
        warnings=(text,),
        configurations=tuple(Configuration(name) for name in names),
        evaluators=(EvaluatorSpec(judge, judge),),
    )
    return EvalReport(results, metadata)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
@example("ok \ud83d")
def test_every_format_writes_any_text(tmp_path: Path, text: str) -> None:
    """The files are UTF-8 and can be parsed; half a pair is visible as its escape."""
    report = make_report(text)
    contents = {}
    for name in FORMATS:
        contents[name] = find_format(name).save(report, tmp_path).read_bytes().decode()
    find_format("csv").render(report).encode()
    escaped = codec.escape_surrogates(text)
    assert json.loads(contents["json"])["results"][0]["scores"][f"judge{escaped}"].get("reason", "") == escaped
    assert len(list(ET.fromstring(contents["junit"]).iter("testcase"))) == 4
    for _, page in list_pages(report):
        json.loads(codec.encode_any_text(page))


@pytest.mark.parametrize("name", ["json", "csv", "markdown", "text"])
def test_half_an_emoji_is_shown_as_its_escape(name: str, tmp_path: Path) -> None:
    path = find_format(name).save(make_report("ok \ud83d"), tmp_path)
    assert "ok \\ud83d" in path.read_text(encoding="utf-8").replace("\\\\", "\\")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_a_number_that_python_does_not_write_in_decimal(name: str) -> None:
    """As text in hexadecimal."""
    trials = [Trial(Sample("s", 10**5000, expected=[10**5000]), output) for output in (10**5000, {"n": [10**5000]})]
    report = EvalReport([EvalResult(trial, {"exact": Score(0.0, False)}) for trial in trials], run())
    written = find_format(name).render(report)
    assert name not in ("json", "csv") or hex(10**5000) in written
