"""Evaluators: functions that score an output, usually against an expected value."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# The public names of each module.
EXPORTS = {
    "evaluators.bound_evaluator": ("attach",),
    "evaluators.combination": ("all_of", "any_of", "combine", "negate", "threshold", "weighted"),
    "evaluators.fields": ("field",),
    "evaluators.decorator": ("evaluator",),
    "evaluators.matching": ("contains", "exact_match", "json_subset", "regex_match", "within_tolerance"),
    "evaluators.numeric.numbers": ("numeric_answer",),
    "evaluators.opinions": ("panel", "prefer", "with_canary"),
    "evaluators.performance": ("latency", "throughput", "token_efficiency"),
    "evaluators.questions": ("question_format", "starter_phrase"),
    "evaluators.regression": ("latency_regression", "no_regression", "token_regression"),
    "evaluators.rubrics": ("rubric", "rubric_evaluators"),
    "evaluators.rules": (
        "ends_with",
        "keywords",
        "letter_case",
        "occurrences",
        "output_language",
        "starts_with",
        "text_count",
    ),
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
}

__all__ = sorted(name for names in EXPORTS.values() for name in names)

__getattr__, __dir__ = lazy_names("proctor.evaluators", EXPORTS)
