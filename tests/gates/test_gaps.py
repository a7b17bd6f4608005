"""What a verdict leaves out: new samples, missing numbers, and runs that are two groups."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from proctor import evaluate
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.gates.gaps import find_worst_gap
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import Side, make_side
from proctor.core.stats.differences import rate_difference_interval
from proctor.errors import ConfigError
from proctor.metrics.warnings import find_undecided
from proctor.records.gate import Check, GateResult
from proctor.records.metric import MetricValue
from proctor.records.results import ResultList, Results
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata, RunOptions, StoppedEarly
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial
from tests.tables import each_row

STRICT = "strict_pass_rate"


def side(name: str, values: list[float], prefix: str, metric: str = "exact", of: int = 0) -> Side:
    ids = [f"{prefix}{at}" for at in range(len(values))]
    clusters = {item: f"{prefix}{at // of}" for at, item in enumerate(ids)} if of else None
    scores = {metric: dict(zip(ids, values, strict=True))}
    return Side(name, scores=scores, clusters=clusters, samples=tuple(ids))


def groups(new: list[float], old: list[float], margin: float = 0.1, of: int = 0) -> Check:
    """A gate on two groups of samples."""
    pair = side("new", new, "n", of=of), side("main", old, "m", of=of)
    [check] = decide([pair], GateConfig({"exact": margin}, unpaired=True)).checks
    return check


def test_runs_without_a_common_sample_have_no_verdict_unless_two_groups_are_wanted() -> None:
    """The dataset may be the wrong one, so neither better nor worse numbers prove anything."""
    pair = side("new", [1.0] * 200, "n"), side("main", [0.0, 1.0] * 100, "m")
    for config in (GateConfig({"exact": 0.1}), GateConfig({"exact": 0.1}, accept_changes=True)):
        result = decide([pair], config)
        assert result.verdict == "inconclusive"
        assert result.answer == (
            "The gate is inconclusive: exact has no verdict, because new and main are not comparable: they have no "
            "sample in common: run the same dataset; to compare them as two independent groups, add --unpaired."
        )
        # The numbers of each run are shown, and no difference of two groups that nobody asked for.
        [check] = result.checks
        assert (check.value, check.baseline, check.difference, check.interval) == (1.0, 0.5, None, None)
        assert (check.n, check.baseline_n, result.comparisons) == (0, None, ())
        assert not any("two independent groups" in note for note in result.notes)
    assert decide([pair], GateConfig({"exact": 0.1}, unpaired=True)).verdict == "pass"
    assert decide([pair[::-1]], GateConfig({"exact": 0.1})).verdict == "inconclusive"
    assert decide([pair[::-1]], GateConfig({"exact": 0.1}, unpaired=True)).verdict == "fail"


def test_more_samples_of_another_dataset_are_not_promised_to_decide() -> None:
    """The first line says that no sample is shared."""
    pair = side("new", [1.0, 0.0] * 5, "n"), side("main", [1.0, 0.0] * 5, "m")
    result = decide([pair], GateConfig({"exact": 0.1}))
    assert "would decide it" not in result.answer
    assert "they have no sample in common" in result.answer
    assert "would decide it" in decide([pair], GateConfig({"exact": 0.1}, unpaired=True)).answer


def test_two_groups_of_binary_scores_are_compared_with_the_margin() -> None:
    """Newcombe's interval of 95 of 100 vs. 190 of 200, and no pair in sight."""
    check = groups([0.0] * 5 + [1.0] * 95, [0.0] * 10 + [1.0] * 190)
    assert check.verdict == "pass"
    assert check.interval == rate_difference_interval(95, 100, 190, 200)
    assert (check.n, check.baseline_n) == (100, 200)
    assert "two groups of 100 and 200 samples" in check.sentence
    assert groups([0.0] * 40 + [1.0] * 60, [1.0] * 100).verdict == "fail"
    few = groups([0.0] * 2 + [1.0] * 8, [1.0] * 10)
    assert few.verdict == "inconclusive"
    assert few.sentence.endswith("more samples on each side would decide it")


