"""A run that stops early: running trials are stored, and the rest can be run later."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proctor import EvalResult, RunMetadata, Sample, SQLiteHistory, evaluate, exact_match, rescore
from proctor.comparison.gates.early import EarlyGate, average_numbers, read_strict_pass, replay_results
from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError, ResumeRefused, RunStopped, StopRun
from proctor.records.order import shuffle_key
from proctor.reports.console import render_report
from proctor.reports.markdown import MarkdownReporter
from proctor.wiring.open_history import find_run_to_resume
from tests.distributed.failing_mailboxes import LONG, eventually, with_timeout
from tests.distributed.worker_runs import QUIET, workers
from tests.support import run_command, samples, shout, start

BASELINE = {f"s{i}": 1.0 for i in range(1_000)}
CALLS: Counter[str] = Counter()


async def worse(text: str) -> str:
    """Wrong in seven of ten; what is wrong takes longer."""
    CALLS[text] += 1
    if int(text.split()[1]) % 10 < 7:
        await asyncio.sleep(0.004)
        return "no"
    return text.upper()


def plain_worse(text: str) -> str:
    """The same without waiting, for workers."""
    return "no" if int(text.split()[1]) % 10 < 7 else text.upper()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    CALLS.clear()


def early(history: Any, gate: EarlyGate | None, **options: Any) -> EvalReport:
    """A thousand samples for the worse target, until it is settled."""
    decide = None if gate is None else gate.add_result
    given: Any = {"history": history, "name": "exam", "shuffle": 7, "concurrency": 20, **QUIET}
    return evaluate(worse, samples(1_000), exact_match, **(given | {"decide": decide} | options))


def described(report: EvalReport) -> RunMetadata:
    assert report.metadata is not None
    return report.metadata


def first_of(seed: int, count: int) -> set[str]:
    return set(sorted(BASELINE, key=lambda name: shuffle_key(seed, name))[:count])


def test_a_clearly_worse_target_is_stopped_long_before_the_end(tmp_path: Path) -> None:
    """It completes early; every call that was begun is kept; the samples are the first drawn."""
    gate = EarlyGate(BASELINE, margin=0.02)
    report = early(tmp_path / "h.db", gate)
    run = described(report)
    assert gate.verdict == "fail"
    assert gate.n <= report.total < 200
    assert sum(CALLS.values()) == report.total == gate.sample_count
    assert {result.sample_id for result in report.results} == first_of(7, report.total)
    assert run.status == "completed"
    assert run.stopped_early is not None
    assert (run.stopped_early.after, run.stopped_early.total) == (report.total, 1_000)
    assert run.stopped_early.reason.startswith("strict_pass_rate is worse than the baseline by")
    assert run.total == 1_000
    assert described(SQLiteHistory(tmp_path / "h.db").report("exam")) == run


def test_reports_say_where_it_stopped_and_why(tmp_path: Path) -> None:
    """One line in the terminal and in Markdown."""
    report = early(tmp_path / "h.db", EarlyGate(BASELINE))
    said = f"stopped early after {report.total} of 1,000: strict_pass_rate is worse"
    assert said in MarkdownReporter().generate(report)
    shown = " ".join(render_report(report, width=200).split())
    assert f"This run was {said}" in shown


def test_the_same_seed_gives_the_same_verdict_at_any_concurrency(tmp_path: Path) -> None:
    """What is finished first differs, where the gate stops does not; so does a replay."""
    gates = []
    for concurrency in (1, 7, 50):
        gate = EarlyGate(BASELINE)
        report = early(tmp_path / f"{concurrency}.db", gate, concurrency=concurrency)
        gates += [gate, replay_results(EarlyGate(BASELINE), report.results, seed=7)]
    assert {(gate.verdict, gate.n, gate.interval) for gate in gates} == {("fail", gates[0].n, gates[0].interval)}


def test_a_stop_rule_sees_epochs_and_configurations(tmp_path: Path) -> None:
    """The judged configuration decides, by the means of its epochs."""

    async def either(text: str, *, good: bool) -> str:
        return text.upper() if good else await worse(text)

    gate = EarlyGate(BASELINE, configuration="bad", epochs=2)
    report = evaluate(
        either, samples(1_000), exact_match, history=tmp_path / "h.db", shuffle=7, epochs=2,
        configurations={"good": {"good": True}, "bad": {"good": False}}, decide=gate.add_result, **QUIET,
    )  # fmt: skip
    assert gate.verdict == "fail"
    assert 4 * gate.n <= report.total < 400


def test_the_rest_can_be_run_later(tmp_path: Path) -> None:
    """By its id it is resumed to its end; resume=True passes it over, for it is not unfinished."""
    history = SQLiteHistory(tmp_path / "h.db")
    first = early(history, EarlyGate(BASELINE))
    with pytest.raises(Exception, match="no unfinished run of 'exam'"):
        find_run_to_resume(history, True, "exam")
    whole = early(history, None, resume=first.run_id)
    assert whole.total == 1_000
    assert set(CALLS.values()) == {1}
    assert described(whole).stopped_early is None
    assert described(whole).status == "completed"


def test_a_decided_run_is_not_continued(tmp_path: Path) -> None:
    """Resumed with the same gate, it calls nothing."""
    history = SQLiteHistory(tmp_path / "h.db")
    before = early(history, EarlyGate(BASELINE))
    CALLS.clear()
    gate = EarlyGate(BASELINE)
    again = early(history, gate, resume=before.run_id)
    assert not CALLS
    assert described(again).stopped_early == described(before).stopped_early
    assert (gate.verdict, gate.sample_count) == ("fail", before.total)


def test_a_run_that_is_settled_by_its_last_sample_was_not_stopped(tmp_path: Path) -> None:
    """Nothing was left out, so that nothing is said."""
    gate = EarlyGate(BASELINE)
    report = early(tmp_path / "h.db", gate, limit=25)
    assert gate.verdict == "fail"
    assert (report.total, described(report).stopped_early) == (25, None)


def test_a_run_that_is_never_settled_runs_to_its_end(tmp_path: Path) -> None:
    """Equal systems and a small margin: all samples, and the gate says that it is open."""
    gate = EarlyGate({f"s{i}": 1.0 for i in range(50)}, margin=0.02)
    report = evaluate(shout, samples(50), exact_match, history=False, shuffle=1, decide=gate.add_result, **QUIET)
    assert (report.total, gate.verdict, described(report).stopped_early) == (
        50, "inconclusive", None,
    )  # fmt: skip


def test_the_baseline_is_a_run_like_any_other(tmp_path: Path) -> None:
    """Its numbers are read from its report; it need not have been shuffled."""
    history = SQLiteHistory(tmp_path / "h.db")
    old = evaluate(shout, samples(1_000), exact_match, history=history, name="old", **QUIET)
    gate = EarlyGate(average_numbers(old.results, read_strict_pass), margin=0.05)
    assert early(history, gate).total < 200
    assert gate.verdict == "fail"


def test_it_must_be_shuffled(tmp_path: Path) -> None:
    """Refused before anything is run or stored."""
    history = SQLiteHistory(tmp_path / "h.db")
    with pytest.raises(ConfigError, match="needs its samples in random order"):
        early(history, EarlyGate(BASELINE), shuffle=None)
    assert (history.runs(), CALLS) == ([], Counter())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shuffle": 8}, r"another order \(shuffle 7, now 8\)"),
        ({"allow_changes": True, "epochs": 2}, "the evaluation has changed"),
    ],
)
def test_a_stopped_run_resumes_only_unchanged(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """Another order would be another question."""
    history = SQLiteHistory(tmp_path / "h.db")
    before = early(history, EarlyGate(BASELINE))
    with pytest.raises(ResumeRefused, match=said):
        early(history, EarlyGate(BASELINE), resume=before.run_id, **change)


def test_samples_of_one_cluster_end_it_with_an_error(tmp_path: Path) -> None:
    """It says which, what was finished is kept, and without stopping early it can be resumed."""
    history = SQLiteHistory(tmp_path / "h.db")
    data = [Sample(f"s{i}", f"word {i}", f"WORD {i}", metadata={"cluster": f"c{i // 2}"}) for i in range(40)]
    how: Any = {"history": history, "name": "exam", "shuffle": 7, "concurrency": 2, **QUIET}
    gate = EarlyGate({f"s{i}": 1.0 for i in range(40)})
    with pytest.raises(RunStopped, match="share the cluster") as refused:
        evaluate(shout, data, exact_match, decide=gate.add_result, **how)
    assert "the finished results are stored as run" in str(refused.value)
    assert history.find("exam").status == "failed"
    assert 0 < history.report("exam").total < 40
    assert evaluate(shout, data, exact_match, resume="exam", **how).total == 40


def test_a_trouble_after_the_end_does_not_undo_it() -> None:
    """What was under way may be told to stop: it is not kept, and the run is settled as it was."""

    async def target(text: str) -> str:
        if CALLS["first"]:
            await asyncio.sleep(0.05)
            raise StopRun("the budget is spent")
        CALLS["first"] += 1
        return text.upper()

    def decide(_turn: int, _result: EvalResult) -> str:
        return "it is settled"

    report = evaluate(target, samples(50), exact_match, history=False, shuffle=1, decide=decide, **QUIET)
    stopped = described(report).stopped_early
    assert stopped is not None
    assert (stopped.reason, stopped.after, report.total) == ("it is settled", 1, 1)


def test_workers_behind_a_mailbox_are_asked_for_no_more(tmp_path: Path) -> None:
    """Only as many requests are out as samples may run at once; all that were sent are kept."""
    gate = EarlyGate(BASELINE)
    with workers(plain_worse, count=2) as requests:
        report = with_timeout(
            LONG,
            lambda: evaluate(
                plain_worse, samples(1_000), exact_match, workers=requests, shuffle=7,
                decide=gate.add_result, history=tmp_path / "h.db", **QUIET,
            ),
        )  # fmt: skip
        eventually(lambda: requests.approximate_count() == 0)
    assert gate.verdict == "fail"
    assert gate.n <= report.total < 200
    assert {result.sample_id for result in report.results} == first_of(7, report.total)
    assert described(report).warnings == ()


def test_a_run_that_stopped_early_becomes_a_baseline_only_with_force(tmp_path: Path) -> None:
    """`proctor runs` shows how many of the planned samples ran; `baseline set` needs --force."""
    before = early(tmp_path / "h.db", EarlyGate(BASELINE))
    where = ("--history", "h.db")
    assert f"completed  {before.total} of 1,000" in run_command("runs", *where, cwd=tmp_path).stdout
    refused = run_command("baseline", "set", "main", "exam", *where, cwd=tmp_path)
    assert refused.returncode == 2
    assert f"run {before.run_id} is stopped early; a baseline must be a complete run" in refused.stderr
    taken = run_command("baseline", "set", "main", "exam", "--force", *where, cwd=tmp_path)
    assert taken.returncode == 0


def test_rescoring_a_stopped_run_is_marked_as_partial(tmp_path: Path) -> None:
    """Its samples are those of a run that stopped early: it can be a baseline only with --force, too."""
    history = SQLiteHistory(tmp_path / "h.db")
    before = early(history, EarlyGate(BASELINE))
    again = described(rescore(before.run_id, exact_match, history=history, progress=False))
    assert (again.stopped_early, again.total) == (described(before).stopped_early, 1_000)
    assert again.warnings[0].endswith(f"{before.total} of 1000 planned results were scored")


SCRIPT = """
import os, sys, time
from proctor import SQLiteHistory, evaluate, exact_match
from proctor.comparison.gates.early import EarlyGate

