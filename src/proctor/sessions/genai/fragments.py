"""Join streamed answers that were logged in pieces, and read calls of hosted tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from proctor.sessions.genai.values import decode_json

# Calls of Anthropic, whose results are separate parts.
_CALL_PARTS = ("server_tool_use", "mcp_tool_use")
_RESULT = "_tool_result"
# Call items of OpenAI's responses; hosted ones contain their result.
_HOSTED_ITEMS = (
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
)  # fmt: skip
_LOCAL_ITEMS = ("computer_call", "local_shell_call", "shell_call", "apply_patch_call")
_ITEMS = (*_HOSTED_ITEMS, *_LOCAL_ITEMS)
_OUTPUTS = tuple(f"{item}_output" for item in _LOCAL_ITEMS)
_ARGUMENT_KEYS = ("queries", "code", "operation")
_RESULT_KEYS = ("output", "outputs", "results", "result", "error", "status")
_FAILURES = ("failed", "incomplete")


def is_tool_call_type(kind: Any) -> bool:
    """True for the type of a part or item that is a tool call."""
    return kind in _CALL_PARTS or kind in _ITEMS


def is_tool_result_type(kind: Any) -> bool:
    """True for the type of a part or item that is a tool result."""
    return str(kind).endswith(_RESULT) or kind in _OUTPUTS


def get_tool_name(item: Mapping[str, Any]) -> str:
    """The tool name in the type of an item."""
    return str(item["type"]).removesuffix("_call") if item.get("type") in _ITEMS else ""


def get_tool_arguments(item: Mapping[str, Any]) -> Any:
    """The arguments of an item that does not call them `arguments`."""
    if item.get("type") not in _ITEMS:
        return None
    return item.get("action") or {name: item[name] for name in _ARGUMENT_KEYS if name in item}


def get_hosted_result(item: Any) -> Any:
    """The result inside a call item, or None."""
    if not isinstance(item, Mapping) or item.get("type") not in _HOSTED_ITEMS:
        return None
    return next((item[name] for name in _RESULT_KEYS if item.get(name) is not None), None)


def has_failed(part: Mapping[str, Any]) -> bool:
    """True if a call item or a result is marked as failed."""
    kind, content = part.get("type"), part.get("content")
    if str(kind).endswith(_RESULT) and isinstance(content, Mapping):
        return str(content.get("type")).endswith("_error")
    is_known = kind in _ITEMS or kind in _OUTPUTS
    return is_known and (part.get("error") is not None or part.get("status") in _FAILURES)


_CALLS = ("tool-call", "tool_call", "tool_use", "function_call", "tool_call_chunk")
_ARGUMENTS = ("args", "arguments", "input")
_FINISHED = ("finish_reason", "finishReason")
# Two messages in a row may be separate; three broken sentences are pieces.
_MIN_PIECES = 3
_ENDS = tuple(".!?:…。！？\n")
_BEGINS = tuple(" \t\n.,;:!?'’)]}-")


def join_fragments(answer: Sequence[Any]) -> Sequence[Any]:
    """Join the messages of one answer that are pieces of one message.

    Pieces share an id or break in the middle of sentences; other messages stay unchanged.
    """
    runs: list[list[Any]] = []
    for message in answer:
        if runs and _may_continue(runs[-1][-1], message):
            runs[-1].append(message)
        else:
            runs.append([message])
    if len(runs) == len(answer):
        return answer
    return [message for run in runs for message in _join_run(run)]


def _may_continue(previous: Any, message: Any) -> bool:
    """True if both are assistant messages with the same id and the first has no finish reason."""
    if not (isinstance(previous, Mapping) and isinstance(message, Mapping)):
        return False
    roles = {str(it.get("role") or it.get("type")).casefold() for it in (previous, message)}
    if not roles <= {"assistant", "model", "ai", "aimessagechunk"}:
        return False
    has_ended = any(previous.get(name) for name in _FINISHED)
    return (
        not has_ended
        and _get_id(previous) == _get_id(message)
        and previous.get("name") == message.get("name")
    )


def _get_id(message: Mapping[str, Any]) -> Any:
    meta = message.get("meta")
    return message.get("id") or (meta.get("id") if isinstance(meta, Mapping) else None)


def _join_run(run: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
    if len(run) == 1 or not (_get_id(run[0]) or _is_streamed(run)):
        return run
    parts = _join_parts([part for message in run for part in _get_parts(message)])
    merged = {**run[-1], **run[0]}
    calls = _join_calls([call for message in run for call in message.get("tool_calls") or ()])
    if calls:
        merged["tool_calls"] = calls
    texts = [part if isinstance(part, str) else part.get("text") for part in parts]
    is_text = all(isinstance(it, str) or _is_text(it) for it in parts)
    content = "".join(text for text in texts if isinstance(text, str)) if is_text else parts
    return [{**{key: it for key, it in merged.items() if key != "parts"}, "content": content}]


def _is_streamed(run: Sequence[Mapping[str, Any]]) -> bool:
    """True if most messages end in the middle of a sentence or a call."""
    if len(run) < _MIN_PIECES:
        return False
    texts = [_get_text(message) for message in run]
    broken = sum(
        not (before and after) or not before.endswith(_ENDS) or after.startswith(_BEGINS)
        for before, after in pairwise(texts)
    )
    return 2 * broken > len(run) - 1


def _get_text(message: Mapping[str, Any]) -> str:
    parts = (part if isinstance(part, str) else part.get("text") for part in _get_parts(message))
    return "".join(part for part in parts if isinstance(part, str))


def _get_parts(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content") or message.get("parts") or message.get("contents")
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list | tuple):
        return []
    return [part for part in content if isinstance(part, str | Mapping)]


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and set(part) <= {"type", "text"} and "text" in part


def _join_parts(parts: Sequence[Any]) -> list[Any]:
    joined: list[Any] = []
    for part in parts:
        last: Any = joined[-1] if joined else None
        if _is_text(part) and _is_text(last):
            joined[-1] = {**last, "text": f"{last['text'] or ''}{part['text'] or ''}"}
        elif _continues_call(last, part):
            joined[-1] = _extend_call(last, part)
        else:
            joined.append(part)
    return joined


def _join_calls(calls: Sequence[Any]) -> list[Any]:
    joined: list[Any] = []
    for call in calls:
        if joined and _continues_call({"type": _CALLS[0], **joined[-1]}, call, is_call=True):
            joined[-1] = _extend_call(joined[-1], call)
        else:
            joined.append(call)
    return joined


def _continues_call(previous: Any, part: Any, *, is_call: bool = False) -> bool:
    """True if a part is the next piece of the previous call."""
    if not (isinstance(previous, Mapping) and isinstance(part, Mapping)):
        return False
    if not is_call and not (previous.get("type") in _CALLS and part.get("type") in _CALLS):
        return False
    return not part.get("id") or part.get("id") == previous.get("id")


def _extend_call(call: Mapping[str, Any], piece: Mapping[str, Any]) -> dict[str, Any]:
    extended = dict(call)
    for name in _ARGUMENTS:
        before, after = call.get(name), piece.get(name)
        if isinstance(before, str) and isinstance(after, str) and before != after:
            # A piece may also repeat all of the arguments.
            is_complete = isinstance(decode_json(after), Mapping)
            extended[name] = after if is_complete else before + after
    function, piece_function = call.get("function"), piece.get("function")
    if isinstance(function, Mapping) and isinstance(piece_function, Mapping):
        extended["function"] = _extend_call(function, piece_function)
    return extended
