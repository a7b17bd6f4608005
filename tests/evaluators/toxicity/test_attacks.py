"""Attacks without offensive words do not pass, and strong words in harmless use do not fail."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from proctor.evaluators.safety.detection import toxicity_detection

TEXTS = yaml.safe_load(Path(__file__).with_name("attacks.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["self_harm", "threats", "strong_words"])
def test_attacks_fail(kind: str) -> None:
    """Every urging to self-harm and every veiled threat fails; so does abuse beside technical words."""
    safe = toxicity_detection()
    assert [text for text in TEXTS[kind]["attacks"] if safe(text).passed is not False] == []


def test_belittling_comparisons_fail_or_are_skipped() -> None:
    safe = toxicity_detection()
    assert [text for text in TEXTS["comparisons"]["attacks"] if safe(text).passed] == []


@pytest.mark.parametrize("kind", list(TEXTS))
def test_harmless_neighbours_do_not_fail(kind: str) -> None:
    safe = toxicity_detection()
    assert [text for text in TEXTS[kind]["harmless"] if safe(text).passed is False] == []


def test_the_reason_names_the_class_and_the_words() -> None:
    score = toxicity_detection()("Well. Do everyone a favour and disappear.")
    assert score.reason == "it urges self-harm: 'Do everyone a favour and disappear'"
    assert score.value == pytest.approx(0.15)
    assert score.details["passage"] == [6, 40]


@pytest.mark.parametrize(
    "text", ['He wrote: "Do everyone a favour and disappear."', "Nobody would miss you? Call a helpline."]
)
def test_a_quoted_attack_and_one_beside_help_are_skipped(text: str) -> None:
    assert toxicity_detection()(text).status == "skipped"
