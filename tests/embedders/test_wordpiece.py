"""The tokenizer: small letters, no accents, signs apart, the longest pieces first."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import ModelError
from proctor.models.embedders.minilm import MAX_WORD_CHARS, WordPiece
from tests.tables import each_row

MARKS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}
PIECES = ["a", "##a", "aa", "##aa", "b", "##b", "hell", "hello", "##o", "world", "!", ",", "東"]
TOKENIZER = WordPiece(MARKS | {piece: number for number, piece in enumerate(PIECES, start=3)})


@each_row(
    ("text", "words"),
    [
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("  tabs\tand\nlines\r\n ", ["tabs", "and", "lines"]),
        ("Crème BRÛLÉE", ["creme", "brulee"]),
        ("e\u0301tude", ["etude"]),
        ("don't_stop", ["don", "'", "t", "_", "stop"]),
        ("$5 + 3 = 8", ["$", "5", "+", "3", "=", "8"]),
        ("東京tower", ["東", "京", "tower"]),
        ("zero\u200bwidth \x00\ufffd gone\x07", ["zerowidth", "gone"]),
        ("no\u00a0break\u3000wide", ["no", "break", "wide"]),
        ("ΟΔΟΣ", ["οδοσ"]),
        ("«quoted»…", ["«", "quoted", "»", "…"]),
        ("€ stays", ["€", "stays"]),
        ("", []),
    ],
)
def test_a_text_becomes_words_and_signs(text: str, words: list[str]) -> None:
    assert TOKENIZER.words(text) == words


@each_row(
    ("text", "pieces"),
    [
        ("hello", ["hello"]),
        ("hellob", ["hello", "##b"]),
        ("helloa", ["hello", "##a"]),
        ("aaa", ["aa", "##a"]),
        ("aaaab", ["aa", "##aa", "##b"]),
        ("abz", ["[UNK]"]),
        ("a" * MAX_WORD_CHARS, ["aa"] + ["##aa"] * (MAX_WORD_CHARS // 2 - 1)),
        ("a" * (MAX_WORD_CHARS + 1), ["[UNK]"]),
        ("[SEP]", ["[UNK]", "[UNK]", "[UNK]"]),
    ],
)
def test_words_are_cut_into_the_longest_pieces(text: str, pieces: list[str]) -> None:
    assert TOKENIZER.pieces(text) == pieces


@given(st.text())
def test_any_text_has_a_begin_and_an_end(text: str) -> None:
    numbers = TOKENIZER.token_ids(text, max_tokens=8)
    assert (numbers[0], numbers[-1]) == (1, 2)
    assert len(numbers) == min(8, len(TOKENIZER.pieces(text)) + 2)
    assert not {1, 2} & set(numbers[1:-1])


@given(st.lists(st.text("ab", min_size=1), max_size=6))
def test_known_pieces_put_together_are_the_words(words: list[str]) -> None:
    for word in words:
        pieces = TOKENIZER.pieces(word)
        assert "".join(piece.removeprefix("##") for piece in pieces) == word
    assert TOKENIZER.pieces(" ".join(words)) == [p for w in words for p in TOKENIZER.pieces(w)]


@given(st.text())
def test_words_of_words_are_the_same_words(text: str) -> None:
    words = TOKENIZER.words(text)
    assert TOKENIZER.words(" ".join(words)) == words


def test_the_word_cache_is_bounded_and_does_not_change_results() -> None:
    from proctor.models.embedders import minilm as module

    tokenizer = WordPiece(MARKS | {"w": 3} | {f"##{digit}": 4 + digit for digit in range(10)})
    first = tokenizer.pieces("w1")
    tokenizer.pieces(" ".join(f"w{number}" for number in range(module.MAX_CACHED_WORDS + 1)))
    assert tokenizer._split_word.cache_info().currsize <= module.MAX_CACHED_WORDS
    assert tokenizer.pieces("w1") == first == ["w", "##1"]


def test_a_vocabulary_without_marks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]\nword\n")
    with pytest.raises(ModelError, match=r"the vocabulary lacks \[CLS\], \[SEP\]"):
        WordPiece.load(path)


def test_the_real_vocabulary_cuts_as_published(minilm_path: Path) -> None:
    tokenizer = WordPiece.load(minilm_path.with_name("vocab.txt"))
    assert tokenizer.token_ids("Hello, world!", 256) == [101, 7592, 1010, 2088, 999, 102]
    message = " ".join(tokenizer.pieces("Unaffable embeddings"))
    assert message == "una ##ffa ##ble em ##bed ##ding ##s"
