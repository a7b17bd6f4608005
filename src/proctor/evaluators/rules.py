"""Rules: what can be counted or looked up in a text, without a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from proctor.errors import EvaluatorError, MissingExtra
from proctor.evaluators import wording
from proctor.evaluators.bounded_regex import find_all
from proctor.evaluators.language import is_unspaced
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.plain_values import composed
from proctor.evaluators.verdict import shown
from proctor.records.sample import kind_of
from proctor.records.score import Score

Piece = Literal[
    "characters",
    "words",
    "capital_words",
    "sentences",
    "lines",
    "paragraphs",
    "bullets",
    "numbered_items",
    "headings",
    "highlights",
    "placeholders",
    "code_blocks",
    "links",
]

# A word may have apostrophes, hyphens, points and commas inside ("don't", "state-of-the-art",
# "3.14"), not around it.
_WORD = re.compile(r"\w+(?:['’.,\-‑]\w+)*")
_FENCED = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n(.*?)(?:^ {0,3}\1[^\n]*$|\Z)", re.M | re.S)
_BULLET = re.compile(r"^[ \t]*(?:[-+•–](?=[ \t]*[^\s\-])|\*(?=[ \t]*[^\s*]))", re.M)
_NUMBERED = re.compile(r"^[ \t]*\d{1,9}[.)](?=[ \t]+\S)", re.M)
# With signs before it, or underlined; what begins as a list or a table is not underlined.
_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+\S"
    r"|^(?![ \t]*(?:[-+*•>#|]|\d{1,9}[.)]))(?=[ \t]*\S)[^\n]+\n {0,3}(?:=+|-+)[ \t]*$",
    re.M,
)
# Asterisks that begin a bullet open nothing: what they open does not begin with a space.
_HIGHLIGHT = re.compile(
    r"\*{1,3}(?=[^\s*])[^\n*]*(?<=[^\s*])\*{1,3}"
    r"|(?<!\w)_{1,3}(?=[^\s_])[^\n_]*(?<=[^\s_])_{1,3}(?!\w)"
)
_PLACEHOLDER = re.compile(r"\[[^\[\]\n]+\](?![(\[])")
_LINK = re.compile(r"\[[^\[\]\n]+\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)|https?://[^\s<>()\[\]]+")
_PARAGRAPH_GAP = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SENTENCE_HAS = re.compile(r"\w")


def words(text: str) -> list[str]:
    """The words of a text; what is written without spaces between words counts as one.

    >>> words("Don't count 3.5 as two!")
    ["Don't", 'count', '3.5', 'as', 'two']
    """
    return _WORD.findall(text)


def sentences(text: str) -> list[str]:
    """The sentences of a text, by a splitter trained on English; points of a list stand alone.

    >>> sentences("Dr. Who left. Why?\\n- milk\\n- tea")
    ['Dr. Who left.', 'Why?', '- milk', '- tea']
    """
    return [one for one in wording.sentences(text) if _SENTENCE_HAS.search(one)]


def paragraphs(text: str, separator: str | None = None) -> list[str]:
    """The paragraphs of a text: what stands between empty lines, or between separators.

    >>> paragraphs("one\\n\\ntwo"), paragraphs("one *** two", "***")
    (['one', 'two'], ['one', 'two'])
    """
    parts = _PARAGRAPH_GAP.split(text) if separator is None else text.split(separator)
    return [part.strip() for part in parts if part.strip()]


def pieces(text: str, of: Piece) -> Iterable[Any]:
    """All pieces of a kind in a text."""
    return _FINDERS[of](text)


def _without_code(text: str) -> str:
    return _FENCED.sub("\n", text)


def _prose(pattern: re.Pattern[str]) -> Callable[[str], Iterable[Any]]:
    """What a pattern finds outside of code blocks."""
    return lambda text: pattern.finditer(_without_code(text))


def _capital_words(text: str) -> list[str]:
    return [word for word in words(text) if word.isupper()]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


_FINDERS: dict[str, Callable[[str], Iterable[Any]]] = {
    "characters": iter,
    "words": words,
    "capital_words": _capital_words,
    "sentences": sentences,
    "lines": _lines,
    "paragraphs": paragraphs,
    "bullets": _prose(_BULLET),
    "numbered_items": _prose(_NUMBERED),
    "headings": _prose(_HEADING),
    "highlights": _prose(_HIGHLIGHT),
    "placeholders": _prose(_PLACEHOLDER),
    "code_blocks": _FENCED.finditer,
    "links": _prose(_LINK),
}


Case = Literal["lower", "upper", "title"]

_SPACED_PIECES = ("words", "capital_words", "sentences")
_QUOTES = "\"'“”‘’«»"


def _limits_check(where: str) -> Callable[[Mapping[str, Any]], None]:
    def check(options: Mapping[str, Any]) -> None:
        _Limits(options.get("at_least"), options.get("at_most"), options.get("exactly"), where)

    return check


class _Limits:
    """How many there may be; refuses limits that nothing or everything fits."""

    def __init__(self, at_least: int | None, at_most: int | None, exactly: int | None, where: str) -> None:
        given = [limit for limit in (at_least, at_most, exactly) if limit is not None]
        mixed = exactly is not None and len(given) > 1
        if not given or mixed or min(given) < 0:
            raise EvaluatorError(
                "it is given no count from 0 up, or `exactly` beside another",
                where=where,
                fix="give at_least, at_most, both, or exactly",
            )
        self.low = exactly if exactly is not None else at_least or 0
        self.high = exactly if exactly is not None else at_most
        if self.high is not None and self.low > self.high:
            raise EvaluatorError(f"nothing is both ≥ {self.low} and ≤ {self.high}", where=where)

    def score(self, count: int, what: str, of: str = "") -> Score:
        """A verdict on a count; the value is how near it came to the limits."""
        what = _counted(count, what) + of
        details = {"method": "count", "count": count}
        if count < self.low:
            return Score(count / self.low, False, f"{what}, {self}", details)
        if self.high is not None and count > self.high:
            return Score(self.high / count, False, f"{what}, {self}", details)
        return Score(1.0, True, what, details)

    def __str__(self) -> str:
        if self.low == self.high:
            return f"not {self.low}"
        wanted = [f"at least {self.low}"] * (self.low > 0)
        wanted += [f"at most {self.high}"] * (self.high is not None)
        return "wanted " + " and ".join(wanted)


def _check_text_count(options: Mapping[str, Any]) -> None:
    _limits_check("text_count")(options)
    if options.get("separator") is not None and options.get("of") != "paragraphs":
        raise EvaluatorError("only paragraphs have a separator", where="text_count")


@evaluator(category="rules", check=_check_text_count)
def text_count(
    output: Any,
    *,
    of: Piece = "words",
    at_least: int | None = None,
    at_most: int | None = None,
    exactly: int | None = None,
    separator: str | None = None,
    distinct: bool = False,
) -> Score:
    """Passes if the output has the wanted number of words, sentences, paragraphs or bullets.

    `of` is one of characters, words, capital_words (all in capitals), sentences, lines (that are
    not empty), paragraphs, bullets, numbered_items, headings, highlights (*so* or **so**),
    placeholders ([so]), code_blocks and links. Paragraphs stand between empty lines, or between
    `separator`s; with `distinct` equal pieces count once. The value tells how near the count
    came. Sentences are split by a model of English, words at spaces and punctuation; texts in
    scripts without spaces (Chinese, Japanese, Thai) are skipped where these are to be counted.

    >>> text_count("One two three.", at_most=5).passed
    True
    >>> text_count("- red\\n- green", of="bullets", exactly=3).reason
    '2 bullets, not 3'
    """
    if not isinstance(output, str):
        return _not_text(output)
    limits = _Limits(at_least, at_most, exactly, "text_count")
    output = composed(output)
    if of in _SPACED_PIECES and is_unspaced(output):
        return Score.skipped(f"it is written without spaces: its {of} cannot be counted")
    if of == "paragraphs":
        found: list[Any] = list(paragraphs(output, separator))
    else:
        found = [_content(one) for one in pieces(output, of)]
    count = len(set(found)) if distinct else len(found)
    return limits.score(count, f"{'different ' * distinct}{of.replace('_', ' ').removesuffix('s')}")


def _check_occurrences(options: Mapping[str, Any]) -> None:
    _limits_check("occurrences")(options)
    text, pattern = options.get("text"), options.get("pattern")
    if (text is None) == (pattern is None) or text == "":
        raise EvaluatorError(
            "it is given both text and pattern, or neither",
            where="occurrences",
            fix="give one of text and pattern",
        )
    _compiled(text, pattern, True, True)


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
    """Passes if a text, or what a regular expression matches, occurs the wanted number of times.

    `whole_words` looks for the text as whole words ("art" is not in "start"); a text that begins
    or ends with a sign is bound to no word there. For a pattern only `case_sensitive` counts; it
    is Python's `re`, and one that takes more than two seconds of CPU time is an error.

    >>> occurrences("War and peace, war again, warfare", text="war", exactly=2).passed
    True
    >>> occurrences("<<Ode to Joy>> Freude!", pattern="<<[^\\\\n]+>>", at_least=1).passed
    True
    """
    if not isinstance(output, str):
        return _not_text(output)
    limits = _Limits(at_least, at_most, exactly, "occurrences")
    sought = _compiled(text, pattern, whole_words, case_sensitive)
    try:
        count = len(sought.findall(composed(output)) if pattern is None else find_all(sought, output))
    except EvaluatorError as error:
        return Score.error(error.what, {"method": "count"})
    return limits.score(count, "time", f" {shown(pattern if text is None else text)}")


def _check_keywords(options: Mapping[str, Any]) -> None:
    given = [*(options.get("include") or ()), *(options.get("exclude") or ())]
    if not given or not all(isinstance(word, str) and word for word in given):
        raise EvaluatorError("it is given no words", where="keywords", fix='write include=["rain", "sun"]')


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

    Of `include` all are needed, or with `need="any"` one. The value is the share of the demands
    that were met. Words may be phrases or signs.

    >>> keywords("Rain in Spain", include=["rain"], exclude=["sun"]).passed
    True
    >>> keywords("Sunny Spain", include=["rain", "spain"]).reason
    "missing: 'rain'"
    """
    if not isinstance(output, str):
        return _not_text(output)

    text = composed(output)

    def there(word: str) -> bool:
        return _compiled(word, None, whole_words, case_sensitive).search(text) is not None

    missing = [word for word in include if not there(word)]
    unwanted = [word for word in exclude if there(word)]
    demands = len(include) + len(exclude)
    if need == "any" and include:
        demands = 1 + len(exclude)
        missing = [" or ".join(include)] if len(missing) == len(include) else []
    reasons = ["missing: " + ", ".join(map(shown, missing))] * bool(missing)
    reasons += ["unwanted: " + ", ".join(map(shown, unwanted))] * bool(unwanted)
    details = {"method": "search", "missing": missing, "unwanted": unwanted}
    faults = len(missing) + len(unwanted)
    return Score(1.0 - faults / demands, not faults, "; ".join(reasons), details)


