"""Contract tests that every model adapter must pass."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from proctor.core import bridge
from proctor.errors import CallFailed
from proctor.ports import ProviderAdapter
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.testing.assertions import assert_raises
from proctor.testing.faults import Fault
from proctor.testing.model_server import Answer, ModelServer
from proctor.testing.wire_format import RecordedRequest, ScriptedReply

TIMEOUT_SECONDS = 30.0
QUESTION = ModelRequest((Message("user", "What is the capital of France?"),))
CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SCHEMA = {**CITY, "additionalProperties": False}
WEATHER = ToolSpec("weather", "How the weather is in a city.", CITY)


def complete(adapter: ProviderAdapter, request: ModelRequest, timeout: float | None = None) -> ModelResponse:
    """Send one request through an adapter; fail instead of waiting forever."""

    async def call() -> ModelResponse:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await adapter.complete(request, timeout=timeout)

    return bridge.run(call())


def complete_failing(adapter: ProviderAdapter, request: ModelRequest, timeout: float | None = None) -> CallFailed:
    """Send one request that must fail, and return the error."""
    error = assert_raises(CallFailed, complete, adapter, request, timeout)
    assert isinstance(error, CallFailed)
    return error


class ProviderContract:
    """Tests that every model adapter must pass. Inherit from it and implement `open_adapter`.

    Set `settings` to the settings that reach the model, `logprobs` to True if the model returns logprobs, and
    `reports_usage` to False if it does not report its usage. If your adapter talks to a server, inherit from
    `EndpointContract` instead.

    >>> class TestMyAdapter(ProviderContract):
    ...     def open_adapter(self, answer):
    ...         return contextlib.nullcontext(my_adapter(answer))
    """

    settings: tuple[str, ...] = ("temperature", "max_tokens", "seed")
    logprobs = False
    reports_usage = True

    def open_adapter(self, answer: Answer) -> AbstractContextManager[ProviderAdapter]:
        """Return an adapter whose model replies with the result of `answer`."""
        raise NotImplementedError("implement open_adapter() to return an adapter that calls `answer`")

    def test_a_response_has_text_finish_reason_model_and_usage(self) -> None:
        usage = Usage(input_tokens=7, output_tokens=3, cached_tokens=2)
        response = self._respond(ScriptedReply("Paris – “été”", usage=usage))
        assert response.text == "Paris – “été”"
        assert response.finish_reason == "stop"
        assert response.refusal is None
        assert response.model, "the response does not name its model"
        if self.reports_usage:
            assert (response.usage.input_tokens, response.usage.output_tokens) == (7, 3)
            assert response.usage.cached_tokens == 2

    def test_an_adapter_has_a_model_address(self) -> None:
        with self.open_adapter(lambda _: "Paris") as adapter:
            assert isinstance(adapter.model, str)
            assert adapter.model

    def test_messages_arrive_in_order_with_their_roles(self) -> None:
        messages = (
            Message("system", "Be brief."),
            Message("user", "2 + 2?"),
            Message("assistant", "4"),
            Message("user", "And 3 + 3?"),
        )
        recorded = self._record(ModelRequest(messages)).messages
        expected = [(message.role, message.content) for message in messages]
        assert [(message.role, message.content) for message in recorded] == expected

    def test_settings_arrive(self) -> None:
        values = {"temperature": 0.5, "max_tokens": 33, "seed": 7}
        recorded = self._record(ModelRequest(QUESTION.messages, **values)).settings  # type: ignore[arg-type]
        for name in self.settings:
            assert recorded.get(name) == values[name], name

    def test_a_schema_arrives_if_the_adapter_enforces_schemas(self) -> None:
        def answer(request: RecordedRequest) -> str:
            return f'{{"city": "{" ".join((request.schema or {}).get("properties", {}))}"}}'

        with self.open_adapter(answer) as adapter:
            if not adapter.supports_json_schema:
                return
            response = complete(adapter, ModelRequest(QUESTION.messages, schema=SCHEMA))
        assert response.text == '{"city": "city"}'

    def test_tool_calls_and_their_results_are_exchanged(self) -> None:
        recorded: list[RecordedRequest] = []

        def answer(request: RecordedRequest) -> str | ScriptedReply:
            recorded.append(request)
            if request.messages[-1].role == "tool":
                return f"It is {request.messages[-1].content}."
            calls = tuple(ToolCall("weather", {"city": city}) for city in ("Paris", "Rome"))
            return ScriptedReply(tool_calls=calls)

        with self.open_adapter(answer) as adapter:
            first = complete(adapter, ModelRequest(QUESTION.messages, tools=(WEATHER,)))
            results = [
                Message("tool", f"{18 + index} degrees", name=call.name, call_id=call.call_id)
                for index, call in enumerate(first.tool_calls)
            ]
            reply = Message("assistant", first.text, tool_calls=first.tool_calls)
            second = complete(adapter, ModelRequest((*QUESTION.messages, reply, *results), tools=(WEATHER,)))
        assert first.finish_reason == "tool_calls"
        calls = [(call.name, call.arguments) for call in first.tool_calls]
        assert calls == [("weather", {"city": "Paris"}), ("weather", {"city": "Rome"})]
        assert recorded[0].tools == (WEATHER,)
        assert [call.name for call in recorded[1].messages[-3].tool_calls] == ["weather", "weather"]
        assert second.text == "It is 19 degrees."

    def test_a_refusal_is_a_response_without_text(self) -> None:
        response = self._respond(ScriptedReply(refusal="I would rather not."))
        assert response.finish_reason == "refusal"
        assert response.refusal is not None
        assert response.text == ""

    def test_empty_and_truncated_texts_are_responses(self) -> None:
        for text, reason in (("", "stop"), ("Par", "length")):
            response = self._respond(ScriptedReply(text, finish_reason=reason))
            assert (response.text, response.finish_reason) == (text, reason)

    def test_logprobs_are_returned_where_supported(self) -> None:
        logprobs = (TokenLogprobs("Yes", -0.25, {"Yes": -0.25, "No": -1.5}),)
        request = ModelRequest(QUESTION.messages, top_logprobs=2)
        response = self._respond(ScriptedReply("Yes", logprobs=logprobs), request)
        assert response.logprobs == (logprobs if self.logprobs else ())

    def test_concurrent_calls_get_their_own_responses(self) -> None:
        with self.open_adapter(lambda request: f"received {request.text}") as adapter:

            async def complete_all() -> list[ModelResponse]:
                requests = [ModelRequest((Message("user", str(n)),)) for n in range(30)]
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    return await asyncio.gather(*map(adapter.complete, requests))

            texts = [response.text for response in bridge.run(complete_all())]
        assert texts == [f"received {n}" for n in range(30)]

    def test_a_timeout_is_a_retryable_error(self) -> None:
        has_failed = threading.Event()

        def answer_late(_: RecordedRequest) -> str:
            has_failed.wait(TIMEOUT_SECONDS / 2)
            return "too late"

        with self.open_adapter(answer_late) as adapter:
            try:
                error = complete_failing(adapter, QUESTION, timeout=0.1)
            finally:
                has_failed.set()
        assert error.retryable

    def _respond(self, reply: ScriptedReply, request: ModelRequest = QUESTION) -> ModelResponse:
        with self.open_adapter(lambda _: reply) as adapter:
            return complete(adapter, request)

    def _record(self, request: ModelRequest) -> RecordedRequest:
        recorded: list[RecordedRequest] = []

        def answer(request: RecordedRequest) -> str:
            recorded.append(request)
            return "well"

        with self.open_adapter(answer) as adapter:
            complete(adapter, request)
        return recorded[0]


class EndpointContract(ProviderContract):
    """Tests for an adapter that talks to a server, including server faults; implement `connect`.

    The adapter must retry at most twice, with short delays, so that the tests are quick.
    Set `server_type` to a subclass of `ModelServer` if your adapter uses another format than OpenAI's.
    """

    server_type: type[ModelServer] = ModelServer

    def connect(self, url: str) -> ProviderAdapter:
        """Return an adapter for the model server at this URL."""
        raise NotImplementedError("implement connect() to return an adapter for the server at `url`")

    @contextlib.contextmanager
    def open_adapter(self, answer: Answer) -> Iterator[ProviderAdapter]:
        """Return an adapter for a model server that replies with the result of `answer`."""
        with self.server_type(answer) as server:
            yield self.connect(server.url)

    def test_transient_errors_are_retried(self) -> None:
        for fault in (*map(Fault.status, (429, 500, 503)), Fault.reset_connection()):
            with self.server_type(lambda _: "Paris") as server:
                server.faults.append(fault)
                response = complete(self.connect(server.url), QUESTION)
                assert (response.text, response.attempts) == ("Paris", 2), fault
                assert len(server.calls) == 2, fault

    def test_exhausted_retries_are_a_retryable_error(self) -> None:
        with self.server_type(choose_fault=lambda _: Fault.status(500)) as server:
            error = complete_failing(self.connect(server.url), QUESTION)
        assert error.retryable
        assert "500" in str(error)

    def test_invalid_requests_are_not_retried(self) -> None:
        for code in (400, 401, 403, 404):
            with self.server_type() as server:
                server.faults.append(Fault.status(code))
                error = complete_failing(self.connect(server.url), QUESTION)
                assert not error.retryable, code
                assert str(code) in str(error)
                assert len(server.calls) == 1, code

    def test_a_response_of_another_shape_is_an_error(self) -> None:
        with self.server_type(choose_fault=lambda _: Fault.body(b'{"well": "no"}')) as server:
            complete_failing(self.connect(server.url), QUESTION)

    def test_a_call_after_a_timeout_succeeds(self) -> None:
        with self.server_type(lambda _: "Paris") as server:
            server.faults.append(Fault.hang())
            adapter = self.connect(server.url)
            complete_failing(adapter, QUESTION, timeout=0.2)
            assert complete(adapter, QUESTION).text == "Paris"
