"""Detect texts that methods for English cannot read.

Scripts are recognized by their characters, languages in Latin letters by their function words and by the fraction of
known English words. Names, typing errors, numbers and single foreign words do not make a text foreign. A text of one to
three words needs a known English word, a name or a code.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from proctor.evaluators.data_files import load_data, load_patterns
from proctor.evaluators.safety.counterfactual import list_group_words
from proctor.evaluators.safety.toxicity.model import has_words, load_model
from proctor.evaluators.tokenizer import collect_texts, load_english

UNKNOWN_WORDS = "words that are not known to be English"
UNNAMED_LANGUAGE = "a language other than English"
EMBEDDER_OR_JUDGE_HINT = "name an embedder that reads it (embedder=…) or a model as judge (model=…)"
JUDGE_HINT = "a model can judge it (model=…)"

# Endings of word forms.
_FORM_ENDINGS = ("'s", "ing", "ers", "er", "est", "ed", "es", "ly", "s")
# Shorter words may have an English ending by chance.
_MIN_LETTERS = 6
# Fewer unknown words do not prove another language.
_MIN_UNKNOWN = 3
# Codes and names of files and variables: GPT-4o, user_id, e.g., src/main.py.
_IDENTIFIER = re.compile(r"\d|_|\w[./\\@#:+=]\w|^[#@$/.-]")
# The start of a long text shows its language.
MAX_CHARACTERS = 50_000
# Fewer words in Latin letters are inconclusive: they may be names.
_MIN_WORDS = 4
# The fraction of a text that names, quotations and terms in another language or script may have.
_MAX_FOREIGN = 0.3
# Shorter sentences are read together.
_FULL_SENTENCE = 8
# The fractions of function words that identify another language, and English.
_FOREIGN_FUNCTION_WORDS, _ENGLISH_FUNCTION_WORDS = 0.12, 0.15
# Other text is foreign if a smaller fraction of its words is known in English. The limits are for lower-case words with
# accents, for one foreign function word or accent, and for all other text.
_KNOWN_WITH_ACCENTS, _KNOWN_WITH_SIGNS, _KNOWN_OTHERWISE = 0.6, 0.5, 0.3
# In a text in another language, fewer words look English.
_MIN_KNOWN = 0.5
# The fraction of function words of a language among capitalized words.
_FUNCTION_WORDS_AMONG_NAMES = 0.25
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？।؟])\s+|\n+")
# Phonetic transcriptions of names are not a language.
_PHONETIC = re.compile(r"[\u0250-\u02ff]")
_FENCE = re.compile(r"```[^\n`]*\n.*?(?:```|\Z)", re.DOTALL)
_FENCED_BLOCK = re.compile(r"\s*```[^\n`]*\n(.*?)(?:```\s*|\Z)", re.DOTALL)
_ADDRESS = re.compile(r"\S{1,64}(?:://|@)\S+")
_NOT_PROSE = re.compile(rf"```.*?(?:```|\Z)|{_ADDRESS.pattern}", re.DOTALL)
_MIN_CODE_SHARE, _MAX_CODE_LINES = 0.6, 500
# A TeX document has at least this share of lines with commands; the others may be prose.
_MIN_TEX_SHARE = 0.25
# Scripts without spaces between words; about two characters make a word.
_UNSPACED = frozenset({"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
_UNSPACED_WORD = 2
_SCRIPT_NAMES = {
    "CJK": "Chinese or Japanese characters", "HIRAGANA": "Japanese characters",
    "KATAKANA": "Japanese characters", "HANGUL": "Korean characters",
}  # fmt: skip


class ShortTexts(NamedTuple):
    """The words of `short_texts.yaml`."""

    languages: dict[str, str]
    shared: frozenset[str]
    english: frozenset[str]
    abuse: frozenset[str]


@functools.cache
def _load_short_texts() -> ShortTexts:
    data = load_data("short_texts.yaml")
    languages = {word: language for language, words in data["everyday"].items() for word in words.split()}
    english_words = frozenset(map(_remove_accents, data["english"].split()))
    return ShortTexts(languages, frozenset(data["shared"].split()), english_words, frozenset(data["abuse"].split()))


def _detect_short_text(text: str, words: Sequence[str]) -> str:
    """Return the language of one to three words; "" for English, names and codes."""
    lists = _load_short_texts()
    lowercase_words = [word.lower().replace("’", "'") for word in words]
    everyday_words = {word: lists.languages[word] for word in lowercase_words if word in lists.languages}
    # Names may contain particles in lower case ("de", "van", "of").
    content = [word for word in words if word.istitle() or len(word) > 3] or words
    if not everyday_words and all(map(str.istitle, content)):
        return ""
    if any(word.islower() and not word.isascii() and not is_english_word(word) for word in words):
        return next(iter(everyday_words.values()), UNNAMED_LANGUAGE)
    shared = lists.shared.union(everyday_words) if everyday_words else frozenset[str]()
    english_words = {word for word in lowercase_words if is_english_word(word)}
    unknown_words = [word for word in lowercase_words if len(word) > 2 and word not in english_words]
    # Function words that other languages have too do not make a text English ("on" is also Finnish).
    is_shared_only = english_words <= load_english().shared_function_words and len(unknown_words) > 1
    if english_words - shared and not is_shared_only:
        return ""
    if everyday_words:
        return next(iter(everyday_words.values()))
    has_name = any(not word.islower() and not word.istitle() for word in words)
    # One or two unknown words may be rare English words ("basalt").
    is_short = len(words) < _MIN_UNKNOWN
    return "" if is_short or has_name or _IDENTIFIER.search(text) else UNKNOWN_WORDS


def is_english_word(word: str) -> bool:
    """Return True if a lower-case word is known in English, or looks like a form of a known word."""
    word = _remove_accents(word)
    if _is_known(word):
        return True
    for ending in _FORM_ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2:
            # Doubled and dropped letters: "shipped", "hoping".
            forms = (stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem)
            if any(map(_is_known, forms)):
                return True
    return len(word) >= _MIN_LETTERS and word.endswith(load_english().english_endings)


def _is_known(word: str) -> bool:
    return word in load_known_words() or word in _load_short_texts().english


def _remove_accents(word: str) -> str:
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word)
    return "".join(c for c in decomposed if unicodedata.category(c) not in ("Mn", "Cf"))


def explain_unreadable(text: str) -> str:
    """Return why a method that reads only English cannot read a text; "" if it can."""
    text = _extract_json_texts(text)
    if not text.strip():
        return ""
    if is_code(text):
        return "it is program code"
    return explain_foreign(text) or ("it has no words" if _has_only_symbols(text) else "")


def _extract_json_texts(text: str) -> str:
    fenced_block = _FENCED_BLOCK.fullmatch(text) if "```" in text else None
    inner = fenced_block[1] if fenced_block else text
    if inner.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return "\n".join(collect_texts(msgspec.json.decode(inner)))
    except (msgspec.DecodeError, RecursionError):
        return text


def explain_foreign(text: str) -> str:
    """Return which other language or script a text is written in; "" for English."""
    share, language = _measure_foreign(_ADDRESS.sub(" ", _FENCE.sub(" ", text[:MAX_CHARACTERS])))
    return f"it is written in {language}" if share > _MAX_FOREIGN else ""


def find_unknown_word(text: str) -> str:
    """Return the first word that is not known in English, if the text has no function word that is only English."""
    words = re.findall(r"[^\W\d_]+", text[:MAX_CHARACTERS])
    if any(word.lower() in load_english_only_words() for word in words):
        return ""
    return next((word for word in words if len(word) > 2 and not is_english_word(word.lower())), "")


def is_foreign(text: str) -> bool:
    """Return True if a text is not English."""
    return has_few_english_words(text) or bool(explain_foreign(text))


def has_few_english_words(text: str) -> bool:
    """Return True if hardly any word of a text is English; False for fewer than four words."""
    prose = _NOT_PROSE.sub(" ", text)
    if not has_words(prose):
        return any(map(str.isalpha, prose))
    words = re.findall(r"[^\W\d_]{2,}", _remove_accents(prose))
    # A text that is mostly capitalized may consist of names.
    if len(words) < _MIN_WORDS or sum(not word.istitle() for word in words) < len(words) / 2:
        return False
    words = [word.lower() for word in words]
    only_english = load_function_words() - load_english().shared_function_words
    known_share = sum(word in load_known_words() for word in words) / len(words)
    function_word_share = sum(word in only_english for word in words) / len(words)
    return known_share < _MIN_KNOWN and function_word_share < _ENGLISH_FUNCTION_WORDS


@functools.cache
def load_function_words() -> frozenset[str]:
    """Return the English function words."""
    return load_english().function | load_english().speaker | load_english().negation


@functools.cache
def load_known_words() -> frozenset[str]:
    """Return the words of the toxicity model, the words for groups of people, and the function words."""
    # Two-letter content words occur as often in other languages.
    return load_function_words().union(word for word in (*load_model().words, *list_group_words()) if len(word) > 2)


def explain_first_unreadable(texts: Iterable[str]) -> str:
    """Return why the first unreadable text cannot be read; "" if all can."""
    return next((reason for text in texts if (reason := explain_unreadable(text))), "")


def find_symbols(text: str) -> list[str]:
    """Return the emoji and other pictorial symbols of a text."""
    return [] if text.isascii() else [c for c in text if unicodedata.category(c) == "So"]


def is_unspaced(text: str) -> bool:
    """Return True if most of a text is in a script without spaces between words."""
    if text.isascii():
        return False
    letters = [letter for letter in text if letter.isalpha()]
    return sum(get_script(letter) in _UNSPACED for letter in letters) > len(letters) / 2


def is_code(text: str) -> bool:
    """Return True if most lines of a text are program code."""
    text_outside_fences = _FENCE.sub("\n", text) if "```" in text else text
    if text_outside_fences != text and len(_WORD.findall(text_outside_fences)) < _MIN_WORDS:
        return True
    patterns, text = load_patterns("code.yaml"), text_outside_fences[:MAX_CHARACTERS]
    lines = _split_lines(patterns["comment_block"].sub("", text))
    statements = [line for line in lines if not patterns["comment_line"].match(line)]
    has_sql = any(map(patterns["sql"].match, statements))
    kinds = [patterns[f"{kind}_line"] for kind in ("makefile", "dockerfile") if patterns[f"{kind}_start"].search(text)]
    code = sum(_is_code_line(line, has_sql) or _is_command(line, kinds) for line in statements)
    return code > 0 and code >= _MIN_CODE_SHARE * len(statements)


def _is_command(line: str, kinds: Iterable[re.Pattern[str]]) -> bool:
    words = load_patterns("code.yaml")["file_name"].sub("", line)
    return any(kind.match(line) for kind in kinds) and not _is_sentence(words)


def _is_sentence(text: str) -> bool:
    """Return True if a text has as many function words as English prose."""
    words = _WORD.findall(text)
    count = sum(word.lower() in load_function_words() for word in words)
    return len(words) >= _MIN_WORDS and count >= _ENGLISH_FUNCTION_WORDS * len(words)


def explain_structured(text: str) -> str:
    """Return which data or markup a text is: JSON, HTML or XML, TeX, YAML; "" for prose."""
    fenced_block = _FENCED_BLOCK.fullmatch(text) if "```" in text else None
    text, patterns = fenced_block[1] if fenced_block else text, load_patterns("code.yaml")
    if _extract_json_texts(text) is not text:
        return "it is JSON"
    if patterns["markup"].match(text[:MAX_CHARACTERS]) and not _is_tagged_prose(text[:MAX_CHARACTERS]):
        return "it is HTML or XML"
    lines = _split_lines(text)
    tex, yaml = (sum(patterns[name].match(line) is not None for line in lines) for name in ("tex_line", "yaml_line"))
    if patterns["tex_start"].search(text) or (tex > 1 and tex >= _MIN_TEX_SHARE * len(lines)):
        return "it is TeX"
    is_yaml = yaml > 1 and yaml >= _MIN_CODE_SHARE * len(lines) and patterns["yaml_parent"].search(text)
    values = [patterns["yaml_key"].sub("", line, count=1) for line in lines]
    return "it is YAML" if is_yaml and sum(map(_is_sentence, values)) < len(values) / 3 else ""


def _is_tagged_prose(text: str) -> bool:
    """Return True if a text with tags is no document, and is mostly sentences without them."""
    patterns = load_patterns("code.yaml")
    words = patterns["tag"].sub(" ", text)
    return not patterns["document"].search(text) and len(words) > len(text) / 2 and _is_sentence(words)


def _split_lines(text: str) -> list[str]:
    return [line[:200] for line in text.splitlines() if line.strip()][:_MAX_CODE_LINES]


def _is_code_line(line: str, has_sql: bool) -> bool:
    patterns = load_patterns("code.yaml")
    line = patterns["comment"].sub("", line)
    if patterns["sure_line"].match(line):
        return True
    is_sql = has_sql and any(patterns[name].match(line) for name in ("sql", "sql_part"))
    if not is_sql and not patterns["line"].match(line):
        return False
    # A sentence may contain a semicolon or an equals sign.
    words = [word for word in _WORD.findall(patterns["string"].sub('""', line)) if not is_sql or not word.isupper()]
    return not _is_sentence(" ".join(words))


def _has_only_symbols(text: str) -> bool:
    return not any(c.isalnum() for c in text) and any(
        unicodedata.category(c) in ("So", "Sk", "Sm", "Co", "Cn") for c in text
    )


def _measure_foreign(text: str) -> tuple[float, str]:
    """Return the fraction of a text that is not English, and its language or script."""
    latin: dict[str, float] = defaultdict(float)
    other: dict[str, float] = defaultdict(float)
    total, fragments = 0.0, list[str]()
    for sentence in _SENTENCE_END.split(text):
        words = _split_latin_words(sentence, other)
        total += len(words)
        if len(words) < _FULL_SENTENCE:
            fragments += words
        elif language := _detect_language(words):
            latin[language] += len(words)
    if 0 < total < _MIN_WORDS and not other:
        language = _detect_short_text(text, fragments) or _detect_short_sentence(fragments)
    else:
        language = _detect_language(fragments)
    if language:
        latin[language] += len(fragments)
    total += sum(other.values())
    foreign = sum(latin.values()) + sum(other.values())
    if not foreign:
        return 0.0, ""
    name = max([*latin, *other], key=lambda key: latin.get(key, 0) + other.get(key, 0))
    if name in other:
        name = _SCRIPT_NAMES.get(name, f"{name.capitalize()} letters")
    return foreign / total, name


def _split_latin_words(sentence: str, other: dict[str, float]) -> list[str]:
    """Return the words in Latin letters; add words in other scripts to the counts in `other`."""
    words = []
    for word in _WORD.findall(sentence):
        if not word.isascii() and _PHONETIC.search(word):
            continue
        script = "LATIN" if word.isascii() else get_script(word[0])
        if script == "LATIN":
            words.append(word)
        else:
            other[script] += len(word) / _UNSPACED_WORD if script in _UNSPACED else 1.0
    return words


def _detect_language(original: list[str]) -> str:
    """Return the language of words in Latin letters; "" for English, names, and too few words."""
    count = len(original)
    if count < _MIN_WORDS:
        return ""
    is_upper = all(map(str.isupper, original))
    words = [word.lower() for word in original]
    if not is_upper and sum(map(str.istitle, original)) >= count / 2:
        return _detect_language_of_names(words)
    lowercase_words = words if is_upper else [word for word in original if word.islower()]
    english_share = sum(word in load_english_only_words() for word in words) / count
    name, hits = _count_function_words(lowercase_words)
    if hits > 1 and hits / count >= max(_FOREIGN_FUNCTION_WORDS, english_share):
        return name
    if english_share >= _ENGLISH_FUNCTION_WORDS:
        return ""
    known_share = sum(_remove_accents(word) in load_known_words() for word in words) / count
    accented_share = sum(not word.isascii() for word in lowercase_words) / count
    if accented_share >= _FOREIGN_FUNCTION_WORDS and known_share < _KNOWN_WITH_ACCENTS:
        return UNNAMED_LANGUAGE
    return UNNAMED_LANGUAGE if known_share < (_KNOWN_WITH_SIGNS if hits or accented_share else _KNOWN_OTHERWISE) else ""


def _detect_language_of_names(words: list[str]) -> str:
    # German capitalizes every noun; its function words distinguish it from names.
    if any(word in load_english_only_words() for word in words):
        return ""
    name, hits = _count_function_words(sorted(set(words) - load_english().name_particles))
    return name if hits > 1 and hits >= _FUNCTION_WORDS_AMONG_NAMES * len(set(words)) else ""


def _detect_short_sentence(original: list[str]) -> str:
    """Return the language of two or three words, if one is its function word and none is English."""
    words = [word.lower() for word in original]
    if all(map(str.istitle, original)) or any(
        word in load_english_only_words() or word in load_english().articles for word in words
    ):
        return ""
    name, hits = _count_function_words([word for word in words if word not in load_english().name_particles])
    # Shorter words are units: "40 km, 25 mi".
    others = [word for word in words if word not in _load_languages() and len(word) > 2]
    return name if hits and others and not any(map(is_english_word, others)) else ""


def find_foreign_abuse(text: str) -> str:
    """Return the first abusive word in another language; "" if there is none."""
    words = _WORD.findall(text[:MAX_CHARACTERS])
    return next((word for word in words if word.lower() in _load_short_texts().abuse), "")


def _count_function_words(words: list[str]) -> tuple[str, int]:
    """Return the language with the most function words, and their number."""
    counts: Counter[str] = Counter()
    for word in words:
        if len(word) > 1 and word not in load_function_words():
            counts.update(_load_languages().get(word, ()))
    if not counts:
        return "", 0
    ranked = counts.most_common(2)
    is_clear = len(ranked) == 1 or ranked[0][1] > ranked[1][1]
    return ranked[0][0] if is_clear else UNNAMED_LANGUAGE, ranked[0][1]


def count_function_words_of(language: str, words: Iterable[str]) -> int:
    """Return how many different words are function words of a language, given by its English name in lower case."""
    if language == "english":
        return len(load_function_words().intersection(words))
    return sum(language in map(str.lower, _load_languages().get(word, ())) for word in set(words))


@functools.cache
def load_english_only_words() -> frozenset[str]:
    """Return the English function words that are no function words of another language."""
    return load_function_words() - _load_languages().keys()


@functools.cache
def _load_languages() -> dict[str, tuple[str, ...]]:
    languages: dict[str, tuple[str, ...]] = {}
    for language, words in load_data("languages.yaml").items():
        for word in words.split():
            languages[word] = (*languages.get(word, ()), language)
    return languages


@functools.lru_cache(maxsize=8192)
def get_script(letter: str) -> str:
    name = unicodedata.name(letter, "").split()
    if not name:
        return "UNKNOWN"
    if name[0] == "FULLWIDTH" or "LATIN" in name[:2] or name[0] in ("MODIFIER", "MATHEMATICAL"):
        return "LATIN"
    return name[0].partition("-")[0]
