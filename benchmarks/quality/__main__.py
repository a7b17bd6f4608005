"""Measure the evaluators on the data folder and print one table.

Usage: python -m benchmarks.quality [--write] [subject …]

The data is read from PROCTOR_DATA, else from ../shared/data; missing data is skipped with a notice. Large sets are
thinned to every n-th row with PROCTOR_QUALITY_EVERY=n. With --write, the figures are written to the evaluator cards.
Exits with 1 if a required figure is missed.
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
from benchmarks.quality.write_figures import FILE, write_figures

WRITE = "--write"
NOT_SUBJECTS = {"__main__", "figure", "fit_grounding", "grounding_sets", "intervals", "write_figures"}


def main(arguments: list[str]) -> int:
    wanted = [argument for argument in arguments if argument != WRITE]
    if "--help" in wanted or "-h" in wanted:
        print(f"{__doc__}\nSubjects: {', '.join(subjects())}")
        return 0
    if unknown := sorted(set(wanted) - set(subjects())):
        print(f"error: unknown subject {unknown[0]!r}\nFix: choose one of: {', '.join(subjects())}", file=sys.stderr)
        return 2
    data = Path(os.environ.get("PROCTOR_DATA") or "../shared/data")
    console = Console()
    table = Table("", "data", "value", "reference", "required", "holds", "note", title="Quality")
    measured: list[Figure] = []
    missing: list[str] = []
    for subject in wanted or subjects():
        began = time.perf_counter()
        for figure in figures(subject, data, missing):
            measured.append(figure)
            table.add_row(*row(figure))
        console.print(f"{subject}: {time.perf_counter() - began:.0f} s")
    for notice in missing:
        console.print(notice)
    console.print(table)
    if WRITE in arguments:
        # Only a complete run may remove figures that are no longer measured.
        count = write_figures(measured, replace_all=not wanted and not missing)
        console.print(f"{count} figures written to {FILE.name}")
    return 1 if any(figure.holds is False for figure in measured) else 0


def subjects() -> list[str]:
    """Return the modules of this folder, one for each kind of evaluator."""
    names = (module.name for module in pkgutil.iter_modules(quality.__path__))
    return sorted(name for name in names if name not in NOT_SUBJECTS)


def figures(subject: str, data: Path, missing: list[str]) -> Iterator[Figure]:
    module = importlib.import_module(f"benchmarks.quality.{subject}")
    try:
        yield from module.measure(data)
    except FileNotFoundError as error:
        missing.append(f"{subject}: not measured, there is no {error.filename}")


def row(figure: Figure) -> list[str]:
    holds = {True: "yes", False: "NO", None: ""}[figure.holds]
    value = f"{figure.value:,.0f}" if figure.value >= 10 else f"{figure.value:.4f}"
    what = f"{figure.evaluator}, {figure.what}" if figure.evaluator else figure.what
    note = "; ".join(str(part) for part in (figure.interval, figure.note) if part)
    return [what, figure.data, value, figure.reference, figure.asked, holds, note]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
