"""The content that an importer must find in a file: the texts of its messages, and the tokens of its calls.

Only content in the documented form of a format is considered, because other forms may be read in several ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from proctor.evaluators.judges.transcript import render_transcript
from proctor.sessions.genai.values import is_too_deep
from proctor.sessions.importers.imported_session import ImportedSession

# A message or container with one of these keys has another form.
_OTHER_FORMS = frozenset(
    (
        *("parts", "contents", "message", "kwargs", "data", "type", "lc", "function"),
        *("response", "choices", "candidates"),
    )
)
_LISTS = ("messages", "traj")
_ROLES = frozenset(("system", "developer", "user", "assistant"))
_AROUND = ("SPAN", "AGENT", "TOOL", "CHAIN")
_ENDLESS = 10**9
_MOST = 2**40


def render_sessions(sessions: Iterable[ImportedSession]) -> str:
    """Render all sessions as a judge reads them, without truncation."""
    output = (render_transcript(item.session, max_content=_ENDLESS, max_session=_ENDLESS) for item in sessions)
    return "\n".join(output)


def is_plain_text(value: Any) -> bool:
    """True for a text on one line that is not JSON.

    >>> is_plain_text("Capital of France?"), is_plain_text('{"a": 1}'), is_plain_text(7)
    (True, False, False)
    """
    if not isinstance(value, str) or not value.isprintable() or value != value.strip():
        return False
    return value[:1].isalpha()


def message_texts(form: str, values: Sequence[Any]) -> Iterator[str]:
    """Yield the texts of messages in all roles, and refusals.

    >>> talk = [{"role": "user", "content": "Hi"}, {"role": "critic", "content": "Ho"}]
    >>> list(message_texts("openai", [[*talk, {"role": "assistant", "content": None, "refusal": "No."}]]))
    ['Hi', 'Ho', 'No.']
    """
    for message in _messages(form, values):
        content = message["content"]
        if form == "openai" and content in (None, "", []) and message["role"] == "assistant":
            content = message.get("refusal")
        if is_plain_text(content):
            yield content


def count_tokens(form: str, values: Sequence[Any]) -> int | None:
    """Count the input and output tokens; None if the file does not state them clearly.

    >>> used = {"prompt_tokens": 5, "completion_tokens": 2}
    >>> count_tokens("openai", [[{"role": "assistant", "content": "Hi", "usage": used}]])
    7
    """
    if form == "langfuse":
        return _generation_totals(values)
    lists = [*_lists(values)]
    messages = [*_messages(form, values)]
    if len(lists) != len(values) or sum(map(len, lists)) != len(messages):
        return None
    name = "usage" if form == "openai" else "usage_metadata"
    answers = (message for message in messages if message["role"] in ("assistant", "ai"))
    return _sum(_count(message[name]) for message in answers if name in message)


def _messages(form: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages of lists, with role and content."""
    for listed in _lists(values):
        if form == "openai" and any(_is_message(item) and item["role"] in _ROLES for item in listed):
            yield from (item for item in listed if _is_message(item))
        if form == "langchain":
            yield from (item["data"] | {"role": item["type"]} for item in listed if _is_chain(item))


def _lists(values: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the lists of messages that sessions are or contain."""
    for value in values:
        if isinstance(value, list) and value and all(isinstance(it, dict) for it in value):
            held = [it for item in value for it in _nested_messages(item)]
            yield from held if len(held) == len(value) else [value]
        yield from _nested_messages(value)


def _nested_messages(value: Any) -> list[list[Any]]:
    if not isinstance(value, dict) or not _OTHER_FORMS.isdisjoint(value) or "usage" in value:
        return []
    results = [it for name in _LISTS if isinstance(it := value.get(name), list)]
    return results if len(results) == 1 else []


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or not _OTHER_FORMS.isdisjoint(message) or "content" not in message:
        return False
    return is_plain_text(message.get("role"))


def _is_chain(message: Any) -> bool:
    if not isinstance(message, dict) or message.keys() != {"type", "data"}:
        return False
    kind, data = message["type"], message["data"]
    known = isinstance(kind, str) and kind in ("human", "ai", "system")
    return known and isinstance(data, dict) and "content" in data and "role" not in data


def _generation_totals(values: Sequence[Any]) -> int | None:
    """Return the tokens of an export without nested generations."""
    is_one = len(values) == 1 and isinstance(values[0], dict) and not is_too_deep(values[0])
    rows = _rows(values[0]) if is_one else []
    around = {row["id"]: row for row in rows if row["type"] != "GENERATION"}
    calls = [row for row in rows if row["type"] == "GENERATION"]
    if len({row["id"] for row in rows}) != len(rows):
        return None
    for row in calls:
        # Up to the outermost row.
        for _ in around:
            row = around.get(row.get("parentObservationId"), row)
        if row.get("parentObservationId") is not None:
            return None
    return _sum(_total(row.get("usageDetails")) for row in calls)


def _rows(value: dict[str, Any]) -> list[dict[str, Any]]:
    trace, rows = value.get("trace"), value.get("observations")
    if value.keys() != {"trace", "observations"} or not isinstance(trace, dict):
        return []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return []
    # An export may contain its rows twice; if they differ, either may be right.
    again = trace.get("observations") or rows
    is_whole = again == rows and all(_is_row(row, trace.get("id")) for row in rows)
    return rows if is_whole else []


def _is_row(row: dict[str, Any], trace: Any) -> bool:
    if row.get("traceId") != trace or not row.get("startTime"):
        return False
    name, parent, kind = row.get("id"), row.get("parentObservationId"), row.get("type")
    named = isinstance(name, str) and bool(name) and isinstance(parent, str | None)
    is_around = kind in _AROUND and not row.get("usageDetails")
    return named and isinstance(kind, str) and (kind == "GENERATION" or is_around)


def _total(usage: Any) -> int | None:
    """Return the total; it may be more than input plus output."""
    if not isinstance(usage, dict) or not {"input", "output", "total"} <= usage.keys():
        return None
    request, text, total = numbers = [usage["input"], usage["output"], usage["total"]]
    is_sum = all(map(_is_count, numbers)) and request + text <= total
    return int(total) if is_sum else None


def _count(usage: Any) -> int | None:
    names = ({"prompt_tokens", "completion_tokens"}, {"input_tokens", "output_tokens"})
    if not isinstance(usage, dict) or {*usage} - {"total_tokens"} not in names:
        return None
    numbers = [it for name, it in usage.items() if name != "total_tokens"]
    return sum(numbers) if all(map(_is_count, numbers)) else None


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < _MOST


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum if all numbers are known and there is at least one."""
    results = [*numbers]
    known = [number for number in results if number is not None]
    return sum(known) if known and len(known) == len(results) else None
