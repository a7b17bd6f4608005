"""The formats by their names, and which options each of them takes."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date as calendar_day
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from proctor.errors import EvaluatorError
from proctor.evaluators.formats import json_text, markup, scalars
from proctor.evaluators.formats import markup as markdown
from proctor.evaluators.formats import scalars as addresses
from proctor.evaluators.formats.fault import Fault, Terms, at
from proctor.evaluators.verdict import shown

if TYPE_CHECKING:
    from yaml.nodes import Node


def comma_separated(text: str, terms: Terms) -> Fault | None:
    """A table by RFC 4180: every row has as many values, quotation marks are closed.

    Empty lines are passed over. With `header` the first row names the columns, each once.
    """
    return _table(_csv_rows(text, terms.delimiter), terms)


def tab_separated(text: str, terms: Terms) -> Fault | None:
    """A table with tabs between the values, which therefore hold none, and no quotation marks."""
    return _table(_tsv_rows(text), terms)


def _csv_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]] | Fault]:
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    start = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if "limit" in str(error):
                raise EvaluatorError(f"a value is too long to be read: {error}") from None
            yield Fault(str(error), start)
            break
        if row:
            yield start, row
        start = reader.line_num + 1


def _tsv_rows(text: str) -> Iterator[tuple[int, list[str]] | Fault]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line:
            yield number, line.split("\t")


def _table(rows: Iterator[tuple[int, list[str]] | Fault], terms: Terms) -> Fault | None:
    width = None
    for row in rows:
        if isinstance(row, Fault):
            return row
        number, values = row
        if width is None:
            width = len(values)
            if fault := _first_row(number, values, terms):
                return fault
        elif len(values) != width:
            unit = "value" if len(values) == 1 else "values"
            return Fault(f"the row has {len(values)} {unit}, the first one has {width}", number)
    return Fault("there is no row") if width is None else None


def _first_row(line: int, values: list[str], terms: Terms) -> Fault | None:
    wanted = terms.columns
    if wanted is None and len(values) == 1:
        return Fault("there is a single column, as in any text (columns=1 allows it)", line)
    if isinstance(wanted, int) and wanted != len(values):
        unit = "column" if len(values) == 1 else "columns"
        return Fault(f"it has {len(values)} {unit}, not {wanted}", line)
    if isinstance(wanted, tuple) and list(wanted) != values:
        return Fault(f"the columns are {', '.join(values)}, not {', '.join(wanted)}", line)
    if not terms.header:
        return None
    names = [name.strip() for name in values]
    if "" in names:
        return Fault(f"column {names.index('') + 1} has no name", line)
    name, count = Counter(names).most_common(1)[0]
    return Fault(f"{count} columns are called {name!r}", line) if count > 1 else None


_PLACE = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_MERGE = "tag:yaml.org,2002:merge"
# The parsers of YAML and TOML take the square of the time for what is nested deeper than this.
_DEEPEST = 200
_LONGEST_LINE = 20_000
_BRACKETS = re.compile(r"[\[\]{}]")
_LONG_KEY = re.compile(rf"(?<![\w.-])(?:[\w-]++\.){{{_DEEPEST}}}")
_TOO_DEEP = Fault("it is nested too deep to be read")


def json(text: str, _: Terms) -> Fault | None:
    """JSON by RFC 8259."""
    return json_text.read(text).fault


def toml(text: str, _: Terms) -> Fault | None:
    """TOML 1.0, by the standard library's parser."""
    import tomllib

    if not text.strip():
        return Fault("the text is empty")
    if max(map(len, text.splitlines()), default=0) > _LONGEST_LINE:
        # The standard library's parser takes quadratic time for a long dotted key.
        raise EvaluatorError(f"a line in it has more than {_LONGEST_LINE:,} characters")
    if _LONG_KEY.search(text):
        raise EvaluatorError(f"a key in it has more than {_DEEPEST} parts")
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = _PLACE.sub("", str(error))
        found = _PLACE.search(str(error))
        if found is None or found[1] is None:
            return at(text, len(text), what)
        return Fault(what, int(found[1]), int(found[2]))
    except RecursionError:
        return _TOO_DEEP
    return None


