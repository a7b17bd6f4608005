"""`proctor run`: a file, options over it, gates, reports, and what it says."""

from __future__ import annotations

import json

import pytest

from proctor.reports.json import load
from tests.cli.project import Project


def test_an_eval_file_is_run_kept_and_shown(project: Project) -> None:
    """The headline comes first, the run is in the history, and the exit code is 0."""
    told = project.proctor("run", "eval.yaml")
    assert told.code == 0
    assert told.out.startswith("4 of 4 passed (100.0 %, 95 % interval 51.0–100.0), 1 error\n")
    assert "ValueError" in told.out
    assert "5/5 (100 %), 4 passed, 0 failed, 1 error" in told.err
    assert "exam" in project.proctor("runs").out


def test_without_a_file_everything_comes_from_options(project: Project) -> None:
    """Dataset, target and evaluators are enough; parameters are given with --set."""
    told = project.proctor(
        "run", "--dataset", "data.jsonl", "--target", "app.py:shout", "-e", "exact_match",
        "-e", "app.py:long_enough", "--set", "app.py:long_enough.least=7", "--json",
    )  # fmt: skip
    assert told.code == 0
    run = told.json["metadata"]
    assert [e["name"] for e in run["evaluators"]] == ["exact_match", "long_enough"]
    assert run["evaluators"][1]["parameters"] == {"least": 7}
    assert told.json["metrics"]["long_enough.pass_rate"]["value"] == 0.0


def test_options_override_the_file(project: Project) -> None:
    """Options of the command line win over the file's; tags are added."""
    told = project.proctor(
        "run", "eval.yaml", "--json", "--limit", "2", "--epochs", "3", "--concurrency", "2",
        "--timeout", "5", "--retries", "1", "--tag", "branch=main", "--name", "other",
        "--max-errors", "9", "--on-error", "continue", "--cache", "-e", "contains",
    )  # fmt: skip
    run = told.json["metadata"]
    assert (told.json["total"], run["name"], run["tags"]) == (6, "other", {"branch": "main"})
    assert run["options"] == {
        "concurrency": 2, "timeout": 5.0, "epochs": 3, "limit": 2, "retries": 1, "max_errors": 9,
        "cache": True,
    }  # fmt: skip
    assert [e["name"] for e in run["evaluators"]] == ["contains"]


def test_a_python_file_says_the_same(project: Project) -> None:
    """eval.py is a module with the names of an eval file in it."""
    project.write(
        "exam.py",
        "from app import shout as target, long_enough\n"
        "from proctor import exact_match\n"
        "dataset = [{'id': 'a', 'input': 'hello', 'expected': 'HELLO'}]\n"
        "evaluators = [exact_match, long_enough]\n"
        "configurations = {'plain': {}, 'loud': {'suffix': '!'}}\n"
        "run = {'concurrency': 3}\n"
        "fail_under = {'exact_match.mean': 0.2}\n",
    )
    told = project.proctor("run", "exam.py", "--json")
    assert told.code == 1
    assert told.json["below_threshold"] == ["exact_match.mean of loud is 0, below 0.2"]
    assert told.json["metadata"]["options"] == {"concurrency": 3}
    assert told.json["metadata"]["name"] == "exam"


@pytest.mark.parametrize(
    ("least", "code"),
    [
        ("0.8", 0),
        ("81%", 1),
        ("pass_rate=1", 0),
        ("success_rate=0.9", 1),
        ("exact_match.mean=1", 0),
    ],
)
def test_fail_under_is_a_gate(project: Project, least: str, code: int) -> None:
    """A bare number is for the strict pass rate, in which the error counts: 4 of 5."""
    told = project.proctor("run", "eval.yaml", "-q", "--fail-under", least)
    assert told.code == code
    assert told.out == ""
    assert ("below threshold" in told.err) == (code == 1)


def test_an_unknown_metric_is_named(project: Project) -> None:
    """A threshold for a metric that is not there is a fault of the call."""
    told = project.proctor("run", "eval.yaml", "-q", "--fail-under", "exact_macth.mean=1")
    assert told.code == 2
    assert "did you mean 'exact_match.mean'?" in told.err


def test_reports_are_written(project: Project) -> None:
    """--output writes Markdown and JSON, and the JSON is the same report again."""
    told = project.proctor("run", "eval.yaml", "--output", "out/here")
    assert "wrote out/here/report.md" in told.out
    markdown = (project.folder / "out/here/report.md").read_text()
    assert "## Run Summary" in markdown
    report = load(project.folder / "out/here/report.json")
    assert (report.total, report.errors) == (5, 1)


