"""Alarms over runs of one name: the chart, the cause of a change, and the exit codes."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from benchmarks.simulations.trust import blames, make_report, make_trend

from proctor.cli.main import run_cli
from proctor.records.metric import Trend, TrendPoint
from proctor.validity.alarms import Alarm, find_cause, watch_runs
from tests.support import run_command

EVAL = """
name: nightly
dataset: data.jsonl
target: app.py:answer
evaluators: ["app.py:check"]
"""
APP = """
def answer(question):
    return {answer}

def check(output):
    return {check}
"""


# Questions that start with q are easy.
ANSWER = '"right" if question[0] == "q" else "wrong"'


class Nightly:
    """A project whose agent, judge and data a test changes between runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_app(self, answer: str = ANSWER, check: str = 'output == "right"') -> None:
        (self.folder / "app.py").write_text(APP.format(answer=answer, check=check), encoding="utf-8")

    def write_data(self, prefix: str, count: int) -> None:
        lines = (json.dumps({"id": f"{prefix}{n}", "input": f"{prefix}{n}"}) for n in range(count))
        (self.folder / "data.jsonl").write_text("\n".join(lines), encoding="utf-8")

    def run(self, times: int = 1) -> None:
        for _ in range(times):
            assert run_command("run", "eval.yaml", "-q", cwd=self.folder).returncode == 0


@pytest.fixture(scope="module")
def five_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five healthy runs, which the tests copy."""
    project = Nightly(tmp_path_factory.mktemp("nightly"))
    (project.folder / "eval.yaml").write_text(EVAL, encoding="utf-8")
    project.write_app()
    project.write_data("q", 30)
    project.run(5)
    return project.folder


@pytest.fixture
def nightly(five_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nightly:
    folder = tmp_path / "project"
    shutil.copytree(five_runs, folder)
    monkeypatch.chdir(folder)
    return Nightly(folder)


def watch(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run_cli(["watch", "nightly", *arguments])
    return code, capsys.readouterr().out


def test_few_runs_cannot_tell_and_healthy_runs_are_quiet(nightly: Nightly, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 4 below six runs, then 0; every sentence has its number of runs."""
    code, text = watch(capsys)
    assert code == 4
    assert text.startswith("Cannot tell yet: pass_rate of nightly has 5 runs, and the chart needs 6")
    nightly.run()
    code, text = watch(capsys)
    assert code == 0
    assert "no change in 6 runs; latest 100.0% (n = 30)" in text
    assert run_cli(["history", "trend", "pass_rate", "--name", "nightly", "--alarm"]) == 0
    assert run_cli(["history", "trend", "pass_rate", "--alarm"]) == 2


def test_a_changed_agent_is_blamed(nightly: Nightly, capsys: pytest.CaptureFixture[str]) -> None:
    """The rules and the data are the same, so the agent changed; the change is where it happened."""
    nightly.write_app(answer='"wrong" if int(question[1:]) % 2 else "right"')
    nightly.run(2)
    code, text = watch(capsys)
    assert code == 1
    assert "fell from 100.0% (5 runs) to 50.0% (2 runs)" in text
    assert "Cause: the agent" in text
    assert "the evaluators are the same rules" in text
    assert "on the same samples pass_rate changed by -50 points (95% interval" in text
    assert "the target's code changed" in text
    assert run_cli(["history", "trend", "pass_rate", "--name", "nightly", "--alarm"]) == 1


def test_a_changed_judge_is_blamed(nightly: Nightly, capsys: pytest.CaptureFixture[str]) -> None:
    """Today's check fails the stored outputs of the healthy run: the judge moved, without calling the target."""
    nightly.write_app(check='output == "perfect"')
    nightly.run(2)
    code, text = watch(capsys)
    assert (code, "Cause: cannot tell" in text, "--file eval.yaml" in text) == (1, True, True)
    code, text = watch(capsys, "--file", "eval.yaml", "--json")
    data = json.loads(text)
    assert (code, data["blame"]["cause"], data["shift"]) == (1, "judge", -1.0)
    assert "-100 points" in data["blame"]["evidence"][0]
    # The rescored run is not a run of the agent.
    assert len(json.loads(watch(capsys, "--json")[1])["alarm"]["runs"]) == 7


