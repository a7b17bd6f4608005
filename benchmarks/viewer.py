"""How fast the viewer and the one-file report are with many samples.

    python benchmarks/viewer.py [--samples 100000] [--report-samples 10000] [--rounds 5]

A history of 100,000 samples in three configurations: the time from `proctor view` to the first answer, the answers of
every page as JSON, and in Chromium the time until the grid shows texts, rows without text while scrolling, and the
memory of the page. Then a one-file report of 10,000 samples of 1.2 kB: its size, and the time until it shows its grid.
Each figure has the limit that it is held to; the parts in a browser are skipped if there is no Chromium.
"""

from __future__ import annotations

import argparse
import http.client
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import msgspec

from proctor.engine.finish import aggregate
from proctor.history.sqlite import SQLiteHistory
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import Configuration, EvalResult, Trial
from proctor.reports.html import HTMLReporter

RUN = "large"
# With the question, the output and the reasons, a sample has 1.2 kB of text.
PASSAGE_LENGTH = 1_000
SHARES = {"small": 0.62, "medium": 0.71, "large": 0.74}
TOPICS = ("moons", "planets", "comets", "probes")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
START_SECONDS, INTERACTIVE_SECONDS, MEMORY_MB, REPORT_MB, ANSWER_MS = 0.5, 2.0, 300.0, 6.0, 100.0
FIRST_TEXT = "() => document.querySelector('.grid-body [data-row] .cell.input')?.innerText.trim().length > 0"
# Scrolls in steps of a screen, and counts rows of the screen without text 300 ms after each step.
SCROLL = """async () => {
  let rows = 0, pending = 0, blank = 0;
  const end = document.documentElement.scrollHeight;
  for (let step = 0; step < 40; step += 1) {
    scrollTo(0, (end * ((step * 7) % 40)) / 40);
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    if (!document.elementFromPoint(200, innerHeight - 40)?.closest('.row')) blank += 1;
    await new Promise((done) => setTimeout(done, 300));
    for (const row of document.querySelectorAll('.grid-body [data-row]')) {
      const { top, bottom } = row.getBoundingClientRect();
      if (bottom < 0 || top > innerHeight) continue;
      rows += 1;
      pending += row.querySelector('.pending') ? 1 : 0;
    }
  }
  return { rows, pending, blank };
}"""


class Figures:
    """The figures measured so far; a figure above its limit makes the benchmark fail."""

    def __init__(self) -> None:
        self.has_failed = False

    def add(self, name: str, value: float, unit: str, limit: float | None = None, note: str = "") -> None:
        """Print a figure beside its limit."""
        failed = limit is not None and value > limit
        self.has_failed |= failed
        bound = "" if limit is None else f"  ({'ABOVE' if failed else 'limit'} {limit:g} {unit})"
        print(f"{name:<46} {value:9.2f} {unit}{bound}{f'  {note}' if note else ''}", flush=True)


def store_run(path: Path, count: int, shares: dict[str, float], passages: str) -> SQLiteHistory:
    """Store a run with one result per sample and configuration, about a third of them failed."""
    history, random = SQLiteHistory(path), Random(7)
    run = RunMetadata(
        RUN,
        RUN,
        datetime(2026, 11, 1, tzinfo=UTC),
        dataset=DatasetInfo("questions.jsonl", "file", count, "f1"),
        configurations=tuple(Configuration(name, {"size": name}) for name in shares),
        evaluators=(
            EvaluatorSpec("contains", "contains"),
            EvaluatorSpec("judge", "llm_judge", {"model": "example:judge"}),
        ),
        total=count * len(shares),
        baseline=next(iter(shares)) if len(shares) > 1 else None,
    )
    history.begin(run)
    with history.writer(RUN) as writer:
        for number in range(count):
            start = random.randrange(max(1, len(passages) - PASSAGE_LENGTH))
            sample = make_sample(number, passages[start : start + PASSAGE_LENGTH])
            for place, (name, share) in enumerate(shares.items()):
                writer.add(number * len(shares) + place, make_result(sample, number, name, share, random))
    done = msgspec.structs.replace(run, status="completed")
    history.finish(done, *aggregate(history.results(RUN), done))
    return history


