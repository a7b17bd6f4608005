"""A run over worker processes and a Redis, both of which die at random moments.

While `proctor run --workers` is under way, workers are SIGKILLed by pid and replaced, Redis is
restarted with its data (softly, or hard), all connections to it are cut, and garbage is put into
the mailbox. One sample in a hundred ends the process that runs it, every time. Each happens after
a number of calls that is drawn from the seed, so that it hits work in progress.

Why no innocent sample is condemned. A request is set aside after MAX_DELIVERIES, and a deadly
sample takes along whatever its worker has in hand. From its third delivery on a request is
therefore run alone, so neighbours can cost it two deliveries, and one or two more may go by while
it is left for its turn. Beyond that only a kill from outside can hit it, and only while it runs
alone: that is one delivery in a hundred, and would have to happen again and again to one of some
hundred samples. A stalled machine costs nothing: the answer of a worker that has lost its lease
still counts.

Some samples do run twice, after a kill or between an answer and its acknowledgement. What is held
to is that each is counted once.

PROCTOR_CHAOS=full makes it 2,500 samples, 25 kills and 25 deadly samples, once with a soft restart
of Redis and once with a hard one. PROCTOR_CHAOS_SEED repeats the short form with another seed.
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
# How long the run may take at least before it is given up, on whatever machine.
SECONDS = 120
# Of an earlier day, and none of this run's business.
OLD_LETTERS = 120


@dataclass(frozen=True)
class Storm:
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


def storms() -> list[Storm]:
    if os.environ.get("PROCTOR_CHAOS") == "full":
        return [Storm(seed, 2_500, 25, 6, hard=hard) for seed, hard in ((7, False), (11, True))]
    seed = int(os.environ.get("PROCTOR_CHAOS_SEED", "20260401"))
    return [Storm(seed, 200, 2, 1, hard=bool(seed % 2))]


@dataclass
class Scene:
    """A run and the faults to inject."""

    storm: Storm
    folder: Path
    server: RedisServer
    crew: WorkerCrew
    log: CallLog
    chance: random.Random
    happened: list[str] = field(default_factory=list)

    def blow(self, run: subprocess.Popen[str]) -> None:
        """Inject the faults until the run ends."""
        events = self._events()
        until = time.monotonic() + SECONDS + self.storm.samples
        while run.poll() is None:
            assert time.monotonic() < until, "the run does not come to its end"
            self.crew.fill_up()
            while events and len(self.log) >= events[0][0]:
                if not events[0][1]():
                    break
                events.pop(0)
            time.sleep(0.01)
        assert not events, f"the run was over before {len(events)} events"

    def _events(self) -> list[tuple[int, Callable[[], bool]]]:
        storm = self.storm
        kinds: list[Callable[[], bool]] = [self._kill] * storm.kills + [self._cut] * storm.cuts
        kinds += [self._litter] * storm.garbage
        last = int(storm.samples * 0.9)
        events = [(self.chance.randrange(last), kind) for kind in kinds]
        events.append((storm.samples // 2, self._restart))
        return sorted(events, key=lambda event: event[0])

    def _kill(self) -> bool:
        # Only who has begun to work; the rest of a millisecond is left to chance.
        at_work = {pid for _, pid in self.log.calls()}
        time.sleep(self.chance.uniform(0, 0.02))
        return self.crew.kill_one_of(at_work, self.chance)

    def _cut(self) -> bool:
        cut = self.server.client().execute_command("CLIENT", "KILL", "TYPE", "normal")
        self.happened.append(f"{cut} connections were cut")
        return True

    def _litter(self) -> bool:
        text = self.chance.choice([b"\xff\xfe\x00", b"{not JSON", b'{"sample": 7}', b"null", b""])
        with_requests(self.server, lambda requests: requests.send(msgspec.Raw(text)))
        return True

    def _restart(self) -> bool:
        self.server.restart(hard=self.storm.hard, pause=self.chance.uniform(0.0, 0.3))
        self.happened.append("Redis was restarted")
        return True


def with_requests(server: RedisServer, do: Callable[[RedisMailbox[Any]], Any]) -> Any:
    """Call a function with the mailbox of requests."""
    requests: RedisMailbox[Any] = RedisMailbox(NAME, url=server.url)
    try:
        return do(requests)
    finally:
        requests.close()


@pytest.mark.slow
@pytest.mark.parametrize("storm", storms(), ids=lambda storm: f"seed {storm.seed}")
def test_every_sample_ends_once_although_workers_and_redis_die(storm: Storm, tmp_path: Path) -> None:
    """Each sample has one result with the right output, or is a dead letter with its reason."""
    print(f"seed {storm.seed}; PROCTOR_CHAOS_SEED={storm.seed} repeats it")
    write_dataset(tmp_path / "data.jsonl", storm)
    log = CallLog(tmp_path / "calls.log")
    with RedisServer(persistent=True) as server:
        leave_old_letters(server)
        address = f"{server.url}/{NAME}"
        options = ["--target", f"{EXAM}:square", "-e", "exact_match"]
        limits = [f"--lease={LEASE_SECONDS}", f"--max-deliveries={MAX_DELIVERIES}"]
        serving = [*options, "--requests", address, *limits, f"--concurrency={CONCURRENCY}"]
        with WorkerCrew(serving, tmp_path, WORKERS, **{LOG: str(log.path)}) as crew:
            scene = Scene(storm, tmp_path, server, crew, log, random.Random(storm.seed))
            began = time.monotonic()
            run = start_run([*options, "--workers", address], tmp_path)
            try:
                scene.blow(run)
            finally:
                run.kill()
                said = run.communicate(timeout=20)
            took = time.monotonic() - began
            assert run.returncode == 0, said
            wait_until_empty(server)
            # One that was just starting may not listen yet.
            assert set(crew.end()) <= {0, -signal.SIGTERM}
        with contextlib.closing(SQLiteHistory(tmp_path / "h.db")) as history:
            report = history.report(NAME)
            print(account(scene, report, took))
            check_results(storm, report)
            check_calls(storm, log)
            check_warnings(storm, report)
        check_server(storm, server)


def write_dataset(path: Path, storm: Storm) -> None:
    deadly = storm.deadly
    with path.open("w") as file:
        for number in range(storm.samples):
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


def check_results(storm: Storm, report: EvalReport) -> None:
    """Each sample has one result: the right output, or an error with the reason."""
    assert report.metadata is not None
    assert report.metadata.status == "completed"
    results = list(report.results)
    counts = Counter(result.sample_id for result in results)
    assert counts == Counter(f"s{number}" for number in range(storm.samples))
    for result in results:
        number = int(result.sample_id[1:])
        if number in storm.deadly:
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


def check_calls(storm: Storm, log: CallLog) -> None:
    """Every sample ran, and a deadly one as often as it was delivered."""
    counts = Counter(number for number, _ in log.calls())
    assert set(counts) == set(range(storm.samples))
    assert all(counts[number] <= MAX_DELIVERIES for number in storm.deadly)


def check_warnings(storm: Storm, report: EvalReport) -> None:
    """The report describes the deliveries."""
    assert report.metadata is not None
    said = " ".join(report.metadata.warnings)
    assert f"workers: {len(storm.deadly)} requests ended as dead letters" in said
    assert f"workers: {storm.garbage} messages in the mailbox could not be read" in said
    again = sum(
        result.trial.error is None and result.delivery is not None and result.delivery.count > 1
        for result in report.results
    )
    assert again > 0
    noun = "result" if again == 1 else "results"
    assert f"workers: {again} {noun} came from a repeated delivery" in said


def check_server(storm: Storm, server: RedisServer) -> None:
    """Only the dead letters of the deadly samples and of the garbage remain."""
    letters = with_requests(server, lambda requests: requests.dead_letters(10_000))
    reasons = Counter("read" if "cannot be read" in each.reason else "often" for each in letters)
    assert reasons == {"read": OLD_LETTERS + storm.garbage, "often": len(storm.deadly)}
    keys = {key.decode() for key in server.client().scan_iter()}
    passing = (":wake:", ":gone")
    kept = {key for key in keys if not any(part in key for part in passing)}
    assert kept == {f"proctor:{{{NAME}}}:dead"}


def account(scene: Scene, report: EvalReport, took: float) -> str:
    """Summarize the events."""
    assert report.metadata is not None
    counts = Counter(number for number, _ in scene.log.calls())
    innocent = [calls for number, calls in counts.items() if number not in scene.storm.deadly]
    deliveries = [each.delivery.count for each in report.results if each.success and each.delivery]
    said = [
        f"{scene.storm.samples} samples in {took:.1f} s",
        f"{len(scene.crew.killed)} workers killed, {len(scene.crew.died)} died of a sample",
        *scene.happened,
        f"{len(innocent)} innocent samples were called {sum(innocent)} times",
        f"{sum(calls > 1 for calls in innocent)} more than once, {max(innocent)} times at most",
        f"the latest answer came from delivery {max(deliveries)}",
        *report.metadata.warnings,
    ]
    return "\n".join(said)


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
    under_way: set[str] = set()
    beside: dict[str, set[str]] = {}

    async def target(text: str) -> str:
        beside[text] = set(under_way)
        for other in under_way:
            beside[other].add(text)
        under_way.add(text)
        await asyncio.sleep(0.02)
        under_way.remove(text)
        return text

    loop: EvalLoop[str, Any, Any] = EvalLoop(
        loop=target, evaluator=length, requests=requests, results=results, concurrency=CONCURRENCY
    )
    tally = loop.run(until_empty=True)
    assert tally.sent == 24
    assert [beside[text] for text in suspects] == [set()] * 4
    assert any(len(others) > 1 for others in beside.values())


def length(output: str, _expected: object) -> bool:
    """An evaluator that has something to say on every output."""
    return len(output) > 0
