"""One text in two Unicode spellings ("é" as one character or as two) is the same text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.matching import contains, exact_match, json_subset
from proctor.evaluators.rules import ends_with, keywords, occurrences, starts_with, text_count
from tests.tables import each_row

COMPOSED = "Caf\u00e9 Zo\u00eb"
APART = unicodedata.normalize("NFD", COMPOSED)

CHECKS: dict[str, Callable[[str, str], Any]] = {
    "exact_match": exact_match,
    "exact_match of a list": lambda a, b: exact_match([a], [b]),
    "exact_match of references": lambda a, b: exact_match(a, ["x", b]),
    "exact_match of a mapping": lambda a, b: exact_match({a: a}, {b: b}),
    "exact_match, any case": lambda a, b: exact_match(a.upper(), b, case_sensitive=False),
    "contains": lambda a, b: contains(f"in {a}.", b),
    "contains, any case": lambda a, b: contains(f"in {a.upper()}.", b, case_sensitive=False),
    "contains of a list": lambda a, b: contains([a], [b]),
    "json_subset": lambda a, b: json_subset({a: a, "more": 1}, {b: b}),
    "keywords": lambda a, b: keywords(f"in {a}.", include=[b]),
    "occurrences": lambda a, b: occurrences(f"in {a}.", text=b, exactly=1),
    "starts_with": lambda a, b: starts_with(b)(f"{a} is open."),
    "ends_with": lambda a, b: ends_with(b)(f"It is {a}"),
    "text_count": lambda a, b: text_count(a, of="characters", exactly=len(COMPOSED)),
}


@each_row("name", CHECKS)
def test_the_spelling_of_an_accent_changes_no_verdict(name: str) -> None:
    for output in (COMPOSED, APART):
        for expected in (COMPOSED, APART):
            assert CHECKS[name](output, expected).passed is True, (output, expected)


def test_a_letter_is_not_in_the_accented_letter() -> None:
    assert contains(APART, "Cafe").passed is False
    assert contains(COMPOSED, "Cafe").passed is False
    assert exact_match(APART, "Cafe Zoe").passed is False


@given(st.text(), st.text())
def test_both_forms_of_any_texts_get_the_same_verdict(one: str, other: str) -> None:
    left, right = (unicodedata.normalize("NFD", text) for text in (one, other))
    assert exact_match(one, other).passed == exact_match(left, right).passed
    assert contains(one + other, other).passed == contains(left + right, right).passed
