"""The rules that settle what the specifications leave open, one test for each that holds here.

Rulings 1 to 6, 8 and 9 are named where they are proven: records, metrics, engine and history.
Baselines (7), mailboxes, fields, comparisons and rubrics have no part in this version.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
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
    evaluate,
    exact_match,
    question_format,
    record,
    starter_phrase,
    within_tolerance,
)
from proctor.errors import DatasetError, EvaluatorError, RunStopped
from proctor.reports.json import JSONReporter, load
from tests.surroundings import samples, shout


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
    assert "expected" in str(caught.value)
    assert "found" in str(caught.value)


def test_loop_ruling_duplicate_ids_are_refused(tmp_path: Path) -> None:
    """Loop ruling: duplicate ids are refused, both lines named; blank lines are passed over."""
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
    assert "passes with value 0" in " ".join((within_tolerance.__doc__ or "").split())


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


def test_runner_ruling_time_outs_are_real_and_said() -> None:
    """Runner ruling: a blocking target is left in its thread, and the report says so."""

    def target(text: str) -> str:
        time.sleep(4.0)
        return text

    began = time.monotonic()
    report = evaluate(target, samples(1), exact_match, timeout=0.1, history=False)
    assert time.monotonic() - began < 3.0
    assert report.results[0].error == "TimeoutError: the target took longer than 0.1 s"
    assert report.metadata is not None
    assert "thread" in report.metadata.warnings[0]


def test_runner_ruling_on_error_raise_stops_and_the_default_goes_on() -> None:
    """Runner ruling: by default a run goes on after an error; on_error="raise" stops it."""

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
        lambda topic: [f"shall we explore {topic} and lakes?"],
        [DomainRelevance(["rivers", "lakes"])],
        [Strategies()],
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
