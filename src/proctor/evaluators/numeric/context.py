"""Decide whether the words next to a number may change it: a bound, or a word of a language that is not read.

English texts are read as they are. In another language, or if the language is unknown, a number counts only next to
words that are known to leave it as it is.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from itertools import permutations
from typing import Any, NamedTuple

from proctor.evaluators.data_files import load_data, load_patterns
from proctor.evaluators.language import explain_foreign, is_english_word, load_english_only_words, load_function_words
from proctor.evaluators.numeric.other_languages import follows_range_word
from proctor.evaluators.numeric.parse import Category, ParsedNumber, find_bound, parse_numbers, parse_word_numbers
from proctor.evaluators.score_conversion import preview

_PHRASES = load_patterns("numeric", "phrases.yaml")
# The start of a text shows its language.
_MAX_CHARACTERS = 2_000
# Only the last numbers are tried as the terms of a difference.
_MAX_TERMS = 12
# The share of English function words that needs no further check.
_CLEARLY_ENGLISH = 0.2
# The share of unknown words that an English text of more than a few words may have.
_FEW_WORDS, _MAX_UNKNOWN = 3, 0.34
_WORD = re.compile(r"[^\W\d_]+")
_BESIDE = " \\t\\u00a0\\u202f*_$€£¥₹~`'’\\\"“”„«»()\\[\\]°%"
_LETTERS = r"[^\W\d_][^\s\d.,;:!?=<>()\"*$|/\\+،؛。、，；：！？।؟—…]*"
_WORD_BEFORE = re.compile(rf"({_LETTERS})[{_BESIDE}]*\Z")
_WORD_AFTER = re.compile(rf"[{_BESIDE}-]*({_LETTERS})")
_ADJECTIVE = re.compile(r"\s[a-z]{4,}\s[a-z]{3,}s\b")
# Kilograms, or thousands.
# "0.(3)", "0.1(6)", "0.333...", "0.3 repeating": the number goes on.
_MORE_DECIMALS = re.compile(r"([.,]?)\(\d+\)|(?:\.{3}|…)(?!\S)|\s(?:repeating|recurring)\b")
# A thousand and a half, or 1500 in many languages.
_DOT_GROUP = re.compile(r"\D{0,4}[0-9]{1,3}\.[0-9]{3}\D{0,4}")
_EURO = re.compile(r"(?i)€|\beur(?:os?)?\b")
MIN_YEAR, MAX_YEAR = 1000, 3000
_MAX_HOUR = 24
_KILO = re.compile(r"\s?kilos?\b", re.IGNORECASE)
_ENGLISH_SCALE = re.compile(r"(?i)[^\W\d_]*illions?\b")
# The patterns of words and signs that make a number a part of an expression, a function or a statement about it.
_TERMS_BEFORE = ("term_before", "function_before", "tex_before", "dash_before", "relation_before")
_TERMS_AFTER = ("term_after", "ordinal_after", "tex_after")
# Mathematical and raised signs that leave a number as it is, and other signs that change it.
_KNOWN_SIGNS = "≈≃≅≡∼→←↔↑↓⇒⇔⟶⟹⟺↦∴∵ªº™℠"
_CHANGING_SIGNS = "‰‱⌊⌈⌋⌉‖"


class _Words(NamedTuple):
    plain_before: frozenset[str]
    plain_after: frozenset[str]
    plain_parts_before: re.Pattern[str]
    plain_parts_after: re.Pattern[str]
    bound_before: re.Pattern[str]
    bound_after: re.Pattern[str]
    percent_before: re.Pattern[str]
    answer_after: re.Pattern[str]
    difference: re.Pattern[str]
    long_scales: dict[str, int]
    no_plurals: frozenset[str]
    shared_with_english: frozenset[str]


@functools.cache
def _load_words() -> _Words:
    data: dict[str, Any] = load_data("numeric", "other_languages.yaml")
    text = {name: re.sub(r"\s+(?=\|)", "", value.strip()) for name, value in data.items() if isinstance(value, str)}
    # Another word may follow the bound: "mindestens etwa 42".
    before = rf"(?:(?<!\w)(?:{text['bound_before']})(?!\w)(?:\s[^\W\d_]+)?|{text['bound_parts_before']})[{_BESIDE}]*\Z"
    after = (
        rf"[{_BESIDE}-]*(?:[^\W\d_][^\s\d.,;:!?]{{0,15}}[\s*_)]+)?(?<!\w)(?:{text['bound_after']})(?!\w)"
        rf"|['’]?(?:den|dan|ten|tan) (?:fazla|az|çok|büyük|küçük)\b"
        rf"|\s?[^\W\d]{{0,3}}?\s?(?:{text['bound_parts_after']})"
    )
    return _Words(
        frozenset(data["plain_before"].split()),
        frozenset(data["plain_after"].split()),
        re.compile(text["plain_parts_before"]),
        re.compile(text["plain_parts_after"]),
        re.compile(before, re.IGNORECASE),
        re.compile(after, re.IGNORECASE),
        re.compile(text["percent_before"], re.IGNORECASE),
        re.compile(text["answer_after"], re.IGNORECASE),
        re.compile(text["difference"], re.IGNORECASE),
        data["long_scales"],
        frozenset(data["no_plurals"].split()),
        frozenset(data["shared_with_english"].split()),
    )


def describe_date(number: ParsedNumber) -> str:
    """Say that an answer is a date."""
    return f"the answer is a date: {number.text}"


def check_context(number: ParsedNumber, text: str) -> ParsedNumber:
    """Return the number as the words next to it make it: a bound, a percentage, unclear, or unchanged."""
    if number.category == "date" and number.value < MIN_YEAR:
        return number._replace(category="expression", doubt=describe_date(number))
    if number.category != "number":
        return number._replace(category="bound") if number.category == "year" and _bounds_time(number) else number
    if label := _find_label(number):
        return number._replace(category="label", doubt=label)
    if doubt := _find_unread_notation(number):
        return number._replace(category="expression", doubt=doubt)
    if not (number.before or number.after or _WORD.search(number.text)):
        return number
    if doubt := _find_doubt(number, text):
        return number._replace(category="unclear", doubt=doubt)
    if _KILO.match(number.after):
        number = number._replace(alternatives=(*number.alternatives, number.value * 1000))
    if _follows_bound(number.before) or _PHRASES["bound_after"].match(number.after) or _bounds_time(number):
        return number._replace(category="bound")
    if doubt := _find_term(number) or _find_difference(number, text) or _find_unread_sign(number):
        return number._replace(category="expression", doubt=doubt)
    return _read_variable(number) or _check_words(number, text)


def _read_variable(number: ParsedNumber) -> ParsedNumber | None:
    """Return a number beside an unknown or a constant with its expression: "3 + x"; None without one."""
    variable = _PHRASES["variable_before"].search(number.before) or _PHRASES["variable_after"].match(number.after)
    if variable is None:
        return None
    # "3 + √2" is a number that is not computed; "3 + x" and "3 + 4i" are not real numbers.
    category: Category = "expression" if _PHRASES["constant"].search(variable[0]) else "calculation"
    is_after = variable.string is number.after
    excerpt = f"{number.text}{variable[0]}" if is_after else f"{variable[0].lstrip()}{number.text}"
    return number._replace(category=category, text=excerpt)


def _find_doubt(number: ParsedNumber, text: str) -> str:
    """Return why the words next to a number do not state it as an answer: a guess, an old belief; "" if they do."""
    before, value = number.before, number.text
    if _PHRASES["guess_before"].search(before):
        return f"the output only guesses {value}"
    is_old_belief = _PHRASES["old_belief_before"].search(before) and not _PHRASES["confirmed_after"].match(number.after)
    if is_old_belief or _PHRASES["unknown_after"].match(number.after):
        return f"the output does not say that {value} is right"
    if _PHRASES["unreal_before"].search(before) and not _PHRASES["correction"].search(text):
        return f"the output says only that it should have been {value}"
    if _PHRASES["time_before"].search(before):
        return f"{value} is only a part of a time"
    if base := _PHRASES["base_after"].match(number.after):
        return f"{value}{base[0]} is in another base"
    if _PHRASES["event_before"].search(before):
        return f"the output has a year and {value}, and does not say which one is the answer"
    is_grouped = _DOT_GROUP.fullmatch(value) and number.value * 1000 in number.alternatives
    if is_grouped and not _is_english(text) and _may_group_by_points(number, text):
        return f"the point in {value} may separate thousands; set the decimal separator"
    return ""


def _find_label(number: ParsedNumber) -> str:
    """Return why a number is a name, an hour or a decade: "Room 42", "6 pm", "the 1980s"; "" if it is a number."""
    before, after = number.before, number.after
    name = _PHRASES["name_before"].search(before)
    if name and not _PHRASES["counted_after"].match(after):
        return f"{name[0].strip(' *_')} {number.text} is a name"
    if not number.text.isdecimal():
        return ""
    is_hour = number.value <= _MAX_HOUR and (
        _PHRASES["hour_after"].match(after)
        or (_PHRASES["event_at"].search(before) and _PHRASES["no_unit_after"].match(after))
    )
    if is_hour:
        return f"{number.text} is a time"
    is_decade = _may_be_year(number) and number.value % 10 == 0 and _PHRASES["decade_after"].match(after)
    return f"the answer is a decade: {number.text}s" if is_decade and _PHRASES["decade_before"].search(before) else ""


def _bounds_time(number: ParsedNumber) -> bool:
    """Return whether a year or a time only bounds the answer: "after 1989", but not "after 3 days"."""
    before, after = number.before, number.after
    if _may_be_year(number) and _PHRASES["by_before"].search(before) and _PHRASES["past_after"].match(after):
        return True
    name = "year_bound_before" if _may_be_year(number) else "bare_bound_before"
    is_bound = number.text.isdecimal() and _PHRASES[name].search(before) and _PHRASES["no_unit_after"].match(after)
    return bool(is_bound)


def _may_be_year(number: ParsedNumber) -> bool:
    return number.text.isdecimal() and MIN_YEAR <= number.value < MAX_YEAR


def _may_group_by_points(number: ParsedNumber, text: str) -> bool:
    """Return whether a text that is not clearly English may be in another language, or gives an amount in euros."""
    if _EURO.search(f"{number.text}{number.after}") or explain_foreign(text[:_MAX_CHARACTERS]):
        return True
    return any(len(word) >= _FEW_WORDS and not _is_known(word) for word in _WORD.findall(number.before))


def _follows_bound(before: str) -> bool:
    bound = find_bound(_PHRASES["bound_before"], before)
    # "5 min 42 sec" is not a bound.
    return bound is not None and not re.search(r"\d\W*\Z", before[: bound.start()])


def _find_unread_notation(number: ParsedNumber) -> str:
    """Return why the signs after a number may change it: "5!", "0.333..."; "" if they do not."""
    if _is_factorial(number):
        return f"{number.text} may be a factorial or an exclamation"
    if (decimals := _MORE_DECIMALS.match(number.after)) and re.search(r"[.,]", number.text + (decimals[1] or "")):
        return f"{number.text}{decimals[0]} has more decimals"
    return ""


def _is_factorial(number: ParsedNumber) -> bool:
    """Return whether an exclamation mark after a number may be a factorial: "5!", but not "It's 5!"."""
    if not number.text.endswith("!"):
        return False
    return not _WORD.search(number.before) or number.before.rstrip().endswith("=")


def _find_term(number: ParsedNumber) -> str:
    """Return why a number is only a part of the answer: "sin(42)", "42 + 3i", "the 42nd prime"; "" if it is not."""
    before = next(filter(None, (_PHRASES[name].search(number.before) for name in _TERMS_BEFORE)), None)
    after = next(filter(None, (_PHRASES[name].match(number.after) for name in _TERMS_AFTER)), None)
    if _PHRASES["ordinal_word"].search(number.text):
        after = after or _PHRASES["noun_after"].match(number.after)
    # A row of a table has more than two bars.
    is_between_bars = re.fullmatch(r"[^|]*\|\s?", number.before) and re.fullmatch(r"\s?\|[^|]*", number.after)
    if number.value < 0 and is_between_bars:
        return f"the answer is an absolute value: |{number.text}|"
    for name in ("relative", "sum"):
        if before is None and after is None and _PHRASES[f"{name}_before"].search(number.before):
            after = _PHRASES[f"{name}_after"].match(number.after)
    if before is None and after is None:
        return ""
    excerpt = f"{before[0].lstrip() if before else ''}{number.text}{after[0] if after else ''}"
    return f"{number.text} is only a part of the answer: {preview(excerpt)}"


def _find_difference(number: ParsedNumber, text: str) -> str:
    """Return why a number is only a difference or a ratio to something: "She has 5 more than Ida"; "" if it is not.

    A difference or ratio that the text concludes, or computes from two of its numbers, is an answer.
    """
    difference = _PHRASES["difference_after"].match(number.after)
    is_result = _PHRASES["turn"].search(number.before) or re.search(r"\d[^=\n]*=[\s$€£*_]*\Z", number.before)
    if difference is None or number.is_percent or is_result:
        return ""
    values = {other.value for other in parse_numbers(text[-_MAX_CHARACTERS:], ".")[-_MAX_TERMS:]} - {number.value}
    if any(number.value in (a - b, a / b if b else None) for a, b in permutations(values, 2)):
        return ""
    return f"{number.text} is only a part of the answer: {preview(number.text + difference[0])}…"


def _find_unread_sign(number: ParsedNumber) -> str:
    """Return why a sign next to a number may change it: "±42", "42‰", "42₁₆"; "" if every sign is known."""
    before = number.before.rstrip(" *_$€£(\"'“")[-1:]
    after = number.after.lstrip(" *")[:1]
    if before and ((_is_unread(before) and unicodedata.category(before) != "No") or _is_small(before, "<sub>")):
        return f"the sign {before} before {number.text} may change it"
    if after and _is_unread(after):
        return f"the sign {after} after {number.text} may change it"
    return ""


def _is_unread(sign: str) -> bool:
    if sign.isascii() or sign in _KNOWN_SIGNS:
        return False
    category = unicodedata.category(sign)
    return (
        sign in _CHANGING_SIGNS
        or category in ("Sm", "No", "Me", "Mn")
        or _is_small(sign, "<sub>")
        or _is_small(sign, "<super>")
    )


def _is_small(sign: str, kind: str) -> bool:
    return unicodedata.decomposition(sign).startswith(kind)


def _check_words(number: ParsedNumber, text: str) -> ParsedNumber:
    """Check the words next to a number that English phrases do not cover."""
    words = _load_words()
    if words.percent_before.search(number.before):
        return number._replace(is_percent=True)
    scale = _ENGLISH_SCALE.search(number.text)
    if words.difference.search(f"{number.before}{number.text}{number.after}"):
        return number
    is_bound = _is_foreign_bound(number)
    before, after = _find_word_before(number.before), _find_word_after(number.after)
    # "forty-two (42)": other numbers in words are rivals.
    if before and number.before.endswith("(") and next(parse_word_numbers(before), None):
        before = None
    if after and re.match(r"\s*\(", number.after) and next(parse_word_numbers(after), None):
        after = None
    unknown = [word for word in (before, after) if word and word.lower() not in load_english_only_words()]
    if not (unknown or scale or is_bound):
        return number
    if _is_english(text):
        is_unclear = before is not None and _may_change_english(before, number.before, is_bound=is_bound)
        doubt = f"the word {preview(before)} before {number.text} may change it"
        return number._replace(category="unclear", doubt=doubt) if is_unclear else number
    if is_bound:
        return number._replace(category="bound")
    is_foreign = bool(explain_foreign(text[:_MAX_CHARACTERS]))
    if unknown and (is_foreign or not _are_harmless(before, after, number.after, text)):
        doubt = f"the text is not clearly English, and {' or '.join(map(preview, unknown))} may change {number.text}"
        return number._replace(category="unclear", doubt=doubt)
    return _apply_long_scale(number, scale[0].lower(), text, is_foreign=is_foreign) if scale else number


def _are_harmless(before: str | None, after: str | None, rest: str, text: str) -> bool:
    """Return whether the words next to a number are English in a text whose language is unknown."""
    if before is not None and not _is_known(before):
        return False
    if after is None or _is_known(after):
        return _may_be_english(text)
    # "42 cubic inches": an adjective before a plural noun.
    is_adjective = _ADJECTIVE.match(rest) is not None
    return is_adjective and _may_be_english(text.replace(after, " "))


def _may_change_english(word: str, before: str, *, is_bound: bool) -> bool:
    """Return whether a word before a number in an English text may be a foreign minus or bound: "is mindestens 42"."""
    if _is_known(word):
        return False
    starts_clause = re.search(rf"(?:\A|[:=]|\b(?:is|are|was|be))[{_BESIDE}]*\Z", before[: before.rindex(word)])
    return is_bound or not word.isascii() or (word.islower() and len(word) > 1 and starts_clause is not None)


def _is_known(word: str) -> bool:
    # Without its accent, a foreign word may look English: "âm".
    # A longer word in -ed is a verb: "earned".
    return word.isascii() and ((len(word) > 4 and word.endswith("ed")) or is_english_word(word.lower()))


def _find_word_before(before: str) -> str | None:
    """Return the word directly before a number, unless it is known to leave the number as it is."""
    words = _load_words()
    match = _WORD_BEFORE.search(before)
    if match is None or match[1].lower() in words.plain_before:
        return None
    if words.plain_parts_before.search(before[: match.end(1)]):
        return None
    # "C'est": the word after the apostrophe.
    last = re.split(r"['’-]", match[1])[-1].lower()
    return None if last in words.plain_before or follows_range_word(before) else match[1]


def _find_word_after(after: str) -> str | None:
    """Return the word directly after a number, unless it is known to leave the number as it is."""
    words = _load_words()
    match = _WORD_AFTER.match(after)
    if match is None or words.plain_parts_after.match(match[1]) or words.answer_after.match(after):
        return None
    word = match[1].lower()
    is_plural = word.endswith("s") and len(word) > 3 and word not in words.no_plurals
    return None if is_plural or word in words.plain_after else match[1]


def _is_foreign_bound(number: ParsedNumber) -> bool:
    words = _load_words()
    if words.bound_after.match(number.after):
        return True
    match = words.bound_before.search(number.before)
    # "3 bis 5" is a range.
    return match is not None and not re.search(r"\d\W*\Z", number.before[: match.start()])


def _is_english(text: str) -> bool:
    """Return whether a text has English function words and does not read as another language."""
    words, shared = _find_words(text), _load_words().shared_with_english
    count = sum(word in load_english_only_words() and word not in shared for word in words)
    if count and text.isascii() and count >= _CLEARLY_ENGLISH * len(words):
        return True
    return count > 0 and not explain_foreign(text[:_MAX_CHARACTERS])


def _may_be_english(text: str) -> bool:
    """Return whether a text without words that are only English reads as English.

    Nearly all of four or more words are known, or all words, or there are names beside two longer known words.
    """
    words = [word for word in _WORD.findall(text[:_MAX_CHARACTERS]) if len(word) > 1]
    plain = _load_words().plain_before | _load_words().plain_after
    unknown = [word for word in words if not _is_known(word) and word.lower() not in plain]
    has_function_word = any(word.lower() in load_function_words() for word in words)
    if has_function_word and len(words) > _FEW_WORDS and len(unknown) <= _MAX_UNKNOWN * len(words):
        return True
    if any(not word[0].isupper() for word in unknown):
        return False
    # A verb in -ed is a sign of English.
    known = [word for word in words if word.islower() and len(word) > 3 and word not in unknown]
    return not unknown or len(known) + sum(word.endswith("ed") for word in known) > 1


def _find_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text[:_MAX_CHARACTERS])]


def _apply_long_scale(number: ParsedNumber, scale: str, text: str, *, is_foreign: bool) -> ParsedNumber:
    """Read "billion" as 10^12 in another language; a plural without other words may be either."""
    factor = _load_words().long_scales.get(scale)
    if factor is None:
        return number
    if not is_foreign:
        is_unclear = scale.endswith("s") or not all(map(_is_known, _find_words(text)))
        doubt = f"the text is not clearly English, and {scale!r} has two meanings"
        return number._replace(category="unclear", doubt=doubt) if is_unclear else number
    return number._replace(value=number.value * factor, alternatives=())
