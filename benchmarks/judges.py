"""What asking a model costs beside a bare HTTP call, and how a thousand judges live with refusals.

    python benchmarks/judges.py [--calls 1000] [--rounds 3]

The model server runs in a process of its own and answers after 20 ms; every figure is measured in
a fresh process, the best of the rounds, all sides in turn. CPU is that of the asking process alone,
after 50 calls to warm up. The bare sides post the very same bytes with one httpx2 client and read
the JSON; with faults they simply ask again. One keeps 64 calls under way, as our limiter does at its
start, the other 16, which costs httpx2 less; ratios are to the cheaper of the two.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WARM_UP = 50
AT_ONCE = {"bare": 64, "bare 16": 16}
DELAY = 0.02
LIMITED, BROKEN = 0.05, 0.01
MOST_RATIO = 1.5
CRITERION = "Is the answer polite, and does it answer the question?"
SIDES = {
    "bare": "bare httpx2, 64 at once",
    "bare 16": "bare httpx2, 16 at once",
    "call": "adapter.complete",
    "judge": "llm_judge",
    "run": "evaluate with llm_judge",
}
Once = Callable[[int], Awaitable[object]]


def output(number: int) -> str:
    """The judged output."""
    return f"Good morning! The answer to question {number} is {number * 7}, as far as I know."


# -- one side, in a process of its own ---------------------------------------------------------


def measured(side: str, url: str, calls: int) -> dict[str, Any]:
    """Run one side and print its measurements."""
    if side == "run":
        return in_a_run(url, calls)
    return asyncio.run(by_itself(side, url, calls))


async def by_itself(side: str, url: str, calls: int) -> dict[str, Any]:
    """Run bare calls, calls through the adapter, or judges, all started at once."""
    from proctor.core import resource_scope

    if side in AT_ONCE:
        import httpx2

        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        async with httpx2.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
            return await timed(bare(client, url, AT_ONCE[side]), calls, lambda: 0)
    adapter = connected(url)
    limiter = adapter._line.endpoint.limiter
    once = through_adapter(adapter) if side == "call" else through_judge(adapter)
    async with resource_scope.ResourceScope():
        return await timed(once, calls, lambda: limiter.window)


def bare(client: Any, url: str, at_once: int) -> Once:
    """Make one call without Proctor: post, read, and retry if it failed."""
    places = asyncio.Semaphore(at_once)
    body = recorded_body()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer k"}

    async def once(_: int) -> object:
        async with places:
            while True:
                response = await client.post(f"{url}/v1/chat/completions", content=body, headers=headers)
                if response.status_code == 200:
                    return response.json()["choices"][0]["message"]["content"]

    return once


def connected(url: str) -> Any:
    """Return an adapter with many retries."""
    from proctor.models.openai import OpenAIAdapter

    return OpenAIAdapter("judge", base_url=f"{url}/v1", api_key="k", retries=12, retry_delay=0.02, timeout=60.0)


def through_adapter(adapter: Any) -> Once:
    """Make one call with the same question and schema as the judge's."""
    from proctor.records.model import ModelRequest
    from proctor.records.session import Message

    requests = json.loads(recorded_body())
    request = ModelRequest(
        tuple(Message(each["role"], each["content"]) for each in requests["messages"]),
        schema=requests["response_format"]["json_schema"]["schema"],
        temperature=requests["temperature"],
    )

    async def once(_: int) -> object:
        return (await adapter.complete(request)).text

    return once


def through_judge(adapter: Any) -> Once:
    """Get one score of a judge."""
    from proctor.evaluators.llm import llm_judge

    judge = llm_judge(adapter, CRITERION)

    async def once(number: int) -> object:
        return (await judge(output(number))).value

    return once


async def timed(once: Once, calls: int, window: Callable[[], int]) -> dict[str, Any]:
    """Measure CPU and wall time of concurrent calls, and the rate-limit window."""
    await asyncio.gather(*(once(number) for number in range(WARM_UP)))
    with watched(window) as figures:
        answers = await asyncio.gather(*(once(number) for number in range(calls)))
    return {**figures, "answered": sum(answer not in (None, "") for answer in answers)}


