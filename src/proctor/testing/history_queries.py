"""Runs asked for, named as baselines, and let go: one part of the contract of histories."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

from proctor.errors import HistoryError, RunNotFound, UsageError
from proctor.ports import History
from proctor.records.run import EvaluatorSpec, Retention, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Failure, Trial
from proctor.testing.mailbox_moves import refused

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class HistoryHooks:
    """How to make a history, and how to look at it as another process would."""

    def make(self) -> History:
        """A new, empty history at a place of its own."""
        raise NotImplementedError("say how to make a new, empty history")

    def again(self, history: History) -> History:
        """Another one at the same place, with connections of its own."""
        raise NotImplementedError("say how to open the same history again")

    @contextlib.contextmanager
    def history(self) -> Iterator[History]:
        """A history that is closed after the test."""
        made = self.make()
        try:
            yield made
        finally:
            made.close()

    @contextlib.contextmanager
    def other(self, history: History) -> Iterator[History]:
        """The same history, as somebody else sees it."""
        opened = self.again(history)
        try:
            yield opened
        finally:
            opened.close()


def a_run(
    run_id: str,
    name: str = "exam",
    *,
    hours: float = 0,
    tags: dict[str, str] | None = None,
    configurations: Sequence[str] = ("default",),
    evaluators: Sequence[str] = ("exact",),
) -> RunMetadata:
    """A run that began so many hours after noon."""
    return RunMetadata(
        run_id,
        name,
        NOON + timedelta(hours=hours),
        tags=tags or {},
        configurations=tuple(Configuration(each) for each in configurations),
        evaluators=tuple(EvaluatorSpec(each, "exact_match") for each in evaluators),
    )


def a_result(
    sample_id: str, value: float | None = 1.0, *, configuration: str = "default", text: str = "!"
) -> EvalResult:
    """A result that passes from 0.5 on; without a value its evaluator failed."""
    score = Score.error("no verdict") if value is None else Score(value, value >= 0.5)
    trial = Trial(Sample(sample_id, "?"), text, latency_ms=100.0, configuration=configuration, epoch=0)
    return EvalResult(trial, {"exact": score})


def a_failure(sample_id: str) -> EvalResult:
    """A result whose target gave no output."""
    return EvalResult(Trial(Sample(sample_id, "?"), error=Failure("TimeoutError", "too slow")))


def store(history: History, run: RunMetadata, results: Sequence[EvalResult] = ()) -> None:
    """Begin a run and write its results."""
    history.begin(run)
    with history.writer(run.run_id) as writer:
        for position, result in enumerate(results):
            writer.add(position, result)


def ids(runs: Sequence[RunMetadata]) -> list[str]:
    return [run.run_id for run in runs]


class HistoryQueries(HistoryHooks):
    """Queries combine, baselines have names, and retention keeps what either limit keeps."""

    def test_runs_are_listed_the_newest_first(self) -> None:
        """By when they began; of two that began at once, the one that was stored last."""
        with self.history() as history:
            for run_id, hours in (("b", 2), ("a", 1), ("d", 3), ("c", 2)):
                history.begin(a_run(run_id, hours=hours))
            assert ids(history.runs()) == ["d", "c", "b", "a"]
            assert ids(history.runs(limit=2)) == ["d", "c"]
            assert ids(history.runs(limit=2, offset=1)) == ["c", "b"]
            assert ids(history.runs(offset=3)) == ["a"]
            assert ids(history.runs(limit=0)) == []
            assert ids(history.runs(offset=9)) == []
            assert history.find("latest").run_id == "d"

    def test_runs_are_chosen_by_all_their_tags(self) -> None:
        """Every given tag must match, to the letter, however long it is."""
        with self.history() as history:
            long = "ä" * 5_000
            history.begin(a_run("r1", tags={"model": "small", "branch": "main"}))
            history.begin(a_run("r2", tags={"model": "large", "branch": "main", "note": long}))
            history.begin(a_run("r3", tags={"model": "small"}))
            assert ids(history.runs(tags={"branch": "main"})) == ["r2", "r1"]
            assert ids(history.runs(tags={"model": "small", "branch": "main"})) == ["r1"]
            assert ids(history.runs(tags={"model": "SMALL"})) == []
            assert ids(history.runs(tags={"model": "main"})) == []
            assert ids(history.runs(tags={"note": long})) == ["r2"]
            assert ids(history.runs(tags={"note": long + "!"})) == []
            assert ids(history.runs(tags={"it's": "'; DROP TABLE runs; --"})) == []
            assert ids(history.runs(tags={})) == ["r3", "r2", "r1"]

    def test_runs_are_chosen_by_evaluator_and_configuration(self) -> None:
        """An evaluator by the name of its score or by its own; one of several is enough."""
        with self.history() as history:
            history.begin(a_run("r1", configurations=["small", "large"]))
            history.begin(a_run("r2", evaluators=["right", "short"]))
            assert ids(history.runs(configuration="large")) == ["r1"]
            assert ids(history.runs(configuration="default")) == ["r2"]
            assert ids(history.runs(evaluator="short")) == ["r2"]
            assert ids(history.runs(evaluator="exact_match")) == ["r2", "r1"]
            assert ids(history.runs(evaluator="exact_match", configuration="small")) == ["r1"]
            assert ids(history.runs(evaluator="EXACT")) == []
            assert ids(history.runs(configuration="larg")) == []

    def test_a_range_of_dates_includes_both_ends(self) -> None:
        """To the microsecond, and whatever zone a date is told in."""
        with self.history() as history:
            for run_id, hours in (("a", 0), ("b", 1), ("c", 2)):
                history.begin(a_run(run_id, hours=hours))
            one, moment = NOON + timedelta(hours=1), timedelta(microseconds=1)
            assert ids(history.runs(since=NOON, until=one)) == ["b", "a"]
            assert ids(history.runs(since=one, until=one)) == ["b"]
            assert ids(history.runs(since=one + moment)) == ["c"]
            assert ids(history.runs(until=one - moment)) == ["a"]
            east = one.astimezone(timezone(timedelta(hours=9)))
            assert ids(history.runs(since=east, until=east)) == ["b"]
            assert ids(history.runs(since=one, until=NOON)) == []
            naive = datetime(2026, 1, 1)  # noqa: DTZ001 - that is the point
            refused(UsageError, lambda: history.runs(since=naive))

    def test_what_is_asked_must_all_hold(self) -> None:
        """Name, configuration, evaluator, dates and tags together."""
        with self.history() as history:
            for number in range(8):
                history.begin(
                    a_run(
                        f"r{number}",
                        "exam" if number & 1 else "quiz",
                        hours=number,
                        tags={"branch": "main" if number & 2 else "dev"},
                        configurations=["large" if number & 4 else "small"],
                    )
                )
            asked: dict[str, Any] = {"name": "exam", "tags": {"branch": "main"}, "evaluator": "exact"}
            assert ids(history.runs(**asked)) == ["r7", "r3"]
            assert ids(history.runs(**asked, configuration="small")) == ["r3"]
            assert ids(history.runs(**asked, until=NOON + timedelta(hours=6))) == ["r3"]
            assert ids(history.runs(**asked, since=NOON + timedelta(hours=4))) == ["r7"]
            assert ids(history.runs(**asked, limit=1, offset=1)) == ["r3"]

    def test_what_a_run_is_found_by_follows_its_updates(self) -> None:
        """Tags and configurations that are gone find it no more."""
        with self.history() as history:
            history.begin(a_run("r", tags={"a": "1", "b": "1"}))
            history.update(a_run("r", tags={"a": "2"}, configurations=["small"]))
            assert ids(history.runs(tags={"a": "2"})) == ["r"]
            assert ids(history.runs(tags={"b": "1"})) == []
            assert ids(history.runs(configuration="small")) == ["r"]
            assert ids(history.runs(configuration="default")) == []

    def test_a_baseline_is_a_name_for_a_run(self) -> None:
        """It is set, seen by others, moved, and dropped; its run stays."""
        with self.history() as history:
            assert dict(history.baselines()) == {}
            for run_id in ("r1", "r2"):
                history.begin(a_run(run_id))
            assert history.set_baseline("main", "r1").run_id == "r1"
            history.set_baseline("other", "latest")
            with self.other(history) as seen:
                assert seen.baseline("main").run_id == "r1"
                assert {name: run.run_id for name, run in seen.baselines().items()} == {
                    "main": "r1",
                    "other": "r2",
                }
            history.set_baseline("main", "r2")
            assert history.baseline("main").run_id == "r2"
            history.drop_baseline("main")
            refused(RunNotFound, lambda: history.baseline("main"))
            refused(RunNotFound, lambda: history.drop_baseline("main"))
            assert ids(history.runs()) == ["r2", "r1"]

    def test_what_cannot_be_a_baseline_is_refused(self) -> None:
        """Runs that are not there, and names that mean something else."""
        with self.history() as history:
            history.begin(a_run("r"))
            refused(RunNotFound, lambda: history.set_baseline("main", "other"))
            for name in ("", " ", "latest", "baseline:main"):
                refused(UsageError, partial(history.set_baseline, name, "r"))
            assert dict(history.baselines()) == {}

    def test_a_run_is_found_by_its_baseline(self) -> None:
        """As `baseline:NAME`, or by the bare name if no run has that id or name."""
        with self.history() as history:
            for run_id, name in (("r1", "exam"), ("r2", "exam"), ("main-3", "quiz")):
                history.begin(a_run(run_id, name))
            history.set_baseline("main", "r1")
            history.set_baseline("exam", "r1")
            assert history.find("baseline:main").run_id == "r1"
            assert history.find("main").run_id == "r1"
            assert history.find("exam").run_id == "r2"
            assert history.find("baseline:exam").run_id == "r1"
            assert history.report("baseline:main").run_id == "r1"
            refused(RunNotFound, lambda: history.find("baseline:mian"))

    def test_deleting_a_run_tells_which_baselines_go_with_it(self) -> None:
        """All names it had are given, and mean nothing any more."""
        with self.history() as history:
            for run_id in ("r1", "r2"):
                history.begin(a_run(run_id))
            history.set_baseline("main", "r1")
            history.set_baseline("alpha", "r1")
            history.set_baseline("beta", "r2")
            assert list(history.delete("r1")) == ["alpha", "main"]
            assert list(history.baselines()) == ["beta"]
            assert list(history.delete("r2")) == ["beta"]

    def test_of_150_runs_100_are_kept(self) -> None:
        """The hundredth stays, the hundred and first goes, and other names are counted apart."""
        with self.history() as history:
            for number in range(150):
                history.begin(a_run(f"r{number:03}", hours=number))
            history.begin(a_run("old", "other", hours=-1))
            now = NOON + timedelta(days=365)
            for dry_run in (True, False):
                gone = history.prune(Retention(count=100), now=now, dry_run=dry_run).gone
                assert sorted(ids(gone)) == [f"r{number:03}" for number in range(50)]
            assert len(history.runs(limit=1_000, name="exam")) == 100
            assert history.find("r050").run_id == "r050"
            assert ids(history.runs(name="other")) == ["old"]
            assert list(history.prune(Retention(count=100), now=now).gone) == []

    def test_a_run_of_exactly_thirty_days_is_kept(self) -> None:
        """A microsecond later it goes."""
        with self.history() as history:
            history.begin(a_run("r"))
            now, month = NOON + timedelta(days=30), Retention(days=30)
            assert list(history.prune(month, now=now).gone) == []
            later = now + timedelta(microseconds=1)
            assert ids(history.prune(month, now=later, dry_run=True).gone) == ["r"]
            assert ids(history.runs()) == ["r"]
            assert ids(history.prune(month, now=later).gone) == ["r"]
            assert list(history.runs()) == []

    def test_a_run_goes_only_when_both_limits_are_exceeded(self) -> None:
        """Old but among the last stays, and so does young but many; without limits all stay."""
        with self.history() as history:
            for number in range(4):
                history.begin(a_run(f"r{number}", hours=24 * number))
            now = NOON + timedelta(days=10)
            assert list(history.prune(Retention(), now=now).gone) == []
            assert list(history.prune(Retention(days=10, count=1), now=now).gone) == []
            assert list(history.prune(Retention(days=1, count=4), now=now).gone) == []
            assert ids(history.prune(Retention(days=8, count=1), now=now).gone) == ["r1", "r0"]
            assert ids(history.prune(Retention(days=1), now=now, name="quiz").gone) == []
            assert ids(history.prune(Retention(days=1), now=now, name="exam").gone) == ["r3", "r2"]

    def test_baselines_and_runs_at_work_are_not_pruned(self) -> None:
        """However old they are: a baseline until it is dropped, a held run until it is let go."""
        with self.history() as history:
            for run_id in ("base", "busy", "r"):
                store(history, a_run(run_id), [a_result("a")])
            history.set_baseline("main", "base")
            now, short = NOON + timedelta(days=100), Retention(days=1)
            with history.hold("busy"):
                assert ids(history.prune(short, now=now, dry_run=True).gone) == ["r"]
                assert ids(history.prune(short, now=now).gone) == ["r"]
            assert ids(history.prune(short, now=now).gone) == ["busy"]
            history.drop_baseline("main")
            assert ids(history.prune(short, now=now.astimezone(UTC)).gone) == ["base"]

    def test_pruning_reports_the_old_runs_that_stay(self) -> None:
        """Each with its reason; with `only`, no other runs are deleted."""
        with self.history() as history:
            for run_id in ("base", "busy", "r", "s"):
                history.begin(a_run(run_id))
            history.set_baseline("main", "base")
            now, short = NOON + timedelta(days=100), Retention(days=1)
            with history.hold("busy"):
                found = history.prune(short, now=now, only=["s", "base"])
            assert ids(found.gone) == ["s"]
            assert found.staying == {"base": "the baseline main", "busy": "a process is working on it"}
            assert sorted(ids(history.runs())) == ["base", "busy", "r"]

    def test_a_baseline_that_is_set_meanwhile_is_not_pruned(self) -> None:
        """Somebody names a run while another tidies up: either the name or the deletion fails."""
        with self.history() as history, self.other(history) as other:
            names = [f"r{number:02}" for number in range(40)]
            for run_id in names:
                history.begin(a_run(run_id))
            set_: list[str] = []

            def name() -> None:
                for run_id in reversed(names):
                    with contextlib.suppress(RunNotFound, HistoryError):
                        other.set_baseline(f"of {run_id}", run_id)
                        set_.append(run_id)

            thread = threading.Thread(target=name)
            thread.start()
            found = history.prune(Retention(days=1), now=NOON + timedelta(days=100))
            thread.join()
            assert {run.run_id for run in found.gone} | set(set_) == set(names)
            assert {run.run_id for run in found.gone} & set(set_) == set()
            assert sorted(ids(history.runs(limit=100))) == sorted(set_)
            assert sorted(run.run_id for run in history.baselines().values()) == sorted(set_)

    def test_outputs_are_forgotten_on_demand(self) -> None:
        """Those kept before a moment, or all; a dry run counts them."""
        with self.history() as history:
            assert history.forget_outputs() == 0
            history.begin(a_run("r"))
            with history.writer("r") as writer:
                for day in range(4):
                    writer.keep(f"{day}", (NOON + timedelta(days=day)).isoformat(), b"{}")
            third = NOON + timedelta(days=2)
            assert history.forget_outputs(before=third, dry_run=True) == 2
            assert history.cached("0") == b"{}"
            assert history.forget_outputs(before=third) == 2
            assert [history.cached(f"{day}") for day in range(4)] == [None, None, b"{}", b"{}"]
            assert history.holdings().outputs == 2
            assert history.forget_outputs() == 2
            assert history.holdings().outputs == 0
