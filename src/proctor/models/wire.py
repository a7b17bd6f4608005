"""The shared parts of wire formats: conversations, tool calls, and JSON Schemas that a provider can enforce."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import msgspec

from proctor.models.answer_format import schema_instructions
from proctor.models.http.errors import ErrorBody
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, ToolSpec
from proctor.records.session import Message, ToolCall


class WireFormat(Protocol):
    """A provider's wire format: writes requests and reads responses."""

    def write(self, model: str, request: ModelRequest, omitted_settings: frozenset[str], /) -> bytes:
        """Encode the body; `omitted_settings` are the fields of the request that the model rejects."""
        ...

    def read(self, body: bytes, request: ModelRequest, /) -> ModelResponse:
        """Read the response; raises `UnreadableBody` or `UnexpectedBody`."""
        ...

    def rejected_field(self, error: ErrorBody, request: ModelRequest, /) -> str | None:
        """Return the field of the request that the error names as unsupported, or None."""
        ...


def content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "" if content is None else codec.encode(content).decode()


def is_content_parts(content: Any) -> bool:
    """Return True for content parts in a provider's format, which are sent unchanged."""
    has_parts = isinstance(content, list) and bool(content)
    return has_parts and all(isinstance(part, dict) and "type" in part for part in content)


def text_or_parts(content: Any) -> str | list[Any]:
    return content if is_content_parts(content) else content_text(content)


def system_text(request: ModelRequest, *, with_instructions: bool) -> str:
    """Join all system messages, and the instructions that replace a schema, if the request has one."""
    texts = [content_text(message.content) for message in request.messages if message.role == "system"]
    if request.schema is not None and with_instructions:
        texts.append(schema_instructions(request.schema))
    return "\n\n".join(filter(None, texts))


def turns(messages: Iterable[Message]) -> Iterator[tuple[bool, Iterator[Message]]]:
    """Group messages into turns of the assistant (True) and the user (False); tool results belong to the user."""
    without_system = (message for message in messages if message.role != "system")
    return groupby(without_system, key=lambda message: message.role == "assistant")


def write_tool(tool: ToolSpec, parameters_name: str) -> dict[str, Any]:
    description = {"description": tool.description} if tool.description else {}
    parameters = tool.parameters or {"type": "object", "properties": {}}
    return {"name": tool.name, parameters_name: parameters, **description}


class CallIds:
    """Matches tool results to tool calls; calls without ids are matched by order."""

    def __init__(self) -> None:
        self._calls = self._results = 0
        self._names: dict[str, str] = {}

    def next_call(self, call: ToolCall) -> str:
        """Return the id of the next call that the assistant made."""
        call_id = call.call_id or f"call_{self._calls}"
        self._calls += 1
        self._names[call_id] = call.name
        return call_id

    def next_result(self, message: Message) -> str:
        """Return the id of the call that the next tool message answers."""
        call_id = message.call_id or f"call_{self._results}"
        self._results += 1
        return call_id

    def tool_name(self, call_id: str) -> str:
        return self._names.get(call_id, "")


def parse_tool_call(name: str, arguments: Any, call_id: str | None, signature: str | None = None) -> ToolCall:
    """Read a tool call; arguments that are not a JSON object become its error."""
    parsed = {} if arguments is None else arguments
    if isinstance(arguments, str):
        try:
            parsed = msgspec.json.decode(arguments) if arguments.strip() else {}
        except msgspec.DecodeError:
            parsed = None
    if isinstance(parsed, dict):
        return ToolCall(name, parsed, call_id=call_id, signature=signature)
    error = f"the model's arguments are not a JSON object: {arguments!r}"
    return ToolCall(name, error=error, call_id=call_id, signature=signature)


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# The property that wraps an answer if the provider requires an object.
WRAPPER = "value"
MAX_CACHED_SCHEMAS = 64

