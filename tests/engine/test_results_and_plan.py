"""A run is completed only if every planned trial has a result; otherwise it names the missing ones."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor import Dataset, IteratorDataset, Sample, SQLiteHistory, evaluate, exact_match
from proctor.engine.ledger import DoneCounter, Ledger
from proctor.engine.plan import Job
from proctor.errors import DatasetError, EvaluatorError, RunIncomplete, RunStopped
from proctor.records.score import Score
from proctor.records.trial import Configuration
from tests.support import proctor, samples, shout, start


def job(number: int, name: str = "default", epoch: int = 0) -> Job:
    return number, Sample(f"s{number}", number), Configuration(name), epoch


def test_a_plan_whose_jobs_all_have_results_misses_nothing() -> None:
    """Three handed out, three closed, three stored."""
    ledger = Ledger(iter([job(0), job(1), job(2)]), 3)
    for position, *_ in ledger:
        ledger.open.pop(position)
    assert (ledger.describe_missing(3), ledger.describe_surplus(), ledger.is_exhausted) == ("", "", True)


def test_a_job_without_a_result_is_named() -> None:
    """By its sample, with its configuration and epoch where there are several."""
    ledger = Ledger(iter([job(0), job(1, "small", 2), job(2)]), 3)
    jobs = list(ledger)
    ledger.open.pop(jobs[0][0])
    assert ledger.describe_missing(1) == ("2 of 3 planned trials have no result: s1 (small, epoch 2), s2")


def test_trials_that_never_started_are_named() -> None:
    """At most twenty."""
    ledger = Ledger(iter([job(n) for n in range(30)]), 30)
    position, *_ = next(iter(ledger))
    ledger.open.pop(position)
    output = ledger.describe_missing(1)
    assert output.startswith("29 of 30 planned trials have no result: s1, s2, s3")
    assert output.endswith("s19, s20, …")


def test_a_result_that_the_history_lost_is_missing() -> None:
    """What was finished and is not stored counts as missing."""
    ledger = Ledger(iter([job(0), job(1)]), 2)
    for position, *_ in ledger:
        ledger.open.pop(position)
    assert ledger.describe_missing(1) == "1 of 2 planned trials have no result"


def test_trials_of_earlier_sittings_count() -> None:
    """Two were done before, one is run now: the plan of three is complete."""
    skipped = DoneCounter(lambda position, *_: position < 2)
    left = (job(n) for n in range(3) if not skipped(n, f"s{n}", "default", 0))
    ledger = Ledger(left, 3, skipped)
    for position, *_ in ledger:
        ledger.open.pop(position)
    assert ledger.describe_missing(3) == ""


def test_a_stream_shorter_than_its_declared_length_is_not_complete(tmp_path: Path) -> None:
    """With 7 of 10 declared samples, the run is stored with a warning and is not completed."""
    history = SQLiteHistory(tmp_path / "h.db")
    stream = IteratorDataset(({"id": n, "input": str(n)} for n in range(7)), length=10)
    with pytest.raises(RunIncomplete, match="ended after 7 of the 10 planned trials") as stopped:
        evaluate(shout, stream, exact_match, history=history)
    assert stopped.value.report.total == 7
    run = history.find(stopped.value.run_id)
    assert run.status == "interrupted"
    assert any("after 7 of the 10" in warning for warning in run.warnings)


def test_a_stream_longer_than_its_declared_length_is_run_to_its_end() -> None:
    """All 5 have results; that 3 were planned is a warning, and the total is what was run."""
    stream = IteratorDataset(({"id": n, "input": str(n)} for n in range(5)), length=3)
    report = evaluate(shout, stream, exact_match, history=False)
    assert report.metadata is not None
    assert (report.total, report.metadata.total, report.metadata.status) == (5, 5, "completed")
    assert "more samples than its length said" in report.metadata.warnings[0]


@pytest.mark.parametrize("make", [lambda: iter([]), lambda: map(str, ()), lambda: IteratorDataset([])])
def test_a_stream_without_samples_is_refused_like_an_empty_list(make: Callable[[], Any]) -> None:
    """A run of nothing would be complete, with no failure in it; a read iterator is such a stream."""
    datasets: list[Any] = [[], make()]
    for dataset in datasets:
        with pytest.raises(DatasetError, match="the dataset has no samples"):
            evaluate(str.upper, dataset, exact_match, history=False)


def test_a_stream_that_is_cancelled_from_inside_ends_the_run_with_an_error() -> None:
    """Workers do not end one by one as if the stream were over."""

    def stream() -> Any:
        yield {"id": 1, "input": "a"}
        raise asyncio.CancelledError

    with pytest.raises(DatasetError, match="the code of the dataset cancelled reading it"):
        evaluate(shout, IteratorDataset(stream()), exact_match, history=False)


def test_samples_that_a_failing_stream_gave_are_stored(tmp_path: Path) -> None:
    """The database that the samples come from is gone after 50 of them; the running ones are finished."""

    def read() -> Iterator[dict[str, Any]]:
        for number in range(50):
            yield {"id": str(number), "input": "a", "expected": "A"}
        raise ValueError("the database is gone")

    async def answer(text: str) -> str:
        await asyncio.sleep(0.01)
        return text.upper()

    path = tmp_path / "history.db"
    with pytest.raises(ValueError, match="the database is gone"):
        evaluate(answer, IteratorDataset(read()), [exact_match], history=path, progress=False)
    history = SQLiteHistory(path)
    (run,) = history.runs()
    assert (run.status, len(history.results(run.run_id))) == ("failed", 50)


def test_a_file_that_shrinks_during_the_run_is_noticed(tmp_path: Path) -> None:
    """Samples that were counted at the start and are gone are missing, not forgotten."""
    path = tmp_path / "data.jsonl"
    lines = [f'{{"id": "s{n}", "input": "{"x" * 200}"}}\n' for n in range(2_000)]
    path.write_text("".join(lines))

    async def target(text: str) -> str:
        os.truncate(path, 250 * 100)
        return text

    with pytest.raises((RunIncomplete, DatasetError)):
        evaluate(target, str(path), exact_match, history=tmp_path / "h.db", concurrency=1)
    assert SQLiteHistory(tmp_path / "h.db").find("latest").status != "completed"


def test_a_resumed_run_is_complete_when_all_of_its_plan_has_results(tmp_path: Path) -> None:
    """Also if configurations were added, so that old results are not in the plan."""
    history = SQLiteHistory(tmp_path / "h.db")

    async def fragile(text: str) -> str:
        if text == "word 3":
            raise ValueError("no threes")
        return text.upper()

    with pytest.raises(RunStopped):
        evaluate(fragile, samples(6), exact_match, history=history, concurrency=1, on_error="raise")
    resumed = evaluate(fragile, samples(6), exact_match, history=history, resume="latest")
    assert resumed.metadata is not None
    assert (resumed.total, resumed.metadata.status) == (6, "completed")
    assert not any("no result" in warning for warning in resumed.metadata.warnings)


def test_an_interrupted_run_says_what_is_missing(tmp_path: Path) -> None:
    """on_error="raise" after the second of six: four ids are named in the run's warnings."""
    history = SQLiteHistory(tmp_path / "h.db")

    async def fragile(text: str) -> str:
        if text == "word 1":
            raise ValueError("no ones")
        return text.upper()

    with pytest.raises(RunStopped) as stopped:
        evaluate(fragile, samples(6), exact_match, history=history, concurrency=1, on_error="raise")
    warnings = history.find(stopped.value.run_id).warnings
    assert "4 of 6 planned trials have no result: s2, s3, s4, s5" in warnings


