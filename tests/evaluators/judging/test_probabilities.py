"""Probabilities of verdicts from the tokens of an answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.judges.judge import VerdictProbabilities, read_probabilities
from proctor.evaluators.judges.scale import RATING_VALUES, NumberScale
from proctor.records.model import TokenLogprobs

VALUES: dict[str, float] = dict(RATING_VALUES.items())
WORDS = list(VALUES)


def token(text: str, chance: float = 1.0, **others: float) -> TokenLogprobs:
    output = {other.replace("_", " "): math.log(share) for other, share in others.items()}
    return TokenLogprobs(text, math.log(chance), output)


def test_probabilities_of_labels_are_those_of_their_first_tokens() -> None:
    """A token counts if it starts only one label, with any markup."""
    tokens = [token("RATING"), token(":"), token(" go", 0.5, _poor=0.2, Go=0.1, the=0.15), token("od")]
    found = read_probabilities("RATING: good", 8, tokens, WORDS)
    assert isinstance(found, VerdictProbabilities)
    assert found.by_verdict == pytest.approx({"good": 0.6, "poor": 0.2})
    assert found.coverage == pytest.approx(0.8)
    # (0.6 * 0.75 + 0.2 * 0.25) / 0.8
    assert found.expected_value(VALUES) == pytest.approx(0.625)


def test_the_verdict_is_found_inside_json() -> None:
    """A token may begin with the quotation mark before the verdict."""
    text = '{"reason":"good","rating":"fair"}'
    tokens = [token('{"reason":"good",'), token('"rating":'), token('"fair', 0.9), token('"}')]
    found = read_probabilities(text, text.index("fair"), tokens, WORDS)
    assert isinstance(found, VerdictProbabilities)
    assert found.by_verdict == pytest.approx({"fair": 0.9})


def test_numbers_have_chances_too() -> None:
    """On a scale from 1 to 5 each number is a token."""
    scale = NumberScale(1, 5)
    tokens = [token("SCORE: "), TokenLogprobs("4", math.log(0.6), {"5": math.log(0.4)})]
    found = read_probabilities("SCORE: 4", 7, tokens, list(scale.steps()))
    assert isinstance(found, VerdictProbabilities)
    # 0.6 * 0.75 + 0.4 * 1.0
    assert found.expected_value(scale.steps()) == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("text", "place", "tokens", "labels", "why"),
    [
        ("good", 0, [], WORDS, "returned no probabilities"),
        ("4", 0, [token("4")], [], "too many"),
        ("good", 0, [token("other"), token("text")], WORDS, "do not match the answer"),
        ("a: good", 3, [token("a: good")], WORDS, "do not match the answer"),
        ("good", 0, [token("good", 0.2, fair=0.1)], WORDS, "do not distinguish"),
        ("10", 0, [token("1", 0.9), token("0")], ["1", "2", "10"], "do not distinguish"),
        ("good", 4, [token("good")], WORDS, "do not match the answer"),
    ],
)
def test_unknown_probabilities_have_a_reason(
    text: str, place: int, tokens: list[TokenLogprobs], labels: list[str], why: str
) -> None:
    """No expectation is made up."""
    found = read_probabilities(text, place, tokens, labels)
    assert isinstance(found, str)
    assert why in found


@given(st.lists(st.floats(0.001, 1.0), min_size=5, max_size=5))
def test_an_expectation_lies_between_the_values_and_is_weighed(shares: list[float]) -> None:
    """It is the mean of the values, weighed by chances that are made to add up to one."""
    total = sum(shares)
    chances = {word: share / total * 0.9 for word, share in zip(WORDS, shares, strict=True)}
    expected = sum(share * VALUES[word] for word, share in chances.items()) / 0.9
    found = VerdictProbabilities(chances, 0.9).expected_value(VALUES)
    assert found == pytest.approx(expected)
    assert 0.0 <= found <= 1.0
