"""Whether a text can be read by methods that know only English.

Scripts are told by their characters, languages in Latin letters by their little words and by the
share of words that are known in English. Names, typos, numbers and single foreign words do not make
a text foreign. Of one to three words at least one must be known in English, unless they are
names or codes; see `short_texts`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from proctor.core import resources
from proctor.evaluators.safety.toxicity import english
from proctor.evaluators.safety.toxicity.english import function_words, known_words
from proctor.evaluators.wording import english as known_english
from proctor.evaluators.wording import texts_in

UNKNOWN_WORDS = "words of which not one is known to be English"
# Endings of forms, and endings that only words of English, Latin and Greek descent have.
_FORMS = ("'s", "ing", "ers", "er", "est", "ed", "es", "ly", "s")
_ENGLISH_ENDINGS = (
    "tion", "tions", "sion", "ology", "ologist", "ness", "ful", "less", "able", "ship", "hood",
    "ward", "wards", "wise", "ism", "isms", "ists", "ize", "ized", "izing", "ise", "ised", "ings",
    "ously", "ous", "ically", "ility", "ivity", "ography", "graph", "phobia", "osis", "esis",
    "itis", "ium", "oxide", "phone", "scope", "sphere", "berry", "fish", "bird", "wood", "work",
    "works", "house", "board", "book", "light", "th",
)  # fmt: skip
_FEWEST_LETTERS = 6
# So few unknown words are no evidence of another language.
_FEWEST_UNKNOWN = 3
# Codes, names of files and of variables: GPT-4o, user_id, e.g., src/main.py.
_CODE = re.compile(r"\d|_|\w[./\\@#:+=]\w|^[#@$/.-]")


class ShortTexts(NamedTuple):
    """The words of `short_texts.yaml`."""

    languages: dict[str, str]
    shared: frozenset[str]
    english: frozenset[str]
    abuse: frozenset[str]


def short_text_language(text: str, words: Sequence[str]) -> str:
    """What a text of few words in Latin letters is written in; "" for English, names and codes.

    >>> short_text_language("Guten Tag", ["Guten", "Tag"])
    'German'
    >>> [short_text_language(name, name.split()) for name in ("Rio de Janeiro", "Blue whale")]
    ['', '']
    """
    small = [word.lower().replace("’", "'") for word in words]
    everyday = {word: _lists().languages[word] for word in small if word in _lists().languages}
    if not everyday and all(map(str.istitle, _content(words))):
        return ""
    shared = _lists().shared.union(everyday) if everyday else frozenset[str]()
    if any(is_english_word(word) for word in small if word not in shared):
        return ""
    if everyday:
        return next(iter(everyday.values()))
    is_named = any(not word.islower() and not word.istitle() for word in words)
    # A word or two that no list has are rare English words ("basalt") as often as foreign ones.
    is_rare = len(words) < _FEWEST_UNKNOWN
    return "" if is_rare or is_named or _CODE.search(text) else UNKNOWN_WORDS


def _content(words: Sequence[str]) -> list[str]:
    """The words that a name writes with a capital: all but particles ("de", "van", "of")."""
    capital = [word for word in words if word.istitle() or len(word) > 3]
    return capital or list(words)


def is_english_word(word: str) -> bool:
    """True if a word in small letters is known in English, or looks like a form of such a word.

    >>> is_english_word("shipped"), is_english_word("lyon")
    (True, False)
    """
    word = _without_accents(word)
    if _is_known(word):
        return True
    for ending in _FORMS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2:
            # Doubled letters and lost ones: "shipped", "hoping".
            forms = (stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem)
            if any(map(_is_known, forms)):
                return True
    return len(word) >= _FEWEST_LETTERS and word.endswith(_ENGLISH_ENDINGS)


def _is_known(word: str) -> bool:
    return word in known_words() or word in _lists().english


@functools.cache
def _lists() -> ShortTexts:
    import yaml

    listed = yaml.safe_load(resources.text("evaluators", "short_texts.yaml"))
    languages = {word: language for language, words in listed["everyday"].items() for word in words.split()}
    english = frozenset(map(_without_accents, listed["english"].split()))
    shared, abuse = (frozenset(listed[name].split()) for name in ("shared", "abuse"))
    return ShortTexts(languages, shared, english, abuse)


def foreign_abuse(words: Iterable[str]) -> str:
    """The first word of abuse in another language among some words; "" if there is none.

    >>> foreign_abuse(["You", "are", "a", "Hurensohn"])
    'Hurensohn'
    """
    return next((word for word in words if word.lower() in _lists().abuse), "")


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


# What to do about text that the local method cannot read.
INSTEAD = "name an embedder that reads it (embedder=…) or a model as judge (judge=…)"
JUDGE_INSTEAD = "a model can judge it (judge=…)"

# The beginning of a long text shows what it is written in.
MOST_CHARACTERS = 50_000
# Fewer words in Latin letters may be names, or anything.
_FEWEST_WORDS = 4
# So much of a text may be in another language or script: a name, a quotation, a term.
_MOST_FOREIGN = 0.3
# Shorter sentences are seen together.
_WHOLE_SENTENCE = 8
# A language shows in so many little words of its own, English in so many of its own.
_LITTLE, _ENGLISH_LITTLE = 0.12, 0.15
# Text without such words is foreign if fewer of its words than these are known in English: with
# letters that English does not have in its small words, with one little word, with neither.
_KNOWN_IN_MARKED, _KNOWN_WITH_HITS, _KNOWN_ELSEWHERE = 0.6, 0.5, 0.3
# So many of the words between names are little words of a language.
_LITTLE_AMONG_NAMES = 0.25
# Little words that are parts of names: "Don Quixote de la Mancha", "Smith et al.".
_NAME_PARTICLES = frozenset({
    "al", "da", "de", "del", "den", "der", "des", "di", "do", "dos", "du", "e", "el", "et", "la",
    "las", "le", "les", "los", "san", "te", "van", "von", "y", "zu",
})  # fmt: skip
UNNAMED = "a language other than English"
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE = re.compile(r"(?<=[.!?。！？।؟])\s+|\n+")
# How a name is pronounced is no language.
_PHONETIC = re.compile(r"[\u0250-\u02ff]")
_FENCE = re.compile(r"```[^\n`]*\n.*?(?:```|\Z)", re.DOTALL)
_FENCED = re.compile(r"\s*```[^\n`]*\n(.*?)(?:```\s*|\Z)", re.DOTALL)
_ADDRESS = re.compile(r"\S{1,64}(?:://|@)\S+")
_SQL = re.compile(r"\s*(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE|ALTER TABLE)\b")
_CODE_LINE = re.compile(
    r"\s*(?:(?:def|class|import|from|return|elif|while|const|let|var|function|public|private|static"
    r"|void|int|print|try|except|catch|switch|case|async|await|package|using|struct|fn|func"
    r"|#include)\b.*[({:;=*.]|import\s+[\w.]+\s*$"
    r"|(?:if|for|else)\b.*[({:]\s*$|.*[;{}]\s*$|[\w.\[\]]+\s*[-+*/|&]?=[^=].*|[\w.]+\(.*\)\s*$"
    r"|.*(?:\w\s?(?:=>|->|&&|\|\||==|!=|<=|>=)\s?[\w(\"']|\w::\w|\+\+|</\w+>).*)"
)
_MOSTLY_CODE, _MOST_LINES = 0.6, 500
# These scripts put no spaces between words; about two of their characters are a word.
_UNSPACED = frozenset({"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
_UNSPACED_WORD = 2
_SCRIPT_NAMES = {
    "CJK": "Chinese or Japanese characters", "HIRAGANA": "Japanese characters",
    "KATAKANA": "Japanese characters", "HANGUL": "Korean characters",
}  # fmt: skip


class Reading(NamedTuple):
    """What a text is written in, and how much of it is not English (from 0 to 1)."""

    foreign: float
    what: str = ""


def unreadable_reason(text: str) -> str:
    """Why a method that knows only English cannot read a text; "" if it can.

    >>> unreadable_reason("The ferry to Göteborg leaves at 7."), unreadable_reason("42")
    ('', '')
    >>> unreadable_reason("Das Wetter ist heute sehr schön.")
    'it is written in German'
    >>> unreadable_reason("Погода сегодня хорошая"), unreadable_reason("✅")
    ('it is written in Cyrillic letters', 'it has no words')
    """
    text = _json_values(text)
    if not text.strip():
        return ""
    if is_code(text):
        return "it is program code"
    return foreign_reason(text) or ("it has no words" if _has_symbols(text) else "")


def _json_values(text: str) -> str:
    """The texts in a JSON document, which are what there is to read; any other text as it is."""
    fenced = _FENCED.fullmatch(text) if "```" in text else None
    inner = fenced[1] if fenced else text
    if inner.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return "\n".join(texts_in(msgspec.json.decode(inner)))
    except (msgspec.DecodeError, RecursionError):
        return text


def foreign_reason(text: str) -> str:
    """Which other language or script a text is written in, as a reason; "" for English.

    >>> foreign_reason("Il fait très beau aujourd'hui à Paris."), foreign_reason("✅")
    ('it is written in French', '')
    """
    found = _read(_ADDRESS.sub(" ", _FENCE.sub(" ", text[:MOST_CHARACTERS])))
    return f"it is written in {found.what}" if found and found.foreign > _MOST_FOREIGN else ""


def is_foreign(text: str) -> bool:
    """True if a text is hardly English, by its words or by its little words.

    >>> is_foreign("Das Wetter ist heute sehr schön."), is_foreign("Worthless scumbag.")
    (True, False)
    """
    return english.is_foreign(text) or bool(foreign_reason(text))


def first_unreadable(texts: Iterable[str]) -> str:
    """Why one of several texts cannot be read; "" if all can."""
    return next((reason for text in texts if (reason := unreadable_reason(text))), "")


def symbols_in(text: str) -> list[str]:
    """The emoji and other signs of a text that stand for something without being words.

    >>> symbols_in("Done ✅ (5 €)")
    ['✅']
    """
    if text.isascii():
        return []
    return [c for c in text if unicodedata.category(c) == "So"]


def is_unspaced(text: str) -> bool:
    """True if most of a text is in a script that puts no spaces between words.

    >>> is_unspaced("我喜欢吃苹果"), is_unspaced("I like 苹果 a lot")
    (True, False)
    """
    if text.isascii():
        return False
    letters = [letter for letter in text if letter.isalpha()]
    unspaced = sum(_script(letter) in _UNSPACED for letter in letters)
    return unspaced > len(letters) / 2


def is_code(text: str) -> bool:
    """True if most of a text is program code, by its lines.

    >>> is_code("import os\\nprint(os.getcwd())"), is_code("Call it twice; it returns (a, b).")
    (True, False)
    """
    outside = _FENCE.sub("\n", text) if "```" in text else text
    if outside != text and len(_WORD.findall(outside)) < _FEWEST_WORDS:
        return True
    lines = [line for line in outside.splitlines() if line.strip()][:_MOST_LINES]
    code = sum(_is_code_line(line[:200]) for line in lines)
    return code > 0 and code >= _MOSTLY_CODE * len(lines)


def _is_code_line(line: str) -> bool:
    if _SQL.match(line):
        return True
    return _CODE_LINE.match(line) is not None and not _is_sentence(line)


def _is_sentence(line: str) -> bool:
    """True if a line reads as English: a sentence may hold a semicolon or an equals sign."""
    words = [word.lower() for word in _WORD.findall(line)]
    little = sum(word in function_words() for word in words)
    return len(words) >= _FEWEST_WORDS and little >= _ENGLISH_LITTLE * len(words)


def _has_symbols(text: str) -> bool:
    """True if there are characters that stand for something, but no letters and digits."""
    return not any(c.isalnum() for c in text) and any(
        unicodedata.category(c) in ("So", "Sk", "Sm", "Co", "Cn") for c in text
    )


def _read(text: str) -> Reading | None:
    """How much of a text is foreign, sentence by sentence; None if it has no letters."""
    latin: dict[str, float] = defaultdict(float)
    other: dict[str, float] = defaultdict(float)
    total, fragments = 0.0, list[str]()
    for sentence in _SENTENCE.split(text):
        words = _latin_words(sentence, other)
        total += len(words)
        if len(words) < _WHOLE_SENTENCE:
            fragments += words
        elif language := _foreign_language(words):
            latin[language] += len(words)
    # What is too short by itself is seen together.
    if 0 < total < _FEWEST_WORDS and not other:
        language = short_text_language(text, fragments) or _short_sentence_language(fragments)
    else:
        language = _foreign_language(fragments)
    if language:
        latin[language] += len(fragments)
    total += sum(other.values())
    foreign = sum(latin.values()) + sum(other.values())
    if not foreign:
        return Reading(0.0) if total else None
    name = max([*latin, *other], key=lambda one: latin.get(one, 0) + other.get(one, 0))
    if name in other:
        name = _SCRIPT_NAMES.get(name, f"{name.capitalize()} letters")
    return Reading(foreign / total, name)


def _latin_words(sentence: str, other: dict[str, float]) -> list[str]:
    """The words in Latin letters; words in other scripts are added to those of their script."""
    words = []
    for word in _WORD.findall(sentence):
        if not word.isascii() and _PHONETIC.search(word):
            continue
        script = "LATIN" if word.isascii() else _script(word[0])
        if script == "LATIN":
            words.append(word)
        else:
            other[script] += len(word) / _UNSPACED_WORD if script in _UNSPACED else 1.0
    return words


def _foreign_language(written: list[str]) -> str:
    """The language of words in Latin letters; "" for English, names, and too few words."""
    count = len(written)
    loud = all(map(str.isupper, written))
    if count < _FEWEST_WORDS:
        return ""
    words = [word.lower() for word in written]
    if not loud and sum(map(str.istitle, written)) >= count / 2:
        return _language_of_names(words)
    small = words if loud else [word for word in written if word.islower()]
    own = sum(word in _only_english() for word in words) / count
    name, hits = _little_words(small)
    if hits > 1 and hits / count >= max(_LITTLE, own):
        return name
    if own >= _ENGLISH_LITTLE:
        return ""
    known = sum(_plain(word) in known_words() for word in words) / count
    marked = sum(not word.isascii() for word in small) / count
    if marked >= _LITTLE and known < _KNOWN_IN_MARKED:
        return UNNAMED
    return UNNAMED if known < (_KNOWN_WITH_HITS if hits or marked else _KNOWN_ELSEWHERE) else ""


def _language_of_names(words: list[str]) -> str:
    """The language of words with capitals; names and titles may be of any, so "" for those.

    German writes every noun with a capital: its little words show what it is.
    """
    if any(word in _only_english() for word in words):
        return ""
    name, hits = _little_words(sorted(set(words) - _NAME_PARTICLES))
    return name if hits > 1 and hits >= _LITTLE_AMONG_NAMES * len(set(words)) else ""


def _short_sentence_language(written: list[str]) -> str:
    """The language of two or three words, one a little word of it and none English otherwise."""
    words = [word.lower() for word in written]
    if all(map(str.istitle, written)) or any(
        word in _only_english() or word in known_english().articles for word in words
    ):
        return ""
    name, hits = _little_words([word for word in words if word not in _NAME_PARTICLES])
    # Shorter ones are units: "40 km, 25 mi".
    others = [word for word in words if word not in _languages_of() and len(word) > 2]
    return name if hits and others and not any(map(is_english_word, others)) else ""


def find_foreign_abuse(text: str) -> str:
    """A word of abuse in another language that a text has; "" if it has none.

    >>> find_foreign_abuse("You are a Hurensohn.")
    'Hurensohn'
    """
    return foreign_abuse(_WORD.findall(text[:MOST_CHARACTERS]))


def _little_words(words: list[str]) -> tuple[str, int]:
    """The language with most little words among some words, and how many there are."""
    found: Counter[str] = Counter()
    for word in words:
        if len(word) > 1 and word not in function_words():
            found.update(_languages_of().get(word, ()))
    if not found:
        return "", 0
    ranked = found.most_common(2)
    is_clear = len(ranked) == 1 or ranked[0][1] > ranked[1][1]
    return ranked[0][0] if is_clear else UNNAMED, ranked[0][1]


@functools.cache
def _only_english() -> frozenset[str]:
    """Words that do grammatical work in English and are little words of no other language."""
    return function_words() - _languages_of().keys()


@functools.cache
def _languages_of() -> dict[str, tuple[str, ...]]:
    """The languages that have each little word."""
    import yaml

    listed = yaml.safe_load(resources.text("evaluators", "languages.yaml"))
    found: dict[str, tuple[str, ...]] = {}
    for language, words in listed.items():
        for word in words.split():
            found[word] = (*found.get(word, ()), language)
    return found


@functools.lru_cache(maxsize=8192)
def _script(letter: str) -> str:
    """The script of a letter, by its Unicode name."""
    name = unicodedata.name(letter, "").split()
    if not name:
        return "UNKNOWN"
    if name[0] == "FULLWIDTH" or "LATIN" in name[:2] or name[0] in ("MODIFIER", "MATHEMATICAL"):
        return "LATIN"
    return name[0].partition("-")[0]


def _plain(word: str) -> str:
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFKD", word)
    return "".join(c for c in apart if not unicodedata.combining(c))
