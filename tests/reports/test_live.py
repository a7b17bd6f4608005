"""The live display: a bar in a terminal, lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from proctor.records.trial import Outcome
from proctor.reports import live
from proctor.reports.live import describe_progress, live_display, progress_notes


class View:
    """A run as a display sees it, set by hand."""

    def __init__(self, done: int = 0, total: int | None = None, **outcomes: int) -> None:
        self.done = done
        self.total = total
        self.run_id = "r"
        self.resumed = 0
        self.stopping = False
        self.notice = ""
        self.outcomes: Counter[Outcome] = Counter(outcomes)  # type: ignore[arg-type]
        self.rate: float | None = None
        self.seconds_left: float | None = None
        self.active: list[tuple[str, float]] = []
        self.dropping = False

    def running(self) -> list[tuple[str, float]]:
        return self.active


def test_notices_and_slow_samples_are_shown() -> None:
    """A notice comes first, while it applies."""
    view = View(done=0, total=10)
    view.notice = "no worker has answered for 7 s; 10 requests are waiting"
    assert list(progress_notes(view)) == [view.notice]
    view.rate = view.seconds_left = 0.5
    assert "left" not in describe_progress(view)


def test_the_summary_says_how_far_how_well_and_how_long() -> None:
    """All known values are on one line; unknown ones are left out."""
    view = View(done=30, total=120, passed=20, failed=8, error=1, unscored=1)
    assert describe_progress(view) == "30/120 (25%), 20 passed, 8 failed, 2 errors"
    view.rate, view.seconds_left, view.resumed = 1234.5, 95.0, 10
    view.outcomes["skipped"] = 3
    assert describe_progress(view) == (
        "30/120 (25%): 10 from an earlier session; now 20 passed, 8 failed, 2 errors, 3 skipped, 1,234/s, "
        "1 min 35 s left"
    )
    assert describe_progress(View(done=5, passed=5)) == "5, 5 passed, 0 failed, 0 errors"
    view.rate, view.done, view.seconds_left = 2.25, 120, 0.0
    assert "2.2/s" in describe_progress(view)
    assert "left" not in describe_progress(view)


def test_what_takes_long_is_named() -> None:
    """Slow samples are listed, the longest first, and a stop is announced."""
    view = View()
    assert list(progress_notes(view)) == []
    view.active = [("a", 4000.0), ("b", 70.0), ("c", 6.0), ("d", 5.5), ("e", 1.0)]
    view.stopping = True
    assert list(progress_notes(view)) == [
        "stopping: finishing 5 samples; Ctrl-C again drops them",
        "still running: a (1 h 6 min), b (1 min 10 s), c (6 s) and 1 more",
    ]


def test_dropped_samples_are_not_reported_as_finished() -> None:
    """After SIGTERM or a second Ctrl-C nothing in flight is finished."""
    view = View()
    view.active = [("a", 1.0)]
    view.stopping = view.dropping = True
    assert list(progress_notes(view)) == ["stopping: dropping the samples in progress; a resumed run starts them again"]


def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line now and then, and one at the end; without colours or movement."""
    monkeypatch.setattr(live, "LINE_EVERY_SECONDS", 0.02)
    out = io.StringIO()
    display = live_display(True, out)
    assert display is not None
    view = View(done=1, total=2, passed=1)
    with display(view):
        until = time.monotonic() + 60
        while "\n" not in out.getvalue():
            assert time.monotonic() < until
            time.sleep(0.005)
        view.done = 2
    lines = out.getvalue().splitlines()
    assert lines[0] == "1/2 (50%), 1 passed, 0 failed, 0 errors"
    assert lines[-1] == "2/2 (100%), 1 passed, 0 failed, 0 errors"


@pytest.mark.parametrize("wanted", [None, False])
def test_progress_is_off_unless_requested(wanted: bool | None) -> None:
    """Without a terminal, nothing is shown unless progress is requested."""
    assert live_display(wanted, io.StringIO()) is None


def test_a_bar_in_a_real_terminal(tmp_path: Path) -> None:
    """In a pseudo-terminal the bar moves, slow samples are named, and one clean line stays."""
    script = (
        "import asyncio\n"
        "from proctor import evaluate, exact_match\n"
        "from proctor.reports import live\n"
        "live.SLOW_AFTER_SECONDS = 0.2\n"
        "async def target(x):\n"
        "    await asyncio.sleep(1.5 if x == 'slow' else 0.01)\n"
        "    return x\n"
        "rows = [{'id': w, 'input': w, 'expected': w} for w in ('slow', 'a', 'b', 'c')]\n"
        "evaluate(target, rows, exact_match, history=False)\n"
    )
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=end,
        stdout=end,
        stderr=end,
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "80", "TERM": "xterm-256color"},
    )
    os.close(end)
    output = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.close(terminal)
    assert process.wait(timeout=120) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output.decode())
    assert "━" in text
    assert "3/4 (75%), 3 passed" in text
    assert "still running: slow" in text
    assert text.replace("\r", "\n").strip().splitlines()[-1].startswith("4/4 (100%), 4 passed, 0 failed, 0 errors")
