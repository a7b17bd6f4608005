"""Wording: forms of words, numbers and names, as every local method reads them."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.tokenizer import are_related, split_words
from tests.tables import each_row

FORMS = [
    ("ferry", "ferries"), ("stop", "stopped"), ("stops", "stopping"), ("leave", "leaving"),
    ("leaves", "leaving"), ("translate", "translation"), ("translated", "translation"),
    ("nation", "national"), ("norway", "norwegian"), ("sweden", "swedish"), ("china", "chinese"),
    ("germany", "german"), ("cat", "cats"),
]  # fmt: skip
OTHERS = [
    ("universe", "university"), ("contract", "contrast"), ("nation", "native"),
    ("general", "generous"), ("state", "station"), ("plan", "plane"), ("part", "party"),
    ("parts", "party"), ("austria", "australian"), ("iran", "iraq"), ("cat", "cot"),
    ("ab1", "ab1s"), ("china", "chinn"),
]  # fmt: skip


@each_row(("one", "other"), FORMS)
def test_forms_of_a_word_are_known_by_their_endings(one: str, other: str) -> None:
    assert are_related(one, other)
    assert are_related(other, one)


@each_row(("one", "other"), OTHERS)
def test_words_that_only_begin_alike_are_others(one: str, other: str) -> None:
    assert not are_related(one, other)
    assert not are_related(other, one)


@given(st.text(alphabet="abeinst", max_size=8), st.text(alphabet="abeinst", max_size=8))
def test_being_related_goes_both_ways(one: str, other: str) -> None:
    assert are_related(one, other) == are_related(other, one)
    assert are_related(one, one)


@each_row(
    ("written", "read"),
    [
        ("1,000", "1000"), ("12,345.60", "12345.6"), ("1,5", "1.5"), ("1.50", "1.5"), ("07", "7"),
        ("0", "0"), ("0.0", "0"), ("0.50", "0.5"), ("00", "0"), ("0,5", "0.5"),
        ("20th", "20"), ("3rd", "3"), ("1990s", "1990s"), ("1,2,3", "1,2,3"),
        ("3.11.2", "3.11.2"), ("seven", "7"),
    ],
)  # fmt: skip
def test_a_number_is_the_same_however_it_is_written(written: str, read: str) -> None:
    (word,) = split_words(written)
    assert (word.text, word.kind) == (read, "number")


@given(st.text(max_size=60))
def test_no_word_is_empty(text: str) -> None:
    assert all(word.text and word.original for word in split_words(text))


@given(st.decimals(0, 10**9, places=3))
def test_a_number_keeps_its_value(number: Decimal) -> None:
    (word,) = split_words(f"00{number}0")
    assert Decimal(word.text) == number


def test_a_unit_is_not_part_of_the_number() -> None:
    assert [word.text for word in split_words("5km")] == ["5", "km"]


def test_a_capital_makes_a_name_only_inside_a_sentence() -> None:
    kinds = {word.original: word.kind for word in split_words("Note: Water from Oslo is good. Very")}
    assert kinds["Oslo"] == "name"
    assert kinds["Water"] == kinds["Note"] == "content"
