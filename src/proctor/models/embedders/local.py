"""Embedders on this machine: `local:minilm` for English, `local:multilingual` for 15 languages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from proctor.core import optional as extras
from proctor.errors import ModelError, suggest_name
from proctor.models import weights
from proctor.models.embedders.minilm import MiniLM
from proctor.models.embedders.multilingual import Multilingual
from proctor.models.embedding_cache import LOCAL_BATCH_CHARACTERS, CachedEmbedder, shared_embedder
from proctor.ports import Embedder

LOCAL_EMBEDDERS: dict[str, Callable[[Path], Embedder]] = {"minilm": MiniLM, "multilingual": Multilingual}


def connect(address: str) -> CachedEmbedder:
    """Connect a local embedder; run `proctor models pull NAME` first."""
    name = address.partition(":")[2]
    make = LOCAL_EMBEDDERS.get(name)
    if make is None:
        raise ModelError(f"unknown local embedder {name!r}", where=address, fix=suggest_name(name, LOCAL_EMBEDDERS))
    path = weights.path(name)
    extras.require("numpy", extra="local", why="the local embedder")
    # All users share one model in memory.
    return shared_embedder((name, path), lambda: CachedEmbedder(make(path), batch_characters=LOCAL_BATCH_CHARACTERS))
