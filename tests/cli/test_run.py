"""`proctor run`: eval files, options that override them, thresholds, reports and output."""

from __future__ import annotations

import json
import re

import pytest

from proctor.reports.json import load
from tests.cli.project import Project


def test_an_eval_file_is_run_stored_and_shown(project: Project) -> None:
    """The headline comes first, the run is in the history, and the exit code is 0."""
    result = project.proctor("run", "eval.yaml")
    assert result.code == 0
    assert result.out.startswith("4 of 4 judged passed (100.0%, 95% interval 51.0–100.0%), 1 error\n")
    assert "ValueError" in result.out
    assert "5/5 (100%), 4 passed, 0 failed, 1 error" in result.err
    assert "exam" in project.proctor("runs").out


def test_without_a_file_everything_comes_from_options(project: Project) -> None:
    """Dataset, target and evaluators are enough; parameters are given with --set."""
    result = project.proctor(
        "run", "--dataset", "data.jsonl", "--target", "app.py:shout", "-e", "exact_match",
        "-e", "app.py:long_enough", "--set", "app.py:long_enough.least=7", "--json",
    )  # fmt: skip
    assert result.code == 0
    run = result.json["metadata"]
    assert [e["name"] for e in run["evaluators"]] == ["exact_match", "long_enough"]
    assert run["evaluators"][1]["parameters"] == {"least": 7}
    assert result.json["metrics"]["long_enough.pass_rate"]["value"] == 0.0


def test_options_override_the_file(project: Project) -> None:
    """Options of the command line win over the file's; tags are added."""
    result = project.proctor(
        "run", "eval.yaml", "--json", "--limit", "2", "--epochs", "3", "--concurrency", "2",
        "--timeout", "5", "--retries", "1", "--tag", "branch=main", "--name", "other",
        "--max-errors", "9", "--on-error", "continue", "--cache", "-e", "contains",
    )  # fmt: skip
    run = result.json["metadata"]
    assert (result.json["total"], run["name"], run["tags"]) == (6, "other", {"branch": "main"})
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
    result = project.proctor("run", "exam.py", "--json")
    assert result.code == 1
    assert result.json["below_threshold"] == ["exact_match.mean of loud is 0, below 0.2 (n = 1, no interval)"]
    assert result.json["metadata"]["options"] == {"concurrency": 3}
    assert result.json["metadata"]["name"] == "exam"


@pytest.mark.parametrize(
    ("least", "code"), [("0.8", 0), ("81%", 1), ("pass_rate=1", 4), ("success_rate=0.9", 1), ("exact_match.mean=1", 4)]
)
def test_fail_under_is_a_gate(project: Project, least: str, code: int) -> None:
    """A bare number is for the strict pass rate, in which the error counts: 4 of 5.

    From the others it is missing, and a fifth is too much to say that they are reached.
    """
    result = project.proctor("run", "eval.yaml", "-q", "--fail-under", least)
    assert result.code == code
    assert result.out == ""
    assert ("threshold not reached" in result.err) == (code == 1)


def test_an_unknown_metric_is_named(project: Project) -> None:
    """A threshold for a metric that is not there is a fault of the call."""
    result = project.proctor("run", "eval.yaml", "-q", "--fail-under", "exact_macth.mean=1")
    assert result.code == 2
    assert "did you mean 'exact_match.mean'?" in result.err


def test_reports_are_written(project: Project) -> None:
    """--output writes Markdown and JSON, and the JSON is the same report again."""
    result = project.proctor("run", "eval.yaml", "--output", "out/here")
    assert "wrote out/here/report.md" in result.out
    markdown = (project.folder / "out/here/report.md").read_text()
    assert "## Run Summary" in markdown
    report = load(project.folder / "out/here/report.json")
    assert (report.total, report.errors) == (5, 1)


