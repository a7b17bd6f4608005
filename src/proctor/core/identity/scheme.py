"""Which version of the identity rules computed a stored identity."""

from __future__ import annotations

import re
from typing import NamedTuple

# Raise it whenever the same code would get another digest: runs that were stored before are then
# reported as "cannot be compared" instead of "has changed".
SCHEME = 4
_PREFIXED = re.compile(r"(\d+):[0-9a-f]{16}")
_FIRST_SCHEME = re.compile(r"[0-9a-f]{16}")


class Identity(NamedTuple):
    """A digest with its scheme, and what the digest could not cover, one phrase each."""

    digest: str
    uncovered: tuple[str, ...] = ()


def scheme_of(identity: str) -> int | None:
    """The scheme that computed an identity, or None for one that is not a digest of code.

    >>> scheme_of("2:0123456789abcdef"), scheme_of("0123456789abcdef@v1"), scheme_of("mine")
    (2, 1, None)
    """
    digest = identity.partition("@")[0]
    prefixed = _PREFIXED.fullmatch(digest)
    if prefixed is not None:
        return int(prefixed[1])
    return 1 if _FIRST_SCHEME.fullmatch(digest) else None


def is_other_scheme(one: str, other: str) -> bool:
    """True if two identities were computed by different rules, so that comparing says nothing.

    >>> is_other_scheme("0123456789abcdef", "2:0123456789abcdef")
    True
    """
    schemes = scheme_of(one), scheme_of(other)
    return None not in schemes and schemes[0] != schemes[1]
