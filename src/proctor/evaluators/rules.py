"""Check countable properties of a text without a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from proctor.errors import EvaluatorError, MissingExtra, Problem, join_location
from proctor.evaluators.bounded_regex import find_all
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.identify_language import check_language, read_tag
from proctor.evaluators.language import explain_foreign, find_unknown_word, is_unspaced
from proctor.evaluators.plain_values import normalize_unicode, score_other_than_text
from proctor.evaluators.score_conversion import preview
from proctor.evaluators.sentences import find_sentences, list_sentences
from proctor.evaluators.word_search import MARKS, FoldedText, compile_word
from proctor.records.score import Score

Unit = Literal[
    "characters", "words", "capital_words", "sentences", "lines", "paragraphs", "bullets", "numbered_items",
    "headings", "highlights", "placeholders", "code_blocks", "links",
]  # fmt: skip
Case = Literal["lower", "upper", "title"]

# A word may contain apostrophes, hyphens, points and commas ("don't", "3.14"), but not at the start or end.
_WORD = re.compile(rf"[\w{MARKS}]+(?:['’.,\-‑][\w{MARKS}]+)*")
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
_PARAGRAPH_GAP = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SPACED_UNITS = ("words", "capital_words", "sentences")
_QUOTES = "\"'“”‘’«»"


def split_words(text: str) -> list[str]:
    """Return the words of a text; a passage in a script without spaces counts as one word."""
    return _WORD.findall(text)


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
    def __init__(self, at_least: int | None, at_most: int | None, exactly: int | None) -> None:
        self.low = exactly if exactly is not None else at_least or 0
        self.high = exactly if exactly is not None else at_most

    @staticmethod
    def find_problems(options: Mapping[str, Any]) -> list[Problem]:
        """Return what is wrong with the limits of a count."""
        limits = {name: options[name] for name in ("at_least", "at_most", "exactly") if options.get(name) is not None}
        if not limits:
            what = "the required count is missing; pass at_least=2, at_most=5, both, or exactly=3"
            return [Problem("", what)]
        problems = [Problem(name, f"must be 0 or more, got {value}") for name, value in limits.items() if value < 0]
        if "exactly" in limits and len(limits) > 1:
            names = " and ".join(name for name in limits if name != "exactly")
            problems.append(Problem("", f"exactly cannot be combined with {names}; leave out one of them"))
        elif len(limits) == 2 and limits["at_least"] > limits["at_most"]:
            what = f"at_least={limits['at_least']} is above at_most={limits['at_most']}; swap the two limits"
            problems.append(Problem("", what))
        return problems

    def is_decided(self, least: int, most: int) -> bool:
        """Return True if every count in a range gets the same verdict."""
        inside = least >= self.low and (self.high is None or most <= self.high)
        return inside or most < self.low or (self.high is not None and least > self.high)

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


def _pack_limits(at_least: int | None, at_most: int | None, exactly: int | None) -> dict[str, int | None]:
    return {"at_least": at_least, "at_most": at_most, "exactly": exactly}


def _check_text_count(options: Mapping[str, Any]) -> None:
    problems = _CountLimits.find_problems(options)
    if options.get("separator") is not None and options.get("of") != "paragraphs":
        what = 'separator applies only to paragraphs; add of="paragraphs", or leave out separator'
        problems.append(Problem("", what))
    _raise_problems(problems, "text_count", 'correct its parameters, as in of="words", at_most=5')


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
    Sentences are split by a model of English and at the signs of other scripts (। ؟ ።); in other languages
    abbreviations and ordinal numbers do not end them ("z.B. am 3. Mai"), and the score is skipped if it depends on a
    point that may or may not ("Der 1. Platz"). Words are split at spaces and punctuation. Texts in scripts without
    spaces (Chinese, Japanese, Thai) have no countable words and sentences, and are skipped.

    >>> text_count("One two three.", at_most=5).passed
    True
    >>> text_count("- red\\n- green", of="bullets", exactly=3).reason
    '2 bullets, not 3'
    """
    _check_text_count({"of": of, "separator": separator, **_pack_limits(at_least, at_most, exactly)})
    if not isinstance(output, str):
        return score_other_than_text(output, "text_count")
    limits = _CountLimits(at_least, at_most, exactly)
    output = normalize_unicode(output)
    if of in _SPACED_UNITS and is_unspaced(output):
        return Score.skipped(f"it is written without spaces: its {of} cannot be counted")
    if of == "sentences" and not distinct:
        sentences = find_sentences(output)
        if not limits.is_decided(sentences.least, sentences.most):
            reason = f"it has {sentences.least} to {sentences.most} sentences: {sentences.unclear!r} is not clear"
            return Score.skipped(reason, {"method": "count", "count": len(sentences.texts)})
        return limits.score(len(sentences.texts), "sentence")
    matches = split_paragraphs(output, separator) if of == "paragraphs" else _FINDERS[of](output)
    units = [match.group() if isinstance(match, re.Match) else match for match in matches]
    count = len(set(units)) if distinct else len(units)
    return limits.score(count, f"{'different ' * distinct}{of.replace('_', ' ').removesuffix('s')}")


