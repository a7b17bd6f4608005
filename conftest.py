"""Settings for all tests: properties take the time they need, and nobody's settings leak in.

While coverage traces every line, Python code takes three to four times as long. So properties are
then tried on fewer examples (without coverage, on the other Pythons, on all), and tests that do
nothing but compute, on lines that quicker tests reach too, are marked `no_cover`: not traced.
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

# Each of the tests' processes has a core of its own to itself, at best.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that starts the tests in the background ignores Ctrl-C for them; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("proctor", deadline=None)
settings.register_profile("traced", deadline=None, max_examples=30)
settings.load_profile("traced" if "COVERAGE_PROCESS_CONFIG" in os.environ else "proctor")


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has the path, modules and evaluators it found, and no history of the user's."""
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
