"""JSON documents: a list of records, an object that holds one, or records one after the other."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.datasets.faults import Fault, Refuse, SharedLine, Unfit, shortened
from proctor.datasets.files import not_utf8, open_data
from proctor.datasets.iterator import FileStream
from proctor.datasets.jsonl import NotANumber, read_record, refuse_constant
from proctor.datasets.mapping import FIELDS, MappedKeys
from proctor.datasets.record import RecordReader, Rules
from proctor.errors import SHOWN_AT_MOST, nearest
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

# Where an object may hold its list of records.
RECORD_KEYS = ("samples", "examples", "data", "rows")
LARGEST_DOCUMENT = 512 * 1024 * 1024
A_LIST, OBJECTS = "a JSON list", "JSON objects one after the other"
AN_OBJECT = "write every sample as a JSON object"
_BLANK = " \t\r\n"
_DECODER = json.JSONDecoder(parse_constant=refuse_constant)


class JSONDataset:
    """Samples from a JSON document: a list of objects, read as a whole at each pass.

    The list may also be under `samples`, `examples`, `data` or `rows` of an object, and the objects
    may follow each other without a list. Options are those of `JSONLDataset`; for files larger than
    memory, use JSON Lines.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> path = Path(folder.name, "qa.json")
    >>> _ = path.write_text('[{"id": "1", "input": "2 + 2", "expected": "4"}]')
    >>> [sample.expected for sample in JSONDataset(path)]
    ['4']
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | Path,
        input_type: Any = Any,
        expected_type: Any = Any,
        *,
        mapping: Mapping[str, str] | None = None,
        generate_ids: bool = False,
    ) -> None:
        rules = Rules(
            input_type=input_type, expected_type=expected_type, mapping=mapping, generate_ids=generate_ids
        )
        self._reader = RecordReader(rules)
        self.stream = FileStream(Path(path), self._rows, self._reader)

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return self.stream.samples()

    def __len__(self) -> int:
        return self.inspect().length or 0

    def __repr__(self) -> str:
        return f"JSONDataset({str(self.stream.path)!r})"

    def inspect(self) -> DatasetInfo:
        """Read the whole file once: every problem in one error, or what the dataset is."""
        return self.stream.inspect()

    @property
    def info(self) -> DatasetInfo:
        """What `inspect` gives."""
        return self.inspect()

    def _rows(self, refuse: Refuse) -> Iterator[tuple[int, Sample[Any, Any]]]:
        keys = MappedKeys(self._reader.paths)
        for line, text in self._records(refuse):
            try:
                record = read_record(text.encode("utf-8", "surrogatepass"), AN_OBJECT)
                keys.see(line, record)
                sample = self._reader.sample(record)
            except Unfit as unfit:
                refuse(line, unfit.faults)
                continue
            yield line, sample
        for line, faults in keys.faults(whole=0):
            refuse(line, faults)

    def _records(self, refuse: Refuse) -> Iterator[tuple[int, str]]:
        """The text of each record with the line on which it begins."""
        text = self._text(refuse)
        if text is None:
            return
        document = _Document(text)
        try:
            yield from self._found(document)
        except _Broken as broken:
            refuse(broken.line, [broken.fault])

    def _found(self, document: _Document) -> Iterator[tuple[int, str]]:
        start = document.skip_blank(0)
        if document.text.startswith("[", start):
            self.stream.details = {"format": "json", "recognised": A_LIST}
            end = yield from document.items(start)
            document.refuse_more(end)
            return
        value, end = document.value(start)
        if document.skip_blank(end) < len(document.text) or self._is_record(value):
            self.stream.details = {"format": "json", "recognised": OBJECTS}
            yield from document.sequence(start)
            return
        name = _list_in(value)
        if name is None:
            raise _Broken(0, _without_list(value, self.stream.path))
        if rivals := _rivals(value, name):
            raise _Broken(0, _several_lists(value, [name, *rivals], self.stream.path))
        recognised = f"a JSON object with a list under {name!r}"
        if others := [str(key) for key in value if key != name]:
            recognised += f"; other keys are not read: {_listed(others)}"
        self.stream.details = {"format": "json", "recognised": recognised}
        yield from document.items(document.start_of(name, start))

    def _is_record(self, value: Any) -> bool:
        """True if a single object is meant to be a sample itself."""
        known = {*FIELDS, *self._reader.paths}
        return isinstance(value, dict) and not known.isdisjoint(value) and _list_in(value) is None

    def _text(self, refuse: Refuse) -> str | None:
        with open_data(self.stream.file) as file:
            data = file.read(LARGEST_DOCUMENT + 1)
        if len(data) > LARGEST_DOCUMENT:
            what = f"the document is larger than {LARGEST_DOCUMENT:,} bytes"
            refuse(0, [Fault("", what, "write JSON Lines, which are read line by line: .jsonl")])
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            start = data.rfind(b"\n", 0, error.start) + 1
            line = data.count(b"\n", 0, error.start) + 1
            refuse(line, [not_utf8(data, error.start, error.start - start)])
            return None
        if not text.strip(_BLANK):
            what = "no samples: the file is empty"
            refuse(0, [Fault("", what, "check that it is the right file")])
            return None
        return text


