"""OpenAI and compatible servers: addresses, requests, responses, rejected settings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from proctor.errors import CallFailed, ModelError
from proctor.models import connect as connections
from proctor.models import openai
from proctor.models.http.endpoint import UnexpectedBody
from proctor.models.http.errors import ErrorBody
from proctor.models.openai import UNLIKELY, OpenAIAdapter, OpenAIWire, connect
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.testing import Fault, ModelServer, ScriptedReply

KEY = "sk-only-for-tests-0123"
HELLO = ModelRequest((Message("user", "Hello"),))
NOTHING: frozenset[str] = frozenset()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PROCTOR_API_KEY", "PROCTOR_PRICES"):
        monkeypatch.delenv(name, raising=False)


def adapter(server: ModelServer, **options: Any) -> OpenAIAdapter:
    options = {"retries": 1, "retry_delay": 0.01, "timeout": 5.0, **options}
    return OpenAIAdapter("gpt-4o-mini", base_url=server.url + "/v1", **options)


def ask(model: OpenAIAdapter, request: ModelRequest = HELLO) -> ModelResponse:
    return asyncio.run(model.complete(request, timeout=9.0))


def body(request: ModelRequest, *, official: bool = True, without: frozenset[str] = NOTHING) -> Any:
    return msgspec.json.decode(OpenAIWire(is_official=official).write("m", request, without))


def read(answer: Any, request: ModelRequest = HELLO) -> ModelResponse:
    return OpenAIWire(is_official=True).read(msgspec.json.encode(answer), request)


def completion(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, **choice}]}


def test_the_address_names_the_provider_or_the_server() -> None:
    """OpenAI's own models have a short address, those of other servers their URL."""
    assert OpenAIAdapter("gpt-4o", api_key=KEY).model == "openai:gpt-4o"
    elsewhere = OpenAIAdapter("qwen", base_url="http://127.0.0.1:8080/v1/")
    assert elsewhere.model == "http://127.0.0.1:8080/v1#qwen"
    assert OpenAIAdapter("qwen", base_url="http://h/v1", name="local:qwen").model == "local:qwen"
    assert repr(elsewhere) == "OpenAIAdapter('http://127.0.0.1:8080/v1#qwen')"


def test_addresses_are_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """`openai:NAME` and `http://…#NAME`, with percent-encoded names."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert connections.provider("openai:gpt-4o").model == "openai:gpt-4o"
    result = connections.provider("https://host.example/v1#org%2Fmodel", supports_json_schema=False)
    assert result.model == "https://host.example/v1#org/model"
    assert not result.supports_json_schema


def test_a_missing_key_is_an_error_on_connection() -> None:
    """The error names the variable."""
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set"):
        connect("openai:gpt-4o")


def test_a_private_server_needs_no_key_and_never_gets_openais(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key comes from api_key, from the named variable, or from PROCTOR_API_KEY."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-others")
    ask(adapter(server))
    monkeypatch.setenv("PROCTOR_API_KEY", "sk-for-others")
    ask(adapter(server))
    monkeypatch.setenv("HOUSE_KEY", "sk-of-the-house")
    ask(adapter(server, api_key_env="HOUSE_KEY"))
    ask(adapter(server, api_key="sk-given"))
    sent = [call.headers.get("authorization") for call in server.calls]
    assert sent == [None, "Bearer sk-for-others", "Bearer sk-of-the-house", "Bearer sk-given"]


def test_a_gateway_from_the_environment_gets_openais_key(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPENAI_BASE_URL names a gateway to the same models: name and price stay, the identity differs."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = connect("openai:gpt-4o-mini", organization="org-7")
    assert (model.model, model.identity) == ("openai:gpt-4o-mini", server.url + "/v1")
    assert ask(model).cost is not None
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.calls[0].headers["openai-organization"] == "org-7"


def test_the_identity_has_what_the_address_lacks() -> None:
    """The server behind OpenAI's name or behind a custom name."""
    assert OpenAIAdapter("gpt-4o", api_key=KEY).identity == ""
    assert OpenAIAdapter("qwen", base_url="http://h/v1").identity == ""
    own = [
        OpenAIAdapter(model, base_url=url, name="mine").identity
        for model, url in (("a", "http://h/v1"), ("b", "http://h/v1"), ("a", "http://i/v1"))
    ]
    assert own[0] == "http://h/v1#a http://h/v1"
    assert len(set(own)) == 3


