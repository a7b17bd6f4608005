"""Check countable properties of a text without a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from proctor.errors import EvaluatorError, MissingExtra
from proctor.evaluators import tokenizer
from proctor.evaluators.bounded_regex import find_all
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.identify_language import check_language, suggest_code
from proctor.evaluators.language import explain_foreign, find_unknown_word, get_script, is_unspaced
from proctor.evaluators.plain_values import normalize_unicode, score_other_than_text
from proctor.evaluators.score_conversion import preview
from proctor.records.score import Score

Unit = Literal[
    "characters", "words", "capital_words", "sentences", "lines", "paragraphs", "bullets", "numbered_items",
    "headings", "highlights", "placeholders", "code_blocks", "links",
]  # fmt: skip
Case = Literal["lower", "upper", "title"]

# A word may contain apostrophes, hyphens, points and commas ("don't", "3.14"), but not at the start or end.
# The vowel signs and accents of many scripts are no letters for \w.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0966-\u0dff\u135d-\u135f\u200c\u200d"
)
_WORD = re.compile(rf"[\w{_MARKS}]+(?:['’.,\-‑][\w{_MARKS}]+)*")
_FENCED = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n(.*?)(?:^ {0,3}\1[^\n]*$|\Z)", re.M | re.S)
_BULLET = re.compile(r"^[ \t]*(?:[-+•–](?=[ \t]*[^\s\-])|\*(?=[ \t]*[^\s*]))", re.M)
_NUMBERED = re.compile(r"^[ \t]*\d{1,9}[.)](?=[ \t]+\S)", re.M)
# A heading starts with `#` or is underlined; list items and table rows cannot be underlined.
_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+\S"
    r"|^(?![ \t]*(?:[-+*•>#|]|\d{1,9}[.)]))(?=[ \t]*\S)[^\n]+\n {0,3}(?:=+|-+)[ \t]*$",
    re.M,
)
# An asterisk before a space is a bullet, not a highlight.
_HIGHLIGHT = re.compile(
    r"\*{1,3}(?=[^\s*])[^\n*]*(?<=[^\s*])\*{1,3}"
    r"|(?<!\w)_{1,3}(?=[^\s_])[^\n_]*(?<=[^\s_])_{1,3}(?!\w)"
)
_PLACEHOLDER = re.compile(r"\[[^\[\]\n]+\](?![(\[])")
_LINK = re.compile(r"\[[^\[\]\n]+\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)|https?://[^\s<>()\[\]]+")
# The signs that end sentences only in other scripts (Sentence_Terminal in Unicode), and the Greek question mark.
_FOREIGN_END = re.compile(
    "(?<=[\u0589\u061d-\u061f\u06d4\u0700-\u0702\u0964\u0965\u104a\u104b\u1362\u1367\u1368\u166e\u1735\u1736\u1803\u1809"
    "\u1944\u1945\u3002\uff01\uff0e\uff1f\uff61])|(?<=[\u0370-\u03ff\u1f00-\u1fff];)\\s+"
)
_PARAGRAPH_GAP = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_WORD_CHARACTER = re.compile(r"\w")
_WORD_END = rf"(?![\w{_MARKS}])"
_SPACED_UNITS = ("words", "capital_words", "sentences")
_QUOTES = "\"'“”‘’«»"


def split_words(text: str) -> list[str]:
    """Return the words of a text; a passage in a script without spaces counts as one word."""
    return _WORD.findall(text)


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text, split by a model of English and at the signs of other scripts.

    Each list item is a sentence.
    """
    parts = (part for sentence in tokenizer.split_sentences(text) for part in _FOREIGN_END.split(sentence))
    return [part for part in parts if _WORD_CHARACTER.search(part)]


def split_paragraphs(text: str, separator: str | None = None) -> list[str]:
    """Return the paragraphs of a text, split at empty lines or at separators."""
    blocks = _PARAGRAPH_GAP.split(text) if separator is None else text.split(separator)
    return [block.strip() for block in blocks if block.strip()]


def _find_outside_code(pattern: re.Pattern[str]) -> Callable[[str], Iterable[Any]]:
    return lambda text: pattern.finditer(_FENCED.sub("\n", text))