def make_sample(number: int, text: str) -> Sample[Any, Any]:
    topic = TOPICS[number % len(TOPICS)]
    question = f"Question {number} about {topic}: how far is object {number} from its star? {text}"
    return Sample(f"{topic}-{number}", question, f"{number} km", {"topic": topic, "level": number % 5})


def make_result(sample: Sample[Any, Any], number: int, name: str, share: float, random: Random) -> EvalResult:
    passed, agrees = random.random() < share, random.random() < 0.9
    judged = passed if agrees else not passed
    trial = Trial(
        sample,
        f"It is {number if passed else random.randint(1, 999_999)} km away, by the catalogue.",
        latency_ms=random.lognormvariate(6, 0.5),
        configuration=name,
        usage=Usage(120 + number % 40, 12, cost=0.0003),
    )
    scores = {
        "contains": Score(float(passed), passed, "" if passed else f"{sample.expected!r} is not in the output"),
        "judge": Score(float(judged), judged, "The distance agrees." if judged else "The distance differs."),
    }
    return EvalResult(trial, scores)


@contextmanager
def viewing(path: Path) -> Iterator[tuple[int, float]]:
    """Start `proctor view`; yields its port and the seconds until it answered."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "proctor", "view", "--history", str(path), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = next(int(found[1]) for line in process.stdout if (found := re.search(r":(\d+)/", line)))
        get(port, "/")
        yield port, time.perf_counter() - begin
    finally:
        process.terminate()
        process.wait()


def get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        return body
    finally:
        connection.close()


def measure_start(figures: Figures, path: Path, rounds: int) -> None:
    seconds = []
    for _ in range(rounds):
        with viewing(path) as (_, taken):
            seconds.append(taken)
    figures.add("start until the first answer, median", statistics.median(seconds), "s", START_SECONDS, f"n={rounds}")


def list_requests(samples: int) -> dict[str, Callable[[Random], str]]:
    """Return a path for each page of the API; those of rows and samples are random."""
    a, b = quote(f"{RUN}@large"), quote(f"{RUN}@small")

    def rows(random: Random) -> str:
        first = random.randrange(samples - 60)
        return f"runs/{RUN}/rows?at={','.join(map(str, range(first, first + 60)))}"

    def sample(random: Random) -> str:
        number = random.randrange(samples)
        return f"runs/{RUN}/samples/{TOPICS[number % len(TOPICS)]}-{number}"

    fixed = {
        "runs": "runs",
        "run": f"runs/{RUN}",
        "grid": f"runs/{RUN}/grid",
        "scores": f"runs/{RUN}/scores?evaluator=contains",
        "metadata keys": f"runs/{RUN}/metadata",
        "metadata column": f"runs/{RUN}/metadata?key=topic",
        "search, one step": f"runs/{RUN}/search?text=catalogue",
        "slices": f"runs/{RUN}/slices?by=topic",
        "judges": f"runs/{RUN}/judges",
        "compare": f"compare?a={a}&b={b}",
        "trends": "trends?metric=pass_rate",
        "evaluators": "evaluators",
    }
    return {name: _always(path) for name, path in fixed.items()} | {"60 rows": rows, "sample": sample}


def _always(path: str) -> Callable[[Random], str]:
    return lambda _: path


def measure_answers(figures: Figures, path: Path, samples: int, rounds: int) -> None:
    """Measure each page: the first answer, which reads the history, and the following ones."""
    random = Random(3)
    with viewing(path) as (port, _):
        for name, make_path in list_requests(samples).items():
            times, size = [], 0
            for _ in range(rounds + 1):
                begin = time.perf_counter()
                size = len(get(port, f"/api/{make_path(random)}"))
                times.append((time.perf_counter() - begin) * 1000)
            first, *others = times
            others.sort()
            p95 = others[max(0, math.ceil(0.95 * len(others)) - 1)]
            note = f"p95 {p95:.0f} ms, first {first:.0f} ms, {size / 1000:,.0f} kB, n={rounds}"
            figures.add(f"answer: {name}, p50", statistics.median(others), "ms", ANSWER_MS, note)


@contextmanager
def open_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = next(found for found in map(shutil.which, BROWSERS) if found)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def measure_page(figures: Figures, path: Path) -> None:
    with viewing(path) as (port, _), open_browser() as browser:
        address = f"http://127.0.0.1:{port}/#/runs/{RUN}"
        for state in ("first visit", "next visit"):
            before = read_processor_seconds()
            seconds = open_page(browser, address, "main h1")
            note = f"{read_processor_seconds() - before:.2f} s of CPU in server and browser"
            figures.add(f"run page interactive, {state}", seconds, "s", INTERACTIVE_SECONDS, note)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        begin = time.perf_counter()
        page.goto(f"{address}?tab=samples")
        page.wait_for_function(FIRST_TEXT, timeout=120_000)
        figures.add("grid with texts", time.perf_counter() - begin, "s", INTERACTIVE_SECONDS)
        scrolled = page.evaluate(SCROLL)
        note = f"of {scrolled['rows']} rows, 300 ms after a jump"
        figures.add("rows without text while scrolling", scrolled["pending"], "rows", 0, note)
        figures.add("screens without rows while scrolling", scrolled["blank"], "screens", 0, "of 40 jumps")
        figures.add("memory of the page after scrolling", read_renderer_memory(), "MB", MEMORY_MB)


def open_page(browser: Any, address: str, selector: str) -> float:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    begin = time.perf_counter()
    page.goto(address)
    page.locator(selector).first.wait_for(timeout=120_000)
    # A page that is busy does not answer this.
    page.evaluate("new Promise(requestAnimationFrame)")
    taken = time.perf_counter() - begin
    page.close()
    return taken


def list_own_processes() -> Iterator[Path]:
    """Yield the folders in /proc of the processes that this process started, directly or not."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    for process in parents:
        ancestor = parents[process]
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        if ancestor == os.getpid():
            yield Path(f"/proc/{process}")


