"""Run the tests on every other supported Python that is installed.

python tools/every_python.py          the tests that depend on the Python version
python tools/every_python.py --all    all tests
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.11", "3.12", "3.13")
# Independent of the Python version: wire formats, servers, log formats, computations on data, command lines.
# Tasks, threads, typing, bytecode, SQLite, sums and error texts depend on it.
SAME_EVERYWHERE = (
    "tests/cli/test_collect.py",
    "tests/cli/test_gate.py",
    "tests/cli/test_gate_refusals.py",
    "tests/cli/test_outputs.py",
    "tests/cli/test_pipes.py",
    "tests/cli/test_worker.py",
    "tests/distributed/test_chaos.py",
    "tests/distributed/test_deadly_samples.py",
    "tests/distributed/test_on_ray.py",
    "tests/docs",
    "tests/embedders",
    "tests/evaluators",
    "tests/gates",
    "tests/hostile_inputs",
    "tests/importers",
    "tests/mailboxes",
    "tests/models/providers",
    "tests/rubrics",
    "tests/statistics/test_simulations.py",
    "tests/web/test_browser.py",
    "tests/web/test_markup.py",
)


def find(version: str) -> str | None:
    """Find a Python of this version on the PATH or in pyenv."""
    candidates = [shutil.which(f"python{version}")]
    pyenv = shutil.which("pyenv")
    if pyenv:
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True).stdout.strip()
        results = sorted(Path(root, "versions").glob(f"{version}*/bin/python"))
        candidates += [str(path) for path in results]
    for candidate in candidates:
        if candidate and _is_version(candidate, version):
            return candidate
    return None


def _is_version(python: str, version: str) -> bool:
    process = subprocess.run([python, "--version"], capture_output=True, text=True)
    return process.returncode == 0 and process.stdout.startswith(f"Python {version}.")


def main() -> None:
    current = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in SUPPORTED:
        if version == current:
            continue
        python = find(version)
        if python is None:
            print(f"Python {version} is not installed: its tests are skipped")
            continue
        print(f"Python {version}:", flush=True)
        venv = ROOT / f".venv-{version}"
        subprocess.run([python, ROOT / "tools" / "bootstrap.py", venv, "dev"], check=True)
        tests = [str(venv / "bin" / "python"), "-m", "pytest", "-q", "--no-header"]
        tests += ["-n", "auto", "--dist", "worksteal"]
        if "--all" not in sys.argv:
            tests += [f"--ignore={path}" for path in SAME_EVERYWHERE]
        environment = os.environ | {"PROCTOR_KILLS": "20", "PYTHONDONTWRITEBYTECODE": ""}
        if subprocess.run(tests, cwd=ROOT, env=environment).returncode:
            sys.exit(f"the tests fail on Python {version}")


if __name__ == "__main__":
    main()
