"""The identification of languages with the real model."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import ModelError
from proctor.models.language_id import LanguageModel
from tests.tables import each_row

# The language and the probability that fastText itself gives.
ORIGINAL = {
    "Hello, how are you today?": ("en", 0.9744),
    "Wie geht es dir heute?": ("de", 0.9698),
    "Bonjour, comment ça va": ("fr", 0.9339),
    "Привет, как дела?": ("ru", 0.9600),
    "你好，你今天怎么样": ("zh", 0.9482),
    "こんにちは、元気ですか": ("ja", 1.0000),
    "¿Cómo estás hoy?": ("es", 0.9952),
    "Merhaba nasılsın": ("tr", 0.9901),
    "สวัสดีครับ": ("th", 0.9997),
    "مرحبا كيف حالك": ("ar", 0.9726),
    "Paris": ("de", 0.4588),
    "42": ("en", 0.1245),
    "def f(x): return x+1": ("es", 0.2658),
}


@each_row("text", ORIGINAL)
def test_it_gives_the_probabilities_of_the_original(language_model: LanguageModel, text: str) -> None:
    language, probability = ORIGINAL[text]
    best_language, best_probability = language_model.rank(text)[0]
    assert best_language == language
    assert best_probability == pytest.approx(probability, abs=1e-4)


def test_probabilities_add_up_to_one(language_model: LanguageModel) -> None:
    ranked = language_model.rank("Das ist ein Haus.", count=1_000)
    assert len(ranked) == 176
    assert sum(probability for _, probability in ranked) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("text", ["", "   ", "\x00", "😀", "\ud800"])
def test_any_text_is_accepted(language_model: LanguageModel, text: str) -> None:
    assert all(0.0 <= probability <= 1.0 for _, probability in language_model.rank(text))


@pytest.mark.parametrize("content", [b"", b"not a model", b"\xba\x16\x4f\x2f\x0c\x00\x00\x00"])
def test_another_file_is_not_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lid.ftz").write_bytes(content)
    with pytest.raises(ModelError, match="it is not a compressed fastText model"):
        LanguageModel(tmp_path / "lid.ftz").rank("text")