def test_two_groups_of_scores_allow_for_clusters() -> None:
    """Ten samples of a chat that say the same are one: ten chats do not settle what 100 would."""
    chats = [item for item in [0.6, 0.8] * 5 for _ in range(10)]
    assert groups(chats, chats, 0.06).verdict == "pass"
    clustered = groups(chats, chats, 0.06, of=10)
    assert (clustered.verdict, clustered.clusters) == ("inconclusive", 20)


@pytest.mark.parametrize(
    ("new", "old", "verdict"),
    [
        ([1.0] * 60, [0.5, 1.0] * 30, "pass"),
        ([0.5, 0.75] * 30, [1.0] * 60, "fail"),
        ([0.75] * 60, [0.75] * 60, "pass"),
        ([0.75] * 10, [0.75] * 10, "inconclusive"),
    ],
)
def test_groups_whose_scores_are_all_equal_are_decided_too(new: list[float], old: list[float], verdict: str) -> None:
    """That all are equal is no proof, and with enough of them it is evidence."""
    assert groups(new, old).verdict == verdict


def test_numbers_of_two_groups_have_their_margin_in_percent_of_the_baseline() -> None:
    """Tokens of about 100: a margin of 20% is 20."""
    chance = random.Random(3)
    new, old = ([chance.gauss(100, 5) for _ in range(60)] for _ in range(2))
    pair = [
        Side(name, {"tokens.mean": {f"{name}{at}": item for at, item in enumerate(values)}},
             samples=tuple(f"{name}{at}" for at in range(60)))
        for name, values in (("new", new), ("main", old))
    ]  # fmt: skip
    [check] = decide([(pair[0], pair[1])], GateConfig({"tokens.mean": 0.2}, unpaired=True)).checks
    assert check.verdict == "pass"
    assert check.margin == pytest.approx(0.2 * sum(old) / 60)


def grown(new_ones: int, demand: GateConfig) -> GateResult:
    """A hundred old samples that are all right, and new ones that are all wrong."""
    old = side("main", [1.0] * 100, "s", STRICT)
    both = dict.fromkeys(old.samples, 1.0) | {f"new{at}": 0.0 for at in range(new_ones)}
    new = Side("new", {STRICT: both}, samples=tuple(both))
    return decide([(new, Side("main", dict(old.scores), samples=old.samples))], demand)


def test_pairs_alone_are_not_green_where_much_is_new() -> None:
    """A tenth may be new; beyond that the gate says what to do."""
    demand = GateConfig({STRICT: 0.1}, max_flips=3)
    assert grown(11, demand).verdict == "pass"
    result = grown(12, demand)
    assert [check.verdict for check in result.checks] == ["inconclusive", "inconclusive"]
    assert "12 of 112 samples of new have no partner in main" in result.answer
    assert "--unpaired" in result.answer
    assert grown(12, GateConfig({STRICT: 0.1}, accept_changes=True)).verdict == "pass"


def test_unpaired_takes_all_samples_of_both() -> None:
    """The new ones count: 100 of 150 vs. 100 of 100."""
    result = grown(50, GateConfig({STRICT: 0.1}, unpaired=True))
    [check] = result.checks
    assert (result.verdict, check.n, check.baseline_n) == ("fail", 150, 100)
    assert check.value == pytest.approx(100 / 150)
    assert result.notes == ("new and main: all samples of both are compared, as two independent groups",)
    with pytest.raises(ConfigError, match="only if the samples are paired"):
        grown(50, GateConfig({STRICT: 0.1}, unpaired=True, max_flips=1))


def lacking(missing: int, most: float = 0.1) -> Check:
    """A hundred pairs, and so many of the run without a score."""
    old = side("main", [0.0, 1.0] * 50, "s")
    numbers = dict(list(old.scores["exact"].items())[missing:])
    new = Side("new", scores={"exact": numbers}, samples=old.samples)
    [check] = decide([(new, old)], GateConfig({"exact": 0.1}, max_missing=most)).checks
    return check


def test_pairs_without_a_score_in_the_run_are_missing() -> None:
    """What the judge failed on may be the worst of it."""
    assert (lacking(10).verdict, lacking(10).missing) == ("pass", 10)
    check = lacking(11)
    assert (check.verdict, check.missing) == ("inconclusive", 11)
    assert "11 of 100 samples have no value in this run" in check.sentence
    assert lacking(11, 11).verdict == "pass"
    assert lacking(11, 0.2).verdict == "pass"
    assert lacking(1, 0).verdict == "inconclusive"


