"""The retry policy: every HTTP error status, equal for providers and targets."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Iterator

import httpx2
import pytest

from proctor.core.retry_policy import backoff_seconds, is_retryable_error, is_retryable_status
from proctor.errors import CallFailed
from proctor.models.clients.sdk import to_call_failed
from proctor.models.openai import OpenAIAdapter
from proctor.records.model import ModelRequest
from proctor.records.session import Message
from proctor.targets.http import HttpTarget
from proctor.testing import Fault
from tests.servers.model_server import ModelServer
from tests.tables import each_row

RETRIED = {408, 409, 425, 429, *range(500, 600)} - {501, 505}
# Every status that the policy names, and their neighbours.
SAMPLED = [400, 401, 403, 404, 408, 409, 410, 422, 425, 429, 451, 500, 501, 502, 503, 504, 505, 529, 599]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@each_row("status", range(400, 600))
def test_every_error_status_is_retried_or_final(status: int) -> None:
    """408, 409, 425, 429 and 5xx except 501 and 505 are retried; all others are final."""
    assert is_retryable_status(status) == (status in RETRIED)


@each_row("status", SAMPLED)
def test_providers_targets_and_sdk_clients_agree(server: ModelServer, status: int) -> None:
    """The same status has the same meaning for a model, for an HTTP target and for an SDK error."""
    server.faults.append(Fault.status(status))
    model = OpenAIAdapter("m", base_url=f"{server.url}/v1", retries=0)
    target = HttpTarget("https://example.com/answer")

    class SdkError(Exception):
        status_code = status

    with pytest.raises(CallFailed) as from_model:
        asyncio.run(model.complete(ModelRequest((Message("user", "hi"),))))
    with pytest.raises(CallFailed) as from_target:
        target._read_reply(httpx2.Response(status), b"")
    errors = [from_model.value, from_target.value, to_call_failed("sdk", SdkError())]
    assert [error.retryable for error in errors] == [status in RETRIED] * 3


class APIConnectionError(Exception):
    """What the SDKs of OpenAI and Anthropic raise when no response arrived."""


class Declared(Exception):
    """An exception that says for itself that it is transient."""

    retryable = True
    status_code = 400


@each_row(
    ("error", "is_retryable"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (socket.gaierror(), True),
        (APIConnectionError(), True),
        (Declared(), True),
        (ValueError(), False),
        (FileNotFoundError(), False),
        (PermissionError(), False),
    ],
)
def test_exceptions_are_retried_by_attribute_status_or_type(error: Exception, is_retryable: bool) -> None:
    """`retryable` comes first, then `status_code`, then the type."""
    assert is_retryable_error(error) is is_retryable


def test_the_delay_doubles_with_jitter_up_to_half_a_minute() -> None:
    """Between half of the delay and the whole of it, and never more than 30 seconds."""
    chance = random.Random(0)
    for attempt in range(1, 12):
        longest = min(30.0, 0.5 * 2 ** (attempt - 1))
        assert longest / 2 <= backoff_seconds(attempt, 0.5, chance) <= longest
