"""Rate limits and rejected keys: how often an endpoint is called again."""

from __future__ import annotations

import asyncio

import pytest

from proctor.core.retry_policy import RetryPolicy
from proctor.errors import CallFailed
from proctor.models.http.errors import BLOCK_SECONDS, MAX_REJECTIONS
from proctor.models.http.rate_limits import Limiter
from proctor.testing import Fault
from tests.models.providers.test_transport import QUICK, ask, http_call, make_endpoint, read, server
from tests.servers.model_server import ModelServer
from tests.support import ManualClock

__all__ = ["server"]


def test_rate_limits_are_retried_until_the_deadline(server: ModelServer) -> None:
    """429 says nothing against the request; the deadline ends it, not the retries."""
    server.choose_fault = lambda asked: Fault.status(429)
    clock = ManualClock()
    with pytest.raises(CallFailed, match="no time was left for a retry") as caught:
        ask(server, make_endpoint(server, clock), RetryPolicy(retries=2), timeout=60.0)
    assert 30 < clock.seconds < 60
    assert len(server.calls) > 6
    assert f"({len(server.calls)} attempts)" in str(caught.value)


def test_without_a_deadline_retries_limit_rate_limits(server: ModelServer) -> None:
    """The error names the number."""
    server.choose_fault = lambda asked: Fault.status(429)
    with pytest.raises(CallFailed, match=r"without a timeout, retries=2 is the limit \(3 a"):
        ask(server, make_endpoint(server))
    with pytest.raises(CallFailed, match=r"answered 429 Too Many Requests"):
        ask(server, make_endpoint(server), RetryPolicy(retries=0), timeout=60.0)
    assert len(server.calls) == 4


def test_a_rejected_key_is_blocked_for_a_while(server: ModelServer) -> None:
    """After three rejections in a row nothing is sent for a while."""
    server.choose_fault = lambda asked: Fault.status(401)
    clock = ManualClock()
    at = make_endpoint(server, clock)
    for _ in range(50):
        with pytest.raises(CallFailed, match="check the key in MY_KEY") as caught:
            ask(server, at)
    assert len(server.calls) == MAX_REJECTIONS
    assert "was not called again: 3 times in a row it answered 401 Unauthorized" in str(caught.value)
    server.choose_fault = lambda asked: None
    with pytest.raises(CallFailed, match="answered 400"):
        ask(server, at, path="/v1/embeddings")
    clock.seconds += BLOCK_SECONDS
    assert ask(server, at).attempts == 1
    server.faults.append(Fault.status(401))
    with pytest.raises(CallFailed):
        ask(server, at)
    assert ask(server, at).attempts == 1


def test_waiting_calls_do_not_send_a_rejected_key(server: ModelServer) -> None:
    """A thousand concurrent calls with a wrong key are a few requests."""
    server.choose_fault = lambda asked: Fault.status(401)
    at = make_endpoint(server, limiter=Limiter(window=2))

    async def main() -> list[object]:
        asked = (at.send(http_call(server), read, QUICK) for _ in range(1000))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    assert all(isinstance(item, CallFailed) for item in asyncio.run(main()))
    assert len(server.calls) <= MAX_REJECTIONS + 1
