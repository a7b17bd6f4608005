"""Answers that were logged as they were streamed: the pieces become one message again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from proctor.sessions.genai.values import decoded

# Anthropic's, whose results are parts of their own.
_PARTS = ("server_tool_use", "mcp_tool_use")
_RESULT = "_tool_result"
# Items of OpenAI's responses, named after their tools. Some hold what came of the call.
_RUN_THERE = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    "mcp_call",
)
_RUN_HERE = ("computer_call", "local_shell_call", "shell_call", "apply_patch_call")
_ITEMS = frozenset((*_RUN_THERE, *_RUN_HERE))
_OUTPUTS = frozenset(f"{item}_output" for item in _RUN_HERE)
_GIVEN = ("queries", "code", "operation")
_ANSWERS = ("output", "outputs", "results", "result", "error", "status")
_FAILURES = ("failed", "incomplete")


def asks_for_tool(kind: Any) -> bool:
    """True for the type of a part or an item that is a call of such a tool.

    >>> asks_for_tool("server_tool_use"), asks_for_tool("web_search_call"), asks_for_tool("text")
    (True, True, False)
    """
    return isinstance(kind, str) and (kind in _PARTS or kind in _ITEMS)


def tells_result(kind: Any) -> bool:
    """True for the type of a part or an item that is what came of a call.

    >>> tells_result("web_search_tool_result"), tells_result("computer_call_output")
    (True, True)
    """
    return isinstance(kind, str) and (kind.endswith(_RESULT) or kind in _OUTPUTS)


def name_of(item: Mapping[str, Any]) -> str:
    """The tool that an item without a name is a call of.

    >>> name_of({"type": "web_search_call"}), name_of({"type": "function_call"})
    ('web_search', '')
    """
    return str(item["type"]).removesuffix("_call") if _is_item(item) else ""


def arguments_of(item: Mapping[str, Any]) -> Any:
    """What a tool was given that has other words than `arguments` for it.

    >>> arguments_of({"type": "web_search_call", "action": {"type": "search", "query": "Rome"}})
    {'type': 'search', 'query': 'Rome'}
    """
    if not _is_item(item):
        return None
    return item.get("action") or {name: item[name] for name in _GIVEN if name in item}


def answer_in(item: Any) -> Any:
    """What came of a call, where the item that tells of the call tells that too; else None.

    >>> answer_in({"type": "web_search_call", "status": "completed"})
    'completed'
    """
    if not isinstance(item, Mapping) or item.get("type") not in _RUN_THERE:
        return None
    return next((item[name] for name in _ANSWERS if item.get(name) is not None), None)


def has_failed(part: Mapping[str, Any]) -> bool:
    """True if an item or a result of such a tool tells that it failed."""
    kind, content = part.get("type"), part.get("content")
    if isinstance(kind, str) and kind.endswith(_RESULT) and isinstance(content, Mapping):
        return str(content.get("type")).endswith("_error")
    is_known = isinstance(kind, str) and (kind in _ITEMS or kind in _OUTPUTS)
    return is_known and (part.get("error") is not None or part.get("status") in _FAILURES)


def _is_item(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in _ITEMS


_CALLS = ("tool-call", "tool_call", "tool_use", "function_call", "tool_call_chunk")
_ARGUMENTS = ("args", "arguments", "input")
_FINISHED = ("finish_reason", "finishReason")
# Two messages in a row may be two messages; so many broken sentences are one.
_FEWEST = 3
_ENDS = tuple(".!?:…。！？\n")
_BEGINS = tuple(" \t\n.,;:!?'’)]}-")


def join_fragments(answer: Sequence[Any]) -> Sequence[Any]:
    """The messages of one answer, those that are pieces of one message put together.

    Pieces share an id, or break in the middle of sentences. Other messages stay as they are, such
    as several answers to choose from.

    >>> told = [{"role": "assistant", "id": "m1", "content": text} for text in ("Par", "is")]
    >>> join_fragments(told)
    [{'role': 'assistant', 'id': 'm1', 'content': 'Paris'}]
    """
    runs: list[list[Any]] = []
    for message in answer:
        if runs and _may_belong(runs[-1][-1], message):
            runs[-1].append(message)
        else:
            runs.append([message])
    if len(runs) == len(answer):
        return answer
    return [joined for run in runs for joined in _joined(run)]


def _may_belong(before: Any, message: Any) -> bool:
    """True if both are of the assistant, of one id if they have any, and the first did not end."""
    if not (isinstance(before, Mapping) and isinstance(message, Mapping)):
        return False
    roles = {str(one.get("role") or one.get("type")).casefold() for one in (before, message)}
    if not roles <= {"assistant", "model", "ai", "aimessagechunk"}:
        return False
    has_ended = any(before.get(name) for name in _FINISHED)
    return not has_ended and _id(before) == _id(message) and before.get("name") == message.get("name")


def _id(message: Mapping[str, Any]) -> Any:
    meta = message.get("meta")
    return message.get("id") or (meta.get("id") if isinstance(meta, Mapping) else None)


def _joined(run: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
    if len(run) == 1 or not (_id(run[0]) or _are_pieces(run)):
        return run
    parts = _joined_parts([part for message in run for part in _parts(message)])
    whole = {**run[-1], **run[0]}
    calls = _joined_calls([call for one in run for call in one.get("tool_calls") or ()])
    if calls:
        whole["tool_calls"] = calls
    texts = [part if isinstance(part, str) else part.get("text") for part in parts]
    is_text = all(isinstance(it, str) or _is_text(it) for it in parts)
    content = "".join(text for text in texts if isinstance(text, str)) if is_text else parts
    return [{**{key: it for key, it in whole.items() if key != "parts"}, "content": content}]


def _are_pieces(run: Sequence[Mapping[str, Any]]) -> bool:
    """True if most of the messages break off in the middle of a sentence, or of a call."""
    if len(run) < _FEWEST:
        return False
    texts = [_text(message) for message in run]
    broken = sum(
        not (before and after) or not before.endswith(_ENDS) or after.startswith(_BEGINS)
        for before, after in pairwise(texts)
    )
    return 2 * broken > len(run) - 1


def _text(message: Mapping[str, Any]) -> str:
    parts = (part if isinstance(part, str) else part.get("text") for part in _parts(message))
    return "".join(part for part in parts if isinstance(part, str))


def _parts(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content") or message.get("parts") or message.get("contents")
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list | tuple):
        return []
    return [part for part in content if isinstance(part, str | Mapping)]


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and set(part) <= {"type", "text"} and "text" in part


def _joined_parts(parts: Sequence[Any]) -> list[Any]:
    """Texts that follow each other as one, and the pieces of a call."""
    found: list[Any] = []
    for part in parts:
        last: Any = found[-1] if found else None
        if _is_text(part) and _is_text(last):
            found[-1] = {**last, "text": f"{last['text'] or ''}{part['text'] or ''}"}
        elif _goes_on(last, part):
            found[-1] = _longer(last, part)
        else:
            found.append(part)
    return found


def _joined_calls(calls: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for call in calls:
        if found and _goes_on({"type": _CALLS[0], **found[-1]}, call, is_call=True):
            found[-1] = _longer(found[-1], call)
        else:
            found.append(call)
    return found


def _goes_on(before: Any, part: Any, *, is_call: bool = False) -> bool:
    """True if a part is the next piece of the call before it."""
    if not (isinstance(before, Mapping) and isinstance(part, Mapping)):
        return False
    if not is_call and not (before.get("type") in _CALLS and part.get("type") in _CALLS):
        return False
    return not part.get("id") or part.get("id") == before.get("id")


def _longer(call: Mapping[str, Any], piece: Mapping[str, Any]) -> dict[str, Any]:
    longer = dict(call)
    for name in _ARGUMENTS:
        before, after = call.get(name), piece.get(name)
        if isinstance(before, str) and isinstance(after, str) and before != after:
            # A piece may also repeat the whole of the arguments.
            is_whole = isinstance(decoded(after), Mapping)
            longer[name] = after if is_whole else before + after
    inner, more = call.get("function"), piece.get("function")
    if isinstance(inner, Mapping) and isinstance(more, Mapping):
        longer["function"] = _longer(inner, more)
    return longer
