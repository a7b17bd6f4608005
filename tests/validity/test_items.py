"""Item analysis finds samples with a wrong key, and claims nothing from few configurations."""

from __future__ import annotations

import json
import math
import random
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from benchmarks.simulations.items import simulate_verdicts
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core.stats.effects import benjamini_hochberg
from proctor.core.stats.items import (
    correlation,
    cross_validate_core,
    fit_2pl,
    item_rest_association,
    reliability,
    select_core,
)
from proctor.validity.items import Verdicts, analyze_items
from tests.support import LazyModule, run_command

stats: Any = LazyModule("scipy.stats")

# Section 6 of the Law School Admission Test: 1000 people, five items (Bock and Lieberman 1970). The counts of the 32
# response patterns, from all failed to all passed in binary order.
LSAT6 = [
    3,
    6,
    2,
    11,
    1,
    1,
    3,
    4,
    1,
    8,
    0,
    16,
    0,
    3,
    2,
    15,
    10,
    29,
    14,
    81,
    3,
    28,
    15,
    80,
    16,
    56,
    21,
    173,
    11,
    61,
    28,
    298,
]
PEOPLE = [[int(bit) for bit in f"{pattern:05b}"] for pattern, count in enumerate(LSAT6) for _ in range(count)]


def test_the_table_is_the_published_one() -> None:
    """1000 people, with the published shares of passed items."""
    assert len(PEOPLE) == 1000
    assert [sum(column) for column in zip(*PEOPLE, strict=True)] == [924, 709, 553, 763, 870]


def test_the_logistic_model_agrees_with_the_published_fit() -> None:
    """Discriminations, difficulties and likelihood of the LSAT data, as other programs report them."""
    model = fit_2pl(PEOPLE)
    assert model.discriminations == pytest.approx([0.8254, 0.7229, 0.8905, 0.6886, 0.6575], abs=1e-3)
    assert model.difficulties == pytest.approx([-3.3597, -1.3696, -0.2799, -1.8659, -3.1236], abs=3e-3)
    assert model.log_likelihood == pytest.approx(-2466.653, abs=1e-3)


def test_reliability_by_hand() -> None:
    """Four configurations on three items: variances 1/4, 1/3, 1/4 and of the totals 5/3, so alpha is 3/4."""
    matrix = [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]
    measured = reliability(matrix)
    assert measured is not None
    assert measured.alpha == pytest.approx(1.5 * (1 - (1 / 4 + 1 / 3 + 1 / 4) / (5 / 3)))
    assert measured.smallest_difference == pytest.approx(1.96 * math.sqrt(2) * math.sqrt(5 / 3 * 0.25) / 3)
    low = 1 - 0.25 * stats.f.ppf(0.975, 3, 6)
    assert measured.interval[0] == pytest.approx(low)
    assert reliability([[1, 0], [0, 1]]) is None
    assert reliability([[1], [0]]) is None


def test_the_p_value_counts_permutations() -> None:
    """The p-value is the share of the negative correlations that are as low, over all orders of the item."""
    item, rest = [1, 0, 1, 0, 0, 1], [0.1, 0.8, 0.3, 0.4, 0.9, 0.5]
    found = item_rest_association(item, rest)
    assert found is not None
    all_r = [correlation(order, rest) or 0.0 for order in permutations(item)]
    lower = sum(r <= found.correlation + 1e-9 for r in all_r)
    assert found.p == pytest.approx(lower / sum(r < -1e-9 for r in all_r))
    assert item_rest_association([1, 1, 1], [0.1, 0.2, 0.3]) is None
    positive = item_rest_association([0, 0, 1], [0.1, 0.2, 0.3])
    assert positive is not None
    assert positive.p is None


def test_shares_of_epochs_are_resampled() -> None:
    """Items with more than two levels use a seeded sample of permutations, close to the exact share."""
    item, rest = [0.0, 0.25, 0.5, 0.75, 1.0, 0.5], [0.8, 0.9, 0.5, 0.3, 0.2, 0.6]
    found = item_rest_association(item, rest)
    assert found is not None
    assert found == item_rest_association(item, rest)
    all_r = [correlation(order, rest) or 0.0 for order in permutations(item)]
    exact = sum(r <= found.correlation + 1e-9 for r in all_r) / sum(r < 0 for r in all_r)
    assert found.p == pytest.approx(exact, abs=0.01)


def test_discoveries_are_adjusted_as_published() -> None:
    """Benjamini and Hochberg's step-up: p · m / rank, made monotone from the largest."""
    adjusted = benjamini_hochberg([0.01, 0.04, 0.03, 0.5])
    assert [each.p for each in adjusted] == pytest.approx([0.04, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.5])
    assert [each.rejected for each in adjusted] == [True, False, False, False]


