"""A run in two steps: submitted now, collected later."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import EvalRequest, EvalResult, InMemoryMailbox, Sample, SQLiteHistory, Trial, evaluate, exact_match
from proctor.distributed.remote_runner import results_name
from proctor.errors import ConfigError, DatasetError, MailboxError, RunStopped, UsageError
from proctor.records.trial import Delivery, Failure
from proctor.wiring.dispatch import collect, submit
from proctor.wiring.evaluate import open_backend
from proctor.wiring.prepare import Evaluation, prepare
from proctor.wiring.registry import Registry
from tests.distributed.failing_mailboxes import LONG, FailingMailbox, boxes, loop_for, with_timeout
from tests.support import samples


def loud(text: str) -> str:
    if text == "word 3":
        raise ValueError("no threes")
    return text.upper()


def exam(count: int = 5, **fields: Any) -> Evaluation:
    return Evaluation(loud, samples(count), exact_match, name="exam", **fields)


def work(requests: Any, **options: Any) -> None:
    loop = loop_for(loud, requests, **options)
    with_timeout(LONG, lambda: loop.run(max_iterations=1))


def test_collecting_completes_a_submitted_run(tmp_path: Path) -> None:
    """All results are in the history once, and their mailbox is removed."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    run = submit(exam(), requests, history)
    assert (run.status, run.total) == ("submitted", 5)
    assert history.find("exam").status == "submitted"
    work(requests)
    report = collect("exam", requests, history, timeout=5)
    assert (report.total, report.errors, report.pass_rate) == (5, 1, 1.0)
    stored = history.report("exam")
    assert stored.metadata is not None
    assert (stored.metadata.status, stored.metadata.warnings) == ("completed", ())
    assert stored.metrics["exact_match.mean"].value == 1.0
    assert requests.open_mailbox(results_name("requests", run.run_id), EvalResult).receive() == []
    with pytest.raises(UsageError, match="is completed: there is nothing to collect"):
        collect("exam", requests, history)


def test_a_run_can_be_collected_in_parts(tmp_path: Path) -> None:
    """The second collection does not wait for results of the first."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    submit(exam(), requests, history)
    work(requests, batch_size=2)
    first = collect("exam", requests, history, timeout=0)
    assert first.total == 2
    assert first.metadata is not None
    assert first.metadata.status == "submitted"
    assert first.metadata.warnings == ("3 of 5 results are missing: s2, s3, s4; they can be collected later",)
    work(requests)
    assert collect("exam", requests, history, timeout=5).total == 5


def test_missing_trials_are_named_by_sample_configuration_and_epoch(tmp_path: Path) -> None:
    """In the order of the plan, which starts with the baseline."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    both: dict[str, Any] = {"a": {}, "b": {}}
    submit(exam(2, configurations=both, baseline="b", options={"epochs": 2}), requests, history)
    for message in requests.receive(max_messages=3):
        message.acknowledge()
    work(requests)
    report = collect("exam", requests, history, timeout=0)
    assert report.metadata is not None
    assert report.metadata.warnings == (
        "3 of 8 results are missing: s0 (b), s0 (b, epoch 1), s0 (a); they can be collected later",
    )
    assert report.metadata.planned_samples == ()
    assert history.find("exam").planned_samples == ("s0", "s1")


def test_missing_trials_of_an_old_run_are_numbered(tmp_path: Path) -> None:
    """Older versions did not store the sample ids."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    run = submit(exam(2), requests, history)
    history.update(msgspec.structs.replace(run, planned_samples=()))
    report = collect("exam", requests, history, timeout=0)
    assert report.metadata is not None
    assert report.metadata.warnings == ("2 of 2 results are missing: trial 1, trial 2; they can be collected later",)


def test_a_later_collection_keeps_the_warnings_of_an_earlier_one(tmp_path: Path) -> None:
    """The complete report still names the sample that was lost."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    submit(exam(3), requests, history)
    [message] = requests.receive()
    message.reject("no memory")
    collect("exam", requests, history, timeout=0)
    work(requests)
    report = collect("exam", requests, history, timeout=5)
    assert report.metadata is not None
    assert report.metadata.status == "completed"
    [text] = report.metadata.warnings
    assert text.endswith("delivered too often, or rejected (s0)")
    assert history.find("exam").warnings == (text,)


