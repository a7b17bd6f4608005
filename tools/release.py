"""Build a release, prove that it can be built again, and try it in empty environments.

python tools/release.py            everything: build, check, install on every Python, resolve the extras
python tools/release.py --build    only build and check

The files go to dist/: wheel, source distribution, CycloneDX document and SHA256SUMS. They are built from the files
of the last commit, so that nothing else of the folder gets into them.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import every_python
import third_party

from proctor.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
MAX_DISTRIBUTIONS, MAX_MEGABYTES = 20, 40
# What an installation has before Proctor.
PREINSTALLED = {"pip", "setuptools", "wheel"}


def main(options: list[str]) -> None:
    target = ROOT / "dist"
    with tempfile.TemporaryDirectory() as folder:
        first, second = (build(Path(folder, name)) for name in ("first", "second-time"))
        compare_builds(first, second)
        shutil.rmtree(target, ignore_errors=True)
        files = [Path(shutil.copy(path, make_folder(target))) for path in first]
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    write_sbom(target, files)
    wheel = next(path for path in files if path.suffix == ".whl")
    if "--build" in options:
        return
    for version in every_python.SUPPORTED:
        python = every_python.find(version)
        if python is None:
            print(f"Python {version} is not installed: not tried")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try_wheel(python, version, wheel, Path(folder))
    resolve_extras(wheel)


def make_folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def build(folder: Path) -> list[Path]:
    """Build wheel and source distribution from the last commit, dated by it."""
    source, archive = make_folder(folder / "source"), folder / "source.tar"
    run("git", "archive", "--output", archive, "HEAD", cwd=ROOT)
    with tarfile.open(archive) as tar:
        tar.extractall(source, filter="data")
    seconds = capture("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    environment = os.environ | {"SOURCE_DATE_EPOCH": seconds}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source]
    run(*command, env=environment, quiet=True)
    return sorted((folder / "dist").iterdir())


def compare_builds(first: list[Path], second: list[Path]) -> None:
    """Exit if two builds are not the same, byte by byte."""
    assert [path.name for path in first] == [path.name for path in second], (first, second)
    for path, again in zip(first, second, strict=True):
        if not filecmp.cmp(path, again, shallow=False):
            sys.exit(f"{path.name} differs between two builds of one commit")
        print(f"{path.name}: two builds are identical, {path.stat().st_size / 1e6:.1f} MB", flush=True)


def write_sbom(target: Path, files: list[Path]) -> None:
    """Write the CycloneDX document and the digests of all files."""
    document = target / f"proctor-{VERSION}.cdx.json"
    sbom = third_party.build_sbom(VERSION, files)
    document.write_text(json.dumps(sbom, indent=1) + "\n", encoding="utf-8")
    print(f"{document.name}: {len(sbom['components'])} components")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in [*files, document]]
    (target / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def try_wheel(python: str, version: str, wheel: Path, folder: Path) -> None:
    """Install the wheel into an empty environment, run an evaluation, and measure the installation."""
    run(python, "-m", "venv", folder / "env")
    scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    before = measure(folder / "env")
    run(scripts / "python", "-m", "pip", "install", "--quiet", "--no-compile", wheel, quiet=True)
    size = (measure(folder / "env") - before) / 1e6
    installed = json.loads(capture(scripts / "python", "-m", "pip", "list", "--format=json"))
    count = len({entry["name"].lower() for entry in installed} - PREINSTALLED)
    print(f"Python {version}: {count} distributions, {size:.1f} MB without compiled files", flush=True)
    if count > MAX_DISTRIBUTIONS or size > MAX_MEGABYTES:
        sys.exit(f"a core install must have at most {MAX_DISTRIBUTIONS} distributions and {MAX_MEGABYTES} MB")
    printed_version = capture(scripts / "proctor", "--version", cwd=folder)
    if not re.search(rf"\b{re.escape(VERSION)}\b", printed_version):
        sys.exit(f"proctor --version prints {printed_version!r} instead of {VERSION}")
    run(scripts / "proctor", "init", "evals", cwd=folder, quiet=True)
    output = capture(scripts / "proctor", "run", "eval.yaml", cwd=folder / "evals")
    print(*(line for line in output.splitlines() if " passed (" in line), sep="\n", flush=True)


def measure(folder: Path) -> int:
    """Return the size of the files of an environment in bytes."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def resolve_extras(wheel: Path) -> None:
    """Let pip resolve all extras together; a dry run, because they take gigabytes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ",".join(name for name in project["optional-dependencies"] if name != "all")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    report = json.loads(capture(*command, "--only-binary", ":all:", f"{wheel}[{extras}]"))
    print(f"all extras together ({extras}): {len(report['install'])} distributions resolve (dry run)")


def run(*command: object, cwd: Path | None = None, env: dict[str, str] | None = None, quiet: bool = False) -> None:
    """Run a command, and exit if it fails."""
    stream = subprocess.PIPE if quiet else None
    process = subprocess.run([str(part) for part in command], cwd=cwd, env=env, stdout=stream, stderr=stream, text=True)
    if process.returncode:
        sys.exit(f"{process.stdout or ''}{process.stderr or ''}\nfailed: {' '.join(map(str, command))}")


def capture(*command: object, cwd: Path | None = None) -> str:
    """Run a command and return its output; exit if it fails."""
    process = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if process.returncode:
        sys.exit(f"{process.stdout}{process.stderr}\nfailed: {' '.join(map(str, command))}")
    return process.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
