"""Format errors with their positions, and removal of Markdown fences."""

from __future__ import annotations

import re
from typing import NamedTuple


class FormatOptions(NamedTuple):
    """The options of all formats; `FORMATS` lists the options of each format."""

    pattern: str | None = None
    columns: int | tuple[str, ...] | None = None
    header: bool = True
    delimiter: str = ","
    schemes: tuple[str, ...] | None = None


_FENCE = re.compile(r"(`{3,}|~{3,})[^`]*")


class FormatError(NamedTuple):
    """The first error in a text; lines and columns start at 1; 0 means unknown."""

    what: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.what
        column = f", column {self.column}" if self.column else ""
        return f"line {self.line}{column}: {self.what}"

    @property
    def position(self) -> dict[str, int]:
        """The line and the column for a score's details, if they are known."""
        numbers = {"line": self.line, "column": self.column}
        return {name: number for name, number in numbers.items() if number}

    def move_down(self, lines: int) -> FormatError:
        """Return the same error, moved down by `lines`."""
        return self._replace(line=self.line + lines) if self.line else self


def make_error_at(text: str, position: int, what: str) -> FormatError:
    """Create the error at a position in a text."""
    start = text.rfind("\n", 0, position) + 1
    return FormatError(what, text.count("\n", 0, position) + 1, position - start + 1)


def strip_fence(text: str) -> tuple[str, int]:
    """Return the content of a text that is a single fenced code block, and the number of lines before it."""
    lines = text.strip().split("\n")
    opening = _FENCE.fullmatch(lines[0])
    last_line = lines[-1].strip()
    if len(lines) < 2 or opening is None or set(last_line) != {opening[1][0]}:
        return text, 0
    before = text[: len(text) - len(text.lstrip())].count("\n") + 1
    return ("\n".join(lines[1:-1]), before) if last_line.startswith(opening[1]) else (text, 0)


def strip_allowed_fence(output: str | bytes | bytearray, allow_fences: bool) -> tuple[str | bytes, int]:
    """Return a string or bytes without the surrounding fence, if fences are allowed, and the number of lines before
    it."""
    if not allow_fences:
        return output if isinstance(output, str) else bytes(output), 0
    if isinstance(output, str):
        return strip_fence(output)
    try:
        return strip_fence(bytes(output).decode())
    except UnicodeDecodeError:
        return bytes(output), 0
