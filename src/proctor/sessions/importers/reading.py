"""Reading logs from disk: a file or a folder of thousands, one session after the other."""

from __future__ import annotations

import importlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec

from proctor.core.resources import UNREADABLE, open_gzip
from proctor.errors import ConfigError, DatasetError, Problem, nearest
from proctor.records.session import CustomEvent
from proctor.sessions.importers.shapes import Imported, described

PROBLEMS_KEPT = 1000


class _OfFile(NamedTuple):
    """How many parts of a file could not be read, of what kind they are, and the first of them."""

    number: int
    kind: str
    first: Problem
    such_as: str


class Damage:
    """What could not be read of files, in the order in which they were read.

    >>> damage = Damage()
    >>> for line in (3, 4):
    ...     damage.note(Path("notes.json"), "it is not JSON", line)
    >>> [str(problem) for problem in damage.by_file]
    ['notes.json: 2 lines that cannot be read as they are, such as line 3: it is not JSON']
    """

    def __init__(self) -> None:
        self.count = 0
        self.files = 0
        self.problems: list[Problem] = []
        self._last: Path | None = None
        self._of_files: dict[Path, _OfFile] = {}

    def note(self, file: Path, what: str, place: int | None = None, kind: str = "line") -> None:
        """Something could not be read: the whole file, or a line or session of it."""
        self.count += 1
        problem = Problem(str(file) if place is None else f"{file}:{place}", what)
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(problem)
        if file != self._last:
            self._last = file
            self.files += 1
        if file in self._of_files:
            before = self._of_files[file]
            same = kind if kind == before.kind and place is not None else "part"
            self._of_files[file] = before._replace(number=before.number + 1, kind=same)
        elif self.files <= PROBLEMS_KEPT:
            such_as = what if place is None else f"{kind} {place}: {what}"
            kind = "part" if place is None else kind
            self._of_files[file] = _OfFile(1, kind, problem, such_as)

    @property
    def by_file(self) -> list[Problem]:
        """One problem for each file; of several the first stands for all."""
        return [_summed_up(file, found) for file, found in self._of_files.items()]

    @property
    def alike(self) -> list[Problem]:
        """One problem for all files of which the same is to be told, by the name of the first."""
        whats: dict[str, list[Problem]] = {}
        for problem in self.by_file:
            whats.setdefault(problem.what, []).append(problem)
        return [_of_all(files) for files in whats.values()]

    def names(self, under: Path) -> list[str]:
        """Which files these are, as they are called in their folder."""
        return [file.relative_to(under).as_posix() if file != under else file.name for file in self._of_files]


def _summed_up(file: Path, found: _OfFile) -> Problem:
    if found.number == 1:
        return found.first
    what = f"{found.number:,} {found.kind}s that cannot be read as they are"
    return Problem(str(file), f"{what}, such as {found.such_as}")


def _of_all(files: list[Problem]) -> Problem:
    first, others = files[0], len(files) - 1
    if not others:
        return first
    more = f"{others:,} other file{'s' if others > 1 else ''}"
    return Problem(first.where, f"{first.what}; the same of {more}")


# Every format by the name that people use, and the module that reads it. The first that takes a
# log for its own has it, so those that can be mistaken for another stand before that one.
FORMATS = {
    "otlp": "otlp",
    "langfuse": "langfuse",
    "codex": "codex",
    "qwen": "qwen",
    "gemini": "gemini",
    "claude-code": "claude_code",
    "langchain": "langchain_messages",
    "proctor": "proctor_sessions",
    "openai": "openai_messages",
}
AUTO = "auto"
# How many values of a file are looked at: a log may begin with much that nobody said.
LOOKED_AT = 50


class Format(Protocol):
    """What a module that reads a format offers."""

    NAME: str

    def looks_like(self, values: Sequence[Any], /) -> bool:
        """True if the first values of a file are of this format."""
        ...

    def read(self, values: Iterable[tuple[int, Any]], source: str, /) -> Iterator[Imported]:
        """The sessions in the values of a file, each with the number of its line."""
        ...


