"""Runs on a real Ray cluster with two CPUs equal local runs, even if actors die."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from proctor import EvalReport, Sample, Session, SQLiteHistory, ToolCall
from proctor.distributed.ray_backend import RayBackend, import_ray
from proctor.engine.start import RunControls
from proctor.errors import ConfigError, RunStopped
from proctor.ports import RunView
from proctor.records.progress import ProgressEvent
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation, build_recipe, build_setup
from tests.support import samples

pytestmark = pytest.mark.slow

# More than anything here takes on a machine that has much else to do.
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
        time.sleep(2)
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

SCRIPT = """
import asyncio, signal, sys
from pathlib import Path
from proctor import Sample, SQLiteHistory
from proctor.wiring.evaluate import execute
from proctor.engine.start import RunControls
from proctor.distributed.ray_backend import RayBackend
from proctor.wiring.prepare import Evaluation, build_recipe, build_setup

def main(target, address):
    data = [Sample(f"s{i}", f"word {i}", f"WORD {i}") for i in range(16)]
    evaluation = Evaluation(target, data, ["exact_match"], name="exam", options={"concurrency": 4})
    place = RayBackend(build_recipe(evaluation), build_setup, address)
    return asyncio.run(
        execute(evaluation, SQLiteHistory(Path("h.db")), RunControls(place=place))
    )

if __name__ == "__main__":
    before = signal.getsignal(signal.SIGTERM)
    report = main(sys.argv[1], sys.argv[2] or None)
    assert signal.getsignal(signal.SIGTERM) is before
    import ray
    assert not ray.is_initialized()
    print(report.total, report.pass_rate)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A Ray cluster for this file with two CPUs and, as far as Ray knows, two GPUs."""
    # Short, for the paths of its sockets may not be long.
    folder = tempfile.mkdtemp(prefix="pr", dir="/tmp")
    import_ray()
    ray.init(
        "local",
        num_cpus=2,
        num_gpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=80_000_000,
        # Else its workers stand back behind all else that the machine does.
        _system_config={"worker_niceness": 0},
        _temp_dir=folder,
    )
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the targets of this file."""
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
    return run_locally(evaluation, RunControls(how.callbacks, how.watch, place=backend), resume=resume)


def run_locally(evaluation: Evaluation, conduct: RunControls | None = None, *, resume: bool = False) -> EvalReport:
    async def main() -> EvalReport:
        async with asyncio.timeout(LONG):
            history = SQLiteHistory(Path("h.db"))
            return await execute(evaluation, history, conduct or RunControls(), resume_from=resume)

    return asyncio.run(main())


def comparable_results(report: EvalReport) -> list[Any]:
    """The trials of a report, without worker, times and durations."""
    results = []
    for result in report.results:
        trial = result.trial
        error = None if trial.error is None else (trial.error.kind, trial.error.message)
        calls = [call.name for call in (trial.session or Session())[ToolCall]]
        about = (trial.sample, trial.output, error, trial.configuration, trial.epoch, calls)
        results.append((*about, result.scores))
    return results


def warnings(report: EvalReport) -> tuple[str, ...]:
    assert report.metadata is not None
    return report.metadata.warnings


def test_a_run_on_ray_equals_a_local_run(cluster: str) -> None:
    """Two configurations and epochs, a session evaluator and errors."""
    evaluation = exam(
        "shout",
        ["exact_match", {"tool_called": {"name": "search"}}],
        configurations={"loud": {}, "quiet": {"loud": False}},
        options={"epochs": 2},
    )
    events: list[ProgressEvent] = []
    there = run_on_ray(evaluation, RunControls((events.append,)), actors=2)
    near = run_locally(evaluation)
    assert comparable_results(there) == comparable_results(near)
    assert there.total == 8 * 2 * 2
    assert there.errors == 4
    assert [result.delivery.count for result in there.results if result.delivery] == [1] * 32
    assert all(result.delivery is None for result in near.results)
    same = {name for name in near.metrics if not name.startswith(("latency", "throughput"))}
    assert {name: there.metrics[name] for name in same} == {n: near.metrics[n] for n in same}
    assert there.metrics.keys() == near.metrics.keys()
    assert warnings(there) == ()
    stored = SQLiteHistory(Path("h.db")).runs()
    assert sorted(run.status for run in stored) == ["completed", "completed"]
    kinds = [event.kind for event in events]
    assert kinds.count("evaluator_end") == 2 * (32 - 4)
    assert events[-1].progress == 100.0


def test_two_processes_run_trials(cluster: str) -> None:
    """Each trial waits for the other process, and neither is this one."""
    report = run_on_ray(exam("meet", dataset=samples(6), options={"concurrency": 2}), actors=2)
    ran = {result.output for result in report.results}
    assert len(ran) == 2
    assert os.getpid() not in ran
    workers = {result.delivery.worker for result in report.results if result.delivery}
    assert {int(name.rpartition("-")[2]) for name in workers} == ran
    assert warnings(report) == ("it met another",)


