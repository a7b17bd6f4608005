"""The gate's decisions: hand-worked counts, its margins, and how rarely equal systems are red."""

from __future__ import annotations

from datetime import UTC, datetime
from math import comb

import msgspec
import pytest
from benchmarks.simulations.claim import Claim, simulate
from benchmarks.simulations.gated import gated
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.comparison.describe import describe_early
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.gates.margins import require_known_metrics, resolve_margins
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import Side, ValuesBySample
from proctor.core.stats.differences import paired_t
from proctor.errors import ConfigError
from proctor.records.gate import Check, Early, GateResult
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata

STRICT = "strict_pass_rate"


def verdicts(n: int, up: int, down: int) -> tuple[Side, Side]:
    """A run and a baseline of n samples: `up` pass only in the run, `down` only in the baseline."""
    old = {f"s{i}": float(i % 2) for i in range(n)}
    failing = [name for name, value in old.items() if not value]
    passing = [name for name, value in old.items() if value]
    turned = dict.fromkeys(failing[:up], 1.0) | dict.fromkeys(passing[:down], 0.0)
    return rates("new", old | turned), rates("main", old)


def rates(name: str, numbers: ValuesBySample) -> Side:
    metrics = {"pass_rate": numbers, STRICT: numbers, "mean_score": numbers}
    return Side(name, metrics, samples=tuple(numbers))


def scored(name: str, values: list[float], metric: str = "exact", clusters: list[str] | None = None) -> Side:
    ids = [f"s{i}" for i in range(len(values))]
    named = None if clusters is None else dict(zip(ids, clusters, strict=True))
    scores = {metric: dict(zip(ids, values, strict=True))}
    return Side(name, scores=scores, clusters=named, samples=tuple(ids))


def timed(name: str, values: list[float], metric: str = "latency_ms.mean") -> Side:
    ids = [f"s{i}" for i in range(len(values))]
    numbers = {metric: dict(zip(ids, values, strict=True))}
    if metric.startswith("latency"):
        return Side(name, numbers, samples=tuple(ids))
    return Side(name, fields=numbers, samples=tuple(ids))


def gate(pair: tuple[Side, Side], metric: str = STRICT, margin: float = 0.02) -> Check:
    [check] = decide([pair], GateConfig({metric: margin})).checks
    return check


@pytest.mark.parametrize(("margin", "verdict"), [(0.035, "pass"), (0.02, "inconclusive"), (0.005, "fail")])
def test_ten_won_and_thirty_lost_of_a_thousand(margin: float, verdict: str) -> None:
    """Bonett and Price by hand: -20/1002 ± 1.96 · sqrt((42/1002 - (20/1002)²) / 1002)."""
    check = gate(verdicts(1000, 10, 30), margin=margin)
    assert check.interval == pytest.approx((-0.032576, -0.007344), abs=5e-7)
    assert (check.verdict, check.n, check.margin) == (verdict, 1000, margin)
    assert check.difference == pytest.approx(-0.02)


def test_the_sentences_say_how_bad_it_is_at_worst_and_what_is_allowed() -> None:
    """Passed, failed, and inconclusive with how many more samples it takes."""
    pair = verdicts(1000, 10, 30)
    figures = "strict_pass_rate 48.0% vs. 50.0%"
    assert gate(pair, margin=0.035).sentence == (
        f"{figures}, at most 3.3 points worse (margin 3.5 points, 1,000 samples)"
    )
    assert gate(pair, margin=0.005).sentence == (
        f"{figures}, at least 0.7 points worse (margin 0.5 points, 1,000 samples)"
    )
    unclear = gate(pair, margin=0.03)
    # With 5,480 in all the mean lies 0.01 ± 0.0057 from the margin, and 0.0053 is far enough: 80%.
    assert unclear.more_samples == 4480
    assert unclear.sentence == (
        f"{figures}, from 3.3 points worse to 0.7 points worse (margin 3.0 points, 1,000 samples); "
        "if the difference stays near -2.0 points, about 4,500 more samples would decide it"
    )
    assert gate(verdicts(1000, 30, 10), margin=0.0).sentence == (
        "strict_pass_rate 52.0% vs. 50.0%, at least 0.7 points better (margin 0.0 points, 1,000 samples)"
    )