def test_resume_in_all_its_forms(project: Project) -> None:
    """--resume alone, with an id, and before the file name."""
    assert project.proctor("run", "eval.yaml", "-q", "--on-error", "raise").code == 3
    project.write("app.py", (project.folder / "app.py").read_text().replace("word 3", "word 99"))
    refused = project.proctor("run", "eval.yaml", "--resume")
    assert refused.code == 2
    assert "target: its code or version has changed" in refused.err
    told = project.proctor(
        "run", "--resume", "eval.yaml", "--json", "--allow-changes", "--retry-errors"
    )
    assert (told.code, told.json["total"], told.json["errors"]) == (0, 5, 0)
    run_id = told.json["run_id"]
    again = project.proctor("run", "eval.yaml", "--resume", run_id[:18], "--json")
    assert (again.code, again.json["run_id"]) == (0, run_id)
    nothing = project.proctor("run", "eval.yaml", "--resume")
    assert nothing.code == 2
    assert "no unfinished run" in nothing.err


def test_plugins_come_by_import_path(project: Project) -> None:
    """--plugin registers an evaluator under its own name; a class is made without arguments."""
    project.write(
        "plugin.py",
        "class Polite:\n    name = 'polite'\n"
        "    def evaluate(self, output, sample, config=None):\n        return 1.0\n",
    )
    told = project.proctor(
        "run", "eval.yaml", "--plugin", "plugin:Polite", "-e", "polite", "--json"
    )
    assert told.json["metrics"]["polite.mean"]["value"] == 1.0


def test_csv_with_other_column_names(project: Project) -> None:
    """Columns are mapped on the command line, and ids made from the inputs."""
    project.write("data.csv", "question,answer\nhello,HELLO\nbye,BYE\n")
    told = project.proctor(
        "run", "--dataset", "data.csv", "--map", "question=input", "--map", "answer=expected",
        "--generate-ids", "--target", "app.py:shout", "-e", "exact_match", "--json",
    )  # fmt: skip
    assert (told.code, told.json["pass_rate"]) == (0, 1.0)


def test_metrics_and_paths_are_seen_from_the_eval_file(project: Project) -> None:
    """An eval file in another folder finds its dataset, target, evaluators and metrics."""
    project.write(
        "eval.yaml",
        "dataset: {path: data.jsonl}\ntarget: app.py:shout\n"
        "evaluators: ['app.py:long_enough', {uses: app.py:long_enough, name: longer, least: 9}]\n"
        "metrics: ['app.py:Words']\n",
    )
    (project.folder / "elsewhere").mkdir()
    import os

    os.chdir(project.folder / "elsewhere")
    told = project.proctor("run", "../eval.yaml", "--json")
    assert told.code == 0, told.err
    assert told.json["metrics"]["words.mean"]["value"] == 1.8
    assert told.json["metrics"]["longer.pass_rate"]["value"] == 0.0


def test_commands_and_recordings_as_targets(project: Project) -> None:
    """A command that speaks JSON, and outputs that were recorded before."""
    project.write(
        "program.py",
        "import json, sys\nasked = json.load(sys.stdin)\n"
        "print(json.dumps({'output': asked['input'].upper()}))\n",
    )
    project.write(
        "eval.yaml",
        "dataset: data.jsonl\ntarget: {command: [python3, program.py]}\n"
        "evaluators: [exact_match]\nrun: {timeout: 60}\n",
    )
    assert project.proctor("run", "eval.yaml", "--json").json["pass_rate"] == 1.0
    project.write("old.jsonl", '{"id": "s0", "output": "WORD 0"}\n{"id": "s1", "output": "no"}\n')
    project.write(
        "eval.yaml",
        "dataset: data.jsonl\ntarget: {recorded: old.jsonl}\nevaluators: [exact_match]\n",
    )
    told = project.proctor("run", "eval.yaml", "--limit", "2", "--json").json
    assert (told["pass_rate"], told["errors"]) == (0.5, 0)


def test_json_is_for_programs(project: Project) -> None:
    """--json prints one JSON document and nothing else on standard output."""
    told = project.proctor("run", "eval.yaml", "--json")
    assert json.loads(told.out)["strict_pass_rate"] == 0.8
    assert told.err == ""
