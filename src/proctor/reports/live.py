"""Show the progress of a run: a live bar in a terminal, a line that changes in a notebook, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO

from proctor.ports import RunView
from proctor.records.formatting import format_count
from proctor.records.trial import Outcome
from proctor.reports.format import single_line

if TYPE_CHECKING:
    from rich.console import RenderableType

LINE_EVERY_SECONDS = 5.0
CELL_EVERY_SECONDS = 0.5
SLOW_AFTER_SECONDS = 5.0
NAME_LIMIT = 40
NOTICE_LIMIT = 500
BAR_WIDTH = 60

Display = Callable[[RunView], AbstractContextManager[object]]
DescribeOutcomes = Callable[[Mapping[Outcome, int]], list[str]]


def live_display(
    show: bool | None = None, stream: TextIO | None = None, *, outcomes: DescribeOutcomes | None = None
) -> Display | None:
    """Return the progress display of a run: always for True, in a terminal or notebook for None, never for False.

    `outcomes` describes the results so far; by default it counts passed, failed and errors.
    """
    describe = functools.partial(describe_progress, outcomes=outcomes or _count_verdicts)
    is_notebook = stream is None and _is_notebook()
    stream = stream or sys.stderr
    is_terminal = stream.isatty()
    if show is False or (show is None and not is_terminal and not is_notebook):
        return None
    display = _show_bar if is_terminal else _update_cell if is_notebook else _print_lines
    return lambda view: display(view, stream, describe)


def _count_verdicts(outcomes: Mapping[Outcome, int]) -> list[str]:
    return [
        f"{outcomes['passed']} passed",
        f"{outcomes['failed']} failed",
        format_count(outcomes["error"] + outcomes["unscored"], "error"),
    ]


def describe_progress(view: RunView, outcomes: DescribeOutcomes = _count_verdicts) -> str:
    """Return one line: results so far, their outcomes, speed, and time left."""
    share = f"/{view.total} ({100 * view.done // view.total}%)" if view.total else ""
    facts = [f"{view.done}{share}", *outcomes(view.outcomes)]
    if view.resumed:
        # The outcomes cover only this session.
        facts[0] += f": {view.resumed} from an earlier session; now"
        facts[:2] = [" ".join(facts[:2])]
    if view.outcomes["skipped"]:
        facts.append(f"{view.outcomes['skipped']} skipped")
    if view.rate is not None:
        facts.append(f"{view.rate:,.{0 if view.rate >= 10 else 1}f}/s")
    # While a notice applies, no results arrive.
    if view.seconds_left is not None and view.total and view.done < view.total and not view.notice:
        facts.append(f"{_format_seconds(view.seconds_left)} left")
    return ", ".join(facts)


def progress_notes(view: RunView) -> Iterator[str]:
    """Yield notices, for example that the run is stopping, or which samples are slow."""
    running = view.running()
    if view.notice:
        yield single_line(view.notice, NOTICE_LIMIT)
    if getattr(view, "dropping", False):
        yield "stopping: dropping the samples in progress; a resumed run starts them again"
    elif view.stopping and running:
        yield f"stopping: finishing {format_count(len(running), 'sample')}; Ctrl-C again drops them"
    slow = [
        f"{single_line(name, NAME_LIMIT)} ({_format_seconds(age)})" for name, age in running if age > SLOW_AFTER_SECONDS
    ]
    if slow:
        more = f" and {len(slow) - 3} more" if len(slow) > 3 else ""
        yield f"still running: {', '.join(slow[:3])}{more}"


@contextlib.contextmanager
def _show_bar(view: RunView, stream: TextIO, describe: Callable[[RunView], str]) -> Iterator[None]:
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream)
    with Live(
        get_renderable=lambda: _render_bar(view, describe(view)), console=console, refresh_per_second=8, transient=True
    ):
        yield
    console.print(describe(view), highlight=False, markup=False)


def _render_bar(view: RunView, description: str) -> RenderableType:
    from rich.text import Text

    lines = [Text(description, no_wrap=True, overflow="ellipsis")]
    if view.total:
        full = min(BAR_WIDTH, BAR_WIDTH * view.done // view.total)
        bar = Text("━" * full, style="green").append("─" * (BAR_WIDTH - full), style="dim")
        lines.insert(0, bar)
    lines += [Text(note, style="yellow") for note in progress_notes(view)]
    return Text("\n").join(lines)


def _print_lines(view: RunView, stream: TextIO, describe: Callable[[RunView], str]) -> AbstractContextManager[None]:
    def print_line() -> None:
        # The run continues when the reader closes the pipe (`2>&1 | head`).
        with contextlib.suppress(BrokenPipeError):
            print(_join_line(view, describe), file=stream, flush=True)

    return _call_regularly(print_line, LINE_EVERY_SECONDS)


def _is_notebook() -> bool:
    """True in the kernel of a notebook; IPython in a terminal has no kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _update_cell(view: RunView, _stream: TextIO, describe: Callable[[RunView], str]) -> AbstractContextManager[None]:
    """Show one line below the cell, which changes as the run continues."""
    from IPython.display import display

    def as_data() -> dict[str, str]:
        return {"text/plain": _join_line(view, describe)}

    handle = display(as_data(), raw=True, display_id=True)  # type: ignore[no-untyped-call]
    return _call_regularly(lambda: handle.update(as_data(), raw=True), CELL_EVERY_SECONDS)


def _join_line(view: RunView, describe: Callable[[RunView], str]) -> str:
    return "; ".join([describe(view), *progress_notes(view)])


@contextlib.contextmanager
def _call_regularly(show: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call a function every few seconds in a thread, and at the end."""
    ended = threading.Event()

    def call() -> None:
        while not ended.wait(seconds):
            show()

    # A notebook finds the cell of an output by the context.
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(call,), name="proctor-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        show()


def _format_seconds(seconds: float) -> str:
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"
