"""A history that several processes use: locks that end with their process, writers that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from proctor.errors import ResumeRefused
from proctor.history import sqlite as claim_module
from proctor.history.sqlite import SQLiteHistory
from proctor.ports import History
from proctor.wiring.open_history import open_history
from tests.records.examples import run_of
from tests.support import start

CLAIMER = """
import sys, time
from proctor.wiring.open_history import open_history
with open_history(sys.argv[1]).claim("r"):
    print("claimed", flush=True)
    time.sleep(60)
"""

WRITER = """
import sys
from datetime import UTC, datetime
from proctor.wiring.open_history import open_history
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import EvalResult, Trial

where, run_id, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
history = open_history(where)
if not [run for run in history.runs(limit=1000) if run.run_id == run_id]:
    history.begin(RunMetadata(run_id, "exam", datetime.now(UTC)))
with history.writer(run_id) as writer:
    for position in range(count):
        writer.add(position, EvalResult(Trial(Sample(f"s{position}", "x" * 200), "y" * 200)))
        if position % 10 == 9:
            writer.flush()
            print(position + 1, flush=True)
print("done", flush=True)
"""


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output


@pytest.fixture(params=["file", "server"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new history: the path of a file, or the URL of a database."""
    if request.param == "file":
        return str(tmp_path / "h.db")
    url: str = request.getfixturevalue("url")
    return url


def soon_free(history: History, run_id: str) -> bool:
    """Wait until a run is free: a server takes a moment to notice that a process died."""
    limit = time.monotonic() + 60
    while history.is_claimed(run_id):
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True


def test_a_run_is_claimed_by_one_process_until_it_dies(where: str, tmp_path: Path) -> None:
    """While another process holds it, it is refused; after SIGKILL it is free at once."""
    history = open_history(where)
    process = start(CLAIMER, where, cwd=tmp_path)
    assert read_line(process) == "claimed"
    assert history.is_claimed("r")
    assert not history.is_claimed("other")
    with pytest.raises(ResumeRefused, match="run r is being worked on by another process"):
        history.claim("r").__enter__()
    with history.claim("other"):
        assert history.is_claimed("other")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    assert soon_free(history, "r")
    with history.claim("r"):
        assert history.is_claimed("r")
    assert not history.is_claimed("r")
    history.close()


def test_a_claim_ends_with_its_block_however_that_ends(tmp_path: Path) -> None:
    """Neither lock nor file remains, even after an error."""
    history = SQLiteHistory(tmp_path / "h.db")
    for error in (KeyError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)), history.claim("r"):
            raise error
        assert not history.is_claimed("r")
    assert list((tmp_path / "h.db.locks").iterdir()) == []


def test_checking_a_claim_does_not_block_it(tmp_path: Path) -> None:
    """Concurrent checks see only real claims, and a claim succeeds despite them."""
    history = SQLiteHistory(tmp_path / "h.db")
    (tmp_path / "h.db.locks").mkdir()
    (tmp_path / "h.db.locks" / "left behind.lock").touch()
    seen: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.0005):
            seen.extend(run for run in ("left behind", "never") if history.is_claimed(run))
            history.is_claimed("r")

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    for _ in range(20):
        with history.claim("r"):
            assert history.is_claimed("r")
    over.set()
    for looker in lookers:
        looker.join()
    assert seen == []


def test_a_removed_lock_file_is_not_taken_for_the_lock(tmp_path: Path) -> None:
    """Between opening and locking, the file may have been replaced: then it is tried again."""
    path = tmp_path / "r.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    assert claim_module._still_exists(handle, path)
    path.unlink()
    assert not claim_module._still_exists(handle, path)
    path.touch()
    assert not claim_module._still_exists(handle, path)
    os.close(handle)


def test_only_one_thread_claims_a_run_at_a_time(tmp_path: Path) -> None:
    """Threads that claim, work and let go, over and over: never two at once."""
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(15):
            try:
                with claim_module.claim(tmp_path, "r"):
                    inside.append(1)
                    most.append(len(inside))
                    time.sleep(0.001)
                    inside.pop()
            except ResumeRefused:
                pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most
    assert max(most) == 1


def test_processes_that_write_at_once_lose_nothing(where: str, tmp_path: Path) -> None:
    """They start in a history that does not exist yet, and no result is lost."""
    names = [f"r{number}" for number in range(4)]
    writers = [start(WRITER, where, name, 100, cwd=tmp_path) for name in names]
    for writer in writers:
        assert ended(writer).endswith("done\n")
    history = open_history(where)
    assert sorted(run.run_id for run in history.runs()) == names
    for name in names:
        assert [result.sample_id for result in history.results(name)] == [f"s{position}" for position in range(100)]
    history.close()


def test_a_killed_writer_leaves_everything_it_flushed(where: str, tmp_path: Path) -> None:
    """SIGKILL at several moments: the history opens, holds what was durable, and goes on."""
    flushed = 0
    for round_ in range(2):
        process = start(WRITER, where, "r", 100_000, cwd=tmp_path)
        for _ in range(3 + 2 * round_):
            flushed = max(flushed, int(read_line(process)))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
        history = open_history(where)
        results = list(history.results("r"))
        assert len(results) >= flushed
        assert [result.sample_id for result in results] == [f"s{i}" for i in range(len(results))]
        if isinstance(history, SQLiteHistory):
            check = history._connection.execute("PRAGMA integrity_check").fetchone()
            assert check == ("ok",)
        history.close()


def test_a_reader_in_another_process_sees_a_run_grow(where: str, tmp_path: Path) -> None:
    """What was committed is readable by others while the run goes on."""
    process = start(WRITER, where, "r", 100, cwd=tmp_path)
    history = open_history(where)
    for _ in range(10):
        committed = int(read_line(process))
        assert len(history.results("r")) >= committed
    assert read_line(process).strip() == "done"
    ended(process)
    assert len(history.results("r")) == 100
    history.begin(run_of("another"))
    history.close()
