"""LangChain chat models as models: real ones of langchain-core, no network."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pydantic
import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda

from proctor import llm_judge
from proctor.errors import CallFailed
from proctor.models.clients.langchain import LangChainAdapter
from proctor.models.connect import provider
from proctor.records.model import ModelRequest, ModelResponse, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from tests.models.providers.scripted import asked


class Chat(BaseChatModel):
    """A chat model that notes what it is asked, and how it is set, and says `answer`."""

    model_name: str = "chat-1"
    temperature: float | None = None
    max_tokens: int | None = None
    answer: Any = None
    calls: list[Any] = pydantic.Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "test"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name, "temperature": self.temperature}

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        raise AssertionError("the async way is there")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.calls.append((messages, self.temperature, self.max_tokens, kwargs))
        if isinstance(self.answer, Exception):
            raise self.answer
        return ChatResult(generations=[ChatGeneration(message=self.answer)])

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools)


def complete(model: Any, request: ModelRequest, timeout: float | None = None) -> ModelResponse:
    result: ModelResponse = asyncio.run(provider(model).complete(request, timeout=timeout))
    return result


def test_a_response_is_read_completely() -> None:
    """Text, tool calls, usage, finish reason and the model that answered."""
    result = AIMessage(
        "Paris",
        tool_calls=[{"name": "search", "args": {"q": "France"}, "id": "c1"}],
        usage_metadata={
            "input_tokens": 9, "output_tokens": 3, "total_tokens": 12,
            "input_token_details": {"cache_read": 4},
        },
        response_metadata={"model_name": "chat-1-2026", "finish_reason": "stop"},
    )  # fmt: skip
    assert complete(Chat(answer=result), asked()) == ModelResponse(
        "Paris", "chat-1-2026", (ToolCall("search", {"q": "France"}, call_id="c1"),),
        Usage(9, 3, 4), "stop",
    )  # fmt: skip


def test_messages_are_converted() -> None:
    """System, user, assistant with its calls, and the tool's answer to one of them."""
    chat = Chat(answer=AIMessage("ok"), calls=[])
    talk = (
        Message("system", "Be brief."),
        Message("user", {"q": 1}),
        Message("assistant", "", tool_calls=(ToolCall("search", {"q": "x"}, call_id="c1"),)),
        Message("tool", "found", call_id="c1"),
    )
    complete(chat, ModelRequest(talk))
    messages = chat.calls[0][0]
    assert [(m.type, m.content) for m in messages] == [
        ("system", "Be brief."), ("human", '{"q":1}'), ("ai", ""), ("tool", "found"),
    ]  # fmt: skip
    assert [(c["name"], c["args"], c["id"]) for c in messages[2].tool_calls] == [("search", {"q": "x"}, "c1")]
    assert isinstance(messages[3], ToolMessage)
    assert messages[3].tool_call_id == "c1"


def test_settings_are_set_where_the_model_has_them() -> None:
    """Temperature and tokens for this call; the user's own object is not changed."""
    chat = Chat(answer=AIMessage("ok"), calls=[])
    complete(chat, asked(temperature=0.25, max_tokens=5, seed=3))
    complete(chat, asked())
    assert [message[1:3] for message in chat.calls] == [(0.25, 5), (None, None)]
    assert chat.temperature is None


def test_tools_are_bound_for_the_call() -> None:
    """In the form that all of LangChain's models take."""
    chat = Chat(answer=AIMessage("ok"), calls=[])
    complete(chat, asked(tools=(ToolSpec("search", "finds", {"type": "object"}),)))
    assert chat.calls[0][3]["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "search", "description": "finds", "parameters": {"type": "object"},
            },
        }
    ]  # fmt: skip


def test_a_model_without_tools_is_an_error() -> None:
    """Tools are never silently left out."""
    with pytest.raises(CallFailed, match="does not support tools"):
        complete(FakeListChatModel(responses=["x"]), asked(tools=(ToolSpec("search"),)))


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"stop_reason": "end_turn"}, "stop"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"done_reason": "load"}, "load"),
        ({}, None),
    ],
)
def test_finish_reasons_are_mapped(metadata: dict[str, str], reason: str | None) -> None:
    """Whatever the provider behind LangChain calls them."""
    result = AIMessage("ok", response_metadata=metadata)
    assert complete(Chat(answer=result), asked()).finish_reason == reason


