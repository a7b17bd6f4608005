"""Sentences with their places, for what must tell where it found something."""

from __future__ import annotations

import re
from typing import NamedTuple

from proctor.evaluators import wording

# A colon ends what announces a list; the mark of a point of a list is no sentence.
_COLON = re.compile(r"(?<=:)\s+")
_ONLY_A_MARK = re.compile(r"\W*(?:\d{1,3}|[A-Za-z])?[.):]?\W*")
_INK = re.compile(r"\S")


class Sentence(NamedTuple):
    """A sentence and where it stands."""

    text: str
    start: int
    end: int


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text, split as everywhere, and at colons and ends of lines.

    >>> [one.text for one in sentences("Dr. Who left. Here is why:\\n1. It rains. Stop")]
    ['Dr. Who left.', 'Here is why:', '1. It rains.', 'Stop']
    """
    found: list[Sentence] = []
    mark: int | None = None
    for one in _placed(text):
        start = one.start if mark is None else mark
        mark = start if _ONLY_A_MARK.fullmatch(one.text) else None
        if mark is None:
            found.append(Sentence(text[start : one.end], start, one.end))
    return found


def _placed(text: str) -> list[Sentence]:
    """All sentences with their places: splitting loses white space only, so ink is counted."""
    ink = [match.start() for match in _INK.finditer(text)]
    found: list[Sentence] = []
    at = 0
    for line in text.splitlines():
        for sentence in wording.sentences(line):
            for part in _COLON.split(sentence):
                size = sum(map(len, part.split()))
                if size:
                    start, end = ink[at], ink[at + size - 1] + 1
                    found.append(Sentence(text[start:end], start, end))
                    at += size
    return found
