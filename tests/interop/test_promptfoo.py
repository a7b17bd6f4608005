"""promptfoo: configs become evaluations that run, and results keep their verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.errors import DatasetError
from proctor.interop.formats import read_file
from proctor.interop.imported import ImportedFile
from proctor.wiring.evaluate import evaluate
from tests.interop.examples import promptfoo_row
from tests.interop.support import FORMATS

CONFIGS = sorted((FORMATS / "promptfoo").rglob("promptfooconfig*.yaml"))


def read_config(folder: Path, tests: Any, **fields: Any) -> ImportedFile:
    content = {"prompts": ["Answer: {{q}}"], "providers": ["openai:gpt-4.1-mini"], "tests": tests, **fields}
    path = folder / "promptfooconfig.yaml"
    path.write_text(yaml.safe_dump(content))
    return read_file(path, "promptfoo")


def greet(_: Any) -> str:
    return "hello"


@pytest.mark.skipif(not CONFIGS, reason="the public files are not here")
@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.parent.name)
def test_the_samples_of_a_config_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each config has names for one kind of evaluator; a test without checks is skipped."""
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    try:
        imported = read_file(path)
    except DatasetError as error:
        assert "the config has no tests: 'file://imdb_eval_sample.csv' is left out" in str(error)  # noqa: PT017
        return
    has_judges = b"llm_judge" in json.dumps([sample.evaluators for sample in imported.samples]).encode()
    if has_judges or not any(sample.evaluators for sample in imported.samples):
        pytest.skip("all checks need a model or are not translated")
    report = evaluate(greet, imported.samples, history=None)
    assert [result.outcome == "skipped" for result in report.results] == [
        not sample.evaluators for sample in imported.samples
    ]


def test_a_name_belongs_to_one_kind_of_evaluator(tmp_path: Path) -> None:
    """A metric of different assertions gets the kind in its name; equal kinds are numbered in a sample."""
    starts, contains = ({"type": kind, "value": "h", "metric": "greeting"} for kind in ("starts-with", "contains"))
    imported = read_config(tmp_path, [{"vars": {"q": "1"}, "assert": [contains, contains]}, {"assert": [starts]}])
    names = [[entry["name"] for entry in sample.evaluators] for sample in imported.samples]
    cost = read_config(tmp_path, [{"assert": [{**contains, "metric": "cost"}]}]).samples[0]
    assert cost.evaluators[0]["name"] == "cost (keywords)"  # `cost` is a metric of every run
    assert names == [["greeting (keywords)", "greeting (keywords) 2"], ["greeting (starts_with)"]]


def test_a_threshold_without_all_assertions_gives_no_verdict(tmp_path: Path) -> None:
    """Half of the weight is not translated, so the test is skipped; without weight it cannot change the verdict."""
    own = [{"type": "contains", "value": "hello"}, {"type": "contains", "value": "bye"}]
    code = {"type": "javascript", "value": "true"}
    tests = [
        {"vars": {"q": "a"}, "threshold": 0.5, "assert": [*own, code]},
        {"vars": {"q": "b"}, "threshold": 0.5, "assert": [*own, {**code, "weight": 0}]},
        {"vars": {"q": "c"}, "assert": [own[0], {**own[1], "weight": 0}]},
    ]
    imported = read_config(tmp_path, tests)
    report = evaluate(greet, imported.samples, history=None)
    assert [result.outcome for result in report.results] == ["skipped", "passed", "passed"]
    assert any("the test is skipped: its threshold 0.5 needs" in n and "(test-1)" in n for n in imported.untranslated)


def test_what_is_lost_is_listed_with_its_tests(tmp_path: Path) -> None:
    """Settings of providers, filters, weights, scoring functions, and misspelt keys and types."""
    good = {"type": "contains", "value": "x"}
    tests = [
        {"asert": [good], "prompts": ["a"], "provider": "echo", "assertScoringFunction": "file://f.js"},
        {"assert": [{**good, "weight": 2}, good, {"type": "contians", "value": "x"}, {"type": "icontains"}]},
    ]
    provider = {"id": "openai:gpt-4.1-mini", "config": {"temperature": 0.2, "tools": []}}
    imported = read_config(tmp_path, tests, providers=[provider], prompts=["hello"], description="Small", testz=[])
    notes = "\n".join((*imported.warnings, *imported.untranslated))
    for note in (
        "the key 'testz' is left out: did you mean 'tests'?",
        "the key 'asert' is left out: did you mean 'assert'? (test-1)",
        "the prompts filter of a test is left out: every configuration runs the test (test-1)",
        "the provider of a test is left out: every configuration runs the test (test-1)",
        "assertScoringFunction is left out",
        "weights without a threshold are left out",
        "the assertion 'contians' is left out: did you mean 'contains'? (test-2)",
        "the assertion 'icontains' is left out: its value is missing (test-2)",
        "the settings of the provider 'openai:gpt-4.1-mini' are left out: temperature, tools",
        "the prompt 'hello' is left out: it is fixed, the same for all tests",
    ):
        assert note in notes
    assert imported.name == "Small"
    assert imported.target is None


