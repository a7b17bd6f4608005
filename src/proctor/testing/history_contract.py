"""What every history must be able to do, as tests to inherit."""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from proctor.errors import HistoryError, ProctorError, ResumeRefused, RunNotFound
from proctor.ports import History
from proctor.records.metric import MetricValue
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from proctor.testing.history_queries import (
    HistoryHooks,
    HistoryQueries,
    a_failure,
    a_result,
    a_run,
    ids,
    store,
)
from proctor.testing.mailbox_moves import refused


class HistoryRestoring(HistoryHooks):
    """A run from elsewhere is there as a whole, or not at all."""

    def test_a_run_is_taken_in_as_it_was(self) -> None:
        """Metadata, results at their places, metrics; found by all that finds runs."""
        run = a_run("r1", tags={"branch": "main"}, configurations=("a", "b"))
        results = [a_result(f"s{n}", n / 600, configuration="ab"[n % 2]) for n in range(600)]
        metrics = {"pass_rate": MetricValue(0.5, 600, kind="rate")}
        with self.history() as history:
            with history.restoring(run) as restored:
                for place, result in enumerate(results):
                    restored.add(2 * place, result)
                restored.finish(metrics, {"a": metrics})
            with self.other(history) as seen:
                report = seen.report("r1")
                assert report.metadata == run
                assert list(report.results) == results
                assert (report.metrics, report.by_configuration) == (metrics, {"a": metrics})
                assert [place for place, *_ in seen.done("r1")] == list(range(0, 1200, 2))
                assert ids(seen.runs(tags={"branch": "main"}, configuration="b")) == ["r1"]
                assert report.results.column("exact").passed == 300

    def test_a_run_without_results_or_metrics_is_taken_in_too(self) -> None:
        """One that was begun and never got further."""
        with self.history() as history:
            with history.restoring(a_run("r1")):
                pass
            assert history.report("r1").total == 0
            assert history.report("r1").metrics == {}

    def test_what_fails_on_its_way_in_leaves_nothing(self) -> None:
        """Neither the run nor some of its results, however many were taken."""
        with self.history() as history:
            store(history, a_run("r0"), [a_result("a")])
            with contextlib.suppress(ZeroDivisionError), history.restoring(a_run("r1")) as restored:
                for place in range(700):
                    restored.add(place, a_result(f"s{place}"))
                raise ZeroDivisionError
            assert ids(history.runs()) == ["r0"]
            with history.restoring(a_run("r1")) as restored:
                restored.add(0, a_failure("s"))
            assert history.report("r1").total == 1

    def test_a_run_that_is_there_is_not_taken_in_again(self) -> None:
        """It stays as it is."""
        with self.history() as history:
            store(history, a_run("r1"), [a_result("a")])

            def again() -> None:
                with history.restoring(a_run("r1", "other")) as restored:
                    restored.add(0, a_result("b"))

            refused(HistoryError, again)
            assert history.find("r1").name == "exam"
            assert history.report("r1").results[0].sample_id == "a"

    def test_a_history_tells_what_it_holds(self) -> None:
        """Where it is, how many runs and results, and how large it is; looking makes none."""
        with self.history() as history:
            empty = history.holdings()
            assert (empty.runs, empty.results, empty.size_bytes, empty.schema) == (0, 0, 0, 0)
            store(history, a_run("r1"), [a_result("a"), a_failure("b")])
            history.begin(a_run("r2"))
            held = history.holdings()
            assert (held.where, held.runs, held.results) == (empty.where, 2, 2)
            assert held.size_bytes > 0
            assert held.schema > 0

    def test_the_metrics_of_many_runs_are_read_at_once(self) -> None:
        """As they were stored; of unfinished runs none, and nothing of runs that are not there."""
        metrics = {"pass_rate": MetricValue(0.5, 4, interval=(0.1, 0.9), kind="rate")}
        with self.history() as history:
            assert dict(history.metrics_of(["r1"])) == {}
            runs = [a_run(f"r{number}") for number in range(3)]
            for run in runs:
                history.begin(run)
            history.finish(runs[0], metrics, {})
            history.finish(runs[1], {}, {"default": metrics})
            assert dict(history.metrics_of(["r0", "r1", "r2", "r9"])) == {
                "r0": (metrics, {}),
                "r1": ({}, {"default": metrics}),
                "r2": ({}, {}),
            }
            many = [f"x{number}" for number in range(1_200)]
            assert list(history.metrics_of([*many, "r0"])) == ["r0"]
            assert dict(history.metrics_of([])) == {}


