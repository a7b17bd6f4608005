"""Everything that is said of two sides: the sentence, the flips, who is not matched, and notes."""

from __future__ import annotations

import itertools
import json
import math
from datetime import UTC, datetime
from typing import Any

import msgspec

from proctor.comparison.compare import compare
from proctor.comparison.sides import Side, make_side
from proctor.comparison.verdicts import DIFFERENT_MOMENTS
from proctor.records.comparison import Comparison, Flip, MetricDelta
from proctor.records.results import ResultList
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata, RunOptions, StoppedEarly
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Failure, Trial
from proctor.wiring.evaluate import evaluate
from tests.comparison.made_up import numbers

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def passes(name: str, *shares: float, **more: Any) -> Side:
    values = numbers(*shares)
    metrics = {"pass_rate": values, "strict_pass_rate": dict(values)}
    return Side(name, metrics, samples=tuple(values), **more)


def run(run_id: str, **facts: Any) -> RunMetadata:
    return RunMetadata(run_id, "exam", NOW, **{"status": "completed", **facts})


def result(sample: str, *, value: float = 1.0, error: bool = False, **trial: Any) -> EvalResult:
    failed = Failure("ValueError", "no") if error else None
    created = Trial(Sample(sample, sample), output="x", error=failed, **trial)
    return EvalResult(created, {} if error else {"judge": Score(value, value >= 0.5)})


def test_the_answer_says_which_is_better_by_how_much_and_how_sure() -> None:
    """What passed comes first; what else moved follows by name."""
    a = passes("new", *[1] * 40, *[0] * 10)
    b = passes("main", *[0] * 20, *[1] * 20, *[0] * 10)
    slow = numbers(*(900.0 + 7 * (at % 11) for at in range(50)))
    quick = numbers(*(500.0 + 5 * (at % 13) for at in range(50)))
    a = msgspec.structs.replace(a, metrics={**a.metrics, "latency_ms.mean": slow})
    b = msgspec.structs.replace(b, metrics={**b.metrics, "latency_ms.mean": quick})
    actual = compare(a, b)
    assert actual.answer == (
        "new is better than main: pass_rate 80.0% vs. 40.0%, +40.0 points "
        "(n = 50, 95% interval +24.2 to +52.7, p < 0.0001 corrected for 2 tests). "
        "Worse: latency_ms.mean."
    )
    back = compare(b, a)
    assert back.answer.startswith("main is worse than new: pass_rate 40.0% vs. 80.0%, -40.0")
    assert back.answer.endswith("Better: latency_ms.mean.")


def test_times_of_two_runs_have_a_difference_and_no_verdict() -> None:
    """All calls of one run share its moment: a slower hour looks like a slower system.

    They are in no headline and no family of tests; within one run they are as any other number.
    """
    slow = numbers(*(900.0 + 7 * (at % 11) for at in range(50)))
    quick = numbers(*(500.0 + 5 * (at % 13) for at in range(50)))

    def sides(first: str, second: str) -> Comparison:
        values = {"latency_ms.mean": slow}, {"latency_ms.mean": quick}
        item, other = (passes(name, *[1, 0] * 25) for name in ("new", "main"))
        facts = {"fields": {"wait": "latency_ms", "words": "output.words"}}
        fields = {"wait": slow, "words": slow}, {"wait": quick, "words": quick}
        a, b = (
            msgspec.structs.replace(
                side, metrics={**side.metrics, **values[at]}, fields=fields[at], run=run(id_, **facts)
            )
            for at, (side, id_) in enumerate(((item, first), (other, second)))
        )
        return compare(a, b)

    apart, together = sides("r2", "r1"), sides("r1", "r1")
    for delta in (apart.metrics["latency_ms.mean"], apart.fields["wait"]):
        assert (delta.verdict, delta.p_adjusted) == ("not comparable", None)
        assert (delta.more_samples, delta.absolute is None) == (None, False)
        assert delta.interval is not None
    assert apart.fields["words"].decided
    assert "latency_ms" not in apart.answer
    alone = compare(*(Side(name, {"latency_ms.mean": values}, samples=tuple(values), run=run(id_))
                      for name, values, id_ in (("new", slow, "r2"), ("main", quick, "r1"))))  # fmt: skip
    assert alone.answer.startswith("new and main are not comparable: latency_ms.mean 932.9 vs. 528.9")
    assert alone.answer.endswith("the time of day.")
    [note] = apart.notes
    assert note == (
        "the latencies of two runs were measured at different times: the difference may come from the "
        "machine or the time of day"
    )
    assert together.metrics["latency_ms.mean"].verdict == "worse"
    assert together.fields["wait"].decided
    assert (apart.tests, together.tests, together.notes) == (1, 1, ())


