"""Clients of the real `openai` and `anthropic` packages, over the loopback server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import anthropic
import openai
import pytest

from proctor.errors import CallFailed, ModelError
from proctor.models.clients.sdk import MAX_MESSAGE_CHARS, ClientAdapter
from proctor.models.connect import provider
from proctor.models.prices import Price, Prices
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.testing import Fault, RecordedRequest, ScriptedReply
from tests.models.providers.scripted import asked
from tests.servers.model_server import ModelServer

SECRET = "sk-this-is-a-secret-0123456789"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def _said(asked: RecordedRequest) -> ScriptedReply:
    if asked.schema is not None:
        return ScriptedReply('{"a":1}', usage=Usage(10, 5))
    if asked.tools and asked.messages[-1].role != "tool":
        return ScriptedReply(tool_calls=(ToolCall("add", {"a": 2}, call_id="c1"),), usage=Usage(10, 5))
    chances = (TokenLogprobs("Paris", -0.1, {"Rome": -3.0}),)
    return ScriptedReply("Paris", usage=Usage(10, 5), logprobs=chances)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(_said) as running:
        yield running


def _client(kind: str, server: ModelServer, **options: Any) -> Any:
    options = {"api_key": SECRET, "max_retries": 0, **options}
    if kind == "openai":
        return openai.OpenAI(base_url=server.url + "/v1", **options)
    if kind == "openai async":
        return openai.AsyncOpenAI(base_url=server.url + "/v1", **options)
    if kind == "anthropic":
        return anthropic.Anthropic(base_url=server.url, **options)
    return anthropic.AsyncAnthropic(base_url=server.url, **options)


KINDS = ["openai", "openai async", "anthropic", "anthropic async"]


def complete(
    kind: str, server: ModelServer, request: ModelRequest, *, timeout: float | None = None, **options: Any
) -> ModelResponse:
    """Ask through a client and close it, in one loop."""

    async def main() -> ModelResponse:
        client = _client(kind, server)
        try:
            async with asyncio.timeout(120):
                model = provider(client, name="some-model", **options)
                return await model.complete(request, timeout=timeout)
        finally:
            closed = client.close()
            if closed is not None:
                await closed

    return asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_is_answered(kind: str, server: ModelServer) -> None:
    """System and user messages are sent; text, usage, finish reason and model are returned."""
    talk = (Message("system", "Be brief."), Message("user", "Capital of France?"))
    response = complete(kind, server, ModelRequest(talk, temperature=0.0, max_tokens=7))
    assert (response.text, response.finish_reason) == ("Paris", "stop")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (10, 5)
    (call,) = server.calls
    assert call.model == "some-model"
    assert [(m.role, m.content) for m in call.messages] == [
        ("system", "Be brief."), ("user", "Capital of France?"),
    ]  # fmt: skip
    assert call.settings["temperature"] == 0.0
    assert call.settings["max_tokens"] == 7


@pytest.mark.parametrize("kind", KINDS)
def test_structured_output_is_requested(kind: str, server: ModelServer) -> None:
    """The schema reaches the server, and the answer is its JSON."""
    response = complete(kind, server, asked(schema=SCHEMA))
    assert response.text == '{"a":1}'
    assert server.calls[0].schema is not None


@pytest.mark.parametrize("kind", KINDS)
def test_tools_make_a_round_trip(kind: str, server: ModelServer) -> None:
    """A call is returned, its result is sent, and the answer follows."""
    tools = (ToolSpec("add", "adds", SCHEMA),)
    first = complete(kind, server, asked(tools=tools))
    assert first.finish_reason == "tool_calls"
    assert [(c.name, c.arguments) for c in first.tool_calls] == [("add", {"a": 2})]
    talk = (
        *asked().messages,
        Message("assistant", "", tool_calls=first.tool_calls),
        Message("tool", "4", call_id=first.tool_calls[0].call_id),
    )
    assert complete(kind, server, ModelRequest(talk, tools)).text == "Paris"
    assert server.calls[1].messages[-1].role == "tool"


@pytest.mark.parametrize("kind", ["openai", "openai async"])
def test_probabilities_of_tokens_come_back(kind: str, server: ModelServer) -> None:
    """Where the provider has them."""
    response = complete(kind, server, asked(top_logprobs=2))
    assert response.logprobs == (TokenLogprobs("Paris", -0.1, {"Rome": -3.0}),)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fault", "retryable", "retry_after"),
    [
        (Fault.rate_limit(7), True, 7.0),
        (Fault.rate_limit(1.5, "milliseconds"), True, 1.5),
        (Fault.status(500), True, None),
        (Fault.status(400), False, None),
        (Fault.status(401), False, None),
        (Fault.reset_connection(), True, None),
    ],
)
def test_errors_become_failed_calls(
    kind: str, server: ModelServer, fault: Fault, retryable: bool, retry_after: float | None
) -> None:
    """With whether and when another try may help, from the status and the headers."""
    server.faults.append(fault)
    with pytest.raises(CallFailed) as caught:
        complete(kind, server, asked())
    assert (caught.value.retryable, caught.value.retry_after) == (retryable, retry_after)


@pytest.mark.parametrize("kind", KINDS)
def test_the_clients_key_is_never_shown(kind: str, server: ModelServer) -> None:
    """Not in the adapter's representation, nor where a server quotes it."""
    quoted = b'{"error": {"message": "wrong key ' + SECRET.encode() + b'"}}'
    server.faults.append(Fault.status(401, body=quoted))
    with pytest.raises(CallFailed, match="wrong key") as caught:
        complete(kind, server, asked())
    assert SECRET not in str(caught.value)
    client = _client(kind, server)
    adapter = provider(client, name="m")
    assert SECRET not in f"{adapter!r} {adapter.model}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_server_times_out(kind: str, server: ModelServer) -> None:
    """After the timeout of the call, not that of the client."""
    server.faults.append(Fault.hang(5))
    with pytest.raises(CallFailed) as caught:
        complete(kind, server, asked(), timeout=0.2)
    assert caught.value.retryable


