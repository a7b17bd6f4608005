"""What counts as a number among a field's values: one rule for means, comparisons and rankings."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Any

# Beyond it differences and shares need not fit a float any more.
GREATEST = 1e300


def as_number(value: Any) -> float | None:
    """A value as a number: a boolean is 0 or 1; None of what is none, or is not finite.

    >>> as_number(True), as_number(450), as_number("450"), as_number(float("nan"))
    (1.0, 450.0, None, None)
    """
    if not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        # An integer that no float can hold.
        return None
    # NaN is not at most anything.
    return number if math.fabs(number) <= GREATEST else None


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
# What is taken away from something bad is good, if it is said last: tokens_saved, error_free.
_TAKEN = frozenset(
    _WORD.findall("saved saving savings avoided prevented fixed resolved recovered free reduced reduction")
)
# Such words may turn the sense of others, or tell of a setting and not of what was measured.
_TURNING = _TAKEN | frozenset(
    _WORD.findall(
        "left remaining limit limits limited budget budgets quota cap max maximum min minimum "
        "allowed allowance available unused cached cache timeout threshold target without no non "
        "handled caught corrected improvement gain"
    )
)
_TIMES = frozenset(["s", "sec", "second", "minute", "hour"])
_WORK = frozenset(["token", "tokens", "request", "requests", "sample", "samples", "words"])


def higher_is_better(name: str) -> bool | None:
    """True if more of it is better, False if less is, None if its name does not tell.

    The last word that tells decides: an `error_rate` is better lower, a `latency_score` higher.
    Work per time is better higher, and so is what was saved of something bad, as `tokens_saved`.
    Words that may turn the sense (`tokens_left`, `token_limit`) make it unknown. It is a guess from
    English names and is said to be one.

    >>> higher_is_better("usage.total_tokens"), higher_is_better("output.coherence")
    (False, True)
    >>> higher_is_better("tokens_per_second"), higher_is_better("temperature")
    (True, None)
    >>> higher_is_better("errors_fixed"), higher_is_better("max_tokens")
    (True, None)
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if "per" in words:
        place = words.index("per")
        counted, by = words[:place], words[place + 1 :]
        if _WORK.intersection(counted[-1:]) and _TIMES.intersection(by):
            return True
        words = counted
    told = [word for word in words if word in _LOWER or word in _HIGHER]
    if not told:
        return None
    if _TURNING.isdisjoint(words):
        return told[-1] in _HIGHER
    is_taken_away = words[-1] in _TAKEN and words[-2] in _LOWER
    return True if is_taken_away and len(_TURNING.intersection(words)) == 1 else None