class _Broken(Exception):
    """Raised where a document cannot be read further; `line` 0 is the whole file."""

    def __init__(self, line: int, fault: Fault) -> None:
        super().__init__(fault)
        self.line = line
        self.fault = fault


class _Place(NamedTuple):
    """A position in the text and the number of its line."""

    position: int
    line: int


class _Document:
    """The text of a document, and where its values begin and end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._length = len(text.rstrip(_BLANK))
        self._last = _Place(0, 1)

    def skip_blank(self, position: int) -> int:
        """The first position from here on that is not blank."""
        text, end = self.text, len(self.text)
        while position < end and text[position] in _BLANK:
            position += 1
        return position

    def line(self, position: int) -> int:
        """The line of a position; positions are asked for in ascending order."""
        last = self._last if position >= self._last.position else _Place(0, 1)
        number = last.line + self.text.count("\n", last.position, position)
        self._last = _Place(position, number)
        return number

    def value(self, position: int) -> tuple[Any, int]:
        """The value that begins at a position, and where it ends."""
        try:
            return _DECODER.raw_decode(self.text, position)
        except json.JSONDecodeError as error:
            raise self._broken(error) from None
        except NotANumber as error:
            what, fix = f"not JSON: {error} is not a number", "write null, or leave the key out"
            raise _Broken(self.line(position), Fault("", what, fix)) from None
        except RecursionError:
            raise _Broken(self.line(position), Fault("", "the JSON is nested too deep")) from None
        except ValueError:
            fault = Fault("", "a number is out of range", "write it as a string")
            raise _Broken(self.line(position), fault) from None

    def items(self, start: int) -> Generator[tuple[int, str], None, int]:
        """The text of each item of the list that begins at a position; returns where it ends."""
        position = self.skip_blank(start + 1)
        if self.text.startswith("]", position):
            raise _Broken(0, Fault("", "no samples: the list is empty"))
        places = _Places(self)
        while True:
            _, end = self.value(position)
            comma = self.skip_blank(end)
            following = self.skip_blank(comma + 1) if self.text.startswith(",", comma) else None
            yield places.of(position, following), self.text[position:end]
            if self.text.startswith("]", comma):
                return comma + 1
            self._expect(",", comma)
            position = self.skip_blank(comma + 1)

    def sequence(self, position: int) -> Iterator[tuple[int, str]]:
        """The text of each value that follows the other."""
        places = _Places(self)
        while position < len(self.text):
            _, end = self.value(position)
            following = self.skip_blank(end)
            is_last = following >= len(self.text)
            yield places.of(position, None if is_last else following), self.text[position:end]
            position = following

    def start_of(self, name: str, position: int) -> int:
        """Where the value of a key begins, in the object that begins at a position."""
        position = self.skip_blank(position + 1)
        found: int | None = None
        while True:
            key, end = self.value(position)
            key_line = self.line(position)
            position = self.skip_blank(self.skip_blank(end) + 1)
            if key == name:
                if found is not None:
                    what = f"the key {name!r} is repeated"
                    raise _Broken(key_line, Fault("", what, "keep all samples in one list"))
                found = position
            _, end = self.value(position)
            position = self.skip_blank(end)
            if not self.text.startswith(",", position):
                assert found is not None
                return found
            position = self.skip_blank(position + 1)

    def refuse_more(self, position: int) -> None:
        """Refuse anything behind the end of the document."""
        position = self.skip_blank(position)
        if position < len(self.text):
            rest = shortened(repr(self.text[position : position + 80]))
            what = f"not JSON: there is more text after the end of the list: {rest}"
            raise _Broken(self.line(position), Fault("", what, "keep all samples in one list"))

    def _expect(self, sign: str, position: int) -> None:
        if not self.text.startswith(sign, position):
            message = f"expecting '{sign}' delimiter"
            raise self._broken(json.JSONDecodeError(message, self.text, position))

    def _broken(self, error: json.JSONDecodeError) -> _Broken:
        if error.pos >= self._length or error.msg.startswith("Unterminated"):
            what = "the file ends before its JSON does"
            return _Broken(error.lineno, Fault("", what, "check that the file is complete"))
        what = f"not JSON: {error.msg.lower()}, at character {error.colno} of the line"
        return _Broken(error.lineno, Fault("", what, "correct the JSON at this place"))


class _Places:
    """Where the samples of a document begin; one that shares its line has its number as well."""

    def __init__(self, document: _Document) -> None:
        self._document = document
        self._count = 0
        self._line_before = 0

    def of(self, position: int, following: int | None) -> int:
        """The place of the next sample; `following` is where the one after it begins, if any."""
        self._count += 1
        line = self._document.line(position)
        text = self._document.text
        ends_line = following is None or text.find("\n", position, following) >= 0
        is_shared = line == self._line_before or not ends_line
        self._line_before = line
        return SharedLine(line, self._count) if is_shared else line


def _list_in(value: Any) -> str | None:
    """The key under which an object holds a list of records."""
    if not isinstance(value, dict) or "input" in value:
        return None
    return next((key for key in RECORD_KEYS if isinstance(value.get(key), list)), None)


def _record_lists(value: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The lists of objects in an object, by key."""
    return {
        str(key): item
        for key, item in value.items()
        if isinstance(item, list) and item and all(isinstance(one, dict) for one in item[:1])
    }


