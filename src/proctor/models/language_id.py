"""Identify the language of a text with fastText's compressed model, with numpy only."""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.core import optional as extras
from proctor.errors import ModelError

NAME = "languages"
_MAGIC, _VERSION = 793712314, 12
_WORD, _LABEL = 0, 1
_LABEL_PREFIX = "__label__"
_END_OF_TEXT = "</s>"
_CENTROIDS = 256


class _FileReader:
    """Reads little-endian values one after another."""

    def __init__(self, data: bytes, np: Any) -> None:
        self._data, self._np, self._position = data, np, 0

    def unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._data, self._position)
        self._position += struct.calcsize(f"<{layout}")
        return values

    def text(self) -> str:
        end = self._data.index(b"\0", self._position)
        value = self._data[self._position : end].decode()
        self._position = end + 1
        return value

    def numbers(self, kind: str, count: int) -> Any:
        values = self._np.frombuffer(self._data, dtype=kind, count=count, offset=self._position)
        self._position += values.nbytes
        return values


class LanguageModel:
    """Ranks 176 languages by their probability for a text; the model is loaded on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._weights: _Weights | None = None

    def rank(self, text: str, count: int = 3) -> list[tuple[str, float]]:
        """Return the codes of the most probable languages, with their probabilities."""
        with self._lock:
            if self._weights is None:
                np = extras.require("numpy", extra="local", why="the identification of languages")
                self._weights = _Weights(self._path, np)
        return self._weights.rank(text)[:count]


class _Weights:
    """A model of fastText: the mean vector of words and letter groups, then a tree of yes/no decisions."""

    def __init__(self, path: Path, np: Any) -> None:
        self._np = np
        try:
            self._read(_FileReader(path.read_bytes(), np))
        except (struct.error, ValueError, IndexError):
            raise ModelError("it is not a compressed fastText model", where=str(path)) from None

    def _read(self, file: _FileReader) -> None:
        if file.unpack("ii") != (_MAGIC, _VERSION):
            raise ValueError("another format")
        *_, self._buckets, self._shortest, self._longest, _, _ = file.unpack("12id")
        entries, self._word_count, _, _, kept_groups = file.unpack("iiiqq")
        dictionary = [(file.text(), *file.unpack("qb")) for _ in range(entries)]
        self._words = {text: row for row, (text, _, kind) in enumerate(dictionary) if kind == _WORD}
        labels = [(text.removeprefix(_LABEL_PREFIX), count) for text, count, kind in dictionary if kind == _LABEL]
        self._languages = [language for language, _ in labels]
        self._paths = find_huffman_paths([count for _, count in labels])
        # The rows of the groups of letters that the compressed model kept, by hash.
        self._group_rows = dict(file.unpack("ii") for _ in range(kept_groups))
        self._vectors = self._read_vectors(file)
        file.unpack("?")
        rows, columns = file.unpack("qq")
        self._decisions = file.numbers("<f4", rows * columns).reshape(rows, columns)

    def _read_vectors(self, file: _FileReader) -> Any:
        """Read the compressed vectors: each part of a vector is the number of a centroid."""
        np = self._np
        _, has_norms, rows, _, size = file.unpack("??qqi")
        codes = file.numbers("u1", size).reshape(rows, -1)
        centroids, width = self._read_centroids(file)
        parts = [
            centroids[part * _CENTROIDS * width : (part + 1) * _CENTROIDS * width].reshape(_CENTROIDS, -1)
            for part in range(codes.shape[1])
        ]
        vectors = np.hstack([part[codes[:, index]] for index, part in enumerate(parts)])
        if not has_norms:
            return vectors
        norm_codes = file.numbers("u1", rows)
        norms, _ = self._read_centroids(file)
        return vectors * norms[norm_codes][:, None]

    def _read_centroids(self, file: _FileReader) -> tuple[Any, int]:
        dimensions, _, width, _ = file.unpack("4i")
        return file.numbers("<f4", dimensions * _CENTROIDS), width

    def rank(self, text: str) -> list[tuple[str, float]]:
        rows = [row for word in [*text.split(), _END_OF_TEXT] for row in self._list_rows(word)]
        if not rows:
            return []
        np = self._np
        # Beyond these numbers a decision is certain, and `exp` would overflow.
        logits = np.clip(self._decisions @ self._vectors[rows].mean(axis=0), -50.0, 50.0)
        yes = 1.0 / (1.0 + np.exp(-logits))
        probabilities = [
            math.prod(float(yes[decision]) if is_yes else 1.0 - float(yes[decision]) for decision, is_yes in path)
            for path in self._paths
        ]
        return sorted(zip(self._languages, probabilities, strict=True), key=lambda item: -item[1])

    def _list_rows(self, word: str) -> list[int]:
        """Return the rows of a word and of its groups of letters."""
        rows = [self._words[word]] if word in self._words else []
        if word == _END_OF_TEXT:
            return rows
        marked = f"<{word}>"
        for start in range(len(marked)):
            for end in range(start + self._shortest, min(start + self._longest, len(marked)) + 1):
                row = self._group_rows.get(hash_letters(marked[start:end]) % self._buckets)
                if row is not None:
                    rows.append(self._word_count + row)
        return rows


def hash_letters(letters: str) -> int:
    """Return the hash of fastText: FNV-1a, on bytes with a sign."""
    value = 2166136261
    for byte in letters.encode("utf-8", "replace"):
        signed = byte if byte < 128 else byte | 0xFFFFFF00
        value = ((value ^ signed) * 16777619) & 0xFFFFFFFF
    return value


def find_huffman_paths(counts: Sequence[int]) -> list[list[tuple[int, bool]]]:
    """Return for each label the decisions that lead to it; `counts` are in descending order.

    >>> find_huffman_paths([5, 3, 1])
    [[(1, True)], [(0, True), (1, False)], [(0, False), (1, False)]]
    """
    size = len(counts)
    totals = [*counts, *([math.inf] * (size - 1))]
    parents: dict[int, tuple[int, bool]] = {}
    leaf, inner = size - 1, size
    for node in range(size, 2 * size - 1):
        total = 0.0
        for is_yes in (False, True):
            if leaf >= 0 and totals[leaf] < totals[inner]:
                child, leaf = leaf, leaf - 1
            else:
                child, inner = inner, inner + 1
            parents[child] = node - size, is_yes
            total += totals[child]
        totals[node] = total
    paths = []
    for label in range(size):
        path, node = [], label
        while node in parents:
            path.append(parents[node])
            node = parents[node][0] + size
        paths.append(path)
    return paths
