"""`local:minilm`: sentence embeddings on this machine, without torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor import extras, weights
from proctor.asking.remembered import Remembered, shared
from proctor.embedders.wordpiece import WordPiece
from proctor.errors import ModelError
from proctor.threads import in_thread

NAME = "minilm"
MOST_PIECES = 256
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
            pieces = [tokenizer.numbers(text, MOST_PIECES) for text in texts]
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
            from proctor.embedders import safetensors
            from proctor.embedders.bert import Bert

            np = extras.require("numpy", extra="local", why="the local embedder")
            tokenizer = WordPiece.load(self._path.with_name("vocab.txt"))
            self._loaded = tokenizer, Bert(safetensors.read(self._path, np), np)
        return self._loaded
