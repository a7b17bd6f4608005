"""Samples with their own evaluators: in files, in Python, in eval files, by workers, resumed, rescored and compared."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    Dataset,
    EvalLoop,
    InMemoryMailbox,
    Sample,
    collect_results,
    compare,
    contains,
    evaluate,
    exact_match,
    rescore,
    submit_dataset,
)
from proctor.datasets.dataset import IteratorDataset, make_source
from proctor.errors import ConfigError, DatasetError, EvaluatorError, ProctorError, ResumeRefused
from proctor.records.results import ResultList
from proctor.records.subset import ResultSubset
from tests.support import run_command

LINES: list[dict[str, Any]] = [
    {"id": "a", "input": "hello", "expected": "hello", "evaluators": ["exact_match"]},
    {"id": "b", "input": "World", "expected": "world", "evaluators": [{"contains": {"case_sensitive": False}}]},
    {"id": "c", "input": "World", "expected": "world", "evaluators": ["contains"]},
]


def echo(text: str) -> str:
    return text


def polite(output: str) -> bool:
    return output.startswith("Please")


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def outcomes(report: Any) -> dict[str, dict[str, bool | None]]:
    return {r.sample_id: {name: score.passed for name, score in r.scores.items()} for r in report.results}


def test_each_sample_is_scored_by_its_own_evaluators(tmp_path: Path) -> None:
    """`contains` passes b, whose check ignores case, and fails c; its n is 2, and nothing is skipped."""
    report = evaluate(echo, str(write_lines(tmp_path / "qa.jsonl", LINES)))
    assert outcomes(report) == {"a": {"exact_match": True}, "b": {"contains": True}, "c": {"contains": False}}
    rate = report.metrics["contains.pass_rate"]
    assert (rate.value, rate.n, rate.skipped, rate.errors) == (0.5, 2, 0, 0)
    assert report.metadata is not None
    assert [(spec.name, spec.samples) for spec in report.metadata.evaluators] == [("exact_match", 1), ("contains", 2)]
    assert not report.metadata.warnings
    assert report.pass_rate == pytest.approx(2 / 3)


def test_they_run_besides_the_evaluators_of_the_run() -> None:
    """A sample without checks has only the run's scores."""
    samples = [Sample("a", "hi", "hi", evaluators=("contains",)), Sample("b", "hi", "hi")]
    report = evaluate(echo, Dataset(samples), [exact_match])
    assert outcomes(report) == {"a": {"exact_match": True, "contains": True}, "b": {"exact_match": True}}


def test_functions_and_objects_are_evaluators_of_samples_too() -> None:
    """Two samples have different functions of the same name; the stored entry has the identity of the code."""

    def make(word: str) -> Any:
        def has_word(output: str) -> bool:
            return word in output

        return has_word

    samples: list[Sample[str, str]] = [
        Sample(word, "one two", evaluators=(make(word), polite)) for word in ("one", "three")
    ]
    dataset = Dataset(samples)
    report = evaluate(echo, dataset)
    assert outcomes(report) == {
        "one": {"has_word": True, "polite": False},
        "three": {"has_word": False, "polite": False},
    }
    stored = [result.trial.sample.evaluators[0] for result in report.results]
    assert [entry["name"] for entry in stored] == ["has_word", "has_word"]
    assert stored[0]["identity"] != stored[1]["identity"]
    assert dataset.info.fingerprint is not None


@pytest.mark.parametrize(
    "cell",
    ["contains", '[""contains""]', '{""contains"": {""case_sensitive"": true}}', '["contains"]'.replace('"', '""')],
)
def test_a_column_of_a_table_has_names_or_json(tmp_path: Path, cell: str) -> None:
    """A cell holds names separated by commas, or JSON; an empty cell means no evaluators."""
    (tmp_path / "qa.csv").write_text(f'id,input,expected,evaluators\n1,hi,hi,"{cell}"\n2,ho,ho,\n')
    if cell.startswith("{"):
        with pytest.raises(DatasetError, match="evaluators must be a list, got a mapping"):
            make_source(tmp_path / "qa.csv").inspect()
        return
    report = evaluate(echo, tmp_path / "qa.csv", [exact_match])
    assert outcomes(report) == {"1": {"exact_match": True, "contains": True}, "2": {"exact_match": True}}


