"""Find the answers that a text marks: boxes, "####", tags and the keys of JSON objects."""

from __future__ import annotations

from typing import NamedTuple

from proctor.evaluators.data_files import load_patterns

_PHRASES = load_patterns("numeric", "phrases.yaml")
_ANSWER_KEYS = ("answer_key", "result_key", "value_key")


class _Mark(NamedTuple):
    content: str
    start: int
    end: int


def find_marked_answers(text: str) -> list[str]:
    r"""Return the contents of the strongest kind of mark in a text, in order.

    Answers quoted from someone else, or rejected by the text, do not count.
    """
    if boxes := _find_boxes(text):
        return _drop_quoted(text, boxes)
    if "####" in text:
        return [text.split("####")[-1].lstrip().partition("\n")[0]]
    tags = _PHRASES["answer_tag"].finditer(text)
    if marks := [_Mark(match["content"], *match.span()) for match in tags]:
        return _drop_quoted(text, marks)
    return _find_keys(text)


def has_marks(text: str) -> bool:
    """Return whether a text marks an answer, including a quoted one."""
    if "####" in text or _PHRASES["boxed"].search(text) or _PHRASES["answer_tag"].search(text):
        return True
    return bool(_find_keys(text))


def _find_boxes(text: str) -> list[_Mark]:
    """Return every box up to its closing brace, so that nested boxes count once."""
    boxes = []
    position = 0
    while (match := _PHRASES["boxed"].search(text, position)) is not None:
        position = _find_closing_brace(text, match.end())
        boxes.append(_Mark(text[match.end() : position], match.start(), position + 1))
    return boxes


def _find_closing_brace(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if not depth:
            return position
    return len(text)


def _drop_quoted(text: str, marks: list[_Mark]) -> list[str]:
    return [
        mark.content
        for mark in marks
        if not _PHRASES["quoted_answer"].search(text[max(0, mark.start - 100) : mark.start])
        and not _PHRASES["rejected"].match(text, mark.end)
    ]


def _find_keys(text: str) -> list[str]:
    if ":" not in text or not ('"' in text or "'" in text):
        return []
    by_key = ([match["content"].strip("\"'") for match in _PHRASES[key].finditer(text)] for key in _ANSWER_KEYS)
    return next(filter(None, by_key), [])