def yaml(text: str, _: Terms) -> Fault | None:
    """YAML 1.1 that builds plain data only, with a mapping or a list at the top.

    A single text is refused, since any prose is one; so are keys that repeat.
    """
    from yaml import SafeLoader, YAMLError, compose

    if _depth(text) > _DEEPEST:
        raise EvaluatorError(f"more than {_DEEPEST} brackets stand open in it at once")
    try:
        node = compose(text, Loader=SafeLoader)
        if node is None:
            return Fault("the text is empty")
        if not isinstance(node.value, list):
            return Fault("it is a single value, as any prose is, and neither a mapping nor a list")
        return next(_odd_nodes(node), None)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = str(getattr(error, "problem", None) or error).partition("\n")[0]
        return Fault(what) if mark is None else Fault(what, mark.line + 1, mark.column + 1)
    except RecursionError:
        return _TOO_DEEP


def python(text: str, _: Terms) -> Fault | None:
    """Python that compiles, in the version that Proctor runs on; nothing is run."""
    import ast
    import warnings

    if not text.strip():
        return Fault("the text is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return Fault(error.msg, error.lineno or 0, error.offset or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return _TOO_DEEP if not isinstance(error, ValueError) else Fault(str(error))
    return None


def _depth(text: str) -> int:
    """How many brackets stand open at most, those in quotation marks among them."""
    steps = (1 if match[0] in "[{" else -1 for match in _BRACKETS.finditer(text))
    return max(accumulate(steps), default=0)


def _odd_nodes(top: Node) -> Iterator[Fault]:
    """Tags that only code could build, and keys that a mapping has twice."""
    from yaml import MappingNode, SafeLoader, ScalarNode

    seen: set[int] = set()
    waiting: list[Any] = [top]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        if node.tag not in SafeLoader.yaml_constructors and node.tag != _MERGE:
            yield Fault(f"the tag {node.tag} does not stand for plain data", line, column)
        if isinstance(node, MappingNode):
            keys = [key for key, _ in node.value if isinstance(key, ScalarNode)]
            yield from _repeated(keys)
        if not isinstance(node, ScalarNode):
            inner = [part for one in node.value for part in (one if isinstance(one, tuple) else (one,))]
            waiting += reversed(inner)


def _repeated(keys: list[Any]) -> Iterator[Fault]:
    seen = set()
    for key in keys:
        named = (key.tag, key.value)
        if named in seen:
            place = key.start_mark
            yield Fault(f"the key {key.value!r} stands twice", place.line + 1, place.column + 1)
        seen.add(named)


_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?")
_TO_THE_SECOND = re.compile(r":[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})\Z")
_AMOUNT = r"[0-9]+(?:[.,][0-9]+)?"
_DURATION = re.compile(
    rf"P(?=[0-9T])(?:{_AMOUNT}W|(?:{_AMOUNT}Y)?(?:{_AMOUNT}M)?(?:{_AMOUNT}D)?"
    rf"(?:T(?=[0-9])(?:{_AMOUNT}H)?(?:{_AMOUNT}M)?(?:{_AMOUNT}S)?)?)"
)
# Only the smallest unit may have a fraction.
_EARLY_FRACTION = re.compile(r"[.,][0-9]+[A-Z].*[0-9]")


def date(text: str, _: Terms) -> Fault | None:
    """A day that the calendar has, written YYYY-MM-DD."""
    found = _DATE.fullmatch(text)
    if found is None:
        return Fault(f"{shown(text)} is not written YYYY-MM-DD")
    try:
        calendar_day(*map(int, found.groups()))
    except ValueError as error:
        return Fault(f"there is no day {text}: {error}")
    return None


def time(text: str, _: Terms) -> Fault | None:
    """A time of day, written HH:MM or HH:MM:SS, with or without an offset."""
    found = _TIME.fullmatch(text)
    if found is None:
        return Fault(f"{shown(text)} is not written HH:MM[:SS] with or without an offset")
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    midnight = (hour, minute, second) == (24, 0, 0)
    # A minute may have a 61st second.
    if not midnight and (hour > 23 or minute > 59 or second > 60):
        return Fault(f"a day has no time {text}")
    offset = re.findall("[0-9]{2}", found[4] or "")
    if any(int(part) > limit for part, limit in zip(offset, (23, 59), strict=False)):
        return Fault(f"there is no offset {found[4]}")
    return None


def datetime(text: str, terms: Terms) -> Fault | None:
    """A day and a time of day by ISO 8601, with T or a space between them."""
    day, _, clock = text.replace("t", "T", 1).replace(" ", "T", 1).partition("T")
    if not clock:
        return Fault(f"{shown(text)} is not written YYYY-MM-DDTHH:MM:SS")
    return date(day, terms) or time(clock, terms)


def rfc3339(text: str, terms: Terms) -> Fault | None:
    """A moment by RFC 3339: to the second, and with its offset."""
    fault = datetime(text, terms)
    if fault is None and not _TO_THE_SECOND.search(text):
        return Fault(f"{shown(text)} has no seconds, or no offset such as Z or +01:00")
    if fault is None and text[11:13] == "24":
        return Fault("RFC 3339 writes midnight as 00:00:00")
    return fault


def duration(text: str, _: Terms) -> Fault | None:
    """A length of time by ISO 8601, such as P3DT12H or PT0.5S."""
    if _DURATION.fullmatch(text) and not _EARLY_FRACTION.search(text):
        return None
    return Fault(f"{shown(text)} is not a duration such as P3DT12H, PT0.5S or P2W")


Check = Callable[[str, Terms], Fault | None]


class Format(NamedTuple):
    """How a format is checked, which options it takes, and whether white space around it counts.

    `data` are the plain types that comply without being text.
    """

    check: Check
    options: tuple[str, ...] = ()
    strip: bool = True
    data: tuple[type, ...] = ()


FORMATS: dict[str, Format] = {
    "email": Format(addresses.email),
    "url": Format(addresses.url, ("schemes",)),
    "uri": Format(addresses.uri),
    "hostname": Format(addresses.hostname),
    "ipv4": Format(addresses.ipv4),
    "ipv6": Format(addresses.ipv6),
    "phone": Format(addresses.phone),
    "uuid": Format(addresses.uuid),
    "date": Format(date),
    "time": Format(time),
    "datetime": Format(datetime),
    "rfc3339": Format(rfc3339),
    "duration": Format(duration),
    "number": Format(scalars.number, data=(int, float)),
    "integer": Format(scalars.integer, data=(int,)),
    "boolean": Format(scalars.boolean, data=(bool,)),
    "base64": Format(scalars.base64_standard),
    "base64url": Format(scalars.base64_url),
    "hex": Format(scalars.hexadecimal),
    "semver": Format(scalars.semver),
    "regex": Format(scalars.regex, ("pattern",), strip=False),
    "json": Format(json, strip=False, data=(object,)),
    "yaml": Format(yaml, strip=False),
    "toml": Format(toml, strip=False),
    "python": Format(python, strip=False),
    "xml": Format(markup.xml),
    "html": Format(markup.html, strip=False),
    "markdown": Format(markdown.markdown, strip=False),
    "csv": Format(comma_separated, ("columns", "header", "delimiter"), strip=False),
    "tsv": Format(tab_separated, ("columns", "header"), strip=False),
}
# Other names that people use for the same thing.
ALSO = {
    "date-time": "datetime",
    "iso8601": "datetime",
    "e164": "phone",
    "int": "integer",
    "bool": "boolean",
    "md": "markdown",
    "yml": "yaml",
}
