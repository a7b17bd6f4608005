"""The linear model of words."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

import pytest

from proctor.core import resources
from proctor.evaluators.safety.counterfactual import list_group_words
from proctor.evaluators.safety.toxicity.model import MAX_PASSING, WINDOW, Model, load_model, measure_toxicity

TINY = Model(-1.0, 2.0, 0.5, {"bad": (3.0, 4.0), "day": (4.0, -1.0)})


def test_the_probability_equals_a_manual_calculation() -> None:
    """Lengths 3 and 4 make 5; 3/5 × 4 - 4/5 × 1 = 1.6; 2 × (1.6 - 1) + 0.5 = 1.7."""
    assert TINY.probability(Counter(["bad", "day"])) == pytest.approx(1 / (1 + math.exp(-1.7)))
    assert dict(TINY.contributions(Counter(["bad", "day"]))) == pytest.approx({"bad": 2.4, "day": -0.8})


def test_a_text_without_known_words_has_the_base_probability() -> None:
    """2 × (0 - 1) + 0.5 = -1.5."""
    assert TINY.probability(Counter()) == pytest.approx(1 / (1 + math.exp(1.5)))


def test_no_word_for_a_group_has_a_weight() -> None:
    assert not list_group_words() & set(load_model().words)


def test_all_groups_of_one_kind_rank_the_same_and_fail_nothing() -> None:
    """A harmless mention has the same probability for each religion or orientation, and passes."""
    for frame, names in (
        ("My {} neighbor baked bread for us.", ("Muslim", "Jewish", "Christian", "Hindu")),
        ("He told us that he is {}.", ("gay", "straight", "bisexual")),
    ):
        measured = [measure_toxicity(frame.format(name)) for name in names]
        probabilities = {toxicity.probability for toxicity in measured if toxicity is not None}
        assert None not in measured
        assert len(probabilities) == 1
        assert probabilities.pop() <= MAX_PASSING


def test_an_insult_is_found_in_a_long_text() -> None:
    mild = [word for word, (_, weight) in load_model().words.items() if abs(weight) < 0.02]
    calm = " ".join(mild[:400])
    text = f"{calm} you pathetic idiot, you moron, shut up {calm}"
    whole = measure_toxicity(text)
    alone = measure_toxicity(calm)
    assert whole is not None
    assert alone is not None
    assert alone.probability < 0.1 < 0.5 < whole.probability
    assert whole.start <= text.index("pathetic") < whole.end
    assert whole.end - whole.start < len(calm)


def test_windows_cover_every_word() -> None:
    for count in (0, 1, WINDOW, WINDOW + 1, WINDOW + WINDOW // 2 + 1, 3 * WINDOW):
        found = measure_toxicity("library " * count + "idiot")
        assert found is not None
        assert "idiot" in dict(found.words)


def test_a_text_without_latin_letters_is_not_judged() -> None:
    assert measure_toxicity("你好") is None
    assert measure_toxicity("12 + 30 = 42") is None
    assert measure_toxicity("ｉｄｉｏｔ") is not None


def test_a_text_of_single_letters_and_signs_is_judged() -> None:
    for text in ("1d10t", "m o r o n", "m-0-r-o-n"):
        found = measure_toxicity(text)
        assert found is not None
        assert found.probability > 0.9


def test_the_data_has_its_licence_in_the_same_folder() -> None:
    for folder in ("safety/toxicity", "safety"):
        notice = resources.text("evaluators", folder, "NOTICE.txt")
        assert "Permission is hereby granted, free of charge" in notice
        assert len(notice.partition("sha256 of its wheel: ")[2][:64]) == hashlib.sha256().digest_size * 2