def test_resume_in_all_its_forms(project: Project) -> None:
    """--resume without an id, with an id, and before the file name."""
    assert project.proctor("run", "eval.yaml", "-q", "--on-error", "raise").code == 3
    project.write("app.py", (project.folder / "app.py").read_text().replace("word 3", "word 99"))
    refused = project.proctor("run", "eval.yaml", "--resume")
    assert refused.code == 2
    assert "target: the function shout in app.py changed" in refused.err
    result = project.proctor("run", "--resume", "eval.yaml", "--json", "--allow-changes", "--retry-errors")
    assert (result.code, result.json["total"], result.json["errors"]) == (0, 5, 0)
    run_id = result.json["run_id"]
    repeated = project.proctor("run", "eval.yaml", "--resume", run_id[:18], "--json")
    assert (repeated.code, repeated.json["run_id"]) == (0, run_id)
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
    result = project.proctor("run", "eval.yaml", "--plugin", "plugin:Polite", "-e", "polite", "--json")
    assert result.json["metrics"]["polite.mean"]["value"] == 1.0


def test_the_fix_for_a_csv_without_input_names_the_likely_column(project: Project) -> None:
    """The question is the input, wherever it is."""
    project.write("qa.csv", "id,question,answer\n1,Who?,Me\n")
    result = project.proctor("run", "--dataset", "qa.csv", "--target", "app.py:shout", "-e", "exact_match")
    assert "--map question=input" in result.err


def test_csv_with_other_column_names(project: Project) -> None:
    """Columns are mapped on the command line, and ids made from the inputs."""
    project.write("data.csv", "question,answer\nhello,HELLO\nbye,BYE\n")
    result = project.proctor(
        "run", "--dataset", "data.csv", "--map", "question=input", "--map", "answer=expected",
        "--generate-ids", "--target", "app.py:shout", "-e", "exact_match", "--json",
    )  # fmt: skip
    assert (result.code, result.json["pass_rate"]) == (0, 1.0)


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
    result = project.proctor("run", "../eval.yaml", "--json")
    assert result.code == 0, result.err
    assert result.json["metrics"]["words.mean"]["value"] == 1.8
    assert result.json["metrics"]["longer.pass_rate"]["value"] == 0.0


def test_commands_and_recordings_as_targets(project: Project) -> None:
    """A command that speaks JSON, and outputs that were recorded before."""
    project.write(
        "program.py",
        "import json, sys\nasked = json.load(sys.stdin)\nprint(json.dumps({'output': asked['input'].upper()}))\n",
    )
    project.write(
        "eval.yaml",
        "dataset: data.jsonl\ntarget: {command: [python3, program.py]}\n"
        "evaluators: [exact_match]\nrun: {timeout: 60}\n",
    )
    assert project.proctor("run", "eval.yaml", "--json").json["pass_rate"] == 1.0
    project.write("old.jsonl", '{"id": "s0", "output": "WORD 0"}\n{"id": "s1", "output": "no"}\n')
    project.write("eval.yaml", "dataset: data.jsonl\ntarget: {recorded: old.jsonl}\nevaluators: [exact_match]\n")
    result = project.proctor("run", "eval.yaml", "--limit", "2", "--json").json
    assert (result["pass_rate"], result["errors"]) == (0.5, 0)


def test_json_is_for_programs(project: Project) -> None:
    """--json prints one JSON document and nothing else on standard output."""
    result = project.proctor("run", "eval.yaml", "--json")
    assert json.loads(result.out)["strict_pass_rate"] == 0.8
    assert result.err == ""


def test_json_stays_json_when_the_target_prints(project: Project) -> None:
    """What targets and evaluators print goes to standard error."""
    project.write("app.py", "print('hello')\ndef shout(text):\n    print(text)\n    return text\n")
    result = project.proctor("run", "eval.yaml", "--json")
    assert result.json["total"] == 5
    assert "hello" in result.err
    assert "word 1" in result.err


def test_the_eval_file_of_the_folder_is_the_usual_one(project: Project) -> None:
    """`proctor run` without arguments uses eval.yaml."""
    assert project.proctor("run", "--json").json["metadata"]["name"] == "exam"


def test_the_gate_stands_on_top_of_the_report(project: Project) -> None:
    """The Markdown report begins with the result of the thresholds."""
    project.proctor("run", "-q", "--output", "out", "--fail-under", "0.9")
    text = (project.folder / "out/report.md").read_text()
    assert text.splitlines()[2].startswith("**Gate: failed.** strict")
    project.proctor("run", "-q", "--output", "out", "--fail-under", "0.5")
    text = (project.folder / "out/report.md").read_text()
    assert text.splitlines()[2].startswith("**Gate: passed.**")


