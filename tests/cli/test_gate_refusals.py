"""`proctor gate` where nothing can be decided: what it says, before it costs, and leaves behind."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from proctor.cli.gate_checks import require_complete_run
from proctor.comparison.report import EvalReport
from proctor.errors import ProctorError
from proctor.records.run import RunMetadata, RunStatus
from tests.cli.project import CommandResult, Project

TARGET = """
import os, signal
from pathlib import Path

def answer(text, *, style=""):
    number = int(text)
    mode = Path(f"mode{style}.txt").read_text()
    if mode == "boom":
        raise ValueError("no key")
    if mode == "stop" and number == 150:
        os.kill(os.getpid(), signal.SIGINT)
    return "no" if mode == "wrong" else f"A{number}"

def right(output, expected):
    return output == expected

def nonempty(output, expected):
    return bool(output)
"""
EVAL = """
name: exam
dataset: data.jsonl
target: app.py:answer
evaluators: [app.py:right, app.py:nonempty]
run: {concurrency: 1, shuffle: 7}
"""
EASY = EVAL.replace("app.py:right, ", "")
CONFIGURATIONS = "configurations: {a: {style: -a}, b: {style: -b}}\n"
GATE = ("gate", "eval.yaml", "--baseline", "main", "--margin", "5%")


@pytest.fixture
def exam(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """200 samples, all right in the baseline `main`."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    project.write("app.py", TARGET)
    project.write("eval.yaml", EVAL)
    samples(project, "q")
    project.write("mode.txt", "right")
    project.make_baseline()
    return project


