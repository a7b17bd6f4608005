"""What packages offer under a name: entry points, the one road for built-ins and plugins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EVALUATORS = "proctor.evaluators"
PROVIDERS = "proctor.providers"
EMBEDDERS = "proctor.embedders"


def installed(group: str) -> Iterable[EntryPoint]:
    """All entry points of a group; where two packages take one name, Proctor's own comes first.

    >>> any(point.name == "matching" for point in installed(EVALUATORS))
    True
    """
    # Looking for installed packages is slow to import, and wanted here only.
    from importlib.metadata import entry_points

    return sorted(
        entry_points(group=group),
        key=lambda point: (not point.value.startswith("proctor."), point.name),
    )


def names(group: str) -> list[str]:
    """The names that are taken in a group."""
    return [point.name for point in installed(group)]


def find(group: str, name: str) -> Any:
    """The object that a package offers under a name, or None."""
    for point in installed(group):
        if point.name == name:
            return point.load()
    return None
