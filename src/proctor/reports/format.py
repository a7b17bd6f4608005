"""Markdown that data cannot break: escaped text, tables, lists and code blocks."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from proctor.records import codec
from proctor.records.metric import MetricValue

if TYPE_CHECKING:
    from rich.console import RenderableType


_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_LINE_END = re.compile("\r\n|[\r\u2028\u2029]")
# Control characters can move a terminal's cursor, and marks of direction can reorder a line.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def excerpt(value: Any, limit: int) -> str:
    """A value as text of at most about `limit` characters; line ends are kept.

    >>> excerpt({"city": "Paris"}, 100)
    '{"city":"Paris"}'
    >>> excerpt("abcdefgh", 5)
    'abcde… (3 more characters)'
    """
    text = value if isinstance(value, str) else codec.in_text(value)
    hidden = len(text) - limit
    if hidden > 0:
        text = f"{text[:limit]}… ({hidden:,} more character{'' if hidden == 1 else 's'})"
    return _visible(text)


def line(value: Any, limit: int) -> str:
    """The same on one line, line ends shown as ⏎.

    >>> line("to be\\nor not", 100)
    'to be ⏎ or not'
    """
    return " ⏎ ".join(part.strip() for part in excerpt(value, limit).strip().split("\n"))


def _visible(text: str) -> str:
    text = _LINE_END.sub("\n", text).replace("\t", "    ")
    return _UNSEEN.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    return chr(0x2400 + code) if code < 0x20 else _REPLACEMENT


DASH = "—"
MENTIONED_FROM = 0.05


def percent(share: float) -> str:
    """A share in percent; only a whole is 100.0 and only nothing is 0.0.

    >>> percent(41 / 60), percent(0.9999), percent(1.0)
    ('68.3 %', '>99.9 %', '100.0 %')
    """
    text = f"{100 * share:.1f} %"
    if text == "100.0 %" and share < 1:
        return ">99.9 %"
    return "<0.1 %" if text == "0.0 %" and share > 0 else text


def count(number: int, noun: str, plural: str = "") -> str:
    """A number of things, with the right form of the word.

    >>> count(1, "error"), count(1200, "sample")
    ('1 error', '1,200 samples')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def figure(metric: MetricValue) -> str:
    """The value of a metric with its unit.

    >>> figure(MetricValue(0.5, 10, kind="rate")), figure(MetricValue(None, 0))
    ('50.0 %', '—')
    """
    if metric.value is None:
        return DASH
    unit = f" {metric.unit}" if metric.unit else ""
    return percent(metric.value) if metric.kind == "rate" else _number(metric.value, metric) + unit


def interval(metric: MetricValue) -> str:
    """The 95 % interval of a metric, or a dash.

    >>> interval(MetricValue(0.683, 60, interval=(0.558, 0.787), kind="rate"))
    '55.8–78.7 %'
    """
    return DASH if metric.interval is None else _span(*metric.interval, metric)


def missing(metric: MetricValue) -> str:
    """What a metric could not use.

    >>> missing(MetricValue(0.5, 10, errors=2, skipped=1))
    '2 errors, 1 skipped'
    """
    parts = [count(metric.errors, "error")] if metric.errors else []
    if metric.skipped:
        parts.append(f"{metric.skipped:,} skipped")
    return ", ".join(parts) or "0"


def bounds(metric: MetricValue) -> str:
    """Where a metric would lie whatever the missing ones are; empty if few are missing.

    >>> bounds(MetricValue(0.5, 8, errors=2, kind="rate"))
    '2 of 10 missing: 40.0–60.0 %, from all of them failing to all passing'
    """
    total = metric.n + metric.missing
    if metric.bounds is None or metric.missing <= MENTIONED_FROM * total:
        return ""
    span = _span(*metric.bounds, metric)
    return f"{metric.missing:,} of {total:,} missing: {span}, from all of them failing to all passing"