def named_format(name: str) -> Format:
    """The format of a name, or an error that says which there are.

    >>> named_format("claude-code").NAME
    'claude-code'
    """
    if name not in FORMATS:
        raise ConfigError(f"there is no format {name!r}", where="format", fix=nearest(name, [AUTO, *FORMATS]))
    found: Format = importlib.import_module(f"proctor.sessions.importers.{FORMATS[name]}")
    return found


def detect(values: Sequence[Any]) -> Format | None:
    """The format of the values that a file begins with, or None if it is none that is known.

    >>> detect([{"role": "user", "content": "Hello"}]).NAME
    'openai'
    >>> detect([{"id": "1", "input": "2 + 2"}]) is None
    True
    """
    for name in FORMATS:
        if (found := named_format(name)).looks_like(values):
            return found
    return None


ENDINGS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")

DEEPEST = 200
TOO_DEEP = "it is nested too deep"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
NO_FILE = "it is not a regular file, so it cannot be read twice; write it to a file first"
# What a problem begins with that is a fault of ours, and none of the file.
FAULT = "the importer failed"
_LOOKED_THROUGH = 100
MENDED = "it holds what JSON cannot hold (half a character, NaN, a number without bounds): mended"


class SessionFiles:
    """The sessions in a file or in all files of a folder, read anew at each pass.

    Only the file that is being read is in memory. `form` forces a format; else each file's content
    tells its own. In a folder the files that end in .json, .jsonl or .ndjson (and .gz) are read, or
    those that fit `pattern`. Lines and files that cannot be read are in `problems`, with their
    place, and `damaged` counts them; `damage` tells them file by file. They stop the rest only if
    there is no rest.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> _ = Path(folder.name, "a.json").write_text('[{"role": "user", "content": "Hello"}]')
    >>> [session.input for session in SessionFiles(folder.name)]
    ['Hello']
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, form: str | None = None, *, pattern: str | None = None) -> None:
        self.path = Path(path)
        # Where relative names start: a target may change the working directory between two passes.
        self._start = Path.cwd() if not self.path.is_absolute() else Path()
        self._format = None if form in (None, AUTO) else named_format(str(form))
        self._pattern = pattern
        self.damage = Damage()
        self.files = 0
        self._values_read = 0

    def __iter__(self) -> Iterator[Imported]:
        self.damage, self.files, self._values_read = Damage(), 0, 0
        found = 0
        for file in self._files():
            self.files += 1
            for session in self._sessions(file):
                found += 1
                yield session
        if not found:
            raise self._nothing()

    def __repr__(self) -> str:
        return f"SessionFiles({str(self.path)!r})"

    @property
    def problems(self) -> list[Problem]:
        """What the last pass could not read, each with its place; at most the first thousand."""
        return self.damage.problems

    @property
    def damaged(self) -> int:
        """How many lines and files the last pass could not read."""
        return self.damage.count

    def _files(self) -> Iterator[Path]:
        root = self._start / self.path
        if not root.is_dir():
            yield self.path
            return
        for folder, below, names in os.walk(root, onerror=self._unreadable):
            below.sort()
            shown = self.path / Path(folder).relative_to(root)
            for name in sorted(names):
                file = shown / name
                if self._is_meant(file):
                    yield file

    def reads(self, file: Path) -> bool:
        """True if a file, there or not yet, is one that a pass through a folder reads."""
        folder, whole = (self._start / self.path).resolve(), file.resolve()
        if not folder.is_dir() or not whole.is_relative_to(folder):
            return False
        return self._is_meant(self.path / whole.relative_to(folder))

    def _is_meant(self, file: Path) -> bool:
        if self._pattern is None:
            return file.name.lower().endswith(ENDINGS) and _may_be_file(self._start / file)
        inside = file.relative_to(self.path).as_posix()
        fits = fnmatch(file.name, self._pattern) or fnmatch(inside, self._pattern)
        return fits and _may_be_file(self._start / file)

    def _sessions(self, file: Path) -> Iterator[Imported]:
        before, values = self.damaged, self._values(file)
        first = list(islice(values, LOOKED_AT))
        form = self._format or detect([value for _, value in first])
        if form is not None:
            found = False
            for session in self._told(form, first, values, file):
                found = True
                yield session
            if not found and self.damaged == before:
                self.damage.note(file, f"there is no session of {form.NAME} in it")
        elif first:
            begins = described(first[0][1])
            self.damage.note(file, f"it is in no format that is known: it begins with {begins}")
        elif self.damaged == before:
            self.damage.note(file, "it is empty")

    def _told(
        self, form: Format, first: list[tuple[int, Any]], values: Iterator[tuple[int, Any]], file: Path
    ) -> Iterator[Imported]:
        sessions = form.read(chain(first, values), str(file))
        while True:
            try:
                session = next(sessions, None)
            except Exception as error:  # one file must not stop a folder
                self.damage.note(file, f"{FAULT}: {type(error).__name__}: {error}")
                return
            if session is None:
                return
            said = any(not isinstance(event, CustomEvent) for event in session.session)
            if not (said or session.is_named):
                kinds = ", ".join(f"{n} × {kind}" for kind, n in session.passed_over.items())
                what = f"there is no session of {form.NAME} in it ({kinds or 'it is empty'})"
                place = session.source.removeprefix(f"{file}:")
                number = int(place) if place.isdecimal() else None
                self.damage.note(file, what + _instead_of(form, first), number, "session")
            else:
                yield session

    def _values(self, file: Path) -> Iterator[tuple[int, Any]]:
        """What can be read of a file; where it breaks off, what stood before is kept."""
        try:
            if not stat.S_ISREG((self._start / file).stat().st_mode):
                self.damage.note(file, NO_FILE)
                return
            with _opened(self._start / file) as stream:
                for number, (value, why) in _decoded_in(stream):
                    if why is not None:
                        self.damage.note(file, why, number)
                    if why in (None, MENDED):
                        self._values_read += 1
                        yield number, value
        except UNREADABLE as error:
            self.damage.note(file, _why(error))

    def _unreadable(self, error: OSError) -> None:
        """A folder that cannot be looked into."""
        folder = Path(error.filename).relative_to(self._start / self.path)
        self.damage.note(self.path / folder, _why(error))

    def _nothing(self) -> DatasetError:
        where = str(self.path)
        if not (self._start / self.path).exists():
            return DatasetError("there is no such file or folder", where=where)
        if not self.files and not self.problems:
            what = f"no file in this folder ends in {', '.join(ENDINGS[:3])}"
            if self._pattern is not None:
                what = f"no file in this folder fits {self._pattern!r}"
            return DatasetError(what, where=where)
        # Naming a format helps where something was read, and not understood.
        known = f"formats that are known: {', '.join(FORMATS)}"
        fix = f"{known}; --format names one" if self._values_read else ""
        by_file = self.damage.by_file
        if len(by_file) == 1 and by_file[0].where == where:
            return DatasetError(by_file[0].what, where=where, fix=fix)
        what = "there is no session that can be read"
        return DatasetError(what, where=where, problems=self.damage.alike, fix=fix)


def first_values(path: Path) -> list[Any]:
    """The first JSON values of a file, as far as they can be read; empty if none can."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return []
        with _opened(path) as stream:
            decoded_values = (value for _, (value, why) in _decoded_in(stream) if why is None)
            return list(islice(decoded_values, LOOKED_AT))
    except UNREADABLE:
        return []