def test_an_http_provider_becomes_a_target(tmp_path: Path) -> None:
    """A plain path of the response means the same; code does not."""
    settings = {
        "method": "POST",
        "headers": {"Content-Type": "application/json", "Authorization": "Bearer {{env.TOKEN}}"},
        "body": {"message": "{{q}}", "stream": False},
        "transformResponse": "json.choices[0].text",
    }
    provider = {"id": "https://example.com/chat", "config": settings}
    http = {
        "url": "https://example.com/chat",
        "body": {"message": "$q", "stream": False},
        "response": "choices[0].text",
        "headers": {"Authorization": "Bearer $TOKEN"},
    }
    assert read_config(tmp_path, [{"vars": {"q": "a"}}], providers=[provider]).target == {"http": http}
    for change in (
        {"transformResponse": "json.a.trim()"},
        {"body": {"m": "{{prompt}}"}},
        {"validateStatus": "s < 500"},
    ):
        changed = {**provider, "config": settings | change}
        imported = read_config(tmp_path, [{"vars": {"q": "a"}}], providers=[changed])
        assert imported.target is None
        assert "is not a model address" in imported.untranslated[0]


def test_a_missing_file_of_tests_is_an_error(tmp_path: Path) -> None:
    """No sample is invented; without the key, promptfoo runs the prompt once."""
    with pytest.raises(
        DatasetError, match=r"the config has no tests: 'file://tests\.csv' is left out: it is not a file"
    ):
        read_config(tmp_path, "file://tests.csv")
    assert len(read_config(tmp_path, None).samples) == 1


@pytest.mark.parametrize(
    "counts",
    [
        {"stats": {"successes": 6, "failures": 3, "errors": 1}},
        {
            "prompts": [
                {"metrics": {"testPassCount": 4, "testFailCount": 1}},
                {"metrics": {"testPassCount": 2, "testFailCount": 2, "testErrorCount": 1}},
            ]
        },
    ],
    ids=lambda counts: next(iter(counts)),
)
def test_a_file_with_missing_rows_is_incomplete(tmp_path: Path, counts: dict[str, Any]) -> None:
    """Its statistics, or the metrics of its prompts, count ten results, and it has one."""
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"results": {"results": [promptfoo_row(0, 0)], **counts}}))
    run = read_file(path, "promptfoo").runs[0]
    assert run.total == 10
    assert run.reported == {"passed": 6, "failed": 3, "errors": 1}


def test_a_named_metric_has_the_verdict_of_its_assertions(tmp_path: Path) -> None:
    """It passes in a row that failed for another reason, and does not contradict a row that passed by threshold."""

    def make_row(test: int, *, success: bool, metric: bool) -> dict[str, Any]:
        component = {"pass": metric, "score": float(metric), "assertion": {"type": "contains", "metric": "NonEmpty"}}
        grading = {"pass": success, "score": 0.5, "componentResults": [component]}
        fields = {"success": success, "failureReason": int(not success), "score": 0.5, "gradingResult": grading}
        return promptfoo_row(test, 0, **fields, namedScores={"NonEmpty": float(metric)})

    rows = [make_row(0, success=False, metric=True), make_row(1, success=True, metric=False)]
    rows.append(make_row(2, success=False, metric=False))
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"results": {"results": rows}}))
    imported = read_file(path, "promptfoo")
    results = imported.runs[0].results
    assert [result.scores["NonEmpty"].passed for result in results] == [True, True, False]
    assert [result.outcome for result in results] == ["failed", "passed", "failed"]
    assert any("passed by their threshold" in note and ": 1 (NonEmpty)" in note for note in imported.warnings)


@pytest.mark.skipif(not CONFIGS, reason="the public files are not here")
@pytest.mark.parametrize("name", ["1-simple", "2-csv", "3-assertions"])
def test_translated_checks_have_the_verdicts_of_promptfoo(name: str) -> None:
    """On the recorded outputs, every test that still has checks passes or fails as in promptfoo."""
    imported = read_file(FORMATS / "promptfoo" / "generated" / name / "results.json", "promptfoo")
    results = [result for result in imported.runs[0].results if result.trial.sample.evaluators]
    assert results
    for result in results:
        report = evaluate(lambda _, output=result.trial.output: output, [result.trial.sample], history=None)
        assert report.results[0].outcome == result.outcome, result.sample_id
