"""The work of others that a release contains or installs: THIRD_PARTY.md and the CycloneDX document.

python tools/third_party.py sbom.cdx.json    write the CycloneDX document
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
# Pinned with the package's own dependencies, and used to build it only.
BUILD_ONLY = {"editables", "hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers"}
CLASSIFIER = "License :: OSI Approved :: "
PINNED = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^\s;\\]+)(?: ; (?P<marker>[^\\\n]+?))? \\$", re.MULTILINE)
HEAD = """
Proctor is under the MIT licence ([LICENSE](LICENSE)). A release also contains or installs the work of others.
`make release` writes the same list, with the digests of every file, as a CycloneDX document next to the wheel.
"""


class Pin(NamedTuple):
    """A pinned distribution with the SHA-256 digests of its files."""

    name: str
    version: str
    marker: str
    digests: tuple[str, ...]


def read_pins(path: Path = ROOT / "requirements" / "run.txt") -> list[Pin]:
    """Read the distributions that a core install needs; those that only build the package are left out."""
    text = path.read_text(encoding="utf-8")
    pins = []
    for entry in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        if (match := PINNED.match(entry)) and match["name"] not in BUILD_ONLY:
            digests = tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry))
            pins.append(Pin(match["name"], match["version"], match["marker"] or "", digests))
    return pins


def read_vendored() -> list[dict[str, Any]]:
    """Read the list of vendored files."""
    entries: list[dict[str, Any]] = yaml.safe_load((ROOT / "tools" / "vendored.yaml").read_text(encoding="utf-8"))
    return entries


def find_licence(name: str) -> str:
    """Return the licence that an installed distribution declares."""
    try:
        fields = metadata(name)
    except ModuleNotFoundError:
        return "not installed here"
    if expression := fields.get("License-Expression"):
        return str(expression)
    licences = [text.removeprefix(CLASSIFIER) for text in fields.get_all("Classifier") or () if CLASSIFIER in text]
    text = ", ".join(licences) or str(fields.get("License") or "not declared").splitlines()[0]
    return "MIT" if text == "MIT License" else text


def page(notice: str) -> str:
    """Return THIRD_PARTY.md."""
    parts = ["# Third-party software", notice, HEAD.strip()]
    files = []
    for entry in read_vendored():
        source, text = f"{entry['source']} {entry['version']}", f"[text]({entry['notice']})"
        files.append((f"[`{entry['path']}`]({entry['path']})", source, entry["licence"], text, f"`{entry['sha256']}`"))
    parts += ["## Files in the package", _table(("file", "converted from", "licence", "its text", "sha256"), files)]
    parts.append("The JavaScript and CSS of the viewer are our own; the viewer contains no library.")
    pins = [pin for pin in read_pins() if "== 'emscripten'" not in pin.marker]
    needed = [(pin.name, pin.version, find_licence(pin.name)) for pin in pins]
    parts += ["## Distributions of a core install", _table(("distribution", "tested version", "licence"), needed)]
    parts.append("Extras install further distributions; pip resolves them when you ask for an extra.")
    weights = json.loads((ROOT / "src/proctor/models/weights.json").read_text(encoding="utf-8"))
    rows = [(f"`{name}`", entry["note"], entry["licence"]) for name, entry in weights.items()]
    parts += ["## Downloaded on request", "`proctor models pull NAME` downloads weights; nothing else downloads any."]
    return "\n\n".join([*parts, _table(("name", "contents", "licence"), rows)]) + "\n"


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def build_sbom(version: str, files: list[Path]) -> dict[str, Any]:
    """Return the CycloneDX document of a release; the same release gives the same document."""
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(digests, sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": _component("proctor", version, "MIT", kind="application")},
        "components": [*_distributions(), *_vendored_files(), *_release_files(version, digests)],
        "dependencies": [{"ref": f"pkg:pypi/proctor@{version}", "dependsOn": [_purl(p) for p in read_pins()]}],
    }


def _purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"


def _component(name: str, version: str, licence: str, *, kind: str = "library") -> dict[str, Any]:
    purl = f"pkg:pypi/{name.lower()}@{version}"
    choice = {"expression": licence} if re.fullmatch(r"[\w.+-]+( (AND|OR) [\w.+-]+)*", licence) else None
    licences = [choice or {"license": {"name": licence}}]
    return {
        "type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl, "licenses": licences,
    }  # fmt: skip


def _distributions() -> Iterator[dict[str, Any]]:
    for pin in read_pins():
        component = _component(pin.name, pin.version, find_licence(pin.name))
        marker = [{"name": "python:marker", "value": pin.marker}] if pin.marker else []
        digests = [{"name": "pypi:sha256", "value": digest} for digest in pin.digests]
        yield component | {"properties": [*marker, *digests]}


def _vendored_files() -> Iterator[dict[str, Any]]:
    for entry in read_vendored():
        source = _component(entry["source"], entry["version"], entry["licence"])
        yield {
            "type": "file",
            "bom-ref": entry["path"],
            "name": entry["path"],
            "version": entry["version"],
            "hashes": [{"alg": "SHA-256", "content": entry["sha256"]}],
            "licenses": source["licenses"],
            "pedigree": {"ancestors": [source | {"bom-ref": f"{entry['path']}#source"}]},
        }


def _release_files(version: str, digests: dict[str, str]) -> Iterator[dict[str, Any]]:
    for name, digest in sorted(digests.items()):
        hashes = [{"alg": "SHA-256", "content": digest}]
        yield {"type": "file", "bom-ref": name, "name": name, "version": version, "hashes": hashes}


if __name__ == "__main__":
    from proctor.version import VERSION

    Path(sys.argv[1]).write_text(json.dumps(build_sbom(VERSION, []), indent=1) + "\n", encoding="utf-8")
