"""Shared by all mailboxes: limits of arguments, body encoding, errors and reasons."""

from __future__ import annotations

import math
import re
from typing import Any, Generic, TypeVar, cast

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
from proctor.ports import Mailbox
from proctor.records import codec
from proctor.records.lossless import KIND, restore_result, tag_result
from proctor.records.trial import EvalResult

BodyT = TypeVar("BodyT")

MAX_MESSAGES = 10
MAX_LEASE_SECONDS = 43_200
# The number of lines that the history of a message keeps, the newest.
MAX_HISTORY = 10
# The number of dead letters that a mailbox keeps, the newest.
MAX_DEAD_LETTERS = 10_000
# Valid for every mailbox, so that one name works everywhere.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")

LEASE_EXPIRED = "its lease ran out"
RETURNED = "it was given back"
# As in scripts/mailbox.lua.
BAD_HEADER = "unreadable: its record has no valid header"


def check_receive(
    max_messages: int, visibility_timeout: float, wait_time_seconds: float, *, where: str = ""
) -> None:
    """Refuse invalid arguments of `receive`, all problems at once.

    >>> check_receive(1, 30, 0)
    >>> check_receive(0, 30, -1)
    Traceback (most recent call last):
    proctor.errors.ConfigError: messages cannot be received like this
      - max_messages: it is 0, and must be a whole number from 1 to 10
      - wait_time_seconds: it is -1, and must be a number of seconds, 0 or more
    Fix: give numbers within these ranges
    """
    problems = []
    if not (_is_whole(max_messages) and 1 <= max_messages <= MAX_MESSAGES):
        problems.append(_problem("max_messages", max_messages, f"a whole number from 1 to {MAX_MESSAGES}"))
    if not _within(visibility_timeout, MAX_LEASE_SECONDS):
        problems.append(_problem("visibility_timeout", visibility_timeout, _range(MAX_LEASE_SECONDS)))
    if not _within(wait_time_seconds, math.inf):
        problems.append(_problem("wait_time_seconds", wait_time_seconds, _range(math.inf)))
    if problems:
        raise ConfigError(
            "messages cannot be received like this",
            where=where,
            problems=problems,
            fix="give numbers within these ranges",
        )


def check_seconds(name: str, seconds: float, maximum: float = MAX_LEASE_SECONDS, *, where: str = "") -> None:
    """Refuse a delay or lease that is out of range; `name` is the name of the argument.

    >>> check_seconds("delay_seconds", True)
    Traceback (most recent call last):
    proctor.errors.ConfigError: delay_seconds is True
    Fix: give a number of seconds from 0 to 43200
    """
    if not _within(seconds, maximum):
        raise ConfigError(f"{name} is {seconds!r}", where=where, fix=f"give {_range(maximum)}")


def check_bound(name: str, bound: int | None, *, where: str = "") -> None:
    """Refuse a number that is neither None nor 1 or more.

    >>> check_bound("capacity", None)
    """
    if bound is not None and not (_is_whole(bound) and bound >= 1):
        raise ConfigError(
            f"{name} is {bound!r}", where=where, fix="give a whole number from 1, or None for any"
        )


