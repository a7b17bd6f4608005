"""Find a word whose opposite replaces it in an English sentence of nearly the same words.

Only words in the same place count, so the list can contain words that may both be true of a thing in other places:
"A bought it from B" and "B sold it to A" say the same.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from difflib import SequenceMatcher
from itertools import product
from typing import Any, NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.grounding.features import load_roles
from proctor.evaluators.tokenizer import Word, are_related, load_english

# Longer replaced parts are other phrases, in which words have no common place.
MAX_REPLACED = 4
# The share of the other content words that both sentences have.
MIN_SHARED, MIN_SHARED_FOR_LIMITS = 0.5, 0.75
# Without other content words, this many function words may differ.
_MAX_OTHER_WORDS = 2
_MIN_BASE = 4
# A phrase that replaces another one, and the sentence around it.
_MAX_PHRASE, _MIN_SENTENCE = 2, 3
_CONTENT = ("content", "name", "number")
_PRONOUNS = frozenset({
    "i", "me", "my", "we", "us", "our", "you", "your", "he", "him", "she", "her", "they", "them", "their", "it", "its",
})  # fmt: skip
# The person of each pronoun.
_PERSONS = {
    "i": "i", "me": "i", "my": "i", "we": "we", "us": "we", "our": "we", "you": "you", "your": "you", "he": "he",
    "him": "he", "his": "he", "she": "she", "her": "she", "they": "they", "them": "they", "their": "they",
}  # fmt: skip
# Forms that change with the person.
_AGREEING = (frozenset({"am", "are", "is"}), frozenset({"was", "were"}), frozenset({"have", "has"}))
# "You look like me" and "I look like you", "as tall as".
_LIKENESS = re.compile(r"\blook\w* like\b|\bas [\w ]*\bas\b")
_JOINING = frozenset({"and", "or", "nor"})
DEGREES = frozenset({"more", "less", "fewer", "most", "least"})
_TURNING = frozenset({"far", "until", "till"})
_VOWELS = frozenset("aeiou")


class Replacement(NamedTuple):
    """The words of both sentences, and whether they are certainly opposites."""

    output: str
    reference: str
    is_certain: bool = True


class _Opposites(NamedTuple):
    pairs: Mapping[str, frozenset[str]]
    prefixes: tuple[tuple[str, str], ...]
    suffixes: tuple[tuple[str, str], ...]
    negative_prefixes: tuple[str, ...]
    listed_prefixes: Mapping[str, tuple[str, ...]]
    same_with_prefix: frozenset[str]
    same_after: Mapping[frozenset[str], frozenset[str]]
    two_sided: frozenset[str]
    modals: Mapping[str, frozenset[str]]
    limiting: frozenset[str]
    mutual: frozenset[str]


class _Part(NamedTuple):
    """Words that replace each other, with the place of the first one in each sentence."""

    output: Sequence[Word]
    reference: Sequence[Word]
    start: int
    other_start: int


def find_replaced_opposite(output: Sequence[Word], reference: Sequence[Word]) -> Replacement | None:
    """Return a word of the output in whose place the reference has its opposite."""
    ours, theirs = (_drop_articles(side) for side in (output, reference))
    parts = _list_replaced_parts(ours, theirs)
    extra, other_extra = _list_extra_words(ours, theirs)
    moved = {word.text.lower() for word in extra if word.kind in _CONTENT}
    if not parts or moved.intersection(word.text.lower() for word in other_extra):
        return None
    pairs = [pair for part in parts for pair in _find_pairs(part, ours, theirs)]
    texts = {text for left, right, _ in pairs for text in (left.text, right.text)}
    # "Less safe" and "more dangerous".
    if not pairs or (len(pairs) > 1 and not DEGREES.isdisjoint(texts)):
        return None
    left, right, is_certain = pairs[0]
    rest, other_rest = ([word for word in side if word.text not in texts] for side in (ours, theirs))
    if not _have_same_frame(rest, other_rest) or _is_other_polarity(rest, other_rest):
        return None
    return Replacement(left.original, right.original, is_certain)


def are_persons_exchanged(output: Sequence[Word], reference: Sequence[Word]) -> bool:
    """Return True if two persons have changed places among the same words: "you owe us", "we owe you"."""
    ours, theirs = ([word.text.lower() for word in _drop_articles(side)] for side in (output, reference))
    mutual = load_roles()["symmetric"] | load_roles()["both_sides"] | _load_opposites().mutual
    if len(ours) != len(theirs) or not mutual.isdisjoint(ours) or _LIKENESS.search(" ".join(ours)):
        return False
    changes = set[tuple[str, str]]()
    for index, (text, other) in enumerate(zip(ours, theirs, strict=True)):
        person, other_person = _PERSONS.get(text), _PERSONS.get(other)
        if person and other_person:
            if person != other_person:
                changes.add((person, other_person))
                # "You and I" is a list without roles.
                if not _JOINING.isdisjoint(ours[max(0, index - 1) : index + 2]):
                    return False
        elif text != other and not _agree(text, other):
            return False
    return len(changes) == 2 and all(change[::-1] in changes for change in changes)


def _agree(text: str, other: str) -> bool:
    """Return True for the forms of a verb in two persons: "owe" and "owes", "are" and "is"."""
    if any({text, other} <= forms for forms in _AGREEING):
        return True
    shorter, longer = sorted((text, other), key=len)
    return longer in (f"{shorter}s", f"{shorter}es", f"{shorter[:-1]}ies")


def find_other_limit(output: Sequence[Word], reference: Sequence[Word]) -> str:
    """Return "only" if one of two sentences begins or ends with it, and the other has no such word; else ""."""
    limiting = _load_opposites().limiting
    limits = [
        [word for word in side if word.text.lower() in (*limiting, "alone", "just")] for side in (output, reference)
    ]
    if bool(limits[0]) == bool(limits[1]):
        return ""
    side, other = (output, reference) if limits[0] else (reference, output)
    limit = next((word for word in (side[0], side[-1]) if word.text.lower() in limiting), None)
    rest = [word for word in side if word is not limit]
    contents = [[word for word in words if word.kind in _CONTENT] for words in (rest, other)]
    is_same = all(contents) and _measure_shared(*contents) >= MIN_SHARED_FOR_LIMITS
    return limit.original if limit and is_same else ""


def find_replaced_phrase(output: Sequence[Word], reference: Sequence[Word]) -> tuple[str, str] | None:
    """Return the content words in which two otherwise equal sentences differ, if they are not forms of one word."""
    ours, theirs = (_drop_articles(side) for side in (output, reference))
    changes = [change for change in _align(ours, theirs) if change[0] != "equal"]
    if len(changes) != 1 or min(len(ours), len(theirs)) < _MIN_SENTENCE:
        return None
    _, start, end, other_start, other_end = changes[0]
    part, other_part = ours[start:end], theirs[other_start:other_end]
    contents = [[word.text for word in side if word.kind == "content"] for side in (part, other_part)]
    if not all(contents) or max(len(part), len(other_part)) > _MAX_PHRASE:
        return None
    if not any(word.kind in _CONTENT for word in (*ours[:start], *ours[end:])):
        return None
    if any(are_related(word, other) for word, other in product(*contents)):
        return None
    return " ".join(word.original for word in part), " ".join(word.original for word in other_part)


def _drop_articles(sentence: Sequence[Word]) -> list[Word]:
    return [word for word in sentence if word.text.lower() not in load_english().articles]


def _list_replaced_parts(ours: Sequence[Word], theirs: Sequence[Word]) -> list[_Part]:
    return [
        _Part(ours[start:end], theirs[other_start:other_end], start, other_start)
        for tag, start, end, other_start, other_end in _align(ours, theirs)
        if tag == "replace" and max(end - start, other_end - other_start) <= MAX_REPLACED
    ]


def _list_extra_words(ours: Sequence[Word], theirs: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    extra, other_extra = list[Word](), list[Word]()
    for tag, start, end, other_start, other_end in _align(ours, theirs):
        if tag != "equal":
            extra += ours[start:end]
            other_extra += theirs[other_start:other_end]
    return extra, other_extra


def _align(ours: Sequence[Word], theirs: Sequence[Word]) -> list[tuple[str, int, int, int, int]]:
    left, right = ([word.text.lower() for word in side] for side in (ours, theirs))
    return list(SequenceMatcher(None, left, right, autojunk=False).get_opcodes())


def _find_pairs(part: _Part, ours: Sequence[Word], theirs: Sequence[Word]) -> Iterator[tuple[Word, Word, bool]]:
    """Yield the opposites of a replaced part, and whether they are certain."""
    texts, other_texts = ({word.text.lower() for word in side} for side in (ours, theirs))
    phrases, other_phrases = (list(_list_phrases(words)) for words in (part.output, part.reference))
    for (text, left, index), (other, right, other_index) in product(phrases, other_phrases):
        # "Nobody" is counted as a negation. A sentence with both words compares them.
        is_compared = "negation" in (left.kind, right.kind) or text in other_texts or other in texts
        if is_compared or mean_same(text, other, texts | other_texts):
            continue
        are_opposite = _are_opposite(text, other) or _compare_prefixed(text, other)
        if are_opposite is not None:
            is_certain = _compare_sides(part, index, other_index, ours, theirs)
            # "Each one" says "every".
            has_both = _has_opposite(text, phrases) or _has_opposite(other, other_phrases)
            if is_certain is not None and not has_both:
                yield left, right, is_certain and are_opposite
            continue
        strengths = _compare_modals(
            (text, ours[part.start + index + 1 :]), (other, theirs[part.other_start + other_index + 1 :])
        )
        if strengths and not any(word.kind == "negation" for word in (*ours, *theirs)):
            yield left, right, strengths == {"possible", "necessary"}


def _list_phrases(words: Sequence[Word]) -> Iterator[tuple[str, Word, int]]:
    """Yield words and phrases of two or three words, joined by _, each with its first word and place."""
    for size in (3, 2, 1):
        for index in range(len(words) - size + 1):
            phrase = words[index : index + size]
            original = " ".join(word.original for word in phrase)
            text = "_".join(word.text.lower() for word in phrase)
            yield text, words[index]._replace(original=original), index


def _are_opposite(text: str, other: str) -> bool:
    opposites = _load_opposites()
    if other in opposites.pairs.get(text, ()):
        return True
    for endings, cut in ((opposites.prefixes, str.removeprefix), (opposites.suffixes, str.removesuffix)):
        for left, right in endings:
            for one, another in ((text, other), (other, text)):
                base = cut(one, left)
                if base != one and len(base) >= _MIN_BASE and cut(another, right) == base != another:
                    return True
    return False


def _compare_prefixed(text: str, other: str) -> bool | None:
    """Return True if a prefix certainly makes the opposite of a word, False if it may, None if it does not."""
    opposites = _load_opposites()
    base, longer = sorted((text, other), key=len)
    if len(base) < _MIN_BASE or not longer.endswith(base):
        return None
    prefix = longer.removesuffix(base)
    if prefix in opposites.listed_prefixes:
        return base.startswith(opposites.listed_prefixes[prefix])
    return True if prefix in opposites.negative_prefixes else None


def _has_opposite(text: str, phrases: Iterable[tuple[str, Word, int]]) -> bool:
    return any(_are_opposite(text, phrase) for phrase, *_ in phrases)


def mean_same(text: str, other: str, texts: Set[str] = frozenset()) -> bool:
    """Return True if a prefix changes nothing ("flammable"), or a verb of the sentence ("filled in", "filled out")."""
    opposites = _load_opposites()
    base, longer = sorted((text, other), key=len)
    if base in opposites.same_with_prefix and longer.endswith(base):
        return True
    return not opposites.same_after.get(frozenset((text, other)), frozenset()).isdisjoint(texts)


def _compare_sides(
    part: _Part, index: int, other_index: int, ours: Sequence[Word], theirs: Sequence[Word]
) -> bool | None:
    """Return True if two verbs certainly say the opposite, False if they may tell one event from two sides.

    Return None if they do: "Ann was lent a book by Ben", "Ann borrowed a book from Ben".
    """
    texts = {part.output[index].text.lower(), part.reference[other_index].text.lower()}
    if not texts <= _load_opposites().two_sided:
        return True
    start, other_start = part.start + index, part.other_start + other_index
    before = (ours[start - 1 : start], theirs[other_start - 1 : other_start])
    passives = [any(word.text in load_roles()["be"] for word in words) for words in before]
    return None if passives[0] != passives[1] else not all(passives)


def _compare_modals(left: tuple[str, Sequence[Word]], right: tuple[str, Sequence[Word]]) -> set[str]:
    """Return the kinds of two modal verbs of different strength; nothing if a word is none, or both say the same."""
    kinds = {_get_modal_kind(text, following) for text, following in (left, right)}
    return set() if "" in kinds or len(kinds) == 1 or kinds == {"certain", "necessary"} else kinds


def _get_modal_kind(text: str, following: Sequence[Word]) -> str:
    modals = _load_opposites().modals
    if text in modals["necessary_before_to"] and following and following[0].text == "to":
        return "necessary"
    return next((kind for kind, words in modals.items() if text in words and kind != "necessary_before_to"), "")


def _have_same_frame(rest: Sequence[Word], other_rest: Sequence[Word]) -> bool:
    """Return True if the words besides the opposites are nearly the same."""
    pronouns, other_pronouns = ({w.text for w in side if w.text in _PRONOUNS} for side in (rest, other_rest))
    if pronouns - other_pronouns and other_pronouns - pronouns:
        return False
    contents = [[word for word in side if word.kind in _CONTENT] for side in (rest, other_rest)]
    if all(contents):
        return _measure_shared(*contents) >= MIN_SHARED
    texts, other_texts = ({word.text for word in side} for side in (rest, other_rest))
    return not any(contents) and len(texts ^ other_texts) <= _MAX_OTHER_WORDS


def _measure_shared(left: Sequence[Word], right: Sequence[Word]) -> float:
    shorter, longer = sorted((left, right), key=len)
    is_shared = (any(are_related(a.text.lower(), b.text.lower()) for b in longer) for a in shorter)
    return sum(is_shared) / len(shorter)


def _is_other_polarity(rest: Sequence[Word], other_rest: Sequence[Word]) -> bool:
    """Return True if another word may turn one of the opposites: "far from safe", "open until six", "closes at six"."""
    negations = [sum(word.kind == "negation" for word in side) for side in (rest, other_rest)]
    texts, other_texts = ({word.text for word in side} for side in (rest, other_rest))
    denying = load_english().denial_verbs | _TURNING
    return negations[0] % 2 != negations[1] % 2 or not denying.isdisjoint(texts ^ other_texts)


@functools.cache
def _load_opposites() -> _Opposites:
    data: dict[str, Any] = load_data("text", "opposites.yaml")
    irregular = load_irregular_verbs()
    pairs = defaultdict[str, set[str]](set)
    for name, inflect in (("verbs", lambda word: inflect_verb(word, irregular)), ("words", inflect_noun)):
        for left, right in (pair.split("-") for text in data[name].values() for pair in text.split()):
            _add(pairs, [[form for word in side.split("/") for form in inflect(word)] for side in (left, right)])
    for group in data["groups"]:
        _add(pairs, [[form for word in item.split("/") for form in inflect_noun(word)] for item in group.split()])
    same_after = {
        frozenset(pair.split("-")): frozenset(form for verb in verbs.split() for form in inflect_verb(verb, irregular))
        for pair, verbs in data["same_after"].items()
    }
    prefixes, suffixes = (tuple(_split_pairs(data[name])) for name in ("prefixes", "suffixes"))
    kinds = ("possible", "necessary", "necessary_before_to", "advised", "certain")
    return _Opposites(
        {word: frozenset(others) for word, others in pairs.items()},
        prefixes,
        suffixes,
        tuple(data["negative_prefixes"].split()),
        {prefix: tuple(bases.split()) for prefix, bases in data["listed_prefixes"].items()},
        frozenset(form for word in data["same_with_prefix"].split() for form in inflect_verb(word, irregular)),
        same_after,
        frozenset(form for verb in data["two_sided"].split() for form in inflect_verb(verb, irregular)),
        {kind: frozenset(data[kind].split()) for kind in kinds},
        frozenset(data["limiting"].split()),
        frozenset(form for verb in data["mutual"].split() for form in inflect_verb(verb, irregular)),
    )


@functools.cache
def load_irregular_verbs() -> dict[str, list[str]]:
    """Return the forms that `inflect_verb` does not make, by verb."""
    items: list[str] = load_data("text", "opposites.yaml")["irregular"].split()
    return {verb: forms.split(",") for verb, forms in (item.split(":") for item in items)}


def _split_pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in text.split():
        left, right = pair.split("-")
        yield left, right


def _add(pairs: dict[str, set[str]], sides: Sequence[Sequence[str]]) -> None:
    """Add each word of a side as an opposite of the words of all other sides."""
    for index, side in enumerate(sides):
        for word in side:
            pairs[word].update(other for place, others in enumerate(sides) if place != index for other in others)


def inflect_noun(word: str) -> list[str]:
    return [word, f"{word}s"] if len(word) >= _MIN_BASE and word.isalpha() and word[-1] != "s" else [word]


def inflect_verb(verb: str, irregular: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the forms of a verb; those of short verbs with and without a doubled letter.

    >>> inflect_verb("deny", {})
    ['deny', 'denies', 'denied', 'denying']
    """
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        forms = [verb, f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb}ing"]
    elif verb.endswith("e"):
        forms = [verb, f"{verb}s", f"{verb}d", f"{verb[:-1]}ing"]
    else:
        plural = f"{verb}es" if re.search(r"(?:s|x|z|ch|sh|o)\Z", verb) else f"{verb}s"
        forms = [verb, plural, f"{verb}ed", f"{verb}ing"]
    return forms + list(irregular.get(verb, ()))
