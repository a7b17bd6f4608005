"""The first mistakes with an eval file: each message names the place and what to type."""

from __future__ import annotations

import re

import pytest

from tests.cli.project import Project

NO_IDS = '{"input": "word 1", "expected": "WORD 1"}\n{"input": "word 2", "expected": "WORD 2"}\n'
RECORDS = "dataset: {}\ntarget: app.py:shout\nevaluators: [contains]\n"
HTTP = """dataset: data.jsonl
target: {http: "http://127.0.0.1:9/x", body: {m: $inptu}, response: a}
evaluators: [contains]
"""


@pytest.mark.parametrize("name", ["noid.yaml", "noid_eval.py"])
def test_dataset_options_apply_to_the_dataset_of_an_eval_file(project: Project, name: str) -> None:
    """--generate-ids and --map work as they do with --dataset."""
    project.write("noid.jsonl", NO_IDS.replace("input", "question"))
    project.write("noid.yaml", "dataset: noid.jsonl\ntarget: app.py:shout\nevaluators: [exact_match]\n")
    project.write(
        "noid_eval.py", "from app import shout as target\ndataset = 'noid.jsonl'\nevaluators = ['exact_match']\n"
    )
    assert project.proctor("run", name).code == 2
    result = project.proctor("run", name, "--generate-ids", "--map", "question=input", "--json")
    assert (result.code, result.json["total"], result.json["pass_rate"]) == (0, 2, 1.0), result.err


def test_dataset_options_keep_the_settings_of_the_file(project: Project) -> None:
    """Only the settings of the command line change."""
    project.write("noid.txt", NO_IDS)
    entry = "{path: noid.txt, format: jsonl}"
    project.write("eval.yaml", f"dataset: {entry}\ntarget: app.py:shout\nevaluators: [exact_match]\n")
    assert project.proctor("run", "--generate-ids", "--json").json["total"] == 2


def test_dataset_options_do_not_change_samples_in_the_eval_file(project: Project) -> None:
    """The samples of the file have no columns."""
    project.write("eval.yaml", "dataset: [{id: a, input: b}]\ntarget: app.py:shout\nevaluators: [exact_match]\n")
    result = project.proctor("run", "eval.yaml", "--generate-ids")
    assert result.code == 2
    assert "cannot change samples that the eval file contains" in result.err


def test_a_dataset_or_a_folder_is_not_an_eval_file(project: Project) -> None:
    """The fix is the option to type."""
    project.write("list.json", '[{"id": "a", "input": "b"}]')
    (project.folder / "logs").mkdir()
    (project.folder / "evals").mkdir()
    project.write("evals/first.yaml", "")
    assert "Fix: to run a dataset, write --dataset data.jsonl --target" in project.proctor("run", "data.jsonl").err
    assert "write --dataset list.json" in project.proctor("run", "list.json").err
    folder = project.proctor("run", "logs").err
    assert "logs: this is a folder, not an eval file" in folder
    assert "--dataset logs" in folder
    assert "name the eval file: evals/first.yaml" in project.proctor("run", "evals").err


def test_an_unknown_sample_is_corrected_and_the_samples_are_listed(project: Project) -> None:
    """The command in the fix works even if nothing passed."""
    project.write("app.py", "def shout(text):\n    return ''\n")
    project.proctor("run", "eval.yaml", "-q")
    error = project.proctor("show", "latest", "--sample", "s33").err
    assert "did you mean 's3'? To list the samples: proctor show " in error
    command = " ".join(error.partition("To list the samples: proctor ")[2].split())
    listing = project.proctor(*command.split()).out
    assert all(f"s{i}  failed" in listing for i in range(5))


