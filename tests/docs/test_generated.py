"""Generated files are fresh, and the check that says so can tell a stale one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import ROOT

NAMESPACES = ("datasets", "evaluators", "mailboxes", "metrics", "models", "reports", "targets", "testing")
FILES = [
    "docs/catalogue.md",
    "docs/cli.md",
    "docs/conformance.md",
    "src/proctor/schemas/eval.schema.json",
    "src/proctor/schemas/rubrics.schema.json",
    "src/proctor/__init__.pyi",
    "src/proctor/judges.pyi",
    *(f"src/proctor/{name}/__init__.pyi" for name in NAMESPACES),
]


def generate(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "generate.py", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_generated_files_are_fresh() -> None:
    """Catalogue, command line and schema are what the code says they are."""
    result = generate("--check")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_stale_file_is_named(tmp_path: Path) -> None:
    """A file that differs or is missing fails the check, and is written without `--check`."""
    assert generate("--into", tmp_path).stdout == "".join(f"wrote {name}\n" for name in FILES)
    assert generate("--into", tmp_path).stdout == ""
    (tmp_path / FILES[1]).write_text("old")
    (tmp_path / FILES[2]).unlink()
    result = generate("--check", "--into", tmp_path)
    assert result.returncode == 1
    assert result.stderr == "".join(f"{name} is stale: run python tools/generate.py\n" for name in FILES[1:3])
    assert (tmp_path / FILES[1]).read_text() == "old"
