"""Shared by many tests: samples, targets, a manual clock, and real processes."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import settings

from proctor import Sample
from proctor.cli.main import run_cli

ROOT = Path(__file__).parent.parent


def is_thorough() -> bool:
    """True in `make properties`, where tests take all combinations instead of a part of them."""
    return settings.default is not None and settings.default.max_examples >= 200


def pair_in_turn(places: Iterable[tuple[Any, Any]], values: Sequence[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Pair each place with the next of the values, or with all of them in `make properties`."""
    for number, (container, key) in enumerate(places):
        for value in values if is_thorough() else [values[number % len(values)]]:
            yield container, key, value


class LazyModule:
    """A module that is imported on first use, because every process of a test run imports all test files."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest asks every object of a test file for such names
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


class ManualClock:
    """A clock that moves only when a test sets it, or when a task sleeps on it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


def samples(count: int) -> list[Sample[str, str]]:
    """`count` samples whose expected output is their input in capitals."""
    return [Sample(f"s{i}", f"word {i}", f"WORD {i}") for i in range(count)]


async def shout(text: str) -> str:
    """A target that is always right on `samples`."""
    return text.upper()


def proctor(*args: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in its own process."""
    return subprocess.run(
        [sys.executable, "-m", "proctor", *map(str, args)],
        cwd=cwd,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"} | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def run_command(*args: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line inside this process, which is a second faster than `proctor`."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    variables = {"NO_COLOR": "1", "COLUMNS": "100"} | environment
    modules, path = set(sys.modules), list(sys.path)
    with mock.patch.dict(os.environ, variables), chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        code = run_cli([str(argument) for argument in args])
    _forget_modules(sys.modules.keys() - modules, cwd)
    sys.path[:] = path
    return subprocess.CompletedProcess(args, code, _read(out), _read(err))


def _forget_modules(names: Iterable[str], folder: Path) -> None:
    """Remove modules of a test's folder: another test may have a module of the same name."""
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(folder.resolve()):
            del sys.modules[name]


def _read(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def count_calls(function: Callable[..., object], *args: object) -> int:
    """Count the function calls of a call: a measure of its work that does not depend on the machine."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count


def start(script: str, *args: Any, cwd: Path, traced: bool = True) -> subprocess.Popen[str]:
    """Start a Python script in its own process; `traced=False` for one that is killed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)],
        cwd=cwd,
        env=None if traced else environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