def test_skipped_samples_have_a_reason_and_a_fix(project: Project) -> None:
    """Without a verdict, the most frequent reason is named."""
    project.write("data.jsonl", '{"id": "a", "input": "x"}\n{"id": "b", "input": "y"}\n')
    result = project.proctor("run", "--dataset", "data.jsonl", "--target", "app.py:shout", "-e", "exact_match", "-q")
    assert result.code == 3
    message = " ".join(result.err.split())
    assert "2 skipped most frequent reason (2 of 2 skipped scores): the sample has no expected value" in message
    assert 'Fix: add "expected" to the samples, or map a column to it: --map COLUMN=expected' in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dataset: dat.jsonl\ntarget: app.py:shout\nevaluators: [contains]\n", "dat.jsonl (bad.yaml:1)"),
        (
            "dataset: data.jsonl\ntarget: ap.py:shout\nevaluators: [contains]\n",
            "ap.py (bad.yaml:2) Fix: did you mean 'app.py'?",
        ),
        ("dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [contans]\n", "evaluators[0] (bad.yaml:3): unknown"),
        (
            "dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [contains, contains]\n",
            "bad.yaml:3: some evaluators cannot be built",
        ),
        (
            "dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [contains]\nfail_under: {pass_rat: 1}\n",
            "fail_under (bad.yaml:4): unknown metric",
        ),
        (
            "dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [contains]\nbaseline: a\nconfigurations: {b: {}}\n",
            "baseline (bad.yaml:4): no configuration is named 'a'",
        ),
        (
            "dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [contains]\nplugins: [nothing_here]\n",
            "nothing_here (bad.yaml:4): no module",
        ),
        (
            "dataset: {path: data.jsonl, format: jsnol}\ntarget: app.py:shout\nevaluators: [contains]\n",
            "format (bad.yaml:1): unknown dataset format",
        ),
        (
            "dataset: data.jsonl\ntarget: ap.py:shout\nevaluators: [contans]\n",
            "bad.yaml: the evaluation has 2 problems",
        ),
        (RECORDS.format("dta.json"), "file or folder not found: dta.json (bad.yaml:1) Fix: did you mean 'data.jsonl'?"),
        (
            RECORDS.format("logs"),
            ".jsonl, .ndjson Fix: choose other files, for example: dataset: {path: logs, pattern: '*.log'}",
        ),
        (RECORDS.format("noid.jsonl"), "or generate ids: dataset: {path: noid.jsonl, generate_ids: true}"),
        (RECORDS.format("[{input: a}]"), "item 0: id is missing Fix: give every sample an id: {id: a, input: …}"),
        (RECORDS.format("noid.csv"), "map a column to it: dataset: {path: noid.csv, mapping: {question: input}};"),
        (RECORDS.format("sub/noid.jsonl"), "or generate ids: dataset: {path: sub/noid.jsonl, generate_ids: true}"),
        (RECORDS.format('"no id, 2.jsonl"'), 'or generate ids: dataset: {path: "no id, 2.jsonl", generate_ids: true}'),
        (
            RECORDS.format("sub/noid.csv"),
            'map a column to it: dataset: {path: sub/noid.csv, mapping: {"the question (EN)": input}}; give',
        ),
        (
            "dataset: data.jsonl\ntarget: app.py:shout\nevaluators: 'contains: yes'\n",
            'write evaluators: ["contains: yes"]',
        ),
        (RECORDS.format("{path: data.jsonl, format: auto}"), "add dataset: {path: data.jsonl, format: NAME}, one of:"),
        (HTTP, "target (bad.yaml:2): the body has the placeholder $inptu"),
    ],
)
def test_errors_after_parsing_name_the_eval_file(project: Project, text: str, message: str) -> None:
    """The file and the line of the key."""
    (project.folder / "logs").mkdir()
    (project.folder / "sub").mkdir()
    for name in ("noid.jsonl", "sub/noid.jsonl", "no id, 2.jsonl"):
        project.write(name, NO_IDS)
    project.write("sub/noid.csv", "the question (EN),answer\na,b\n")
    project.write("noid.csv", "question,answer\na,b\n")
    project.write("bad.yaml", text)
    result = project.proctor("run", "bad.yaml")
    assert result.code == 2
    assert message in " ".join(result.err.split())


def test_an_option_is_not_an_error_in_the_eval_file(project: Project) -> None:
    """The command line replaced the target."""
    error = project.proctor("run", "eval.yaml", "--target", "ap.py:shout").err
    assert "file not found: ap.py\n" in error
    assert "eval.yaml" not in error


def test_a_placeholder_may_be_a_key_that_some_samples_lack(project: Project) -> None:
    """Only a placeholder that none of the first samples fills stops the run."""
    project.write("data.jsonl", '{"id": "a", "input": {"x": 1}}\n{"id": "b", "input": {"inptu": 1}}\n')
    project.write("http.yaml", HTTP)
    result = project.proctor("run", "http.yaml", "--json")
    assert result.json["errors"] == 2


def test_a_quiet_run_prints_the_whole_fix_of_an_error(project: Project) -> None:
    """However long the message before it is."""
    project.write("app.py", f"def shout(text):\n    raise ValueError({'word ' * 200 + chr(10) + 'Fix: start it'!r})\n")
    error = project.proctor("run", "eval.yaml", "-q").err
    assert re.search(
        r"first error: s0: (word )+.*…[^\n]*\nFix: start it; for all errors: proctor show \S+ --outcome error", error
    )


@pytest.mark.parametrize(
    ("entry", "fix"),
    [
        ("{name: contains}", "write {uses: contains}, or contains alone"),
        ("{name: contains, case_sensitive: false}", "write {uses: contains, case_sensitive: …}"),
    ],
)
def test_a_name_alone_is_not_an_evaluator(project: Project, entry: str, fix: str) -> None:
    """`name` is a label; `uses` selects the evaluator."""
    project.write("eval.yaml", f"dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [{entry}]\n")
    assert fix in " ".join(project.proctor("run", "eval.yaml").err.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.yaml: the file is empty; an eval file is a mapping with dataset, target and evaluators"),
        ("- {id: a, input: b}\n", "evaluators\nFix: `proctor init` writes one to start from"),
        ("evaluators: contains\n", "bad.yaml:1: evaluators must be a list, got a string; write evaluators: [contains]"),
    ],
)
def test_the_form_of_an_eval_file_is_explained(project: Project, text: str, message: str) -> None:
    """A dataset in YAML is not suggested, because it cannot be read."""
    project.write("bad.yaml", text)
    assert message in project.proctor("run", "bad.yaml").err