class HistoryContract(HistoryQueries, HistoryRestoring):
    """Tests that every history must pass; inherit them and say how to make one.

    `make` gives a new, empty history at a place of its own, `again` another one at the same
    place, as a second process would open it.

    >>> class TestMine(HistoryContract):
    ...     def make(self):
    ...         return MyHistory(new_place())
    ...
    ...     def again(self, history):
    ...         return MyHistory(history.place)
    """

    def test_a_run_is_begun_and_found_as_it_was(self) -> None:
        """Everything about a run comes back, also for somebody else."""
        run = a_run("r1", tags={"modell": "größer 🙂"}, configurations=("a", "b"))
        with self.history() as history:
            history.begin(run)
            with self.other(history) as seen:
                for each in (history, seen):
                    assert each.find("r1") == run
                    assert each.report("r1").metadata == run
                    assert each.report("r1").metrics == {}

    def test_a_finished_run_has_its_metrics(self) -> None:
        """Those of all and of each configuration; a run that goes on again has none yet."""
        run = a_run("r1")
        metrics = {"pass_rate": MetricValue(0.5, 4, errors=1, interval=(0.1, 0.9), kind="rate")}
        with self.history() as history:
            history.begin(run)
            done = msgspec.structs.replace(
                run, status="completed", finished_at=run.started_at + timedelta(seconds=3)
            )
            history.finish(done, metrics, {"default": metrics})
            report = history.report("r1")
            assert report.metadata == done
            assert report.metrics == metrics
            assert report.by_configuration == {"default": metrics}
            history.update(run)
            assert history.report("r1").metrics == {}

    def test_runs_are_found_by_id_beginning_name_or_as_the_latest(self) -> None:
        """The whole id, a name (the newest), "latest", or a beginning that is unique."""
        with self.history() as history:
            for run_id, name in (
                ("abc1", "exam"), ("abd2", "quiz"), ("xyz3", "exam"), ("xyw4", "last"),
            ):  # fmt: skip
                history.begin(a_run(run_id, name))
            words = ("abc1", "abd", "exam", "quiz", "latest")
            assert [history.find(word).run_id for word in words] == [
                "abc1", "abd2", "xyz3", "abd2", "xyw4",
            ]  # fmt: skip
            for word in ("ab", "", "%", "_", "ABC1", "nothing"):
                refused(RunNotFound, partial(history.find, word))

    def test_an_id_goes_before_a_name_and_a_name_before_a_beginning(self) -> None:
        """Runs that are named like other runs' ids do not hide them."""
        with self.history() as history:
            history.begin(a_run("abc"))
            for number in range(5):
                history.begin(a_run(f"abcd{number}", "abc"))
            history.begin(a_run("zz", "abcd"))
            assert history.find("abc").run_id == "abc"
            assert history.find("abcd").run_id == "zz"

    def test_looking_makes_nothing(self) -> None:
        """An empty history answers every question, and there is nothing in it."""
        with self.history() as history:
            assert list(history.runs()) == []
            assert list(history.runs(tags={"a": "b"}, evaluator="x")) == []
            assert history.is_held("r") is False
            assert history.cached("key") is None
            look: Any
            for look in (history.find, history.report, history.results, history.delete):
                refused(RunNotFound, partial(look, "latest"))

    def test_one_id_cannot_be_begun_twice(self) -> None:
        """The first run stays as it is."""
        with self.history() as history:
            history.begin(a_run("r", "first"))
            refused(HistoryError, lambda: history.begin(a_run("r", "second")))
            assert history.find("r").name == "first"

    def test_a_run_that_was_deleted_meanwhile_cannot_be_finished(self) -> None:
        """What would be lost in silence is said."""
        run = a_run("r")
        with self.history() as history:
            history.begin(run)
            history.delete("r")
            refused(RunNotFound, lambda: history.update(run))
            refused(RunNotFound, lambda: history.finish(run, {}, {}))

    def test_results_come_back_in_the_order_of_the_plan(self) -> None:
        """Whatever was finished first; each as it went in, whatever text is in it."""
        odd = 'null \x00, half of it "quoted" \n\r\t, Grüße 🙂 %s ? $1'
        made = [a_result(f"s{i}", i / 4, text=odd * i) for i in range(5)]
        with self.history() as history:
            history.begin(a_run("r"))
            with history.writer("r") as writer:
                for position in (3, 0, 4, 1, 2):
                    writer.add(position, made[position])
                    writer.flush()
            with self.other(history) as seen:
                assert list(seen.results("r")) == made
                assert seen.results("r")[-1] == made[-1]
                assert list(seen.results("r").page(outcome="failed")) == made[:2]
                assert list(seen.results("r").of_sample("s2")) == [made[2]]

    def test_many_results_and_large_ones_are_kept(self) -> None:
        """Thousands in groups of all sizes, and one of a megabyte, with their columns."""
        made = [a_result(f"s{i}", (i % 3) / 2) for i in range(2_500)]
        made.append(a_result("large", text="é" * 500_000))
        with self.history() as history:
            store(history, a_run("r"), made)
            results = history.results("r")
            assert list(results) == made
            column = results.column("exact")
            assert len(column.values) == 2_501
            assert sum(column.passes) == results.counts().passed == 1_667

    def test_what_is_flushed_is_seen_by_others_while_the_run_goes_on(self) -> None:
        """After `flush` everything taken so far is durable."""
        with self.history() as history:
            history.begin(a_run("r"))
            with history.writer("r") as writer, self.other(history) as seen:
                for count in range(1, 4):
                    writer.add(count, a_result(f"s{count}"))
                    writer.flush()
                    assert len(seen.results("r")) == count

    def test_of_two_results_for_one_place_the_first_is_counted(self) -> None:
        """At once, and when the run is taken up again."""
        with self.history() as history:
            store(history, a_run("r"), [a_result("a", 1.0)])
            with history.writer("r") as writer:
                writer.add(0, a_result("a", 0.0))
                writer.add(1, a_result("b", 0.0))
                writer.add(1, a_result("b", 1.0))
            assert [result.outcome for result in history.results("r")] == ["passed", "failed"]

    def test_what_is_finished_is_told_for_a_resume(self) -> None:
        """Position, sample, configuration, epoch; failed ones can be forgotten, to be run again."""
        made = [a_result("a"), a_failure("b"), a_result("c", None), a_result("d", 0.0)]
        with self.history() as history:
            store(history, a_run("r"), made)
            everything = [(i, name, "default", 0) for i, name in enumerate("abcd")]
            assert list(history.done("r")) == everything
            for _ in range(2):
                history.forget_errors("r")
                assert list(history.done("r")) == [everything[0], everything[3]]
                assert list(history.results("r")) == [made[0], made[3]]

    def test_a_result_in_which_one_evaluator_failed_is_forgotten_too(self) -> None:
        """Although another one's verdict made it fail as a whole."""
        trial = a_result("a").trial
        both = {"exact": Score(0.0, False), "judge": Score.error("no answer")}
        with self.history() as history:
            run = a_run("r", evaluators=("exact", "judge"))
            store(history, run, [EvalResult(trial, both), a_result("b", 0.0)])
            history.forget_errors("r")
            assert [result.sample_id for result in history.results("r")] == ["b"]

    def test_outputs_are_kept_for_reuse(self) -> None:
        """Under their key, the first one wins, and bytes are bytes."""
        with self.history() as history:
            history.begin(a_run("r"))
            with history.writer("r") as writer:
                writer.keep("key", "2026-01-01T00:00:00+00:00", b"\x00\xff{}")
                writer.keep("key", "2026-01-02T00:00:00+00:00", b"another")
            assert history.cached("key") == b"\x00\xff{}"
            assert history.cached("other") is None

    def test_an_output_can_be_taken_away(self) -> None:
        """By one without a byte; then another may take its place, at once or later."""
        when = "2026-01-01T00:00:00+00:00"
        with self.history() as history:
            history.begin(a_run("r"))
            for kept, left in (
                ((b"old",), b"old"),
                ((b"",), None),
                ((b"one", b"", b"two"), b"two"),
                ((b"", b"three", b"four"), b"three"),
                ((b"five", b""), None),
            ):
                with history.writer("r") as writer:
                    for reply in kept:
                        writer.keep("key", when, reply)
                    assert history.cached("key") == left
                assert history.cached("key") == left

    def test_an_output_is_found_as_soon_as_it_is_kept(self) -> None:
        """Not only when it is stored, or who asks at once would pay a second time."""
        with self.history() as history:
            history.begin(a_run("r"))
            with history.writer("r") as writer:
                for number in range(200):
                    writer.keep(f"{number}", "2026-01-01T00:00:00+00:00", b"{}")
                    assert history.cached(f"{number}") == b"{}"
            assert all(history.cached(f"{number}") == b"{}" for number in range(200))

    def test_deleting_a_run_takes_all_that_belongs_to_it(self) -> None:
        """Other runs and kept outputs stay; an id that was used may be used again."""
        with self.history() as history:
            for run_id in ("r1", "r2"):
                store(history, a_run(run_id, tags={"t": "1"}), [a_result("a")])
            held = history.results("r1")
            history.delete("r1")
            assert ids(history.runs(tags={"t": "1"})) == ["r2"]
            assert len(history.results("r2")) == 1
            gone: Any
            for gone in (history.delete, history.report, history.results):
                refused(RunNotFound, partial(gone, "r1"))
            store(history, a_run("r1"), [a_result("b"), a_result("c")])
            assert len(held) == 0
            assert len(history.results("r1")) == 2

    def test_results_of_a_deleted_run_reach_no_other_run(self) -> None:
        """A run that is deleted while it is written to ends, and the next run stays clean."""

        def write() -> None:
            with history.writer("r") as writer:
                history.delete("r")
                history.begin(a_run("next"))
                writer.add(0, a_result("stray"))

        with self.history() as history:
            history.begin(a_run("r"))
            refused(ProctorError, write)
            assert len(history.results("next")) == 0

    def test_a_run_is_held_by_one_at_a_time(self) -> None:
        """Who comes second is refused; when the block ends, however it ends, the run is free."""
        with self.history() as history, self.other(history) as second:
            for _ in range(2):
                refused(KeyError, lambda: self._hold_and_fail(history, second))
                assert not history.is_held("r")
                assert not second.is_held("r")
                with second.hold("r"):
                    assert history.is_held("r")

    def _hold_and_fail(self, history: History, second: History) -> None:
        with history.hold("r"):
            assert history.is_held("r")
            assert second.is_held("r")
            assert not second.is_held("another")
            refused(ResumeRefused, lambda: second.hold("r").__enter__())
            with second.hold("another"):
                assert history.is_held("another")
            raise KeyError("no")

    def test_threads_may_share_a_history(self) -> None:
        """Each begins, writes and reads its own run, and nothing is lost or mixed up."""
        found: dict[str, list[str]] = {}

        def work(run_id: str) -> None:
            store(history, a_run(run_id), [a_result(f"{run_id}-{i}") for i in range(50)])
            found[run_id] = [result.sample_id for result in history.results(run_id)]

        with self.history() as history:
            names = [f"r{number}" for number in range(4)]
            threads = [threading.Thread(target=work, args=(name,)) for name in names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert found == {name: [f"{name}-{i}" for i in range(50)] for name in names}

    def test_a_closed_history_opens_again(self) -> None:
        """Closing gives back what is held; using it takes it again."""
        with self.history() as history:
            history.close()
            history.begin(a_run("r"))
            history.close()
            history.close()
            assert ids(history.runs()) == ["r"]
