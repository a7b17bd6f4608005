"""The tokenizer of BERT models: text in small letters, cut into the longest known pieces."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from itertools import chain, islice
from pathlib import Path

from proctor.errors import ModelError

UNKNOWN, BEGIN, END = "[UNK]", "[CLS]", "[SEP]"
LONGEST_WORD = 100
# Words that come again and again are cut up once.
MOST_WORDS = 50_000
# Ideographs are words by themselves.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class _Cleaned(dict[int, str]):
    """What a character becomes at first: nothing, a space, itself, or a word of its own."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "\t\n\r":
            found = " "
        elif code == 0xFFFD or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co"):
            found = ""
        elif character.isspace():
            found = " "
        elif any(low <= code <= high for low, high in _IDEOGRAPHS):
            found = f" {character} "
        else:
            found = character
        self[code] = found
        return found


class _Plain(dict[int, str]):
    """What a character becomes then: without accent, small, and punctuation apart."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        small = "" if category == "Mn" else character.lower()
        signs = category.startswith("P") or (code < 128 and category.startswith("S"))
        found = f" {small} " if signs else small
        self[code] = found
        return found


class WordPiece:
    """Turns texts into the numbers of their pieces.

    Marks such as `[SEP]` in a text are plain text: it cannot end itself.

    >>> tokenizer = WordPiece({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##cut": 4, "!": 5})
    >>> tokenizer.pieces("Uncut! (élan)")
    ['un', '##cut', '!', '[UNK]', '[UNK]', '[UNK]']
    >>> tokenizer.numbers("Uncut!", most=256)
    [1, 3, 4, 5, 2]
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._numbers = dict(vocabulary)
        missing = [mark for mark in (UNKNOWN, BEGIN, END) if mark not in vocabulary]
        if missing:
            raise ModelError(f"the vocabulary lacks {', '.join(missing)}")
        self._cleaned, self._plain = _Cleaned(), _Plain()
        self._words: dict[str, list[str]] = {}

    @classmethod
    def load(cls, path: Path) -> WordPiece:
        """A vocabulary from its file, one piece a line."""
        lines = path.read_text(encoding="utf-8").splitlines()
        return cls({piece: number for number, piece in enumerate(lines)})

    def words(self, text: str) -> list[str]:
        """The words and signs of a text, in small letters and without accents.

        >>> WordPiece({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}).words("Crème brûlée, 東京!")
        ['creme', 'brulee', ',', '東', '京', '!']
        """
        apart = unicodedata.normalize("NFD", text.translate(self._cleaned))
        return apart.translate(self._plain).split()

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text that are in the vocabulary; a word that has none is unknown."""
        return list(chain.from_iterable(map(self._cut, self.words(text))))

    def unknown(self, text: str) -> tuple[str, ...]:
        """The words that have no pieces in the vocabulary.

        >>> WordPiece({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "ok": 3}).unknown("OK ✅ ❌")
        ('✅', '❌')
        """
        return tuple(word for word in self.words(text) if self._cut(word) == [UNKNOWN])

    def numbers(self, text: str, most: int) -> list[int]:
        """The numbers of the pieces, with a begin and an end, at most so many in all."""
        # Words behind the last piece that counts are not cut up.
        pieces = islice(chain.from_iterable(map(self._cut, self.words(text))), most - 2)
        return [self._numbers[piece] for piece in chain([BEGIN], pieces, [END])]

    def _cut(self, word: str) -> list[str]:
        found = self._words.get(word)
        if found is None:
            if len(self._words) >= MOST_WORDS:
                self._words.clear()
            found = self._words[word] = self._longest_pieces(word)
        return found

    def _longest_pieces(self, word: str) -> list[str]:
        if len(word) > LONGEST_WORD:
            return [UNKNOWN]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self._numbers), None)
            if end is None:
                return [UNKNOWN]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces
