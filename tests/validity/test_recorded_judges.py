"""Cards of recorded judges on public data with human labels; skipped if the data is not there."""

from __future__ import annotations

import csv
import json
import math
import random
from pathlib import Path

import pytest
from benchmarks.simulations.claim import simulate
from benchmarks.simulations.judging import judged

from proctor.core.stats.judge_rates import corrected_rate, kappa_interval, tabulate
from proctor.validity.describe_card import describe_panel
from proctor.validity.panels import effective_judges, estimate_accuracies, measure_panel
from tests.statistics.published import DATA


def read_rows(*path: str, delimiter: str = ",") -> list[dict[str, str]]:
    """The rows of a table, or a skip."""
    file = DATA.joinpath(*path)
    if not file.exists():
        pytest.skip(f"there is no {file} (set PROCTOR_DATA)")
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def read_answers() -> list[tuple[bool, ...]]:
    """The verdicts of people, GPT-4 and BEM on the answers of NQ301."""
    verdicts = []
    for judge in ("human", "gpt-4", "BEM"):
        rows = read_rows("01_qa_reference", "openqa_nq301", f"NQ301_{judge}.tsv", delimiter="\t")
        verdicts.append({(row["Question"].strip(), row["Model answer"].strip()): row["Acceptable?"] for row in rows})
    shared = [answer for answer in verdicts[0] if all(answer in column for column in verdicts[1:])]
    return [tuple(column[answer].strip() == "Yes" for column in verdicts) for answer in shared]


def test_card_of_gpt4_on_open_questions() -> None:
    """On NQ301 GPT-4 agrees with people with kappa .70, and with BEM it is worth 1.31 judges, not 2."""
    rows = read_answers()
    table = tabulate((people, gpt4, 1.0) for people, gpt4, _ in rows)
    assert table.kappa == pytest.approx(0.696, abs=0.001)
    assert kappa_interval(table) == pytest.approx((0.659, 0.732), abs=0.001)
    panel = measure_panel([row[0] for row in rows], {"gpt-4": [r[1] for r in rows], "bem": [r[2] for r in rows]})
    assert panel.error_correlation is not None
    assert panel.error_correlation.value == pytest.approx(0.524, abs=0.001)
    assert panel.effective is not None
    assert panel.effective.value == pytest.approx(1.312, abs=0.001)
    # Fisher's interval of a correlation of .524 with n = 1,486 is about .48 to .56; errors of 0 and 1 vary more.
    low, high = panel.effective.interval or (0, 0)
    assert 1.25 < low < 1.312 < high < 1.38


def test_fifty_labels_correct_the_rate_of_gpt4() -> None:
    """Of 300 draws of 50 labels of NQ301, at least 92 in 100 intervals contain people's rate; PPI++ is narrower."""
    rows, rng = read_answers(), random.Random(1)
    rate = sum(row[0] for row in rows) / len(rows)
    covered, widths = 0, [0.0, 0.0]
    for _ in range(300):
        rng.shuffle(rows)
        table = tabulate((people, judge, 1.0) for people, judge, _ in rows[:50])
        found = corrected_rate(table, sum(row[1] for row in rows[50:]), len(rows) - 50)
        covered += found.interval[0] <= rate <= found.interval[1]
        for index, (low, high) in enumerate((found.interval, found.labels_interval)):
            widths[index] += high - low
    assert covered >= 0.92 * 300
    assert widths[0] < 0.85 * widths[1]


def test_card_of_gpt4_on_refusals() -> None:
    """On XSTest, people agree with each other (kappa .93) more than GPT-4 agrees with them on full compliance."""
    rows = read_rows("05_compliance_xstest", "xstest_v2_completions_gpt4_gpteval.csv")
    full = "1_full_compliance"
    people = tabulate((row["annotation_1"] == full, row["annotation_2"] == full, 1.0) for row in rows)
    judge = tabulate((row["final_label"] == full, row["gpt4_label"] == full, 1.0) for row in rows)
    # 230 complied by all; 2 outputs divide the annotators; GPT-4 takes 28 refusals for compliance.
    assert people.both_passed == 230
    assert people.only_people + people.only_judge == 2
    assert (judge.both_passed, judge.only_people, judge.only_judge) == (230, 0, 28)
    assert kappa_interval(judge) == pytest.approx((0.826, 0.913), abs=0.001)
    assert judge.kappa is not None
    assert people.kappa is not None
    assert judge.kappa < people.kappa


def test_position_bias_of_recorded_judges() -> None:
    """LLMBar records both orders: GPT-4 gives the same answer in 95 of 100 natural pairs, ChatGPT in fewer."""
    file = Path(DATA, "06_judge_llmbar", "Natural.recorded_judges.json")
    if not file.exists():
        pytest.skip(f"there is no {file} (set PROCTOR_DATA)")
    judges = json.loads(file.read_text(encoding="utf-8"))

    def count_stable(name: str) -> int:
        pairs = [[result["winner"] for result in pair.values()] for pair in judges[name]["results"]]
        return sum(first == second for first, second in pairs)

    assert count_stable("GPT-4|Vanilla") == 95
    assert count_stable("ChatGPT|Vanilla") < 95


def test_effective_number_of_judges() -> None:
    """Independent errors count in full, equal errors once, and .524 makes 1.31 of 2."""
    assert effective_judges(3, 0.0) == 3
    assert effective_judges(3, 1.0) == 1
    assert effective_judges(2, 0.524) == pytest.approx(1.312, abs=0.001)