log = os.open("calls.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def target(text):
    os.write(log, b".")
    time.sleep(0.01 if int(text) % 10 < 4 else 0.001)
    return "no" if int(text) % 10 < 4 else text

data = [{"id": f"s{i}", "input": str(i), "expected": str(i)} for i in range(1000)]
gate = EarlyGate({f"s{i}": 1.0 for i in range(1000)}, margin=0.25)
report = evaluate(target, data, [exact_match], history="h.db", concurrency=4, name="exam",
                  shuffle=3, decide=gate.add_result, progress=False,
                  resume="exam" if SQLiteHistory("h.db").runs() else False)
print(gate.verdict, gate.n, *gate.interval, report.total)
"""


def test_killed_and_resumed_it_comes_to_the_same_decision(tmp_path: Path) -> None:
    """SIGKILL in the middle, twice: verdict, n and interval are those of a single sitting."""
    told = []
    for kills in (0, 2):
        folder = tmp_path / str(kills)
        folder.mkdir()
        for kill in range(kills):
            process = start(SCRIPT, cwd=folder)
            _wait_for_calls(folder, 25 * (kill + 1))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=20)
        process = start(SCRIPT, cwd=folder)
        said, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        told.append(said.split())
    assert told[0][:4] == told[1][:4]
    assert told[0][0] == "fail"
    assert 75 < int(told[0][1]) < 900


def _wait_for_calls(folder: Path, more_than: int) -> None:
    log, until = folder / "calls.log", time.monotonic() + 30
    while not log.exists() or log.stat().st_size <= more_than:
        assert time.monotonic() < until
        time.sleep(0.002)