def test_many_missing_trials_are_shortened(tmp_path: Path) -> None:
    """Twenty names are shown."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    submit(exam(25), requests, history)
    report = collect("exam", requests, history, timeout=0)
    assert report.metadata is not None
    [text] = report.metadata.warnings
    assert text.startswith("25 of 25 results are missing: s0, s1, s2, ")
    assert text.endswith("s18, s19, … and 5 more; they can be collected later")


def test_a_success_replaces_an_error_and_duplicates_are_counted(tmp_path: Path) -> None:
    """The report says how many results came twice."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    run = submit(exam(2), requests, history)
    results = requests.open_mailbox(results_name("requests", run.run_id), EvalResult)
    for number, good in ((0, False), (0, True), (1, False), (1, False)):
        trial = Trial(Sample(f"s{number}", ""), "out" if good else None, None if good else Failure("E", "no"))
        key = f"{run.run_id}-{number}"
        results.send(EvalResult(trial, delivery=Delivery(run.run_id, key, "w", 2)))
    report = collect("exam", requests, history, timeout=5)
    assert [(result.sample_id, result.success) for result in report.results] == [("s0", True), ("s1", False)]
    assert report.metadata is not None
    assert report.metadata.warnings == (
        "workers: 2 results came from a repeated delivery, because an earlier one was lost or returned",
        "workers: 2 results arrived twice and were not counted again",
    )


def test_results_are_acknowledged_after_they_are_stored(tmp_path: Path) -> None:
    """A collector that is killed loses nothing: results are on disk or in the mailbox."""
    history = SQLiteHistory(tmp_path / "h.db")
    inner, _ = boxes()
    run = submit(exam(), inner, history)
    work(inner)
    seen: list[int] = []

    class Looking(FailingMailbox):
        def open_mailbox(self, name: str, body_type: Any) -> Any:
            return Looking(inner.open_mailbox(name, body_type))

        def acknowledge_all(self, messages: Any) -> int:
            # Another connection sees only what was committed.
            seen.append(len(list(SQLiteHistory(tmp_path / "h.db").finished_trials(run.run_id))))
            return super().acknowledge_all(messages)

    requests: Any = Looking(inner)
    collect("exam", requests, history, timeout=5)
    # Four successes first, then, once all are there, the error.
    assert seen == [4, 5]


def test_an_interrupted_collection_loses_nothing(tmp_path: Path) -> None:
    """After Ctrl-C, successes and errors are collected the next time."""
    history = SQLiteHistory(tmp_path / "h.db")
    inner, _ = boxes()
    submit(exam(), inner, history)
    work(inner, batch_size=4)

    class Interrupted(FailingMailbox):
        def open_mailbox(self, name: str, body_type: Any) -> Any:
            return FailingMailbox(inner.open_mailbox(name, body_type), receive=[None, KeyboardInterrupt()])

    requests: Any = Interrupted(inner)
    with pytest.raises(KeyboardInterrupt):
        collect("exam", requests, history, timeout=5)
    assert history.find("exam").status == "submitted"
    work(inner)
    report = collect("exam", inner, history, timeout=0)
    assert (report.total, report.errors) == (5, 1)


def test_a_run_that_cannot_be_sent_fails(tmp_path: Path) -> None:
    """It stores the number of sent trials, which can still be collected."""
    history = SQLiteHistory(tmp_path / "h.db")
    inner, _ = boxes()
    requests: Any = FailingMailbox(inner, send_all=[None, MailboxError("the server is away")])
    with pytest.raises(MailboxError):
        submit(exam(150), requests, history)
    run = history.find("exam")
    assert (run.status, run.total) == ("failed", 100)
    work(inner)
    report = collect("exam", inner, history, timeout=5)
    assert report.total == 100
    assert report.metadata is not None
    [text] = report.metadata.warnings
    assert text.startswith("only 100 of 150 requests were sent; run the others with ")
    assert text.endswith(f"`proctor run --resume {run.run_id}`")
    # It is not complete, so that nobody takes 100 results for 150.
    stored = history.find("exam")
    assert (stored.status, stored.warnings) == ("interrupted", report.metadata.warnings)
    with pytest.raises(UsageError, match="there is nothing to collect"):
        collect("exam", inner, history, timeout=0)
    how: Any = {"history": history, "name": "exam", "progress": False, "resume": True}
    whole = evaluate(loud, samples(150), exact_match, **how)
    assert whole.metadata is not None
    assert (whole.total, whole.metadata.run_id) == (150, run.run_id)


def test_an_empty_dataset_is_refused(tmp_path: Path) -> None:
    """No run is stored and nothing is sent."""
    requests, _ = boxes()
    history = SQLiteHistory(tmp_path / "h.db")
    with pytest.raises(DatasetError, match="the dataset has no samples"):
        submit(exam(0), requests, history)
    assert history.runs() == []


def test_a_display_shows_the_progress_of_a_collection(tmp_path: Path) -> None:
    """It starts with the results of earlier collections."""
    from collections.abc import Iterator

    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    submit(exam(), requests, history)
    work(requests, batch_size=2)
    collect("exam", requests, history, timeout=0)
    work(requests)
    events: list[tuple[int, int]] = []

    @contextlib.contextmanager
    def watch(view: Any) -> Iterator[None]:
        events.append((view.done, view.total))
        yield
        events.append((view.done, view.total))

    collect("exam", requests, history, timeout=5, watch=watch)
    assert events == [(2, 5), (5, 5)]