def test_an_end_that_is_not_the_margin_does_not_look_like_it() -> None:
    """40/1002 - 1.96 · sqrt((52/1002 - (40/1002)²) / 1002) is 2.603 points, and not 2.6."""
    check = gate(verdicts(1000, 5, 45), margin=0.026)
    assert check.verdict == "fail"
    assert "at least 2.603 points worse (margin 2.6 points" in check.sentence


def test_equal_runs_pass_once_they_are_long_enough() -> None:
    """With no sample that differs, 2.77 / (n + 2) must be within the margin: n of 137."""
    short = gate(verdicts(136, 0, 0))
    assert (short.verdict, short.more_samples) == ("inconclusive", 1)
    assert gate(verdicts(137, 0, 0)).verdict == "pass"
    assert gate(verdicts(30, 0, 0)).more_samples == 107


def test_without_a_margin_equal_runs_are_inconclusive_and_it_says_why() -> None:
    """No number of samples shows that two systems do not differ at all."""
    check = gate(verdicts(1000, 0, 0), margin=0.0)
    assert (check.verdict, check.more_samples) == ("inconclusive", None)
    assert check.sentence.endswith(
        "; with a margin of 0 only a clearly better run can pass: set --margin to the largest loss that you accept"
    )


def test_a_difference_that_is_the_margin_is_not_settled_by_more_samples() -> None:
    """Half a lifetime of samples is not offered."""
    check = gate(verdicts(1000, 10, 30), margin=0.02)
    assert "so close to the margin that more samples are unlikely to decide it" in check.sentence


def test_scores_are_compared_in_points() -> None:
    """Student's t: differences of -0.1 and 0 by turns, mean -0.05, error 0.05 / sqrt(99).

    Downwards it reaches further: 3.8416 / 103.8416 of all samples may have fallen from 0.4995 to 0,
    though none of these did.
    """
    old = [0.5 + 0.001 * i for i in range(100)]
    new = [item - 0.1 * (i % 2) for i, item in enumerate(old)]
    pair = scored("new", new), scored("main", old)
    # 1.9842 is the t quantile with 99 degrees of freedom.
    half = 1.984217 * 0.05 / 99**0.5
    check = gate(pair, "exact.mean", 0.04)
    below = 3.841459 / 103.841459 * 0.4995
    assert check.interval == pytest.approx((-0.05 - below, -0.05 + half), abs=1e-6)
    assert (check.verdict, check.name) == ("fail", "exact.mean")
    assert gate(pair, "exact", 0.06).verdict == "inconclusive"
    assert gate(pair, "exact", 0.07).verdict == "pass"


def test_other_numbers_have_a_margin_in_percent_of_the_baseline_and_may_be_better_lower() -> None:
    """400 ms may become 440 with 10%; 420 ± 4 passes, and fails with 2%."""
    old = [400.0] * 100
    new = [420.0 + 20 * (-1) ** i for i in range(100)]
    pair = timed("new", new), timed("main", old)
    check = gate(pair, "latency_ms.mean", 0.1)
    assert (check.verdict, check.margin) == ("pass", 40.0)
    assert check.sentence == ("latency_ms.mean 420 vs. 400, at most 23.99 worse (margin 40, 10%, 100 samples)")
    assert gate(pair, "latency_ms.mean", 0.02).verdict == "fail"
    assert gate((pair[1], pair[0]), "latency_ms.mean", 0.0).verdict == "pass"