@pytest.mark.parametrize("mode", ["inline", "async", "thread"])
def test_max_errors_counts_evaluators_that_fail(mode: str) -> None:
    """A dead judge stops the run after three samples, and the message names it."""

    async def waiting(output: str) -> Score:
        raise PermissionError("401: no such key")

    def blocking(output: str) -> bool:
        raise PermissionError("401: no such key")

    judges: dict[str, Any] = {"async": waiting, "thread": blocking, "inline": blocking}
    called = []

    async def target(text: str) -> str:
        called.append(text)
        return text.upper()

    with pytest.raises(RunStopped, match="stopped after 3 errors") as stopped:
        evaluate(
            target,
            samples(50),
            {"exact_match": exact_match, "judge": judges[mode]},
            max_errors=3,
            concurrency=1,
            history=False,
        )
    assert "the evaluator 'judge' failed: PermissionError: 401: no such key" in str(stopped.value)
    assert len(called) == 3


def test_on_error_raise_stops_at_an_evaluator_that_fails() -> None:
    """Also where another evaluator has failed the sample: an error is an error."""

    def judge(output: str) -> bool:
        raise PermissionError("401")

    with pytest.raises(RunStopped, match="sample 's0': the evaluator 'judge' failed"):
        evaluate(
            shout,
            [Sample("s0", "a", "not this"), Sample("s1", "b", "B")],
            [exact_match, judge],
            on_error="raise",
            concurrency=1,
            history=False,
        )


def test_skipped_scores_are_no_errors() -> None:
    """A sample without an expected value is skipped, and no reason to stop."""
    data: list[Any] = [Sample(f"s{n}", "a") for n in range(5)]
    report = evaluate(shout, data, exact_match, max_errors=1, history=False)
    assert report.total == 5


