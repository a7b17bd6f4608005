"""The metadata of a run: options, target, dataset, evaluators, provenance and status."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from proctor.records.score import Skipped
from proctor.records.selection import SelectedSamples, Selection
from proctor.records.trial import Configuration

MAX_LISTED_PARTS = 5


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long runs are kept: for a number of days, or while they are among the newest of their name.

    A run is kept if either limit allows it; without limits all runs are kept.

    >>> from datetime import UTC
    >>> now = datetime(2026, 6, 1, tzinfo=UTC)
    >>> Retention(days=30).keeps(0, now - timedelta(days=30), now)
    True
    >>> Retention(count=100).keeps(99, now, now), Retention(count=100).keeps(100, now, now)
    (True, False)
    """

    days: float | None = None
    count: int | None = None

    def keeps(self, index: int, started_at: datetime, now: datetime) -> bool:
        """True if a run is kept; `index` is its position among the runs of its name, newest first, from 0."""
        if self.days is None and self.count is None:
            return True
        within_days = self.days is not None and now - started_at <= timedelta(days=self.days)
        return within_days or (self.count is not None and index < self.count)


class PruneResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The deleted runs, and the reasons by run id why other runs past their retention are `exempt`.

    After a dry run, `deleted` holds the runs that would be deleted.
    """

    deleted: tuple[RunMetadata, ...] = ()
    exempt: dict[str, str] = {}


class HistoryInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The location and size of a history; `schema` is 0 if it does not exist yet.

    `outputs` counts the cached outputs of targets and judges.
    """

    where: str
    runs: int = 0
    results: int = 0
    size_bytes: int = 0
    schema: int = 0
    outputs: int = 0


# The kind of target of a run that another tool made.
IMPORTED = "imported"
RunStatus = Literal["running", "submitted", "completed", "interrupted", "failed"]
OnError = Literal["continue", "raise"]
Redact = Literal["secrets", "personal", "nothing"]

Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits for all model calls of a run, target and judges together.

    None means no limit. `cost` is in the currency of the price table, by default US dollars.
    """

    calls: Positive | None = None
    tokens: Positive | None = None
    cost: Annotated[float, msgspec.Meta(gt=0)] | None = None


class Spent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The usage of all model calls of a run so far that counts towards its budget."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class RunOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The options of a run, stored with it.

    `timeout` limits each call of the target, `evaluator_timeout` each call of an evaluator that may wait (None means no
    limit). `retries` is the number of additional attempts after a transient error. `max_errors` ends the run after that
    many failed trials, `budget` after that much model usage. `shuffle` is a seed for the order of samples and, with a
    `limit`, for their selection. `cache` reuses earlier outputs and judge responses. `redact` sets what is removed
    before storing: secrets, secrets and personal data, or nothing. `max_output_bytes` limits the size of an output as
    JSON, of a session, and of the details of a score. `skipped` is the effect of a skipped check on its result: "skip"
    (the result is skipped too, unless another check failed) or "ignore" (the other checks decide). `select` runs only
    some samples; a `limit` counts those.
    """

    concurrency: Positive = 20
    timeout: Seconds | None = 30.0
    evaluator_timeout: Seconds | None = 60.0
    epochs: Positive = 1
    limit: Positive | None = None
    retries: Annotated[int, msgspec.Meta(ge=0)] = 0
    retry_delay: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    on_error: OnError = "continue"
    max_errors: Positive | None = None
    cache: bool = False
    budget: Budget | None = None
    redact: Redact = "secrets"
    shuffle: int | None = None
    max_output_bytes: Positive = 10_000_000
    skipped: Skipped = "skip"
    select: Selection | None = None


class RunOptionsKwargs(TypedDict, total=False):
    """The options of a run as keyword arguments, for type checkers."""

    concurrency: int
    timeout: float | None
    evaluator_timeout: float | None
    epochs: int
    limit: int | None
    retries: int
    retry_delay: float
    on_error: OnError
    max_errors: int | None
    cache: bool
    budget: Mapping[str, float] | Budget | None
    redact: Redact
    shuffle: int | None
    max_output_bytes: int
    skipped: Skipped
    select: Mapping[str, Any] | Selection | None


class EvaluatorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The description of an evaluator: the name of its scores, its type (`uses`) and parameters.

    `uncovered` lists dependencies that `identity` does not cover, such as environment variables. `samples` is the
    number of samples that have the evaluator as their own, with its parameters; None for an evaluator of all samples.
    """

    name: str
    uses: str
    parameters: dict[str, Any] = {}
    identity: str = ""
    uncovered: tuple[str, ...] = ()
    samples: int | None = None

    @property
    def judges(self) -> tuple[str, ...]:
        """The models that the evaluator asks for a verdict; empty for rules."""
        return tuple(dict.fromkeys(_find_models(self.parameters, _JUDGES)))

    @property
    def judges_inside(self) -> tuple[str, ...]:
        """The models that the evaluator, or any evaluator inside it, asks for a verdict."""
        return tuple(dict.fromkeys(_find_models(self.parameters, (*_JUDGES, *_PARTS))))


# The parameters of evaluators that hold a model, and the parameters that hold other evaluators.
_JUDGES = ("model", "adapter", "judge", "judges")
_PARTS = ("evaluator", "evaluators", "of")


def _find_models(parameters: Any, keys: tuple[str, ...]) -> list[str]:
    """Find the models in the parameters of an evaluator, and of the evaluators inside."""
    if isinstance(parameters, Mapping):
        inner = parameters.get("parameters", parameters)
        values = [inner[key] for key in keys if key in inner] if isinstance(inner, Mapping) else []
    else:
        values = list(parameters)
    models: list[str] = []
    for value in values:
        if isinstance(value, str):
            models += [value] if ":" in value else []
        elif isinstance(value, Mapping | list | tuple):
            models += _find_models(value, keys)
    return models


class TargetSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The description of a target: its name, kind and identity.

    `uncovered` lists dependencies that `identity` does not cover, such as environment variables. `parts` are short
    digests of the functions, constants and files that it covers, to say what has changed.
    """

    name: str
    kind: str
    identity: str = ""
    uncovered: tuple[str, ...] = ()
    parts: dict[str, str] = {}

    @property
    def essentials(self) -> tuple[str, str, str]:
        """What makes it another target: its name, kind and identity."""
        return self.name, self.kind, self.identity

    def describe_change(self, earlier: TargetSpec) -> str:
        """List the functions, constants and files that differ from an earlier version; "" if none is known to differ.

        >>> old = TargetSpec("ask", "function", parts={"the function ask in agent.py": "1", "MODEL in agent.py": "2"})
        >>> new = msgspec.structs.replace(old, parts=old.parts | {"MODEL in agent.py": "3"})
        >>> new.describe_change(old)
        'MODEL in agent.py changed'
        """
        old, new = earlier.parts, self.parts
        if not old or not new:
            return ""
        verbs = {
            "changed": [part for part in new if part in old and old[part] != new[part]],
            "added": [part for part in new if part not in old],
            "removed": [part for part in old if part not in new],
        }
        texts = []
        for verb, parts in verbs.items():
            rest = len(parts) - MAX_LISTED_PARTS
            more = f" and {rest} more" if rest > 0 else ""
            texts += [f"{', '.join(parts[:MAX_LISTED_PARTS])}{more} {verb}"] if parts else []
        return "; ".join(texts)


class DatasetInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The description of a dataset: its source, length if known, and content fingerprint.

    `checked_samples` is the number of samples with their own evaluators.
    """

    name: str
    source: str = "memory"
    length: int | None = None
    fingerprint: str | None = None
    details: dict[str, Any] = {}
    checked_samples: int = 0


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The origin of a run: the state of the code and its environment.

    `dirty` is True if tracked files differed from the `commit`; None if unknown. `variables` are names of
    environment variables, never their values; `ci` holds the commit and job ids of a CI service.
    """

    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None
    command: tuple[str, ...] = ()
    packages: dict[str, str] = {}
    variables: tuple[str, ...] = ()
    ci: dict[str, str] = {}

    @property
    def code(self) -> str:
        """The state of the code in a few words, empty if it is unknown."""
        if self.commit is None:
            return ""
        where = f" on {self.branch}" if self.branch else ""
        return f"{self.commit[:12]}{where}{', with changes' if self.dirty else ''}"


class StoppedEarly(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The early end of a decided run: the reason, the number of trials that ran, and the number of all trials."""

    reason: str
    after: int
    total: int | None = msgspec.field(default=None, name="of")


class CachedOutputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of outputs that came from the cache, of all outputs."""

    count: int
    total: int = msgspec.field(name="of")

    def __str__(self) -> str:
        outputs = "output" if self.total == 1 else "outputs"
        return f"{self.count:,} of {self.total:,} {outputs} from the cache"


class RunMetadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything about a run except its results; `total` is the planned number of trials, if known.

    `baseline` is the configuration that the other configurations are compared with; `fields` are the paths of the
    selected fields by name. `redacted` counts the removed strings by kind. `stopped_early` is set if a completed run
    left out some of its trials. `planned_samples` are the sample ids of a submitted run in the order of its plan, until
    all results are collected. `cached_outputs` counts outputs from the cache, None if no cache was in use. `selected`
    describes the samples that `options.select` selects.
    """

    run_id: str
    name: str
    started_at: datetime
    status: RunStatus = "running"
    finished_at: datetime | None = None
    duration_seconds: float = 0.0
    total: int | None = None
    dataset: DatasetInfo = DatasetInfo("")
    target: TargetSpec = TargetSpec("", "")
    configurations: tuple[Configuration, ...] = (Configuration(),)
    evaluators: tuple[EvaluatorSpec, ...] = ()
    options: RunOptions = RunOptions()
    tags: dict[str, str] = {}
    environment: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    rescored_from: str | None = None
    baseline: str | None = None
    fields: dict[str, str] = {}
    spent: Spent | None = None
    provenance: Provenance = Provenance()
    redacted: dict[str, int] = {}
    stopped_early: StoppedEarly | None = None
    planned_samples: tuple[str, ...] = ()
    cached_outputs: CachedOutputs | None = None
    selected: SelectedSamples | None = None

    @property
    def identity_environment(self) -> tuple[list[str], str | None]:
        """The versions that identities depend on: bytecode differs by Python version."""
        return self.environment.get("python", "").split(".")[:2], self.environment.get("proctor")

    def describe_target_change(self, earlier: RunMetadata) -> str:
        """List the functions, constants and files of the target that differ from those of an earlier run.

        It is "" if the target is the same, or if one of the runs does not list them.
        """
        old, new = earlier.target, self.target
        if (
            old.name != new.name
            or old.identity == new.identity
            or earlier.identity_environment != self.identity_environment
        ):
            return ""
        change = new.describe_change(old)
        if not change and old.parts and new.parts:
            return "something in the target that has no name, such as an object, a secret or its version, changed"
        return change

    @property
    def planned_length(self) -> int | None:
        """The number of samples that the run was to run: all, some, or those within a limit; None if unknown."""
        length = self.dataset.length if self.selected is None else self.selected.count
        limit = self.options.limit
        return length if length is None or limit is None else min(length, limit)
