"""Checks of output files: a command writes a new file, or replaces its own earlier output."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proctor.errors import ConfigError

HEAD_BYTES = 4096
# Larger files are not read to recognize them.
MAX_BYTES = 50_000_000
SQLITE_HEAD = b"SQLite format 3\x00"
PARQUET_MARK = b"PAR1"
# SQLite keeps its latest changes in files with these suffixes.
DATABASE_ENDINGS = ("", "-wal", "-shm", "-journal")
DESCRIPTIONS = {
    ".csv": "a table",
    ".db": "a database",
    ".json": "a JSON file",
    ".jsonl": "a JSON Lines file",
    ".md": "a Markdown file",
    ".py": "a Python file",
    ".svg": "a picture",
    ".toml": "a TOML file",
    ".txt": "a text file",
    ".xml": "an XML file",
    ".yaml": "a YAML file",
    ".yml": "a YAML file",
}


class OutputType(NamedTuple):
    """A type of output file, recognized by its first bytes, a JSON key, or Parquet columns."""

    name: str
    head: bytes = b""
    key: str = ""
    columns: tuple[bytes, ...] = ()

    def matches(self, path: Path) -> bool:
        """True if a file holds an earlier output of this type."""
        if self.key:
            return self.key in _read_object(path)
        if self.columns:
            return _has_columns(path, self.columns)
        return bool(self.head) and re.match(self.head, _read_head(path)) is not None


RESULT = OutputType("a session result", key="rubric_scores")
SUMMARY = OutputType("a batch summary", key="batch_summary")
RUBRICS = OutputType("a rubric file", key="rubrics")
JUNIT = OutputType("a JUnit file of a gate", rb'\s*(?:<\?xml[^>]*\?>\s*)?<testsuites?\s[^>]*name="proctor gate')
COMMENT = OutputType("a Markdown file of a gate", rb"<!-- proctor gate: ")
COMPARISON = OutputType("a comparison", rb"## [^\n]* (?:beside|compared with|compared to|vs\.?) [^\n]*\n")
PICTURE = OutputType("an SVG chart", rb'<svg [^>]*>\s*<title id="title">[^<]* over time</title>')
EXPORTS = {
    "jsonl": OutputType("an export of runs", rb'\{"part":\s*"run",\s*"proctor_run":'),
    "csv": OutputType("an export of runs", rb"run_id,run_name,run_began,configuration,sample_id,"),
    "parquet": OutputType("an export of runs", columns=(b"run_id", b"run_began", b"run_record")),
}


def check_file(path: Path | None, output_type: OutputType, option: str, history: str | None = None) -> None:
    """Reject a file that cannot be written, or that is not an earlier output of this type.

    Streams (a terminal, a pipe) and empty files are accepted.
    """
    from proctor.reports.files import is_stream

    if path is None or is_stream(path):
        return
    if path.is_dir():
        raise ConfigError(f"{str(path)!r} is a folder", where=option, fix="name a file in this folder")
    if not _is_writable(path.absolute().parent):
        raise ConfigError(f"cannot write the file {str(path)!r}", where=option, fix="name a file in a writable folder")
    _reject_history_file(path, option, history)
    if not path.is_file() or not path.stat().st_size or output_type.matches(path):
        return
    is_database = _read_head(path).startswith(SQLITE_HEAD)
    existing = "a database" if is_database else DESCRIPTIONS.get(path.suffix.lower(), "a file")
    raise ConfigError(
        f"the file exists and is {existing}, not {output_type.name}; it is not overwritten",
        where=f"{option} {path}",
        fix="name another file, or delete this one",
    )


def check_reports(options: Mapping[str, Any]) -> list[Path]:
    """Return the files of --output and --format; reject those that cannot be written, before the run costs money."""
    from proctor.reports.formats import select_formats

    folder, formats, history = options["output"], options["formats"], options["history"]
    if folder is None:
        if formats:
            select_formats(formats)
            raise ConfigError("--format needs --output", fix="add --output DIR")
        return []
    _reject_history_file(folder, "--output", history)
    check_folder(folder, "--output")
    selected = select_formats(formats)
    for report_format in selected:
        check_file(
            folder / report_format.file_name,
            OutputType("a report", report_format.signature.encode()),
            "--output",
            history,
        )
    return [folder / report_format.file_name for report_format in selected]


def check_folder(folder: Path, option: str) -> None:
    """Reject a path that is not a writable folder and cannot become one."""
    if not _is_writable(folder):
        existing = _existing_part(folder)
        problem = "it is not writable" if existing.is_dir() else "it is a file"
        raise ConfigError(
            f"cannot write to {str(existing)!r}: {problem}", where=option, fix="name a folder that you can write to"
        )


def reject_duplicate_paths(outputs: Iterable[Path]) -> None:
    """Reject two outputs with the same path: the second would replace the first."""
    from proctor.reports.files import is_stream

    paths: set[Path] = set()
    for path in outputs:
        if not is_stream(path) and path.resolve() in paths:
            raise ConfigError(
                "two outputs would be written to this file", where=str(path), fix="name a file for each output"
            )
        paths.add(path.resolve())


def reject_outputs_in_dataset(dataset: Any, outputs: Iterable[Path]) -> None:
    """Reject outputs inside the folder of recorded sessions: the next run would read them."""
    from proctor.datasets.sessions import SessionDataset

    for path in outputs:
        if isinstance(dataset, SessionDataset) and dataset.reads(path):
            raise ConfigError(
                "this folder contains the recorded sessions, so the next run would read the report as a session",
                where=str(path),
                fix="write to a separate folder",
            )


def reject_overwriting_inputs(output: Path | None, inputs: Mapping[str, Path | None]) -> None:
    """Reject an output that would overwrite an input; `inputs` are paths by option."""
    for option, path in inputs.items():
        if output is not None and path is not None and is_within(output, path):
            problem = f"{option} reads this file; it would be overwritten"
            if path.is_dir():
                problem = f"{option} reads this folder and would read the output too"
            raise ConfigError(problem, where=f"--output {output}", fix="name another file")


def is_within(inner: Path, outer: Path) -> bool:
    """True if `inner` is `outer` or lies inside it; links and `..` are resolved."""
    candidates = (inner.resolve(), *inner.resolve().parents)
    if not outer.exists():
        return outer.resolve() in candidates
    # Ask the file system: it may ignore case or have two names for a file.
    return any(candidate.exists() and candidate.samefile(outer) for candidate in candidates)


def _existing_part(path: Path) -> Path:
    return next(part for part in (path.absolute(), *path.absolute().parents) if part.exists())


def _is_writable(folder: Path) -> bool:
    existing = _existing_part(folder)
    return existing.is_dir() and os.access(existing, os.W_OK)


def _reject_history_file(path: Path, option: str, history: str | None) -> None:
    from proctor.wiring.open_history import history_file

    file = history_file(history)
    if file is not None and any(is_within(path, file.with_name(file.name + end)) for end in DATABASE_ENDINGS):
        raise ConfigError("this file is the history", where=f"{option} {path}", fix="name another file")


def _read_head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one if the file holds anything else."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return {}
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _has_columns(path: Path, names: tuple[bytes, ...]) -> bool:
    """True if the footer of a Parquet file lists these columns."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            tail = file.read()
            footer_size = min(int.from_bytes(tail[:4], "little"), size, MAX_BYTES)
            file.seek(max(0, size - 8 - footer_size))
            footer = file.read(footer_size)
    except OSError:
        return False
    is_parquet = tail.endswith(PARQUET_MARK) and _read_head(path).startswith(PARQUET_MARK)
    return is_parquet and all(name in footer for name in names)
