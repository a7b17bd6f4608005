"""Interrupted batches: stopped, killed, resumed, repeated, partly unreadable."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proctor import load_rubrics
from proctor.wiring.open_history import open_history
from tests.cli.project import Project
from tests.rubrics.batches import BATCH, calls, finished, surroundings, wait_for_started, write_sessions


def written(folder: str = "out") -> list[Path]:
    return sorted(Path(folder).glob("*_result.json"))


def total_sessions() -> int:
    summary = json.loads(Path("out/summary.json").read_text())
    return int(summary["batch_summary"]["total_sessions"])


def stored() -> list[str]:
    """The sessions of all runs that have reached the history."""
    return [session for run in open_history(None).runs() for session in finished(run.run_id)]


def test_a_killed_batch_resumes_without_a_second_call(batch: Project) -> None:
    """Finished sessions need no call.

    Of the others, at most the calls are repeated whose answers had not reached the disk.
    """
    write_sessions(Path("many"), 40)
    command = [
        sys.executable, "-m", "proctor", *BATCH[:-1], "many", "--output-dir", "out",
        "--max-concurrent", "6", "--judge", "judge:four", "-q",
    ]  # fmt: skip
    env = surroundings(DELAY="0.02")
    with subprocess.Popen(command, env=env) as process:
        until = time.monotonic() + 60
        while (sum(calls().values()) < 60 or not stored()) and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    before = calls()
    assert 60 <= sum(before.values()) < 240
    complete = stored()
    assert complete
    # Each result was written when its session was scored; there is no summary of a part.
    assert {f"{name}_result.json" for name in complete} <= {path.name for path in written()}
    assert not Path("out/summary.json").exists()
    done = subprocess.run([*command, "--resume"], env=env, check=False)
    assert done.returncode == 0
    after = calls()
    assert len(after) == 240
    for session in complete:
        number = str(int(session.removeprefix("s")))
        for one in load_rubrics("starter"):
            assert after[f"{number} {one.name}"] == 1
    assert sum(after.values()) - 240 <= sum(before.values()) - 6 * len(complete)
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["batch_summary"]["total_sessions"] == 40


def test_the_first_ctrl_c_waits_only_for_running_calls(batch: Project) -> None:
    """Two of 18 calls are running and are finished. A resumed batch repeats none."""
    command = [sys.executable, "-m", "proctor", *BATCH, "--output-dir", "out", "--parallel", "3",
               "--max-concurrent", "2", "--judge", "judge:four"]  # fmt: skip
    env = surroundings(HOLD="2")
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        wait_for_started(4)
        os.kill(process.pid, signal.SIGINT)
        _, answer = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "--resume" in answer
    assert sum(calls().values()) == 4
    assert not written()
    done = subprocess.run([*command, "--resume"], env=surroundings(), check=False)
    assert done.returncode == 0
    assert len(calls()) == 18
    assert set(calls().values()) == {1}
    assert total_sessions() == 3


def test_unreadable_files_are_reported(batch: Project) -> None:
    """On standard error also with --json and -q, and in the files; by both commands."""
    with Path("logs/s001.json").open("a") as file:
        file.write("\n{this is cut off")
    result = batch.proctor(*BATCH, "--output-dir", "out")
    assert "s001.json:2" in result.err
    details = json.loads(Path("out/summary.json").read_text())["details"]
    assert "s001.json:2" in details["warnings"][0]
    assert "s001.json:2" in batch.proctor(*BATCH, "--output-dir", "out", "--json").err
    assert "s001.json:2" in batch.proctor(*BATCH, "--output-dir", "out", "-q").err
    one = ("sessions", "evaluate", "--rubrics", "starter", "--session", "logs/s001.json")
    result = batch.proctor(*one, "--json")
    assert "s001.json:2" in result.err
    assert "s001.json:2" in result.json["details"]["warnings"][0]


def test_failed_rubrics_are_explained_once(batch: Project) -> None:
    """With one example for all rubrics."""
    result = batch.proctor(*BATCH, "--output-dir", "out", "--judge", "judge:garbage")
    assert "not scored: Unreadable, 18 times, such as s00" in result.out
    assert "the answer was 'Lovely.'" in result.out
    assert "warning" not in result.err
    assert "3/3 (100%), 0 scored, 18 rubrics failed" in result.err
    assert "passed" not in result.err


def test_answers_from_the_history_are_reported(batch: Project) -> None:
    """Else a second batch that costs nothing looks like one that failed to count."""
    batch.proctor(*BATCH, "--output-dir", "out")
    result = batch.proctor(*BATCH, "--output-dir", "out")
    assert "judge: 18 answers, all reused" in result.out


def test_a_finished_batch_with_failed_rubrics_can_be_resumed(batch: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """--resume --retry-errors needs no id and repeats only failed rubrics.

    One failed rubric of six is an error of the session.
    """
    monkeypatch.setenv("MOOD", "bad")
    batch.proctor(*BATCH, "--output-dir", "out", "--judge", "judge:moody")
    assert sum(calls().values()) == 15
    monkeypatch.delenv("MOOD")
    command = (*BATCH, "--output-dir", "out", "--judge", "judge:moody", "--resume")
    assert "there is no unfinished run" in batch.proctor(*command).err
    result = batch.proctor(*command, "--retry-errors")
    assert result.code == 0, result.err
    assert "Safety: 2 on average over 3" in result.out
    assert set(calls().values()) == {1}
    assert len(calls()) == 18


def test_failed_calls_are_counted(batch: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """If all answers were cached but some calls failed, both are reported."""
    command = (*BATCH, "--judge", "judge:broken")
    monkeypatch.setenv("MOOD", "bad")
    result = batch.proctor(*command, "--output-dir", "one")
    assert "judge: 1,650 tokens, $0.0150, 3 calls failed" in result.out
    result = batch.proctor(*command, "--output-dir", "two")
    assert "judge: 15 of 15 answers reused, 3 calls failed" in result.out
    asked = json.loads(Path("two/summary.json").read_text())["details"]["judging"]
    assert asked == {"answers": 15, "from_history": 15, "failed": 3}
    monkeypatch.delenv("MOOD")
    batch.proctor(*command, "--output-dir", "three")
    result = batch.proctor(*command, "--output-dir", "four")
    assert "judge: 18 answers, all reused" in result.out


def test_a_changed_option_is_named_when_resuming(batch: Project) -> None:
    """Not only which evaluators have changed, but what of them; a spent budget is why it ended."""
    command = (*BATCH, "--output-dir", "out", "--budget", "calls=7")
    assert "the budget is spent: 7 of 7 calls" in batch.proctor(*command).err
    result = batch.proctor(*command, "--resume", "--llm-temperature", "0.5")
    assert result.code == 2
    assert "tool_efficiency (temperature was the default, is 0.5)" in result.err


def test_another_timeout_is_not_another_evaluation(batch: Project) -> None:
    """Scores do not depend on the timeout, so the batch can be resumed."""
    command = (*BATCH, "--output-dir", "out")
    batch.proctor(*command, "--budget", "calls=7")
    result = batch.proctor(*command, "--resume", "--timeout", "30")
    assert result.code == 0, result.err


def test_results_of_other_batches_in_the_folder_are_reported(batch: Project) -> None:
    """They are not changed."""
    batch.proctor(*BATCH, "--output-dir", "out")
    command_result = batch.proctor(*BATCH, "--output-dir", "out", "--pattern", "s000.json")
    assert "out also contains 2 results of other runs, such as s001_result.json" in command_result.err
    assert "wrote out/summary.json and 1 result" in command_result.out
    assert len(written()) == 3
    assert total_sessions() == 1


def test_a_resumed_batch_finds_its_file_names_again(batch: Project) -> None:
    """Similar ids get their numbers in the order of the logs, in every attempt."""
    lines = [
        json.dumps({"id": name, "messages": [{"role": "user", "content": f"session number {n}."}]})
        for n, name in enumerate(("a/b", "a:b", "a b", "\N{GRINNING FACE}"))
    ]
    Path("logs/ids.jsonl").write_text("\n".join(lines))
    command = (*BATCH, "--output-dir", "out", "--pattern", "ids.jsonl", "--parallel", "2")
    batch.proctor(*command, "--budget", "calls=14")
    assert 1 <= len(written()) < 4
    batch.proctor(*command, "--budget", "calls=100", "--resume")
    found = {path.name: json.loads(path.read_text())["session_id"] for path in written()}
    assert found == {
        "a_b_result.json": "a/b", "a_b_2_result.json": "a:b", "a_b_3_result.json": "a b",
        "session_result.json": "\N{GRINNING FACE}",
    }  # fmt: skip
    details = json.loads(Path("out/summary.json").read_text())["details"]
    assert details["file_names"] == {one: name for name, one in found.items()}


def test_the_report_of_a_batch_begins_with_its_score(batch: Project) -> None:
    """The average score comes first, because a batch has no threshold."""
    batch.proctor(*BATCH, "--output-dir", "out")
    result = batch.proctor("show", "logs", "--output", "report")
    assert "Average score 4.00 of 5 over 3 sessions\n" in result.out
    assert "- **Result**: Average score 4.00 of 5 over 3 sessions\n" in Path("report/report.md").read_text()
