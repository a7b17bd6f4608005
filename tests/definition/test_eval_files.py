"""Fields, a baseline and recorded spans in eval files, through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from proctor.errors import UsageError
from proctor.wiring.config import load_eval_file
from proctor.wiring.prepare import prepare
from proctor.wiring.registry import Registry
from tests.cli.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    return Project(tmp_path, capsys)


def fault(wrong: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        wrong()
    return str(caught.value)


APP = """
from proctor import Reply, Usage

def answer(text, *, temperature=0.0):
    return Reply({"text": text.upper()}, Usage(10, int(100 * temperature)))

def cheaper(field_context, *, by=0):
    delta = field_context.delta
    return None if delta is None else delta.absolute <= by

def lenient(scores):
    return {"passed": scores["contains"].passed, "score": 0.5}
"""
EVAL = """
name: exam
dataset: data.jsonl
target: app.py:answer
configurations:
  base: {temperature: 0.5}
  low: {temperature: 0.1}
  high: {temperature: 1.0}
baseline: base
fields:
  tokens:
    path: usage.total_tokens
    evaluators: ["app.py:cheaper"]
  text:
    path: output.text
    evaluators: [contains, "app.py:cheaper"]
    combine: app.py:lenient
  cost: usage.output_tokens
"""


def ready(project: Project, text: str = EVAL) -> None:
    project.write("app.py", APP)
    project.write("eval.yaml", text)
    rows = [{"id": f"s{i}", "input": f"word {i}", "expected": f"WORD {i}"} for i in range(3)]
    project.write("data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def report(project: Project) -> Any:
    return json.loads((project.folder / "out" / "report.json").read_text())


def test_fields_with_a_baseline(project: Project) -> None:
    """Configurations with deltas, fields by path, and a custom combination."""
    ready(project)
    told = project.proctor("run", "eval.yaml", "--output", "out")
    assert told.code == 0, told.err
    tables = report(project)["by_configuration"]
    rates = {name: table["field.tokens.pass_rate"]["value"] for name, table in tables.items()}
    assert rates == {"base": None, "low": 1.0, "high": 0.0}
    assert tables["low"]["field.tokens"]["value"] == 20.0
    assert tables["high"]["field.cost"]["value"] == 100.0
    assert tables["high"]["field.text.score"]["value"] == 0.5
    assert tables["high"]["field.text.contains"]["value"] == 1.0


def test_fail_under_accepts_fields(project: Project) -> None:
    """The mean and the pass rate of a field; a misspelled field is refused before the run."""
    ready(project)
    fine = project.proctor("run", "eval.yaml", "--fail-under", "field.tokens=10")
    assert fine.code == 0, fine.err
    low = project.proctor("run", "eval.yaml", "--fail-under", "field.tokens.pass_rate=0.9")
    assert low.code == 1
    wrong = project.proctor("run", "eval.yaml", "--fail-under", "field.tokns=10")
    assert wrong.code == 2
    assert "did you mean 'field.tokens" in wrong.err


def test_recorded_spans_need_no_target(project: Project) -> None:
    """The samples contain the results, also by configuration; a missing one is an error."""
    spans = [
        {"id": "a", "input": "x", "output": "yes", "usage": {"total_tokens": 5}, "latency_ms": 3},
        {"id": "b", "input": "x", "output": "yes!"},
    ]
    project.write("spans.jsonl", "".join(json.dumps(span) + "\n" for span in spans))
    project.write(
        "eval.yaml",
        "dataset: spans.jsonl\nfields:\n  output: [{regex_match: {pattern: 'yes'}}]\n"
        "  usage.total_tokens: ['app.py:few']\n",
    )
    project.write("app.py", "def few(tokens):\n    return tokens < 10\n")
    told = project.proctor("run", "eval.yaml", "--output", "out")
    assert told.code == 0, told.err
    assert report(project)["metrics"]["field.output.pass_rate"]["value"] == 1.0
    assert report(project)["metrics"]["field.usage.total_tokens.pass_rate"]["errors"] == 1
    several = [{"id": "a", "input": "x", "recorded": {"p": {"output": 1}, "q": {"output": 3}}}]
    project.write("spans.jsonl", json.dumps(several[0]) + "\n")
    project.write(
        "eval.yaml",
        "dataset: spans.jsonl\nconfigurations: {p: {}, q: {}}\nbaseline: p\nfields: {output: ['app.py:no_more']}\n",
    )
    project.write("app.py", "def no_more(field_context):\n    return field_context.delta.absolute <= 0\n")
    told = project.proctor("run", "eval.yaml", "--output", "out")
    assert told.code == 0, told.err
    found = report(project)["by_configuration"]
    assert found["q"]["field.output.pass_rate"]["value"] == 0.0
    assert found["p"]["field.output"]["value"] == 1.0


def test_a_module_can_be_an_eval_file(project: Project) -> None:
    """With fields, baseline and the rest as Python names."""
    ready(project)
    project.write(
        "exam.py",
        APP + "dataset = 'data.jsonl'\ntarget = answer\nbaseline = 'base'\n"
        "configurations = {'base': {'temperature': 0.5}, 'low': {'temperature': 0.1}}\n"
        "fields = {'tokens': {'path': 'usage.total_tokens', 'evaluators': [cheaper]},\n"
        "          'output.text': ['contains'], 'cost': 'usage.output_tokens'}\n",
    )
    told = project.proctor("run", "exam.py", "--output", "out")
    assert told.code == 0, told.err
    assert report(project)["by_configuration"]["low"]["field.tokens.pass_rate"]["value"] == 1.0
    assert report(project)["by_configuration"]["low"]["field.cost"]["value"] == 10.0


def test_an_eval_file_reports_all_faults(tmp_path: Path) -> None:
    """Evaluators, parameters, paths, combination and baseline."""
    path = tmp_path / "eval.yaml"
    path.write_text(
        """
