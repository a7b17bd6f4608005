"""The code blocks of a page: what stands between its fences, and what each is for.

- `python` is run; the blocks of a page share their names, as the cells of a notebook do.
- `text` directly below a `python` block is what that block prints.
- `console` holds commands after `$ `, and below each what it prints.
- `title="app.py"` after the language makes any block a file: it is written, and not run.
- `…` in anything printed stands for anything; on a line of its own, for any number of lines.
- Columns may have other widths, which depend on measured times.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

FENCE = re.compile(r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.M | re.S)
ANYTHING = "…"


class Block(NamedTuple):
    """One fenced block: its language, the file it is (if it is one), its text and its place."""

    language: str
    title: str | None
    text: str
    line: int
    shown: str | None = None


class Command(NamedTuple):
    """One line that somebody types, and what is printed below it."""

    typed: str
    shown: str


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page in order; output belongs to the Python block above it."""
    result = list(FENCE.finditer(page))
    _refuse_odd_fences(page, len(result))
    blocks: list[Block] = []
    end = 0
    for match in result:
        block = Block(match["language"], match["title"], match["text"], _line(page, match.start()))
        above = blocks[-1] if blocks else None
        touching = not page[end : match.start()].strip()
        if block.language == "text" and above and above.language == "python" and touching:
            blocks[-1] = above._replace(shown=block.text)
        else:
            blocks.append(block)
        end = match.end()
    return blocks


def commands_of(text: str) -> list[Command]:
    """What is typed in a console block, each line with what it prints."""
    parts = re.split(r"^\$ ", text, flags=re.M)
    assert not parts[0].strip(), f"a console block begins with a command, not with {parts[0]!r}"
    lines = [part.partition("\n") for part in parts[1:]]
    return [Command(typed.strip(), output.rstrip()) for typed, _, output in lines]


def says(output: str, printed: str) -> bool:
    """True if what was printed is what the page shows."""
    pattern = "".join(_line_pattern(line) for line in output.rstrip().splitlines())
    lines = "".join(line.rstrip() + "\n" for line in printed.rstrip().splitlines())
    return re.fullmatch(pattern, lines) is not None


def _line_pattern(line: str) -> str:
    if line.strip() == ANYTHING:
        return r"(?:.*\n)*"
    pattern = re.escape(line.rstrip()).replace(re.escape(ANYTHING), ".*")
    return re.sub(r"(?:\\ ){2,}", r"\\ {2,}", re.sub("─{2,}", "─+", pattern)) + r"\n"


def _line(page: str, offset: int) -> int:
    return page.count("\n", 0, offset) + 1


def _refuse_odd_fences(page: str, count: int) -> None:
    """A fence that is indented, or never closed, would be passed over in silence."""
    fences = len(re.findall(r"^\s*```", page, re.M))
    assert fences == 2 * count, f"{fences} fences make {count} blocks: is one indented or open?"
