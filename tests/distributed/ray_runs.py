"""Targets and helpers for runs on Ray, and a stand-in for Ray that runs actors in this process."""

from __future__ import annotations

import asyncio
import contextvars
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from proctor import EvalReport, SQLiteHistory
from proctor.distributed.ray_backend import RayBackend
from proctor.engine.start import RunControls
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation, build_recipe, build_setup
from tests.support import samples

# More than anything here takes on a busy machine.
LONG = 300.0

EXAM = """
import asyncio, os, signal, time
from pathlib import Path
from proctor import ToolCall, record
from proctor.sessions.current import warn
from proctor.models.model_calls import aask
from proctor.records.model import ModelResponse
from proctor.records.session import Usage

def shout(text, loud=True):
    record(ToolCall("search", {"query": text}))
    if text == "word 3":
        raise ValueError("no such word")
    return text.upper() if loud else text

def meet(text):
    "Who ran it, once two processes have come."
    warn("it met another")
    Path(f"met-{os.getpid()}").touch()
    until = time.monotonic() + 200
    while len(list(Path().glob("met-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    return os.getpid()

def dawdle(text):
    if text == "word 1":
        time.sleep(3)
    return text.upper()

async def adawdle(text):
    if text == "word 1":
        await asyncio.sleep(600)
    return text.upper()

async def mortal(text):
    "Its process is killed the first time the sample is run."
    await asyncio.sleep(0.1)
    try:
        os.close(os.open("killed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return text.upper()
    os.kill(os.getpid(), signal.SIGKILL)

async def poisonous(text):
    "One of the samples kills every process; the later ones take their time."
    await asyncio.sleep(0.4 if int(text.split()[1]) > 3 else 0.05)
    if text == "word 2":
        os.kill(os.getpid(), signal.SIGKILL)
    return text.upper()

class Model:
    "Ten tokens a call."
    model, supports_json_schema = "test:model", False
    async def complete(self, request, *, timeout=None):
        said = request.messages[0].content.upper()
        return ModelResponse(said, self.model, usage=Usage(8, 2))

async def asking(text):
    return (await aask(Model(), text)).text

def device(text):
    return os.environ["CUDA_VISIBLE_DEVICES"]

async def slow(text):
    with open("calls.log", "a") as log:
        log.write(text + "\\n")
    await asyncio.sleep(0.3)
    while int(text.split()[1]) > 7 and not Path("go").exists():
        await asyncio.sleep(0.05)
    return text.upper()
"""


@pytest.fixture(autouse=True)
def exam_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with the targets."""
    (tmp_path / "exam.py").write_text(EXAM)
    monkeypatch.chdir(tmp_path)


def exam(target: str, evaluators: Any = ("exact_match",), **about: Any) -> Evaluation:
    options = {"concurrency": 4, **about.pop("options", {})}
    data = about.pop("dataset", samples(8))
    return Evaluation(f"exam.py:{target}", data, [*evaluators], name="exam", options=options, **about)


def run_on_ray(
    evaluation: Evaluation, conduct: RunControls | None = None, *, resume: bool = False, **place: Any
) -> EvalReport:
    """Run an evaluation on Ray."""
    # One actor unless a test needs more: each is a process that has to start.
    place = {"actors": 1, **place}
    backend = RayBackend(place.pop("recipe", None) or build_recipe(evaluation), build_setup, **place)
    how = conduct or RunControls()
    return run_locally(evaluation, RunControls(how.callbacks, how.watch, backend=backend), resume=resume)


def run_locally(evaluation: Evaluation, conduct: RunControls | None = None, *, resume: bool = False) -> EvalReport:
    async def main() -> EvalReport:
        async with asyncio.timeout(LONG):
            history = SQLiteHistory(Path("h.db"))
            return await execute(evaluation, history, conduct or RunControls(), resume_from=resume)

    return asyncio.run(main())


def warnings(report: EvalReport) -> tuple[str, ...]:
    assert report.metadata is not None
    return report.metadata.warnings


class LocalRay(ModuleType):
    """The part of Ray that the backend uses; each call of an actor is a task without the caller's context."""

    def __init__(self, *, free_cpus: float = 2.0) -> None:
        super().__init__("ray")
        self.exceptions = SimpleNamespace(RayError=ConnectionError)
        self._free_cpus = free_cpus

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def available_resources(self) -> dict[str, float]:
        return {"CPU": self._free_cpus}

    def remote(self, actor_class: type[Any]) -> Any:
        remote_class = SimpleNamespace(
            remote=lambda *args: _LocalActor(actor_class(*args), has_cpu=self._free_cpus > 0)
        )
        return SimpleNamespace(options=lambda **_: remote_class)

    def kill(self, actor: Any) -> None:
        pass


class _LocalActor:
    def __init__(self, actor: Any, *, has_cpu: bool) -> None:
        self._actor = actor
        self._has_cpu = has_cpu

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> asyncio.Future[Any]:
            loop = asyncio.get_running_loop()
            if not self._has_cpu:
                return loop.create_future()
            return loop.create_task(getattr(self._actor, name)(*args), context=contextvars.Context())

        return SimpleNamespace(remote=call)
