"""What must hold for any input: an importer reads it or reports why it cannot, and loses nothing.

Six checks, for any bytes:

- the importer ends in time, and raises nothing but a `DatasetError` with its problems;
- its sessions can be stored and read again, and reading the file gives the same as reading its values;
- every text and number of the file is in the record (`lost`), also one that is inserted anywhere (`mark lost`);
- two files that differ in one text or number give different records (`same record`), even if the inserted value
  occurs elsewhere in the file too;
- a judge reads the content of a message in any role (`unheard`), also in an unknown role;
- the tokens of the session are those of the file, if the file states them clearly (`miscounted`).
"""

from __future__ import annotations

import math
import re
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from fuzz.documents import Document, Spot, copy_value, find_spots, parse_embedded, serialize_embedded
from fuzz.expected_content import count_tokens, is_plain_text, message_texts, render_sessions
from proctor.errors import DatasetError
from proctor.records import codec
from proctor.records.session import CustomEvent
from proctor.sessions.genai.values import MAX_DEPTH
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.sessions.importers.session_files import (
    DETECTION_VALUES,
    IMPORTER_FAILED,
    REPAIRED,
    Format,
    SessionFiles,
    decode_line,
    detect_format,
    load_format,
)

SECONDS = 5.0
_MARK = "⁂mark⁂"
_MARKS: tuple[Any, ...] = (_MARK, 7340033, {_MARK: 1}, [_MARK], {"type": _MARK})
_SIGNS = (_MARK.encode(), b"7340033")
_ROLE = "critic"
_SOURCE = "logs/chat.jsonl"
# The number of places of a file that are changed for each input.
PLACES = 3
# Keys that say how to read a part; the record has its own names for their values.
_FORM = frozenset(("role", "type", "object", "kind", "event.name", "lc", "index", "status", "key", "part_kind"))
_WORD = re.compile(r"[\w.:-]+")


class Fault(NamedTuple):
    """A violated check: its `kind`, and `where`, which is equal for inputs that fail in the same way."""

    kind: str
    where: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}{f' ({self.more})' if self.more else ''}"


class CheckTimeout(BaseException):
    """An importer takes too long. Not an `Exception`, so that the importer cannot catch it."""


def find_fault(data: bytes, form: str | None, file: Path, *, where: str | None = None) -> Fault | None:
    """Check how a file with these bytes is read in a format (None: detect it); return the first fault.

    The file is written to `file`. A few random places are changed, or with `where` all places of that shape. The same
    bytes give the same result.
    """
    return run_check(lambda: _find_fault(data, form, file, where))


def run_check(look: Callable[[], Fault | None], seconds: float = SECONDS) -> Fault | None:
    """Return the fault that a check finds; an exception or a timeout is a fault too."""
    try:
        with time_limit(seconds):
            return look()
    except CheckTimeout as error:
        return Fault("hang", _failing_function(error), f"more than {seconds:g} s of CPU time")
    except Exception as error:
        return Fault(type(error).__name__, _failing_function(error), str(error)[:200])


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `CheckTimeout` if the block takes more CPU time; a busy machine does not count."""

    def stop(*_: Any) -> None:
        raise CheckTimeout

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _failing_function(error: BaseException) -> str:
    """Return the function of Proctor that raised the error."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "proctor" in f.filename]
    if not frames:
        return "the oracle itself"
    return f"{Path(frames[-1].filename).stem}.{frames[-1].name}"


def _find_fault(data: bytes, form: str | None, file: Path, where: str | None) -> Fault | None:
    file.write_bytes(data)
    files = SessionFiles(file, form)
    results: list[ImportedSession] = []
    values, damaged = _values(data)
    try:
        results.extend(files)
    except DatasetError as error:
        if not files.problems and not _is_blank([value for _, value in values]):
            return Fault("nothing is reported", error.what)
    if failed := [it.what for it in files.problems if it.what.startswith(IMPORTER_FAILED)]:
        return Fault("the importer failed", failed[0][:60])
    lines = {problem.where.removeprefix(f"{file}:") for problem in files.problems}
    if _is_one_document(values, damaged, lines):
        return None
    if unreported := [line for line in damaged if str(line) not in lines]:
        return Fault("damage is not reported", f"line {unreported[0]}")
    module = detect_format([it for _, it in values[:DETECTION_VALUES]]) if form is None else load_format(form)
    if module is None:
        return None if files.problems or not values else Fault("nothing is reported", "no format")
    whole = list(module.read(values, str(file)))
    sessions = [item for item in whole if item.is_named or not all(isinstance(e, CustomEvent) for e in item.session)]
    if encode_sessions(sessions) != encode_sessions(results):
        return Fault("the file gives other sessions than its values", module.NAME)
    return find_lost_value(module, values, Random(data), where)


