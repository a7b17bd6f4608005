"""Runs taken in whole, and what they amount to: one part of the contract of histories."""

from __future__ import annotations

import contextlib

from proctor.errors import HistoryError
from proctor.records.metric import MetricValue
from proctor.testing.history_hooks import HistoryHooks, a_failure, a_result, a_run, ids, store
from proctor.testing.mailbox_hooks import refused


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
