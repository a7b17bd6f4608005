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
    from proctor.datasets.dataset import Dataset
    from proctor.datasets.iterator import IteratorDataset
    from proctor.datasets.jsonl import JSONLDataset
    from proctor.datasets.table import CSVDataset
    from proctor.errors import ProctorError
    from proctor.evaluators.attach import attach
    from proctor.evaluators.combination import all_of, any_of, combine, negate, weighted
    from proctor.evaluators.marking import evaluator
    from proctor.evaluators.matching import (
        contains,
        exact_match,
        json_subset,
        regex_match,
        within_tolerance,
    )
    from proctor.evaluators.questions import question_format, starter_phrase
    from proctor.history.sqlite import SQLiteHistory
    from proctor.metrics.registry import MetricRegistry
    from proctor.ports import Evaluator, Metric, SessionEvaluator
    from proctor.records.metric import MetricValue
    from proctor.records.progress import ProgressEvent, only_events
    from proctor.records.report import EvalReport
    from proctor.records.run import RunMetadata, RunOptions
    from proctor.records.sample import Sample
    from proctor.records.score import Score
    from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
    from proctor.records.trial import Configuration, EvalResult, Reply, Trial
    from proctor.reports.json import JSONReporter
    from proctor.reports.markdown import MarkdownReporter
    from proctor.runner import EvalRunner
    from proctor.sessions import current_session, record
    from proctor.targets.command import CommandTarget
    from proctor.targets.http import HttpTarget
    from proctor.targets.recorded import RecordedTarget
    from proctor.version import VERSION as __version__

_HOMES = {
    "api": ("aevaluate", "arescore", "evaluate", "rescore"),
    "datasets.dataset": ("Dataset",),
    "datasets.iterator": ("IteratorDataset",),
    "datasets.jsonl": ("JSONLDataset",),
    "datasets.table": ("CSVDataset",),
    "errors": ("ProctorError",),
    "evaluators.attach": ("attach",),
    "evaluators.combination": ("all_of", "any_of", "combine", "negate", "weighted"),
    "evaluators.marking": ("evaluator",),
    "evaluators.matching": (
        "contains",
        "exact_match",
        "json_subset",
        "regex_match",
        "within_tolerance",
    ),
    "evaluators.questions": ("question_format", "starter_phrase"),
    "history.sqlite": ("SQLiteHistory",),
    "metrics.registry": ("MetricRegistry",),
    "ports": ("Evaluator", "Metric", "SessionEvaluator"),
    "records.metric": ("MetricValue",),
    "records.progress": ("ProgressEvent", "only_events"),
    "records.report": ("EvalReport",),
    "records.run": ("RunMetadata", "RunOptions"),
    "records.sample": ("Sample",),
    "records.score": ("Score",),
    "records.session": ("Message", "ModelCall", "Session", "ToolCall", "Usage"),
    "records.trial": ("Configuration", "EvalResult", "Reply", "Trial"),
    "reports.json": ("JSONReporter",),
    "reports.markdown": ("MarkdownReporter",),
    "runner": ("EvalRunner",),
    "sessions": ("current_session", "record"),
    "targets.command": ("CommandTarget",),
    "targets.http": ("HttpTarget",),
    "targets.recorded": ("RecordedTarget",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CSVDataset",
    "CommandTarget",
    "Configuration",
    "Dataset",
    "EvalReport",
    "EvalResult",
    "EvalRunner",
    "Evaluator",
    "HttpTarget",
    "IteratorDataset",
    "JSONLDataset",
    "JSONReporter",
    "MarkdownReporter",
    "Message",
    "Metric",
    "MetricRegistry",
    "MetricValue",
    "ModelCall",
    "ProctorError",
    "ProgressEvent",
    "RecordedTarget",
    "Reply",
    "RunMetadata",
    "RunOptions",
    "SQLiteHistory",
    "Sample",
    "Score",
    "Session",
    "SessionEvaluator",
    "ToolCall",
    "Trial",
    "Usage",
    "__version__",
    "aevaluate",
    "all_of",
    "any_of",
    "arescore",
    "attach",
    "combine",
    "contains",
    "current_session",
    "evaluate",
    "evaluator",
    "exact_match",
    "json_subset",
    "negate",
    "only_events",
    "question_format",
    "record",
    "regex_match",
    "rescore",
    "starter_phrase",
    "weighted",
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
