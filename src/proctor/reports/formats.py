"""Report formats by name. Built-in formats and plugins are entry points of the group `proctor.reporters`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from proctor.comparison.report import EvalReport
from proctor.core import imports as plugins
from proctor.errors import ConfigError, Problem, ProctorError, suggest_name
from proctor.records.codec import escape_surrogates
from proctor.reports.files import write_file

DEFAULT_FORMATS = ("markdown", "json")


class ReportFormat(NamedTuple):
    """A report format: a class with `generate(report)`, an object with that method, or a function that takes the
    report.

    Its optional attributes are `extension`, the file extension (default: the format's name), and `signature`, a regular
    expression that matches the start of its files; without a signature, an existing file is not replaced. A format with
    `folder = True` has a method `save(report, folder)`, which writes several files. If the class or function has a
    parameter `verdict`, it receives the verdict of a gate or of thresholds, in Markdown; if it has a parameter `cards`,
    the cards of the run's judges, as mappings. `options` are the values of its other parameters by name.
    """

    name: str
    plugin: Any
    options: Mapping[str, Any] = {}

    @property
    def is_folder(self) -> bool:
        """True if the format writes files into a folder."""
        return bool(getattr(self.plugin, "folder", False))

    @property
    def file_name(self) -> str:
        """The name of the file in the folder of --output; empty if the format writes files of its own there."""
        return "" if self.is_folder else f"report.{getattr(self.plugin, 'extension', self.name)}"

    @property
    def signature(self) -> str:
        """A regular expression that every file of this format starts with; empty if there is none."""
        return str(getattr(self.plugin, "signature", ""))

    def render(self, report: EvalReport, verdict: str = "") -> str:
        """Return the report as text."""
        return escape_surrogates(str(self._call(lambda: self._create_reporter(verdict).generate(report), report)))

    def save(self, report: EvalReport, folder: Path, verdict: str = "") -> Path:
        """Write the report to its file in a folder and return the path."""
        path = folder / self.file_name
        self.write(report, path, verdict)
        return path

    def write(self, report: EvalReport, path: Path, verdict: str = "") -> None:
        """Write the report to a file."""
        reporter = self._create_reporter(verdict)
        if hasattr(reporter, "save"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._call(lambda: reporter.save(report, path), report)
        else:
            write_file(path, [self.render(report, verdict).encode(errors="backslashreplace")])

    def _create_reporter(self, verdict: str) -> Any:
        parameters = self._list_parameters()
        options = {name: value for name, value in self.options.items() if name in parameters}
        if "verdict" in parameters:
            options["verdict"] = verdict
        if isinstance(self.plugin, type):
            return self.plugin(**options)
        return self.plugin if hasattr(self.plugin, "generate") else _FunctionReporter(partial(self.plugin, **options))

    def _list_parameters(self) -> Sequence[str]:
        return list(inspect.signature(self.plugin).parameters) if callable(self.plugin) else []

    def accepts(self, option: str) -> bool:
        """True if the class or function has this parameter."""
        return option in self._list_parameters()

    def _call(self, function: Callable[[], Any], report: EvalReport) -> Any:
        try:
            return function()
        except ProctorError:
            raise
        except Exception as error:
            raise ProctorError(
                f"the report format {self.name!r} failed: {type(error).__name__}: {error}",
                fix=f"correct it and write the report again: proctor show {report.run_id} --format {self.name}",
            ) from error


class _FunctionReporter(NamedTuple):
    generate: Callable[[EvalReport], str]


def find_format(name: str) -> ReportFormat:
    """Return a report format by the name of its entry point, or by its address `module:attribute`."""
    if ":" in name:
        plugin, name = plugins.import_object(name), name.rpartition(":")[2].rpartition(".")[2]
    else:
        try:
            plugin = plugins.load_plugin(plugins.REPORTERS, name)
        except Exception as error:
            raise ConfigError(
                f"the report format {name!r} cannot be loaded: {type(error).__name__}: {error}",
                fix="update or uninstall the plugin that provides it",
            ) from error
        if plugin is None:
            known_formats = plugins.plugin_names(plugins.REPORTERS)
            if "," in name:
                each = " ".join(f"--format {part.strip()}" for part in name.split(",") if part.strip())
                raise ConfigError(f"{name!r} is not one report format", fix=f"repeat the option: {each}")
            raise ConfigError(f"unknown report format {name!r}", fix=suggest_name(name, known_formats))
    if not callable(getattr(plugin, "generate", plugin)):
        raise ConfigError(
            f"{name!r} is not a report format: it is neither a function nor has it a method `generate`",
            fix="write def generate(self, report) -> str, or a function of the report",
        )
    return ReportFormat(name, plugin)


def select_formats(names: Iterable[str] = (), options: Mapping[str, str] | None = None) -> list[ReportFormat]:
    """Return the named formats, Markdown and JSON by default; one error reports all invalid names.

    `options` are parameters of the formats; each must be a parameter of at least one of them.
    """
    formats: dict[str, ReportFormat] = {}
    errors: list[ProctorError] = []
    for name in dict.fromkeys(names or DEFAULT_FORMATS):
        try:
            selected = find_format(name)
            if (other := formats.setdefault(selected.file_name, selected)) is not selected:
                raise ConfigError(
                    f"{other.name} and {selected.name} would both be written to {selected.file_name}",
                    fix="leave out one of them",
                )
        except ProctorError as error:
            errors.append(error)
    for option in options or ():
        if not any(selected.accepts(option) for selected in formats.values()):
            names = ", ".join(selected.name for selected in formats.values())
            errors.append(ConfigError(f"{names} has no option {option!r}", where="--option", fix="leave it out"))
    _raise_all(errors, ConfigError, "some report formats cannot be used")
    return [selected._replace(options=options or {}) for selected in formats.values()]


def write_reports(
    report: EvalReport, folder: str | os.PathLike[str], formats: Iterable[str] = (), verdict: str = ""
) -> list[Path]:
    """Write a report to a folder in several formats, report.md and report.json by default; return the files.

    `verdict` is a sentence in Markdown, such as the verdict of a gate. If one format fails, the others are still
    written.
    """
    paths: list[Path] = []
    errors: list[ProctorError] = []
    for selected in select_formats(formats):
        try:
            paths.append(selected.save(report, Path(folder), verdict))
        except ProctorError as error:
            errors.append(error)
    _raise_all(errors, ProctorError, "some reports cannot be written")
    return paths


def _raise_all(errors: Sequence[ProctorError], error_type: type[ProctorError], what: str) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise error_type(what, problems=[Problem(error.where, error.what, error.fix) for error in errors])
