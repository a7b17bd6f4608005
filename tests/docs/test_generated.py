"""Generated files are fresh, and the check that says so can tell a stale one."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.blocks import ROOT


def test_generated_files_are_fresh() -> None:
    """Catalogue, command line and schema are what the code says they are."""
    check = [sys.executable, ROOT / "tools" / "generate.py", "--check"]
    told = subprocess.run(check, capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
