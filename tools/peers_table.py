"""The page that compares the cost of frameworks, made from the figures of `python -m benchmarks.peers --write`."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

FIGURES = Path(__file__).resolve().parent.parent / "benchmarks" / "peers" / "figures.json"

HEAD = """
What a framework costs besides the model calls, measured side by side in one run by `make peers`. The target
returns at once, two checks score each output, and every framework stores results in its default way. Each
framework has its own environment. The columns are CPU time for each sample in the first (cold) and second (warm)
evaluation of a process; {rounds}. The floor is plain asyncio that writes one JSON line for each sample.

Compare the rows of one table, not the figures of two machines: this run was on a machine that
also had other work ({machine}).
"""
TAIL = """
DeepEval and ragas score outputs that exist, so their script runs the target first, at the same concurrency. A
framework without a row was not part of this run, or takes more than five minutes at that size.
"""


def peers_page(notice: str) -> str:
    """Return the page, with a table for each workload."""
    document = json.loads(FIGURES.read_text(encoding="utf-8"))
    workloads = document["workloads"]
    count = max(len(columns["wall"]) for rows in workloads.values() for columns in rows.values())
    rounds = f"each figure is the median of {count} processes, with the smallest and largest value"
    if count == 1:
        rounds = "each figure is from one process, so it has no interval"
    parts = ["# Cost compared with other frameworks", notice, HEAD.strip().format(rounds=rounds, **document)]
    for name, rows in workloads.items():
        parts += [f"## {_title(name)}", _table(name, rows, document)]
    return "\n\n".join([*parts, TAIL.strip()]) + "\n"


def _title(name: str) -> str:
    kind, _, size = name.partition(" ")
    if kind == "W3":
        return "1,000 samples of 50 ms at concurrency 100 (0.50 s at best)"
    return f"{size} samples, concurrency 20"


def _table(name: str, rows: dict[str, Any], document: dict[str, Any]) -> str:
    if name.startswith("W3"):
        lines = ["| framework | wall time | peak memory |", "|---|---|---|"]
        for peer, columns in rows.items():
            lines.append(f"| {_label(peer, document)} | {_spread(columns['wall'], 2)} s | {_memory(columns)} |")
        return "\n".join(lines)
    lines = [
        "| framework | CPU per sample, cold | warm | times the floor (warm) | import | peak memory | stored in |",
        "|---|---|---|---|---|---|---|",
    ]
    floor = median(rows["floor"]["warm_us"])
    for peer, columns in rows.items():
        ratio = median(columns["warm_us"]) / floor
        start = "" if peer == "floor" else f"{median(columns['import']):.2f} s"
        lines.append(
            f"| {_label(peer, document)} | {_spread(columns['cold_us'])} µs | {_spread(columns['warm_us'])} µs | "
            f"{ratio:,.1f} | {start} | {_memory(columns)} | {document['durable'][peer]} |"
        )
    return "\n".join(lines)


def _label(peer: str, document: dict[str, Any]) -> str:
    return f"{peer} {document['versions'][peer]}".strip()


def _memory(columns: dict[str, list[float]]) -> str:
    return f"{median(columns['peak_mb']):,.0f} MB"


def _spread(values: list[float], digits: int = 0) -> str:
    if len(values) == 1:
        return f"{values[0]:,.{digits}f}"
    return f"{median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"
