"""Recorded spans that are run anew: what they left behind then is what they are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proctor.datasets.iterator import IteratorDataset
from proctor.errors import DatasetError
from proctor.ports import SampleSource
from proctor.records.fields.context import BASELINE
from proctor.records.fields.view import RECORDED
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

# What a run leaves behind; run anew, a span's own record of it is what was before.
LEFT_BEHIND = ("output", "usage", "latency_ms", "session", "error")
CONFIGURATION = "configuration"


def recorded_configurations(source: SampleSource) -> tuple[str, ...]:
    """The configurations that samples record results of, in the order in which they come up.

    A dataset whose first sample records none is not read further; a stream is not read at all.

    >>> samples = [Sample("1", "q", metadata={"recorded": {"low": {"output": "x"}}})]
    >>> from proctor.datasets.source import as_source
    >>> recorded_configurations(as_source(samples))
    ('low',)
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
        # The dataset is inspected before the run; all its faults are reported together there.
        return ()
    return tuple(names)


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
    if CONFIGURATION in metadata:
        # It says how the recorded result was made, not how the target is called now.
        then[CONFIGURATION] = metadata.pop(CONFIGURATION)
    if not known:
        metadata[BASELINE] = then
    return msgspec.structs.replace(sample, metadata=metadata)
