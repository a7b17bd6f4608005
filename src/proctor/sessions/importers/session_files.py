"""Read sessions from a log file or a folder of log files, one session at a time."""

from __future__ import annotations

import importlib
import json
import math
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec

from proctor.core.resources import READ_ERRORS, describe_json_error, describe_os_error, open_gzip, suggest_file
from proctor.errors import ConfigError, DatasetError, Problem, suggest_name
from proctor.records.formatting import format_count
from proctor.records.session import CustomEvent
from proctor.sessions.genai.values import is_too_deep
from proctor.sessions.importers.imported_session import ImportedSession, describe_value

MAX_PROBLEMS = 1000
# Format names and their modules, in order of detection: specific formats come before general ones.
FORMATS = {
    "otlp": "otlp", "langfuse": "langfuse", "atif": "atif", "chatgpt": "chatgpt", "claude-ai": "claude_ai",
    "copilot-cli": "copilot_cli", "vscode-chat": "vscode_chat", "openai-agents": "openai_agents",
    "pydantic-ai": "pydantic_ai_messages", "smolagents": "smolagents_steps", "crewai": "crewai_log",
    "codex": "codex", "qwen": "qwen", "gemini": "gemini",
    "claude-code": "claude_code", "langchain": "langchain_messages", "proctor": "proctor_sessions",
    "openai": "openai_messages",
}  # fmt: skip
AUTO = "auto"
# The number of values that decide the format: a log may start with many lines that are not messages.
DETECTION_VALUES = 50
ENDINGS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
MAX_DEPTH = 200
TOO_DEEP = "the JSON is too deeply nested"
NOT_A_FILE = "not a regular file, so it cannot be read twice; write its content to a file first"
# The prefix of problems that are bugs of an importer, not errors in the file.
IMPORTER_FAILED = "the importer failed"
REPAIRED = "values that JSON does not allow (half a character, NaN, infinity) were replaced"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_MAX_LINES_CHECKED = 100


class _FileProblems(NamedTuple):
    """The number of problems in one file, their unit (line, session or part), and the first problem."""

    number: int
    unit: str
    first: Problem
    example: str


class ReadProblems:
    """The lines, sessions and files that could not be read, in the order of the files."""

    def __init__(self) -> None:
        self.count = 0
        self.files = 0
        self.problems: list[Problem] = []
        self._last_file: Path | None = None
        self._by_file: dict[Path, _FileProblems] = {}

    def add(self, file: Path, text: str, location: int | None = None, unit: str = "line") -> None:
        """Add a problem with a file, or with a line or session in it."""
        self.count += 1
        problem = Problem(str(file) if location is None else f"{file}:{location}", text)
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)
        if file != self._last_file:
            self._last_file = file
            self.files += 1
        if file in self._by_file:
            previous = self._by_file[file]
            same_unit = unit if unit == previous.unit and location is not None else "part"
            self._by_file[file] = previous._replace(number=previous.number + 1, unit=same_unit)
        elif self.files <= MAX_PROBLEMS:
            example = text if location is None else f"{unit} {location}: {text}"
            self._by_file[file] = _FileProblems(1, "part" if location is None else unit, problem, example)

    @property
    def by_file(self) -> list[Problem]:
        """Return one problem per file."""
        summaries = []
        for file, (number, unit, first, example) in self._by_file.items():
            text = f"{number:,} {unit}s with problems, such as {example}"
            summaries.append(first if number == 1 else Problem(str(file), text))
        return summaries

    @property
    def grouped(self) -> list[Problem]:
        """Return one problem for all files with the same problem, under the name of the first file."""
        by_text: dict[str, list[str]] = {}
        for problem in self.by_file:
            by_text.setdefault(problem.what, []).append(problem.where)
        return [
            Problem(first, f"{text}; the same in {format_count(len(others), 'other file')}" if others else text)
            for text, (first, *others) in by_text.items()
        ]

    def names(self, folder: Path) -> list[str]:
        """Return the names of these files, relative to a folder."""
        return [file.relative_to(folder).as_posix() if file != folder else file.name for file in self._by_file]


class Format(Protocol):
    """The module of a log format."""

    NAME: str

    def looks_like(self, values: Sequence[Any], /) -> bool:
        """Return True if the first values of a file have this format."""

    def read(self, values: Iterable[tuple[int, Any]], source: str, /) -> Iterator[ImportedSession]:
        """Read the sessions from the values of a file and their line numbers."""


def load_format(name: str) -> Format:
    if name not in FORMATS:
        raise ConfigError(f"unknown format {name!r}", where="format", fix=suggest_name(name, [AUTO, *FORMATS]))
    module: Format = importlib.import_module(f"proctor.sessions.importers.{FORMATS[name]}")
    return module


def detect_format(values: Sequence[Any]) -> Format | None:
    """Detect the format from the first values of a file; return None if it is unknown."""
    return next((item for item in map(load_format, FORMATS) if item.looks_like(values)), None)