def duration(seconds: float) -> str:
    """A length of time.

    >>> duration(45.21), duration(185), duration(7380)
    ('45.2 seconds', '3 min 05 s', '2 h 03 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def _span(low: float, high: float, metric: MetricValue) -> str:
    """Two ends with one unit; spelt out where a minus would look like a dash."""
    unit = f" {metric.unit}" if metric.unit else ""
    if metric.kind == "rate":
        unit, ends = " %", [f"{100 * end:.1f}" for end in (low, high)]
    else:
        ends = [_number(end, metric) for end in (low, high)]
    return (" to " if low < 0 else "–").join(ends) + unit


def _number(value: float, metric: MetricValue) -> str:
    """Scores have three decimals; other numbers the digits that matter at their size."""
    if metric.kind in ("mean", "quantile") and not metric.unit:
        return f"{value:.3f}"
    if abs(value) >= 100 or (value == int(value) and metric.kind in ("count", "number")):
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:.1f}" if metric.unit and abs(value) >= 10 else f"{value:.3g}"


def printed(made: Callable[[int, bool], str], file: TextIO | None = None) -> None:
    """Print what is made for the width of the terminal, in colours if it shows any."""
    from rich.console import Console

    out = file or sys.stdout
    terminal = Console(file=out)
    colored = terminal.is_terminal and not (terminal.no_color or terminal.is_dumb_terminal)
    out.write(made(terminal.width, colored))


def rendered(parts: Iterable[RenderableType], width: int, color: bool) -> str:
    """The parts one below the other, in lines of at most `width` columns.

    >>> rendered(["one", "two"], 80, color=False)
    'one\\ntwo\\n'
    """
    from rich.console import Console, Group

    # An empty environment: the same parts give the same text wherever they are rendered.
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as captured:
        console.print(Group(*parts))
    return "".join(text.rstrip() + "\n" for text in captured.get().splitlines())


# An underscore inside a word and a lone & mean nothing; escaping them only makes names ugly.
_SPECIAL = re.compile(r"[\\`*\[\]<|~$#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|&(?=[#A-Za-z])")
_BACKTICKS = re.compile("`+")
# What GitHub makes into a link or a message to somebody, though it is only data.
_ALIVE = re.compile(r"(?<=@)|(?<=://)|(?<=www\.)|(?<=#)(?=\d)|(?<=\bGH-)|(?<=mailto:)|(?<=xmpp:)")


def escape(text: str) -> str:
    """One line of text so that Markdown shows it as it is.

    >>> print(escape("a|b <script> pass_rate *"))
    a\\|b \\<script> pass_rate \\*
    """
    return _SPECIAL.sub(r"\\\g<0>", text.replace("\n", " "))


def quiet(text: str) -> str:
    """Text that calls nobody and links nowhere, in which nothing is seen to be changed.

    >>> quiet("@ada") == "@ada", quiet("Ada")
    (False, 'Ada')
    """
    return _ALIVE.sub("\u200b", text)


def inert(text: str) -> str:
    """One line of text that Markdown shows as it is, and that calls nobody and links nowhere."""
    return quiet(escape(text))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts; the first column is set left, the others right.

    >>> print(table(["Error Type", "Count"], [["TimeoutError", "5"]]))
    | Error Type | Count |
    | :--- | ---: |
    | TimeoutError | 5 |
    """
    rule = [":---"] + ["---:"] * (len(header) - 1)
    cells = [[escape(cell) for cell in row] for row in (header, *rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))


def bullet(label: str, text: str) -> str:
    """A list item; text of several lines becomes a code block under it.

    >>> print(bullet("Input", "2 + 2"))
    - **Input**: 2 + 2
    """
    if "\n" not in text:
        return f"- **{escape(label)}**: {escape(text)}"
    block = "\n".join(f"  {part}" if part else "" for part in _fenced(text).split("\n"))
    return f"- **{escape(label)}**:\n\n{block}"


def _fenced(text: str) -> str:
    """A code block whose fence is longer than any row of backticks in the text."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
