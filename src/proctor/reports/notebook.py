"""The report as a small piece of HTML for notebooks: headlines, metrics and the worst failures, without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from proctor.comparison.report import EvalReport
from proctor.records.trial import EvalResult
from proctor.reports import summary
from proctor.reports.format import DASH, format_interval, format_metric, shorten_lines, single_line

FAILURES_SHOWN = 3
LINE_LIMIT, TEXT_LIMIT, TEXT_LINES = 300, 600, 8


def render_notebook(report: EvalReport) -> str:
    """Return the report as HTML: all texts are escaped, and nothing is loaded or run."""
    return "\n".join(["<div>", *_parts(report), "</div>"]) + "\n"


render_notebook.extension = "notebook.html"  # type: ignore[attr-defined]
render_notebook.signature = "<div>\\n<p><strong>"  # type: ignore[attr-defined]


def _parts(report: EvalReport) -> Iterator[str]:
    for sentence in summary.headlines(report):
        yield f"<p><strong>{_line(sentence)}</strong></p>"
    run = report.metadata
    if run is not None:
        yield f"<p>run {_line(run.run_id)} · {_line(run.name)} · dataset {_line(run.dataset.name)}</p>"
        yield from (f"<p>Warning: {_line(warning)}</p>" for warning in run.warnings)
    tables = summary.drop_redundant_metrics(summary.metrics_by_configuration(report))
    names = list(dict.fromkeys(name for metrics in tables.values() for name in metrics))
    if names:
        rows = []
        for name in names:
            metrics = [table.get(name) for table in tables.values()]
            cells = [
                DASH
                if metric is None
                else f"{format_metric(metric)}{f' ({format_interval(metric)})' if metric.interval else ''}"
                for metric in metrics
            ]
            rows.append([name, *cells])
        yield _table(["metric", *(configuration or "value" for configuration in tables)], rows)
    results = summary.worst_results(report, FAILURES_SHOWN)
    if results:
        yield f"<details><summary>Worst failures ({len(results)} shown)</summary>"
        yield from (_failure(result, report) for result in results)
        yield "</details>"


def _failure(result: EvalResult, report: EvalReport) -> str:
    sample = result.trial.sample
    facts = [("input", sample.input), ("expected", sample.expected), ("output", result.output), ("error", result.error)]
    facts += [(name, score.reason) for name, score in result.scores.items() if not score.passed]
    rows = [
        f"<tr><th>{_line(name)}</th><td><pre>{escape(shorten_lines(value, TEXT_LIMIT, TEXT_LINES))}</pre></td></tr>"
        for name, value in facts
        if value not in (None, "")
    ]
    epochs = summary.describe_epochs(report, result)
    heading = (
        f"{summary.label_result(result, len(report.by_configuration) > 1, epochs)}: {summary.describe_verdict(result)}"
    )
    return f"<p><strong>{_line(heading)}</strong></p><table>{''.join(rows)}</table>"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_line(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{_line(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _line(text: str) -> str:
    return escape(single_line(text, LINE_LIMIT))