@pytest.mark.parametrize("url", ["ftp://host/v1", "http://", "http://host:0/v1", "http://[/v1"])
def test_an_invalid_url_is_refused_without_quoting_it(url: str) -> None:
    """It may contain a password."""
    with pytest.raises(ModelError, match="not an http or https URL"):
        OpenAIAdapter("m", base_url=url)


def test_passwords_in_addresses_are_refused() -> None:
    """Addresses are stored with the results; keys are not."""
    for url in ("https://me:secret@host/v1", "https://host/v1?key=secret"):
        with pytest.raises(ModelError, match="contains a password or a query") as caught:
            connect(f"{url}#m")
        assert "secret" not in str(caught.value)


def test_a_model_must_be_named() -> None:
    """`openai:` alone is no model."""
    with pytest.raises(ModelError, match="the model name is missing"):
        connect("openai: ", api_key=KEY)


def test_unknown_options_are_refused(server: ModelServer) -> None:
    """A misspelt option is an error."""
    with pytest.raises(ModelError, match="unknown option 'retry'"):
        connections.provider(server.url + "/v1#m", retry=3)
    with pytest.raises(ModelError, match="already a base URL"):
        connections.provider(server.url + "/v1#m", base_url="http://other/v1")


def test_request_options_get_a_hint() -> None:
    """A temperature is not an option of a connection."""
    with pytest.raises(ModelError, match="unknown option 'temperature'") as caught:
        connections.provider({"model": "openai:gpt-4o", "temperature": 1, "api_key": KEY})
    assert caught.value.fix == "set temperature in the judge or target that uses the model"


def test_without_a_name_the_only_model_is_used(server: ModelServer) -> None:
    """The server is asked once; the address stays."""
    model = connect(server.url + "/v1")
    assert model.model == server.url + "/v1"
    ask(model)
    ask(model)
    assert [call.model for call in server.calls if call.model] == ["loopback", "loopback"]
    assert model.model == server.url + "/v1"


def test_of_several_models_one_must_be_named() -> None:
    """The error names them all and shows how."""
    with ModelServer(models=["a", "b"]) as server:
        with pytest.raises(ModelError, match="has 2 models, not one: a, b") as caught:
            ask(connect(server.url + "/v1"))
        assert f"{server.url}/v1#a" in caught.value.fix


def test_list_models_returns_sorted_names() -> None:
    """From the server that is given."""
    with ModelServer(models=["b", "a"], key=KEY) as server:
        result = asyncio.run(openai.list_models(base_url=server.url + "/v1", api_key=KEY))
        assert result == ["a", "b"]
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        asyncio.run(openai.list_models())


def test_a_conversation_with_tools_is_written() -> None:
    """System, names, calls with or without ids, and their results."""
    request = ModelRequest(
        (
            Message("system", "Be brief."),
            Message("user", "Weather?", name="ann"),
            Message("assistant", "", tool_calls=(ToolCall("look", {"at": "sky"}),)),
            Message("tool", {"sun": True}),
            Message("assistant", "And?", tool_calls=(ToolCall("look", call_id="c9"),)),
            Message("tool", "cloudy", call_id="c9"),
            Message("user", [{"type": "text", "text": "So?"}]),
            Message("user", {"a": 1}),
        ),
        tools=(ToolSpec("look", "Look somewhere."), ToolSpec("go", parameters={"type": "object"})),
    )
    written = body(request)
    call = {"name": "look", "arguments": '{"at":"sky"}'}
    assert written["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?", "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_0", "type": "function", "function": call}]},
        {"role": "tool", "content": '{"sun":true}', "tool_call_id": "call_0"},
        {
            "role": "assistant",
            "content": "And?",
            "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "cloudy", "tool_call_id": "c9"},
        {"role": "user", "content": [{"type": "text", "text": "So?"}]},
        {"role": "user", "content": '{"a":1}'},
    ]
    empty = {"type": "object", "properties": {}}
    assert written["tools"] == [
        {"type": "function", "function": {"name": "look", "parameters": empty, "description": "Look somewhere."}},
        {"type": "function", "function": {"name": "go", "parameters": {"type": "object"}}},
    ]


