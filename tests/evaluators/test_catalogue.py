"""The catalogue of built-in evaluators, as people read it."""

from __future__ import annotations

from inline_snapshot import snapshot

from proctor.evaluators.decorator import EvaluatorInfo
from proctor.wiring.registry import Registry


def test_the_catalogue_is_enough_to_print() -> None:
    registry = Registry.standard()
    assert "\n".join(map(_entry, registry.evaluators())) == snapshot("""\
combination/all_of
    Passes if all of its evaluators pass; the value is their mean.
    evaluators: list[evaluator]
    skipped: 'skip' | 'ignore' = 'skip'
    needs nothing
combination/any_of
    Passes if any of its evaluators passes; the value is the highest.
    evaluators: list[evaluator]
    skipped: 'skip' | 'ignore' = 'skip'
    needs nothing
combination/field
    Evaluates one field of a result and combines the scores.
    path: str
    evaluators: list[evaluator]
    combine: str | Callable[any] = 'and'
    name: str | None = None
    skipped: 'skip' | 'ignore' = 'skip'
    needs nothing
combination/negate
    Passes if its evaluator does not; the value is 1 minus its value.
    evaluator: evaluator
    needs nothing
combination/threshold
    Passes if the value of its evaluator is at least `threshold`.
    evaluator: evaluator
    threshold: float
    needs nothing
combination/weighted
    Passes if the weighted mean of its evaluators reaches the threshold.
    evaluators: list[evaluator]
    threshold: float = 0.5
    skipped: 'skip' | 'ignore' = 'skip'
    needs nothing
llm/llm_judge
    A model rates the output by a criterion: excellent, good, fair, poor or wrong.
    model: model
    criterion: str | None = None
    rubric: str | None = None
    criteria: list[str] | None = None
    scale: tuple[float, float] | str | None = None
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
    A model scores the overall quality of the output; passes at `threshold` (0 to 1) or higher.
    model: model
    threshold: float = 0.7
    scale: tuple[float, float] = [1, 5]
    reference: bool | None = None
    show_input: bool = True
    samples: int = 1
    temperature: float | 'auto' | None = 'auto'
    max_tokens: int | None = None
    needs nothing
llm/rubric_evaluation
    A model scores the output by every criterion of a rubric; the value is the weighted mean.
    model: model
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
    Passes if the output contains the expected value.
    case_sensitive: bool = True
    match: 'any' | 'all' | None = None
    needs: expected
matching/exact_match
    Passes if the output equals the expected value.
    case_sensitive: bool = True
    match: 'equal' | 'any' = 'equal'
    needs: expected
matching/json_subset
    Passes if the output contains everything in the expected mapping, at every depth.
    allow_fences: bool = False
    needs: expected
matching/regex_match
    Passes if a regular expression matches the output.
    pattern: str | None = None
    flags: str = ''
    mode: 'search' | 'match' | 'fullmatch' = 'search'
    needs nothing
matching/within_tolerance
    Passes if a number differs from the expected number by at most the tolerance.
    tolerance: float
    relative: bool = False
    needs: expected
numbers/numeric_answer
    Passes if the number that the output gives as its answer is the expected one.
    tolerance: float = 0.0
    relative: bool = False
    decimal: '.' | ',' = '.'
    needs: expected
opinions/panel
    Asks several judges concurrently; passes if the majority passes, if their mean is high enough, or if all pass.
    judges: list[evaluator]
    rule: 'majority' | 'mean' | 'unanimous' = 'majority'
    threshold: float = 0.5
    needs nothing
opinions/prefer
    Asks a model, in both orders, whether the output is better than another answer.
    model: model
    criterion: str | None = None
    rival: str | None = None
    win_required: bool = False
    ties: bool = False
    show_input: bool = True
    needs: expected
opinions/with_canary
    Scores like its judge, and sometimes shows the judge a bad answer that asks for praise.
    judge: evaluator
    every: int = 10
    answer: str | None = None
    needs nothing
performance/latency
    Passes if the latency is at most `max_ms` milliseconds.
    max_ms: float = 2000
    needs nothing
performance/throughput
    Passes if the target produced at least `min_tps` tokens per second.
    min_tps: float = 10
    needs nothing
performance/token_efficiency
    Passes if token usage is at most `max_increase_pct` percent above the baseline.
    max_increase_pct: float = 10
    needs nothing
quality/coherence
    Passes if the output is a coherent text.
    threshold: float = 0.8
    embedder: embedder = None
    model: model = None
    needs nothing
quality/hallucination_detection
    Passes if the sample's context supports everything that the output says.
    context: str = 'context'
    with_input: bool = False
    threshold: float | None = None
    embedder: embedder = None
    model: model = None
    nli: str | None = None
    needs nothing
quality/relevance
    Passes if the output addresses the input.
    threshold: float = 0.7
    embedder: embedder = None
    model: model = None
    needs nothing
quality/semantic_similarity
    Passes if the output means about the same as the expected value.
    embedder: embedder = None
    threshold: float = 0.8
    against: 'expected' | 'baseline' | None = None
    excerpts: bool | None = None
    model: model = None
    match: 'any' | None = None
    needs nothing
questions/question_format
    Passes if every output is a well-formed question.
    require_capital: bool = True
    max_words: int | None = None
    needs nothing
questions/starter_phrase
    Passes if every question starts with one of the approved phrases.
    starters: list[str]
    needs nothing
regression/latency_regression
    Passes if latency did not rise by more than `max_ms` milliseconds over the baseline.
    max_ms: float = 200
    needs nothing
regression/no_regression
    Passes if the field is not worse than in the baseline.
    direction: 'auto' | 'higher' | 'lower' = 'auto'
    tolerance: float = 0.0
    needs nothing
regression/token_regression
    Passes if token usage did not rise by more than `max_pct` percent of the baseline.
    max_pct: float = 10
    needs nothing
rules/ends_with
    Passes if the output ends with one of the phrases, ignoring trailing whitespace.
    phrases: str | list[str]
    paragraph: int | None = None
    separator: str | None = None
    whole_words: bool = True
    case_sensitive: bool = False
    needs nothing
rules/keywords
    Passes if the output has the words to include and none of the words to exclude.
    include: str | list[str] = []
    exclude: str | list[str] = []
    need: 'all' | 'any' = 'all'
    whole_words: bool = True
    case_sensitive: bool = False
    needs nothing
rules/letter_case
    Passes if all letters of the output are lower case, upper case, or every word is capitalized.
    case: 'lower' | 'upper' | 'title' = 'lower'
    needs nothing
rules/occurrences
    Passes if a string, or a regular expression, occurs the required number of times.
    text: str | None = None
    pattern: str | None = None
    at_least: int | None = None
    at_most: int | None = None
    exactly: int | None = None
    whole_words: bool = True
    case_sensitive: bool = False
    needs nothing
rules/output_language
    Passes if the output is written in a language, given by its ISO 639 code ("de", "nb").
    language: str
    needs nothing
rules/starts_with
    Passes if the output starts with one of the phrases, ignoring leading whitespace.
    phrases: str | list[str]
    paragraph: int | None = None
    separator: str | None = None
    whole_words: bool = True
    case_sensitive: bool = False
    needs nothing
rules/text_count
    Passes if the output has the required number of words, sentences, paragraphs or bullets.
    of: 'characters' | 'words' | 'capital_words' | 'sentences' | 'lines' | 'paragraphs' | 'bullets' | 'numbered_items' | 'headings' | 'highlights' | 'placeholders' | 'code_blocks' | 'links' = 'words'
    at_least: int | None = None
    at_most: int | None = None
    exactly: int | None = None
    separator: str | None = None
    distinct: bool = False
    needs nothing
safety/bias_detection
    Passes if the output has no gender, race, or cultural bias.
    of: evaluator = None
    threshold: float = 0.5
    model: model | None = None
    needs nothing
safety/compliance
    Passes if the output adheres to content policies; the value is the fraction of policies it follows.
    policies: str | list[str] = ['pii', 'secrets']
    refusal: 'forbidden' | 'required' | None = None
    claims: str | list[str] = []
    near: float = 0.75
    rules: dict[str, any] | None = None
    model: model | None = None
    embedder: embedder = None
    needs nothing
safety/toxicity_detection
    Passes if the output has no offensive or harmful language.
    threshold: float = 0.6
    model: model | None = None
    needs nothing
session/all_tools_succeeded
    Passes if no tool call failed, or if no tool was called.
    words: bool = True
    needs: session
session/rubric
    A model scores the whole session by one rubric, on the rubric's scale.
    model: model
    rubric: any
    rubrics: any = None
    prompt: any = None
    scale: tuple[float, float] = [1.0, 5.0]
    threshold: float = 0.7
    temperature: float | None = 0.1
    max_tokens: int | None = 1024
    timeout: float | None = None
    max_content_chars: int = 4000
    max_session_chars: int = 100000
    retry_on_parse_failure: bool = True
    needs: session
session/simulated_user_role
    A model checks the simulated user of a conversation, not the target: did it stay in its role?
    model: model
    temperature: float | 'auto' | None = 'auto'
    max_tokens: int | None = None
    needs: session
session/slice_contains
    Passes if at least `min_count` events of a type satisfy a condition.
    type: any
    predicate: any = None
    min_count: int = 1
    needs: session
session/token_usage_under
    Passes if the models used at most `max_tokens` tokens, input and output together.
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
    Passes if the tool was never called.
    name: str
    needs: session
session/tool_sequence
    Passes if the expected tools were called; the value is the fraction of them that was called.
    expected: any = None
    mode: 'in_order' | 'any_order' | 'exact' = 'in_order'
    arguments: 'exact' | 'subset' | 'ignore' = 'exact'
    allow_extra: bool = True
    compare: dict[str, any] | None = None
    needs: session
statistical/consistency
    Passes if the field varies little from epoch to epoch.
    std_dev: float = 0.1
    needs: epochs
statistical/effect_size
    Passes if the difference from the baseline is large compared with the spread of the values.
    cohen_d: float = 0.5
    direction: 'any' | 'higher' | 'lower' = 'any'
    paired: bool = False
    needs: epochs
statistical/statistical_significance
    Passes if the field differs from the baseline by more than chance would explain.
    p_value: float = 0.05
    direction: 'any' | 'higher' | 'lower' = 'any'
    paired: bool = False
    method: 'auto' | 't' | 'permutation' = 'auto'
    seed: int = 0
    needs: epochs
structural/format_compliance
    Passes if the output matches a format, or any of several formats.
    format: str | list[str]
    pattern: str | None = None
    columns: int | list[str] | None = None
    header: bool | None = None
    delimiter: str | None = None
    schemes: list[str] | None = None
    allow_fences: bool = False
    needs nothing
structural/json_validity
    Passes if the output is valid JSON according to RFC 8259.
    allow_fences: bool = False
    needs nothing
structural/schema_match
    Passes if the output is valid against a JSON Schema; the details list all errors with their paths.
    schema: any
    draft: '4' | '6' | '7' | '2019-09' | '2020-12' | None = None
    formats: bool = True
    parse: bool = True
    allow_fences: bool = False
    schemas: dict[str, any] | None = None
    needs nothing\
""")
    assert registry.warnings == []


def _entry(info: EvaluatorInfo) -> str:
    message = [f"{p.name}: {p.type}" + ("" if p.required else f" = {p.default!r}") for p in info.parameters]
    needs = f"needs: {', '.join(info.needs)}" if info.needs else "needs nothing"
    return "\n    ".join([f"{info.category}/{info.name}", info.summary, *message, needs])
