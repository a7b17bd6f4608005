"""Fuzz one format: python -m fuzz.fuzz_format FORMAT SECONDS SEED RUNS."""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
from pathlib import Path
from random import Random

import atheris

# Modules imported here are instrumented: inputs that reach new code of them are kept and mutated further.
with atheris.instrument_imports(include=["proctor.sessions"]):
    from fuzz.oracle import SECONDS, Fault, find_fault
    from fuzz.seeds import LARGEST, create_mutator, load_seeds
    from fuzz.shrinking import shrink
    from proctor.sessions.importers.session_files import AUTO, FORMATS, load_format

    for _name in FORMATS:
        load_format(_name)

HOME = Path(__file__).resolve().parents[1] / ".fuzz"
# More faults are found when these are fixed.
_MAX_FAULTS = 20


def main(name: str, seconds: float, seed: int, runs: int) -> None:
    """Fuzz a format; libFuzzer ends the process."""
    known = load_seeds()
    change = create_mutator(data for files in known.values() for data in files).mutated
    corpus = HOME / "corpus" / name
    corpus.mkdir(parents=True)
    begin = [data for form, files in known.items() if name in (AUTO, form) for data in files]
    for number, data in enumerate(begin):
        (corpus / f"seed-{number:03}").write_bytes(data)

    def changed(data: bytes, largest: int, number: int) -> bytes:
        result = change(data, Random(number))
        return result if len(result) <= largest else data[:largest]

    options = ["fuzz", str(corpus), f"-seed={seed}", f"-max_len={2 * LARGEST}", "-len_control=0"]
    options += [f"-runs={runs}"] if runs >= 0 else [f"-max_total_time={max(1, round(seconds))}"]
    options += [f"-timeout={round(10 * SECONDS)}", "-rss_limit_mb=4096", "-reload=0"]
    # Always the same path, because the coverage depends on compared texts, such as the file name.
    finder = Finder(name, HOME / "corpus" / f"{name}.jsonl")
    atheris.Setup(options, finder.look, custom_mutator=changed)
    atheris.Fuzz()


class Finder:
    """Checks each input, and stores a small one for each fault."""

    def __init__(self, name: str, file: Path) -> None:
        self._form = None if name == AUTO else name
        self._folder = HOME / "found" / name
        self._file = file
        self._seen: set[tuple[str, str]] = set()

    def look(self, data: bytes) -> None:
        """Store an input that fails in a new way."""
        fault = find_fault(data, self._form, self._file)
        if fault is None or fault[:2] in self._seen or len(self._seen) >= _MAX_FAULTS:
            return
        self._seen.add(fault[:2])
        smallest = shrink(data, lambda it: self._fails_alike(it, fault), seconds=3)
        self._folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(repr(fault[:2]).encode()).hexdigest()[:12]
        Path(self._folder, f"{name}.input").write_bytes(smallest)
        text = f"{fault.where}\n{fault}\n"
        Path(self._folder, f"{name}.fault").write_text(text, encoding="utf-8")

    def _fails_alike(self, data: bytes, fault: Fault) -> bool:
        now = find_fault(data, self._form, self._file, where=fault.where)
        return now is not None and now[:2] == fault[:2]


if __name__ == "__main__":
    try:
        main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        # Atheris hangs if Python exits normally after an error.
        os._exit(1)