def test_a_rejected_setting_is_left_out(server: ModelServer) -> None:
    """The call is repeated without it, and later calls do not send it."""
    objection = b'{"error": {"message": "no temperature", "code": "unsupported_parameter", "param": "temperature"}}'
    server.faults.append(Fault.status(400, body=objection))

    async def main() -> None:
        async with _client("openai async", server) as client:
            model = provider(client, name="o-model")
            for _ in range(2):
                assert (await model.complete(asked(temperature=0.0))).text == "Paris"

    asyncio.run(main())
    # The request that met the fault is counted too.
    assert [call.settings.get("temperature") for call in server.calls][-2:] == [None, None]
    assert len(server.calls) == 3


def test_an_unexpected_body_is_an_error(server: ModelServer) -> None:
    """A response without choices."""
    server.faults.append(Fault.edit_json(lambda answer: answer.update(choices=[])))
    with pytest.raises(CallFailed, match="choices"):
        complete("openai async", server, asked())


def test_the_cost_is_known_if_the_price_is(server: ModelServer) -> None:
    """From the given table; otherwise it is unknown."""
    price = Price(input=1.0, output=2.0)
    prices = Prices({"some-model": price, f"{server.url}/v1#some-model": price})
    for kind in ("openai", "anthropic"):
        assert complete(kind, server, asked(), prices=prices).cost == pytest.approx(20e-6)
        assert complete(kind, server, asked(), prices=Prices({})).cost is None


def test_the_price_of_cache_writes_is_not_guessed(server: ModelServer) -> None:
    """Anthropic charges more for input that it caches; the table does not have that price."""
    server.faults.append(Fault.edit_json(lambda answer: answer["usage"].update(cache_creation_input_tokens=5)))
    prices = Prices({"some-model": Price(input=1.0, output=2.0)})
    assert complete("anthropic", server, asked(), prices=prices).cost is None


def test_addresses_are_those_of_our_own_adapters(server: ModelServer) -> None:
    """The provider's own server by its name, any other by its URL."""
    at_home = openai.OpenAI(api_key=SECRET)
    assert provider({"model": at_home, "name": "gpt-4o"}).model == "openai:gpt-4o"
    other = ClientAdapter(_client("openai", server), name="m", supports_json_schema=False)
    assert (other.model, other.supports_json_schema) == (f"{server.url}/v1#m", False)
    claude = ClientAdapter(anthropic.Anthropic(api_key=SECRET), name="claude")
    assert (claude.model, repr(claude)) == (
        "anthropic:claude", "ClientAdapter('anthropic:claude')",
    )  # fmt: skip
    with_password = SimpleNamespace(
        base_url="https://me:secret@host/v1?key=1", chat=SimpleNamespace(completions=SimpleNamespace(create=print))
    )
    assert ClientAdapter(with_password, name="m").model == "https://host/v1#m"


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_name_is_required(kind: str, server: ModelServer) -> None:
    """A client does not know which model is meant."""
    with pytest.raises(ModelError, match="the model name") as caught:
        provider(_client(kind, server))
    assert "name" in str(caught.value)


def test_a_custom_client_is_called_by_keyword() -> None:
    """Any object with `chat.completions.create(**body)` that returns the JSON."""
    error: dict[str, Any] = {}

    def create(**body: Any) -> dict[str, Any]:
        error.update(body)
        return {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}

    mine = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    response = asyncio.run(provider(mine, name="m").complete(asked("x", seed=1)))
    assert (response.text, response.usage) == ("hi", Usage())
    assert (error["model"], error["seed"]) == ("m", 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_at_the_cut_of_a_message_is_hidden(kind: str, server: ModelServer) -> None:
    """Wherever the cut falls, no part of the key is shown."""
    for before in range(MAX_MESSAGE_CHARS - 80, MAX_MESSAGE_CHARS, 16):
        quoted = b'{"error": {"message": "' + b"x" * before + SECRET.encode() + b'"}}'
        server.faults.append(Fault.status(400, body=quoted))
        with pytest.raises(CallFailed) as caught:
            complete(kind, server, asked())
        assert SECRET[:7] not in str(caught.value)


@pytest.mark.parametrize(("kind", "named"), [("openai", "response_format"), ("anthropic", "output_config")])
def test_a_server_without_schemas_gets_instructions(kind: str, named: str, server: ModelServer) -> None:
    """The call is repeated without the schema, and `supports_json_schema` is False from then on."""
    body = b'{"error": {"message": "' + named.encode() + b' is not supported"}}'
    server.faults.append(Fault.status(400, body=body))
    with contextlib.closing(_client(kind, server)) as client:
        model = provider(client, name="some-model")
        values = [model.supports_json_schema]
        asyncio.run(model.complete(asked(schema=SCHEMA), timeout=10))
        assert [*values, model.supports_json_schema] == [True, False]
    first, second = server.calls
    assert (first.schema is not None, second.schema) == (True, None)
    assert "It must fit this JSON Schema" in str(second.messages)