def test_a_margin_in_percent_is_known_no_better_than_the_baseline() -> None:
    """Seen from the margin it is a - 1.5 b of each sample, by Student's t, moved back by 0.5 b."""
    old = [100.0 + 10 * (at % 7) for at in range(40)]
    new = [120.0 + 10 * (at % 11) for at in range(40)]
    check = gate((timed("new", new), timed("main", old)), "latency_ms.mean", 0.5)
    expected = paired_t(new, [1.5 * item for item in old])
    assert expected is not None
    half = 0.5 * sum(old) / 40
    assert check.margin == pytest.approx(half)
    assert check.interval == pytest.approx([end + half for end in expected.interval()])
    higher = GateConfig({"words": 0.5}, better={"words": True})
    pair = timed("new", new, "words"), timed("main", old, "words")
    [check] = decide([pair], higher).checks
    expected = paired_t(new, [0.5 * item for item in old])
    assert expected is not None
    assert check.interval == pytest.approx([end - half for end in expected.interval()])


def test_scores_that_rarely_collapse_do_not_pass_unseen() -> None:
    """Forty scores a hair apart: nothing is wrong with them, and 5% may still fall to 0."""
    old = [0.8 + 0.001 * (at % 9) for at in range(40)]
    new = [item + 0.001 * (at % 2) for at, item in enumerate(old)]
    check = gate((scored("new", new), scored("main", old)), "exact", 0.02)
    assert check.verdict == "inconclusive"
    assert check.more_samples == pytest.approx(110, abs=10)
    wide = scored("new", new * 5), scored("main", old * 5)
    assert gate(wide, "exact", 0.02).verdict == "pass"


