"""Where a pattern of a user's occurs in a text, in bounded time.

Python's `re` can take for ever, and nothing can stop it from inside: it never lets go of the
interpreter. So what may take long is looked for by a process of its own, which can be ended.
"""

from __future__ import annotations

import re
import subprocess
import sys

from proctor.errors import EvaluatorError
from proctor.evaluators.verdict import shown

SECONDS = 5.0
# With one repetition the time grows at most with the square of the length.
_SHORT = 5_000
# Each place where there is a choice may multiply the time, so a few are nothing.
_FEW_CHOICES = 8
_REPETITION = re.compile(r"[*+]|\{\d*,\d*\}|\\\d|\(\?P=")
_REPEATED_GROUP = re.compile(r"\)\s*(?:[*+]|\{)")
_OPTION = re.compile(r"(?<![(*+?}])\?")
_NO_REPETITION = re.compile(r"\\[^\d]|\[\^?\]?(?:\\.|[^\]\\])*\]")
_LOOK = """
import re, sys
given = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
flags, size = map(int, sys.argv[1:])
for match in re.finditer(given[:size], given[size:], flags):
    print(*match.span())
"""


def occurrences_of(pattern: re.Pattern[str], text: str, *, seconds: float = SECONDS) -> int:
    """How often a pattern matches in a text; an error if that takes longer than `seconds`.

    >>> occurrences_of(re.compile("an"), "banana")
    2
    """
    return len(places_of(pattern, text, seconds=seconds))


def places_of(
    pattern: re.Pattern[str], text: str, *, seconds: float = SECONDS
) -> list[tuple[int, int]]:
    """Where a pattern matches in a text; an error if that takes longer than `seconds`.

    >>> places_of(re.compile("an"), "banana")
    [(1, 3), (3, 5)]
    """
    if is_quick(pattern.pattern, len(text)):
        return [match.span() for match in pattern.finditer(text)]
    given = (pattern.pattern + text).encode("utf-8", "surrogatepass")
    # Nothing but the standard library: no site packages, no surroundings.
    numbers = (pattern.flags & ~re.UNICODE.value, len(pattern.pattern))
    command = [sys.executable, "-I", "-S", "-c", _LOOK, *map(str, numbers)]
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, check=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise EvaluatorError(
            f"the pattern {shown(pattern.pattern)} was given up after {seconds:g} seconds",
            fix="write it without a repetition inside a repetition, or possessive: (?:a+)++",
        ) from None
    ends = [int(number) for number in done.stdout.split()]
    return list(zip(ends[::2], ends[1::2], strict=True))


def is_quick(pattern: str, length: int = 0) -> bool:
    """True if a pattern cannot take long on a text of this length.

    It repeats at most one thing, which is no group, has few choices, and looks back at nothing.

    >>> is_quick(r"<<[^*+]+>>"), is_quick(r"(a+)+b"), is_quick(r"(a|a)*b"), is_quick(r"\\+\\*")
    (True, False, False, True)
    """
    bare = _NO_REPETITION.sub("_", pattern)
    # The alternatives of one group are one choice.
    choices = len(_OPTION.findall(bare)) + min(bare.count("|"), bare.count("(") + 1)
    return (
        length <= _SHORT
        and len(_REPETITION.findall(bare)) <= 1
        and choices <= _FEW_CHOICES
        and not _REPEATED_GROUP.search(bare)
    )