def find_lost_value(
    module: Format, values: list[tuple[int, Any]], random: Random, where: str | None = None
) -> Fault | None:
    """Return the first fault in how a format reads values with their line numbers."""
    results = list(module.read(values, _SOURCE))
    record = encode_sessions(results)
    again = msgspec.json.decode(record, type=list[ImportedSession])
    if msgspec.json.decode(encode_sessions(again), type=list[ImportedSession]) != again:
        return Fault("what is written is not read again", module.NAME)
    document = Document([parse_embedded(value) for _, value in values], is_lines=True)
    numbers = [number for number, _ in values]
    fault = _find_lost(document, record) or _find_misread(module, [value for _, value in values], results)
    return fault or _ChangeChecker(module, document, numbers).fault(random, where)


def _find_misread(module: Format, values: list[Any], sessions: list[ImportedSession]) -> Fault | None:
    """Find a message that the judge does not see, or a wrong number of tokens."""
    shown = render_sessions(sessions)
    for words in message_texts(module.NAME, values):
        if words not in shown:
            return Fault("unheard", module.NAME, words[:80])
    used = sum(item.session.usage.total_tokens or 0 for item in sessions)
    output = count_tokens(module.NAME, values)
    if output is not None and output != used:
        return Fault("miscounted", module.NAME, f"{output} in the file, {used} in the session")
    return None


def _values(data: bytes) -> tuple[list[tuple[int, Any]], list[int]]:
    """Return the values of a file with their lines, and the damaged lines."""
    lines = [
        (number, line)
        for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1)
        if line.strip()
    ]
    if not lines or data.startswith(b"\x1f\x8b"):
        return [], []
    if decode_line(lines[0][1])[1] not in (None, REPAIRED):
        rest = b"\n".join(data.removeprefix(b"\xef\xbb\xbf").split(b"\n")[lines[0][0] - 1 :])
        value, why = decode_line(rest)
        if why in (None, REPAIRED):
            return [(lines[0][0], value)], []
    results = [(number, *decode_line(line)) for number, line in lines]
    fine = [(number, value) for number, value, why in results if why in (None, REPAIRED)]
    return fine, [number for number, _, why in results if why is not None]


def _is_one_document(values: list[tuple[int, Any]], damaged: list[int], reported: set[str]) -> bool:
    """True for a damaged document on several lines, which is reported as one problem."""
    readable = [value for _, value in values if isinstance(value, dict | list)]
    return bool(damaged) and len(reported) == 1 and len(readable) <= 1


def _is_blank(value: Any) -> bool:
    """True for a value without texts, numbers and booleans."""
    if isinstance(value, dict | list):
        return all(map(_is_blank, value.values() if isinstance(value, dict) else value))
    return value is None or (isinstance(value, str) and not value.strip())


def encode_sessions(sessions: Any) -> bytes:
    """Encode sessions as they are stored."""
    return codec.encode(sessions)


def _find_lost(document: Document, record: bytes) -> Fault | None:
    for spot in find_spots(document.values):
        is_word = _is_structure(spot) and _WORD.fullmatch(str(spot.value))
        if not spot.is_single or is_word or _is_nested_json(spot.value):
            continue
        if not _occurs(spot.value, record):
            return Fault("lost", _shape(spot.path), repr(spot.value)[:80])
    return None


def _is_structure(spot: Spot) -> bool:
    """True for a value that says how to read a part, such as its role or type."""
    name = str(spot.path[-1]) if spot.path else ""
    return name in _FORM or name.rpartition(".")[2] in _FORM


