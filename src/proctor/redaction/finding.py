"""One thing that a policy found in a text: what it is and where it stands, never the thing itself.

Scores are stored, so what is found must not be told; what is shown of it is masked.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was found, where it stands in the text, and a masked excerpt of it.

    It is not `sure` if it has the shape of something whose check digits do not hold.
    """

    kind: str
    start: int
    end: int
    excerpt: str = ""
    sure: bool = True


def finding(
    kind: str, text: str, start: int, end: int, *, keep: int = 1, sure: bool = True
) -> Finding:
    """A finding at a place of a text; the first `keep` characters are shown, no more than a fifth.

    >>> finding("email", "Ann: ann@example.com", 5, 20).excerpt
    'a… (15 characters)'
    """
    shown = text[start : start + min(keep, (end - start) // 5)]
    return Finding(kind, start, end, f"{shown}… ({end - start} characters)", sure)


def apart(found: Iterable[Finding]) -> list[Finding]:
    """Findings in the order of the text; of those that overlap the longest stays.

    >>> [one.kind for one in apart([Finding("a", 0, 3), Finding("b", 2, 9), Finding("c", 9, 10)])]
    ['b', 'c']
    """
    taken: list[Finding] = []
    for one in sorted(found, key=lambda one: (one.start, one.start - one.end)):
        if not taken or one.start >= taken[-1].end:
            taken.append(one)
        elif one.end - one.start > taken[-1].end - taken[-1].start:
            taken[-1] = one
    return taken
