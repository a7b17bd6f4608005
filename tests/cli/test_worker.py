"""`proctor worker`: a process that runs samples for others, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proctor import EvalRequest, EvalResult, Sample
from proctor.distributed import remote_runner
from proctor.models.connect import mailbox
from tests.cli.project import Project
from tests.cli.workers import LONG, server, wait_until, worker
from tests.servers import RedisServer
from tests.support import run_command

__all__ = ["server"]

SLOW = """
import pathlib, time

def slow(text):
    pathlib.Path(f"began {text}").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return text.upper()
"""


@pytest.fixture(autouse=True)
def _reachable_memory_mailboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept memory: mailboxes, because these tests run all commands in one process."""
    monkeypatch.setattr("proctor.cli.evaluation.reject_memory_mailbox", lambda _address: None)


@pytest.fixture
def address(server: RedisServer, request: pytest.FixtureRequest) -> str:
    """A mailbox of the test's own."""
    return f"{server.url}/{request.node.name[:60].replace('[', '-').replace(']', '')}"


def test_run_by_workers_is_the_same_run_as_a_local_one(project: Project, server: RedisServer, address: str) -> None:
    """Two worker processes, a run, a history: the figures of a local run, and nothing stays."""
    local = project.proctor("run", "eval.yaml", "--json").json
    with (
        worker(project.folder, "eval.yaml", "--requests", address, "--name", "one") as item,
        worker(project.folder, "eval.yaml", "--requests", address, "--name", "two") as two,
    ):
        result = project.proctor("run", "eval.yaml", "--json", "--workers", address)
        assert result.code == 0, result.err
        # The last acknowledgement may still be under way when the run is over.
        wait_until(lambda: all(key.endswith(b":gone") for key in server.client().keys("*")))
        assert (item.terminate(), two.terminate()) == (0, 0)
    away = result.json
    for name in ("total", "errors", "pass_rate", "strict_pass_rate", "mean_score"):
        assert away[name] == local[name]
    for name, value in local["metrics"].items():
        if "latency" not in name:
            assert away["metrics"][name] == value
    assert "warnings" not in away["metadata"]
    run_id = away["run_id"]
    output = project.proctor("show", run_id, "--json").json
    assert output["metadata"]["status"] == "completed"
    runs = project.proctor("runs", "--json").json
    assert runs[0]["run_id"] == run_id
    sent = [int(part.said.split(" result")[0].split()[-1]) for part in (item, two)]
    assert sum(sent) == 5


def test_sigterm_ends_a_worker_when_its_sample_is_finished(project: Project, address: str) -> None:
    """It sends the result, prints a summary and exits with 0."""
    project.write("app.py", SLOW)
    requests = mailbox(address, EvalRequest)
    requests.send(EvalRequest(Sample("s1", "a", "A")), reply_to="answers")
    options = ("--target", "app.py:slow", "-e", "exact_match", "--requests", address)
    with worker(project.folder, *options, "--name", "w7") as item:
        wait_until((project.folder / "began a").exists)
        item.process.send_signal(signal.SIGTERM)
        with pytest.raises(TimeoutError):
            _wait(item.process, 0.3)
        (project.folder / "go").touch()
        assert item.process.wait(LONG) == 0
        first, last = item.said.splitlines()
    assert first.startswith("worker: w7 runs slow@")
    assert first.endswith(f" for {requests.name!r}")
    assert last == "worker: w7 ends: 1 result sent, 0 of them errors; 0 requests returned"
    [answer] = requests.open_mailbox("answers", EvalResult).receive()
    answer.acknowledge()
    assert (answer.body.output, answer.body.delivery.worker) == ("A", "w7")
    assert requests.approximate_count() == 0


def _wait(process: object, seconds: float) -> None:
    assert isinstance(process, subprocess.Popen)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error


def test_a_second_sigterm_drops_what_is_being_run(project: Project, address: str) -> None:
    """Another worker receives the sample immediately, not after the lease of 30 seconds."""
    project.write("app.py", SLOW)
    requests = mailbox(address, EvalRequest)
    requests.send(EvalRequest(Sample("s1", "a", "A")), reply_to="answers")
    options = ("--target", "app.py:slow", "-e", "exact_match", "--requests", address)
    with worker(project.folder, *options, "--json") as item:
        wait_until((project.folder / "began a").exists)
        item.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        item.process.send_signal(signal.SIGINT)
        assert item.process.wait(LONG) == 0
        assert json.loads(item.printed) == {"sent": 0, "errors": 0, "returned": 1, "outdated": 0}
    [message] = requests.receive(wait_time_seconds=5)
    # It was no fault of the request.
    assert message.delivery_count == 1


