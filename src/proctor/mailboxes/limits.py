"""What every mailbox takes and refuses alike: numbers, names, bodies, and how it tells a fate."""

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
from proctor.records.lossless import KIND, restored_result, tagged_result
from proctor.records.trial import EvalResult

BodyT = TypeVar("BodyT")

MAX_MESSAGES = 10
MAX_LEASE_SECONDS = 43_200
# How many lines of a message's history are kept, the last ones.
MAX_HISTORY = 10
# How many dead letters are kept, the newest, where they are kept by us.
MAX_DEAD_LETTERS = 10_000
# What every kind of mailbox takes, so that one name works everywhere.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")

LEASE_EXPIRED = "its lease ran out"
RETURNED = "it was given back"
# As in scripts/mailbox.lua.
BAD_HEADER = "unreadable: its record has no valid header"


def check_receive(
    max_messages: int, visibility_timeout: float, wait_time_seconds: float, *, where: str = ""
) -> None:
    """Refuse arguments of `receive` that no mailbox can serve, all faults at once.

    >>> check_receive(1, 30, 0)
    >>> check_receive(0, 30, -1)
    Traceback (most recent call last):
    proctor.errors.ConfigError: messages cannot be received like this
      - max_messages: it is 0, and must be a whole number from 1 to 10
      - wait_time_seconds: it is -1, and must be a number of seconds, 0 or more
    Fix: give numbers within these ranges
    """
    faults = []
    if not (_is_whole(max_messages) and 1 <= max_messages <= MAX_MESSAGES):
        wanted = f"a whole number from 1 to {MAX_MESSAGES}"
        faults.append(_fault("max_messages", max_messages, wanted))
    if not _within(visibility_timeout, MAX_LEASE_SECONDS):
        faults.append(_fault("visibility_timeout", visibility_timeout, _range(MAX_LEASE_SECONDS)))
    if not _within(wait_time_seconds, math.inf):
        faults.append(_fault("wait_time_seconds", wait_time_seconds, _range(math.inf)))
    if faults:
        raise ConfigError(
            "messages cannot be received like this",
            where=where,
            problems=faults,
            fix="give numbers within these ranges",
        )


def check_seconds(name: str, seconds: float, most: float = MAX_LEASE_SECONDS, *, where: str = "") -> None:
    """Refuse a delay or a lease that is out of range; `name` is the argument it was given as.

    >>> check_seconds("delay_seconds", True)
    Traceback (most recent call last):
    proctor.errors.ConfigError: delay_seconds is True
    Fix: give a number of seconds from 0 to 43200
    """
    if not _within(seconds, most):
        raise ConfigError(f"{name} is {seconds!r}", where=where, fix=f"give {_range(most)}")


def check_bound(name: str, bound: int | None, *, where: str = "") -> None:
    """Refuse a capacity or a number of deliveries that is neither None nor 1 or more.

    >>> check_bound("capacity", None)
    """
    if bound is not None and not (_is_whole(bound) and bound >= 1):
        raise ConfigError(
            f"{name} is {bound!r}", where=where, fix="give a whole number from 1, or None for any"
        )


def check_name(name: str) -> str:
    """The name itself if it is one that every kind of mailbox takes.

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
    """The name of the mailbox that answers should go to, whether its name or itself is given.

    >>> reply_name("results")
    'results'
    """
    if reply_to is None:
        return None
    return check_name(reply_to if isinstance(reply_to, str) else reply_to.name)


def no_reply_to_error(where: str) -> MailboxError:
    """The error for an answer to a message that does not say where answers go."""
    return MailboxError(
        "the message does not say where an answer should go",
        where=where,
        fix="send it with reply_to=, the name of a mailbox",
    )


def expired_error(where: str) -> ReceiptExpired:
    """The error for settling a message whose lease is over, or which was settled before."""
    return ReceiptExpired(
        "the message is no longer yours: its lease is over, or it was settled before",
        where=where,
        fix="receive with a longer visibility_timeout, or extend it in time",
    )


def closed_error(where: str) -> MailboxClosed:
    """The error for the use of a mailbox that was closed."""
    return MailboxClosed("the mailbox was closed", where=where, fix="open it again")


def removed_error(name: str) -> MailboxGone:
    """The error for a mailbox that was removed for good."""
    return MailboxGone("it was removed for good: nobody waits for what is sent to it", where=name)


def full_error(where: str, capacity: int) -> MailboxFull:
    """The error for sending more than a mailbox may hold."""
    return MailboxFull(
        f"the mailbox may hold {capacity} messages, those in flight counted",
        where=where,
        fix="send again when some are acknowledged, or allow a larger capacity",
    )


def history_line(delivery: int, reason: str) -> str:
    """One line of a message's history: what became of a delivery.

    >>> history_line(2, LEASE_RAN_OUT)
    'delivery 2: its lease ran out'
    """
    return f"delivery {delivery}: {reason}"


def describe_deliveries(deliveries: int) -> str:
    """Why a message is set aside that comes back again and again.

    >>> too_often(3)
    'it was delivered 3 times and never acknowledged'
    """
    times = "once" if deliveries == 1 else f"{deliveries} times"
    return f"it was delivered {times} and never acknowledged"


def describe_unreadable(why: object) -> str:
    """Why a message is set aside whose body is not of the mailbox's type."""
    return f"it cannot be read: {why}"


