"""What goes through mailboxes: a request to evaluate a sample, and what became of one."""

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

    `request_id` is the same however often it is sent, so that a second answer is recognised.
    `expects` is what the worker should be running, in words that are compared to the letter; empty
    if any will do.

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
    """A message that was set aside, with the reason and what happened to it before.

    `body` is the text as it was sent, whether or not it can be read; `history` has one line for
    each delivery that came to nothing, the last ones if there were many.
    """

    id: str
    body: str
    reason: str
    delivery_count: int
    enqueued_at: datetime
    died_at: datetime
    history: tuple[str, ...] = ()
    reply_to: str | None = None


def body_of(letter: DeadLetter, as_type: Any) -> Any:
    """The body of a dead letter in its type, or None if it cannot be read."""
    try:
        return msgspec.json.decode(letter.body, type=as_type)
    except Exception:
        # Also what is nested too deep, which is a RecursionError: it must not stop those who look.
        return None
