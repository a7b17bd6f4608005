"""Looking into JSON that may hold anything: what is asked for is there in its type, or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any

import msgspec

from proctor.records.numbers import token_count
from proctor.records.sample import kind_of
from proctor.records.session import CustomEvent, Session, Usage
from proctor.sessions.genai.values import BREAK, join_texts


class Imported(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One recorded session: what happened in order, what was asked first and answered last.

    `id` is the session's own, as it was recorded; `source` the file, or file:line. `recorded` is
    what else stood there: scores, model, title, times, tags. `passed_over` counts, by kind, the
    parts that are not understood: each is kept in the session as a `CustomEvent`. `is_named` if the
    log names it as a session of its own, which it then is, be there nothing said in it.

    >>> Imported("s1", Session(), "openai", "chats.jsonl:1", input="Hello", output="Hi").output
    'Hi'
    """

    id: str
    session: Session
    format: str
    source: str
    input: Any = None
    output: Any = None
    recorded: dict[str, Any] = {}
    passed_over: dict[str, int] = {}
    is_named: bool = False


def found_in(kind: str, data: Any) -> CustomEvent:
    """What was found and is no call; under a name, so that nobody takes it for one.

    >>> found_in("observation: span", {"name": "plan", "input": "Go"}).data
    {'found': {'name': 'plan', 'input': 'Go'}}
    """
    return CustomEvent(kind, {"found": data})


_ENDINGS = (".gz", ".jsonl", ".ndjson", ".json")
# Parts of messages that are no text and are known: they stand in a message as they are.
_PARTS = frozenset(
    (
        *("text", "output_text", "input_text", "refusal", "document", "json"),
        *("search_result", "web_search_result", "web_fetch_result"),
        *("image", "image_url", "input_image", "image-data", "image-url", "media", "blob", "uri"),
        *("audio", "input_audio", "video", "video_url", "file", "input_file", "file-data"),
    )
)
_MEDIA = frozenset(("text", "inlineData", "inline_data", "fileData", "file_data", "image_url"))
_NOTHING: Mapping[str, Any] = {}
# What SQL and JSON readers take for a whole number everywhere.


def mapping(value: Any) -> Mapping[str, Any]:
    """A value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else _NOTHING


def items(value: Any) -> Sequence[Any]:
    """A value if it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def text(value: Any) -> str | None:
    """A value if it is a text that is not empty."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A value if it is a number of things: whole, and not below 0.

    >>> count(3), count(3.0), count(True), count(-1), count("3")
    (3, 3, None, None, None)
    """
    return token_count(value)


def amount(value: Any) -> float | None:
    """A value if it is a finite number, not below 0."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300:
        return float(value)
    return None


def number_at(found: Mapping[str, Any], *names: str) -> int | None:
    """The first of some names under which a count stands."""
    return next((n for name in names if (n := count(found.get(name))) is not None), None)


def without(found: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A mapping without some of its keys."""
    return {key: value for key, value in found.items() if key not in names}