@evaluator(category="rules", pure=True, factory=True, needs=())
def starts_with(
    phrases: str | Sequence[str],
    paragraph: int | None = None,
    separator: str | None = None,
    whole_words: bool = True,
    case_sensitive: bool = False,
) -> Callable[[Any], Score]:
    """Passes if the output starts with one of the phrases; white space before it does not matter.

    `paragraph` looks at that paragraph instead (1 is the first, -1 the last); paragraphs stand
    between empty lines or `separator`s. Quotation marks before a phrase are passed over, unless
    the phrase has them itself.

    >>> starts_with(["Dear", "Hello"])("Dear Sir, ...").passed
    True
    >>> starts_with("second", paragraph=2)("First.\\n\\nSecond.").passed
    True
    """
    return _edge("start", starts_with, dict(locals()))


@evaluator(category="rules", pure=True, factory=True, needs=())
def ends_with(
    phrases: str | Sequence[str],
    paragraph: int | None = None,
    separator: str | None = None,
    whole_words: bool = True,
    case_sensitive: bool = False,
) -> Callable[[Any], Score]:
    """Passes if the output ends with one of the phrases; white space behind it does not matter.

    The options are those of `starts_with`.

    >>> ends_with("Kind regards")("… \\n\\nKind regards\\n").passed
    True
    """
    return _edge("end", ends_with, dict(locals()))