def test_what_both_have_no_number_of_is_not_missing() -> None:
    """An evaluator that has nothing to say of half of the samples is not broken."""
    values = {f"s{at}": float(at % 4 == 0) for at in range(0, 200, 2)}
    ids = tuple(f"s{at}" for at in range(200))
    new, old = (Side(name, scores={"exact": values}, samples=ids) for name in ("new", "main"))
    for demand in (GateConfig({"exact": 0.1}), GateConfig({"exact": 0.2}, unpaired=True)):
        result = decide([(new, old)], demand)
        assert (result.verdict, result.checks[0].missing) == ("pass", 0)


def test_groups_that_lack_scores_are_not_green() -> None:
    """All of the baseline has a score, and of the run a third has none."""
    new, old = side("new", [0.0, 1.0] * 50, "n"), side("main", [0.0, 1.0] * 75, "m")
    new = Side("new", scores=new.scores, samples=(*new.samples, *(f"x{at}" for at in range(50))))
    [check] = decide([(new, old)], GateConfig({"exact": 0.2})).checks
    assert (check.verdict, check.missing) == ("inconclusive", 50)


def test_a_threshold_that_one_configuration_reaches_by_a_few_is_not_green() -> None:
    """Together a twentieth is missing; of one configuration it is a fifth."""
    known = {"whole": MetricValue(0.9, 300), "partly": MetricValue(0.95, 80, errors=20)}
    tables = {name: {"mean_score": value} for name, value in known.items()}
    both = {"mean_score": MetricValue(0.91, 380, errors=20)}
    report = EvalReport([], None, both, tables)
    result = decide([], GateConfig(fail_under={"mean_score": 0.8}), report=report)
    assert result.verdict == "inconclusive"
    assert "20 of 100 samples have no value" in result.answer
    red = decide([], GateConfig(fail_under={"mean_score": 0.93}), report=report)
    assert red.verdict == "fail"


@pytest.mark.parametrize("most", [-1, -0.1, 1.5, float("nan")])
def test_what_no_number_of_missing_samples_can_be_is_refused(most: float) -> None:
    """A share from 0 to 1, or a whole number."""
    with pytest.raises(ConfigError, match="missing"):
        GateConfig(fail_under={STRICT: 0.5}, max_missing=most).validate()


def shrunk(left: int, demand: GateConfig, run: RunMetadata | None = None) -> GateResult:
    """So many of a hundred samples are left in the run, all of them right."""
    ids = [f"s{at}" for at in range(100)]
    old = Side("main", {STRICT: dict.fromkeys(ids, 1.0)}, samples=tuple(ids))
    values = dict.fromkeys(ids[:left], 1.0)
    new = Side("new", {STRICT: values}, samples=tuple(values), run=run)
    return decide([(new, old)], demand)


def test_samples_that_vanished_may_be_the_hard_ones() -> None:
    """A tenth may be gone; beyond that the pairs alone are not green."""
    demand = GateConfig({STRICT: 0.2}, max_flips=0)
    assert shrunk(90, demand).verdict == "pass"
    result = shrunk(89, demand)
    assert [check.verdict for check in result.checks] == ["inconclusive", "inconclusive"]
    assert "11 of 100 samples of main are not in new" in result.answer
    assert shrunk(89, GateConfig({STRICT: 0.2}, accept_changes=True)).verdict == "pass"
    assert shrunk(89, GateConfig({STRICT: 0.2}, unpaired=True)).verdict == "pass"


def test_no_number_of_samples_is_promised_if_the_baseline_has_other_samples() -> None:
    """Twenty of a hundred samples are undecided, and more like them would not pass: the answer says why."""
    result = shrunk(20, GateConfig({STRICT: 0.05}))
    [check] = result.checks
    assert (result.verdict, check.more_samples) == ("inconclusive", None)
    assert "but it cannot pass, because 80 of 100 samples of main are not in new: add --unpaired" in result.answer
    assert "would decide it" not in result.answer
    pairs_decide = shrunk(20, GateConfig({STRICT: 0.05}, accept_changes=True))
    assert pairs_decide.answer.endswith("about 34 more samples would decide it.")


