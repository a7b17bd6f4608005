"""Parse messages in the formats of OpenAI, Anthropic, Gemini, LangChain, Vercel and OpenTelemetry."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from proctor.records.session import Message, Role, ToolCall
from proctor.sessions.genai.values import BREAK, decode_json, join_texts, parse_arguments, text_or_none, to_plain

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("assistant", "model", "ai"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
    **dict.fromkeys(("user", "human"), "user"),
}
# These are roles only under the key `role`; as a `type` they mean something else.
_OTHER_ROLES: dict[str, Role] = {
    **dict.fromkeys(("bot", "chatbot", "agent"), "assistant"),
    **dict.fromkeys(("customer", "client"), "user"),
}
_CALL_TYPES = ("tool_call", "tool_use", "function_call", "tool-call", "custom_tool_call", "functionCall")
_RESULT_TYPES = (
    *("tool_call_response", "tool_result", "tool-result"),
    *("function_call_output", "custom_tool_call_output", "functionResult"),
)
_THOUGHT_TYPES = ("reasoning", "thinking", "redacted_thinking")
_TEXT_TYPES = ("text", "output_text", "input_text")
_REFUSAL = "refusal"
# The key of a call inside its part, as Gemini and OpenAI spell it.
_CALL_KEYS = ("function_call", "functionCall")
_RESPONSE_KEYS = ("function_response", "functionResponse")
_CONTENT_KEYS = ("content", "parts", "contents", _REFUSAL, "audio")
_CALL_LISTS = ("tool_calls", "toolCalls")
# The keys that contain the name and the arguments of a call.
_FUNCTION_KEYS = ("function", "custom", *_CALL_KEYS)
# Calls of Anthropic, whose results are separate parts.
_CALL_PARTS = ("server_tool_use", "mcp_tool_use")
_RESULT = "_tool_result"
# Call items of OpenAI's responses; hosted calls contain their result.
_HOSTED_ITEMS = (
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
)  # fmt: skip
_LOCAL_ITEMS = ("computer_call", "local_shell_call", "shell_call", "apply_patch_call")
_ITEMS = (*_HOSTED_ITEMS, *_LOCAL_ITEMS)
_OUTPUTS = tuple(f"{item}_output" for item in _LOCAL_ITEMS)
_ALL_CALL_TYPES = (*_CALL_TYPES, *_CALL_PARTS, *_ITEMS)
_ALL_RESULT_TYPES = (*_RESULT_TYPES, *_OUTPUTS)
_ARGUMENT_KEYS = ("queries", "code", "operation")
_RESULT_KEYS = ("output", "outputs", "results", "result", "error", "status")
_FAILURES = ("failed", "incomplete")
# Types of streamed calls.
_STREAMED_CALL_TYPES = ("tool-call", "tool_call", "tool_use", "function_call", "tool_call_chunk")
_ARGUMENTS = ("arguments", "input", "args")
_FINISH_REASONS = ("finish_reason", "finishReason")
_INVALID_CALL = "invalid_tool_call"
_TOOL_NAMES = ("name", "toolName", "tool_name")
_CALL_IDS = ("call_id", "toolCallId", "callId", "id")
_RESULT_IDS = ("call_id", "tool_use_id", "toolCallId", "tool_call_id", "callId", "id")
# Two messages in a row may be separate; three broken sentences are pieces of one message.
_MIN_PIECES = 3
_SENTENCE_ENDS = tuple(".!?:…。！？\n")
_CONTINUATIONS = tuple(" \t\n.,;:!?'’)]}-")


class ParsedMessages(NamedTuple):
    """Messages with the thoughts, tool definitions and finish reasons found among them.

    `failed` are the indexes of failed tool results. `alternatives` are other answers to the same request.
    """

    messages: list[Message]
    thoughts: list[Any]
    tools: list[Any]
    finish_reasons: list[str]
    failed: set[int]
    alternatives: list[Any]


def parse_messages(items: Sequence[Any], default_role: str = "user") -> ParsedMessages:
    """Parse messages; `default_role` applies to messages without a role."""
    parsed = ParsedMessages([], [], [], [], set(), [])
    called_tools: set[str] = set()
    for item in _join_fragments(items) if default_role == "assistant" else items:
        fields = _restore_tool_role(_unwrap(item), called_tools)
        for message, is_failure in _parse_message(fields, default_role, parsed):
            if is_failure:
                parsed.failed.add(len(parsed.messages))
            parsed.messages.append(message)
            called_tools.update(call.name for call in message.tool_calls)
        reason = _first_value(fields, _FINISH_REASONS)
        if isinstance(reason, str):
            parsed.finish_reasons.append(reason)
    return parsed


def is_message(value: Any) -> bool:
    """Return True for a mapping that has the format of a message."""
    if not isinstance(value, Mapping):
        return False
    fields = _unwrap(value)
    if _classify_part(fields) is not None:
        return True
    has_content = any(key in fields for key in (*_CONTENT_KEYS, *_CALL_LISTS, *_CALL_KEYS))
    return has_content and (isinstance(fields.get("role"), str) or _read_type_role(fields) is not None)


def _first_value(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((fields[key] for key in keys if fields.get(key)), None)


def _unwrap(value: Any) -> Mapping[str, Any]:
    """Return a message without the envelope of LangChain, a choice or a candidate."""
    if not isinstance(value, Mapping):
        return {"content": value}
    fields: Mapping[str, Any] = value
    if isinstance(message := fields.get("message"), Mapping) and "content" not in fields:
        fields = {**fields, **message}
    if isinstance(kwargs := fields.get("kwargs"), Mapping) and fields.get("lc"):
        path = fields.get("id")
        name = path[-1] if isinstance(path, list | tuple) and path else None
        fields = {**fields, "id": None, "type": name, **kwargs}
    elif isinstance(data := fields.get("data"), Mapping) and (
        _read_type_role(fields) is not None or (fields.get("type") == "chat" and "role" in data)
    ):
        fields = {"type": fields["type"], **data}
    content = fields.get("content")
    if isinstance(content, Mapping) and isinstance(content.get("parts"), list | tuple):
        fields = {key: item for key, item in fields.items() if key != "content"} | dict(content)
    return fields


def _restore_tool_role(fields: Mapping[str, Any], called_tools: Collection[str]) -> Mapping[str, Any]:
    """Set the role of a tool result that has the name of its tool as the role, or no role.

    Langfuse's handler for LangChain.js writes tool results this way.
    """
    role = fields.get("role")
    if role is None and called_tools and is_bare_message(fields):
        return {**fields, "role": "tool"}
    if not isinstance(role, str) or role not in called_tools or parse_role(role) is not None:
        return fields
    return {"name": role, **fields, "role": "tool"}


def is_bare_message(value: Any) -> bool:
    """Return True for a LangChain message that lost its role: an unnamed tool result."""
    if not isinstance(value, Mapping) or value.get("role") is not None:
        return False
    return {"content", "additional_kwargs"} <= value.keys() and _read_type_role(value) is None


def _parse_message(
    fields: Mapping[str, Any], default_role: str, parsed: ParsedMessages
) -> Iterator[tuple[Message, bool]]:
    """Yield the messages of one item with a failure flag; tool results are separate messages."""
    item_type = None if fields.get("role") else _classify_part(fields)
    role_name = str(fields.get("role") or _read_type_role(fields) or default_role)
    role = "assistant" if item_type else parse_role(role_name) or "user"
    if _is_tool_definition(fields, role):
        parsed.tools.append(to_plain(fields["content"]))
        return
    splitter = _MessageSplitter(fields, role, is_item=item_type is not None)
    for part in [fields] if item_type else _get_parts(fields, role):
        part_type = _classify_part(part)
        if part_type is not None:
            splitter.parts.append(BREAK)
        if part_type == "thought":
            parsed.thoughts.append(to_plain(part))
        elif part_type == "result":
            yield from splitter.add_result(_parse_result(part), is_failure=_is_failure(part))
        elif part_type != "call":
            splitter.parts.append(part)
        elif (call := splitter.add_call(part)) and (output := _get_hosted_result(part)) is not None:
            result = Message("tool", to_plain(output), call.name, call_id=call.call_id)
            yield from splitter.add_result(result, is_failure=_has_failed(part))
    yield from splitter.finish()


class _MessageSplitter:
    """Splits an item into messages.

    Results of earlier calls come first. If the provider ran a tool, the call, its result and the following text are
    parts of one item and become three messages.
    """

    def __init__(self, fields: Mapping[str, Any], role: Role, *, is_item: bool) -> None:
        self._fields, self._role, self._is_item = fields, role, is_item
        self._calls = [] if is_item else [_parse_call(call) for call in _get_calls(fields)]
        self._listed_ids = {call.call_id for call in self._calls if call.call_id is not None}
        self._call_keys = {call.call_id or call.name for call in self._calls}
        self._results: list[tuple[Message, bool]] = []
        self._has_output = False
        self.parts: list[Any] = []

    def add_call(self, part: Any) -> ToolCall | None:
        """Add and return a call; return None if LangChain also lists it next to the content."""
        call = _parse_call(part)
        if call.call_id in self._listed_ids:
            return None
        self._calls.append(call)
        self._call_keys.add(call.call_id or call.name)
        return call

    def add_result(self, result: Message, *, is_failure: bool) -> Iterator[tuple[Message, bool]]:
        """Add a result of an earlier call, or yield it after its call in this item."""
        if (result.call_id or result.name) in self._call_keys:
            yield from self._flush()
            yield result, is_failure
        else:
            self._results.append((result, is_failure))

    def finish(self) -> Iterator[tuple[Message, bool]]:
        """Yield the remaining message; an item without content is an empty message."""
        yield from self._flush(is_empty=not (self._has_output or self._results or self._is_item))

    def _flush(self, *, is_empty: bool = False) -> Iterator[tuple[Message, bool]]:
        yield from self._results
        if self._calls or is_empty or any(part is not BREAK for part in self.parts):
            fields, role = self._fields, self._role
            call_id = _first_value(fields, ("tool_call_id", "toolCallId", "id"))
            name = fields.get("name")
            message = Message(
                role,
                _join_content(self.parts, role),
                name if isinstance(name, str) and not self._is_item else None,
                tuple(self._calls),
                text_or_none(call_id) if role == "tool" else None,
            )
            yield message, role == "tool" and _is_failure(fields)
        self._results, self.parts, self._calls, self._has_output = [], [], [], True


def parse_role(name: str) -> Role | None:
    """Return the role for a name, or None if it is unknown."""
    name = name.casefold()
    return _ROLES.get(name) or _OTHER_ROLES.get(name)


def _read_type_role(fields: Mapping[str, Any]) -> Role | None:
    """Return the role in LangChain's `type`, such as `human` or `HumanMessageChunk`."""
    name = fields.get("type")
    if not isinstance(name, str):
        return None
    return _ROLES.get(name.removesuffix("Chunk").removesuffix("Message").casefold())


