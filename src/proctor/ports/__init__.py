"""All protocols: the interfaces that plugins and folders implement for the engine.

A plain class with these methods is enough, without inheritance. (`Results` is in `records.results`,
because reports contain it, and `Clock` in `core.clock`.)
"""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from proctor.ports.mail import Mailbox as Mailbox
from proctor.ports.mail import Message as Message
from proctor.records.fields.view import Field
from proctor.records.label import HumanLabel
from proctor.records.metric import Metric as Metric
from proctor.records.metric import MetricValue
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.progress import ProgressEvent
from proctor.records.results import Results
from proctor.records.run import DatasetInfo, EvaluatorSpec, HistoryInfo, PruneResult, Retention, RunMetadata, TargetSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import SessionView
from proctor.records.trial import EvalResult, Outcome, PositionedResult, Trial, Verdict

if TYPE_CHECKING:
    from proctor.comparison.report import EvalReport


@runtime_checkable
class SampleSource(Protocol):
    """A dataset as the engine reads it: samples in a fixed order, and a description."""

    def __iter__(self) -> Iterator[Sample[Any, Any]]: ...

    def inspect(self) -> DatasetInfo:
        """Check the dataset before a run, and describe its content."""


class Target(Protocol):
    """The system under evaluation."""

    @property
    def spec(self) -> TargetSpec: ...

    @property
    def blocking(self) -> bool:
        """True if `call` must run in a thread; False if it returns an awaitable."""

    def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int = 0, /) -> Any:
        """Run on one sample and return a `Reply`, the output, or an awaitable.

        `epoch` is the number of the repetition, from 0.
        """

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        """Return the problems with a configuration's options, before anything runs."""

    async def close(self) -> None:
        """Release connections and processes."""


if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVar
else:

    def TypeVar(name: str, *, default: Any, **options: Any) -> Any:  # noqa: ARG001, N802
        """A type variable with a default for type checkers; Python 3.11 does not support it at run time."""
        return typing.TypeVar(name, **options)


JudgedT = TypeVar("JudgedT", contravariant=True, default=Any)
ReferenceT = TypeVar("ReferenceT", contravariant=True, default=Any)


class Evaluator(Protocol[JudgedT, ReferenceT]):
    """A function of (output, expected) that returns a score: `Evaluator[str, str]`."""

    def __call__(self, output: JudgedT, expected: ReferenceT, /) -> Score: ...


class SessionEvaluator(Protocol[JudgedT, ReferenceT]):
    """A function of (output, expected, session) that returns a score."""

    def __call__(self, output: JudgedT, expected: ReferenceT, session: SessionView, /) -> Score: ...


class AttachedEvaluator(Protocol):
    """An evaluator that is ready to be called by the engine.

    `mode` is "inline" (quick and pure), "compute" (needs a core), "thread" (may block) or "async" (returns an
    awaitable). `needs` says what it reads besides the trial: "context" (the configuration's options, the baseline),
    "epochs" (all repeats of the sample). A `group` holds several evaluators of one field. `is_builtin` is True if it
    runs only Proctor's own code.
    """

    @property
    def spec(self) -> EvaluatorSpec: ...

    @property
    def mode(self) -> str: ...

    @property
    def needs(self) -> frozenset[str]: ...

    @property
    def group(self) -> FieldGroup | None: ...

    @property
    def is_builtin(self) -> bool: ...

    def score(self, trial: Trial) -> Score | Awaitable[Score]:
        """Score a trial that has an output. An exception becomes an error score."""


class SampleEvaluators(Protocol):
    """Builds the evaluators of single samples; `specs` and `needs` describe those of a run's dataset."""

    @property
    def specs(self) -> tuple[EvaluatorSpec, ...]: ...

    @property
    def needs(self) -> frozenset[str]: ...

    def __call__(self, sample: Sample[Any, Any], /) -> Sequence[AttachedEvaluator]: ...


class FieldGroup(NamedTuple):
    """The evaluators of one field; `rule` combines their scores into one."""

    field: Field
    parts: Mapping[str, AttachedEvaluator]
    rule: Callable[[Mapping[str, Score]], Score]


class TakesInput(Protocol):
    """A sync or async function of the input; its other parameters are options."""

    def __call__(self, value: Any, /, *args: Any, **options: Any) -> Any: ...


class HasExecute(Protocol):
    """An agent with `execute`, such as a `MainLoop`."""

    @property
    def execute(self) -> Callable[..., Any]: ...


class HasInvoke(Protocol):
    """A runnable with `invoke`, such as a LangChain chain."""

    @property
    def invoke(self) -> Callable[..., Any]: ...


