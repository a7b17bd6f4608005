"""Small functions of `proctor.cli`, each by an example."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from proctor.cli.options import pause_garbage_collection
from proctor.cli.outputs import is_within


def test_is_within() -> None:
    """True if a path is another path or lies in that folder; links and `..` are resolved."""
    assert (is_within(Path("logs/../logs/new"), Path("logs")), is_within(Path("logs2"), Path("logs"))) == (True, False)


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_off_during_imports_and_then_as_before(enabled: bool) -> None:
    """The imported objects are frozen once in a process, not again with whatever else exists later."""
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pause_garbage_collection():
            assert not gc.isenabled()
        frozen = gc.get_freeze_count()
        with pause_garbage_collection():
            kept: list[list[int]] = [[] for _ in range(1_000)]
        assert (gc.isenabled(), frozen > 0, gc.get_freeze_count() <= frozen, len(kept)) == (enabled, True, True, 1_000)
    finally:
        (gc.enable if before else gc.disable)()
        gc.unfreeze()