def test_only_given_settings_are_written() -> None:
    """None leaves a setting to the provider; OpenAI's token limit has another name."""
    assert set(body(HELLO)) == {"model", "messages"}
    request = ModelRequest(HELLO.messages, temperature=0.0, max_tokens=9, seed=4, top_logprobs=5, opinion=3)
    settings = {"temperature": 0.0, "seed": 4, "logprobs": True, "top_logprobs": 5}
    own, other = body(request), body(request, official=False)
    assert own == body(HELLO) | settings | {"max_completion_tokens": 9}
    assert other == body(HELLO) | settings | {"max_tokens": 9}
    bare = body(request, without=frozenset({"temperature", "seed", "top_logprobs", "max_tokens"}))
    assert bare == body(HELLO) | {"max_tokens": 9}


def test_a_schema_is_strict_if_possible() -> None:
    """A free mapping is sent unchanged and not strict."""
    fields = {"type": "object", "properties": {"a": {"type": "string"}}}
    strict = body(ModelRequest(HELLO.messages, schema=fields))["response_format"]["json_schema"]
    assert strict["strict"] is True
    assert strict["schema"]["required"] == ["a"]
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    loose = body(ModelRequest(HELLO.messages, schema=free))["response_format"]["json_schema"]
    assert (loose["strict"], loose["schema"]) == (False, free)


def test_a_response_is_read_completely(server: ModelServer) -> None:
    """Text, model, usage with its cached part, finish reason, latency, and the provider's JSON."""
    server.answer = lambda asked: ScriptedReply("Paris", usage=Usage(100, 7, cached_tokens=60))
    result = ask(adapter(server))
    assert (result.text, result.model, result.finish_reason) == ("Paris", "gpt-4o-mini", "stop")
    assert result.usage == Usage(100, 7, 60)
    assert result.latency_ms is not None
    assert result.latency_ms > 0
    assert result.raw["choices"][0]["message"]["content"] == "Paris"


def test_without_a_model_in_the_response_the_requested_one_counts(server: ModelServer) -> None:
    """Some servers leave it out."""
    server.faults.append(Fault.edit_json(lambda answer: answer.pop("model")))
    assert ask(adapter(server)).model == "gpt-4o-mini"


def test_the_cost_comes_from_the_price_table(server: ModelServer) -> None:
    """100 tokens at 10 and 7 at 20 per million: 0.00114; unknown servers have no price."""
    server.answer = lambda asked: ScriptedReply("Paris", usage=Usage(100, 7))
    address = server.url + "/v1#gpt-4o-mini"
    priced = adapter(server, prices={address: {"input": 10, "output": 20}})
    assert ask(priced).cost == pytest.approx(0.00114)
    assert ask(adapter(server)).cost is None


def test_an_answer_that_is_no_object_is_unwrapped(server: ModelServer) -> None:
    """The server must return an object with the list in it; the caller gets the list."""
    server.answer = lambda asked: '{"value": [3, 4]}'
    request = ModelRequest(HELLO.messages, schema={"type": "array", "items": {"type": "integer"}})
    assert ask(adapter(server), request).text == "[3, 4]"
    assert server.calls[0].schema is not None
    assert server.calls[0].schema["properties"]["value"]["type"] == "array"


def test_tool_calls_are_read_in_all_variants() -> None:
    """Arguments as text or as an object; anything else is the call's error."""
    calls = [
        {"id": "1", "function": {"name": "a", "arguments": '{"x": 1}'}},
        {"id": "2", "function": {"name": "b", "arguments": {"y": 2}}},
        {"function": {"name": "c"}},
        {"id": "4", "function": {"name": "d", "arguments": "[1]"}},
        {"id": "5"},
    ]
    parsed = read(completion({"content": None, "tool_calls": calls}, finish_reason="stop"))
    assert parsed.finish_reason == "tool_calls"
    assert parsed.tool_calls[:3] == (
        ToolCall("a", {"x": 1}, call_id="1"),
        ToolCall("b", {"y": 2}, call_id="2"),
        ToolCall("c"),
    )
    assert parsed.tool_calls[3].error == "the model's arguments are not a JSON object: '[1]'"
    assert len(parsed.tool_calls) == 4


def test_refusals_are_responses() -> None:
    """The model's own, the filter's with a text, or the filter's alone."""
    own = read(completion({"refusal": "I will not."}, finish_reason="stop"))
    assert (own.refusal, own.finish_reason) == ("I will not.", "refusal")
    cut = read(completion({"content": "Take some"}, finish_reason="content_filter"))
    assert (cut.refusal, cut.finish_reason) == ("Take some", "refusal")
    mute = read(completion({"content": None}, finish_reason="content_filter"))
    assert mute.refusal == "the provider's content filter stopped the answer"


