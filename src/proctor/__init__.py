"""Proctor: evaluate LLM programs and agents, and know whether a change made them better.

    from proctor import evaluate, exact_match

    report = evaluate(my_target, "qa.jsonl", [exact_match])
    print(report.pass_rate)

`__all__` is what a first script needs. Everything else is in the namespaces `proctor.evaluators`,
`proctor.judges`, `proctor.models`, `proctor.datasets`, `proctor.targets`, `proctor.mailboxes`,
`proctor.metrics`, `proctor.reports` and `proctor.testing`. Names are loaded on first use, so
`import proctor` costs next to nothing. `tools/generate.py` writes the type stub from the table.
"""

from __future__ import annotations

from proctor.core.lazy import lazy_names
from proctor.version import VERSION as __version__

# Module -> the public names that it defines.
EXPORTS = {
    "comparison.report": ("EvalReport",),
    "datasets.dataset": ("Dataset", "IteratorDataset"),
    "datasets.json_document": ("JSONDataset",),
    "datasets.jsonl": ("JSONLDataset",),
    "datasets.sessions": ("SessionDataset",),
    "datasets.table": ("CSVDataset",),
    "errors": ("FieldMissing", "ProctorError"),
    "evaluators.bound_evaluator": ("attach",),
    "evaluators.combination": ("all_of", "any_of", "combine", "negate", "weighted"),
    "evaluators.fields": ("field",),
    "evaluators.judges.claims": ("grounded_claims",),
    "evaluators.judges.pairwise": ("position_bias", "preferences_in"),
    "evaluators.judges.scale": ("JudgeOutput", "PASSING_RATINGS", "RATING_VALUES", "Rating"),
    "evaluators.llm": ("llm_judge", "quality_score", "rubric_evaluation"),
    "evaluators.decorator": ("evaluator",),
    "evaluators.matching": ("contains", "exact_match", "json_subset", "regex_match", "within_tolerance"),
    "evaluators.numeric.numbers": ("numeric_answer",),
    "evaluators.opinions": ("panel", "panel_agreement", "prefer", "with_canary"),
    "evaluators.performance": ("latency", "throughput", "token_efficiency"),
    "evaluators.questions": ("question_format", "starter_phrase"),
    "evaluators.regression": ("latency_regression", "no_regression", "token_regression"),
    "evaluators.rubric_files": ("load_rubrics",),
    "evaluators.rubrics": ("EvaluationConfig", "RubricScorer", "rubric", "rubric_evaluators"),
    "evaluators.safety.detection": ("bias_detection", "compliance", "toxicity_detection"),
    "evaluators.session": (
        "all_tools_succeeded",
        "slice_contains",
        "token_usage_under",
        "tool_call_count",
        "tool_called",
        "tool_not_called",
        "tool_sequence",
    ),
    "evaluators.statistical": ("consistency", "effect_size", "statistical_significance"),
    "evaluators.structural": ("format_compliance", "json_validity", "schema_match"),
    "evaluators.text.quality": ("coherence", "hallucination_detection", "relevance", "semantic_similarity"),
    "history.postgres": ("PostgresHistory",),
    "history.sqlite": ("SQLiteHistory",),
    "mailboxes.memory": ("InMemoryMailbox",),
    "mailboxes.redis": ("RedisMailbox",),
    "mailboxes.sqs": ("SQSMailbox",),
    "metrics.registry": ("MetricRegistry",),
    "models.anthropic": ("AnthropicAdapter",),
    "models.model_calls": ("aask", "ask"),
    "models.gemini": ("GeminiAdapter",),
    "models.openai": ("OpenAIAdapter",),
    "models.prompts": ("MarkdownSection", "Prompt", "PromptTemplate"),
    "models.wrappers.cached": ("Cached", "DiskCache"),
    "models.wrappers.cassette": ("RecordingModel", "ReplayModel"),
    "models.wrappers.limits": ("Budgeted", "Paced"),
    "ports": (
        *("DatasetLike", "Embedder", "Evaluator", "EvaluatorLike", "Mailbox"),
        *("ProviderAdapter", "SessionEvaluator", "TargetLike"),
    ),
    "records.comparison": ("Comparison",),
    "records.fields.context": ("FieldContext",),
    "records.mail": ("DeadLetter", "EvalRequest"),
    "records.metric": ("Metric", "MetricValue"),
    "records.model": ("ModelRequest", "ModelResponse", "ToolSpec"),
    "records.progress": ("ProgressEvent", "filter_events"),
    "records.rubric": ("ChatSession", "Rubric", "RubricSet"),
    "records.run": ("Budget", "Retention", "RunMetadata", "RunOptions"),
    "records.sample": ("Sample",),
    "records.score": ("Score",),
    "records.session": ("Message", "ModelCall", "Session", "SessionView", "ToolCall", "Usage"),
    "records.trial": ("Configuration", "EvalResult", "Reply", "Trial"),
    "reports.json": ("JSONReporter",),
    "reports.markdown": ("MarkdownReporter",),
    "sessions.current": ("current_session", "record"),
    "targets.command": ("CommandTarget",),
    "targets.conversation": ("ConversationTarget",),
    "targets.http": ("HttpTarget",),
    "targets.main_loop.bus": ("EventBus",),
    "targets.main_loop.loop": ("MainLoop", "Response"),
    "targets.main_loop.tools": ("Tool", "tool"),
    "targets.model": ("ModelTarget",),
    "targets.recorded": ("RecordedTarget",),
    "wiring.compare_runs": ("compare",),
    "wiring.definition.definition": ("Definition", "configuration", "define"),
    "wiring.dispatch": ("Submission", "collect_results", "submit_dataset"),
    "wiring.evaluate": ("aevaluate", "arescore", "evaluate", "rescore"),
    "wiring.loops": ("EvalLoop", "EvalRunner"),
    "wiring.registry": ("register_evaluator",),
}

__all__ = [
    # Run and compare.
    *("evaluate", "aevaluate", "rescore", "compare", "define", "configuration", "EvalRunner", "EvalLoop"),
    *("MainLoop", "tool", "ask"),
    # Evaluators.
    *("evaluator", "all_of", "any_of", "contains", "exact_match", "field", "llm_judge", "load_rubrics"),
    *("regex_match", "schema_match", "semantic_similarity", "tool_called", "RubricScorer"),
    # Records.
    *("Sample", "Dataset", "Score", "Session", "SessionView", "Message", "ModelCall", "ToolCall", "Usage", "Trial"),
    *("Reply", "EvalResult", "EvalReport", "Comparison", "Configuration", "Rubric", "Prompt", "Budget", "record"),
    *("SQLiteHistory", "ProctorError"),
]

__getattr__, __dir__ = lazy_names("proctor", EXPORTS, [*__all__, "__version__"])
