"""`proctor collect`: the results of a submitted run, as many as there are."""

from __future__ import annotations

import pytest

from proctor import EvalRequest, EvalResult
from proctor.models.connect import mailbox
from proctor.reports.json import load
from tests.cli.project import EVAL, Project
from tests.cli.workers import server, worker
from tests.servers import RedisServer
from tests.support import proctor

__all__ = ["server"]


@pytest.fixture(autouse=True)
def _reachable_memory_mailboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept memory: mailboxes, because these tests run all commands in one process."""
    monkeypatch.setattr("proctor.cli.evaluation.reject_memory_mailbox", lambda _address: None)


def test_submit_work_collect_in_processes_of_their_own(project: Project, server: RedisServer) -> None:
    """Submitted today, worked on tonight, collected tomorrow: the report of a local run."""
    address = f"{server.url}/nightly"
    local = project.proctor("run", "eval.yaml", "--json").json
    sent = proctor("submit", "eval.yaml", "--requests", address, "--json", cwd=project.folder)
    assert sent.returncode == 0, sent.stderr
    nothing = project.proctor("collect", "--requests", address, "--timeout", "0", "--json")
    assert nothing.code == 3
    assert nothing.json["metadata"]["warnings"] == [
        "5 of 5 results are missing: s0, s1, s2, s3, s4; they can be collected later"
    ]
    with worker(project.folder, "eval.yaml", "--requests", address, "--until-empty") as item:
        assert item.process.wait(30) == 0
    result = project.proctor("collect", "--requests", address, "--output", "out", "--json")
    assert result.code == 0, result.err
    for name in ("total", "errors", "pass_rate", "strict_pass_rate", "mean_score"):
        assert result.json[name] == local[name]
    assert result.json["metadata"]["status"] == "completed"
    assert load(project.folder / "out/report.json").total == 5
    # Only that the mailbox of its results is gone is remembered, for a day.
    assert [key.rpartition(b":")[2] for key in server.client().keys("*")] == [b"gone"]
    twice = project.proctor("collect", "--requests", address)
    assert twice.code == 2
    assert "is completed: there is nothing to collect" in twice.err


def test_missing_results_are_listed_and_collected_later(project: Project, server: RedisServer) -> None:
    """Two of five are there at first (exit code 3), then all; each is counted once."""
    address = f"{server.url}/part"
    run_id = project.proctor("submit", "eval.yaml", "--requests", address, "--json").json["run_id"]
    with worker(
        project.folder, "eval.yaml", "--requests", address, "--concurrency", "1",
        "--until-empty",
    ) as item:  # fmt: skip
        assert item.process.wait(30) == 0
    # Three of the results are kept back by another, for a moment, behind the worker's notice.
    results = mailbox(f"{server.url}/part-{run_id}", EvalResult)
    values = results.receive(max_messages=4)
    result = project.proctor("collect", run_id, "--requests", address, "--timeout", "0.2")
    assert result.code == 3
    assert "3 of 5 results are missing: s0, s1, s2; they can be collected later" in result.out
    runs = project.proctor("runs", "--json").json
    assert runs[0]["status"] == "submitted"
    for message in values:
        message.nack()
    result = project.proctor("collect", run_id, "--requests", address, "--json")
    assert (result.code, result.json["total"], result.json["errors"]) == (0, 5, 1)
    assert "warnings" not in result.json["metadata"]


def test_the_gate_is_the_one_of_run(project: Project, server: RedisServer) -> None:
    """--fail-under: exit code 1, in words."""
    address = f"{server.url}/gate"
    project.proctor("submit", "eval.yaml", "--requests", address)
    with worker(project.folder, "eval.yaml", "--requests", address, "--until-empty") as item:
        assert item.process.wait(30) == 0
    result = project.proctor("collect", "--requests", address, "-q", "--fail-under", "0.9")
    assert (result.code, result.out) == (1, "")
    assert "threshold not reached" in result.err


def test_dead_letters_are_errors_in_the_report(project: Project, server: RedisServer) -> None:
    """Dead letters end the collection: the report has their reasons, and a report of errors alone exits with 3."""
    address = f"{server.url}/dead"
    project.proctor("submit", "eval.yaml", "--requests", address, "--limit", "1")
    [message] = mailbox(address, EvalRequest).receive()
    message.reject("no memory")
    result = project.proctor("collect", "--requests", address, "--json")
    assert result.code == 3
    assert (result.json["total"], result.json["errors"]) == (1, 1)
    assert "DeadLetter" in project.proctor("show", "latest", "--outcome", "error").out
    assert result.json["metadata"]["warnings"] == [
        "workers: 1 request ended as a dead letter: delivered too often, or rejected (s0)"
    ]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["latest", "--requests", "redis://127.0.0.1:1/0/x"], 2, "the history is empty"),
        (["--requests", "nonsense"], 2, "is not a mailbox address"),
        ([], 2, "--requests"),
        (["--requests", "redis://127.0.0.1:1/0/x", "--timeout", "-1"], 2, "--timeout"),
    ],
)
def test_mistakes_are_reported_with_a_fix(project: Project, args: list[str], code: int, message: str) -> None:
    """One screen, no traceback."""
    result = project.proctor("collect", *args)
    assert (result.code, message in result.err) == (code, True), result.err


def test_a_local_run_has_nothing_to_collect(project: Project) -> None:
    """It was not sent anywhere."""
    project.proctor("run", "eval.yaml", "-q")
    result = project.proctor("collect", "--requests", "redis://127.0.0.1:1/0/x")
    assert result.code == 2
    assert "name a run that `proctor submit` sent" in result.err


def test_a_run_that_was_interrupted_here_has_nothing_to_collect(project: Project) -> None:
    """It stays what it is, to be resumed."""
    project.write("app.py", "def shout(text):\n    raise KeyboardInterrupt\n")
    project.proctor("run", "eval.yaml", "-q")
    before = project.proctor("runs", "--json").json
    result = project.proctor("collect", "--requests", "redis://127.0.0.1:1/0/x", "--timeout", "0")
    assert result.code == 2
    assert "there is nothing to collect" in result.err
    assert project.proctor("runs", "--json").json == before


def test_the_eval_file_gives_metrics_and_thresholds(project: Project, server: RedisServer) -> None:
    """As in `run`: custom metrics, a threshold on one of them, and an error for a misspelt name."""
    address = f"{server.url}/measured"
    more = "metrics: [app.py:Words]\nfail_under: {words.mean: 3}\n"
    project.write("eval.yaml", EVAL + more)
    project.proctor("submit", "eval.yaml", "--requests", address)
    with worker(project.folder, "eval.yaml", "--requests", address, "--until-empty") as item:
        assert item.process.wait(30) == 0
    wrong = project.proctor("collect", "--requests", address, "--file", "eval.yaml", "--fail-under", "exact_mach=1")
    assert wrong.code == 2
    result = project.proctor("collect", "--requests", address, "--file", "eval.yaml", "--json")
    # Four outputs of two words, and a None of one: 9 / 5.
    assert result.json["metrics"]["words.mean"]["value"] == 1.8
    assert result.code == 1
    assert "threshold not reached" in result.err
