"""The commands that score sessions: existing folders, Ctrl-C, and their output."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from proctor import EvalReport, Score
from proctor.records.rubric import read_run_columns
from proctor.reports.rubric_files import FileNames
from proctor.reports.rubrics import describe_scores, session_result
from proctor.wiring.open_history import open_history
from tests.cli.project import Project
from tests.rubrics.batches import BATCH, calls, surroundings, wait_for_started, write_sessions
from tests.rubrics.test_results import FAILED, result, run, spec

ONE = ("sessions", "evaluate", "--rubrics", "starter", "--session", "logs/s000.json")


def details(path: str) -> dict[str, object]:
    return dict(json.loads(Path(path).read_text())["details"])


def test_a_result_names_its_run_and_its_log(batch: Project) -> None:
    """Also while the batch is running, and in files of a resumed batch."""
    batch.proctor(*BATCH, "--output-dir", "out", "--budget", "calls=7")
    run = open_history(None).find("logs").run_id
    batch.proctor(*BATCH, "--output-dir", "out", "--budget", "calls=70", "--resume")
    for number in range(3):
        found = details(f"out/s00{number}_result.json")
        assert (found["run_id"], found["source"]) == (run, f"logs/s00{number}.json")


def test_results_of_other_sessions_are_not_overwritten(batch: Project) -> None:
    """Two folders have logs with the same names: refused before the first call."""
    shutil.copytree("logs", "others")
    batch.proctor(*BATCH, "--output-dir", "out")
    before, asked = Path("out/summary.json").read_text(), calls()
    result = batch.proctor(*BATCH[:-1], "others", "--output-dir", "out")
    assert result.code == 2
    assert "this folder contains results of other sessions (s000_result.json of logs/s000.json)" in result.err
    assert (Path("out/summary.json").read_text(), calls()) == (before, asked)
    assert batch.proctor(*BATCH[:-1], "others", "--output-dir", "out2").code == 0


def test_overwritten_results_are_reported(batch: Project) -> None:
    """The same sessions are scored again; a resumed run overwrites only its own files."""
    batch.proctor(*BATCH, "--output-dir", "out")
    first = open_history(None).find("logs").run_id
    result = batch.proctor(*BATCH, "--output-dir", "out", "--fresh")
    assert result.code == 0
    assert f"overwrote results of run {first} in out" in result.err
    batch.proctor(*BATCH, "--output-dir", "new", "--fresh", "--budget", "calls=7")
    result = batch.proctor(*BATCH, "--output-dir", "new", "--fresh", "--budget", "calls=99", "--resume")
    assert result.code == 0, result.err
    assert "overwrote" not in result.err


def test_unreadable_files_in_the_folder_are_ignored(batch: Project) -> None:
    """A damaged result, or a file of another program."""
    Path("out").mkdir()
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"details": 3}'), ("d", "{}")):
        Path(f"out/{name}_result.json").write_text(text)
    command_result = batch.proctor(*BATCH, "--output-dir", "out")
    assert command_result.code == 0, command_result.err
    assert "out also contains 4 results of other runs" in command_result.err


@pytest.mark.parametrize(
    ("folder", "what"),
    [
        ("./logs/../logs", "this folder contains the sessions"),
        ("logs/out", "this folder is inside the folder of the sessions"),
        ("link/deep/out", "this folder is inside the folder of the sessions"),
    ],
)
def test_results_cannot_be_written_into_the_folder_of_sessions(batch: Project, folder: str, what: str) -> None:
    """The next batch would read them as sessions; the notation of the path makes no difference."""
    Path("link").symlink_to("logs", target_is_directory=True)
    result = batch.proctor(*BATCH, "--output-dir", folder)
    assert (result.code, calls()) == (2, Counter())
    assert f"{what}, so the next batch would read its results as sessions" in result.err
    assert not Path("logs/out").exists()


def test_a_folder_with_a_similar_name_is_allowed(batch: Project) -> None:
    """`logs-results` next to `logs`, and sessions in a folder below the results."""
    assert batch.proctor(*BATCH, "--output-dir", "logs-results").code == 0
    shutil.copytree("logs", "all/logs")
    assert batch.proctor(*BATCH[:-1], "all/logs", "--output-dir", "all").code == 0


def test_a_result_never_overwrites_an_input(batch: Project) -> None:
    """The session, the rubrics or the template, under any name or link: refused before the first call."""
    rubric = {"id": "a", "name": "A", "description": "Is it?", "scoring_criteria": "1: no, 5: yes"}
    Path("mine.json").write_text(json.dumps({"version": "1", "rubrics": [rubric]}))
    Path("mine.txt").write_text("{rubric_name}{rubric_description}{scoring_criteria}{chat_session}")
    os.link("logs/s000.json", "same.json")
    Path("link.json").symlink_to("logs/s000.json")
    one = (*ONE, "--rubrics", "mine.json", "--prompt", "mine.txt")
    files = ("logs/s000.json", "mine.json", "mine.txt")
    before = [Path(name).read_bytes() for name in files]
    for output, option in (
        ("logs/../logs/s000.json", "--session"),
        ("same.json", "--session"),
        ("link.json", "--session"),
        ("mine.json", "--rubrics"),
        (str(Path("mine.txt").resolve()), "--prompt"),
    ):
        result = batch.proctor(*one, "--output", output)
        assert (result.code, calls()) == (2, Counter())
        assert f"{option} reads this file; it would be overwritten" in result.err
    folder = ("sessions", "evaluate", "--rubrics", "starter", "--session", "logs", "--id", "s000")
    result = batch.proctor(*folder, "--output", "logs/s001.json")
    assert (result.code, calls()) == (2, Counter())
    assert "--session reads this folder" in result.err
    assert [Path(name).read_bytes() for name in files] == before
    assert batch.proctor(*ONE, "--output", "starter").code == 0
    assert batch.proctor(*ONE, "--output", "starter").code == 0


def test_learned_rubrics_do_not_overwrite_their_input(batch: Project) -> None:
    """Neither the manifest nor a session, even with --overwrite."""
    entries = [{"path": f"logs/s00{number}.json", "score": number} for number in range(3)]
    Path("scored.json").write_text(json.dumps(entries))
    learn = ("sessions", "learn", "--manifest", "scored.json", "--model", "judge:four")
    result = batch.proctor(*learn, "--overwrite", "--output", "./scored.json")
    assert (result.code, calls()) == (2, Counter())
    assert "--manifest reads this file; it would be overwritten" in result.err
    result = batch.proctor(*learn, "--overwrite", "--output", "logs/s001.json")
    assert (result.code, calls()) == (2, Counter())
    assert "the file exists and is a JSON file, not a rubric file; it is not overwritten" in result.err
    chat = json.loads(Path("logs/s002.json").read_text())
    Path("logs/s002.json").write_text(json.dumps({"messages": chat, "rubrics": []}))
    result = batch.proctor(*learn, "--overwrite", "--output", "logs/s002.json")
    assert (result.code, calls()) == (2, Counter())
    assert "session 's002' of the manifest is in this file, which would be overwritten" in result.err
    assert json.loads(Path("scored.json").read_text()) == entries
    assert "session number 1" in Path("logs/s001.json").read_text()


def test_results_are_recognised_from_any_working_directory(batch: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same logs seen from another folder are the same; other logs with the same name are not."""
    here = Path.cwd()
    batch.proctor(*BATCH, "--output-dir", "out")
    found = details("out/s001_result.json")
    assert found["source"] == "logs/s001.json"
    assert found["source_path"] == str(here.resolve() / "logs" / "s001.json")
    before = Path("out/s001_result.json").read_text()
    other = here / "other"
    other.mkdir()
    write_sessions(other / "logs", 3)
    monkeypatch.chdir(other)
    result = batch.proctor(*BATCH, "--output-dir", "../out")
    assert result.code == 2
    assert f"s000_result.json of {here.resolve() / 'logs' / 's000.json'}" in result.err
    assert Path("../out/s001_result.json").read_text() == before
    result = batch.proctor(*BATCH[:-1], "../logs", "--output-dir", "../out")
    assert result.code == 0, result.err


