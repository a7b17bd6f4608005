"""Find a negation, an opposite or another day in which two similar texts differ, in languages other than English.

English has more rules, in `differences.py`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product, takewhile
from typing import Any, NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.language import JUDGE_HINT, is_english_word, is_unspaced
from proctor.evaluators.readable_languages import ENGLISH, identify_language, is_plainly_english

# With fewer words in common, two texts may say the same with and without a negation ("not safe", "dangerous").
MIN_SHARED_WORDS = 0.6
MAX_CHARACTERS = 5_000
MAX_SHORT_WORD = 3
# A text with at most this many words more than a reference is compared as a whole.
MAX_MORE_WORDS = 2
# Words with so many equal first letters may be forms of the same word.
_STEM = 3
# What * stands for.
_MAX_ENDING = 3
_MIN_BASE = 4
_MAX_PREFIX = 5
_CLAUSE = re.compile(r"[,;:!?.。，；：！？、]\s*\w")
ONLY_LISTED = "outside English, only numbers, negations, days, replaced names and common opposites are compared"
# Korean words have particles at their end, so its words are looked for inside the text.
_PARTS = ("zh", "ja", "th", "ko")
# Chinese and Japanese share characters, and short texts are often taken for the other language.
_HAN = frozenset({"zh", "ja"})
_KANA = re.compile(r"[\u3040-\u30ff]")


_WORD = re.compile(r"[^\W_]+")
# A capital letter after these may begin a sentence, a quotation or an item.
_BEFORE_CAPITAL = '.!?:;…\n"«»“”„‘([*'
# Longer replaced parts have more than names.
_MAX_NAMES = 6
# Languages that capitalize hardly any words but names inside a sentence, and whether their names have cases.
_INFLECTS_NAMES = {
    **dict.fromkeys(("fr", "es", "it", "pt", "nl", "ca", "gl", "sv", "da", "no", "nb", "nn"), False),
    **dict.fromkeys(
        ("pl", "ro", "cs", "sk", "sl", "hr", "hu", "fi", "et", "lv", "lt", "tr", "ru", "uk", "bg", "el"), True
    ),
}
_TITLES = frozenset({
    "mme", "madame", "mlle", "monsieur", "sig", "signor", "signora", "dott", "dottor", "dottore", "señor", "señora",
    "sra", "don", "doña", "dona", "dom", "senhor", "senhora", "dhr", "mevrouw", "meneer", "pan", "pani", "herr", "fru",
    "domnul", "doamna", "prof", "professor", "professeur", "professore",
})  # fmt: skip


class OtherWord(NamedTuple):
    """Words of two texts that may exclude each other; certain if they do, and all other words are the same."""

    output: str
    reference: str
    is_certain: bool


class _Group(NamedTuple):
    """Words that exclude each other: the words of each meaning, some of them beginnings that end with *."""

    kind: str
    meanings: tuple[tuple[str, ...], ...]


class _Pair(NamedTuple):
    kind: str
    output: str
    reference: str


class _Texts(NamedTuple):
    """Two texts, their words (or characters) and their languages."""

    output: str
    reference: str
    words: list[str]
    other_words: list[str]
    languages: frozenset[str]

    @property
    def are_unspaced(self) -> bool:
        """Whether words are looked for inside the texts."""
        return not self.languages.isdisjoint(_PARTS)


def explain_other_negation(output: str, reference: str, *, is_excerpt: bool = False) -> str:
    """Return why two texts of nearly the same words may contradict each other; "" if nothing shows it.

    `is_excerpt` compares only an output that has hardly more words than the reference.

    >>> explain_other_negation("Der Zug hält heute nicht in Ulm.", "Der Zug hält heute in Ulm.")[:47]
    "only one of the texts has the negation 'nicht';"
    """
    texts = _read(output, reference, is_excerpt=is_excerpt)
    # "No es caro" and "es barato" say the same.
    if texts is None or _find_pair(texts):
        return ""
    denials, other_denials = _count_negations(texts)
    if denials.total() == other_denials.total() or not _are_similar(texts):
        return ""
    extra = min((denials - other_denials) or (other_denials - denials))
    return f"only one of the texts has the negation {extra!r}; {ONLY_LISTED}; {JUDGE_HINT}"


def find_other_word(output: str, reference: str, *, is_excerpt: bool = False) -> OtherWord | None:
    """Return an opposite, or another day, month or the like, in two texts of nearly the same words.

    >>> find_other_word("Der Zug fährt am Montag nach Ulm.", "Der Zug fährt am Freitag nach Ulm.")
    OtherWord(output='montag', reference='freitag', is_certain=True)
    """
    texts = _read(output, reference, is_excerpt=is_excerpt)
    pair = _find_pair(texts) if texts else None
    if texts is None or pair is None:
        return None
    denials, other_denials = _count_negations(texts, pair)
    is_denied = denials.total() != other_denials.total()
    if is_denied and pair.kind in ("opposites", "prefixed"):
        return None
    is_certain = pair.kind not in ("modals", "prefixed") and _is_only_difference(texts, pair)
    return OtherWord(pair.output, pair.reference, is_certain)


def find_other_name(output: str, reference: str) -> OtherWord | None:
    """Return a name that replaces another one, in a language that hardly capitalizes other words.

    All other words are the same. Names that may be forms of one name ("Londres", "London") are not certain.

    >>> find_other_name("Le train part de Paris.", "Le train part de Lyon.")
    OtherWord(output='Paris', reference='Lyon', is_certain=True)
    """
    if max(len(output), len(reference)) > MAX_CHARACTERS:
        return None
    languages = _identify_languages(output.casefold(), reference.casefold())
    if not languages or not languages <= _INFLECTS_NAMES.keys():
        return None
    ours, theirs = (list(_WORD.finditer(unicodedata.normalize("NFC", text))) for text in (output, reference))
    start = _count_equal(ours, theirs)
    end = _count_equal(ours[start:][::-1], theirs[start:][::-1])
    # Titles capitalize other words, too.
    shared = ours[:start] + ours[len(ours) - end :]
    if 2 * sum(match[0][0].isupper() for match in shared) > len(shared):
        return None
    name, other = (_join_names(side[start : len(side) - end]) for side in (ours, theirs))
    if not name or not other:
        return None
    return _compare_names(name, other, has_cases=any(_INFLECTS_NAMES[code] for code in languages))


def _count_equal(ours: Sequence[re.Match[str]], theirs: Sequence[re.Match[str]]) -> int:
    """Return how many words at the start are the same."""
    pairs = zip(ours, theirs, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0][0].casefold() == pair[1][0].casefold(), pairs))


def _join_names(words: Sequence[re.Match[str]]) -> str:
    """Return the names of a replaced part; "" if it has other words than names and short prepositions."""
    names = []
    for match in words[: _MAX_NAMES + 1]:
        word, before = match[0], match.string[: match.start()].rstrip(" ")
        is_start = not before or before[-1] in _BEFORE_CAPITAL
        if word[0].isupper() and not is_start and len(word) >= _STEM and word.casefold() not in _TITLES:
            names.append(word)
        elif word[0].isupper() or len(word) > MAX_SHORT_WORD:
            return ""
    return " ".join(names) if len(words) <= _MAX_NAMES else ""


def _compare_names(name: str, other: str, *, has_cases: bool) -> OtherWord | None:
    bare, other_bare = (
        "".join(char for char in unicodedata.normalize("NFD", text.casefold()) if not unicodedata.combining(char))
        for text in (name, other)
    )
    may_be_same = bare[:_STEM] == other_bare[:_STEM]
    if bare == other_bare or (may_be_same and has_cases):
        return None
    # "USA" and "États-Unis".
    is_acronym = name.isupper() != other.isupper()
    return OtherWord(name, other, not may_be_same and not is_acronym)


def _read(output: str, reference: str, *, is_excerpt: bool) -> _Texts | None:
    """Return the texts; None if they are English, or too long, or the output has more than the reference says."""
    if max(len(output), len(reference)) > MAX_CHARACTERS or is_plainly_english(reference):
        return None
    output, reference = (
        unicodedata.normalize("NFC", text.replace("İ", "i").casefold()) for text in (output, reference)
    )
    words, other_words = _split(output), _split(reference)
    if is_excerpt and (len(words) > len(other_words) + MAX_MORE_WORDS or _CLAUSE.search(output)):
        return None
    return _Texts(output, reference, words, other_words, _identify_languages(output, reference))


def _identify_languages(output: str, reference: str) -> frozenset[str]:
    """Return the languages that the texts may be in; empty if they are not known."""
    languages = {identify_language(text) for text in (output, reference, f"{output}\n{reference}")} - {""}
    if len(languages) > 1:
        languages -= {ENGLISH}
    if languages & _HAN:
        languages = {"ja"} if _KANA.search(output + reference) else languages | _HAN
    return frozenset(languages)


def _split(text: str) -> list[str]:
    """Return the words of a text, or its characters if it has no spaces."""
    return re.findall(r"[\w\u0e00-\u0e7f]" if is_unspaced(text) else r"[\w\u0900-\u097f]+", text)


def _are_similar(texts: _Texts) -> bool:
    """Return True if the shorter text has most of its words in common with the other, perhaps in another form."""
    shorter, longer = sorted((texts.words, texts.other_words), key=len)
    if texts.are_unspaced:
        shared = (Counter(shorter) & Counter(longer)).total()
    else:
        others = {word if len(word) < _STEM else word[:_STEM] for word in longer}
        shared = sum((word if len(word) < _STEM else word[:_STEM]) in others for word in shorter)
    return shared >= MIN_SHARED_WORDS * len(shorter)


def _count_negations(texts: _Texts, pair: _Pair | None = None) -> tuple[Counter[str], Counter[str]]:
    """Count the words of negation of both texts, without those in a pair of opposites."""
    left, right = texts.output, texts.reference
    if pair:
        left, right = left.replace(pair.output, " ", 1), right.replace(pair.reference, " ", 1)
    counts = [_find_negations(text, texts.languages) for text in (left, right)]
    return counts[0], counts[1]


def _find_negations(text: str, languages: frozenset[str]) -> Counter[str]:
    data, words = _load_data(), _split(text)
    negations = _load_negations(languages)
    if is_unspaced(text) or "ko" in languages:
        for phrase in _list_words("not_negations", languages):
            text = text.replace(phrase, "\n")
        longest_first = sorted(negations, key=len, reverse=True)
        found = Counter(re.findall("|".join(map(re.escape, longest_first)), text))
        return found + Counter(word for word in text.split() if word in _list_words("separate", languages))
    found = Counter(word for word in words if word in negations)
    found = found or Counter(word for word in words if word in _list_words("particles", languages))
    endings = [re.compile(data["endings"][language]) for language in languages if language in data["endings"]]
    return found + Counter(word for word in words for ending in endings if ending.search(word, 2))


def _find_pair(texts: _Texts) -> _Pair | None:
    """Return two words that exclude each other, each of which only one of the texts has."""
    if not texts.languages:
        return None
    pairs = list(_list_pairs(texts))
    if certain := next((pair for pair in pairs if _is_only_difference(texts, pair)), None):
        return certain
    # Short words have too many other meanings.
    shortest = 1 if texts.are_unspaced else MAX_SHORT_WORD
    long_pairs = (pair for pair in pairs if min(len(pair.output), len(pair.reference)) > shortest)
    return next(long_pairs, None) if _are_similar(texts) else None


def _list_pairs(texts: _Texts) -> Iterator[_Pair]:
    ours, theirs = _list_unshared(texts)
    if not texts.are_unspaced and (pair := _find_prefixed(ours, theirs, texts.languages)):
        yield pair
    groups = _load_groups(texts.languages)
    members, other_members = (_find_members(words, texts.languages) for words in (ours, theirs))
    for index in sorted(members.keys() & other_members.keys()):
        found, other_found = members[index], other_members[index]
        for (meaning, word), (other_meaning, other) in product(found.items(), other_found.items()):
            if meaning != other_meaning and meaning not in other_found and other_meaning not in found:
                yield _Pair(groups[index].kind, word, other)


def _find_prefixed(ours: Sequence[str], theirs: Sequence[str], languages: frozenset[str]) -> _Pair | None:
    """Return the first word of a text that is a word of the other text with a prefix in front of it."""
    prefixes, listed = _list_words("prefixes", languages), _list_words("prefixed", languages)
    for words, others in ((ours, frozenset(theirs)), (theirs, frozenset(ours))):
        for word in words:
            for size in range(1, min(_MAX_PREFIX, len(word) - _MIN_BASE) + 1):
                base = word[size:]
                if base not in others:
                    continue
                is_listed = any(form in listed for form in _list_forms(word))
                if is_listed or word[:size] in prefixes:
                    kind = "opposites" if is_listed else "prefixed"
                    return _Pair(kind, word, base) if words is ours else _Pair(kind, base, word)
    return None


def _list_unshared(texts: _Texts) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words that only one of the texts has, in languages without spaces those of the groups."""
    if texts.are_unspaced:
        members = _compile_members(texts.languages)
        words, other_words = members.findall(texts.output), members.findall(texts.reference)
    else:
        words, other_words = texts.words, texts.other_words
    ours, theirs = dict.fromkeys(words), dict.fromkeys(other_words)
    return [word for word in ours if word not in theirs], [word for word in theirs if word not in ours]


