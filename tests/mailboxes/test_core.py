"""The checks and encodings that all mailboxes share."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.errors import ConfigError, MailboxError
from proctor.mailboxes import core
from proctor.mailboxes.core import BodyCodec
from proctor.records.mail import EvalRequest
from proctor.records.sample import Sample


class Mood(enum.Enum):
    """How somebody is."""

    WELL = "well"
    ILL = "ill"


class Patient(pydantic.BaseModel):
    """A user's pydantic model."""

    name: str
    since: datetime
    mood: Mood = Mood.WELL
    scores: tuple[int, ...] = ()


@dataclass
class Fussy:
    """A user's class whose own code refuses with an error of its own."""

    number: int

    def __post_init__(self) -> None:
        if self.number > 9:
            raise LookupError(f"{self.number} is not in the book")


class Opaque:
    """A class that is no data."""


WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_limits_of_every_range_are_accepted() -> None:
    """1 and 10 messages, a lease of 0 and of 43200 seconds, and any wait are valid."""
    core.check_receive(1, 0, 0)
    core.check_receive(10, 43_200, 1e9)
    core.check_receive(5, 0.5, 0.25)


def test_all_invalid_arguments_are_reported_at_once() -> None:
    """Three wrong arguments give one error with three lines, the mailbox and a fix."""
    with pytest.raises(ConfigError) as error:
        core.check_receive(11, -0.1, math.nan, where="requests")
    assert str(error.value) == snapshot("""\
requests: invalid arguments of receive()
  - max_messages must be an integer from 1 to 10, got 11
  - visibility_timeout must be a number of seconds from 0 to 43200, got -0.1
  - wait_time_seconds must be a number of seconds, 0 or more, got nan
Fix: pass numbers within these ranges\
""")


@pytest.mark.parametrize("odd", [True, "1", None, math.inf, -math.inf, math.nan, -1, 901])
def test_seconds_out_of_range_are_refused(odd: Any) -> None:
    """A mailbox with its own limit names it; values that are not numbers are refused too."""
    core.check_seconds("delay_seconds", 900, 900)
    with pytest.raises(ConfigError, match="delay_seconds") as error:
        core.check_seconds("delay_seconds", odd, 900, where="requests")
    assert error.value.fix == "pass a number of seconds from 0 to 900"


@pytest.mark.parametrize("odd", [0, -1, True, 1.0, "3"])
def test_bounds_are_whole_numbers_from_one(odd: Any) -> None:
    """A capacity of 0 is an error; None means no limit."""
    core.check_bound("capacity", None)
    core.check_bound("capacity", 1)
    with pytest.raises(ConfigError, match="capacity"):
        core.check_bound("capacity", odd)


@pytest.mark.parametrize("name", ["a", "eval-requests", "A_1", "x" * 80])
def test_valid_names_are_accepted(name: str) -> None:
    """Letters, digits, hyphens and underscores, up to 80."""
    assert core.check_name(name) == name


@pytest.mark.parametrize("name", ["", "x" * 81, "a b", "a:b", "ä", "a\n", "a.fifo", "{a}", None, 3])
def test_names_that_one_server_refuses_are_refused_by_all(name: Any) -> None:
    """Every kind of mailbox has the same rule."""
    with pytest.raises(ConfigError, match="cannot be the name"):
        core.check_name(name)


def test_reply_to_is_a_name_or_a_mailbox() -> None:
    """A mailbox counts by its name; an invalid name is refused when the message is sent."""
    assert core.get_reply_name(None) is None
    assert core.get_reply_name("results") == "results"
    with pytest.raises(ConfigError):
        core.get_reply_name("no results")


def test_reasons_and_history_are_sentences() -> None:
    """The reason and the history of a dead letter are readable."""
    assert core.describe_deliveries(1) == "it was delivered once and never acknowledged"
    assert core.describe_deliveries(3) == "it was delivered 3 times and never acknowledged"
    assert core.format_history_line(2, "boom") == "delivery 2: boom"
    assert core.describe_unreadable("no JSON") == "it cannot be read: no JSON"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (int, 3),
        (list[Mood], [Mood.ILL]),
        (dict[str, float | None], {"a": 1.5, "b": None}),
        (Fussy, Fussy(9)),
        (Patient, Patient(name="Ann", since=WHEN, scores=(1, 2))),
        (EvalRequest, EvalRequest(Sample("1", {"q": ["?"]}, 4), request_id="r", created_at=WHEN)),
        (
            EvalRequest[Patient, Fussy],
            EvalRequest(Sample("1", Patient(name="Bo", since=WHEN), Fussy(1)), created_at=WHEN),
        ),
    ],
)
def test_bodies_come_back_in_their_type(kind: Any, body: Any) -> None:
    """Plain types, dataclasses, structs and pydantic models, also inside of one another."""
    bodies: BodyCodec[Any] = BodyCodec(kind)
    assert bodies.read(bodies.write(body)) == body


@settings(max_examples=30)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=9,
    )
)
def test_without_a_type_any_json_is_read(value: Any) -> None:
    """JSON values are read as they were written."""
    bodies: BodyCodec[Any] = BodyCodec(None)
    assert bodies.read(bodies.write(value)) == value
    assert bodies.read(bodies.write(value).decode()) == value


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (int, "", "truncated"),
        (int, '"3"', "it must be an integer, got a string"),
        (EvalRequest, '{"sample": {"id": 1}}', "sample.id must be a string, got an integer"),
        (EvalRequest, '{"simple": 1}', "unknown key 'simple'"),
        (Fussy, '{"number": 10}', "10 is not in the book"),
        (Patient, '{"name": 3}', "name: Input should be a valid string; since: Field required"),
        (
            EvalRequest[Patient, str],
            '{"sample": {"id": "1", "input": {}}}',
            "sample.input: name: Field required; since: Field required",
        ),
        (list[Opaque], "[1]", "[0]: the type Opaque cannot be read from JSON"),
        (Any, "[" * 100_000, "RecursionError"),
    ],
)
def test_a_body_that_does_not_fit_is_an_error(kind: Any, text: str, expected: str) -> None:
    """Reading returns the body or raises an error that says what is wrong."""
    bodies: BodyCodec[Any] = BodyCodec(kind)
    with pytest.raises(ValueError, match=r"^[^\n]+$") as error:
        bodies.read(text)
    assert expected in str(error.value)


@given(st.binary())
def test_random_bytes_raise_only_value_errors(data: bytes) -> None:
    """They are read or refused; no other exception occurs."""
    bodies: BodyCodec[EvalRequest[Any, Any]] = BodyCodec(EvalRequest)
    with pytest.raises(ValueError, match=r"\w"):
        bodies.read(data)


@pytest.mark.parametrize("kind", [Opaque, "a text", Patient | EvalRequest])
def test_an_unsupported_type_is_refused_on_creation(kind: Any) -> None:
    """Not when the first message arrives."""
    with pytest.raises(ConfigError, match="cannot be the type of message bodies"):
        BodyCodec(kind)


def test_a_body_that_json_cannot_hold_is_refused() -> None:
    """The sender gets an error that says why."""
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(MailboxError, match="a list cannot be sent"):
        BodyCodec[Any](None).write(ring)


def test_encoded_json_is_sent_unchanged() -> None:
    """`msgspec.Raw` is not encoded again, so tests can send bodies that no type produces."""
    assert BodyCodec[Any](int).write(msgspec.Raw(b"{no JSON")) == b"{no JSON"