def _is_tool_definition(fields: Mapping[str, Any], role: Role) -> bool:
    """Return True for the definition of a tool, which LangChain's handler for Langfuse writes as a message."""
    content = fields.get("content")
    is_function = isinstance(content, Mapping) and isinstance(content.get("function"), Mapping)
    return role == "tool" and is_function and not fields.get("tool_call_id")


def _get_calls(fields: Mapping[str, Any]) -> Sequence[Any]:
    """Return the tool calls of a message, including those of LangChain whose arguments could not be parsed."""
    items = decode_json(fields.get("invalid_tool_calls"))
    invalid = [{**item, "type": _INVALID_CALL} for item in items or () if isinstance(item, Mapping)]
    ids = {item["id"] for item in invalid if isinstance(item.get("id"), str)}
    calls = _get_valid_calls(fields)
    if not invalid:
        return calls
    return [*(call for call in calls if not isinstance(call, Mapping) or call.get("id") not in ids), *invalid]


def _get_valid_calls(fields: Mapping[str, Any]) -> Sequence[Any]:
    for source in _with_kwargs(fields):
        for key in _CALL_LISTS:
            calls = decode_json(source.get(key))
            if isinstance(calls, list | tuple) and calls:
                return calls
        for key in _CALL_KEYS:
            if isinstance(source.get(key), Mapping):
                return [{key: source[key]}]
    return ()