@evaluator(category="rules", pure=True)
def letter_case(output: Any, *, case: Case = "lower") -> Score:
    """Passes if all letters of the output are small, or capitals, or every word is capitalised.

    The value is the share of the letters (of the words, for "title") that are as wanted. Letters
    of scripts that know no case do not count.

    >>> letter_case("all is quiet", case="lower").passed
    True
    >>> letter_case("LOUD and clear", case="upper").reason
    "8 of 12 letters are not capitals, the first in 'and'"
    """
    if not isinstance(output, str):
        return _not_text(output)
    if case == "title":
        units = [word for word in words(output) if word[0].isupper() or word[0].islower()]
        wrong = [word for word in units if word[0].islower()]
        unit, named = "word", "not capitalised"
    else:
        units = [letter for letter in output if letter.isupper() or letter.islower()]
        wrong = [one for one in units if one.isupper() == (case == "lower")]
        unit, named = "letter", "capitals" if case == "lower" else "not capitals"
    details = {"method": "unicode"}
    if not units:
        return Score(0.0, False, "there is no letter that has a case", details)
    if not wrong:
        return Score(1.0, True, "", details)
    first = next(word for word in words(output) if wrong[0] in word)
    verb = "is" if len(wrong) == 1 else "are"
    named = named.removesuffix("s") if len(wrong) == 1 else named
    reason = f"{len(wrong)} of {_counted(len(units), unit)} {verb} {named}, the first in {shown(first)}"
    return Score(1.0 - len(wrong) / len(units), False, reason, details)


