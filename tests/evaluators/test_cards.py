"""Every built-in evaluator has a card that says what it can and cannot do."""

from __future__ import annotations

import msgspec
import pytest

from proctor.cli.main import run_cli
from proctor.evaluators.cards import load_cards
from proctor.evaluators.text.quality import semantic_similarity
from proctor.models import weights
from proctor.models.embedders.multilingual import Multilingual
from proctor.wiring.registry import Registry


def test_each_built_in_evaluator_has_a_card_and_no_card_is_left_over() -> None:
    names = {info.name for info in Registry.standard().evaluators()}
    assert names == load_cards().keys()


def test_a_measured_figure_has_its_number_of_rows_and_its_interval() -> None:
    for name, card in load_cards().items():
        for figure in card.figures:
            assert figure.n > 0, (name, figure)
            assert figure.low is not None, (name, figure)
            assert figure.high is not None, (name, figure)
            assert figure.low <= figure.value <= figure.high, (name, figure)


def test_the_command_line_prints_the_card_of_one_evaluator(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["evaluators", "numeric_answer"]) == 0
    output = capsys.readouterr().out
    for label, text in load_cards()["numeric_answer"].list_entries():
        assert f"{label}:" in output
        assert text[:40] in output


def test_the_texts_of_a_card_are_sentences_or_phrases_of_some_length() -> None:
    for name, card in load_cards().items():
        fields = msgspec.structs.asdict(card)
        assert all(fields[part] for part in ("method", "languages", "cost", "cannot")), name
        assert card.method.endswith("."), name
        assert card.cannot.endswith("."), name


def test_all_texts_give_the_same_number_of_languages_for_the_multilingual_embedder() -> None:
    count = len(Multilingual.languages)
    assert f"local:multilingual {count} languages" in load_cards()["semantic_similarity"].languages
    assert f"for {count} languages" in weights.CATALOGUE["multilingual"].note
    # Besides English, which local:minilm reads.
    assert f"for {count - 1} other languages" in (semantic_similarity.__doc__ or "")
