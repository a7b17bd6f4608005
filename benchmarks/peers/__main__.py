"""Run the workloads of Proctor and of other frameworks side by side, each in its own environment.

    python -m benchmarks.peers                     all frameworks; sets up `.venv-peers/` at the first call
    python -m benchmarks.peers deepeval ragas      some of them, besides the floor and Proctor
    python -m benchmarks.peers --rounds 1 --limit 1000

The frameworks take turns, so that a slow minute of the machine meets all of them. CPU time includes child processes; cold
is the first run of a process, warm its second one. Medians with the smallest and largest value. With `--write` the
figures go to `benchmarks/peers/figures.json`, from which `make generate` makes the table in the docs.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
ENVIRONMENTS = ROOT / ".venv-peers"
FIGURES = FOLDER / "figures.json"
PROMPTFOO = "promptfoo@0.121.20"
# Seconds after which a workload is given up.
TIMEOUT = 300


@dataclass(frozen=True)
class Peer:
    """A framework: its package, its script, how it stores results, and the largest n that ends in minutes."""

    name: str
    script: str
    durable: str
    largest: int = 10_000


PEERS = [
    Peer("floor", "floor.py", "a file, no sync", 50_000),
    Peer("proctor", "proctor.py", "SQLite, synced", 50_000),
    Peer("pydantic-evals", "pydantic_evals_run.py", "no"),
    Peer("ragas", "ragas_run.py", "no"),
    Peer("promptfoo", "promptfoo_run.py", "SQLite", 1_000),
    Peer("inspect-ai", "inspect_ai_run.py", "log and SQLite", 1_000),
    Peer("mlflow", "mlflow_run.py", "SQLite", 1_000),
    Peer("deepeval", "deepeval_run.py", "a file, rewritten", 1_000),
]
# name: (n, seconds of the target, concurrency, runs in one process)
WORKLOADS = {
    "W2 1,000": (1_000, 0.0, 20, 2),
    "W2 10,000": (10_000, 0.0, 20, 2),
    "W3 1,000 × 50 ms": (1_000, 0.05, 100, 1),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="frameworks; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each framework and workload")
    parser.add_argument("--limit", type=int, default=10_000, help="the largest number of samples")
    parser.add_argument("--write", action="store_true", help="write the figures that the docs show")
    options = parser.parse_args()
    known = [peer.name for peer in PEERS]
    if unknown := set(options.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    peers = [peer for peer in PEERS if not options.names or peer.name in {*options.names, "floor", "proctor"}]
    versions = {peer.name: set_up(peer) for peer in peers}
    figures = {}
    for name, workload in WORKLOADS.items():
        if workload[0] <= options.limit:
            figures[name] = run_workload(name, workload, peers, options.rounds)
    if options.write:
        machine = f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}"
        durable = {peer.name: peer.durable for peer in peers}
        document = {"machine": machine, "versions": versions, "durable": durable, "workloads": figures}
        FIGURES.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def set_up(peer: Peer) -> str:
    """Install a framework into its own environment, and return its version."""
    if peer.name == "floor":
        return ""
    if peer.name == "proctor":
        return version("proctor")
    folder = ENVIRONMENTS / peer.name
    if peer.name == "promptfoo":
        if not (folder / "node_modules").exists():
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", PROMPTFOO], cwd=folder, check=True)
        return PROMPTFOO.partition("@")[2]
    requirements = FOLDER / "requirements" / f"{peer.name}.txt"
    stamp = folder / ".installed"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        print(f"setting up {peer.name} …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*pip, "-r", requirements], check=True)
        stamp.write_text(requirements.read_text())
    lines = requirements.read_text().splitlines()
    return next(line.split()[0].partition("==")[2] for line in lines if line.startswith(f"{peer.name}=="))


def run_workload(
    name: str, workload: tuple[int, float, int, int], peers: list[Peer], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Run one workload in every framework, several times in turn, and print the medians."""
    measured: dict[str, list[dict[str, Any]]] = {}
    print(f"\n{name}\n{'':<16} {'cold µs':>24} {'warm µs':>24} {'wall s':>18} {'import s':>9} {'peak MB':>8}")
    for turn in range(rounds):
        for peer in peers:
            if workload[0] > peer.largest or "error" in (measured.get(peer.name) or [{}])[-1]:
                continue
            measured.setdefault(peer.name, []).append(run_once(peer, workload))
            print(f"  {peer.name} {turn + 1} of {rounds}", end="\r", file=sys.stderr)
    result = {}
    for peer in peers:
        rows = [row for row in measured.get(peer.name, []) if "cpu" in row]
        if not rows:
            reason = (measured.get(peer.name) or [{"error": f"not measured above {peer.largest:,} samples"}])[-1]
            print(f"{peer.name:<16} {reason['error']}")
            continue
        n = workload[0]
        columns = {
            "cold_us": [row["cpu"] / n * 1e6 for row in rows],
            "warm_us": [row["warm"] / n * 1e6 for row in rows],
            "wall": [row["wall"] for row in rows],
            "import": [row["import"] for row in rows],
            "peak_mb": [row["peak_mb"] for row in rows],
        }
        result[peer.name] = columns
        print(f"{peer.name:<16} {_spread(columns['cold_us'], 24, 1)} {_spread(columns['warm_us'], 24, 1)} "
              f"{_spread(columns['wall'], 18, 2)} {median(columns['import']):>9.2f} {median(columns['peak_mb']):>8.0f}")  # fmt: skip
    return result


def run_once(peer: Peer, workload: tuple[int, float, int, int]) -> dict[str, Any]:
    """Run a workload in a new process and a new folder, and return its figures or the error."""
    python = Path(sys.executable)
    if (ENVIRONMENTS / peer.name / "bin").exists():
        python = ENVIRONMENTS / peer.name / "bin" / "python"
    parts = [python, FOLDER / "workloads" / peer.script, *workload, ENVIRONMENTS / peer.name]
    command = [str(part) for part in parts]
    with tempfile.TemporaryDirectory() as folder:
        try:
            process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return {"error": f"more than {TIMEOUT} s"}
    if process.returncode:
        return {"error": (process.stderr or process.stdout).strip().splitlines()[-1]}
    figures: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    return figures


def _spread(values: list[float], width: int, digits: int) -> str:
    text = f"{median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"
    return f"{text:>{width}}"


if __name__ == "__main__":
    sys.exit(main())
