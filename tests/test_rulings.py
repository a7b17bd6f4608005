"""The rules that settle what the specifications leave open, one test for each that holds here.

Rulings 1 to 9 are named where they are proven: records, metrics, engine and history. What the
field spec's rulings say at length is in tests/definition and tests/engine/test_baselines.py; each
has one short test here. Rubrics have no part in this version.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from proctor import (
    CSVDataset,
    Dataset,
    EvalReport,
    EvalRunner,
    IteratorDataset,
    JSONLDataset,
    MarkdownReporter,
    Sample,
    Score,
    Session,
    ToolCall,
    all_of,
    any_of,
    contains,
    define,
    evaluate,
    exact_match,
    question_format,
    record,
    starter_phrase,
    within_tolerance,
)
from proctor.errors import ConfigError, DatasetError, EvaluatorError, FieldMissing, RunStopped
from proctor.records.run import Retention, RunMetadata
from proctor.reports.json import JSONReporter, load
from tests.support import samples, shout


@dataclass(frozen=True)
class Question:
    text: str
    level: int = 1


class Answer(msgspec.Struct):
    city: str


class Place(pydantic.BaseModel):
    city: str


def written(folder: Path, *lines: str) -> Path:
    path = folder / "data.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (str, '"x"', "1"),
        (int, "1", "true"),
        (float, "1", '"1"'),
        (bool, "true", "1"),
        (list[int], "[1, 2]", '[1, "2"]'),
        (dict[str, float], '{"a": 1}', '{"a": "1"}'),
        (str | None, '"x"', "1"),
        (Question, '{"text": "why?"}', '{"text": 1}'),
        (Answer, '{"city": "Paris"}', '{"city": 1}'),
        (Place, '{"city": "Paris"}', '{"city": 1}'),
    ],
)
def test_loop_ruling_typed_loading(kind: Any, good: str, bad: str, tmp_path: Path) -> None:
    """Loop ruling, typed loading: bool is not int, int is a float; a bad line is named in full."""
    fine = written(tmp_path, f'{{"id": "1", "input": {good}}}')
    assert len(Dataset.load(fine, kind, Any)) == 1
    faulty = written(tmp_path, "", f'{{"id": "1", "input": {bad}}}')
    with pytest.raises(DatasetError) as caught:
        Dataset.load(faulty, kind, Any)
    assert "data.jsonl:2: input" in str(caught.value)
    assert " must be a" in str(caught.value)
    assert ", got a" in str(caught.value)


def test_loop_ruling_duplicate_ids_are_refused(tmp_path: Path) -> None:
    """Loop ruling: duplicate ids are refused with both lines; blank lines are skipped."""
    path = written(tmp_path, '{"id": "1", "input": "a"}', "", '{"id": "1", "input": "b"}')
    with pytest.raises(DatasetError, match=r"data\.jsonl:3: id") as caught:
        JSONLDataset(path).inspect()
    assert "data.jsonl:1" in str(caught.value)


def wants_session(output: str, expected: str, session: Session) -> bool:
    return len(session[ToolCall]) == 1


class Judge:
    def __call__(self, output, expected, session):  # type: ignore[no-untyped-def]
        return len(session[ToolCall]) == 1


@pytest.mark.parametrize(
    "evaluator",
    [
        wants_session,
        lambda output, expected, session: len(session[ToolCall]) == 1,
        functools.partial(wants_session),
        Judge(),
        all_of(exact_match, wants_session),
        any_of(wants_session, exact_match),
    ],
)
def test_loop_ruling_the_session_goes_to_who_wants_it(evaluator: Any) -> None:
    """Loop ruling: the third positional parameter is the session, however the function is made."""

    def target(text: str) -> str:
        record(ToolCall("search"))
        return text.upper()

    assert evaluate(target, samples(2), evaluator, history=False).pass_rate == 1.0


def test_loop_ruling_within_tolerance_at_its_edge() -> None:
    """Loop ruling: a difference equal to the tolerance passes with the value 0, as documented."""
    score = within_tolerance(0.5)(1.5, 1.0)
    assert (score.passed, score.value) == (True, 0.0)
    assert "to 0 (a difference equal to the tolerance, which still passes)" in " ".join(
        (within_tolerance.__doc__ or "").split()
    )


def test_runner_ruling_several_numbers_are_flattened() -> None:
    """Runner ruling: several numbers of one metric become name.p50; a clash is refused."""

    class Lengths:
        name = "length"

        def compute(self, results: Any) -> dict[str, float]:
            lengths = sorted(len(result.output) for result in results)
            return {"p50": lengths[len(lengths) // 2], "max": lengths[-1]}

    report = evaluate(shout, samples(3), exact_match, metrics=[Lengths()], history=False)
    assert (report.metrics["length.p50"].value, report.metrics["length.max"].value) == (6, 6)
    with pytest.raises(EvaluatorError):
        evaluate(shout, samples(1), exact_match, metrics=[Lengths(), Lengths()], history=False)


def test_runner_ruling_exact_has_a_case_option() -> None:
    """Runner ruling: "exact" has a case option, as a parameter and in a file."""
    quiet = {"exact_match": {"case_sensitive": False}}
    rates = [
        evaluate(lambda text: text, samples(2), evaluator, history=False).pass_rate
        for evaluator in (exact_match, [quiet])
    ]
    assert rates == [0.0, 1.0]


def test_runner_ruling_timeouts_are_enforced_and_reported() -> None:
    """Runner ruling: a blocking target is left in its thread, and the report says so."""
    over, returned = threading.Event(), []

    def target(text: str) -> str:
        over.wait(60)
        returned.append(text)
        return text

    report = evaluate(target, samples(1), exact_match, timeout=0.1, history=False)
    assert returned == []
    over.set()
    assert report.results[0].error == "TimeoutError: the target took longer than 0.1 s"
    assert report.metadata is not None
    assert "thread" in report.metadata.warnings[0]


def test_runner_ruling_on_error_raise_stops_and_the_default_continues() -> None:
    """Runner ruling: by default a run continues after an error; on_error="raise" stops it."""

    def target(text: str) -> str:
        raise ValueError(text)

    assert evaluate(target, samples(3), exact_match, history=False).errors == 3
    with pytest.raises(RunStopped):
        EvalRunner(target, exact_match, continue_on_error=False).run(samples(3), history=False)


def test_runner_ruling_the_length_of_a_dataset_is_optional(tmp_path: Path) -> None:
    """Runner ruling: streams need no length; CSV maps columns to any field, by real lines."""
    stream = IteratorDataset({"id": str(i), "input": "a", "expected": "A"} for i in range(3))
    with pytest.raises(TypeError):
        len(stream)
    assert evaluate(shout, stream, exact_match, history=False).total == 3
    path = tmp_path / "data.csv"
    path.write_text('key,question,topic\n1,"two\nlines",sums\n2,,sums\n')
    table = CSVDataset(path, {"key": "id", "question": "input", "topic": "cluster"})
    with pytest.raises(DatasetError, match=r"data\.csv:4: input"):
        table.inspect()


def test_runner_ruling_follow_up_questions_as_a_langchain_runnable() -> None:
    """Runner ruling: a follow-up generator is a runnable; its evaluators are built in."""
    from langchain_core.runnables import RunnableLambda

    def follow_ups(inputs: dict[str, str]) -> list[str]:
        return [
            f"Would you like to know more about {inputs['query'].split()[-1]}",
            f"Do you want an example of {inputs['query'].split()[-1]}?",
        ]

    report = evaluate(
        RunnableLambda(follow_ups),
        [Sample("1", {"query": "tell me about rivers", "response": "Rivers flow."})],
        [starter_phrase(["Would you like", "Do you want"]), question_format],
        history=False,
    )
    scores = report.results[0].scores
    assert scores["starter_phrase"].value == 1.0
    assert scores["question_format"].value == 0.5
    assert not report.results[0].passed


def test_the_runner_specification_s_extension_points() -> None:
    """A dataset, an evaluator and a metric of the user's own, written as it shows."""

    class Rows:
        def __iter__(self) -> Any:
            return iter([Sample("1", "rivers", ["How long is the Nile?"])])

        def __len__(self) -> int:
            return 1

        @property
        def info(self) -> dict[str, Any]:
            return {"source": "database", "query": "select 1"}

    class DomainRelevance:
        name = "domain_relevance"

        def __init__(self, keywords: list[str]) -> None:
            self.keywords = set(keywords)

        def evaluate(self, output: list[str], example: Any, config: Any = None) -> float:
            shares = [len(set(q.lower().split()) & self.keywords) / 3 for q in output]
            return sum(min(share, 1.0) for share in shares) / len(shares)

    class Strategies:
        name = "strategy_distribution"

        def compute(self, results: Any) -> dict[str, float]:
            questions = [question for result in results for question in result.output]
            exploring = sum("explore" in question for question in questions)
            return {"exploratory": exploring / len(questions)}

    runner = EvalRunner(
        lambda topic: [f"shall we explore {topic} and lakes?"], [DomainRelevance(["rivers", "lakes"])], [Strategies()]
    )
    report = runner.run(Rows(), history=False)
    assert report.metrics["domain_relevance.mean"].value == pytest.approx(1 / 3)
    assert report.metrics["strategy_distribution.exploratory"].value == 1.0


