"""Rubrics: what sessions are scored by, one text each, and the set that a file holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from proctor.errors import nearest
from proctor.records.numbers import is_number
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.score import Score
from proctor.records.session import Session

# The evaluator that scores by a rubric, and the tag that tells the version of the rubrics.
RUBRIC, RUBRICS_VERSION = "rubric", "rubrics_version"
# The metric that tells the mean of the sessions' totals.
TOTAL_SCORE = "total_score"
# Of a total; a float has three or four more, which sums of fractions fill with noise.
DIGITS = 12

Ends = tuple[float, float]


class Column(NamedTuple):
    """A rubric of a run: the name under which its scores are kept, and its scale."""

    name: str
    rubric: Rubric
    scale: Ends


class Columns(NamedTuple):
    """The rubrics of a run in order, the scale of the total, and their version."""

    columns: tuple[Column, ...]
    scale: Ends
    version: str


class Total(NamedTuple):
    """What a session came to: where its total lies on the scale from 0 to 1, and as a score."""

    normalized: float
    score: float


def columns_in(run: RunMetadata | None) -> Columns:
    """The rubrics that a run was scored by, as they are kept with it."""
    if run is None:
        return columns_of((), "")
    return columns_of(run.evaluators, run.tags.get(RUBRICS_VERSION, ""))


def columns_of(evaluators: Iterable[EvaluatorSpec], version: str) -> Columns:
    """The rubrics among some evaluators."""
    specs = [spec for spec in evaluators if _is_rubric(spec)]
    columns = []
    for spec in specs:
        rubric = msgspec.convert(spec.parameters["rubric"], Rubric, strict=False)
        columns.append(Column(spec.name, rubric, scale_of(rubric, _usual(spec))))
    shared = {column.scale for column in columns}
    scale = shared.pop() if len(shared) == 1 else _usual(specs[0]) if specs else USUAL_SCALE
    return Columns(tuple(columns), scale, version)


def _is_rubric(spec: EvaluatorSpec) -> bool:
    return spec.uses == RUBRIC and isinstance(spec.parameters.get("rubric"), Mapping)


def _usual(spec: EvaluatorSpec) -> Ends:
    low, high = spec.parameters.get("scale", USUAL_SCALE)
    return low, high


def weighted_mean(weighted: Sequence[tuple[float, float]]) -> float:
    """The mean of pairs of weight and value.

    >>> weighted_mean([(1.0, 0.25), (3.0, 0.75)])
    0.625
    """
    weight = math.fsum(weight for weight, _ in weighted)
    return math.fsum(weight * value for weight, value in weighted) / weight


def is_partial(scores: Mapping[str, Score], columns: Columns) -> bool:
    """True if one of the rubrics has no score, because it failed or was skipped."""
    said = (scores.get(column.name) for column in columns.columns)
    return any(score is not None and not score.ok for score in said)


def has_failed(scores: Mapping[str, Score], columns: Columns) -> bool:
    """True if one of the rubrics failed."""
    said = (scores.get(column.name) for column in columns.columns)
    return any(score is not None and score.status == "error" for score in said)


def total_of(scores: Mapping[str, Score], columns: Columns) -> Total | None:
    """The weighted mean over the rubrics that were scored, on the scale of the total.

    Rubrics without a score are left out; None if none has one. Totals that are equal on paper are
    equal: what sums of fractions leave in the last places would be taken for an order.
    """
    told = [
        (column.rubric.weight, value)
        for column in columns.columns
        if (score := scores.get(column.name)) is not None and (value := score.value) is not None
    ]
    if not told:
        return None
    normalized = weighted_mean(told)
    low, high = columns.scale
    places = DIGITS - math.ceil(math.log10(max(abs(low), abs(high))))
    return Total(normalized, round(low + normalized * (high - low), places))


USUAL_SCALE = (1.0, 5.0)

Said = Annotated[str, msgspec.Meta(min_length=1)]
# A place inside a file: keys of mappings, and places in lists counted from 0.
Path = tuple[str | int, ...]
Fault = tuple[Path, str]
_TEXTS = ("id", "name", "description", "scoring_criteria")
LONGEST_ID = 100
# Where the metadata lists the keys of a file that mean nothing here and are only kept.
FURTHER_KEYS = "further_keys"
# What a run's own numbers are called, and those of a single evaluator behind its name.
NUMBERS_OF_RUNS = (
    "pass_rate",
    "strict_pass_rate",
    "success_rate",
    "mean_score",
    "total_score",
    "latency_ms",
    "tokens",
    "cost",
    "judges",
)
NUMBERS_OF_EVALUATORS = ("mean", "pass_rate")


class Rubric(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that a session is scored by: what it is about, and what each score means.

    `weight` is how much it counts in the total. `scale` is its least and greatest score where
    that is not the set's. `metadata` is whatever else is known of it.

    >>> Rubric("tone", "Tone", "Is the agent polite?", "1: rude … 5: polite").weight
    1.0
    """

    id: Annotated[Said, msgspec.Meta(description="Scores are kept under it; unique in the file.")]
    name: Annotated[Said, msgspec.Meta(description="What people call it.")]
    description: Annotated[
        Said, msgspec.Meta(description="What it is about: what the judge looks at, and what not.")
    ]
    scoring_criteria: Annotated[
        Said, msgspec.Meta(description="What each score means, best in one line for each score.")
    ]
    weight: Annotated[float, msgspec.Meta(gt=0, description="How much it counts in the total.")] = 1.0
    scale: Annotated[
        tuple[float, float] | None,
        msgspec.Meta(description="Its least and greatest score, where that is not the set's."),
    ] = None
    metadata: Annotated[dict[str, Any], msgspec.Meta(description="Whatever else is known of it.")] = {}

    def __post_init__(self) -> None:
        _refuse("rubric", faults_of_rubric(msgspec.structs.asdict(self)))


class RubricSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The rubrics of a file, in order, with the version that results name.

    `scale` is the least and the greatest score of all rubrics that have none of their own.
    """

    version: Annotated[Said, msgspec.Meta(description="Results name it.")]
    rubrics: Annotated[
        tuple[Rubric, ...], msgspec.Meta(min_length=1, description="What sessions are scored by.")
    ]
    scale: Annotated[
        tuple[float, float] | None,
        msgspec.Meta(description="The least and the greatest score; [1, 5] if left out."),
    ] = None
    metadata: Annotated[dict[str, Any], msgspec.Meta(description="Whatever else is known of the set.")] = {}

    def __post_init__(self) -> None:
        rubrics: Any = self.rubrics
        if isinstance(rubrics, list | tuple):
            rubrics = [msgspec.structs.asdict(one) if isinstance(one, Rubric) else one for one in rubrics]
            msgspec.structs.force_setattr(self, "rubrics", tuple(self.rubrics))
        _refuse("set of rubrics", faults_of_set({**msgspec.structs.asdict(self), "rubrics": rubrics}))

    def __iter__(self) -> Iterator[Rubric]:
        return iter(self.rubrics)

    def __len__(self) -> int:
        return len(self.rubrics)

    def __getitem__(self, rubric_id: str) -> Rubric:
        for rubric in self.rubrics:
            if rubric.id == rubric_id:
                return rubric
        known = [rubric.id for rubric in self.rubrics]
        raise KeyError(f"there is no rubric {rubric_id!r}; {nearest(rubric_id, known)}")


class ChatSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session by its id, as a `RubricScorer` takes it."""

    session_id: str
    session: Session


