"""The identity of a callable: a digest of the code and the files that it reaches."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from proctor.core.identity.walk import Walk

# Increase it when the same code would get another digest: runs stored before are then reported as
# "cannot be compared" instead of "has changed".
SCHEME = 4
_PREFIXED = re.compile(r"(\d+):[0-9a-f]{16}")
_FIRST_SCHEME = re.compile(r"[0-9a-f]{16}")


class Identity(NamedTuple):
    """A digest with its scheme, and one phrase for everything that the digest does not cover."""

    digest: str
    uncovered: tuple[str, ...] = ()


def identity_of(obj: Any) -> str:
    """Return a short digest that changes with the code that a callable reaches and with its data.

    >>> identity_of(len) == identity_of(len)
    True
    """
    return examine(obj).digest


def examine(obj: Any) -> Identity:
    """Return the identity of a callable, with what it does not cover.

    >>> examine(len).uncovered
    ()
    """
    walk = Walk(frozenset())
    walk.visit_all(obj)
    while walk.changed - walk.ignored:
        # Collections that the code fills while it runs are state: walk again without them.
        walk = Walk(walk.changed | walk.ignored)
        walk.visit_all(obj)
    for label, digest in walk.files.digests(walk.uncovered):
        walk.note("file", f"{label} {digest}".encode(errors="backslashreplace"))
    return Identity(f"{SCHEME}:{walk.state.hexdigest()[:16]}", walk.uncovered.phrases())


def scheme_of(identity: str) -> int | None:
    """Return the scheme of an identity, or None if it is not a digest of code.

    >>> scheme_of("2:0123456789abcdef"), scheme_of("0123456789abcdef@v1"), scheme_of("mine")
    (2, 1, None)
    """
    digest = identity.partition("@")[0]
    prefixed = _PREFIXED.fullmatch(digest)
    if prefixed is not None:
        return int(prefixed[1])
    return 1 if _FIRST_SCHEME.fullmatch(digest) else None


def is_other_scheme(first: str, second: str) -> bool:
    """Return whether two identities have different schemes and therefore cannot be compared.

    >>> is_other_scheme("0123456789abcdef", "2:0123456789abcdef")
    True
    """
    schemes = scheme_of(first), scheme_of(second)
    return None not in schemes and schemes[0] != schemes[1]
