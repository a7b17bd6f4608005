"""Format text for reports: excerpts, numbers with units, terminal output, and escaped Markdown."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from proctor.records import codec
from proctor.records.formatting import format_cost, format_count, format_estimate
from proctor.records.metric import MetricValue

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

DASH = "—"
MISSING_SHARE_MENTIONED = 0.05
_LINE_END = re.compile("\r\n|[\r\u2028\u2029]")
# Control characters can move a terminal's cursor, and direction marks can reorder a line.
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def to_text(value: Any) -> str:
    """Return a string unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else codec.to_text(value)


def excerpt(value: Any, limit: int) -> str:
    """Return a value as text of about `limit` characters; line breaks are preserved."""
    text = to_text(value)
    hidden_count = len(text) - limit
    if hidden_count > 0:
        text = f"{text[:limit]}… ({format_count(hidden_count, 'more character')})"
    return _INVISIBLE.sub(_visible_symbol, _LINE_END.sub("\n", text).replace("\t", "    "))


def _visible_symbol(match: re.Match[str]) -> str:
    code = ord(match.group())
    return chr(0x2400 + code) if code < 0x20 else "\N{REPLACEMENT CHARACTER}"


def single_line(value: Any, limit: int) -> str:
    """Return an excerpt on one line, with line breaks shown as ⏎."""
    return " ⏎ ".join(text.strip() for text in excerpt(value, limit).strip().split("\n"))


def shorten_lines(value: Any, limit: int, lines: int) -> str:
    """Return the start and the end of a text, about `limit` characters on at most `lines` lines."""
    text = to_text(value)
    if len(text) > limit:
        tail = limit // 3
        hidden_count = len(text) - limit
        text = f"{text[: limit - tail]}\n… ({format_count(hidden_count, 'character')}) …\n{text[-tail:]}"
    rows = excerpt(text, len(text)).strip("\n").split("\n")
    if (hidden_count := len(rows) - lines) > 0:
        tail = lines // 3
        rows = [*rows[: lines - tail], f"… ({format_count(hidden_count, 'line')}) …", *rows[-tail:]]
    return "\n".join(rows)


def wrap_lines(text: str, width: int) -> list[str]:
    """Break one line of text at spaces into lines of at most `width` columns; longer words are broken.

    >>> wrap_lines("to be or not to be", 8)
    ['to be or', 'not to', 'be']
    """
    from rich.cells import chop_cells

    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        extended = f"{current} {word}" if current else word
        if cell_width(extended) <= width:
            current = extended
            continue
        lines += [current] if current else []
        *full, current = chop_cells(word, width) or [""]
        lines += full
    return [*lines, current] if current or not lines else lines


def fold_text(text: str, width: int, lines: int) -> list[str]:
    """Return a text on at most `lines` lines of `width` columns: its start and its end, and about how much is hidden.

    >>> fold_text("to be or not to be, that is the question, whether it is nobler in the mind", 30, 2)
    ['to be or … (≈ 40 characters) …', 'it is nobler in the mind']
    """
    size = 3 * width * lines
    is_long = len(text) > 2 * size
    start = single_line(text[:size] if is_long else text, len(text))
    rows = wrap_lines(start, width)
    if len(rows) <= lines and not is_long:
        return rows
    end = single_line(text[-size:], size) if is_long else start
    # Leave out the start of the last line, not its end.
    last = wrap_lines(end[::-1], width)[0][::-1]
    *head, row = rows[: lines - 1]
    hidden_count = len(text) - sum(len(line) + 1 for line in (*head, row, last))
    while row:
        shown = f"{row} … (≈ {format_estimate(max(1, hidden_count))} characters) …"
        if cell_width(shown) <= width:
            return [*head, shown, last]
        shorter = row.rpartition(" ")[0] or row[:-1]
        hidden_count += len(row) - len(shorter)
        row = shorter
    return [*head, "…", last]


# Names are broken after these characters, and before a dot.
_NAME_PARTS = re.compile(r"\.?[^._\-/:@ ]*[_\-/:@ ]*")


def break_name(name: str, width: int) -> list[str]:
    """Break a name at its joints into lines of at most `width` columns; longer parts are broken anywhere.

    >>> break_name("semantic_similarity.pass_rate", 20)
    ['semantic_similarity', '.pass_rate']
    """
    from rich.cells import chop_cells

    lines = [""]
    for part in filter(None, _NAME_PARTS.findall(name)):
        for piece in chop_cells(part, width) if cell_width(part.rstrip()) > width else [part]:
            if cell_width(f"{lines[-1]}{piece}".rstrip()) <= width:
                lines[-1] += piece
            else:
                lines.append(piece)
    return [line.strip() for line in lines if line.strip()] or [name]


