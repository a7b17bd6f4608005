"""Faults of samples, and the errors that report them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from proctor.errors import DatasetError, Problem
from proctor.records.sample import Sample, type_name

MAX_SHOWN = 60
FIXES_SHOWN = 3
# The position of a fault that concerns all items in memory; in files it is line 0.
WHOLE_DATASET = -1


# A problem of one sample; `where` is the field.
Fault = Problem


class InvalidRecord(ValueError):
    """Raised inside this package when a record is not a sample; holds every fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(*faults)
        self.faults = faults


class SharedLine(int):
    """The line of a sample that shares its line with others; `sample` counts from 1."""

    sample: int

    def __new__(cls, line: int, sample: int) -> SharedLine:
        shared = super().__new__(cls, line)
        shared.sample = sample
        return shared


# Takes a position (a line or an index; 0 is the file itself) and its faults; may raise to stop.
ReportFaults = Callable[[int, Sequence[Fault]], None]

# One pass over the samples with their positions; faults go to the given function.
Rows = Callable[[ReportFaults], Iterator[tuple[int, Sample[Any, Any]]]]

# Names a position: "qa.jsonl:3", "item 3".
Locate = Callable[[int], str]


def sample_error(where: str, faults: Sequence[Fault]) -> DatasetError:
    """Return the error for one sample with all its faults."""
    if len(faults) == 1:
        return DatasetError(str(faults[0]), where=where, fix=_join_fixes(faults))
    return DatasetError("not a valid sample", where=where, problems=faults, fix=_join_fixes(faults))


def dataset_error(name: str, faults: Sequence[tuple[str, Fault]], *, stopped: bool = False) -> DatasetError:
    """Return the error for a dataset with the faults of all its samples."""
    count = f"{len(faults)} problem" + ("s" if len(faults) > 1 else "")
    return DatasetError(
        f"{count} in the dataset{'; reading stopped there' if stopped else ''}",
        where=name,
        problems=[Problem(where, str(fault)) for where, fault in faults],
        fix=_join_fixes([fault for _, fault in faults]),
    )


def describe_value(value: object) -> str:
    """Describe a value for an error message."""
    kind = type_name(value)
    if isinstance(value, bool):
        return f"{kind}: {str(value).lower()}"
    return f"{kind}: {shorten(repr(value))}" if isinstance(value, str | int | float) else kind


def shorten(text: str) -> str:
    """Cut a text to the length that fits in a message."""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _join_fixes(faults: Sequence[Fault]) -> str:
    return ";\n  ".join(list(dict.fromkeys(fault.fix for fault in faults if fault.fix))[:FIXES_SHOWN])
