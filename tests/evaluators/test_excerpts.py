"""Excerpts: the best is found, also where most are not looked at."""

from __future__ import annotations

import math
import random

import pytest

from proctor.evaluators.text.quality import semantic_similarity
from proctor.evaluators.text.similarity import MAX_CHARACTERS, find_excerpts, is_denied, is_negated


def test_the_best_excerpt_is_the_best_of_all() -> None:
    chance = random.Random(3)
    letters = "aeioudnrst"
    for _ in range(40):
        there = ["".join(chance.choices(letters, k=chance.randint(1, 6))) for _ in range(60)]
        wanted = ["".join(chance.choices(letters, k=chance.randint(2, 6))) for _ in range(3)]
        ((alike, *_),) = find_excerpts(" ".join(there), [(0, " ".join(wanted))]) or ((0.0,),)
        parts = (there[at : at + size] for size in range(2, 6) for at in range(61 - size))
        # Each begins and ends with something of what is wanted.
        bounded = (p for p in parts if resemblance(p[:1], wanted) and resemblance(p[-1:], wanted))
        best = max((resemblance(part, wanted) for part in bounded), default=0.0)
        assert alike == pytest.approx(best)


def resemblance(left: list[str], right: list[str]) -> float:
    """The cosine of two sets of runs of letters."""
    mine, theirs = (
        {f" {w} "[i : i + n] for w in side for n in (2, 3, 4) for i in range(len(w) + 3 - n)} for side in (left, right)
    )
    return len(mine & theirs) / math.sqrt(len(mine) * len(theirs))


def test_only_the_start_of_a_very_long_text_is_checked() -> None:
    text = f"{'x ' * (MAX_CHARACTERS // 2)}Jane Austen."
    assert find_excerpts(text, [(0, "Jane Austen")]) == []
    found = semantic_similarity("lexical")(text, "Jane Austen")
    assert found.details["characters_without_excerpts"] == len("Jane Austen.")


@pytest.mark.parametrize(
    ("output", "passes"),
    [
        ("It is certainly not Paris but Lyon.", False),
        ("No, it isn't Paris, as far as I know.", False),
        ("Paris? It was never Paris that they chose.", True),
        ("It is certainly not Lyon but Paris.", True),
        ("I do not know much. It is Paris.", True),
        ("Not only Paris is meant here.", True),
        ("Paris is wrong; the right answer is Lyon.", False),
        ("Paris? No, Lyon.", False),
        ("Unlike Paris, Lyon is the answer.", False),
        ("Paris did not win the vote. Lyon did.", False),
        ("Paris doesn't count here. Lyon does.", False),
        ("The winner was anyone but Paris.", False),
        ("I don't know whether it is Paris.", False),
        ("Many people think it's Paris, but it's Lyon.", False),
        ("Paris is not the capital of Australia; it is Sydney.", False),
        ("I believe it's Paris.", True),
        ("Paris, France.", True),
        ("Unlike Lyon, Paris is the capital.", True),
        ("If you ask me, it is Paris.", True),
        ("Paris is not only old; Paris is the capital.", True),
    ],
)
def test_a_negated_excerpt_is_not_what_was_expected(output: str, passes: bool) -> None:
    score = semantic_similarity("lexical")(output, "Paris")
    assert (score.passed is True) is passes, score.reason


def test_a_text_that_only_denies_the_reference_gets_no_pass() -> None:
    score = semantic_similarity("lexical", threshold=0.1)("It is not Paris.", "Paris")
    assert score.status == "skipped"
    assert score.reason == "the output has 'Paris' only after a negation"
    score = semantic_similarity("lexical")("Canberra is not the capital of Australia; it is Sydney.", "Canberra")
    assert (score.status, score.reason) == ("skipped", "the output may deny 'Canberra', or leave it open")


def test_a_negation_in_another_clause_denies_nothing() -> None:
    text = "In craters, where the Sun never shines, it confirmed frozen water."
    assert not is_negated(text, "frozen water")


def test_a_short_answer_that_denies_a_word_of_the_reference_is_recognized() -> None:
    assert is_denied("The pump does not run.", "The pump runs.")
    assert not is_denied("The pump runs, not the fan.", "The pump runs.")
    assert not is_denied("The pump does not run.", "The pump never runs.")
