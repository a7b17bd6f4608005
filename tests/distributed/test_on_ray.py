"""Runs on a real Ray cluster with two CPUs equal local runs, even if actors die.

`test_ray_backend` tests what needs neither processes nor a cluster.
"""

from __future__ import annotations

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

from proctor import EvalReport, Session, SQLiteHistory, ToolCall
from proctor.distributed import ray_backend
from proctor.distributed.ray_backend import import_ray
from proctor.engine.start import RunControls
from proctor.errors import RunStopped
from proctor.ports import RunView
from proctor.records.progress import ProgressEvent
from tests.distributed.ray_runs import EXAM, LONG, exam, exam_folder, run_locally, run_on_ray, warnings
from tests.support import LazyModule, samples

pytestmark = pytest.mark.slow
__all__ = ["exam_folder"]
ray: Any = LazyModule("ray")

SCRIPT = """
import asyncio, contextlib, signal, sys, threading
from pathlib import Path
from proctor import Sample, SQLiteHistory
from proctor.wiring.evaluate import execute
from proctor.engine.start import RunControls
from proctor.distributed.ray_backend import RayBackend
from proctor.wiring.prepare import Evaluation, build_recipe, build_setup

@contextlib.contextmanager
def touch_go_when_stopping(view):
    "Half of the calls of `slow` wait for the file, so that the run cannot end before it is interrupted."
    ended = threading.Event()
    def watch():
        while not ended.wait(0.02):
            if view.stopping:
                Path("go").touch()
                return
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()

def main(target, address):
    data = [Sample(f"s{i}", f"word {i}", f"WORD {i}") for i in range(16)]
    evaluation = Evaluation(target, data, ["exact_match"], name="exam", options={"concurrency": 4})
    place = RayBackend(build_recipe(evaluation), build_setup, address)
    controls = RunControls(backend=place, watch=touch_go_when_stopping)
    return asyncio.run(execute(evaluation, SQLiteHistory(Path("h.db")), controls))

if __name__ == "__main__":
    before = signal.getsignal(signal.SIGTERM)
    report = main(sys.argv[1], sys.argv[2] or None)
    assert signal.getsignal(signal.SIGTERM) is before
    import ray
    assert not ray.is_initialized()
    print(report.total, report.pass_rate)
"""


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check for missing actors often, and report them early."""
    monkeypatch.setattr(ray_backend, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(ray_backend, "QUIET_SECONDS", 0.2)


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