def scale_of(rubric: Rubric, usual: tuple[float, float] = USUAL_SCALE) -> tuple[float, float]:
    """The least and the greatest score of a rubric: its own, else the usual ones.

    >>> scale_of(Rubric("a", "A", "…", "…")), scale_of(Rubric("a", "A", "…", "…", scale=(0, 10)))
    ((1.0, 5.0), (0, 10))
    """
    return usual if rubric.scale is None else rubric.scale


def rubric_from(data: Mapping[str, Any]) -> Rubric:
    """A rubric out of plain data that has no faults."""
    return msgspec.convert(_plain(_keep_further_keys(data, Rubric)), Rubric, strict=False)


def set_from(data: Mapping[str, Any]) -> RubricSet:
    """A set of rubrics out of plain data that has no faults."""
    data = _keep_further_keys(data, RubricSet)
    rubrics = [_plain(_keep_further_keys(one, Rubric)) for one in data["rubrics"]]
    version = str(data["version"]).strip()
    return msgspec.convert({**_plain(data), "version": version, "rubrics": rubrics}, RubricSet)


def further_keys(part: Rubric | RubricSet) -> str:
    """A sentence on the keys of a file that are only kept in the metadata; "" if there are none.

    >>> further_keys(rubric_from({"id": "a", "name": "A", "description": "…",
    ...     "scoring_criteria": "…", "wieght": 3}))
    "rubric 'a': 'wieght' is not a key of rubrics and is kept in its metadata (did you mean \
'weight'?)"
    """
    names = part.metadata.get(FURTHER_KEYS)
    if not isinstance(names, list) or not names:
        return ""
    whose = f"rubric {part.id!r}" if isinstance(part, Rubric) else "rubric file"
    listed = ", ".join(repr(name) for name in names)
    is_one = len(names) == 1
    meant = [nearest(name, part.__struct_fields__) for name in names]
    hints = [hint.rstrip("?") for hint in meant if hint.startswith("did you mean")]
    hint = f" ({'; '.join(hints)}?)" if hints else ""
    return (
        f"{whose}: {listed} {'is not a key' if is_one else 'are not keys'} of rubrics and "
        f"{'is' if is_one else 'are'} kept in its metadata{hint}"
    )