def test_the_loop_specification_s_report_in_our_words(tmp_path: Path) -> None:
    """Load, run, read the properties, review failures, compare two stored reports."""
    path = written(
        tmp_path,
        '{"id": "1", "input": "What is 2+2?", "expected": "4"}',
        '{"id": "2", "input": "Capital of France?", "expected": "Paris"}',
    )
    dataset = Dataset.load(path, str, str)
    report = evaluate(lambda question: "It is 4.", dataset, contains, history=False)
    assert f"{report.pass_rate:.1%}" == "50.0%"
    assert f"{report.mean_score:.2f}" == "0.50"
    assert (report.total, report.successful) == (2, 2)
    assert [result.sample_id for result in report.failed_samples()] == ["2"]
    assert report.failed_samples()[0].score == Score(0.0, False, "missing: 'Paris'")
    MarkdownReporter().save(report, tmp_path / "report.md")
    again: EvalReport = load(JSONReporter().generate(report))
    assert again.metrics == report.metrics
    assert list(again.results) == list(report.results)


def fine(output: Any) -> bool:
    return True


def test_ruling_7_baselines() -> None:
    """Ruling 7: the named configuration, else what was recorded; no percentage of 0 or nothing."""
    seen: dict[Any, Any] = {}

    def look(field_context: Any) -> bool:
        delta = field_context.delta
        name = field_context.configuration["name"], field_context.input
        seen[name] = None if delta is None else (delta.absolute, delta.percentage)
        return True

    checks = define().configuration("a", add=0).configuration("b", add=2).baseline("a")
    spans = [{"input": 4, "baseline_output": 8}, {"input": 0}]
    checks.evaluate_field("output", look).evaluate(spans, target=lambda n, *, add: n + add)
    assert seen == {("a", 4): None, ("b", 4): (2, 50.0), ("a", 0): None, ("b", 0): (2, None)}
    recorded = define().evaluate_field("output", look)
    recorded.evaluate({"input": 4, "baseline_output": 8}, target=lambda n: n)
    assert seen["default", 4] == (-4, -50.0)