def test_a_batch_can_be_resumed_from_another_folder(batch: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of the first attempt are recognised too."""
    here = Path.cwd()
    monkeypatch.setenv("PROCTOR_HISTORY", str(here / "history.db"))
    batch.proctor(*BATCH, "--output-dir", "out", "--parallel", "1", "--budget", "calls=7")
    shutil.rmtree("out")
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    logs = (*BATCH[:-1], "../logs", "--output-dir", "../out", "--name", "logs")
    result = batch.proctor(*logs, "--budget", "calls=99", "--resume", "--allow-changes")
    assert result.code == 0, result.err
    assert len(list(Path("../out").glob("*_result.json"))) == 3
    result = batch.proctor(*logs)
    assert result.code == 0, result.err


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("--output-dir", "judge.py"), "--output-dir: "),
        (("--timeout", "0"), "--timeout must be a number greater than 0, got 0"),
        (("--timeout", "nan", "--llm-max-tokens", "0"), "--max-tokens must be an integer"),
        (("--timeout", "nan", "--llm-max-tokens", "0"), "--timeout must be a number"),
        (("--timeout", "nan", "--llm-max-tokens", "0"), "Fix: write --timeout 60; write --max-tokens 1024"),
        (("--llm-temperature", "-1"), "--temperature must be a number, 0 or more, got -1"),
    ],
)
def test_invalid_options_are_named(batch: Project, change: tuple[str, ...], what: str) -> None:
    """All of them at once, before the first call."""
    result = batch.proctor(*BATCH, "--output-dir", "out", *change)
    assert (result.code, calls()) == (2, Counter())
    assert what in result.err


def test_scoring_one_session_is_resumed_by_the_same_command(batch: Project) -> None:
    """There is no --resume; answered rubrics are not asked again."""
    result = batch.proctor(*ONE, "--budget", "calls=2")
    assert result.code == 3
    assert "raise the budget and run the command again" in result.err
    assert "resume" not in result.err
    assert batch.proctor(*ONE, "--budget", "calls=4").code == 0
    assert set(calls().values()) == {1}


def interrupted(*more: str, when: int) -> tuple[int, str]:
    """The exit code and the output of a command that gets Ctrl-C after a number of calls."""
    command = [sys.executable, "-m", "proctor", *ONE, "--judge", "judge:four", *more]
    env = surroundings(HOLD=str(when))
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        wait_for_started(when + 1)
        os.kill(process.pid, signal.SIGINT)
        _, answer = process.communicate(timeout=120)
    return process.returncode, answer


def test_ctrl_c_during_a_session_says_how_to_resume(batch: Project) -> None:
    """Two rubrics are scored; the same command asks for the others."""
    code, answer = interrupted("--output", "r.json", "--max-concurrent", "1", when=1)
    assert code == 130
    assert "run the command again" in answer
    assert "--resume" not in answer
    assert not Path("r.json").exists()
    assert batch.proctor(*ONE, "--output", "r.json").code == 0
    assert set(calls().values()) == {1}


def test_ctrl_c_in_the_last_call_still_leaves_the_result(batch: Project) -> None:
    """The session was scored, and it was paid for."""
    code, _ = interrupted("--output", "r.json", "--max-concurrent", "1", when=5)
    assert code == 130
    found = json.loads(Path("r.json").read_text())
    assert found["summary"]["rubrics_evaluated"] == 6
    assert sum(calls().values()) == 6


def test_a_resumed_batch_reports_earlier_scores(batch: Project) -> None:
    """They do not count as cached answers."""
    command = (*BATCH, "--output-dir", "out", "--parallel", "1")
    batch.proctor(*command, "--budget", "calls=13")
    result = batch.proctor(*command, "--budget", "calls=99", "--resume")
    assert "2 of 3 sessions were scored before the run was resumed" in result.out
    assert "1 of 18 answers reused" in result.out
    assert details("out/summary.json")["sessions_from_before"] == 2


def test_equal_sessions_need_one_call(batch: Project) -> None:
    """In a first batch, too: the answers are known, though from no earlier run."""
    shutil.copy("logs/s000.json", "logs/s003.json")
    result = batch.proctor(*BATCH, "--output-dir", "out", "--parallel", "1")
    assert "6 of 24 answers reused" in result.out
    assert "history" not in result.out


def test_skipped_samples_have_not_failed() -> None:
    """A session without content: in the result as on the screen."""
    skipped = Score.skipped("nothing was said")
    one = result("s", 4, FAILED, skipped)
    output = EvalReport([one], run(spec(1), spec(2), spec(3)))
    content = session_result(output.results[0], read_run_columns(output.metadata))
    summary = content["summary"]
    assert (summary["rubrics_evaluated"], summary["rubrics_failed"]) == (1, 1)
    assert summary["rubrics_skipped"] == 1
    assert "Rubric 3: skipped - nothing was said" in describe_scores(output, content)
    assert "2 rubrics without a score" in describe_scores(output, content)


def test_a_sample_is_shown_with_the_scores_of_its_rubrics(batch: Project) -> None:
    """On the scale of the judge, with the normalized value."""
    batch.proctor(*BATCH, "--output-dir", "out")
    result = batch.proctor("show", "logs", "--sample", "s001").out
    assert "4 of 5 (0.75) passed  Turn 1 shows it." in result


def test_many_ids_that_look_alike_are_named_in_linear_time() -> None:
    """Each name counts on from the last one: twice the ids take twice the calls."""

    def count_calls(ids: int) -> int:
        events: Counter[str] = Counter()
        names = FileNames()
        sys.setprofile(lambda frame, event, argument: events.update([event]))
        try:
            created = {names.make_unique("\N{GRINNING FACE}" * number) for number in range(1, ids + 1)}
        finally:
            sys.setprofile(None)
        assert len(created) == ids
        return events.total()

    assert count_calls(800) < 3 * count_calls(400)


def test_a_single_session_is_reported_in_the_singular(batch: Project) -> None:
    """One result, one time, one other result."""
    shutil.rmtree("logs")
    write_sessions(Path("logs"), 1)
    rubric = {"id": "a", "name": "A", "description": "Is it?", "scoring_criteria": "1: no, 5: yes"}
    Path("mine.json").write_text(json.dumps({"version": "1", "rubrics": [rubric]}))
    Path("out").mkdir()
    Path("out/x_result.json").write_text("{}")
    command = (*BATCH, "--rubrics", "mine.json", "--output-dir", "out", "--judge", "judge:garbage")
    command_result = batch.proctor(*command)
    assert "not scored: Unreadable, 1 time" in command_result.out
    assert "and 1 result\n" in command_result.out
    assert "out also contains 1 result of other runs" in command_result.err


def test_the_built_in_rubrics_can_be_copied(batch: Project) -> None:
    """Their text is a rubric file; faults are reported with their lines."""
    code, text, _ = batch.proctor("sessions", "rubrics", "--text")
    Path("mine.yaml").write_text(text)
    _, theirs, _ = batch.proctor("sessions", "rubrics")
    assert batch.proctor("sessions", "rubrics", "mine.yaml") == (code, theirs, "")
    assert theirs.startswith("task_completion: Task completion (weight 2, scale 1 to 5)\n")
    result = json.loads(batch.proctor("sessions", "rubrics", "mine.yaml", "--json")[1])
    assert len(result["rubrics"]) == theirs.count("\n")
    Path("mine.yaml").write_text(text.replace("weight: 2", "weight: -2"))
    assert batch.proctor("sessions", "rubrics", "mine.yaml")[0] == 2
