"""`local:minilm`: sentence embeddings on this machine, without torch."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.core import optional as extras
from proctor.core.threads import in_thread
from proctor.errors import ModelError
from proctor.models import weights
from proctor.models.embed import Remembered, shared

# Heads are small; a greater number there means that it is another kind of file.
LONGEST_HEAD = 100_000_000


class _Tensor(msgspec.Struct, frozen=True):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def read_tensors(path: Path, np: Any) -> Mapping[str, Any]:
    """The tensors of 32-bit numbers in a file, by name, without reading them from disk yet.

    `np` is numpy, which only whoever uses this has imported.
    """
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    length = int.from_bytes(bytes(raw[:8]), "little")
    if not 0 < length <= min(LONGEST_HEAD, len(raw) - 8):
        raise ModelError("it is not a file of tensors", where=str(path))
    try:
        head = msgspec.json.decode(bytes(raw[8 : 8 + length]), type=dict[str, msgspec.Raw])
        described = {
            name: msgspec.json.decode(one, type=_Tensor)
            for name, one in head.items()
            if name != "__metadata__"
        }
    except msgspec.DecodeError as error:
        raise ModelError(f"its head cannot be read: {error}", where=str(path)) from None
    body = raw[8 + length :]
    return {
        name: _numbers(body, tensor, f"{path}: {name}", np)
        for name, tensor in described.items()
        if tensor.dtype == "F32"
    }


def _numbers(body: Any, tensor: _Tensor, where: str, np: Any) -> Any:
    begin, end = tensor.data_offsets
    count = 1
    for side in tensor.shape:
        count *= side
    if not 0 <= begin <= end <= len(body) or end - begin != 4 * count:
        raise ModelError("the file is cut off, or its head is wrong", where=where)
    return body[begin:end].view(np.dtype("<f4")).reshape(tensor.shape)


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


HEADS = 12
EPSILON = 1e-12
# So many rows at a time stay in the processor's cache while one function after another is applied.
ROWS = 64
# Padded places get no attention.
NEVER = -1e9


class _Layer(NamedTuple):
    """The numbers of one layer; matrices stand ready to be multiplied from the right."""

    attend: tuple[Any, Any]
    attended: tuple[Any, Any]
    attended_norm: tuple[Any, Any]
    widen: tuple[Any, Any]
    narrow: tuple[Any, Any]
    norm: tuple[Any, Any]


class Bert:
    """An encoder whose vectors are means over the pieces, of length 1.

    `tensors` are named as in published BERT models; `np` is numpy.
    """

    def __init__(self, tensors: Mapping[str, Any], np: Any) -> None:
        self._np = np
        self._words = tensors["embeddings.word_embeddings.weight"]
        kind = tensors["embeddings.token_type_embeddings.weight"][0]
        self._positions = tensors["embeddings.position_embeddings.weight"] + kind
        self._norm = _pair(tensors, "embeddings.LayerNorm")
        count = 0
        self._layers: list[_Layer] = []
        while f"encoder.layer.{count}.output.dense.weight" in tensors:
            self._layers.append(_layer(tensors, f"encoder.layer.{count}.", np))
            count += 1

    def vectors(self, batch: Sequence[Sequence[int]]) -> Any:
        """One row for each text; texts of about the same length waste the least."""
        np = self._np
        width = max(map(len, batch))
        numbers = np.zeros((len(batch), width), dtype=np.int64)
        there = np.zeros((len(batch), width), dtype=np.float32)
        for row, pieces in enumerate(batch):
            numbers[row, : len(pieces)] = pieces
            there[row, : len(pieces)] = 1.0
        state = self._normed(self._words[numbers] + self._positions[:width], self._norm)
        hidden = ((1.0 - there) * np.float32(NEVER))[:, None, None, :]
        for layer in self._layers:
            state = self._through(layer, state, hidden)
        means = (state * there[:, :, None]).sum(axis=1) / there.sum(axis=1)[:, None]
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def _through(self, layer: _Layer, state: Any, hidden: Any) -> Any:
        seen = _times(self._attention(layer, state, hidden), layer.attended)
        state = self._normed(state + seen, layer.attended_norm)
        wide = self._gelu(_times(state, layer.widen))
        return self._normed(state + _times(wide, layer.narrow), layer.norm)

    def _attention(self, layer: _Layer, state: Any, hidden: Any) -> Any:
        """What every piece takes from every other, in each of the heads."""
        np = self._np
        texts, width, size = state.shape
        heads = _times(state, layer.attend).reshape(texts, width, 3, HEADS, size // HEADS)
        query, key, value = heads.transpose(2, 0, 3, 1, 4)
        weights = query @ key.swapaxes(-1, -2) + hidden
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        return (weights @ value).transpose(0, 2, 1, 3).reshape(texts, width, size)

    def _normed(self, state: Any, norm: tuple[Any, Any]) -> Any:
        state -= state.mean(axis=-1, keepdims=True)
        spread = self._np.einsum("...i,...i->...", state, state)[..., None] / state.shape[-1]
        state /= self._np.sqrt(spread + EPSILON)
        state *= norm[0]
        state += norm[1]
        return state

    def _gelu(self, state: Any) -> Any:
        """x times the share of a normal distribution below x, in place.

        The error function is Abramowitz and Stegun's 7.1.26, true to 1.5e-7: what 32 bits hold.
        """
        np = self._np
        rows = state.reshape(-1, state.shape[-1])
        for first in range(0, len(rows), ROWS):
            x = rows[first : first + ROWS]
            z = np.abs(x) * np.float32(0.7071067811865476)
            t = 1.0 / (1.0 + np.float32(0.3275911) * z)
            tail = np.float32(1.061405429) * t
            for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
                tail += np.float32(term)
                tail *= t
            np.multiply(z, z, out=z)
            tail *= np.exp(-z, out=z)
            # Half of the tail is the share above |x|.
            x *= np.where(x >= 0, 1.0 - 0.5 * tail, 0.5 * tail)
        return state


def _layer(tensors: Mapping[str, Any], where: str, np: Any) -> _Layer:
    names = [f"{where}attention.self.{part}" for part in ("query", "key", "value")]
    attend = np.concatenate([tensors[f"{name}.weight"] for name in names]).T.copy()
    shift = np.concatenate([tensors[f"{name}.bias"] for name in names])
    # Attention divides by the root of a head's size; dividing the queries comes to the same.
    size = attend.shape[0]
    root = np.float32((size // HEADS) ** 0.5)
    attend[:, :size] /= root
    shift[:size] /= root
    return _Layer(
        (attend, shift),
        _turned(tensors, f"{where}attention.output.dense"),
        _pair(tensors, f"{where}attention.output.LayerNorm"),
        _turned(tensors, f"{where}intermediate.dense"),
        _turned(tensors, f"{where}output.dense"),
        _pair(tensors, f"{where}output.LayerNorm"),
    )


def _pair(tensors: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def _turned(tensors: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    weight, bias = _pair(tensors, name)
    return weight.T.copy(), bias


def _times(state: Any, matrix: tuple[Any, Any]) -> Any:
    """All texts in one product: that is what the processor is quickest at."""
    flat = state.reshape(-1, state.shape[-1]) @ matrix[0]
    flat += matrix[1]
    return flat.reshape(*state.shape[:-1], -1)


NAME = "minilm"
MAX_PIECES = 256
# So many pieces go through the model at a time: enough for the processor, little for the memory.
PIECES_AT_ONCE = 2048


def connect(address: str) -> Remembered:
    """The embedder at `local:minilm`; its weights must have been pulled."""
    name = address.partition(":")[2]
    if name != NAME:
        raise ModelError(
            f"unknown local embedder {name!r}",
            where=address,
            fix=f"write local:{NAME}, or pass your own function",
        )
    path = weights.path(NAME)
    extras.require("numpy", extra="local", why="the local embedder")
    # One model in memory for all who use it.
    return shared((NAME, path), lambda: Remembered(MiniLM(path)))


class MiniLM:
    """Sentence embeddings of 384 numbers by all-MiniLM-L6-v2; longer texts count by their start.

    `path` is the file of its weights, with its vocabulary beside it; both are read when they are
    first needed.
    """

    name = f"local:{NAME}"
    method = "embeddings"
    # Its pieces are those of English; other languages come out as single letters or as unknown.
    languages = ("en",)

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._loaded: tuple[WordPiece, Any] | None = None

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector for each text, computed in a thread so that the loop lives on."""
        found: list[Sequence[float]] = await in_thread(self.vectors, texts)
        return found

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words and signs of a text that are not in its vocabulary: all have one vector."""
        with self._lock:
            return self._parts()[0].unknown(text)

    def vectors(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector of length 1 for each text, in order."""
        with self._lock:
            tokenizer, model = self._parts()
            pieces = [tokenizer.numbers(text, MAX_PIECES) for text in texts]
            # Texts of about the same length go together, so that little is padded.
            order = sorted(range(len(texts)), key=lambda place: -len(pieces[place]))
            found: list[Sequence[float]] = [()] * len(texts)
            while order:
                most = max(1, PIECES_AT_ONCE // len(pieces[order[0]]))
                batch, order = order[:most], order[most:]
                rows = model.vectors([pieces[place] for place in batch])
                for place, row in zip(batch, rows, strict=True):
                    found[place] = row
            return found

    def _parts(self) -> tuple[WordPiece, Any]:
        if self._loaded is None:
            np = extras.require("numpy", extra="local", why="the local embedder")
            tokenizer = WordPiece.load(self._path.with_name("vocab.txt"))
            self._loaded = tokenizer, Bert(read_tensors(self._path, np), np)
        return self._loaded
