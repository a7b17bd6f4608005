"""`proctor run --watch`: which files are watched, when a change counts, and what is printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from proctor import Sample, evaluate
from proctor.cli.watch_files import describe_difference, read_states, wait_for_change
from tests.cli.project import Project
from tests.support import run_command

PROMPTED = """
from pathlib import Path
def answer(text):
    prompt = (Path(__file__).parent / "prompt.txt").read_text()
    Path("log.txt").open("a").write(text)
    return text.upper() + prompt.strip()
"""
EVAL = "dataset: data.jsonl\ntarget: app.py:answer\nevaluators: [exact_match]\n"


def write_project(folder: Path) -> None:
    (folder / "app.py").write_text(PROMPTED)
    (folder / "prompt.txt").write_text("")
    (folder / "eval.yaml").write_text(EVAL)
    lines = [f'{{"id": "s{i}", "input": "w{i}", "expected": "W{i}"}}\n' for i in range(3)]
    (folder / "data.jsonl").write_text("".join(lines))


def test_a_change_of_content_counts_and_a_new_time_alone_does_not(tmp_path: Path) -> None:
    """Touching a file changes nothing; a new content, a removed file and a new file do."""
    files = [tmp_path / name for name in ("a", "b", "c")]
    files[0].write_text("1")
    files[1].write_text("1")

    def wait(*steps: object) -> list[str]:
        pending = list(steps)

        def sleep(_: float) -> None:
            pending.pop(0)()  # type: ignore[operator]

        return [Path(path).name for path in wait_for_change(read_states(map(str, files)), sleep)]

    assert wait(lambda: os.utime(files[0], ns=(5, 5)), lambda: files[0].write_text("2")) == ["a"]
    assert wait(lambda: None, lambda: files[1].unlink()) == ["b"]
    assert wait(lambda: files[2].write_text("")) == ["c"]


def test_the_process_runs_again_after_a_change_until_it_is_interrupted(tmp_path: Path) -> None:
    """Eval file, dataset, module and prompt are watched, the log that the target writes is not.

    A broken eval file is reported, and the next change is noticed all the same.
    """
    write_project(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "proctor", "run", "eval.yaml", "--watch", "-q"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        start_new_session=True,
    )
    assert process.stderr is not None

    def read_until(text: str) -> list[str]:
        lines = []
        for line in process.stderr or ():
            lines.append(line.strip())
            if text in line:
                return lines
        raise AssertionError(f"{text!r} is missing: {lines}")

    read_until("watching 4 files; press Ctrl-C to stop")
    (tmp_path / "prompt.txt").write_text("!")
    lines = read_until("watching 4 files")
    assert "changed: prompt.txt" in lines
    [difference] = [line for line in lines if line.startswith("since the last run: ")]
    assert difference.startswith("since the last run: lost 3 (s0, s1, s2). ")
    assert "n = 3, 95% interval" in difference
    (tmp_path / "eval.yaml").write_text("dataset: [")
    lines = read_until("watching")
    assert "changed: eval.yaml" in lines
    assert any("error: " in line for line in lines)
    (tmp_path / "eval.yaml").write_text(EVAL + "name: again\n")
    assert any("no sample changed" in line for line in read_until("watching 4 files"))
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 0
    process.stderr.close()


def test_options_that_make_no_sense_together_are_refused(project: Project, tmp_path: Path) -> None:
    result = run_command("run", "eval.yaml", "--watch", "--resume", cwd=tmp_path)
    assert result.returncode == 2
    assert "--watch cannot be combined with --resume\nFix: leave out --resume" in result.stderr
    assert project.folder == tmp_path


def test_another_expected_value_is_reported_once_and_not_as_no_change(tmp_path: Path) -> None:
    """Runs with different expected values are not compared, so nothing is said about changed samples."""
    history = tmp_path / "history.db"
    reports = [
        evaluate(str.upper, [Sample("a", "x", expected), Sample("b", "y", "Y")], ["exact_match"], history=str(history))
        for expected in ("X", "Z", "Z")
    ]
    line = describe_difference(reports[1].run_id, reports[0].run_id, str(history))
    assert line.startswith("since the last run: this run and the last run cannot be compared: 1 of 2 samples")
    assert "no sample changed" not in line
    same = describe_difference(reports[2].run_id, reports[1].run_id, str(history))
    assert "no sample changed" in same