class HasAinvoke(Protocol):
    """A runnable with only an async `ainvoke`."""

    @property
    def ainvoke(self) -> Callable[..., Any]: ...


class HasRun(Protocol):
    """An agent with `run`, such as an agent of Pydantic AI."""

    @property
    def run(self) -> Callable[..., Any]: ...


class HasHandoffs(Protocol):
    """An agent of the OpenAI Agents SDK, which its `Runner` runs."""

    @property
    def handoffs(self) -> Any: ...


class DataFrameLike(Protocol):
    """A data frame of pandas or Polars, one sample per row."""

    @property
    def columns(self) -> Any: ...
    @property
    def shape(self) -> Any: ...


class HasInput(Protocol):
    """A sample, or an object with the same fields."""

    @property
    def input(self) -> Any: ...


class HasEvaluate(Protocol):
    """An object with a method `evaluate` that scores."""

    @property
    def evaluate(self) -> Callable[..., Any]: ...


class HasCode(Protocol):
    """A function: mypy infers this type for a list of functions with different parameters."""

    @property
    def __code__(self) -> CodeType: ...


# The types of arguments. A target may also be an address or an entry of an eval file.
TargetLike: TypeAlias = (
    TakesInput | HasExecute | HasInvoke | HasAinvoke | HasRun | HasHandoffs | Target | str | Mapping[str, Any]
)
# A function, factory, class or object; not a name.
EvaluatorObject: TypeAlias = Callable[..., Any] | HasEvaluate | HasCode | AttachedEvaluator
# One evaluator, as `evaluate` takes it: an object, a name, or an entry of an eval file.
EvaluatorLike: TypeAlias = EvaluatorObject | str | Mapping[str, Any] | EvaluatorSpec
# A string is the path of a file; an iterator is read once. mypy infers list[object] for a list of unlike items.
DatasetLike: TypeAlias = (
    SampleSource | DataFrameLike | str | Path | Sequence[object] | Iterable[Mapping[str, Any] | HasInput]
)
# One evaluator, several, or several by name.
EvaluatorsLike: TypeAlias = EvaluatorLike | Sequence[object]


class ProviderAdapter(Protocol):
    """A model with one method; `ask`, judges, targets and caches are built on it."""

    @property
    def model(self) -> str:
        """The address of the model, such as "openai:gpt-4o-mini"; stored with its responses."""

    @property
    def supports_json_schema(self) -> bool:
        """True if the model enforces the JSON Schema of a request itself."""

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Send one request and return the response. `timeout` covers all attempts.

        Transient errors are retried. Raises `CallFailed`; a refusal or an empty answer is a response.
        """


class Embedder(Protocol):
    """Turns texts into vectors of one length; similar texts have similar vectors."""

    @property
    def name(self) -> str:
        """The address of the embedder, such as "local:minilm"; stored with the scores."""

    @property
    def method(self) -> str:
        """Either "embeddings", or "lexical" if only the spelling is compared."""

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return one vector for each text, in order."""


class ByteStore(Protocol):
    """A store of bytes by key: on disk, or in the history."""

    def find(self, key: str) -> bytes | None: ...

    def put(self, key: str, data: bytes) -> None: ...


class Reporter(Protocol):
    """Renders a report as text."""

    def generate(self, report: EvalReport) -> str: ...

    def save(self, report: EvalReport, path: Any) -> None: ...


class RunView(Protocol):
    """The progress of a run, for displays."""

    @property
    def run_id(self) -> str: ...

    @property
    def total(self) -> int | None: ...

    @property
    def resumed(self) -> int:
        """The number of trials that were finished before the run was resumed."""

    @property
    def stopping(self) -> bool: ...

    @property
    def notice(self) -> str:
        """A message for the user, for example that no worker has answered yet."""

    @property
    def outcomes(self) -> Mapping[Outcome, int]: ...

    @property
    def done(self) -> int: ...

    @property
    def rate(self) -> float | None: ...

    @property
    def seconds_left(self) -> float | None: ...

    def running(self) -> list[tuple[str, float]]:
        """Return the ids and run times of the running samples, the longest first."""


ProgressCallback = Callable[[ProgressEvent], object]


class ResultWriter(Protocol):
    """Writes the results of a run one by one; each is durable soon after."""

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        """Add a finished result, with its verdict if it is known. Returns immediately."""

    def add_batch(self, batch: Sequence[PositionedResult]) -> None:
        """Add several finished results."""

    def cache_output(self, key: str, created_at: str, reply: bytes) -> None:
        """Cache an output unless the key has one; b"" deletes the cached output."""

    def is_lagging(self) -> bool:
        """True if results arrive faster than they can be stored, so that the run should wait."""


