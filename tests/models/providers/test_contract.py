"""Every adapter passes the provider contract."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Any

import pytest

from proctor.models.anthropic import AnthropicAdapter
from proctor.models.clients.python import FunctionAdapter
from proctor.models.gemini import GeminiAdapter
from proctor.models.openai import OpenAIAdapter
from proctor.ports import ProviderAdapter
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Usage
from proctor.testing import EndpointContract, ProviderContract, RecordedRequest, ScriptedReply
from proctor.testing.model_server import Answer
from tests.servers.model_server import ModelServer
from tests.tables import each_row

KEY = "sk-only-for-tests"
QUICK: dict[str, Any] = {"retries": 2, "retry_delay": 0.01, "timeout": 5.0}


class TestOpenAI(EndpointContract):
    logprobs = True

    def connect(self, url: str) -> ProviderAdapter:
        return OpenAIAdapter("gpt-4o-mini", base_url=f"{url}/v1", api_key=KEY, **QUICK)


class TestAnthropic(EndpointContract):
    server_type = ModelServer
    settings = ("temperature", "max_tokens")

    def connect(self, url: str) -> ProviderAdapter:
        return AnthropicAdapter("claude-x", base_url=url, api_key=KEY, **QUICK)


class TestGemini(EndpointContract):
    server_type = ModelServer
    logprobs = True

    def connect(self, url: str) -> ProviderAdapter:
        return GeminiAdapter("gemini-x", base_url=url, api_key=KEY, **QUICK)


class TestFunction(ProviderContract):
    logprobs = True

    def open_adapter(self, answer: Answer) -> AbstractContextManager[ProviderAdapter]:
        def function(request: ModelRequest) -> ModelResponse:
            answered = answer(_asked(request))
            reply = ScriptedReply(answered) if isinstance(answered, str) else answered
            return ModelResponse(
                reply.text,
                tool_calls=reply.tool_calls,
                usage=reply.usage or Usage(),
                finish_reason=reply.reason,
                refusal=reply.refusal,
                logprobs=reply.logprobs,
            )

        return contextlib.nullcontext(FunctionAdapter(function, supports_json_schema=True))


def _asked(request: ModelRequest) -> RecordedRequest:
    settings = ("temperature", "max_tokens", "seed")
    return RecordedRequest(
        "openai",
        "",
        messages=request.messages,
        schema=request.schema,
        tools=request.tools,
        settings={name: getattr(request, name) for name in settings},
    )


class Silent:
    """An adapter that is wrong in most ways: it says nothing, whatever it is asked."""

    model = ""
    supports_json_schema = True

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        return ModelResponse()


class Wrong(EndpointContract):
    def connect(self, url: str) -> ProviderAdapter:
        return Silent()


@each_row("name", sorted(name for name in dir(Wrong) if name.startswith("test_")))
def test_a_wrong_adapter_fails_the_contract(name: str) -> None:
    """Each test of the contract fails with an adapter that always returns nothing."""
    if name == "test_logprobs_are_returned_where_supported":
        return  # an adapter without logprobs passes
    with pytest.raises((AssertionError, IndexError)):
        getattr(Wrong(), name)()


@pytest.mark.parametrize("contract", [ProviderContract(), EndpointContract()])
def test_the_contract_says_what_is_missing(contract: ProviderContract) -> None:
    """A contract without `connect` says so."""
    with pytest.raises(NotImplementedError, match=r"implement (connect|open_adapter)"):
        contract.test_an_adapter_has_a_model_address()
