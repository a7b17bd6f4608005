"""Settings for all tests: properties take the time they need, and nobody's settings leak in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from proctor import registry

settings.register_profile("proctor", deadline=None)
settings.load_profile("proctor")


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has the path, modules and evaluators it found, and no history of the user's."""
    monkeypatch.delenv("PROCTOR_HISTORY", raising=False)
    monkeypatch.setattr(registry, "_for_all", dict(registry._for_all))
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if "pytest-of" in Path(file).parts or "pytest-of" in file:
            del sys.modules[name]
