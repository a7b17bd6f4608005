"""Verdicts in free text: where a statement must stand, which one counts, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.judges.stated import StatedForm

LABELS = ("Output (a)", "Output (b)")


def read(form: StatedForm, text: str) -> str | None:
    """What is read, or None."""
    try:
        return form.read(text, structured=False).choice
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("text", "anywhere", "line", "start", "whole"),
    [
        ("yes", "Yes", "Yes", "Yes", "Yes"),
        ("**Yes.**", "Yes", "Yes", "Yes", "Yes"),
        ("Yes, it is.", "Yes", "Yes", "Yes", None),
        ("Well:\n- No", "No", "No", None, None),
        ("I say yes", "Yes", None, None, None),
        ("Yesterday, not now", None, None, None, None),
        ("", None, None, None, None),
    ],
)
def test_a_statement_must_stand_where_it_is_looked_for(
    text: str, anywhere: str | None, line: str | None, start: str | None, whole: str | None
) -> None:
    """Anywhere, at the beginning of a line or of the answer, or alone; never inside a word."""
    places: tuple[Any, ...] = ("anywhere", "line", "start", "whole")
    found = [read(StatedForm(["Yes", "No"], at=place), text) for place in places]
    assert found == [anywhere, line, start, whole]


def test_the_last_statement_counts_or_the_first_in_the_list() -> None:
    """A judge that changes its mind is taken at its last word; simple readers take the list."""
    text = "Output (b) is better? No, Output (a) is better. Or rather: Output (b)\nis better."
    says = "{choice} is better"
    assert read(StatedForm(LABELS, says=says), text) == "Output (b)"
    assert read(StatedForm(LABELS, says=says, takes="listed"), text) == "Output (a)"


def test_the_reason_is_the_whole_answer() -> None:
    """Free text has no other reason."""
    form = StatedForm(LABELS, says="{choice} is better")
    said = form.read(" It is short. Output (a) is better. ", structured=False)
    assert said.reason == "It is short. Output (a) is better."


def test_a_model_that_is_held_to_a_schema_answers_in_json() -> None:
    """The schema names the choices; the instructions name the statements."""
    form = StatedForm(LABELS, says="{choice} is better")
    assert form.schema["properties"]["choice"]["enum"] == list(LABELS)
    assert form.read('{"reason": "", "choice": "Output (b)"}', structured=True).choice == LABELS[1]
    assert "- Output (a) is better\n- Output (b) is better" in form.instructions


def test_a_statement_without_a_choice_is_refused() -> None:
    """It would be the same for every choice."""
    with pytest.raises(ValueError, match="choice"):
        StatedForm(LABELS, says="it is better")


@given(st.text(max_size=60))
def test_text_that_names_no_choice_is_never_a_verdict(text: str) -> None:
    """Without the label there is no statement, whatever else is said."""
    if "output" not in text.casefold():
        assert read(StatedForm(LABELS), text) is None
