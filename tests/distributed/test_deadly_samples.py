"""Samples that kill their worker: only they become dead letters, even with few deliveries.

The workers run several samples concurrently, so that a deadly sample always kills others too.
Meanwhile, broken records are written into the mailbox.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from proctor import SQLiteHistory
from tests.distributed.chaos.crew import WorkerCrew
from tests.distributed.chaos.exam import DEADLY, LOG, CallLog
from tests.distributed.test_chaos import EXAM, NAME, start_run, with_requests
from tests.servers import RedisServer

SAMPLES = 16
DEADLY_ONES = {3, 11}
# A worker on a busy machine must be able to extend it in time.
LEASE_SECONDS = 5.0
SECONDS = 600


@pytest.mark.slow
def test_exactly_the_deadly_samples_become_dead_letters(tmp_path: Path) -> None:
    """Every other sample has a result, and no deadly sample runs more than once too often."""
    # Both at once, because they mostly wait for leases to expire.
    with ThreadPoolExecutor(2) as pool:
        for check in [pool.submit(check_run, 1, tmp_path / "once"), pool.submit(check_run, 2, tmp_path / "twice")]:
            check.result()


def check_run(max_deliveries: int, folder: Path) -> None:
    """Run the samples with at most this many deliveries, and check results and dead letters."""
    folder.mkdir()
    with (folder / "data.jsonl").open("w") as file:
        for number in range(SAMPLES):
            text = f"{number} {DEADLY}" if number in DEADLY_ONES else str(number)
            row = {"id": f"s{number}", "input": text, "expected": str(number**2)}
            file.write(json.dumps(row) + "\n")
    log = CallLog(folder / "calls.log")
    options = ["--target", f"{EXAM}:square", "-e", "exact_match"]
    with RedisServer(persistent=False) as server:
        address = f"{server.url}/{NAME}"
        limits = [f"--lease={LEASE_SECONDS}", f"--max-deliveries={max_deliveries}"]
        serving = [*options, "--requests", address, *limits, "--concurrency=8"]
        with WorkerCrew(serving, folder, 2, **{LOG: str(log.path)}) as crew:
            run = start_run([*options, "--workers", address], folder)
            try:
                damage_mailbox_until_end(run, crew, server, log)
            finally:
                run.kill()
                output = run.communicate(timeout=20)
            assert run.returncode == 0, output
        letters = with_requests(server, lambda requests: requests.dead_letters(1_000))
    with contextlib.closing(SQLiteHistory(folder / "h.db")) as history:
        results = {result.sample_id: result for result in history.report(NAME).results}
    assert len(results) == SAMPLES
    failed = {sample for sample, result in results.items() if not result.success}
    assert failed == {f"s{number}" for number in DEADLY_ONES}
    calls = Counter(number for number, _ in log.calls())
    assert all(1 <= calls[number] <= max_deliveries + 1 for number in DEADLY_ONES)
    broken = [letter for letter in letters if letter.reason.startswith("unreadable")]
    assert len(broken) == 2 * BROKEN_RECORDS
    assert len(letters) - len(broken) == len(DEADLY_ONES)


BROKEN_RECORDS = 5


def damage_mailbox_until_end(run: Any, crew: WorkerCrew, server: RedisServer, log: CallLog) -> None:
    """Replace workers that die, and write broken records into the mailbox."""
    client, broken = server.client(), 0
    until = time.monotonic() + SECONDS
    while run.poll() is None:
        assert time.monotonic() < until, "the run does not come to its end"
        crew.fill_up()
        if broken < BROKEN_RECORDS and len(log) > 2 * broken:
            client.hset(f"proctor:{{{NAME}}}:mail", f"broken{broken}", b"\xff garbage")
            client.rpush(f"proctor:{{{NAME}}}:ready", f"broken{broken}", f"missing{broken}")
            broken += 1
        time.sleep(0.01)
    assert broken == BROKEN_RECORDS
