"""A target or an evaluator that ends the process (`os._exit`) becomes an error of its sample."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from proctor import SQLiteHistory, evaluate, evaluator
from proctor.core.process_exit import ProcessExitBlocked, exit_blocked
from tests.support import proctor, start

APP = """
import os, sys, threading
from os import _exit as leave

async def in_a_coroutine(text):
    if text == "word 1":
        os._exit(0)
    return text.upper()

def in_a_thread(text):
    if text == "word 1":
        os._exit(0)
    return text.upper()

def imported_by_name(text):
    if text == "word 1":
        leave(0)
    return text.upper()

def swallowing(text):
    try:
        return in_a_thread(text)
    except Exception:
        return text.upper()

def from_the_system_module(text):
    if text == "word 1":
        sys.modules[os.name]._exit(0)
    return text.upper()

def replacing_the_process(text):
    if text == "word 1":
        os.execvp("true", ["true"])
    return text.upper()

def shout(text):
    return text.upper()

def leaving_evaluator(output, expected):
    if output == "WORD 1":
        os._exit(0)
    return output == expected

async def leaving_async_evaluator(output, expected):
    return leaving_evaluator(output, expected)
"""
ROWS = [{"id": f"s{i}", "input": f"word {i}", "expected": f"WORD {i}"} for i in range(3)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


@pytest.mark.parametrize(
    "target",
    [
        "in_a_coroutine",
        "in_a_thread",
        "imported_by_name",
        "swallowing",
        "from_the_system_module",
        "replacing_the_process",
    ],
)
def test_a_target_that_ends_the_process_is_an_error_of_its_sample(folder: Path, target: str) -> None:
    """`proctor run` completes: two samples pass, the third is an error that names the call."""
    output = proctor(
        *("run", "--dataset", "data.jsonl", "--target", f"app.py:{target}", "--name", "exam"),
        *("-e", "exact_match", "--history", "h.db", "--fail-under", "0.9"),
        cwd=folder,
    )
    assert output.returncode == 1, output
    report = SQLiteHistory(folder / "h.db").report("exam")
    results = {result.sample_id: result for result in report.results}
    assert [sample for sample, result in results.items() if result.trial.error] == ["s1"]
    error = results["s1"].trial.error
    assert error is not None
    assert error.kind == "ProcessExitBlocked"
    assert "would end the process in the middle of the run" in error.message
    assert report.metadata is not None
    assert any("Proctor blocked it" in text for text in report.metadata.warnings)


@pytest.mark.parametrize("name", ["leaving_evaluator", "leaving_async_evaluator"])
def test_an_evaluator_that_ends_the_process_is_an_error_of_its_score(folder: Path, name: str) -> None:
    """The evaluator's score is an error on that sample; the report is printed, the exit is not 0
    when a threshold was set that cannot be met."""
    output = proctor(
        *("run", "--dataset", "data.jsonl", "--target", "app.py:shout"),
        *("-e", f"app.py:{name}", "--fail-under", "0.9"),
        cwd=folder,
    )
    assert output.returncode != 0
    assert "os._exit(0) would end the process" in output.stdout + output.stderr


@pytest.mark.parametrize("line", ["import os; os._exit(0)", "import os; os.execvp('true', ['true'])"])
def test_a_module_that_ends_the_process_when_imported_is_an_error(folder: Path, line: str) -> None:
    (folder / "app.py").write_text(line)
    (folder / "eval.yaml").write_text(
        "dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [exact_match]\nfail_under: 0.5\n"
    )
    for command in ("run", "gate"):
        output = proctor(command, "eval.yaml", cwd=folder)
        assert output.returncode == 2, output
        assert "app.py:1 (eval.yaml:2): " in output.stderr
        assert "Proctor blocked it" in output.stderr


def test_an_exit_after_the_command_does_not_hide_its_code(folder: Path) -> None:
    """`atexit` functions may call os._exit(0): the command's own exit code is kept."""
    late = "import atexit, os\natexit.register(os._exit, 0)\ndef wrong(text): return 'no'\n"
    (folder / "app.py").write_text(late)
    output = proctor(
        *("run", "--dataset", "data.jsonl", "--target", "app.py:wrong"),
        *("-e", "exact_match", "--fail-under", "0.9"),
        cwd=folder,
    )
    assert output.returncode == 1, output


API = """
import os, sys
from proctor import evaluate, exact_match

async def in_a_coroutine(text):
    os._exit(0)

def in_a_thread(text):
    os._exit(0)

def leaving(output, expected):
    os._exit(0)

case = sys.argv[1]
target = globals().get(case, lambda text: text)
judge = leaving if case == "evaluator" else exact_match
data = [{"id": "a", "input": "a", "expected": "a"}]
report = evaluate(target, data, judge, history=False)
result = report.results[0]
print(result.trial.error or result.scores["leaving"].reason)
print(os._exit.__module__, os.execv.__module__)
os._exit(7)
"""


@pytest.mark.parametrize("case", ["in_a_coroutine", "in_a_thread", "evaluator"])
def test_evaluate_survives_and_restores_the_real_functions(tmp_path: Path, case: str) -> None:
    """After `evaluate` the caller's own `os._exit` ends the process again."""
    process = start(API.replace("os._exit(7)", "sys.stdout.flush(); os._exit(7)"), case, cwd=tmp_path)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 7, err
    assert "os._exit(0) would end the process" in out
    assert out.splitlines()[-1] == f"{os.name} {os.name}"


def test_child_processes_end_as_they_like() -> None:
    """A fork inside a target, as multiprocessing makes one, keeps the real `os._exit`."""

    def target(text: str) -> int:
        child = os.fork()
        if child == 0:
            os._exit(5)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    @evaluator
    def is_five(output: int) -> bool:
        return output == 5

    report = evaluate(target, [{"id": "a", "input": "a"}], is_five, history=False)
    assert report.pass_rate == 1.0


def test_a_thread_of_the_users_that_ends_the_process_is_a_warning() -> None:
    """Nobody waits for such a thread, so only the warnings of the run can say so."""

    def leave() -> None:
        with contextlib.suppress(SystemExit):
            os._exit(0)

    def target(text: str) -> str:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        return text

    report = evaluate(target, [{"id": "a", "input": "a", "expected": "a"}], "exact_match", history=False)
    assert report.pass_rate == 1.0
    assert report.metadata is not None
    assert any("os._exit(0) would end the process" in text for text in report.metadata.warnings)


def test_blocks_overlap_in_any_order() -> None:
    """Runs side by side need not end in the order in which they began."""
    real = os._exit
    first, second = exit_blocked(), exit_blocked()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with pytest.raises(ProcessExitBlocked):
        os._exit(0)
    second.__exit__(None, None, None)
    assert os._exit is real


def test_a_signal_still_ends_the_process(folder: Path) -> None:
    """SIGKILL is not an exit that could be taken for success."""
    (folder / "app.py").write_text(f"import os\ndef shout(text): os.kill(os.getpid(), {int(signal.SIGKILL)})")
    output = proctor(*("run", "--dataset", "data.jsonl", "--target", "app.py:shout", "-e", "exact_match"), cwd=folder)
    assert output.returncode == -signal.SIGKILL
