"""What a mailbox on Redis costs beside the bare round trips it needs, and what goes through it.

    python benchmarks/mailboxes.py [operations samples] [--quick]

operations: each call of the mailbox beside one plain command over the same client that carries the
same bytes and changes as much: send = RPUSH of a body, send_all = RPUSH of a hundred, receive(10) =
LPOP of ten, acknowledge = HDEL of a field, acknowledge_all = HDEL of ten. That is the floor of one
round trip: no JSON is written or read, there is no lease, no id, no delivery count, and what was
popped is lost with its receiver. Both sides run in one process, in turn, in slices of which the
best counts: what else the machine does meets both alike.

samples: from the first request to the last result, through one Redis and four worker processes with
an instant target: by `submit_dataset` and `collect_results`, and by `evaluate(workers=…)` with its
history. The bare side makes as many round trips with as many bytes and does nothing else: RPUSH of
a hundred requests; BLMPOP of ten, RPUSH of ten results and HDEL of ten at a worker; BLMPOP and HDEL
of ten where they are collected. The last line has no Redis: `InMemoryMailbox` and one `EvalLoop`,
all in one process. CPU is counted from the first request on, without the start of processes.

Every round is a fresh set of processes and a fresh Redis; the best of the rounds counts, beside it
stands how far the worst lies above.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

WORKERS = 4
MOST_RATIO, LEAST_RATE = 3.0, 2_000
BATCH, TEN, SLICES = 100, 10, 10
# A request and a result as they go over the wire, about.
REQUEST_BYTES, RESULT_BYTES = 330, 420
SECONDS = 600
TARGET = f"{__file__}:instant"
WAYS = {
    "bare": "bare round trips",
    "collect": "submit, collect",
    "evaluate": "evaluate(workers=…)",
    "memory": "InMemoryMailbox",
}
Figures = dict[str, Any]


class Size(NamedTuple):
    """How many messages are measured."""

    calls: int
    samples: int
    rounds: int


FULL, QUICK = Size(10_000, 20_000, 3), Size(2_000, 400, 1)


async def instant(question: str) -> str:
    """A target that returns at once."""
    return f"answer {2 * int(question.split()[1])}"


def rows(count: int) -> list[dict[str, Any]]:
    """Return the samples of the other benchmarks."""
    return [
        {"id": f"s{i}", "input": f"question {i} : what is {i} + {i} ?", "expected": f"answer {2 * i}"}
        for i in range(count)
    ]  # fmt: skip


# -- operations ----------------------------------------------------------------------------------


def operations(url: str, calls: int) -> Figures:
    """Measure wall and CPU time of each mailbox call and of its bare command, in µs."""
    import redis

    from proctor import Sample
    from proctor.mailboxes.redis import RedisMailbox
    from proctor.records.mail import EvalRequest

    client = redis.Redis.from_url(url)
    request: Any = EvalRequest(Sample(**rows(1)[0]), run_id="20260401-101112-abcdef")
    mailbox: Any = RedisMailbox("bench", client, EvalRequest)
    body = mailbox._written(request)
    sides = {"mailbox": partial(of_mailbox, mailbox, request)}
    sides["bare"] = partial(of_commands, client, body)
    with ready() as took:
        for side in [*sides] * (SLICES + 1):
            figures = sides[side](calls // SLICES)
            best = took.setdefault(side, figures)
            took[side] = {name: min(best[name], figure) for name, figure in figures.items()}
    return {**took, "body": len(body)}


def of_mailbox(mailbox: Any, request: Any, calls: int) -> Figures:
    """Time the calls of a mailbox."""
    values: list[Any] = []
    tens, many = calls // TEN, [request] * BATCH
    send = timed([partial(mailbox.send, request)] * calls)
    receive = timed([lambda: values.append(mailbox.receive(max_messages=TEN))] * tens)
    item, several = values[: tens // 2], values[tens // 2 :]
    figures = {
        "send": send,
        "send_all(100)": timed([partial(mailbox.send_all, many)] * (calls // BATCH)),
        "receive(10)": receive,
        "acknowledge": timed([message.acknowledge for messages in item for message in messages]),
        "acknowledge_all(10)": timed([partial(mailbox.acknowledge_all, each) for each in several]),
    }
    assert mailbox.purge() == calls // BATCH * BATCH
    return figures


def of_commands(client: Any, body: bytes, calls: int) -> Figures:
    """Time one plain command for each call."""
    ids = [os.urandom(12).hex() for _ in range(calls)]
    client.hset("hash", mapping=dict.fromkeys(ids, body))
    half = calls // TEN // 2 * TEN
    tens = [ids[at : at + TEN] for at in range(half, calls, TEN)]
    figures = {
        "send": timed([partial(client.rpush, "list", body)] * calls),
        "receive(10)": timed([partial(client.lpop, "list", TEN)] * (calls // TEN)),
        "send_all(100)": timed([partial(client.rpush, "list", *[body] * BATCH)] * (calls // BATCH)),
        "acknowledge": timed([partial(client.hdel, "hash", each) for each in ids[:half]]),
        "acknowledge_all(10)": timed([partial(client.hdel, "hash", *each) for each in tens]),
    }
    client.delete("list", "hash")
    return figures


def timed(calls: Sequence[Callable[[], object]]) -> tuple[float, float]:
    """Return wall and CPU time of a call in µs."""
    wall, cpu = time.perf_counter(), time.process_time()
    for call in calls:
        call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall / len(calls) * 1e6, cpu / len(calls) * 1e6


def show_operations(size: Size) -> None:
    """Print the cost of each operation."""
    lines = [with_redis(partial(through, "operations", size.calls)) for _ in range(size.rounds)]
    print(f"\noperations: µs wall (µs CPU of the client); a body has {lines[0]['body']} bytes")
    row("", "bare command", "mailbox", "spread", "ratio")
    worst = 0.0
    for name in lines[0]["mailbox"]:
        bare = min(item["bare"][name] for item in lines)
        ours = sorted(item["mailbox"][name] for item in lines)
        ratio = ours[0][0] / bare[0]
        worst = max(worst, ratio)
        cells = [f"{wall:.0f} ({cpu:.0f})" for wall, cpu in (bare, ours[0])]
        row(name, *cells, f"+{ours[-1][0] / ours[0][0] - 1:.0%}", f"{ratio:.2f}x")
    print(f"at most {worst:.2f}x, {MOST_RATIO:g}x asked for: {verdict(worst <= MOST_RATIO)}")


# -- samples -------------------------------------------------------------------------------------


def by_redis(way: str, url: str, count: int) -> Figures:
    """Send everything to workers and collect it; return wall and CPU time of this process."""
    from proctor import Dataset, EvalReport, evaluate
    from proctor.mailboxes.redis import RedisMailbox
    from proctor.records.mail import EvalRequest
    from proctor.records.trial import EvalResult
    from proctor.wiring.dispatch import collect_results, submit_dataset

    data = Dataset.of(rows(count))
    requests: Any = RedisMailbox("bench", url=url, body_type=EvalRequest)
    results: Any = requests.open_mailbox("bench-results", EvalResult)
    with tempfile.TemporaryDirectory() as folder, ready() as took:
        if way == "evaluate":
            stored = Path(folder) / "h.db"
            report: EvalReport = evaluate(TARGET, data, "exact_match", history=stored, workers=requests)
        else:
            submission = submit_dataset(data, requests, reply_to=results)
            report = collect_results(results, submission, timeout_seconds=SECONDS)
    assert (report.total, report.pass_rate) == (count, 1.0), report.metadata
    return took


def by_memory(count: int) -> Figures:
    """Run submitter, worker and mailboxes in one process."""
    from proctor import Dataset, EvalLoop, InMemoryMailbox, exact_match
    from proctor.wiring.dispatch import collect_results, submit_dataset

    data = Dataset.of(rows(count))
    requests: Any = InMemoryMailbox("requests")
    results: Any = InMemoryMailbox("results")
    loop: Any = EvalLoop(loop=instant, evaluator=exact_match, requests=requests, results=results)
    working = threading.Thread(target=loop.run)
    working.start()
    with ready() as took:
        submission = submit_dataset(data, requests)
        report = collect_results(results, submission, timeout_seconds=SECONDS)
    loop.stop()
    working.join()
    assert (report.total, report.pass_rate) == (count, 1.0), report.metadata
    return took


def by_commands(url: str, count: int) -> Figures:
    """Push and pop as often as the submitter does."""
    import redis

    client: Any = redis.Redis.from_url(url, socket_timeout=None)
    ids = [f"{i:024x}" for i in range(TEN)]
    left = count
    with ready() as took:
        for _ in range(count // BATCH):
            client.rpush("requests", *[b"x" * REQUEST_BYTES] * BATCH)
        while left:
            _, result = client.blmpop(SECONDS, 1, "results", direction="LEFT", count=TEN)
            client.hdel("none", *ids[: len(result)])
            left -= len(result)
    return took


def bare_worker(url: str) -> None:
    """Pop and push as often as a worker does, until killed."""
    import redis

    client: Any = redis.Redis.from_url(url, socket_timeout=None)
    ids = [f"{i:024x}" for i in range(TEN)]
    print("ready", flush=True)
    while True:
        _, result = client.blmpop(0, 1, "requests", direction="LEFT", count=TEN)
        client.rpush("results", *[b"y" * RESULT_BYTES] * len(result))
        client.hdel("none", *ids[: len(result)])


@contextlib.contextmanager
def ready() -> Iterator[Figures]:
    """Notify the parent, wait for its signal, then start the clock."""
    took: Figures = {}
    print("ready", flush=True)
    sys.stdin.readline()
    wall, cpu = time.perf_counter(), time.process_time()
    yield took
    took |= {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def through(way: str, count: int, url: str) -> Figures:
    """Run one variant with its workers: wall time, and CPU time of each kind of process."""
    with contextlib.ExitStack() as open_:
        workers = [
            open_.enter_context(started(worker_command(way, url)))
            for _ in range(WORKERS if way in WAYS and way != "memory" else 0)
        ]
        for worker in workers:
            said(worker)
        sending = open_.enter_context(started(side_command(way, url, count)))
        said(sending)
        before = sum(map(cpu_of, workers)), redis_cpu(url)
        output, _ = sending.communicate("go\n", timeout=SECONDS)
        if sending.returncode:
            raise SystemExit(output)
        after = sum(map(cpu_of, workers)), redis_cpu(url)
    took: Figures = json.loads(output.splitlines()[-1])
    return took | {"workers": after[0] - before[0], "redis": after[1] - before[1]}


def side_command(side: str, url: str, count: int = 0) -> list[str]:
    return [sys.executable, __file__, "--side", side, "--url", url, "--count", str(count)]


def worker_command(way: str, url: str) -> list[str]:
    if way == "bare":
        return side_command("bare worker", url)
    command = [sys.executable, "-m", "proctor", "worker", "--target", TARGET]
    return [*command, "-e", "exact_match", "--requests", f"{url}/bench"]


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a process that ends with the block; stderr is merged into stdout."""
    pipe, out = subprocess.PIPE, subprocess.STDOUT
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=out, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> None:
    """Wait for the first line of a process, which it prints when it is ready."""
    assert process.stdout is not None
    if not process.stdout.readline():
        raise SystemExit("a process ended before it began")