def test_no_number_of_samples_is_promised_if_too_many_have_no_value() -> None:
    """Six of twenty samples have no value in the run, and a tenth may be missing."""
    ids = [f"s{at}" for at in range(20)]
    old = Side("main", {STRICT: dict.fromkeys(ids, 1.0)}, samples=tuple(ids))
    new = Side("new", {STRICT: dict.fromkeys(ids[:14], 1.0)}, samples=tuple(ids))
    [check] = decide([(new, old)], GateConfig({STRICT: 0.05})).checks
    assert (check.verdict, check.more_samples) == ("inconclusive", None)
    assert "but it cannot pass, because 6 of 20 samples have no value in this run" in check.sentence
    allowed = decide([(new, old)], GateConfig({STRICT: 0.05}, max_missing=6)).checks[0]
    assert allowed.sentence.endswith("more samples would decide it")


@pytest.mark.parametrize(
    ("limit", "length", "early", "verdict"),
    [
        (40, 100, False, "pass"),
        (40, None, False, "pass"),
        (40, 40, False, "inconclusive"),
        (40, 60, False, "inconclusive"),
        (None, 100, True, "pass"),
        (None, 60, True, "inconclusive"),
        (None, 100, False, "inconclusive"),
    ],
)
def test_what_a_limit_or_an_early_end_leaves_out_is_not_gone(
    limit: int | None, length: int | None, early: bool, verdict: str
) -> None:
    """Unless the dataset itself is smaller than the baseline by more than a tenth."""
    run = RunMetadata(
        "r1",
        "exam",
        datetime(2026, 1, 1, tzinfo=UTC),
        dataset=DatasetInfo("data", length=length),
        options=RunOptions(limit=limit),
        stopped_early=StoppedEarly("settled", 40) if early else None,
    )
    assert shrunk(40, GateConfig({STRICT: 0.2}), run).verdict == verdict


def test_gaps_of_each_side_are_reported_separately() -> None:
    """Eleven pairs lack a score in the baseline, ten others in the run: each has its own limit."""
    ids = [f"s{at}" for at in range(100)]
    scores = {item: float(at % 2) for at, item in enumerate(ids)}
    new = Side("new", scores={"exact": {n: scores[n] for n in ids[:90]}}, samples=tuple(ids))
    old = Side("main", scores={"exact": {n: scores[n] for n in ids[11:]}}, samples=tuple(ids))
    [check] = decide([(new, old)], GateConfig({"exact": 0.2})).checks
    assert (check.verdict, check.missing, check.baseline_missing) == ("inconclusive", 10, 11)
    assert "but 11 of 100 samples have no value in main, but at most 10%" in check.sentence
    [check] = decide([(new, old)], GateConfig({"exact": 0.2}, max_missing=11)).checks
    assert check.verdict == "pass"


def test_groups_of_which_the_baseline_lacks_scores_are_not_green() -> None:
    """All of the run has a score, and of the baseline a third has none."""
    new, old = side("new", [0.0, 1.0] * 75, "n"), side("main", [0.0, 1.0] * 50, "m")
    old = Side("main", scores=old.scores, samples=(*old.samples, *(f"x{at}" for at in range(50))))
    [check] = decide([(new, old)], GateConfig({"exact": 0.2})).checks
    assert (check.verdict, check.missing, check.baseline_missing) == ("inconclusive", 0, 50)


def make_side_of(outcomes: list[Score], prefix: str = "s", epochs: int = 1, options: RunOptions | None = None) -> Side:
    """The side of a run whose judge said these, in turn."""
    results = [
        EvalResult(Trial(Sample(f"{prefix}{at // epochs}", "Q"), epoch=at % epochs), {"judge": item})
        for at, item in enumerate(outcomes)
    ]
    judge, began = (EvaluatorSpec("judge", "judge"),), datetime(2026, 1, 1, tzinfo=UTC)
    run = RunMetadata("r", "r", began, evaluators=judge, options=options) if options else None
    return make_side(prefix, ResultList(results), run)


GOOD, FAILED = Score(1.0, True), Score.error("the judge was away")
SKIPPED = Score.skipped("nothing was said")


def judged(new: Side, old: Side) -> Check:
    """A gate on pairs, or on two groups if no sample is in both."""
    is_grouped = not set(new.samples) & set(old.samples)
    [check] = decide([(new, old)], GateConfig({"judge": 0.1}, unpaired=is_grouped)).checks
    return check


