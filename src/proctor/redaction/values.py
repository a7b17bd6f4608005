"""What a value looks like: random as a key, a word, code, or what stands for want of a secret."""

from __future__ import annotations

import math
import re
from collections import Counter

# A random value of 16 characters or more has at least so many bits in each.
LEAST_BITS = 3.0
_LEAST_LENGTH, _SHORT_LENGTH, _JUMBLED_LENGTH = 12, 6, 16

# A long random value holds a short word now and then: of 1,600 characters about one in fifteen has
# "xxx" or "fake" somewhere. So words count anywhere only if they are long, else by themselves.
_PLACEHOLDER = re.compile(
    r"example|placeholder|redact|changeme|change[_-]me|sample|insert|replace|masked|hidden|foobar"
    r"|not[_-]?real|x{6}|\*\*\*|\.\.\.|…|<|>|\{\{|\$\{|%\(|[@#$]\{"
    r"|(?<![A-Za-z0-9])(?:your|(?:dummy|fake|todo|fixme|xxx+)(?![A-Za-z0-9]))"
    r"|^(?:dummy|fake|todo|fixme)|^xxx|xxx$",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?:[A-Za-z_][A-Za-z_]*(?:\.[A-Za-z_]+)+|[a-z_]+|[A-Z_]+|None|null|true|false|undefined"
    r"|[a-z]+(?:[A-Z][a-z]+)+|\$\w+|%\w+%|[a-z]+(?:-[a-z]+)+|https?:.*|/.*|[~.]/.*)[.,;]?"
)
_WEAK = re.compile(
    r"(?:pass(?:word|wd|code)?|secret|token|string|str|text|required|optional|none|null|value)s?\W*"
    r"|[*•●x.]+|\d{1,3}",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d{6,30}")


def entropy(value: str) -> float:
    """How many bits a character of a value holds, by how often each occurs.

    >>> entropy("aaaa"), entropy("abcd")
    (0.0, 2.0)
    """
    counts = Counter(value).values()
    return math.log2(len(value)) - math.fsum(n * math.log2(n) for n in counts) / len(value)


def is_placeholder(value: str) -> bool:
    """True for what stands where a secret should: EXAMPLE, xxxx, <your key>.

    >>> is_placeholder("sk-xxxxxxxxxxxx"), is_placeholder("q9Zr4Tn2"), is_placeholder("q9fakeZr4")
    (True, False, False)
    """
    return bool(_PLACEHOLDER.search(value)) or len(set(value)) <= 2


def is_weak(value: str) -> bool:
    """True for a word that only says what belongs there, and for placeholders.

    >>> is_weak("string"), is_weak("<password>"), is_weak("hunter2")
    (True, True, False)
    """
    return _WEAK.fullmatch(value) is not None or is_placeholder(value)


def is_key(value: str) -> bool:
    """True for a long value, mostly of letters and digits, that nobody wrote as words or code."""
    long = len(value) >= _LEAST_LENGTH and entropy(value) >= LEAST_BITS
    return long and (is_mixed(value) or _is_jumbled(value)) and not _CODE.fullmatch(value)


def _is_jumbled(value: str) -> bool:
    """True for sixteen letters or more of which about as many are large as small.

    >>> _is_jumbled("nxDZiweJLraSzvuXZJxJCLOa"), _is_jumbled("aLongNameOfSomeFunction")
    (True, False)
    """
    large, small = (sum(map(of, value)) for of in (str.isupper, str.islower))
    return len(value) >= _JUMBLED_LENGTH and min(large, small) >= 0.35 * len(value)


def is_short_key(value: str) -> bool:
    """True for what may be a key beside a name that leaves no doubt.

    >>> is_short_key("short1"), is_short_key("config.key1"), is_short_key("word")
    (True, False, False)
    """
    plain = len(value) >= _SHORT_LENGTH and not re.search(r"[./$:]", value)
    return plain and is_mixed(value) and not _CODE.fullmatch(value)


def is_password(value: str, *, quoted: bool) -> bool:
    """In quotes any word that is no name in a program; else only what no one writes as a word."""
    if quoted:
        return not re.fullmatch(r"[A-Z_]+|\$\w+|%\w+%|https?:.*", value)
    bare = value.rstrip(".,;!?")
    return bool(_DIGITS.fullmatch(bare)) or (is_mixed(bare) and not _CODE.fullmatch(bare))


def is_mixed(value: str) -> bool:
    """True if there are letters and digits in it."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))
