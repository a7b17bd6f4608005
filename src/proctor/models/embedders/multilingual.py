"""`local:multilingual`: sentence embeddings in 15 languages on this machine, with numpy only."""

from __future__ import annotations

import re
import struct
import threading
import unicodedata
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from proctor.core import optional as extras
from proctor.core.threads import run_in_thread
from proctor.errors import ModelError
from proctor.models.blas import use_one_thread
from proctor.models.protobuf import read_fields

UNKNOWN, BEGIN, END = 0, 1, 2
SPACE = "\u2581"
# An unknown character costs this much more than the rarest piece.
UNKNOWN_PENALTY = 10.0


class Unigrams:
    """Splits a text into the most probable sequence of pieces (SentencePiece's unigram model)."""

    def __init__(self, pieces: Sequence[tuple[str, float]]) -> None:
        self._ids: dict[str, int] = {}
        # Beginnings of pieces, so that a search stops where no piece continues.
        for piece, _ in pieces:
            for end in range(1, len(piece)):
                self._ids.setdefault(piece[:end], -1)
        self._ids.update((piece, number) for number, (piece, _) in enumerate(pieces))
        self._scores = [score for _, score in pieces]
        self._unknown_score = min(self._scores) - UNKNOWN_PENALTY
        self._longest = max(len(piece) for piece, _ in pieces)

    @classmethod
    def load(cls, path: Path) -> Unigrams:
        """Read the pieces and their scores from a SentencePiece model."""
        pieces = []
        try:
            for number, content in read_fields(memoryview(path.read_bytes())):
                if number == 1 and isinstance(content, memoryview):
                    fields: dict[int, Any] = dict(read_fields(content))
                    score = struct.unpack("<f", fields[2])[0] if 2 in fields else 0.0
                    pieces.append((bytes(fields[1]).decode(), score))
        except (IndexError, KeyError, ValueError, TypeError, struct.error):
            pieces = []
        if not pieces:
            raise ModelError("it is not a SentencePiece model", where=str(path))
        return cls(pieces)

    def token_ids(self, text: str, max_tokens: int) -> list[int]:
        """Return the ids of the pieces between a begin and an end mark, cut to `max_tokens`."""
        # A piece has at least one character.
        text = normalize(text[: max_tokens * self._longest])
        ids = [piece for _, piece in self._split(text)] or [UNKNOWN]
        return [BEGIN, *ids[: max_tokens - 2], END]

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Return the characters that no piece contains."""
        text = normalize(text)
        return tuple(text[start] for start, piece in self._split(text) if piece == UNKNOWN)

    def _split(self, text: str) -> list[tuple[int, int]]:
        """Return the start and the id of each piece of the most probable split (Viterbi's algorithm)."""
        get, scores = self._ids.get, self._scores
        # For each end: the best score, and the start and id of the last piece.
        best = [0.0] + [-1e38] * len(text)
        last = [(0, UNKNOWN)] * (len(text) + 1)
        for start in range(len(text)):
            is_known = False
            for end in range(start + 1, min(start + self._longest, len(text)) + 1):
                piece = get(text[start:end])
                if piece is None:
                    break
                if piece >= 0:
                    is_known = is_known or end == start + 1
                    score = best[start] + scores[piece]
                    if score > best[end]:
                        best[end], last[end] = score, (start, piece)
            if not is_known and best[start] + self._unknown_score > best[start + 1]:
                best[start + 1], last[start + 1] = best[start] + self._unknown_score, (start, UNKNOWN)
        split, end = [], len(text)
        while end:
            end, piece = last[end]
            split.append((end, piece))
        return split[::-1]


_REMOVED = re.compile("[\u0001-\u0008\u000b\u000e-\u001f\u007f\u008f\u009f]")
_SPACES = re.compile("[\\s\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd\u1680]+")


def normalize(text: str) -> str:
    """Apply Unicode's NFKC, and write spaces as the model's pieces do."""
    text = _SPACES.sub(" ", unicodedata.normalize("NFKC", _REMOVED.sub("", text))).strip(" ")
    return SPACE + text.replace(" ", SPACE) if text else ""


CHUNKS = 17
DIMENSIONS, FILTERS = 512, 256
# The widths of the three convolutions, and how many tokens before the current one each sees.
WINDOWS = ((2, 0), (3, 1), (5, 2))
# Tokens in one batch: enough to read the weights rarely, and little memory.
BATCH_TOKENS = 512
MAX_PIECES = 512


class ConvolutionEncoder:
    """The encoder of USE-multilingual v3: embeddings, three convolutions, a sum over tokens, dense layers."""

    def __init__(self, path: Path, np: Any) -> None:
        self._np = np
        with np.load(path, allow_pickle=False) as stored:
            # Bytes, because 32-bit numbers would take four times the memory; pieces are spread over the chunks.
            rows = stored["q1"].shape[0]
            self._table = np.empty((CHUNKS * rows, DIMENSIONS), dtype=np.uint8)
            for chunk in range(CHUNKS):
                self._table[chunk::CHUNKS] = stored[f"q{chunk + 1}"]
            self._weights = {name: stored[name] for name in stored.files if not re.fullmatch(r"q\d+", name)}
        self._epsilon = np.float32(self._weights["eps"])
        # The three convolutions share one projection and one normalization.
        joined = {
            name: np.concatenate([self._weights[f"{name}{width}"] for width, _ in WINDOWS], axis=-1)
            for name in ("proj", "proj_b", "ln_g", "ln_b")
        }
        self._projection, self._projection_bias = joined["proj"], joined["proj_b"]
        self._gain, self._offset = joined["ln_g"], joined["ln_b"]

    def vectors(self, batch: Sequence[Sequence[int]]) -> Any:
        """Return one row of length 1 for each text."""
        with use_one_thread(self._np):
            return self._encode(batch)

    def _encode(self, batch: Sequence[Sequence[int]]) -> Any:
        np, w = self._np, self._weights
        lengths = np.array([len(ids) for ids in batch])
        starts = np.array([0, *accumulate(lengths[:-1])])
        ids = np.concatenate([np.array(part) for part in batch])
        chunks = ids % CHUNKS
        embeddings = self._table[ids] * w["scale"][chunks, None] + w["lo"][chunks, None]
        joint = embeddings @ self._projection + self._projection_bias
        states = np.hsplit(self._normalize(joint, self._gain, self._offset), len(WINDOWS))
        convolved = [
            self._convolve(state, width, _windows(starts, lengths, width, before, np))
            for state, (width, before) in zip(states, WINDOWS, strict=True)
        ]
        features = self._normalize(np.hstack([embeddings, *convolved]), w["ln_g"], w["ln_b"])
        # The sum before the projection, which is linear: fewer rows to multiply.
        sums = np.add.reduceat(features, starts, axis=0) @ w["cnn_W"] + lengths[:, None] * w["cnn_b"]
        state = (sums / np.sqrt(lengths)[:, None]).astype(np.float32)
        hidden = np.maximum(np.maximum(state @ w["d0"], 0) @ w["d1"] + state @ w["p1"], 0)
        output = np.tanh(np.maximum(hidden @ w["d2"], 0) @ w["d3"] + hidden @ w["p3"])
        return output / np.linalg.norm(output, axis=1, keepdims=True)

    def _convolve(self, state: Any, width: int, windows: Any) -> Any:
        np, w = self._np, self._weights
        for layer in (f"1_{width}", f"2_{width}"):
            padded = np.vstack([state, np.zeros((1, FILTERS), dtype=np.float32)])
            inputs = padded[windows].reshape(len(state), width * FILTERS)
            state = np.maximum(inputs @ w[f"w{layer}"] + w[f"b{layer}"], 0) + state
        return state

    def _normalize(self, state: Any, gain: Any, offset: Any) -> Any:
        state = state - state.mean(axis=-1, keepdims=True)
        spread = self._np.einsum("ij,ij->i", state, state)[:, None] / state.shape[-1]
        return state / self._np.sqrt(spread + self._epsilon) * gain + offset


def _windows(starts: Any, lengths: Any, width: int, before: int, np: Any) -> Any:
    """Return the rows that each token's window covers; the row after the last for places outside of its text."""
    tokens = int(lengths.sum())
    rows = np.arange(tokens)[:, None] + np.arange(-before, width - before)
    first = np.repeat(starts, lengths)[:, None]
    inside = (rows >= first) & (rows < first + np.repeat(lengths, lengths)[:, None])
    return np.where(inside, rows, tokens)


class Multilingual:
    """Sentence embeddings of 512 numbers by USE-multilingual v3.

    `path` is the file of the weights, in the folder of the pieces; both are loaded on first use.
    """

    name = "local:multilingual"
    method = "embeddings"
    languages = (
        "ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh",
    )  # fmt: skip

    def __init__(self, path: Path) -> None:
        self._path = path
        # One computes at a time, to limit memory; the tokenizer needs no lock.
        self._compute_lock, self._load_lock = threading.Lock(), threading.Lock()
        self._loaded: tuple[Unigrams, ConvolutionEncoder] | None = None

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        vectors: list[Sequence[float]] = await run_in_thread(self.vectors, texts)
        return vectors

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Return the characters outside of the vocabulary, which all have the same vector."""
        return self._load()[0].unknown_words(text)

    def vectors(self, texts: Sequence[str]) -> list[Sequence[float]]:
        with self._compute_lock:
            pieces, encoder = self._load()
            waiting = [pieces.token_ids(text, MAX_PIECES) for text in texts]
            vectors: list[Sequence[float]] = []
            while waiting:
                totals = accumulate(map(len, waiting))
                count = max(1, sum(total <= BATCH_TOKENS for total in totals))
                vectors.extend(encoder.vectors(waiting[:count]))
                waiting = waiting[count:]
            return vectors

    def _load(self) -> tuple[Unigrams, ConvolutionEncoder]:
        with self._load_lock:
            if self._loaded is None:
                np = extras.require("numpy", extra="local", why="the local embedder")
                self._loaded = Unigrams.load(self._path.with_name("sp.model")), ConvolutionEncoder(self._path, np)
            return self._loaded
