"""The bodies of mailbox messages: evaluation requests and dead letters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Generic
from uuid import uuid4

import msgspec

from proctor.records.sample import ExpectedT, InputT, Sample
from proctor.records.trial import Configuration


class EvalRequest(
    msgspec.Struct, Generic[InputT, ExpectedT], frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A request to run and score one sample.

    `request_id` stays the same when a request is sent again, so that duplicate answers are recognized.
    `expects` is the exact description of the setup that the worker should run; empty accepts any worker.

    >>> EvalRequest(Sample("1", "What is 2 + 2?", "4"), run_id="r1").sample.id
    '1'
    """

    sample: Sample[InputT, ExpectedT]
    request_id: str = msgspec.field(default_factory=lambda: uuid4().hex)
    created_at: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))
    run_id: str = ""
    configuration: Configuration = Configuration()
    epoch: int = 0
    expects: str = ""


class DeadLetter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A message that could not be processed, with the reason and its history.

    `body` is the text as it was sent, readable or not; `history` has one line for each failed delivery; only the most
    recent are stored.
    """

    id: str
    body: str
    reason: str
    delivery_count: int
    enqueued_at: datetime
    died_at: datetime
    history: tuple[str, ...] = ()
    reply_to: str | None = None


def decode_body(letter: DeadLetter, as_type: Any) -> Any:
    """Decode the body of a dead letter, or return None if it cannot be read."""
    try:
        return msgspec.json.decode(letter.body, type=as_type)
    except Exception:
        # Deeply nested bodies raise RecursionError, which must not stop the listing.
        return None
