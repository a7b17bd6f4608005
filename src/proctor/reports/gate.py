"""A gate's answer for people: in the terminal, and as Markdown for a pull request."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Literal
from xml.etree import ElementTree as ET

from proctor.records.comparison import Flip
from proctor.records.gate import Check, GateResult, GateVerdict
from proctor.records.run import RunMetadata
from proctor.records.wording import DASH, change, changes, in_clusters, unit, value
from proctor.reports.format import count, inert, line, quiet, table

FLIPS_SHOWN = 5
FLIPS_IN_MARKDOWN = 20
LINE_LIMIT, NAME_LIMIT = 500, 100
COLUMNS = ("Check", "Verdict", "Run", "Baseline", "Difference (95 % interval)", "Margin", "Samples")
HEADINGS = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}

_UNNAMED = re.compile(r"[^\w.@-]+")


def render(result: GateResult, *, width: int = 80) -> str:
    """The answer first, then a line for each check, then the samples that were lost."""
    lines = [*_wrapped(line(result.answer, LINE_LIMIT), width), ""]
    for check in result.checks:
        facts = f"{check.verdict:<12}  {line(facts_of(check), LINE_LIMIT)}"
        lines += _wrapped(facts, width, indent=14)
    lines += _flip_lines(result, width)
    for note in result.notes:
        lines += _wrapped(f"Note: {line(note, LINE_LIMIT)}", width)
    return "".join(f"{one}\n" for one in lines)


def facts_of(check: Check) -> str:
    """A check's numbers in a line; its sentence where it has no more.

    >>> facts_of(Check("pass_rate", "pass", "", "", 0.8, 0.79, 0.01, (-0.01, 0.03), 0.02, 500,
    ...     kind="rate"))
    'pass_rate 80.0 % against 79.0 %, +1.0 points (95 % -1.0 to +3.0), margin 2.0, 500 samples'
    """
    where = f"{check.configuration}: " if check.configuration else ""
    if check.difference is None:
        return where + check.sentence
    kind = check.kind
    told = [
        f"{check.name} {value(check.value, kind)} against {value(check.baseline, kind)}",
        _difference(check),
        f"margin {change(check.margin, kind, sign='')}",
        in_clusters(_samples(check), check.clusters),
    ]
    told += _missing(check)
    return where + ", ".join(told)


def _missing(check: Check) -> list[str]:
    """How many samples have no number, or only part of it, on either side."""
    sides = ((check.missing, "missing"), (check.baseline_missing, "missing in the baseline"))
    return [f"{number:,} {where}" for number, where in sides if number]


def _samples(check: Check) -> str:
    if check.baseline_n is None:
        return count(check.n, "sample")
    return f"two groups of {check.n:,} and {check.baseline_n:,} samples"


def markdown(result: GateResult) -> str:
    """The same as Markdown: for a step summary, or a comment that a bot finds by its first line."""
    blocks = [
        f"{marker(result)}\n## Gate {HEADINGS[result.verdict]}{_title(result.name)}",
        inert(line(result.answer, LINE_LIMIT)),
        inert_table(result.checks),
        *_flip_blocks(result),
    ]
    if result.notes:
        blocks.append("\n".join(f"- {inert(line(note, LINE_LIMIT))}" for note in result.notes))
    against = f" against `{_plain_name(result.baseline)}`" if result.baseline else ""
    return "\n\n".join([*blocks, f"Run `{_plain_name(result.run_id)}`{against}.\n"])


def markdown_of_trouble(said: str, name: str = "") -> str:
    """That nothing was decided, and why, in the place of the answer.

    >>> print(markdown_of_trouble("there is no run 'x'", "exam"), end="")
    <!-- proctor gate: exam -->
    ## Gate not decided: exam
    <BLANKLINE>
    there is no run 'x'
    """
    told = "\n\n".join(inert(line(one, LINE_LIMIT)) for one in said.splitlines() if one.strip())
    return f"{_marker(name)}\n## Gate not decided{_title(name)}\n\n{told}\n"


def marker(result: GateResult) -> str:
    """The line by which the comment of a gate is found again, to be replaced.

    >>> marker(GateResult("1", "main", "pass", "", name="exam --> x"))
    '<!-- proctor gate: exam-x -->'
    """
    return _marker(result.name)


def _marker(name: str) -> str:
    return f"<!-- proctor gate: {_plain_name(name)} -->"


def inert_table(checks: tuple[Check, ...]) -> str:
    """The checks, a row each."""
    return quiet(table(COLUMNS, [_cells(check) for check in checks]))


def _cells(check: Check) -> list[str]:
    where = f" ({check.configuration})" if check.configuration else ""
    name = line(check.name + where, NAME_LIMIT)
    kind = check.kind
    return [
        name,
        check.verdict,
        value(check.value, kind),
        value(check.baseline, kind),
        DASH if check.difference is None else _difference(check, ""),
        DASH if check.margin is None else change(check.margin, kind, sign="") + unit(kind),
        in_clusters(_count(check), check.clusters),
    ]


def _count(check: Check) -> str:
    beside = "" if check.baseline_n is None else f" / {check.baseline_n:,}"
    return ", ".join([f"{check.n:,}{beside}", *_missing(check)])


def _difference(check: Check, sure: str = "95 % ") -> str:
    text = f"{change(check.difference, check.kind)}{unit(check.kind)}"
    if check.interval is None:
        return text
    return f"{text} ({sure}{changes(check.interval, check.kind)})"


def _flip_lines(result: GateResult, width: int) -> Iterator[str]:
    lost = result.lost
    if not lost:
        return
    yield ""
    yield _flips_told(result, FLIPS_SHOWN)
    several = len(result.comparisons) > 1
    for side, flip in lost[:FLIPS_SHOWN]:
        name = f"{side}: {flip.sample_id}" if several else flip.sample_id
        yield f"  {line(name, NAME_LIMIT)}  {_scores(flip)}"
    look = f"Look at one: proctor show {result.run_id} --sample {shown(lost[0][1].sample_id)}"
    yield from _wrapped(look, width)


def _flip_blocks(result: GateResult) -> Iterator[str]:
    lost = result.lost
    if not lost:
        return
    several = len(result.comparisons) > 1
    rows = [
        [line(f"{side}: {flip.sample_id}" if several else flip.sample_id, NAME_LIMIT), _scores(flip)]
        for side, flip in lost[:FLIPS_IN_MARKDOWN]
    ]
    held = quiet(table(("Lost sample", "Score"), rows))
    told = _flips_told(result, FLIPS_IN_MARKDOWN)
    yield f"<details><summary>{told}</summary>\n\n{held}\n\n</details>"


def _flips_told(result: GateResult, most: int) -> str:
    lost = len(result.lost)
    worst = f"; the {most} worst" if lost > most else ""
    return f"{count(lost, 'sample')} lost, {result.won:,} won{worst}"


def _scores(flip: Flip) -> str:
    before, now = (DASH if one is None else f"{one:.3g}" for one in (flip.b, flip.a))
    return f"{before} → {now}"


def shown(text: str) -> str:
    """A text as a shell takes it for one word, on one line.

    >>> shown("q 17"), shown("q17")
    ("'q 17'", 'q17')
    """
    import shlex

    return shlex.quote(line(text, NAME_LIMIT))


def _title(name: str) -> str:
    return f": {inert(line(name, NAME_LIMIT))}" if name else ""


def _plain_name(text: str) -> str:
    return re.sub("--+", "-", _UNNAMED.sub("-", text)).strip("-")


def _wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    return textwrap.wrap(text, max(20, width), subsequent_indent=" " * indent, break_on_hyphens=False)


Inconclusive = Literal["code", "pass", "fail"]

# What XML 1.0 cannot hold, not even written as a number.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LOST_TOLD = 50


def junit(result: GateResult, run: RunMetadata | None = None, inconclusive: Inconclusive = "code") -> bytes:
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
    case = ET.SubElement(suite, "testcase", {"classname": _text(where), "name": "decided", "time": "0"})
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
