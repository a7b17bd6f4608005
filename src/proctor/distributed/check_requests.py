"""Reject requests whose values would change in transit to a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import isnan
from typing import Any

from proctor.distributed.batches import decode_body, split_batches
from proctor.errors import MAX_ITEMS, MessageRefused, Problem
from proctor.ports import Mailbox, SampleSource
from proctor.records.formatting import format_count
from proctor.records.mail import EvalRequest
from proctor.records.trial import Configuration

MAX_VALUE_LENGTH = 60
FIX = (
    "use values that JSON supports (strings, numbers, true, false, null, lists, mappings with "
    "string keys), or declare the types of the samples: body_type=EvalRequest[Input, Expected]"
)


def check_arrival(requests: Mailbox[EvalRequest[Any, Any]], batch: Iterable[EvalRequest[Any, Any]]) -> None:
    """Raise `MessageRefused` if a worker would receive different values; the error lists samples and values."""
    problems = [
        Problem(f"sample {request.sample.id!r}", change)
        for request in batch
        if (change := find_change(requests, request))
    ]
    if problems:
        count = format_count(len(problems), "request")
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
    """Describe a value of a request that would change in transit; return "" if none would."""
    try:
        # A mailbox without a type returns plain data, like the worker's mailbox.
        received = decode_body(requests.as_received(request), EvalRequest)
    except MessageRefused as error:
        return error.what
    except ValueError as error:
        return f"a worker could not read the request: {error}"
    return describe_changes(request, received)


def describe_changes(request: EvalRequest[Any, Any], received: EvalRequest[Any, Any]) -> str:
    """Describe a value of a request that differs after the transfer; return "" if none does."""
    pairs = (
        ("id", request.sample.id, received.sample.id),
        ("input", request.sample.input, received.sample.input),
        ("expected", request.sample.expected, received.sample.expected),
        ("metadata", request.sample.metadata, received.sample.metadata),
        ("evaluators", list(request.sample.evaluators), list(received.sample.evaluators)),
        ("configuration", request.configuration.options, received.configuration.options),
    )
    for path, sent_value, received_value in pairs:
        for change in _find_changes(sent_value, received_value, path):
            return change
    return ""


def _find_changes(sent: Any, received: Any, path: str) -> Iterator[str]:
    """Yield the differences between two values with their paths; types count, and NaN equals NaN."""
    if isinstance(sent, Mapping) and isinstance(received, Mapping):
        yield from _find_changes_in_mapping(sent, received, path)
    elif isinstance(sent, list) and isinstance(received, list) and len(sent) == len(received):
        for index, (item, other) in enumerate(zip(sent, received, strict=True)):
            yield from _find_changes(item, other, f"{path}.{index}")
    elif (names := _field_names(sent)) and type(sent) is type(received):
        for name in names:
            yield from _find_changes(getattr(sent, name), getattr(received, name), f"{path}.{name}")
    elif not _is_same(sent, received):
        yield f"{path}: {_describe_change(sent, received)}"


def _find_changes_in_mapping(sent: Mapping[Any, Any], received: Mapping[Any, Any], path: str) -> Iterator[str]:
    for key, value in sent.items():
        if key not in received:
            yield f"{path}: the key {_shorten(key)} arrives changed"
        else:
            yield from _find_changes(value, received[key], f"{path}.{key}")
    if len(received) != len(sent):
        yield f"{path}: {len(sent)} keys arrive as {len(received)}"


def _field_names(value: Any) -> tuple[str, ...]:
    if isinstance(value, type):
        return ()
    fields: Any = getattr(value, "__struct_fields__", getattr(value, "__dataclass_fields__", ()))
    return tuple(fields)


def _is_same(sent: Any, received: Any) -> bool:
    if getattr(sent, "ndim", None) == 0:
        # A numpy scalar equals the number it contains.
        sent = sent.tolist()
    if isinstance(sent, bool) or isinstance(received, bool) or sent is None or received is None:
        return sent is received
    for plain_type in (str, int, float):
        # A subclass, such as a string enum, has the same value.
        if isinstance(sent, plain_type) and type(received) is plain_type:
            are_nan = plain_type is float and isnan(float(sent)) and isnan(float(received))
            return bool(sent == received) or are_nan
    try:
        return type(sent) is type(received) and bool(sent == received)
    except Exception:
        # A user-defined comparison may raise anything; such values count as different.
        return False


def _describe_change(sent: Any, received: Any) -> str:
    if type(sent) is type(received):
        return f"{_shorten(sent)} arrives as {_shorten(received)}"
    if isinstance(sent, float) and received is None:
        return f"{sent} arrives as null"
    return f"{_with_article(sent)} arrives as {_with_article(received)}"


def _with_article(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"
