"""Datasets: samples from memory, JSONL, CSV and JSON files, iterators and chat logs."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> the public names that it defines.
EXPORTS = {
    "datasets.dataset": ("Dataset", "IteratorDataset"),
    "datasets.json_document": ("JSONDataset",),
    "datasets.jsonl": ("JSONLDataset",),
    "datasets.sessions": ("SessionDataset",),
    "datasets.table": ("CSVDataset",),
    "records.sample": ("Sample",),
}

__all__ = ["CSVDataset", "Dataset", "IteratorDataset", "JSONDataset", "JSONLDataset", "Sample", "SessionDataset"]

__getattr__, __dir__ = lazy_names("proctor.datasets", EXPORTS)
