"""What is to be read in a terminal, as text: the same wherever it is made."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType


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