def test_quiet_still_prints_warnings(project: Project) -> None:
    """On stderr, once; the report and the progress are not printed, and --json has the warnings in its document."""
    project.write("app.py", "def shout(text):\n    return text.upper()\n\ndef broken(output):\n    return 7\n")
    options = ("-e", "contains", "-e", "app.py:broken", "--dataset", "data.jsonl", "--target", "app.py:shout")
    quiet = project.proctor("run", *options, "-q")
    assert quiet.out == ""
    assert quiet.err.count("warning: the scores of broken are not reliable") == 1
    shown = project.proctor("run", *options, "--json")
    assert "warning: " not in shown.err
    assert any("broken" in warning for warning in shown.json["metadata"]["warnings"])


def test_quiet_still_reports_that_nothing_was_scored(project: Project) -> None:
    """A run in which everything failed is not silent."""
    project.write("app.py", "def shout(text):\n    raise ValueError('no')\n")
    result = project.proctor("run", "-q")
    first, example, fix = result.err.splitlines()
    assert first == "no sample could be scored: 5 errors"
    assert example.startswith("first error: ")
    assert example.endswith(": no")
    assert fix.startswith("Fix: proctor show ")
    assert fix.endswith(" --outcome error")


def test_the_advice_finds_what_no_evaluator_could_score(project: Project) -> None:
    """If the evaluators failed, not the target, the command lists those results."""
    project.write("checks.py", "def broken(output):\n    raise ValueError('no')\n")
    options = ("--dataset", "data.jsonl", "--target", "app.py:shout", "--limit", "2", "-e", "checks.py:broken")
    *_, fix = project.proctor("run", *options, "-q").err.splitlines()
    command = fix.removeprefix("Fix: proctor ").split()
    assert command[-2:] == ["--outcome", "unscored"]
    assert "ValueError: no" in project.proctor(*command).out


def test_a_dead_judge_is_not_a_missed_threshold(project: Project) -> None:
    """If no output could be scored, the exit code is 3; a target that always fails misses the threshold."""
    project.write("checks.py", "def broken(output):\n    raise ValueError('no')\n")
    options = ("--dataset", "data.jsonl", "--target", "app.py:shout", "--fail-under", "0.5")
    result = project.proctor("run", *options, "-e", "checks.py:broken")
    assert result.code == 3
    assert "threshold not reached" not in result.err
    project.write("app.py", "def shout(text):\n    raise ValueError('no')\n")
    assert project.proctor("run", *options, "-e", "exact_match").code == 1


def test_an_output_that_cannot_be_written_is_noticed_before_the_run(project: Project) -> None:
    """If the output folder is a file, the command fails before anything runs."""
    project.write("taken", "x")
    result = project.proctor("run", "--output", "taken/out")
    assert result.code == 2
    assert "it is a file" in result.err
    assert not (project.folder / ".proctor").exists()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit(0)", "cannot be imported: SystemExit: 0"),
        ("import surely_not_there", "No module named 'surely_not_there'"),
        ("import os; os.environ['SURELY_NOT_SET']", "KeyError: 'SURELY_NOT_SET'"),
    ],
)
def test_a_target_that_cannot_be_imported_is_a_usage_error(project: Project, code: str, message: str) -> None:
    """It never looks like a gate that passed or failed."""
    project.write("app.py", f"{code}\ndef shout(text):\n    return text\n")
    result = project.proctor("run", "--fail-under", "1")
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("least", ["nan", "80", "-1", "inf", "latency_ms.p95=100"])
def test_a_threshold_that_means_nothing_is_refused(project: Project, least: str) -> None:
    """A threshold that every run or no run reaches is an error."""
    result = project.proctor("run", "--fail-under", least)
    assert result.code == 2
    assert "fail_under" in result.err.replace("-", "_")


