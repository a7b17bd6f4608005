"""Invalid input: an error on one screen with cause, place and fix; exit code 2; nothing written."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.cli.project import Project
from tests.tables import each_row


class Case(NamedTuple):
    """A file with a fault, and the expected error."""

    name: str
    file: str
    content: str | bytes
    said: tuple[str, ...]


def dataset(name: str, content: str | bytes, *message: str, ending: str = "jsonl") -> Case:
    return Case(name, f"data.{ending}", content, message)


def config(name: str, content: str, *message: str) -> Case:
    return Case(name, "eval.yaml", content, message)


GOOD = '{"id": "a", "input": "x", "expected": "X"}\n'
REST = "target: app.py:shout\nevaluators: [exact_match]\n"
COMPLETE = "dataset: data.jsonl\n" + REST

CASES = [
    dataset("empty file", "", "data.jsonl", "no samples"),
    dataset("only blank lines", "\n\n  \n", "no samples"),
    dataset("truncated object", GOOD + '{"id": "b", "input": ', "data.jsonl:2"),
    dataset("not JSON", GOOD + "hello\n", "data.jsonl:2"),
    dataset("a list", GOOD + "[1, 2]\n", "data.jsonl:2", "JSON object"),
    dataset("a bare string", '"hello"\n', "data.jsonl:1"),
    dataset("no id", '{"input": "x"}\n', "data.jsonl:1", "id", "generate"),
    dataset("no input", '{"id": "a", "expected": "x"}\n', "data.jsonl:1", "input"),
    dataset("null input", '{"id": "a", "input": null}\n', "data.jsonl:1", "input"),
    dataset("empty id", '{"id": "", "input": "x"}\n', "data.jsonl:1", "id"),
    dataset("id is a list", '{"id": ["a"], "input": "x"}\n', "data.jsonl:1", "id"),
    dataset("duplicate ids", GOOD + GOOD, "data.jsonl:2", "'a'"),
    dataset("misspelt key", '{"id": "a", "input": "x", "expcted": "X"}\n', "expected"),
    dataset("metadata is text", '{"id": "a", "input": "x", "metadata": "m"}\n', "metadata"),
    dataset("tags are text", '{"id":"a","input":"x","metadata":{"tags":"t"}}\n', "metadata.tags"),
    dataset("cluster is a number", '{"id":"a","input":"x","metadata":{"cluster":1}}\n', "cluster"),
    dataset("NaN", '{"id": "a", "input": NaN}\n', "data.jsonl:1"),
    dataset("invalid UTF-8", GOOD.encode() + b'{"id": "b", "input": "\xff"}\n', "data.jsonl:2"),
    dataset("two objects a line", '{"id":"a","input":"x"}{"id":"b"}\n', "data.jsonl:1"),
    dataset("single quotes", "{'id': 'a', 'input': 'x'}\n", "data.jsonl:1"),
    config("not a mapping", "- dataset\n- target\n", "mapping"),
    config("empty", "", "mapping"),
    config("broken YAML", "dataset: [data.jsonl\n" + REST, "eval.yaml:"),
    config("a tab", "dataset: data.jsonl\n\ttarget: x\n", "eval.yaml:2"),
    config("unknown key", COMPLETE + "evaluator: [x]\n", "eval.yaml:4", "did you mean 'evaluators'?"),
    config("no dataset", REST, "dataset is missing"),
    config("no target", "dataset: data.jsonl\nevaluators: [exact_match]\n", "target is missing"),
    config("no evaluators", "dataset: data.jsonl\ntarget: app.py:shout\n", "evaluators is missing"),
    config("no target and no evaluators", "dataset: data.jsonl\n", "target is missing", "evaluators is missing"),
    config("nothing", "name: x\n", "dataset is missing", "target is missing", "evaluators is missing"),
    config("empty evaluators", COMPLETE.replace("[exact_match]", "[]"), "eval.yaml:3", "evaluators"),
    config("dataset is a number", "dataset: 3\n" + REST, "eval.yaml:1", "dataset"),
    config("dataset is not there", "dataset: dta.jsonl\n" + REST, "data.jsonl"),
    config("unknown kind of dataset", "dataset: app.py\n" + REST, ".jsonl", ".csv"),
    config("bad mapping", "dataset: {path: data.jsonl, mapping: {x: inptu}}\n" + REST, "input"),
    config("unknown evaluator", COMPLETE.replace("exact_match", "exact_mtch"), "'exact_match'"),
    config("unknown parameter", COMPLETE.replace("[exact_match]", "[{exact_match: {case: 1}}]"),
           "case_sensitive"),
    config("wrong parameter", COMPLETE.replace("[exact_match]",
           "[{within_tolerance: {tolerance: wide}}]"), "tolerance"),
    config("missing parameter", COMPLETE.replace("[exact_match]", "[within_tolerance]"), "tolerance"),
    config("bad pattern", COMPLETE.replace("[exact_match]", "[{regex_match: {pattern: '('}}]"), "("),
    config("the same twice", COMPLETE.replace("[exact_match]", "[contains, contains]"), "contains"),
    config("no such module", COMPLETE.replace("app.py:shout", "nowhere.app:shout"), "nowhere"),
    config("not found", COMPLETE.replace("app.py:shout", "ap.py:shout"), "ap.py"),
    config("no such attribute", COMPLETE.replace("app.py:shout", "app.py:shuot"), "'shout'"),
    config("target is no address", COMPLETE.replace("app.py:shout", "shout"), "module:attr"),
    config("target of no kind", COMPLETE.replace("app.py:shout", "{comand: [x]}"), "command"),
    config("command not there", COMPLETE.replace("app.py:shout", "{command: [no-such-program]}"),
           "no-such-program"),
    config("bad configuration", COMPLETE + "configurations: {a: {sufix: x}}\n", "'suffix'?"),
    config("configuration is text", COMPLETE + "configurations: {a: x}\n", "eval.yaml:4"),
    config("bad concurrency", COMPLETE + "run: {concurrency: 0}\n", "eval.yaml:4", "1 or more"),
    config("bad timeout", COMPLETE + "run: {timeout: soon}\n", "eval.yaml:4", "timeout"),
    config("bad word", COMPLETE + "run: {on_error: explode}\n", "must be 'continue' or 'raise'"),
    config("unknown option", COMPLETE + "run: {concurency: 3}\n", "eval.yaml:4", "concurency"),
    config("repeated key", COMPLETE + "target: app.py:other\n", "eval.yaml:4", "repeated"),
    config("tags are a list", COMPLETE + "tags: [a]\n", "eval.yaml:4"),
    config("metric not there", COMPLETE + "metrics: ['app.py:Nothing']\n", "Nothing"),
    config("plugin not there", COMPLETE + "plugins: ['app.py:nothing']\n", "nothing"),
    config("threshold is text", COMPLETE + "fail_under: high\n", "eval.yaml:4"),
]  # fmt: skip


def test_there_are_many_cases() -> None:
    """There are at least forty cases, each with its own name."""
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_fits_on_one_screen_and_writes_nothing(project: Project, case: Case) -> None:
    """Exit code 2, what and where, no traceback, at most a screen, and no file made."""
    project.write(case.file, case.content)
    before = project.files()
    result = project.proctor("run", "eval.yaml", "--output", "out")
    assert result.code == 2, result.err
    for part in case.said:
        assert part in result.err, result.err
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err
    assert len(result.err.splitlines()) <= 24
    assert result.out == ""
    assert project.files() == before


def test_all_faults_of_a_file_come_at_once(project: Project) -> None:
    """A dataset with fifty bad lines names twenty and counts the rest."""
    project.write("data.jsonl", '{"id": "a"}\n' * 50)
    result = project.proctor("run", "eval.yaml")
    assert result.err.count("data.jsonl:") >= 20
    assert "more" in result.err


MAPPED = ["run", "eval.yaml", "--dataset", "data.jsonl", "--map"]


@each_row(
    ("args", "message"),
    [
        (["run", "nothing.yaml"], "file not found: nothing.yaml"),
        (["run", "eval.yml"], "did you mean 'eval.yaml'?"),
        (["run", "data.jsonl"], "an eval file ends in .yaml"),
        (["run", "app.py"], "does not define dataset, target"),
        (["run", "eval.yaml", "--tag", "main"], "must be KEY=VALUE, got 'main'"),
        (["run", "eval.yaml", "--set", "least=3"], "must be EVALUATOR.PARAMETER=VALUE"),
        (["run", "eval.yaml", "--set", "other.least=3"], "this run has no evaluator 'other'"),
        (
            ["run", "eval.yaml", "--set", "contains.case_sensitive.x=1"],
            "set the complete parameter: contains.case_sensitive=VALUE",
        ),
        (["run", "eval.yaml", "--set", "keywords.words=1"], "this run does not use the evaluator 'keywords'"),
        ([*MAPPED, '{"question": "input"'], "not JSON: --map question=input"),
        ([*MAPPED, "question"], "must be COLUMN=FIELD, got 'question'"),
        (["run", "eval.yaml", "--fail-under", "latency_ms.mean=10"], "latency: {max_ms: 2000}"),
        (["run", "eval.yaml", "--fail-under", "cost.total=1"], "--budget cost=5"),
        (["run", "eval.yaml", "--target", "gpt-4o"], "for example openai:gpt-4o;"),
        (["run", "eval.yaml", "--target", "claude-3-haiku"], "anthropic:claude-3-haiku"),
        (["run", "eval.yaml", "--target", "app.py"], "app.py:FUNCTION"),
        (["show", "lates"], "unknown run 'lates'"),
        (["run", "eval.yaml", "--fail-under", "high"], "must be a number such as 0.8 or 80%"),
        (["run", "eval.yaml", "--map", "a=input"], "unknown key 'a'"),
        (["run", "eval.yaml", "--concurrency", "0"], "concurrency"),
        (["run", "eval.yaml", "--timeout", "-1"], "timeout"),
        (["run", "eval.yaml", "--plugin", "nothing"], "'nothing'"),
        (["run", "eval.yaml", "--resume", "20260101"], "unknown run '20260101'"),
        (["run", "eval.yaml", "--concurrency", "many"], "must be an integer"),
        (["run", "eval.yaml", "--dataset", "nothing.jsonl"], "nothing.jsonl"),
    ],
)
def test_bad_options_are_reported(project: Project, args: list[str], message: str) -> None:
    """Options are checked before anything is run or written."""
    before = project.files()
    result = project.proctor(*args)
    assert result.code == 2
    assert message in result.err
    assert project.files() == before


def test_nothing_to_run_is_an_error(project: Project) -> None:
    """Without an eval file, the error names the missing options."""
    (project.folder / "eval.yaml").unlink()
    result = project.proctor("run", "-e", "contains")
    assert result.code == 2
    assert "no eval file is given, and --dataset and --target are missing" in result.err


def test_a_misspelt_latest_is_suggested(project: Project) -> None:
    """It is a word of ours that no run is named after, and is suggested like their names."""
    assert project.proctor("run", "eval.yaml", "-q").code == 0
    assert "did you mean 'latest'?" in project.proctor("show", "lates").err


def test_a_tab_in_a_yaml_file_is_called_a_tab(project: Project) -> None:
    """Not "a character that cannot start any token", and no advice about quotes."""
    project.write("eval.yaml", "name: exam\ndataset:\n\tpath: data.jsonl\n")
    result = project.proctor("run", "eval.yaml")
    assert result.code == 2
    assert "eval.yaml:3: not valid YAML: the line is indented with a tab" in result.err
    assert "replace tabs with spaces" in result.err
    assert "quotes" not in result.err


def test_an_eval_file_in_another_encoding_names_the_line_and_the_conversion(project: Project) -> None:
    """As datasets do: which byte, what it probably is, and what to type."""
    (project.folder / "eval.yaml").write_bytes("name: exam\ntarget: café\n".encode("latin-1"))
    result = project.proctor("run", "eval.yaml")
    assert result.code == 2
    assert "line 2 is not UTF-8 text: byte 0xe9 ('é' in Windows-1252)" in result.err
    assert "iconv -f Windows-1252 -t UTF-8" in result.err
