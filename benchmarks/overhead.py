"""What the framework costs beside the work itself: start, overhead, memory, concurrency, crashes.

    python benchmarks/overhead.py [w1 w2 memory w3 w4 w5 threads] [--instructions] [--bytecodes]

Every figure is measured in a fresh process, the best of three or five rounds with the spread, CPU
time unless it says wall; ratios are to a floor measured in the same run: plain asyncio with a semaphore of 20, the same
two checks, one JSON line a sample into a file. `cold` is the first run of a process, `warm` the best of its later runs.

Other load hardly affects two further figures of w2, both of a warm run: --instructions counts them with valgrind, where
time passes so slowly that batches are smaller than usual; --bytecodes counts the bytecodes that Python executes.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROUNDS = 3
PAIRED_ROUNDS = 5

Rounds = list[tuple[dict[str, float], dict[str, float]]]

PRELUDE = """
import asyncio, json, os, resource, sys, time

def rows(n):
    return [
        {"id": f"s{i}", "input": f"question {i} : what is {i} + {i} ?", "expected": f"answer {2 * i}"}
        for i in range(n)
    ]

def tell(**figures):
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(figures))

n = int(sys.argv[1])
runs = next((int(arg[5:]) for arg in sys.argv if arg.startswith("runs=")), 1)

def tell_runs(measured):
    first, *later = measured
    tell(**first, warm=min((figures["cpu"] for figures in later), default=first["cpu"]))
"""

FLOOR = (
    PRELUDE
    + """
async def main(sleep=0.0, concurrency=20):
    data = rows(n)
    answers = {row["input"]: row["expected"] for row in data}

    async def target(question):
        if sleep:
            await asyncio.sleep(sleep)
        return answers[question]

    semaphore = asyncio.Semaphore(concurrency)
    with open("floor.jsonl", "w") as file:
        async def one(row):
            async with semaphore:
                output = await target(row["input"])
                scores = {"exact_match": output == row["expected"], "contains": row["expected"] in output}
                file.write(json.dumps({"id": row["id"], "output": output, "scores": scores}) + "\\n")

        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(one(row) for row in data))
    return dict(cpu=time.process_time() - cpu, wall=time.perf_counter() - wall)

tell_runs([asyncio.run(main(*map(float, sys.argv[2:3]), *map(int, sys.argv[3:4]))) for _ in range(runs)])
"""
)

OURS = (
    PRELUDE
    + """
from proctor import Dataset, contains, evaluate, exact_match

sleep = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
concurrency = int(sys.argv[3]) if len(sys.argv) > 3 else 20
blocking = "threads" in sys.argv
dataset = Dataset.of(rows(n))
answers = {sample.input: sample.expected for sample in dataset}

async def target(question):
    if sleep:
        await asyncio.sleep(sleep)
    return answers[question]

def sync_target(question):
    return answers[question]

def run(data):
    return evaluate(sync_target if blocking else target, data, [exact_match, contains],
                    history="history.db", concurrency=concurrency, progress=False)

run(Dataset.of(rows(50)))  # so that imports and the making of the file are not counted
measured = []
for _ in range(runs):
    cpu, wall = time.process_time(), time.perf_counter()
    report = run(dataset)
    measured.append(dict(cpu=time.process_time() - cpu, wall=time.perf_counter() - wall))
    assert report.total == n and report.pass_rate == 1.0
tell_runs(measured)
"""
)

STREAMED = (
    PRELUDE
    + """
from proctor import JSONLDataset, contains, evaluate, exact_match

with open("data.jsonl", "w") as file:
    for i in range(n):
        file.write(json.dumps({"id": f"s{i}", "input": f"question {i} : what is {i} + {i} ?",
                               "expected": f"answer {2 * i}"}) + "\\n")

async def target(question):
    return f"answer {2 * int(question.split()[1])}"

cpu = time.process_time()
report = evaluate(target, JSONLDataset("data.jsonl"), [exact_match, contains],
                  history="history.db", progress=False)
assert report.total == n and report.pass_rate == 1.0
tell(cpu=time.process_time() - cpu)
"""
)

READ_BACK = (
    PRELUDE
    + """
