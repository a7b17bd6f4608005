"""What a run is: its options, what it was made of, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from proctor.records.score import Skipped
from proctor.records.trial import Configuration


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long runs are kept: a run stays while it is within the days or within the count.

    The count is for runs of one name. With one limit set, that one rules; with none, all stay.

    >>> from datetime import UTC
    >>> now = datetime(2026, 6, 1, tzinfo=UTC)
    >>> Retention(days=30).keeps(0, now - timedelta(days=30), now)
    True
    >>> Retention(count=100).keeps(99, now, now), Retention(count=100).keeps(100, now, now)
    (True, False)
    """

    days: float | None = None
    count: int | None = None

    def keeps(self, place: int, began: datetime, now: datetime) -> bool:
        """True if a run stays: `place` counts the runs of its name from 0, the newest first."""
        if self.days is None and self.count is None:
            return True
        within_days = self.days is not None and now - began <= timedelta(days=self.days)
        return within_days or (self.count is not None and place < self.count)


class Pruned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What tidying up came to: the runs that went, and those that no limit keeps but that stay.

    `staying` has the reason by the run's id. Of a dry run, `gone` are those that would go.
    """

    gone: tuple[RunMetadata, ...] = ()
    staying: dict[str, str] = {}


class Holdings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a history is and how much is in it; `schema` is 0 while there is none yet.

    `outputs` are those of targets and judges that the cache keeps.
    """

    where: str
    runs: int = 0
    results: int = 0
    size_bytes: int = 0
    schema: int = 0
    outputs: int = 0


RunStatus = Literal["running", "submitted", "completed", "interrupted", "failed"]
OnError = Literal["continue", "raise"]
Redact = Literal["secrets", "personal", "nothing"]

Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the model calls of a whole run may use, target and judges together. None: no limit.

    `cost` is in the currency of the price table, US dollars as shipped.
    """

    calls: Positive | None = None
    tokens: Positive | None = None
    cost: Annotated[float, msgspec.Meta(gt=0)] | None = None


class Spent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the model calls of a run have used so far, as its budget counts it."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class RunOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a run is carried out; stored with it.

    `timeout` is for each call of the target, `evaluator_timeout` for each call of an evaluator
    that waits (None: no limit). `retries` are further attempts after an error that may pass by
    itself. `max_errors` ends the run after that many failed trials, `budget` when the models have
    used that much. `shuffle` is a seed that draws the order in which samples are run and, with a
    `limit`, which of them. `cache` reuses outputs, and the answers of judges, that were paid for
    before. `redact` says what is taken out before anything is stored: secrets, personal data as
    well, or nothing. `max_output_bytes` is the largest output that is accepted, as JSON; also the
    largest session, and the largest details of a score. `skipped` says what a skipped check means
    for its result: "skip" (the result is skipped too, unless another check failed) or "ignore"
    (the other checks decide).
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


class EvaluatorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An evaluator as data: the name under which scores are kept, what it is, its parameters.

    `uncovered` says what of it `identity` cannot cover, such as environment variables it reads.
    """

    name: str
    uses: str
    parameters: dict[str, Any] = {}
    identity: str = ""
    uncovered: tuple[str, ...] = ()

    @property
    def judges(self) -> tuple[str, ...]:
        """The models that it asks for a verdict; empty for one that judges by rules.

        >>> EvaluatorSpec("polite", "llm_judge", {"adapter": "openai:gpt-4o-mini"}).judges
        ('openai:gpt-4o-mini',)
        """
        return tuple(dict.fromkeys(_models(self.parameters, _JUDGES)))

    @property
    def judges_inside(self) -> tuple[str, ...]:
        """The models that it, or any evaluator it is made of, asks for a verdict."""
        return tuple(dict.fromkeys(_models(self.parameters, (*_JUDGES, *_PARTS))))


# The parameters of evaluators that hold a model, and those that hold other evaluators.
_JUDGES = ("adapter", "judge", "judges")
_PARTS = ("evaluator", "evaluators", "of")


def _models(given: Any, keys: tuple[str, ...]) -> list[str]:
    """The models in the parameters of an evaluator; evaluators in them are looked through."""
    if isinstance(given, Mapping):
        inside = given.get("parameters", given)
        held = [inside[key] for key in keys if key in inside] if isinstance(inside, Mapping) else []
    else:
        held = list(given)
    found: list[str] = []
    for value in held:
        if isinstance(value, str):
            found += [value] if ":" in value else []
        elif isinstance(value, Mapping | list | tuple):
            found += _models(value, keys)
    return found


class TargetSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A target as data: its name, how it is called, and what tells it from another.

    `uncovered` says what of it `identity` cannot cover, such as environment variables it reads.
    """

    name: str
    kind: str
    identity: str = ""
    uncovered: tuple[str, ...] = ()


class DatasetInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A dataset as data: where it came from, its length if known, and what tells its content."""

    name: str
    source: str = "memory"
    length: int | None = None
    fingerprint: str | None = None
    details: dict[str, Any] = {}


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a run comes from: the state of the code and of what was around it.

    `dirty` says whether files that git knows differed from the `commit`; None is not known.
    `variables` are names of environment variables, never their values; `ci` holds the ids that a
    CI service gives to its commit and job.
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
        """The state of the code in a few words, empty if nothing is known of it.

        >>> Provenance("0d1f3a5c7e9b2d4f", "main", dirty=True).code
        '0d1f3a5c7e9b on main, with changes'
        """
        if self.commit is None:
            return ""
        where = f" on {self.branch}" if self.branch else ""
        return f"{self.commit[:12]}{where}{', with changes' if self.dirty else ''}"


class StoppedEarly(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """That a run ended before its end because what it was for is settled.

    `reason` says what is settled and how, `after` how many trials were run `of` how many, if known.
    """

    reason: str
    after: int
    of: int | None = None


class CachedOutputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many of a run's outputs came from the cache, and of how many.

    >>> str(CachedOutputs(3, 1200))
    '3 of 1,200 outputs from the cache'
    """

    count: int
    of: int

    def __str__(self) -> str:
        outputs = "output" if self.of == 1 else "outputs"
        return f"{self.count:,} of {self.of:,} {outputs} from the cache"


class RunMetadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything about a run but its results; `total` is how many trials were planned, if known.

    `baseline` is the configuration that the others are compared with; `fields` are the fields of
    its results that were selected, as paths by name. `redacted` counts by kind what was taken out
    before it was stored. `stopped_early` is there if a completed run left some of its trials out.
    `planned_samples` are the ids of a submitted run's samples in the order of its plan, until all
    their results are collected.
    `cached_outputs` says how many outputs came from the cache, None if no cache was in use.
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
