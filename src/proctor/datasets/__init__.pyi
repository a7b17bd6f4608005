# Written by tools/generate.py from EXPORTS in proctor.datasets.
from proctor.datasets.dataset import Dataset as Dataset
from proctor.datasets.dataset import IteratorDataset as IteratorDataset
from proctor.datasets.json_document import JSONDataset as JSONDataset
from proctor.datasets.jsonl import JSONLDataset as JSONLDataset
from proctor.datasets.sessions import SessionDataset as SessionDataset
from proctor.datasets.table import CSVDataset as CSVDataset
from proctor.records.sample import Sample as Sample

__all__ = [
    "CSVDataset",
    "Dataset",
    "IteratorDataset",
    "JSONDataset",
    "JSONLDataset",
    "Sample",
    "SessionDataset",
]
EXPORTS: dict[str, tuple[str, ...]]
