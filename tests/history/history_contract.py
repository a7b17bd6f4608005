"""Contract tests that every history must pass."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from proctor.errors import HistoryError, ProctorError, ResumeRefused, RunNotFound, UsageError
from proctor.ports import History
from proctor.records.label import HumanLabel
from proctor.records.metric import MetricValue
from proctor.records.run import EvaluatorSpec, Retention, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Failure, Trial
from proctor.testing.assertions import assert_raises

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR, DAY, MICROSECOND = timedelta(hours=1), timedelta(days=1), timedelta(microseconds=1)


def make_run(
    run_id: str,
    name: str = "exam",
    *,
    hours: float = 0,
    tags: dict[str, str] | None = None,
    configurations: Sequence[str] = ("default",),
    evaluators: Sequence[str] = ("exact",),
) -> RunMetadata:
    """Build a run that started `hours` after noon."""
    return RunMetadata(
        run_id,
        name,
        NOON + hours * HOUR,
        tags=tags or {},
        configurations=tuple(map(Configuration, configurations)),
        evaluators=tuple(EvaluatorSpec(evaluator, "exact_match") for evaluator in evaluators),
    )


def make_result(
    sample_id: str, value: float | None = 1.0, *, configuration: str = "default", text: str = "!"
) -> EvalResult:
    """Build a result that passes from 0.5 on; with None as the value its evaluator failed."""
    score = Score.error("no verdict") if value is None else Score(value, value >= 0.5)
    trial = Trial(Sample(sample_id, "?"), text, latency_ms=100.0, configuration=configuration, epoch=0)
    return EvalResult(trial, {"exact": score})


def make_failure(sample_id: str) -> EvalResult:
    """Build a result whose target raised an error."""
    return EvalResult(Trial(Sample(sample_id, "?"), error=Failure("TimeoutError", "too slow")))


def store_run(history: History, run: RunMetadata, results: Sequence[EvalResult] = ()) -> None:
    """Begin a run and write its results."""
    history.begin(run)
    with history.writer(run.run_id) as writer:
        for position, result in enumerate(results):
            writer.add(position, result)


def run_ids(runs: Sequence[RunMetadata]) -> list[str]:
    return [run.run_id for run in runs]


class HistoryContract:
    """Tests that every history must pass. Inherit from it and implement `make` and `reopen` (needs pytest).

    >>> class TestMyHistory(HistoryContract):
    ...     def make(self):
    ...         return MyHistory(new_path())
    ...
    ...     def reopen(self, history):
    ...         return MyHistory(history.path)
    """

    def make(self) -> History:
        """Return a new, empty history in a new location."""
        raise NotImplementedError("implement make() to return a new, empty history")

    def reopen(self, history: History) -> History:
        """Open the same location again, with new connections, as another process would."""
        raise NotImplementedError("implement reopen() to open the location of a history again")

    @pytest.fixture
    def history(self) -> Iterator[History]:
        with closing(self.make()) as history:
            yield history

    def test_runs_are_listed_newest_first(self, history: History) -> None:
        # Of two runs that started at the same time, the one stored last comes first.
        for run_id, hours in (("b", 2), ("a", 1), ("d", 3), ("c", 2)):
            history.begin(make_run(run_id, hours=hours))
        assert run_ids(history.runs()) == ["d", "c", "b", "a"]
        assert run_ids(history.runs(limit=2)) == ["d", "c"]
        assert run_ids(history.runs(limit=2, offset=1)) == ["c", "b"]
        assert run_ids(history.runs(offset=3)) == ["a"]
        assert run_ids(history.runs(limit=0)) == []
        assert run_ids(history.runs(offset=9)) == []
        assert history.find("latest").run_id == "d"

    def test_labels_are_stored_once_and_the_latest_counts(self, history: History) -> None:
        history.begin(make_run("a"))
        first = HumanLabel("1", "a", "s", datetime(2026, 1, 1, tzinfo=UTC), evaluator="judge", passed=True)
        second = msgspec.structs.replace(first, label_id="2", passed=False)
        assert history.add_labels([first, second]) == 2
        assert history.add_labels([first]) == 0
        assert list(self.reopen(history).labels(run_id="a", evaluator="judge")) == [second]
        assert not history.labels(evaluator="other")
        assert list(history.labels(name=history.find("a").name)) == [second]
        assert not history.labels(name="another name")
        with pytest.raises(RunNotFound):
            history.add_labels([msgspec.structs.replace(first, label_id="3", run_id="b")])
        history.delete("a")
        assert not history.labels()

    def test_a_tag_query_matches_all_tags_exactly(self, history: History) -> None:
        long = "ä" * 5_000
        history.begin(make_run("r1", tags={"model": "small", "branch": "main"}))
        history.begin(make_run("r2", tags={"model": "large", "branch": "main", "note": long}))
        history.begin(make_run("r3", tags={"model": "small"}))
        assert run_ids(history.runs(tags={"branch": "main"})) == ["r2", "r1"]
        assert run_ids(history.runs(tags={"model": "small", "branch": "main"})) == ["r1"]
        assert run_ids(history.runs(tags={"model": "SMALL"})) == []
        assert run_ids(history.runs(tags={"model": "main"})) == []
        assert run_ids(history.runs(tags={"note": long})) == ["r2"]
        assert run_ids(history.runs(tags={"note": long + "!"})) == []
        assert run_ids(history.runs(tags={"it's": "'; DROP TABLE runs; --"})) == []
        assert run_ids(history.runs(tags={})) == ["r3", "r2", "r1"]

    def test_runs_are_filtered_by_evaluator_and_configuration(self, history: History) -> None:
        # An evaluator matches by the name of its score or by its type.
        history.begin(make_run("r1", configurations=["small", "large"]))
        history.begin(make_run("r2", evaluators=["right", "short"]))
        assert run_ids(history.runs(configuration="large")) == ["r1"]
        assert run_ids(history.runs(configuration="default")) == ["r2"]
        assert run_ids(history.runs(evaluator="short")) == ["r2"]
        assert run_ids(history.runs(evaluator="exact_match")) == ["r2", "r1"]
        assert run_ids(history.runs(evaluator="exact_match", configuration="small")) == ["r1"]
        assert run_ids(history.runs(evaluator="EXACT")) == []
        assert run_ids(history.runs(configuration="larg")) == []

    def test_a_date_range_includes_both_ends_in_any_time_zone(self, history: History) -> None:
        for run_id, hours in (("a", 0), ("b", 1), ("c", 2)):
            history.begin(make_run(run_id, hours=hours))
        one = NOON + HOUR
        assert run_ids(history.runs(since=NOON, until=one)) == ["b", "a"]
        assert run_ids(history.runs(since=one, until=one)) == ["b"]
        assert run_ids(history.runs(since=one + MICROSECOND)) == ["c"]
        assert run_ids(history.runs(until=one - MICROSECOND)) == ["a"]
        east = one.astimezone(timezone(9 * HOUR))
        assert run_ids(history.runs(since=east, until=east)) == ["b"]
        assert run_ids(history.runs(since=one, until=NOON)) == []
        naive = datetime(2026, 1, 1)  # noqa: DTZ001 - the history must refuse it
        assert_raises(UsageError, history.runs, since=naive)

    def test_all_filters_of_a_query_must_match(self, history: History) -> None:
        for number in range(8):
            tags = {"branch": "main" if number & 2 else "dev"}
            configurations = ["large" if number & 4 else "small"]
            name = "exam" if number & 1 else "quiz"
            history.begin(make_run(f"r{number}", name, hours=number, tags=tags, configurations=configurations))
        query: dict[str, Any] = {"name": "exam", "tags": {"branch": "main"}, "evaluator": "exact"}
        assert run_ids(history.runs(**query)) == ["r7", "r3"]
        assert run_ids(history.runs(**query, configuration="small")) == ["r3"]
        assert run_ids(history.runs(**query, until=NOON + 6 * HOUR)) == ["r3"]
        assert run_ids(history.runs(**query, since=NOON + 4 * HOUR)) == ["r7"]
        assert run_ids(history.runs(**query, limit=1, offset=1)) == ["r3"]

    def test_queries_see_the_updated_tags_and_configurations(self, history: History) -> None:
        history.begin(make_run("r", tags={"a": "1", "b": "1"}))
        history.update(make_run("r", tags={"a": "2"}, configurations=["small"]))
        assert run_ids(history.runs(tags={"a": "2"})) == ["r"]
        assert run_ids(history.runs(tags={"b": "1"})) == []
        assert run_ids(history.runs(configuration="small")) == ["r"]
        assert run_ids(history.runs(configuration="default")) == []

    def test_a_baseline_is_set_moved_and_dropped(self, history: History) -> None:
        assert dict(history.baselines()) == {}
        for run_id in ("r1", "r2"):
            history.begin(make_run(run_id))
        assert history.set_baseline("main", "r1").run_id == "r1"
        history.set_baseline("other", "latest")
        with closing(self.reopen(history)) as reopened:
            assert reopened.baseline("main").run_id == "r1"
            baselines = {name: run.run_id for name, run in reopened.baselines().items()}
            assert baselines == {"main": "r1", "other": "r2"}
        history.set_baseline("main", "r2")
        assert history.baseline("main").run_id == "r2"
        history.drop_baseline("main")
        assert_raises(RunNotFound, history.baseline, "main")
        assert_raises(RunNotFound, history.drop_baseline, "main")
        assert run_ids(history.runs()) == ["r2", "r1"]

    def test_invalid_baselines_are_refused(self, history: History) -> None:
        history.begin(make_run("r"))
        assert_raises(RunNotFound, history.set_baseline, "main", "other")
        for name in ("", " ", "latest", "baseline:main"):
            assert_raises(UsageError, history.set_baseline, name, "r")
        assert dict(history.baselines()) == {}

    def test_a_run_is_found_by_its_baseline(self, history: History) -> None:
        # The bare name works only if no run has that id or name.
        for run_id, name in (("r1", "exam"), ("r2", "exam"), ("main-3", "quiz")):
            history.begin(make_run(run_id, name))
        history.set_baseline("main", "r1")
        history.set_baseline("exam", "r1")
        expected = {"baseline:main": "r1", "main": "r1", "exam": "r2", "baseline:exam": "r1"}
        assert {name: history.find(name).run_id for name in expected} == expected
        assert history.report("baseline:main").run_id == "r1"
        assert_raises(RunNotFound, history.find, "baseline:mian")

    def test_deleting_a_run_returns_and_drops_its_baselines(self, history: History) -> None:
        for run_id in ("r1", "r2"):
            history.begin(make_run(run_id))
        for name, run_id in (("main", "r1"), ("alpha", "r1"), ("beta", "r2")):
            history.set_baseline(name, run_id)
        assert list(history.delete("r1")) == ["alpha", "main"]
        assert list(history.baselines()) == ["beta"]
        assert list(history.delete("r2")) == ["beta"]

    def test_pruning_by_count_keeps_the_newest_runs_of_each_name(self, history: History) -> None:
        for number in range(150):
            history.begin(make_run(f"r{number:03}", hours=number))
        history.begin(make_run("old", "other", hours=-1))
        now = NOON + 365 * DAY
        for dry_run in (True, False):
            gone = history.prune(Retention(count=100), now=now, dry_run=dry_run).deleted
            assert sorted(run_ids(gone)) == [f"r{number:03}" for number in range(50)]
        assert len(history.runs(limit=1_000, name="exam")) == 100
        assert history.find("r050").run_id == "r050"
        assert run_ids(history.runs(name="other")) == ["old"]
        assert list(history.prune(Retention(count=100), now=now).deleted) == []

    def test_a_run_of_exactly_thirty_days_is_kept(self, history: History) -> None:
        history.begin(make_run("r"))
        now, month = NOON + 30 * DAY, Retention(days=30)
        assert list(history.prune(month, now=now).deleted) == []
        later = now + MICROSECOND
        assert run_ids(history.prune(month, now=later, dry_run=True).deleted) == ["r"]
        assert run_ids(history.runs()) == ["r"]
        assert run_ids(history.prune(month, now=later).deleted) == ["r"]
        assert list(history.runs()) == []

    def test_a_run_is_pruned_only_if_it_exceeds_both_limits(self, history: History) -> None:
        for number in range(4):
            history.begin(make_run(f"r{number}", hours=24 * number))
        now = NOON + 10 * DAY
        assert list(history.prune(Retention(), now=now).deleted) == []
        assert list(history.prune(Retention(days=10, count=1), now=now).deleted) == []
        assert list(history.prune(Retention(days=1, count=4), now=now).deleted) == []
        assert run_ids(history.prune(Retention(days=8, count=1), now=now).deleted) == ["r1", "r0"]
        assert run_ids(history.prune(Retention(days=1), now=now, name="quiz").deleted) == []
        assert run_ids(history.prune(Retention(days=1), now=now, name="exam").deleted) == ["r3", "r2"]

    def test_baselines_and_locked_runs_are_not_pruned(self, history: History) -> None:
        for run_id in ("base", "busy", "r"):
            store_run(history, make_run(run_id), [make_result("a")])
        history.set_baseline("main", "base")
        now, short = NOON + 100 * DAY, Retention(days=1)
        with history.claim("busy"):
            assert run_ids(history.prune(short, now=now, dry_run=True).deleted) == ["r"]
            assert run_ids(history.prune(short, now=now).deleted) == ["r"]
        assert run_ids(history.prune(short, now=now).deleted) == ["busy"]
        history.drop_baseline("main")
        assert run_ids(history.prune(short, now=now).deleted) == ["base"]

    def test_pruning_reports_the_runs_that_stay_and_why(self, history: History) -> None:
        # `only` limits which runs are deleted.
        for run_id in ("base", "busy", "r", "s"):
            history.begin(make_run(run_id))
        history.set_baseline("main", "base")
        with history.claim("busy"):
            pruned = history.prune(Retention(days=1), now=NOON + 100 * DAY, only=["s", "base"])
        assert run_ids(pruned.deleted) == ["s"]
        assert pruned.exempt == {"base": "the baseline main", "busy": "a process is working on it"}
        assert sorted(run_ids(history.runs())) == ["base", "busy", "r"]

    def test_a_baseline_set_during_pruning_is_not_pruned(self, history: History) -> None:
        # Either setting the baseline or deleting the run fails.
        names = [f"r{number:02}" for number in range(40)]
        for run_id in names:
            history.begin(make_run(run_id))
        baselines: list[str] = []
        with closing(self.reopen(history)) as reopened:

            def set_baselines() -> None:
                for run_id in reversed(names):
                    with suppress(RunNotFound, HistoryError):
                        reopened.set_baseline(f"of {run_id}", run_id)
                        baselines.append(run_id)

            thread = threading.Thread(target=set_baselines)
            thread.start()
            pruned = set(run_ids(history.prune(Retention(days=1), now=NOON + 100 * DAY).deleted))
            thread.join()
        assert pruned | set(baselines) == set(names)
        assert pruned & set(baselines) == set()
        assert sorted(run_ids(history.runs(limit=100))) == sorted(baselines)
        assert sorted(run.run_id for run in history.baselines().values()) == sorted(baselines)

    def test_outputs_are_deleted_by_age_or_all_at_once(self, history: History) -> None:
        assert history.delete_outputs() == 0
        history.begin(make_run("r"))
        with history.writer("r") as writer:
            for day in range(4):
                writer.cache_output(f"{day}", (NOON + day * DAY).isoformat(), b"{}")
        third = NOON + 2 * DAY
        assert history.delete_outputs(before=third, dry_run=True) == 2
        assert history.get_cached_output("0") == b"{}"
        assert history.delete_outputs(before=third) == 2
        assert [history.get_cached_output(f"{day}") for day in range(4)] == [None, None, b"{}", b"{}"]
        assert history.describe().outputs == 2
        assert history.delete_outputs() == 2
        assert history.describe().outputs == 0

    def test_a_run_is_restored_with_results_and_metrics(self, history: History) -> None:
        run = make_run("r1", tags={"branch": "main"}, configurations=("a", "b"))
        results = [make_result(f"s{n}", n / 600, configuration="ab"[n % 2]) for n in range(600)]
        metrics = {"pass_rate": MetricValue(0.5, 600, kind="rate")}
        with history.import_run(run) as restored:
            for position, result in enumerate(results):
                restored.add(2 * position, result)
            restored.finish(metrics, {"a": metrics})
        with closing(self.reopen(history)) as reopened:
            report = reopened.report("r1")
            assert report.metadata == run
            assert list(report.results) == results
            assert (report.metrics, report.by_configuration) == (metrics, {"a": metrics})
            assert [position for position, *_ in reopened.finished_trials("r1")] == list(range(0, 1200, 2))
            assert run_ids(reopened.runs(tags={"branch": "main"}, configuration="b")) == ["r1"]
            assert report.results.column("exact").passed == 300

    def test_a_run_without_results_or_metrics_is_restored(self, history: History) -> None:
        with history.import_run(make_run("r1")):
            pass
        assert history.report("r1").total == 0
        assert history.report("r1").metrics == {}

    def test_a_failed_restore_leaves_nothing(self, history: History) -> None:
        store_run(history, make_run("r0"), [make_result("a")])
        with suppress(ZeroDivisionError), history.import_run(make_run("r1")) as restored:
            for position in range(700):
                restored.add(position, make_result(f"s{position}"))
            raise ZeroDivisionError
        assert run_ids(history.runs()) == ["r0"]
        with history.import_run(make_run("r1")) as restored:
            restored.add(0, make_failure("s"))
        assert history.report("r1").total == 1

    def test_an_existing_run_is_not_restored_over(self, history: History) -> None:
        store_run(history, make_run("r1"), [make_result("a")])
        with pytest.raises(HistoryError), history.import_run(make_run("r1", "other")) as restored:
            restored.add(0, make_result("b"))
        assert history.find("r1").name == "exam"
        assert history.report("r1").results[0].sample_id == "a"

    def test_a_description_counts_runs_results_and_bytes(self, history: History) -> None:
        empty = history.describe()
        assert (empty.runs, empty.results, empty.size_bytes, empty.schema) == (0, 0, 0, 0)
        store_run(history, make_run("r1"), [make_result("a"), make_failure("b")])
        history.begin(make_run("r2"))
        info = history.describe()
        assert (info.where, info.runs, info.results) == (empty.where, 2, 2)
        assert info.size_bytes > 0
        assert info.schema > 0

    def test_metrics_of_many_runs_are_read_at_once(self, history: History) -> None:
        metrics = {"pass_rate": MetricValue(0.5, 4, interval=(0.1, 0.9), kind="rate")}
        assert dict(history.stored_metrics(["r1"])) == {}
        runs = [make_run(f"r{number}") for number in range(3)]
        for run in runs:
            history.begin(run)
        history.finish(runs[0], metrics, {})
        history.finish(runs[1], {}, {"default": metrics})
        expected = {"r0": (metrics, {}), "r1": ({}, {"default": metrics}), "r2": ({}, {})}
        assert dict(history.stored_metrics(["r0", "r1", "r2", "r9"])) == expected
        many = [f"x{number}" for number in range(1_200)]
        assert list(history.stored_metrics([*many, "r0"])) == ["r0"]
        assert dict(history.stored_metrics([])) == {}

    def test_a_run_is_stored_unchanged(self, history: History) -> None:
        run = make_run("r1", tags={"modell": "größer 🙂"}, configurations=("a", "b"))
        history.begin(run)
        with closing(self.reopen(history)) as reopened:
            for reader in (history, reopened):
                assert reader.find("r1") == run
                assert reader.report("r1").metadata == run
                assert reader.report("r1").metrics == {}

    def test_a_finished_run_has_metrics_until_it_continues(self, history: History) -> None:
        run = make_run("r1")
        metrics = {"pass_rate": MetricValue(0.5, 4, errors=1, interval=(0.1, 0.9), kind="rate")}
        history.begin(run)
        finished_at = run.started_at + timedelta(seconds=3)
        finished = msgspec.structs.replace(run, status="completed", finished_at=finished_at)
        history.finish(finished, metrics, {"default": metrics})
        report = history.report("r1")
        assert report.metadata == finished
        assert report.metrics == metrics
        assert report.by_configuration == {"default": metrics}
        history.update(run)
        assert history.report("r1").metrics == {}

    def test_runs_are_found_by_id_unique_prefix_name_or_latest(self, history: History) -> None:
        for run_id, name in (("abc1", "exam"), ("abd2", "quiz"), ("xyz3", "exam"), ("xyw4", "last")):
            history.begin(make_run(run_id, name))
        expected = {"abc1": "abc1", "abd": "abd2", "exam": "xyz3", "quiz": "abd2", "latest": "xyw4"}
        assert {reference: history.find(reference).run_id for reference in expected} == expected
        for reference in ("ab", "", "%", "_", "ABC1", "nothing"):
            assert_raises(RunNotFound, history.find, reference)

    def test_an_id_precedes_a_name_and_a_name_precedes_a_prefix(self, history: History) -> None:
        history.begin(make_run("abc"))
        for number in range(5):
            history.begin(make_run(f"abcd{number}", "abc"))
        history.begin(make_run("zz", "abcd"))
        assert history.find("abc").run_id == "abc"
        assert history.find("abcd").run_id == "zz"

    def test_an_empty_history_answers_every_query(self, history: History) -> None:
        assert list(history.runs()) == []
        assert list(history.runs(tags={"a": "b"}, evaluator="x")) == []
        assert history.is_claimed("r") is False
        assert history.get_cached_output("key") is None
        lookups: list[Callable[[str], Any]] = [history.find, history.report, history.results, history.delete]
        for lookup in lookups:
            assert_raises(RunNotFound, lookup, "latest")

    def test_an_id_cannot_be_used_twice(self, history: History) -> None:
        history.begin(make_run("r", "first"))
        assert_raises(HistoryError, history.begin, make_run("r", "second"))
        assert history.find("r").name == "first"

    def test_a_deleted_run_cannot_be_updated_or_finished(self, history: History) -> None:
        run = make_run("r")
        history.begin(run)
        history.delete("r")
        assert_raises(RunNotFound, history.update, run)
        assert_raises(RunNotFound, history.finish, run, {}, {})

    def test_results_are_read_unchanged_in_the_order_of_their_positions(self, history: History) -> None:
        special = 'null \x00, half of it "quoted" \n\r\t, Grüße 🙂 %s ? $1'
        results = [make_result(f"s{i}", i / 4, text=special * i) for i in range(5)]
        history.begin(make_run("r"))
        with history.writer("r") as writer:
            for position in (3, 0, 4, 1, 2):
                writer.add(position, results[position])
                writer.flush()
        with closing(self.reopen(history)) as reopened:
            assert list(reopened.results("r")) == results
            assert reopened.results("r")[-1] == results[-1]
            assert list(reopened.results("r").page(outcome="failed")) == results[:2]
            assert list(reopened.results("r").for_sample("s2")) == [results[2]]

    def test_many_and_large_results_are_stored(self, history: History) -> None:
        expected = [make_result(f"s{i}", (i % 3) / 2) for i in range(2_500)]
        expected.append(make_result("large", text="é" * 500_000))
        store_run(history, make_run("r"), expected)
        results = history.results("r")
        assert list(results) == expected
        column = results.column("exact")
        assert len(column.values) == 2_501
        assert sum(column.passes) == results.counts().passed == 1_667

    def test_flushed_results_are_visible_to_others_at_once(self, history: History) -> None:
        history.begin(make_run("r"))
        with history.writer("r") as writer, closing(self.reopen(history)) as reopened:
            for count in range(1, 4):
                writer.add(count, make_result(f"s{count}"))
                writer.flush()
                assert len(reopened.results("r")) == count

    def test_the_first_result_of_a_position_wins(self, history: History) -> None:
        store_run(history, make_run("r"), [make_result("a", 1.0)])
        with history.writer("r") as writer:
            writer.add(0, make_result("a", 0.0))
            writer.add(1, make_result("b", 0.0))
            writer.add(1, make_result("b", 1.0))
        assert [result.outcome for result in history.results("r")] == ["passed", "failed"]

    def test_a_resume_sees_finished_results_and_can_drop_failed_ones(self, history: History) -> None:
        results = [make_result("a"), make_failure("b"), make_result("c", None), make_result("d", 0.0)]
        store_run(history, make_run("r"), results)
        everything = [(i, name, "default", 0) for i, name in enumerate("abcd")]
        assert list(history.finished_trials("r")) == everything
        for _ in range(2):
            history.delete_errors("r")
            assert list(history.finished_trials("r")) == [everything[0], everything[3]]
            assert list(history.results("r")) == [results[0], results[3]]

    def test_a_result_with_one_failed_evaluator_is_dropped_too(self, history: History) -> None:
        scores = {"exact": Score(0.0, False), "judge": Score.error("no answer")}
        run = make_run("r", evaluators=("exact", "judge"))
        store_run(history, run, [EvalResult(make_result("a").trial, scores), make_result("b", 0.0)])
        history.delete_errors("r")
        assert [result.sample_id for result in history.results("r")] == ["b"]

    def test_the_first_output_of_a_key_wins(self, history: History) -> None:
        history.begin(make_run("r"))
        with history.writer("r") as writer:
            writer.cache_output("key", "2026-01-01T00:00:00+00:00", b"\x00\xff{}")
            writer.cache_output("key", "2026-01-02T00:00:00+00:00", b"another")
        assert history.get_cached_output("key") == b"\x00\xff{}"
        assert history.get_cached_output("other") is None

    def test_an_empty_output_deletes_the_stored_one(self, history: History) -> None:
        history.begin(make_run("r"))
        for outputs, expected in (
            ((b"old",), b"old"),
            ((b"",), None),
            ((b"one", b"", b"two"), b"two"),
            ((b"", b"three", b"four"), b"three"),
            ((b"five", b""), None),
        ):
            with history.writer("r") as writer:
                for output in outputs:
                    writer.cache_output("key", NOON.isoformat(), output)
                assert history.get_cached_output("key") == expected
            assert history.get_cached_output("key") == expected

    def test_an_output_is_visible_before_it_is_stored(self, history: History) -> None:
        history.begin(make_run("r"))
        with history.writer("r") as writer:
            for number in range(200):
                writer.cache_output(f"{number}", NOON.isoformat(), b"{}")
                assert history.get_cached_output(f"{number}") == b"{}"
        assert all(history.get_cached_output(f"{number}") == b"{}" for number in range(200))

    def test_deleting_a_run_deletes_only_its_own_data(self, history: History) -> None:
        for run_id in ("r1", "r2"):
            store_run(history, make_run(run_id, tags={"t": "1"}), [make_result("a")])
        old_results = history.results("r1")
        history.delete("r1")
        assert run_ids(history.runs(tags={"t": "1"})) == ["r2"]
        assert len(history.results("r2")) == 1
        lookups: list[Callable[[str], Any]] = [history.delete, history.report, history.results]
        for lookup in lookups:
            assert_raises(RunNotFound, lookup, "r1")
        store_run(history, make_run("r1"), [make_result("b"), make_result("c")])
        assert len(old_results) == 0
        assert len(history.results("r1")) == 2

    def test_results_of_a_deleted_run_reach_no_other_run(self, history: History) -> None:
        history.begin(make_run("r"))
        with pytest.raises(ProctorError), history.writer("r") as writer:  # noqa: PT012
            history.delete("r")
            history.begin(make_run("next"))
            writer.add(0, make_result("stray"))
        assert len(history.results("next")) == 0

    def test_only_one_process_can_lock_a_run(self, history: History) -> None:
        with closing(self.reopen(history)) as second:
            for _ in range(2):
                with pytest.raises(KeyError), history.claim("r"):  # noqa: PT012
                    assert history.is_claimed("r")
                    assert second.is_claimed("r")
                    assert not second.is_claimed("another")
                    assert_raises(ResumeRefused, second.claim("r").__enter__)
                    with second.claim("another"):
                        assert history.is_claimed("another")
                    raise KeyError("the lock must be released")
                assert not history.is_claimed("r")
                assert not second.is_claimed("r")
                with second.claim("r"):
                    assert history.is_claimed("r")

    def test_threads_can_share_a_history(self, history: History) -> None:
        def store_and_read(run_id: str) -> list[str]:
            store_run(history, make_run(run_id), [make_result(f"{run_id}-{i}") for i in range(50)])
            return [result.sample_id for result in history.results(run_id)]

        names = [f"r{number}" for number in range(4)]
        with ThreadPoolExecutor(len(names)) as pool:
            stored = list(pool.map(store_and_read, names))
        assert stored == [[f"{name}-{i}" for i in range(50)] for name in names]

    def test_a_closed_history_opens_again(self, history: History) -> None:
        history.close()
        history.begin(make_run("r"))
        history.close()
        history.close()
        assert run_ids(history.runs()) == ["r"]