def _instead_of(form: Format, first: Iterable[tuple[int, Any]]) -> str:
    """What a file looks like that is not of the format that it was read as."""
    found = detect([value for _, value in first])
    return "" if found is None or found.NAME == form.NAME else f"; it looks like {found.NAME}"


def _may_be_file(path: Path) -> bool:
    """False for pipes; a link that leads nowhere, or where we may not look: reading tells it."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def _why(error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"it cannot be read: {why}"


def _decoded_in(stream: BinaryIO) -> Iterator[tuple[int, tuple[Any, str | None]]]:
    """One value a line, or the one document that the whole is, with their lines."""
    lines = _numbered(stream, 1)
    for number, line in lines:
        found = decoded(line)
        if found[1] in (None, MENDED):
            yield number, found
            break
        # A damaged line, or the first line of a document that has several.
        rest = line + stream.read()
        whole = decoded(rest)
        if whole[1] in (None, MENDED):
            yield number, whole
            return
        if (line_below := _breaks_off(rest)) is not None:
            yield number + line_below, whole
            return
        yield number, found
        lines = _numbered(rest.split(b"\n")[1:], number + 1)
        break
    for number, line in lines:
        yield number, decoded(line)


def _breaks_off(data: bytes) -> int | None:
    """How many lines below its first a damaged document breaks off; None if it is lines.

    >>> _breaks_off(b'[\\n {"role": "user",\\n  "con'), _breaks_off(b'{"cut\\n{"a": 1}\\n')
    (2, None)
    """
    first, _, rest = data.partition(b"\n")
    text = data.decode("utf-8", "replace")
    broken = len(text)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        broken = error.pos
    except (ValueError, RecursionError):
        pass
    if len(text[:broken].rstrip()) <= text.find("\n"):
        return None
    lines = rest.split(b"\n", _LOOKED_THROUGH)[:_LOOKED_THROUGH]
    own = sum(isinstance(decoded(line)[0], dict | list) for line in lines)
    # The last item of a list may stand alone; but no line that can be read is given up.
    if own > (1 if first.strip() in (b"[", b"{") else 0):
        return None
    return text.count("\n", 0, broken)


def decoded(line: bytes) -> tuple[Any, str | None]:
    """The value on a line, and what is wrong with it; a value that was mended has both.

    >>> decoded(b'{"a": 1}'), decoded(b'{"a": ')[1]
    (({'a': 1}, None), 'it is not JSON: expecting value, at character 7')
    """
    try:
        value = msgspec.json.decode(line)
        return (None, TOO_DEEP) if _is_deep(line, value) else (value, None)
    except (ValueError, RecursionError):
        pass
    try:
        value = _writable(json.loads(line.decode("utf-8", "replace").rstrip("\r\n")))
        return (None, TOO_DEEP) if _is_deep(line, value) else (value, MENDED)
    except json.JSONDecodeError as error:
        return None, f"it is not JSON: {error.msg.lower()}, at character {error.colno}"
    except RecursionError:
        return None, TOO_DEEP
    except ValueError:
        return None, "a number in it is too long"


def _writable(value: Any) -> Any:
    """A value with what no JSON can hold put into words."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_writable(key): _writable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_writable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value


def _opened(file: Path) -> BinaryIO:
    stream = file.open("rb")
    start = stream.read(len(_BOM))
    if start.startswith(_GZIP):
        stream.close()
        return open_gzip(file)
    stream.seek(len(_BOM) if start == _BOM else 0)
    return stream


def _numbered(lines: Iterable[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    for number, line in enumerate(lines, start=first):
        if line.strip():
            yield number, line


def _is_deep(line: bytes, value: Any) -> bool:
    """True if a value is nested deeper than can be written again; most need no closer look."""
    if line.count(b"[") + line.count(b"{") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        inside = (each.values() if isinstance(each, dict) else each for each in level)
        level = [it for each in inside for it in each if isinstance(it, dict | list)]
        if not level:
            return False
    return True
