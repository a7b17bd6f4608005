"""Every seam: what a room must offer so that the engine can use it.

A plain class with these methods is enough; nothing is inherited. (`Results`, the shape in which a
report reads its results, stands in `records.results` because the report itself is made of it, and
`Clock` in `clock`.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from proctor.ports.mail import Mailbox, Message
from proctor.records.fields.view import Field
from proctor.records.metric import MetricValue
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.progress import ProgressEvent
from proctor.records.report import EvalReport
from proctor.records.results import Results
from proctor.records.run import (
    DatasetInfo,
    EvaluatorSpec,
    Holdings,
    Pruned,
    Retention,
    RunMetadata,
    TargetSpec,
)
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import SessionView
from proctor.records.trial import EvalResult, Outcome, Trial, Verdict

__all__ = [
    "AttachedEvaluator",
    "DurableWriter",
    "Embedder",
    "Evaluator",
    "FieldGroup",
    "History",
    "Kept",
    "Mailbox",
    "Message",
    "Metric",
    "ProgressCallback",
    "ProviderAdapter",
    "Reporter",
    "ResultWriter",
    "RunRestorer",
    "RunView",
    "SampleSource",
    "SessionEvaluator",
    "Target",
]


@runtime_checkable
class SampleSource(Protocol):
    """A dataset as the engine reads it: samples in a fixed order, and what tells its content."""

    def __iter__(self) -> Iterator[Sample[Any, Any]]: ...

    def inspect(self) -> DatasetInfo:
        """Check everything that can be checked before a run, and describe the content."""
        ...


class Target(Protocol):
    """The system under evaluation, made callable."""

    @property
    def spec(self) -> TargetSpec: ...

    @property
    def blocking(self) -> bool:
        """True if `call` must run in a thread; False if it gives something to await."""
        ...

    def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int = 0, /) -> Any:
        """Run on one sample. Gives a `Reply`, the bare output, or something to await.

        `epoch` counts the repeats of a sample from 0.
        """
        ...

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        """What is wrong with a configuration's options, before anything runs."""
        ...

    async def close(self) -> None:
        """Give back what is held: connections, processes."""
        ...


if TYPE_CHECKING:
    # Only type checkers know defaults on Python 3.11, so that `Evaluator` alone can be written.
    from typing_extensions import TypeVar as TypeVarWithDefault

    JudgedT = TypeVarWithDefault("JudgedT", contravariant=True, default=Any)
    ReferenceT = TypeVarWithDefault("ReferenceT", contravariant=True, default=Any)
else:
    JudgedT = TypeVar("JudgedT", contravariant=True)
    ReferenceT = TypeVar("ReferenceT", contravariant=True)


class Evaluator(Protocol[JudgedT, ReferenceT]):
    """A function of (output, expected) that returns a score: `Evaluator[str, str]`."""

    def __call__(self, output: JudgedT, expected: ReferenceT, /) -> Score: ...


class SessionEvaluator(Protocol[JudgedT, ReferenceT]):
    """A function of (output, expected, session) that returns a score."""

    def __call__(self, output: JudgedT, expected: ReferenceT, session: SessionView, /) -> Score: ...


class AttachedEvaluator(Protocol):
    """An evaluator whose kind is settled: the engine only calls it.

    `mode` is how: "inline" is quick and pure, "thread" may block, "async" gives an awaitable.
    `needs` says what it looks at beside the trial: "context" (the configuration's options, the
    baseline), "epochs" (all repeats of the sample). A `group` is several evaluators of one field.
    `is_own` is True if it calls no code of the user's as long as it judges texts.
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
    def is_own(self) -> bool: ...

    def score(self, trial: Trial) -> Score | Awaitable[Score]:
        """Judge a trial that has an output. What it raises becomes an error score."""
        ...


class FieldGroup(NamedTuple):
    """The evaluators of one field: each is heard by itself, then `rule` makes one score of all."""

    field: Field
    parts: Mapping[str, AttachedEvaluator]
    rule: Callable[[Mapping[str, Score]], Score]


class ProviderAdapter(Protocol):
    """A model behind one call; everything else (`ask`, judges, targets, caches) is built on it."""

    @property
    def model(self) -> str:
        """The address it is known by, such as "openai:gpt-4o-mini"; stored with what it said."""
        ...

    @property
    def fits_schema(self) -> bool:
        """True if it makes its answers fit the JSON Schema of a request by itself."""
        ...

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Ask once, retries of what is worth it included, within `timeout` seconds in all.

        Raises `CallFailed`; an answer that is no answer (a refusal, an empty one) is a response.
        """
        ...


class Embedder(Protocol):
    """Texts become vectors of one length, so that near meanings lie near each other."""

    @property
    def name(self) -> str:
        """The address it is known by, such as "local:minilm"; stored with the scores."""
        ...

    @property
    def method(self) -> str:
        """Either "embeddings", or "lexical" where only the letters are compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector for each text, in order."""
        ...


class Kept(Protocol):
    """A store of bytes by key: on disk, or in the history."""

    def find(self, key: str) -> bytes | None: ...

    def keep(self, key: str, data: bytes) -> None: ...


class Metric(Protocol):
    """A number, or several by name, over all results of a run or of one configuration."""

    @property
    def name(self) -> str: ...

    def compute(
        self, results: Results
    ) -> float | int | MetricValue | Mapping[str, float | int | MetricValue | None] | None: ...