class BodyCodec(Generic[BodyT]):
    """Writes bodies as JSON and reads them back into their type; None takes any JSON as it is.

    The type may be a struct, a dataclass, a pydantic model, a TypedDict, a plain type, or a list,
    mapping or union of them. A result of an evaluation is read as it was written, also where JSON
    has no word for a value: its tuples, sets and NaN are tagged as they are in the history.

    >>> Bodies(dict[str, int]).read(b'{"a": 1}')
    {'a': 1}
    >>> Bodies(list[int]).read(b'["one"]')
    Traceback (most recent call last):
    ValueError: Expected `int`, got `str` - at `$[0]`
    """

    __slots__ = ("_decoder", "body_type")

    def __init__(self, body_type: type[BodyT] | None) -> None:
        self.body_type = body_type
        kind: Any = Any if body_type is None else body_type
        try:
            self._decoder = msgspec.json.Decoder(kind, dec_hook=_foreign)
        except (TypeError, NameError) as error:
            raise _not_for_bodies(kind, f": {error}") from None
        found = msgspec.inspect.type_info(kind)
        if isinstance(found, msgspec.inspect.CustomType) and not extras.is_pydantic_model(kind):
            raise _not_for_bodies(kind)

    def write(self, body: BodyT) -> bytes:
        """The body as JSON."""
        try:
            return codec.encode(tagged_result(body) if isinstance(body, EvalResult) else body)
        except codec.UNWRITABLE as error:
            raise MessageRefused(
                f"a {type(body).__qualname__} cannot be sent: {error}", fix="send what can be written as JSON"
            ) from None

    def read(self, data: bytes | str) -> BodyT:
        """The body in its type; a `ValueError` says what does not fit."""
        try:
            found: Any = self._decoder.decode(data)
        except (ValueError, msgspec.DecodeError) as error:
            raise ValueError(str(error)) from None
        except Exception as error:
            # The type's own code may raise anything (and deep nesting a RecursionError), and a
            # message that cannot be read must never stop those who read.
            raise ValueError(f"{type(error).__name__}: {error}") from None
        if isinstance(found, EvalResult) and _has_tags(data):
            found = restored_result(found)
        return cast(BodyT, found)


def _has_tags(data: bytes | str) -> bool:
    # Spaces do not matter: whoever forwards a message may have written it again.
    return KIND in data if isinstance(data, str) else KIND.encode() in data


def _not_for_bodies(kind: Any, why: str = "") -> ConfigError:
    return ConfigError(
        f"{kind!r} is not a type that messages can be read into{why}",
        fix="use a struct, a dataclass, a pydantic model or a plain type",
    )


def _foreign(kind: Any, value: Any) -> Any:
    """Reads a type that msgspec does not know: a pydantic model, or what is one already."""
    if not extras.is_pydantic_model(kind):
        raise TypeError(f"{kind.__qualname__} cannot be read from JSON")
    pydantic = extras.require("pydantic", extra="pydantic", why="a pydantic model")
    try:
        # By way of JSON, where strict still takes dates and enums from strings.
        return kind.model_validate_json(codec.encode(value), strict=True)
    except pydantic.ValidationError as error:
        told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        raise ValueError("; ".join(told)) from None


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _within(seconds: object, most: float) -> bool:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return False
    return 0 <= seconds <= most and math.isfinite(seconds)


def _range(most: float) -> str:
    if most == math.inf:
        return "a number of seconds, 0 or more"
    return f"a number of seconds from 0 to {most}"


def _fault(name: str, given: object, wanted: str) -> Problem:
    return Problem(name, f"it is {given!r}, and must be {wanted}")