def _find_members(words: Sequence[str], languages: frozenset[str]) -> dict[int, dict[int, str]]:
    """Return the meanings that some words have: by index of the group and of the meaning, each with the word."""
    found: dict[int, dict[int, str]] = {}
    forms = _index_forms(languages)
    for word in words:
        # The longest form of a group decides.
        fits = {group: meaning for form in _list_forms(word) for group, meaning in forms.get(form, ())}
        for group, meaning in fits.items():
            found.setdefault(group, {}).setdefault(meaning, word)
    return found


def _list_forms(word: str) -> Iterator[str]:
    """Yield how a word may be listed, the shortest first; * stands for its ending."""
    for size in range(max(1, len(word) - _MAX_ENDING), len(word)):
        yield f"{word[:size]}*"
    yield word
    yield f"{word}*"


def _is_only_difference(texts: _Texts, pair: _Pair) -> bool:
    if texts.are_unspaced:
        rest, other = texts.output.replace(pair.output, " ", 1), texts.reference.replace(pair.reference, " ", 1)
        return re.findall(r"\w+", rest) == re.findall(r"\w+", other)
    sides = (texts.words, pair.output), (texts.other_words, pair.reference)
    rests = [[word for word in words if word != left_out] for words, left_out in sides]
    return rests[0] == rests[1]


