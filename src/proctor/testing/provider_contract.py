"""What every provider must be able to do, as tests to inherit."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from proctor.core import bridge
from proctor.errors import CallFailed
from proctor.ports import ProviderAdapter
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.testing.exchange import Asked, Fault, Said
from proctor.testing.model_server import Answer, ModelServer

PATIENCE = 10.0
QUESTION = ModelRequest((Message("user", "What is the capital of France?"),))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = ToolSpec(
    "weather",
    "How the weather is in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


class ProviderContract:
    """Tests that every model adapter must pass; inherit them and say how to connect.

    `connected` gives an adapter whose model answers as the function says. Set `settings` to those
    that reach the model and `logprobs` to True if it tells them; `counts` to False if it does not
    tell what it used. An adapter that talks to a server inherits `EndpointContract` instead.

    >>> class TestMine(ProviderContract):
    ...     def connected(self, answer):
    ...         return contextlib.nullcontext(my_adapter(answer))
    """

    settings: tuple[str, ...] = ("temperature", "max_tokens", "seed")
    logprobs = False
    counts = True

    def connected(self, answer: Answer) -> AbstractContextManager[ProviderAdapter]:
        """An adapter whose model answers as the function says."""
        raise NotImplementedError("say how to connect: give an adapter that asks `answer`")

    def test_an_answer_comes_with_what_is_known_about_it(self) -> None:
        """One call gives the text, why it ended, the model, and the tokens it used."""
        used = Usage(input_tokens=7, output_tokens=3, cached_tokens=2)
        with self.connected(lambda _: Said("Paris – “été”", usage=used)) as adapter:
            response = asked_once(adapter, QUESTION)
        assert response.text == "Paris – “été”"
        assert response.finish_reason == "stop"
        assert response.refusal is None
        assert response.model, "the response does not name its model"
        if self.counts:
            counted = response.usage
            assert (counted.input_tokens, counted.output_tokens) == (7, 3)
            assert counted.cached_tokens == 2

    def test_it_has_an_address(self) -> None:
        """The adapter tells by what address it is known, which is stored with what it said."""
        with self.connected(lambda _: "Paris") as adapter:
            assert isinstance(adapter.model, str)
            assert adapter.model

    def test_messages_arrive_in_order_and_with_their_roles(self) -> None:
        """What the system, the user and the assistant said is told apart."""
        talk = (
            Message("system", "Be brief."),
            Message("user", "2 + 2?"),
            Message("assistant", "4"),
            Message("user", "And 3 + 3?"),
        )
        heard = self._heard(ModelRequest(talk))
        assert [(message.role, message.content) for message in heard.messages] == [
            (message.role, message.content) for message in talk
        ]

    def test_settings_arrive(self) -> None:
        """Temperature, length and seed reach the model where it has them."""
        wanted = {"temperature": 0.5, "max_tokens": 33, "seed": 7}
        heard = self._heard(ModelRequest(QUESTION.messages, **wanted))  # type: ignore[arg-type]
        told = {name: heard.settings.get(name) for name in self.settings}
        assert told == {name: wanted[name] for name in self.settings}

    def test_a_schema_reaches_a_model_that_is_held_to_it(self) -> None:
        """An adapter that says it makes answers fit a schema hands the schema on."""
        with self.connected(lambda asked: f'{{"city": "{_keys(asked)}"}}') as adapter:
            if not adapter.fits_schema:
                return
            response = asked_once(adapter, ModelRequest(QUESTION.messages, schema=SCHEMA))
        assert response.text == '{"city": "city"}'

    def test_tools_are_called_and_their_results_come_back(self) -> None:
        """The calls of a model are read with their arguments, and the results are told to it."""
        heard: list[Asked] = []

        def answer(asked: Asked) -> str | Said:
            heard.append(asked)
            if asked.messages[-1].role == "tool":
                return f"It is {asked.messages[-1].content}."
            cities = ("Paris", "Rome")
            return Said(tool_calls=tuple(ToolCall("weather", {"city": name}) for name in cities))

        with self.connected(answer) as adapter:
            request = ModelRequest(QUESTION.messages, tools=(WEATHER,))
            first = asked_once(adapter, request)
            results = [
                Message("tool", f"{18 + place} degrees", name=call.name, call_id=call.call_id)
                for place, call in enumerate(first.tool_calls)
            ]
            said = Message("assistant", first.text, tool_calls=first.tool_calls)
            again = ModelRequest((*request.messages, said, *results), tools=(WEATHER,))
            second = asked_once(adapter, again)
        assert first.finish_reason == "tool_calls"
        found = [(call.name, call.arguments) for call in first.tool_calls]
        assert found == [("weather", {"city": "Paris"}), ("weather", {"city": "Rome"})]
        assert heard[0].tools == (WEATHER,)
        assert [call.name for call in heard[1].messages[-3].tool_calls] == ["weather", "weather"]
        assert second.text == "It is 19 degrees."

    def test_a_refusal_is_an_answer(self) -> None:
        """A model that refuses has answered: the response says so, and has no text."""
        with self.connected(lambda _: Said(refusal="I would rather not.")) as adapter:
            response = asked_once(adapter, QUESTION)
        assert response.finish_reason == "refusal"
        assert response.refusal is not None
        assert response.text == ""

    def test_an_empty_answer_is_an_answer(self) -> None:
        """A model that says nothing has answered with nothing."""
        with self.connected(lambda _: Said("", finish_reason="stop")) as adapter:
            response = asked_once(adapter, QUESTION)
        assert (response.text, response.finish_reason) == ("", "stop")

    def test_an_answer_that_was_cut_off_says_so(self) -> None:
        """An answer that reached the greatest length has the finish reason "length"."""
        with self.connected(lambda _: Said("Par", finish_reason="length")) as adapter:
            response = asked_once(adapter, QUESTION)
        assert (response.text, response.finish_reason) == ("Par", "length")

    def test_chances_of_tokens_are_told_where_there_are_any(self) -> None:
        """Asked for it, the model tells how likely it held its tokens and others."""
        chances = (TokenLogprobs("Yes", -0.25, {"Yes": -0.25, "No": -1.5}),)
        with self.connected(lambda _: Said("Yes", logprobs=chances)) as adapter:
            response = asked_once(adapter, ModelRequest(QUESTION.messages, top_logprobs=2))
        assert response.logprobs == (chances if self.logprobs else ())

    def test_many_calls_at_once_each_get_their_own_answer(self) -> None:
        """Calls that run at the same time are not mixed up."""
        with self.connected(lambda asked: f"heard {asked.text}") as adapter:

            async def all_of_them() -> list[ModelResponse]:
                requests = [ModelRequest((Message("user", str(n)),)) for n in range(30)]
                async with asyncio.timeout(PATIENCE):
                    return await asyncio.gather(*map(adapter.complete, requests))

            said = [response.text for response in bridge.run(all_of_them())]
        assert said == [f"heard {n}" for n in range(30)]

    def test_it_does_not_wait_longer_than_told(self) -> None:
        """A call that takes longer than its time fails, and may be tried again."""
        with self.connected(_late) as adapter:
            began = time.perf_counter()
            error = failed_once(adapter, QUESTION, timeout=0.1)
            waited = time.perf_counter() - began
        assert waited < 0.7, f"it waited {waited:.2f} s instead of 0.1 s"
        assert error.retryable

    def _heard(self, request: ModelRequest) -> Asked:
        heard: list[Asked] = []

        def answer(asked: Asked) -> str:
            heard.append(asked)
            return "well"

        with self.connected(answer) as adapter:
            asked_once(adapter, request)
        return heard[0]


class EndpointContract(ProviderContract):
    """The same for an adapter that talks to a server, and what it does when the server fails.

    `connect` gives an adapter for the model server at a URL. It must try again at most twice, and
    with short pauses, so that the tests are quick.
    """

    def connect(self, url: str) -> ProviderAdapter:
        """An adapter that asks the model server at this URL."""
        raise NotImplementedError("say how to connect: give an adapter for the server at `url`")

    @contextlib.contextmanager
    def connected(self, answer: Answer) -> Iterator[ProviderAdapter]:
        """An adapter for a model server that answers as the function says."""
        with ModelServer(answer) as server:
            yield self.connect(server.url)

    def test_what_may_pass_is_tried_again(self) -> None:
        """After a 429, a 500 or a lost connection the call is made again and gets its answer."""
        for fault in (Fault.status(429), Fault.status(500), Fault.status(503), Fault.dropped()):
            with ModelServer(lambda _: "Paris") as server:
                server.faults.append(fault)
                response = asked_once(self.connect(server.url), QUESTION)
                assert (response.text, response.attempts) == ("Paris", 2), fault
                assert len(server.calls) == 2, fault

    def test_what_does_not_pass_fails_as_something_to_try_later(self) -> None:
        """When the tries are used up, the failure says that it may pass."""
        with ModelServer(misbehave=lambda _: Fault.status(500)) as server:
            error = failed_once(self.connect(server.url), QUESTION)
        assert error.retryable
        assert "500" in str(error)

    def test_what_is_wrong_with_the_request_is_not_tried_again(self) -> None:
        """A 400, 401, 403 or 404 is final, and one request was made."""
        for code in (400, 401, 403, 404):
            with ModelServer() as server:
                server.faults.append(Fault.status(code))
                error = failed_once(self.connect(server.url), QUESTION)
                assert not error.retryable, code
                assert str(code) in str(error)
                assert len(server.calls) == 1, code

    def test_an_answer_of_another_shape_is_not_taken(self) -> None:
        """JSON that is not an answer of this provider is a failure, and never an empty answer."""
        with ModelServer(misbehave=lambda _: Fault.body(b'{"well": "no"}')) as server:
            failed_once(self.connect(server.url), QUESTION)

    def test_a_call_that_is_given_up_leaves_the_next_one_alone(self) -> None:
        """After a call ran out of time another one gets its answer."""
        with ModelServer(lambda _: "Paris") as server:
            server.faults.append(Fault.hang())
            adapter = self.connect(server.url)
            failed_once(adapter, QUESTION, timeout=0.2)
            assert asked_once(adapter, QUESTION).text == "Paris"


def asked_once(
    adapter: ProviderAdapter, request: ModelRequest, timeout: float | None = None
) -> ModelResponse:
    """The answer of an adapter to one request; a test that would hang fails instead."""

    async def ask() -> ModelResponse:
        async with asyncio.timeout(PATIENCE):
            return await adapter.complete(request, timeout=timeout)

    return bridge.run(ask())


def failed_once(adapter: ProviderAdapter, request: ModelRequest, timeout: float | None = None) -> CallFailed:
    """The failure of an adapter at one request, which must fail as `CallFailed`."""
    try:
        response = asked_once(adapter, request, timeout)
    except CallFailed as error:
        return error
    raise AssertionError(f"it should have failed, but answered {response.text!r}")


def _late(asked: Asked) -> str:  # noqa: ARG001
    time.sleep(0.8)
    return "too late"


def _keys(asked: Asked) -> str:
    return " ".join((asked.schema or {}).get("properties", {}))
