"""Convert spans (recorded results) to samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.datasets.dataset import make_source
from proctor.errors import ConfigError, FieldMissing
from proctor.ports import SampleSource
from proctor.records import codec
from proctor.records.fields.view import RECORDED
from proctor.records.sample import Sample

_SAMPLE_KEYS = ("id", "input", "expected", "metadata")


class Spans(NamedTuple):
    """A dataset of spans; `is_single` is True if the caller passed one span."""

    source: SampleSource
    is_single: bool


def convert_spans(value: Any, recorded: Mapping[str, Any] | None) -> Spans:
    """Convert a span or a dataset of spans.

    `recorded` holds the result of each configuration, for a single span.
    """
    _check_recorded(recorded)
    if _is_single(value):
        return Spans(make_source([convert_span(value, recorded)]), is_single=True)
    if recorded is not None:
        raise ConfigError(
            "recorded= works only for a single span",
            where="recorded",
            fix="in a dataset, add results to every span: {'recorded': {configuration: result}}",
        )
    if isinstance(value, list | tuple):
        value = [convert_span(span, number=number) for number, span in enumerate(value, 1)]
    return Spans(make_source(value), is_single=False)


def require_recorded_results(spans: Spans, configurations: Sequence[str]) -> None:
    """Reject a single span without an output, or without a result for each configuration."""
    (sample,) = spans.source
    metadata = sample.metadata
    recorded = metadata.get(RECORDED)
    _check_recorded(recorded)
    if recorded is None and len(configurations) < 2:
        if "output" not in metadata and "error" not in metadata:
            raise FieldMissing(
                "the span has no output", where="output", fix='add "output" to the span, or pass target=… to run it'
            )
        return
    missing = [name for name in configurations if name not in (recorded or {})]
    if missing:
        raise ConfigError(
            f"the configurations {', '.join(missing)} have no recorded results, and no target is set",
            fix="pass target=…, or recorded={configuration: result}",
        )


def _check_recorded(recorded: Any) -> None:
    if recorded is None or (isinstance(recorded, Mapping) and recorded):
        return
    raise ConfigError(
        f"recorded results must be a mapping of configurations to results, got {recorded!r}",
        where="recorded",
        fix='write {"low_temp": {"output": …}, "high_temp": {"output": …}}',
    )


def convert_span(
    span: Any, recorded: Mapping[str, Any] | None = None, *, number: int | None = None
) -> Sample[Any, Any]:
    """Convert a span to a sample: everything except id, input and expected becomes metadata."""
    if isinstance(span, Sample):
        sample = span
    else:
        values = _as_mapping(span)
        metadata = {key: value for key, value in values.items() if key not in _SAMPLE_KEYS}
        more = values.get("metadata")
        if more is not None:
            metadata |= more if isinstance(more, Mapping) else {"metadata": more}
        name = values.get("id")
        if name is None:
            name = codec.digest(values)[:12] if number is None else f"span-{number}"
        # A sample needs an input; a recorded span may have none.
        sample_input = "" if values.get("input") is None else values["input"]
        sample = Sample(str(name), sample_input, values.get("expected"), metadata)
    if recorded is None:
        return sample
    results = {str(name): _convert_result(name, result) for name, result in recorded.items()}
    return msgspec.structs.replace(sample, metadata={**sample.metadata, RECORDED: results})


def _convert_result(configuration: Any, result: Any) -> dict[str, Any]:
    values = result if isinstance(result, Mapping) else codec.to_plain(result)
    if isinstance(values, Mapping):
        return {str(key): value for key, value in values.items()}
    raise ConfigError(
        f"a recorded result must be a mapping with an output, got {result!r}",
        where=f"recorded.{configuration}",
        fix=f'write {{{str(configuration)!r}: {{"output": {result!r}}}}}',
    )


def _is_single(value: Any) -> bool:
    if isinstance(value, Mapping | Sample):
        return True
    is_dataset = isinstance(value, str | Path | list | tuple | SampleSource | Iterator)
    # A pydantic model is iterable, but it is a single span.
    return not is_dataset and (hasattr(type(value), "model_fields") or not hasattr(value, "__iter__"))


def _as_mapping(span: Any) -> dict[str, Any]:
    values = span if isinstance(span, Mapping) else codec.to_plain(span)
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"a span must be a mapping or an object with fields, not {type(span).__name__}",
            fix='pass {"input": …, "output": …, "usage": {…}, "latency_ms": …}',
        )
    return {str(key): value for key, value in values.items()}