def test_an_actor_gets_its_gpus(cluster: str) -> None:
    """With two GPUs each, one actor fits, and it sees both."""
    report = run_on_ray(exam("device", dataset=samples(3)), gpus=2, actors=None)
    assert [result.output for result in report.results] == ["0,1"] * 3


@pytest.mark.parametrize("target", ["dawdle", "adawdle"])
def test_timeouts_work_in_an_actor(cluster: str, target: str) -> None:
    """A call that takes too long is an error of its trial, for sync and async targets."""
    report = run_on_ray(exam(target, dataset=samples(4), options={"timeout": 0.3}))
    assert [result.outcome for result in report.results] == ["passed", "error", "passed", "passed"]
    assert report.results[1].error == "TimeoutError: the target took longer than 0.3 s"


def test_the_trials_of_a_killed_actor_are_run_again(cluster: str) -> None:
    """Every trial has one result, and passes."""
    report = run_on_ray(exam("mortal"))
    assert sorted(result.sample_id for result in report.results) == [f"s{i}" for i in range(8)]
    assert report.pass_rate == 1.0
    again = [r for r in report.results if r.delivery and r.delivery.count == 2]
    assert len(again) >= 1
    repeated = (
        "1 trial was run again because its actor had died"
        if len(again) == 1
        else f"{len(again)} trials were run again because their actors had died"
    )
    assert warnings(report) == ("ray: 1 actor died and was replaced", f"ray: {repeated}")


def test_a_sample_that_kills_every_actor_is_an_error(cluster: str) -> None:
    """After three deaths; the trials that ran with it pass."""
    report = run_on_ray(exam("poisonous", dataset=samples(12)), actors=2)
    outcomes = {result.sample_id: result.outcome for result in report.results}
    assert outcomes == {f"s{i}": "error" if i == 2 else "passed" for i in range(12)}
    error = report.results[2].trial.error
    assert error is not None
    assert error.kind == "ActorDied"
    assert error.message.startswith("3 Ray actors died while they ran it; the last: ")
    assert "ray: 3 actors died and were replaced" in warnings(report)
    assert "ray: 1 trial failed because 3 actors died while running it" in warnings(report)


def make_actors_run(does: str) -> None:
    """Run a statement when an actor imports the file of targets."""
    condition = 'sys.argv[0].endswith("default_worker.py")'
    start = f"import os, sys, time\nwhile {condition}:\n    {does}\n"
    Path("exam.py").write_text(start + EXAM)


def test_actors_that_die_before_they_are_ready_end_the_run(cluster: str) -> None:
    """They are not restarted forever."""
    make_actors_run("os._exit(1)")
    with pytest.raises(RunStopped, match="Ray actors die before they are ready: "):
        run_on_ray(exam("shout"))


def test_a_run_says_that_its_actors_are_starting(cluster: str) -> None:
    """A slow import is not reported as missing CPUs."""
    make_actors_run('time.sleep(0.05)\n    if os.path.exists("go"): break')
    noticed = NoticeWatcher("1 of 1 Ray actors are starting", Path("go").touch)
    assert run_on_ray(exam("shout", dataset=samples(3)), RunControls(watch=noticed.watch)).pass_rate == 1.0
    assert noticed.is_noticed


def test_other_code_on_a_node_ends_the_run(cluster: str) -> None:
    """The error names the code of the actor and of the run."""
    with pytest.raises(RunStopped, match=r"runs 'meet@\w+ exact_match@\w+'") as caught:
        run_on_ray(exam("shout"), recipe=build_recipe(exam("meet")))
    assert "this run expects 'shout@" in str(caught.value)
    assert "install the same code, on the same Python, on every node" in str(caught.value)


def test_missing_files_on_a_node_end_the_run(cluster: str) -> None:
    """The error of the actor says what is missing."""
    recipe = build_recipe(Evaluation("gone.py:target", (), ["exact_match"]))
    with pytest.raises(RunStopped, match=r"there is no file 'gone\.py'"):
        run_on_ray(exam("shout"), recipe=recipe)


def test_a_budget_covers_all_actors(cluster: str) -> None:
    """Their total usage ends the run."""
    with pytest.raises(RunStopped, match="the budget is spent: 60 of 60 tokens"):
        run_on_ray(exam("asking", options={"concurrency": 1, "budget": {"tokens": 60}}))
    (run,) = SQLiteHistory(Path("h.db")).runs()
    assert run.spent is not None
    assert (run.spent.calls, run.spent.tokens) == (6, 60)
    assert SQLiteHistory(Path("h.db")).report("exam").total == 6


def test_an_unknown_price_ends_a_run_with_a_budget(cluster: str) -> None:
    """As in a local run."""
    with pytest.raises(RunStopped, match="the price of test:model is unknown"):
        run_on_ray(exam("asking", options={"budget": {"cost": 1.0}}))


def test_samples_that_json_does_not_support_are_errors(cluster: str) -> None:
    """Neither an object nor a tuple is sent as something else."""
    odd = [Sample("a", object()), Sample("b", "word 5", "WORD 5"), Sample("c", ("word", 5))]
    report = run_on_ray(exam("shout", dataset=odd))
    assert [result.outcome for result in report.results] == ["error", "passed", "error"]
    assert str(report.results[2].error).endswith("input: a tuple arrives as a list")
    assert report.results[0].error == (
        "Unsendable: the sample cannot be sent as JSON: input: an object arrives as a dict"
    )


