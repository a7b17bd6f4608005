"""Check that generated questions are well formed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from proctor.errors import EvaluatorError
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.plain_values import to_plain
from proctor.records.sample import type_name
from proctor.records.score import Score

_QUESTION_MARKS = "?？؟\u037e"
_OPENING = "\"'“‘«„‹([¿¡ "
_CLOSING_QUOTES = "\"'”’»“›)] "
_STRAIGHT = str.maketrans("’‘", "''")
_GREEK = re.compile(r"[\u0370-\u037d\u037f-\u03ff\u1f00-\u1fff]")
# A full stop ends a sentence only after a word of three letters or more, which excludes "Dr. Who",
# "e.g. this" and "3.5"; the next sentence does not start with a lower-case letter.
_SENTENCE_END = re.compile(r"[!?？؟。！][\"'”’»)\]]*\s*\w|(?<=\w\w\w)\.[\"'”’»)\]]*\s+[^\W\d_]|\n")


@evaluator(category="questions", pure=True, factory=True, needs=())
def starter_phrase(starters: Sequence[str]) -> Callable[[Any], Score]:
    """Passes if every question starts with one of the approved phrases.

    The output is a string or a list of strings; the value is the fraction that starts with an approved phrase. Case,
    quotation marks and spaces are ignored; the phrase must end at a word boundary.

    >>> starter_phrase(["Would you", "Interested in"])("Would you like an example?").passed
    True
    >>> starter_phrase(["How"])(["However, why?", "How so?"]).value
    0.5
    """
    if isinstance(starters, str) or not starters or not all(map(_normalize_start, starters)):
        raise EvaluatorError(
            f"starters must be a list of phrases, got {starters!r}",
            where="starter_phrase",
            fix='write it as ["Would you", "Interested in"]',
        )
    phrases = tuple(map(_normalize_start, starters))

    def evaluate(output: Any) -> Score:
        return _score_items(output, lambda item: "" if _has_start(item, phrases) else "starter")

    return tag_evaluator(evaluate, factory=starter_phrase, starters=list(starters))


@evaluator(category="questions", pure=True)
def question_format(output: Any, *, require_capital: bool = True, max_words: int | None = None) -> Score:
    """Passes if every output is a well-formed question.

    The output is a string or a list of strings; the value is the fraction that is well formed. A well-formed question
    is not empty, contains a word, ends with exactly one question mark (also full-width, Arabic or Greek), starts with a
    letter or digit (a capital in scripts that have them), and is one sentence on one line. `details` shows the broken
    rule. It checks the form, not the meaning; the full stop of a longer abbreviation ("approx. How many?") counts as
    the end of a sentence.

    >>> question_format("Would you like to see an example?").passed
    True
    >>> question_format(["Why?", "Tell me more."]).details["faults"]
    [{'item': 1, 'text': 'Tell me more.', 'rule': 'question_mark'}]
    """
    return _score_items(output, lambda item: _find_broken_rule(item, require_capital, max_words))


def _score_items(output: Any, find_broken_rule: Callable[[str], str]) -> Score:
    items = [output] if isinstance(output, str) else to_plain(output)
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        return Score.error(f"the output is neither a string nor a list of strings: {type_name(output)}")
    if not items:
        return Score(0.0, False, "there is no question in the output")
    violations = [
        {"item": index, "text": item, "rule": rule}
        for index, item in enumerate(items)
        if (rule := find_broken_rule(item))
    ]
    if not violations:
        return Score(1.0, True)
    broken_rules = ", ".join(dict.fromkeys(str(fault["rule"]) for fault in violations))
    reason = f"{len(violations)} of {len(items)} break a rule: {broken_rules}"
    return Score(1.0 - len(violations) / len(items), False, reason, {"faults": violations})


def _normalize_start(text: Any) -> str:
    if not isinstance(text, str):
        return ""
    return " ".join(text.casefold().translate(_STRAIGHT).split()).lstrip(_OPENING)


def _has_start(item: str, phrases: tuple[str, ...]) -> bool:
    text = _normalize_start(item)
    return any(
        text.startswith(phrase) and not (phrase[-1].isalnum() and text[len(phrase) :][:1].isalnum())
        for phrase in phrases
    )


def _find_broken_rule(item: str, require_capital: bool, max_words: int | None) -> str:
    text = item.strip().rstrip(_CLOSING_QUOTES).lstrip(_OPENING)
    body, mark = text[:-1], text[-1:]
    is_greek = mark == ";" and _GREEK.search(body) is not None
    first = body.split(maxsplit=1)[0] if body.strip() else ""
    # A mixed-case name such as iPhone may start with a lower-case letter.
    is_lower = first[:1].islower() and first == first.lower()
    rules = (
        ("empty", bool(text)),
        ("question_mark", (is_greek or mark in _QUESTION_MARKS) and body[-1:] not in tuple(_QUESTION_MARKS + "!;")),
        ("words", any(letter.isalnum() for letter in body)),
        ("beginning", text[:1].isalnum()),
        ("capital", not (require_capital and is_lower)),
        ("one_sentence", _SENTENCE_END.search(body) is None),
        ("max_words", max_words is None or len(body.split()) <= max_words),
    )
    return next((name for name, is_met in rules if not is_met), "")
