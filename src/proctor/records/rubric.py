"""Rubrics for scoring sessions, sets of rubrics from a file, and their weighted total."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from proctor.errors import InvalidRecord, join_location, suggest_name
from proctor.records.numbers import is_number
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.score import Score
from proctor.records.session import Session

# The name of the evaluator that scores by a rubric, and of the tag with the version of the rubrics.
RUBRIC, RUBRICS_VERSION = "rubric", "rubrics_version"
# The metric of the mean total of all sessions.
TOTAL_SCORE = "total_score"
# The precision of a total: later digits of a float are rounding noise.
DIGITS = 12

# The lowest and the highest score.
Scale = tuple[float, float]
DEFAULT_SCALE = (1.0, 5.0)

NonEmptyText = Annotated[str, msgspec.Meta(min_length=1)]
# A location inside a file: keys of mappings, and indexes of lists.
Path = tuple[str | int, ...]
RubricProblem = tuple[Path, str]
_TEXTS = ("id", "name", "description", "scoring_criteria")
MAX_ID_LENGTH = 100
# The metadata key that lists the unknown keys of a file.
UNKNOWN_KEYS = "further_keys"
# The names of a run's metrics, and the suffixes of an evaluator's metrics.
RUN_METRICS = (
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
EVALUATOR_METRICS = ("mean", "pass_rate")


class Column(NamedTuple):
    """A rubric of a run: the name of its scores, and its scale."""

    name: str
    rubric: Rubric
    scale: Scale


class Columns(NamedTuple):
    """The rubrics of a run in order, the scale of the total, and the version of the rubrics."""

    columns: tuple[Column, ...]
    scale: Scale
    version: str


class Total(NamedTuple):
    """The total of a session, from 0 to 1 and on the scale of the rubrics."""

    normalized: float
    score: float


def read_run_columns(run: RunMetadata | None) -> Columns:
    """Return the rubrics of a run."""
    if run is None:
        return read_columns((), "")
    return read_columns(run.evaluators, run.tags.get(RUBRICS_VERSION, ""))


def read_columns(evaluators: Iterable[EvaluatorSpec], version: str) -> Columns:
    """Return the rubrics among evaluators."""
    specs = [spec for spec in evaluators if spec.uses == RUBRIC and isinstance(spec.parameters.get("rubric"), Mapping)]
    columns = []
    for spec in specs:
        rubric = msgspec.convert(spec.parameters["rubric"], Rubric, strict=False)
        columns.append(Column(spec.name, rubric, find_scale(rubric, _default_scale(spec))))
    scales = {column.scale for column in columns}
    scale = scales.pop() if len(scales) == 1 else _default_scale(specs[0]) if specs else DEFAULT_SCALE
    return Columns(tuple(columns), scale, version)


def _default_scale(spec: EvaluatorSpec) -> Scale:
    low, high = spec.parameters.get("scale", DEFAULT_SCALE)
    return low, high


def weighted_mean(weighted: Sequence[tuple[float, float]]) -> float:
    """Return the mean of pairs of weight and value."""
    weight = math.fsum(weight for weight, _ in weighted)
    return math.fsum(weight * value for weight, value in weighted) / weight


def decide_mean(
    weighted: Sequence[tuple[float, float]], missing: float, passes: Callable[[float], bool]
) -> bool | None:
    """Return whether a weighted mean passes; None if values from 0 to 1 of the `missing` weight could change that.

    >>> decide_mean([(1, 1.0), (1, 1.0)], 1, lambda mean: mean >= 0.5)
    True
    >>> decide_mean([(1, 1.0)], 9, lambda mean: mean >= 0.5) is None
    True
    """
    verdicts = {passes(min(1.0, weighted_mean([*weighted, (missing, value)]))) for value in (0.0, 1.0)}
    return verdicts.pop() if len(verdicts) == 1 else None


def is_partial(scores: Mapping[str, Score], columns: Columns) -> bool:
    """True if one of the rubrics failed or was skipped."""
    return any(not score.ok for score in _select_scores(scores, columns))


def has_failed(scores: Mapping[str, Score], columns: Columns) -> bool:
    """True if one of the rubrics failed."""
    return any(score.status == "error" for score in _select_scores(scores, columns))


def _select_scores(scores: Mapping[str, Score], columns: Columns) -> list[Score]:
    return [scores[column.name] for column in columns.columns if column.name in scores]


def compute_total(scores: Mapping[str, Score], columns: Columns) -> Total | None:
    """Compute the weighted mean of the scored rubrics, on the scale of the total; None without scores.

    The total is rounded, so that rounding noise does not affect the order of equal totals.
    """
    weighted = [
        (column.rubric.weight, value)
        for column in columns.columns
        if (score := scores.get(column.name)) is not None and (value := score.value) is not None
    ]
    if not weighted:
        return None
    normalized = weighted_mean(weighted)
    low, high = columns.scale
    digits = DIGITS - math.ceil(math.log10(max(abs(low), abs(high))))
    return Total(normalized, round(low + normalized * (high - low), digits))


class Rubric(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One aspect by which a session is scored, and the meaning of each score.

    `weight` is its weight in the total. `scale` is its lowest and highest score, if it differs from the
    set's. `metadata` may hold anything.

    >>> Rubric("tone", "Tone", "Is the agent polite?", "1: rude … 5: polite").weight
    1.0
    """

    id: Annotated[NonEmptyText, msgspec.Meta(description="The name of its scores; unique in the file.")]
    name: Annotated[NonEmptyText, msgspec.Meta(description="The name that reports show.")]
    description: Annotated[NonEmptyText, msgspec.Meta(description="What the judge should consider, and what not.")]
    scoring_criteria: Annotated[
        NonEmptyText, msgspec.Meta(description="The meaning of each score, best on one line per score.")
    ]
    weight: Annotated[float, msgspec.Meta(gt=0, description="Its weight in the total.")] = 1.0
    scale: Annotated[
        tuple[float, float] | None,
        msgspec.Meta(description="Its lowest and highest score, if it differs from the set's."),
    ] = None
    metadata: Annotated[dict[str, Any], msgspec.Meta(description="Any further information.")] = {}

    def __post_init__(self) -> None:
        _reject_problems("rubric", find_rubric_problems(msgspec.structs.asdict(self)))


class RubricSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The rubrics of a file in order, with the version that is stored with results.

    `scale` is the lowest and highest score of all rubrics without a separate scale.
    """

    version: Annotated[NonEmptyText, msgspec.Meta(description="The version that results name.")]
    rubrics: Annotated[tuple[Rubric, ...], msgspec.Meta(min_length=1, description="The rubrics that score sessions.")]
    scale: Annotated[
        tuple[float, float] | None, msgspec.Meta(description="The lowest and highest score; [1, 5] by default.")
    ] = None
    metadata: Annotated[dict[str, Any], msgspec.Meta(description="Any further information.")] = {}

    def __post_init__(self) -> None:
        rubrics: Any = self.rubrics
        if isinstance(rubrics, list | tuple):
            rubrics = [msgspec.structs.asdict(rubric) if isinstance(rubric, Rubric) else rubric for rubric in rubrics]
            msgspec.structs.force_setattr(self, "rubrics", tuple(self.rubrics))
        _reject_problems("set of rubrics", find_set_problems({**msgspec.structs.asdict(self), "rubrics": rubrics}))

    def __iter__(self) -> Iterator[Rubric]:
        return iter(self.rubrics)

    def __len__(self) -> int:
        return len(self.rubrics)

    def __getitem__(self, rubric_id: str) -> Rubric:
        for rubric in self.rubrics:
            if rubric.id == rubric_id:
                return rubric
        ids = [rubric.id for rubric in self.rubrics]
        raise KeyError(f"unknown rubric {rubric_id!r}; {suggest_name(rubric_id, ids)}")


class ChatSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session with its id, for a `RubricScorer`."""

    session_id: str
    session: Session


def find_scale(rubric: Rubric, default: tuple[float, float] = DEFAULT_SCALE) -> tuple[float, float]:
    """Return the lowest and highest score of a rubric: its own scale, or the default."""
    return default if rubric.scale is None else rubric.scale


def make_rubric(data: Mapping[str, Any]) -> Rubric:
    """Make a rubric from validated data."""
    return msgspec.convert(_clean(_move_unknown_keys(data, Rubric)), Rubric, strict=False)


def make_rubric_set(data: Mapping[str, Any]) -> RubricSet:
    """Make a set of rubrics from validated data."""
    data = _move_unknown_keys(data, RubricSet)
    rubrics = [_clean(_move_unknown_keys(rubric, Rubric)) for rubric in data["rubrics"]]
    version = str(data["version"]).strip()
    return msgspec.convert({**_clean(data), "version": version, "rubrics": rubrics}, RubricSet)


def describe_unknown_keys(part: Rubric | RubricSet) -> str:
    """Describe the unknown keys of a file that are stored in the metadata; "" if there are none."""
    names = part.metadata.get(UNKNOWN_KEYS)
    if not isinstance(names, list) or not names:
        return ""
    owner = f"rubric {part.id!r}" if isinstance(part, Rubric) else "rubric file"
    nouns, verb = ("key", "is") if len(names) == 1 else ("keys", "are")
    return f"{owner}: unknown {nouns} {', '.join(map(repr, names))} {verb} stored in its metadata"