def test_a_killed_workers_sample_goes_to_another(project: Project, address: str) -> None:
    """After SIGKILL the request is delivered again when its lease expires."""
    project.write("app.py", SLOW)
    requests = mailbox(address, EvalRequest)
    requests.send(EvalRequest(Sample("s1", "a", "A")), reply_to="answers")
    options = ("--target", "app.py:slow", "-e", "exact_match", "--requests", address)
    with worker(project.folder, *options, "--lease", "0.5") as item:
        wait_until((project.folder / "began a").exists)
        item.process.kill()
    (project.folder / "go").touch()
    with worker(project.folder, *options, "--lease", "0.5") as two:
        answers = requests.open_mailbox("answers", EvalResult)
        [answer] = answers.receive(wait_time_seconds=LONG)
        answer.acknowledge()
        assert answer.body.delivery.count == 2
        assert two.terminate() == 0


def test_ctrl_c_on_a_run_by_workers_and_its_resumption(project: Project, address: str) -> None:
    """Exit code 130 and how to go on; what workers finished meanwhile is not run again."""
    project.write("app.py", SLOW)
    options = ("--dataset", "data.jsonl", "--target", "app.py:slow", "-e", "exact_match")
    with worker(project.folder, *options[2:], "--requests", address, "--concurrency", "2") as item:
        running = subprocess.Popen(
            [sys.executable, "-m", "proctor", "run", *options, "--workers", address],
            cwd=project.folder,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        wait_until((project.folder / "began word 0").exists)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=LONG)
        assert running.returncode == 130
        assert "interrupted: finished results are stored; to continue, add --resume" in err
        (project.folder / "go").touch()
        wait_until(lambda: mailbox(address, EvalRequest).approximate_count() == 0)
        result = project.proctor("run", *options, "--resume", "--json", "--workers", address)
        assert (result.code, result.json["total"]) == (0, 5)
        assert item.terminate() == 0
        # Each was run once, all of them while nobody listened.
        assert " 5 results sent" in item.said


def test_the_alive_file_is_touched_while_the_loop_turns(project: Project, address: str) -> None:
    """Every other second: a supervisor sees a worker that hangs."""
    alive = project.folder / "alive"
    with worker(project.folder, "eval.yaml", "--requests", address, "--alive-file", str(alive)):
        wait_until(alive.exists)
        os.utime(alive, (0, 0))
        wait_until(lambda: alive.stat().st_mtime > 0)


def test_until_empty_ends_by_itself_and_tells_in_json(project: Project, address: str) -> None:
    """Results are sent to the mailbox of --results; an error is counted as an error."""
    requests = mailbox(address, EvalRequest)
    requests.send_all([EvalRequest(Sample(f"s{n}", f"word {n}")) for n in range(5)])
    result = run_command(
        "worker", "eval.yaml", "--requests", address, "--results", f"{address}-results",
        "--until-empty", "--json", "--concurrency", "2", "--timeout", "5", "--retries", "1",
        cwd=project.folder,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"sent": 5, "errors": 1, "returned": 0, "outdated": 0}
    results = requests.open_mailbox(f"{requests.name}-results", EvalResult)
    assert results.approximate_count() == 5
    results.remove()


def test_a_budget_in_the_eval_file_is_the_runs_affair(project: Project, address: str) -> None:
    """A worker serves many runs: it goes on where one of them would have spent its own."""
    project.write(
        "app.py",
        "from proctor import ask\n"
        "def model(prompt):\n    return prompt.upper()\n"
        "def shout(text):\n    return ask(model, text).text\n",
    )
    project.write(
        "eval.yaml",
        "dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [exact_match]\n"
        "run: {budget: {calls: 2}, concurrency: 1}\n",
    )
    requests = mailbox(address, EvalRequest)
    for n in range(4):
        requests.send(EvalRequest(Sample(f"s{n}", f"word {n}")), reply_to="answers")
    result = run_command("worker", "eval.yaml", "--requests", address, "--until-empty", cwd=project.folder)
    assert result.returncode == 0, result.stderr
    assert "4 results sent, 0 of them errors" in result.stderr
    assert requests.approximate_count() == 0
    requests.open_mailbox("answers", EvalResult).purge()


