"""User code that type checkers accept: everything that `evaluate` and its relatives take."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, assert_type

from proctor import (
    Dataset,
    DatasetLike,
    Definition,
    EvalLoop,
    EvalReport,
    EvalRequest,
    EvalResult,
    EvalRunner,
    Evaluator,
    EvaluatorLike,
    EventBus,
    FieldContext,
    InMemoryMailbox,
    JSONLDataset,
    Mailbox,
    MainLoop,
    MarkdownSection,
    OpenAIAdapter,
    Prompt,
    PromptTemplate,
    RecordedTarget,
    Reply,
    Sample,
    Score,
    Session,
    SessionEvaluator,
    SessionView,
    TargetLike,
    aevaluate,
    all_of,
    any_of,
    attach,
    collect_results,
    combine,
    contains,
    define,
    evaluate,
    evaluator,
    exact_match,
    field,
    llm_judge,
    negate,
    register_evaluator,
    rescore,
    submit_dataset,
    token_usage_under,
    tool_called,
    weighted,
    within_tolerance,
)
from proctor.judges import panel, with_canary

SAMPLES = [
    {"id": "1", "input": "red", "expected": "RED"},
    {"id": "2", "input": ["red", "blue"], "expected": {"first": "RED"}, "metadata": {"cluster": "colours"}},
]


# Targets


def shout(text: str, *, mark: str = "") -> str:
    return text.upper() + mark


async def shout_later(text: str) -> Reply:
    return Reply(text.upper())


class Agent:
    def execute(self, request: str) -> tuple[str, Session]:
        return request.upper(), Session()


class Chain:
    def invoke(self, values: dict[str, str], config: Mapping[str, Any] | None = None) -> str:
        return values["question"]


class FrameworkAgent:
    """As agents of Pydantic AI and the OpenAI Agents SDK are typed."""

    handoffs: ClassVar[list[str]] = []

    async def run(self, prompt: str, *, infer_name: bool = True) -> str:
        return f"{prompt} {infer_name}"


class AsyncChain:
    async def ainvoke(self, values: Any) -> str:
        return str(values)


class Shouter:
    def __call__(self, text: str) -> str:
        return text.upper()


def targets() -> None:
    evaluate(shout, SAMPLES, exact_match)
    evaluate(shout_later, SAMPLES, exact_match)
    evaluate(lambda text: text, SAMPLES, exact_match)
    evaluate(lambda text, *, mark: text + mark, SAMPLES, exact_match, configurations={"loud": {"mark": "!"}})
    evaluate(functools.partial(shout, mark="!"), SAMPLES, exact_match)
    evaluate(str.upper, SAMPLES, exact_match)
    evaluate(Agent(), SAMPLES, exact_match)
    evaluate(Agent().execute, SAMPLES, exact_match)
    evaluate(Chain(), SAMPLES, exact_match)
    evaluate(AsyncChain(), SAMPLES, exact_match)
    evaluate(FrameworkAgent(), SAMPLES, exact_match)
    evaluate(Shouter(), SAMPLES, exact_match)
    evaluate("openai:gpt-4o-mini", SAMPLES, exact_match)
    evaluate("app.py:answer", SAMPLES, exact_match)
    evaluate({"command": ["python", "answer.py"]}, SAMPLES, exact_match)
    evaluate(RecordedTarget("outputs.jsonl"), SAMPLES, exact_match)
    evaluate(None, SAMPLES, exact_match, fields={"tokens": "usage.total_tokens"})


# Datasets


@dataclass
class Question:
    id: str
    input: str
    expected: str


def stream() -> Iterator[dict[str, object]]:
    yield {"id": "1", "input": "red"}


class Questions:
    def __iter__(self) -> Iterator[Question]:
        return iter([Question("1", "red", "RED")])


def datasets(path: Path) -> None:
    evaluate(shout, "qa.jsonl", exact_match)
    evaluate(shout, path, exact_match)
    evaluate(shout, [Sample("1", "red", "RED"), Sample("2", 7)], exact_match)
    evaluate(shout, (Sample("1", "red", "RED"),), exact_match)
    evaluate(shout, [{"id": "1", "input": "red"}], exact_match)
    evaluate(shout, [Question("1", "red", "RED")], exact_match)
    evaluate(shout, Questions(), exact_match)
    evaluate(shout, stream(), exact_match)
    evaluate(shout, (Sample(str(n), n) for n in range(3)), exact_match)
    evaluate(shout, Dataset.load(path, str, str), exact_match)
    evaluate(shout, JSONLDataset(path), exact_match)


# Evaluators


def polite(output: str) -> bool:
    return "please" in output


async def graded(output: str, expected: str) -> float:
    return float(output == expected)


def searched(output: str, expected: str | None, session: SessionView) -> Score:
    return Score(1.0, True)


@evaluator(category="style")
def short(output: str, *, most: int = 80) -> bool:
    return len(output) <= most


def close_to(margin: float) -> Evaluator[float, float]:
    def evaluate(output: float, expected: float) -> Score:
        return Score(1.0, abs(output - expected) <= margin)

    return evaluate


class Length:
    evaluator_name = "length"

    def evaluate(self, field_context: FieldContext, **options: Any) -> dict[str, Any]:
        return {"passed": len(field_context.value) < 80}


def evaluators() -> None:
    evaluate(shout, SAMPLES, "exact_match")
    evaluate(shout, SAMPLES, ["exact_match", contains, {"llm_judge": {"criterion": "polite"}}])
    evaluate(shout, SAMPLES, [polite, graded, searched, short, lambda output: True])
    evaluate(shout, SAMPLES, [close_to(0.1), Length(), Length, all_of(polite, short), tool_called("search")])
    evaluate(shout, SAMPLES, {"same": exact_match, "nice": "contains"})
    evaluate(shout, SAMPLES, (exact_match, functools.partial(short, most=10)))
    unlike = [exact_match, all_of(contains, tool_called("search")), token_usage_under(max_tokens=7)]
    evaluate(shout, SAMPLES, unlike)
    rescore("latest", [polite, "contains"], name="again")
    register_evaluator(Length)
    attach(short, parameters={"most": 10}, threshold=0.5)
    combined = any_of(negate(contains), weighted((polite, 1), (short, 3)), combine([polite, Length()], len))
    field("output.text", [combined, panel([polite, graded]), with_canary(llm_judge("openai:gpt-4o", "polite"))])


# Names for what is passed on


def run(target: TargetLike, dataset: DatasetLike, checks: list[EvaluatorLike]) -> EvalReport:
    return evaluate(target, dataset, checks, concurrency=4, timeout=10.0)


async def run_later(target: TargetLike, dataset: DatasetLike, check: EvaluatorLike) -> AsyncIterator[float | None]:
    report = await aevaluate(target, dataset, check)
    assert_type(report, EvalReport)
    yield report.pass_rate


def runners(path: Path) -> None:
    runner = EvalRunner(shout, [exact_match, "contains"], concurrency=2)
    assert_type(runner.run(path, configurations=["loud"]), EvalReport)
    checks = define("letters").evaluate_field("output", polite, "contains").evaluate_with(Length, most=3)
    assert_type(checks, Definition)
    assert_type(checks.evaluate({"output": "Hello"}, target=shout), EvalReport)


# Generic protocols

plain: Evaluator = exact_match
texts: Evaluator[str, str] = contains
numbers: Evaluator[float, float] = within_tolerance(0.1)
wholes: Evaluator[int, int] = numbers
both: Evaluator[str, str] = all_of(exact_match, contains)
in_session: SessionEvaluator = searched
text_session: SessionEvaluator[str, str] = searched


# The loop of the specification


@dataclass(slots=True, frozen=True)
class QAParams:
    question: str


class QALoop(MainLoop[str, str]):
    def __init__(self, *, adapter: OpenAIAdapter, bus: EventBus) -> None:
        super().__init__(adapter=adapter, bus=bus)
        section = MarkdownSection[QAParams](title="Question", template="Answer concisely: $question", key="q")
        self._template = PromptTemplate[str](ns="qa", key="answer", name="qa", sections=[section])

    def initialize(self, request: str) -> tuple[Prompt[str], Session]:
        return Prompt(self._template).bind(QAParams(question=request)), Session()


def loop(path: Path) -> None:
    requests: Mailbox[EvalRequest[str, str]] = InMemoryMailbox(name="eval-requests")
    results: Mailbox[EvalResult] = InMemoryMailbox(name="eval-results")
    qa_loop = QALoop(adapter=OpenAIAdapter(model="gpt-4o"), bus=EventBus())
    eval_loop: EvalLoop[str, str, str] = EvalLoop(
        loop=qa_loop, evaluator=exact_match, requests=requests, results=results
    )
    eval_loop.run()
    typed: EvalLoop[str, str, str] = EvalLoop(loop=shout, evaluator=[contains, "exact_match"], requests=requests)
    untyped: EvalLoop = EvalLoop[str, str, str](loop="app.py:answer", evaluator=texts, requests=requests)
    typed.run(max_iterations=1)
    untyped.stop()
    dataset = Dataset.load(path, str, str)
    assert_type(dataset, Dataset[str, str])
    submit_dataset(dataset, requests)
    submit_dataset(SAMPLES, requests)
    report = collect_results(results, expected_count=len(dataset), timeout_seconds=600)
    assert_type(report, EvalReport)
