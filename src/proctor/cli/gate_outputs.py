"""What a gate leaves behind: words on the screen, files for CI, also where nothing was decided."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import complain
from proctor.errors import ConfigError, ProctorError, UsageError

if TYPE_CHECKING:
    from proctor.records.gate import GateResult
    from proctor.records.report import EvalReport

FAILED, USAGE, TROUBLE, INCONCLUSIVE, INTERRUPTED = 1, 2, 3, 4, 130
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
WIDEST = 100


class Papers:
    """Where the answer of a gate goes; what cannot be written is refused before a run is paid for.

    `name` is that of the run, as far as it is known.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        from proctor.cli.outputs import COMMENT, JUNIT, check_file, check_reports, refuse_twice

        self.name = ""
        self._options = options
        self._report: EvalReport | None = None
        history = options["history"]
        check_file(options["junit"], JUNIT, "--junit", history)
        check_file(options["markdown"], COMMENT, "--markdown", history)
        check_reports(options["output"], history)
        refuse_twice(self._files())

    def refuse_among(self, dataset: Any) -> None:
        """Refuse to write among what is read; then nothing is written at all."""
        from proctor.cli.outputs import refuse_among

        try:
            refuse_among(dataset, self._files())
        except ConfigError:
            self._options |= {"junit": None, "markdown": None}
            raise

    def _files(self) -> list[Path]:
        from proctor.cli.outputs import reports_in

        asked = [self._options[name] for name in ("junit", "markdown") if self._options[name]]
        return [*asked, *reports_in(self._options["output"])]

    def about(self, report: EvalReport) -> None:
        """Tell which run it is."""
        self._report = report
        self.name = report.metadata.name if report.metadata else self.name

    def conclude(self, result: GateResult) -> int:
        """Print and write the answer, and give the exit code."""
        from proctor.cli.outcome import until_nobody_reads
        from proctor.records import codec
        from proctor.reports.gate import junit, markdown

        counts_as = self._options["inconclusive"]
        inconclusive = {"code": INCONCLUSIVE, "pass": 0, "fail": FAILED}[counts_as]
        code = {"pass": 0, "fail": FAILED, "inconclusive": inconclusive}[result.verdict]
        with until_nobody_reads():
            if self._options["as_json"]:
                facts = {name: getattr(result, name) for name in result.__struct_fields__}
                click.echo(codec.encode_pretty({"exit_code": code, **facts}))
            else:
                self._say(result)
        run = self._report.metadata if self._report else None
        self._write(markdown(result), junit(result, run, counts_as), result.answer)
        return code

    def trouble(self, error: BaseException, said: str) -> None:
        """Leave word that nothing was decided, and why; the error itself is told elsewhere."""
        from proctor.cli.outcome import until_nobody_reads
        from proctor.records import codec
        from proctor.reports.gate import junit_of_trouble, markdown_of_trouble

        kind = type(error).__name__
        if self._options["as_json"]:
            told = {"exit_code": _code(error), "error": {"kind": kind, "message": said}}
            with until_nobody_reads():
                click.echo(codec.encode_pretty(told))
        comment = markdown_of_trouble(said, self.name)
        try:
            self._write(comment, junit_of_trouble(said, kind, self.name), f"Not decided: {said}")
        except ProctorError as fault:
            complain(str(fault))

    def _say(self, result: GateResult) -> None:
        from proctor.reports.gate import render

        if self._options["quiet"]:
            click.echo(result.answer)
            return
        click.echo(render(result, width=_width()), nl=False)
        counts_as = self._options["inconclusive"]
        if result.verdict == "inconclusive" and counts_as != "code":
            click.echo(f"Inconclusive counts as {counts_as} here.")

    def _write(self, comment: str, xml: bytes, answer: str) -> None:
        from proctor.cli.outcome import write_reports
        from proctor.reports.files import write
        from proctor.reports.format import escape

        text = comment.encode(errors="replace")
        # Before anything that may fail: this cannot.
        _summarise(text)
        if self._options["markdown"]:
            write(self._options["markdown"], [text], what="the comment")
        if self._options["junit"]:
            write(self._options["junit"], [xml], what="the JUnit file")
        if self._options["output"] and self._report is not None:
            write_reports(self._report, self._options["output"], f"**Gate.** {escape(answer)}")


def _code(error: BaseException) -> int:
    """The exit code that an error leads to."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return USAGE if isinstance(error, UsageError) else TROUBLE


def _summarise(comment: bytes) -> None:
    """Add the answer to GitHub's step summary, where there is one; that it fails is no verdict."""
    if not (path := os.environ.get(SUMMARY_VARIABLE)):
        return
    try:
        with Path(path).open("ab") as file:
            file.write(comment + b"\n")
    except OSError as error:
        complain(f"the step summary could not be written: {error}")


def _width() -> int:
    import shutil

    return min(WIDEST, shutil.get_terminal_size().columns)
