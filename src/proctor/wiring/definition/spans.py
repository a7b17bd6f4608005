"""Spans become samples: recorded results, one or many, of one configuration or of several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.datasets.source import as_source
from proctor.errors import ConfigError, FieldMissing
from proctor.ports import SampleSource
from proctor.records import codec
from proctor.records.fields.view import RECORDED
from proctor.records.sample import Sample

_OWN = ("id", "input", "expected", "metadata")


class Spans(NamedTuple):
    """A dataset of spans; `single` if it was one span and no dataset."""

    source: SampleSource
    single: bool


def spans_of(thing: Any, recorded: Mapping[str, Any] | None) -> Spans:
    """What was given as a span, or as many, as a dataset.

    `recorded` holds what each configuration left behind, where it was one span.
    """
    single = _is_single(thing)
    _check_recorded(recorded)
    if recorded is not None and not single:
        raise ConfigError(
            "recorded results are given by configuration for one span",
            where="recorded",
            fix="in a dataset give every span its own: {'recorded': {configuration: result}}",
        )
    if single:
        sample = sample_of(thing, recorded)
        return Spans(as_source([sample]), single=True)
    if isinstance(thing, list | tuple):
        thing = [sample_of(one, number=number) for number, one in enumerate(thing, 1)]
    return Spans(as_source(thing), single=False)


def refuse_unrecorded(spans: Spans, configurations: Sequence[str]) -> None:
    """Refuse one span that does not hold what is to be looked at."""
    (sample,) = spans.source
    own = sample.metadata
    several = own.get(RECORDED)
    _check_recorded(several)
    if several is None and len(configurations) < 2:
        if "output" not in own and "error" not in own:
            raise FieldMissing(
                "the span has no output",
                where="output",
                fix='add "output" to the span, or pass target=… to run it',
            )
        return
    missing = [name for name in configurations if name not in (several or {})]
    if missing:
        raise ConfigError(
            f"nothing was recorded for the configurations {', '.join(missing)}, and there is "
            "no target to run them",
            fix="give target=…, or recorded={configuration: result}",
        )


def _check_recorded(recorded: Any) -> None:
    if recorded is None or (isinstance(recorded, Mapping) and recorded):
        return
    raise ConfigError(
        f"recorded results are a mapping of configurations to results, got {recorded!r}",
        where="recorded",
        fix='write {"low_temp": {"output": …}, "high_temp": {"output": …}}',
    )


def sample_of(
    span: Any, recorded: Mapping[str, Any] | None = None, *, number: int | None = None
) -> Sample[Any, Any]:
    """A span as a sample: what is not its id, input or expected value becomes metadata.

    >>> sample_of({"id": "7", "input": "2 + 2?", "output": "4"}).metadata
    {'output': '4'}
    """
    if isinstance(span, Sample):
        sample = span
    else:
        held = _mapping(span)
        metadata = {key: value for key, value in held.items() if key not in _OWN}
        told = held.get("metadata")
        if told is not None:
            metadata |= told if isinstance(told, Mapping) else {"metadata": told}
        name = held.get("id")
        if name is None:
            name = codec.digest(held)[:12] if number is None else f"span-{number}"
        # A dataset's samples have an input; a span may be looked at without knowing its own.
        asked = "" if held.get("input") is None else held["input"]
        sample = Sample(str(name), asked, held.get("expected"), metadata)
    if recorded is None:
        return sample
    results = {str(name): _result(name, result) for name, result in recorded.items()}
    return msgspec.structs.replace(sample, metadata={**sample.metadata, RECORDED: results})


def _result(configuration: Any, result: Any) -> dict[str, Any]:
    found = result if isinstance(result, Mapping) else codec.plain(result)
    if isinstance(found, Mapping):
        return {str(key): value for key, value in found.items()}
    raise ConfigError(
        f"a recorded result is a mapping with an output, got {result!r}",
        where=f"recorded.{configuration}",
        fix=f'write {{{str(configuration)!r}: {{"output": {result!r}}}}}',
    )


def _is_single(thing: Any) -> bool:
    if isinstance(thing, Mapping | Sample):
        return True
    many = isinstance(thing, str | Path | list | tuple | SampleSource | Iterator)
    # The fields of a pydantic model can be iterated over, yet it is one thing.
    return not many and (hasattr(type(thing), "model_fields") or not hasattr(thing, "__iter__"))


def _mapping(span: Any) -> dict[str, Any]:
    found = span if isinstance(span, Mapping) else codec.plain(span)
    if not isinstance(found, Mapping):
        raise ConfigError(
            f"a span is a mapping, or an object with fields, not {type(span).__name__}",
            fix='give {"input": …, "output": …, "usage": {…}, "latency_ms": …}',
        )
    return {str(key): value for key, value in found.items()}
