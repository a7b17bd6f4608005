"""A folder with logs and a judge, for the tests of batches."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proctor.comparison.report import EvalReport
from proctor.records.rubric import read_run_columns
from proctor.reports.rubric_files import BatchSummary, add_run_details
from proctor.wiring.open_history import open_history
from tests.cli.project import Project

JUDGE = """
import asyncio, os
from proctor import ModelRequest, ModelResponse, Usage
from proctor.models.model_calls import call_context

LOG = os.environ.get("CALLS")

async def hold(count: int) -> None:
    # Calls after the first ones wait until the run is stopping.
    with open(LOG + ".started", "a+") as file:
        file.seek(0)
        earlier = len(file.readlines())
        file.write("started\\n")
    while earlier >= count and not call_context.get().is_stopping():
        await asyncio.sleep(0.01)

async def four(request: ModelRequest, score: int = 4) -> ModelResponse:
    text = request.messages[-1].content
    name = text.partition("## Rubric: ")[2].partition("\\n")[0]
    number = text.partition("session number ")[2].partition(".")[0]
    await asyncio.sleep(float(os.environ.get("DELAY", "0")))
    if os.environ.get("HOLD"):
        await hold(int(os.environ.get("HOLD")))
    with open(LOG, "a") as file:
        file.write(f"{number} {name}\\n")
    line = text.rpartition("\\n")[2].partition("<")[0]
    said = f"Turn 1 shows it.\\n{line}{score}"
    return ModelResponse(said, "judge", usage=Usage(100, 10, cost=0.001))

def garbage(prompt: str) -> str:
    return "Lovely."

async def broken(request: ModelRequest) -> ModelResponse:
    if os.environ.get("MOOD") and "## Rubric: Safety" in str(request.messages):
        raise RuntimeError("overloaded")
    return await four(request)

async def moody(request: ModelRequest) -> ModelResponse:
    if os.environ.get("MOOD") and "## Rubric: Safety" in str(request.messages):
        return ModelResponse("Hm.", "judge")
    return await four(request, 2)
"""


def write_sessions(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        chat = [
            {"role": "user", "content": f"This is session number {number}."},
            {"role": "assistant", "content": "Done."},
        ]
        (folder / f"s{number:03}.json").write_text(json.dumps(chat))


def calls() -> Counter[str]:
    path = Path("calls")
    return Counter(path.read_text().splitlines() if path.exists() else ())


def wait_for_started(count: int, limit: float = 120.0) -> None:
    """Wait until a number of calls have started in a process with HOLD."""
    path, until = Path("calls.started"), time.monotonic() + limit
    while len(path.read_text().splitlines() if path.exists() else ()) < count:
        assert time.monotonic() < until, "the calls have not started"
        time.sleep(0.02)


BATCH = ("sessions", "evaluate-batch", "--rubrics", "starter", "--sessions-dir", "logs")


@pytest.fixture
def batch(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A folder with a judge and three sessions."""
    folder = Path.cwd()
    (folder / "judge.py").write_text(JUDGE)
    write_sessions(folder / "logs", 3)
    monkeypatch.setenv("CALLS", str(folder / "calls"))
    monkeypatch.setenv("PROCTOR_JUDGE", "judge:four")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "judge", raising=False)
    return project


def finished(run_id: str) -> list[str]:
    """The sessions of a run that are stored."""
    return [sample_id for _, sample_id, _, _ in open_history(None).finished_trials(run_id)]


def surroundings(**more: str) -> dict[str, str]:
    """The environment of a child process."""
    path = os.pathsep.join([str(Path.cwd()), *sys.path])
    return {**os.environ, "PYTHONPATH": path, **more}


def summarize_batch(report: EvalReport) -> dict[str, Any]:
    """Return the content of the summary file of a run."""
    batch = BatchSummary(read_run_columns(report.metadata))
    for result in report.results:
        batch.add(result)
    return add_run_details(batch.summary(), report)
