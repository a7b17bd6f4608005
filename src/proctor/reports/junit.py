"""A gate as JUnit XML, which every CI service reads: a test case for each check."""

from __future__ import annotations

import re
from typing import Literal
from xml.etree import ElementTree as ET

from proctor.records.gate import Check, GateResult, GateVerdict
from proctor.records.run import RunMetadata
from proctor.reports.gate import facts_of

Inconclusive = Literal["code", "pass", "fail"]

# What XML 1.0 cannot hold, not even written as a number.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LOST_TOLD = 50


def junit(
    result: GateResult, run: RunMetadata | None = None, inconclusive: Inconclusive = "code"
) -> bytes:
    """The gate as XML: a check that fails is a failure, one without an answer a skipped test.

    `inconclusive` may make the latter a test that passed or failed. Lost samples are told in the
    output of the suite and are no tests of their own: a gate may pass although some were lost.
    """
    told = [_as_told(check.verdict, inconclusive) for check in result.checks]
    seconds = f"{run.duration_seconds if run else 0.0:.3f}"
    counts = {
        "tests": str(len(told)),
        "failures": str(told.count("fail")),
        "errors": "0",
        "skipped": str(told.count("inconclusive")),
        "time": seconds,
    }
    root, suite = _suite(result.name, counts)
    if run is not None:
        suite.set("timestamp", run.started_at.strftime("%Y-%m-%dT%H:%M:%S"))
    for check, verdict in zip(result.checks, told, strict=True):
        where = ".".join(part for part in ("gate", result.name, check.configuration) if part)
        case = {"classname": _text(where), "name": _text(check.name), "time": "0"}
        _tell(ET.SubElement(suite, "testcase", case), check, verdict)
    ET.SubElement(suite, "system-out").text = _text("\n".join(_lines(result)))
    return _written(root)


def junit_of_trouble(said: str, kind: str, name: str = "") -> bytes:
    """That nothing was decided, and why: one test that ended with an error."""
    root, suite = _suite(
        name, {"tests": "1", "failures": "0", "errors": "1", "skipped": "0", "time": "0.000"}
    )
    where = ".".join(part for part in ("gate", name) if part)
    case = ET.SubElement(
        suite, "testcase", {"classname": _text(where), "name": "decided", "time": "0"}
    )
    first = said.partition("\n")[0]
    error = ET.SubElement(case, "error", {"message": _text(first), "type": _text(kind)})
    error.text = _text(said)
    return _written(root)


def _suite(name: str, counts: dict[str, str]) -> tuple[ET.Element, ET.Element]:
    root = ET.Element("testsuites", {"name": "proctor gate", **counts})
    called = _text(f"proctor gate {name}".strip())
    return root, ET.SubElement(root, "testsuite", {"name": called, **counts})


def _written(root: ET.Element) -> bytes:
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _as_told(verdict: GateVerdict, inconclusive: Inconclusive) -> GateVerdict:
    if verdict == "inconclusive" and inconclusive != "code":
        return inconclusive
    return verdict


def _tell(case: ET.Element, check: Check, verdict: GateVerdict) -> None:
    message = _text(check.sentence)
    if verdict == "fail":
        kind = {"message": message, "type": "gate"}
        ET.SubElement(case, "failure", kind).text = _text(facts_of(check))
    elif verdict == "inconclusive":
        ET.SubElement(case, "skipped", {"message": f"inconclusive: {message}"})
    else:
        ET.SubElement(case, "system-out").text = message


def _lines(result: GateResult) -> list[str]:
    lost = result.lost
    hidden = len(lost) - LOST_TOLD
    return [
        result.answer,
        *(f"lost: {flip.sample_id}" for _, flip in lost[:LOST_TOLD]),
        *([f"… and {hidden:,} more"] if hidden > 0 else []),
        *(f"note: {note}" for note in result.notes),
    ]


def _text(text: str) -> str:
    """A text without what XML cannot hold."""
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
