"""Decide whether a text is written in a language, by its script and by a classifier, or that neither can tell."""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.language import MAX_CHARACTERS, get_script, is_code

# Fewer letters do not show that a text is in one of the languages of its script, and that it is not.
_MIN_LETTERS, _MIN_LETTERS_TO_FAIL = 12, 20
# The difference of log-likelihoods that decides between two languages, and between close relatives.
_MARGIN, _MARGIN_OF_RELATIVES = 4.0, 8.0
# Ancient languages count only if they are asked for.
_ANCIENT = frozenset({"grc", "hbo", "sa"})
# The share of letters that the main script of a text has, and of kana in Japanese.
_MAIN_SHARE, _KANA_SHARE = 0.7, 0.1
_NOT_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\S{1,64}(?:://|@)\S+", re.DOTALL)

Rank = Callable[[str], Sequence[tuple[str, float]]]


class LanguageVerdict(NamedTuple):
    """Whether a text is in the language (None if it cannot be told), the language that it reads as, and why."""

    is_match: bool | None
    language: str | None
    reason: str = ""
    method: str = "py3langid"


class _Languages(NamedTuple):
    names: dict[str, str]
    scripts: dict[str, tuple[str, ...]]
    relatives: tuple[frozenset[str], ...]
    varieties: dict[str, tuple[str, ...]]


@functools.cache
def _load_languages() -> _Languages:
    data = load_data("language_codes.yaml")
    scripts = {script: tuple(codes.split()) for script, codes in data["scripts"].items()}
    groups = tuple(frozenset(group.split()) for group in data["relatives"])
    varieties = {code: tuple(codes.split()) for code, codes in data["varieties"].items()}
    return _Languages(data["names"], scripts, groups, varieties)


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
        reason = "" if code in candidates else f"it is written in {_name_script(script)}"
        return LanguageVerdict(code in candidates, language, reason, "script")
    verdict = _compare(prose, code, rank)
    least = _MIN_LETTERS if verdict.is_match else _MIN_LETTERS_TO_FAIL
    if len(letters) < least and script != "CJK":
        return LanguageVerdict(None, None, f"{len(letters)} letters are too few to tell its language")
    words = re.findall(r"[^\W\d_]+", prose)
    if script == "LATIN" and not any(map(str.islower, words)) and not prose.isupper():
        return LanguageVerdict(None, None, "it has only names")
    return verdict


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
