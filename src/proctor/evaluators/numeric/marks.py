r"""Answers that a text marks beyond doubt, and texts that hold no answer at all.

Marks are \boxed{}, ####, <answer> tags, JSON keys such as "answer", and "final answer". A refusal
or the message of a failed request holds no answer, whatever numbers it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_HASHES = re.compile(r"####")
# At most so much of a text is in a tag or a JSON value.
_LONGEST = 2000
_TAG = re.compile(
    rf"<(?P<tag>(?:final[_-]?)?(?:answer|result|solution))>(?P<inside>[^<]{{0,{_LONGEST}}})"
    r"(?:</(?P=tag)>|\Z)",
    re.IGNORECASE,
)
# The keys of JSON objects, those that name the answer most plainly first.
_KEYS = tuple(
    re.compile(
        rf"""(?<![\w"'])(?P<quote>["'])(?:{names})(?P=quote)\s{{0,20}}:\s{{0,20}}"""
        rf"""(?P<inside>"[^"\n]{{0,{_LONGEST}}}"|'[^'\n]{{0,{_LONGEST}}}'|\[[^\[\]{{}}]{{0,{_LONGEST}}}\]"""
        rf"""|[^\s,{{}}\[\]"']{{1,400}})""",
        re.IGNORECASE,
    )
    for names in (
        r"final[_ -]?(?:answer|result)|correct[_ -]?answer|answer",
        r"result|solution|prediction",
        r"value",
    )
)
# A box or a tag that belongs to somebody else, or to an earlier attempt.
_OF_OTHERS = re.compile(
    r"\b(?:wrong|incorrect|previous(?:ly)?|earlier|at first|first (?:i|we|try|attempt)"
    r"|initial(?:ly)?|original(?:ly)?|old|naive|common|student'?s?|(?:text)?book'?s?|your|his|her|their"
    r"|others?|thought|guess(?:ed)?|used to)\b[^.;:!?\n]{0,60}$"
    r"|\b(?:not|instead of|rather than)\b\W{0,8}$",
    re.IGNORECASE,
)
_REJECTED = re.compile(
    r"[^\w\n.;!?]{0,10}(?:,?\s*(?:which|that)\s+)?(?:is|was|are|looks|seems)\s+(?:\w+\s+)?"
    r"(?:wrong|incorrect|false|not\b|a mistake|an error)"
    r"|[^\w\n.;!?]{0,10}(?:isn|wasn)['’]t\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\b(?:i|we)(?:['’]m| am|['’]re| are)?\s+(?:sorry,?\s+(?:but\s+)?(?:i\s+)?|afraid\s+(?:i\s+)?)?"
    r"(?:can(?:not|['’]t| not)|could(?:n['’]t| not)|won['’]t|will not|unable to|not able to)\s+"
    r"(?:possibly\s+|really\s+)?(?:answer|help|assist|provide|determine|solve|compute|calculate|do"
    r"|say|tell|give|find|work|comply|complete|process|access|figure|discuss|share|offer)\b"
    r"|\bthere (?:is|was|['’]s) no (?:\w+ )?(?:answer|solution)\b|\bno (?:answer|solution)"
    r" (?:is|was|exists|could|can|found|available)\b"
    r"|\bi (?:do not|don['’]t|did not|didn['’]t) (?:know|have (?:an|the|enough|any))\b"
    r"|\bas an ai\b|\bi (?:must |have to )?(?:refuse|decline) to\b"
    r"|\b(?:question|problem) (?:cannot|can['’]t|can not) be (?:answered|solved)\b",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\b(?:rate[ -]?limit|quota (?:is |was |has been )?exceeded|exceeded your (?:current )?quota"
    r"|too many requests|timed out|time-?out (?:after|error|exceeded)"
    r"|bad gateway|service (?:is )?(?:temporarily )?unavailable|internal server error|unauthorized"
    r"|access denied|connection (?:refused|reset|error|aborted|closed)"
    r"|(?:context|token) (?:length|limit)(?: was| is)? exceeded|maximum context length"
    r"|traceback \(most recent call last"
    r"|stack ?trace|segmentation fault|out of memory|overloaded_error|invalid_request_error)\b"
    r"|\b(?:http|status)(?: (?:status|code|error))*\s{0,3}[:=]?\s{0,3}[1-5]\d\d\b"
    r"|^\W{0,5}(?:fatal |api |server |runtime |internal )?(?:error|exception)\b\s{0,3}"
    r"(?:code\s{0,3})?[:\d(#-]"
    r"|\b[A-Z]\w{1,40}(?:Error|Exception)\b\s{0,3}[:(]",
    re.IGNORECASE | re.MULTILINE,
)
_NOT_FOUND = re.compile(r"^\W{0,5}(?:error\s+)?404\b\W{0,5}(?:page\s+)?not found", re.IGNORECASE)


class MarkedText(NamedTuple):
    """A part of a text that is marked as the answer, and where the mark begins."""

    inside: str
    start: int
    is_line: bool = False


def marked_texts(text: str) -> list[MarkedText]:
    r"""The parts that the strongest mark in a text encloses, in order.

    Boxes of somebody else, and boxes that are called wrong, are left out.

    >>> [mark.inside for mark in marked_texts(r"<answer>42</answer> Tokens: 7")]
    ['42']
    >>> [mark.inside for mark in marked_texts('{"answer": 42, "confidence": 0.9}')]
    ['42']
    >>> [mark.inside for mark in marked_texts(r"\boxed{42} (The book's \boxed{41} is wrong.)")]
    ['42']
    """
    if boxes := list(_boxes(text)):
        return _own(text, boxes)
    if hashes := [_line(text, match.end()) for match in _HASHES.finditer(text)]:
        return hashes[-1:]
    if tags := [_span(match) for match in _TAG.finditer(text)]:
        return _own(text, tags)
    return _keyed(text)


def has_marks(text: str) -> bool:
    """True if a text marks an answer, be it somebody else's."""
    return bool(_BOXED.search(text) or _HASHES.search(text) or _TAG.search(text) or _keyed(text))


def holds_no_answer(text: str) -> str:
    """Why a text that marks no answer has none: a refusal, a failed request; "" otherwise.

    >>> holds_no_answer("I cannot answer that. Call 911."), holds_no_answer("She needs 3 more.")
    ('the output refuses to answer', '')
    >>> holds_no_answer("Rate limit exceeded: 429")
    'the output is the message of a failed request'
    """
    if _REFUSAL.search(text):
        return "the output refuses to answer"
    if _FAILURE.search(text) or _NOT_FOUND.search(text):
        return "the output is the message of a failed request"
    return ""


class _Span(NamedTuple):
    mark: MarkedText
    end: int


def _boxes(text: str) -> Iterator[_Span]:
    """Every box; each is read up to its closing brace, so that nested boxes count once."""
    place = 0
    while (match := _BOXED.search(text, place)) is not None:
        end = _closing(text, match.end())
        yield _Span(MarkedText(text[match.end() : end], match.start()), end + 1)
        place = max(end, match.end())


def _closing(text: str, start: int) -> int:
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return place
    return len(text)


def _line(text: str, start: int) -> MarkedText:
    rest = text[start:].lstrip()
    return MarkedText(rest.partition("\n")[0], start, is_line=True)


def _span(match: re.Match[str]) -> _Span:
    return _Span(MarkedText(match["inside"], match.start()), match.end())


def _own(text: str, spans: list[_Span]) -> list[MarkedText]:
    """The marks that the text gives as its own answer."""
    return [
        span.mark
        for span in spans
        if not _OF_OTHERS.search(text[max(0, span.mark.start - 100) : span.mark.start])
        and not _REJECTED.match(text, span.end)
    ]


def _keyed(text: str) -> list[MarkedText]:
    """The values of the JSON keys that name the answer most plainly."""
    if ":" not in text or not ('"' in text or "'" in text):
        return []
    for pattern in _KEYS:
        found = [MarkedText(match["inside"].strip("\"'"), match.start()) for match in pattern.finditer(text)]
        if found:
            return found
    return []