@contextmanager
def watched(window: Callable[[], int]) -> Iterator[dict[str, Any]]:
    """Measure CPU and wall time of the block, and sample the window every 20 ms."""
    figures: dict[str, Any] = {"windows": []}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            figures["windows"].append(window())

    watching = threading.Thread(target=watch)
    watching.start()
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        yield figures
    finally:
        figures |= {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        over.set()
        watching.join()


def in_a_run(url: str, calls: int) -> dict[str, Any]:
    """Measure a complete run: target, judge, session, history, metrics, report."""
    from proctor import Sample, evaluate
    from proctor.evaluators.llm import llm_judge

    adapter = connected(url)
    judge = llm_judge(adapter, CRITERION)

    async def target(number: int) -> str:
        return output(number)

    def run(samples: int, folder: str) -> Any:
        data: list[Any] = [Sample(f"s{number}", number) for number in range(samples)]
        return evaluate(target, data, [judge], concurrency=1000, history=Path(folder) / f"{samples}.db")

    with tempfile.TemporaryDirectory() as folder:
        run(WARM_UP, folder)
        limiter = adapter._line.endpoint.limiter
        with watched(lambda: limiter.window) as figures:
            report = run(calls, folder)
        figures["answered"] = len(report.results) - report.results.counts().unscored
    return figures


@functools.cache
def recorded_body() -> bytes:
    """Return the body of a judge's request that the parent process recorded."""
    return sys.stdin.buffer.read()


# -- all sides in turn -------------------------------------------------------------------------


def record_body() -> bytes:
    """Ask a judge once, and return the body of its request."""
    from proctor.testing import ModelServer

    with ModelServer() as listening:
        asyncio.run(by_itself("judge", listening.url, calls=1))
        return json.dumps(listening.calls[-1].body, separators=(",", ":")).encode()


@contextmanager
def server(*, faults: bool) -> Iterator[str]:
    """Start the model server in another process."""
    command = [sys.executable, "-m", "tests.servers.model_server", "--delay", str(DELAY)]
    if faults:
        command += ["--limited", str(LIMITED), "--broken", str(BROKEN), "--seed", "7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def in_process(side: str, url: str, calls: int, body: bytes) -> dict[str, Any]:
    """Run one side in a fresh process."""
    command = [sys.executable, __file__, "--side", side, "--url", url, "--calls", str(calls)]
    process = subprocess.run(command, input=body, capture_output=True, timeout=300, check=False)
    if process.returncode:
        raise SystemExit(process.stderr.decode())
    result: dict[str, Any] = json.loads(process.stdout)
    return result


def best(figures: list[dict[str, Any]]) -> dict[str, Any]:
    return min(figures, key=lambda one: float(one["cpu"]))


def compare(calls: int, rounds: int, *, faults: bool) -> bool:
    """Print all sides with their ratio to the bare one; True if every call was answered."""
    figures: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    body = record_body()
    with server(faults=faults) as url:
        for _ in range(rounds):
            for side, text in figures.items():
                text.append(in_process(side, url, calls, body))
    floor = min(best(figures[side])["cpu"] for side in AT_ONCE)
    print(f"{'side':<26}{'answered':>12}{'CPU a call':>13}{'ratio':>8}{'wall':>9}  window")
    for side, name in SIDES.items():
        item = best(figures[side])
        window = "–" if side in AT_ONCE else shape(item["windows"])
        answered = f"{min(text['answered'] for text in figures[side]):,}/{calls:,}"
        print(
            f"{name:<26}{answered:>12}{item['cpu'] / calls * 1e6:>10.0f} µs"
            f"{item['cpu'] / floor:>8.2f}{item['wall']:>7.2f} s  {window}"
        )
    ratio = best(figures["judge"])["cpu"] / floor
    print(f"a judge's call: {ratio:.2f}x bare, {MOST_RATIO:g}x asked for: {verdict(ratio)}\n")
    return all(text["answered"] == calls for side in figures.values() for text in side)


def verdict(ratio: float) -> str:
    return "met" if ratio <= MOST_RATIO else "missed"


def shape(windows: list[int]) -> str:
    """Describe how the window changed: first, last, and some steps between."""
    steps = [windows[len(windows) * part // 8] for part in range(8)] + [windows[-1]]
    return f"{min(windows)}–{max(windows)} ({' '.join(map(str, steps))})"


def main() -> None:
    """Measure everything, or one side for the parent process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(measured(arguments.side, arguments.url, arguments.calls)))
        return
    print(f"{arguments.calls:,} calls at once, best of {arguments.rounds}\n\nno faults")
    fine = compare(arguments.calls, arguments.rounds, faults=False)
    print(f"{LIMITED:.0%} answered with 429, {BROKEN:.0%} with 500")
    fine = compare(arguments.calls, arguments.rounds, faults=True) and fine
    if not fine:
        raise SystemExit("not everything was answered")


if __name__ == "__main__":
    main()