def test_one_cluster_with_most_samples_is_mentioned() -> None:
    """Ten documents, one of which has a hundred of 145 samples, decide nothing."""
    names = ["big"] * 100 + [str(at // 5) for at in range(45)]
    new, old = ([float(at % step == 0) for at in range(145)] for step in (2, 3))
    check = gate((scored("new", new, clusters=names), scored("main", old, clusters=names)), "exact")
    assert (check.verdict, check.interval) == ("inconclusive", None)
    assert "one cluster has most of the samples, so the difference cannot be estimated" in (check.sentence)


def test_a_gate_on_times_says_that_a_run_is_one_moment() -> None:
    """It stays possible; a gate on something else is not bothered with it."""
    sides = [
        Side(
            name,
            {"latency_ms.mean": numbers, "pass_rate": dict.fromkeys(numbers, 1.0)},
            samples=tuple(numbers),
            run=RunMetadata(f"run-{name}", "exam", datetime(2026, 1, 1, tzinfo=UTC)),
        )
        for name, start in (("new", 100.0), ("main", 101.0))
        for numbers in [{f"s{at}": start + at % 5 for at in range(200)}]
    ]
    for metric, answer in (("latency_ms.mean", 1), ("pass_rate", 0)):
        result = decide([(sides[0], sides[1])], GateConfig({metric: 0.1}))
        assert result.verdict == "pass"
        assert sum("the time of day" in note for note in result.notes) == answer


def test_numbers_that_all_differ_by_the_same_are_plain() -> None:
    """Ten tokens more on each of 30 samples are ten tokens more; on 29 it is not known."""
    for n, verdict, more in ((30, "fail", None), (29, "inconclusive", 1)):
        old = [100.0 + i for i in range(n)]
        pair = timed("new", [item + 10 for item in old]), timed("main", old)
        check = gate(pair, "latency_ms.mean", 0.05)
        assert (check.verdict, check.more_samples) == (verdict, more)
    assert "the difference cannot be estimated from 29 samples" in check.sentence


def test_equal_scores_pass_once_they_are_many() -> None:
    """None of n differs: at most z² / (n + z²) do, which is within 2% from n = 189 on."""
    for n, verdict in ((188, "inconclusive"), (189, "pass")):
        pair = scored("new", [0.7] * n), scored("main", [0.7] * n)
        check = gate(pair, "exact", 0.02)
        assert check.verdict == verdict
    short = gate((scored("new", [0.7] * 100), scored("main", [0.7] * 100)), "exact", 0.02)
    assert short.more_samples == 89


def test_clusters_make_it_less_sure_and_too_few_of_them_say_nothing() -> None:
    """Ten times the same ten samples are ten samples."""
    old, new = [0.5] * 200, [0.5 - 0.02 * (i % 3) for i in range(10) for _ in range(20)]
    single = gate((scored("new", new), scored("main", old)), "exact", 0.05)
    names = [f"c{i}" for i in range(10) for _ in range(20)]
    together = gate((scored("new", new, clusters=names), scored("main", old)), "exact", 0.05)
    assert single.interval is not None
    assert together.interval is not None
    assert together.interval[0] < single.interval[0]
    few = [f"c{i % 4}" for i in range(200)]
    check = gate((scored("new", new, clusters=few), scored("main", old)), "exact", 0.05)
    assert check.verdict == "inconclusive"
    assert "the difference cannot be estimated from 4 clusters of samples" in check.sentence


def test_one_of_five_metrics_must_be_worse_more_surely_to_fail() -> None:
    """12 lost and 2 won of 500 are worse with 95%, and not with 99%."""
    new, old = verdicts(500, 2, 12)
    single = decide([(new, old)], GateConfig({"pass_rate": 0.0}))
    assert single.verdict == "fail"
    same = {f"m{i}": old.metrics["pass_rate"] for i in range(4)}
    many = tuple(Side(side.name, side.metrics, scores=same, samples=side.samples) for side in (new, old))
    result = decide([(many[0], many[1])], GateConfig({"pass_rate": 0.0} | dict.fromkeys(same, 0.02)))
    assert [check.verdict for check in result.checks] == ["inconclusive", *["pass"] * 4]
    assert "which is not certain enough for one of 5 metrics" in result.checks[0].sentence
    assert result.answer.startswith("The gate is inconclusive in 1 of 5 checks: pass_rate")


def test_the_worst_check_decides() -> None:
    """Fail goes before inconclusive, and that before pass."""
    pair = verdicts(1000, 10, 30)
    for most, verdict in ((30, "inconclusive"), (29, "fail")):
        result = decide([pair], GateConfig({STRICT: 0.03}, max_flips=most))
        assert result.verdict == verdict
    assert result.checks[1].sentence == "30 samples passed in the baseline and fail now; the limit is 29"
    assert result.answer == (
        "The gate fails in 1 of 2 checks: 30 samples passed in the baseline and fail now; the limit is 29."
    )
    assert len(result.lost) == 30
    assert result.won == 10


def test_every_configuration_must_pass_and_is_named() -> None:
    """Two pairs make two checks, each with the name of its side."""
    good, bad = verdicts(1000, 10, 10), verdicts(1000, 0, 100)
    pairs = [(rates("short", good[0].metrics[STRICT]), good[1])]
    pairs.append((rates("long", bad[0].metrics[STRICT]), bad[1]))
    result = decide(pairs, GateConfig({STRICT: 0.02}, max_flips=50), notes=["a word"])
    assert [(c.configuration, c.verdict) for c in result.checks] == [
        ("short", "pass"), ("long", "fail"), ("short", "pass"), ("long", "fail"),
    ]  # fmt: skip
    assert result.answer.startswith("The gate fails in 2 of 4 checks: long: strict_pass_rate")
    assert result.notes == ("a word",)


def test_thresholds_are_checked_against_the_run_alone() -> None:
    """A gate may have no baseline at all."""
    report = EvalReport([], None, {STRICT: MetricValue(0.75, 40, interval=(0.598, 0.858), kind="rate")})
    result = decide([], GateConfig(fail_under={STRICT: 0.7}), report=report)
    assert (result.verdict, result.checks[0].sentence) == (
        "pass", "strict_pass_rate is 0.75, at least 0.7 (n = 40, 95% interval 0.598 to 0.858)",
    )  # fmt: skip
    result = decide([], GateConfig(fail_under={STRICT: 0.8}), report=report)
    assert result.answer == "The gate fails: strict_pass_rate is 0.75, below 0.8 (n = 40, 95% interval 0.598 to 0.858)."


def test_samples_without_a_partner_or_a_number_are_mentioned() -> None:
    """They are left out, and it says so."""
    new, old = verdicts(200, 0, 0)
    fewer = {name: value for name, value in new.metrics[STRICT].items() if name != "s0"}
    result = decide([(rates("new", fewer | {"x": 1.0}), old)], GateConfig({STRICT: 0.05}))
    assert result.notes == (
        "1 sample of new is not in main and is left out: x",
        "1 sample of main is not in new and is left out: s0",
    )
    partly = Side("new", {"pass_rate": fewer, STRICT: new.metrics[STRICT]}, samples=new.samples)
    [check] = decide([(partly, old)], GateConfig({"pass_rate": 0.05})).checks
    assert check.sentence.endswith("; 1 sample without a value ignored")


def test_a_metric_that_no_sample_has_in_both_is_inconclusive() -> None:
    """All trials of the run failed to be scored: nothing can be said of the score."""
    old = scored("main", [0.5] * 10)
    new = Side("new", scores={"exact": {"s99": 0.5}}, samples=old.samples)
    check = gate((new, old), "exact")
    assert (check.verdict, check.n, check.interval) == ("inconclusive", 0, None)
    assert "no sample has this value in both runs" in check.sentence


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        (GateConfig({"strict_pas_rate": 0.02}), "did you mean 'strict_pass_rate'"),
        (GateConfig({STRICT: -0.1}), "must be 0 or more"),
        (GateConfig({STRICT: 1.0}), "its values are from 0 to 1: nothing would fail"),
        (GateConfig({STRICT: 0.02}, max_flips=-1), "must be 0 or more"),
        (GateConfig(fail_under={STRICT: 80.0}), "its values are from 0 to 1"),
        (GateConfig({}), "nothing to check"),
    ],
)
def test_invalid_settings_are_rejected(demand: GateConfig, message: str) -> None:
    """Before anything is decided, with what to write instead."""
    pairs = [verdicts(10, 0, 0)] if demand.metrics else []
    with pytest.raises(ConfigError) as caught:
        decide(pairs, demand)
    assert message in str(caught.value)