def test_a_core_set_has_easy_and_hard_items() -> None:
    """One item of each group of similar difficulty; its error is measured on configurations left out."""
    matrix = [[float(i < level) for i in range(12)] for level in range(13)]
    core = select_core(matrix, 4)
    assert [sum(i < high for i in core) for high in (3, 6, 9, 12)] == [1, 2, 3, 4]
    error = cross_validate_core(matrix, 4)
    assert 0 < error.rmse < error.random_rmse
    assert cross_validate_core(matrix, 12).largest == pytest.approx(0)
    # All pairs of (1, 0, 0, 1): one pair of six has the mean 1, one has 0, four have the right mean of 0.5.
    assert cross_validate_core([[1.0, 0.0, 0.0, 1.0]] * 3, 2).random_rmse == pytest.approx(math.sqrt(0.5 / 6))


def test_planted_wrong_keys_are_found() -> None:
    """With 40 configurations most of 12 wrong keys are found and nothing else; with 20 all of 3 are listed."""
    analyses = [analyze_items(simulate_verdicts(random.Random(seed), 40, 40, wrong=3)) for seed in range(1, 5)]
    broken = [item.sample_id for analysis in analyses for item in analysis.broken]
    assert len(broken) >= 10
    assert set(broken) <= {"s0", "s1", "s2"}
    fewer = analyze_items(simulate_verdicts(random.Random(4), 20, 40, wrong=3))
    listed = {item.sample_id for item in (*fewer.broken, *fewer.suspicious)}
    assert {"s0", "s1", "s2"} <= listed


@given(st.randoms(use_true_random=False), st.integers(0, 3))
@settings(max_examples=5)
def test_the_numbers_do_not_depend_on_the_order_of_arrival(order: random.Random, seed: int) -> None:
    """Verdicts in another order of samples and configurations give the same analysis, to the last digit."""
    verdicts = simulate_verdicts(random.Random(3), 12, 24, wrong=2)
    shuffled = [dict(order.sample(list(row.items()), len(row))) for row in verdicts.shares]
    order.shuffle(shuffled)
    expected = analyze_items(verdicts, seed=seed)
    assert expected.core is not None
    assert analyze_items(Verdicts(verdicts.configurations, shuffled, verdicts.trials), seed=seed) == expected


def test_samples_are_listed_by_id() -> None:
    """The samples are sorted by id, and q2 comes before q10."""
    shares = [{f"q{i}": float(i < c) for i in (10, 2, 11, 1)} for c in range(1, 10)]
    items = analyze_items(Verdicts([str(c) for c in range(9)], shares)).items
    assert [item.sample_id for item in items] == ["q1", "q2", "q10", "q11"]


def test_few_configurations_claim_nothing() -> None:
    """With five configurations the answer is "cannot tell", whatever the verdicts are."""
    for seed in range(20):
        analysis = analyze_items(simulate_verdicts(random.Random(seed), 5, 40, wrong=3))
        assert analysis.answer.startswith("Cannot tell: 5 configurations of 40 samples")
        lists = (analysis.broken, analysis.suspicious, analysis.redundant, analysis.always_passed, analysis.informative)
        assert not any(lists)
        assert analysis.core is None
        assert analysis.reliability is None


def test_dead_and_redundant_samples_are_listed() -> None:
    """Samples that all pass or all fail separate nothing; equal patterns are redundant if luck is unlikely."""
    verdicts = simulate_verdicts(random.Random(1), 20, 12)
    for row in verdicts.shares:
        row.update(easy=1.0, hard=0.0, copy=row["s5"])
    analysis = analyze_items(verdicts)
    assert "easy" in analysis.always_passed
    assert "hard" in analysis.never_passed
    assert ["s5", "copy"] in [group.sample_ids for group in analysis.redundant]
    assert "at most 14%" in analysis.answer


def test_missing_verdicts_are_left_out() -> None:
    """A sample without a verdict somewhere is correlated over the others, and left out of the reliability."""
    verdicts = simulate_verdicts(random.Random(1), 12, 15)
    del verdicts.shares[0]["s3"]
    analysis = analyze_items(verdicts)
    assert next(item for item in analysis.items if item.sample_id == "s3").n == 11
    assert "1 of 15 samples lack a verdict in some configuration" in analysis.notes
    assert analysis.core is not None
    assert "s3" not in analysis.core.sample_ids


