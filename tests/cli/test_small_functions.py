"""Small functions of `proctor.cli`, each by an example."""

from __future__ import annotations

from pathlib import Path

from proctor.cli.outputs import is_within


def test_is_within() -> None:
    """True if a path is another path or lies in that folder; links and `..` are resolved."""
    assert (is_within(Path("logs/../logs/new"), Path("logs")), is_within(Path("logs2"), Path("logs"))) == (True, False)
