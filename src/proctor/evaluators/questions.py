"""Questions: whether what was generated are questions of the wanted form."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from proctor.errors import EvaluatorError
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.plain_values import plain_value
from proctor.records.sample import kind_of
from proctor.records.score import Score

_MARKS = "?？؟\u037e"
_OPENING = "\"'“‘«„‹([¿¡ "
_CLOSING = "\"'”’»“›)] "
_STRAIGHT = str.maketrans("’‘", "''")
_GREEK = re.compile(r"[\u0370-\u037d\u037f-\u03ff\u1f00-\u1fff]")
# A full stop ends a sentence only after a word of three letters or more, so that "Dr. Who",
# "e.g. this" and "3.5" do not; the next sentence begins with something else than a small letter.
_SENTENCE_END = re.compile(r"[!?？؟。！][\"'”’»)\]]*\s*\w|(?<=\w\w\w)\.[\"'”’»)\]]*\s+[^\W\d_]|\n")


@evaluator(category="questions", pure=True, factory=True, needs=())
def starter_phrase(starters: Sequence[str]) -> Callable[[Any], Score]:
    """Passes if every question starts with one of the approved phrases.

    The output is a text or a list of texts; the value is the share that starts well. Capitals,
    quotation marks and spaces do not matter; the phrase must end where a word ends.

    >>> starter_phrase(["Would you", "Interested in"])("Would you like an example?").passed
    True
    >>> starter_phrase(["How"])(["However, why?", "How so?"]).value
    0.5
    """
    if isinstance(starters, str) or not starters or not all(map(_plain_start, starters)):
        raise EvaluatorError(
            f"starters is a list of phrases, got {starters!r}",
            where="starter_phrase",
            fix='write it as ["Would you", "Interested in"]',
        )
    phrases = tuple(_plain_start(phrase) for phrase in starters)

    def evaluate(output: Any) -> Score:
        return _share(output, lambda item: "" if _starts(item, phrases) else "starter")

    return made(evaluate, by=starter_phrase, starters=list(starters))


@evaluator(category="questions", pure=True)
def question_format(output: Any, *, require_capital: bool = True, max_words: int | None = None) -> Score:
    """Passes if every output is a well-formed question.

    The output is a text or a list of texts; the value is the share that is well formed. The rules
    are about form, not grammar: it is not empty, has a word in it, ends with exactly one question
    mark (also the full-width, Arabic and Greek ones), begins with a letter or digit (in capitals,
    where the script has them), and is one sentence on one line. `details` names the rule that was
    broken. What it cannot know: whether a question is meant, and the full stop of an abbreviation
    of three letters or more ("approx. How many?") looks like the end of a sentence.

    >>> question_format("Would you like to see an example?").passed
    True
    >>> question_format(["Why?", "Tell me more."]).details["faults"]
    [{'item': 1, 'text': 'Tell me more.', 'rule': 'question_mark'}]
    """
    return _share(output, lambda item: _broken_rule(item, require_capital, max_words))


def _share(output: Any, rule_broken: Callable[[str], str]) -> Score:
    """The share of items that break no rule; `rule_broken` names the rule, or gives ""."""
    items = [output] if isinstance(output, str) else plain_value(output)
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        return Score.error(f"the output is neither a text nor a list of texts: {kind_of(output)}")
    if not items:
        return Score(0.0, False, "there is no question in the output")
    faults = [
        {"item": place, "text": item, "rule": rule}
        for place, item in enumerate(items)
        if (rule := rule_broken(item))
    ]
    if not faults:
        return Score(1.0, True)
    listed = ", ".join(dict.fromkeys(str(fault["rule"]) for fault in faults))
    reason = f"{len(faults)} of {len(items)} not as wanted: {listed}"
    return Score(1.0 - len(faults) / len(items), False, reason, {"faults": faults})


def _plain_start(text: Any) -> str:
    """The beginning of a text, without what does not matter; empty for what is not a text."""
    if not isinstance(text, str):
        return ""
    return " ".join(text.casefold().translate(_STRAIGHT).split()).lstrip(_OPENING)


def _starts(item: str, phrases: tuple[str, ...]) -> bool:
    text = _plain_start(item)
    return any(
        text.startswith(phrase) and not (phrase[-1].isalnum() and text[len(phrase) :][:1].isalnum())
        for phrase in phrases
    )


def _broken_rule(item: str, require_capital: bool, max_words: int | None) -> str:
    """The first rule that a question breaks, or ""."""
    text = item.strip().rstrip(_CLOSING).lstrip(_OPENING)
    body, mark = text[:-1], text[-1:]
    greek = mark == ";" and _GREEK.search(body) is not None
    rules = (
        ("empty", bool(text)),
        ("question_mark", (greek or mark in _MARKS) and body[-1:] not in tuple(_MARKS + "!;")),
        ("words", any(letter.isalnum() for letter in body)),
        ("beginning", text[:1].isalnum()),
        ("capital", not (require_capital and _begins_small(body))),
        ("one_sentence", _SENTENCE_END.search(body) is None),
        ("max_words", max_words is None or len(body.split()) <= max_words),
    )
    return next((name for name, kept in rules if not kept), "")


def _begins_small(body: str) -> bool:
    """True if the first word is all in small letters; names such as iPhone may begin so."""
    first = body.split(maxsplit=1)[0] if body.strip() else ""
    return first[:1].islower() and first == first.lower()