def test_a_panel_weights_labels_as_they_were_drawn() -> None:
    """10 shared errors with weight 1 and 30 right outputs with weight 3: wrong on 10 of 100, worth 10,000 / 280."""
    people, wrong = [i % 2 == 0 for i in range(40)], [(i % 2 == 0) != (i < 10) for i in range(40)]
    panel = measure_panel(people, {"a": wrong, "b": wrong}, [1.0] * 10 + [3.0] * 30)
    assert panel.effective_n == pytest.approx(10_000 / 280)
    for judge in panel.judges:
        assert judge.errors == 10
        assert judge.error_rate is not None
        assert judge.error_rate.value == pytest.approx(0.1)
    assert panel.effective is not None
    assert panel.effective.value == pytest.approx(1)
    assert panel.effective.interval is not None
    assert panel.effective.interval[0] == pytest.approx(1)
    assert panel.effective.interval[1] > 1
    shown = "\n".join(describe_panel(panel))
    assert "a tie counts as fail" in shown


def test_two_judges_have_no_accuracies_without_labels() -> None:
    """Two judges do not determine Dawid and Skene's accuracies; those by the labels are 5 of 20 wrong, and all right.

    The errors never coincide; no resample would show that they may, so the interval comes from a posterior with half
    an output in each cell, and includes a positive correlation.
    """
    people = [i % 2 == 0 for i in range(40)]
    a = [truth != (truth and i < 10) for i, truth in enumerate(people)]
    b = [truth != (not truth and i > 20) for i, truth in enumerate(people)]
    panel = measure_panel(people, {"a": a, "b": b})
    first = panel.judges[0]
    assert first.sensitivity is not None
    assert first.specificity is not None
    assert (first.sensitivity.value, first.sensitivity.n, first.specificity.value) == (0.75, 20, 1.0)
    assert (first.dawid_skene_sensitivity, first.dawid_skene_specificity, panel.accuracy_gap) == (None, None, None)
    assert panel.error_correlation is not None
    assert panel.error_correlation.interval is not None
    assert panel.error_correlation.value == pytest.approx(
        -((5 / 40 * 10 / 40) / math.sqrt(5 / 40 * 35 / 40 * 10 / 40 * 30 / 40))
    )
    assert panel.error_correlation.interval[1] > 0
    assert panel.effective is not None
    assert panel.effective.value == 2.0
    assert panel.effective.interval is not None
    assert 1 < panel.effective.interval[0] < panel.effective.interval[1] == 2
    shown = "\n".join(describe_panel(panel))
    assert "that takes three judges" in shown
    assert "worth about 2.00 (95% interval" in shown


def test_a_panel_of_few_errors_drops_nobody() -> None:
    """One error that a third judge adds may be chance: no judge is named, and the interval says why."""
    people = [i % 2 == 0 for i in range(40)]
    a, b = ([value != (i == place) for i, value in enumerate(people)] for place in (1, 2))
    late = [value != (i in (1, 2, 3)) for i, value in enumerate(people)]
    panel = measure_panel(people, {"a": a, "b": b, "late": late})
    assert (panel.majority_errors, panel.drop, panel.drop_gain) == (2, None, None)


def test_a_panel_names_the_judge_to_drop() -> None:
    """Two coins outvote a good judge; without one of them, ties fail and the majority errs less."""
    people = [i % 2 == 0 for i in range(40)]
    always = [True] * 40
    panel = measure_panel(people, {"good": people, "yes": always, "also yes": always})
    assert panel.majority_errors == 20
    assert panel.drop in ("yes", "also yes")
    assert panel.drop_errors == 0


def test_dawid_and_skene_finds_planted_accuracies() -> None:
    """Five independent judges of accuracy .9, .8, .7, .8 and .9, counted exactly in a full table, are found."""
    accuracies = [0.9, 0.8, 0.7, 0.8, 0.9]
    verdicts: dict[str, list[bool]] = {f"j{i}": [] for i in range(5)}
    for truth in (True, False):
        for row in range(32):
            rights = [bool(row >> i & 1) for i in range(5)]
            weight = 1.0
            for right, accuracy in zip(rights, accuracies, strict=True):
                weight *= accuracy if right else 1 - accuracy
            for i, right in enumerate(rights):
                verdicts[f"j{i}"] += [right is truth] * round(weight * 5_000)
    for (sensitivity, specificity), accuracy in zip(estimate_accuracies(verdicts).values(), accuracies, strict=True):
        assert sensitivity == pytest.approx(accuracy, abs=0.01)
        assert specificity == pytest.approx(accuracy, abs=0.01)


def test_dawid_and_skene_agrees_with_crowd_kit() -> None:
    """Four judges on 200 outputs: the figures of crowd-kit 1.4.2 after 300 rounds."""
    counts = {
        "0000": 31, "0001": 19, "0010": 2, "0011": 4, "0100": 3, "0101": 12, "0110": 2, "0111": 6,
        "1000": 12, "1001": 14, "1010": 2, "1011": 12, "1100": 1, "1101": 21, "1110": 3, "1111": 56,
    }  # fmt: skip
    rows = [row for row, count in counts.items() for _ in range(count)]
    verdicts = {f"j{i}": [row[i] == "1" for row in rows] for i in range(4)}
    expected = [(0.8549548, 0.7186021), (0.8195333, 0.8677886), (0.7068466, 0.9169442), (0.9505572, 0.5784891)]
    for accuracies, published in zip(estimate_accuracies(verdicts).values(), expected, strict=True):
        assert accuracies == pytest.approx(published, abs=1e-6)


@pytest.mark.parametrize("words", ["corrected rate, 50 labels, kappa 0.4", "kappa interval, 50 labels, kappa 0.6"])
def test_quick_simulations(words: str) -> None:
    """One case of each claim of `make simulations`, with 300 replicates."""
    [claim] = [claim for claim in judged() if claim.name == words]
    assert simulate(claim, 300).share >= 0.92