def test_the_answer_where_there_is_nothing_to_tell() -> None:
    """Too few samples say how many more, unless four must foretell thousands; enough say that nothing differs."""
    few = compare(passes("new", 1, 1, 0, 1), passes("main", 1, 0, 1, 1))
    assert few.answer == (
        "Not enough evidence that new and main differ: pass_rate 75.0% vs. 75.0%, 0.0 points "
        "(n = 4, 95% interval -65.3 to +65.3, p = 1)."
    )
    more = compare(passes("new", *[1, 1, 0, 1] * 20), passes("main", *[1, 0, 1, 1] * 20))
    assert "p = 1); if the difference stays near 0.0 points, about " in more.answer
    assert more.answer.endswith(" more samples would rule out more than ±1.0 points.")
    same = compare(passes("new", *[1] * 300), passes("main", *[1] * 300))
    assert same.answer == (
        "new and main show no relevant difference: pass_rate 100.0% vs. 100.0%, "
        "0.0 points (n = 300, 95% interval -0.9 to +0.9, p = 1); "
        "more than ±1.0 points is unlikely."
    )


def test_many_names_are_cut_and_unknown_ways_are_only_different() -> None:
    """Four are named; a field that may go either way is different."""
    up, down = numbers(*[1.0, 2.0] * 20), numbers(*[5.0, 6.5] * 20)
    fields = [f"thing{at}" for at in range(7)]
    a = Side("a", fields=dict.fromkeys(fields, up))
    b = Side("b", fields=dict.fromkeys(fields, down))
    assert compare(a, b).answer.startswith("a is different from b: thing0 1.5 vs. 5.75, -4.25")
    apart = {name: {s: v + at for s, v in up.items()} for at, name in enumerate(fields)}
    answer = compare(Side("a", fields=apart), b).answer
    assert "Also different: thing1, thing2, " in answer


def test_errors_are_counted_in_the_headline() -> None:
    """Where trials failed, the answer is about the strict pass rate, and a note says how many."""
    a = make_side("new", ResultList([*(result(f"s{at}") for at in range(6)), result("s6", error=True)]))
    b = make_side("old", ResultList([result(f"s{at}") for at in range(7)]))
    actual = compare(a, b)
    assert "strict_pass_rate 85.7% vs. 100.0%, -14.3 points (n = 7" in actual.answer
    assert actual.metrics["pass_rate"].n == 6
    assert actual.notes == ("new has 1 trial without a verdict",)
    assert [(flip.sample_id, flip.lost, flip.a, flip.b) for flip in actual.flips] == [("s6", True, None, 1.0)]


def test_flips_are_the_lost_ones_first_worst_first() -> None:
    """By how far the score fell; then those that were won."""
    verdicts = {"a": (0, 1), "b": (1, 0), "c": (0, 1), "d": (1, 1), "e": (0, 0)}
    scores = {"a": (0.4, 0.6), "b": (0.9, 0.1), "c": (0.0, 0.9), "d": (1.0, 1.0), "e": (0.0, 0.1)}
    sides = [
        Side(
            name,
            {
                "pass_rate": {s: float(v[at]) for s, v in verdicts.items()},
                "mean_score": {s: v[at] for s, v in scores.items()},
            },
        )
        for at, name in enumerate(("new", "old"))
    ]
    actual = compare(*sides)
    assert [flip.sample_id for flip in actual.flips] == ["c", "a", "b"]
    assert [flip.sample_id for flip in actual.lost] == ["c", "a"]
    assert [flip.sample_id for flip in actual.won] == ["b"]
    assert actual.flips[0].change == -0.9
    assert compare(*sides, metrics=["mean_score"]).flips == actual.flips


def test_of_several_epochs_more_than_half_must_pass() -> None:
    """Two of three is a pass, one of two is none."""
    a = passes("new", 1 / 3, 0.5, 1.0)
    b = passes("old", 2 / 3, 1.0, 2 / 3)
    assert [flip.sample_id for flip in compare(a, b).flips] == ["s0", "s1"]


