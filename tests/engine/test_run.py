"""A run: every sample, configuration and epoch has one result, whatever the target does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    EvalReport,
    EvalRunner,
    ModelCall,
    Reply,
    Sample,
    Score,
    SQLiteHistory,
    ToolCall,
    Usage,
    aevaluate,
    contains,
    evaluate,
    exact_match,
    record,
)
from proctor.engine.run import handle_interrupts
from proctor.engine.timeouts import CallScope, WorkerSlot
from proctor.errors import ConfigError, DatasetError, RunStopped
from tests.support import samples, shout


def test_every_sample_has_its_result_in_order(tmp_path: Path) -> None:
    """Results are in the order of the dataset, each with its output and scores."""
    report = evaluate(shout, samples(50), [exact_match, contains], history=tmp_path / "h.db")
    assert [r.sample_id for r in report.results] == [f"s{i}" for i in range(50)]
    assert {r.output for r in report.results} == {f"WORD {i}" for i in range(50)}
    assert all(list(r.scores) == ["exact_match", "contains"] for r in report.results)
    assert report.pass_rate == report.strict_pass_rate == 1.0


def test_configurations_and_epochs_multiply(tmp_path: Path) -> None:
    """Two configurations and three epochs of four samples give 24 results, each its own."""

    async def target(text: str, *, loud: bool) -> str:
        return text.upper() if loud else text

    report = evaluate(
        target,
        samples(4),
        exact_match,
        configurations={"loud": {"loud": True}, "quiet": {"loud": False}},
        epochs=3,
        history=False,
    )
    seen = {(r.sample_id, r.trial.configuration, r.trial.epoch) for r in report.results}
    assert len(seen) == report.total == 24
    assert report.by_configuration["loud"]["pass_rate"].value == 1.0
    assert report.by_configuration["quiet"]["pass_rate"].value == 0.0


def test_ruling_2_a_bad_trial_is_data() -> None:
    """Ruling 2: failing samples give error results and leave their neighbours alone."""

    async def target(text: str) -> str:
        if text.endswith("3"):
            raise ValueError("no threes")
        return text.upper()

    report = evaluate(target, samples(10), exact_match, history=False)
    assert report.total == 10
    assert report.errors == 1
    assert report.pass_rate == 1.0
    assert report.strict_pass_rate == 0.9
    bad = report.results.page(outcome="error")[0]
    assert (bad.sample_id, bad.error, bad.scores) == ("s3", "ValueError: no threes", {})
    assert "raise ValueError" in bad.trial.error.traceback  # type: ignore[union-attr]
    assert report.results.error_kinds() == {"ValueError": 1}


class Odd(BaseException):
    """An exception that is not an `Exception`."""


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), Odd()])
def test_ruling_2_even_stubborn_exceptions_are_data(error: BaseException) -> None:
    """Ruling 2: a target that exits, cancels itself or worse ends only its own trial."""

    async def target(text: str) -> str:
        if text == "word 1":
            raise error
        return text.upper()

    report = evaluate(target, samples(3), exact_match, history=False)
    assert [r.outcome for r in report.results] == ["passed", "error", "passed"]


def test_ruling_2_an_evaluators_error_is_its_own() -> None:
    """Ruling 2: one evaluator's error spoils neither the other evaluators nor the other samples."""

    def picky(output: str, expected: str) -> bool:
        if output == "WORD 1":
            raise RuntimeError("not this one")
        return True

    report = evaluate(shout, samples(3), [exact_match, picky], history=False)
    assert [r.outcome for r in report.results] == ["passed", "unscored", "passed"]
    assert report.results[1].scores["picky"].status == "error"
    assert report.metrics["exact_match.mean"].n == 3
    assert (report.metrics["picky.mean"].n, report.metrics["picky.mean"].errors) == (2, 1)


def test_ruling_4_latency_is_measured_for_failures() -> None:
    """Ruling 4: a trial that fails after 20 ms has a latency of at least 20 ms."""

    async def target(_: str) -> str:
        await asyncio.sleep(0.02)
        raise ValueError("late")

    report = evaluate(target, samples(2), exact_match, history=False)
    assert all((r.latency_ms or 0) >= 19 for r in report.results)
    assert report.mean_latency_ms is not None
    assert report.mean_latency_ms >= 19