from proctor import Dataset, SQLiteHistory, contains, evaluate, exact_match
from proctor.engine.finish import aggregate

data = rows(n)
answers = {row["input"]: row["expected"] if i % 10 else "wrong" for i, row in enumerate(data)}

async def target(question):
    return answers[question]

evaluate(target, data, [exact_match, contains], history="history.db", progress=False)
SQLiteHistory("history.db").report("latest")
cpu = time.process_time()
report = SQLiteHistory("history.db").report("latest")
metrics, _ = aggregate(report.results, report.metadata)
assert report.total == n and metrics["pass_rate"].value == 0.9
load = time.process_time() - cpu
cpu = time.process_time()
page = report.results.page(outcome="failed", evaluator="contains", offset=100, limit=50)
assert len(page) == 50
by_evaluator = time.process_time() - cpu
cpu = time.process_time()
page = report.results.page(outcome="failed", offset=100, limit=50)
assert len(page) == 50
tell(cpu=load, page=time.process_time() - cpu, page_by_evaluator=by_evaluator)
"""
)

CRASH = """
import asyncio, os, sys
from proctor import evaluate, exact_match
log = os.open("calls.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
async def target(text):
    os.write(log, (text + "\\n").encode())
    await asyncio.sleep(0.05)
    return text
data = [{"id": f"s{i}", "input": str(i), "expected": str(i)} for i in range(2000)]
evaluate(target, data, exact_match, history="history.db", concurrency=50, name="crash",
         progress=False, resume="crash" if "resume" in sys.argv else False)
"""


def measure(script: str, *args: object) -> dict[str, float]:
    """Run a script in a fresh process and folder; return what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", script, *map(str, args)], cwd=folder, capture_output=True, text=True, check=False
        )
    if done.returncode:
        sys.exit(done.stderr)
    output: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return output


def best(script: str, *args: object, key: str = "cpu") -> tuple[dict[str, float], float]:
    """Return the best of several rounds, and the relative distance of the worst."""
    results = sorted((measure(script, *args) for _ in range(ROUNDS)), key=lambda t: t[key])
    return results[0], results[-1][key] / results[0][key] - 1


def both(
    first: tuple[object, ...], second: tuple[object, ...], key: str = "cpu"
) -> list[tuple[dict[str, float], float]]:
    """Return the best of several rounds of two scripts, each with the relative distance of its worst round."""
    return pick_best(alternate(first, second), key)


def alternate(first: tuple[object, ...], second: tuple[object, ...], rounds: int = PAIRED_ROUNDS) -> Rounds:
    """Run two scripts alternately, so that other load affects both."""
    return [(measure(*first), measure(*second)) for _ in range(rounds)]  # type: ignore[arg-type]


def describe_ratios(rounds: Rounds, key: str) -> str:
    """Return the median ratio of the pairs, with the smallest and the largest."""
    ratios = sorted(second[key] / first[key] for first, second in rounds)
    return f"{statistics.median(ratios):.2f}x ({ratios[0]:.2f}-{ratios[-1]:.2f})"


def pick_best(rounds: Rounds, key: str = "cpu") -> list[tuple[dict[str, float], float]]:
    """Return the best round of each of two scripts, with the relative distance of its worst round."""
    results = []
    for output in zip(*rounds, strict=True):
        ordered = sorted(output, key=lambda figures: figures[key])
        results.append((ordered[0], ordered[-1][key] / ordered[0][key] - 1))
    return results


def row(*cells: object) -> None:
    print("  ".join(f"{cell!s:>16}" for cell in cells), flush=True)


def cpu_of(*command: str) -> tuple[float, float]:
    """Return CPU seconds and peak memory of a command, best of five."""
    figures = []
    for _ in range(5):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        figures.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
    return min(figures)


