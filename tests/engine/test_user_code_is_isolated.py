"""Targets and evaluators cannot change the engine's task and context."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from proctor import evaluate, evaluator, exact_match, rescore
from proctor.core.isolation import UserCall, is_interrupt, outside_task
from proctor.records.score import Score
from tests.support import samples, shout
from tests.tables import each_row

USER: ContextVar[str] = ContextVar("user", default="nobody")


def cancel_current() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def cancel_and_wait() -> None:
    cancel_current()
    await asyncio.sleep(0)


async def cancel_and_return() -> None:
    cancel_current()


async def cancel_twice() -> None:
    for _ in range(2):
        cancel_current()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
    cancel_current()
    await asyncio.sleep(0)


async def cancel_later() -> None:
    """A watchdog that is never stopped: it fires long after the call has returned."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_later(0.01, task.cancel)


async def cancel_a_child() -> None:
    async with asyncio.TaskGroup() as group:
        child = group.create_task(asyncio.sleep(60))
        group.create_task(cancel_and_wait())
        await asyncio.sleep(0)
        child.cancel()


async def cancel_from_a_child() -> None:
    parent = asyncio.current_task()
    assert parent is not None
    async with asyncio.TaskGroup() as group:
        wake: Any = asyncio.get_running_loop().call_soon_threadsafe
        group.create_task(asyncio.to_thread(wake, parent.cancel))
        await asyncio.sleep(60)


async def fail_in_a_group() -> None:
    async def fail() -> None:
        raise ValueError("a child failed")

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
        await asyncio.sleep(60)


async def cancel_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)


MISDEEDS = [
    cancel_and_wait, cancel_and_return, cancel_twice, cancel_later, cancel_a_child,
    cancel_from_a_child, fail_in_a_group, cancel_all,
]  # fmt: skip


@each_row("concurrency", [1, 2, 8])
@each_row("misdeed", MISDEEDS)
def test_a_target_that_cancels_its_task_loses_no_sample(misdeed: Any, concurrency: int) -> None:
    """8 samples give 8 results; the six that behave pass, whatever the others did."""

    async def target(text: str) -> str:
        if text in ("word 1", "word 4"):
            await misdeed()
        await asyncio.sleep(0.002)
        return text.upper()

    report = evaluate(target, samples(8), exact_match, concurrency=concurrency, history=False)
    assert [result.sample_id for result in report.results] == [f"s{i}" for i in range(8)]
    others = [r.outcome for r in report.results if r.sample_id not in ("s1", "s4")]
    assert others == ["passed"] * 6
    assert report.metadata.status == "completed"  # type: ignore[union-attr]


@each_row("misdeed", MISDEEDS)
def test_an_evaluator_that_cancels_its_task_loses_no_sample(misdeed: Any) -> None:
    """Every sample has a result, and the other evaluator's verdict on it."""

    async def judge(output: str) -> bool:
        if output in ("WORD 1", "WORD 4"):
            await misdeed()
        await asyncio.sleep(0.002)
        return True

    report = evaluate(shout, samples(8), [exact_match, judge], concurrency=2, history=False)
    assert report.total == 8
    assert all(result.scores["exact_match"].passed for result in report.results)
    others = [r for r in report.results if r.sample_id not in ("s1", "s4")]
    assert all(result.scores["judge"].passed for result in others)


def test_a_self_cancelled_target_is_an_error_in_words() -> None:
    """The result says that the target was cancelled, and not by us."""

    async def target(text: str) -> str:
        await cancel_and_wait()
        return text

    report = evaluate(target, samples(1), exact_match, history=False)
    assert report.results[0].error == ("CancelledError: the target was cancelled from inside, not by Proctor")


def test_an_inline_evaluator_cannot_cancel_the_worker() -> None:
    """A quick evaluator runs outside any task: there is none that it could cancel."""

    @evaluator(category="test", pure=True)
    def hostile(output: str) -> bool:
        task = asyncio.current_task()
        if task is not None:
            task.cancel()
        return task is None

    report = evaluate(shout, samples(5), hostile, concurrency=1, history=False)
    assert [r.outcome for r in report.results] == ["passed"] * 5


