"""Rows of Parquet and Arrow files; class labels of Hugging Face datasets become their names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.core import optional as extras
from proctor.errors import DatasetError

_HUGGING_FACE = b"huggingface"
_FIX = "check that the file is complete"


def read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file as mappings."""
    parquet = extras.require("pyarrow.parquet", extra="parquet", why="Parquet")
    try:
        with parquet.ParquetFile(path) as file:
            features = read_features(file.schema_arrow.metadata)
            for batch in file.iter_batches():
                yield from resolve_labels(batch.to_pylist(), features)
    except (OSError, ValueError) as error:
        raise DatasetError(f"not a readable Parquet file: {error}", where=str(path), fix=_FIX) from None


def read_arrow(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of an Arrow file as mappings; `datasets` writes the streaming format."""
    ipc = extras.require("pyarrow.ipc", extra="parquet", why="Arrow")
    try:
        with path.open("rb") as source, ipc.open_stream(source) as stream:
            features = read_features(stream.schema.metadata)
            for batch in stream:
                yield from resolve_labels(batch.to_pylist(), features)
    except (OSError, ValueError) as error:
        raise DatasetError(f"not a readable Arrow file: {error}", where=str(path), fix=_FIX) from None


def read_features(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Return the features of a Hugging Face dataset from the metadata of its schema."""
    if not metadata or _HUGGING_FACE not in metadata:
        return {}
    features: dict[str, Any] = json.loads(metadata[_HUGGING_FACE]).get("info", {}).get("features") or {}
    return features


def resolve_labels(rows: list[dict[str, Any]], features: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Replace the numbers of class labels by their names."""
    resolvers = {name: resolver for name, feature in features.items() if (resolver := _find_resolver(feature))}
    for row in rows:
        for name, resolver in resolvers.items():
            if name in row:
                row[name] = resolver(row[name])
    return rows


def _find_resolver(feature: Any) -> Callable[[Any], Any] | None:
    """Return a function that names the labels inside a value; None if the feature has no labels."""
    if isinstance(feature, list):
        return _resolve_items(_find_resolver(feature[0]) if feature else None)
    if not isinstance(feature, dict):
        return None
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names") or []
        # -1 means that a row has no label.
        return lambda value: names[value] if isinstance(value, int) and 0 <= value < len(names) else None
    if "feature" in feature and "_type" in feature:
        return _resolve_items(_find_resolver(feature["feature"]))
    parts = {key: resolver for key, inner in feature.items() if (resolver := _find_resolver(inner))}
    if not parts:
        return None
    return lambda value: (
        {key: parts[key](item) if key in parts else item for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )


def _resolve_items(resolver: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    if resolver is None:
        return None

    def resolve(value: Any) -> Any:
        # A sequence of mappings is stored as a mapping of sequences.
        return [resolver(item) for item in value] if isinstance(value, list) else value

    return resolve