@pytest.mark.parametrize(
    ("finished", "reason"), [("stop", "stop"), ("length", "length"), ("function_call", "tool_calls"), ("eos", "eos")]
)
def test_finish_reasons_are_mapped(finished: str, reason: str) -> None:
    """The common reasons have one name; others keep theirs."""
    assert read(completion({"content": "x"}, finish_reason=finished)).finish_reason == reason


def test_an_empty_answer_is_valid() -> None:
    """No content, no usage, no reason: nothing is invented."""
    parsed = read(completion({"content": None}))
    assert (parsed.text, parsed.usage, parsed.finish_reason) == ("", Usage(), None)


def test_content_in_parts_is_joined() -> None:
    """Some servers answer in parts; those with text are the answer."""
    parts = [{"type": "text", "text": "Par"}, {"type": "x"}, 7, {"text": "is"}]
    assert read(completion({"content": parts})).text == "Paris"


def test_logprobs_are_read() -> None:
    """Each token with its alternatives; a missing value is very unlikely."""
    token = {"token": "A", "logprob": -0.1, "top_logprobs": [{"token": "B", "logprob": None}]}
    parsed = read(completion({"content": "A"}, logprobs={"content": [token, {"token": "C"}]}))
    assert parsed.logprobs == (TokenLogprobs("A", -0.1, {"B": UNLIKELY}), TokenLogprobs("C", UNLIKELY))
    assert read(completion({"content": "A"}, logprobs={"content": None})).logprobs == ()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"content": 7}}]},
        [],
    ],
)
def test_an_unexpected_body_is_an_error(answer: Any) -> None:
    """It is never an empty text."""
    with pytest.raises(UnexpectedBody):
        read(answer)


def unsupported(parameter: str, code: str = "unsupported_value") -> Fault:
    error = {"message": f"no {parameter} here", "param": parameter, "code": code}
    return Fault.status(400, body=msgspec.json.encode({"error": error}))


def test_a_rejected_setting_is_left_out_from_then_on(server: ModelServer) -> None:
    """The call is repeated without it, and later calls do not send it."""
    server.faults.append(unsupported("temperature"))
    model = adapter(server)
    request = ModelRequest(HELLO.messages, temperature=0.0, seed=3)
    assert ask(model, request).attempts == 2
    assert ask(model, request).attempts == 1
    sent = [call.settings for call in server.calls]
    assert sent == [{"temperature": 0.0, "seed": 3}, {"seed": 3}, {"seed": 3}]


def test_several_settings_may_be_rejected_in_turn(server: ModelServer) -> None:
    """Also the old name of the token limit, which is then sent under the new one."""
    server.faults.extend([unsupported("max_tokens", "unsupported_parameter"), unsupported("seed")])
    request = ModelRequest(HELLO.messages, max_tokens=5, seed=1)
    assert asyncio.run(adapter(server).complete(request)).attempts == 3
    assert "max_completion_tokens" in server.calls[2].body
    assert "seed" not in server.calls[2].body


def test_a_repeated_rejection_is_an_error(server: ModelServer) -> None:
    """A setting that is no longer sent is not left out again."""
    server.choose_fault = lambda asked: unsupported("temperature")
    with pytest.raises(CallFailed, match="no temperature here"):
        ask(adapter(server), ModelRequest(HELLO.messages, temperature=0.0))
    assert len(server.calls) == 2


def test_only_a_setting_that_was_sent_can_be_left_out() -> None:
    """Other rejections are errors: wrong values, other parameters, settings that were not sent."""
    wire = OpenAIWire(is_official=True)
    request = ModelRequest(HELLO.messages, temperature=3.0)
    for complaint in (
        ErrorBody(code="decimal_above_max_value", parameter="temperature"),
        ErrorBody(code="unsupported_value", parameter="messages"),
        ErrorBody(code="unsupported_value", parameter="seed"),
    ):
        assert wire.rejected_field(complaint, request) is None


def test_the_second_attempt_has_the_remaining_time(server: ModelServer) -> None:
    """Leaving a setting out does not restart the timeout."""
    server.faults.extend([unsupported("temperature"), Fault.hang(20)])
    request = ModelRequest(HELLO.messages, temperature=0.0)
    with pytest.raises(CallFailed, match="in all"):
        asyncio.run(adapter(server).complete(request, timeout=2.0))
