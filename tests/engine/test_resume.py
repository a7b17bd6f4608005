"""Resume runs only the missing trials, and refuses a run that has changed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from proctor import SQLiteHistory, contains, evaluate, exact_match
from proctor.engine.plan import done_by_name, done_by_position
from proctor.errors import ResumeRefused, RunNotFound, RunStopped
from tests.support import run_command, samples

CALLS: list[str] = []
# An outage outside of the target: its code, and what it is made of, stay as they are.
OUTAGE = threading.Event()


async def target(text: str) -> str:
    CALLS.append(text)
    if OUTAGE.is_set() and text == "word 4":
        raise ValueError("broken")
    return text.upper()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    CALLS.clear()
    OUTAGE.clear()


def stopped_run(path: Path, **options: Any) -> SQLiteHistory:
    """A run over ten samples that stopped at the fifth."""
    history = SQLiteHistory(path / "h.db")
    OUTAGE.set()
    with pytest.raises(RunStopped):
        evaluate(
            target, samples(10), exact_match, history=history, concurrency=1, name="exam",
            on_error="raise", **options,
        )  # fmt: skip
    OUTAGE.clear()
    CALLS.clear()
    return history


def test_a_resume_runs_only_missing_trials(tmp_path: Path) -> None:
    """Five of ten; the report is complete."""
    history = stopped_run(tmp_path)
    report = evaluate(target, samples(10), exact_match, history=history, name="exam", resume=True)
    assert sorted(CALLS) == [f"word {i}" for i in range(5, 10)]
    assert (report.total, report.errors) == (10, 1)
    assert report.metadata is not None
    assert report.metadata.status == "completed"
    assert len(history.runs()) == 1


def test_retry_errors_runs_the_failed_ones_again(tmp_path: Path) -> None:
    """With retry_errors the failed sample is run too, and its success takes the error's place."""
    history = stopped_run(tmp_path)
    report = evaluate(
        target, samples(10), exact_match, history=history, name="exam", resume=True,
        retry_errors=True,
    )  # fmt: skip
    assert sorted(CALLS) == [f"word {i}" for i in range(4, 10)]
    assert (report.total, report.errors, report.pass_rate) == (10, 0, 1.0)


def test_resuming_a_finished_run_runs_nothing(tmp_path: Path) -> None:
    """A run that is complete can be resumed by its id; nothing is called."""
    history = SQLiteHistory(tmp_path / "h.db")
    first = evaluate(target, samples(4), exact_match, history=history)
    CALLS.clear()
    again = evaluate(target, samples(4), exact_match, history=history, resume=first.run_id)
    assert (CALLS, again.total, again.run_id) == ([], 4, first.run_id)


def test_more_samples_may_be_asked_for(tmp_path: Path) -> None:
    """A run with a limit continues when the limit is raised."""
    history = SQLiteHistory(tmp_path / "h.db")
    first = evaluate(target, samples(10), exact_match, history=history, limit=3)
    CALLS.clear()
    more = evaluate(target, samples(10), exact_match, history=history, limit=8, resume=first.run_id)
    assert (sorted(CALLS), more.total) == ([f"word {i}" for i in range(3, 8)], 8)


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    """resume=True with no unfinished run of that name says so."""
    history = SQLiteHistory(tmp_path / "h.db")
    evaluate(target, samples(1), exact_match, history=history, name="exam")
    with pytest.raises(RunNotFound, match="no unfinished run of 'exam'"):
        evaluate(target, samples(1), exact_match, history=history, name="exam", resume=True)


async def other_target(text: str) -> str:
    return text.lower()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dataset": samples(11)}, "dataset: its content has changed (samples: 10 at the start of the run, 11 now)"),
        ({"target": other_target}, "target: was 'target', is 'other_target'"),
        ({"evaluators": contains}, "evaluators: gone: exact_match; new: contains"),
        ({"evaluators": {"exact_match": contains}}, "evaluators: changed: exact_match"),
        ({"epochs": 2}, "epochs: were 1, are 2"),
        ({"configurations": {"other": {}}}, "configurations: they or their options have changed"),
        ({"dataset": iter(samples(10))}, "dataset: it can be read only once"),
    ],
)
def test_a_changed_run_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """What has changed is named, nothing is run, and the stored run is as it was."""
    history = stopped_run(tmp_path)
    arguments: dict[str, Any] = {"target": target, "dataset": samples(10), "evaluators": exact_match, **change}
    with pytest.raises(ResumeRefused) as refused:
        evaluate(**arguments, history=history, resume="exam")
    assert said in str(refused.value)
    assert CALLS == []
    assert history.report("exam").total == 5