def test_what_was_not_foreseen_is_trouble_not_a_failed_gate(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3 and one line; PROCTOR_DEBUG shows the rest."""
    from proctor.wiring import open_history as lookback

    def broken(*_: object) -> None:
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr(lookback, "open_history", broken)
    result = project.proctor("runs")
    assert result.code == 3
    assert result.err.startswith("error: ZeroDivisionError: deep inside\n")
    monkeypatch.setenv("PROCTOR_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        project.proctor("runs")


def test_nothing_of_the_data_reaches_the_terminal_raw(project: Project) -> None:
    """Control codes in errors, ids, reasons and tags are shown, not obeyed."""
    project.write("app.py", "def shout(text):\n    raise ValueError('\\x1b[31mred\\x1b]0;title\\x07')\n")
    result = project.proctor("run", "--tag", "a=[/b]\x1b[2J")
    output = result.out + result.err
    output += project.proctor("show", "latest", "--outcome", "error").out
    output += project.proctor("runs").out
    stopped = project.proctor("run", "--on-error", "raise", "-q")
    output += stopped.err
    assert stopped.code == 3
    assert "\x1b" not in output
    assert "[/b]" in output


@pytest.mark.parametrize("pattern", ["[A-Z]+ #", "# x", "123", "a: b", "  x ", "null"])
def test_a_parameter_that_is_a_text_is_taken_to_the_letter(project: Project, pattern: str) -> None:
    """A pattern is not YAML."""
    result = project.proctor("run", "-e", "regex_match", "--set", f"regex_match.pattern={pattern}", "--json")
    assert result.code == 0, result.err
    assert result.json["metadata"]["evaluators"][0]["parameters"]["pattern"] == pattern


def test_options_that_mean_nothing_without_resume_are_refused(project: Project) -> None:
    """--retry-errors without --resume would run, and pay for, everything again."""
    for option in ("--retry-errors", "--allow-changes"):
        result = project.proctor("run", option)
        assert result.code == 2
        assert "needs --resume" in result.err


def test_options_change_the_eval_file_of_the_folder(project: Project) -> None:
    """--target replaces the target of the file; the other keys still apply."""
    project.write("other.py", "def same(text):\n    return text\n")
    result = project.proctor("run", "--target", "other.py:same", "--json")
    assert result.json["metadata"]["target"]["name"] == "same"
    assert result.json["pass_rate"] == 0.0


def test_a_delimiter_on_the_command_line_and_in_a_file(project: Project) -> None:
    """Another sign between cells; for a file that has none it is refused."""
    project.write("data.csv", "id;input;expected\n1;hello;HELLO\n")
    result = project.proctor("run", "--dataset", "data.csv", "--delimiter", ";", "--json")
    assert result.json["pass_rate"] == 1.0
    project.write("eval.yaml", 'dataset: {path: data.csv, delimiter: ";"}\n'
                  "target: app.py:shout\nevaluators: [exact_match]\n")  # fmt: skip
    assert project.proctor("run", "--json").json["pass_rate"] == 1.0
    result = project.proctor("run", "--dataset", "data.jsonl", "--delimiter", ";")
    assert (result.code, "delimiter applies only to tables" in result.err) == (2, True)


def test_mixed_or_incomplete_files_are_mentioned(project: Project) -> None:
    """A run resumed with changes, and a rescoring of half a run, carry a warning."""
    project.proctor("run", "-q", "--on-error", "raise", "--concurrency", "1")
    rescored = project.proctor("rescore", "latest", "-e", "contains", "--json")
    assert (rescored.json["metadata"]["status"], rescored.json["metadata"]["total"]) == ("failed", 5)
    assert "was not complete: 4 of 5 planned" in rescored.json["metadata"]["warnings"][0]
    project.write("app.py", "def shout(text, *, suffix=''):\n    return text.upper()\n")
    result = project.proctor("run", "--resume", "--allow-changes", "--json")
    assert "the results are mixed: target: the function shout" in result.json["metadata"]["warnings"][0]


def test_the_advice_after_too_many_errors_works(project: Project) -> None:
    """The samples that failed run again with the mended target, which is allowed only as a named change."""
    project.write("app.py", "def shout(text, *, suffix=''):\n    return text.upper() if text == 'word 0' else 1 / 0\n")
    stopped = project.proctor("run", "-q", "--max-errors", "2", "--concurrency", "1")
    [options] = re.findall(r"the failed and the missing samples: (--resume \S+ --retry-errors); if", stopped.err)
    project.write("app.py", "def shout(text, *, suffix=''):\n    return text.upper()\n")
    refused = project.proctor("run", "eval.yaml", *options.split())
    assert (refused.code, "--allow-changes" in refused.err) == (2, True)
    mended = project.proctor("run", "eval.yaml", *options.split(), "--allow-changes", "--json").json
    assert (mended["total"], mended["errors"], mended["pass_rate"]) == (5, 0, 1.0)
    assert any("the results are mixed: target: the function shout" in text for text in mended["metadata"]["warnings"])


def test_a_metric_that_needs_arguments_is_a_usage_error(project: Project) -> None:
    """A class is made without arguments."""
    project.write("m.py", "class Needy:\n    def __init__(self, x):\n        pass\n")
    project.write("eval.yaml", "dataset: data.jsonl\ntarget: app.py:shout\n"
                  "evaluators: [contains]\nmetrics: ['m.py:Needy']\n")  # fmt: skip
    result = project.proctor("run")
    assert (result.code, "the metric cannot be made" in result.err) == (2, True)


def test_a_program_that_ends_itself_is_no_success(project: Project) -> None:
    """sys.exit(0) inside an agent, in its own task, is an error of its sample."""
    project.write(
        "agent.py",
        "import asyncio, sys\n"
        "async def leave():\n"
        "    sys.exit(0)\n"
        "async def answer(text):\n"
        "    await asyncio.create_task(leave())\n",
    )
    result = project.proctor("run", "eval.yaml", "--target", "agent.py:answer", "--fail-under", "1")
    assert result.code == 1
    assert "no sample could be scored: 5 errors" in result.err


def test_a_run_without_a_single_verdict_is_trouble(project: Project) -> None:
    """Where every evaluator skipped every sample nothing was found out: exit code 3."""
    project.write("d.jsonl", '{"id": "1", "input": "a"}\n')
    project.write("quiet.py", "def answer(text):\n    return text\n")
    result = project.proctor("run", "--dataset", "d.jsonl", "--target", "quiet.py:answer", "-e", "exact_match")
    assert result.code == 3
    assert "no sample could be scored" in result.err + result.out


def test_options_fill_the_gaps_of_an_eval_file(project: Project) -> None:
    """A file without evaluators, target or dataset runs with the option; without it the key is missing."""
    parts = {
        "dataset": ("dataset: data.jsonl\n", ["--dataset", "data.jsonl"]),
        "target": ("target: app.py:answer\n", ["--target", "app.py:answer"]),
        "evaluators": ("evaluators: [exact_match]\n", ["-e", "exact_match"]),
    }
    project.write("app.py", "def answer(question):\n    return question\n")
    project.write("data.jsonl", '{"id": "1", "input": "a", "expected": "a"}\n')
    for name, (_, options) in parts.items():
        project.write("e.yaml", "".join(text for other, (text, _) in parts.items() if other != name))
        assert project.proctor("run", "e.yaml", "-q", *options).code == 0
        result = project.proctor("run", "e.yaml", "-q")
        assert (result.code, f"{name} is missing" in result.err) == (2, True)


def test_the_eval_file_of_the_folder_is_named_when_it_fills_gaps(project: Project) -> None:
    """Its evaluators and epochs are named on standard error; `proctor run` alone and complete options say nothing."""
    project.write("app.py", "def answer(question):\n    return question\n")
    project.write("data.jsonl", '{"id": "1", "input": "a", "expected": "a"}\n')
    file = "dataset: data.jsonl\ntarget: app.py:answer\nevaluators: [exact_match, contains]\nrun: {epochs: 3}\n"
    project.write("eval.yaml", file)
    item = ["run", "--dataset", "data.jsonl", "--target", "app.py:answer"]
    line = "using eval.yaml (2 evaluators, epochs 3); to leave it out, add -e exact_match"
    assert line in project.proctor(*item).err
    assert "using eval.yaml" not in project.proctor("run").err
    assert "using eval.yaml" not in project.proctor(*item, "-e", "contains").err


def test_a_broken_sample_is_reported_although_all_samples_have_their_evaluators(project: Project) -> None:
    rows = [f'{{"id": "{n}", "input": "a", "evaluators": ["non_empty"]}}' for n in range(1, 51)]
    rows[20] = '{"id": "21", "evaluators": ["non_empty"]}'
    project.write("data.jsonl", "\n".join(rows))
    project.write("app.py", "def answer(question):\n    return question\n")
    result = project.proctor("run", "--dataset", "data.jsonl", "--target", "app.py:answer", "-q")
    assert result.code == 2
    assert "data.jsonl:21" in result.err
    assert "input is missing" in result.err
    assert "no eval file" not in result.err