class DurableWriter(ResultWriter, Protocol):
    """A result writer of a history."""

    def flush(self) -> None:
        """Return when all added results are durable."""


class RunRestorer(Protocol):
    """Stores a complete run from another history."""

    def add(self, position: int, result: EvalResult) -> None:
        """Add a result at its position in the plan."""

    def finish(
        self, metrics: Mapping[str, MetricValue], by_configuration: Mapping[str, Mapping[str, MetricValue]]
    ) -> None:
        """Add the metrics of the run."""

    def add_labels(self, labels: Sequence[HumanLabel]) -> None:
        """Add the human labels of the run."""


class History(Protocol):
    """A store of runs."""

    def begin(self, metadata: RunMetadata) -> None:
        """Store a new run."""

    def update(self, metadata: RunMetadata) -> None:
        """Update the metadata of a run."""

    def claim(self, run_id: str) -> AbstractContextManager[None]:
        """Lock a run for this process; raises an error while another process works on it."""

    def writer(self, run_id: str) -> AbstractContextManager[DurableWriter]: ...

    def finish(
        self,
        metadata: RunMetadata,
        metrics: Mapping[str, MetricValue],
        by_configuration: Mapping[str, Mapping[str, MetricValue]],
    ) -> None:
        """Store the final metadata and metrics of a run."""

    def import_run(self, metadata: RunMetadata) -> AbstractContextManager[RunRestorer]:
        """Store a complete run from another history; nothing is stored if the block fails."""

    def find(self, reference: str) -> RunMetadata:
        """Find a run by its id, its name, `baseline:NAME`, "latest", or the start of its id."""

    def is_claimed(self, run_id: str) -> bool:
        """True if a running process works on the run."""

    def report(self, run_id: str) -> EvalReport: ...

    def stored_metrics(
        self, run_ids: Sequence[str]
    ) -> Mapping[str, tuple[Mapping[str, MetricValue], Mapping[str, Mapping[str, MetricValue]]]]:
        """Return the stored metrics of runs: over all results, and by configuration."""

    def results(self, run_id: str, metadata: RunMetadata | None = None) -> Results:
        """Return the results of a run, read lazily; `metadata` saves a query."""

    def finished_trials(self, run_id: str) -> Iterator[tuple[int, str, str, int]]:
        """Yield the finished trials of a run: position, sample id, configuration, epoch."""

    def delete_errors(self, run_id: str) -> None:
        """Delete the results in which the target or an evaluator failed, to run them again."""

    def runs(
        self,
        *,
        limit: int = 20,
        tags: Mapping[str, str] | None = None,
        name: str | None = None,
        configuration: str | None = None,
        evaluator: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        offset: int = 0,
    ) -> Sequence[RunMetadata]:
        """Return the runs that match all filters, newest first; both dates are inclusive."""

    def add_labels(self, labels: Sequence[HumanLabel]) -> int:
        """Store human labels, each once by its id, and return how many are new."""

    def labels(
        self, *, run_id: str | None = None, evaluator: str | None = None, name: str | None = None
    ) -> Sequence[HumanLabel]:
        """Return the current human labels of a run, an evaluator, the runs with a name, or all; no superseded ones."""

    def set_baseline(self, name: str, run_id: str) -> RunMetadata:
        """Point a baseline to a run; an existing baseline is moved."""

    def baseline(self, name: str) -> RunMetadata:
        """Return the run of a baseline."""

    def baselines(self) -> Mapping[str, RunMetadata]:
        """Return the run of every baseline, by the baseline's name."""

    def drop_baseline(self, name: str) -> None:
        """Delete a baseline; its run stays."""

    def prune(
        self,
        retention: Retention,
        *,
        now: datetime,
        name: str | None = None,
        dry_run: bool = False,
        only: Collection[str] | None = None,
    ) -> PruneResult:
        """Delete the runs outside the retention limits, except baselines; a dry run deletes nothing."""

    def delete(self, run_id: str) -> Sequence[str]:
        """Delete a run with all its data, and return its baseline names."""

    def describe(self) -> HistoryInfo:
        """Return the location and size of the history."""

    def get_cached_output(self, key: str) -> bytes | None:
        """Return the cached output of a key, or None."""

    def delete_outputs(self, *, before: datetime | None = None, dry_run: bool = False) -> int:
        """Delete all cached outputs, or only outputs stored before a time, and return how many."""

    def close(self) -> None: ...