def test_what_failed_in_both_runs_is_missing_in_both() -> None:
    """In pairs and in groups; so is what was skipped in both, unless the runs ignore skips."""
    ignoring = RunOptions(skipped="ignore")
    for prefix in ("s", "t"):
        failing, skipping = [GOOD] * 60 + [FAILED] * 40, [GOOD] * 60 + [SKIPPED] * 40
        check = judged(make_side_of(failing), make_side_of(failing, prefix))
        assert (check.verdict, check.missing, check.baseline_missing) == ("inconclusive", 40, 40)
        check = judged(make_side_of(skipping), make_side_of(skipping, prefix))
        assert (check.verdict, check.missing, check.baseline_missing) == ("inconclusive", 40, 40)
        sides = make_side_of(skipping, options=ignoring), make_side_of(skipping, prefix, options=ignoring)
        check = judged(*sides)
        assert (check.verdict, check.missing, check.baseline_missing) == ("pass", 0, 0)


def test_one_epoch_that_went_well_does_not_hide_those_that_failed() -> None:
    """Of each sample four of five trials have no number."""
    check = judged(make_side_of([GOOD, *[FAILED] * 4] * 60, epochs=5), make_side_of([GOOD] * 300, epochs=5))
    assert (check.verdict, check.missing) == ("inconclusive", 240)
    assert "240 of 300 trials have no value in this run" in check.sentence


def test_groups_may_concern_an_evaluator_more_or_less_often() -> None:
    """Tonight fewer chats are about refunds than last week: runs that ignore skips say so."""
    ignoring = RunOptions(skipped="ignore")
    tonight = make_side_of([GOOD] * 60 + [SKIPPED] * 60, "new", options=ignoring)
    before = make_side_of([GOOD] * 100 + [SKIPPED] * 20, "old", options=ignoring)
    assert judged(tonight, before).verdict == "pass"
    assert judged(make_side_of([GOOD] * 60 + [SKIPPED] * 60, "new"), before).verdict == "inconclusive"


def test_so_many_may_be_missing_in_every_configuration() -> None:
    """Three of five are a larger part than forty of a hundred, and yet fewer."""
    tables = {
        name: {"judge": MetricValue(0.9, n=n, errors=errors)}
        for name, n, errors in (("small", 2, 3), ("large", 60, 40))
    }
    report = EvalReport((), by_configuration=tables)
    assert find_worst_gap(report, "judge", 5)[:2] == (40, 100)
    assert find_worst_gap(report, "judge", 0.1)[:2] == (3, 5)


def run_checks(passes: int, failures: int, silent: int, other: str = "error") -> EvalReport:
    """Results of two evaluators; the second gives no verdict on the last `silent` of those that pass the first."""
    data = [{"id": str(at), "input": at} for at in range(passes + failures + silent)]
    without = Score.error("unreadable") if other == "error" else Score.skipped("cannot tell")

    def judge(output: int) -> Score:
        return without if output >= passes + failures else Score(1.0, True)

    checks = {"short": lambda output: not passes <= output < passes + failures, "judge": judge}
    return evaluate(lambda number: number, data, checks, history=False)


@pytest.mark.parametrize("other", ["error", "skipped"])
def test_a_pass_rate_without_the_verdicts_of_passes_is_biased_downwards(other: str) -> None:
    """10 of 30 results fail one check, 20 pass it and are not judged by the other: the rate is 0 to 2/3."""
    report = run_checks(0, 10, 20, other)
    assert report.pass_rate == 0.0
    assert report.metadata is not None
    [warning] = [text for text in report.metadata.warnings if text.startswith("pass_rate: ")]
    assert warning == (
        "pass_rate: 20 results have no verdict although the other evaluators passed (no verdict: judge on 20), while "
        "10 of the 10 others failed: the pass rate is biased downwards and lies between 0.0% and 66.7%, depending on "
        "whether they pass or fail"
    )
    for threshold, verdict in ((0.7, "fail"), (0.6, "inconclusive")):
        result = decide([], GateConfig({}, fail_under={"pass_rate": threshold}), report=report)
        assert result.verdict == verdict
    assert "lies between 0.0% and 66.7%" in result.answer