def _with_kwargs(fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return a message merged with its `additional_kwargs`, where LangChain puts unknown fields."""
    kwargs = fields.get("additional_kwargs")
    return (fields, kwargs) if isinstance(kwargs, Mapping) else (fields,)


def _classify_part(part: Any) -> Literal["call", "result", "thought"] | None:
    if not isinstance(part, Mapping):
        return None
    part_type = part.get("type", part.get("$type"))
    has_response = any(isinstance(part.get(key), Mapping) for key in _RESPONSE_KEYS)
    if part_type in _ALL_RESULT_TYPES or str(part_type).endswith(_RESULT) or has_response:
        return "result"
    if part_type in _THOUGHT_TYPES or part.get("thought") is True:
        return "thought"
    if part_type in _ALL_CALL_TYPES or ("toolName" in part and "toolCallId" in part):
        return "call"
    is_bare = "role" not in part and "content" not in part
    return "call" if is_bare and any(isinstance(part.get(key), Mapping) for key in _CALL_KEYS) else None


def _get_parts(fields: Mapping[str, Any], role: Role) -> Sequence[Any]:
    """Return the parts of a message; the output of a tool is not searched for parts."""
    content = _first_value(fields, ("parts", "contents", "content"))
    if isinstance(content, list | tuple):
        return content
    decoded: Any = decode_json(content)
    types = ("text", *_THOUGHT_TYPES, *_CALL_TYPES, *_RESULT_TYPES)
    items = decoded if role != "tool" and isinstance(decoded, list) else []
    if items and all(isinstance(part, Mapping) and part.get("type") in types for part in items):
        return items
    if content is None and role != "tool":
        content = _find_spoken_text(fields)
    return [] if content is None else [content]


def _find_spoken_text(fields: Mapping[str, Any]) -> str | None:
    """Return a refusal or an audio transcript that replaces the content."""
    for source in _with_kwargs(fields):
        audio = source.get("audio")
        transcript = audio.get("transcript") if isinstance(audio, Mapping) else None
        for text in (source.get(_REFUSAL), transcript):
            if isinstance(text, str) and text:
                return text
    return None


def _join_content(parts: Sequence[Any], role: str) -> Any:
    texts = [BREAK if part is BREAK else _get_text(part) for part in parts]
    if all(text is not None for text in texts):
        # OpenTelemetry's texts, under "content", are separate texts: each starts a new line.
        is_otel = any(isinstance(part, Mapping) and "content" in part for part in parts)
        return join_texts((text for text in texts if text), "" if is_otel else role)
    return [to_plain(part) for part in parts if part is not BREAK]


def _get_text(part: Any) -> str | None:
    if isinstance(part, Mapping) and part.get("type") == _REFUSAL:
        part = part.get(_REFUSAL)
    elif isinstance(part, Mapping) and part.get("type", "text") in _TEXT_TYPES:
        part = part.get("content", part.get("text"))
    return part if isinstance(part, str) else None


def _parse_call(value: Any) -> ToolCall:
    """Parse a tool call, which may have a `function` inside and may lack a name."""
    if not isinstance(value, Mapping):
        return ToolCall(value) if isinstance(value, str) else ToolCall("", parse_arguments(value))
    function = _get_inner(value, _FUNCTION_KEYS)
    is_item = value.get("type") in _ITEMS
    # The type of a hosted tool's item contains its name.
    hosted_name = str(value["type"]).removesuffix("_call") if is_item else ""
    arguments = next((function[name] for name in _ARGUMENTS if name in function), None)
    if is_item and not any(name in function for name in _ARGUMENTS):
        arguments = value.get("action") or {name: value[name] for name in _ARGUMENT_KEYS if name in value}
    is_invalid = value.get("type") == _INVALID_CALL
    return ToolCall(
        str(_first_value(function, _TOOL_NAMES) or hosted_name),
        parse_arguments(arguments),
        error=text_or_none(value.get("error")) or "its arguments are invalid" if is_invalid else None,
        call_id=_find_id(value, _CALL_IDS) or text_or_none(function.get("id")),
    )


def _find_id(fields: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((text for key in keys if (text := text_or_none(fields.get(key)))), None)


def _get_inner(fields: Mapping[str, Any], keys: Sequence[str]) -> Mapping[str, Any]:
    return next((item for key in keys if isinstance(item := fields.get(key), Mapping)), fields)


def _is_failure(fields: Mapping[str, Any]) -> bool:
    """Return True for a failed result, as marked by Anthropic, LangChain and the Vercel SDK."""
    output = fields.get("output")
    output_type = output.get("type") if isinstance(output, Mapping) else None
    is_marked = fields.get("is_error") is True or fields.get("status") == "error"
    is_error = isinstance(output_type, str) and output_type.startswith("error")
    return is_marked or _has_failed(fields) or is_error


def _parse_result(part: Mapping[str, Any]) -> Message:
    response = _get_inner(part, _RESPONSE_KEYS)
    keys = ("response", "result", "content", "output")
    output = next((response[key] for key in keys if key in response), "")
    if isinstance(output, Mapping) and set(output) == {"type", "value"}:
        # The Vercel SDK wraps the output with its type.
        output = output["value"]
    if isinstance(output, list | tuple):
        output = _join_content(output, "tool")
    name = _first_value(response, _TOOL_NAMES)
    name = name if isinstance(name, str) else None
    return Message("tool", to_plain(output), name, call_id=_find_id(response, _RESULT_IDS))


def _get_hosted_result(item: Any) -> Any:
    if not isinstance(item, Mapping) or item.get("type") not in _HOSTED_ITEMS:
        return None
    return next((item[name] for name in _RESULT_KEYS if item.get(name) is not None), None)


def _has_failed(part: Mapping[str, Any]) -> bool:
    part_type, content = part.get("type"), part.get("content")
    if str(part_type).endswith(_RESULT) and isinstance(content, Mapping):
        return str(content.get("type")).endswith("_error")
    is_item = part_type in (*_ITEMS, *_OUTPUTS)
    return is_item and (part.get("error") is not None or part.get("status") in _FAILURES)


def _join_fragments(answer: Sequence[Any]) -> Sequence[Any]:
    """Join the messages of one answer that are pieces of one message.

    Pieces share an id or end in the middle of sentences; other messages stay unchanged.
    """
    groups: list[list[Any]] = []
    for message in answer:
        if groups and _may_continue(groups[-1][-1], message):
            groups[-1].append(message)
        else:
            groups.append([message])
    if len(groups) == len(answer):
        return answer
    return [message for group in groups for message in _join_group(group)]


def _may_continue(previous: Any, message: Any) -> bool:
    """Return True if both are assistant messages with the same id and the first has no finish reason."""
    if not (isinstance(previous, Mapping) and isinstance(message, Mapping)):
        return False
    roles = {str(item.get("role") or item.get("type")).casefold() for item in (previous, message)}
    if not roles <= {"assistant", "model", "ai", "aimessagechunk"}:
        return False
    has_ended = _first_value(previous, _FINISH_REASONS) is not None
    return not has_ended and _get_id(previous) == _get_id(message) and previous.get("name") == message.get("name")


def _get_id(message: Mapping[str, Any]) -> Any:
    meta = message.get("meta")
    return message.get("id") or (meta.get("id") if isinstance(meta, Mapping) else None)


def _join_group(group: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
    if len(group) == 1 or not (_get_id(group[0]) or _is_streamed(group)):
        return group
    parts = _join_pieces([part for message in group for part in _get_fragment_parts(message)], is_call=False)
    merged = {**group[-1], **group[0]}
    calls = _join_pieces([call for message in group for call in message.get("tool_calls") or ()], is_call=True)
    if calls:
        merged["tool_calls"] = calls
    is_text = all(isinstance(item, str) or _is_text(item) for item in parts)
    content = _concatenate_texts(parts) if is_text else parts
    return [{**{key: item for key, item in merged.items() if key != "parts"}, "content": content}]


def _is_streamed(group: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if most messages end in the middle of a sentence or a call."""
    if len(group) < _MIN_PIECES:
        return False
    texts = [_concatenate_texts(_get_fragment_parts(message)) for message in group]
    broken = sum(
        not (first and second) or not first.endswith(_SENTENCE_ENDS) or second.startswith(_CONTINUATIONS)
        for first, second in pairwise(texts)
    )
    return 2 * broken > len(group) - 1


def _concatenate_texts(parts: Sequence[Any]) -> str:
    texts = (part if isinstance(part, str) else part.get("text") for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _get_fragment_parts(message: Mapping[str, Any]) -> list[Any]:
    content = _first_value(message, ("content", "parts", "contents"))
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list | tuple):
        return []
    return [part for part in content if isinstance(part, str | Mapping)]


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and set(part) <= {"type", "text"} and "text" in part


def _join_pieces(parts: Sequence[Any], *, is_call: bool) -> list[Any]:
    """Join the pieces of each text and call; with `is_call` all parts are pieces of calls."""
    joined: list[Any] = []
    for part in parts:
        last: Any = joined[-1] if joined else None
        if not is_call and _is_text(part) and _is_text(last):
            joined[-1] = {**last, "text": f"{last['text'] or ''}{part['text'] or ''}"}
        elif _continues_call(last, part, is_call=is_call):
            joined[-1] = _extend_call(last, part)
        else:
            joined.append(part)
    return joined


def _continues_call(previous: Any, part: Any, *, is_call: bool) -> bool:
    """Return True if a part is the next piece of the previous call."""
    if not (isinstance(previous, Mapping) and isinstance(part, Mapping)):
        return False
    if not is_call and not all(item.get("type") in _STREAMED_CALL_TYPES for item in (previous, part)):
        return False
    return not part.get("id") or part.get("id") == previous.get("id")


def _extend_call(call: Mapping[str, Any], piece: Mapping[str, Any]) -> dict[str, Any]:
    extended = dict(call)
    for name in _ARGUMENTS:
        start, end = call.get(name), piece.get(name)
        if isinstance(start, str) and isinstance(end, str) and start != end:
            # The last piece may repeat all of the arguments.
            is_complete = isinstance(decode_json(end), Mapping)
            extended[name] = end if is_complete else start + end
    function, piece_function = call.get("function"), piece.get("function")
    if isinstance(function, Mapping) and isinstance(piece_function, Mapping):
        extended["function"] = _extend_call(function, piece_function)
    return extended
