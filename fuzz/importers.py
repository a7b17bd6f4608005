"""Fuzz the importers: `make fuzz`, or python -m fuzz.importers [--seconds N] [--seed N] …

Each format, and the finding out which it is, has its share of the time, in a process of its own.
libFuzzer keeps the inputs that reach new code of the importers; what is changed is mostly the JSON
in them, at times their bytes. What must hold is in `fuzz/oracle.py`. What fails is made small and
written to .fuzz/found/FORMAT/, with the command that shows it again.
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

from fuzz.oracle import fault_of
from proctor.sessions.importers.session_files import AUTO, FORMATS

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".fuzz"


def main() -> int:
    """Fuzz, or look at a file that was found."""
    given = _parsed()
    if given.replay is not None:
        return _replay(given.replay, given.only or given.replay.absolute().parent.name)
    names = [given.only] if given.only else [AUTO, *FORMATS]
    for name in names:
        for folder in ("corpus", "found"):
            shutil.rmtree(HOME / folder / name, ignore_errors=True)
        _share(name, given.seconds / len(names), given.seed, given.runs)
    found = [fault for name in names for fault in _found(name)]
    print(f"{len(found)} faults found" if found else "no fault found", *found, sep="\n")
    return 1 if found else 0


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz.importers")
    parser.add_argument("--seconds", type=float, default=300, help="for all formats together")
    parser.add_argument("--seed", type=int, default=1, help="the same makes the same inputs")
    parser.add_argument("--runs", type=int, default=-1, help="inputs a format, in place of a time")
    parser.add_argument("--only", choices=[AUTO, *FORMATS], help="one format")
    parser.add_argument("--replay", type=Path, help="look at a file that was found")
    return parser.parse_args()


def _share(name: str, seconds: float, seed: int, runs: int) -> None:
    print(f"{name}: {f'{runs} inputs' if runs >= 0 else f'{seconds:.0f} s'} …", flush=True)
    command = [sys.executable, "-m", "fuzz.share", name, str(seconds), str(seed), str(runs)]
    # The order of sets would make two runs differ.
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    told = subprocess.run(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    done = [" ".join(line.split()) for line in told.stderr.splitlines() if "DONE" in line]
    if told.returncode or not done:
        sys.exit(f"{told.stderr[-4000:]}\nthe fuzzer itself failed at {name}")
    print(f"  {done[-1]}", flush=True)


def _found(name: str) -> Iterator[str]:
    """The faults that were found, and how to see them again."""
    for file in sorted((HOME / "found" / name).glob("*.input")):
        what = file.with_suffix(".fault").read_text(encoding="utf-8").splitlines()[-1]
        python = os.path.relpath(sys.executable)
        yield f"{name}: {what}\n  {python} -m fuzz.importers --replay {file.relative_to(ROOT)}"


def _replay(file: Path, name: str) -> int:
    """Read a file as the fuzzer did."""
    known = file.with_suffix(".fault")
    where = known.read_text(encoding="utf-8").splitlines()[0] if known.exists() else None
    form = None if name == AUTO else name
    with TemporaryDirectory() as folder:
        fault = fault_of(file.read_bytes(), form, Path(folder, "chat.jsonl"), where=where)
    print(f"{file} as {name}: {fault or 'no fault'}")
    return 0 if fault is None else 1


if __name__ == "__main__":
    sys.exit(main())
