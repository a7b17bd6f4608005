"""The identity of callables: a digest of the code, constants and files that they reach."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from proctor.core.identity.contents import address_in, name_of
from proctor.core.identity.walk import Walk

__all__ = ["SCHEME", "Identity", "address_in", "examine", "identity_of", "is_other_scheme", "name_of"]

# Increase it when the same code would get another digest: runs stored before are then reported as
# "cannot be compared" instead of "has changed".
SCHEME = 5
_PREFIXED = re.compile(r"(\d+):[0-9a-f]{16}")
_FIRST_SCHEME = re.compile(r"[0-9a-f]{16}")


class Identity(NamedTuple):
    """A digest with its scheme, and one phrase for everything that the digest does not cover."""

    digest: str
    uncovered: tuple[str, ...] = ()


def identity_of(obj: Any) -> str:
    """Return a short digest that changes with the code that a callable reaches and with its data."""
    return examine(obj).digest


def examine(obj: Any) -> Identity:
    """Return the identity of a callable, with what it does not cover."""
    walk = Walk(frozenset())
    walk.visit_all(obj)
    while walk.changed - walk.ignored:
        # Collections that the code fills while it runs are state: walk again without them.
        walk = Walk(walk.changed | walk.ignored)
        walk.visit_all(obj)
    for label, digest in walk.files.digests(walk.uncovered):
        walk.note("file", f"{label} {digest}".encode(errors="backslashreplace"))
    return Identity(f"{SCHEME}:{walk.state.hexdigest()[:16]}", walk.uncovered.phrases())


def _scheme_of(identity: str) -> int | None:
    """Return the scheme of an identity, or None if it is not a digest of code."""
    digest = identity.partition("@")[0]
    prefixed = _PREFIXED.fullmatch(digest)
    if prefixed is not None:
        return int(prefixed[1])
    return 1 if _FIRST_SCHEME.fullmatch(digest) else None


def is_other_scheme(first: str, second: str) -> bool:
    """Return whether two identities have different schemes and therefore cannot be compared."""
    schemes = _scheme_of(first), _scheme_of(second)
    return None not in schemes and schemes[0] != schemes[1]