def test_changed_data_are_blamed(nightly: Nightly, capsys: pytest.CaptureFixture[str]) -> None:
    """Other samples, the same code: the data changed; an accepted change starts a new chart."""
    nightly.write_data("hard", 30)
    nightly.run(2)
    code, text = watch(capsys)
    assert (code, "Cause: the data" in text) == (1, True)
    assert "0 samples in common, 30 new, 30 gone" in text
    assert watch(capsys, "--since", "2999-01-01")[0] == 2


def test_a_rise_is_an_alarm_too() -> None:
    """A judge that became lenient looks like an improvement."""
    alarm = watch_runs(make_trend([0.5, 0.52, 0.48, 0.51, 0.49, 0.5, 0.7, 0.71, 0.69]), "it", "default")
    assert (alarm.status, alarm.healthy_run, alarm.changed_run) == ("alarm", "run5", "run6")
    assert alarm.shift == pytest.approx(0.2)
    assert alarm.shift_interval is not None
    assert alarm.shift_interval[0] < 0.2 < alarm.shift_interval[1]


def test_runs_of_few_samples_count_less() -> None:
    """The same dip is an alarm over 200 samples, and none over 4."""

    def make(n: int) -> Alarm:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        rates = [(0.8, 200), (0.82, 200), (0.79, 200), (0.81, 200), (0.8, 200), (0.78, 200), (0.6, n), (0.8, 200)]
        points = (
            TrendPoint(start + timedelta(days=day), str(day), "default", rate, size)
            for day, (rate, size) in enumerate(rates)
        )
        return watch_runs(Trend("pass_rate", tuple(points), "rate"), "it", "default")

    assert (make(200).status, make(4).status) == ("alarm", "healthy")


def test_a_noisy_judge_cannot_be_told_from_the_agent() -> None:
    """If the verdicts on ten outputs allow both no change and the whole change, nobody is blamed."""
    alarm = watch_runs(make_trend([0.8] * 7 + [0.7, 0.7, 0.7]), "it", "default")
    healthy, again = [True] * 8 + [False] * 2, [True] * 6 + [False] * 2 + [True] * 1 + [False]
    blame = find_cause(alarm, make_report(healthy, "old"), make_report(again, "old"), make_report(again, "old"))
    assert (blame.cause, "samples: 3" in blame.fix) == ("cannot tell", True)


def test_only_an_interval_that_excludes_zero_names_a_cause() -> None:
    """Rescored verdicts of n = 10 allow no change of the judge; of n = 200 they show it, with n and interval."""
    alarm = watch_runs(make_trend([0.8, 0.81, 0.79, 0.8, 0.81, 0.79, 0.5, 0.5, 0.5]), "it", "default")
    for n, cause in ((10, "cannot tell"), (200, "judge")):
        healthy, again = [i % 10 < 8 for i in range(n)], [i % 10 < 5 for i in range(n)]
        reports = [make_report(verdicts, "old") for verdicts in (healthy, again, again)]
        blame = find_cause(alarm, *reports)
        assert blame.cause == cause
        assert f"n = {n}" in blame.evidence[0]
        assert "change of pass_rate without the judge: +0 points (95% interval" in blame.evidence[1]
    # The judge is the same, and the chart itself may show no change.
    doubtful = msgspec.structs.replace(alarm, shift_interval=(-0.7, 0.1))
    same = make_report(healthy, "old")
    assert find_cause(alarm, same, make_report(again, "old"), same).cause == "agent"
    assert find_cause(doubtful, same, make_report(again, "old"), same).cause == "cannot tell"


@pytest.mark.parametrize("cause", ["judge", "data", "agent"])
def test_planted_changes_are_blamed(cause: str) -> None:
    """Quick cases of the simulation: at least 4 of 5 single changes."""
    rng = random.Random(4)
    assert sum(blames(rng, cause) for _ in range(5)) >= 4
