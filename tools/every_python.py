"""Run the tests on every other supported Python that is installed.

python tools/every_python.py              the tests that depend on the Python version
python tools/every_python.py --all        all tests
python tools/every_python.py --prepare    only make the environments, with fewer packages than `--all` needs
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.11", "3.12", "3.13")
# Independent of the Python version: wire formats, servers, log formats, computations on data, command lines, pages,
# type checkers (which check for 3.11 everywhere), the specifications where other tests cover the same code, and what
# needs the packages that `tools/bootstrap.py` leaves out. Tasks, threads, typing, annotations, bytecode, imports,
# SQLite, sums, regular expressions and error texts depend on it.
SAME_EVERYWHERE = (
    "tests/cli/test_co[lm]*.py",
    "tests/cli/test_gate*.py",
    "tests/cli/test_local_judge_quality.py",
    "tests/cli/test_models.py",
    "tests/cli/test_outputs.py",
    "tests/cli/test_percent.py",
    "tests/cli/test_pipes.py",
    "tests/cli/test_slices.py",
    "tests/cli/test_worker.py",
    "tests/demo",
    "tests/distributed/test_chaos.py",
    "tests/distributed/test_deadly_samples.py",
    "tests/distributed/test_on_ray.py",
    "tests/distributed/test_ray_addresses.py",
    "tests/docs",
    "tests/embedders",
    "tests/evaluators",
    "tests/gates",
    "tests/history/test_postgres*.py",
    "tests/hostile_inputs",
    "tests/importers",
    "tests/mailboxes",
    "tests/models/providers",
    "tests/models/test_hf.py",
    "tests/models/test_weights.py",
    "tests/rubrics",
    "tests/spec/test_000_evaluators.py",
    "tests/spec/test_000_[jm]*.py",
    "tests/spec/test_000_reports.py",
    "tests/spec/test_001*.py",
    "tests/spec/test_002_[bd]*.py",
    "tests/spec/test_002_co*.py",
    "tests/spec/test_003*.py",
    "tests/spec/test_004*.py",
    "tests/statistics/test_simulations.py",
    "tests/test_architecture.py",
    "tests/test_spec_000.py",
    "tests/test_typing.py",
    "tests/validity",
    "tests/web/test_[bchmnp]*.py",
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
    options = set(sys.argv[1:])
    current = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in SUPPORTED:
        if version == current:
            continue
        python = find(version)
        if python is None:
            print(f"Python {version} is not installed: its tests are skipped")
            continue
        venv = ROOT / f".venv-{version}"
        level = "dev" if "--all" in options else "tests"
        subprocess.run([python, ROOT / "tools" / "bootstrap.py", venv, level], check=True)
        if "--prepare" not in options:
            print(f"Python {version}:", flush=True)
            run_tests(venv, [] if level == "dev" else [f"--ignore-glob={path}" for path in SAME_EVERYWHERE])


def run_tests(venv: Path, options: list[str]) -> None:
    """Run the tests in an environment, and exit if one fails."""
    command = [str(venv / "bin" / "python"), "-m", "pytest", "-q", "--no-header", "-n", "auto", "--dist", "worksteal"]
    # As in the Makefile: CI repeats a failed test once, and lists it as RERUN.
    command += ["--reruns", "1", "-raR"] if os.environ.get("CI") else []
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    if subprocess.run([*command, *options], cwd=ROOT, env=environment).returncode:
        sys.exit(f"the tests fail in {venv.name}")


if __name__ == "__main__":
    main()
