"""Settings for all tests: no deadlines for properties, and no settings of the user.

Coverage makes Python code three to four times slower, so properties use fewer examples while it is measured. Tests that
only compute, on lines that faster tests cover too, are marked `no_cover`.
"""

from __future__ import annotations

import csv
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from proctor.wiring import registry

# Test processes run in parallel; each should use one core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that starts the tests in the background ignores Ctrl-C for them; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("proctor", deadline=None)
settings.register_profile("traced", deadline=None, max_examples=30)
settings.load_profile("traced" if "COVERAGE_PROCESS_CONFIG" in os.environ else "proctor")


@pytest.fixture(autouse=True)
def _isolate_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the path, modules and evaluators after each test, and ignore the history of the user."""
    monkeypatch.delenv("PROCTOR_HISTORY", raising=False)
    monkeypatch.setattr(registry, "_process_evaluators", dict(registry._process_evaluators))
    path, modules, longest = list(sys.path), set(sys.modules), csv.field_size_limit()
    yield
    sys.path[:] = path
    csv.field_size_limit(longest)
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if "pytest-of" in Path(file).parts or "pytest-of" in file:
            del sys.modules[name]