def left(found: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """What is left of a mapping beside what was told of it; a value that is not as told stays.

    >>> left({"role": "user", "id": {"odd": 1}, "more": 2}, {"role": "user", "id": None})
    {'id': {'odd': 1}, 'more': 2}
    """
    return {key: it for key, it in found.items() if key not in told or it != told[key]}


def named(value: Any) -> str:
    """The kind of a part that is not understood: what it calls itself, or what it is.

    >>> named({"type": "hologram"}), named({"a": 1, "b": 2}), named(3)
    ('hologram', 'mapping with a, b', 'a number')
    """
    if not isinstance(value, dict):
        return kind_of(value)
    own = text(value.get("type"))
    if own is not None:
        return own[:60]
    keys = [str(key)[:20] for key in list(value)[:4]]
    return f"mapping with {', '.join(keys)}" if keys else "an empty mapping"


def described(value: Any) -> str:
    """What a value is, for who must find out what a file holds: keys, roles, first items.

    >>> described([{"from": "human", "value": "Hi"}, {"from": "gpt"}])
    'a list of 2, first a mapping with from "human", value'
    >>> described({"id": 1, "turns": [{"role": "critic", "said": "No."}]})
    'a mapping with id, turns (a list of 1, first a mapping with role "critic", said)'
    """
    if value == []:
        return "an empty list"
    if not isinstance(value, dict):
        return _of_list(value) or kind_of(value)
    if not value:
        return named(value)
    found = ((key, value[key], _of_list(value[key])) for key in list(value)[:6])
    told = (f"{_told_of(key, it)} ({inside})" if inside else _told_of(key, it) for key, it, inside in found)
    return f"a mapping with {', '.join(told)}"


def _of_list(value: Any) -> str:
    """How many there are, and what the first one is made of."""
    if not isinstance(value, list) or not value:
        return ""
    first = value[0]
    if isinstance(first, dict) and first:
        told = f"a mapping with {', '.join(_told_of(key, first[key]) for key in list(first)[:6])}"
    else:
        told = named(first)
    return f"a list of {len(value):,}, first {told}"


def _told_of(key: str, value: Any) -> str:
    """A key, with its value where that says what something is."""
    is_kind = key in ("role", "type", "from") and isinstance(value, str)
    return f'{key} "{value[:20]}"' if is_kind else key[:20]


def joined(parts: Iterable[Any], text_in: Callable[[Any], str | None], role: str = "user") -> Any:
    """The content of a message: one text, or its parts as they are where some are no text.

    Adjacent texts of an answer are joined without a separator, those of users and tools line by
    line (`separator_of` says why). `BREAK` stands where a part was taken out.

    >>> joined([{"text": "a"}, {"text": "b"}], lambda part: part.get("text"))
    'a\\nb'
    >>> joined([{"text": "a"}, {"text": "b"}], lambda part: part.get("text"), "assistant")
    'ab'
    """
    parts = list(parts)
    texts = [BREAK if part is BREAK else text_in(part) for part in parts]
    if all(one is not None for one in texts):
        return join_texts(texts, role)
    return [part for part in parts if part is not BREAK]


def plain(content: Any, role: str = "user") -> str | None:
    """The text in a message's content, or None where there is none; joined as in `joined`.

    >>> plain("Hi"), plain([{"type": "image"}, {"type": "text", "text": "Hi"}]), plain([])
    ('Hi', 'Hi', None)
    >>> plain([{"text": "The capital is "}, {"text": "Paris."}], "assistant")
    'The capital is Paris.'
    """
    if isinstance(content, str):
        return content or None
    texts = (text(mapping(part).get("text")) for part in items(content))
    return join_texts((one or BREAK for one in texts), role) or None


def odd_parts(content: Any) -> list[Any]:
    """The parts of a message's content that are of no kind that is known.

    >>> odd_parts([{"type": "image"}, {"type": "hologram"}, {"text": "Hi"}, {"inlineData": {}}])
    [{'type': 'hologram'}]
    """
    return [part for part in items(content) if not _is_part(part)]


def _is_part(part: Any) -> bool:
    kind = mapping(part).get("type")
    if kind is None:
        return isinstance(part, str) or not _MEDIA.isdisjoint(mapping(part))
    return isinstance(kind, str) and kind in _PARTS


def moment(value: Any) -> datetime | None:
    """A time as logs write it: ISO 8601, with its zone."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None


def stem(source: str) -> str:
    """The name of a file without its endings: what a session is called that has no id.

    >>> stem("logs/chat.jsonl.gz"), stem("logs/chat.jsonl:3")
    ('chat', 'chat:3')
    """
    name, colon, line = source.rpartition(":")
    if not (colon and line.isdigit()):
        name, colon, line = source, "", ""
    name = PurePath(name).name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return f"{name or 'session'}{colon}{line}"


def gemini_usage(found: Mapping[str, Any]) -> Usage:
    """Tokens as Gemini's API counts them: the thoughts are beside the answer, the cache is inside.

    Programs that stand in for the API count the thoughts in the answer; the total tells which.

    >>> told = {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
    >>> gemini_usage(told | {"totalTokenCount": 15}).output_tokens
    5
    >>> gemini_usage(told | {"totalTokenCount": 13}).output_tokens
    3
    """
    asked, said = count(found.get("promptTokenCount")), count(found.get("candidatesTokenCount"))
    thought, total = count(found.get("thoughtsTokenCount")), count(found.get("totalTokenCount"))
    if thought is not None and total != (asked or 0) + (said or 0):
        said = (said or 0) + thought
    return Usage(asked, said, count(found.get("cachedContentTokenCount")))


def unrolled(values: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Lines, and what stands in a document that is one list, item by item."""
    for line, value in values:
        if isinstance(value, list) and value:
            for item in value:
                yield line, item
        else:
            yield line, value
