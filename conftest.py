"""Settings for all tests: a few examples per property, no deadlines, and no settings of the user.

`make test` draws 20 examples per property, `make properties` 200. Coverage makes Python code three to four times
slower; tests that only compute, on lines that faster tests cover too, are marked `no_cover`.
"""

from __future__ import annotations

import csv
import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from proctor.wiring import registry

ROOT = Path(__file__).parent

# Test processes run in parallel; each should use one core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Thousands of tests write a history; in memory they need not wait for the disk. Some run programs that they write.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir():
    status = os.statvfs(MEMORY)
    if status.f_bavail * status.f_frsize > 4e9 and not status.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None

# A shell that starts the tests in the background ignores Ctrl-C for them; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("proctor", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.load_profile("proctor")

# Imports and collection make few cycles; searching for them takes longer than the memory is worth.
gc.disable()


# Tests with real processes, servers, threads and clocks: a pause of a shared machine can fail one of them. In CI it
# gets a second attempt, and the closing line counts it as rerun; everywhere else it fails.
REAL_TIME = ("cli", "distributed", "engine", "mailboxes", "main_loop", "models", "spec", "targets", "telemetry", "web")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """With `-n auto`, start four processes for two cores: many tests wait for processes, servers and clocks."""
    cores = os.cpu_count() or 1
    return cores + max(2, cores // 2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In CI, rerun a failed test that depends on the speed of the machine once."""
    if not os.environ.get("CI"):
        return
    folders = tuple(f"tests/{name}/" for name in REAL_TIME)
    for item in items:
        if item.nodeid.startswith(folders):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests from garbage collection: they live until the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in the package only: test modules have none, and searching them takes time."""
    collectors = yield
    if file_path.is_relative_to(ROOT / "tests"):
        collectors = [collector for collector in collectors if not isinstance(collector, DoctestModule)]
    return collectors


@pytest.fixture(autouse=True)
def _isolate_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the path, modules and evaluators after each test, and ignore the history of the user."""
    monkeypatch.delenv("PROCTOR_HISTORY", raising=False)
    monkeypatch.setattr(registry, "_process_evaluators", dict(registry._process_evaluators))
    path, newest, longest = list(sys.path), next(reversed(sys.modules)), csv.field_size_limit()
    yield
    sys.path[:] = path
    csv.field_size_limit(longest)
    # New modules are the last ones, and comparing all the thousands of names after each test takes longer than most
    # tests. A list, because another thread may be importing.
    for name in reversed(list(sys.modules)):
        if name == newest:
            break
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if "pytest-of" in Path(file).parts or "pytest-of" in file:
            sys.modules.pop(name, None)
