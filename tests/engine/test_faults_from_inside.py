"""Targets and evaluators that misbehave from inside: every trial has a result, and neighbours
have exactly the result that they have alone."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor import SQLiteHistory, evaluate, evaluator
from proctor.records.sample import Sample
from tests.tables import each_row

LEAK: ContextVar[str] = ContextVar("leak", default="clean")


class Custom(BaseException):
    """Neither an Exception nor one of Python's own."""


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise Custom


class Hostile:
    """An object that raises whatever is asked of it."""

    def _refuse(self, *_: object) -> Any:
        raise Custom("hands off")

    __repr__ = __str__ = __eq__ = __bool__ = __len__ = __iter__ = __getattr__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class Liar:
    """An object that raises when it is asked for its class."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise Custom("no class")


def circle() -> Any:
    inside: list[Any] = [1]
    inside.append({"again": inside})
    return inside


async def _nothing() -> None:
    """A coroutine that is never awaited."""


def never_awaited() -> Any:
    coroutine = _nothing()
    coroutine.close()
    return coroutine


def raising(make: Callable[[], BaseException]) -> Callable[[], Any]:
    def fault() -> Any:
        raise make()

    return fault


def returning(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: make()


def leak_context() -> str:
    LEAK.set("dirty")
    return "done"


def leak_thread() -> str:
    threading.Thread(target=time.sleep, args=(0.05,), daemon=True).start()
    return "done"


def change_folder() -> str:
    os.chdir(tempfile.gettempdir())
    return "done"


def change_environment() -> str:
    os.environ["PROCTOR_HISTORY"] = "/nowhere/at/all.db"
    return "done"


def change_signals() -> str:
    # Only the main thread may: elsewhere this raises, which is a fault as well.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return "done"


def change_policy() -> str:
    class NoLoops(asyncio.DefaultEventLoopPolicy):
        def set_event_loop(self, loop: Any) -> None:
            raise RuntimeError("there are no loops")

    asyncio.set_event_loop_policy(NoLoops())
    return "done"


def replace_streams() -> str:
    sys.stdout = sys.stderr = io.StringIO()
    print("lost")
    return "done"


def block() -> str:
    until = time.monotonic() + 0.01
    while time.monotonic() < until:
        pass
    return "done"


ANYWHERE: dict[str, Callable[[], Any]] = {
    "raise SystemExit": raising(lambda: SystemExit(3)),
    "raise KeyboardInterrupt": raising(KeyboardInterrupt),
    "raise GeneratorExit": raising(GeneratorExit),
    "raise CancelledError": raising(asyncio.CancelledError),
    "raise StopIteration": raising(lambda: StopIteration(1)),
    "raise StopAsyncIteration": raising(StopAsyncIteration),
    "raise a BaseException": raising(Custom),
    "raise one without words": raising(Mute),
    "raise a group": raising(lambda: ExceptionGroup("two", [ValueError("a"), TypeError("b")])),
    "raise a base group": raising(lambda: BaseExceptionGroup("all", [SystemExit(1), Custom()])),
    "raise RecursionError": raising(RecursionError),
    "raise MemoryError": raising(MemoryError),
    "raise TimeoutError": raising(TimeoutError),
    "leak a context": leak_context,
    "leak a thread": leak_thread,
    "change the folder": change_folder,
    "change the environment": change_environment,
    "change signal handlers": change_signals,
    "change the loop policy": change_policy,
    "replace the streams": replace_streams,
    "block": block,
    "return a hostile object": returning(Hostile),
    "return a liar": returning(Liar),
    "return a circle": returning(circle),
    "return a generator": returning(lambda: (n for n in range(3))),
    "return a coroutine": returning(never_awaited),
    "return a class": returning(lambda: Hostile),
    "return NaN": returning(lambda: float("nan")),
    "return a huge number": returning(lambda: 10**5000),
    "return half a character": returning(lambda: "\ud800"),
    "return bytes": returning(lambda: b"\xff\x00"),
    "return a set of odd things": returning(lambda: {1, "a", None}),
    "return a lock": returning(threading.Lock),
    "return odd keys": returning(lambda: {(1, 2): object(), None: float("inf")}),
}


async def cancel_task() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return "done"


async def cancel_and_return() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "done"


async def cancel_all_tasks() -> str:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)
    return "done"


async def cancel_much_later() -> str:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_later(0.005, task.cancel)
    return "done"


async def cancel_in_a_group() -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(60)).cancel()
        group.create_task(cancel_task())
    return "done"


async def exit_in_a_group() -> str:
    async def leave() -> None:
        raise SystemExit(4)

    async with asyncio.TaskGroup() as group:
        group.create_task(leave())
        await asyncio.sleep(60)
    return "done"


async def leak_a_task() -> str:
    async def go_on() -> None:
        LEAK.set("leaked")
        await asyncio.sleep(0.01)

    asyncio.ensure_future(go_on())  # noqa: RUF006 - leaked on purpose
    return "done"


async def stop_the_loop() -> str:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return "done"


async def close_the_loop() -> str:
    asyncio.get_running_loop().close()
    return "done"


async def forget_the_loop() -> str:
    asyncio.set_event_loop(None)
    return "done"


async def swallow_cancellation() -> str:
    with contextlib.suppress(asyncio.CancelledError):
        await cancel_task()
    await asyncio.sleep(0.001)
    return "done"


IN_A_LOOP: dict[str, Callable[[], Any]] = {
    "cancel its task": cancel_task,
    "cancel its task and return": cancel_and_return,
    "cancel all tasks": cancel_all_tasks,
    "cancel its task later": cancel_much_later,
    "cancel in a group": cancel_in_a_group,
    "exit in a group": exit_in_a_group,
    "leak a task": leak_a_task,
    "stop the loop": stop_the_loop,
    "close the loop": close_the_loop,
    "forget the loop": forget_the_loop,
    "swallow a cancellation": swallow_cancellation,
}

WELL_BEHAVED = "behave"
COUNT = 6


@pytest.fixture(autouse=True)
def as_before() -> Any:
    """What faults change of the process is put back after each test."""
    folder, environment, policy = Path.cwd(), dict(os.environ), asyncio.get_event_loop_policy()
    streams, handler = (sys.stdout, sys.stderr), signal.getsignal(signal.SIGINT)
    yield lambda: _restore(folder, environment, policy, streams, handler)
    _restore(folder, environment, policy, streams, handler)


def _restore(folder: Path, environment: Any, policy: Any, streams: Any, handler: Any) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    asyncio.set_event_loop_policy(policy)
    sys.stdout, sys.stderr = streams
    signal.signal(signal.SIGINT, handler)


def well_behaved(number: int) -> str:
    return f"{number} in a {LEAK.get()} context"


def data(faults: list[str]) -> list[Sample[Any, Any]]:
    """Well-behaved samples between those with a fault."""
    deeds = [deed for fault in faults for deed in (WELL_BEHAVED, fault)] + [WELL_BEHAVED]
    return [Sample(f"s{n}", {"number": n, "deed": deed}, "any") for n, deed in enumerate(deeds)]


def misbehave_in_a_thread(deed: str) -> Any:
    return ANYWHERE[deed]() if deed in ANYWHERE else asyncio.run(IN_A_LOOP[deed]())


async def misbehave(deed: str) -> Any:
    return ANYWHERE[deed]() if deed in ANYWHERE else await IN_A_LOOP[deed]()


def blocking_target(asked: dict[str, Any]) -> Any:
    if asked["deed"] == WELL_BEHAVED:
        return well_behaved(asked["number"])
    return misbehave_in_a_thread(asked["deed"])


async def waiting_target(asked: dict[str, Any]) -> Any:
    await asyncio.sleep(0.001 * (asked["number"] % 2))
    if asked["deed"] == WELL_BEHAVED:
        return well_behaved(asked["number"])
    return await misbehave(asked["deed"])


async def good_target(asked: dict[str, Any]) -> str:
    return well_behaved(asked["number"])


def lenient(output: Any) -> bool:
    return True


def blocking_judge(output: Any, expected: Any, sample: Sample[Any, Any]) -> Any:
    if sample.input["deed"] == WELL_BEHAVED:
        return LEAK.get() == "clean"
    return misbehave_in_a_thread(sample.input["deed"])


async def waiting_judge(output: Any, expected: Any, sample: Sample[Any, Any]) -> Any:
    if sample.input["deed"] == WELL_BEHAVED:
        return LEAK.get() == "clean"
    return await misbehave(sample.input["deed"])


@evaluator(category="test", pure=True)
def quick_judge(output: Any, expected: Any, sample: Sample[Any, Any]) -> Any:
    if sample.input["deed"] == WELL_BEHAVED:
        return LEAK.get() == "clean"
    # Loops cannot be run inside a loop: of those faults the error itself is the fault.
    return misbehave_in_a_thread(sample.input["deed"])


def check(report: Any, faults: list[str], epochs: int, *, verdicts: bool) -> None:
    """All trials have results, and those of the well-behaved samples are as they are alone."""
    plan = data(faults)
    assert report.metadata.status == "completed"
    assert [result.sample_id for result in report.results] == [sample.id for sample in plan for _ in range(epochs)]
    for result in report.results:
        request = result.trial.sample.input
        if request["deed"] == WELL_BEHAVED:
            assert result.output == f"{request['number']} in a clean context"
            assert result.outcome == "passed"
        elif verdicts:
            assert result.success
            assert result.output == f"{request['number']} in a clean context"


FAULTS = st.lists(st.sampled_from(sorted(ANYWHERE | IN_A_LOOP)), min_size=1, max_size=4)
RUNS = st.fixed_dictionaries(
    {
        "concurrency": st.sampled_from([1, 2, 8]),
        "timeout": st.sampled_from([None, 5.0]),
        "retries": st.sampled_from([0, 1]),
        "epochs": st.sampled_from([1, 2]),
    }
)
OFTEN = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", [waiting_target, blocking_target])
@OFTEN
@given(faults=FAULTS, options=RUNS)
def test_targets_that_misbehave(target: Any, as_before: Any, faults: list[str], options: dict[str, Any]) -> None:
    """Whatever targets do, no trial is lost and no neighbour is changed."""
    with tempfile.TemporaryDirectory() as folder:
        history = SQLiteHistory(Path(folder) / "h.db")
        try:
            report = evaluate(target, data(faults), lenient, history=history, retry_delay=0.0, **options)
        finally:
            as_before()
        check(report, faults, options["epochs"], verdicts=False)
        assert history.find(report.run_id).status == "completed"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("judge", [waiting_judge, blocking_judge, quick_judge])
@OFTEN
@given(faults=FAULTS, options=RUNS)
def test_evaluators_that_misbehave(judge: Any, as_before: Any, faults: list[str], options: dict[str, Any]) -> None:
    """Whatever evaluators do, outputs are kept, and other samples and evaluators are unchanged."""
    options = {**options, "evaluator_timeout": options["timeout"]}
    try:
        report = evaluate(good_target, data(faults), [lenient, judge], history=False, retry_delay=0.0, **options)
    finally:
        as_before()
    check(report, faults, options["epochs"], verdicts=True)
    assert all(result.scores["lenient"].passed for result in report.results)


@pytest.mark.filterwarnings("ignore")
@each_row("fault", sorted(ANYWHERE | IN_A_LOOP))
@pytest.mark.parametrize("target", [waiting_target, blocking_target])
def test_each_fault_alone(target: Any, fault: str, as_before: Any) -> None:
    """Every fault at least once with one worker, where it would hurt most."""
    try:
        report = evaluate(target, data([fault, fault]), lenient, history=False, concurrency=1)
    finally:
        as_before()
    check(report, [fault, fault], 1, verdicts=False)
