"""A model that follows a script over the real wires, and a loop that asks it."""

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
from proctor.testing import ModelServer, RecordedRequest, ScriptedReply

OutputT = TypeVar("OutputT")
QUESTION: MarkdownSection[Any] = MarkdownSection("", "Answer: $question", key="q")

WIRES: dict[str, Callable[[ModelServer], Any]] = {
    "openai": lambda server: OpenAIAdapter("m", base_url=f"{server.url}/v1", api_key="k"),
    "anthropic": lambda server: AnthropicAdapter("m", base_url=server.url, api_key="k"),
    "gemini": lambda server: GeminiAdapter("m", base_url=server.url, api_key="k"),
}


class QALoop(MainLoop[str, str]):
    """Asks what it is given, in plain text."""

    template = PromptTemplate[str]("qa", "answer", [QUESTION])

    def initialize(self, request: str) -> tuple[Prompt[str], Session]:
        return Prompt(self.template).bind(question=request), Session()


def calls(*wanted: ToolCall, text: str = "") -> ScriptedReply:
    """An answer that calls tools, for 10 tokens and 2."""
    return ScriptedReply(text, tool_calls=wanted, usage=Usage(10, 2))


def says(text: str) -> ScriptedReply:
    """An answer in words, for 10 tokens and 2."""
    return ScriptedReply(text, usage=Usage(10, 2))


def script(*turns: ScriptedReply) -> Callable[[RecordedRequest], ScriptedReply]:
    """The first answer first, whatever is asked; the last one is repeated."""
    left = list(turns)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def by_rounds(*turns: ScriptedReply) -> Callable[[RecordedRequest], ScriptedReply]:
    """The answer for as many rounds of tools as the conversation has, for loops side by side."""
    return lambda asked: turns[sum(1 for each in asked.messages if each.tool_calls)]


def told(asked: RecordedRequest) -> list[Any]:
    """What the tools have answered so far, as the model was told."""
    return [each.content for each in asked.messages if each.role == "tool"]


def kinds(session: Session) -> Sequence[str]:
    """The session in short: who spoke, and what was called."""
    names = [getattr(event, "role", None) or getattr(event, "name", None) for event in session]
    return [name or type(event).__name__ for name, event in zip(names, session, strict=True)]
