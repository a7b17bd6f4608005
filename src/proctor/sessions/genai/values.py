"""Values that stand in attributes: JSON in texts, arguments of tools, nesting that has no end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

# Nobody nests messages deeper; what is deeper is kept as it is and not looked into.
DEEPEST = 100
# How much space may stand before JSON.
_SPACE = 40


def decoded(given: Any) -> Any:
    """What an attribute holds: structure out of JSON where it is some, else as it is.

    >>> decoded('{"city": "Paris"}'), decoded('"Paris"'), decoded("42"), decoded("[draft]")
    ({'city': 'Paris'}, 'Paris', '42', '[draft]')
    """
    if isinstance(given, str) and given[:_SPACE].lstrip()[:1] in ("{", "[", '"'):
        try:
            found = msgspec.json.decode(given)
        except (msgspec.DecodeError, RecursionError):
            return given
        could_be = given.count("[") + given.count("{")
        return given if could_be > DEEPEST and is_too_deep(found) else found
    return given


def is_too_deep(value: Any) -> bool:
    """True if the lists and mappings of JSON stand in each other more often than anybody means.

    >>> is_too_deep([[1], {"a": [2]}])
    False
    """
    level = _within([value])
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _within(outer)]
        if not level:
            return False
    return True


def _within(value: dict[str, Any] | list[Any]) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else value
    return [item for item in inside if isinstance(item, dict | list)]


def arguments_in(given: Any) -> dict[str, Any]:
    """The arguments of a tool as a mapping; what is none stands under an empty name.

    >>> arguments_in('{"q": "Paris"}'), arguments_in("Paris"), arguments_in(None)
    ({'q': 'Paris'}, {'': 'Paris'}, {})
    """
    found = decoded(given)
    if isinstance(found, Mapping):
        return {str(key): plain(value) for key, value in found.items()}
    return {} if found is None or found == "" else {"": plain(found)}


def plain(value: Any) -> Any:
    """The same without the SDK's own kinds of mappings and sequences.

    >>> plain(({"a": (1,)},))
    [{'a': [1]}]
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def text_or_none(given: Any) -> str | None:
    """An id or a name as text; None if there is none.

    >>> text_or_none(7), text_or_none(""), text_or_none(None)
    ('7', None, None)
    """
    return None if given is None or given == "" else str(given)


Kind = Literal["model", "embeddings", "tool"]

