"""Pages that compute for seconds: a second process answers them for large runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proctor import SQLiteHistory
from proctor.web import pages as web_pages
from proctor.web.background import BackgroundPages
from proctor.web.pages import Pages
from tests.web.example import make_history


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("background") / "h.db"
    make_history(file)
    return file


@pytest.fixture
def background(path: Path) -> Iterator[BackgroundPages]:
    pages = BackgroundPages(str(path))
    yield pages
    pages.close()


def list_requests(run: str, configurations: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    yield f"runs/{run}/metadata", {}
    yield f"runs/{run}/comparisons", {}
    yield f"runs/{run}/slices", {"by": "topic"}
    yield f"runs/{run}/slices", {"by": "nothing"}
    yield f"runs/{run}/judges", {}
    if len(configurations) > 1:
        yield "compare", {"a": f"{run}@{configurations[0]}", "b": f"{run}@{configurations[1]}"}
    yield "compare", {"a": run, "b": "nosuch"}
    yield "compare", {}
    yield "runs/nosuch/judges", {}


def test_the_background_answers_as_the_server_itself(
    path: Path, background: BackgroundPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages and errors of every run are equal, byte for byte."""
    monkeypatch.setattr(web_pages, "LARGE_RUN", 0)
    history = SQLiteHistory(path)
    alone, divided = Pages(history), Pages(history, "", background.answer)
    compared = 0
    for run in history.runs():
        for page, query in list_requests(run.run_id, [c.name for c in run.configurations]):
            assert divided.answer_json(page, query) == alone.answer_json(page, query), (page, query)
            compared += 1
    assert compared >= 20
    assert background._process is not None


def test_small_runs_start_no_process(path: Path, background: BackgroundPages) -> None:
    """Their statistics take less time than a process takes to start."""
    history = SQLiteHistory(path)
    divided = Pages(history, "", background.answer)
    status, _ = divided.answer_json(f"runs/{history.runs()[0].run_id}/metadata", {})
    assert (status, background._process) == (200, None)


def test_a_process_that_was_killed_is_an_error_once(path: Path, background: BackgroundPages) -> None:
    """The page says what happened, and the next request starts another process."""
    request = f"runs/{SQLiteHistory(path).runs()[0].run_id}/metadata", dict[str, str]()
    assert background.answer(*request)[0] == 200
    assert background._process is not None
    background._process.kill()
    background._process.wait()
    status, body = background.answer(*request)
    assert (status, json.loads(body)["fix"]) == (500, "reload the page")
    assert background.answer(*request)[0] == 200


def test_a_closed_background_starts_no_process(path: Path) -> None:
    """Requests that still wait when the viewer ends are answered with an error."""
    pages = BackgroundPages(str(path))
    pages.close()
    assert pages.answer("compare", {})[0] == 500
    assert pages._process is None


def test_modules_in_the_current_folder_are_not_imported(
    path: Path, background: BackgroundPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file such as statistics.py must not hide a module of the standard library."""
    (tmp_path / "statistics.py").write_text("raise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path)
    assert background.answer(f"runs/{SQLiteHistory(path).runs()[0].run_id}/judges", {})[0] == 200


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="whether another process lives is read from /proc")
def test_the_process_ends_with_its_viewer(path: Path, tmp_path: Path) -> None:
    """Also if the viewer is killed; Ctrl-C in the terminal, which reaches both, does not end it before."""
    script = (
        "import os, signal, sys\n"
        "from proctor.web.background import BackgroundPages\n"
        f"pages = BackgroundPages({str(path)!r})\n"
        "pages.answer('runs/nosuch/judges', {})\n"
        "os.kill(pages._process.pid, signal.SIGINT)\n"
        "assert pages.answer('runs/nosuch/judges', {})[0] == 404\n"
        "print(pages._process.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    viewer = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert viewer.stdout is not None
    process = int(viewer.stdout.readline())
    viewer.send_signal(signal.SIGKILL)
    viewer.communicate()
    wait_until(lambda: not is_alive(process))


def wait_until(is_true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        status = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return status != "Z"
