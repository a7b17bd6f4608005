"""What must hold for whatever stands in a file: it is read, or told to be unreadable; never lost.

Six things are asked of an importer, of any bytes:

- it ends, in time, and nothing but a `DatasetError` with its problems comes out of it;
- what it gives can be written and read again, and the file gives what its values give;
- every text and number of the file stands in the record (`lost`), also one that is put into any
  place of it (`mark lost`);
- two files that differ in one text or number give records that differ (`same record`), even if
  what was put there stands somewhere else in the file too;
- what a message says in any role, a judge reads (`unheard`), also when its role is another word;
- the tokens of the session are those of the file, where it tells them plainly (`miscounted`).
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

from fuzz.documents import Document, Spot, closed, copied, opened, spots
from fuzz.plainly import heard, is_words, said_in, tokens_in
from proctor.errors import DatasetError
from proctor.records import codec
from proctor.records.session import CustomEvent
from proctor.sessions.genai.values import MAX_DEPTH
from proctor.sessions.importers.json_values import ImportedSession
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
# How many places of a file are marked, and changed, each time.
PLACES = 3
# Words that say how a part is to be read, not what it says: the record has its own for them.
_FORM = frozenset(("role", "type", "object", "kind", "event.name", "lc", "index", "status", "key"))
_WORD = re.compile(r"[\w.:-]+")


class Fault(NamedTuple):
    """What went wrong: `kind`, and `where`, which is the same for inputs that fail alike."""

    kind: str
    where: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}{f' ({self.more})' if self.more else ''}"


class TookTooLong(BaseException):
    """An importer that does not end; no `except Exception` of its own takes it."""


def fault_of(data: bytes, form: str | None, file: Path, *, where: str | None = None) -> Fault | None:
    """What is wrong with how a file of these bytes is read in a format (None: whichever it is).

    The file is written to `file`. A few places are marked and changed, or all that are called
    `where`, as in a fault found before. The same bytes give the same answer.
    """
    return watched(lambda: _fault_of(data, form, file, where))


def watched(look: Callable[[], Fault | None], seconds: float = SECONDS) -> Fault | None:
    """What a look at something tells; that it fails, or does not end, is a fault too."""
    try:
        with at_most(seconds):
            return look()
    except TookTooLong as error:
        return Fault("hang", _place(error), f"more than {seconds:g} s")
    except Exception as error:
        return Fault(type(error).__name__, _place(error), str(error)[:200])


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Stop what takes longer."""

    def stop(*_: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _place(error: BaseException) -> str:
    """The function of the product in which it happened."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "proctor" in f.filename]
    if not frames:
        return "the oracle itself"
    return f"{Path(frames[-1].filename).stem}.{frames[-1].name}"


def _fault_of(data: bytes, form: str | None, file: Path, where: str | None) -> Fault | None:
    file.write_bytes(data)
    files = SessionFiles(file, form)
    found: list[ImportedSession] = []
    values, damaged = _values(data)
    try:
        found.extend(files)
    except DatasetError as error:
        if not files.problems and not _is_blank([value for _, value in values]):
            return Fault("nothing is told", error.what)
    if failed := [it.what for it in files.problems if it.what.startswith(IMPORTER_FAILED)]:
        return Fault("the importer failed", failed[0][:60])
    told = {problem.where.removeprefix(f"{file}:") for problem in files.problems}
    if _is_one_document(values, damaged, told):
        return None
    if unsaid := [line for line in damaged if str(line) not in told]:
        return Fault("damage is not told", f"line {unsaid[0]}")
    module = detect_format([it for _, it in values[:DETECTION_VALUES]]) if form is None else load_format(form)
    if module is None:
        return None if files.problems or not values else Fault("nothing is told", "no format")
    whole = list(module.read(values, str(file)))
    talks = [one for one in whole if one.is_named or not all(isinstance(e, CustomEvent) for e in one.session)]
    if written(talks) != written(found):
        return Fault("the file gives other sessions than its values", module.NAME)
    return fault_in(module, values, Random(data), where)


def fault_in(module: Format, values: list[tuple[int, Any]], random: Random, where: str | None = None) -> Fault | None:
    """What a format loses of some values, each with its line."""
    found = list(module.read(values, _SOURCE))
    record = written(found)
    again = msgspec.json.decode(record, type=list[ImportedSession])
    if msgspec.json.decode(written(again), type=list[ImportedSession]) != again:
        return Fault("what is written is not read again", module.NAME)
    document = Document([opened(value) for _, value in values], is_lines=True)
    numbers = [number for number, _ in values]
    fault = _lost(document, record) or _misread(module, [value for _, value in values], found)
    return fault or _Changing(module, document, numbers).fault(random, where)


def _misread(module: Format, values: list[Any], found: list[ImportedSession]) -> Fault | None:
    """What a judge does not get to read though it was said, or tokens that nobody counted."""
    shown = heard(found)
    for words in said_in(module.NAME, values):
        if words not in shown:
            return Fault("unheard", module.NAME, words[:80])
    used = sum(one.session.usage.total_tokens or 0 for one in found)
    told = tokens_in(module.NAME, values)
    if told is not None and told != used:
        return Fault("miscounted", module.NAME, f"{told} in the file, {used} in the session")
    return None


def _values(data: bytes) -> tuple[list[tuple[int, Any]], list[int]]:
    """The values of a file with their lines, and the lines that are damaged."""
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
    found = [(number, *decode_line(line)) for number, line in lines]
    fine = [(number, value) for number, value, why in found if why in (None, REPAIRED)]
    return fine, [number for number, _, why in found if why is not None]


def _is_one_document(values: list[tuple[int, Any]], damaged: list[int], told: set[str]) -> bool:
    """True for a document on several lines that is damaged: it is told as one."""
    readable = [value for _, value in values if isinstance(value, dict | list)]
    return bool(damaged) and len(told) == 1 and len(readable) <= 1


def _is_blank(value: Any) -> bool:
    """True for what holds no text, no number and no truth."""
    if isinstance(value, dict | list):
        return all(map(_is_blank, value.values() if isinstance(value, dict) else value))
    return value is None or (isinstance(value, str) and not value.strip())


def written(found: Any) -> bytes:
    """Everything that is kept, as it is stored."""
    return codec.encode(found)


def _lost(document: Document, record: bytes) -> Fault | None:
    for spot in spots(document.values):
        is_word = _is_form(spot) and _WORD.fullmatch(str(spot.value))
        if not spot.is_single or is_word or _is_deep(spot.value):
            continue
        if not _stands(spot.value, record):
            return Fault("lost", _shape(spot.path), repr(spot.value)[:80])
    return None


def _is_form(spot: Spot) -> bool:
    """True for what says how a part is to be read, not what it says."""
    name = str(spot.path[-1]) if spot.path else ""
    return name in _FORM or name.rpartition(".")[2] in _FORM


def _is_deep(value: Any) -> bool:
    """True for JSON in a text that nobody looks into here, though a reader may."""
    deepest = value.count("{") + value.count("[") if isinstance(value, str) else 0
    return deepest > MAX_DEPTH and value[:1] in ("{", "[")


def _stands(value: Any, record: bytes) -> bool:
    if isinstance(value, str):
        # Also where it stands in JSON that stands in a text, in a text again.
        for _ in range(4):
            escaped = msgspec.json.encode(value)[1:-1]
            if escaped in record:
                return True
            value = escaped.decode()
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return True  # JSON has no such number, and readers have their own words for it.
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    texts = (msgspec.json.encode(value), repr(value).encode(), str(whole).encode())
    return any(text in record for text in texts)


class _Changing:
    """Puts something into places of a file, one at a time, and looks whether the record tells."""

    def __init__(self, module: Format, document: Document, numbers: list[int]) -> None:
        self._module, self._values, self._numbers = module, document.values, numbers
        found = self._found(document.values)
        self._record, self._heard, self._talks = written(found), heard(found), _talks(found)
        self._places = list(spots(document.values))

    def _found(self, values: list[Any]) -> list[ImportedSession]:
        lines = zip(self._numbers, map(closed, values), strict=True)
        return list(self._module.read(list(lines), _SOURCE))

    def fault(self, random: Random, where: str | None) -> Fault | None:
        """Try some places, or all of a shape."""
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
                    return self._told("mark lost", number, put)
            for put in others:
                if self._with(number, put) == self._record:
                    return self._told("same record", number, put)
            if self._unheard(number):
                return self._told("unheard", number, _ROLE)
        return None

    def _unheard(self, number: int) -> bool:
        """True if a judge no longer reads what a message says when its role is another word."""
        spot = self._places[number]
        if spot.key != "role" or not isinstance(spot.value, str) or "content" not in spot.holder:
            return False
        said = spot.holder["content"]
        if not is_words(said) or said not in self._heard:
            return False
        found = self._found(self._changed(number, _ROLE))
        # A talk in which nobody has a known role is none.
        return _talks(found) == self._talks and said not in heard(found)

    def _with(self, number: int, put: Any) -> bytes:
        return written(self._found(self._changed(number, put)))

    def _changed(self, number: int, put: Any) -> list[Any]:
        values: list[Any] = copied(self._values)
        spot = next(islice(spots(values), number, None))
        spot.holder[spot.key] = put
        return values

    def _told(self, kind: str, number: int, put: Any) -> Fault:
        spot = self._places[number]
        return Fault(kind, _shape(spot.path), f"{closed(spot.value)!r:.60} -> {put!r:.60}")

    def _others(self, number: int) -> list[Any]:
        """The other texts or numbers of the file that may stand in a place."""
        spot = self._places[number]
        if isinstance(spot.value, bool):
            return [not spot.value]
        if not spot.is_single or spot.value != spot.value:
            return []
        kind = str if isinstance(spot.value, str) else int | float
        alike = [p.value for p in self._places if p.is_single and isinstance(p.value, kind)]
        alike = list(dict.fromkeys(value for value in alike if value != spot.value))
        # Another word of that kind may well mean the same.
        return [it for it in alike if not _WORD.fullmatch(str(it))] if _is_form(spot) else alike


def _talks(found: list[ImportedSession]) -> int:
    """In how many sessions there is something to read."""
    return sum(bool(heard([one])) for one in found)


def _shape(path: tuple[Any, ...]) -> str:
    """A path by its last names, without the numbers."""
    names = [key[:30] for key in path if isinstance(key, str)]
    return ".".join(names[-3:])
