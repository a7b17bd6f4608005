"""Tell questions from requests to write something, and from statements."""

from __future__ import annotations

import functools
import re
from typing import Literal

from proctor.evaluators.data_files import load_data
from proctor.evaluators.tokenizer import split_words

RequestKind = Literal["question", "request", "statement"]

# A query like those for a search engine has no full stop and at most this many words.
MAX_QUERY_WORDS = 12
# A longer text with a question also gives facts or instructions.
MAX_QUESTION_WORDS = 40
_START_CHARACTERS = 400
_POLITE = re.compile(
    r"(?:(?:please|now|hi|hello|hey|ok|okay|kindly|then)[,!.]?\s+|(?:can|could|would|will) you\s+(?:please\s+)?"
    r"|i(?: would|'d)? (?:want|like|need) (?:you )?(?:to )?|your (?:task|job) is to |help me (?:to )?)+",
    re.IGNORECASE,
)


@functools.cache
def load_starts() -> dict[str, frozenset[str]]:
    """Return the words of `requests.yaml` by group."""
    return {kind: frozenset(words.split()) for kind, words in load_data("text", "requests.yaml").items()}


def asks_creative(text: str) -> bool:
    """Return whether a text asks for a joke, a poem, a story or the like.

    >>> asks_creative("Tell me a joke."), asks_creative("Summarize this poem: it rains.")
    (True, False)
    """
    starts = load_starts()
    words = _list_first_words(text)
    if not words or words[0] not in starts["creative_verbs"]:
        return False
    asked = next((word for word in words[1:] if word not in starts["creative_before"]), "")
    return asked in starts["creative"]


def _list_first_words(text: str) -> list[str]:
    start = text.lstrip("\"'“ \n\t-*#").replace("’", "'")[:_START_CHARACTERS]
    polite = _POLITE.match(start)
    return re.findall(r"[\w'-]+", start[polite.end() if polite else 0 :].lower())


def classify_request(text: str) -> RequestKind:
    """Return what an input of a model is: a question or query, a request to write something, or a statement.

    >>> classify_request("Who wrote Emma?"), classify_request("Could you write a poem about rain?")
    ('question', 'request')
    """
    start, words = text[:_START_CHARACTERS], _list_first_words(text)
    if words and words[0] in load_starts()["request"]:
        return "request"
    if "?" in text or (words and words[0] in load_starts()["question"]):
        return "question" if len(text.split()) <= MAX_QUESTION_WORDS else "request"
    is_query = len(split_words(start)) <= MAX_QUERY_WORDS and text.rstrip()[-1:] not in (".", "!")
    is_personal = bool(words) and words[0] in ("i", "i'm", "i've", "my", "we", "you", "thanks", "thank")
    return "question" if is_query and not is_personal else "statement"