def test_many_configurations_fit_the_model() -> None:
    """From 200 configurations on, samples have a discrimination and a difficulty."""
    rows = [dict(zip("abcde", map(float, person), strict=True)) for person in PEOPLE]
    analysis = analyze_items(Verdicts([str(i) for i in range(1000)], rows))
    assert [item.difficulty for item in analysis.items] == pytest.approx([-3.36, -1.37, -0.28, -1.87, -3.12], abs=0.01)


APP = """
def answer(question, *, skill=0):
    number = int(question)
    return "yes" if (number <= skill) != (number == 2) else "no"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine skills on twelve questions; question 2 has the wrong key, question 0 is always passed."""
    folder = tmp_path_factory.mktemp("items")
    (folder / "app.py").write_text(APP)
    rows = [{"id": f"q{i}", "input": str(i), "expected": "yes"} for i in range(12)]
    (folder / "qa.jsonl").write_text("\n".join(map(json.dumps, rows)))
    lines = "".join(f"  skill{skill}: {{skill: {skill}}}\n" for skill in range(1, 10))
    evaluation = (
        f"name: exam\ndataset: qa.jsonl\ntarget: app.py:answer\nevaluators: [exact_match]\nconfigurations:\n{lines}"
    )
    (folder / "eval.yaml").write_text(evaluation)
    ran = run_command("run", "eval.yaml", "-q", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return folder


def test_the_command_analyzes_all_runs_of_a_name(folder: Path) -> None:
    """A repeated run of the same target and options is no further configuration."""
    run_command("run", "eval.yaml", "-q", cwd=folder)
    found = json.loads(run_command("items", "exam", "--json", cwd=folder).stdout)
    assert (len(found["configurations"]), found["runs"], found["trials"]) == (9, 2, 216)
    assert sorted(found["always_passed"]) == ["q0", "q1"]
    assert sorted(found["never_passed"]) == ["q10", "q11"]
    assert [item["sample_id"] for item in (*found["broken"], *found["suspicious"])] == ["q2"]


def test_the_page_shows_the_numbers_behind_its_claims(folder: Path) -> None:
    """Counts, intervals and p-values are printed; runs with other evaluators are left out by name."""
    done = run_command("items", "exam", cwd=folder)
    assert done.returncode == 0
    assert "9 configurations, 12 samples" in done.stdout
    assert "95% interval" in done.stdout
    # Fisher's interval of a correlation of -0.45 with n = 9 is -0.86 to 0.31.
    assert re.search(r"q2 {23}passed  11% of 9, correlation -0\.45 \(-0\.8[56] to \+0\.3[012]\)", done.stdout)
    assert "Core set for quick runs (10 of 12 samples)" in done.stdout
    run_command("rescore", "latest", "-e", "contains", "-q", cwd=folder)
    mixed = run_command("items", "exam", "-e", "exact_match", cwd=folder).stdout
    assert "9 configurations, 12 samples" in mixed
    assert re.search(r"left out: run \S+ rescored from run \S+\s+which counts already", mixed)


def test_an_unknown_run_is_refused(folder: Path) -> None:
    """The error of the history names the run."""
    done = run_command("items", "nothing", cwd=folder)
    assert done.returncode != 0
    assert "nothing" in done.stderr


def test_a_sample_is_not_suspicious_without_evidence() -> None:
    """Nothing with a p of 1 is listed, and the claim about dead samples names its confidence."""
    for seed in range(6):
        analysis = analyze_items(simulate_verdicts(random.Random(seed), 10, 30, wrong=0))
        assert all(item.p is not None and item.p <= 0.5 for item in analysis.suspicious)
    shares = [{**{f"s{i}": float(i < c) for i in range(1, 12)}, "dead": 1.0} for c in range(1, 11)]
    answer = analyze_items(Verdicts([str(c) for c in range(10)], shares)).answer
    assert "at most 26%, with 95% confidence" in answer


def test_a_core_set_that_is_too_large_or_useless_is_named_as_such() -> None:
    """500 of 30 samples cannot be selected; verdicts by coin toss have no core set that beats random samples."""
    toss = random.Random(1)
    shares = [{f"s{i}": float(toss.random() < 0.5) for i in range(30)} for _ in range(10)]
    verdicts = Verdicts([str(c) for c in range(10)], shares)
    assert analyze_items(verdicts, core_size=500).core is None
    assert any(
        note == "no core set of 500 samples: only 30 samples have a verdict in every configuration. Fix: --core 15"
        for note in analyze_items(verdicts, core_size=500).notes
    )
    core = analyze_items(verdicts).core
    assert core is not None
    assert not core.is_better_than_random
