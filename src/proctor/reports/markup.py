"""Markdown that data cannot break: escaped text, tables, lists and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