def w1() -> None:
    """Startup: import and --help compared with bare Python, and the size of the core install."""
    print("\nW1 start: CPU seconds and peak MB, best of 5")
    bare = cpu_of(sys.executable, "-c", "pass")
    for name, command in {
        "bare python": [sys.executable, "-c", "pass"],
        "import proctor": [sys.executable, "-c", "import proctor"],
        "proctor --help": [sys.executable, "-m", "proctor", "--help"],
        "run --help": [sys.executable, "-m", "proctor", "run", "--help"],
    }.items():
        cpu, memory = cpu_of(*command)
        row(name, f"{cpu:.3f} s", f"+{cpu - bare[0]:.3f} s", f"{memory:.0f} MB")
    names, size, bytecode = core_install()
    row("core install", f"{len(names)} packages", f"{size / 1e6:.1f} MB")
    print(
        f"  The files of the wheels; pip adds bytecode at installation, {bytecode / 1e6:.1f} MB for the dependencies."
    )


def core_install() -> tuple[set[str], int, int]:
    """Return the distributions of a core install, the size of their files, and of the dependencies' bytecode."""
    names: set[str] = set()
    size = bytecode = 0
    waiting = ["proctor"]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in names:
            continue
        names.add(name)
        result = importlib.metadata.distribution(name)
        files = [Path(str(result.locate_file(file))) for file in result.files or ()]
        if name == "proctor":
            package = Path(__file__).parent.parent / "src" / "proctor"
            files = [file for file in package.rglob("*") if "__pycache__" not in file.parts]
        for file in filter(Path.is_file, files):
            if "__pycache__" in file.parts:
                bytecode += file.stat().st_size
            else:
                size += file.stat().st_size
        for text in result.requires or ():
            requirement, _, marker = text.partition(";")
            if not marker.strip():
                waiting.append("".join(c if c.isalnum() or c in "-_" else " " for c in requirement).split()[0])
    return names, size, bytecode


COUNT_BYTECODES = """
import atexit, sys, threading
executed = [0]
def trace_opcodes(frame, event, _):
    executed[0] += event == "opcode"
    return trace_opcodes
def trace(frame, *_):
    frame.f_trace_opcodes, frame.f_trace_lines = True, False
    return trace_opcodes
atexit.register(lambda: print("Collected :", executed[0], file=sys.stderr))
threading.settrace(trace)
sys.settrace(trace)
"""


def w2() -> None:
    """Overhead per sample compared with the floor; results are durable in the history."""
    print("\nW2 overhead: CPU per sample, best of nine (spread); warm: the best of three later runs")
    print("ratio: the median of the ratios of the nine pairs (smallest to largest)")
    row("n", "floor cold", "proctor cold", "ratio", "floor warm", "proctor warm", "ratio", "peak MB")
    costs = {}
    for n in (1_000, 10_000, 50_000):
        load = (n, 0, 20, "runs=4")
        rounds = alternate((FLOOR, *load), (OURS, *load), rounds=9)
        (floor, floor_spread), (ours, spread) = pick_best(rounds)
        costs[n] = ours["cpu"] / n
        row(
            f"{n:,}",
            f"{floor['cpu'] / n * 1e6:.1f} µs (+{floor_spread:.0%})",
            f"{ours['cpu'] / n * 1e6:.1f} µs (+{spread:.0%})",
            describe_ratios(rounds, "cpu"),
            f"{floor['warm'] / n * 1e6:.1f} µs",
            f"{ours['warm'] / n * 1e6:.1f} µs",
            describe_ratios(rounds, "warm"),
            f"{ours['peak_mb']:.0f}",
        )
    row("50,000 / 1,000", "", "", f"{costs[50_000] / costs[1_000]:.2f}x")
    valgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    if "--bytecodes" in sys.argv:
        compare_counts("bytecodes", COUNT_BYTECODES)
    if "--instructions" in sys.argv and shutil.which("valgrind") is None:
        row("instructions", "valgrind is not installed")
    elif "--instructions" in sys.argv:
        compare_counts("instructions", "", *valgrind)


def compare_counts(unit: str, prelude: str, *counter: str, n: int = 10_000) -> None:
    """Print the instructions or bytecodes per sample of a warm run."""
    floor, ours = (count_warm(prelude + script, n, *counter) / n for script in (FLOOR, OURS))
    row(unit, f"{n:,} samples", f"floor {floor:,.0f}", f"proctor {ours:,.0f}", f"{ours / floor:.2f}x")


