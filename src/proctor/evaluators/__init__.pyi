# Written by tools/generate.py from EXPORTS in proctor.evaluators.
from proctor.evaluators.bound_evaluator import attach as attach
from proctor.evaluators.combination import all_of as all_of
from proctor.evaluators.combination import any_of as any_of
from proctor.evaluators.combination import combine as combine
from proctor.evaluators.combination import negate as negate
from proctor.evaluators.combination import threshold as threshold
from proctor.evaluators.combination import weighted as weighted
from proctor.evaluators.decorator import evaluator as evaluator
from proctor.evaluators.fields import field as field
from proctor.evaluators.matching import contains as contains
from proctor.evaluators.matching import exact_match as exact_match
from proctor.evaluators.matching import json_subset as json_subset
from proctor.evaluators.matching import regex_match as regex_match
from proctor.evaluators.matching import within_tolerance as within_tolerance
from proctor.evaluators.numeric.numbers import numeric_answer as numeric_answer
from proctor.evaluators.opinions import panel as panel
from proctor.evaluators.opinions import prefer as prefer
from proctor.evaluators.opinions import with_canary as with_canary
from proctor.evaluators.performance import latency as latency
from proctor.evaluators.performance import throughput as throughput
from proctor.evaluators.performance import token_efficiency as token_efficiency
from proctor.evaluators.questions import question_format as question_format
from proctor.evaluators.questions import starter_phrase as starter_phrase
from proctor.evaluators.regression import latency_regression as latency_regression
from proctor.evaluators.regression import no_regression as no_regression
from proctor.evaluators.regression import token_regression as token_regression
from proctor.evaluators.rubrics import rubric as rubric
from proctor.evaluators.rubrics import rubric_evaluators as rubric_evaluators
from proctor.evaluators.rules import ends_with as ends_with
from proctor.evaluators.rules import keywords as keywords
from proctor.evaluators.rules import letter_case as letter_case
from proctor.evaluators.rules import occurrences as occurrences
from proctor.evaluators.rules import output_language as output_language
from proctor.evaluators.rules import starts_with as starts_with
from proctor.evaluators.rules import text_count as text_count
from proctor.evaluators.safety.detection import bias_detection as bias_detection
from proctor.evaluators.safety.detection import compliance as compliance
from proctor.evaluators.safety.detection import toxicity_detection as toxicity_detection
from proctor.evaluators.session import all_tools_succeeded as all_tools_succeeded
from proctor.evaluators.session import slice_contains as slice_contains
from proctor.evaluators.session import token_usage_under as token_usage_under
from proctor.evaluators.session import tool_call_count as tool_call_count
from proctor.evaluators.session import tool_called as tool_called
from proctor.evaluators.session import tool_not_called as tool_not_called
from proctor.evaluators.session import tool_sequence as tool_sequence
from proctor.evaluators.statistical import consistency as consistency
from proctor.evaluators.statistical import effect_size as effect_size
from proctor.evaluators.statistical import statistical_significance as statistical_significance
from proctor.evaluators.structural import format_compliance as format_compliance
from proctor.evaluators.structural import json_validity as json_validity
from proctor.evaluators.structural import schema_match as schema_match
from proctor.evaluators.text.quality import coherence as coherence
from proctor.evaluators.text.quality import hallucination_detection as hallucination_detection
from proctor.evaluators.text.quality import relevance as relevance
from proctor.evaluators.text.quality import semantic_similarity as semantic_similarity

__all__ = [
    "all_of",
    "all_tools_succeeded",
    "any_of",
    "attach",
    "bias_detection",
    "coherence",
    "combine",
    "compliance",
    "consistency",
    "contains",
    "effect_size",
    "ends_with",
    "evaluator",
    "exact_match",
    "field",
    "format_compliance",
    "hallucination_detection",
    "json_subset",
    "json_validity",
    "keywords",
    "latency",
    "latency_regression",
    "letter_case",
    "negate",
    "no_regression",
    "numeric_answer",
    "occurrences",
    "output_language",
    "panel",
    "prefer",
    "question_format",
    "regex_match",
    "relevance",
    "rubric",
    "rubric_evaluators",
    "schema_match",
    "semantic_similarity",
    "slice_contains",
    "starter_phrase",
    "starts_with",
    "statistical_significance",
    "text_count",
    "threshold",
    "throughput",
    "token_efficiency",
    "token_regression",
    "token_usage_under",
    "tool_call_count",
    "tool_called",
    "tool_not_called",
    "tool_sequence",
    "toxicity_detection",
    "weighted",
    "with_canary",
    "within_tolerance",
]
EXPORTS: dict[str, tuple[str, ...]]