class NoticeWatcher:
    """Watches a run, and calls a function once a notice appears."""

    def __init__(self, text: str, then: Callable[[], object]) -> None:
        self.is_noticed = False
        self._text = text
        self._then = then
        self._over = threading.Event()

    @contextlib.contextmanager
    def watch(self, view: RunView) -> Iterator[None]:
        thread = threading.Thread(target=self._look, args=(view,))
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _look(self, view: RunView) -> None:
        while not self._over.wait(0.02):
            if view.notice == self._text:
                self.is_noticed = True
                self._then()
                return


class ResourceHolder:
    """Occupies resources."""

    def ready(self) -> bool:
        return True


@contextlib.contextmanager
def all_cpus_taken() -> Iterator[Any]:
    """Another actor occupies all CPUs."""
    remote_class: Any = ray.remote(ResourceHolder)
    free: Any = ray.available_resources
    actor = remote_class.options(num_cpus=2).remote()
    try:
        ray.get(actor.ready.remote(), timeout=LONG)
        # Ray may go on to call them free for a moment.
        until = time.monotonic() + LONG
        while free().get("CPU", 0.0):
            assert time.monotonic() < until
            time.sleep(0.02)
        yield actor
    finally:
        ray.kill(actor)


def test_a_run_waits_for_free_cpus(cluster: str) -> None:
    """A notice says what is missing, and disappears."""
    with all_cpus_taken() as actor:
        text = "1 of 1 Ray actors wait for resources: free are 0 of 2 CPU"
        noticed = NoticeWatcher(text, lambda: ray.kill(actor))
        report = run_on_ray(exam("shout", dataset=samples(3)), RunControls(watch=noticed.watch))
    assert report.pass_rate == 1.0
    assert noticed.is_noticed


def test_a_run_without_actors_ends_after_its_patience(cluster: str) -> None:
    """The error says why, and the run can be resumed."""
    with all_cpus_taken(), pytest.raises(RunStopped, match="no Ray actor could be started") as caught:
        run_on_ray(exam("shout"), patience=0.5)
    assert "1 of 1 Ray actors wait for resources: free are 0 of 2 CPU" in str(caught.value)


def test_unused_cpus_cause_a_warning(cluster: str) -> None:
    """The concurrency is not exceeded, and the report says which value would use all."""
    report = run_on_ray(exam("shout", dataset=samples(3), options={"concurrency": 1}), actors=None)
    assert {result.delivery.worker for result in report.results if result.delivery}
    (warning,) = warnings(report)
    assert warning.startswith("ray: only 1 of 2 possible actors ran")


@contextlib.contextmanager
def started_process(folder: Path, *args: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed if the test fails."""
    (folder / "sit.py").write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "sit.py", *args],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_stores_finished_trials_and_resume_continues(cluster: str, tmp_path: Path) -> None:
    """A separate process is interrupted once and then resumed."""
    log = tmp_path / "calls.log"
    with started_process(tmp_path, "exam.py:slow", cluster) as process:
        until = time.monotonic() + LONG
        while not (log.exists() and len(log.read_text().split("\n")) > 6):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        # Half of the calls wait for this, so that the run cannot end before it is interrupted.
        time.sleep(2)
        Path("go").touch()
        _, text = process.communicate(timeout=LONG)
    assert "RunInterrupted: interrupted; resume with run id" in text
    called = log.read_text().split("\n")[:-1]
    stored = SQLiteHistory(tmp_path / "h.db").report("exam")
    assert sorted(r.output for r in stored.results) == sorted(word.upper() for word in called)
    report = run_on_ray(exam("slow", dataset=samples(16)), resume=True, actors=2)
    assert (report.total, report.pass_rate) == (16, 1.0)
    assert len(log.read_text().split("\n")[:-1]) == 16


def test_a_program_prints_nothing_of_ray_and_disconnects(cluster: str, tmp_path: Path) -> None:
    """The only output is the program's own, even if an actor is killed; then Ray is shut down."""
    with started_process(tmp_path, "exam.py:mortal", "", RAY_ADDRESS=cluster) as process:
        assert process.communicate(timeout=LONG) == ("16 1.0\n", "")


def test_invalid_settings_are_refused_at_once() -> None:
    """No actor, one and a half GPUs, a function without an importable name, a cache: each error says why."""
    recipe = build_recipe(exam("shout"))
    with pytest.raises(ConfigError, match="at least one actor"):
        RayBackend(recipe, build_setup, actors=0)
    for gpus in (-1, 1.5):
        with pytest.raises(ConfigError, match="or a whole number"):
            RayBackend(recipe, build_setup, gpus=gpus)
    with pytest.raises(ConfigError, match="cannot be found by its name on another machine"):
        RayBackend(recipe, lambda data: build_setup(data))
    with pytest.raises(ConfigError, match="workers do not cache outputs"):
        run_on_ray(exam("shout", options={"cache": True}))
