"""Pin requirements/*.in into requirements/*.txt: versions with hashes, for every supported Python.

python tools/lock.py          upgrade everything
python tools/lock.py --keep    add and remove packages, and keep the versions of the others

Needs `uv`, which it installs into the environment it runs in. No index address is written.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "requirements"
INPUTS = {
    "run": ["run.in"],
    "demo": ["run.in", "demo.in"],
    "dev": ["run.in", "dev.in"],
    "fuzz": ["run.in", "fuzz.in"],
    "models": ["models.in"],
}


def main() -> None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "uv"], check=True)
    upgrade = [] if "--keep" in sys.argv[1:] else ["--upgrade"]
    for name, inputs in INPUTS.items():
        command = [
            sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", *upgrade,
            "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate",
            "--no-emit-index-url", "--output-file", str(FOLDER / f"{name}.txt"),
            *(str(FOLDER / file) for file in inputs),
        ]  # fmt: skip
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
