"""The parts of a run in a file: its start, each of its results, and its end with the metrics.

A file of JSON lines has one line per part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from proctor.errors import UsageError
from proctor.records import codec
from proctor.records.label import HumanLabel
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult
from proctor.records.validation import explain

Format = Literal["jsonl", "csv", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
EXTENSIONS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
# The version of the file format; it increases when an older Proctor can no longer read the files.
VERSION = 1


class RunPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="part", tag="run"):
    """The start of a run: its metadata, and the baselines that point to it."""

    proctor_run: int
    metadata: RunMetadata
    baselines: tuple[str, ...] = ()


class ResultPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="part", tag="result"):
    """One result, with its position in the run's plan."""

    position: int
    result: EvalResult


class EndPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="part", tag="end"):
    """The end of a run: its number of results, their metrics, and the human labels, if there are any."""

    run_id: str
    results: int
    metrics: Mapping[str, MetricValue] = {}
    by_configuration: Mapping[str, Mapping[str, MetricValue]] = {}
    labels: tuple[HumanLabel, ...] = ()


class Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The start and the end of a run; a table stores both in the row of the run's first result."""

    run: RunPart
    end: EndPart


Part = RunPart | ResultPart | EndPart


class LocatedPart(NamedTuple):
    """A part, with its file and line."""

    where: str
    part: Part


class ExportedRun(NamedTuple):
    """A stored run to export; its results are read while they are written."""

    frame: Frame
    results: Iterator[ResultPart]


def detect_format(path: Path, chosen: Format | None = None) -> Format:
    """Return the chosen format, or the format that the file's extension implies."""
    file_format = chosen or EXTENSIONS.get(path.suffix.lower())
    if file_format is None:
        raise UsageError(
            f"unknown file extension {path.suffix!r}",
            where=str(path),
            fix=f"use one of {', '.join(f'.{name}' for name in FORMATS)}, or add --format",
        )
    return file_format


class DamagedFile(UsageError):
    """A file is damaged, or not an export of runs."""


def damaged_file(reason: str, where: str) -> DamagedFile:
    """Return the error for a file that is damaged, or not an export of runs."""
    return DamagedFile(
        f"the file is damaged, or not an export of runs: {reason}",
        where=where,
        fix="use a file that `proctor history export` wrote, or export the run again",
    )


def read_part(data: bytes | str, kind: Any, where: str) -> Any:
    """Decode a part of a run from JSON; raise `DamagedFile` if that fails."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if where.endswith(":1") and "required field `part`" in str(error):
            raise DamagedFile(
                "this is not an export of runs", where=where, fix="use a file that `proctor history export` wrote"
            ) from None
        raise damaged_file(explain(error), where) from None


LINES_PER_CHUNK = 100


def encode_jsonl(runs: Iterable[ExportedRun]) -> Iterator[bytes]:
    """Yield the content of a file of JSON lines in chunks."""
    for frame, results in runs:
        pending: list[Part] = [frame.run]
        for part in results:
            pending.append(part)
            if len(pending) >= LINES_PER_CHUNK:
                yield _encode_lines(pending)
                pending = []
        yield _encode_lines([*pending, frame.end])


def _encode_lines(parts: Iterable[Part]) -> bytes:
    return b"".join(codec.encode(part) + b"\n" for part in parts)


def read_jsonl(path: Path) -> Iterator[LocatedPart]:
    """Yield the parts of every run in a file, in order; blank lines are ignored."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                where = f"{path}:{number}"
                yield LocatedPart(where, read_part(text, Part, where))