def test_the_latency_of_a_blocking_target_is_the_time_in_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waits for a thread and for the event loop do not count, with and without a cache."""
    ticks = iter([0.0, 5.0, 5.25])
    scope = CallScope(WorkerSlot(monotonic=lambda: next(ticks)))
    assert scope.call_timed(str.upper, "a") == "A"
    assert scope.seconds_in_thread == 0.25

    def call_for_1500_ms(scope: CallScope, function: Callable[..., Any], *arguments: Any) -> Any:
        scope.seconds_in_thread = 1.5
        return function(*arguments)

    monkeypatch.setattr(CallScope, "call_timed", call_for_1500_ms)
    for cache in (False, True, True):
        report = evaluate(str.upper, samples(2), exact_match, cache=cache, history=tmp_path / "runs")
        assert [r.latency_ms for r in report.results] == [1500.0, 1500.0]


def test_ruling_6_evaluators_report_in_order_and_wait_side_by_side() -> None:
    """Ruling 6: waiting evaluators overlap, and their scores are in the order of definition."""
    both = asyncio.Event()
    here: list[str] = []

    async def meets(name: str) -> bool:
        here.append(name)
        if len(here) == 2:
            both.set()
        # One after the other they would never meet.
        await asyncio.wait_for(both.wait(), 20)
        return True

    async def slow(output: str) -> bool:
        return await meets("slow")

    async def also_slow(output: str) -> bool:
        return await meets("also_slow")

    report = evaluate(shout, samples(1), [slow, exact_match, also_slow], history=False)
    assert list(report.results[0].scores) == ["slow", "exact_match", "also_slow"]
    assert report.pass_rate == 1.0


def test_ruling_8_times_are_aware_utc() -> None:
    """Ruling 8: wall times are aware and in UTC."""
    report = evaluate(shout, samples(1), exact_match, history=False)
    run = report.metadata
    assert run is not None
    for moment in (run.started_at, run.finished_at, report.results[0].trial.started_at):
        assert moment is not None
        assert moment.utcoffset() is not None
        assert moment.utcoffset().total_seconds() == 0  # type: ignore[union-attr]


def test_samples_run_side_by_side_up_to_the_limit() -> None:
    """Concurrency is used and never exceeded."""
    active = most = 0

    async def target(text: str) -> str:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.005)
        active -= 1
        return text.upper()

    evaluate(target, samples(40), exact_match, concurrency=7, history=False)
    assert most == 7


def test_sync_targets_run_side_by_side_in_threads() -> None:
    """A blocking target does not block its neighbours: all of them meet."""
    threads, meeting = set(), threading.Barrier(20, timeout=30)

    def target(text: str) -> str:
        threads.add(threading.get_ident())
        meeting.wait()
        return text.upper()

    report = evaluate(target, samples(20), exact_match, concurrency=20, history=False)
    assert report.pass_rate == 1.0
    assert threading.get_ident() not in threads


def test_blocking_evaluators_do_not_block_the_run() -> None:
    """A plain evaluator may block: it runs in a thread, in parallel with others."""
    meeting = threading.Barrier(5, timeout=30)

    def judge(output: str, expected: str) -> bool:
        meeting.wait()
        return output == expected

    report = evaluate(shout, samples(20), judge, concurrency=5, history=False)
    assert report.pass_rate == 1.0


def test_usage_comes_from_the_reply_or_from_the_session() -> None:
    """Tokens come from a Reply, or are the sum of the model calls recorded during the trial."""

    async def replying(text: str) -> Reply:
        return Reply(text.upper(), usage=Usage(input_tokens=10, output_tokens=2))

    def recording(text: str) -> str:
        record(ModelCall("tiny", Usage(input_tokens=3, output_tokens=1)))
        record(ModelCall("tiny", Usage(input_tokens=4)))
        record(ToolCall("search", {"q": text}))
        return text.upper()

    for target, tokens in ((replying, 12), (recording, 8)):
        report = evaluate(target, samples(5), exact_match, history=False)
        assert report.metrics["tokens.mean"].value == tokens
        assert report.metrics["tokens.total"].value == 5 * tokens
    session = report.results[0].trial.session
    assert session is not None
    assert [call.name for call in session[ToolCall]] == ["search"]


def test_sessions_of_neighbours_do_not_mix() -> None:
    """What a trial records lands in its own session, across tasks and threads."""

    async def target(text: str) -> str:
        async def tool() -> None:
            await asyncio.sleep(0.001)
            record(ToolCall(text))

        await asyncio.gather(tool(), asyncio.to_thread(record, ToolCall(text)))
        return text.upper()

    report = evaluate(target, samples(30), exact_match, history=False)
    for result in report.results:
        assert result.trial.session is not None
        calls = [call.name for call in result.trial.session[ToolCall]]
        assert calls == [result.trial.sample.input] * 2


def test_evaluators_that_want_the_session_get_it() -> None:
    """A third positional parameter is the session of the trial."""

    def target(text: str) -> str:
        record(ToolCall("search"))
        return text.upper()

    def searched(output: str, expected: str, session: Any) -> Score:
        called = any(call.name == "search" for call in session[ToolCall])
        return Score(float(called), called)

    assert evaluate(target, samples(3), searched, history=False).pass_rate == 1.0


def test_on_error_raise_stops_the_run(tmp_path: Path) -> None:
    """It names the sample, and finished results are stored."""

    async def target(text: str) -> str:
        if text == "word 3":
            raise ValueError("no threes")
        await asyncio.sleep(0)
        return text.upper()

    history = SQLiteHistory(tmp_path / "h.db")
    with pytest.raises(RunStopped, match="sample 's3' failed: ValueError: no threes") as stopped:
        evaluate(target, samples(100), exact_match, concurrency=1, on_error="raise", history=history)
    report = history.report(stopped.value.run_id)
    assert [r.sample_id for r in report.results] == ["s0", "s1", "s2", "s3"]
    assert report.metadata is not None
    assert report.metadata.status == "failed"


def test_max_errors_stops_the_run(tmp_path: Path) -> None:
    """After max_errors failed trials no further one is begun."""

    async def target(_: str) -> str:
        raise ValueError("never")

    history = SQLiteHistory(tmp_path / "h.db")
    with pytest.raises(RunStopped, match="stopped after 5 errors"):
        evaluate(target, samples(100), exact_match, concurrency=1, max_errors=5, history=history)
    assert history.report("latest").total == 5


def test_limit_takes_the_first_samples() -> None:
    """limit=3 runs three samples of a longer dataset."""
    report = evaluate(shout, samples(10), exact_match, limit=3, history=False)
    assert [r.sample_id for r in report.results] == ["s0", "s1", "s2"]


def test_an_iterator_is_streamed_and_a_fault_in_it_ends_the_run(tmp_path: Path) -> None:
    """Items of an iterator run as they come; a bad one is named, and what was finished is kept."""

    def rows() -> Any:
        yield {"id": "a", "input": "x", "expected": "X"}
        yield {"id": "b", "input": "y", "expected": "Y"}
        yield {"id": "c"}

    history = SQLiteHistory(tmp_path / "h.db")
    with pytest.raises(DatasetError, match="input"):
        evaluate(shout, rows(), exact_match, concurrency=1, history=history)
    report = history.report("latest")
    assert [r.sample_id for r in report.results] == ["a", "b"]
    assert report.metadata is not None
    assert report.metadata.status == "failed"


def test_ruling_1_no_expected_value_is_skipped_not_zero() -> None:
    """Ruling 1: samples without an expected value are skipped, counted, and in no mean."""
    data = [Sample("a", "x", "X"), Sample("b", "y")]
    report = evaluate(shout, data, exact_match, history=False)
    assert [r.outcome for r in report.results] == ["passed", "skipped"]
    mean = report.metrics["exact_match.mean"]
    assert (mean.value, mean.n, mean.skipped) == (1.0, 1, 1)


def test_all_faults_are_reported_before_the_run(tmp_path: Path) -> None:
    """Of target, dataset, evaluators, options and configurations."""
    ran = []
    with pytest.raises(ConfigError) as error:
        evaluate(
            lambda text: ran.append(text),
            tmp_path / "missing.jsonl",
            ["exact_macth"],
            configurations={"a": {"temperature": 1}},
            concurrency=0,
            history=tmp_path / "h.db",
        )
    text = str(error.value)
    for part in ("missing.jsonl", "exact_macth", "exact_match", "temperature", "concurrency"):
        assert part in text
    assert ran == []
    assert not (tmp_path / "h.db").exists()


def test_evaluate_works_inside_a_running_loop_and_in_threads() -> None:
    """Notebooks have a loop running; worker threads have none: both may call evaluate."""
    reports: list[EvalReport] = []

    async def notebook() -> None:
        reports.append(evaluate(shout, samples(5), exact_match, history=False))
        reports.append(await aevaluate(shout, samples(5), exact_match, history=False))

    asyncio.run(notebook())
    thread = threading.Thread(target=lambda: reports.append(evaluate(shout, samples(5), exact_match, history=False)))
    thread.start()
    thread.join()
    assert [report.pass_rate for report in reports] == [1.0, 1.0, 1.0]


def test_a_cancelled_aevaluate_stores_finished_trials(tmp_path: Path) -> None:
    """The run can be resumed."""

    async def target(text: str) -> str:
        if text == "word 5":
            await asyncio.sleep(60)
        return text.upper()

    history = SQLiteHistory(tmp_path / "h.db")

    async def main() -> None:
        run = asyncio.ensure_future(aevaluate(target, samples(10), exact_match, history=history, concurrency=2))
        await asyncio.sleep(0.3)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(main())
    report = history.report("latest")
    assert report.metadata is not None
    assert report.metadata.status == "interrupted"
    assert report.total == 9


def test_the_runner_is_the_spec_s_face_of_the_same() -> None:
    """EvalRunner is set up once and runs on datasets."""
    runner = EvalRunner(shout, [exact_match], timeout_seconds=5.0, concurrency=3)
    report = runner.run(samples(4), history=False)
    assert report.metadata is not None
    assert report.pass_rate == 1.0
    assert (report.metadata.options.timeout, report.metadata.options.concurrency) == (5.0, 3)
    with pytest.raises(RunStopped):
        EvalRunner(lambda _: 1 / 0, exact_match, continue_on_error=False).run(samples(1), history=False)


def test_one_failed_score_fails_the_result() -> None:
    """Even if another evaluator had an error."""

    def broken(output: str) -> bool:
        raise RuntimeError("not today")

    report = evaluate(shout, [Sample("a", "x", "no")], [exact_match, broken], history=False)
    assert report.results[0].outcome == "failed"
    assert report.pass_rate == 0.0


@pytest.mark.parametrize(
    "odd",
    [
        lambda: record(ModelCall("m", usage={"input_tokens": 3})),  # type: ignore[arg-type]
        lambda: Reply("A", session="none"),  # type: ignore[arg-type]
        lambda: Reply("A", usage={"input_tokens": 3}),  # type: ignore[arg-type]
    ],
)
def test_ruling_2_a_reply_that_does_not_hold_together_is_data(odd: Any) -> None:
    """Ruling 2: whatever a target returns or records, its neighbours are not touched."""

    def target(text: str) -> Any:
        value = odd() if text == "word 0" else None
        return value or text.upper()

    report = evaluate(target, samples(3), exact_match, history=False)
    assert report.total == 3
    assert [r.outcome for r in report.results][1:] == ["passed", "passed"]


@pytest.mark.parametrize("options", [{"on_error": "raise"}, {"max_errors": 1}])
def test_once_stopped_no_further_sample_is_begun(options: dict[str, Any], tmp_path: Path) -> None:
    """An instant target that fails at once is called once, however many workers there are."""
    calls = []

    async def target(text: str) -> str:
        calls.append(text)
        raise ValueError("no")

    with pytest.raises(RunStopped):
        evaluate(target, samples(50), exact_match, history=tmp_path / "h.db", **options)
    assert len(calls) == 1


def test_several_threads_may_share_a_history(tmp_path: Path) -> None:
    """Six runs at once through one history object lose nothing."""
    history = SQLiteHistory(tmp_path / "h.db")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            evaluate(shout, samples(20), exact_match, history=history, name=f"run {number}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(len(history.results(run.run_id)) for run in history.runs()) == [20] * 6


def test_two_runs_in_one_loop_leave_ctrl_c_as_it_was() -> None:
    """Runs side by side both listen for Ctrl-C, and afterwards the handler is the one before."""
    import signal

    before = signal.getsignal(signal.SIGINT)

    async def slow(text: str) -> str:
        await asyncio.sleep(0.05)
        return text.upper()

    async def both() -> None:
        await asyncio.gather(
            aevaluate(shout, samples(2), exact_match, history=False),
            aevaluate(slow, samples(2), exact_match, history=False),
        )

    asyncio.run(both())
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_is_for_the_runs_that_go_on() -> None:
    """One that is over lies under one that is not: it does not raise in the midst of that one."""
    import signal

    before = signal.getsignal(signal.SIGINT)
    lines: list[str] = []

    async def nested() -> None:
        first = handle_interrupts(lambda: lines.append("first"))
        second = handle_interrupts(lambda: lines.append("second"))
        with first:
            second.__enter__()
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        assert lines == ["second"]
        with handle_interrupts(lambda: lines.append("third")):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)
        second.__exit__(None, None, None)

    asyncio.run(nested())
    assert lines[1:] == ["third", "second"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_empty_dataset_is_refused() -> None:
    """A run over nothing would only look like a success."""
    with pytest.raises(DatasetError, match="no samples"):
        evaluate(shout, [], exact_match, history=False)


def test_an_async_progress_callback_is_refused() -> None:
    """Nobody would await it."""

    async def tell(event: Any) -> None:
        raise AssertionError

    with pytest.raises(ConfigError, match="plain function"):
        evaluate(shout, samples(1), exact_match, history=False, on_progress=tell)


def test_a_report_has_a_readable_repr() -> None:
    """For notebooks."""
    report = evaluate(shout, samples(3), exact_match, history=False)
    assert repr(report).endswith(": 3 passed, 0 failed, 0 errors, 0 skipped>")