def test_unmatched_samples_are_named() -> None:
    """The ids that only one side has, and how many both have."""
    a = passes("new", 1, 1, 1)
    b = Side("old", {"pass_rate": {"s1": 1.0, "x": 0.0}}, samples=("s1", "x"))
    actual = compare(a, b)
    assert (actual.samples, actual.only_a, actual.only_b) == (1, ("s0", "s2"), ("x",))
    assert actual.missing_b == ("strict_pass_rate",)


def test_notes_tell_what_makes_two_runs_unlike() -> None:
    """Other data, another evaluator of the same name, other epochs, a run that was not finished."""
    judge = EvaluatorSpec("judge", "llm_judge", {"judge": "small"})
    item = run(
        "1",
        dataset=DatasetInfo("d", fingerprint="x"),
        evaluators=(judge, EvaluatorSpec("new", "new")),
        options=RunOptions(epochs=3),
        stopped_early=StoppedEarly("it is settled", 10),
    )
    other = run(
        "2",
        status="interrupted",
        dataset=DatasetInfo("d", fingerprint="y"),
        evaluators=(msgspec.structs.replace(judge, parameters={"judge": "large"}),),
    )
    actual = compare(passes("new", 1, run=item), passes("old", 1, run=other))
    assert [note.split(":")[0] for note in actual.notes] == [
        "new was stopped as soon as its gate was decided",
        "fewer than 5 clusters",
        "old is not complete (interrupted)",
        "the datasets are not the same",
        "new has 3 epochs and old has 1",
        "only new has the evaluator new",
        "the evaluator judge is not the same in both runs",
    ]
    assert (actual.a_run, actual.b_run) == ("1", "2")
    assert compare(passes("a", 1, run=item), passes("b", 1, run=item)).notes[0].startswith("a was")


def test_deltas_are_found_by_the_names_of_a_reports_metrics() -> None:
    """exact.mean is the score of exact, field.tokens the field; what is not there is None."""
    values = numbers(0.5, 0.25)
    actual = compare(*(Side(n, {"latency_ms.mean": values}, {"exact": values}, {"tokens": values}) for n in "ab"))
    assert actual.find("exact.mean") is actual.scores["exact"]
    assert actual.find("field.tokens") is actual.fields["tokens"]
    assert actual.find("latency_ms") is actual.metrics["latency_ms.mean"]
    assert actual.find("nothing") is None
    side = Side("a", {"latency_ms.mean": values}, {"exact": values})
    assert side.find("exact.mean") == values
    assert side.find("nothing") is None
    assert side.names == ["latency_ms.mean", "exact"]


def test_essential_shows_nothing_twice() -> None:
    """Twins by name and number are left out, what it cost comes last."""

    def delta(name: str, a: float, kind: Any = "score") -> MetricDelta:
        return MetricDelta(name, a, 0.5, kind=kind)

    actual = Comparison(
        "a",
        "b",
        metrics={
            "pass_rate": delta("pass_rate", 1),
            "strict_pass_rate": delta("strict_pass_rate", 1),
            "mean_score": delta("mean_score", 0.7),
            "latency_ms.mean": delta("latency_ms.mean", 9, "number"),
        },
        scores={
            "output.score": delta("output.score", 1),
            "output.judge": delta("output.judge", 1),
            "graded": delta("graded", 0.3),
            "graded.pass_rate": delta("graded.pass_rate", 0.2),
        },
        fields={"tokens": delta("tokens", 8, "number")},
    )
    assert [item.name for item in actual.essential()] == [
        "pass_rate", "mean_score", "output.score", "graded", "graded.pass_rate", "tokens",
        "latency_ms.mean",
    ]  # fmt: skip


