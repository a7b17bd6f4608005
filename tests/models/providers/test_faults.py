"""Faults between a model and its caller end in the right answer or the right error, in time."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from proctor.core import bridge
from proctor.ports import ProviderAdapter
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Message, Usage
from proctor.sessions.current import warnings
from proctor.testing import Fault, RecordedRequest, ScriptedReply
from proctor.testing.provider_contract import QUESTION, complete, complete_failing
from tests.models.providers.wires import KEY, WIRES, adapter_for
from tests.servers.model_server import ModelServer
from tests.tables import each_row

every_wire = pytest.mark.parametrize("wire", WIRES)
PAST = datetime(2020, 1, 1, tzinfo=UTC)
PAGE = "<html><h1>It works!</h1></html>"

PASSING = {
    "408": Fault.status(408),
    "409": Fault.status(409),
    "425": Fault.status(425),
    "429": Fault.status(429),
    "429, wait 0.05 s": Fault.rate_limit(0.05),
    "429, wait 50 ms": Fault.rate_limit(0.05, "milliseconds"),
    "429, wait until a moment that is over": Fault.status(429, retry_after=PAST),
    "429, wait for something unreadable": Fault.status(429, retry_after="soon"),
    "429, OpenAI's headers": Fault.rate_limit(0.05, "openai"),
    "429, Anthropic's headers": Fault.rate_limit(0.05, "anthropic"),
    "500": Fault.status(500),
    "500, an empty body": Fault.status(500, body=b""),
    "500, half an error": Fault.status(500, body=b'{"error": {"mess'),
    "502, a page": Fault.body(PAGE, "text/html", 502),
    "503": Fault.status(503),
    "504": Fault.status(504),
    "529": Fault.status(529),
    "connection closed": Fault.close(),
    "connection reset": Fault.reset_connection(),
    "cut before the body": Fault.truncate(0),
    "cut in the body": Fault.truncate(40),
    "fewer bytes than promised": Fault.wrong_length(7),
    "200, an empty body": Fault.body(b""),
    "200, half of the JSON": Fault.body(b'{"id": "1", "choices": [{"mes'),
    "200, a page": Fault.body(PAGE, "text/html"),
    "200, plain text": Fault.body("upstream error", "text/plain"),
    "200, not UTF-8": Fault.body('{"id": "1"}'.encode("utf-16")),
}


@every_wire
@each_row("fault", PASSING.values(), ids=PASSING)
def test_transient_errors_are_retried(wire: str, fault: Fault) -> None:
    """The second request has the same body and gets the response."""
    with ModelServer(lambda _: "Paris") as server:
        server.faults.append(fault)
        response = complete(adapter_for(wire, server.url), QUESTION)
        assert (response.text, response.attempts) == ("Paris", 2)
        first, second = server.calls
        assert first.body == second.body


@every_wire
@each_row("fault", PASSING.values(), ids=PASSING)
def test_persistent_transient_errors_are_reported(wire: str, fault: Fault) -> None:
    """After three requests the error names the model, the failure and the attempts, and is retryable."""
    with ModelServer(choose_fault=lambda _: fault) as server:
        adapter = adapter_for(wire, server.url)
        error = complete_failing(adapter, QUESTION)
        assert error.retryable
        assert adapter.model in str(error)
        assert "(3 attempts)" in str(error)
        assert len(server.calls) == 3


FINAL = (400, 401, 402, 403, 404, 405, 413, 422, 501, 505)


@every_wire
@each_row("code", FINAL)
def test_final_errors_are_not_retried(wire: str, code: int) -> None:
    """One request, and a final error with the status."""
    with ModelServer(choose_fault=lambda _: Fault.status(code)) as server:
        error = complete_failing(adapter_for(wire, server.url), QUESTION)
        assert not error.retryable
        assert str(code) in str(error)
        assert len(server.calls) == 1


@every_wire
def test_a_redirect_is_not_followed(wire: str) -> None:
    """A server that sends us elsewhere gets no second request: the key is for itself alone."""
    with ModelServer() as other, ModelServer() as server:
        server.faults.append(Fault(code=307, headers={"location": other.url}, content=b""))
        complete_failing(adapter_for(wire, server.url), QUESTION)
        assert other.calls == []


SHAPES: dict[str, list[str]] = {
    "openai": [
        '{"choices": []}',
        '{"choices": null}',
        '{"choices": [{}]}',
        '{"choices": [null]}',
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {"role": "assistant", "content": 7}}]}',
    ],
    "anthropic": [
        '{"type": "message"}',
        '{"content": null}',
        '{"content": "Paris"}',
        '{"content": [null]}',
        '{"content": [{"type": "text", "text": 7}], "stop_reason": "end_turn"}',
    ],
    "gemini": [
        '{"candidates": []}',
        '{"candidates": [null]}',
        '{"candidates": "Paris"}',
        '{"candidates": [{"content": {"parts": "Paris"}}]}',
        '{"candidates": [{"content": {"parts": [{"text": 7}]}}]}',
    ],
}
ANYWHERE = ["{}", "[]", "null", "7", '"Paris"', '{"error": {"message": "busy"}}']


@each_row(("wire", "body"), [(wire, body) for wire in WIRES for body in (*SHAPES[wire], *ANYWHERE)])
def test_an_unexpected_body_is_an_error(wire: str, body: str) -> None:
    """It is never an empty answer."""
    with ModelServer(choose_fault=lambda _: Fault.body(body)) as server:
        error = complete_failing(adapter_for(wire, server.url), QUESTION)
        assert not error.retryable
        assert "response" in str(error)
        assert len(server.calls) == 1


SAID: dict[str, dict[str, Any]] = {
    "openai": {"choices": [{"message": {"content": "Paris"}}]},
    "anthropic": {"content": [{"type": "text", "text": "Paris"}]},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Paris"}]}}]},
}
COUNTED = {
    "openai": ("usage", "prompt_tokens"),
    "anthropic": ("usage", "input_tokens"),
    "gemini": ("usageMetadata", "promptTokenCount"),
}


@every_wire
@pytest.mark.parametrize("count", ["nine", "9", 1.5])
def test_impossible_token_counts_are_unknown(wire: str, count: Any) -> None:
    """The answer is used, and the run gets a warning."""
    usage, tokens = COUNTED[wire]
    body = json.dumps({**SAID[wire], usage: {tokens: count}})
    with ModelServer(choose_fault=lambda _: Fault.body(body)) as server:
        values: list[str] = []
        token = warnings.set(values)
        try:
            response = complete(adapter_for(wire, server.url), QUESTION)
        finally:
            warnings.reset(token)
        assert len(server.calls) == 1
    assert (response.text, response.usage) == ("Paris", Usage())
    assert any("token" in each for each in values)


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("openai", b'{"id": "\xff", "choices": [{"message": {"content": "Rome"}}]}'),
        ("openai", b'{"choices": [{"message": {"content": "Rome\xff"}}]}'),
        ("anthropic", b'{"id": "\xff", "content": [{"type": "text", "text": "Rome"}]}'),
        ("anthropic", b'{"content": [{"type": "text", "text": "Rome\xff"}]}'),
        ("gemini", b'{"id": "\xff", "candidates": [{"content": {"parts": [{"text": "Rome"}]}}]}'),
        ("gemini", b'{"candidates": [{"content": {"parts": [{"text": "Rome\xff"}]}}]}'),
    ],
)
def test_invalid_utf8_is_retried(wire: str, body: bytes) -> None:
    """A damaged character makes the response unreadable, wherever it is."""
    with ModelServer(lambda _: "Paris") as server:
        server.faults.append(Fault.body(body))
        response = complete(adapter_for(wire, server.url), QUESTION)
        assert (response.text, response.attempts) == ("Paris", 2)


@every_wire
def test_missing_fields_are_unknown(wire: str) -> None:
    """A response without usage or finish reason is valid; nothing is invented, least of all 0."""

    def forget(answer: dict[str, Any]) -> None:
        for part in (answer, *answer.get("choices", ()), *answer.get("candidates", ())):
            for name in ("usage", "usageMetadata", "finish_reason", "finishReason", "stop_reason"):
                part.pop(name, None)

    with ModelServer(lambda _: "Paris") as server:
        server.faults.append(Fault.edit_json(forget))
        response = complete(adapter_for(wire, server.url), QUESTION)
    assert response.text == "Paris"
    assert response.usage == Usage()
    assert response.finish_reason is None


@every_wire
def test_unknown_fields_are_ignored(wire: str) -> None:
    """Providers may add fields to their responses."""
    with ModelServer(lambda _: "Paris") as server:
        server.faults.append(Fault.edit_json(lambda answer: answer.update(brand_new={"a": [1]})))
        assert complete(adapter_for(wire, server.url), QUESTION).text == "Paris"


@every_wire
@pytest.mark.parametrize("fault", [Fault.slow(0.1), Fault.drip(50, 0.005)], ids=["slow", "drip"])
def test_a_slow_response_is_accepted(wire: str, fault: Fault) -> None:
    """A late response within the timeout counts at the first request."""
    with ModelServer(lambda _: "Paris") as server:
        server.faults.append(fault)
        response = complete(adapter_for(wire, server.url), QUESTION)
    assert (response.text, response.attempts) == ("Paris", 1)
    assert response.latency_ms is not None
    assert response.latency_ms >= 10


@every_wire
@pytest.mark.parametrize("fault", [Fault.hang(), Fault.drip(1, 0.2)], ids=["hang", "endless drip"])
def test_a_request_that_times_out_is_retried(wire: str, fault: Fault) -> None:
    """Also while bytes still arrive."""
    with ModelServer(lambda _: "Paris") as server:
        server.faults.append(fault)
        # A busy machine may need more than 0.3 s for an answer, too.
        response = complete(adapter_for(wire, server.url, timeout=0.3, retries=50), QUESTION)
    assert response.text == "Paris"
    assert response.attempts >= 2


@every_wire
@pytest.mark.parametrize("fault", [Fault.hang(), Fault.drip(1, 0.2)], ids=["hang", "endless drip"])
def test_the_timeout_covers_the_whole_call(wire: str, fault: Fault) -> None:
    """Whatever the server does; the error is retryable."""
    with ModelServer(choose_fault=lambda _: fault) as server:
        adapter = adapter_for(wire, server.url)
        error = complete_failing(adapter, QUESTION, timeout=0.3)
    assert error.retryable
    assert "0.3 s" in str(error)


@every_wire
def test_a_pause_longer_than_the_timeout_fails_at_once(wire: str) -> None:
    """With Retry-After of an hour and 10 s left, the error says when to come back."""
    with ModelServer(choose_fault=lambda _: Fault.status(429, retry_after=3600)) as server:
        error = complete_failing(adapter_for(wire, server.url), QUESTION, timeout=10)
        assert len(server.calls) == 1
    assert error.retryable
    assert error.retry_after == pytest.approx(3600, abs=1)


@every_wire
def test_retry_after_may_be_a_date(wire: str) -> None:
    """It is respected to the second."""
    times: list[float] = []

    def answer(asked: RecordedRequest) -> str:
        times.append(time.time())
        return "Paris"

    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    with ModelServer(answer) as server:
        server.faults.append(Fault.status(503, retry_after=until))
        assert complete(adapter_for(wire, server.url), QUESTION).text == "Paris"
    assert times[0] >= until.timestamp()


def at_once(adapters: list[ProviderAdapter]) -> list[ModelResponse]:
    async def main() -> list[ModelResponse]:
        async with asyncio.timeout(120):
            return await asyncio.gather(*(adapter.complete(QUESTION) for adapter in adapters))

    return bridge.run(main())


@every_wire
def test_a_pause_applies_to_all_users_of_an_endpoint(wire: str) -> None:
    """All adapters with the same server and key."""
    told_at: list[float] = []
    sent_at: list[float] = []

    def misbehave(asked: RecordedRequest) -> Fault | None:
        if not told_at:
            told_at.append(time.perf_counter())
            return Fault.rate_limit(0.3)
        sent_at.append(time.perf_counter())
        return None

    with ModelServer(choose_fault=misbehave) as server:
        adapter, other = (adapter_for(wire, server.url) for _ in range(2))

        async def main() -> None:
            async with asyncio.timeout(120):
                first = asyncio.ensure_future(adapter.complete(QUESTION))
                while not told_at:
                    await asyncio.sleep(0.005)
                await asyncio.sleep(0.05)
                await asyncio.gather(first, *(other.complete(QUESTION) for _ in range(5)))

        bridge.run(main())
    assert len(sent_at) == 6
    assert min(sent_at) - told_at[0] >= 0.3


@pytest.mark.parametrize("expected", ["openai", "anthropic"])
@every_wire
def test_exhausted_rate_limits_delay_the_next_call(wire: str, expected: Any) -> None:
    """The headers of a successful response say so."""
    with ModelServer(lambda _: "Paris") as server:
        adapter = adapter_for(wire, server.url)
        server.faults.append(Fault(headers=Fault.rate_limit(0.25, expected).headers))
        assert complete(adapter, QUESTION).attempts == 1
        began = time.perf_counter()
        assert complete(adapter, QUESTION).text == "Paris"
        assert time.perf_counter() - began >= 0.15


@every_wire
def test_an_unreachable_server_is_a_transient_error(wire: str) -> None:
    """It may be available later."""
    with ModelServer() as server:
        url = server.url
    error = complete_failing(adapter_for(wire, url), QUESTION)
    assert error.retryable
    assert "ConnectError" in str(error)


@every_wire
def test_a_restarted_server_is_reached(wire: str) -> None:
    """A server that starts again during the retries answers the call."""
    with ModelServer() as first:
        url = first.url
    adapter = adapter_for(wire, url, retries=8, retry_delay=0.05)

    async def main() -> ModelResponse:
        async with asyncio.timeout(120):
            asking = asyncio.ensure_future(adapter.complete(QUESTION))
            await asyncio.sleep(0.1)
            with ModelServer(lambda _: "back", port=int(url.rpartition(":")[2])):
                return await asking

    response = bridge.run(main())
    assert response.text == "back"
    assert response.attempts > 1


@every_wire
def test_a_stale_connection_is_replaced(wire: str) -> None:
    """A connection that the server has closed does not lose the next call."""
    with ModelServer(lambda _: "Paris") as server:
        server.faults.append(Fault.close_after_response())
        adapter = adapter_for(wire, server.url)

        async def main() -> list[str]:
            async with asyncio.timeout(120):
                first = await adapter.complete(QUESTION)
                await asyncio.sleep(0.05)
                return [first.text, (await adapter.complete(QUESTION)).text]

        assert bridge.run(main()) == ["Paris", "Paris"]


def test_a_body_that_is_too_long_is_refused() -> None:
    """It is not read to its end."""
    with ModelServer() as server:
        server.faults.append(Fault.huge(65 * 1024 * 1024))
        error = complete_failing(adapter_for("openai", server.url), QUESTION)
    assert "bytes" in str(error)


@every_wire
@pytest.mark.parametrize("code", [400, 401, 500])
def test_a_quoted_key_is_removed_from_errors(wire: str, code: int) -> None:
    """A server that quotes our key does not get it into our error."""
    quoting = f'{{"error": {{"message": "no such key: {KEY}"}}}}'.encode()
    with ModelServer(choose_fault=lambda _: Fault.status(code, body=quoting)) as server:
        adapter = adapter_for(wire, server.url)
        error = complete_failing(adapter, QUESTION)
    assert "no such key" in str(error)
    assert KEY not in f"{error} {error!r} {adapter!r} {adapter.model}"


@every_wire
def test_a_burst_of_rejections_is_retried(wire: str) -> None:
    """Of 60 concurrent calls a third is rejected at first; all are answered, each once."""
    refused: set[str] = set()

    def misbehave(asked: RecordedRequest) -> Fault | None:
        if int(asked.text) % 3 or asked.text in refused:
            return None
        refused.add(asked.text)
        return Fault.status(429)

    with ModelServer(lambda asked: asked.text, choose_fault=misbehave) as server:
        adapter = adapter_for(wire, server.url)

        async def main() -> list[str]:
            requests = [ModelRequest((Message("user", str(n)),)) for n in range(60)]
            async with asyncio.timeout(120):
                result = await asyncio.gather(*map(adapter.complete, requests))
            return [response.text for response in result]

        assert bridge.run(main()) == [str(n) for n in range(60)]
        assert len(server.calls) == 80


@every_wire
def test_cancelled_calls_free_their_slots(wire: str) -> None:
    """After a hundred cancelled calls the next one is answered at once."""
    with ModelServer(lambda _: "Paris", choose_fault=lambda _: Fault.hang()) as server:
        adapter = adapter_for(wire, server.url)

        async def main() -> str:
            async with asyncio.timeout(120):
                waiting = [asyncio.ensure_future(adapter.complete(QUESTION)) for _ in range(100)]
                while len(server.calls) < 20:
                    await asyncio.sleep(0.01)
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
                server.choose_fault = None
                return (await adapter.complete(QUESTION, timeout=2)).text

        assert bridge.run(main()) == "Paris"


@every_wire
def test_a_refusal_is_not_a_failure(wire: str) -> None:
    """A refusal is an answer at the first request."""
    with ModelServer(lambda _: ScriptedReply(refusal="No.")) as server:
        response = complete(adapter_for(wire, server.url), QUESTION)
        assert (response.finish_reason, response.text) == ("refusal", "")
        assert len(server.calls) == 1