def _move_unknown_keys(data: Mapping[str, Any], record: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Move unknown keys into the metadata, and list them there."""
    names = [key for key in data if key not in record.__struct_fields__]
    if not names:
        return data
    known_items = {key: value for key, value in data.items() if key not in names}
    metadata = dict(data.get("metadata") or {})
    key_names = [*metadata.get(UNKNOWN_KEYS, ()), *map(str, names)]
    unknown_values = {str(name): data[name] for name in names}
    return {**known_items, "metadata": {**unknown_values, **metadata, UNKNOWN_KEYS: key_names}}


def _clean(data: Mapping[str, Any]) -> dict[str, Any]:
    """Strip strings and drop empty values."""
    return {
        key: value.strip() if key in _TEXTS and isinstance(value, str) else value
        for key, value in data.items()
        if value is not None
    }


def _reject_problems(record: str, problems: Iterable[RubricProblem]) -> None:
    texts = [join_location(".".join(map(str, path)), text) if path else text for path, text in problems]
    if texts:
        raise InvalidRecord(f"not a valid {record}: {'; '.join(texts)}")


def find_set_problems(data: Any) -> Iterator[RubricProblem]:
    """Find all problems in a rubric file, each with its location."""
    if not isinstance(data, Mapping):
        yield (), "a rubric file must be a mapping: {version: …, rubrics: [{id: …, name: …}]}"
        return
    version = data.get("version")
    if version is None:
        yield (), "'version' is missing. Fix: add version: \"1.0\"; it is stored with each result"
    elif isinstance(version, bool) or not isinstance(version, str | int | float):
        yield ("version",), f"must be a string, got {version!r}"
    elif not str(version).strip():
        yield ("version",), "must not be empty"
    yield from _check_keys(data, RubricSet, ())
    yield from _check_scale(data.get("scale"), ("scale",))
    yield from _check_metadata(data.get("metadata"), ("metadata",))
    rubrics = data.get("rubrics")
    if rubrics is None:
        yield (), "'rubrics' is missing. Fix: add a list of rubrics"
    elif not isinstance(rubrics, list | tuple):
        yield ("rubrics",), f"must be a list, got {_describe_type(rubrics)}"
    elif not rubrics:
        yield ("rubrics",), "must have at least one rubric"
    else:
        for index, rubric in enumerate(rubrics):
            yield from find_rubric_problems(rubric, ("rubrics", index))
        yield from _check_ids(rubrics)


def find_rubric_problems(data: Any, at: Path = ()) -> Iterator[RubricProblem]:
    """Find all problems of one rubric as data."""
    if not isinstance(data, Mapping):
        yield at, f"a rubric must be a mapping with id, name and description, got {_describe_type(data)}"
        return
    yield from _check_keys(data, Rubric, at)
    for key in _TEXTS:
        yield from _check_text(data, key, at)
    weight = data.get("weight", 1.0)
    if not is_number(weight) or weight <= 0:
        yield (*at, "weight"), f"must be a number greater than 0, got {weight!r}"
    yield from _check_scale(data.get("scale"), (*at, "scale"))
    yield from _check_metadata(data.get("metadata"), (*at, "metadata"))


def _check_keys(data: Mapping[str, Any], record: type[msgspec.Struct], at: Path) -> Iterator[RubricProblem]:
    """Find misspelled keys; keys that resemble no known key go into the metadata."""
    for key in data:
        if key not in record.__struct_fields__:
            hint = suggest_name(str(key), record.__struct_fields__)
            if hint.startswith("did you mean"):
                yield (*at, key), f"unknown key {str(key)!r}; {hint} Your own data belongs under 'metadata'"


def _check_text(data: Mapping[str, Any], key: str, at: Path) -> Iterator[RubricProblem]:
    if key not in data:
        yield at, f"{key!r} is missing"
        return
    text = data[key]
    if not isinstance(text, str):
        yield (*at, key), f"must be a string, got {text!r}. Fix: put it in quotes"
    elif not text.strip():
        yield (*at, key), "must not be empty"
    elif key == "id" and (len(text.strip()) > MAX_ID_LENGTH or len(text.strip().splitlines()) > 1):
        yield (*at, key), f"must be one line of at most {MAX_ID_LENGTH} characters"


def _check_ids(rubrics: Sequence[Any]) -> Iterator[RubricProblem]:
    """Find duplicate ids, and ids that are names of other metrics."""
    raw = [rubric.get("id") if isinstance(rubric, Mapping) else None for rubric in rubrics]
    ids = [text.strip() if isinstance(text, str) else "" for text in raw]
    places: list[Path] = [("rubrics", index, "id") for index in range(len(ids))]
    for index, name in enumerate(ids):
        if name and name in ids[:index]:
            yield places[index], f"another rubric has the same id {name!r}"
    metrics = {f"{name}.{suffix}": name for name in ids for suffix in EVALUATOR_METRICS if name}
    for index, name in enumerate(ids):
        if name in RUN_METRICS:
            yield places[index], f"{name!r} is also a metric of every run. Fix: choose another id"
        elif name in metrics:
            yield places[index], f"{name!r} is also a metric of {metrics[name]!r}. Fix: choose another id"


def _check_scale(scale: Any, at: Path) -> Iterator[RubricProblem]:
    if scale is None:
        return
    bounds = tuple(scale) if isinstance(scale, list | tuple) else ()
    if len(bounds) != 2 or not all(map(is_number, bounds)) or not bounds[0] < bounds[1]:
        yield at, f"must be the lowest and the highest score, such as [1, 5], got {scale!r}"


def _check_metadata(metadata: Any, at: Path) -> Iterator[RubricProblem]:
    if not isinstance(metadata, Mapping | None):
        yield at, f"must be a mapping, got {_describe_type(metadata)}"


def _describe_type(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "a boolean"}
    for type_, name in names.items():
        if isinstance(value, type_):
            return name
    return "nothing" if value is None else "a number" if is_number(value) else "something else"
