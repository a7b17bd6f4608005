"""The report as JUnit XML: one test case for each sample and configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from proctor.comparison.report import EvalReport
from proctor.records.results import Counts
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from proctor.reports import files
from proctor.reports.format import excerpt, single_line

ROOT_NAME = "proctor run"
MESSAGE_LIMIT, TEXT_LIMIT = 500, 4000
# XML 1.0 forbids these characters even in escaped form.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JUnitReporter:
    """Write a report as JUnit XML, which CI services show as tests.

    A sample that did not pass is a failure with the reasons, an error of the target or of an evaluator an error, and a
    skipped sample a skipped test. Each configuration is a suite; each epoch is a test case of its own.

    >>> print(JUnitReporter().generate(EvalReport([])))
    <?xml version='1.0' encoding='utf-8'?>
    <testsuites name="proctor run" tests="0" failures="0" errors="0" skipped="0" time="0.000">
    </testsuites>
    <BLANKLINE>
    """

    extension = "xml"
    signature = r"""\s*(?:<\?xml[^>]*\?>\s*)?<testsuites?\s[^>]*name=["']proctor run"""

    def generate(self, report: EvalReport) -> str:
        """Return the report as text."""
        return "".join(_chunks(report))

    def save(self, report: EvalReport, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, one test case at a time."""
        files.write_file(path, (chunk.encode() for chunk in _chunks(report)))


def xml_text(text: str) -> str:
    """Replace the characters that XML cannot hold."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def _chunks(report: EvalReport) -> Iterator[str]:
    run = report.metadata
    name = f"{ROOT_NAME} {run.name}".strip() if run else ROOT_NAME
    duration = run.duration_seconds if run else 0.0
    yield "<?xml version='1.0' encoding='utf-8'?>\n"
    yield _open_tag("testsuites", {"name": name, **_count(report.counts), "time": f"{duration:.3f}"})
    for configuration in report.configurations:
        results = report.results.for_configuration(configuration)
        suite = f"{run.name}/{configuration}" if run and run.name else configuration
        latencies = results.latencies().values
        attributes = {"name": suite, **_count(results.counts()), "time": f"{sum(latencies) / 1000:.3f}"}
        if run is not None:
            attributes["timestamp"] = run.started_at.strftime("%Y-%m-%dT%H:%M:%S")
        yield "  " + _open_tag("testsuite", attributes)
        for result in results:
            yield _render_case(result, suite)
        yield "  </testsuite>\n"
    yield "</testsuites>\n"


def _open_tag(tag: str, attributes: dict[str, str]) -> str:
    # The suites are written in parts, so their opening tags are not elements of a tree.
    return f"<{tag} {' '.join(f'{key}={quoteattr(xml_text(value))}' for key, value in attributes.items())}>\n"


def _count(counts: Counts) -> dict[str, str]:
    return {
        "tests": str(counts.total),
        "failures": str(counts.failed),
        "errors": str(counts.error + counts.unscored),
        "skipped": str(counts.skipped),
    }


def _render_case(result: EvalResult, suite: str) -> str:
    trial = result.trial
    name = f"{result.sample_id} (epoch {trial.epoch + 1})" if trial.epoch else result.sample_id
    attributes = {"classname": suite, "name": name, "time": f"{(trial.latency_ms or 0.0) / 1000:.3f}"}
    case = ET.Element("testcase", {key: xml_text(value) for key, value in attributes.items()})
    outcome = result.outcome
    if outcome == "skipped":
        ET.SubElement(case, "skipped", {"message": xml_text(single_line(result.score.reason, MESSAGE_LIMIT))})
    elif outcome != "passed":
        tag = "failure" if outcome == "failed" else "error"
        kind = "failed" if outcome == "failed" else trial.error.kind if trial.error else "evaluation"
        message = xml_text(single_line("; ".join(_reasons(result)) or outcome, MESSAGE_LIMIT))
        ET.SubElement(case, tag, {"message": message, "type": xml_text(kind)}).text = xml_text(_describe(result))
    ET.indent(case, level=2)
    return f"    {ET.tostring(case, encoding='unicode')}\n"


def _reasons(result: EvalResult) -> Iterator[str]:
    if result.error is not None:
        yield result.error
    for name, score in result.scores.items():
        if not score.passed and score.status != "skipped":
            yield f"{name}: {score.reason or 'it did not pass'}"


def _describe(result: EvalResult) -> str:
    trial = result.trial
    facts = [("input", excerpt(trial.sample.input, TEXT_LIMIT))]
    if trial.sample.expected is not None:
        facts.append(("expected", excerpt(trial.sample.expected, TEXT_LIMIT)))
    if trial.error is None:
        facts.append(("output", excerpt(trial.output, TEXT_LIMIT)))
    facts += [(name, _describe_score(score)) for name, score in result.scores.items()]
    if trial.error is not None:
        facts.append(("error", excerpt(trial.error.traceback.rstrip() or str(trial.error), TEXT_LIMIT)))
    return "\n".join(f"{name}: {text}" for name, text in facts)


def _describe_score(score: Score) -> str:
    verdict = score.status if score.value is None else f"{score.value:.3g} {'passed' if score.passed else 'failed'}"
    return f"{verdict}  {excerpt(score.reason, TEXT_LIMIT)}".rstrip()