def test_a_target_that_changes_the_folder_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """History, dataset and recordings given by relative paths; the folder is restored."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    Path("data.jsonl").write_text(
        "".join(f'{{"id": "s{n}", "input": "word {n}", "expected": "WORD {n}"}}\n' for n in range(300))
    )

    async def target(text: str) -> str:
        os.chdir(tmp_path / "elsewhere")
        return text.upper()

    report = evaluate(target, "data.jsonl", exact_match, history="runs/h.db", cache=True)
    assert (report.total, report.pass_rate) == (300, 1.0)
    assert Path.cwd() == tmp_path
    assert len(SQLiteHistory("runs/h.db").report("latest").results) == 300
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert "changed the current folder" in report.metadata.warnings[0]  # type: ignore[union-attr]


def test_a_command_line_run_writes_its_reports_where_it_was_started(tmp_path: Path) -> None:
    """--output and --history are those of the folder in which the command was typed."""
    (tmp_path / "app.py").write_text(
        "import os, sys, io\n"
        "def answer(text):\n"
        "    os.makedirs('/tmp/proctor-elsewhere', exist_ok=True)\n"
        "    os.chdir('/tmp/proctor-elsewhere')\n"
        "    sys.stdout = io.StringIO()\n"
        "    return text\n"
    )
    (tmp_path / "data.jsonl").write_text('{"id": "a", "input": "x", "expected": "x"}\n' * 1)
    done = proctor(
        "run", "--dataset", "data.jsonl", "--target", "app.py:answer", "-e", "exact_match",
        "--history", "h.db", "--output", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 of 1" in done.stdout
    assert (tmp_path / "out" / "report.json").exists()
    assert (tmp_path / "h.db").exists()


class Giving:
    """A metric that gives the same whatever the results are, but may fail on none."""

    def __init__(self, name: str, given: Any, fails_on_none: bool = False) -> None:
        self.name = name
        self._given = given
        self._fails_on_none = fails_on_none

    def compute(self, results: Any) -> Any:
        if self._fails_on_none and not len(results):
            raise ZeroDivisionError
        return self._given


@pytest.mark.parametrize(
    "metrics",
    [
        [Giving("exact_match.p50", 1.0)],
        [Giving("speed", {"best": 1.0}), Giving("speed.best", 2.0)],
        [Giving("speed", {"best": 1.0}, fails_on_none=True), Giving("speed.best", 2.0)],
    ],
)
def test_metrics_whose_numbers_clash_are_refused_before_the_first_call(metrics: Any) -> None:
    """With the number of a standard metric, or with that of another one."""
    called = []

    async def target(text: str) -> str:
        called.append(text)
        return text

    with pytest.raises(EvaluatorError, match="both return"):
        evaluate(target, samples(2), exact_match, metrics=metrics, history=False)
    assert called == []


def test_a_clash_that_only_real_results_show_does_not_lose_the_run() -> None:
    """The run is completed with the standard metrics, and a warning says what was left out."""

    class Late:
        name = "speed"

        def compute(self, results: Any) -> Any:
            first = next(iter(results), None)
            return {"best": 1.0} if first is not None and first.sample_id == "s0" else 1.0

    metrics: list[Any] = [Late(), Giving("speed.best", 2.0)]
    report = evaluate(shout, samples(2), exact_match, metrics=metrics, history=False)
    assert report.metrics["exact_match.pass_rate"].value == 1.0
    assert "metrics are left out" in report.metadata.warnings[0]  # type: ignore[union-attr]


SCRIPT = """
import asyncio, sys
from proctor.cli.main import main
main(["run", "--dataset", "data.jsonl", "--target", "app.py:answer", "-e", "exact_match",
      "--history", "h.db", "--name", "exam"])
"""


def test_sigterm_stores_finished_trials_and_says_how_to_resume(tmp_path: Path) -> None:
    """Running trials are dropped."""
    (tmp_path / "app.py").write_text(
        "import asyncio, pathlib\n"
        "async def answer(text):\n"
        "    if text != '0':\n"
        "        pathlib.Path('begun').touch()\n"
        "        await asyncio.sleep(1000)\n"
        "    return text\n"
    )
    (tmp_path / "data.jsonl").write_text(
        "".join(f'{{"id": "s{n}", "input": "{n}", "expected": "{n}"}}\n' for n in range(4))
    )
    process = start(SCRIPT, cwd=tmp_path)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    run = SQLiteHistory(tmp_path / "h.db").find("exam")
    assert run.status == "interrupted"
    assert f"add --resume {run.run_id} to the same command" in err
    assert len(SQLiteHistory(tmp_path / "h.db").report("exam").results) == 1


def test_a_program_s_own_sigterm_handler_is_left_alone() -> None:
    """A program's SIGTERM handler stays installed during and after a run."""
    events = []
    before = signal.signal(signal.SIGTERM, lambda *_: events.append(True))
    try:

        async def target(text: str) -> str:
            signal.raise_signal(signal.SIGTERM)
            return text.upper()

        report = evaluate(target, Dataset.of(samples(2)), exact_match, history=False)
        assert (report.pass_rate, events) == (1.0, [True, True])
    finally:
        signal.signal(signal.SIGTERM, before)