dataset: [{id: a, input: x, output: y}]
configurations: {low: {}, high: {}}
baseline: lwo
fields:
  tokens: usage..total
  output:
    evaluators: [containz, {contains: {case_sensitiv: true}}]
  items:
    evaluators: [contains]
    combine: xor
  other:
    path: other
    evaluators: [{contains: {case_sensitive: 3}}]
"""
    )
    told = fault(lambda: prepare(load_eval_file(path).evaluation, Registry.standard()))
    assert told.replace(str(tmp_path), "…") == snapshot("""\
…/eval.yaml: the evaluation has 4 problems
  - target: sample 'a' has no recorded results by configuration, and no target is set to run
    Fix: give a target, or add results to every sample: {recorded: {configuration: result}}
  - some evaluators cannot be built
      - fields.output (field), evaluators[0]: unknown evaluator 'containz' (did you mean 'contains'?)
      - fields.output (field), evaluators[1] (contains): unknown parameter 'case_sensitiv'; did you mean 'case_sensitive'?
      - fields.items (items): evaluators cannot be combined with 'xor' (choose "and" (all pass), "or" (one passes), or a function of the scores)
      - fields.other (field), evaluators[0] (contains), case_sensitive must be of type bool, got 3
    Fix: correct these entries; `proctor evaluators NAME` lists the parameters of an evaluator
  - baseline (…/eval.yaml:4): no configuration is named 'lwo'
    Fix: did you mean 'low'?
  - …/eval.yaml:5: some paths of fields are invalid
      - fields.tokens: 'usage..total' is not a path to a field: it has an extra dot; write usage.total
    Fix: write keys with dots between them, such as usage.total_tokens or items.*.name\
""")  # noqa: E501


def test_invalid_entries_of_an_eval_file(tmp_path: Path) -> None:
    """Wrong keys and types are reported with their lines, as is a file without evaluators."""
    path = tmp_path / "eval.yaml"
    path.write_text("dataset: []\nfields:\n  output: {evaluaters: [contains]}\nbaseline: 3\nfeilds: {}\n")
    told = fault(lambda: load_eval_file(path))
    path.write_text("dataset: []\nfields: {output: output}\n")
    nothing = fault(lambda: load_eval_file(path))
    path.write_text("dataset: []\nevaluators: [contains]\n")
    no_target = fault(lambda: load_eval_file(path))
    module = tmp_path / "wrong_eval.py"
    module.write_text("dataset = []\nfields = {'output': {'evaluaters': ['contains']}}\n")
    in_python = fault(lambda: load_eval_file(module))
    both = "\n\n".join([told, nothing, no_target, in_python])
    assert both.replace(str(tmp_path), "…") == snapshot("""\
…/eval.yaml: the eval file has problems
  - …/eval.yaml:2: fields.output: unknown key 'evaluaters'; did you mean 'evaluators'?
  - …/eval.yaml:4: baseline must be a string, got an integer
  - …/eval.yaml:5: unknown key 'feilds'; did you mean 'fields'?
Fix: correct the lines above; docs/eval-files.md lists every key

…/eval.yaml: the eval file has problems
  - …/eval.yaml: evaluators is missing or empty, and neither an entry of `fields` nor a sample has evaluators
Fix: correct the lines above; docs/eval-files.md lists every key

…/eval.yaml: the eval file has problems
  - …/eval.yaml: target is missing
Fix: correct the lines above; docs/eval-files.md lists every key

fields: a field has no key 'evaluaters'
Fix: did you mean 'evaluators'?\
""")


def test_a_python_eval_file_has_the_same_keys_as_yaml(tmp_path: Path) -> None:
    """`canary` included, which a module once lost."""
    module = tmp_path / "canary_eval.py"
    module.write_text(
        'dataset = [{"id": "1", "input": "a", "expected": "A"}]\ntarget = str.upper\n'
        'evaluators = ["exact_match"]\ncanary = 7\ntags = {"a": "b"}\nbaseline = "x"\n'
    )
    evaluation = load_eval_file(module).evaluation
    assert (evaluation.canary, evaluation.tags, evaluation.baseline) == (7, {"a": "b"}, "x")
