"""Run recorded samples again, with the recorded results as the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proctor.datasets.dataset import IteratorDataset
from proctor.errors import DatasetError
from proctor.ports import SampleSource
from proctor.records.fields.context import BASELINE
from proctor.records.fields.view import RECORDED
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

RECORDED_KEYS = ("output", "usage", "latency_ms", "session", "error")
CONFIGURATION = "configuration"


def recorded_configurations(source: SampleSource) -> tuple[str, ...]:
    """Return the configurations with recorded results, in the order of their first occurrence.

    Reading stops if the first sample has no recorded results; iterators are not read.
    """
    names: dict[str, None] = {}
    try:
        for sample in () if isinstance(source, IteratorDataset) else source:
            results = sample.metadata.get(RECORDED)
            if isinstance(results, Mapping):
                names |= dict.fromkeys(map(str, results))
            elif not names:
                break
    except DatasetError:
        # The inspection before the run reports all problems together.
        return ()
    return tuple(names)


class RerunDataset:
    """A dataset whose recorded results become the baseline of its samples."""

    def __init__(self, source: SampleSource) -> None:
        self._source = source

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return map(move_recording_to_baseline, self._source)

    def inspect(self) -> DatasetInfo:
        return self._source.inspect()


def move_recording_to_baseline(sample: Sample[Any, Any]) -> Sample[Any, Any]:
    """Make the recorded result of a sample its baseline, unless it has a baseline already."""
    metadata = dict(sample.metadata)
    has_baseline = any(key.startswith(f"{BASELINE}_") or key == BASELINE for key in metadata)
    recording = {key: metadata.pop(key) for key in RECORDED_KEYS if key in metadata}
    if not recording:
        return sample
    if CONFIGURATION in metadata:
        # It describes the recorded result, not the call of the target now.
        recording[CONFIGURATION] = metadata.pop(CONFIGURATION)
    if not has_baseline:
        metadata[BASELINE] = recording
    return msgspec.structs.replace(sample, metadata=metadata)
