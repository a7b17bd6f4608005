"""Attribute names of GenAI conventions, and helpers for the values of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

# More deeply nested values are stored but not searched, because no message is nested this deeply.
MAX_DEPTH = 100
# The maximum number of spaces before JSON.
_MAX_SPACE = 40


def decode_json(value: Any) -> Any:
    """Decode text that contains a JSON object, list or string; return other values unchanged."""
    if isinstance(value, str) and value[:_MAX_SPACE].lstrip()[:1] in ("{", "[", '"'):
        try:
            decoded = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
        max_depth = value.count("[") + value.count("{")
        return value if max_depth > MAX_DEPTH and is_too_deep(decoded) else decoded
    return value


def is_too_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Return True if a value has more than `limit` levels of mappings and lists."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        children = (entry.values() if isinstance(entry, dict) else entry for entry in level)
        level = [item for entry in children for item in entry if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def parse_arguments(value: Any) -> dict[str, Any]:
    """Return the arguments of a tool as a mapping; any other value gets an empty name."""
    arguments = decode_json(value)
    if isinstance(arguments, Mapping):
        return {str(key): to_plain(item) for key, item in arguments.items()}
    return {} if arguments is None or arguments == "" else {"": to_plain(arguments)}


def to_plain(value: Any) -> Any:
    """Copy a value with plain dicts and lists instead of SDK types."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def text_or_none(value: Any) -> str | None:
    """Return an id or a name as text, or None if it is empty."""
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
CONTAINER_OPERATIONS = frozenset((
    "invoke_agent", "create_agent", "invoke_workflow", "agent", "chain", "workflow", "task",
    "retriever", "retrieval", "reranker", "guardrail", "evaluator", "prompt", "parser",
    "ai.generatetext", "ai.streamtext", "ai.generateobject", "ai.streamobject", "ai.embed",
    "ai.embedmany", "unknown",
))  # fmt: skip
OPERATION_ATTRIBUTES = (
    "gen_ai.operation.name", "openinference.span.kind", "llm.request.type", "traceloop.span.kind",
    "langsmith.span.kind", "ai.operationId",
)  # fmt: skip
INPUT_TOKENS = (
    "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
    "ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens",
)  # fmt: skip
OUTPUT_TOKENS = (
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
    "ai.usage.outputTokens", "ai.usage.completionTokens",
)  # fmt: skip
CACHED_TOKENS = (
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens", "llm.token_count.prompt_details.cache_read",
    "ai.usage.cachedInputTokens",
)  # fmt: skip
CACHE_WRITE_TOKENS = (
    "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens", "llm.token_count.prompt_details.cache_write",
)  # fmt: skip
COST = ("operation.cost", "gen_ai.usage.cost", "llm.cost.total")
MODEL = ("gen_ai.request.model", "llm.model_name", "ai.model.id", "gen_ai.response.model")
RESPONSE_MODEL = ("gen_ai.response.model", "ai.response.model")
FINISH_REASONS = ("gen_ai.response.finish_reasons", "ai.response.finishReason")
FINISH_REASON_ALIASES = {**dict.fromkeys(("tool_call", "tool-calls", "tool_use"), "tool_calls"), "STOP": "stop"}
TOOL_NAME = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
CALL_ID = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id")
ARGUMENTS = (
    "gen_ai.tool.call.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args",
    "ai.toolCall.args", "input.value", "tool.parameters", "traceloop.entity.input", "gen_ai.prompt",
)  # fmt: skip
RESULT = (
    "gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response", "ai.toolCall.result",
    "output.value", "traceloop.entity.output", "gen_ai.completion",
)  # fmt: skip
# Prefixes of OpenTelemetry's conventions and of programs that write GenAI spans.
_KNOWN_PREFIXES = (
    *("gen_ai.", "openai.", "aws.", "azure.", "az.", "gcp.", "anthropic.", "server.", "client."),
    *("service.", "telemetry.", "error.", "exception.", "session.", "user.", "enduser.", "code."),
    *("thread.", "event.", "otel.", "http.", "url.", "network.", "net.", "peer.", "rpc.", "db."),
    *("messaging.", "host.", "process.", "os.", "container.", "k8s.", "cloud.", "deployment."),
    *("llm.", "openinference.", "input.", "output.", "tool.", "tool_call.", "embedding.", "agent."),
    *("retrieval.", "reranker.", "document.", "message.", "image.", "audio.", "prompt.", "tag."),
    *("metadata", "graph.node.", "traceloop.", "langsmith.", "langfuse.", "logfire.", "ai."),
    *("operation.", "resource.", "proctor."),
)
_KNOWN_NAMES = ("tool_arguments", "tool_response", "events", "all_messages_events", "final_result")


def is_known_attribute(name: str) -> bool:
    """Return True for an attribute of a known convention."""
    return name.startswith(_KNOWN_PREFIXES) or name in _KNOWN_NAMES


# Marks a part between two texts: a tool call, a thought, an image.
BREAK: Final = object()


def join_texts(texts: Iterable[Any], role: str) -> str:
    """Join the texts of a message; `BREAK` starts a new line for every role.

    Models split one answer into several texts (at citations, or while streaming), and their clients
    join them without a separator. Users and tools send separate texts, one per line.
    """
    separator = "" if role == "assistant" else "\n"
    groups: list[list[str]] = [[]]
    for text in texts:
        if text is not BREAK:
            groups[-1].append(text)
        elif groups[-1]:
            groups.append([])
    return "\n".join(separator.join(group) for group in groups if group)