@pytest.mark.parametrize(
    ("wrong", "code", "message"),
    [
        (["--requests", "reddis://localhost/0/x"], 2, "did you mean 'redis'?"),
        (["--requests", "nonsense"], 2, "'nonsense' is not a mailbox address"),
        (["--requests", "memory://x", "--target", "app.py:nobody"], 2, "nobody"),
        (["--requests", "memory://x", "-e", "exact_macth"], 2, "did you mean 'exact_match'?"),
        (["--requests", "memory://x", "--lease", "0"], 2, "--lease"),
        (["--requests", "memory://x", "--max-deliveries", "0"], 2, "--max-deliveries"),
        (
            ["--requests", "redis://127.0.0.1:1/0/x", "--alive-file", "no/where"],
            2,
            "cannot be written: its folder does not exist",
        ),
        ([], 2, "--requests"),
    ],
)
def test_all_mistakes_are_reported_at_once(project: Project, wrong: list[str], code: int, message: str) -> None:
    """An address, a server, a target: one screen, no traceback, and the right exit code."""
    result = project.proctor("worker", "eval.yaml", *wrong)
    assert (result.code, message in result.err) == (code, True), result.err
    assert "Traceback" not in result.err


def test_without_a_target_it_says_what_is_needed(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a file and options the error names target and evaluators; a worker needs no dataset."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    result = project.proctor("worker", "--requests", "memory://x")
    assert result.code == 2
    assert "no eval file is given, and --target and --evaluator are missing\n" in result.err


def test_the_message_for_a_server_that_is_not_there(project: Project) -> None:
    """The exact text, because people read it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    result = project.proctor("worker", "eval.yaml", "--requests", f"redis://127.0.0.1:{port}/0/x")
    assert result.code == 3
    assert result.err == (
        f"error: 127.0.0.1:{port}: the server cannot be reached: connection refused\n"
        "Fix: check that it is running and that the address is correct\n"
    )


def test_workers_and_a_cluster_are_not_both(project: Project, address: str) -> None:
    """And a run with a cache is not for workers."""
    result = project.proctor("run", "eval.yaml", "--workers", address, "--on", "ray")
    assert result.code == 2
    assert "either workers or a cluster" in result.err
    result = project.proctor("run", "eval.yaml", "--workers", address, "--cache")
    assert result.code == 2
    assert "cache works only for runs on this machine" in result.err


def test_a_run_that_no_worker_answers_says_so(project: Project, address: str) -> None:
    """Exit code 3 after the patience it was given; it can be resumed."""
    result = project.proctor("run", "eval.yaml", "-q", "--workers", address, "--patience", "0.5")
    assert result.code == 3
    assert "error: no worker has answered for" in result.err
    assert "start workers on" in result.err
    with worker(project.folder, "eval.yaml", "--requests", address) as item:
        repeated = project.proctor("run", "eval.yaml", "--resume", "--json", "--workers", address)
        assert (repeated.code, repeated.json["total"]) == (0, 5)
        assert item.terminate() == 0


def test_a_worker_goes_on_where_nobody_listens(project: Project, address: str) -> None:
    """If the reader of standard error is gone, only the log is lost."""
    requests = mailbox(address, EvalRequest)
    requests.send("garbage")
    requests.send(EvalRequest(Sample("s1", "word 1")), reply_to="answers")
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "proctor", "worker", "eval.yaml", "--requests", address,
         "--until-empty", "--json"],
        cwd=project.folder, stderr=writer, stdout=subprocess.PIPE, timeout=LONG,
    )  # fmt: skip
    os.close(writer)
    assert json.loads(ended.stdout)["sent"] == 1
    requests.open_mailbox("answers", EvalResult).purge()


def test_workers_of_other_code_stop_a_run(project: Project, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3 long before its patience ends, and the part that differs; it can be resumed."""
    monkeypatch.setattr(remote_runner, "MISMATCH_SECONDS", 0.5)
    other = ["--target", "app.py:shout", "-e", "exact_match", "--requests", address]
    with worker(project.folder, *other):
        result = project.proctor("run", "eval.yaml", "-q", "--workers", address)
    assert result.code == 3
    assert "error: all workers run different code from this run: " in result.err
    assert "it does not have the evaluator 'contains'" in result.err
    assert "then resume the run" in result.err
    with worker(project.folder, "eval.yaml", "--requests", address) as item:
        repeated = project.proctor("run", "eval.yaml", "--resume", "--json", "--workers", address)
        assert (repeated.code, repeated.json["total"]) == (0, 5)
        assert item.terminate() == 0