def check_name(name: str) -> str:
    """Return the name if it is valid for every mailbox.

    >>> check_name("eval-requests")
    'eval-requests'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a mailbox",
            fix="use 1 to 80 letters, digits, hyphens and underscores",
        )
    return name


def reply_name(reply_to: str | Mailbox[Any] | None) -> str | None:
    """The name of the mailbox for replies, given its name or the mailbox.

    >>> reply_name("results")
    'results'
    """
    if reply_to is None:
        return None
    return check_name(reply_to if isinstance(reply_to, str) else reply_to.name)


def no_reply_to_error(where: str) -> MailboxError:
    return MailboxError(
        "the message has no reply_to", where=where, fix="send it with reply_to=, the name of a mailbox"
    )


def expired_error(where: str) -> ReceiptExpired:
    return ReceiptExpired(
        "the message is no longer yours: its lease has expired, or it was already handled",
        where=where,
        fix="receive with a longer visibility_timeout, or extend it in time",
    )


def closed_error(where: str) -> MailboxClosed:
    return MailboxClosed("the mailbox was closed", where=where, fix="open it again")


def removed_error(name: str) -> MailboxGone:
    return MailboxGone("it was removed permanently: nothing receives messages from it", where=name)


def full_error(where: str, capacity: int) -> MailboxFull:
    return MailboxFull(
        f"the mailbox is full: its capacity is {capacity} messages, including leased ones",
        where=where,
        fix="send again after some are acknowledged, or use a larger capacity",
    )


def history_line(delivery: int, reason: str) -> str:
    """One line of the history of a message.

    >>> history_line(2, LEASE_EXPIRED)
    'delivery 2: its lease ran out'
    """
    return f"delivery {delivery}: {reason}"


def describe_deliveries(deliveries: int) -> str:
    """The reason of a dead letter that was delivered too often.

    >>> describe_deliveries(3)
    'it was delivered 3 times and never acknowledged'
    """
    times = "once" if deliveries == 1 else f"{deliveries} times"
    return f"it was delivered {times} and never acknowledged"


def describe_unreadable(why: object) -> str:
    return f"it cannot be read: {why}"


class BodyCodec(Generic[BodyT]):
    """Encodes bodies as JSON and decodes them into their type; None accepts any JSON.

    The type may be a struct, a dataclass, a pydantic model, a TypedDict, a plain type, or a list,
    mapping or union of them. Evaluation results keep values that JSON lacks (tuples, sets, NaN): they
    are tagged as in the history.

    >>> BodyCodec(dict[str, int]).read(b'{"a": 1}')
    {'a': 1}
    >>> BodyCodec(list[int]).read(b'["one"]')
    Traceback (most recent call last):
    ValueError: Expected `int`, got `str` - at `$[0]`
    """

    __slots__ = ("_decoder", "body_type")

    def __init__(self, body_type: type[BodyT] | None) -> None:
        self.body_type = body_type
        target: Any = Any if body_type is None else body_type
        try:
            self._decoder = msgspec.json.Decoder(target, dec_hook=_decode_pydantic)
        except (TypeError, NameError) as error:
            raise _unsupported_type(target, f": {error}") from None
        info = msgspec.inspect.type_info(target)
        if isinstance(info, msgspec.inspect.CustomType) and not extras.is_pydantic_model(target):
            raise _unsupported_type(target)

    def write(self, body: BodyT) -> bytes:
        try:
            return codec.encode(tag_result(body) if isinstance(body, EvalResult) else body)
        except codec.UNWRITABLE as error:
            raise MessageRefused(
                f"a {type(body).__qualname__} cannot be sent: {error}", fix="send a value that JSON can hold"
            ) from None

    def read(self, data: bytes | str) -> BodyT:
        """Decode a body; a `ValueError` says what does not fit."""
        try:
            body: Any = self._decoder.decode(data)
        except (ValueError, msgspec.DecodeError) as error:
            raise ValueError(str(error)) from None
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


def _decode_pydantic(body_type: Any, value: Any) -> Any:
    if not extras.is_pydantic_model(body_type):
        raise TypeError(f"{body_type.__qualname__} cannot be read from JSON")
    pydantic = extras.require("pydantic", extra="pydantic", why="a pydantic model")
    try:
        # Through JSON, because strict mode then accepts dates and enums as strings.
        return body_type.model_validate_json(codec.encode(value), strict=True)
    except pydantic.ValidationError as error:
        texts = [f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()]
        raise ValueError("; ".join(texts)) from None


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _within(seconds: object, maximum: float) -> bool:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return False
    return 0 <= seconds <= maximum and math.isfinite(seconds)


def _range(maximum: float) -> str:
    return f"a number of seconds{', 0 or more' if maximum == math.inf else f' from 0 to {maximum}'}"


def _problem(name: str, value: object, expected: str) -> Problem:
    return Problem(name, f"it is {value!r}, and must be {expected}")
