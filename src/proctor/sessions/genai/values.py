"""Attribute names of GenAI conventions, and helpers for the values of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

# Deeper values are kept but not searched: no message is nested like that.
MAX_DEPTH = 100
# How much white space may precede JSON.
_MAX_SPACE = 40


def decode_json(value: Any) -> Any:
    """The value of an attribute; decodes texts that contain a JSON object, list or string."""
    if isinstance(value, str) and value[:_MAX_SPACE].lstrip()[:1] in ("{", "[", '"'):
        try:
            decoded = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
        max_depth = value.count("[") + value.count("{")
        return value if max_depth > MAX_DEPTH and is_too_deep(decoded) else decoded
    return value


def is_too_deep(value: Any) -> bool:
    """True if a value is nested deeper than `MAX_DEPTH`."""
    level = _get_children([value])
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _get_children(outer)]
        if not level:
            return False
    return True


def _get_children(value: dict[str, Any] | list[Any]) -> list[Any]:
    children = value.values() if isinstance(value, dict) else value
    return [item for item in children if isinstance(item, dict | list)]


def parse_arguments(value: Any) -> dict[str, Any]:
    """The arguments of a tool as a mapping; other values get an empty name."""
    arguments = decode_json(value)
    if isinstance(arguments, Mapping):
        return {str(key): to_plain(item) for key, item in arguments.items()}
    return {} if arguments is None or arguments == "" else {"": to_plain(arguments)}


def to_plain(value: Any) -> Any:
    """A copy with plain dicts and lists in place of SDK types."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def text_or_none(value: Any) -> str | None:
    """An id or a name as text; None if it is empty."""
    return None if value is None or value == "" else str(value)


CallType = Literal["model", "embeddings", "tool"]

# Operations that are calls; others, such as `invoke_agent`, contain calls.
OPERATIONS: dict[str, CallType] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content", "completion"), "model"),
    **dict.fromkeys(("embeddings", "embedding"), "embeddings"),
    **dict.fromkeys(("execute_tool", "tool", "ai.toolcall"), "tool"),
    "llm": "model",
    **dict.fromkeys(("ai.generatetext.dogenerate", "ai.generateobject.dogenerate"), "model"),
    **dict.fromkeys(("ai.streamtext.dostream", "ai.streamobject.dostream"), "model"),
    **dict.fromkeys(("ai.embed.doembed", "ai.embedmany.doembed"), "embeddings"),
}
# Operations that contain calls; any other operation is unknown.
CONTAINER_OPERATIONS = frozenset(
    (
        *("invoke_agent", "create_agent", "invoke_workflow", "agent", "chain", "workflow", "task"),
        *("retriever", "retrieval", "reranker", "guardrail", "evaluator", "prompt", "parser"),
        *("ai.generatetext", "ai.streamtext", "ai.generateobject", "ai.streamobject"),
        *("ai.embed", "ai.embedmany", "unknown"),
    )
)
OPERATION_ATTRIBUTES = (
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
RESPONSE_MODEL = ("gen_ai.response.model", "ai.response.model")
FINISH_REASONS = ("gen_ai.response.finish_reasons", "ai.response.finishReason")
FINISH_REASON_ALIASES = {
    **dict.fromkeys(("tool_call", "tool-calls", "tool_use"), "tool_calls"),
    "STOP": "stop",
}
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
# Attributes with messages, arguments and results.
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
# Prefixes of OpenTelemetry's conventions and of programs that write GenAI spans.
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
    """True for an attribute with messages, or arguments or results of a tool."""
    return name in _CONTENT or name.startswith(_NUMBERED)


def is_known_attribute(name: str) -> bool:
    """True for an attribute of a known convention."""
    return name.startswith(_KNOWN) or holds_content(name)


# Marks a part between two texts: a tool call, a thought, an image.
BREAK: Final = object()


def get_separator(role: str) -> str:
    """The separator between adjacent texts of a message.

    Models split one answer into several texts (at citations, or while streaming), and their clients
    join them without a separator. Users and tools send separate texts, one per line.
    """
    return "" if role == "assistant" else "\n"


def join_texts(texts: Iterable[Any], role: str) -> str:
    """Join texts; `BREAK` begins a new line for every role."""
    groups: list[list[str]] = [[]]
    for text in texts:
        if text is not BREAK:
            groups[-1].append(text)
        elif groups[-1]:
            groups.append([])
    return "\n".join(get_separator(role).join(group) for group in groups if group)