def samples(project: Project, prefix: str, clusters: int = 0) -> None:
    rows = [
        {"id": f"{prefix}{i}", "input": str(i), "expected": f"A{i}"}
        | ({"metadata": {"cluster": f"c{i % clusters}"}} if clusters else {})
        for i in range(200)
    ]
    project.write("data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def runs(project: Project) -> int:
    return len(project.proctor("runs", "--json").json)


def compare_as_json(project: Project, metric: str) -> list[Any]:
    """What a comparison of easy and main has of a metric."""
    result = project.proctor("compare", "easy", "main", "--json").json["comparisons"]
    return [item["metrics"][metric] for item in result]


def refused(project: Project, *args: str) -> CommandResult:
    """Exit code 2, and no run was begun."""
    before = runs(project)
    result = project.proctor(*args)
    assert (result.code, result.out) == (2, "")
    assert runs(project) == before
    return result


def test_swapped_evaluators_do_not_pass(exam: Project) -> None:
    """Who deletes the evaluator that fails does not turn CI green; it costs no call to say so."""
    exam.write("eval.yaml", EASY)
    exam.write("mode.txt", "wrong")
    result = refused(exam, *GATE)
    assert "the file and main were not scored by the same evaluators" in result.err
    assert "strict_pass_rate cannot be compared: only main has the evaluator right" in result.err
    assert "--metric nonempty" in result.err
    assert "--accept-changes" in result.err
    assert exam.proctor("run", "eval.yaml", "-q").code == 0
    assert "were not scored by the same" in refused(exam, "gate", "latest", *GATE[2:]).err
    refused(exam, *GATE, "--until-decided")
    lost = refused(exam, *GATE, "--metric", "nonempty", "--max-flips", "3")
    assert "the number of lost samples cannot be compared" in lost.err
    assert "the file has no values for right" in refused(exam, *GATE, "--metric", "right").err


def test_what_both_have_is_decided_and_changes_can_be_accepted(exam: Project) -> None:
    """An evaluator that is the same in both is the same measure."""
    exam.write("eval.yaml", EASY)
    assert exam.proctor(*GATE, "--metric", "nonempty").code == 0
    result = exam.proctor(*GATE, "--accept-changes")
    assert result.code == 0
    assert "Note: only main has the evaluator right" in result.out
    early = exam.proctor(*GATE, "--accept-changes", "--until-decided", "--margin", "20%")
    assert early.code == 0
    repeated = exam.proctor("gate", "latest", *GATE[2:], "--accept-changes", "--margin", "20%")
    assert repeated.out == early.out


def test_an_evaluator_whose_code_was_changed_is_another_one(exam: Project) -> None:
    """The same name, another measure: neither its score nor the pass rate is held against it."""
    exam.write("app.py", TARGET.replace("output == expected", "len(output) < 99"))
    assert "the evaluator right is not the same in both runs" in refused(exam, *GATE).err
    assert "right cannot be compared" in refused(exam, *GATE, "--metric", "right").err
    assert exam.proctor(*GATE, "--metric", "nonempty").code == 0


def test_compare_first_reports_that_the_evaluators_differ(exam: Project) -> None:
    """The pass rate has no verdict, unless --accept-changes is given."""
    exam.write("eval.yaml", EASY)
    exam.proctor("run", "eval.yaml", "-q", "--name", "easy")
    result = exam.proctor("compare", "easy", "main")
    assert result.out.startswith("easy and main were not scored by the same evaluators, so pass_rate cannot be")
    assert [item["verdict"] for item in compare_as_json(exam, "pass_rate")] == ["not comparable"]
    accepted = exam.proctor("compare", "easy", "main", "--accept-changes").out
    assert accepted.startswith("easy and main do not differ") or "evidence" in accepted
    assert "only main has the evaluator right" in " ".join(accepted.split())
    ranked = exam.proctor("rank", "pass_rate", "easy", "main")
    assert "Note: only main has the evaluator right." in " ".join(ranked.out.split())


def test_options_that_need_pairs_are_rejected_before_the_run(exam: Project) -> None:
    """The ids of the dataset are read before the run starts."""
    samples(exam, "other")
    for option in (("--max-flips", "3"), ("--until-decided",)):
        result = refused(exam, *GATE, *option)
        assert "the dataset and main have no sample in common" in result.err
        assert option[0] in result.err
    assert (
        "lost samples can be counted only if the samples are paired"
        in refused(exam, *GATE, "--unpaired", "--max-flips", "3").err
    )
    assert "stops its run early requires paired samples" in refused(exam, *GATE, "--unpaired", "--until-decided").err
    assert "needs --baseline" in refused(exam, *GATE[:2], "--unpaired").err


def test_clusters_do_not_go_with_an_early_end_and_that_is_known_before(exam: Project) -> None:
    """The gate on all samples allows for them, and says how many there are."""
    samples(exam, "q", clusters=40)
    result = refused(exam, *GATE, "--until-decided")
    assert "share the cluster" in result.err
    assert "leave it out" in result.err
    result = exam.proctor(*GATE)
    assert "200 samples in 40 clusters" in " ".join(result.out.split())


def test_a_metric_that_was_never_measured_is_a_mistake_in_the_call(exam: Project) -> None:
    """It is not inconclusive, which may count as a pass."""
    exam.write("more.yaml", EVAL.replace("app.py:nonempty", "app.py:nonempty, contains"))
    exam.proctor("run", "more.yaml", "-q", "--name", "more")
    options = ("--baseline", "main", "--metric", "contains", "--inconclusive", "pass")
    assert "main has no values for contains" in refused(exam, "gate", "more", *options).err
    result = refused(exam, "gate", "more", *options[:3], "exact")
    assert result.err.count("strict_pass_rate") <= 1
    assert "not among the metrics" in refused(exam, *GATE, "--better", "foo=lower").err
    assert "'inf' is not a margin" in refused(exam, *GATE[:-1], "inf").err


def test_a_baseline_of_nothing_but_errors_is_refused(exam: Project) -> None:
    """Everything is as good as that."""
    exam.write("mode.txt", "boom")
    exam.proctor("run", "eval.yaml", "-q", "--name", "bad")
    exam.proctor("baseline", "set", "bad", "bad", "--force")
    exam.write("mode.txt", "right")
    result = refused(exam, "gate", "eval.yaml", "--baseline", "bad")
    assert "no result of the baseline bad" in result.err


def test_a_run_of_several_configurations_that_was_stopped_early_needs_one_named(exam: Project) -> None:
    """One of them was good and the other was why it stopped: the first is not the answer."""
    exam.write("both.yaml", EVAL + CONFIGURATIONS)
    for name in "ab":
        exam.write(f"mode-{name}.txt", "right")
    exam.proctor("run", "both.yaml", "-q")
    exam.proctor("baseline", "set", "both", "latest")
    exam.write("mode-b.txt", "wrong")
    early = ("--until-decided", "--configuration", "b")
    assert exam.proctor("gate", "both.yaml", "--baseline", "both", *early).code == 1
    result = exam.proctor("gate", "latest", "--baseline", "both", "--margin", "40%")
    assert result.code == 2
    assert "was stopped early and has 2 configurations" in result.err
    item = ("gate", "latest", "--baseline", "both", "--configuration")
    assert [exam.proctor(*item, name).code for name in "ab"] == [4, 1]


@pytest.mark.parametrize(
    ("mode", "baseline", "code", "message"),
    [
        ("boom", "main", 3, "has a verdict: 200 errors"),
        ("right", "mian", 2, "unknown baseline or run 'mian'"),
        ("stop", "main", 130, "interrupted; finished results are stored as run"),
    ],
)
def test_trouble_leaves_word_for_ci(
    exam: Project, monkeypatch: pytest.MonkeyPatch, mode: str, baseline: str, code: int, message: str
) -> None:
    """JUnit has an error, the comment and the step summary say why, and JSON is JSON."""
    summary = exam.write("summary.md", "")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    exam.write("mode.txt", mode)
    files = ("--junit", "g.xml", "--markdown", "g.md", "--output", "reports")
    result = exam.proctor("gate", "eval.yaml", "--baseline", baseline, *files, "--json")
    assert result.code == result.json["exit_code"] == code
    assert message in result.json["error"]["message"]
    suites = ET.parse(exam.folder / "g.xml").getroot()
    assert (suites.get("tests"), suites.get("errors")) == ("1", "1")
    [error] = suites.iter("error")
    assert message in str(error.text)
    comment = (exam.folder / "g.md").read_text()
    assert comment.startswith("<!-- proctor gate: exam -->\n## Gate not decided: exam\n\n")
    assert summary.read_text() == f"{comment}\n"
    assert (exam.folder / "reports/report.md").exists() == (mode == "boom")


def test_after_ctrl_c_the_advice_works(exam: Project) -> None:
    """The gate has no --resume: the rest is run, then the run is gated."""
    exam.write("mode.txt", "stop")
    result = exam.proctor(*GATE)
    assert result.code == 130
    assert "No such option" not in result.err
    [run_id] = {word.rstrip(";") for word in result.err.split() if word[:2] == "20"}
    assert f"proctor run eval.yaml --resume {run_id}; then: proctor gate {run_id}" in result.err
    assert exam.proctor("gate", run_id, *GATE[2:]).code == 3
    exam.write("mode.txt", "right")
    assert exam.proctor("run", "eval.yaml", "--resume", run_id, "-q").code == 0
    assert exam.proctor("gate", run_id, *GATE[2:]).code == 0


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        ("running", "wait until it ends"),
        ("submitted", "proctor collect"),
        ("interrupted", "continue it: proctor run … --resume"),
    ],
)
def test_a_run_that_goes_on_is_waited_for(status: RunStatus, advice: str) -> None:
    """Who resumes a run that is running has it twice."""
    run = RunMetadata("RUN", "exam", datetime(2026, 1, 1, tzinfo=UTC), status)
    with pytest.raises(ProctorError) as caught:
        require_complete_run(EvalReport([], run))
    assert advice in str(caught.value)


