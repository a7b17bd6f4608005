"""The multilingual embedder with its real weights: figures of the original model, invariants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.errors import ModelError
from proctor.models import connect as connections
from proctor.models.embedders.multilingual import MAX_PIECES, Multilingual, Unigrams

# Token ids and the first numbers of the vectors, as the original model gives them.
ORIGINAL: dict[str, tuple[list[int], list[float]]] = {
    "How old are you?": ([1, 1348, 1305, 69, 37, 21, 2], [0.06682, -0.00921, 0.06283, 0.02569]),
    "Wie alt bist du?": ([1, 2534, 3806, 3844, 124, 21, 2], [0.04936, 0.00487, 0.04057, 0.01675]),
    "Сколько тебе лет?": ([1, 1085, 40486, 6, 6925, 4269, 21, 2], [0.06541, -0.01593, 0.06595, -0.00582]),
    "你多大了？": ([1, 6, 91, 297, 207, 127, 21, 2], [0.08428, -0.03644, 0.0217, 0.0455]),
    "½ ﬁne\u3000ＡＢＣ": ([1, 32259, 1668, 13514, 2], [0.07481, 0.0066, 0.00899, -0.04631]),
}


def cosine(left: Any, right: Any) -> float:
    return float(sum(a * b for a, b in zip(left, right, strict=True)))


@pytest.mark.parametrize("text", ORIGINAL)
def test_pieces_and_vectors_are_those_of_the_original(
    multilingual: Multilingual, multilingual_path: Path, text: str
) -> None:
    ids, numbers = ORIGINAL[text]
    assert Unigrams.load(multilingual_path.with_name("sp.model")).token_ids(text, MAX_PIECES) == ids
    assert list(multilingual.vectors([text])[0][:4]) == pytest.approx(numbers, abs=1e-4)


@pytest.mark.parametrize(
    "translation", ["Wie alt bist du?", "Сколько тебе лет?", "你多大了？", "¿Cuántos años tienes?"]
)
def test_a_translation_is_nearer_than_another_sentence(multilingual: Multilingual, translation: str) -> None:
    english, translated, other = multilingual.vectors(["How old are you?", translation, "The train leaves at noon."])
    assert cosine(english, translated) > 0.7 > 0.4 > cosine(english, other)


def test_vectors_have_length_one_and_do_not_depend_on_the_batch(multilingual: Multilingual) -> None:
    texts = ["short", "", "  ", "a rather longer sentence about nothing in particular", "word " * 600, "\x00"]
    together = multilingual.vectors(texts)
    for text, vector in zip(texts, together, strict=True):
        (alone,) = multilingual.vectors([text])
        assert len(vector) == 512
        assert cosine(vector, vector) == pytest.approx(1.0, abs=1e-5)
        assert cosine(vector, alone) == pytest.approx(1.0, abs=1e-5)


def test_of_a_long_text_the_start_counts(multilingual: Multilingual) -> None:
    start = "word " * MAX_PIECES
    first, second = multilingual.vectors([start, start + "and something else"])
    assert cosine(first, second) == pytest.approx(1.0, abs=1e-6)


def test_unknown_characters_are_listed(multilingual: Multilingual) -> None:
    assert multilingual.unknown_words("Hello ᚠ world") == ("ᚠ",)
    assert multilingual.unknown_words("Grüße aus Köln") == ()


def test_it_is_connected_by_its_address(multilingual_path: Path) -> None:
    connected = connections.embedder("local:multilingual")
    assert connected is connections.embedder("local:multilingual")
    assert "zh" in connected.languages  # type: ignore[attr-defined]


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(ModelError) as caught:
        connections.embedder("local:multilingal")
    assert caught.value.fix == "did you mean 'multilingual'?"


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x0a\xff"])
def test_another_file_is_not_read_as_pieces(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "sp.model").write_bytes(content)
    with pytest.raises(ModelError, match="it is not a SentencePiece model"):
        Unigrams.load(tmp_path / "sp.model")
