"""`local:minilm`: sentence embeddings on this machine, without torch."""

from __future__ import annotations

import functools
import math
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.core import optional as extras
from proctor.core.threads import run_in_thread
from proctor.errors import ModelError
from proctor.models.blas import use_one_thread

# A larger number means that the file has a different format.
MAX_HEADER_BYTES = 100_000_000


class _Tensor(msgspec.Struct, frozen=True):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def read_tensors(path: Path, np: Any) -> Mapping[str, Any]:
    """Map the 32-bit tensors of a file into memory, by name; `np` is numpy."""
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    length = int.from_bytes(bytes(raw[:8]), "little")
    if not 0 < length <= min(MAX_HEADER_BYTES, len(raw) - 8):
        raise ModelError("it is not a safetensors file", where=str(path))
    try:
        header = msgspec.json.decode(bytes(raw[8 : 8 + length]), type=dict[str, msgspec.Raw])
        tensors = {
            name: msgspec.json.decode(entry, type=_Tensor) for name, entry in header.items() if name != "__metadata__"
        }
    except msgspec.DecodeError as error:
        raise ModelError(f"its header cannot be read: {error}", where=str(path)) from None
    body = raw[8 + length :]
    return {
        name: _view_tensor(body, tensor, f"{path}: {name}", np)
        for name, tensor in tensors.items()
        if tensor.dtype == "F32"
    }


def _view_tensor(body: Any, tensor: _Tensor, where: str, np: Any) -> Any:
    begin, end = tensor.data_offsets
    if not 0 <= begin <= end <= len(body) or end - begin != 4 * math.prod(tensor.shape):
        raise ModelError("the file is cut off, or its header is wrong", where=where)
    return body[begin:end].view(np.dtype("<f4")).reshape(tensor.shape)


UNKNOWN, BEGIN, END = "[UNK]", "[CLS]", "[SEP]"
MAX_WORD_CHARS = 100
MAX_CACHED_WORDS = 50_000
# Each ideograph is a word.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class _CleanTable(dict[int, str]):
    """A translation table that removes control characters and makes each ideograph a word."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "\t\n\r":
            cleaned = " "
        elif code == 0xFFFD or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co"):
            cleaned = ""
        elif character.isspace():
            cleaned = " "
        elif any(low <= code <= high for low, high in _IDEOGRAPHS):
            cleaned = f" {character} "
        else:
            cleaned = character
        self[code] = cleaned
        return cleaned


class _LowerTable(dict[int, str]):
    """A translation table that converts to lower case, removes accents, and puts spaces around punctuation."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        lower = "" if category == "Mn" else character.lower()
        is_sign = category.startswith("P") or (code < 128 and category.startswith("S"))
        self[code] = f" {lower} " if is_sign else lower
        return self[code]


class WordPiece:
    """A tokenizer; special tokens such as `[SEP]` in a text are treated as plain text."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._ids = dict(vocabulary)
        missing = [token for token in (UNKNOWN, BEGIN, END) if token not in vocabulary]
        if missing:
            raise ModelError(f"the vocabulary lacks {', '.join(missing)}")
        self._clean_table, self._lower_table = _CleanTable(), _LowerTable()
        self._split_word = functools.lru_cache(maxsize=MAX_CACHED_WORDS)(self._longest_pieces)

    @classmethod
    def load(cls, path: Path) -> WordPiece:
        """Read a vocabulary with one piece on each line."""
        lines = path.read_text(encoding="utf-8").splitlines()
        return cls({piece: number for number, piece in enumerate(lines)})

    def words(self, text: str) -> list[str]:
        """Split a text into words and symbols, in lower case and without accents."""
        decomposed = unicodedata.normalize("NFD", text.translate(self._clean_table))
        return decomposed.translate(self._lower_table).split()

    def pieces(self, text: str) -> list[str]:
        """Split a text into pieces of the vocabulary; other words become `[UNK]`."""
        return list(chain.from_iterable(map(self._split_word, self.words(text))))

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Return the words that the vocabulary cannot represent."""
        return tuple(word for word in self.words(text) if self._split_word(word) == [UNKNOWN])

    def token_ids(self, text: str, max_tokens: int) -> list[int]:
        """Return the ids of the pieces between a start and an end token, truncated to `max_tokens`."""
        # Lazy: words after the last token are not split.
        pieces = islice(chain.from_iterable(map(self._split_word, self.words(text))), max_tokens - 2)
        return [self._ids[piece] for piece in chain([BEGIN], pieces, [END])]

    def _longest_pieces(self, word: str) -> list[str]:
        if len(word) > MAX_WORD_CHARS:
            return [UNKNOWN]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self._ids), None)
            if end is None:
                return [UNKNOWN]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces


HEADS = 12
EPSILON = 1e-12
# This many rows fit into the processor's cache while several functions process them.
ROWS = 32


class _Layer(NamedTuple):
    """The weights and biases of one layer; matrices are transposed for multiplication."""

    attention: tuple[Any, Any]
    attention_output: tuple[Any, Any]
    attention_norm: tuple[Any, Any]
    expand: tuple[Any, Any]
    contract: tuple[Any, Any]
    norm: tuple[Any, Any]


class Bert:
    """An encoder; the vector of a text is the mean over its tokens, normalized to length 1.

    `tensors` have the names of published BERT models; `np` is numpy.
    """

    def __init__(self, tensors: Mapping[str, Any], np: Any) -> None:
        self._np = np
        self._words = tensors["embeddings.word_embeddings.weight"]
        self._segments = tensors["embeddings.token_type_embeddings.weight"]
        self._positions = tensors["embeddings.position_embeddings.weight"]
        self._norm = _weight_and_bias(tensors, "embeddings.LayerNorm")
        count = 0
        self._layers: list[_Layer] = []
        while f"encoder.layer.{count}.output.dense.weight" in tensors:
            self._layers.append(_make_layer(tensors, f"encoder.layer.{count}.", np))
            count += 1

    def vectors(self, batch: Sequence[Sequence[int]]) -> Any:
        """Return one row for each text."""
        np = self._np
        lengths = [len(pieces) for pieces in batch]
        starts = [end - length for end, length in zip(accumulate(lengths), lengths, strict=True)]
        means = np.add.reduceat(self._encode(batch), starts) / np.array(lengths, dtype=np.float32)[:, None]
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def first_states(self, pairs: Sequence[tuple[Sequence[int], int]]) -> Any:
        """Return the state of the first token of each pair of texts, with the number of tokens of its first text."""
        return self._encode([ids for ids, _ in pairs], [length for _, length in pairs])

    def _encode(self, batch: Sequence[Sequence[int]], first_lengths: Sequence[int] | None = None) -> Any:
        """Return the states of all tokens, text after text without padding; only of each first token for pairs."""
        np = self._np
        lengths = [len(pieces) for pieces in batch]
        ids = np.fromiter(chain.from_iterable(batch), dtype=np.int64, count=sum(lengths))
        places = np.concatenate([np.arange(length) for length in lengths])
        segments = np.zeros(len(ids), dtype=np.int64)
        if first_lengths is not None:
            segments[:] = places >= np.repeat(first_lengths, lengths)
        state = self._normalize(self._words[ids] + self._positions[places] + self._segments[segments], self._norm)
        with use_one_thread(np):
            for layer in self._layers:
                attention = self._attend(layer, state, lengths)
                if first_lengths is not None and layer is self._layers[-1]:
                    state, attention = state[places == 0], attention[places == 0]
                state = self._normalize(state + _multiply(attention, layer.attention_output), layer.attention_norm)
                expanded = self._gelu(_multiply(state, layer.expand))
                state = self._normalize(state + _multiply(expanded, layer.contract), layer.norm)
        return state

    def _attend(self, layer: _Layer, state: Any, lengths: Sequence[int]) -> Any:
        np = self._np
        size = state.shape[1]
        heads = _multiply(state, layer.attention).reshape(-1, 3, HEADS, size // HEADS)
        result, start = np.empty_like(state), 0
        for length, texts in groupby(lengths):
            count = len(list(texts))
            rows = slice(start, start + count * length)
            query, key, value = heads[rows].reshape(count, length, *heads.shape[1:]).transpose(2, 0, 3, 1, 4)
            weights = query @ key.swapaxes(-1, -2)
            weights -= weights.max(axis=-1, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(axis=-1, keepdims=True)
            result[rows] = (weights @ value).transpose(0, 2, 1, 3).reshape(-1, size)
            start = rows.stop
        return result

    def _normalize(self, state: Any, norm: tuple[Any, Any]) -> Any:
        state -= state.mean(axis=-1, keepdims=True)
        spread = self._np.einsum("...i,...i->...", state, state)[..., None] / state.shape[-1]
        state /= self._np.sqrt(spread + EPSILON)
        state *= norm[0]
        state += norm[1]
        return state

    def _gelu(self, state: Any) -> Any:
        """Apply GELU in place.

        The error function is Abramowitz and Stegun's 7.1.26, accurate to 1.5e-7, about the precision of 32-bit floats.
        """
        np = self._np
        for first in range(0, len(state), ROWS):
            x = state[first : first + ROWS]
            size = np.abs(x)
            t = size * np.float32(0.3275911 * 0.5**0.5)
            t += np.float32(1.0)
            np.divide(np.float32(1.0), t, out=t)
            tail = t * np.float32(0.5 * 1.061405429)
            for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
                tail += np.float32(0.5 * term)
                tail *= t
            np.multiply(size, size, out=t)
            t *= np.float32(-0.5)
            # The tail is the probability of values above |x|.
            tail *= np.exp(t, out=t)
            tail *= size
            np.maximum(x, np.float32(0.0), out=x)
            x -= tail
        return state


def _make_layer(tensors: Mapping[str, Any], where: str, np: Any) -> _Layer:
    names = [f"{where}attention.self.{role}" for role in ("query", "key", "value")]
    weight = np.concatenate([tensors[f"{name}.weight"] for name in names]).T.copy()
    bias = np.concatenate([tensors[f"{name}.bias"] for name in names])
    # Attention divides by the root of a head's size; this divides the queries once instead.
    size = weight.shape[0]
    root = np.float32((size // HEADS) ** 0.5)
    weight[:, :size] /= root
    bias[:size] /= root
    return _Layer(
        (weight, bias),
        _transposed(tensors, f"{where}attention.output.dense"),
        _weight_and_bias(tensors, f"{where}attention.output.LayerNorm"),
        _transposed(tensors, f"{where}intermediate.dense"),
        _transposed(tensors, f"{where}output.dense"),
        _weight_and_bias(tensors, f"{where}output.LayerNorm"),
    )


def _weight_and_bias(tensors: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def _transposed(tensors: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    weight, bias = _weight_and_bias(tensors, name)
    return weight.T.copy(), bias


def _multiply(state: Any, matrix: tuple[Any, Any]) -> Any:
    product = state @ matrix[0]
    product += matrix[1]
    return product


MAX_PIECES = 256
# The number of tokens in a batch: large enough to be fast, small enough to save memory.
BATCH_TOKENS = 2048


class MiniLM:
    """Sentence embeddings of 384 numbers by all-MiniLM-L6-v2, which reads only the start of long texts.

    `path` is the file of the weights, in the folder of the vocabulary; both are loaded on first use.
    """

    name = "local:minilm"
    method = "embeddings"
    # The vocabulary is English; other languages become single letters or unknown words.
    languages = ("en",)

    def __init__(self, path: Path) -> None:
        self._path = path
        # One computes at a time, to limit memory; the tokenizer needs no lock.
        self._compute_lock, self._load_lock = threading.Lock(), threading.Lock()
        self._loaded: tuple[WordPiece, Any] | None = None

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        vectors: list[Sequence[float]] = await run_in_thread(self.vectors, texts)
        return vectors

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Return the words and signs outside of the vocabulary, which all have the same vector."""
        return self._load()[0].unknown_words(text)

    def vectors(self, texts: Sequence[str]) -> list[Sequence[float]]:
        with self._compute_lock:
            tokenizer, model = self._load()
            ids = [tokenizer.token_ids(text, MAX_PIECES) for text in texts]
            # Texts of the same length share one matrix product in the attention.
            order = sorted(range(len(texts)), key=lambda index: -len(ids[index]))
            vectors: list[Sequence[float]] = [()] * len(texts)
            while order:
                count = max(1, BATCH_TOKENS // len(ids[order[0]]))
                batch, order = order[:count], order[count:]
                rows = model.vectors([ids[index] for index in batch])
                for index, row in zip(batch, rows, strict=True):
                    vectors[index] = row
            return vectors

    def _load(self) -> tuple[WordPiece, Any]:
        with self._load_lock:
            if self._loaded is None:
                np = extras.require("numpy", extra="local", why="the local embedder")
                tokenizer = WordPiece.load(self._path.with_name("vocab.txt"))
                self._loaded = tokenizer, Bert(read_tensors(self._path, np), np)
            return self._loaded
