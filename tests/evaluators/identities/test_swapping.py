"""Texts about other groups, in correct grammar."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.safety.counterfactual import (
    GENDER,
    PRONOUNS,
    Swap,
    apply_swap,
    apply_swap_inside,
    find_swaps,
    list_variants,
    load_groups,
)
from proctor.evaluators.safety.toxicity.model import measure_toxicity
from tests.support import ROOT
from tests.tables import each_row

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))
WINOBIAS = DATA / "04_toxicity_bias" / "winobias_dev"


@each_row(
    ("text", "other"),
    [
        ("He lost his keys.", "She lost her keys."),
        ("The keys are his.", "The keys are hers."),
        ("The book is his and not mine.", "The book is hers and not mine."),
        ("I saw her yesterday.", "I saw him yesterday."),
        ("I saw her.", "I saw him."),
        ("Her mother called.", "His father called."),
        ("They gave her flowers.", "They gave him flowers."),
        ("They gave her mother a present.", "They gave his father a present."),
        ("They told her that it was hers.", "They told him that it was his."),
        ("SHE DID IT HERSELF", "HE DID IT HIMSELF"),
        ("The women's team won.", "The men's team won."),
        ("An actress spoke.", "An actor spoke."),
        ("A hero came.", "A heroine came."),
    ],
)
def test_gender_is_swapped_in_correct_grammar(text: str, other: str) -> None:
    """Pronouns by their position, nouns in pairs, with the same case."""
    assert apply_swap(text, Swap(GENDER)).text == other


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("A Muslim was there.", "A Jew was there."),
        ("A Muslim man spoke.", "A Jewish man spoke."),
        ("He is Muslim.", "He is Jewish."),
        ("muslims and Muslims, MUSLIMS", "jews and Jews, JEWS"),
        ("Islam is a religion.", "Judaism is a religion."),
        ("A Mormon and a Sikh met.", "An atheist and a Catholic met."),
    ],
)
def test_a_group_takes_the_form_of_the_replaced_one(text: str, other: str) -> None:
    """Person, people, adjective or belief, with the right article."""
    assert apply_swap(text, Swap("religion")).text == other


def test_a_word_with_other_meanings_is_swapped_only_before_people() -> None:
    swap = Swap("race")
    assert apply_swap("A black car.", swap).changed == ()
    assert apply_swap("A black man.", swap).text == "A white man."
    assert apply_swap("Go straight on.", Swap("orientation")).changed == ()


def test_an_american_by_race_is_not_one_by_nationality() -> None:
    """The longest name counts."""
    assert apply_swap("An African American voter", Swap("nationality")).changed == ()
    assert apply_swap("An American voter", Swap("nationality")).text == "A Mexican voter"


def test_different_groups_stay_different_and_nothing_else_changes() -> None:
    for one in list_variants("Christians, Muslims and Jews met in May."):
        assert one.axis == "religion"
        assert len({new for _, new in one.changed}) == 3
        assert one.text.endswith(" met in May.")


def test_the_number_of_variants_per_axis_is_limited() -> None:
    found = list_variants("She is a Muslim from a French family.", max_variants=2)
    assert [one.axis for one in found] == ["gender", *["religion"] * 2, *["nationality"] * 2]
    assert len({one.text for one in found}) == 5


def test_texts_inside_lists_and_mappings_are_swapped_too() -> None:
    """Other values do not change."""
    assert apply_swap_inside({"who": ["he", 3, None]}, Swap(GENDER)) == {"who": ["she", 3, None]}


def test_a_text_without_people_has_no_variants() -> None:
    """There is nothing to swap."""
    assert list_variants("The train leaves at nine.") == []
    assert find_swaps() == []


NAMES = [
    *PRONOUNS,
    *(word for pair in load_groups().pairs for word in pair),
    *(word for axis in load_groups().axes.values() for group in axis for word in group.forms().values()),
]
PLAIN = ["idiot", "meeting", "is", "a", "an", "the", "stupid", "talks", "to", "friend", ".", ","]


@given(st.lists(st.sampled_from(NAMES + PLAIN), max_size=30))
def test_no_swap_changes_the_toxicity_of_a_text(words: list[str]) -> None:
    """The model does not see the groups."""
    text = "Hello, " + " ".join(words)
    before = measure_toxicity(text)
    assert before is not None
    for one in list_variants(text):
        after = measure_toxicity(one.text)
        assert after is not None
        assert after.probability == before.probability


@given(st.lists(st.sampled_from([w for pair in load_groups().pairs for w in pair] + PLAIN), max_size=20))
def test_a_second_swap_of_gendered_nouns_restores_the_text(words: list[str]) -> None:
    """ "a" and "an" are corrected too."""
    text = " ".join(word for word in words if word not in ("a", "an"))
    assert apply_swap(apply_swap(text, Swap(GENDER)).text, Swap(GENDER)).text == text


@pytest.mark.skipif(not WINOBIAS.is_dir(), reason="the public data set WinoBias is not here")
@pytest.mark.parametrize(("kind", "least"), [(1, 0.98), (2, 0.94)])
def test_a_stereotyped_sentence_becomes_its_counterpart(kind: int, least: float) -> None:
    from benchmarks.quality.safety import winobias

    pairs = list(zip(winobias(DATA, "pro", kind), winobias(DATA, "anti", kind), strict=True))
    both = pairs + [(anti, pro) for pro, anti in pairs]
    right = sum(apply_swap(one, Swap(GENDER)).text == other for one, other in both)
    assert right / len(both) >= least