class Reporter(Protocol):
    """A report as text."""

    def generate(self, report: EvalReport) -> str: ...

    def save(self, report: EvalReport, path: Any) -> None: ...


class RunView(Protocol):
    """How far a run is, to be looked at whenever a display likes."""

    @property
    def run_id(self) -> str: ...

    @property
    def total(self) -> int | None: ...

    @property
    def resumed(self) -> int:
        """How many were finished in an earlier sitting."""

    @property
    def stopping(self) -> bool: ...

    @property
    def notice(self) -> str:
        """What those who wait should know, such as that no worker has answered yet."""

    @property
    def outcomes(self) -> Mapping[Outcome, int]: ...

    @property
    def done(self) -> int: ...

    @property
    def rate(self) -> float | None: ...

    @property
    def seconds_left(self) -> float | None: ...

    def running(self) -> list[tuple[str, float]]:
        """Ids of the samples that are being run and for how long, the longest first."""


ProgressCallback = Callable[[ProgressEvent], object]


class ResultWriter(Protocol):
    """Where a run's results go, one by one; each is durable soon after."""

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        """Take a finished result, with its verdict if it is known already. Returns at once."""
        ...

    def keep(self, key: str, created_at: str, reply: bytes) -> None:
        """Take an output to be reused, if its key has none; b"" takes an older one away."""
        ...

    def behind(self) -> bool:
        """True if results come faster than they can be kept, so that the run should wait."""
        ...


class DurableWriter(ResultWriter, Protocol):
    """Where a history takes results in."""

    def flush(self) -> None:
        """Return when everything taken so far is durable."""
        ...


class RunRestorer(Protocol):
    """Takes in a whole run as it was somewhere else."""

    def add(self, position: int, result: EvalResult) -> None:
        """Take a result at its place in the plan."""
        ...

    def finish(
        self, metrics: Mapping[str, MetricValue], by_configuration: Mapping[str, Mapping[str, MetricValue]]
    ) -> None:
        """Take what the run amounts to."""
        ...


class History(Protocol):
    """The record of runs."""

    def begin(self, metadata: RunMetadata) -> None:
        """Open a new run."""
        ...

    def update(self, metadata: RunMetadata) -> None:
        """Store how a run stands now."""
        ...

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Claim a run for this process; refused while another process works on it."""
        ...

    def writer(self, run_id: str) -> AbstractContextManager[DurableWriter]: ...

    def finish(
        self,
        metadata: RunMetadata,
        metrics: Mapping[str, MetricValue],
        by_configuration: Mapping[str, Mapping[str, MetricValue]],
    ) -> None:
        """Store how a run ended and what it amounts to."""
        ...

    def restoring(self, metadata: RunMetadata) -> AbstractContextManager[RunRestorer]:
        """Take in a whole run as it was elsewhere: all of it, or nothing if the block fails."""
        ...

    def find(self, reference: str) -> RunMetadata:
        """A run by its id, its name, `baseline:NAME`, "latest", or how its id begins."""
        ...

    def is_held(self, run_id: str) -> bool:
        """True if a living process works on the run."""
        ...

    def report(self, run_id: str) -> EvalReport: ...
    def metrics_of(
        self, run_ids: Sequence[str]
    ) -> Mapping[str, tuple[Mapping[str, MetricValue], Mapping[str, Mapping[str, MetricValue]]]]:
        """What runs amount to, as it was stored: over all, and by configuration."""
        ...

    def results(self, run_id: str, metadata: RunMetadata | None = None) -> Results:
        """A run's results, read as they are asked for; `metadata` if it is known already."""
        ...

    def done(self, run_id: str) -> Iterator[tuple[int, str, str, int]]:
        """What a run has finished: position, sample id, configuration, epoch."""
        ...

    def forget_errors(self, run_id: str) -> None:
        """Drop the results in which the target or an evaluator failed, to run them again."""
        ...

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
        """Newest first; everything that is given must hold, both dates included."""
        ...

    def set_baseline(self, name: str, run_id: str) -> RunMetadata:
        """Name a run as a baseline; the name moves if it is taken."""
        ...

    def baseline(self, name: str) -> RunMetadata:
        """The run that is a baseline."""
        ...

    def baselines(self) -> Mapping[str, RunMetadata]:
        """Every baseline's run, by the baseline's name."""
        ...

    def drop_baseline(self, name: str) -> None:
        """Forget a baseline's name; its run stays."""
        ...

    def prune(
        self,
        retention: Retention,
        *,
        now: datetime,
        name: str | None = None,
        dry_run: bool = False,
        only: Collection[str] | None = None,
    ) -> Pruned:
        """Delete the runs that need not be kept any more, but baselines; a dry run only looks."""
        ...

    def delete(self, run_id: str) -> Sequence[str]:
        """Remove a run and all that belongs to it; gives the baselines that went with it."""
        ...

    def holdings(self) -> Holdings:
        """Where the history is, and how much is in it."""
        ...

    def cached(self, key: str) -> bytes | None:
        """An output kept under a key, or None."""
        ...

    def forget_outputs(self, *, before: datetime | None = None, dry_run: bool = False) -> int:
        """Delete the outputs that were kept, or those kept before a moment; gives how many."""
        ...

    def close(self) -> None: ...
