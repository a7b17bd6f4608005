"""What a run is made of in a file: how it begins, each of its results, and what it amounts to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from proctor.errors import UsageError
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

Format = Literal["jsonl", "csv", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
# Of the files, not of the program: it grows when an older Proctor could not read them any more.
VERSION = 1


class RunPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="part", tag="run"):
    """The beginning of a run: everything about it, and the baselines that it is."""

    proctor_run: int
    metadata: RunMetadata
    baselines: tuple[str, ...] = ()


class ResultPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="part", tag="result"):
    """One result, at its place in the run's plan."""

    position: int
    result: EvalResult


class EndPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="part", tag="end"):
    """The end of a run: how many results it has, and what they amount to."""

    run_id: str
    results: int
    metrics: dict[str, MetricValue] = {}
    by_configuration: dict[str, dict[str, MetricValue]] = {}


class Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Both ends of a run, as a table has them beside the first of its results."""

    run: RunPart
    end: EndPart


Part = RunPart | ResultPart | EndPart


class Placed(NamedTuple):
    """A part, and where in which file it stands."""

    where: str
    part: Part


class WholeRun(NamedTuple):
    """A stored run on its way into a file; its results are read as they are written."""

    frame: Frame
    results: Iterator[ResultPart]


def format_of(path: Path, given: Format | None = None) -> Format:
    """The format that is meant: the one that is given, else that of the file's ending.

    >>> format_of(Path("runs.csv"))
    'csv'
    """
    found = given or ENDINGS.get(path.suffix.lower())
    if found is None:
        raise UsageError(
            f"the ending {path.suffix!r} says no format",
            where=str(path),
            fix=f"let the name end in {', '.join(f'.{name}' for name in FORMATS)}, or say --format",
        )
    return found


class Damaged(UsageError):
    """A file does not hold what an export has."""


def damaged(what: str, where: str) -> Damaged:
    """What one is told of a file that does not hold what an export has."""
    return Damaged(
        f"the file is damaged, or no export of runs: {what}",
        where=where,
        fix="take a file that `proctor history export` wrote, or export the run again",
    )


def read_part(data: bytes | str, kind: Any, where: str) -> Any:
    """A part of a run from JSON, or what is wrong with it and where."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(str(error), where) from None
