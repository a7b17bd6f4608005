"""`--format` on the command line: several formats in one folder, plugins included, and dataset formats of plugins."""

from __future__ import annotations

import json

import pytest

from tests.cli.project import Project
from tests.plugins import install_package

CODE = """
def outcomes(report):
    return "Outcomes:\\n" + "".join(f"{r['sample_id']}={r['outcome']}\\n" for r in report.rows())

outcomes.extension = "txt"
outcomes.signature = "Outcomes:"

def bare(report):
    return "bare"

def read_lines(path):
    for number, line in enumerate(path.read_text().splitlines()):
        question, answer = line.split("|")
        yield {"id": number, "input": question, "expected": answer}

read_lines.extensions = (".bar", ".pipe")
"""
POINTS = """[proctor.reporters]
outcomes = our_plugin:outcomes
bare = our_plugin:bare
[proctor.datasets]
bars = our_plugin:read_lines
"""
OUTCOMES = "Outcomes:\ns0=passed\ns1=passed\ns2=passed\ns3=error\ns4=passed\n"


@pytest.fixture
def plugged(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project, with a package that adds two report formats and a dataset format."""
    install_package(project.folder / "packages", "our_plugin", CODE, POINTS)
    monkeypatch.syspath_prepend(project.folder / "packages")
    return project


def test_run_and_show_write_every_format_into_the_folder(plugged: Project) -> None:
    """`--format` is repeated; a run again replaces the files that carry the format's signature."""
    formats = ("--format", "json", "--format", "outcomes")
    for command in (("run", "eval.yaml"), ("show", "latest"), ("rescore", "latest", "-e", "exact_match")):
        result = plugged.proctor(*command, "--output", "out", *formats)
        assert result.code == 0, result.err
        assert "wrote out/report.json\nwrote out/report.txt\n" in result.out
        assert {name for name in plugged.files() if name.startswith("out/")} == {"out/report.json", "out/report.txt"}
        assert (plugged.folder / "out/report.txt").read_text() == OUTCOMES
    assert json.loads((plugged.folder / "out/report.json").read_text())["proctor_report"] == 1


@pytest.mark.parametrize("output", [(), ("--output", "out")])
def test_formats_in_one_option_are_to_be_repeated(project: Project, output: tuple[str, ...]) -> None:
    """`--format json,html` is an error before the run, with what to type."""
    result = project.proctor("run", "eval.yaml", "--format", "json,html", *output)
    assert (result.code, project.files() & {".proctor/history.db"}) == (2, set())
    assert "Fix: repeat the option: --format json --format html" in result.err


def test_show_prints_one_format(plugged: Project) -> None:
    """Without --output, for a pipe; several need a folder, and --json prints something else."""
    assert plugged.proctor("run", "eval.yaml", "-q").code == 0
    assert plugged.proctor("show", "--format", "outcomes").out == OUTCOMES
    assert plugged.proctor("show", "--format", "markdown").out.startswith("# Proctor Evaluation Report\n")
    assert "--format needs --output" in plugged.proctor("show", "--format", "json", "--format", "bare").err
    assert "both print the report" in plugged.proctor("show", "--format", "json", "--json").err


def test_a_file_of_somebody_else_is_not_replaced(plugged: Project) -> None:
    """A format without a signature replaces nothing; one with a signature replaces only its own files."""
    (plugged.folder / "out").mkdir()
    for name, form in (("report.txt", "outcomes"), ("report.bare", "bare")):
        path = plugged.write(f"out/{name}", "Mine")
        result = plugged.proctor("run", "eval.yaml", "--output", "out", "--format", form)
        assert (result.code, "not a report; it is not overwritten" in result.err) == (2, True)
        assert path.read_text() == "Mine"
    assert plugged.proctor("runs", "--json").json == []


def test_a_wrong_format_costs_no_run(plugged: Project) -> None:
    """It is refused before the first sample."""
    result = plugged.proctor("run", "eval.yaml", "--output", "out", "--format", "outcome")
    assert (result.code, "did you mean 'outcomes'" in result.err) == (2, True)
    result = plugged.proctor("rescore", "latest", "-e", "contains", "--format", "json")
    assert (result.code, "--format needs --output" in result.err) == (2, True)
    assert plugged.proctor("runs", "--json").json == []


@pytest.mark.parametrize("args", [("qa.bar",), ("qa.pipe",), ("qa.txt", "--dataset-format", "bars")])
def test_a_plugin_reads_a_dataset(plugged: Project, args: tuple[str, ...]) -> None:
    """By one of its extensions, or by its name."""
    plugged.write(args[0], "a|A\nb|B\nc|x\n")
    command = ("run", "--target", "app.py:shout", "-e", "exact_match", "--json", "--dataset")
    result = plugged.proctor(*command, *args)
    assert result.json["pass_rate"] == 2 / 3, result.err
    assert result.json["metadata"]["dataset"]["name"] == args[0]


def test_an_eval_file_names_the_format_of_a_plugin(plugged: Project) -> None:
    """`format:` accepts it, and `mapping` applies to its records: here the columns are swapped."""
    plugged.write("qa.txt", "a|A\nb|x\n")
    plugged.write(
        "eval.yaml",
        "dataset: {path: qa.txt, format: bars, mapping: {input: expected, expected: input}}\n"
        "target: app.py:shout\nevaluators: [{contains: {case_sensitive: false}}]\n",
    )
    assert plugged.proctor("run", "eval.yaml", "--json").json["pass_rate"] == 0.5


def test_faults_in_the_records_of_a_plugin_are_listed(plugged: Project) -> None:
    """With the file and the number of the record; a plugin that fails is named with its error."""
    command = ("run", "--target", "app.py:shout", "-e", "exact_match", "--dataset")
    plugged.write("qa.bar", "a|A\nb\n")
    result = plugged.proctor(*command, "qa.bar")
    assert result.code == 2
    assert "qa.bar: the file cannot be read: ValueError: not enough values to unpack" in result.err
    plugged.write("qa.bar", "a|A\n")
    result = plugged.proctor(*command, "qa.bar", "--map", "question=input")
    assert (result.code, "unknown key 'question'" in result.err) == (2, True)


def test_format_names_the_dataset_where_no_report_is_written(plugged: Project) -> None:
    """`--format bars` without --output, and with it too, because no report has that name."""
    plugged.write("qa.txt", "a|A\n")
    command = ("run", "--target", "app.py:shout", "-e", "exact_match", "-q", "--dataset", "qa.txt", "--format", "bars")
    assert plugged.proctor(*command).code == 0
    assert plugged.proctor(*command, "--output", "out", "--format", "json").code == 0
    assert (plugged.folder / "out/report.json").exists()
