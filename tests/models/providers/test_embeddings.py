"""Embeddings from an endpoint: a local server that fails on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from proctor import Sample, evaluate, semantic_similarity
from proctor.errors import CallFailed, ModelError, RunStopped
from proctor.models import connect as connections
from proctor.models.embeddings import EndpointEmbedder
from proctor.models.openai import OpenAIAdapter
from proctor.testing import Fault, ModelServer
from tests.tables import each_row

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PROCTOR_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(embed=lambda text: [float(len(text)), 0.5]) as running:
        yield running


def embed(embedder: Any, *texts: str) -> list[list[float]]:
    vectors = asyncio.run(asyncio.wait_for(embedder.embed(texts), 20))
    return [list(vector) for vector in vectors]


def at(server: ModelServer, **options: Any) -> Any:
    options = {"retry_delay": 0.01, **options}
    return connections.embedder(f"{server.url}/v1#small", **options)


def test_texts_are_sent_in_batches_and_once_each(server: ModelServer) -> None:
    """A hundred texts, twice: two requests; the vectors are in the order of the texts."""
    texts = [f"{'x' * n}" for n in range(1, 101)]
    embedder = at(server)
    assert [vector[0] for vector in embed(embedder, *texts)] == list(range(1, 101))
    assert [vector[0] for vector in embed(embedder, *texts[::-1])] == list(range(100, 0, -1))
    assert [len(call.texts) for call in server.calls] == [64, 36]
    assert {call.model for call in server.calls} == {"small"}
    assert (embedder.name, embedder.method) == (f"{server.url}/v1#small", "embeddings")


def test_no_proxy_is_used_for_this_machine(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """By number or by name."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for host in ("127.0.0.1", "localhost"):
        address = f"{server.url}/v1#small".replace("127.0.0.1", host)
        assert embed(connections.embedder(address, retries=0), "abc") == [[3.0, 0.5]]


def test_dimensions_are_sent_and_part_of_the_name(server: ModelServer) -> None:
    """Shorter vectors are another embedder."""
    embedder = at(server, dimensions=1)
    embed(embedder, "a")
    assert server.calls[0].settings == {"dimensions": 1}
    assert embedder.name.endswith("#small (1 dimensions)")


@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(429),
        Fault.status(429, retry_after=0.01),
        Fault.status(500),
        Fault.status(503, body=b"<html>busy</html>"),
        Fault.truncate(),
        Fault.close(),
        Fault.body(b"{truncated"),
        Fault.hang(0.4),
        Fault.drip(pause=0.2),
    ],
)
def test_transient_errors_are_retried(server: ModelServer, fault: Fault) -> None:
    """Rate limits, server errors, lost connections, cut bodies, timeouts."""
    server.faults += [fault, fault]
    # A busy machine may need more than 0.3 s for an answer, too.
    assert embed(at(server, timeout=0.3, retries=50), "abc") == [[3.0, 0.5]]
    assert len(server.calls) >= 3


def test_retries_are_limited(server: ModelServer) -> None:
    """After the first request and `retries` more."""
    server.choose_fault = lambda asked: Fault.status(500)
    with pytest.raises(CallFailed, match="answered 500") as caught:
        embed(at(server, retries=2), "abc")
    assert caught.value.retryable
    assert len(server.calls) == 3


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.status(400), "answered 400"),
        (Fault.status(401), "answered 401"),
        (Fault.body(b'{"data": [{"index": 0, "embedding": "AAAA"}]}'), "unexpected format"),
        (Fault.body(b'{"choices": []}'), "unexpected format"),
        (Fault.body(b'{"data": []}'), "has 0 vectors for 1 texts"),
        (Fault.body(b'{"data": [{"index": 3, "embedding": [1.0]}]}'), "or wrong indexes"),
    ],
)
def test_final_errors_are_not_retried(server: ModelServer, fault: Fault, expected: str) -> None:
    """One request, and an error that quotes the response."""
    server.faults += [fault]
    with pytest.raises(CallFailed, match=expected) as caught:
        embed(at(server), "abc")
    assert not caught.value.retryable
    assert len(server.calls) == 1


def test_vectors_out_of_order_are_put_in_order(server: ModelServer) -> None:
    """By their numbers."""
    body = b'{"data": [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]}'
    server.faults += [Fault.body(body)]
    assert embed(at(server), "a", "b") == [[1.0], [2.0]]


