"""Where outputs may go: to a new file, or in the place of an earlier output of the same kind."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proctor.errors import ConfigError

HEAD = 4096
# What is read as a whole to be known is never longer than this.
LONGEST = 50_000_000
DATABASE = b"SQLite format 3\x00"
# The files beside that of a database, in which its last changes are.
BESIDE = ("", "-wal", "-shm", "-journal")
ENDINGS = {
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


class Kind(NamedTuple):
    """What a command writes to a file, and what it is known by.

    That is how it begins, a key of the JSON object that it is, or names at a Parquet file's end.
    """

    name: str
    begins: bytes = b""
    key: str = ""
    ends: tuple[bytes, ...] = ()

    def is_in(self, path: Path) -> bool:
        """True if a file holds an earlier output of this kind."""
        if self.key:
            return self.key in _object_in(path)
        if self.ends:
            return _is_parquet(path, self.ends)
        return re.match(self.begins, _head(path)) is not None


RESULT = Kind("result of a session", key="rubric_scores")
SUMMARY = Kind("summary of a batch", key="batch_summary")
RUBRICS = Kind("rubric file", key="rubrics")
JUNIT = Kind("JUnit file of a gate", rb'\s*(?:<\?xml[^>]*\?>\s*)?<testsuites?\s[^>]*name="proctor gate')
COMMENT = Kind("comment of a gate", rb"<!-- proctor gate: ")
COMPARISON = Kind("comparison", rb"## [^\n]* beside [^\n]*\n")
PICTURE = Kind("picture of a trend", rb'<svg [^>]*>\s*<title id="title">[^<]* over time</title>')
REPORTS = {
    "report.md": Kind("report", rb"# Proctor Evaluation Report\r?\n"),
    "report.json": Kind("report", rb'\{\s*"proctor_report"\s*:'),
}
EXPORTS = {
    "jsonl": Kind("export of runs", rb'\{"part":\s*"run",\s*"proctor_run":'),
    "csv": Kind("export of runs", rb"run_id,run_name,run_began,configuration,sample_id,"),
    "parquet": Kind("export of runs", ends=(b"run_id", b"run_began", b"run_record")),
}


def check_file(path: Path | None, kind: Kind, option: str, history: str | None = None) -> None:
    """Refuse a file that cannot be written, or that is something else than an earlier output.

    Whatever does not hold still (a terminal, a pipe) is written to, and so is an empty file.
    """
    from proctor.reports.files import is_stream

    if path is None or is_stream(path):
        return
    if path.is_dir() or not _may_hold(path.absolute().parent):
        fix = "it is a folder: name a file in it" if path.is_dir() else "name another file"
        raise ConfigError(f"{str(path)!r} is no file that can be written", where=option, fix=fix)
    _refuse_history(path, option, history)
    _refuse_other(path, kind, option)


def check_reports(folder: Path | None, history: str | None = None, option: str = "--output") -> None:
    """Refuse a folder that reports cannot be written to, before a run is paid for."""
    if folder is not None:
        _refuse_history(folder, option, history)
        check_folder(folder, option)
        for name, kind in REPORTS.items():
            check_file(folder / name, kind, option, history)


def check_folder(folder: Path, option: str) -> None:
    """Refuse a folder that is none, or that cannot be written to."""
    if not _may_hold(folder):
        there = _there(folder)
        raise ConfigError(f"{str(there)!r} is no folder that can be written to", where=option)


def reports_in(folder: Path | None) -> list[Path]:
    """The files that --output asks for."""
    return [] if folder is None else [folder / name for name in REPORTS]


def refuse_twice(outputs: Iterable[Path]) -> None:
    """Refuse two outputs in one file: the second would take the place of the first."""
    from proctor.reports.files import is_stream

    places: set[Path] = set()
    for path in outputs:
        if not is_stream(path) and path.resolve() in places:
            raise ConfigError("two outputs would go to it", where=str(path), fix="give each its own file")
        places.add(path.resolve())


def refuse_among(dataset: Any, outputs: Iterable[Path]) -> None:
    """Refuse outputs that would lie among recorded sessions, and be read as such the next time."""
    from proctor.datasets.sessions import SessionDataset

    for path in outputs:
        if isinstance(dataset, SessionDataset) and dataset.reads(path):
            raise ConfigError(
                "it would lie among the sessions of the dataset, and be read as one the next time",
                where=str(path),
                fix="write to a folder of its own",
            )


def refuse_what_is_read(output: Path | None, read: Mapping[str, Path | None]) -> None:
    """Refuse to write over what a command reads, or among it; `read` tells by which option."""
    for option, path in read.items():
        if output is not None and path is not None and is_within(output, path):
            what = f"it is what {option} reads, and would be written over"
            if path.is_dir():
                what = f"it lies in the folder that {option} reads, and would be read as well"
            raise ConfigError(what, where=f"--output {output}", fix="name another file")


def is_within(inner: Path, outer: Path) -> bool:
    """True if a path is another one, or lies in that folder; links and `..` make no difference.

    >>> is_within(Path("logs/../logs/new"), Path("logs")), is_within(Path("logs2"), Path("logs"))
    (True, False)
    """
    places = (inner.resolve(), *inner.resolve().parents)
    if not outer.exists():
        return outer.resolve() in places
    # By what the disk says, to which capitals or two names of a file may make no difference.
    return any(place.exists() and place.samefile(outer) for place in places)


def _there(path: Path) -> Path:
    """As much of a path as there is."""
    return next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())


def _may_hold(folder: Path) -> bool:
    there = _there(folder)
    return there.is_dir() and os.access(there, os.W_OK)


def _refuse_history(path: Path, option: str, history: str | None) -> None:
    from proctor.wiring.open_history import history_file

    file = history_file(history)
    if file is not None and any(is_within(path, file.with_name(file.name + end)) for end in BESIDE):
        raise ConfigError("the history of runs is in it", where=f"{option} {path}", fix="name another file")


def _refuse_other(path: Path, kind: Kind, option: str) -> None:
    if not path.is_file() or not path.stat().st_size or kind.is_in(path):
        return
    raise ConfigError(
        f"{_taken_for(path)} is there already, which is no {kind.name} and not written over",
        where=f"{option} {path}",
        fix="name another file, or delete this one",
    )


def _taken_for(path: Path) -> str:
    if _head(path).startswith(DATABASE):
        return "a database"
    return ENDINGS.get(path.suffix.lower(), "a file")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""


def _object_in(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds; an empty one if it holds something else."""
    try:
        if path.stat().st_size > LONGEST:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_parquet(path: Path, names: tuple[bytes, ...]) -> bool:
    """True if a Parquet file has columns of these names, as its last part tells them."""
    mark = b"PAR1"
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            end = file.read()
            about = min(int.from_bytes(end[:4], "little"), size, LONGEST)
            file.seek(max(0, size - 8 - about))
            told = file.read(about)
    except OSError:
        return False
    return end.endswith(mark) and _head(path).startswith(mark) and all(n in told for n in names)