def test_a_field_whose_name_does_not_tell_needs_a_direction() -> None:
    """Once the caller says it, it counts."""
    pair = (timed("new", [1.0, 2.0, 3.0], "temperature"), timed("main", [1.5, 2.0, 2.5], "temperature"))
    with pytest.raises(ConfigError, match="whether higher or lower values of temperature"):
        require_known_metrics(GateConfig({"temperature": 0.02}), [pair[1]])
    demand = GateConfig({"temperature": 0.02}, better={"temperature": False})
    require_known_metrics(demand, [pair[1]])
    assert decide([pair], demand).verdict == "inconclusive"


def test_metrics_take_the_common_margin_unless_they_have_their_own() -> None:
    """The strict pass rate is asked for if nothing is."""
    assert resolve_margins({}) == {STRICT: 0.02}
    assert resolve_margins({"a": None, "b": 0.1}, 0.03) == {"a": 0.03, "b": 0.1}


def test_the_number_of_saved_samples_is_mentioned() -> None:
    """Decided or not, with or without a known number of samples."""
    assert describe_early(Early(310, 330, 1000), "pass") == "decided after 310 of 1,000 samples; 670 saved"
    assert describe_early(Early(310, 330), "fail") == "decided after 310 samples"
    assert describe_early(Early(9, 9, 9), "inconclusive").startswith("not decided after 9 of 9 samples")


def test_lost_samples_are_in_order_over_all_configurations() -> None:
    """The worst first; a result without comparisons has none."""
    assert GateResult("1", "", "pass", "").lost == ()


RANK = {"fail": 0, "inconclusive": 1, "pass": 2}


@given(st.integers(2, 300), st.integers(0, 60), st.integers(0, 60), st.floats(0, 0.5), st.floats(0, 0.4))
def test_a_wider_margin_never_turns_pass_into_fail(n: int, up: int, down: int, margin: float, more: float) -> None:
    """The verdict only gets better."""
    pair = verdicts(n, min(up, n // 2), min(down, n // 2))
    narrow, wide = (gate(pair, margin=item).verdict for item in (margin, margin + more))
    assert RANK[wide] >= RANK[narrow]


@settings(max_examples=20)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=40))
def test_a_gate_never_fails_what_is_better_on_average(pairs: list[tuple[float, float]]) -> None:
    """With or without a margin, on whatever scores."""
    new, old = ([item[side] for item in pairs] for side in (0, 1))
    check = gate((scored("new", new), scored("main", old)), "exact", 0.0)
    if check.verdict == "fail":
        assert sum(new) < sum(old)
    if check.verdict == "pass":
        assert sum(new) >= sum(old) - 1e-9


