"""Split sentences into clauses, find invented ones, and remove what only says that the context is silent."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.grounding.features import load_roles
from proctor.evaluators.tokenizer import Word, split_words

_MEANINGFUL = ("content", "name", "number")
# A clause is invented if this share of its meaningful words is new, and this many of them; fewer if one of them is a
# name or a number. A clause before it must have at most the other share of new words.
MIN_NEW_SHARE, MAX_NEW_SHARE, MIN_NEW_WORDS, MIN_NEW_WITH_ENTITY = 0.6, 0.35, 4, 3
# With this share of new words, also a shorter clause is not supported, but may say the same in other words.
MIN_DOUBTFUL_SHARE = 0.75
# A longer clause says more than that the context is silent; the patterns search the rest of a clause several times.
MAX_SILENCE = 400


@functools.cache
def _compile_boundaries() -> re.Pattern[str]:
    data, past_verbs = load_data("grounding", "clauses.yaml"), "|".join(sorted(load_roles()["past"]))
    pattern = "|".join(data["boundaries"]).replace("PAST_VERB", past_verbs)
    return re.compile(pattern.replace("PARTICIPLE", data["participle"]))


@functools.cache
def _compile_start(*names: str) -> re.Pattern[str]:
    data = load_data("grounding", "clauses.yaml")
    return re.compile(rf"(?:{'|'.join(data[name] for name in names)})\b")


@functools.cache
def _compile_silence() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a clause about what the context does not say, and of "It only mentions that"."""
    data = load_data("grounding", "clauses.yaml")
    verbs, participles = data["verbs"], data["participles"]
    source = rf"(?:the|this|that|your|these|those)\s+(?:[\w-]+\s+){{0,2}}?(?:{data['sources']})s?"
    deny = r"(?:(?:does|do|did|is|are|was|were|has|have|can|could)(?:\s+not|n['’]t)|cannot|never)"
    anywhere = rf"(?:\s+(?:\w+\s+){{0,2}}?(?:in|by|from)\s+{source})"
    silence = (
        rf"(?:{source}|it)\s+(?:itself\s+)?{deny}\s+(?:\w+ly\s+|even\s+)?(?:{verbs})\b"
        rf"|(?:{source})\s+(?:is|are)\s+silent\b|(?:{source})\s+(?:\w+s)\s+no\s+(?:information|mention|indication|details?)\b"
        rf"|there\s+is\s+no\s+(?:information|mention|indication|details?)\b.*{anywhere}"
        rf"|(?:i\s+(?:cannot|can['’]t|could\s+not|couldn['’]t)\s+(?:find|tell|determine)\b|.*\s{deny}\s+(?:\w+ly\s+)?"
        rf"(?:{participles}|known)\b).*{anywhere}"
    )
    start = r"^\W{0,10}(?:(?:however|unfortunately|but|and|although|while|sorry)\W+)?"
    mention = rf"{start}(?:{source}|it|only)\s+(?:(?:only|merely|just)\s+)?(?:(?:{verbs})e?s\s+)?(?:only\s+)?that\s+"
    return re.compile(start + rf"(?:{silence})", re.IGNORECASE), re.compile(mention, re.IGNORECASE)


def split_clauses(sentence: str) -> list[str]:
    """Split a sentence where a clause of its own begins.

    >>> split_clauses("The mill was sold, and Dahl will build a second one; nobody lost a job.")
    ['The mill was sold', 'and Dahl will build a second one', 'nobody lost a job.']
    >>> split_clauses("The mill, which lost money, was sold.")
    ['The mill', 'which lost money', 'was sold.']
    """
    clauses = list[str]()
    for clause in _compile_boundaries().split(sentence):
        # "Acme, which won a prize, sells pumps."
        clauses += clause.split(", ", 1) if _compile_start("relative", "participle").match(clause) else [clause]
    return [clause for clause in clauses if clause.strip()]


def remove_silence(sentence: str) -> str:
    """Remove the clauses that say what the context does not say, and "the text only mentions that" before a claim.

    >>> remove_silence("The text does not say who paid, but the mill was sold.")
    'but the mill was sold.'
    """
    silence, mention = _compile_silence()
    # "…, only that" begins a claim.
    clauses = split_clauses(re.sub(r",\s+(?=(?:only|just)\s+that\b)", "; ", sentence))
    stated = [clause for clause in clauses if len(clause) > MAX_SILENCE or not silence.match(clause)]
    text = sentence if len(stated) == len(clauses) else ", ".join(stated)
    return mention.sub("", text)


class AddedClause(NamedTuple):
    """A clause of mostly new words, these words, and whether they are enough to call it invented."""

    text: str
    new_words: list[Word]
    is_invented: bool


def find_added_clause(sentence: str, words: Sequence[Word], new: Collection[Word]) -> AddedClause | None:
    """Return a clause that consists mostly of new words, after one that does not: an invented one, else the first."""
    known, is_supported, added = {word.original: word for word in words}, False, list[AddedClause]()
    for clause in split_clauses(sentence):
        content = dict.fromkeys(known.get(word.original, word) for word in split_words(clause))
        meaningful = [word for word in content if word.kind in _MEANINGFUL]
        # Initials are not facts of their own.
        new_words = [word for word in meaningful if word in new and (len(word.text) > 1 or word.kind == "number")]
        has_entity = any(word.kind in ("name", "number") for word in new_words)
        is_many = len(new_words) >= (MIN_NEW_WITH_ENTITY if has_entity else MIN_NEW_WORDS)
        # "…, making it popular" may follow from what the context says.
        is_comment = _compile_start("participle").match(clause)
        is_invented = is_many and len(new_words) >= MIN_NEW_SHARE * len(meaningful) and not is_comment
        if is_supported and (is_invented or (new_words and len(new_words) >= MIN_DOUBTFUL_SHARE * len(meaningful))):
            added.append(AddedClause(clause, new_words, is_invented))
        is_supported = is_supported or (bool(meaningful) and len(new_words) <= MAX_NEW_SHARE * len(meaningful))
    return max(added, key=lambda clause: clause.is_invented, default=None)