def cpu_of(process: subprocess.Popen[str]) -> float:
    """Return the CPU seconds of a running process, or NaN if the system does not provide them."""
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        return math.nan
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def redis_cpu(url: str) -> float:
    return sum(float(server_info(url, "cpu")[f"used_cpu_{part}"]) for part in ("user", "sys"))


def show_samples(size: Size) -> None:
    """Print the throughput in samples per second."""
    response: dict[str, list[Figures]] = {way: [] for way in WAYS}
    for _ in range(size.rounds):
        for way, figures in response.items():
            figures.append(with_redis(partial(through, way, size.samples)))
    print(f"\nsamples: {size.samples:,}, {WORKERS} workers; CPU in µs a sample")
    row("", "samples/s", "spread", "submitter", "workers", "Redis")
    rates = {}
    for way, name in WAYS.items():
        one, *_ = ordered = sorted(response[way], key=lambda one: float(one["wall"]))
        spread = f"+{ordered[-1]['wall'] / one['wall'] - 1:.0%}"
        rates[way] = size.samples / one["wall"]
        parts = [f"{one[part] / size.samples * 1e6:.0f}" for part in ("cpu", "workers", "redis")]
        row(name, f"{rates[way]:,.0f}", spread, *parts)
    for way in ("collect", "evaluate"):
        told_of = f"{WAYS[way]}: {rates['bare'] / rates[way]:.1f}x bare; {LEAST_RATE:,} samples/s"
        print(f"{told_of} asked for: {verdict(rates[way] >= LEAST_RATE)}")