def test_one_text_that_is_refused_fails_alone(server: ModelServer) -> None:
    """Endpoints refuse an empty text; its neighbours have their vectors."""
    embedder = at(server)

    async def main() -> list[Any]:
        request = (embedder.embed([text]) for text in ("good", "", "fine"))
        return await asyncio.gather(*request, return_exceptions=True)

    good, bad, fine = asyncio.run(asyncio.wait_for(main(), 20))
    assert (good[0][0], fine[0][0]) == (4.0, 4.0)
    assert isinstance(bad, CallFailed)


def test_chats_and_embeddings_share_one_limiter(server: ModelServer) -> None:
    """A pause requested for one applies to both, because they use the same account."""
    chat = OpenAIAdapter("any", base_url=f"{server.url}/v1")
    embedder = EndpointEmbedder("small", base_url=f"{server.url}/v1")
    assert embedder._endpoint is chat.endpoint


def test_an_unreachable_server_is_a_transient_error() -> None:
    """It may be available later."""
    embedder = EndpointEmbedder("m", base_url="http://127.0.0.1:9/v1", retries=0)
    with pytest.raises(CallFailed, match=r"#m could not be reached: ConnectError") as caught:
        embed(embedder, "abc")
    assert caught.value.retryable


def test_the_key_comes_from_the_environment_or_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is sent as a bearer token; OPENAI_BASE_URL names another server."""
    with ModelServer(key=KEY) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert len(embed(connections.embedder("openai:small"), "a")) == 1
        assert len(embed(at(server, api_key=KEY), "a")) == 1
        monkeypatch.setenv("OTHER", KEY)
        assert len(embed(at(server, api_key_env="OTHER"), "a")) == 1
        monkeypatch.setenv("PROCTOR_API_KEY", KEY)
        assert len(embed(at(server), "a")) == 1


def test_the_key_of_openai_is_for_openai_alone(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server does not get to see it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embed(at(server), "a")
    embed(connections.embedder("openai:small", base_url=f"{server.url}/v1"), "a")
    assert all("authorization" not in call.headers for call in server.calls)
    assert len(server.calls) == 2


def test_the_key_is_never_shown(server: ModelServer) -> None:
    """Not in errors that quote it, and not in the representation."""
    server.faults += [Fault.status(401, body=f"wrong key {KEY}".encode())]
    embedder = EndpointEmbedder("m", base_url=f"{server.url}/v1", api_key=KEY)
    with pytest.raises(CallFailed, match=r"wrong key \[hidden\]") as caught:
        embed(embedder, "a")
    assert KEY not in str(caught.value) + repr(embedder)


@each_row(
    ("address", "options", "match"),
    [
        ("openai:small", {}, "no API key: OPENAI_API_KEY is not set"),
        ("http://127.0.0.1/v1#m", {"api_key_env": "MINE"}, "no API key: MINE is not set"),
        ("openai:small", {"api_key": "schlüssel"}, "contains invalid characters"),
        ("openai:", {"api_key": KEY}, "the model name is missing"),
        ("http://127.0.0.1/v1", {}, "the address does not name a model"),
        ("http:/nothing#m", {}, "not an http or https URL"),
        ("http://[::1#m", {}, "not an http or https URL"),
        ("openai:m", {"base_url": "ftp://x/v1"}, "not an http or https URL"),
        ("http://me:pw@host/v1#m", {}, "contains a password or a query"),
        ("http://host/v1#m", {"base_url": "http://other"}, "already a base URL"),
        ("http://host/v1#m", {"retries": "many"}, "retries"),
        ("http://host/v1#m", {"retires": 3}, "retires"),
        ("http://host/v1#m", {"dimensions": "few"}, "dimensions must be an integer, got 'few'"),
    ],
)
def test_invalid_options_are_refused_on_connection(address: str, options: dict[str, Any], match: str) -> None:
    """Before anything runs, and never with the password."""
    with pytest.raises(ModelError, match=match) as caught:
        connections.embedder(address, **options)
    assert "pw" not in str(caught.value)
    assert "schl" not in str(caught.value)


def test_requests_count_against_the_budget_of_the_run(server: ModelServer) -> None:
    """Two hundred texts are more than two batches; after the second no further one is sent."""
    data = [Sample(f"s{n}", "?", f"text {n}") for n in range(100)]
    embedder = at(server)
    with pytest.raises(RunStopped, match="2 of 2 calls"):
        evaluate(
            lambda question: "x", data, semantic_similarity(embedder), history=False, budget={"calls": 2}, concurrency=1
        )
    assert len(server.calls) == 2