def count_warm(script: str, n: int, *counter: str) -> int:
    """Return what the second run of a script in one process executes: the count of two runs without that of one."""
    counts = []
    # The same hashes in both processes, so that they differ only in the second run.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    for runs in (1, 2):
        command = [*counter, sys.executable, "-c", script, str(n), "0", "20", f"runs={runs}"]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        counts.append(int(done.stderr.rpartition("Collected :")[2].split()[0]))
    return counts[1] - counts[0]


def memory() -> None:
    """Peak memory with a streamed dataset, for several sizes."""
    print("\nW2 memory: peak MB, dataset streamed from a file")
    small, large = measure(STREAMED, 10_000), measure(STREAMED, 1_000_000)
    row("10,000", f"{small['peak_mb']:.0f} MB", f"{small['cpu'] / 1e4 * 1e6:.1f} µs/sample")
    row("1,000,000", f"{large['peak_mb']:.0f} MB", f"{large['cpu'] / 1e6 * 1e6:.1f} µs/sample")
    row("growth", f"{large['peak_mb'] - small['peak_mb']:+.0f} MB")


def w3() -> None:
    """Concurrency: wall time compared with the ideal and the floor."""
    print("\nW3 concurrency: wall seconds, best of five")
    row("", "ideal", "floor", "proctor", "to ideal", "to floor")
    for n, concurrency in ((1_000, 100), (2_000, 1_000)):
        ideal = 0.05 * n / concurrency
        load = (n, 0.05, concurrency)
        (floor, _), (ours, _) = both((FLOOR, *load), (OURS, *load), key="wall")
        row(
            f"{n:,} at {concurrency:,}",
            f"{ideal:.2f}",
            f"{floor['wall']:.3f}",
            f"{ours['wall']:.3f}",
            f"{ours['wall'] / ideal:.2f}x",
            f"{ours['wall'] / floor['wall']:.2f}x",
        )


def w4() -> None:
    """Read a stored run of 50,000 results."""
    print("\nW4 reading back 50,000 results: CPU, best of three")
    output, _ = best(READ_BACK, 50_000)
    row("report+metrics", f"{output['cpu']:.3f} s")
    row("page of 50", f"{output['page'] * 1e3:.1f} ms")
    row("by evaluator", f"{output['page_by_evaluator'] * 1e3:.1f} ms")


def w5() -> None:
    """SIGKILL in the middle of a run, then resume."""
    print("\nW5 crash: SIGKILL half-way through 2,000 x 50 ms at concurrency 50, then resume")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "calls.log"
        process = subprocess.Popen([sys.executable, "-c", CRASH], cwd=folder)
        while not log.exists() or log.read_text().count("\n") < 1_000:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        subprocess.run([sys.executable, "-c", CRASH, "resume"], cwd=folder, check=True)
        called = log.read_text().split()
        from proctor import SQLiteHistory

        stored = [result.sample_id for result in SQLiteHistory(Path(folder) / "history.db").report("crash").results]
    row("results", f"{len(stored):,}")
    row("lost", 2_000 - len(set(stored)))
    row("counted twice", len(stored) - len(set(stored)))
    row("called twice", f"{len(called) - len(set(called))} (at most the 50 in flight)")


def threads() -> None:
    """Blocking targets in threads compared with async targets."""
    print("\nBlocking targets: CPU per sample, best of five")
    n = 10_000
    (waiting, _), (blocking, _) = both((OURS, n), (OURS, n, 0, 20, "threads"))
    row("async", f"{waiting['cpu'] / n * 1e6:.1f} µs")
    row("in threads", f"{blocking['cpu'] / n * 1e6:.1f} µs", f"{blocking['cpu'] / waiting['cpu']:.2f}x")


def main() -> None:
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    versions = {name: importlib.metadata.version(name) for name in ("proctor", "msgspec")}
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    benches: dict[str, Any] = {
        "w1": w1, "w2": w2, "memory": memory, "w3": w3, "w4": w4, "w5": w5, "threads": threads
    }  # fmt: skip
    for name in [name for name in sys.argv[1:] if not name.startswith("--")] or benches:
        benches[name]()


if __name__ == "__main__":
    main()