def test_all_mistakes_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    """Unknown names, wrong parameters and clashing names are found before anything runs."""
    lines: list[dict[str, Any]] = [
        {"id": "a", "input": "x", "evaluators": ["exact_mach"]},
        {"id": "b", "input": "x", "evaluators": [{"contains": {"cas": True}}, "exact_match"]},
        {"id": "c", "input": "x", "evaluators": ["regex_match:", "contains", "contains"]},
        {
            "id": "d",
            "input": "x",
            "evaluators": [{"uses": "contains", "name": "n"}, {"uses": "exact_match", "name": "n"}],
        },
    ]
    path = write_lines(tmp_path / "qa.jsonl", lines)
    with pytest.raises(DatasetError) as caught:
        evaluate(echo, str(path), [exact_match])
    text = str(caught.value).replace(f"{tmp_path}/", "")
    assert "qa.jsonl:1: evaluators[0]: unknown evaluator 'exact_mach'" in text
    assert "qa.jsonl:2: evaluators[0]: its parameters are invalid" in text
    assert "qa.jsonl:2: evaluators[1]: the run has an evaluator 'exact_match' for all samples" in text
    assert "qa.jsonl:3: evaluators[2]: the sample has two evaluators named 'contains'" in text
    assert "qa.jsonl:4: evaluators[1]: the sample has two evaluators named 'n'" in text


def test_a_name_is_one_evaluator_in_all_samples() -> None:
    """A metric over two different evaluators would have no meaning."""
    samples = [
        Sample("a", "x", "x", evaluators=({"uses": "contains", "name": "ok"},)),
        Sample("b", "x", "x", evaluators=({"uses": "exact_match", "name": "ok"},)),
    ]
    with pytest.raises(DatasetError, match="'ok' is exact_match here and contains in another sample"):
        evaluate(echo, Dataset(samples))


def test_a_sample_without_any_evaluator_is_skipped() -> None:
    """It has no verdict beside samples that have their own checks; a run in which nothing is checked is refused."""
    samples = [Sample("a", "x", "x", evaluators=("contains",)), Sample("b", "x", "x")]
    report = evaluate(echo, Dataset(samples))
    assert [result.outcome for result in report.results] == ["passed", "skipped"]
    assert report.results[1].score.reason == "neither the sample nor the run has evaluators"
    with pytest.raises(EvaluatorError, match="there is no evaluator"):
        evaluate(echo, [{"id": "1", "input": "x"}])


@pytest.mark.parametrize(
    ("value", "problem"), [("contains", "must be a list, got a string"), ([3], "must be an evaluator, got a number: 3")]
)
def test_the_shape_of_the_key_is_checked(tmp_path: Path, value: Any, problem: str) -> None:
    """JSONL, lists of records and samples in Python report the same problem."""
    record = {"id": "1", "input": "x", "evaluators": value}
    for source in (str(write_lines(tmp_path / "qa.jsonl", [record])), [record]):
        with pytest.raises(DatasetError, match=problem):
            make_source(source).inspect()
    with pytest.raises(DatasetError, match=problem):
        Dataset([Sample("1", "x", evaluators=value)])


def test_an_iterator_cannot_have_them() -> None:
    """The names of a run's evaluators are known before it starts, and an iterator is read only once."""
    with pytest.raises(DatasetError, match="samples of an iterator cannot have their own evaluators"):
        list(IteratorDataset(iter(LINES)))


def test_failed_targets_are_errors_only_of_the_samples_evaluators() -> None:
    """A failed sample without `contains` is not an error of `contains`, in memory and in the history."""

    def fail(text: str) -> str:
        raise ValueError(text)

    report = evaluate(fail, LINES, history=False)
    for results in (report.results, ResultList(report.results)):
        column = results.column("contains")
        assert (column.errors, column.no_output, column.skipped) == (2, 2, 0)
    assert report.metrics["exact_match.pass_rate"].errors == 1


