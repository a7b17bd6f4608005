"""Refuse requests whose values would change on the way to a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import isnan
from typing import Any

from proctor.distributed.batches import decode_body, split_batches
from proctor.errors import MAX_ITEMS, MessageRefused, Problem
from proctor.ports import Mailbox, SampleSource
from proctor.records.mail import EvalRequest
from proctor.records.trial import Configuration

MAX_VALUE_LENGTH = 60
FIX = (
    "use values that JSON supports (strings, numbers, true, false, null, lists, mappings with "
    "string keys), or declare the types of the samples: body_type=EvalRequest[Input, Expected]"
)


def check_arrival(requests: Mailbox[EvalRequest[Any, Any]], batch: Iterable[EvalRequest[Any, Any]]) -> None:
    """Raise `MessageRefused` if a worker would receive other values; name samples and values."""
    problems = [
        Problem(f"sample {request.sample.id!r}", change)
        for request in batch
        if (change := find_change(requests, request))
    ]
    if problems:
        count = "1 request" if len(problems) == 1 else f"{len(problems)} requests"
        raise MessageRefused(
            f"the values of {count} would change on the way to a worker",
            where=requests.name,
            problems=problems[:MAX_ITEMS],
            fix=FIX,
        )


def check_dataset(
    requests: Mailbox[EvalRequest[Any, Any]],
    source: SampleSource,
    configurations: Sequence[Configuration],
    limit: int | None = None,
) -> bool:
    """Check a whole dataset before sending; return False if it can be read only once."""
    if source.inspect().fingerprint is None:
        return False
    options: Sequence[Configuration] = configurations
    for batch in split_batches(islice(source, limit)):
        check_arrival(requests, (EvalRequest(sample) for sample in batch))
        # All samples have the same options.
        check_arrival(requests, (EvalRequest(batch[0], configuration=configuration) for configuration in options))
        options = ()
    return True


def find_change(requests: Mailbox[EvalRequest[Any, Any]], request: EvalRequest[Any, Any]) -> str:
    """Say which value of a request would change on the way; empty if none does."""
    try:
        # A mailbox without a type returns plain data, as the worker's does.
        received = decode_body(requests.as_received(request), EvalRequest)
    except MessageRefused as error:
        return error.what
    except ValueError as error:
        return f"the worker could not read it: {error}"
    return describe_changes(request, received)


def describe_changes(request: EvalRequest[Any, Any], received: EvalRequest[Any, Any]) -> str:
    """Say which value of a request differs after the transfer; empty if none does."""
    pairs = (
        ("id", request.sample.id, received.sample.id),
        ("input", request.sample.input, received.sample.input),
        ("expected", request.sample.expected, received.sample.expected),
        ("metadata", request.sample.metadata, received.sample.metadata),
        ("configuration", request.configuration.options, received.configuration.options),
    )
    for path, sent, got in pairs:
        for change in _changes(sent, got, path):
            return change
    return ""


def _changes(sent: Any, got: Any, path: str) -> Iterator[str]:
    """List the paths at which two values differ; types count, and NaN equals NaN."""
    if isinstance(sent, Mapping) and isinstance(got, Mapping):
        yield from _changes_in_mapping(sent, got, path)
    elif isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
        for index, (item, other) in enumerate(zip(sent, got, strict=True)):
            yield from _changes(item, other, f"{path}.{index}")
    elif (names := _field_names(sent)) and type(sent) is type(got):
        for name in names:
            yield from _changes(getattr(sent, name), getattr(got, name), f"{path}.{name}")
    elif not _is_same(sent, got):
        yield f"{path}: {_describe_change(sent, got)}"


def _changes_in_mapping(sent: Mapping[Any, Any], got: Mapping[Any, Any], path: str) -> Iterator[str]:
    for key, value in sent.items():
        if key not in got:
            yield f"{path}: the key {_shown(key)} arrives changed"
        else:
            yield from _changes(value, got[key], f"{path}.{key}")
    if len(got) != len(sent):
        yield f"{path}: {len(sent)} keys arrive as {len(got)}"


def _field_names(value: Any) -> tuple[str, ...]:
    if isinstance(value, type):
        return ()
    fields: Any = getattr(value, "__struct_fields__", getattr(value, "__dataclass_fields__", ()))
    return tuple(fields)


def _is_same(sent: Any, got: Any) -> bool:
    if getattr(sent, "ndim", None) == 0:
        # A numpy scalar is equal to the number it contains.
        sent = sent.tolist()
    if isinstance(sent, bool) or isinstance(got, bool) or sent is None or got is None:
        return sent is got
    for plain_type in (str, int, float):
        # A subclass, such as an enum of texts, has the same value.
        if isinstance(sent, plain_type) and type(got) is plain_type:
            are_nan = plain_type is float and isnan(float(sent)) and isnan(float(got))
            return bool(sent == got) or are_nan
    try:
        return type(sent) is type(got) and bool(sent == got)
    except Exception:
        # A user-defined comparison may raise anything; such values count as different.
        return False


def _describe_change(sent: Any, got: Any) -> str:
    if type(sent) is type(got):
        return f"{_shown(sent)} arrives as {_shown(got)}"
    if isinstance(sent, float) and got is None:
        return f"{sent} arrives as null"
    return f"{_with_article(sent)} arrives as {_with_article(got)}"


def _with_article(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"
