"""Fuzz the importers: `make fuzz`, or python -m fuzz.importers [--seconds N] [--seed N] …

Each format, and the detection of formats, is fuzzed in its own process for an equal share of the time. libFuzzer keeps
the inputs that reach new code of the importers; most mutations change the JSON, some the bytes. `fuzz/oracle.py`
defines what must hold. Failing inputs are shrunk and written to .fuzz/found/FORMAT/, with a command to reproduce them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.oracle import find_fault
from proctor.sessions.importers.session_files import AUTO, FORMATS

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".fuzz"


def main() -> int:
    """Fuzz, or replay a failing input."""
    arguments = _parse_arguments()
    if arguments.replay is not None:
        return _replay(arguments.replay, arguments.only or arguments.replay.absolute().parent.name)
    names = [arguments.only] if arguments.only else [AUTO, *FORMATS]
    for name in names:
        for folder in ("corpus", "found"):
            shutil.rmtree(HOME / folder / name, ignore_errors=True)
        _fuzz_format(name, arguments.seconds / len(names), arguments.seed, arguments.runs)
    results = [fault for name in names for fault in _describe_faults(name)]
    print(f"{len(results)} faults found" if results else "no fault found", *results, sep="\n")
    return 1 if results else 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz.importers")
    parser.add_argument("--seconds", type=float, default=300, help="time for all formats together")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same inputs")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each format, instead of a time")
    parser.add_argument("--only", choices=[AUTO, *FORMATS], help="fuzz only this format")
    parser.add_argument("--replay", type=Path, help="check a failing input again")
    return parser.parse_args()


def _fuzz_format(name: str, seconds: float, seed: int, runs: int) -> None:
    print(f"{name}: {f'{runs} inputs' if runs >= 0 else f'{seconds:.0f} s'} …", flush=True)
    command = [sys.executable, "-m", "fuzz.fuzz_format", name, str(seconds), str(seed), str(runs)]
    # The order of sets would make two runs differ.
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    process = subprocess.run(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    done = [" ".join(line.split()) for line in process.stderr.splitlines() if "DONE" in line]
    if process.returncode or not done:
        sys.exit(f"{process.stderr[-4000:]}\nthe fuzzer itself failed at {name}")
    print(f"  {done[-1]}", flush=True)


def _describe_faults(name: str) -> Iterator[str]:
    """Yield each fault, with the command that reproduces it."""
    for file in sorted((HOME / "found" / name).glob("*.input")):
        what = file.with_suffix(".fault").read_text(encoding="utf-8").splitlines()[-1]
        python = os.path.relpath(sys.executable)
        yield f"{name}: {what}\n  {python} -m fuzz.importers --replay {file.relative_to(ROOT)}"


def _replay(file: Path, name: str) -> int:
    """Check a file as the fuzzer did."""
    known = file.with_suffix(".fault")
    where = known.read_text(encoding="utf-8").splitlines()[0] if known.exists() else None
    form = None if name == AUTO else name
    with TemporaryDirectory() as folder:
        fault = find_fault(file.read_bytes(), form, Path(folder, "chat.jsonl"), where=where)
    print(f"{file} as {name}: {fault or 'no fault'}")
    return 0 if fault is None else 1


if __name__ == "__main__":
    sys.exit(main())
