"""A release names the work of others: vendored files with licence, version and digest, dependencies with pins."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "proctor"
KEYS = {"path", "source", "version", "licence", "notice", "sha256"}
# Larger data files are converted from other work; ours are written by hand or measured.
MAX_OWN_BYTES = 60_000
MARKS = re.compile(r"@license|@preserve|^\W*Copyright \(c\)", re.IGNORECASE | re.MULTILINE)


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("third_party")


def looks_vendored(path: Path) -> bool:
    """True for large data, minified code, and files with somebody's licence in them."""
    text = path.read_text(encoding="utf-8")
    minified = path.suffix in {".js", ".css"} and any(len(line) > 1_000 for line in text.splitlines())
    return len(text) > MAX_OWN_BYTES or minified or (path.name != "NOTICE.txt" and MARKS.search(text) is not None)


def test_every_vendored_file_is_listed(third_party: Any) -> None:
    """A large data file, minified code or a licence text in the package needs an entry."""
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyi", ".pyc"}]
    assert len(files) > 50
    listed = {entry["path"] for entry in third_party.read_vendored()}
    assert {path.relative_to(ROOT).as_posix() for path in files if looks_vendored(path)} == listed


def test_a_library_would_be_noticed(tmp_path: Path) -> None:
    """The check finds a minified script and a licence comment, and passes over our own code."""
    texts = {"a.js": "x" * 1_001, "b.js": "/* @license MIT */\nx()\n", "c.js": "// Ours.\nx()\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert [looks_vendored(tmp_path / name) for name in texts] == [True, True, False]


def test_vendored_files_have_licence_version_and_digest(third_party: Any) -> None:
    """The digest is that of the file, and its notice names source, version and licence."""
    for entry in third_party.read_vendored():
        assert entry.keys() == KEYS
        assert hashlib.sha256((ROOT / entry["path"]).read_bytes()).hexdigest() == entry["sha256"], entry["path"]
        notice = (ROOT / entry["notice"]).read_text(encoding="utf-8")
        assert f"{entry['source']} {entry['version']}" in notice
        assert f"{entry['licence']} License" in notice


def test_every_dependency_is_pinned_and_has_a_licence(third_party: Any) -> None:
    """The document names the direct dependencies, with digests of their files."""
    pins = {pin.name: pin for pin in third_party.read_pins()}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("dependencies = [")[2].partition("]")[0]
    assert set(re.findall(r'"([a-z0-9-]+)', project)) <= pins.keys()
    assert all(pin.digests for pin in pins.values())
    installed = [pin for pin in pins.values() if "== 'emscripten'" not in pin.marker]
    assert [
        pin.name for pin in installed if third_party.find_licence(pin.name) in ("not declared", "not installed here")
    ] == []


def test_the_sbom_lists_all_components(third_party: Any, tmp_path: Path) -> None:
    """Every reference exists once, the wheel is in it, and the same files give the same document."""
    wheel = tmp_path / "proctor-1.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    sbom = third_party.build_sbom("1.0", [wheel])
    references = [component["bom-ref"] for component in sbom["components"]]
    assert len(set(references)) == len(references)
    assert {"src/proctor/evaluators/safety/valence.json", wheel.name} <= {*references}
    assert sum(reference.startswith("pkg:pypi/msgspec@") for reference in references) == 1
    assert set(sbom["dependencies"][0]["dependsOn"]) <= {*references}
    (file,) = (component for component in sbom["components"] if component["name"] == wheel.name)
    assert file["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"wheel").hexdigest()}]
    assert json.dumps(third_party.build_sbom("1.0", [wheel])) == json.dumps(sbom)
