"""Check and read numbers, and guess from a name whether higher is better."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from numbers import Integral, Real
from typing import Any


def is_number(value: Any) -> bool:
    """True for a finite number; a boolean is not a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # The integer is too large for a float.
        return False


def read_percent(text: Any) -> float | None:
    """Convert a percentage to a fraction; return None for any other string."""
    if not isinstance(text, str) or not text.rstrip().endswith("%"):
        return None
    try:
        share = float(Decimal(text.rstrip()[:-1].strip()) / 100)
    except InvalidOperation:
        return None
    return share if math.isfinite(share) else None


def is_fraction(value: Any) -> bool:
    """True for a number from 0 to 1."""
    return is_number(value) and 0 <= value <= 1


# No call uses more tokens or costs more than this; larger reported values are errors.
MAX_TOKENS = 10**12
MAX_COST = 1e9


def token_count(value: Any) -> int | None:
    """Read a reported number of tokens; return None if it is impossible."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    count = int(value)
    return count if 0 <= count <= MAX_TOKENS else None


def total_tokens(*counts: Any) -> Any:
    """Return the sum of the known counts, or the first impossible count, so that it is reported."""
    reported = [count for count in counts if count is not None]
    impossible = [count for count in reported if token_count(count) is None]
    if impossible:
        return impossible[0]
    return sum(map(int, reported)) if reported else None


# Differences and ratios of larger numbers may overflow.
MAX_NUMBER = 1e300


def as_number(value: Any) -> float | None:
    """Convert a value to a number: a boolean is 0 or 1; return None for anything but a finite number."""
    if not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        # The integer is too large for a float.
        return None
    # The comparison is False for NaN.
    return number if math.fabs(number) <= MAX_NUMBER else None


_WORD = re.compile(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+(?![a-z])[0-9]*")
_LOWER = frozenset(
    _WORD.findall(
        "token tokens latency duration time ms seconds cost costs price usd loss perplexity "
        "toxicity hallucinations error errors failure failures retry retries timeouts"
    )
)
_HIGHER = frozenset(
    _WORD.findall(
        "score scores reward rating grade passed success successes accuracy precision recall f1 "
        "auc auroc throughput tps similarity coherence relevance quality groundedness faithfulness"
    )
)
# As the last word, these reverse the direction: tokens_saved, error_free.
_REDUCING = frozenset(
    _WORD.findall("saved saving savings avoided prevented fixed resolved recovered free reduced reduction")
)
# These words may reverse the meaning of other words, or denote a setting instead of a measurement.
_AMBIGUOUS = _REDUCING | frozenset(
    _WORD.findall(
        "left remaining limit limits limited budget budgets quota cap max maximum min minimum "
        "allowed allowance available unused cached cache timeout threshold target without no non "
        "handled caught corrected improvement gain"
    )
)
_TIMES = frozenset(["s", "sec", "second", "minute", "hour"])
_WORK = frozenset(["token", "tokens", "request", "requests", "sample", "samples", "words"])


def higher_is_better(name: str) -> bool | None:
    """Return True if higher is better, False if lower is better, None if the name does not show it.

    The last known word decides: a lower `error_rate` is better, a higher `latency_score` is better. Work per time is
    better if it is higher; so is a reduction of something bad, as in `tokens_saved`. Ambiguous words (`tokens_left`,
    `token_limit`) make it unknown. The result is a guess from English names.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if "per" in words:
        index = words.index("per")
        numerator, denominator = words[:index], words[index + 1 :]
        if _WORK.intersection(numerator[-1:]) and _TIMES.intersection(denominator):
            return True
        words = numerator
    direction_words = [word for word in words if word in _LOWER or word in _HIGHER]
    if not direction_words:
        return None
    if _AMBIGUOUS.isdisjoint(words):
        return direction_words[-1] in _HIGHER
    is_reduction = words[-1] in _REDUCING and words[-2] in _LOWER
    return True if is_reduction and len(_AMBIGUOUS.intersection(words)) == 1 else None
