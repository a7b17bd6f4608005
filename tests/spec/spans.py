"""Spans, a target and small evaluators that the tests of the field spec share."""

from __future__ import annotations

from typing import Any

from proctor import FieldContext, Reply, Score, Usage, define

GOOD = "The museum opens at nine [1]. The museum closes at five [2]."
DRIFTING = "Whales sing at night [7]. My uncle was born in Lisbon in 1931 [8]."
SPAN = {
    "id": "span-1",
    "input": "When is the museum open?",
    "context": "[1] The museum opens at nine. [2] The museum closes at five.",
    "output": GOOD,
    "usage": {"input_tokens": 300, "output_tokens": 200, "total_tokens": 500},
    "latency_ms": 300.0,
    "configuration": {"model": "gpt-4o"},
}


def agent(question: str, *, temperature: float = 0.0) -> Reply:
    """A target whose answers get longer, slower and less to the point with the temperature."""
    text = GOOD if temperature < 0.9 else DRIFTING
    tokens = 400 + round(100 * temperature)
    return Reply(text, Usage(tokens - 200, 200), latency_ms=200 + 400 * temperature)


def passes(output: Any) -> bool:
    return True


def fails(output: Any) -> bool:
    return False


def raises(output: Any) -> bool:
    raise ValueError("the evaluator is broken")


def half(output: Any) -> Score:
    return Score(0.5, True, "half")


def quarter(output: Any) -> Score:
    return Score(0.25, False, "a quarter")


class Recorder:
    """An evaluator that keeps the field context it is given."""

    def __init__(self) -> None:
        self.contexts: list[FieldContext] = []

    def evaluate(self, field_context: FieldContext, **options: Any) -> bool:
        self.contexts.append(field_context)
        return True


def context_of(field: str, span: dict[str, Any], alias: str | None = None) -> FieldContext:
    """The context that an evaluator of a field gets when a span is evaluated."""
    recorder = Recorder()
    checks = define().select(field, as_=alias) if alias else define()
    checks.evaluate_field(alias or field, recorder).evaluate(span)
    return recorder.contexts[0]


def combined(*evaluators: Any, how: Any = "and", span: Any = None) -> Any:
    """The result of the field `output` with some evaluators."""
    checks = define().evaluate_field("output", *evaluators, combine_with=how)
    return checks.evaluate(span or SPAN).field_results["output"]