def test_a_few_missing_verdicts_or_whole_failures_cause_no_bias() -> None:
    """A tenth without a verdict is tolerated; an evaluator alone, errors of the target, or no failure cause no bias."""
    assert find_undecided(*read(run_checks(80, 10, 10))) is None
    assert find_undecided(*read(run_checks(80, 0, 20))) is None
    data = [{"id": str(at), "input": at} for at in range(10)]
    checks = {"whole": lambda output: output > 2, "half": lambda output: output > 2}
    alone = evaluate(lambda n: n, data, {"whole": lambda output: None if output > 2 else False}, history=False)
    failing = evaluate(lambda n: 1 // (n % 2) + n, data, checks, history=False)
    assert find_undecided(*read(alone)) is None
    assert find_undecided(*read(failing)) is None


@pytest.mark.parametrize(("margin", "verdict"), [(0.2, "fail"), (0.4, "inconclusive")])
def test_a_gate_with_a_baseline_is_undecided_if_its_pass_rate_is_biased(margin: float, verdict: str) -> None:
    """The run passes 0 to 2/3; the baseline passes all, so the run may be 1/3 worse, or 1."""
    new, old = (
        make_side(name, report.results, report.metadata)
        for name, report in (("new", run_checks(0, 10, 20)), ("old", run_checks(30, 0, 0)))
    )
    assert decide([(new, old)], GateConfig({"pass_rate": margin}, accept_changes=True)).verdict == verdict


def run_trivial(passes: int, failures: int, silent: int, empty: int = 0) -> EvalReport:
    """A check that almost always passes, and a judge that fails some results and gives no verdict on others."""
    data = [{"id": str(at), "input": at} for at in range(passes + failures + silent + empty)]
    judged = passes + failures

    def judge(output: int) -> Score:
        if judged <= output < judged + silent:
            return Score.error("unreadable")
        return Score(1.0, True) if output < passes else Score(0.0, False)

    checks = {"not_empty": lambda output: output < judged + silent, "judge": judge}
    return evaluate(lambda number: number, data, checks, history=False)


@each_row(
    "counts, limit, verdict",
    [
        # 50 of 85 are 58.8%; all 15 undecided would lift that to 65%, but a check that never fails causes no bias.
        ((50, 35, 15), 0.6, "fail"),
        # 50 of 87; without the bias (50 + 15 * 50 / 85) / 102 = 57.67%.
        ((50, 35, 15, 2), 0.6, "fail"),
        ((50, 35, 15, 2), 0.577, "fail"),
        ((50, 35, 15, 2), 0.576, "inconclusive"),
        # 20 of 42; without the bias (20 + 38 * 20 / 22) / 80 = 68.2%; at most 58 of 80 = 72.5%.
        ((20, 2, 38, 20), 0.68, "inconclusive"),
        ((20, 2, 38, 20), 0.69, "fail"),
        ((20, 2, 38, 20), 0.73, "fail"),
        # 30 of 30 judged passed, 20 failed the other check, 30 are undecided: 60 of 80 = 75%.
        ((30, 0, 30, 20), 0.75, "inconclusive"),
        ((30, 0, 30, 20), 0.76, "fail"),
    ],
)
def test_a_failed_check_stays_failed_unless_only_the_bias_fails_it(
    counts: tuple[int, ...], limit: float, verdict: str
) -> None:
    """Undecided results are assumed to pass as often as those that the judge could read."""
    report = run_trivial(*counts)
    assert decide([], GateConfig({}, fail_under={"pass_rate": limit}), report=report).verdict == verdict


def test_a_trivial_check_does_not_repair_a_regression() -> None:
    """55 of 85 judged pass instead of 95 of 100: 15 errors of the judge do not make the failure inconclusive."""
    new, old = (
        make_side(name, report.results, report.metadata)
        for name, report in (("new", run_trivial(55, 30, 15)), ("old", run_trivial(95, 5, 0)))
    )
    for margin in (0.02, 0.2):
        assert decide([(new, old)], GateConfig({"pass_rate": margin}, accept_changes=True)).verdict == "fail"


def read(report: EvalReport) -> tuple[Results, RunMetadata | None]:
    return report.results, report.metadata