class SessionFiles:
    """The sessions in a file or a folder; each iteration reads the files again.

    Only the current file is in memory. Without a `format_name`, the format of each file is detected from its content.
    In a folder, files with a JSON extension (also .gz) are read, or files that match `pattern`. `read_problems` lists
    unreadable lines and files, and `problem_count` counts them. They raise an error only if no session can be read.
    """

    def __init__(self, path: str | Path, format_name: str | None = None, *, pattern: str | None = None) -> None:
        self.path = Path(path)
        # A target may change the working directory between two iterations.
        self._start = Path.cwd() if not self.path.is_absolute() else Path()
        self._format = None if format_name in (None, AUTO) else load_format(str(format_name))
        self._pattern = pattern
        self.read_problems = ReadProblems()
        self.files = 0
        self._values_read = 0

    def __iter__(self) -> Iterator[ImportedSession]:
        self.read_problems, self.files, self._values_read = ReadProblems(), 0, 0
        is_empty = True
        for file in self._list_files():
            self.files += 1
            for session in self._read_file(file):
                is_empty = False
                yield session
        if is_empty:
            raise self._make_error()

    def __repr__(self) -> str:
        return f"SessionFiles({str(self.path)!r})"

    @property
    def problems(self) -> list[Problem]:
        """Return the first thousand problems of the last iteration."""
        return self.read_problems.problems

    @property
    def problem_count(self) -> int:
        """Return the number of lines and files that the last iteration could not read."""
        return self.read_problems.count

    def _list_files(self) -> Iterator[Path]:
        root = self._start / self.path
        if not root.is_dir():
            yield self.path
            return
        for folder, subfolders, names in os.walk(root, onerror=self._add_folder_problem):
            subfolders.sort()
            shown_folder = self.path / Path(folder).relative_to(root)
            yield from (shown_folder / name for name in sorted(names) if self._is_selected(shown_folder / name))

    def reads(self, file: Path) -> bool:
        """Return True if reading the folder reads this file, which may not exist yet."""
        folder, resolved = (self._start / self.path).resolve(), file.resolve()
        if not folder.is_dir() or not resolved.is_relative_to(folder):
            return False
        return self._is_selected(self.path / resolved.relative_to(folder))

    def _is_selected(self, file: Path) -> bool:
        if self._pattern is None:
            is_match = file.name.lower().endswith(ENDINGS)
        else:
            relative = file.relative_to(self.path).as_posix()
            is_match = fnmatch(file.name, self._pattern) or fnmatch(relative, self._pattern)
        return is_match and _may_be_file(self._start / file)

    def _read_file(self, file: Path) -> Iterator[ImportedSession]:
        previous_count, values = self.problem_count, self._read_values(file)
        first = list(islice(values, DETECTION_VALUES))
        log_format = self._format or detect_format([value for _, value in first])
        if log_format is not None:
            is_empty = True
            for session in self._read_sessions(log_format, first, values, file):
                is_empty = False
                yield session
            if is_empty and self.problem_count == previous_count:
                self.read_problems.add(file, f"the file contains no {log_format.NAME} session")
        elif first:
            self.read_problems.add(file, f"unknown log format; the first record is {describe_value(first[0][1])}")
        elif self.problem_count == previous_count:
            self.read_problems.add(file, "the file is empty")

    def _read_sessions(
        self, log_format: Format, first: list[tuple[int, Any]], values: Iterator[tuple[int, Any]], file: Path
    ) -> Iterator[ImportedSession]:
        sessions = log_format.read(chain(first, values), str(file))
        while True:
            try:
                session = next(sessions, None)
            except Exception as error:  # One file must not stop the import of a folder.
                self.read_problems.add(file, f"{IMPORTER_FAILED}: {type(error).__name__}: {error}")
                return
            if session is None:
                return
            if session.is_named or any(not isinstance(event, CustomEvent) for event in session.session):
                yield session
                continue
            types = ", ".join(f"{n} × {name}" for name, n in session.unknown_parts.items())
            text = f"the file contains no {log_format.NAME} session ({types or 'no messages'})"
            detected = detect_format([value for _, value in first])
            if detected is not None and detected.NAME != log_format.NAME:
                text += f"; it looks like {detected.NAME}"
            location = session.source.removeprefix(f"{file}:")
            self.read_problems.add(file, text, int(location) if location.isdecimal() else None, "session")

    def _read_values(self, file: Path) -> Iterator[tuple[int, Any]]:
        """Yield the readable values of a file, up to the first read error."""
        try:
            if not stat.S_ISREG((self._start / file).stat().st_mode):
                self.read_problems.add(file, NOT_A_FILE)
                return
            with _open(self._start / file) as stream:
                for number, (value, problem) in _decode_stream(stream):
                    if problem is not None:
                        self.read_problems.add(file, problem, number)
                    if problem in (None, REPAIRED):
                        self._values_read += 1
                        yield number, value
        except READ_ERRORS as error:
            self.read_problems.add(file, _explain(error))

    def _add_folder_problem(self, error: OSError) -> None:
        folder = Path(error.filename).relative_to(self._start / self.path)
        self.read_problems.add(self.path / folder, _explain(error))

    def _make_error(self) -> DatasetError:
        where = str(self.path)
        if not (self._start / self.path).exists():
            return DatasetError("file or folder not found", where=where, fix=suggest_file(self.path))
        if not self.files and not self.problems:
            ending = f"ends in {', '.join(ENDINGS[:3])}"
            condition = ending if self._pattern is None else f"matches {self._pattern!r}"
            fix = "choose other files, for example: --pattern '*.log'"
            return DatasetError(f"no file in this folder {condition}", where=where, fix=fix)
        # A format helps only if there are values that no format understands.
        fix = (
            f"add --format NAME, one of: {', '.join(FORMATS)}"
            if self._values_read
            else "pass a chat log or a trace, as JSON"
        ) + f"; for a file of an evaluation tool: proctor import {shlex.quote(where)}"
        by_file = self.read_problems.by_file
        if len(by_file) == 1 and by_file[0].where == where:
            return DatasetError(f"no session could be read: {by_file[0].what}", where=where, fix=fix)
        text = "no session could be read"
        return DatasetError(text, where=where, problems=self.read_problems.grouped, fix=fix)


