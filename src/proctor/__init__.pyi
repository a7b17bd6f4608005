# Written by tools/generate.py from EXPORTS in proctor.
from proctor.comparison.report import EvalReport as EvalReport
from proctor.datasets.dataset import Dataset as Dataset
from proctor.datasets.dataset import IteratorDataset as IteratorDataset
from proctor.datasets.json_document import JSONDataset as JSONDataset
from proctor.datasets.jsonl import JSONLDataset as JSONLDataset
from proctor.datasets.sessions import SessionDataset as SessionDataset
from proctor.datasets.table import CSVDataset as CSVDataset
from proctor.errors import FieldMissing as FieldMissing
from proctor.errors import ProctorError as ProctorError
from proctor.evaluators.bound_evaluator import attach as attach
from proctor.evaluators.combination import all_of as all_of
from proctor.evaluators.combination import any_of as any_of
from proctor.evaluators.combination import combine as combine
from proctor.evaluators.combination import negate as negate
from proctor.evaluators.combination import weighted as weighted
from proctor.evaluators.decorator import evaluator as evaluator
from proctor.evaluators.fields import field as field
from proctor.evaluators.judges.claims import grounded_claims as grounded_claims
from proctor.evaluators.judges.pairwise import position_bias as position_bias
from proctor.evaluators.judges.pairwise import preferences_in as preferences_in
from proctor.evaluators.judges.scale import JudgeOutput as JudgeOutput
from proctor.evaluators.judges.scale import PASSING_RATINGS as PASSING_RATINGS
from proctor.evaluators.judges.scale import RATING_VALUES as RATING_VALUES
from proctor.evaluators.judges.scale import Rating as Rating
from proctor.evaluators.llm import llm_judge as llm_judge
from proctor.evaluators.llm import quality_score as quality_score
from proctor.evaluators.llm import rubric_evaluation as rubric_evaluation
from proctor.evaluators.matching import contains as contains
from proctor.evaluators.matching import exact_match as exact_match
from proctor.evaluators.matching import json_subset as json_subset
from proctor.evaluators.matching import regex_match as regex_match
from proctor.evaluators.matching import within_tolerance as within_tolerance
from proctor.evaluators.numeric.numbers import numeric_answer as numeric_answer
from proctor.evaluators.opinions import panel as panel
from proctor.evaluators.opinions import panel_agreement as panel_agreement
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
from proctor.evaluators.rubric_files import load_rubrics as load_rubrics
from proctor.evaluators.rubrics import EvaluationConfig as EvaluationConfig
from proctor.evaluators.rubrics import RubricScorer as RubricScorer
from proctor.evaluators.rubrics import rubric as rubric
from proctor.evaluators.rubrics import rubric_evaluators as rubric_evaluators
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
from proctor.history.postgres import PostgresHistory as PostgresHistory
from proctor.history.sqlite import SQLiteHistory as SQLiteHistory
from proctor.mailboxes.memory import InMemoryMailbox as InMemoryMailbox
from proctor.mailboxes.redis import RedisMailbox as RedisMailbox
from proctor.mailboxes.sqs import SQSMailbox as SQSMailbox
from proctor.metrics.registry import MetricRegistry as MetricRegistry
from proctor.models.anthropic import AnthropicAdapter as AnthropicAdapter
from proctor.models.gemini import GeminiAdapter as GeminiAdapter
from proctor.models.model_calls import aask as aask
from proctor.models.model_calls import ask as ask
from proctor.models.openai import OpenAIAdapter as OpenAIAdapter
from proctor.models.prompts import MarkdownSection as MarkdownSection
from proctor.models.prompts import Prompt as Prompt
from proctor.models.prompts import PromptTemplate as PromptTemplate
from proctor.models.wrappers.cached import Cached as Cached
from proctor.models.wrappers.cached import DiskCache as DiskCache
from proctor.models.wrappers.cassette import RecordingModel as RecordingModel
from proctor.models.wrappers.cassette import ReplayModel as ReplayModel
from proctor.models.wrappers.limits import Budgeted as Budgeted
from proctor.models.wrappers.limits import Paced as Paced
from proctor.ports import DatasetLike as DatasetLike
from proctor.ports import Embedder as Embedder
from proctor.ports import Evaluator as Evaluator
from proctor.ports import EvaluatorLike as EvaluatorLike
from proctor.ports import Mailbox as Mailbox
from proctor.ports import ProviderAdapter as ProviderAdapter
from proctor.ports import SessionEvaluator as SessionEvaluator
from proctor.ports import TargetLike as TargetLike
from proctor.records.comparison import Comparison as Comparison
from proctor.records.fields.context import FieldContext as FieldContext
from proctor.records.mail import DeadLetter as DeadLetter
from proctor.records.mail import EvalRequest as EvalRequest
from proctor.records.metric import Metric as Metric
from proctor.records.metric import MetricValue as MetricValue
from proctor.records.model import ModelRequest as ModelRequest
from proctor.records.model import ModelResponse as ModelResponse
from proctor.records.model import ToolSpec as ToolSpec
from proctor.records.progress import ProgressEvent as ProgressEvent
from proctor.records.progress import filter_events as filter_events
from proctor.records.rubric import ChatSession as ChatSession
from proctor.records.rubric import Rubric as Rubric
from proctor.records.rubric import RubricSet as RubricSet
from proctor.records.run import Budget as Budget
from proctor.records.run import Retention as Retention
from proctor.records.run import RunMetadata as RunMetadata
from proctor.records.run import RunOptions as RunOptions
from proctor.records.sample import Sample as Sample
from proctor.records.score import Score as Score
from proctor.records.session import Message as Message
from proctor.records.session import ModelCall as ModelCall
from proctor.records.session import Session as Session
from proctor.records.session import SessionView as SessionView
from proctor.records.session import ToolCall as ToolCall
from proctor.records.session import Usage as Usage
from proctor.records.trial import Configuration as Configuration
from proctor.records.trial import EvalResult as EvalResult
from proctor.records.trial import Reply as Reply
from proctor.records.trial import Trial as Trial
from proctor.reports.json import JSONReporter as JSONReporter
from proctor.reports.markdown import MarkdownReporter as MarkdownReporter
from proctor.sessions.current import current_session as current_session
from proctor.sessions.current import record as record
from proctor.targets.command import CommandTarget as CommandTarget
from proctor.targets.conversation import ConversationTarget as ConversationTarget
from proctor.targets.http import HttpTarget as HttpTarget
from proctor.targets.main_loop.bus import EventBus as EventBus
from proctor.targets.main_loop.loop import MainLoop as MainLoop
from proctor.targets.main_loop.loop import Response as Response
from proctor.targets.main_loop.tools import Tool as Tool
from proctor.targets.main_loop.tools import tool as tool
from proctor.targets.model import ModelTarget as ModelTarget
from proctor.targets.recorded import RecordedTarget as RecordedTarget
from proctor.wiring.compare_runs import compare as compare
from proctor.wiring.definition.definition import Definition as Definition
from proctor.wiring.definition.definition import configuration as configuration
from proctor.wiring.definition.definition import define as define
from proctor.wiring.dispatch import Submission as Submission
from proctor.wiring.dispatch import collect_results as collect_results
from proctor.wiring.dispatch import submit_dataset as submit_dataset
from proctor.wiring.evaluate import aevaluate as aevaluate
from proctor.wiring.evaluate import arescore as arescore
from proctor.wiring.evaluate import evaluate as evaluate
from proctor.wiring.evaluate import rescore as rescore
from proctor.wiring.loops import EvalLoop as EvalLoop
from proctor.wiring.loops import EvalRunner as EvalRunner
from proctor.wiring.registry import register_evaluator as register_evaluator

__all__ = [
    "evaluate",
    "aevaluate",
    "rescore",
    "compare",
    "define",
    "configuration",
    "EvalRunner",
    "EvalLoop",
    "MainLoop",
    "tool",
    "ask",
    "evaluator",
    "all_of",
    "any_of",
    "contains",
    "exact_match",
    "field",
    "llm_judge",
    "load_rubrics",
    "regex_match",
    "schema_match",
    "semantic_similarity",
    "tool_called",
    "RubricScorer",
    "Sample",
    "Dataset",
    "Score",
    "Session",
    "SessionView",
    "Message",
    "ModelCall",
    "ToolCall",
    "Usage",
    "Trial",
    "Reply",
    "EvalResult",
    "EvalReport",
    "Comparison",
    "Configuration",
    "Rubric",
    "Prompt",
    "Budget",
    "record",
    "SQLiteHistory",
    "ProctorError",
]
EXPORTS: dict[str, tuple[str, ...]]
__version__: str