@evaluator(category="rules", factory=True, needs=())
def written_in(language: str) -> Callable[[Any], Score]:
    """Passes if the output is written in a language, given by its ISO 639-1 code ("de").

    The method is py3langid (`pip install "proctor[language]"`), a classifier over the bytes of a
    text that knows more than a hundred languages. It names one language for the whole text; below
    some twenty letters, in mixed texts and between near relatives it errs.
    """
    from proctor.core import optional as extras

    try:
        classifier = extras.require("py3langid", extra="language", why="telling languages apart")
    except MissingExtra as error:
        raise EvaluatorError(error.what, where="written_in", fix=error.fix) from None
    code = str(language).lower()
    known = sorted(str(label) for label, _ in classifier.rank(""))
    if code not in known:
        raise EvaluatorError(
            f"there is no language {language!r}", where="written_in", fix=f"give one of {', '.join(known)}"
        )

    def evaluate(output: Any) -> Score:
        if not isinstance(output, str):
            return _not_text(output)
        details = {"method": "py3langid"}
        if not any(letter.isalpha() for letter in output):
            return Score(0.0, False, "there are no letters in it", details)
        found = str(classifier.classify(output)[0])
        details["language"] = found
        passed = found == code
        return Score(float(passed), passed, "" if passed else f"it reads as {found}", details)

    return made(evaluate, by=written_in, language=code)


def _edge(
    side: Literal["start", "end"], factory: Callable[..., Any], options: dict[str, Any]
) -> Callable[[Any], Score]:
    """The evaluator that looks at one end of a text or of one of its paragraphs."""
    phrases, place = options["phrases"], options["paragraph"]
    wanted = [phrases] if isinstance(phrases, str) else list(phrases)
    if not wanted or not all(isinstance(one, str) and one.strip() for one in wanted):
        raise EvaluatorError(f"phrases are texts, got {phrases!r}", where=f"{side}s_with")
    if place == 0 or (options["separator"] is not None and place is None):
        raise EvaluatorError(
            "paragraph is 1 for the first or -1 for the last; separator goes with it", where=f"{side}s_with"
        )
    held = [_Held(composed(one.strip()), side, options) for one in wanted]

    def evaluate(output: Any) -> Score:
        if not isinstance(output, str):
            return _not_text(output)
        text, details = composed(output), {"method": "search"}
        if place is not None:
            parts = paragraphs(text, options["separator"])
            if abs(place) > len(parts):
                told = _counted(len(parts), "paragraph")
                return Score(0.0, False, f"it has {told}, no paragraph {place}", details)
            text = parts[place - 1 if place > 0 else place]
        if any(one.holds(text) for one in held):
            return Score(1.0, True, "", details)
        edge = text.strip()[:40] if side == "start" else text.strip()[-40:]
        return Score(0.0, False, f"it {side}s with {shown(edge)}", details)

    return made(evaluate, by=factory, **options)


class _Held:
    """One phrase that a text is to start or end with."""

    def __init__(self, phrase: str, side: str, options: Mapping[str, Any]) -> None:
        case_sensitive, whole_words = options["case_sensitive"], options["whole_words"]
        pattern = _compiled(phrase, None, whole_words, case_sensitive).pattern
        flags = 0 if case_sensitive else re.IGNORECASE
        passed_over = f"[{_QUOTES}]*" if phrase[0 if side == "start" else -1] not in _QUOTES else ""
        self._pattern = re.compile(
            rf"\s*{passed_over}{pattern}" if side == "start" else rf"{pattern}{passed_over}\s*\Z", flags
        )
        self._find = self._pattern.match if side == "start" else self._pattern.search

    def holds(self, text: str) -> bool:
        return self._find(text) is not None


def _compiled(
    text: str | None, pattern: str | None, whole_words: bool, case_sensitive: bool
) -> re.Pattern[str]:
    if text is not None:
        text = composed(text)
        pattern = r"\s+".join(map(re.escape, text.split())) if text.split() else re.escape(text)
        if whole_words:
            pattern = r"(?<!\w)" * _is_word(text[0]) + pattern + r"(?!\w)" * _is_word(text[-1])
    try:
        return re.compile(pattern or "", 0 if case_sensitive else re.IGNORECASE)
    except re.error as error:
        raise EvaluatorError(
            f"{pattern!r} is not a regular expression: {error}", where="occurrences"
        ) from None


def _is_word(sign: str) -> bool:
    return (sign.isalnum() or sign == "_") and not is_unspaced(sign)


def _counted(count: int, one: str) -> str:
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def _content(piece: Any) -> Any:
    return piece.group() if isinstance(piece, re.Match) else piece


def _not_text(output: Any) -> Score:
    return Score.error(f"a rule looks at a text; the output is {kind_of(output)}")