_SHAPE = frozenset({"type", "properties", "items", "enum", "anyOf", "required", "description"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
# Keywords that the decoders of strict providers do not support.
_UNSUPPORTED = frozenset({"allOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas", "contains"})
_TYPE_KEYWORDS = frozenset({"type", "enum", "const", "anyOf", "oneOf", "$ref"})


class Dialect(NamedTuple):
    """The schema keywords that a provider supports, and whether objects must list all their fields.

    Other keywords are left out. The answer is validated strictly afterwards, so a violated bound is still
    detected; it then costs a reminder.
    """

    keywords: frozenset[str]
    is_closed: bool = True
    all_required: bool = False


OPENAI = Dialect(
    _SHAPE
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minItems", "maxItems", "pattern", "format"},
    all_required=True,
)
ANTHROPIC = Dialect(_SHAPE | {"format"})
GEMINI = Dialect(
    _SHAPE | {"minimum", "maximum", "minItems", "maxItems", "format", "prefixItems", "title", "additionalProperties"},
    is_closed=False,
)


def cache_schemas(make: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], msgspec.Raw]:
    """Return a function that encodes the schema part of a request, once for each schema."""

    @functools.lru_cache(maxsize=MAX_CACHED_SCHEMAS)
    def encode(schema: bytes) -> msgspec.Raw:
        return msgspec.Raw(codec.encode(make(msgspec.json.decode(schema))))

    return lambda schema: encode(codec.encode(schema))


def wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an object schema unchanged; put any other schema into an object."""
    if schema.get("type") == "object":
        return schema
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer = {"type": "object", "properties": {WRAPPER: inner}, "required": [WRAPPER]}
    return outer | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def unwrap_answer(text: str, schema: dict[str, Any] | None) -> str:
    """Undo `wrap_schema` in an answer; return an answer without the wrapper unchanged."""
    if schema is None or schema.get("type") == "object":
        return text
    try:
        outer = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return text
    return bytes(outer[WRAPPER]).decode() if list(outer) == [WRAPPER] else text


def rejects_schema(message: str, request: ModelRequest, names: Sequence[str]) -> bool:
    return request.schema is not None and any(name in message for name in names)


class _UnsupportedSchema(Exception):
    """The provider cannot enforce this schema."""


def fit_schema(schema: dict[str, Any], dialect: Dialect) -> dict[str, Any] | None:
    """Reduce a schema to a provider's dialect; return None if the provider cannot enforce it."""
    try:
        return _fit_node(schema, dialect)
    except _UnsupportedSchema:
        return None


def _fit_node(node: Any, dialect: Dialect) -> dict[str, Any]:
    if not isinstance(node, dict) or (dialect.is_closed and _is_unsupported(node)):
        raise _UnsupportedSchema
    definitions = {name: _fit_node(inner, dialect) for name, inner in node.get("$defs", {}).items()}
    suffix = {"$defs": definitions} if definitions else {}
    if "$ref" in node:
        # A reference allows no other keywords next to it.
        return {"$ref": node["$ref"], **suffix}
    portable = dict(node)
    if "oneOf" in portable:
        portable["anyOf"] = portable.pop("oneOf")
    if "const" in portable:
        portable["enum"] = [portable.pop("const")]
    fitted = {key: value for key, value in portable.items() if key in dialect.keywords}
    if dialect.is_closed and fitted.get("format", "date") not in _FORMATS:
        del fitted["format"]
    return _fit_children(fitted, dialect) | suffix


def _is_unsupported(node: dict[str, Any]) -> bool:
    is_open_object = node.get("type") == "object" and (
        not node.get("properties") or node.get("additionalProperties") not in (None, False)
    )
    return is_open_object or bool(_UNSUPPORTED & node.keys()) or not _TYPE_KEYWORDS & node.keys()


def _fit_children(node: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    if "properties" in node:
        node["properties"] = {name: _fit_node(child, dialect) for name, child in node["properties"].items()}
        if dialect.is_closed:
            node["additionalProperties"] = False
        if dialect.all_required:
            node["required"] = list(node["properties"])
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            node[key] = _fit_node(node[key], dialect)
    for key in ("anyOf", "prefixItems"):
        if key in node:
            node[key] = [_fit_node(child, dialect) for child in node[key]]
    return node