def read_processor_seconds() -> float:
    """Return the processor time of all processes that this process started; unlike wall time, load hardly adds to it."""
    ticks = 0
    for folder in list_own_processes():
        with suppress(OSError):
            ticks += sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def read_renderer_memory() -> float:
    """Return the proportional memory of the renderer processes that this process started, in MB."""
    total = 0
    for folder in list_own_processes():
        with suppress(OSError):
            if b"--type=renderer" in (folder / "cmdline").read_bytes():
                match = re.search(r"^Pss:\s+(\d+) kB", (folder / "smaps_rollup").read_text(), re.MULTILINE)
                total += int(match[1]) if match else 0
    return total / 1024


def measure_report(figures: Figures, folder: Path, samples: int) -> None:
    (folder / "report.db").unlink(missing_ok=True)
    history = store_run(folder / "report.db", samples, {"default": 0.7}, read_passages())
    path = folder / "report.html"
    begin = time.perf_counter()
    HTMLReporter().save(history.report(RUN), path)
    figures.add("one-file report: written in", time.perf_counter() - begin, "s", note=f"{samples:,} samples of 1.2 kB")
    figures.add("one-file report: size", path.stat().st_size / 1e6, "MB", REPORT_MB)
    if find_browser():
        with open_browser() as browser:
            before = read_processor_seconds()
            seconds = open_page(browser, path.as_uri(), "main h1")
            note = f"{read_processor_seconds() - before:.2f} s of CPU in the browser"
        figures.add("one-file report: interactive", seconds, "s", INTERACTIVE_SECONDS, note)


def read_passages() -> str:
    """Return English text for the inputs of samples: the documentation."""
    pages = sorted((Path(__file__).parents[1] / "docs").rglob("*.md"))
    return " ".join(" ".join(page.read_text(encoding="utf-8").split()) for page in pages)


def find_browser() -> bool:
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return False
    return any(map(shutil.which, BROWSERS))


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the viewer and the one-file report.")
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--report-samples", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="Keep the histories here, and use those that are there.")
    options = parser.parse_args()
    figures = Figures()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        path = folder / "view.db"
        if not path.exists():
            begin = time.perf_counter()
            store_run(path, options.samples, SHARES, "")
            figures.add(
                "history written in", time.perf_counter() - begin, "s", note=f"{options.samples:,} × {len(SHARES)}"
            )
        measure_start(figures, path, options.rounds)
        measure_answers(figures, path, options.samples, options.rounds)
        if find_browser():
            measure_page(figures, path)
        else:
            print("the parts in a browser are skipped: no Chromium on the PATH, or no playwright")
        measure_report(figures, folder, options.report_samples)
    return int(figures.has_failed)


if __name__ == "__main__":
    sys.exit(main())