def _check_occurrences(options: Mapping[str, Any]) -> None:
    problems = _CountLimits.find_problems(options)
    text, pattern = options.get("text"), options.get("pattern")
    if text is not None and pattern is not None:
        problems.append(Problem("", f"text={text!r} and pattern={pattern!r} exclude each other; leave out one of them"))
    elif text is None and pattern is None:
        problems.append(Problem("", 'text or pattern is missing; write text="war", or pattern="wars?"'))
    problems += [Problem(name, "must not be empty") for name in ("text", "pattern") if options.get(name) == ""]
    if pattern:
        problems += _find_pattern_problems(pattern)
    _raise_problems(problems, "occurrences", 'correct its parameters, as in text="war", at_least=2')


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
    that is a punctuation mark needs no word boundary. The score is skipped if it depends on possible forms of the text
    or on matches inside longer words, as in `keywords`. A pattern is a Python regular expression, for which
    only `case_sensitive` matters; more than two seconds of CPU time is an error.

    >>> occurrences("War and peace, war again, warfare", text="war", exactly=2).passed
    True
    >>> occurrences("<<Ode to Joy>> Freude!", pattern="<<[^\\\\n]+>>", at_least=1).passed
    True
    """
    _check_occurrences({"text": text, "pattern": pattern, **_pack_limits(at_least, at_most, exactly)})
    if not isinstance(output, str):
        return score_other_than_text(output, "occurrences")
    limits = _CountLimits(at_least, at_most, exactly)
    if text is None:
        try:
            compiled = re.compile(pattern or "", 0 if case_sensitive else re.IGNORECASE)
            return limits.score(len(find_all(compiled, output)), "time", f" {preview(pattern)}")
        except EvaluatorError as error:
            return Score.error(error.what, {"method": "count"})
    folded = FoldedText(output, case_sensitive)
    matches = folded.find(text, whole_words)
    doubts = [_format_doubt(text, context) for context in matches.doubtful]
    if whole_words and (form := _find_form(folded, text)):
        doubts.append(_format_form(text, form))
    # A form may occur more than once.
    most = len(output) if doubts else matches.certain
    if doubts and not limits.is_decided(matches.certain, most):
        return _skip_for_doubts(doubts, {"method": "count", "count": matches.certain})
    return limits.score(matches.certain, "time", f" {preview(text)}")


def _check_keywords(options: Mapping[str, Any]) -> None:
    include, exclude = _list_words(options.get("include")), _list_words(options.get("exclude"))
    problems = [
        Problem(
            name,
            f"must be {'words that are not empty' if isinstance(word, str) else 'str or list of str'}, got {word!r}",
        )
        for name, words in (("include", include), ("exclude", exclude))
        for word in words
        if not isinstance(word, str) or not word.strip()
    ]
    if not include and not exclude:
        problems.append(Problem("", "no words are given"))
    fix = 'write keywords(output, include=["rain", "sun"]), or functools.partial(keywords, include=["rain"])'
    _raise_problems(problems, "keywords", fix)


def _list_words(words: Any) -> list[Any]:
    if isinstance(words, str) or not isinstance(words, Iterable | None):
        return [words]
    return list(words or ())


@evaluator(category="rules", pure=True, check=_check_keywords)
def keywords(
    output: Any,
    *,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    need: Literal["all", "any"] = "all",
    whole_words: bool = True,
    case_sensitive: bool = False,
) -> Score:
    """Passes if the output has the words to include and none of the words to exclude.

    The output must have all words of `include`, or with `need="any"` one of them; a single string is one word. The
    value is the share of the requirements that are met. Words may be phrases or symbols. They are found as whole words
    as written, without their other forms: "ass" is not in "assistant", "cat" not in "cats", "C" not in "C++" or "C#",
    "5" not in "-5" or "3.5". Curly apostrophes, ligatures, soft hyphens and invisible characters make no difference,
    and unless `case_sensitive` neither do capitals (Unicode case folding: "STRASSE" is "Straße").

    The score is skipped if it depends on a word that may be a form of a keyword, in an output that is not English
    ("Москве" for "Москва"), or on a match that may be a part of a longer word, in scripts without spaces ("京都" in
    "東京都"). In English the reason names the similar word. `whole_words=False` finds parts of words. An empty output
    is skipped if there are only words to exclude.

    >>> keywords("Rain in Spain", include=["rain"], exclude=["sun"]).passed
    True
    >>> keywords("Sunny Spain", include=["rain", "spain"]).reason
    "missing: 'rain'"
    >>> keywords("Two cats", include="cat").reason
    "missing: 'cat' ('cats' looks similar)"
    """
    _check_keywords({"include": include, "exclude": exclude})
    if not isinstance(output, str):
        return score_other_than_text(output, "keywords")
    if not output.strip() and not include:
        return Score.skipped("the output is empty: there is nothing to search for the words to exclude")
    search = _KeywordSearch(output, _list_words(include), _list_words(exclude), whole_words, case_sensitive)
    return search.score(need)


class _KeywordSearch:
    def __init__(
        self, output: str, include: list[str], exclude: list[str], whole_words: bool, case_sensitive: bool
    ) -> None:
        self.text = FoldedText(output, case_sensitive)
        self.include, self.exclude, self.whole_words = include, exclude, whole_words
        self.matches = {word: self.text.find(word, whole_words) for word in (*include, *exclude)}
        self.missing = [word for word in include if not self.matches[word].certain]
        self.unwanted = [word for word in exclude if self.matches[word].certain]

    def score(self, need: Literal["all", "any"]) -> Score:
        include, unwanted = self.include, self.unwanted
        details: dict[str, Any] = {"method": "search", "missing": self.missing, "unwanted": unwanted}
        is_any = need == "any" and bool(include)
        missing = [] if is_any and len(self.missing) < len(include) else self.missing
        if self.whole_words and not unwanted:
            doubts = self._find_doubts([*missing, *self.exclude])
            may_be_met = any(map(doubts.get, missing)) if is_any else all(map(doubts.get, missing))
            if doubts and (may_be_met or not missing):
                return _skip_for_doubts(list(doubts.values()), details)
        unmet = len(missing) + len(unwanted)
        requirements = len(include) + len(self.exclude)
        reasons = [self._explain_missing(missing, is_any)] * bool(missing)
        reasons += ["unwanted: " + ", ".join(map(preview, unwanted))] * bool(unwanted)
        details["missing"] = missing
        if is_any:
            requirements = 1 + len(self.exclude)
            unmet = bool(missing) + len(unwanted)
            details["missing"] = [" or ".join(include)] if missing else []
        return Score(1.0 - unmet / requirements, not unmet, "; ".join(reasons), details)

    def _find_doubts(self, words: Iterable[str]) -> dict[str, str]:
        """Return why words may be in the text after all, by word."""
        doubts = {}
        for word in words:
            if contexts := self.matches[word].doubtful:
                doubts[word] = _format_doubt(word, contexts[0])
            elif form := _find_form(self.text, word):
                doubts[word] = _format_form(word, form)
        return doubts

    def _explain_missing(self, missing: Sequence[str], is_any: bool) -> str:
        similar = {word: self.text.find_similar_word(word) for word in missing if self.whole_words}
        similar = {word: form for word, form in similar.items() if form}
        if is_any:
            listed = preview(" or ".join(self.include))
            hints = [f"{form!r} looks similar to {word!r}" for word, form in similar.items()]
            return f"missing: {listed}" + (f" ({', '.join(hints)})" if hints else "")
        items = [preview(word) + (f" ({similar[word]!r} looks similar)" if word in similar else "") for word in missing]
        return "missing: " + ", ".join(items)


def _format_form(word: str, form: str) -> str:
    return f"{form!r} may be a form of {word!r}"


def _format_doubt(word: str, context: str) -> str:
    return f"{word!r} in {context!r} may be a part of another word"


def _skip_for_doubts(doubts: Sequence[str], details: dict[str, Any]) -> Score:
    advice = "name the forms to find, or set whole_words=False to find parts of words"
    return Score.skipped(f"{', '.join(doubts)}; {advice}", details)


def _find_form(text: FoldedText, word: str) -> str:
    """Return a word of a text that is not English which may be a form of the word; "" if there is none."""
    form = text.find_longer_word(word) or text.find_similar_word(word)
    # Identifying the language takes longer than finding words.
    return form if form and (explain_foreign(text.written) or find_unknown_word(text.written)) else ""


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
        return score_other_than_text(output, "letter_case")
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
    """Passes if the output is written in a language, given by its ISO 639 code ("de", "nb").

    A region ("en-US", "pt-BR", "zh-CN") is accepted and not checked, and the reason says so; a script ("zh-Hant") is an
    error.
    It uses the script of the text where that decides (Korean, Thai, Greek), and otherwise py3langid
    (`pip install "proctor[language]"`), a byte classifier for more than a hundred languages, which names one language
    per text. The score is skipped if that is not reliable: for fewer than 12 letters (20 to fail), if another language
    is about as likely (Danish and Norwegian, Croatian and Serbian), and for mixed scripts, names, numbers and code. It
    is also skipped for a text in Latin letters that may be a transcription of a language with another script (Hindi,
    Russian), and for Chinese characters that do not show whether they are Chinese or Japanese.
    """
    from proctor.core import optional as extras

    try:
        classifier = extras.require("py3langid", extra="language", why="detecting languages")
    except MissingExtra as error:
        raise EvaluatorError(error.what, where="output_language", fix=error.fix) from None
    codes = sorted(str(label) for label, _ in classifier.rank("") if label != "zxx")
    code, region = read_tag(str(language), codes)

    def evaluate(output: Any) -> Score:
        if not isinstance(output, str):
            return score_other_than_text(output, "output_language")
        verdict = check_language(output, code, classifier.rank)
        details = {"method": verdict.method} | ({"language": verdict.language} if verdict.language else {})
        if verdict.is_match is None:
            return Score.skipped(verdict.reason, details)
        reason = f"the region {region} is not checked" if region and verdict.is_match else verdict.reason
        return Score(float(verdict.is_match), verdict.is_match, reason, details)

    return tag_evaluator(evaluate, factory=output_language, language=f"{code}-{region}" if region else code)


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
            return score_other_than_text(output, where)
        text, details = normalize_unicode(output), {"method": "search"}
        if paragraph is not None:
            blocks = split_paragraphs(text, options["separator"])
            if abs(paragraph) > len(blocks):
                count = _format_count(len(blocks), "paragraph")
                return Score(0.0, False, f"it has {count}, no paragraph {paragraph}", details)
            text = blocks[paragraph - 1 if paragraph > 0 else paragraph]
        folded = FoldedText(text, options["case_sensitive"])
        if any(find(folded) for find in finders):
            return Score(1.0, True, "", details)
        edge = text.strip()[:40] if side == "start" else text.strip()[-40:]
        return Score(0.0, False, f"it {side}s with {preview(edge)}", details)

    return tag_evaluator(evaluate, factory=factory, **options)


def _make_edge_finder(phrase: str, side: str, options: Mapping[str, Any]) -> Callable[[FoldedText], bool]:
    pattern = compile_word(phrase, options["whole_words"], options["case_sensitive"]).pattern
    quotes = f"[{_QUOTES}]*" if phrase[0 if side == "start" else -1] not in _QUOTES else ""
    pattern = rf"\A\s*{quotes}{pattern}" if side == "start" else rf"{pattern}{quotes}\s*\Z"
    compiled, has_letters = re.compile(pattern), any(map(str.isalnum, phrase))
    return lambda text: compiled.search(text.folded if has_letters else text.written) is not None


def _find_pattern_problems(pattern: str) -> list[Problem]:
    try:
        re.compile(pattern)
    except re.error as error:
        return [Problem("pattern", f"{pattern!r} is not a regular expression: {error}; correct it, or pass text")]
    return []


def _raise_problems(problems: Sequence[Problem], where: str, fix: str) -> None:
    if len(problems) == 1:
        raise EvaluatorError(join_location(*problems[0][:2]), where=where, fix=fix)
    if problems:
        raise EvaluatorError("its parameters are invalid", where=where, fix=fix, problems=problems)


def _format_count(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