def test_field_ruling_blocks_merge_and_combinations_may_not_contradict() -> None:
    """Field ruling: two blocks of one field merge in order; two combinations are an error."""
    checks = define().evaluate_field("output", fine).evaluate_field("n", fine)
    checks.evaluate_field("output", contains, combine_with="or")
    output = checks.evaluate({"output": "x", "n": 1, "expected": "y"}).field_results["output"]
    assert list(output.evaluators) == ["fine", "contains"]
    assert output.passed
    with pytest.raises(ConfigError, match="the field is already combined by 'or'"):
        checks.evaluate_field("output", combine_with="and")


def test_field_ruling_missing_raises_and_null_is_a_value() -> None:
    """Field ruling: the error names path, missing key and the keys there; lists have * and 0."""
    items = {"output": None, "items": [{"name": "a"}, {"name": "b"}]}
    seen: list[Any] = []

    def look(value: Any) -> bool:
        seen.append(value)
        return True

    checks = define()
    for path in ("output", "items.0.name", "items.*.name"):
        checks.evaluate_field(path, look)
    assert checks.evaluate(items).passed
    # Each in a thread of its own: in any order.
    assert sorted(map(repr, seen)) == sorted(map(repr, [None, "a", ["a", "b"]]))
    with pytest.raises(FieldMissing) as caught:
        define().evaluate_field("usage.total", fine).evaluate({"output": 1, "usage": {"sum": 3}})
    assert str(caught.value).split("\n") == [
        "usage.total: 'usage' has no field 'total'", "Fix: choose one of: sum",
    ]  # fmt: skip


