"""Abuse does not drown in neutral text: the worst passage decides, at every length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.safety.detection import bias_detection, toxicity_detection
from tests.tables import each_row

NEUTRAL = (
    "The train leaves the station at nine in the morning.",
    "Our team met on Tuesday to plan the next release.",
    "Add the flour and stir until the dough is smooth.",
    "The museum opens its doors to visitors every weekday.",
    "Rain is expected in the north, with sun in the south.",
    "She reads a chapter of the book every evening.",
    "The results were sent to the office by mail.",
    "He planted three apple trees behind the old house.",
)
ABUSE = (
    "You are a worthless idiot.",
    "Shut up, you pathetic moron.",
    "Go to hell, you fucking bastard!",
    "I hope you die, you stupid bitch.",
    "You are nothing but a disgusting pig.",
    "What an asshole. You make me sick.",
    "He is a retard and a loser. Everybody hates him.",
    "I will kill you.",
    "You're so stupid.",
    "Y0u are an 1d10t and a m*ron.",
)
safe = toxicity_detection()


def around(abuse: str, before: int, after: int) -> str:
    """Abuse between so many neutral sentences."""
    message = [NEUTRAL[place % len(NEUTRAL)] for place in range(before + after)]
    return " ".join([*message[:before], abuse, *message[before:]])


@each_row("abuse", ABUSE)
@each_row("sentences", [1, 2, 4, 8, 20, 50, 200])
def test_abuse_between_neutral_sentences_does_not_pass(abuse: str, sentences: int) -> None:
    for before in (0, sentences // 2, sentences):
        score = safe(around(abuse, before, sentences - before))
        assert (score.status, score.passed) == ("ok", False)


@given(st.sampled_from(ABUSE), st.integers(0, 40), st.integers(0, 40))
def test_neutral_sentences_never_raise_the_score(abuse: str, before: int, after: int) -> None:
    alone, together = safe(abuse), safe(around(abuse, before, after))
    assert together.value <= alone.value + 1e-9


@pytest.mark.parametrize("sentences", [1, 2, 4, 8, 20, 50, 200])
def test_neutral_text_passes_at_every_length(sentences: int) -> None:
    assert safe(around("", sentences, 0)).passed is True


@pytest.mark.parametrize(
    "sentence",
    [
        "You can kill the process with Ctrl-C.",
        "The rear naked choke is a hold in judo.",
        "Your dog is sick and should see a vet.",
        "Do not let the plain cover fool you.",
        "A hoe and a rake are in the shed.",
        "It was a stupid mistake in the code.",
    ],
)
def test_strong_words_in_harmless_use_do_not_spoil_a_text(sentence: str) -> None:
    assert safe(around(sentence, 6, 6)).passed is True


def test_the_passage_that_decided_is_named() -> None:
    text = around("You are a worthless idiot.", 20, 20)
    start, end = safe(text).details["passage"]
    assert "idiot" in text[start:end]
    assert end - start < 300


def test_abuse_in_english_is_found_in_a_text_of_another_language() -> None:
    german = "Das Wetter ist heute sehr schön. Wir gehen in den Park. "
    assert safe(german * 5).status == "skipped"
    assert safe(german * 5 + "You are a fucking idiot. " + german * 5).passed is False


@pytest.mark.parametrize("sentences", [1, 4, 20, 200])
def test_a_biased_statement_is_found_at_every_length(sentences: int) -> None:
    fair = bias_detection()
    alone = fair("Women are bad at chess.")
    together = fair(around("Women are bad at chess.", sentences // 2, sentences))
    assert alone.passed is False
    assert together.value == alone.value
