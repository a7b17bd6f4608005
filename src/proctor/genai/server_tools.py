"""Tools that a provider runs itself: the call, and often what came of it, stand in its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