def test_a_progress_callback_cannot_cancel_the_worker() -> None:
    """Callbacks run outside any task too."""
    tasks = []
    report = evaluate(
        shout, samples(5), exact_match, history=False, on_progress=lambda _: tasks.append(asyncio.current_task())
    )
    assert report.total == 5
    assert set(tasks) == {None}


def test_context_variables_do_not_leak_between_samples() -> None:
    """What one sample sets, the next one does not see, with one worker and with several."""
    for concurrency in (1, 3):
        seen = []

        async def target(text: str) -> str:
            seen.append(USER.get())  # noqa: B023
            USER.set(text)
            await asyncio.sleep(0)
            assert USER.get() == text
            return text.upper()

        evaluate(target, samples(6), exact_match, concurrency=concurrency, history=False)
        assert seen == ["nobody"] * 6


def test_evaluators_do_not_see_what_the_target_or_another_evaluator_set() -> None:
    """Inline, blocking and async evaluators each have a context of their own."""
    seen = []

    def look(name: str) -> bool:
        seen.append(USER.get())
        USER.set(name)
        return True

    @evaluator(category="test", pure=True)
    def first(output: str) -> bool:
        return look("first")

    @evaluator(category="test", pure=True)
    def second(output: str) -> bool:
        return look("second")

    def blocking(output: str) -> bool:
        return look("blocking")

    async def waiting(output: str) -> bool:
        return look("waiting")

    async def target(text: str) -> str:
        USER.set("target")
        return text

    evaluate(target, samples(3), [first, second], concurrency=1, history=False)
    evaluate(target, samples(3), [first, blocking, waiting, second], concurrency=1, history=False)
    assert set(seen) == {"nobody"}
    assert len(seen) == 3 * 2 + 3 * 4


def test_the_caller_s_context_reaches_targets_and_evaluators() -> None:
    """What was set before the run is seen inside, and is unchanged afterwards."""
    token = USER.set("ann")
    seen = []

    async def target(text: str) -> str:
        seen.append(USER.get())
        USER.set("bob")
        return text

    def judge(output: str) -> bool:
        seen.append(USER.get())
        return True

    try:
        evaluate(target, samples(2), judge, history=False)
        assert (USER.get(), set(seen)) == ("ann", {"ann"})
    finally:
        USER.reset(token)


