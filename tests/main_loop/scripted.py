"""A model server with scripted replies, and a main loop that calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from proctor import (
    AnthropicAdapter,
    GeminiAdapter,
    MarkdownSection,
    OpenAIAdapter,
    Prompt,
    PromptTemplate,
    Session,
    ToolCall,
    Usage,
)
from proctor.targets.main_loop.loop import MainLoop
from proctor.testing import RecordedRequest, ScriptedReply
from tests.servers.model_server import ModelServer

OutputT = TypeVar("OutputT")
QUESTION: MarkdownSection[Any] = MarkdownSection("", "Answer: $question", key="q")

WIRES: dict[str, Callable[[ModelServer], Any]] = {
    "openai": lambda server: OpenAIAdapter("m", base_url=f"{server.url}/v1", api_key="k"),
    "anthropic": lambda server: AnthropicAdapter("m", base_url=server.url, api_key="k"),
    "gemini": lambda server: GeminiAdapter("m", base_url=server.url, api_key="k"),
}


class QALoop(MainLoop[str, str]):
    """Sends its request as plain text."""

    template = PromptTemplate[str]("qa", "answer", [QUESTION])

    def initialize(self, request: str) -> tuple[Prompt[str], Session]:
        return Prompt(self.template).bind(question=request), Session()


def calls(*wanted: ToolCall, text: str = "") -> ScriptedReply:
    """A reply that calls tools, with a usage of 10 and 2 tokens."""
    return ScriptedReply(text, tool_calls=wanted, usage=Usage(10, 2))


def says(text: str) -> ScriptedReply:
    """A text reply, with a usage of 10 and 2 tokens."""
    return ScriptedReply(text, usage=Usage(10, 2))


def script(*turns: ScriptedReply) -> Callable[[RecordedRequest], ScriptedReply]:
    """Return the replies in order, whatever the request; repeat the last one."""
    left = list(turns)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def by_rounds(*turns: ScriptedReply) -> Callable[[RecordedRequest], ScriptedReply]:
    """Select the reply by the number of tool rounds in the conversation, for concurrent loops."""
    return lambda asked: turns[sum(1 for each in asked.messages if each.tool_calls)]


def told(asked: RecordedRequest) -> list[Any]:
    """What the tools have answered so far, as the model was told."""
    return [each.content for each in asked.messages if each.role == "tool"]


def kinds(session: Session) -> Sequence[str]:
    """Summarize a session: roles and called tools."""
    names = [getattr(event, "role", None) or getattr(event, "name", None) for event in session]
    return [name or type(event).__name__ for name, event in zip(names, session, strict=True)]
