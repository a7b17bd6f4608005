"""The outputs of a gate: console, JSON, Markdown, JUnit and the GitHub step summary."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import click

from proctor.cli import options as cli
from proctor.cli import outputs
from proctor.cli.outcome import write_reports
from proctor.errors import ConfigError, ProctorError, UsageError
from proctor.records.gate import GateResult
from proctor.records.report import EvalReport
from proctor.reports import gate as gate_report
from proctor.reports.files import write_file
from proctor.reports.format import escape

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
MAX_WIDTH = 100


class GateOutputs:
    """Writes the answer of a gate, or the error; rejects invalid output files before a run starts.

    `name` is the name of the run, as soon as it is known.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.name = ""
        self._options = options
        self._report: EvalReport | None = None
        history = options["history"]
        outputs.check_file(options["junit"], outputs.JUNIT, "--junit", history)
        outputs.check_file(options["markdown"], outputs.COMMENT, "--markdown", history)
        outputs.check_reports(options["output"], history)
        outputs.refuse_twice(self._paths())

    def refuse_among(self, dataset: Any) -> None:
        """Reject output files inside the dataset; then write none of them."""
        try:
            outputs.refuse_among(dataset, self._paths())
        except ConfigError:
            self._options |= {"junit": None, "markdown": None}
            raise

    def _paths(self) -> list[Path]:
        files = [self._options[name] for name in ("junit", "markdown") if self._options[name]]
        return [*files, *outputs.report_paths(self._options["output"])]

    def set_report(self, report: EvalReport) -> None:
        self._report = report
        self.name = report.metadata.name if report.metadata else self.name

    def conclude(self, result: GateResult) -> int:
        counts_as = self._options["inconclusive"]
        inconclusive = {"code": cli.INCONCLUSIVE, "pass": 0, "fail": cli.FAILED}[counts_as]
        code = {"pass": 0, "fail": cli.FAILED, "inconclusive": inconclusive}[result.verdict]
        with cli.tolerate_closed_pipe():
            if self._options["as_json"]:
                fields = {name: getattr(result, name) for name in result.__struct_fields__}
                cli.print_json({"exit_code": code, **fields})
            else:
                self._show(result)
        run = self._report.metadata if self._report else None
        self._write(
            gate_report.render_markdown(result),
            gate_report.render_junit(result, run, counts_as),
            result.answer,
        )
        return code

    def report_error(self, error: BaseException, message: str) -> None:
        """Write to all outputs that the gate did not decide; the caller prints the error itself."""
        error_type = type(error).__name__
        if self._options["as_json"]:
            is_usage = isinstance(error, UsageError)
            code = (
                cli.INTERRUPTED
                if isinstance(error, KeyboardInterrupt)
                else cli.USAGE
                if is_usage
                else cli.TROUBLE
            )
            with cli.tolerate_closed_pipe():
                cli.print_json({"exit_code": code, "error": {"kind": error_type, "message": message}})
        comment = gate_report.render_error_markdown(message, self.name)
        xml = gate_report.render_error_junit(message, error_type, self.name)
        try:
            self._write(comment, xml, f"Not decided: {message}")
        except ProctorError as fault:
            cli.complain(str(fault))

    def _show(self, result: GateResult) -> None:
        if self._options["quiet"]:
            click.echo(result.answer)
            return
        click.echo(
            gate_report.render_gate(result, width=min(MAX_WIDTH, shutil.get_terminal_size().columns)),
            nl=False,
        )
        counts_as = self._options["inconclusive"]
        if result.verdict == "inconclusive" and counts_as != "code":
            click.echo(f"Inconclusive counts as {counts_as} (--inconclusive).")

    def _write(self, comment: str, xml: bytes, answer: str) -> None:
        text = comment.encode(errors="replace")
        # First, because it cannot fail.
        _append_step_summary(text)
        if self._options["markdown"]:
            write_file(self._options["markdown"], [text], what="the comment")
        if self._options["junit"]:
            write_file(self._options["junit"], [xml], what="the JUnit file")
        if self._options["output"] and self._report is not None:
            write_reports(self._report, self._options["output"], f"**Gate.** {escape(answer)}")


def _append_step_summary(comment: bytes) -> None:
    if not (path := os.environ.get(SUMMARY_VARIABLE)):
        return
    try:
        with Path(path).open("ab") as file:
            file.write(comment + b"\n")
    except OSError as error:
        cli.complain(f"cannot write the step summary: {error}")
