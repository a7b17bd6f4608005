"""Bodies as records, also out of a mailbox that was not told their type."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from proctor.records.lossless import restored_result
from proctor.records.trial import EvalResult

T = TypeVar("T")


def as_record(body: Any, kind: type[T]) -> T:
    """The body as it should be, or a ValueError that says what does not fit.

    >>> from proctor.records.mail import EvalRequest
    >>> as_record({"sample": {"id": "1", "input": "2 + 2"}}, EvalRequest).sample.input
    '2 + 2'
    """
    if isinstance(body, kind):
        return body
    try:
        record = msgspec.convert(body, kind)
        return cast(T, restored_result(record)) if isinstance(record, EvalResult) else record
    except ValueError:
        raise
    except Exception as error:
        # Objects of the user's own may raise anything, and no message may stop those who read.
        raise ValueError(f"{type(error).__name__}: {error}") from None
