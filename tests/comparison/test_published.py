"""Numbers that others published, found again through the evaluators and the comparison.

The data is not part of the project: it is read from PROCTOR_DATA (by default ../shared/data).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.quality import differences

from tests.surroundings import ROOT

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))


def test_published_differences_are_found_again() -> None:
    """GSM8K's pairs, McNemar p and Wilson interval, NIST's silver, tau-bench's clustered error."""
    try:
        figures = list(differences.measure(DATA))
    except FileNotFoundError as error:
        pytest.skip(f"there is no {error.filename} (set PROCTOR_DATA)")
    assert len(figures) == 11
    assert [figure.what for figure in figures if not figure.holds] == []