_FINDERS: dict[str, Callable[[str], Iterable[Any]]] = {
    "characters": iter,
    "words": split_words,
    "capital_words": lambda text: [word for word in split_words(text) if word.isupper()],
    "sentences": list_sentences,
    "lines": lambda text: [line for line in text.splitlines() if line.strip()],
    "paragraphs": split_paragraphs,
    "bullets": _find_outside_code(_BULLET),
    "numbered_items": _find_outside_code(_NUMBERED),
    "headings": _find_outside_code(_HEADING),
    "highlights": _find_outside_code(_HIGHLIGHT),
    "placeholders": _find_outside_code(_PLACEHOLDER),
    "code_blocks": _FENCED.finditer,
    "links": _find_outside_code(_LINK),
}


class _CountLimits:
    def __init__(self, at_least: int | None, at_most: int | None, exactly: int | None, where: str) -> None:
        limits = [limit for limit in (at_least, at_most, exactly) if limit is not None]
        if not limits or (exactly is not None and len(limits) > 1) or min(limits) < 0:
            raise EvaluatorError(
                "the required count is missing or negative, or `exactly` is combined with another limit",
                where=where,
                fix="pass at_least=2, at_most=5, both, or exactly=3",
            )
        self.low = exactly if exactly is not None else at_least or 0
        self.high = exactly if exactly is not None else at_most
        if self.high is not None and self.low > self.high:
            what = f"at_least={self.low} is above at_most={self.high}"
            raise EvaluatorError(what, where=where, fix="swap the two limits")

    @classmethod
    def from_options(cls, options: Mapping[str, Any], where: str) -> _CountLimits:
        return cls(options.get("at_least"), options.get("at_most"), options.get("exactly"), where)

    def score(self, count: int, unit: str, suffix: str = "") -> Score:
        counted = _format_count(count, unit) + suffix
        details = {"method": "count", "count": count}
        if count < self.low:
            return Score(count / self.low, False, f"{counted}, {self}", details)
        if self.high is not None and count > self.high:
            return Score(self.high / count, False, f"{counted}, {self}", details)
        return Score(1.0, True, counted, details)

    def __str__(self) -> str:
        if self.low == self.high:
            return f"not {self.low}"
        limits = [f"at least {self.low}"] * (self.low > 0)
        limits += [f"at most {self.high}"] * (self.high is not None)
        return "required: " + " and ".join(limits)


def _check_text_count(options: Mapping[str, Any]) -> None:
    _CountLimits.from_options(options, "text_count")
    if options.get("separator") is not None and options.get("of") != "paragraphs":
        what = "separator applies only to paragraphs"
        raise EvaluatorError(what, where="text_count", fix='add of="paragraphs", or leave out separator')


@evaluator(category="rules", check=_check_text_count)
def text_count(
    output: Any,
    *,
    of: Unit = "words",
    at_least: int | None = None,
    at_most: int | None = None,
    exactly: int | None = None,
    separator: str | None = None,
    distinct: bool = False,
) -> Score:
    """Passes if the output has the required number of words, sentences, paragraphs or bullets.

    `of` is one of characters, words, capital_words (all in capitals), sentences, lines (not empty), paragraphs,
    bullets, numbered_items, headings, highlights (*text* or **text**), placeholders ([text]), code_blocks and links.
    Paragraphs are separated by empty lines or by `separator`; with `distinct`, equal units count once. The value shows
    how close the count is to the limits. Characters are Unicode code points: é is one, an emoji may be several.
    Sentences are split by a model of English and at the signs of other scripts (। ؟ ።), words at spaces and
    punctuation; for these, texts in scripts without spaces (Chinese, Japanese, Thai) are skipped.

    >>> text_count("One two three.", at_most=5).passed
    True
    >>> text_count("- red\\n- green", of="bullets", exactly=3).reason
    '2 bullets, not 3'
    """
    if not isinstance(output, str):
        return score_other_than_text(output, "a rule")
    limits = _CountLimits(at_least, at_most, exactly, "text_count")
    output = normalize_unicode(output)
    if of in _SPACED_UNITS and is_unspaced(output):
        return Score.skipped(f"it is written without spaces: its {of} cannot be counted")
    matches = split_paragraphs(output, separator) if of == "paragraphs" else _FINDERS[of](output)
    units = [match.group() if isinstance(match, re.Match) else match for match in matches]
    count = len(set(units)) if distinct else len(units)
    return limits.score(count, f"{'different ' * distinct}{of.replace('_', ' ').removesuffix('s')}")


def _check_occurrences(options: Mapping[str, Any]) -> None:
    _CountLimits.from_options(options, "occurrences")
    text, pattern = options.get("text"), options.get("pattern")
    if (text is None) == (pattern is None) or text == "":
        what = "either text or pattern is required, and not both"
        raise EvaluatorError(what, where="occurrences", fix='write text="war", or pattern="wars?"')
    _compile(text, pattern, True, True)


