"""Recorded spans that are run anew: what they left behind then is what they are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from proctor.fields.context import BASELINE
from proctor.ports import SampleSource
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

# What a run leaves behind; run anew, a span's own record of it is what was before.
LEFT_BEHIND = ("output", "usage", "latency_ms", "session", "error")


class RunAnew:
    """A dataset whose samples may hold what was recorded of them: that becomes their baseline."""

    def __init__(self, source: SampleSource) -> None:
        self._source = source

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return map(as_before, self._source)

    def inspect(self) -> DatasetInfo:
        return self._source.inspect()


def as_before(sample: Sample[Any, Any]) -> Sample[Any, Any]:
    """A sample whose record of an earlier run is its baseline, unless it names one itself.

    >>> as_before(Sample("1", "2 + 2?", metadata={"output": "5", "topic": "sums"})).metadata
    {'topic': 'sums', 'baseline': {'output': '5'}}
    """
    metadata = dict(sample.metadata)
    known = any(key.startswith(f"{BASELINE}_") or key == BASELINE for key in metadata)
    then = {key: metadata.pop(key) for key in LEFT_BEHIND if key in metadata}
    if not then:
        return sample
    if not known:
        metadata[BASELINE] = then
    return msgspec.structs.replace(sample, metadata=metadata)