def test_sides_of_results() -> None:
    """Means of epochs by sample, clusters that samples name, and scores with their pass rates."""
    results = [
        EvalResult(
            Trial(
                Sample(name, "x", metadata={"cluster": cluster} if cluster else {}),
                output="x",
                epoch=epoch,
                latency_ms=ms,
            ),
            {"judge": Score(value, value > 0.5)},
        )
        for name, cluster, epoch, ms, value in (
            ("a", "doc", 0, 10.0, 0.4),
            ("a", "doc", 1, 30.0, 0.8),
            ("b", None, 0, 5.0, 1.0),
            ("c", "doc", 0, None, 0.0),
        )
    ]
    side = make_side("new", ResultList(results))
    assert side.samples == ("a", "b", "c")
    assert side.clusters == {"a": "doc", "b": "b", "c": "doc"}
    assert side.metrics["latency_ms.mean"] == {"a": 20.0, "b": 5.0}
    assert side.metrics["pass_rate"] == {"a": 0.5, "b": 1.0, "c": 0.0}
    assert side.scores["judge"]["a"] == (0.4 + 0.8) / 2
    assert side.scores["judge.pass_rate"] == {"a": 0.5, "b": 1.0, "c": 0.0}
    assert "tokens.mean" not in side.metrics
    assert "cost.mean" not in side.metrics


def test_a_comparison_is_plain_data() -> None:
    """Flips and deltas survive JSON."""
    actual = compare(passes("new", 1, 0, 1), passes("old", 0, 1, 1))
    assert json.loads(msgspec.json.encode(actual))["flips"][0]["sample_id"] == "s1"
    assert Flip("x", lost=True, a=None, b=1.0).change == -1.0


def test_a_p_value_of_1_is_also_marked_as_corrected() -> None:
    """Uncorrected it may be far below 1."""
    values = numbers(*[1, 0] * 20)
    turned = numbers(*[1, 0] * 19, 0, 1)
    new, old = (
        Side(
            name,
            {"pass_rate": rate},
            {"judge": numbers(*(at % step / step for at in range(40)))},
            samples=tuple(values),
        )
        for name, rate, step in (("new", values, 7), ("old", turned, 5))
    )
    assert "p = 1 corrected for 2 tests" in compare(new, old).answer


def test_a_run_without_latencies_has_no_remark_about_their_moment() -> None:
    """With latencies on both sides the remark is there; without them on one side there is nothing to explain."""
    new, old = (evaluate(str.upper, [Sample(str(i), "a", "A") for i in range(3)], ["exact_match"]) for _ in range(2))
    untimed = old.side()
    metrics = {name: numbers for name, numbers in untimed.metrics.items() if not name.startswith("latency")}
    untimed = msgspec.structs.replace(untimed, metrics=metrics, statistics={})
    assert DIFFERENT_MOMENTS in compare(new.side(), old.side()).notes
    comparison = compare(new.side(), untimed)
    assert comparison.metrics["latency_ms.mean"].a is not None
    assert DIFFERENT_MOMENTS not in str(comparison)


def test_epochs_of_few_samples_have_no_interval_in_reports_and_comparisons() -> None:
    """Four samples are fewer than 5 clusters, whatever the number of epochs; five are enough."""
    for count, has_interval in ((4, False), (5, True)):
        samples = [Sample(str(i), "a", "A" if i % 2 else "B") for i in range(count)]
        new, old = (evaluate(str.upper, samples, ["exact_match"], epochs=3) for _ in range(2))
        comparison = compare(new.side(), old.side())
        delta = comparison.metrics["pass_rate"]
        intervals = (new.metrics["pass_rate"].interval, delta.a_interval, delta.b_interval)
        assert [interval is not None for interval in intervals] == [has_interval] * 3
        assert any("fewer than 5 clusters" in note for note in comparison.notes) is not has_interval


def test_a_rate_over_epochs_has_the_interval_of_its_report() -> None:
    """One number, one interval: in the report, in a comparison of all samples or a slice, in a ranking."""
    samples = [Sample(str(i), "a", "A", metadata={"kind": str(i % 2)}) for i in range(12)]
    outputs = itertools.cycle("AABABBAAAAB")
    options: dict[str, Any] = {"epochs": 3, "concurrency": 1, "history": False}
    new = evaluate(lambda _: next(outputs), samples, ["exact_match"], **options)
    slices = {part.label: part.metrics["default"]["pass_rate"] for part in new.by("kind")}
    assert new.rank_by("pass_rate").places[0].interval == new.metrics["pass_rate"].interval
    for reported, shared in ((new.metrics["pass_rate"], samples), (slices["0"], samples[::2])):
        old = evaluate(str.upper, shared, ["exact_match"], **options)
        comparison = compare(new.side(), old.side())
        assert reported.interval is not None
        for delta in (comparison.metrics["pass_rate"], comparison.scores["exact_match"]):
            assert delta.a_interval == reported.interval
            assert reported.value is not None
            assert math.isclose(delta.a or 0.0, reported.value)