def read_first_values(path: Path) -> list[Any]:
    """Return the first readable JSON values of a file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return []
        with _open(path) as stream:
            values = (value for _, (value, problem) in _decode_stream(stream) if problem is None)
            return list(islice(values, DETECTION_VALUES))
    except READ_ERRORS:
        return []


def _may_be_file(path: Path) -> bool:
    """Return False for pipes; reading reports broken links and missing permissions."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def _explain(error: Exception) -> str:
    return describe_os_error(error, "cannot be read")


def _decode_stream(stream: BinaryIO) -> Iterator[tuple[int, tuple[Any, str | None]]]:
    """Yield one value per line, or the only document of the file, with line numbers."""
    lines = _number_lines(stream, 1)
    for number, line in lines:
        result = decode_line(line)
        if result[1] in (None, REPAIRED):
            yield number, result
            break
        # An invalid line, or the first line of a document.
        content = line + stream.read()
        document = decode_line(content)
        if document[1] in (None, REPAIRED):
            yield number, document
            return
        if (offset := _find_document_error(content)) is not None:
            yield number + offset, document
            return
        yield number, result
        lines = _number_lines(content.split(b"\n")[1:], number + 1)
        break
    for number, line in lines:
        yield number, decode_line(line)


def _find_document_error(data: bytes) -> int | None:
    """Return the line offset of the error in a document, or None if the data is one value per line."""
    first, _, rest = data.partition(b"\n")
    text = data.decode("utf-8", "replace")
    position = len(text)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        position = error.pos
    except (ValueError, RecursionError):
        pass
    if len(text[:position].rstrip()) <= text.find("\n"):
        return None
    lines = rest.split(b"\n", _MAX_LINES_CHECKED)[:_MAX_LINES_CHECKED]
    readable = sum(isinstance(decode_line(line)[0], dict | list) for line in lines)
    # The last item of a list may be readable; otherwise no readable line is dropped.
    if readable > (1 if first.strip() in (b"[", b"{") else 0):
        return None
    return text.count("\n", 0, position)


def decode_line(line: bytes) -> tuple[Any, str | None]:
    """Return the value of a line, or a problem; a repaired value has both."""
    try:
        value, problem = msgspec.json.decode(line), None
    except (ValueError, RecursionError):
        try:
            value, problem = _repair(json.loads(line.decode("utf-8", "replace").rstrip("\r\n"))), REPAIRED
        except json.JSONDecodeError as error:
            return None, f"not valid JSON: {describe_json_error(error)}, at character {error.colno}"
        except RecursionError:
            return None, TOO_DEEP
        except ValueError:
            return None, "a number is too long"
    is_deep = line.count(b"[") + line.count(b"{") > MAX_DEPTH and is_too_deep(value, MAX_DEPTH)
    return (None, TOO_DEEP) if is_deep else (value, problem)


def _repair(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_repair(key): _repair(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_repair(item) for item in value]
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    is_too_large = isinstance(value, int) and not -(2**63) <= value < 2**64
    return str(value) if is_infinite or is_too_large else value


def _open(file: Path) -> BinaryIO:
    stream = file.open("rb")
    start = stream.read(len(_BOM))
    if start.startswith(_GZIP):
        stream.close()
        return open_gzip(file)
    stream.seek(len(_BOM) if start == _BOM else 0)
    return stream


def _number_lines(lines: Iterable[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(lines, start=first) if line.strip())
