"""Proctor: evaluate LLM programs and agents, and know whether a change made them better.

    from proctor import evaluate, exact_match

    report = evaluate(my_target, "qa.jsonl", [exact_match])
    print(report.pass_rate)

Names are loaded when they are first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.api import aevaluate, arescore, evaluate, rescore
    from proctor.asking.ask import aask, ask
    from proctor.comparison.report import FieldReport
    from proctor.datasets.dataset import Dataset
    from proctor.datasets.iterator import IteratorDataset
    from proctor.datasets.json_document import JSONDataset
    from proctor.datasets.jsonl import JSONLDataset
    from proctor.datasets.table import CSVDataset
    from proctor.definition.definition import Definition, configuration, define
    from proctor.errors import FieldMissing, ProctorError
    from proctor.evaluators.attach import attach
    from proctor.evaluators.combination import all_of, any_of, combine, negate, weighted
    from proctor.evaluators.field import field
    from proctor.evaluators.judging.claims import grounded_claims
    from proctor.evaluators.judging.pairwise import position_bias, preferences_in
    from proctor.evaluators.judging.panel import panel_agreement
    from proctor.evaluators.judging.scale import PASSING_RATINGS, RATING_VALUES, JudgeOutput, Rating
    from proctor.evaluators.llm import llm_judge, quality_score, rubric_evaluation
    from proctor.evaluators.marking import evaluator
    from proctor.evaluators.matching import (
        contains,
        exact_match,
        json_subset,
        regex_match,
        within_tolerance,
    )
    from proctor.evaluators.numbers import numeric_answer
    from proctor.evaluators.opinions import panel, prefer, with_canary
    from proctor.evaluators.performance import latency, throughput, token_efficiency
    from proctor.evaluators.quality import (
        coherence,
        hallucination_detection,
        relevance,
        semantic_similarity,
    )
    from proctor.evaluators.questions import question_format, starter_phrase
    from proctor.evaluators.regression import latency_regression, no_regression, token_regression
    from proctor.evaluators.rubric_scorer import EvaluationConfig, RubricScorer
    from proctor.evaluators.rubrics import rubric, rubric_evaluators
    from proctor.evaluators.safety import bias_detection, compliance, toxicity_detection
    from proctor.evaluators.session import (
        all_tools_succeeded,
        slice_contains,
        token_usage_under,
        tool_call_count,
        tool_called,
        tool_not_called,
        tool_sequence,
    )
    from proctor.evaluators.statistical import consistency, effect_size, statistical_significance
    from proctor.evaluators.structural import format_compliance, json_validity, schema_match
    from proctor.fields.context import FieldContext
    from proctor.history.postgres import PostgresHistory
    from proctor.history.sqlite import SQLiteHistory
    from proctor.loops import EvalLoop, Submission, collect_results, submit_dataset
    from proctor.mailboxes.memory import InMemoryMailbox
    from proctor.mailboxes.redis import RedisMailbox
    from proctor.mailboxes.sqs import SQSMailbox
    from proctor.mainloop.bus import EventBus
    from proctor.mainloop.loop import MainLoop, Response
    from proctor.mainloop.tools import Tool, tool
    from proctor.metrics.registry import MetricRegistry
    from proctor.ports import (
        Embedder,
        Evaluator,
        Mailbox,
        Metric,
        ProviderAdapter,
        SessionEvaluator,
    )
    from proctor.prompts import MarkdownSection, Prompt, PromptTemplate
    from proctor.providers.anthropic import AnthropicAdapter
    from proctor.providers.gemini import GeminiAdapter
    from proctor.providers.openai import OpenAIAdapter
    from proctor.providers.wrappers.budgeted import Budgeted
    from proctor.providers.wrappers.cached import Cached, DiskKept
    from proctor.providers.wrappers.cassette import Recorded, Replay
    from proctor.providers.wrappers.paced import Paced
    from proctor.records.comparison import Comparison
    from proctor.records.mail import DeadLetter, EvalRequest
    from proctor.records.metric import MetricValue
    from proctor.records.model import ModelRequest, ModelResponse, ToolSpec
    from proctor.records.progress import ProgressEvent, only_events
    from proctor.records.report import EvalReport
    from proctor.records.retention import Retention
    from proctor.records.rubric import ChatSession, Rubric, RubricSet
    from proctor.records.run import Budget, RunMetadata, RunOptions
    from proctor.records.sample import Sample
    from proctor.records.score import Score
    from proctor.records.session import Message, ModelCall, Session, SessionView, ToolCall, Usage
    from proctor.records.trial import Configuration, EvalResult, Reply, Trial
    from proctor.registry import register_evaluator
    from proctor.reports.json import JSONReporter
    from proctor.reports.markdown import MarkdownReporter
    from proctor.rubrics.files import load_rubrics
    from proctor.runner import EvalRunner
    from proctor.session_dataset import SessionDataset
    from proctor.sessions import current_session, record
    from proctor.side_by_side import compare
    from proctor.targets.command import CommandTarget
    from proctor.targets.http import HttpTarget
    from proctor.targets.model import ModelTarget
    from proctor.targets.recorded import RecordedTarget
    from proctor.version import VERSION as __version__

_HOMES = {
    "api": ("aevaluate", "arescore", "evaluate", "rescore"),
    "asking.ask": ("aask", "ask"),
    "datasets.dataset": ("Dataset",),
    "datasets.iterator": ("IteratorDataset",),
    "datasets.json_document": ("JSONDataset",),
    "datasets.jsonl": ("JSONLDataset",),
    "datasets.table": ("CSVDataset",),
    "definition.definition": ("Definition", "configuration", "define"),
    "comparison.report": ("FieldReport",),
    "errors": ("FieldMissing", "ProctorError"),
    "evaluators.attach": ("attach",),
    "evaluators.combination": ("all_of", "any_of", "combine", "negate", "weighted"),
    "evaluators.field": ("field",),
    "evaluators.judging.claims": ("grounded_claims",),
    "evaluators.judging.pairwise": ("position_bias", "preferences_in"),
    "evaluators.judging.panel": ("panel_agreement",),
    "evaluators.judging.scale": ("JudgeOutput", "PASSING_RATINGS", "RATING_VALUES", "Rating"),
    "evaluators.llm": ("llm_judge", "quality_score", "rubric_evaluation"),
    "evaluators.rubrics": ("rubric", "rubric_evaluators"),
    "evaluators.marking": ("evaluator",),
    "evaluators.numbers": ("numeric_answer",),
    "evaluators.matching": (
        "contains",
        "exact_match",
        "json_subset",
        "regex_match",
        "within_tolerance",
    ),
    "evaluators.opinions": ("panel", "prefer", "with_canary"),
    "evaluators.performance": ("latency", "throughput", "token_efficiency"),
    "evaluators.quality": (
        "coherence",
        "hallucination_detection",
        "relevance",
        "semantic_similarity",
    ),
    "evaluators.questions": ("question_format", "starter_phrase"),
    "evaluators.regression": ("latency_regression", "no_regression", "token_regression"),
    "evaluators.rubric_scorer": ("EvaluationConfig", "RubricScorer"),
    "evaluators.safety": ("bias_detection", "compliance", "toxicity_detection"),
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
    "fields.context": ("FieldContext",),
    "loops": ("EvalLoop", "Submission", "collect_results", "submit_dataset"),
    "mailboxes.memory": ("InMemoryMailbox",),
    "mailboxes.redis": ("RedisMailbox",),
    "mailboxes.sqs": ("SQSMailbox",),
    "records.comparison": ("Comparison",),
    "records.mail": ("DeadLetter", "EvalRequest"),
    "history.postgres": ("PostgresHistory",),
    "history.sqlite": ("SQLiteHistory",),
    "mainloop.bus": ("EventBus",),
    "mainloop.loop": ("MainLoop", "Response"),
    "mainloop.tools": ("Tool", "tool"),
    "metrics.registry": ("MetricRegistry",),
    "ports": ("Embedder", "Evaluator", "Mailbox", "Metric", "ProviderAdapter", "SessionEvaluator"),
    "prompts": ("MarkdownSection", "Prompt", "PromptTemplate"),
    "providers.anthropic": ("AnthropicAdapter",),
    "providers.wrappers.budgeted": ("Budgeted",),
    "providers.wrappers.cached": ("Cached", "DiskKept"),
    "providers.wrappers.cassette": ("Recorded", "Replay"),
    "providers.gemini": ("GeminiAdapter",),
    "providers.openai": ("OpenAIAdapter",),
    "providers.wrappers.paced": ("Paced",),
    "registry": ("register_evaluator",),
    "records.metric": ("MetricValue",),
    "records.model": ("ModelRequest", "ModelResponse", "ToolSpec"),
    "records.progress": ("ProgressEvent", "only_events"),
    "records.report": ("EvalReport",),
    "records.retention": ("Retention",),
    "records.rubric": ("ChatSession", "Rubric", "RubricSet"),
    "records.run": ("Budget", "RunMetadata", "RunOptions"),
    "records.sample": ("Sample",),
    "records.score": ("Score",),
    "records.session": ("Message", "ModelCall", "Session", "SessionView", "ToolCall", "Usage"),
    "records.trial": ("Configuration", "EvalResult", "Reply", "Trial"),
    "reports.json": ("JSONReporter",),
    "reports.markdown": ("MarkdownReporter",),
    "rubrics.files": ("load_rubrics",),
    "runner": ("EvalRunner",),
    "session_dataset": ("SessionDataset",),
    "sessions": ("current_session", "record"),
    "side_by_side": ("compare",),
    "targets.command": ("CommandTarget",),
    "targets.http": ("HttpTarget",),
    "targets.model": ("ModelTarget",),
    "targets.recorded": ("RecordedTarget",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AnthropicAdapter",
    "Budget",
    "Budgeted",
    "CSVDataset",
    "Cached",
    "ChatSession",
    "CommandTarget",
    "Comparison",
    "Configuration",
    "Dataset",
    "DeadLetter",
    "Definition",
    "DiskKept",
    "Embedder",
    "EvalLoop",
    "EvalReport",
    "EvalRequest",
    "EvalResult",
    "EvalRunner",
    "EvaluationConfig",
    "Evaluator",
    "EventBus",
    "FieldContext",
    "FieldMissing",
    "FieldReport",
    "GeminiAdapter",
    "HttpTarget",
    "InMemoryMailbox",
    "IteratorDataset",
    "JSONDataset",
    "JSONLDataset",
    "JSONReporter",
    "JudgeOutput",
    "Mailbox",
    "MainLoop",
    "MarkdownReporter",
    "MarkdownSection",
    "Message",
    "Metric",
    "MetricRegistry",
    "MetricValue",
    "ModelCall",
    "ModelRequest",
    "ModelResponse",
    "ModelTarget",
    "OpenAIAdapter",
    "PASSING_RATINGS",
    "Paced",
    "PostgresHistory",
    "ProctorError",
    "ProgressEvent",
    "Prompt",
    "PromptTemplate",
    "ProviderAdapter",
    "RATING_VALUES",
    "Rating",
    "Recorded",
    "RecordedTarget",
    "RedisMailbox",
    "Replay",
    "Reply",
    "Response",
    "Retention",
    "Rubric",
    "RubricScorer",
    "RubricSet",
    "RunMetadata",
    "RunOptions",
    "SQLiteHistory",
    "SQSMailbox",
    "Sample",
    "Score",
    "Session",
    "SessionEvaluator",
    "SessionDataset",
    "SessionView",
    "Submission",
    "Tool",
    "ToolCall",
    "ToolSpec",
    "Trial",
    "Usage",
    "__version__",
    "aask",
    "aevaluate",
    "all_of",
    "all_tools_succeeded",
    "any_of",
    "arescore",
    "ask",
    "attach",
    "bias_detection",
    "coherence",
    "collect_results",
    "combine",
    "compare",
    "compliance",
    "configuration",
    "consistency",
    "contains",
    "current_session",
    "define",
    "effect_size",
    "evaluate",
    "evaluator",
    "exact_match",
    "field",
    "format_compliance",
    "grounded_claims",
    "hallucination_detection",
    "json_subset",
    "json_validity",
    "latency",
    "latency_regression",
    "llm_judge",
    "load_rubrics",
    "negate",
    "no_regression",
    "numeric_answer",
    "only_events",
    "panel",
    "panel_agreement",
    "position_bias",
    "prefer",
    "preferences_in",
    "quality_score",
    "question_format",
    "record",
    "regex_match",
    "register_evaluator",
    "relevance",
    "rescore",
    "rubric",
    "rubric_evaluation",
    "rubric_evaluators",
    "schema_match",
    "semantic_similarity",
    "slice_contains",
    "starter_phrase",
    "statistical_significance",
    "submit_dataset",
    "throughput",
    "token_efficiency",
    "token_regression",
    "token_usage_under",
    "tool",
    "tool_call_count",
    "tool_called",
    "tool_not_called",
    "tool_sequence",
    "toxicity_detection",
    "weighted",
    "with_canary",
    "within_tolerance",
]


def __getattr__(name: str) -> object:
    """Load a public name from its home the first time it is used."""
    if name == "__version__":
        from proctor.version import VERSION

        return VERSION
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'proctor' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"proctor.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