def test_parts_are_joined_and_refusals_recognised() -> None:
    """Text parts make the text."""
    result = AIMessage(
        ["a", {"type": "text", "text": "b"}, {"type": "image", "url": "x"}],
        additional_kwargs={"refusal": "I will not."},
    )
    response = complete(Chat(answer=result), asked())
    assert (response.text, response.refusal, response.finish_reason) == (
        "ab", "I will not.", "refusal",
    )  # fmt: skip


def test_tool_calls_are_the_default_finish_reason() -> None:
    """If the provider gives none."""
    result = AIMessage("", tool_calls=[{"name": "t", "args": {}, "id": "1"}])
    assert complete(Chat(answer=result), asked()).finish_reason == "tool_calls"


def test_errors_become_failed_calls() -> None:
    """With what they say of themselves."""
    with pytest.raises(CallFailed, match="ConnectionError: down") as caught:
        complete(Chat(answer=ConnectionError("down")), asked())
    assert caught.value.retryable


def test_other_runnables_work_too() -> None:
    """A chain that returns a text; other results are refused."""

    async def shout(messages: list[BaseMessage]) -> str:
        return str(messages[-1].content).upper()

    assert complete(RunnableLambda(shout), asked("hi")).text == "HI"
    with pytest.raises(CallFailed, match="returned 'int'"):
        complete(RunnableLambda(lambda messages: 4), asked())


def test_its_name_has_the_class_and_the_model() -> None:
    """The identity has its parameters."""
    adapter = LangChainAdapter(Chat())
    assert (adapter.model, adapter.supports_json_schema) == ("langchain:Chat/chat-1", True)
    assert repr(adapter) == "LangChainAdapter('langchain:Chat/chat-1')"
    assert LangChainAdapter(Chat(temperature=1.0)).identity != adapter.identity
    assert LangChainAdapter(Chat()).identity == adapter.identity
    assert LangChainAdapter(FakeListChatModel(responses=[])).model == "langchain:FakeListChatModel"
    assert provider(Chat(), name="mine").model == "langchain:Chat/mine"


SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "rating": {"enum": ["good", "poor"]}},
    "required": ["reason", "rating"],
    "additionalProperties": False,
}
VERDICT = {"reason": "it greets", "rating": "good"}


def by_tool(verdict: dict[str, Any]) -> AIMessage:
    """An answer as LangChain's models give it that must fit a schema: the call of a tool."""
    return AIMessage(
        "",
        tool_calls=[{"name": "answer", "args": verdict, "id": "c1"}],
        usage_metadata={"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
    )


def test_an_answer_that_must_fit_a_schema_is_structured() -> None:
    """The schema is bound as LangChain does it, and the answer comes back as its JSON."""
    chat = Chat(answer=by_tool(VERDICT), calls=[])
    assert provider(chat).supports_json_schema
    result = complete(chat, asked(schema=SCHEMA))
    assert json.loads(result.text) == VERDICT
    assert (result.tool_calls, result.usage) == ((), Usage(9, 3))
    [(_, _, _, bound)] = chat.calls
    assert bound["tools"][0]["title"] == "answer" or bound["tools"][0]["function"]


def test_a_judge_uses_structured_output_where_the_chat_model_has_it() -> None:
    """No line with a mark is asked for, nor needed."""
    chat = Chat(answer=by_tool(VERDICT), calls=[])
    score = llm_judge(chat, "Is it polite?")("Good morning!")
    assert (score.value, score.reason) == (0.75, "it greets")
    [(messages, *_)] = chat.calls
    assert "End with" not in messages[-1].content


def test_a_chat_model_without_structured_output_gets_instructions() -> None:
    """Models without tools, and other runnables."""
    models: list[Any] = [FakeListChatModel(responses=["x"]), RunnableLambda(lambda _: "x")]
    for model in models:
        assert not provider(model).supports_json_schema
    assert not provider(Chat(), supports_json_schema=False).supports_json_schema


def test_a_chat_model_that_fails_with_a_schema_gets_instructions_from_then_on() -> None:
    """One failed call, and the judge continues."""

    class Refusing(Chat):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
            if "tools" in kwargs:
                raise ValueError("this model does not support tools")
            return await super()._agenerate(*args, **kwargs)

    chat = Refusing(answer=AIMessage(json.dumps(VERDICT)), calls=[])
    adapter = provider(chat)
    found = asyncio.run(adapter.complete(asked(schema=SCHEMA)))
    assert json.loads(found.text) == VERDICT
    assert "JSON Schema" in chat.calls[0][0][-1].content
    assert not adapter.supports_json_schema