@evaluator(category="rules", check=_check_occurrences)
def occurrences(
    output: Any,
    *,
    text: str | None = None,
    pattern: str | None = None,
    at_least: int | None = None,
    at_most: int | None = None,
    exactly: int | None = None,
    whole_words: bool = True,
    case_sensitive: bool = False,
) -> Score:
    """Passes if a string, or a regular expression, occurs the required number of times.

    `whole_words` finds the string only as whole words ("art" is not in "start"); an end of the text
    that is a punctuation mark needs no word boundary. An output in another language than English that has longer words
    which may be forms of the text is skipped, as in `keywords`. A pattern is a Python regular expression, for which
    only `case_sensitive` matters; more than two seconds of CPU time is an error.

    >>> occurrences("War and peace, war again, warfare", text="war", exactly=2).passed
    True
    >>> occurrences("<<Ode to Joy>> Freude!", pattern="<<[^\\\\n]+>>", at_least=1).passed
    True
    """
    if not isinstance(output, str):
        return score_other_than_text(output, "a rule")
    limits = _CountLimits(at_least, at_most, exactly, "occurrences")
    compiled = _compile(text, pattern, whole_words, case_sensitive)
    try:
        matches = find_all(compiled, output) if text is None else compiled.findall(normalize_unicode(output))
    except EvaluatorError as error:
        return Score.error(error.what, {"method": "count"})
    if text is not None and whole_words and (forms := _find_forms(normalize_unicode(output), [text], case_sensitive)):
        return _skip_for_forms(forms, {"method": "count", "count": len(matches)})
    return limits.score(len(matches), "time", f" {preview(pattern if text is None else text)}")


def _check_keywords(options: Mapping[str, Any]) -> None:
    keywords = [*(options.get("include") or ()), *(options.get("exclude") or ())]
    if not keywords or not all(isinstance(word, str) and word for word in keywords):
        raise EvaluatorError("no words are given", where="keywords", fix='write include=["rain", "sun"]')


@evaluator(category="rules", pure=True, check=_check_keywords)
def keywords(
    output: Any,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    need: Literal["all", "any"] = "all",
    whole_words: bool = True,
    case_sensitive: bool = False,
) -> Score:
    """Passes if the output has the words to include and none of the words to exclude.

    The output must have all words of `include`, or with `need="any"` one of them. The value is the share of the
    requirements that are met. Words may be phrases or symbols. `whole_words` finds them only as whole words ("ass" is
    not in "assistant"); a Korean word may have a particle after it. If an output in another language than English has
    only a longer word that begins with the one to find, which may be a form of it ("talo" and "Talossa"), the score is
    skipped.

    >>> keywords("Rain in Spain", include=["rain"], exclude=["sun"]).passed
    True
    >>> keywords("Sunny Spain", include=["rain", "spain"]).reason
    "missing: 'rain'"
    """
    if not isinstance(output, str):
        return score_other_than_text(output, "a rule")
    text = normalize_unicode(output)

    def occurs(word: str) -> bool:
        return _compile(word, None, whole_words, case_sensitive).search(text) is not None

    missing = [word for word in include if not occurs(word)]
    unwanted = [word for word in exclude if occurs(word)]
    details: dict[str, Any] = {"method": "search", "missing": missing, "unwanted": unwanted}
    requirements = len(include) + len(exclude)
    if need == "any" and len(missing) < len(include):
        missing = []
    forms = _find_forms(text, [*missing, *exclude], case_sensitive) if whole_words and not unwanted else {}
    may_be_met = any(map(forms.get, missing)) if need == "any" else all(map(forms.get, missing))
    if forms and (may_be_met or not missing):
        return _skip_for_forms(forms, details)
    if need == "any" and include:
        requirements = 1 + len(exclude)
        missing = [" or ".join(include)] if missing else []
    reasons = ["missing: " + ", ".join(map(preview, missing))] * bool(missing)
    reasons += ["unwanted: " + ", ".join(map(preview, unwanted))] * bool(unwanted)
    details["missing"] = missing
    unmet = len(missing) + len(unwanted)
    return Score(1.0 - unmet / requirements, not unmet, "; ".join(reasons), details)


