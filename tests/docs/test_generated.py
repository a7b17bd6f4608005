"""Generated files are fresh, and the check that says so can tell a stale one."""

from __future__ import annotations

import importlib
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

NAMESPACES = ("datasets", "evaluators", "mailboxes", "metrics", "models", "reports", "targets", "testing")
FILES = [
    "THIRD_PARTY.md",
    "llms.txt",
    "docs/catalogue.md",
    "docs/cli.md",
    "docs/conformance.md",
    "docs/peers.md",
    "examples/README.md",
    *(f"docs/reference/{name}.md" for name in ("eval-file-keys", "errors", "ports", "records")),
    "src/proctor/schemas/eval.schema.json",
    "src/proctor/schemas/rubrics.schema.json",
    "src/proctor/__init__.pyi",
    "src/proctor/judges.pyi",
    *(f"src/proctor/{name}/__init__.pyi" for name in NAMESPACES),
]


def test_generated_files_are_fresh() -> None:
    """Catalogue, command line and schema are what the code says they are."""
    command = [sys.executable, str(ROOT / "tools" / "generate.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_stale_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that differs or is missing fails the check, and is written without `--check`."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    generate = importlib.import_module("generate")
    texts = {name: f"{name}\n" for name in FILES}
    assert list(generate.WRITTEN) == FILES
    monkeypatch.setattr(generate, "WRITTEN", {name: partial(str, text) for name, text in texts.items()})
    into = ["--into", str(tmp_path)]
    assert generate.main(into) == 0
    assert capsys.readouterr().out == "".join(f"wrote {name}\n" for name in FILES)
    assert generate.main(into) == 0
    assert capsys.readouterr().out == ""
    assert {name: (tmp_path / name).read_text() for name in FILES} == texts
    (tmp_path / FILES[1]).write_text("old")
    (tmp_path / FILES[2]).unlink()
    assert generate.main(["--check", *into]) == 1
    assert capsys.readouterr().err == "".join(f"{name} is stale: run python tools/generate.py\n" for name in FILES[1:3])
    assert (tmp_path / FILES[1]).read_text() == "old"