@functools.cache
def _load_data() -> dict[str, dict[str, str]]:
    data: dict[str, dict[str, str]] = load_data("text", "negations.yaml")
    return data


@functools.cache
def _load_negations(languages: frozenset[str]) -> frozenset[str]:
    """Return the words of negation of some languages; those of all languages if none is listed."""
    words = _load_data()["words"]
    if languages == {ENGLISH}:
        # Without weights, short foreign texts are taken for English; short words are parts of names and formulas.
        foreign = " ".join(words.values()).split()
        return frozenset(word for word in foreign if len(word) > MAX_SHORT_WORD and not is_english_word(word))
    return _list_words("words", languages) or frozenset(" ".join(words.values()).split())


@functools.cache
def _list_words(name: str, languages: frozenset[str]) -> frozenset[str]:
    words = _load_data()[name]
    return frozenset(word for language in languages for word in words.get(language, "").split())


@functools.cache
def _load_groups(languages: frozenset[str]) -> tuple[_Group, ...]:
    data: dict[str, dict[str, Any]] = load_data("text", "foreign_opposites.yaml")
    return tuple(
        _Group(kind, tuple(tuple(item.split("/")) for item in group.split()))
        for kind, groups in data.items()
        for language in sorted(languages)
        for group in groups.get(language, "").split(";")
    )


@functools.cache
def _index_forms(languages: frozenset[str]) -> dict[str, list[tuple[int, int]]]:
    """Return the groups and meanings of each form, by index."""
    forms: dict[str, list[tuple[int, int]]] = {}
    for index, group in enumerate(_load_groups(languages)):
        for meaning, words in enumerate(group.meanings):
            for form in words:
                forms.setdefault(form, []).append((index, meaning))
    return forms


@functools.cache
def _compile_members(languages: frozenset[str]) -> re.Pattern[str]:
    forms = {form for group in _load_groups(languages) for meaning in group.meanings for form in meaning}
    return re.compile("|".join(map(re.escape, sorted(forms, key=lambda form: (-len(form), form)))) or r"\Z.")
