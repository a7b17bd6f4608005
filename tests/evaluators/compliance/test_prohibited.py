"""Claims that must not be made, found by nearness in meaning."""

from __future__ import annotations

import asyncio
import functools

import pytest

from proctor.evaluators.embeddings import TextEmbedder
from proctor.evaluators.safety.policy import can_make_claim, find_nearest, repeats_claim
from proctor.models import weights
from tests.evaluators.compliance.claims import CLAIMS
from tests.tables import each_row


@functools.cache
def embedder(name: str) -> TextEmbedder:
    """One embedder for all tests, so that its weights are read once."""
    return TextEmbedder(name, "compliance")


def made(text: str, claims: list[str], name: str = "local:minilm") -> list[str]:
    """The claims that a text makes, with the words that make them."""
    if name == "local:minilm" and weights.find("minilm") is None:
        pytest.skip("the weights of local:minilm are not here (proctor models pull minilm)")
    found = asyncio.run(find_nearest(claims, text, embedder(name)))
    return [text[one.start : one.end] for one in found if one.makes_claim]


@pytest.mark.no_cover
def test_sentences_that_make_a_claim_are_distinguished_from_similar_ones() -> None:
    missed = [s for claim, (yes, _) in CLAIMS.items() for s in yes if not made(s, [claim])]
    wrong = [s for claim, (_, no) in CLAIMS.items() for s in no if made(s, [claim])]
    assert missed == []
    assert wrong == ["The battery lasts about a day."]


def test_a_claim_in_a_clause_of_a_long_sentence_is_found_there() -> None:
    text = "Shipping takes three days, but our supplement cures cancer, and the box is recycled."
    assert made(text, ["Our supplement cures cancer."]) == ["but our supplement cures cancer,"]


def test_letters_do_where_there_are_no_embeddings() -> None:
    claims = ["Our supplement cures cancer."]
    assert made("Our supplement cures cancer!", claims, "lexical")
    assert not made("The sun is out.", claims, "lexical")


def test_a_text_without_words_makes_no_claim() -> None:
    assert made("42.", ["It cures."], "lexical") == []


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("Does it cure colds?", False),
        ("If it cures colds, tell us.", False),
        ("It doesn’t cure colds.", False),
        ("It is not false that it cures colds.", True),
        ("It cures colds.", True),
    ],
)
def test_questions_conditions_and_negations_make_no_claim(sentence: str, message: bool) -> None:
    assert can_make_claim(sentence, "It cures colds.") is message


@each_row(
    ("claim", "sentence"),
    [
        ("guaranteed returns", "You get guaranteed returns of 20 %."),
        ("guaranteed returns", "Enjoy guaranteed annual returns, no questions asked."),
        ("guaranteed returns", "Without any risk, you get guaranteed returns."),
        ("guaranteed returns", "Our returns of 5 % are guaranteed!"),
        ("guaranteed returns", "If you invest, you get guaranteed returns."),
        ("guaranteed returns", "The returns policy of this old shop promises guaranteed returns."),
        ("It cures cancer.", "Our product cures cancer."),
        ("It cures cancer.", "It is guaranteed to cure any cancer."),
        ("No side effects", "Our pill has no side effects."),
        ("No side effects", "It works without side effects."),
        ("No risk", "No risk!"),
        ("guaranteed", "Delivery is guaranteed."),
    ],
)
def test_a_claim_is_made_by_its_own_words(claim: str, sentence: str) -> None:
    assert repeats_claim(sentence, claim)
    assert made(sentence, [claim], "lexical") == [sentence]


@each_row(
    ("claim", "sentence"),
    [
        ("guaranteed returns", "You never get guaranteed returns."),
        ("guaranteed returns", "Guaranteed returns are a myth."),
        ("guaranteed returns", "Beware of guaranteed returns."),
        ("guaranteed returns", "Do you offer guaranteed returns, and how?"),
        ("guaranteed returns", 'She asked: "Are there guaranteed returns?"'),
        ("guaranteed returns", "If you want guaranteed returns, look elsewhere."),
        ("guaranteed returns", "We offer guaranteed delivery and free returns."),
        ("It cures cancer.", "This tea cures headaches in patients with cancer."),
        ("It cures cancer.", "Nothing cures cancer like our tea."),
        ("No side effects", "Our pill has side effects."),
        ("The fund pays 20 %.", "The fund pays 2 %."),
        ("It works.", "She works at a bank."),
        ("It is what it is.", "It is what they say."),
    ],
)
def test_the_words_of_a_claim_do_not_make_it_by_themselves(claim: str, sentence: str) -> None:
    assert not repeats_claim(sentence, claim)


def test_where_a_claim_is_only_denied_the_denial_is_the_nearest() -> None:
    (found,) = asyncio.run(find_nearest(["It cures flu."], "It does not cure flu.", embedder("lexical")))
    assert (found.makes_claim, found.by) == (False, "denied")


def test_other_numbers_make_another_claim() -> None:
    assert can_make_claim("It pays 20 % a year.", "It pays 20 %.")
    assert not can_make_claim("It pays 2 % a year.", "It pays 20 %.")
