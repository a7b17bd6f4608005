"""Decide whether a text is written in a language, by its script and by a classifier, or that neither can tell."""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from proctor.errors import EvaluatorError
from proctor.evaluators.data_files import load_data
from proctor.evaluators.language import MAX_CHARACTERS, count_function_words_of, get_script, is_code

# Fewer letters do not show that a text is in one of the languages of its script, and that it is not.
_MIN_LETTERS, _MIN_LETTERS_TO_FAIL = 12, 20
# The difference of log-likelihoods that decides between two languages, and between close relatives.
_MARGIN, _MARGIN_OF_RELATIVES = 4.0, 8.0
# Ancient languages count only if they are asked for.
_ANCIENT = frozenset({"grc", "hbo", "sa"})
# The share of letters that the main script of a text has, and of kana in Japanese.
_MAIN_SHARE, _KANA_SHARE = 0.7, 0.1
# The share of words and characters that show that a text in Chinese characters is Chinese.
_CHINESE_SHARE = 0.08
_CHINESE_WORDS = frozenset("的了是我你他她它们們这這吗嗎呢吧很也就说說没沒什么麼")
# Letters that no usual romanization has.
_LATIN_ONLY = frozenset("äöåøæœőűğşıłąężßçãõâêîôûțșđơưþðľĺŕňťď")
# The share of different function words that shows one of the languages in Latin letters.
_FUNCTION_WORDS = 0.25
_NOT_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\S{1,64}(?:://|@)\S+", re.DOTALL)

Rank = Callable[[str], Sequence[tuple[str, float]]]


class LanguageVerdict(NamedTuple):
    """Whether a text is in the language (None if unknown), the language that it reads as, and why."""

    is_match: bool | None
    language: str | None
    reason: str = ""
    method: str = "py3langid"


class LanguageTag(NamedTuple):
    """A language as the classifier calls it, and the region, which is not checked."""

    code: str
    region: str = ""


class _Rival(NamedTuple):
    """A language of the same script that the classifier does not know, and the signs of both languages."""

    code: str
    words: frozenset[str]
    letters: re.Pattern[str]
    endings: tuple[str, ...]
    own: frozenset[str]
    own_endings: tuple[str, ...]

    @classmethod
    def from_data(cls, data: dict[str, str]) -> _Rival:
        lists = {name: text.split() for name, text in data.items() if name not in ("code", "letters")}
        return cls(
            data["code"],
            frozenset(lists["words"]),
            re.compile(f"[{data['letters']}]"),
            tuple(lists.get("endings", ())),
            frozenset(lists["own"]),
            tuple(lists.get("own_endings", ())),
        )


class _Languages(NamedTuple):
    names: dict[str, str]
    scripts: dict[str, tuple[str, ...]]
    relatives: tuple[frozenset[str], ...]
    varieties: dict[str, tuple[str, ...]]
    aliases: dict[str, str]
    rivals: dict[str, _Rival]
    other_scripts: frozenset[str]


@functools.cache
def _load_languages() -> _Languages:
    data = load_data("language_codes.yaml")
    scripts = {script: tuple(codes.split()) for script, codes in data["scripts"].items()}
    groups = tuple(frozenset(group.split()) for group in data["relatives"])
    varieties = {code: tuple(codes.split()) for code, codes in data["varieties"].items()}
    rivals = {script: _Rival.from_data(rival) for script, rival in data["rivals"].items()}
    other_scripts = frozenset(code for codes in scripts.values() for code in codes) - set(data["also_latin"].split())
    return _Languages(data["names"], scripts, groups, varieties, data["aliases"], rivals, other_scripts)


def read_tag(language: str, codes: Sequence[str]) -> LanguageTag:
    """Read a language tag (BCP 47): "de", "en-US", "nb"; raise an error for unknown languages and for scripts."""
    where, languages = "output_language", _load_languages()
    base, *subtags = re.split("[-_]", language.lower())
    code = languages.aliases.get(base, base)
    if code not in codes and code not in languages.varieties:
        raise EvaluatorError(f"unknown language {language!r}", where=where, fix=suggest_code(language, codes))
    regions = [tag for tag in subtags if re.fullmatch("[a-z]{2}|[0-9]{3}", tag)]
    if subtags and (len(subtags) > 1 or not regions):
        what = f"{language!r} is more than a language and a region, and the rest cannot be checked"
        raise EvaluatorError(what, where=where, fix=f"write {code!r}")
    return LanguageTag(code, regions[0].upper() if regions else "")


def suggest_code(language: str, codes: Sequence[str]) -> str:
    """Return what to write instead of an unknown code: "de" for "german", "zh" for "zh-cn"."""
    names = _load_languages().names
    base = re.split(r"[-_]", language.lower())[0]
    close = difflib.get_close_matches(language.lower(), names, n=1, cutoff=0.75)
    code = names.get(base) or (base if base in codes else None) or (names[close[0]] if close else None)
    return f"did you mean {code!r}?" if code else 'write an ISO 639-1 code, such as "en", "de" or "zh"'


def check_language(text: str, code: str, rank: Rank) -> LanguageVerdict:
    """Return whether a text is written in a language; `rank` orders the languages of a text by log-likelihood."""
    prose = _NOT_PROSE.sub(" ", text[:MAX_CHARACTERS])
    letters = [letter for letter in prose if letter.isalpha()]
    if not letters:
        return LanguageVerdict(None, None, "it has no words" if text.strip() else "it is empty")
    if is_code(text):
        return LanguageVerdict(None, None, "it is program code")
    script, share = _find_script(letters)
    candidates = [c for c in _load_languages().scripts.get(script, ()) if c == code or c not in _ANCIENT]
    if share < _MAIN_SHARE:
        return LanguageVerdict(None, None, "it mixes several scripts")
    if candidates and (len(candidates) == 1 or code not in candidates):
        language = candidates[0] if len(candidates) == 1 else None
        if code in candidates and script in _load_languages().rivals:
            return _compare_with_rival(prose, code, _load_languages().rivals[script])
        reason = "" if code in candidates else f"it is written in {_name_script(script)}"
        return LanguageVerdict(code in candidates, language, reason, "script")
    verdict = _check_characters(prose, letters, code, rank) if script == "CJK" else _compare(prose, code, rank)
    least = _MIN_LETTERS if verdict.is_match else _MIN_LETTERS_TO_FAIL
    if len(letters) < least and script != "CJK":
        return LanguageVerdict(None, None, f"{len(letters)} letters are too few to tell its language")
    words = re.findall(r"[^\W\d_]+", prose)
    if script == "LATIN" and not any(map(str.islower, words)) and not prose.isupper():
        return LanguageVerdict(None, None, "it has only names")
    may_be_transcribed = script == "LATIN" and verdict.is_match is False and code in _load_languages().other_scripts
    if may_be_transcribed and not _is_certainly_latin([word.lower() for word in words], verdict.language):
        return LanguageVerdict(None, None, f"it may be {code} in Latin letters")
    return verdict


def _is_certainly_latin(words: Sequence[str], language: str | None) -> bool:
    """Return True if words show a language that is written in Latin letters, and not only transcribed."""
    if any(not _LATIN_ONLY.isdisjoint(word) for word in words):
        return True
    names = [name for name, code in _load_languages().names.items() if code == language]
    count = max((count_function_words_of(name, words) for name in names), default=0)
    return count > 1 and count >= _FUNCTION_WORDS * len(set(words))


def _compare_with_rival(text: str, code: str, rival: _Rival) -> LanguageVerdict:
    """Compare the signs of a language with those of another one in the same script."""
    unclear = LanguageVerdict(None, None, f"its language is not clear: {code} or {rival.code}", "script")
    if not rival.words:
        return unclear if rival.letters.search(text) else LanguageVerdict(True, code, "", "script")
    signs = own_signs = 0
    for word in re.findall(r"[^\W\d_][\w\u0591-\u05c7]*", text):
        is_long = len(word) > 3
        signs += word in rival.words or bool(rival.letters.search(word)) or (is_long and word.endswith(rival.endings))
        own_signs += word in rival.own or (is_long and word.endswith(rival.own_endings or ("\0",)))
    if own_signs > 2 * signs:
        return LanguageVerdict(True, code, "", "script")
    if signs > 1 and signs > 2 * own_signs:
        return LanguageVerdict(False, rival.code, f"it reads as {rival.code}", "script")
    return unclear


def _check_characters(text: str, letters: Sequence[str], code: str, rank: Rank) -> LanguageVerdict:
    """Return a verdict on a text in Chinese characters with hardly any kana.

    Chinese has characters that Japanese does not have, and frequent words of one character. Japanese has characters
    that neither simplified nor traditional Chinese has.
    """
    characters = [letter for letter in letters if get_script(letter) == "CJK"]
    only_chinese = sum(not _is_in(c, "cp932") for c in characters)
    only_japanese = sum(_is_in(c, "cp932") and not _is_in(c, "gb2312") and not _is_in(c, "big5") for c in characters)
    words = [c for c in characters if c in _CHINESE_WORDS and _is_in(c, "cp932")]
    has_words = len(set(words)) > 1 and len(words) >= _CHINESE_SHARE * len(characters)
    if only_japanese and not only_chinese:
        if only_japanese > 1 and not has_words:
            return LanguageVerdict(code == "ja", "ja", "" if code == "ja" else "it reads as ja", "script")
    elif only_chinese > 1 or has_words:
        if code == "ja":
            return LanguageVerdict(False, "zh", "it reads as zh", "script")
        return _compare(text, code, lambda text: [item for item in rank(text) if item[0] != "ja"])
    return LanguageVerdict(None, None, "it has only characters that Chinese and Japanese share", "script")


@functools.lru_cache(maxsize=8192)
def _is_in(character: str, charset: str) -> bool:
    try:
        return bool(character.encode(charset))
    except UnicodeEncodeError:
        return False


def _compare(text: str, code: str, rank: Rank) -> LanguageVerdict:
    """Compare the likelihood of a language with that of the best other one."""
    varieties = _load_languages().varieties.get(code, ())
    scores: dict[str, float] = {}
    for language, score in rank(text):
        scores.setdefault(code if language in varieties else str(language), float(score))
    best = next(iter(scores))
    if best == code:
        close = [other for other in scores if other != code and scores[code] - scores[other] < _get_margin(code, other)]
    else:
        close = [best] if scores[best] - scores[code] < _get_margin(code, best) else []
    if close:
        return LanguageVerdict(None, best, f"its language is not clear: {code} or {close[0]}")
    return LanguageVerdict(best == code, best, "" if best == code else f"it reads as {best}")


def _get_margin(first: str, second: str) -> float:
    related = any(first in group and second in group for group in _load_languages().relatives)
    return _MARGIN_OF_RELATIVES if related else _MARGIN


def _find_script(letters: Sequence[str]) -> tuple[str, float]:
    """Return the script of most letters and their share; kana make Chinese characters Japanese."""
    counts = Counter(map(get_script, letters))
    kana = counts.pop("HIRAGANA", 0) + counts.pop("KATAKANA", 0)
    if kana:
        name = "KANA" if kana >= _KANA_SHARE * (kana + counts["CJK"]) else "CJK"
        counts[name] = kana + counts.pop("CJK", 0)
    script, count = counts.most_common(1)[0]
    return script, count / len(letters)


def _name_script(script: str) -> str:
    names = {"CJK": "Chinese characters", "KANA": "Japanese characters", "HANGUL": "Korean characters"}
    return names.get(script, f"{script.capitalize()} letters")
