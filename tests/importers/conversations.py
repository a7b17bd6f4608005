"""One conversation with a tool that works and one that fails, in every shape that is understood."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from anthropic.types import Message as AnthropicMessage
from langchain_core.load import dumpd, dumps
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, message_to_dict
from openai.types.chat import ChatCompletionMessage

QUESTION = "Capital of France?"
SYSTEM = "Look it up."
ANSWER = "It is Paris."


def langchain() -> list[BaseMessage]:
    """What an agent of LangChain returns, with a system message at the top."""
    return [
        SystemMessage(SYSTEM),
        HumanMessage(QUESTION, id="h1"),
        AIMessage(
            "",
            tool_calls=[
                {"name": "search", "args": {"q": "France"}, "id": "c1"},
                {"name": "open", "args": {"page": 1}, "id": "c2"},
            ],
            usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        ),
        ToolMessage("Paris is the capital.", tool_call_id="c1", name="search"),
        ToolMessage("404 Not Found", tool_call_id="c2", name="open", status="error"),
        AIMessage(ANSWER, usage_metadata={"input_tokens": 20, "output_tokens": 3, "total_tokens": 23}),
    ]


def chat() -> list[dict[str, Any]]:
    """Messages of OpenAI's chat API; it has no field for a failure, so the tool result says it."""
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [_chat_call("c1", "search", {"q": "France"}), _chat_call("c2", "open", {"page": 1})],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5},
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Paris is the capital."},
        {"role": "tool", "tool_call_id": "c2", "content": "404 Not Found", "is_error": True},
        {"role": "assistant", "content": ANSWER, "usage": {"prompt_tokens": 20, "completion_tokens": 3}},
    ]


def _chat_call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def chat_with_objects() -> list[Any]:
    """The same as users collect it: SDK objects among mappings."""
    messages: list[Any] = [*chat()]
    for place in (2, 5):
        messages[place] = ChatCompletionMessage.model_validate(messages[place])
    return messages


def items() -> list[dict[str, Any]]:
    """Items of OpenAI's Responses API."""
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "France"}'},
        {"type": "function_call", "call_id": "c2", "name": "open", "arguments": '{"page": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "Paris is the capital."},
        {"type": "function_call_output", "call_id": "c2", "output": "404 Not Found", "is_error": True},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
    ]


def anthropic() -> list[dict[str, Any]]:
    """Messages of Anthropic's, made of blocks."""
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "France"}},
                {"type": "tool_use", "id": "c2", "name": "open", "input": {"page": 1}},
            ],
            "usage": {"input_tokens": 10, "output_tokens": 5},
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "Paris is the capital."}],
                },
                {"type": "tool_result", "tool_use_id": "c2", "content": "404 Not Found", "is_error": True},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": ANSWER}],
            "usage": {"input_tokens": 20, "output_tokens": 3},
        },
    ]


def anthropic_with_objects() -> list[Any]:
    """The same with SDK objects for the answers."""
    about = {"id": "m", "type": "message", "model": "m", "stop_reason": None, "stop_sequence": None}
    return [
        AnthropicMessage.model_validate({**about, **one}) if one["role"] == "assistant" else one for one in anthropic()
    ]


SHAPES: dict[str, Callable[[], Any]] = {
    "LangChain state": lambda: {"messages": langchain()},
    "LangChain list": langchain,
    "LangChain message_to_dict": lambda: [message_to_dict(one) for one in langchain()],
    "LangChain dumpd": lambda: {"messages": [dumpd(one) for one in langchain()]},
    "LangChain dumps": lambda: dumps(langchain()),
    "LangChain model_dump": lambda: [one.model_dump(mode="json") for one in langchain()],
    "chat list": chat,
    "chat mapping": lambda: {"messages": chat(), "steps": 2},
    "chat tuple": lambda: tuple(chat()),
    "chat SDK objects": chat_with_objects,
    "responses items": items,
    "anthropic list": anthropic,
    "anthropic with system beside": lambda: {"system": SYSTEM, "messages": anthropic()[1:]},
    "anthropic SDK objects": anthropic_with_objects,
}