def join_facts(facts: Sequence[str], width: int) -> list[str]:
    """Join facts with dots, and break lines between facts if possible."""
    lines: list[str] = []
    for fact in facts:
        joined = f"{lines[-1]} · {fact}" if lines else fact
        if lines and cell_width(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(fact)
    return lines


def cell_width(text: str) -> int:
    """Return the number of terminal columns of a text."""
    from rich.cells import cell_len

    return cell_len(text)


def hanging_lines(start: str, lines: Sequence[str]) -> list[str]:
    """Put `start` before the first line and indent the others by its width."""
    indent = " " * cell_width(start)
    return [(indent if number else start) + line for number, line in enumerate(lines)]


def format_percent(value: float) -> str:
    """Format a share as a percentage; only an exact 1 is 100.0% and only an exact 0 is 0.0%."""
    text = f"{100 * value:.1f}%"
    if text == "100.0%" and value < 1:
        return ">99.9%"
    return "<0.1%" if text == "0.0%" and value > 0 else text


def format_metric(metric: MetricValue) -> str:
    """Format the value of a metric with its unit."""
    if metric.value is None:
        return DASH
    if metric.kind == "rate":
        return format_percent(metric.value)
    return _format_number(metric.value, metric) + _unit_suffix(metric)


def format_interval(metric: MetricValue) -> str:
    """Format the 95% interval of a metric, or a dash."""
    return DASH if metric.interval is None else _format_range(metric.interval, metric)


def format_missing(metric: MetricValue) -> str:
    """Describe how many results a metric could not use."""
    facts = (
        format_count(metric.errors, "error") if metric.errors else "",
        f"{metric.skipped:,} skipped" if metric.skipped else "",
    )
    return ", ".join(filter(None, facts)) or "0"


def format_bounds(metric: MetricValue) -> str:
    """Describe how far missing results could move a metric; empty if few are missing."""
    total = metric.n + metric.missing
    if metric.bounds is None or metric.missing <= MISSING_SHARE_MENTIONED * total:
        return ""
    missing = f"{metric.missing:,} of {total:,} {'is' if metric.missing == 1 else 'are'} missing"
    return f"{missing}: {_format_range(metric.bounds, metric)}, depending on whether they fail or pass"


def format_duration(seconds: float) -> str:
    """Format a duration."""
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    rounded = round(seconds)
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60:02} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60:02} min"


def _format_range(interval: tuple[float, float], metric: MetricValue) -> str:
    if metric.kind == "rate":
        bounds, unit = [f"{100 * value:.1f}" for value in interval], "%"
    else:
        bounds, unit = [_format_number(value, metric) for value in interval], _unit_suffix(metric)
    # A minus sign after a dash is hard to read.
    return (" to " if interval[0] < 0 else "–").join(bounds) + unit


def _unit_suffix(metric: MetricValue) -> str:
    return f" {metric.unit}" if metric.unit and metric.unit != "USD" else ""


def _format_number(value: float, metric: MetricValue) -> str:
    if metric.unit == "USD":
        return format_cost(value)
    if metric.kind in ("mean", "quantile") and not metric.unit:
        return f"{value:.3f}"
    if abs(value) >= 100 or (value == int(value) and metric.kind in ("count", "number")):
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:.1f}" if metric.unit and abs(value) >= 10 else f"{value:.3g}"


def styled_text(content: str, style: str = "", *, limit: int = 1000, wrap: bool = True) -> Text:
    """Return one line for the terminal, without markup and control characters; the indentation is preserved."""
    from rich.text import Text

    indent = " " * (len(content) - len(content.lstrip(" ")))
    text = indent + single_line(content, limit)
    return Text(text, style=style, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")


def table_cell(content: str, style: str = "", *, limit: int = 100) -> Text:
    """Return the lines of a cell, each of at most `limit` characters."""
    from rich.text import Text

    lines = [styled_text(text, style, limit=limit) for text in content.split("\n")]
    return Text("\n", style=style, overflow="fold").join(lines)


def new_table(gap: int = 1, *, left: int = 1) -> Table:
    """Return an empty table with a line below its headings."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, gap, 0, left))


def print_rendered(render: Callable[[int, bool], str], file: TextIO | None = None) -> None:
    """Print the result of `render(width, color)` for the terminal's width and colors."""
    from rich.console import Console

    file = file or sys.stdout
    terminal = Console(file=file)
    color = terminal.is_terminal and not (terminal.no_color or terminal.is_dumb_terminal)
    file.write(render(terminal.width, color))


def render_parts(parts: Iterable[RenderableType], width: int, color: bool) -> str:
    """Render parts below each other, in lines of at most `width` columns."""
    from rich.console import Console, Group

    # With an empty environment, the same parts render to the same text everywhere.
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        # Texts contain no markup, and the parts choose their styles.
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )
    with console.capture() as captured:
        console.print(Group(*parts))
    return "".join(text.rstrip() + "\n" for text in captured.get().splitlines())


# An underscore inside a word and a lone & have no special meaning in Markdown.
_SPECIAL = re.compile(r"[\\`*\[\]<|~$#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|&(?=[#A-Za-z])")
_BACKTICKS = re.compile("`+")
# GitHub turns these into links or mentions.
_LINK_STARTS = re.compile(r"(?<=@)|(?<=://)|(?<=www\.)|(?<=#)(?=\d)|(?<=\bGH-)|(?<=mailto:)|(?<=xmpp:)")


def escape(text: str) -> str:
    """Escape one line of text for Markdown."""
    return _SPECIAL.sub(r"\\\g<0>", text.replace("\n", " "))


def disable_links(text: str) -> str:
    """Break mentions and links with zero-width spaces, which are invisible."""
    return _LINK_STARTS.sub("\u200b", text)


def escape_untrusted(text: str) -> str:
    """Escape one line of text for Markdown and disable its mentions and links."""
    return disable_links(escape(text))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is left-aligned, the others right-aligned."""
    rule = [":---"] + ["---:"] * (len(header) - 1)
    cells = [[escape(cell) for cell in row] for row in (header, *rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))


def markdown_bullet(label: str, text: str) -> str:
    """Return a list item; text of several lines becomes a code block below the label."""
    if "\n" not in text:
        return f"- **{escape(label)}**: {escape(text)}"
    # The fence is longer than any run of backticks in the text.
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    block = "\n".join(f"  {row}" if row else "" for row in f"{fence}text\n{text}\n{fence}".split("\n"))
    return f"- **{escape(label)}**:\n\n{block}"