def _skip_for_forms(forms: Mapping[str, str], details: dict[str, Any]) -> Score:
    pairs = ", ".join(f"{form!r} may be a form of {word!r}" for word, form in forms.items())
    return Score.skipped(f"{pairs}; to find parts of words, set whole_words=False", details)


def _find_forms(text: str, words: Iterable[str], case_sensitive: bool) -> dict[str, str]:
    """Return the longer words of a text that is not English which begin with one of the words."""
    forms = {}
    for word in words:
        pattern = _compile(word, None, True, case_sensitive).pattern
        # Without spaces between words, or with particles attached, the word itself is found in longer ones.
        if word[-1].isalpha() and pattern.endswith(_WORD_END):
            pattern = rf"{pattern.removesuffix(_WORD_END)}\w+"
            if match := re.search(pattern, text, 0 if case_sensitive else re.IGNORECASE):
                forms[word] = match[0]
    # The language of a text takes longer to tell than its words.
    return forms if forms and (explain_foreign(text) or find_unknown_word(text)) else {}


@evaluator(category="rules", pure=True, factory=True, needs=())
def starts_with(
    phrases: str | Sequence[str],
    paragraph: int | None = None,
    separator: str | None = None,
    whole_words: bool = True,
    case_sensitive: bool = False,
) -> Callable[[Any], Score]:
    """Passes if the output starts with one of the phrases, ignoring leading whitespace.

    `paragraph` selects a paragraph instead of the whole output (1 is the first, -1 the last); paragraphs are separated
    by empty lines or by `separator`. Quotation marks before a phrase are ignored, unless the phrase starts with one.

    >>> starts_with(["Dear", "Hello"])("Dear Sir, ...").passed
    True
    >>> starts_with("second", paragraph=2)("First.\\n\\nSecond.").passed
    True
    """
    return _match_edge("start", starts_with, dict(locals()))


@evaluator(category="rules", pure=True, factory=True, needs=())
def ends_with(
    phrases: str | Sequence[str],
    paragraph: int | None = None,
    separator: str | None = None,
    whole_words: bool = True,
    case_sensitive: bool = False,
) -> Callable[[Any], Score]:
    """Passes if the output ends with one of the phrases, ignoring trailing whitespace.

    The options are the same as for `starts_with`.

    >>> ends_with("Kind regards")("… \\n\\nKind regards\\n").passed
    True
    """
    return _match_edge("end", ends_with, dict(locals()))


@evaluator(category="rules", pure=True)
def letter_case(output: Any, *, case: Case = "lower") -> Score:
    """Passes if all letters of the output are lower case, upper case, or every word is capitalized.

    The value is the fraction of letters (of words, for "title") in that case. Letters of scripts
    without case do not count.

    >>> letter_case("all is quiet", case="lower").passed
    True
    >>> letter_case("LOUD and clear", case="upper").reason
    "8 of 12 letters are not capitals, the first in 'and'"
    """
    if not isinstance(output, str):
        return score_other_than_text(output, "a rule")
    if case == "title":
        units = [word for word in split_words(output) if word[0].isupper() or word[0].islower()]
        wrong = [word for word in units if word[0].islower()]
        unit, mistake = "word", "not capitalized"
    else:
        units = [letter for letter in output if letter.isupper() or letter.islower()]
        wrong = [letter for letter in units if letter.isupper() == (case == "lower")]
        unit, mistake = "letter", "capitals" if case == "lower" else "not capitals"
    details = {"method": "unicode"}
    if not units:
        return Score(0.0, False, "it has no letters with upper and lower case", details)
    if not wrong:
        return Score(1.0, True, "", details)
    first = preview(next(word for word in split_words(output) if wrong[0] in word))
    verb, mistake = ("is", mistake.removesuffix("s")) if len(wrong) == 1 else ("are", mistake)
    reason = f"{len(wrong)} of {_format_count(len(units), unit)} {verb} {mistake}, the first in {first}"
    return Score(1.0 - len(wrong) / len(units), False, reason, details)