def test_field_ruling_every_configuration_needs_results() -> None:
    """Field ruling: a target, or recorded results for each; several with neither is an error."""
    checks = define().evaluate_field("output", fine)
    both: Any = {"a": {"add": 1}, "b": {"add": 2}}
    anew = checks.evaluate({"input": 1}, target=lambda n, *, add: n + add, configurations=both)
    assert [result.output for result in anew.results] == [2, 3]
    recorded = {name: {"output": name} for name in both}
    assert checks.evaluate({"input": 1}, recorded=recorded).rank_by("output.score").best == "a"
    with pytest.raises(ConfigError, match="the configurations a, b have no recorded results"):
        checks.evaluate({"output": 1}, configurations=both)


def test_field_ruling_ties_by_name_and_missing_last() -> None:
    """Field ruling: `rank_by` ranks by the value, in either order."""
    checks = define().evaluate_field("output", fine)
    recorded = {
        "d": {"output": 1}, "c": {"output": None}, "b": {"output": 2}, "a": {"output": 2},
    }  # fmt: skip
    report = checks.evaluate({"input": "x"}, recorded=recorded)
    ranked = [[place.configuration for place in report.rank_by("output", order).places] for order in ("asc", "desc")]
    assert ranked == [["d", "a", "b", "c"], ["a", "b", "d", "c"]]


def test_field_ruling_retention_keeps_by_days_or_by_count() -> None:
    """Field ruling: deleted only when both are exceeded; one alone rules; none keeps all."""
    now = datetime(2026, 1, 31, tzinfo=UTC)
    runs = [RunMetadata(str(days), "exam", now - timedelta(days=days)) for days in (0, 5, 9)]

    def left(*limits: Any) -> int:
        keeps = Retention(*limits).keeps
        return sum(keeps(place, run.started_at, now) for place, run in enumerate(runs))

    assert [left(5, 1), left(1, 2), left(5, None), left(None, 1), left(None, None)] == [2, 2, 2, 1, 3]


def test_field_ruling_both_ends_of_a_range_count(tmp_path: Path) -> None:
    """Field ruling: `date_range` includes both ends, tags must all match, newest first."""
    checks = define("exam").evaluate_field("output", fine)
    checks.history(tags={"a": "1", "b": "2"}, where=tmp_path / "h.db")
    first, second = checks.evaluate({"output": 1}), checks.evaluate({"output": 2})
    assert first.metadata is not None
    assert second.metadata is not None
    ends = (first.metadata.started_at, second.metadata.started_at)
    request = checks.history.query(date_range=ends, tags={"b": "2", "a": "1"})
    assert [report.run_id for report in request] == [second.run_id, first.run_id]
    assert checks.history.query(tags={"a": "1", "b": "3"}) == []