# -- all of it -----------------------------------------------------------------------------------


def with_redis(do: Callable[[str], Figures]) -> Figures:
    """Run a function with its own Redis server."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.servers import RedisServer

    with RedisServer() as server:
        return do(server.url)


def server_info(url: str, section: str) -> Figures:
    import redis

    with redis.Redis.from_url(url) as client:
        output: Any = client.info(section)
    return dict(output)


def one_side(side: str, url: str, count: int) -> Figures:
    """Run one side in a fresh process, for the parent."""
    if side == "operations":
        return operations(url, count)
    if side == "memory":
        return by_memory(count)
    return by_commands(url, count) if side == "bare" else by_redis(side, url, count)


def row(first: str, *cells: str) -> None:
    print(f"{first:<21}" + "".join(f"{each:>15}" for each in cells), flush=True)


def verdict(met: bool) -> str:
    return "met" if met else "missed"


def main() -> None:
    """Measure everything, some of it, or one side for the parent process."""
    benches = {"operations": show_operations, "samples": show_samples}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", nargs="*", metavar="|".join(benches))
    parser.add_argument("--quick", action="store_true", help="tiny numbers: does it run at all?")
    for hidden, default in (("--side", ""), ("--url", ""), ("--count", 0)):
        parser.add_argument(hidden, default=default, type=type(default), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side == "bare worker":
        bare_worker(arguments.url)
    elif arguments.side:
        print(json.dumps(one_side(arguments.side, arguments.url, arguments.count)))
    else:
        size = QUICK if arguments.quick else FULL
        print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        names = ("proctor", "msgspec", "redis")
        versions = [f"{name} {importlib.metadata.version(name)}" for name in names]
        output = with_redis(partial(server_info, section="server"))
        kind = output.get("server_name", "redis")
        server = f"{kind}-server {output.get(f'{kind}_version', output['redis_version'])}"
        print(f"{', '.join(versions)}, {server}; best of {size.rounds}")
        for name in arguments.what or benches:
            benches[name](size)


if __name__ == "__main__":
    main()