def test_an_incomplete_baseline_must_be_named_on_purpose(exam: Project) -> None:
    """By its id it is refused, even with --accept-changes; `baseline set --force` accepts it."""
    exam.write("mode.txt", "stop")
    assert exam.proctor("run", "eval.yaml", "--name", "half").code == 130
    run_id = exam.proctor("show", "half", "--json").json["metadata"]["run_id"]
    exam.write("mode.txt", "right")
    result = refused(exam, "gate", "eval.yaml", "--baseline", run_id, "--accept-changes")
    assert "a baseline must be a complete run" in result.err
    assert exam.proctor("baseline", "set", "partial", run_id, "--force").code == 0
    assert exam.proctor("gate", "eval.yaml", "--baseline", "partial", "--accept-changes", "--margin", "20%").code == 0


def test_an_eval_file_is_named_and_tagged_as_in_a_run(exam: Project) -> None:
    """A stored run is as it is; reports are written of either."""
    named = ("--name", "change", "--tag", "commit=abc", "--concurrency", "3", "--quiet")
    result = exam.proctor(*GATE, *named, "--output", "reports")
    assert (result.code, result.err, result.out.count("\n")) == (0, "", 1)
    run = exam.proctor("show", "change", "--json").json["metadata"]
    assert (run["tags"], run["options"]["concurrency"]) == ({"commit": "abc"}, 3)
    report = (exam.folder / "reports/report.md").read_text()
    assert "The gate passes" in report.split("\n\n")[1]
    assert "--tag needs an eval file" in refused(exam, "gate", "change", *GATE[2:], *named[2:4]).err


def test_the_headline_names_the_check_that_is_hardest_to_settle(exam: Project) -> None:
    """Whoever runs as many more as the headline says has settled all of them."""
    exam.write("mode.txt", "right")
    options = ("--metric", "right=1%", "--metric", "nonempty=0.9%", "--metric", "strict_pass_rate=5%")
    result = exam.proctor("gate", "eval.yaml", "--baseline", "main", *options, "--json")
    assert result.code == 4
    more = {check["name"]: check.get("more_samples") for check in result.json["checks"]}
    assert more["nonempty"] > more["right"] > 0
    assert result.json["answer"].startswith("The gate is inconclusive in 2 of 3 checks: nonempty")


def test_the_comment_of_an_error_has_the_name_of_the_run(exam: Project) -> None:
    """Of an unreadable file, the baseline or the path knows the name; of a stored run, the history."""
    exam.proctor("run", "eval.yaml", "--name", "exam-main")
    exam.proctor("baseline", "set", "named", "latest")
    exam.write("broken.yaml", "evaluators: [")
    for run, baseline, name in (
        ("broken.yaml", "named", "exam-main"),
        ("broken.yaml", "nobody", "broken"),
        ("latest", "nobody", "exam-main"),
        ("nothing", "nobody", "nothing"),
    ):
        assert exam.proctor("gate", run, "--baseline", baseline, "--markdown", "g.md").code == 2
        assert (exam.folder / "g.md").read_text().startswith(f"<!-- proctor gate: {name} -->\n## Gate not decided")
