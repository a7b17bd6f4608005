"""`proctor submit` opens a run, sends the requests and returns without waiting."""

from __future__ import annotations

import pytest

from proctor import EvalRequest
from proctor.models.connect import mailbox
from tests.cli.project import EVAL, Project
from tests.cli.workers import server
from tests.servers import RedisServer

__all__ = ["server"]

# Replaced by the address of a mailbox.
ADDRESS = "ADDRESS"


@pytest.fixture
def address(server: RedisServer) -> str:
    return f"{server.url}/submitted"


def test_a_run_is_opened_and_its_requests_are_sent(project: Project, address: str) -> None:
    """Each trial once, with all a worker needs; `proctor runs` shows the run."""
    result = project.proctor(
        "submit", "eval.yaml", "--requests", address, "--epochs", "2", "--limit", "3",
        "--tag", "branch=main", "--name", "other",
    )  # fmt: skip
    assert result.code == 0, result.err
    run = project.proctor("runs", "--json").json[0]
    assert result.out == (
        f"submitted 6 requests as run {run['run_id']}\n"
        f"to collect the results: proctor collect {run['run_id']} --requests {address}\n"
    )
    assert (run["status"], run["name"], run["total"]) == ("submitted", "other", 6)
    assert run["tags"] == {"branch": "main"}
    assert "submitted" in project.proctor("runs").out
    requests = mailbox(address, EvalRequest)
    messages = requests.receive(max_messages=10)
    assert [message.body.sample.id for message in messages] == ["s0", "s0", "s1", "s1", "s2", "s2"]
    assert [message.body.epoch for message in messages] == [0, 1] * 3
    assert {message.body.run_id for message in messages} == {run["run_id"]}
    assert [message.body.request_id for message in messages][-1] == f"{run['run_id']}-5"
    assert {message.reply_to for message in messages} == {f"submitted-{run['run_id']}"}
    assert all(message.body.expects.startswith("shout@") for message in messages)
    requests.purge()


def test_json_is_for_programs(project: Project, address: str) -> None:
    """The run's id and how many were sent; what the target prints goes elsewhere."""
    project.write("app.py", "print('hello')\ndef shout(text):\n    return text\n")
    result = project.proctor("submit", "eval.yaml", "--requests", address, "--json")
    assert result.json == {"run_id": result.json["run_id"], "submitted": 5}
    assert "hello" in result.err
    mailbox(address, EvalRequest).purge()


def test_options_alone_are_enough(project: Project, address: str) -> None:
    """Dataset, target and evaluators; more than a batch of samples."""
    rows = "".join(f'{{"id": "{n}", "input": "w"}}\n' for n in range(250))
    project.write("many.jsonl", rows)
    result = project.proctor(
        "submit", "--dataset", "many.jsonl", "--target", "app.py:shout", "-e", "contains",
        "--requests", address, "--json",
    )  # fmt: skip
    assert result.json["submitted"] == 250
    assert mailbox(address, EvalRequest).purge() == 250


@pytest.mark.parametrize(
    ("wrong", "code", "message"),
    [
        (["--requests", "redis://127.0.0.1:1/0/x"], 3, "the server cannot be reached"),
        (["--requests", "nonsense"], 2, "is not a mailbox address"),
        (["--requests", ADDRESS, "--dataset", "empty.jsonl"], 2, "no samples: the file is empty"),
        (["--requests", ADDRESS, "--target", "app.py:nobody"], 2, "nobody"),
        ([], 2, "--requests"),
    ],
)
def test_mistakes_are_reported_with_a_fix(
    project: Project, address: str, wrong: list[str], code: int, message: str
) -> None:
    """Before anything is sent."""
    project.write("empty.jsonl", "\n")
    result = project.proctor("submit", "eval.yaml", *(address if word == ADDRESS else word for word in wrong))
    assert (result.code, message in result.err) == (code, True), result.err
    assert mailbox(address, EvalRequest).approximate_count() == 0
    # A run of which nothing was sent is not stored, so `latest` is still the run before.
    runs = project.proctor("runs", "--json")
    assert runs.code != 0 or runs.json == []


def test_the_cache_is_refused(project: Project, address: str) -> None:
    """Workers keep no outputs; nothing is sent."""
    project.write("eval.yaml", f"{EVAL}run: {{cache: true}}\n")
    result = project.proctor("submit", "eval.yaml", "--requests", address)
    assert result.code == 2
    assert "workers do not cache outputs" in result.err
    assert mailbox(address, EvalRequest).approximate_count() == 0


def test_ignored_options_are_mentioned(project: Project, address: str) -> None:
    """Nobody watches a submitted run, so that nothing ends it early."""
    run = "run: {budget: {calls: 3}, max_errors: 1, on_error: raise}\n"
    project.write("eval.yaml", EVAL + run)
    result = project.proctor("submit", "eval.yaml", "--requests", address, "--json")
    assert (result.code, result.json["submitted"]) == (0, 5)
    assert result.err == ("ignored, because no process monitors a submitted run: budget, max_errors, on_error\n")
    project.write("eval.yaml", EVAL)
    assert project.proctor("submit", "eval.yaml", "--requests", address).err == ""
    mailbox(address, EvalRequest).purge()


def test_a_password_is_not_repeated(project: Project, server: RedisServer) -> None:
    """The address is shown without user and password."""
    address = f"redis://default:secret@127.0.0.1:{server.port}/0/guarded"
    result = project.proctor("submit", "eval.yaml", "--requests", address)
    assert result.code == 0, result.err
    assert f"--requests redis://127.0.0.1:{server.port}/0/guarded\n" in result.out
    assert "secret" not in result.out + result.err
    mailbox(address, EvalRequest).purge()