def test_changes_can_be_allowed(tmp_path: Path) -> None:
    """With allow_changes, finished samples are recognized by their ids, at any position."""
    history = stopped_run(tmp_path)
    shuffled = [*samples(12)[6:], *samples(6)]
    report = evaluate(target, shuffled, exact_match, history=history, resume="exam", allow_changes=True)
    assert sorted(CALLS) == sorted(f"word {i}" for i in range(5, 12))
    assert (report.total, len({r.sample_id for r in report.results})) == (12, 12)


def test_changed_configurations_keep_the_labels_of_old_results(tmp_path: Path) -> None:
    """A configuration that is gone keeps its results, one that is new gets its own."""
    history = SQLiteHistory(tmp_path / "h.db")
    first = evaluate(target, samples(2), exact_match, history=history, configurations={"a": {}, "b": {}})
    report = evaluate(
        target, samples(2), exact_match, history=history, configurations={"c": {}, "b": {}},
        resume=first.run_id, allow_changes=True,
    )  # fmt: skip
    labels = sorted((r.sample_id, r.trial.configuration) for r in report.results)
    assert labels == [(sample, name) for sample in ("s0", "s1") for name in "abc"]
    assert sorted(report.by_configuration) == ["a", "b", "c"]
    assert all(table["pass_rate"].n == 2 for table in report.by_configuration.values())


def test_other_evaluators_are_refused_even_then(tmp_path: Path) -> None:
    """One run has one set of evaluators; rescore is the way, and the message says so."""
    history = stopped_run(tmp_path)
    with pytest.raises(ResumeRefused, match="proctor rescore"):
        evaluate(target, samples(10), contains, history=history, resume="exam", allow_changes=True)


def test_a_run_is_worked_on_by_one_process_at_a_time(tmp_path: Path) -> None:
    """While a run is held, resuming it is refused."""
    history = stopped_run(tmp_path)
    run = history.find("exam")
    with history.claim(run.run_id), pytest.raises(ResumeRefused, match="being worked on by another process"):
        evaluate(target, samples(10), exact_match, history=history, resume="exam")


def test_finished_trials_are_identified_by_position_or_name() -> None:
    """Both agree if the plan has not changed."""
    finished = [(0, "a", "x", 0), (9, "b", "x", 1), (40_000, "c", "y", 0)]
    by_position = done_by_position(finished)
    by_name, free = done_by_name(finished)
    assert free == 40_001
    for trial in finished:
        assert by_position(*trial)
        assert by_name(*trial)
    for position in (1, 8, 10, 39_999, 40_001, 10**6):
        assert not by_position(position, "z", "x", 0)
        assert not by_name(position, "z", "x", 0)


def test_a_lower_limit_does_not_complete_a_run(tmp_path: Path) -> None:
    """That planned more samples."""
    history = stopped_run(tmp_path)
    with pytest.raises(ResumeRefused, match="limit: 10 trials were planned, 6 are now"):
        evaluate(target, samples(10), exact_match, history=history, limit=6, resume="exam")


def test_a_rescoring_is_not_resumed(tmp_path: Path) -> None:
    """It runs nothing, so there is nothing to resume; resume=True passes it over."""
    from proctor import rescore

    history = stopped_run(tmp_path)
    again = rescore("exam", contains, history=history)
    assert (again.total, again.errors) == (5, 1)
    with pytest.raises(ResumeRefused, match="is a rescoring of"):
        evaluate(target, samples(10), contains, history=history, resume=again.run_id)
    report = evaluate(target, samples(10), exact_match, history=history, name="exam", resume=True)
    assert report.total == 10


def test_tags_of_a_resumed_run_are_found(tmp_path: Path) -> None:
    """Tags given when a run is resumed count like those it began with."""
    history = stopped_run(tmp_path)
    evaluate(target, samples(10), exact_match, history=history, resume="exam", tags={"again": "yes"})
    assert len(history.runs(tags={"again": "yes"})) == 1


def test_a_file_that_the_target_created_is_no_change(tmp_path: Path) -> None:
    """The file that the first execution wrote exists when the run is resumed."""
    (tmp_path / "app.py").write_text(
        "def answer(text):\n"
        "    with open('calls.csv', 'a') as file:\n"
        "        file.write(text)\n"
        "    if text == 'b': raise ValueError('not yet')\n"
        "    return text\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "input": "a", "expected": "a"}\n{"id": "2", "input": "b"}\n')
    (tmp_path / "eval.yaml").write_text("dataset: rows.jsonl\ntarget: app.py:answer\nevaluators: [contains]\n")
    run_command("run", "eval.yaml", "--quiet", cwd=tmp_path)
    result = run_command("run", "eval.yaml", "--quiet", "--resume", "--retry-errors", cwd=tmp_path)
    assert "cannot be resumed" not in result.stderr
    assert sorted((tmp_path / "calls.csv").read_text()) == ["a", "b", "b"]