def _is_nested_json(value: Any) -> bool:
    """True for embedded JSON that is nested too deep for `parse_embedded`."""
    deepest = value.count("{") + value.count("[") if isinstance(value, str) else 0
    return deepest > MAX_DEPTH and value[:1] in ("{", "[")


def _occurs(value: Any, record: bytes) -> bool:
    if isinstance(value, str):
        # Also inside of JSON that is embedded in texts several times.
        for _ in range(4):
            escaped = msgspec.json.encode(value)[1:-1]
            if escaped in record:
                return True
            value = escaped.decode()
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return True  # JSON has no such number; readers represent it differently
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    texts = (msgspec.json.encode(value), repr(value).encode(), str(whole).encode())
    return any(text in record for text in texts)


class _ChangeChecker:
    """Changes one place of a file at a time, and checks that the record changes too."""

    def __init__(self, module: Format, document: Document, numbers: list[int]) -> None:
        self._module, self._values, self._numbers = module, document.values, numbers
        result = self._read_values(document.values)
        self._record, self._transcript, self._readable = (
            encode_sessions(result),
            render_sessions(result),
            _count_readable(result),
        )
        self._places = list(find_spots(document.values))

    def _read_values(self, values: list[Any]) -> list[ImportedSession]:
        lines = zip(self._numbers, map(serialize_embedded, values), strict=True)
        return list(self._module.read(list(lines), _SOURCE))

    def fault(self, random: Random, where: str | None) -> Fault | None:
        """Check some random places, or all places of a shape."""
        numbers: Sequence[int] = range(len(self._places))
        if where is not None:
            numbers = [n for n in numbers if _shape(self._places[n].path) == where]
        elif numbers:
            numbers = random.choices(numbers, k=PLACES)
        for number in numbers:
            marks, others = _MARKS, self._others(number)
            if where is None:
                marks = (random.choice(marks),)
                others = random.sample(others, min(1, len(others)))
            for put in marks:
                if not any(sign in self._with(number, put) for sign in _SIGNS):
                    return self._fault("mark lost", number, put)
            for put in others:
                if self._with(number, put) == self._record:
                    return self._fault("same record", number, put)
            if self._is_unheard(number):
                return self._fault("unheard", number, _ROLE)
        return None

    def _is_unheard(self, number: int) -> bool:
        """True if the judge no longer sees a message when its role is unknown."""
        spot = self._places[number]
        if spot.key != "role" or not isinstance(spot.value, str) or "content" not in spot.holder:
            return False
        content = spot.holder["content"]
        if not is_plain_text(content) or content not in self._transcript:
            return False
        result = self._read_values(self._changed(number, _ROLE))
        # Messages without any known role are not a conversation.
        return _count_readable(result) == self._readable and content not in render_sessions(result)

    def _with(self, number: int, put: Any) -> bytes:
        return encode_sessions(self._read_values(self._changed(number, put)))

    def _changed(self, number: int, put: Any) -> list[Any]:
        values: list[Any] = copy_value(self._values)
        spot = next(islice(find_spots(values), number, None))
        spot.holder[spot.key] = put
        return values

    def _fault(self, kind: str, number: int, put: Any) -> Fault:
        spot = self._places[number]
        return Fault(kind, _shape(spot.path), f"{serialize_embedded(spot.value)!r:.60} -> {put!r:.60}")

    def _others(self, number: int) -> list[Any]:
        """Return the other texts or numbers of the file that may be put into a place."""
        spot = self._places[number]
        if isinstance(spot.value, bool):
            return [not spot.value]
        if not spot.is_single or spot.value != spot.value:
            return []
        kind = str if isinstance(spot.value, str) else int | float
        alike = [p.value for p in self._places if p.is_single and isinstance(p.value, kind)]
        alike = list(dict.fromkeys(value for value in alike if value != spot.value))
        # Two such words may mean the same.
        return [it for it in alike if not _WORD.fullmatch(str(it))] if _is_structure(spot) else alike


def _count_readable(sessions: list[ImportedSession]) -> int:
    """Count the sessions that have something to read."""
    return sum(bool(render_sessions([item])) for item in sessions)


def _shape(path: tuple[Any, ...]) -> str:
    """Return the last names of a path, without indexes."""
    names = [key[:30] for key in path if isinstance(key, str)]
    return ".".join(names[-3:])
