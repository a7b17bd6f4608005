"""User code with mistakes: each `type: ignore` hides one, and a type checker reports those that hide none."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from proctor import (
    EvalLoop,
    EvalRequest,
    EvalResult,
    EvalRunner,
    Evaluator,
    InMemoryMailbox,
    Mailbox,
    Score,
    SessionEvaluator,
    all_of,
    any_of,
    attach,
    contains,
    define,
    evaluate,
    exact_match,
    negate,
    rescore,
    submit_dataset,
    weighted,
)

SAMPLES = [{"id": "1", "input": "red"}]


def shout(text: str) -> str:
    return text.upper()


def nothing() -> str:
    return ""


def only_options(*, text: str) -> str:
    return text


def numeric(output: float, expected: float) -> Score:
    return Score(1.0, output == expected)


def targets() -> None:
    evaluate(42, SAMPLES, exact_match)  # type: ignore[arg-type]
    evaluate(nothing, SAMPLES, exact_match)  # type: ignore[arg-type]
    evaluate(only_options, SAMPLES, exact_match)  # type: ignore[arg-type]
    evaluate(lambda: "", SAMPLES, exact_match)  # type: ignore[arg-type]
    evaluate(["openai:gpt-4o"], SAMPLES, exact_match)  # type: ignore[arg-type]
    EvalRunner(None, exact_match)  # type: ignore[arg-type]
    define().evaluate({"output": ""}, target=3)  # type: ignore[arg-type]


def datasets(requests: Mailbox[EvalRequest[str, str]]) -> None:
    evaluate(shout, None, exact_match)  # type: ignore[arg-type]
    evaluate(shout, 42, exact_match)  # type: ignore[arg-type]
    evaluate(shout, {"id": "1", "input": "red"}, exact_match)  # type: ignore[dict-item]
    evaluate(shout, (n for n in range(3)), exact_match)  # type: ignore[misc]
    EvalRunner(shout, exact_match).run(7)  # type: ignore[arg-type]
    submit_dataset(7, requests)  # type: ignore[arg-type]


def evaluators() -> None:
    evaluate(shout, SAMPLES, 0.5)  # type: ignore[arg-type]
    rescore("latest", 7)  # type: ignore[arg-type]
    rescore(7, exact_match)  # type: ignore[arg-type]
    all_of("contains")  # type: ignore[arg-type]
    any_of(contains, 3)  # type: ignore[arg-type]
    negate(None)  # type: ignore[arg-type]
    weighted(exact_match)  # type: ignore[arg-type]
    attach("contains")  # type: ignore[arg-type]
    define().evaluate_field("output", 3)  # type: ignore[arg-type]
    define().evaluate_field("output").evaluate_with(None)  # type: ignore[arg-type]


def options() -> None:
    evaluate(shout, SAMPLES, exact_match, concurrency="4")  # type: ignore[arg-type]
    evaluate(shout, SAMPLES, exact_match, time_out=4)  # type: ignore[call-arg]
    evaluate(shout, SAMPLES, exact_match, on_error="stop")  # type: ignore[arg-type]
    EvalRunner(shout, exact_match, epochs="2")  # type: ignore[arg-type]


texts: Evaluator[str, str] = numeric  # type: ignore[assignment]
in_session: SessionEvaluator[str, str] = numeric  # type: ignore[assignment]
thirds: Evaluator[str, str, str]  # type: ignore[type-arg]


def loop(numbers: Mailbox[EvalRequest[int, int]], results: Mailbox[str]) -> None:
    EvalLoop[str, str, str](loop=shout, evaluator=exact_match, requests=numbers)  # type: ignore[arg-type]
    EvalLoop(loop=shout, evaluator=exact_match, requests=numbers, results=results)  # type: ignore[arg-type]
    EvalLoop(loop=shout, evaluator=3, requests=numbers)  # type: ignore[arg-type]
    EvalLoop(loop=3, evaluator=exact_match, requests=numbers)  # type: ignore[arg-type]
    boxes: InMemoryMailbox[EvalResult] = InMemoryMailbox("results", EvalRequest)  # type: ignore[arg-type]
    print(boxes)
