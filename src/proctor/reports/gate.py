"""A gate's decision in the terminal, as Markdown for a pull request, and as JUnit XML."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from typing import Literal
from xml.etree import ElementTree as ET

from proctor.records.comparison import share_limit
from proctor.records.formatting import (
    DASH,
    add_clusters,
    change_unit,
    format_change,
    format_changes,
    format_count,
    format_value,
)
from proctor.records.gate import Check, GateResult
from proctor.records.run import RunMetadata
from proctor.reports.flips import ShownFlip, describe_flip, flip_blocks, flip_lines, list_flips, more_flips, more_lines
from proctor.reports.format import disable_links, escape_untrusted, markdown_table, single_line
from proctor.reports.junit import xml_text

FLIPS_SHOWN = 5
FLIPS_IN_JUNIT = 50
LINE_LIMIT, NAME_LIMIT = 500, 100
COLUMNS = ("Check", "Verdict", "Run", "Baseline", "Difference (95% interval)", "Margin", "Samples")
HEADINGS = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}

Inconclusive = Literal["code", "pass", "fail"]

_NOT_IN_NAMES = re.compile(r"[^\w.@-]+")


def render_gate(result: GateResult, *, width: int = 80) -> str:
    """Return the decision, one line for each check, and the lost samples."""
    lines = [*_wrap(single_line(result.answer, LINE_LIMIT), width), ""]
    for check in result.checks:
        facts = f"{check.verdict:<12}  {single_line(describe_check(check), LINE_LIMIT)}"
        lines += _wrap(facts, width, indent=14)
    lines += _flip_lines(result, width)
    for remark in _list_remarks(result):
        lines += _wrap(remark, width)
    return "".join(f"{text}\n" for text in lines)


def _list_remarks(result: GateResult) -> list[str]:
    """Return the warnings, then the notes, each on one line."""
    remarks = [("Warning", text) for text in result.warnings] + [("Note", text) for text in result.notes]
    return [f"{label}: {single_line(text, LINE_LIMIT)}" for label, text in remarks]


def describe_check(check: Check) -> str:
    """Return the numbers of a check on one line, or its sentence if it has no difference."""
    prefix = f"{check.configuration}: " if check.configuration else ""
    if check.difference is None:
        return prefix + check.sentence
    samples = format_count(check.n, "sample")
    if check.baseline_n is not None:
        samples = f"two groups of {check.n:,} and {check.baseline_n:,} samples"
    baseline = format_value(check.baseline, check.kind, check.name)
    facts = [
        f"{check.name} {format_value(check.value, check.kind, check.name)} vs. {baseline}",
        _format_difference(check, "95% interval "),
        f"margin {_format_margin(check)}",
        add_clusters(samples, check.clusters),
        *_missing_samples(check),
    ]
    return prefix + ", ".join(facts)


def _missing_samples(check: Check) -> list[str]:
    sides = ((check.missing, "missing"), (check.baseline_missing, "missing in the baseline"))
    return [f"{number:,} {where}" for number, where in sides if number]


def render_markdown(result: GateResult) -> str:
    """Return the decision as Markdown; the first line identifies the comment for a bot."""
    blocks = [
        f"{comment_marker(result.name)}\n## Gate {HEADINGS[result.verdict]}{_title_suffix(result.name)}",
        escape_untrusted(single_line(result.answer, LINE_LIMIT)),
        disable_links(markdown_table(COLUMNS, [_check_cells(check) for check in result.checks])),
        *_flip_blocks(result),
    ]
    remarks = [remark.removeprefix("Note: ") for remark in _list_remarks(result)]
    if remarks:
        blocks.append("\n".join(f"- {escape_untrusted(remark)}" for remark in remarks))
    baseline = f" compared with `{_plain_name(result.baseline)}`" if result.baseline else ""
    return "\n\n".join([*blocks, f"Run `{_plain_name(result.run_id)}`{baseline}.\n"])


def render_error_markdown(message: str, name: str = "") -> str:
    """Return the error that prevented a decision as Markdown."""
    lines = (escape_untrusted(single_line(text, LINE_LIMIT)) for text in message.splitlines() if text.strip())
    return f"{comment_marker(name)}\n## Gate not decided{_title_suffix(name)}\n\n" + "\n\n".join(lines) + "\n"


def comment_marker(name: str) -> str:
    """Return the line by which a bot finds its comment."""
    return f"<!-- proctor gate: {_plain_name(name)} -->"


def _check_cells(check: Check) -> list[str]:
    configuration = f" ({check.configuration})" if check.configuration else ""
    baseline_n = "" if check.baseline_n is None else f" / {check.baseline_n:,}"
    samples = ", ".join([f"{check.n:,}{baseline_n}", *_missing_samples(check)])
    return [
        single_line(check.name + configuration, NAME_LIMIT),
        check.verdict,
        format_value(check.value, check.kind, check.name),
        format_value(check.baseline, check.kind, check.name),
        DASH if check.difference is None else _format_difference(check),
        DASH if check.margin is None else _format_margin(check) + change_unit(check.kind),
        add_clusters(samples, check.clusters),
    ]


def _format_margin(check: Check) -> str:
    return format_change(check.margin, check.kind, sign="", metric=check.name)


def _format_difference(check: Check, label: str = "") -> str:
    text = f"{format_change(check.difference, check.kind, metric=check.name)}{change_unit(check.kind)}"
    if check.interval is None:
        return text
    return f"{text} ({label}{format_changes(check.interval, check.kind, check.name)})"


def _flip_lines(result: GateResult, width: int) -> Iterator[str]:
    shown, hidden_count = _select_flips(result)
    if not shown:
        return
    yield ""
    yield _count_flips(result, len(shown), hidden_count)
    yield from (text for text, _ in flip_lines(shown, width))
    if hidden_count:
        yield from more_lines(_more_flips(result, hidden_count), width)
    sample = shlex.quote(single_line(shown[0].flip.sample_id, NAME_LIMIT))
    yield from _wrap(f"To inspect a sample: proctor show {result.run_id} --sample {sample}", width)


def _flip_blocks(result: GateResult) -> Iterator[str]:
    shown, hidden_count = _select_flips(result)
    if shown:
        title = _count_flips(result, len(shown), hidden_count)
        more = [escape_untrusted(_more_flips(result, hidden_count))] if hidden_count else []
        blocks = "\n\n".join([*flip_blocks(shown), *more])
        yield f"<details><summary>{title}</summary>\n\n{blocks}\n\n</details>"


def _select_flips(result: GateResult, limit: int = FLIPS_SHOWN) -> tuple[list[ShownFlip], int]:
    """Return the worst flips of all configurations, lost samples first, and the number of the others."""
    has_configurations = len(result.comparisons) > 1
    flips = [
        shown
        for comparison in result.comparisons
        for shown in list_flips(comparison, comparison.flips, prefix=f"{comparison.a}: " if has_configurations else "")
    ]
    flips.sort(key=lambda shown: (not shown.flip.lost, shown.flip.change, shown.new_name, shown.flip.sample_id))
    lost, won = ([shown for shown in flips if shown.flip.lost is is_lost] for is_lost in (True, False))
    lost_count, won_count = share_limit(len(lost), len(won), limit)
    return [*lost[:lost_count], *won[:won_count]], len(flips) - lost_count - won_count


def _more_flips(result: GateResult, hidden_count: int) -> str:
    if len(result.comparisons) == 1:
        return more_flips(result.comparisons[0], hidden_count)
    names = f"{shlex.quote(result.run_id)} {shlex.quote(result.baseline)}"
    most = max(len(comparison.flips) for comparison in result.comparisons)
    return single_line(f"… and {hidden_count:,} more: proctor compare {names} --flips {most}", LINE_LIMIT)


def _count_flips(result: GateResult, shown_count: int, hidden_count: int) -> str:
    worst = f"; the {f'{shown_count} worst' if result.lost else f'first {shown_count}'}" if hidden_count else ""
    return f"{format_count(len(result.lost), 'sample')} lost, {result.won:,} won{worst}"


def _title_suffix(name: str) -> str:
    return f": {escape_untrusted(single_line(name, NAME_LIMIT))}" if name else ""


def _plain_name(text: str) -> str:
    return re.sub("--+", "-", _NOT_IN_NAMES.sub("-", text)).strip("-")


def _wrap(text: str, width: int, indent: int = 0) -> list[str]:
    return textwrap.wrap(text, max(20, width), subsequent_indent=" " * indent, break_on_hyphens=False)


def render_junit(result: GateResult, run: RunMetadata | None = None, inconclusive: Inconclusive = "code") -> bytes:
    """Return the gate as JUnit XML: a failed check is a failure, an inconclusive check a skipped test.

    `inconclusive` can turn inconclusive checks into passed or failed tests. Lost samples are listed in the
    output of the suite; they are not tests, because a gate can pass even if samples were lost.
    """
    verdicts = [
        inconclusive if check.verdict == "inconclusive" and inconclusive != "code" else check.verdict
        for check in result.checks
    ]
    counts = {
        "tests": str(len(verdicts)),
        "failures": str(verdicts.count("fail")),
        "errors": "0",
        "skipped": str(verdicts.count("inconclusive")),
        "time": f"{run.duration_seconds if run else 0.0:.3f}",
    }
    root, suite = _junit_suite(result.name, counts)
    if run is not None:
        suite.set("timestamp", run.started_at.strftime("%Y-%m-%dT%H:%M:%S"))
    for check, verdict in zip(result.checks, verdicts, strict=True):
        case = _junit_case(suite, check.name, result.name, check.configuration)
        message = xml_text(check.sentence)
        if verdict == "fail":
            failure = ET.SubElement(case, "failure", {"message": message, "type": "gate"})
            failure.text = xml_text(describe_check(check))
        elif verdict == "inconclusive":
            ET.SubElement(case, "skipped", {"message": f"inconclusive: {message}"})
        else:
            ET.SubElement(case, "system-out").text = message
    lost = [shown for shown in _select_flips(result, sys.maxsize)[0] if shown.flip.lost]
    hidden_count = len(lost) - FLIPS_IN_JUNIT
    lines = [
        result.answer,
        *map(describe_flip, lost[:FLIPS_IN_JUNIT]),
        *([f"… and {hidden_count:,} more"] if hidden_count > 0 else []),
        *(f"warning: {warning}" for warning in result.warnings),
        *(f"note: {note}" for note in result.notes),
    ]
    ET.SubElement(suite, "system-out").text = xml_text("\n".join(lines))
    return _xml_bytes(root)


def render_error_junit(message: str, error_type: str, name: str = "") -> bytes:
    """Return the error that prevented a decision as JUnit XML: one test with an error."""
    counts = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0", "time": "0.000"}
    root, suite = _junit_suite(name, counts)
    case = _junit_case(suite, "decided", name)
    first_line = message.partition("\n")[0]
    error = ET.SubElement(case, "error", {"message": xml_text(first_line), "type": xml_text(error_type)})
    error.text = xml_text(message)
    return _xml_bytes(root)


def _junit_suite(name: str, counts: dict[str, str]) -> tuple[ET.Element, ET.Element]:
    root = ET.Element("testsuites", {"name": "proctor gate", **counts})
    title = xml_text(f"proctor gate {name}".strip())
    return root, ET.SubElement(root, "testsuite", {"name": title, **counts})


def _junit_case(suite: ET.Element, name: str, *groups: str) -> ET.Element:
    class_name = ".".join(group for group in ("gate", *groups) if group)
    attributes = {"classname": xml_text(class_name), "name": xml_text(name), "time": "0"}
    return ET.SubElement(suite, "testcase", attributes)


def _xml_bytes(root: ET.Element) -> bytes:
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"
