"""Agreement coefficients: published results, calculations by hand, and undefined cases."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.quality.intervals import cohen_kappa
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.agreement import fleiss_kappa, krippendorff_alpha, percent_agreement
from tests.support import ROOT

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))
TABLES = DATA / "10_stats" / "statsmodels_refs" / "inter_rater_refs.json"

LABELS = st.sampled_from(["a", "b", "c"])
PAIRS = st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=30)

# Krippendorff's own example: four observers, twelve units, some of them missing.
OBSERVERS: tuple[list[int | None], ...] = (
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
)


def repeat_labels(counts: Sequence[float]) -> list[int]:
    """Return the labels of one item, given the number of each."""
    return [label for label, count in enumerate(counts) for _ in range(int(count))]


def labels_of_table(table: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the labels of two raters, given their contingency table."""
    return [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    """Inter-rater tables with results of other programs."""
    if not TABLES.exists():
        pytest.skip(f"the inter-rater tables are not at {TABLES} (set PROCTOR_DATA)")
    result: dict[str, Any] = json.loads(TABLES.read_text(encoding="utf-8"))
    return result


def test_fleiss_agrees_with_published_tables(tables: dict[str, Any]) -> None:
    """14 raters on 10 items, and 6 psychiatrists on 30 patients (Fleiss 1971: .430)."""
    rows = [repeat_labels(row) for row in tables["fleiss_wikipedia_table"]]
    assert fleiss_kappa(rows) == pytest.approx(tables["fleiss_wikipedia_kappa"], abs=1e-12)
    diagnoses = tables["diagnoses_30x6"]
    assert fleiss_kappa(diagnoses) == pytest.approx(tables["diagnoses_fleiss_kappa"], abs=1e-12)


def test_cohen_agrees_with_a_published_table(tables: dict[str, Any]) -> None:
    """19 items in 3 categories, one of which only the first rater uses."""
    first, second = zip(*labels_of_table(tables["cohen_table"]), strict=True)
    assert cohen_kappa(first, second) == pytest.approx(tables["cohen_kappa"], abs=1e-12)


def test_cohen_by_hand() -> None:
    """20 + 15 of 50 agree: po .7; the margins 25/25 and 30/20 give pe .5; kappa .2 / .5 = .4."""
    first, second = zip(*labels_of_table([[20, 5], [10, 15]]), strict=True)
    assert cohen_kappa(first, second) == pytest.approx(0.4, abs=1e-15)
    assert percent_agreement(zip(first, second, strict=True)) == 0.7


def test_krippendorffs_own_example() -> None:
    """Alpha is 0.743 for nominal labels."""
    assert krippendorff_alpha(zip(*OBSERVERS, strict=True)) == pytest.approx(0.743, abs=5e-4)


def test_krippendorff_by_hand() -> None:
    """Two raters, aa ab bb: Do = 2 (one pair, both ways), n = 6, De = 36 - 18; 1 - 5 * 2 / 18."""
    assert krippendorff_alpha(["aa", "ab", "bb"]) == pytest.approx(1 - 10 / 18)


def test_percent_agreement_counts_pairs() -> None:
    """Of three raters one disagrees: one pair of three; items with one rating have no pair."""
    assert percent_agreement(["aab"]) == pytest.approx(1 / 3)
    assert percent_agreement([("a", None)]) is None


@pytest.mark.parametrize("rows", [[], [("a", "a"), ("a", "a")], [("a", None)]])
def test_agreement_without_variation_is_undefined(rows: list[tuple[str, str | None]]) -> None:
    """No items, always the same label, or nothing to compare: None, neither 0 nor 1."""
    columns = list(zip(*rows, strict=True)) or [(), ()]
    assert cohen_kappa(*columns) is None
    assert fleiss_kappa(rows) is None
    assert krippendorff_alpha(rows) is None


def test_fleiss_refuses_missing_ratings() -> None:
    """The message names the coefficient that accepts them."""
    with pytest.raises(ValueError, match="krippendorff_alpha"):
        fleiss_kappa([("a", "b"), ("a", None)])


@given(PAIRS)
def test_only_full_agreement_is_1(pairs: list[Any]) -> None:
    first, second = zip(*pairs, strict=True)
    agree = first == second
    for figure in (cohen_kappa(first, second), fleiss_kappa(pairs), krippendorff_alpha(pairs)):
        assert figure is None or (figure == 1) == agree
        assert figure is None or figure <= 1


@given(PAIRS, st.permutations(["a", "b", "c"]))
def test_names_and_order_of_raters_do_not_matter(pairs: list[Any], names: list[str]) -> None:
    """Kappa and alpha do not change with other labels or swapped raters."""
    other = dict(zip("abc", names, strict=True))
    swapped = [(other[second], other[first]) for first, second in pairs]
    before = cohen_kappa(*zip(*pairs, strict=True))
    assert cohen_kappa(*zip(*swapped, strict=True)) == pytest.approx(before)
    assert krippendorff_alpha(swapped) == pytest.approx(krippendorff_alpha(pairs))


@pytest.mark.parametrize("rows", [[], [(1, None), (None, 2)]])
def test_krippendorff_needs_an_item_that_is_rated_twice(rows: list[Any]) -> None:
    assert krippendorff_alpha(rows) is None


def test_cohen_needs_equally_many_ratings() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        cohen_kappa([1], [1, 2])
