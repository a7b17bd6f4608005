"""Measure the evaluators on the data folder and print one table.

Usage: python -m benchmarks.quality [subject …]

The data is read from PROCTOR_DATA, else from ../shared/data; missing data is skipped with a notice. Exits with 1 if a
required figure is missed.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import quality
from benchmarks.quality.figure import Figure

NOT_SUBJECTS = {"__main__", "figure", "intervals"}


def main(wanted: list[str]) -> int:
    data = Path(os.environ.get("PROCTOR_DATA") or "../shared/data")
    console = Console()
    table = Table("", "data", "value", "reference", "required", "holds", "note", title="Quality")
    missed = 0
    for subject in wanted or subjects():
        began = time.perf_counter()
        for figure in figures(subject, data, console):
            missed += figure.holds is False
            table.add_row(*row(figure))
        console.print(f"{subject}: {time.perf_counter() - began:.0f} s")
    console.print(table)
    return 1 if missed else 0


def subjects() -> list[str]:
    """Return the modules of this folder, one for each kind of evaluator."""
    names = (module.name for module in pkgutil.iter_modules(quality.__path__))
    return sorted(name for name in names if name not in NOT_SUBJECTS)


def figures(subject: str, data: Path, console: Console) -> Iterator[Figure]:
    module = importlib.import_module(f"benchmarks.quality.{subject}")
    try:
        yield from module.measure(data)
    except FileNotFoundError as error:
        console.print(f"{subject}: not measured, there is no {error.filename}")


def row(figure: Figure) -> list[str]:
    holds = {True: "yes", False: "NO", None: ""}[figure.holds]
    value = f"{figure.value:,.0f}" if figure.value >= 10 else f"{figure.value:.4f}"
    return [figure.what, figure.data, value, figure.reference, figure.asked, holds, figure.note]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
