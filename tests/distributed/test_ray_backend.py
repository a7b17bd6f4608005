"""The Ray backend with actors in this process: timeouts, budgets, other code, samples that cannot be sent.

`test_on_ray` tests it with a real Ray.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor import Sample, SQLiteHistory
from proctor.distributed import ray_backend
from proctor.distributed.ray_backend import RayBackend
from proctor.errors import ConfigError, RunStopped
from proctor.wiring.prepare import Evaluation, build_recipe, build_setup
from tests.distributed.ray_runs import LocalRay, exam, exam_folder, run_on_ray, warnings
from tests.support import samples

__all__ = ["exam_folder"]


@pytest.fixture(autouse=True)
def _local_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_backend, "import_ray", LocalRay)
    monkeypatch.setattr(ray_backend, "WATCH_SECONDS", 0.05)


@pytest.mark.parametrize("target", ["dawdle", "adawdle"])
def test_timeouts_work_in_an_actor(target: str) -> None:
    """A call that takes too long is an error of its trial, for sync and async targets."""
    report = run_on_ray(exam(target, dataset=samples(4), options={"timeout": 1.0}))
    assert [result.outcome for result in report.results] == ["passed", "error", "passed", "passed"]
    assert report.results[1].error == "TimeoutError: the target took longer than 1 s"


def test_other_code_on_a_node_ends_the_run() -> None:
    """The error names the code of the actor and of the run."""
    with pytest.raises(RunStopped, match=r"runs 'meet@\w+ exact_match@\w+'") as caught:
        run_on_ray(exam("shout"), recipe=build_recipe(exam("meet")))
    assert "this run expects 'shout@" in str(caught.value)
    assert "install the same code, on the same Python, on every node" in str(caught.value)


def test_missing_files_on_a_node_end_the_run() -> None:
    """The error of the actor says what is missing."""
    recipe = build_recipe(Evaluation("gone.py:target", (), ["exact_match"]))
    with pytest.raises(RunStopped, match=r"file not found: gone\.py"):
        run_on_ray(exam("shout"), recipe=recipe)


def test_a_budget_covers_all_actors() -> None:
    """Their total usage ends the run."""
    with pytest.raises(RunStopped, match="the budget is spent: 60 of 60 tokens"):
        run_on_ray(exam("asking", options={"concurrency": 1, "budget": {"tokens": 60}}))
    (run,) = SQLiteHistory(Path("h.db")).runs()
    assert run.spent is not None
    assert (run.spent.calls, run.spent.tokens) == (6, 60)
    assert SQLiteHistory(Path("h.db")).report("exam").total == 6


def test_an_unknown_price_ends_a_run_with_a_budget() -> None:
    """As in a local run."""
    with pytest.raises(RunStopped, match="the price of test:model is unknown"):
        run_on_ray(exam("asking", options={"budget": {"cost": 1.0}}))


def test_samples_that_json_does_not_support_are_errors() -> None:
    """Neither an object nor a tuple is sent as something else."""
    odd = [Sample("a", object()), Sample("b", "word 5", "WORD 5"), Sample("c", ("word", 5))]
    report = run_on_ray(exam("shout", dataset=odd))
    assert [result.outcome for result in report.results] == ["error", "passed", "error"]
    assert str(report.results[2].error).endswith("input: a tuple arrives as a list")
    assert report.results[0].error == (
        "Unsendable: the sample cannot be sent as JSON: input: an object arrives as a dict"
    )


def test_a_run_without_actors_ends_after_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says why, and the run can be resumed."""
    monkeypatch.setattr(ray_backend, "import_ray", lambda: LocalRay(free_cpus=0.0))
    with pytest.raises(RunStopped, match="no Ray actor could be started") as caught:
        run_on_ray(exam("shout"), worker_timeout=0.5)
    assert "1 of 1 Ray actors wait for resources: free are 0 of 2 CPU" in str(caught.value)


def test_unused_cpus_cause_a_warning() -> None:
    """The concurrency is not exceeded, and the report says which value would use all."""
    report = run_on_ray(exam("shout", dataset=samples(3), options={"concurrency": 1}), actors=None)
    assert {result.delivery.worker for result in report.results if result.delivery}
    (warning,) = warnings(report)
    assert warning.startswith("ray: only 1 of 2 possible actors ran")


def test_invalid_settings_are_refused_at_once() -> None:
    """No actor, one and a half GPUs, a function without an importable name, a cache: each error says why."""
    recipe = build_recipe(exam("shout"))
    with pytest.raises(ConfigError, match="actors must be 1 or more, got 0"):
        RayBackend(recipe, build_setup, actors=0)
    for gpus in (-1, 1.5):
        with pytest.raises(ConfigError, match=f"gpus must be 0, a fraction of 1, or an integer, got {gpus}"):
            RayBackend(recipe, build_setup, gpus=gpus)
    with pytest.raises(ConfigError, match="cannot be found by its name on another machine"):
        RayBackend(recipe, lambda data: build_setup(data))
    with pytest.raises(ConfigError, match="workers do not cache outputs"):
        run_on_ray(exam("shout", options={"cache": True}))
