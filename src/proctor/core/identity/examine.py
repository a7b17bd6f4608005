"""The identity of a callable: the walk over what it reaches, then the files that it names."""

from __future__ import annotations

from typing import Any

from proctor.core.identity.scheme import SCHEME, Identity
from proctor.core.identity.walk import Walk


def identity_of(thing: Any) -> str:
    """A short digest that changes when the code a callable reaches, or its data, changes.

    >>> identity_of(len) == identity_of(len)
    True
    """
    return examine(thing).digest


def examine(thing: Any) -> Identity:
    """The identity of a callable, and what of it cannot be covered.

    >>> examine(len).uncovered
    ()
    """
    walk = Walk(frozenset())
    walk.all_from(thing)
    while walk.changed - walk.ignored:
        # Lists and caches that the code fills while it runs are state: looked at again without.
        walk = Walk(walk.changed | walk.ignored)
        walk.all_from(thing)
    for label, digest in walk.files.digests(walk.uncovered):
        walk.note("file", f"{label} {digest}".encode(errors="backslashreplace"))
    return Identity(f"{SCHEME}:{walk.state.hexdigest()[:16]}", walk.uncovered.phrases())