def _keep_further_keys(data: Mapping[str, Any], kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Move the keys that a file has beside the known ones into its metadata, and list them."""
    names = [key for key in data if key not in kind.__struct_fields__]
    if not names:
        return data
    kept = {key: value for key, value in data.items() if key not in names}
    own = dict(data.get("metadata") or {})
    listed = [*own.get(FURTHER_KEYS, ()), *map(str, names)]
    further = {str(name): data[name] for name in names}
    return {**kept, "metadata": {**further, **own, FURTHER_KEYS: listed}}


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Texts without the space around them, and nothing where nothing was written."""
    said = {key: value for key, value in data.items() if value is not None}
    return {k: v.strip() if k in _TEXTS and isinstance(v, str) else v for k, v in said.items()}


def _refuse(what: str, faults: Iterable[Fault]) -> None:
    """Whoever makes one by hand is told as a file is: everything at once, with its place."""
    told = [f"{'.'.join(map(str, at))}: {said}" if at else said for at, said in faults]
    if told:
        raise ValueError(f"that is no {what}: {'; '.join(told)}")


def faults_of_set(data: Any) -> Iterator[Fault]:
    """Everything that is wrong with what a rubric file holds, each with its place.

    >>> list(faults_of_set({"version": "1.0"}))
    [((), "'rubrics' is missing: the list of the rubrics")]
    """
    if not isinstance(data, Mapping):
        yield (), "a rubric file is a mapping {version, rubrics: [{id, name, …}]}"
        return
    version = data.get("version")
    if version is None:
        yield (), "'version' is missing: results name it, so write one, such as \"1.0\""
    elif isinstance(version, bool) or not isinstance(version, str | int | float):
        yield ("version",), f"a version is a text, got {version!r}"
    elif not str(version).strip():
        yield ("version",), "it is empty"
    yield from _scale_faults(data.get("scale"), ("scale",))
    yield from _metadata_faults(data.get("metadata"), ("metadata",))
    yield from _list_faults(data.get("rubrics"))


def _list_faults(rubrics: Any) -> Iterator[Fault]:
    if rubrics is None:
        yield (), "'rubrics' is missing: the list of the rubrics"
    elif not isinstance(rubrics, list | tuple):
        yield ("rubrics",), f"it is a list, got {_kind(rubrics)}"
    elif not rubrics:
        yield ("rubrics",), "it has no rubric"
    else:
        for place, one in enumerate(rubrics):
            yield from faults_of_rubric(one, ("rubrics", place))
        yield from _repeated(rubrics)
        yield from _taken(rubrics)


def faults_of_rubric(data: Any, at: Path = ()) -> Iterator[Fault]:
    """Everything that is wrong with one rubric, as plain data."""
    if not isinstance(data, Mapping):
        yield at, f"a rubric is a mapping with id, name and description, got {_kind(data)}"
        return
    for key in _TEXTS:
        yield from _text_faults(data, key, at)
    weight = data.get("weight", 1.0)
    if not is_number(weight) or weight <= 0:
        yield (*at, "weight"), f"a weight is a number above 0, got {weight!r}"
    yield from _scale_faults(data.get("scale"), (*at, "scale"))
    yield from _metadata_faults(data.get("metadata"), (*at, "metadata"))


def _text_faults(data: Mapping[str, Any], key: str, at: Path) -> Iterator[Fault]:
    if key not in data:
        yield at, f"{key!r} is missing"
        return
    said = data[key]
    if not isinstance(said, str):
        yield (*at, key), f"it is a text, got {_kind(said)} ({said!r}); put it in quotes"
    elif not said.strip():
        yield (*at, key), "it is empty"
    elif key == "id" and (len(said.strip()) > LONGEST_ID or len(said.strip().splitlines()) > 1):
        yield (*at, key), f"an id is one line of at most {LONGEST_ID} characters"


def _ids(rubrics: Any) -> list[str | None]:
    ids = [one.get("id") if isinstance(one, Mapping) else None for one in rubrics]
    return [one.strip() if isinstance(one, str) else None for one in ids]


def _taken(rubrics: Any) -> Iterator[Fault]:
    """Ids under which a run keeps other numbers."""
    said = _ids(rubrics)
    of_others = {f"{one}.{number}": one for one in said for number in NUMBERS_OF_EVALUATORS if one}
    for place, one in enumerate(said):
        if one in NUMBERS_OF_RUNS:
            yield ("rubrics", place, "id"), f"{one!r} is a number that every run has; rename it"
        elif one in of_others:
            yield ("rubrics", place, "id"), f"{one!r} is a number of {of_others[one]!r}; rename it"


def _repeated(rubrics: Any) -> Iterator[Fault]:
    said = _ids(rubrics)
    counts = Counter(one for one in said if one)
    seen: set[str] = set()
    for place, one in enumerate(said):
        if one and counts[one] > 1:
            if one in seen:
                yield ("rubrics", place, "id"), f"another rubric has the id {one!r} already"
            seen.add(one)


def _scale_faults(scale: Any, at: Path) -> Iterator[Fault]:
    if scale is None:
        return
    ends = tuple(scale) if isinstance(scale, list | tuple) else ()
    if len(ends) != 2 or not all(map(is_number, ends)) or not ends[0] < ends[1]:
        yield at, f"a scale is its least and its greatest number, such as [1, 5], got {scale!r}"


def _metadata_faults(metadata: Any, at: Path) -> Iterator[Fault]:
    if not isinstance(metadata, Mapping | None):
        yield at, f"it is a mapping, got {_kind(metadata)}"


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "a yes or no"}
    for kind, name in names.items():
        if isinstance(value, kind):
            return name
    return "nothing" if value is None else "a number" if is_number(value) else "something else"
