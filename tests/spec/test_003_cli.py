"""The runner spec: the command line and its plugins. Every test runs a whole command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.reports.json import load
from tests.spec.clauses import clause
from tests.spec.runner_examples import Project

RUN = ("run", "--dataset", "data.jsonl", "--target", "app.py:answer", "--history", "h.db")
MODULE = '''
class MyCustomEvaluator:
    """Passes if the output has at least so many letters."""

    name = "long_enough"

    def __init__(self, least: int = 1):
        self.least = least

    def evaluate(self, output, example, config=None):
        return 1.0 if len(output) >= self.least else 0.0


class Longest:
    name = "longest"

    def compute(self, results):
        return float(max(len(result.output) for result in results))
'''


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder with a target, a dataset, and a package with an evaluator and a metric."""
    folder = Project(tmp_path)
    (tmp_path / "myproject").mkdir()
    folder.write("myproject/__init__.py", "")
    folder.write("myproject/evals.py", MODULE)
    return folder


def run(project: Project, *options: str) -> Any:
    """The report that the command prints as JSON."""
    done = project.proctor(*RUN, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@clause("003.CLI.1", "7. CLI")
def test_the_command_evaluates_a_dataset(project: Project) -> None:
    """`proctor run --dataset FILE --evaluator NAME` runs the target and scores its outputs."""
    report = run(project, "--evaluator", "exact_match")
    assert report["metrics"]["exact_match.pass_rate"]["value"] == 0.5


@clause("003.CLI.2", "7. CLI")
def test_a_dataset_is_required(project: Project) -> None:
    """Without a dataset, the command names what is missing and exits with 2."""
    done = project.proctor("run", "--target", "app.py:answer", "-e", "exact_match")
    assert done.returncode == 2
    assert "--dataset" in done.stderr


@clause("003.CLI.3", "7. CLI")
def test_the_output_folder_gets_both_reports(project: Project) -> None:
    """`--output DIR` writes the Markdown and the JSON report into a folder, which is made."""
    done = project.proctor(*RUN, "-e", "exact_match", "--output", "results/today")
    assert done.returncode == 0, done.stderr
    folder = project.folder / "results" / "today"
    assert (folder / "report.md").read_text(encoding="utf-8").startswith("# Proctor Evaluation")
    assert load(folder / "report.json").total == 2


@clause("003.CLI.4", "7. CLI", ruling="runs are kept in the history")
def test_without_an_output_folder_the_run_is_in_the_history(project: Project) -> None:
    """Without `--output` nothing is written but the history, from which the run can be shown."""
    assert project.proctor(*RUN, "-e", "exact_match", "--quiet").returncode == 0
    shown = project.proctor("show", "latest", "--history", "h.db")
    assert "1 of 2 passed" in shown.stdout
    assert list(project.folder.rglob("report.*")) == []


@clause("003.CLI.5", "7. CLI")
def test_several_evaluators_can_be_named(project: Project) -> None:
    """`--evaluator` may be repeated; every evaluator scores every output."""
    report = run(project, "--evaluator", "exact_match", "--evaluator", "contains")
    names = [evaluator["name"] for evaluator in report["metadata"]["evaluators"]]
    assert names == ["exact_match", "contains"]


@clause("003.CLI.6", "7. CLI")
def test_an_unknown_evaluator_is_named_with_the_nearest(project: Project) -> None:
    """A misspelt evaluator is refused before anything runs, with the one probably meant."""
    done = project.proctor(*RUN, "-e", "exact_mach")
    assert done.returncode == 2
    assert "did you mean 'exact_match'?" in done.stderr


@clause("003.CLI.7", "7. CLI", ruling="runner: target instead of --model")
def test_the_model_of_the_target_is_an_address(project: Project) -> None:
    """A model is named by `--target`; one that cannot be found is refused with a reason."""
    done = project.proctor("run", "--dataset", "data.jsonl", "-e", "exact_match", "--target", "opnai:gpt-4o-mini")
    assert done.returncode == 2
    assert "opnai" in done.stderr


@clause("003.CLI.8", "7. CLI")
def test_the_timeout_can_be_set(project: Project) -> None:
    """`--timeout SECONDS` limits each sample; one that takes longer is a TimeoutError."""
    project.write("slow.jsonl", '{"id": "1", "input": "slow"}\n')
    done = project.proctor(
        "run", "--dataset", "slow.jsonl", "--target", "app.py:answer", "-e", "exact_match",
        "--timeout", "0.2", "--output", "out", "--history", "h.db",
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    (result,) = load(project.folder / "out" / "report.json").results
    assert result.error is not None
    assert result.error.startswith("TimeoutError: the target took longer than 0.2 s")


@clause("003.CLI.9", "7. CLI")
def test_the_timeout_is_30_seconds(project: Project) -> None:
    """Without `--timeout` a sample may take 30 seconds, as `--help` states."""
    assert "Default: 30." in " ".join(project.proctor("run", "--help").stdout.split())


@clause("003.CLI.10", "7. CLI", ruling="runner: options from the command line and a file")
def test_options_of_evaluators_come_from_the_command_line(project: Project) -> None:
    """`--set EVALUATOR.PARAMETER=VALUE` sets a parameter of an evaluator."""
    report = run(project, "-e", "exact_match", "--set", "exact_match.case_sensitive=false")
    assert report["metadata"]["evaluators"][0]["parameters"] == {"case_sensitive": False}


@clause("003.CLI.11", "7. CLI", ruling="runner: options from the command line and a file")
def test_the_command_line_overrides_the_options_of_a_file(project: Project) -> None:
    """A parameter that the eval file sets is replaced by `--set`; the others stay."""
    project.write(
        "eval.yaml",
        "dataset: data.jsonl\ntarget: app.py:answer\nevaluators:\n"
        "  - text_count: {at_least: 1, at_most: 9, of: characters}\n",
    )
    done = project.proctor("run", "eval.yaml", "--json", "--history", "h.db", "--set", "text_count.at_most=2")
    assert done.returncode == 0, done.stderr
    parameters = json.loads(done.stdout)["metadata"]["evaluators"][0]["parameters"]
    assert (parameters["at_least"], parameters["at_most"], parameters["of"]) == (1, 2, "characters")


@clause("003.PLUGIN.1", "Plugin Loading", ruling="a plugin alone is used")
def test_a_plugin_alone_is_the_evaluator(project: Project) -> None:
    """`--plugin module:Evaluator` without a named evaluator both registers and uses it."""
    report = run(project, "--plugin", "myproject.evals:MyCustomEvaluator")
    assert [e["name"] for e in report["metadata"]["evaluators"]] == ["long_enough"]
    assert report["metrics"]["long_enough.pass_rate"]["value"] == 1.0


@clause("003.PLUGIN.2", "Plugin Loading")
def test_a_plugin_can_be_named_as_an_evaluator(project: Project) -> None:
    """An evaluator that a plugin brings is named like a built-in one, with its parameters."""
    report = run(
        project, "--plugin", "myproject.evals:MyCustomEvaluator", "-e", "exact_match",
        "-e", "long_enough", "--set", "long_enough.least=5",
    )  # fmt: skip
    assert [e["name"] for e in report["metadata"]["evaluators"]] == ["exact_match", "long_enough"]
    assert report["metrics"]["long_enough.pass_rate"]["value"] == 0.0


@clause("003.PLUGIN.3", "Plugin Loading")
def test_plugins_are_imported_from_the_current_folder(project: Project) -> None:
    """The user's own package need not be installed: it is found from where the command is run."""
    done = project.proctor("evaluators", "long_enough", "--plugin", "myproject.evals:MyCustomEvaluator")
    assert done.returncode == 0, done.stderr
    assert "Passes if the output has at least so many letters." in done.stdout


@clause("003.PLUGIN.4", "Plugin Loading")
def test_a_metric_is_a_plugin_too(project: Project) -> None:
    """`--plugin module:Metric` computes the metric in addition to the built-in ones."""
    report = run(project, "-e", "exact_match", "--plugin", "myproject.evals:Longest")
    assert report["metrics"]["longest"]["value"] == 1.0


@clause("003.PLUGIN.5", "Plugin Loading")
def test_several_plugins_can_be_loaded(project: Project) -> None:
    """`--plugin` may be repeated."""
    report = run(
        project, "--plugin", "myproject.evals:MyCustomEvaluator",
        "--plugin", "myproject.evals:Longest",
    )  # fmt: skip
    assert {"long_enough.mean", "longest"} <= report["metrics"].keys()


@clause("003.PLUGIN.6", "Plugin Loading")
def test_a_plugin_that_cannot_be_loaded_is_explained(project: Project) -> None:
    """A wrong address exits with 2, explains the fault, and suggests a similar name."""
    done = project.proctor(*RUN, "--plugin", "myproject.evals:MyCustomEvaluatr")
    assert done.returncode == 2
    assert "did you mean 'MyCustomEvaluator'?" in done.stderr
    done = project.proctor(*RUN, "--plugin", "myprojct.evals:MyCustomEvaluator")
    assert done.returncode == 2
    assert "no module is named 'myprojct'" in done.stderr


@clause("003.PLUGIN.7", "Plugin Loading", ruling="runner: plugins by import path and entry points")
def test_installed_plugins_are_found_by_entry_points() -> None:
    """An evaluator of an installed package is known by the name of its entry point."""
    from importlib.metadata import EntryPoint

    from proctor.wiring.registry import Registry

    point = EntryPoint("half", "statistics:mean", "proctor.evaluators")
    registry = Registry.from_entry_points([point])
    assert [info.name for info in registry.evaluators()] == ["half"]