def test_an_async_evaluator_that_ignores_its_cancellation_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the grace time its score is an error."""
    monkeypatch.setattr("proctor.engine.timeouts.GRACE_SECONDS", 0.05)

    async def stubborn(output: str) -> bool:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    report = evaluate(shout, samples(2), [exact_match, stubborn], evaluator_timeout=0.05, history=False)
    assert [r.scores["stubborn"].status for r in report.results] == ["error", "error"]


def test_a_rescoring_survives_an_evaluator_that_cancels_itself(tmp_path: Any) -> None:
    """Every stored trial is scored."""

    async def judge(output: str) -> bool:
        await cancel_and_wait()
        return True

    first = evaluate(shout, samples(4), exact_match, history=tmp_path / "h.db")
    again = rescore(first.run_id, judge, history=tmp_path / "h.db")
    assert (again.total, again.counts.unscored) == (4, 4)


def test_a_sync_target_that_raises_cancelled_is_not_a_time_out() -> None:
    """Its thread is used again, and no warning says that a call ran out of time."""

    def target(text: str) -> str:
        raise asyncio.CancelledError

    report = evaluate(target, samples(3), exact_match, history=False)
    assert report.errors == 3
    assert report.metadata.warnings == ()  # type: ignore[union-attr]


def test_the_loop_may_be_stopped_from_inside() -> None:
    """`loop.stop()` in a target ends nothing."""

    async def target(text: str) -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return text.upper()

    report = evaluate(target, samples(4), exact_match, concurrency=2, history=False)
    assert [r.outcome for r in report.results] == ["passed"] * 4


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_child_task_that_exits_ends_only_its_sample(error: type[BaseException]) -> None:
    """asyncio raises such an exception through the loop as well; the run continues."""

    async def leave() -> None:
        raise error

    async def target(text: str) -> str:
        if text == "word 1":
            async with asyncio.TaskGroup() as group:
                group.create_task(leave())
        return text.upper()

    report = evaluate(target, samples(4), exact_match, concurrency=1, history=False)
    assert [r.outcome for r in report.results] == ["passed", "error", "passed", "passed"]


def test_keyboard_interrupt_of_user_code_is_data_in_targets_and_evaluators() -> None:
    """Only a real Ctrl-C ends a run, and during a run that raises nothing."""

    async def target(text: str) -> str:
        if text == "word 0":
            raise KeyboardInterrupt("from a library")
        return text.upper()

    async def judge(output: str) -> Score:
        if output == "WORD 1":
            raise KeyboardInterrupt
        return Score(1.0, True)

    def blocking(output: str) -> bool:
        if output == "WORD 2":
            raise KeyboardInterrupt
        return True

    report = evaluate(target, samples(4), [judge, blocking], concurrency=1, history=False)
    assert [r.outcome for r in report.results] == ["error", "unscored", "unscored", "passed"]
    assert report.results[0].error == "KeyboardInterrupt: from a library"


def test_a_keyboard_interrupt_may_be_real_only_in_the_main_thread() -> None:
    """Python raises it there and nowhere else."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(is_interrupt(KeyboardInterrupt())))
    thread.start()
    thread.join()
    assert answers == [False]


def test_a_call_that_waits_for_a_future_of_another_loop_fails() -> None:
    """The first step of a call checks what it awaits, as every task does."""
    loop = asyncio.new_event_loop()
    foreign = loop.create_future()
    loop.close()

    async def main() -> BaseException | None:
        async def wait() -> None:
            await foreign

        call = UserCall(wait)
        await call.wait()
        return call.error

    error = asyncio.run(main())
    assert isinstance(error, RuntimeError)
    assert "different loop" in str(error)


def test_a_call_s_task_is_the_same_from_its_first_to_its_last_step() -> None:
    """Time-outs and task groups of the user's hold on to it."""

    async def main() -> list[Any]:
        async def steps() -> list[Any]:
            tasks = [asyncio.current_task()]
            async with asyncio.timeout(5):
                await asyncio.sleep(0)
            tasks.append(asyncio.current_task())
            await asyncio.sleep(0)
            return [*tasks, asyncio.current_task()]

        call = UserCall(steps)
        await call.wait()
        return [*call.value, asyncio.current_task(), outside_task(asyncio.current_task)]

    first, second, third, caller, nobody = asyncio.run(main())
    assert first is second is third is not caller
    assert caller is not None
    assert nobody is None


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_target_that_changes_its_input_changes_it_for_itself_alone(epochs: int) -> None:
    """Each call has a copy of the input; later trials and the report have the original."""
    lengths: list[int] = []

    def bot(messages: Any, *, model: str = "") -> str:
        lengths.append(len(messages))
        messages.append({"role": "assistant", "content": "Paris"})
        return "Paris"

    data = [{"id": "a", "input": [{"role": "user", "content": "Capital?"}], "expected": "Paris"}]
    report = evaluate(
        bot,
        data,
        [exact_match],
        configurations={"weak": {"model": "a"}, "strong": {"model": "b"}},
        epochs=epochs,
        history=False,
    )
    assert lengths == [1] * 2 * epochs
    assert all(len(result.trial.sample.input) == 1 for result in report.results)


def test_a_generator_that_is_returned_is_the_targets_error() -> None:
    """A stream that was not read is not an output."""

    def stream(question: str) -> Any:
        return (word for word in ["Paris"])

    report = evaluate(stream, [{"id": "a", "input": "x", "expected": "y"}], [exact_match], history=False)
    assert report.results[0].error is not None
    assert "generator" in str(report.results[0].error)
