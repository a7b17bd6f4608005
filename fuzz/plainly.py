"""What a file says plainly: the words of its messages, and the tokens that its calls used.

Only what stands there as the formats have it is looked at: that much must be told to a judge, and
counted. The rest may be read in more than one way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from proctor.evaluators.judges.transcript import render_transcript
from proctor.sessions.genai.values import is_too_deep
from proctor.sessions.importers.json_values import ImportedSession

# By these a message, or what holds it, has another form than its role and content tell.
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


def heard(found: Iterable[ImportedSession]) -> str:
    """All sessions as a judge reads them, with nothing cut."""
    told = (render_transcript(one.session, max_content=_ENDLESS, max_session=_ENDLESS) for one in found)
    return "\n".join(told)


def is_words(value: Any) -> bool:
    """True for a text that stands on one line everywhere, and is no JSON.

    >>> is_words("Capital of France?"), is_words('{"a": 1}'), is_words(7)
    (True, False, False)
    """
    if not isinstance(value, str) or not value.isprintable() or value != value.strip():
        return False
    return value[:1].isalpha()


def said_in(form: str, values: Sequence[Any]) -> Iterator[str]:
    """The words of messages, in whatever role they are said; also those by which a model refuses.

    >>> talk = [{"role": "user", "content": "Hi"}, {"role": "critic", "content": "Ho"}]
    >>> list(said_in("openai", [[*talk, {"role": "assistant", "content": None, "refusal": "No."}]]))
    ['Hi', 'Ho', 'No.']
    """
    for message in _messages(form, values):
        said = message["content"]
        if form == "openai" and said in (None, "", []) and message["role"] == "assistant":
            said = message.get("refusal")
        if is_words(said):
            yield said


def tokens_in(form: str, values: Sequence[Any]) -> int | None:
    """How many tokens went in and came out, or None where that is not told plainly.

    >>> used = {"prompt_tokens": 5, "completion_tokens": 2}
    >>> tokens_in("openai", [[{"role": "assistant", "content": "Hi", "usage": used}]])
    7
    """
    if form == "langfuse":
        return _of_generations(values)
    lists = [*_lists(values)]
    messages = [*_messages(form, values)]
    if len(lists) != len(values) or sum(map(len, lists)) != len(messages):
        return None
    name = "usage" if form == "openai" else "usage_metadata"
    answers = (one for one in messages if one["role"] in ("assistant", "ai"))
    return _sum(_count(one[name]) for one in answers if name in one)


def _messages(form: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The messages of lists, each with its role and its content."""
    for listed in _lists(values):
        if form == "openai" and any(_is_message(one) and one["role"] in _ROLES for one in listed):
            yield from (one for one in listed if _is_message(one))
        if form == "langchain":
            yield from (one["data"] | {"role": one["type"]} for one in listed if _is_chain(one))


def _lists(values: Sequence[Any]) -> Iterator[list[Any]]:
    """The lists of messages that sessions are, or hold."""
    for value in values:
        if isinstance(value, list) and value and all(isinstance(it, dict) for it in value):
            held = [it for one in value for it in _held(one)]
            yield from held if len(held) == len(value) else [value]
        yield from _held(value)


def _held(value: Any) -> list[list[Any]]:
    if not isinstance(value, dict) or not _OTHER_FORMS.isdisjoint(value) or "usage" in value:
        return []
    found = [it for name in _LISTS if isinstance(it := value.get(name), list)]
    return found if len(found) == 1 else []


def _is_message(one: Any) -> bool:
    if not isinstance(one, dict) or not _OTHER_FORMS.isdisjoint(one) or "content" not in one:
        return False
    return is_words(one.get("role"))


def _is_chain(one: Any) -> bool:
    if not isinstance(one, dict) or one.keys() != {"type", "data"}:
        return False
    kind, data = one["type"], one["data"]
    known = isinstance(kind, str) and kind in ("human", "ai", "system")
    return known and isinstance(data, dict) and "content" in data and "role" not in data


def _of_generations(values: Sequence[Any]) -> int | None:
    """The totals of an export in which no generation stands in another."""
    is_one = len(values) == 1 and isinstance(values[0], dict) and not is_too_deep(values[0])
    rows = _rows(values[0]) if is_one else []
    around = {row["id"]: row for row in rows if row["type"] != "GENERATION"}
    calls = [row for row in rows if row["type"] == "GENERATION"]
    if len({row["id"] for row in rows}) != len(rows):
        return None
    for row in calls:
        # Up to the outermost, which stands in nothing.
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
    # An export may tell its rows twice; where they differ, either may be right.
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


def _total(told: Any) -> int | None:
    """What all kinds of tokens are together; the total may count more than the two sides."""
    if not isinstance(told, dict) or not {"input", "output", "total"} <= told.keys():
        return None
    asked, said, total = numbers = [told["input"], told["output"], told["total"]]
    is_sum = all(map(_is_count, numbers)) and asked + said <= total
    return int(total) if is_sum else None


def _count(told: Any) -> int | None:
    names = ({"prompt_tokens", "completion_tokens"}, {"input_tokens", "output_tokens"})
    if not isinstance(told, dict) or {*told} - {"total_tokens"} not in names:
        return None
    numbers = [it for name, it in told.items() if name != "total_tokens"]
    return sum(numbers) if all(map(_is_count, numbers)) else None


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < _MOST


def _sum(numbers: Iterable[int | None]) -> int | None:
    """The sum, if there is something and all of it is known."""
    found = [*numbers]
    known = [number for number in found if number is not None]
    return sum(known) if known and len(known) == len(found) else None
