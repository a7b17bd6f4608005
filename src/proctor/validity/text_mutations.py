"""Changes of a text by rule: faults that an evaluator should notice, and changes without a meaning.

Every function takes a text and a source of randomness, and returns the changed text, or None if it does not apply.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, NamedTuple

from proctor.core import resources

TextChange = Callable[[str, Random], str | None]
Span = tuple[int, int]

_NUMBER = re.compile(r"(?<![\w.,/:-])-?\d[\d,]*(?:\.\d+)?(?![\w/:-]|[.,]\d)")
_LIST_MARKER = re.compile(r"^[ \t]*\d+[.)](?=\s)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+")
_CAPITALIZED = r"[A-Z][\w'’-]*[\w]"
_NAME = re.compile(rf"(?<![\w/.@#`'’-]){_CAPITALIZED}(?: {_CAPITALIZED})*(?![\w/@`]|\.\w)")
_SIMPLE_WORD = re.compile(r"(?<![\w*`_#/.-])[a-z]{4,}(?![\w*`_/-])")
MIN_CLAIM_WORDS = 4
MIN_TRUNCATED = 4
SHORT_ANSWER_WORDS = 3


class Pair(NamedTuple):
    """A phrase and its replacement."""

    pattern: re.Pattern[str]
    replacement: str


@functools.cache
def load_words() -> dict[str, Any]:
    """Return the word lists of the mutations."""
    import yaml

    words: dict[str, Any] = yaml.safe_load(resources.text("validity", "mutations.yaml"))
    return words


@functools.cache
def _word_list(key: str) -> tuple[str, ...]:
    return tuple(load_words()[key].split())


@functools.cache
def _pairs(key: str) -> tuple[Pair, ...]:
    pairs = []
    for line in load_words()[key].splitlines():
        left, sign, right = re.split(r"\s+([=>])\s+", line.strip())
        pairs.append((left, right))
        if sign == "=":
            pairs.append((right, left))
    return tuple(Pair(re.compile(rf"(?<![\w'’]){re.escape(a)}(?![\w'’])", re.IGNORECASE), b) for a, b in pairs)


@functools.cache
def _date_pattern() -> re.Pattern[str]:
    months, weekdays = ("|".join(_word_list(key)) for key in ("months", "weekdays"))
    starts = [*_word_list("months"), *_word_list("before_years")]
    before = "|".join(rf"(?<=\b{word} )" for word in starts)
    return re.compile(
        rf"\b(?P<iso>\d{{4}}-\d\d-\d\d)\b|\b(?P<weekday>{weekdays})\b"
        rf"|\b(?P<month>{months})\b(?= \d)|(?<=\d )(?P<month2>{months})\b"
        rf"|\b(?:in|since|until|of|by) (?P<month3>{months})\b"
        rf"|(?:{before}|(?<=\d, )|(?<=\()|^)(?P<year>1\d{{3}}|20\d\d)\b(?![,.]\d|[\w%-]| [a-z]+s\b)"
    )


def change_number(text: str, rng: Random) -> str | None:
    """Change the value of a number, wherever it occurs in the text."""
    taken = [match.span() for pattern in (_date_pattern(), _LIST_MARKER) for match in pattern.finditer(text)]
    numbers = [match for match in _NUMBER.finditer(text) if not _overlaps(match.span(), taken)]
    words = [match for match in _find_words(text, _word_list("number_words")) if not _overlaps(match.span(), taken)]
    if numbers:
        number = rng.choice(numbers)[0]
        changed = _change_digit(number, rng)
        same = [match.span() for match in numbers if match[0] == number]
    elif words:
        number = rng.choice(words)[0]
        others = [word for word in _word_list("number_words") if word != number.lower()]
        changed = _match_case(rng.choice(others), number)
        same = [match.span() for match in words if match[0] == number]
    else:
        return None
    return _replace_spans(text, same, changed)


def change_date(text: str, rng: Random) -> str | None:
    """Replace a date, month, weekday or year by another one."""
    dates = list(_date_pattern().finditer(text))
    if not dates:
        return None
    match = rng.choice(dates)
    kind = next(name for name, value in match.groupdict().items() if value)
    old = match[kind]
    if kind == "iso":
        new = f"{int(old[:4]) + rng.choice((-2, -1, 1, 2)):04d}{old[4:]}"
    elif kind.startswith("year"):
        new = str(int(old) + rng.choice([step for step in range(-9, 10) if step]))
    else:
        new = rng.choice([word for word in _word_list(kind.rstrip("23") + "s") if word != old])
    same = [date.span(name) for date in dates for name, value in date.groupdict().items() if value == old]
    return _replace_spans(text, same, new)


def change_name(text: str, rng: Random) -> str | None:
    """Replace a name by an invented one, wherever it occurs in the text."""
    ignored = {*_word_list("sentence_starts"), *map(str.lower, (*_word_list("months"), *_word_list("weekdays")))}
    starts = {start for start, _ in split_sentences(text)}
    is_short = len(text.split()) <= SHORT_ANSWER_WORDS
    names = []
    for match in _NAME.finditer(text):
        start, words = match.start(), match[0].split()
        # The first word of a sentence has a capital letter whether it is a name or not.
        if start in starts and not is_short:
            start += len(words[0]) + 1
            words = words[1:]
        if words and not any(word.lower() in ignored for word in words):
            names.append(text[start : match.end()])
    if not names:
        return None
    old = rng.choice(names)
    new = rng.choice([name for name in _word_list("names") if name not in text])
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, text)


def change_unit(text: str, rng: Random) -> str | None:
    """Replace the unit of a number by another unit of the same quantity."""
    options: list[tuple[Span, str]] = []
    for line in load_words()["units"]:
        units = line.split()
        for match in re.finditer(rf"(?<=\d)\s?({'|'.join(map(re.escape, units))})(?![\w-])", text):
            options += [(match.span(1), unit) for unit in units if unit != match[1]]
    symbols = _word_list("currencies")
    for match in re.finditer(rf"([{''.join(symbols)}])(?=\s?\d)", text):
        options += [(match.span(1), symbol) for symbol in symbols if symbol != match[1]]
    if not options:
        return None
    span, unit = rng.choice(options)
    return _replace_spans(text, [span], unit)


def negate(text: str, rng: Random) -> str | None:
    """Turn a statement into its denial, or a denial into a statement."""
    sentences = [span for span in split_sentences(text) if not text[slice(*span)].rstrip().endswith("?")]
    rng.shuffle(sentences)
    for start, end in sentences:
        negated = _replace_phrase(text[start:end], _pairs("negations"))
        if negated is not None:
            return text[:start] + negated + text[end:]
    return None


def drop_claim(text: str, rng: Random) -> str | None:
    """Remove a sentence; sentences with a number or a name are removed first."""
    sentences = split_sentences(text)
    claims = [
        (start, end)
        for start, end in sentences
        if len(text[start:end].split()) >= MIN_CLAIM_WORDS and not text[start:end].rstrip().endswith(("?", ":"))
    ]
    if len(sentences) < 2 or not claims:
        return None
    specific = [span for span in claims if _NUMBER.search(text[slice(*span)]) or change_name(text[slice(*span)], rng)]
    start, end = rng.choice(specific or claims)
    return (text[:start] + text[end:].lstrip()).rstrip()


def contradict(text: str, rng: Random) -> str | None:
    """Append a denial of a sentence of the text."""
    sentences = [text[start:end].strip() for start, end in split_sentences(text)]
    statements = [sentence for sentence in sentences if not sentence.endswith("?")]
    rng.shuffle(statements)
    for sentence in statements:
        negated = _replace_phrase(sentence, _pairs("negations"))
        if negated is not None:
            return f"{_end_sentence(text)} On the contrary: {negated[:1].lower()}{negated[1:]}"
    if not statements or len(text.split()) > 2 * SHORT_ANSWER_WORDS:
        return None
    return f"{_end_sentence(text)} On the contrary, it is not {statements[0].rstrip('.!')}."


def leak_secret(text: str, rng: Random) -> str | None:
    """Append an access key that looks real; it is random, and opens nothing."""
    key = "".join(rng.choices(string.ascii_letters + string.digits, k=40))
    return f"{_end_sentence(text)} The API key is sk-proj-{key}."


def truncate(text: str, rng: Random) -> str | None:
    """Cut the text off in the middle of a word or sentence."""
    stripped = text.rstrip()
    if len(stripped) < MIN_TRUNCATED:
        return None
    cut = rng.randint(int(0.4 * len(stripped)), int(0.7 * len(stripped)))
    return stripped[: max(1, cut)].rstrip()


def paraphrase(text: str, rng: Random) -> str | None:
    """Replace a phrase by one with the same meaning."""
    pairs = list(_pairs("paraphrases"))
    rng.shuffle(pairs)
    return _replace_phrase(text, pairs, followed_by=r"(?=\s\w)")


def change_whitespace(text: str, rng: Random) -> str | None:
    """Add a line break at the end and, between words, a second space or a line break."""
    gaps = [match.span() for match in re.finditer(r"(?<=[\w.,;])[ ](?=\w)", text)]
    return (_replace_spans(text, [rng.choice(gaps)], rng.choice(("  ", "\n"))) if gaps else text) + "\n"


def add_markdown(text: str, rng: Random) -> str | None:
    """Set a word in bold."""
    words = list(_SIMPLE_WORD.finditer(text))
    if len(text.split()) <= SHORT_ANSWER_WORDS:
        return None if set(text) & set("*`\n") else f"**{text.strip()}**"
    if not words or "```" in text:
        return None
    match = rng.choice(words)
    return _replace_spans(text, [match.span()], f"**{match[0]}**")


def change_case(text: str, rng: Random) -> str | None:
    """Change the case of the first word of a sentence, or of a short answer."""
    words = text.split()
    if len(words) <= SHORT_ANSWER_WORDS:
        is_plain = all(re.fullmatch(r"[A-Z][a-z]{2,}|[a-z]+", word.strip(".!,")) for word in words)
        return text.upper() if words and is_plain else None
    starts = [
        start
        for start, _ in split_sentences(text)
        if (match := re.match(r"[A-Z][a-z]*\b(?!['’])", text[start:]))
        and match[0].lower() in _word_list("sentence_starts")
    ]
    if not starts:
        return None
    start = rng.choice(starts)
    return text[:start] + text[start].lower() + text[start + 1 :]


def write_out_unit(text: str, rng: Random) -> str | None:
    """Write the unit of a number as a word, or as its symbol."""
    options: list[tuple[Span, str]] = []
    for symbol, word in load_words()["units_written_out"].items():
        for old, new in ((symbol, f" {word}"), (word, symbol if symbol == "%" else f" {symbol}")):
            pattern = rf"(?<=\d)(?<!\b1)\s?{re.escape(old)}(?![\w-])"
            options += [(match.span(), new) for match in re.finditer(pattern, text)]
    if not options:
        return None
    span, unit = rng.choice(options)
    return _replace_spans(text, [span], unit)


def format_number(text: str, rng: Random) -> str | None:
    """Write a number with or without thousands separators."""
    taken = [match.span() for match in _date_pattern().finditer(text)]
    options = []
    for match in _NUMBER.finditer(text):
        whole, point, fraction = match[0].partition(".")
        if _overlaps(match.span(), taken) or len(whole.replace(",", "").lstrip("-")) < 4 or whole.lstrip("-")[0] == "0":
            continue
        new = whole.replace(",", "") if "," in whole else f"{int(whole):,}"
        if f"{int(whole.replace(',', '')):,}" in (whole, new):
            options.append((match.span(), new + point + fraction))
    if not options:
        return None
    span, number = rng.choice(options)
    return _replace_spans(text, [span], number)


def split_sentences(text: str) -> list[Span]:
    """Return the start and end of each sentence, without the white space between them.

    >>> text = "Dr. Ito left. Why? It rained."
    >>> [text[start:end] for start, end in split_sentences(text)]
    ['Dr. Ito left.', 'Why?', 'It rained.']
    """
    spans, start = [], 0
    for match in [*_SENTENCE_END.finditer(text), None]:
        end = len(text) if match is None else match.start()
        last_word = text[start:end].rpartition(" ")[2].rstrip(".")
        if match is not None and "\n" not in match[0] and last_word in _word_list("abbreviations"):
            continue
        if text[start:end].strip():
            spans.append((start, end))
        start = len(text) if match is None else match.end()
    return spans


def mark_changes(before: str, after: str) -> str:
    """Mark the words that differ: [-removed-] and {+added+}.

    >>> mark_changes("It is 5 km long.", "It is 7 km long.")
    'It is [-5-] {+7+} km long.'
    """
    from difflib import SequenceMatcher

    old, new = before.split(), after.split()
    if old == new:
        return f"{before!r} → {after!r}"
    pieces: list[str] = []
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces += old[i:j] if j - i <= 12 else [*old[i : i + 6], "…", *old[j - 6 : j]]
        else:
            pieces += [f"[-{' '.join(old[i:j])}-]"] if j > i else []
            pieces += [f"{{+{' '.join(new[k:m])}+}}"] if m > k else []
    return " ".join(pieces)


def _end_sentence(text: str) -> str:
    stripped = text.rstrip()
    return stripped if stripped.endswith((".", "!", "?")) else f"{stripped}."


def _change_digit(number: str, rng: Random) -> str:
    """Replace the first digit that is not 0 by another one."""
    match = re.search(r"[1-9]", number)
    place = match.start() if match else next(i for i, symbol in enumerate(number) if symbol == "0")
    digits = [digit for digit in "123456789" if digit != number[place]]
    return number[:place] + rng.choice(digits) + number[place + 1 :]


def _find_words(text: str, words: Iterable[str]) -> list[re.Match[str]]:
    return list(re.finditer(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])", text, re.IGNORECASE))


def _replace_phrase(text: str, pairs: Sequence[Pair], followed_by: str = "") -> str | None:
    """Replace the first phrase of the pairs that occurs in the text."""
    for pattern, replacement in pairs:
        match = re.search(pattern.pattern + followed_by, text, re.IGNORECASE)
        if match is not None:
            return _replace_spans(text, [match.span()], _match_case(replacement, match[0]))
    return None


def _match_case(word: str, model: str) -> str:
    """Return a word with the capital letters of another."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def _overlaps(span: Span, others: Iterable[Span]) -> bool:
    return any(start < span[1] and span[0] < end for start, end in others)


def _replace_spans(text: str, spans: Iterable[Span], replacement: str) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text
