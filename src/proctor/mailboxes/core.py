"""The shared parts of all mailboxes: argument checks, body encoding, leased messages and errors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypeVar, cast

import msgspec
import msgspec.inspect

from proctor.core import optional as extras
from proctor.errors import (
    ConfigError,
    MailboxClosed,
    MailboxError,
    MailboxFull,
    MailboxGone,
    MessageRefused,
    Problem,
    ReceiptExpired,
)
from proctor.models.answer_format import decode_pydantic
from proctor.ports import Mailbox, Message
from proctor.records import codec
from proctor.records.lossless import KIND, restore_result, tag_result
from proctor.records.mail import DeadLetter
from proctor.records.trial import EvalResult
from proctor.records.validation import explain

BodyT = TypeVar("BodyT")
ItemT = TypeVar("ItemT")

MAX_MESSAGES = 10
MAX_LEASE_SECONDS = 43_200
# Only the newest lines of the history of a message are stored.
MAX_HISTORY = 10
# Only the newest dead letters of a mailbox are stored.
MAX_DEAD_LETTERS = 10_000
# Valid for every mailbox, so that one name works everywhere.
_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,80}")

LEASE_EXPIRED = "its lease expired"
RETURNED = "it was returned"
# The same limit as in scripts/mailbox.lua.
BAD_HEADER = "unreadable: its record has no valid header"


def check_receive(max_messages: int, visibility_timeout: float, wait_time_seconds: float, *, where: str = "") -> None:
    """Raise one `ConfigError` for all invalid arguments of `receive`."""
    problems = []
    if not (_is_integer(max_messages) and 1 <= max_messages <= MAX_MESSAGES):
        problems.append(Problem("max_messages", f"must be an integer from 1 to {MAX_MESSAGES}, got {max_messages!r}"))
    for name, seconds, maximum in (
        ("visibility_timeout", visibility_timeout, MAX_LEASE_SECONDS),
        ("wait_time_seconds", wait_time_seconds, math.inf),
    ):
        if not _is_valid_time(seconds, maximum):
            problems.append(Problem(name, f"must be {_describe_range(maximum)}, got {seconds!r}"))
    if problems:
        raise ConfigError(
            "invalid arguments of receive()", where=where, problems=problems, fix="pass numbers within these ranges"
        )


def check_seconds(name: str, seconds: float, maximum: float = MAX_LEASE_SECONDS, *, where: str = "") -> None:
    """Raise `ConfigError` if a delay or lease is out of range; `name` is the name of the argument."""
    if not _is_valid_time(seconds, maximum):
        raise ConfigError(f"invalid {name}: {seconds!r}", where=where, fix=f"pass {_describe_range(maximum)}")


def check_bound(name: str, bound: int | None, *, where: str = "") -> None:
    if bound is not None and not (_is_integer(bound) and bound >= 1):
        fix = "pass an integer, 1 or more, or None for no limit"
        raise ConfigError(f"invalid {name}: {bound!r}", where=where, fix=fix)


def check_name(name: str) -> str:
    """Return the name if it is valid for every mailbox."""
    if not isinstance(name, str) or not _NAME_PATTERN.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a mailbox", fix="use 1 to 80 letters, digits, hyphens and underscores"
        )
    return name


def get_reply_name(reply_to: str | Mailbox[Any] | None) -> str | None:
    """Return the name of the mailbox for replies, which may be passed as a name or as a mailbox."""
    if reply_to is None:
        return None
    return check_name(reply_to if isinstance(reply_to, str) else reply_to.name)


def expired_error(where: str) -> ReceiptExpired:
    return ReceiptExpired(
        "the lease of the message has expired, or the message was already acknowledged, returned or rejected",
        where=where,
        fix="receive with a longer visibility_timeout, or extend it in time",
    )


def removed_error(name: str) -> MailboxGone:
    return MailboxGone("the mailbox was removed permanently, so nothing receives its messages", where=name)


def full_error(where: str, capacity: int) -> MailboxFull:
    return MailboxFull(
        f"the mailbox is full: leased messages included, it has reached its capacity of {capacity}",
        where=where,
        fix="send again after some are acknowledged, or use a larger capacity",
    )


def split_batches(items: Iterable[tuple[ItemT, int]], max_items: int, max_bytes: int) -> Iterator[list[ItemT]]:
    """Split items with their sizes into as few batches as possible, in order."""
    batch: list[ItemT] = []
    size = 0
    for item, bytes_ in items:
        if batch and (len(batch) == max_items or size + bytes_ > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += bytes_
    if batch:
        yield batch


def to_datetime(milliseconds: int | str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def format_history_line(delivery: int, reason: str) -> str:
    return f"delivery {delivery}: {reason}"


def describe_deliveries(deliveries: int) -> str:
    """Return the reason for a dead letter that was delivered too often."""
    times = "once" if deliveries == 1 else f"{deliveries} times"
    return f"it was delivered {times} and never acknowledged"


def describe_unreadable(error: object) -> str:
    return f"it cannot be read: {error}"


class BodyCodec(Generic[BodyT]):
    """Encodes bodies as JSON and decodes them into their type; None accepts any JSON.

    The type may be a struct, a dataclass, a pydantic model, a TypedDict, a plain type, or a list, mapping or union of
    them. Evaluation results preserve values that JSON cannot represent (tuples, sets, NaN): they are tagged as in the
    history.
    """

    __slots__ = ("_decoder", "body_type")

    def __init__(self, body_type: type[BodyT] | None) -> None:
        self.body_type = body_type
        target: Any = Any if body_type is None else body_type
        try:
            self._decoder = msgspec.json.Decoder(target, dec_hook=decode_pydantic)
        except (TypeError, NameError) as error:
            raise _unsupported_type(target, f": {error}") from None
        info = msgspec.inspect.type_info(target)
        if isinstance(info, msgspec.inspect.CustomType) and not extras.is_pydantic_model(target):
            raise _unsupported_type(target)

    def write(self, body: BodyT) -> bytes:
        try:
            return codec.encode(tag_result(body) if isinstance(body, EvalResult) else body)
        except codec.ENCODE_ERRORS as error:
            raise MessageRefused(
                f"a {type(body).__qualname__} cannot be sent: {error}", fix="send a value that JSON supports"
            ) from None

    def read(self, data: bytes | str) -> BodyT:
        """Decode a body; raise a `ValueError` if it does not match the type."""
        try:
            body: Any = self._decoder.decode(data)
        except (ValueError, msgspec.DecodeError) as error:
            raise ValueError(explain(error)) from None
        except Exception as error:
            # User-defined types may raise anything (deep nesting a RecursionError), and an invalid
            # message must not stop its receiver.
            raise ValueError(f"{type(error).__name__}: {error}") from None
        # A plain search, because a proxy may have changed the spaces in the message.
        has_tags = KIND in data if isinstance(data, str) else KIND.encode() in data
        if isinstance(body, EvalResult) and has_tags:
            body = restore_result(body)
        return cast(BodyT, body)


def _unsupported_type(body_type: Any, reason: str = "") -> ConfigError:
    return ConfigError(
        f"{body_type!r} cannot be the type of message bodies{reason}",
        fix="use a struct, a dataclass, a pydantic model or a plain type",
    )


def _is_integer(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _is_valid_time(seconds: object, maximum: float) -> bool:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return False
    return 0 <= seconds <= maximum and math.isfinite(seconds)


def _describe_range(maximum: float) -> str:
    return "a number of seconds, 0 or more" if maximum == math.inf else f"a number of seconds from 0 to {maximum}"


@dataclass(eq=False, repr=False, slots=True)
class LeasedMessage(Generic[BodyT]):
    """One delivery of a message; `lease` identifies the delivery to its mailbox."""

    mailbox: StoredMailbox[Any]
    lease: Any
    body: BodyT
    id: str
    receipt_handle: str
    delivery_count: int
    enqueued_at: datetime
    reply_to: str | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, delivery_count={self.delivery_count})"

    def acknowledge(self) -> None:
        self.mailbox.check_open()
        self.mailbox._acknowledge(self)

    def nack(self, visibility_timeout: float = 0, *, reason: str = "", counts: bool = True) -> None:
        check_seconds("visibility_timeout", visibility_timeout, where=self.mailbox.where)
        self.mailbox.check_open()
        self.mailbox._give_back(self, visibility_timeout, reason or RETURNED, counts)

    def extend_visibility(self, timeout: float) -> None:
        check_seconds("timeout", timeout, where=self.mailbox.where)
        self.mailbox.check_open()
        self.mailbox._extend(self, timeout)

    def confirm_delivery(self) -> None:
        self.mailbox.check_open()
        self.mailbox._confirm(self)

    def reject(self, reason: str) -> None:
        self.mailbox.check_open()
        self.mailbox._reject(self, reason)

    def reply(self, body: Any) -> str:
        self.mailbox.check_open()
        if self.reply_to is None:
            raise MailboxError(
                "the message has no reply_to",
                where=self.mailbox.where,
                fix="send it with reply_to=NAME, the name of a mailbox",
            )
        return self.mailbox._reply(self, self.reply_to, body)


class StoredMailbox(Generic[BodyT]):
    """The base class of mailboxes: checks, encoding and closing. Subclasses store the messages."""

    max_delay_seconds: ClassVar[float] = MAX_LEASE_SECONDS

    def __init__(self, name: str, body_type: type[BodyT] | None, max_deliveries: int | None, where: str = "") -> None:
        self._name = check_name(name)
        check_bound("max_deliveries", max_deliveries, where=name)
        self._bodies = BodyCodec(body_type)
        self._max_deliveries = max_deliveries
        self._closed = False
        # For error messages.
        self.where = where or name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def max_deliveries(self) -> int | None:
        return self._max_deliveries

    def check_open(self) -> None:
        if self._closed:
            raise MailboxClosed("the mailbox is closed", where=self._name, fix="create a new mailbox object")

    def send(self, body: BodyT, *, reply_to: str | Mailbox[Any] | None = None, delay_seconds: float = 0) -> str:
        check_seconds("delay_seconds", delay_seconds, self.max_delay_seconds, where=self.where)
        self.check_open()
        return self._put((body,), reply_to, delay_seconds)[0]

    def send_all(self, bodies: Iterable[BodyT], *, reply_to: str | Mailbox[Any] | None = None) -> list[str]:
        self.check_open()
        return self._put(bodies, reply_to, 0)

    def as_received(self, body: BodyT) -> BodyT:
        return self._bodies.read(self._bodies.write(body))

    def receive(
        self,
        *,
        max_messages: int = 1,
        visibility_timeout: float = 30,
        wait_time_seconds: float = 0,
        provisional: bool = False,
    ) -> Sequence[Message[BodyT]]:
        """Lease up to `max_messages` for `visibility_timeout` seconds."""
        check_receive(max_messages, visibility_timeout, wait_time_seconds, where=self.where)
        self.check_open()
        return self._receive(max_messages, visibility_timeout, wait_time_seconds, provisional)

    def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """Return the dead letters, newest first; only the newest 10,000 are stored."""
        check_bound("limit", limit, where=self.where)
        self.check_open()
        return self._read_dead_letters(limit)

    # Implemented by subclasses.
    _put: Callable[[Iterable[BodyT], str | Mailbox[Any] | None, float], list[str]]
    _receive: Callable[[int, float, float, bool], Sequence[Message[BodyT]]]
    _read_dead_letters: Callable[[int], Sequence[DeadLetter]]
    _acknowledge: Callable[[LeasedMessage[Any]], None]
    _give_back: Callable[[LeasedMessage[Any], float, str, bool], None]
    _extend: Callable[[LeasedMessage[Any], float], None]
    _confirm: Callable[[LeasedMessage[Any]], None]
    _reject: Callable[[LeasedMessage[Any], str], None]
    _reply: Callable[[LeasedMessage[Any], str, Any], str]