# An operation that is not here, such as `invoke_agent`, is made of those that are.
OPERATIONS: dict[str, Kind] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content", "completion"), "model"),
    **dict.fromkeys(("embeddings", "embedding"), "embeddings"),
    **dict.fromkeys(("execute_tool", "tool", "ai.toolcall"), "tool"),
    "llm": "model",
    **dict.fromkeys(("ai.generatetext.dogenerate", "ai.generateobject.dogenerate"), "model"),
    **dict.fromkeys(("ai.streamtext.dostream", "ai.streamobject.dostream"), "model"),
    **dict.fromkeys(("ai.embed.doembed", "ai.embedmany.doembed"), "embeddings"),
}
# What stands around calls. Any other operation is one that we have not heard of.
AROUND = frozenset(
    (
        *("invoke_agent", "create_agent", "invoke_workflow", "agent", "chain", "workflow", "task"),
        *("retriever", "retrieval", "reranker", "guardrail", "evaluator", "prompt", "parser"),
        *("ai.generatetext", "ai.streamtext", "ai.generateobject", "ai.streamobject"),
        *("ai.embed", "ai.embedmany", "unknown"),
    )
)
TELL_KIND = (
    "gen_ai.operation.name",
    "openinference.span.kind",
    "llm.request.type",
    "traceloop.span.kind",
    "langsmith.span.kind",
    "ai.operationId",
)
INPUT = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
    "ai.usage.tokens",
)
OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
)
CACHED = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "llm.token_count.prompt_details.cache_read",
    "ai.usage.cachedInputTokens",
)
CACHE_WRITTEN = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
)
COST = ("operation.cost", "gen_ai.usage.cost", "llm.cost.total")
MODEL = ("gen_ai.request.model", "llm.model_name", "ai.model.id", "gen_ai.response.model")
ANSWERED = ("gen_ai.response.model", "ai.response.model")
FINISHED = ("gen_ai.response.finish_reasons", "ai.response.finishReason")
# Our word for it, where another is in use.
FINISH = {**dict.fromkeys(("tool_call", "tool-calls", "tool_use"), "tool_calls"), "STOP": "stop"}
TOOL = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
CALL_ID = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id")
ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "gcp.vertex.agent.tool_call_args",
    "ai.toolCall.args",
    "input.value",
    "tool.parameters",
    "traceloop.entity.input",
    "gen_ai.prompt",
)
RESULT = (
    "gen_ai.tool.call.result",
    "tool_response",
    "gcp.vertex.agent.tool_response",
    "ai.toolCall.result",
    "output.value",
    "traceloop.entity.output",
    "gen_ai.completion",
)
# Attributes that hold what was said and given; what else a span has is short.
_CONTENT = frozenset((*ARGUMENTS, *RESULT)) | {
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.llm_response",
    "ai.prompt",
    "ai.prompt.messages",
    "ai.response.text",
    "ai.response.object",
    "ai.response.toolCalls",
    "events",
    "all_messages_events",
    "final_result",
}
_NUMBERED = ("gen_ai.prompt.", "gen_ai.completion.", "llm.input_messages.", "llm.output_messages.")
# Whose names these are: of OpenTelemetry's own conventions, and of those who write GenAI spans.
_KNOWN = (
    *("gen_ai.", "openai.", "aws.", "azure.", "az.", "gcp.", "anthropic.", "server.", "client."),
    *("service.", "telemetry.", "error.", "exception.", "session.", "user.", "enduser.", "code."),
    *("thread.", "event.", "otel.", "http.", "url.", "network.", "net.", "peer.", "rpc.", "db."),
    *("messaging.", "host.", "process.", "os.", "container.", "k8s.", "cloud.", "deployment."),
    *("llm.", "openinference.", "input.", "output.", "tool.", "tool_call.", "embedding.", "agent."),
    *("retrieval.", "reranker.", "document.", "message.", "image.", "audio.", "prompt.", "tag."),
    *("metadata", "graph.node.", "traceloop.", "langsmith.", "langfuse.", "logfire.", "ai."),
    *("operation.", "resource.", "proctor."),
)


def holds_content(name: str) -> bool:
    """True for an attribute that holds messages, or what a tool was given and gave.

    >>> holds_content("gen_ai.prompt.0.content"), holds_content("gen_ai.usage.input_tokens")
    (True, False)
    """
    return name in _CONTENT or name.startswith(_NUMBERED)


def is_known(name: str) -> bool:
    """True if an attribute is one of a convention that we have heard of.

    >>> is_known("gen_ai.response.id"), is_known("acme.blob")
    (True, False)
    """
    return name.startswith(_KNOWN) or holds_content(name)


# Stands between two parts of which another part (a tool call, a thought, an image) stood.
BREAK: Final = object()


def separator_of(role: str) -> str:
    """What stands between adjacent texts of a message.

    An answer that arrives in several texts is one text: Anthropic splits it in the middle of a
    sentence where a citation begins, and Gemini and OpenAI split it as they stream. Their own
    clients join these texts without a separator, and so does this: a line end would change the
    answer. Users and tools send texts that were written separately (a document and a question), so
    each begins on its own line.
    What is neither (the parts of OpenTelemetry) is joined line by line too.

    >>> separator_of("assistant"), separator_of("user")
    ('', '\\n')
    """
    return "" if role == "assistant" else "\n"


def join_texts(texts: Iterable[Any], role: str) -> str:
    """One text of several; `BREAK` among them begins a new line, whoever speaks.

    >>> join_texts(["The capital is ", "Paris."], "assistant")
    'The capital is Paris.'
    >>> join_texts(["Let me look.", BREAK, "It is Paris."], "assistant")
    'Let me look.\\nIt is Paris.'
    """
    groups: list[list[str]] = [[]]
    for text in texts:
        if text is not BREAK:
            groups[-1].append(text)
        elif groups[-1]:
            groups.append([])
    return "\n".join(separator_of(role).join(group) for group in groups if group)