@evaluator(category="rules", factory=True, needs=())
def output_language(language: str) -> Callable[[Any], Score]:
    """Passes if the output is written in a language, given by its ISO 639-1 code ("de").

    It uses the script of the text where that decides (Korean, Thai, Greek), and otherwise py3langid
    (`pip install "proctor[language]"`), a byte classifier for more than a hundred languages, which names one language
    per text. The score is skipped if that is not reliable: for fewer than 12 letters (20 to fail), if another language
    is about as likely (Danish and Norwegian, Croatian and Serbian), and for mixed scripts, names, numbers and code.
    """
    from proctor.core import optional as extras

    try:
        classifier = extras.require("py3langid", extra="language", why="detecting languages")
    except MissingExtra as error:
        raise EvaluatorError(error.what, where="output_language", fix=error.fix) from None
    code = str(language).lower()
    codes = sorted(str(label) for label, _ in classifier.rank(""))
    if code not in codes:
        what, fix = f"unknown language {language!r}", suggest_code(code, codes)
        raise EvaluatorError(what, where="output_language", fix=fix)

    def evaluate(output: Any) -> Score:
        if not isinstance(output, str):
            return score_other_than_text(output, "a rule")
        verdict = check_language(output, code, classifier.rank)
        details = {"method": verdict.method} | ({"language": verdict.language} if verdict.language else {})
        if verdict.is_match is None:
            return Score.skipped(verdict.reason, details)
        return Score(float(verdict.is_match), verdict.is_match, verdict.reason, details)

    return tag_evaluator(evaluate, factory=output_language, language=code)


def _match_edge(
    side: Literal["start", "end"], factory: Callable[..., Any], options: dict[str, Any]
) -> Callable[[Any], Score]:
    phrases, paragraph, where = options["phrases"], options["paragraph"], f"{side}s_with"
    phrase_list = [phrases] if isinstance(phrases, str) else list(phrases)
    if not phrase_list or not all(isinstance(phrase, str) and phrase.strip() for phrase in phrase_list):
        what = f"phrases must be one or more strings, got {phrases!r}"
        raise EvaluatorError(what, where=where, fix='write phrases=["Dear", "Hello"]')
    if paragraph == 0:
        raise EvaluatorError("there is no paragraph 0", where=where, fix="write 1 for the first or -1 for the last")
    if options["separator"] is not None and paragraph is None:
        what = "separator applies only to a paragraph"
        raise EvaluatorError(what, where=where, fix="add paragraph=1, or leave out separator")
    finders = [_make_edge_finder(normalize_unicode(phrase.strip()), side, options) for phrase in phrase_list]

    def evaluate(output: Any) -> Score:
        if not isinstance(output, str):
            return score_other_than_text(output, "a rule")
        text, details = normalize_unicode(output), {"method": "search"}
        if paragraph is not None:
            blocks = split_paragraphs(text, options["separator"])
            if abs(paragraph) > len(blocks):
                count = _format_count(len(blocks), "paragraph")
                return Score(0.0, False, f"it has {count}, no paragraph {paragraph}", details)
            text = blocks[paragraph - 1 if paragraph > 0 else paragraph]
        if any(find(text) is not None for find in finders):
            return Score(1.0, True, "", details)
        edge = text.strip()[:40] if side == "start" else text.strip()[-40:]
        return Score(0.0, False, f"it {side}s with {preview(edge)}", details)

    return tag_evaluator(evaluate, factory=factory, **options)


def _make_edge_finder(phrase: str, side: str, options: Mapping[str, Any]) -> Callable[[str], re.Match[str] | None]:
    case_sensitive = options["case_sensitive"]
    pattern = _compile(phrase, None, options["whole_words"], case_sensitive).pattern
    flags = 0 if case_sensitive else re.IGNORECASE
    quotes = f"[{_QUOTES}]*" if phrase[0 if side == "start" else -1] not in _QUOTES else ""
    if side == "start":
        return re.compile(rf"\s*{quotes}{pattern}", flags).match
    return re.compile(rf"{pattern}{quotes}\s*\Z", flags).search


def _compile(text: str | None, pattern: str | None, whole_words: bool, case_sensitive: bool) -> re.Pattern[str]:
    if text is not None:
        text = normalize_unicode(text)
        pattern = r"\s+".join(map(re.escape, text.split())) if text.split() else re.escape(text)
        if whole_words:
            # Korean particles are attached to words.
            has_end = _is_word(text[-1]) and get_script(text[-1]) != "HANGUL"
            pattern = r"(?<!\w)" * _is_word(text[0]) + pattern + _WORD_END * has_end
    try:
        return re.compile(pattern or "", 0 if case_sensitive else re.IGNORECASE)
    except re.error as error:
        what = f"{pattern!r} is not a regular expression: {error}"
        raise EvaluatorError(what, where="occurrences", fix="correct the pattern, or pass text instead") from None


def _is_word(character: str) -> bool:
    return (character.isalnum() or character == "_") and not is_unspaced(character)


def _format_count(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
