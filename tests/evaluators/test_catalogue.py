"""The catalogue of built-in evaluators, as people read it."""

from __future__ import annotations

from inline_snapshot import snapshot

from proctor.evaluators.marking import EvaluatorInfo
from proctor.registry import Registry


def test_the_catalogue_is_enough_to_print() -> None:
    """Name, category, needs, parameters with types and defaults, and a summary."""
    registry = Registry.standard()
    assert "\n".join(map(_entry, registry.evaluators())) == snapshot("""\
combination/all_of
    Passes if all of its evaluators pass; the value is their mean.
    evaluators: list[evaluator]
    needs nothing
combination/any_of
    Passes if any of its evaluators passes; the value is the greatest.
    evaluators: list[evaluator]
    needs nothing
combination/negate
    Passes if its evaluator does not; the value is 1 minus its value.
    evaluator: evaluator
    needs nothing
combination/threshold
    Passes if the value of its evaluator is at least so much.
    evaluator: evaluator
    at_least: float
    needs nothing
combination/weighted
    Passes if the weighted mean of its evaluators reaches the threshold.
    evaluators: list[evaluator]
    threshold: float = 0.5
    needs nothing
llm/llm_judge
    A model rates the output by a criterion: excellent, good, fair, poor or wrong.
    adapter: model
    criterion: str | None = None
    rubric: str | None = None
    criteria: list[str] | None = None
    scale: tuple[float, float] = [1, 5]
    threshold: float | None = None
    reference: bool | None = None
    show_input: bool = True
    samples: int = 1
    combine: 'mean' | 'vote' = 'mean'
    logprobs: bool = False
    temperature: float | 'auto' | None = 'auto'
    max_tokens: int | None = None
    prompt: any = None
    needs nothing
llm/quality_score
    A model scores how good the output is as a whole; passes from `min_score` (0 to 1) up.
    adapter: model
    min_score: float = 0.7
    scale: tuple[float, float] = [1, 5]
    reference: bool | None = None
    show_input: bool = True
    samples: int = 1
    temperature: float | 'auto' | None = 'auto'
    max_tokens: int | None = None
    needs nothing
llm/rubric_evaluation
    A model scores the output by every criterion of a rubric; the value is the weighted mean.
    adapter: model
    rubric: any
    one_call: bool = True
    threshold: float = 0.7
    scale: tuple[float, float] = [1, 5]
    reference: bool | None = None
    show_input: bool = True
    temperature: float | 'auto' | None = 'auto'
    max_tokens: int | None = None
    prompt: any = None
    needs nothing
matching/contains
    Passes if the output contains what was expected; of several things it must contain all.
    case_sensitive: bool = True
    needs: expected
matching/exact_match
    Passes if the output equals what was expected.
    case_sensitive: bool = True
    needs: expected
matching/json_subset
    Passes if everything in the expected mapping is in the output too, at every depth.
    needs: expected
matching/regex_match
    Passes if a regular expression matches the output.
    pattern: str | None = None
    flags: str = ''
    mode: 'search' | 'match' | 'fullmatch' = 'search'
    needs nothing
matching/within_tolerance
    Passes if a number differs from the expected one by at most the tolerance.
    tolerance: float
    relative: bool = False
    needs: expected
opinions/panel
    Asks several judges at once and passes by majority, by their mean, or if all pass.
    judges: list[evaluator]
    rule: 'majority' | 'mean' | 'unanimous' = 'majority'
    threshold: float = 0.5
    needs nothing
opinions/prefer
    Asks a model, in both orders, whether the output is better than another answer.
    adapter: model
    criterion: str | None = None
    rival: str | None = None
    win_required: bool = False
    ties: bool = False
    show_input: bool = True
    needs: expected
opinions/with_canary
    Judges as its judge does, and now and then shows it a bad answer that asks for praise.
    judge: evaluator
    every: int = 10
    answer: str | None = None
    needs nothing
quality/semantic_similarity
    Passes if the output means about the same as what was expected.
    embedder: embedder = None
    threshold: float = 0.8
    needs: expected
questions/question_format
    Passes if every output is a well-formed question.
    require_capital: bool = True
    max_words: int | None = None
    needs nothing
questions/starter_phrase
    Passes if every question starts with one of the approved phrases.
    starters: list[str]
    needs nothing
session/all_tools_succeeded
    Passes if no tool call failed; also where no tool was called.
    needs: session
session/slice_contains
    Passes if the session has at least so many events of a type that a condition holds for.
    type: any
    predicate: any = None
    min_count: int = 1
    needs: session
session/token_usage_under
    Passes if the models used at most so many tokens, input and output together.
    max_tokens: int
    unknown: 'error' | 'skip' | 'fail' | 'pass' = 'error'
    needs: session
session/tool_call_count
    Passes if the tool was called at least `min_count` and at most `max_count` times.
    name: str | None = None
    min_count: int = 0
    max_count: int | None = None
    needs: session
session/tool_called
    Passes if the tool was called at least once.
    name: str
    needs: session
session/tool_not_called
    Passes if the tool was never called; also where no tool was called, or nothing recorded.
    name: str
    needs: session
session/tool_sequence
    Passes if the expected tools were called; the value is the share of them that was.
    expected: any = None
    mode: 'in_order' | 'any_order' | 'exact' = 'in_order'
    arguments: 'exact' | 'subset' | 'ignore' = 'exact'
    allow_extra: bool = True
    compare: dict[str, any] | None = None
    needs: session\
""")
    assert registry.warnings == []


def _entry(info: EvaluatorInfo) -> str:
    told = [
        f"{p.name}: {p.type}" + ("" if p.required else f" = {p.default!r}") for p in info.parameters
    ]
    needs = f"needs: {', '.join(info.needs)}" if info.needs else "needs nothing"
    return "\n    ".join([f"{info.category}/{info.name}", info.summary, *told, needs])
