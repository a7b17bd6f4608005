"""A run with worker processes and a Redis server, both of which are killed at random moments.

During `proctor run --workers`, workers are killed with SIGKILL and replaced, Redis is restarted with its data (softly
or hard), all connections to it are closed, and garbage is sent to the mailbox. One sample in a hundred kills every
process that runs it. Each fault happens after a number of calls that depends on the seed, so that it hits work in
progress.

Why no other sample becomes a dead letter: a deadly sample also kills the other requests of its worker. From its third
delivery on, a request runs alone, so others can cost it two deliveries, and one or two more may be lost while it waits
for its turn. After that only a kill from outside can hit it, and only while it runs alone; that would have to happen
several times to one of some hundred samples. A slow machine costs nothing, because the result of a worker that has lost
its lease still counts.

Some samples run twice, after a kill or between a result and its acknowledgement. Each is counted once.

PROCTOR_CHAOS=full uses 2,500 samples, 25 kills and 25 deadly samples, once with a soft restart of Redis and once with a
hard one. PROCTOR_CHAOS_SEED repeats the short form with another seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import EvalLoop, InMemoryMailbox, SQLiteHistory, submit_dataset
from proctor.comparison.report import EvalReport
from proctor.mailboxes.redis import RedisMailbox
from proctor.records.mail import EvalRequest
from proctor.records.trial import EvalResult
from tests.distributed.chaos.crew import WorkerCrew
from tests.distributed.chaos.exam import DEADLY, LOG, CallLog
from tests.servers import RedisServer

EXAM = Path(__file__).parent / "chaos" / "exam.py"
NAME = "exam"
WORKERS = 4
CONCURRENCY = 4
LEASE_SECONDS = 1.0
MAX_DELIVERIES = 6
# The time limit of the run on any machine; each sample adds a second.
SECONDS = 120
# Dead letters of earlier runs.
OLD_LETTERS = 120


@dataclass(frozen=True)
class FaultPlan:
    """The numbers of samples, kills and cuts, and the seed."""

    seed: int
    samples: int
    kills: int
    cuts: int
    hard: bool

    @property
    def garbage(self) -> int:
        return self.samples // 100

    @property
    def deadly(self) -> set[int]:
        """The samples that kill their worker."""
        return set(random.Random(self.seed).sample(range(self.samples), self.samples // 100))


def fault_plans() -> list[FaultPlan]:
    if os.environ.get("PROCTOR_CHAOS") == "full":
        return [FaultPlan(seed, 2_500, 25, 6, hard=hard) for seed, hard in ((7, False), (11, True))]
    seed = int(os.environ.get("PROCTOR_CHAOS_SEED", "20260401"))
    return [FaultPlan(seed, 200, 2, 1, hard=bool(seed % 2))]


@dataclass
class FaultInjector:
    """A run and the faults to inject."""

    plan: FaultPlan
    folder: Path
    server: RedisServer
    crew: WorkerCrew
    log: CallLog
    chance: random.Random
    happened: list[str] = field(default_factory=list)

    def run_until_end(self, run: subprocess.Popen[str]) -> None:
        """Inject the faults until the run ends."""
        events = self._events()
        until = time.monotonic() + SECONDS + self.plan.samples
        while run.poll() is None:
            assert time.monotonic() < until, "the run does not end"
            self.crew.fill_up()
            while events and len(self.log) >= events[0][0]:
                if not events[0][1]():
                    break
                events.pop(0)
            time.sleep(0.01)
        assert not events, f"the run was over before {len(events)} events"

    def _events(self) -> list[tuple[int, Callable[[], bool]]]:
        plan = self.plan
        kinds: list[Callable[[], bool]] = [self._kill] * plan.kills + [self._cut] * plan.cuts
        kinds += [self._send_garbage] * plan.garbage
        last = int(plan.samples * 0.9)
        events = [(self.chance.randrange(last), kind) for kind in kinds]
        events.append((plan.samples // 2, self._restart))
        return sorted(events, key=lambda event: event[0])

    def _kill(self) -> bool:
        # Only workers that have started to work, at a random moment.
        working = {pid for _, pid in self.log.calls()}
        time.sleep(self.chance.uniform(0, 0.02))
        return self.crew.kill_one_of(working, self.chance)

    def _cut(self) -> bool:
        cut = self.server.client().execute_command("CLIENT", "KILL", "TYPE", "normal")
        self.happened.append(f"{cut} connections were cut")
        return True

    def _send_garbage(self) -> bool:
        text = self.chance.choice([b"\xff\xfe\x00", b"{not JSON", b'{"sample": 7}', b"null", b""])
        with_requests(self.server, lambda requests: requests.send(msgspec.Raw(text)))
        return True

    def _restart(self) -> bool:
        self.server.restart(hard=self.plan.hard, pause=self.chance.uniform(0.0, 0.3))
        self.happened.append("Redis was restarted")
        return True


def with_requests(server: RedisServer, call: Callable[[RedisMailbox[Any]], Any]) -> Any:
    """Call a function with the mailbox of requests."""
    requests: RedisMailbox[Any] = RedisMailbox(NAME, url=server.url)
    try:
        return call(requests)
    finally:
        requests.close()


@pytest.mark.slow
@pytest.mark.parametrize("plan", fault_plans(), ids=lambda plan: f"seed {plan.seed}")
def test_every_sample_ends_once_although_workers_and_redis_die(plan: FaultPlan, tmp_path: Path) -> None:
    """Each sample has one result with the right output, or is a dead letter with its reason."""
    print(f"seed {plan.seed}; PROCTOR_CHAOS_SEED={plan.seed} repeats it")
    write_dataset(tmp_path / "data.jsonl", plan)
    log = CallLog(tmp_path / "calls.log")
    with RedisServer(persistent=True) as server:
        leave_old_letters(server)
        address = f"{server.url}/{NAME}"
        options = ["--target", f"{EXAM}:square", "-e", "exact_match"]
        limits = [f"--lease={LEASE_SECONDS}", f"--max-deliveries={MAX_DELIVERIES}"]
        serving = [*options, "--requests", address, *limits, f"--concurrency={CONCURRENCY}"]
        with WorkerCrew(serving, tmp_path, WORKERS, **{LOG: str(log.path)}) as crew:
            injector = FaultInjector(plan, tmp_path, server, crew, log, random.Random(plan.seed))
            started = time.monotonic()
            run = start_run([*options, "--workers", address], tmp_path)
            try:
                injector.run_until_end(run)
            finally:
                run.kill()
                output = run.communicate(timeout=20)
            seconds = time.monotonic() - started
            assert run.returncode == 0, output
            wait_until_empty(server)
            # A worker that was just starting has no signal handler yet.
            assert set(crew.end()) <= {0, -signal.SIGTERM}
        with contextlib.closing(SQLiteHistory(tmp_path / "h.db")) as history:
            report = history.report(NAME)
            print(summarize(injector, report, seconds))
            check_results(plan, report)
            check_calls(plan, log)
            check_warnings(plan, report)
        check_server(plan, server)


def write_dataset(path: Path, plan: FaultPlan) -> None:
    deadly = plan.deadly
    with path.open("w") as file:
        for number in range(plan.samples):
            text = f"{number} {DEADLY}" if number in deadly else str(number)
            row = {"id": f"s{number}", "input": text, "expected": str(number**2)}
            file.write(json.dumps(row) + "\n")


def leave_old_letters(server: RedisServer) -> None:
    """Add more dead letters than a run reads at once."""
    requests = RedisMailbox(NAME, server.client(), EvalRequest)
    requests.send_all([msgspec.Raw(b"old")] * OLD_LETTERS)  # type: ignore[list-item]
    assert requests.receive() == []
    assert requests.approximate_count() == 0


def start_run(options: list[str], folder: Path) -> subprocess.Popen[str]:
    command = ["run", "--dataset", "data.jsonl", "--name", NAME, "--history", "h.db", "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-m", "proctor", *command, *options],
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_empty(server: RedisServer) -> None:
    """Wait for requests whose worker was killed before it acknowledged them."""
    until = time.monotonic() + SECONDS
    while with_requests(server, lambda requests: requests.approximate_count()):
        assert time.monotonic() < until, "requests stay in the mailbox"
        time.sleep(0.05)


def check_results(plan: FaultPlan, report: EvalReport) -> None:
    """Each sample has one result: the right output, or an error with the reason."""
    assert report.metadata is not None
    assert report.metadata.status == "completed"
    results = list(report.results)
    counts = Counter(result.sample_id for result in results)
    assert counts == Counter(f"s{number}" for number in range(plan.samples))
    for result in results:
        number = int(result.sample_id[1:])
        if number in plan.deadly:
            assert_dead(result)
        else:
            assert result.trial.error is None, f"{result.sample_id}: {result.trial.error}"
            assert result.output == str(number**2)
            assert result.scores["exact_match"].passed


def assert_dead(result: EvalResult) -> None:
    error = result.trial.error
    assert error is not None
    assert error.kind == "DeadLetter"
    assert f"delivered {MAX_DELIVERIES} times" in error.message
    assert "lease expired" in error.message


def check_calls(plan: FaultPlan, log: CallLog) -> None:
    """Every sample ran, and a deadly one as often as it was delivered."""
    counts = Counter(number for number, _ in log.calls())
    assert set(counts) == set(range(plan.samples))
    assert all(counts[number] <= MAX_DELIVERIES for number in plan.deadly)


def check_warnings(plan: FaultPlan, report: EvalReport) -> None:
    """The report describes the deliveries."""
    assert report.metadata is not None
    output = " ".join(report.metadata.warnings)
    assert f"workers: {len(plan.deadly)} requests ended as dead letters" in output
    assert f"workers: {plan.garbage} messages in the mailbox could not be read" in output
    again = sum(
        result.trial.error is None and result.delivery is not None and result.delivery.count > 1
        for result in report.results
    )
    assert again > 0
    noun = "result" if again == 1 else "results"
    assert f"workers: {again} {noun} came from a repeated delivery" in output


def check_server(plan: FaultPlan, server: RedisServer) -> None:
    """Only the dead letters of the deadly samples and of the garbage remain."""
    letters = with_requests(server, lambda requests: requests.dead_letters(10_000))
    reasons = Counter("read" if "cannot be read" in each.reason else "often" for each in letters)
    assert reasons == {"read": OLD_LETTERS + plan.garbage, "often": len(plan.deadly)}
    keys = {key.decode() for key in server.client().scan_iter()}
    passing = (":wake:", ":gone")
    remaining = {key for key in keys if not any(part in key for part in passing)}
    assert remaining == {f"proctor:{{{NAME}}}:dead"}


def summarize(injector: FaultInjector, report: EvalReport, seconds: float) -> str:
    """Summarize the events."""
    assert report.metadata is not None
    counts = Counter(number for number, _ in injector.log.calls())
    innocent = [calls for number, calls in counts.items() if number not in injector.plan.deadly]
    deliveries = [each.delivery.count for each in report.results if each.success and each.delivery]
    output = [
        f"{injector.plan.samples} samples in {seconds:.1f} s",
        f"{len(injector.crew.killed)} workers killed, {len(injector.crew.died)} died of a sample",
        *injector.happened,
        f"{len(innocent)} innocent samples were called {sum(innocent)} times",
        f"{sum(calls > 1 for calls in innocent)} more than once, {max(innocent)} times at most",
        f"the latest answer came from delivery {max(deliveries)}",
        *report.metadata.warnings,
    ]
    return "\n".join(output)


def test_a_request_that_was_lost_twice_runs_alone() -> None:
    """From its third delivery on, a request may be the cause: no other request runs with it."""
    requests = InMemoryMailbox[Any]("requests")
    results = InMemoryMailbox[Any]("results")
    suspects = [f"suspect {number}" for number in range(4)]
    submit_dataset([{"id": text, "input": text} for text in suspects], requests)
    for delay in (0, 0.2):
        for message in requests.receive(max_messages=10):
            message.nack(delay)
    submit_dataset([{"id": str(number), "input": str(number)} for number in range(20)], requests)
    running: set[str] = set()
    concurrent: dict[str, set[str]] = {}

    async def target(text: str) -> str:
        concurrent[text] = set(running)
        for other in running:
            concurrent[other].add(text)
        running.add(text)
        await asyncio.sleep(0.02)
        running.remove(text)
        return text

    loop: EvalLoop[str, Any, Any] = EvalLoop(
        loop=target, evaluator=length, requests=requests, results=results, concurrency=CONCURRENCY
    )
    summary = loop.run(until_empty=True)
    assert summary.sent == 24
    assert [concurrent[text] for text in suspects] == [set()] * 4
    assert any(len(others) > 1 for others in concurrent.values())


def length(output: str, _expected: object) -> bool:
    """An evaluator that passes every output that is not empty."""
    return len(output) > 0
