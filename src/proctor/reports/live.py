"""A run while it goes on: a live bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO

from proctor.ports import RunView
from proctor.records.trial import Outcome
from proctor.reports.format import count, line

if TYPE_CHECKING:
    from rich.console import RenderableType

LINE_EVERY_SECONDS = 5.0
SLOW_AFTER_SECONDS = 5.0
NAME_LIMIT = 40
NOTICE_LIMIT = 500
BAR_WIDTH = 60

Display = Callable[[RunView], AbstractContextManager[object]]
Outcomes = Callable[[Mapping[Outcome, int]], list[str]]


def live_display(
    wanted: bool | None = None, stream: TextIO | None = None, *, outcomes: Outcomes | None = None
) -> Display | None:
    """How a run shows its progress: True always, None only in a terminal, False not at all.

    `outcomes` says how it goes, in words; by default how many passed and how many failed.
    """
    tell = functools.partial(summary, told=outcomes or _judged)
    stream = stream or sys.stderr
    terminal = stream.isatty()
    if wanted is False or (wanted is None and not terminal):
        return None
    if terminal:
        return lambda view: _bar(view, stream, tell)
    return lambda view: _lines(view, stream, tell)


def _judged(outcomes: Mapping[Outcome, int]) -> list[str]:
    return [
        f"{outcomes['passed']} passed",
        f"{outcomes['failed']} failed",
        count(outcomes["error"] + outcomes["unscored"], "error"),
    ]


def summary(view: RunView, told: Outcomes = _judged) -> str:
    """One line: how far, how it goes, how fast, how long still."""
    outcomes = view.outcomes
    share = f"/{view.total} ({100 * view.done // view.total} %)" if view.total else ""
    parts = [f"{view.done}{share}", *told(outcomes)]
    if outcomes["skipped"]:
        parts.append(f"{outcomes['skipped']} skipped")
    if view.rate is not None:
        parts.append(f"{view.rate:,.{0 if view.rate >= 10 else 1}f}/s")
    if view.seconds_left is not None and view.total and view.done < view.total:
        parts.append(f"{_duration(view.seconds_left)} left")
    if view.resumed:
        parts.append(f"{view.resumed} from before")
    return ", ".join(parts)


def notes(view: RunView) -> Iterator[str]:
    """What else is worth saying: that it is stopping, and which samples take long."""
    running = view.running()
    if view.notice:
        yield line(view.notice, NOTICE_LIMIT)
    if getattr(view, "dropping", False):
        yield "stopping: samples in flight are dropped; a resumed run begins them again"
    elif view.stopping and running:
        yield f"stopping: {len(running)} in flight are finished first; Ctrl-C again drops them"
    slow = [
        f"{line(name, NAME_LIMIT)} ({_duration(age)})" for name, age in running if age > SLOW_AFTER_SECONDS
    ]
    if slow:
        more = f" and {len(slow) - 3} more" if len(slow) > 3 else ""
        yield f"still running: {', '.join(slow[:3])}{more}"


@contextlib.contextmanager
def _bar(view: RunView, stream: TextIO, tell: Callable[[RunView], str]) -> Iterator[None]:
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream)
    with Live(
        get_renderable=lambda: _picture(view, tell(view)),
        console=console,
        refresh_per_second=8,
        transient=True,
    ):
        yield
    console.print(tell(view), highlight=False, markup=False)


def _picture(view: RunView, told: str) -> RenderableType:
    from rich.text import Text

    lines = [Text(told, no_wrap=True, overflow="ellipsis")]
    if view.total:
        full = min(BAR_WIDTH, BAR_WIDTH * view.done // view.total)
        bar = Text("━" * full, style="green").append("─" * (BAR_WIDTH - full), style="dim")
        lines.insert(0, bar)
    lines += [Text(note, style="yellow") for note in notes(view)]
    return Text("\n").join(lines)


@contextlib.contextmanager
def _lines(view: RunView, stream: TextIO, tell: Callable[[RunView], str]) -> Iterator[None]:
    ended = threading.Event()

    def say() -> None:
        # A run goes on although nobody reads any more how far it is (`2>&1 | head`).
        with contextlib.suppress(BrokenPipeError):
            print("; ".join([tell(view), *notes(view)]), file=stream, flush=True)

    def work() -> None:
        while not ended.wait(LINE_EVERY_SECONDS):
            say()

    thread = threading.Thread(target=work, name="proctor-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        say()


def _duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> _duration(7), _duration(61), _duration(3700)
    ('7 s', '1 min 1 s', '1 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