def test_the_backend_is_this_process_by_default() -> None:
    """Workers by address or object, or a cluster; not both, and no unknown cluster."""
    evaluation = exam()
    with open_backend(evaluation) as place:
        assert place is None
    mailbox: InMemoryMailbox[Any] = InMemoryMailbox("evals", EvalRequest)
    with open_backend(evaluation, workers=mailbox, worker_timeout=7.0) as place:
        assert getattr(place, "worker_timeout", None) == 7.0
    assert not mailbox.closed
    with open_backend(evaluation, workers="memory://a-place") as place:
        opened = getattr(place, "requests", None)
        assert opened is not None
        assert opened.name == "a-place"
    assert opened.closed
    with (
        pytest.raises(ConfigError, match="either workers or a cluster"),
        open_backend(evaluation, workers=mailbox, cluster="ray"),
    ):
        pass
    by_name = Evaluation("app.py:loud", samples(1), "exact_match")
    with pytest.raises(ConfigError, match="unknown cluster 'rya'"), open_backend(by_name, cluster="rya"):
        pass


def test_a_run_has_one_collector_at_a_time(tmp_path: Path) -> None:
    """The second is refused while the first is running."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    submit(exam(), requests, history)
    over = threading.Thread(
        target=lambda: collect("exam", requests, SQLiteHistory(tmp_path / "h.db"), timeout=1.0), daemon=True
    )
    over.start()
    run_id = history.find("exam").run_id
    while not history.is_claimed(run_id):
        pass
    with pytest.raises(Exception, match=run_id):
        collect("exam", requests, history, timeout=0)
    over.join(LONG)


@pytest.mark.parametrize(("options", "status"), [({}, "completed"), ({"on_error": "raise"}, "failed")])
def test_only_submitted_runs_can_be_collected(options: dict[str, Any], status: str, tmp_path: Path) -> None:
    """A local run stays unchanged, even if it failed."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    how: Any = {"history": history, "name": "exam", "progress": False, **options}
    with contextlib.suppress(RunStopped):
        evaluate(loud, samples(5), exact_match, **how)
    before = history.find("exam")
    assert before.status == status
    with pytest.raises(UsageError, match=f"is {status}: there is nothing to collect"):
        collect("exam", requests, history, timeout=0)
    assert history.find("exam") == before


def test_the_cache_is_refused(tmp_path: Path) -> None:
    """Workers do not cache outputs."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    with pytest.raises(ConfigError, match="workers do not cache outputs"):
        submit(exam(options={"cache": True}), requests, history)
    assert history.runs() == []
    assert requests.approximate_count() == 0


def test_custom_metrics_are_computed(tmp_path: Path) -> None:
    """Over all results, in addition to the standard metrics, and stored."""

    def longest(results: Any) -> float:
        return float(max(len(str(result.output)) for result in results))

    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    submit(exam(3), requests, history)
    work(requests)
    plan = prepare(exam(3, metrics=[longest]), Registry.standard())
    report = collect("exam", requests, history, timeout=5, metrics=plan.metrics)
    assert report.metrics["longest"].value == 6.0
    assert history.report("exam").metrics["longest"].value == 6.0


def test_a_mailbox_that_cannot_be_removed_is_a_warning(tmp_path: Path) -> None:
    """The run is complete, and the mailbox is closed."""
    history = SQLiteHistory(tmp_path / "h.db")
    inner, _ = boxes()
    submit(exam(2), inner, history)
    work(inner)
    opened: list[Any] = []

    class Stuck(FailingMailbox):
        def open_mailbox(self, name: str, body_type: Any) -> Any:
            opened.append(FailingMailbox(inner.open_mailbox(name, body_type), remove=[MailboxError("away")]))
            return opened[-1]

    requests: Any = Stuck(inner)
    report = collect("exam", requests, history, timeout=5)
    assert report.metadata is not None
    assert report.metadata.status == "completed"
    [said] = report.metadata.warnings
    assert said.endswith("could not be removed: away")
    assert opened[0].closed


def test_a_result_with_an_invalid_position_is_ignored(tmp_path: Path) -> None:
    """The other results are collected."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    run = submit(exam(2), requests, history)
    results = requests.open_mailbox(results_name("requests", run.run_id), EvalResult)
    for key in ("garbage", f"{run.run_id}-x", f"{run.run_id}-99"):
        results.send(EvalResult(Trial(Sample("s0", ""), "out"), delivery=Delivery(run.run_id, key)))
    work(requests)
    report = collect("exam", requests, history, timeout=5)
    assert sorted(result.sample_id for result in report.results) == ["s0", "s1"]
