"""Find words and phrases in a text as a reader sees them, and tell certain matches from doubtful ones.

Typography does not matter: curly apostrophes and quotation marks, typographic hyphens, ligatures, full-width letters,
soft hyphens and invisible characters. A match is doubtful where the characters do not show whether it is a whole word:
in scripts without spaces, and for Korean words with an ending that is not a known particle.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from proctor.evaluators.language import get_script, is_unspaced
from proctor.evaluators.plain_values import normalize_unicode
from proctor.evaluators.tokenizer import fold_case

# The vowel signs and accents of many scripts are not letters for \w.
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0966-\u0dff\u135d-\u135f\u200c\u200d"
)
_WORD = re.compile(rf"[^\W\d_](?:[\w{MARKS}]|['’\-](?=\w))*")
# Characters that are written in several ways, and those that cannot be seen: soft hyphens, zero-width spaces, joiners
# between letters, directional marks.
_TYPOGRAPHY = str.maketrans(dict.fromkeys("‘’ʼ＇‛", "'") | dict.fromkeys("“”„‟", '"') | dict.fromkeys("‐‑", "-"))
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]"
    r"|(?<=\w)[\u200c\u200d]+(?=\w)"
)
_LETTER_FORMS = ("<wide>", "<narrow>", "<initial>", "<medial>", "<final>", "<isolated>")
# "can" is not in "can't", and "C" is not in "C++", "C#" or "C+", but it is in "C+D".
_START = rf"(?<![\w{MARKS}])"
_END = rf"(?![\w{MARKS}])(?!'t\b|\+\+|#|\+(?!\w))"
# "5" is not in "3.5", "1,005", ".5" or "-5", but it is in "3-5".
_SIGN_START = r"(?<![\w)])"
_NUMBER_START, _NUMBER_END = rf"(?<!\d[.,])(?<!{_SIGN_START}[-−–])(?<!(?<![\w.])\.)", r"(?![.,]\d)"
# A capital I is the capital of two letters in Turkish, so it stays a capital in a text.
_FORMS_OF_I = {"I": "[iıI]", "i": "[iI]", "ı": "[ıI]"}
# Chinese words that are one character and stand alone, and Japanese particles, which follow a word.
_CHINESE_WORDS = frozenset(
    "的了在是和与與及或也都就很我你他她它这這那有被把对對从從到去来來吗嗎呢吧啊不没沒最更还還又再只而但跟让讓给給向会會能要想说說"
)
_PARTICLES = frozenset("をはがにでとものへやか")
# After a single Chinese character, other hiragana may be the ending of a verb.
_PARTICLES_ONLY = frozenset("をはのへ")
_KANJI = frozenset({"CJK", "IDEOGRAPHIC"})
_KOREAN_PARTICLES = re.compile(
    "들?(?:은|는|이|가|을|를|의|와|과|도|만|로|나|랑|께|야|아|에|(?:으?로|에|에게|에서|께서|까지|부터|만|와|과|한테)(?:는|도|만|의|서)?"
    "|에서|에게서?|께서|한테서?|까지|부터|보다|처럼|마다|조차|밖에|으?로써|이?라[는고]?|이?란|이?[며고나랑]|이?다|이?던"
    "|입니다|입니까|이에요|예요|이었[다고으]?|였[다고으]?|인|이지만|지만)?(?![가-힣])"
)
# An inflected form keeps all but the last letters of a long word, and adds few.
_MIN_LENGTH, _LONG = 4, 7
_MAX_ADDED, _MAX_ADDED_TO_LONG = 3, 5


class Matches(NamedTuple):
    """The number of certain matches, and the contexts of doubtful ones."""

    certain: int
    doubtful: list[str]


class FoldedText:
    """A text to search, in the forms that the search needs."""

    def __init__(self, text: str, case_sensitive: bool) -> None:
        self.written = normalize_unicode(text)
        self.case_sensitive = case_sensitive
        self.folded = fold_typography(self.written, case_sensitive)

    @functools.cached_property
    def words(self) -> dict[str, str]:
        """The words as they are written, by their form without case and accents."""
        readable = _INVISIBLE.sub("", self.written)
        return {fold_case(word.translate(_TYPOGRAPHY)): word for word in _WORD.findall(readable)}

    def find(self, word: str, whole_words: bool) -> Matches:
        """Return the matches of a word or phrase."""
        # Marks without a letter or digit are searched as they are written.
        text = self.folded if _has_letters(word) else self.written
        pattern = compile_word(word, whole_words, self.case_sensitive)
        count, doubtful = 0, list[str]()
        for match in pattern.finditer(text):
            doubt = _find_doubt(text, match) if whole_words else ""
            count += not doubt
            doubtful += [doubt] if doubt else []
        return Matches(count, doubtful)

    def find_similar_word(self, word: str) -> str:
        """Return a word of the text that may be a form of the word, or another spelling; "" if there is none."""
        if not word[-1:].isalpha() or is_unspaced(word[-1]) or get_script(word[-1]) == "HANGUL":
            return ""
        folded = fold_case(_INVISIBLE.sub("", normalize_unicode(word)).translate(_TYPOGRAPHY))
        if len(parts := folded.replace("-", " ").split()) > 1:
            # The same phrase with other hyphens; the text keeps its length.
            pattern = compile_word(" ".join(parts), True, self.case_sensitive)
            if match := pattern.search(self.folded.replace("-", " ")):
                return self.folded[match.start() : match.end()]
        *others, last = folded.split()
        if any(other not in self.words for other in others):
            return ""
        own_form = fold_typography(word, self.case_sensitive)
        for form, written in self.words.items():
            if _is_form(form, last) and fold_typography(written, self.case_sensitive) != own_form:
                return written
        return ""

    def find_longer_word(self, word: str) -> str:
        """Return a word of the text that begins with the word; "" if there is none."""
        pattern = compile_word(word, True, self.case_sensitive).pattern
        match = re.search(pattern.removesuffix(_END) + r"\w+", self.folded) if pattern.endswith(_END) else None
        return self.words.get(fold_case(match[0]), match[0]) if match and word[-1].isalpha() else ""


def fold_typography(text: str, case_sensitive: bool) -> str:
    """Return a text without differences of typography, and in lower case unless case matters."""
    text = normalize_unicode(text)
    if not text.isascii():
        text = "".join(map(_unify_letter, _INVISIBLE.sub("", text).translate(_TYPOGRAPHY)))
    if case_sensitive:
        return text
    # Unicode folds ß to ss; a capital I stays, and İ is i.
    return normalize_unicode("I".join(part.replace("İ", "i").casefold() for part in text.split("I")))


def compile_word(word: str, whole_words: bool, case_sensitive: bool) -> re.Pattern[str]:
    """Return the pattern that finds a word or phrase in a folded text."""
    if _has_letters(word):
        word = fold_typography(word, case_sensitive)
    pattern = r"\s+".join(map(re.escape, word.split())) if word.split() else re.escape(word)
    if not case_sensitive:
        pattern = re.sub("[iıI]", lambda letter: _FORMS_OF_I[letter[0]], pattern)
    if whole_words and word:
        # Korean particles are attached to words.
        has_end = _is_word(word[-1]) and get_script(word[-1]) != "HANGUL"
        start = _START * _is_word(word[0]) + _NUMBER_START * word[0].isdigit()
        start += _SIGN_START * (word[0] in "-−" and word[1:2].isdigit())
        pattern = start + pattern + _NUMBER_END * word[-1].isdigit() + _END * has_end
    return re.compile(pattern)


def _has_letters(word: str) -> bool:
    return any(map(str.isalnum, word))


@functools.lru_cache(maxsize=4096)
def _unify_letter(letter: str) -> str:
    """Return the letters of a ligature, and the usual form of a full-width letter."""
    kind = unicodedata.decomposition(letter).partition(" ")[0]
    is_ligature = kind == "<compat>" and letter.isalpha()
    return unicodedata.normalize("NFKC", letter) if is_ligature or kind in _LETTER_FORMS else letter


def _is_word(character: str) -> bool:
    return (character.isalnum() or character == "_") and not is_unspaced(character)


def _is_form(form: str, word: str) -> bool:
    """Return True if a word may be an inflected form of another; both are in lower case and without accents."""
    if form == word or (form.startswith(word) and len(word) > 2 and len(form) - len(word) <= _MAX_ADDED):
        return True
    if len(word) < _MIN_LENGTH or form[:3] != word[:3]:
        return False
    is_long = len(word) >= _LONG
    shared = next((i for i, (a, b) in enumerate(zip(form, word, strict=False)) if a != b), min(len(form), len(word)))
    added = len(form) - shared
    return len(word) - shared <= 1 + is_long and added <= (_MAX_ADDED_TO_LONG if is_long else _MAX_ADDED)


def _find_doubt(text: str, match: re.Match[str]) -> str:
    """Return the characters around a match that may be a part of another word; "" if it is a word."""
    if not match[0]:
        return ""
    if get_script(match[0][-1]) == "HANGUL":
        ending = _KOREAN_PARTICLES.match(text, match.end())
        return "" if ending else "".join(_read_run(text, match))
    if not (is_unspaced(match[0][0]) or is_unspaced(match[0][-1])):
        return ""
    before, after = text[: match.start()][-1:], text[match.end() : match.end() + 1]
    is_single = len(match[0]) == 1
    if _joins(before, match[0][0], is_single, is_after=False) or _joins(after, match[0][-1], is_single, is_after=True):
        return text[max(0, match.start() - 1) : match.end() + 1].strip()
    return ""


def _joins(neighbor: str, edge: str, is_single: bool, *, is_after: bool) -> bool:
    """Return True if a neighbor may belong to the same word as the first or last character of a match."""
    if not neighbor or not (neighbor.isalpha() or unicodedata.category(neighbor)[0] == "M"):
        return False
    if neighbor in _CHINESE_WORDS and get_script(edge) in _KANJI and not is_single:
        return False
    if is_after and get_script(neighbor) == "HIRAGANA":
        return neighbor not in (_PARTICLES_ONLY if is_single else _PARTICLES)
    scripts = {"KANJI" if script in _KANJI else script for script in map(get_script, (neighbor, edge))}
    return len(scripts) == 1


def _read_run(text: str, match: re.Match[str]) -> Iterator[str]:
    yield match[0]
    for character in text[match.end() : match.end() + 12]:
        if not character.isalnum():
            return
        yield character