def _rivals(value: Mapping[str, Any], name: str) -> list[str]:
    """Other keys whose lists look like samples too: their objects have keys in common."""
    lists = _record_lists(value)
    own = lists.get(name)
    if own is None:
        return []
    return [key for key, item in lists.items() if key != name and own[0].keys() & item[0].keys()]


def _several_lists(value: Mapping[str, Any], names: Sequence[str], path: Path) -> Fault:
    lists = _record_lists(value)
    counts = _listed(f"{name!r} ({len(lists[name]):,})" for name in names)
    what = f"several lists of the object may be the samples: {counts}"
    return Fault("", what, _how_to_choose(names[0], path))


def _listed(names: Iterable[str]) -> str:
    """Names for a message: all of them, up to a number that is still readable."""
    shown = [shortened(name) for name in names]
    more = f", … and {len(shown) - SHOWN_AT_MOST} more" if len(shown) > SHOWN_AT_MOST else ""
    return ", ".join(shown[:SHOWN_AT_MOST]) + more


def _how_to_choose(name: str, path: Path) -> str:
    """What to type to write one list of an object into a file."""
    new = f"{path.name.removesuffix('.gz').removesuffix('.json')}-{name}.json"
    opened = "__import__('gzip').open" if path.name.endswith(".gz") else "open"
    return (
        f"write one of the lists to a file of its own, for example: python -c "
        f'"import json; json.dump(json.load({opened}({str(path)!r}))[{name!r}], '
        f"open({new!r}, 'w'))\""
    )


def _without_list(value: Any, path: Path) -> Fault:
    if not isinstance(value, dict):
        return Fault("", "no samples: the document is neither a list nor an object")
    keys = _listed(map(str, value)) or "none"
    likely = next((told for key in value if "did you" in (told := nearest(key, RECORD_KEYS))), "")
    fix = f"put the samples into a list, alone or under {', '.join(RECORD_KEYS)}"
    what = f"no samples: the object has no list of them; its keys are: {keys}"
    lists = _record_lists(value)
    if lists:
        counts = _listed(f"{key!r} ({len(item):,})" for key, item in lists.items())
        what = (
            f"no samples: the keys {', '.join(RECORD_KEYS)} are missing; the keys are: {keys}; "
            f"lists of objects are under: {counts}"
        )
        fix = (
            f"{_how_to_choose(next(iter(lists)), path)}; if the file holds chats or traces, name "
            "their format: --format NAME"
        )
    return Fault("", what, f"{likely} {fix}".strip())