def test_parts_of_a_run_count_only_the_samples_that_have_an_evaluator() -> None:
    """A subset of the results, as slices use it, skips nothing either, in memory and in the history."""
    # One at a time: figures in the history are in the order in which the results finished.
    report = evaluate(echo, LINES, history=False, concurrency=1)
    for results in (report.results, ResultList(report.results)):
        subset = ResultSubset(results, frozenset({"a", "b"}))
        column = subset.column("contains")
        assert (list(column.values), column.skipped) == ([1.0], 0)
        selected = ResultList(result for result in report.results if result.sample_id in ("a", "b"))
        assert subset.figures().absent["contains"] == selected.figures().absent["contains"]


def test_eval_files_with_inline_samples(tmp_path: Path) -> None:
    """An eval file needs no evaluators if its samples have them; addresses are relative to the file."""
    (tmp_path / "checks.py").write_text("def short(output): return len(output) < 9\ndef echo(text): return text\n")
    (tmp_path / "eval.yaml").write_text(
        "target: checks.py:echo\ndataset:\n"
        "  - {id: a, input: hi, expected: hi, evaluators: [contains, not-exact_match]}\n"
        "  - {id: b, input: a long answer, evaluators: ['checks.py:short']}\n"
    )
    result = run_command("run", "eval.yaml", "--json", cwd=tmp_path)
    metrics = json.loads(result.stdout)["metrics"]
    assert {name: metrics[name]["value"] for name in metrics if name.endswith(".pass_rate")} == {
        "contains.pass_rate": 1.0,
        "not-exact_match.pass_rate": 0.0,
        "short.pass_rate": 0.0,
    }


def test_workers_score_them() -> None:
    """The request carries the entries; the worker builds them, and says so if it cannot."""
    requests: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    results: InMemoryMailbox[Any] = InMemoryMailbox("results")
    loop = EvalLoop(loop=echo, evaluator=exact_match, requests=requests, results=results)
    submission = submit_dataset(
        [{**LINES[1]}, {"id": "z", "input": "x", "expected": "x", "evaluators": ["no_such"]}], requests
    )
    loop.run(max_iterations=2)
    report = collect_results(results, submission)
    scores = {result.sample_id: result.scores for result in report.results}
    assert scores["b"]["contains"].passed
    assert "cannot be built" in scores["z"]["no_such"].reason


def test_functions_cannot_be_sent_to_workers() -> None:
    """The run is refused before anything is sent."""
    mailbox: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    samples: list[Sample[str, str]] = [Sample("a", "x", evaluators=(polite,))]
    with pytest.raises(ConfigError, match="objects of this process: polite"):
        evaluate(echo, Dataset(samples), workers=mailbox)
    assert mailbox.approximate_count() == 0


