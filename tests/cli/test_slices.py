"""`--by` of `show` and `compare`, the options that select samples, and what they say about mistakes."""

from __future__ import annotations

import json

import pytest

from tests.cli.project import CommandResult, Project
from tests.tables import each_row

APP = """
def answer(number, *, model="small"):
    limit = {"small": 30, "large": 10}[model]
    return "yes" if (number >= limit) == (number % 2 == 0) else "no"
"""
EVAL = """
name: exam
dataset: numbers.jsonl
target: answers.py:answer
configurations:
  small: {model: small}
  large: {model: large}
evaluators: [exact_match]
"""


@pytest.fixture
def runs(project: Project) -> Project:
    """A run of 40 samples; even ones expect yes: small is right from 30 on, large from 10 on."""
    rows = [
        {
            "id": f"n{n}",
            "input": n,
            "expected": "yes" if n % 2 == 0 else "no",
            "metadata": {"topic": "sums" if n < 20 else "roots", "size": n, "tags": ["odd"] if n % 2 else ["even"]},
        }
        for n in range(40)
    ]
    project.write("numbers.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    project.write("answers.py", APP)
    project.write("eval.yaml", EVAL)
    assert project.proctor("run", "-q", "--name", "first").code == 0
    return project


def squeeze(result: CommandResult) -> str:
    """The output with single spaces."""
    return " ".join(result.out.split())


def test_show_by_prints_each_slice_with_n_and_interval(runs: Project) -> None:
    """Small passes 0 of 20 sums and 10 of 20 roots; outputs are labels, so precision and recall follow."""
    result = runs.proctor("show", "first", "--by", "topic")
    text = squeeze(result)
    assert result.code == 0
    assert "roots (20) 50.0% (29.9–70.1%) 100.0% (83.9–100.0%) n = 20 n = 20" in text
    assert "sums (20) 0.0% (0.0–16.1%) 50.0% (29.9–70.1%) n = 20 n = 20" in text
    assert "all samples 25.0% (14.2–40.2%) 75.0% (59.8–85.8%) n = 40 n = 40" in text
    assert "Labels of small (n = 40)" in text
    assert "Expected ↓ Output → no yes" in text
    assert max(map(len, result.out.splitlines())) <= 80


def test_show_by_as_json_has_all_metrics(runs: Project) -> None:
    """Every metric of every slice and configuration, and the labels."""
    data = runs.proctor("show", "first", "--by", "size", "--json").json
    assert (data["by"]["binned"], [each["label"] for each in data["by"]["slices"]]) == (
        True,
        ["0 to 7", "8 to 15", "16 to 23", "24 to 31", "32 to 39"],
    )
    assert data["by"]["slices"][3]["metrics"]["small"]["pass_rate"]["value"] == 0.25
    assert data["labels"][0]["accuracy"]["n"] == 40


def test_show_by_of_one_configuration(runs: Project) -> None:
    """RUN@CONFIGURATION restricts the table to that configuration."""
    text = squeeze(runs.proctor("show", "first@large", "--by", "topic"))
    assert "roots (20) 100.0%" in text
    assert "small" not in text


def test_show_without_by_adds_labels(runs: Project) -> None:
    """Where outputs are labels, `show` has precision and recall, also as JSON."""
    assert "Label" in runs.proctor("show", "first").out
    assert runs.proctor("show", "first", "--json").json["labels"][1]["configuration"] == "large"


def test_compare_by_prints_the_correction(runs: Project) -> None:
    """Each slice has its difference, n and verdict; the legend names the corrections."""
    result = runs.proctor("compare", "first@large", "first@small", "--by", "topic")
    text = squeeze(result)
    assert "By topic" in text
    assert "so that all hold together with 95%" in text
    assert "p corrected for 2 tests of all slices (Holm)" in text
    assert max(map(len, result.out.splitlines())) <= 80
    data = runs.proctor("compare", "first@large", "first@small", "--by", "topic", "--json").json
    slices = data["comparisons"][0]["slices"]
    assert [(each["label"], each["samples"]) for each in slices["slices"]] == [("roots", 20), ("sums", 20)]
    assert slices["slices"][0]["deltas"]["pass_rate"]["absolute"] == 0.5


def test_evaluators_equal_to_the_pass_rate_are_named(runs: Project) -> None:
    """Their rows would repeat it, so the legend names them."""
    runs.proctor("run", "-q", "-e", "contains", "-e", "exact_match", "--name", "two")
    names = "contains.pass_rate, exact_match.pass_rate"
    assert f"equal to pass_rate in all slices and left out: {names}" in squeeze(
        runs.proctor("show", "two", "--by", "topic")
    )
    compared = squeeze(runs.proctor("compare", "two@large", "two@small", "--by", "topic"))
    assert "hidden because they equal another row of the slice: contains, exact_match; number of common" in compared


def test_compare_by_is_in_the_markdown(runs: Project) -> None:
    """The Markdown file has the table of slices too."""
    assert runs.proctor("compare", "first@large", "first@small", "--by", "topic", "--markdown", "c.md").code == 0
    text = (runs.folder / "c.md").read_text()
    assert "### By topic" in text
    assert "| roots (20) | pass_rate |" in text


@each_row(
    "options, ids",
    [
        (("--sample", "n3", "--sample", "n1"), ["n1", "n3"]),
        (("--where", "topic=roots", "--where", "size=38"), ["n38"]),
        (("--where", "topic!=roots", "--sample-tag", "odd", "--limit", "2"), ["n1", "n3"]),
        (("--failed-of", "first", "--where", "size=12", "--where", "size=35"), ["n12"]),
    ],
)
def test_run_selects_samples(runs: Project, options: tuple[str, ...], ids: list[str]) -> None:
    """--sample, --where, --sample-tag and --failed-of narrow the samples together."""
    assert runs.proctor("run", "-q", *options).code == 0
    results = runs.proctor("show", "latest", "--configuration", "small", "--json").json
    assert sorted(each["trial"]["sample"]["id"] for each in results) == ids
    assert "were selected" in runs.proctor("show", "latest").out


@each_row(
    "command, texts",
    [
        (("run", "--where", "topik=x"), ["no sample has the metadata key 'topik'", "did you mean 'topic'?"]),
        (("run", "--where", "topic"), ["--where must be KEY=VALUE or KEY!=VALUE, got 'topic'"]),
        (("run", "--sample", "n99", "--where", "topic=root"), ["id 'n99'", "did you mean 'roots'?"]),
        (("run", "--failed-of", "nosuch", "--sample-tag", "od"), ["unknown run 'nosuch'", "tag 'od'"]),
        (("show", "first", "--by", "topik"), ["--by: no sample has the metadata key 'topik'", "did you mean 'topic'?"]),
        (("show", "first", "--by", "topic", "--text", "x"), ["--by shows metrics, and --text lists results"]),
        (("show", "first", "--where", "size=99"), ["no sample has this value of 'size'"]),
        (("compare", "first@large", "first@small", "--by", "topik"), ["--by: no sample has the metadata key"]),
        (("compare", "first@large", "first@small", "--text", "nosuchword"), ["no sample is selected by"]),
        (("compare", "first", "latest", "--until", "2020-01-01"), ["no run of 'first' matches --since, --until"]),
    ],
)
def test_mistakes_are_explained(runs: Project, command: tuple[str, ...], texts: list[str]) -> None:
    """Exit code 2, and a suggestion where there is one."""
    result = runs.proctor(*command)
    assert result.code == 2
    for text in texts:
        assert text in result.err


def test_show_and_compare_take_the_filters(runs: Project) -> None:
    """--where restricts metrics and comparisons, --text lists results; both say how many samples they are about."""
    shown = runs.proctor("show", "first", "--where", "topic=roots", "--json").json
    assert (shown["total"], shown["by_configuration"]["small"]["pass_rate"]["value"]) == (40, 0.5)
    assert (
        "Warning: only 20 of 40 samples are shown: topic=roots"
        in runs.proctor("show", "first", "--where", "topic=roots").out
    )
    listed = runs.proctor("show", "first@small", "--text", "expected 'yes', got 'no'", "--json").json
    assert {each["trial"]["sample"]["expected"] for each in listed} == {"yes"}
    text = squeeze(
        runs.proctor("compare", "first@large", "first@small", "--where", "topic=roots", "--sample-tag", "odd")
    )
    assert "only 10 of 40 samples are compared: topic=roots, tag odd" in text
    text = squeeze(runs.proctor("compare", "first@large", "first@small", "--text", "no"))
    assert "samples chosen by words in outputs or reasons can favor one side" in text


def test_compare_finds_the_newest_run_of_a_name_in_time(runs: Project) -> None:
    """With --since or --tag, a name means its newest run that matches; ids are unchanged."""
    assert runs.proctor("run", "-q", "--name", "first", "--tag", "branch=main", "--where", "topic=sums").code == 0
    assert runs.proctor("run", "-q", "--name", "first", "--where", "topic=roots").code == 0
    result = runs.proctor("compare", "first@large", "first@small", "--tag", "branch=main", "--since", "1h", "--json")
    assert result.json["comparisons"][0]["samples"] == 20
    assert runs.proctor("show", result.json["comparisons"][0]["a_run"]).out.count("topic=sums") == 1


def test_a_baseline_of_selected_samples_is_marked(runs: Project) -> None:
    """Setting it as the baseline says so, and a later gate on all samples cannot pass with it."""
    assert runs.proctor("run", "-q", "--where", "topic=sums").code == 0
    result = runs.proctor("baseline", "set", "part", "latest")
    assert "warning: only 20 of 40 samples were selected: topic=sums" in result.out
    gate = runs.proctor("gate", "first", "--baseline", "part", "--margin", "90%")
    assert gate.code == 4
    assert "have no partner" in " ".join(gate.out.split())
