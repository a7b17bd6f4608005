"""Words as they are meant, whatever was done to their letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.safety.toxicity.model import list_harsh_words, load_model, read_words
from tests.tables import each_row


def read(text: str) -> list[str]:
    return [word.text for word in read_words(text, load_model().words.__contains__, list_harsh_words())]


@each_row(
    ("written", "meant"),
    [
        ("1d10t", "idiot"),
        ("st*pid", "stupid"),
        ("stu##d", "stupid"),
        ("m.o.r.o.n", "moron"),
        ("m o r o n", "moron"),
        ("m-o-r-o-n", "moron"),
        ("stuuuupid", "stupid"),
        ("id!ot!!!", "idiot"),
        ("іdiot", "idiot"),
        ("IDIÖT", "idiot"),
        ("$tupid", "stupid"),
        ("id\u200biot", "idiot"),
        ("i\u00add\u2060i\u200do\ufe0ft", "idiot"),
        ("i\u0336d\u0336i\u0336o\u0336t\u0336", "idiot"),
        ("id\u3164iot", "idiot"),
        ("id\x08iot", "idiot"),
        ("ｉｄｉｏｔ", "idiot"),
    ],
)
def test_a_disguised_word_is_restored(written: str, meant: str) -> None:
    assert read(f"you {written} there") == ["you", meant, "there"]


@pytest.mark.parametrize(
    "text", ["call 455 now", "made in the u.s.a. today", "a **bold** word", "write to a@b.com", "room 4-1-1"]
)
def test_signs_that_hide_no_word_stay_unchanged(text: str) -> None:
    assert not set(read(text)) & set(list_harsh_words())


def test_a_word_keeps_its_place_in_the_text() -> None:
    text = "Äh, you 1d10t"
    found = read_words(text, load_model().words.__contains__, list_harsh_words())
    assert [text[word.start : word.end] for word in found] == ["Äh", "you", "1d10t"]


def test_the_position_of_a_word_includes_invisible_characters() -> None:
    text = "\u200by\u200bou id\u200biot\u200b."
    found = read_words(text, load_model().words.__contains__, list_harsh_words())
    assert [text[word.start : word.end] for word in found] == ["y\u200bou", "id\u200biot"]


@given(st.text(max_size=80))
def test_every_text_has_words_in_order_and_inside_it(text: str) -> None:
    found = read_words(text, load_model().words.__contains__, list_harsh_words())
    places = [place for word in found for place in (word.start, word.end)]
    assert places == sorted(places)
    assert all(0 <= place <= len(text) for place in places)