def test_resume_notices_a_changed_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fingerprint of the dataset covers the evaluators of its samples."""
    path, history = write_lines(tmp_path / "qa.jsonl", LINES), tmp_path / "h.db"

    def stop_once(text: str) -> str:
        if os.environ.get("DOWN"):
            raise ConnectionError("down")
        return text

    monkeypatch.setenv("DOWN", "1")

    with pytest.raises(ProctorError, match="down"):
        evaluate(stop_once, str(path), name="n", history=history, on_error="raise", concurrency=1)
    monkeypatch.delenv("DOWN")
    changed = [{**LINES[0], "evaluators": ["contains"]}, *LINES[1:]]
    with pytest.raises(ResumeRefused, match="its content has changed"):
        evaluate(stop_once, str(write_lines(path, changed)), name="n", history=history, resume=True)
    report = evaluate(
        stop_once, str(write_lines(path, LINES)), name="n", history=history, resume=True, retry_errors=True
    )
    assert outcomes(report) == {"a": {"exact_match": True}, "b": {"contains": True}, "c": {"contains": False}}


def test_rescoring_runs_them_again(tmp_path: Path) -> None:
    """The stored samples have their evaluators; others are added; a function cannot be built from the history."""
    history = tmp_path / "h.db"
    first = evaluate(echo, LINES, name="n", history=history)
    again = rescore("n", [exact_match_twice()], history=history)
    assert outcomes(again)["c"] == {"again": False, "contains": False}
    assert again.metrics["contains.pass_rate"] == first.metrics["contains.pass_rate"]
    with pytest.raises(EvaluatorError, match="samples of the run have their own contains"):
        rescore("n", [contains], history=history)
    evaluate(echo, Dataset([Sample("a", "x", evaluators=(lambda output: True,))]), name="f", history=history)
    assert "was an object of the program" in rescore("f", (), history=history).results[0].score.reason


def exact_match_twice() -> Any:
    from proctor import attach

    return attach(exact_match, name="again")


def test_a_changed_check_is_a_changed_pair(tmp_path: Path) -> None:
    """The sample whose check changed is left out of the comparison; the others are paired."""
    samples = [{**LINES[0], "id": f"s{number}"} for number in range(12)]
    before = evaluate(echo, samples)
    after = evaluate(echo, [{**samples[0], "evaluators": [{"exact_match": {"case_sensitive": False}}]}, *samples[1:]])
    comparison = compare(after, before)
    assert comparison.samples == 11
    assert any("1 sample has another expected value or other evaluators" in note for note in comparison.notes)


def test_export_and_import_keep_them(tmp_path: Path) -> None:
    """A run that was exported and imported has the same scores, metrics and entries."""
    history = tmp_path / "h.db"
    evaluate(echo, LINES, name="n", history=history)
    run_command("history", "export", "runs.jsonl", "--history", "h.db", cwd=tmp_path)
    run_command("history", "import", "runs.jsonl", "--history", "other.db", cwd=tmp_path)
    shown = run_command("report", "n", "--history", "other.db", "--format", "json", "--output", "-", cwd=tmp_path)
    assert json.loads(shown.stdout)["metrics"]["contains.pass_rate"]["n"] == 2


def test_evaluators_of_samples_are_built_once_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Converted samples use the evaluators that the pass before the run built, also in a dataset beyond the cache."""
    from proctor.wiring import sample_checks
    from proctor.wiring.registry import Registry

    registry = Registry.standard()
    built: list[Any] = []
    build = registry.build

    def count_and_build(spec: Any, **options: Any) -> Any:
        built.append(spec)
        return build(spec, **options)

    monkeypatch.setattr(registry, "build", count_and_build)
    samples = [Sample(str(n), "", "y", evaluators=({"regex_match": {"pattern": f"a{n}"}},)) for n in range(6)]
    checks = sample_checks.SampleChecks(registry)
    for sample in samples:
        checks.resolve(sample.evaluators[0])
    assert len(built) == 6
    assert [checks(checks.convert(sample))[0](f"a{sample.id}").passed for sample in samples] == [True] * 6
    assert len(built) == 6
    monkeypatch.setattr(sample_checks, "MAX_CACHED_CHECKS", 4)
    monkeypatch.setattr(sample_checks, "MAX_RECENT_CHECKS", 2)
    checks = sample_checks.SampleChecks(registry)
    for sample in samples:
        checks.resolve(sample.evaluators[0])
    built.clear()
    for sample in samples:
        converted = checks.convert(sample)
        assert checks(converted)[0].spec.parameters["pattern"] == f"a{sample.id}"
    # The first two samples stay in the cache and the last was built a moment ago; each other one is built once.
    assert len(built) <= 4


def test_samples_without_an_evaluator_are_not_counted_as_skipped(tmp_path: Path) -> None:
    """The page of the run counts 1 pass and 1 failure of `contains`, and skips nothing."""
    from proctor.reports.pages.runs import overview_page

    report = evaluate(echo, str(write_lines(tmp_path / "qa.jsonl", LINES)))
    page = overview_page(report, report.results.grid())
    counts = {evaluator["name"]: next(iter(evaluator["counts"].values())) for evaluator in page["evaluators"]}
    assert counts["contains"] == {"passed": 1, "failed": 1, "errors": 0, "skipped": 0}
    assert counts["exact_match"] == {"passed": 1, "failed": 0, "errors": 0, "skipped": 0}