SHORT = [claim for claim in gated() if "n = 60" in claim.name]


@pytest.mark.parametrize("claim", SHORT, ids=lambda claim: claim.name)
def test_equal_systems_are_rarely_red(claim: Claim) -> None:
    """The simulation in short, with the room that so few replicates need."""
    short = claim._replace(asked=(0.0, claim.asked[1] + 0.1), cost=1)
    assert simulate(short, replicates=30).verdict == "holds"


def test_a_gate_does_not_fail_what_may_be_chance() -> None:
    """Five of five lost have p = 2 / 2^5 = .06, as in a comparison; six have .03, and fail."""
    few = decide([verdicts_all_lost(5)], GateConfig({STRICT: 0.02}))
    assert few.verdict == "inconclusive"
    assert few.checks[0].more_samples == 1
    assert (
        "which may be chance: exact McNemar test, p = 0.062, and a failure needs at most 0.05; "
        "if the difference stays near -100.0 points, about 1 more sample would decide it"
    ) in few.answer
    assert decide([verdicts_all_lost(6)], GateConfig({STRICT: 0.02})).verdict == "fail"


def verdicts_all_lost(n: int) -> tuple[Side, Side]:
    new, old = ({f"s{i}": value for i in range(n)} for value in (0.0, 1.0))
    return rates("new", new), rates("main", old)


def test_equal_systems_fail_in_at_most_one_of_forty_gates() -> None:
    """For every number of up to 12 samples and every rate of flips, summed over all outcomes with margin 0."""
    for n in range(2, 13):
        failing = [
            (up, down)
            for up in range(n + 1)
            for down in range(n + 1 - up)
            if gate(flipped(n, up, down), margin=0.0).verdict == "fail"
        ]
        for rate in (0.2, 0.5, 0.8, 1.0):
            chances = (
                comb(n, up) * comb(n - up, down) * (rate / 2) ** (up + down) * (1 - rate) ** (n - up - down)
                for up, down in failing
            )
            assert sum(chances) <= 0.025


def flipped(n: int, up: int, down: int) -> tuple[Side, Side]:
    old = {f"s{i}": float(i >= up) for i in range(n)}
    new = old | {f"s{i}": 1.0 for i in range(up)} | {f"s{i}": 0.0 for i in range(up, up + down)}
    return rates("new", new), rates("main", old)


def test_notes_say_which_rule_decides_where_gate_and_comparison_seem_to_differ() -> None:
    """A real but small difference passes; one beyond the margin fails although Holm's correction doubts it."""
    passing = decide([verdicts(2000, 10, 40)], GateConfig({STRICT: 0.05}))
    assert passing.verdict == "pass"
    start = (
        f'{STRICT} passes, although a comparison says "worse": the difference is statistically significant, but smaller'
    )
    assert any(note.startswith(start) for note in passing.notes)
    undecided = decide([verdicts(1000, 10, 30)], GateConfig({STRICT: 0.02}))
    assert undecided.verdict == "inconclusive"
    assert any("may be smaller or larger than the margin of 2.0 points" in note for note in undecided.notes)
    new, old = verdicts(100, 0, 7)
    scores = [
        {f"other{at}": {f"s{i}": float((7 * i + at * step) % 100 < 50) for i in range(100)} for at in range(8)}
        for step in (13, 29)
    ]
    pair = msgspec.structs.replace(new, scores=scores[0]), msgspec.structs.replace(old, scores=scores[1])
    failing = decide([pair], GateConfig({STRICT: 0.0}))
    assert failing.verdict == "fail"
    assert any(
        note.startswith(f'{STRICT} fails, although a comparison says "not enough evidence": the gate asks whether this')
        for note in failing.notes
    )
