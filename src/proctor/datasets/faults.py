"""What is wrong with a sample, and the error that tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from proctor.errors import DatasetError, Problem
from proctor.records.sample import Sample, kind_of

LONGEST_SHOWN = 60
FIXES_SHOWN = 3
# The position of a fault that is about items in memory as a whole; in files that is line 0.
WHOLE = -1


class Fault(NamedTuple):
    """One thing that is wrong with one sample: the field, what is wrong, how to mend it.

    >>> str(Fault("input", "is missing"))
    'input: is missing'
    """

    field: str
    what: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.what}" if self.field else self.what


class Unfit(ValueError):
    """Raised inside this room when something cannot be made a sample; holds every fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(*faults)
        self.faults = faults


class SharedLine(int):
    """The line of a sample that begins on the same line as others; `sample` counts from 1.

    >>> line = SharedLine(1, sample=3)
    >>> (line == 1, line.sample)
    (True, 3)
    """

    sample: int

    def __new__(cls, line: int, sample: int) -> SharedLine:
        made = super().__new__(cls, line)
        made.sample = sample
        return made


# Told of a position (a line, an index; 0 in a file is the file itself) and what is wrong there.
# One who wants to stop raises; one who wants them all takes a note.
Refuse = Callable[[int, Sequence[Fault]], None]

# One pass over the samples, each with its position; faults go to the given `Refuse`.
Rows = Callable[[Refuse], Iterator[tuple[int, Sample[Any, Any]]]]

# The name of a position, for people: "qa.jsonl:3", "item 3".
Place = Callable[[int], str]


def refuse_at_once(place: Place) -> Refuse:
    """A `Refuse` that stops at the first position with a fault, and tells all faults of it."""

    def refuse(position: int, faults: Sequence[Fault]) -> None:
        raise one_bad(place(position), faults) from None

    return refuse


def one_bad(where: str, faults: Sequence[Fault]) -> DatasetError:
    """The error for one sample, with all its faults."""
    if len(faults) == 1:
        return DatasetError(str(faults[0]), where=where, fix=_fixes(faults))
    problems = [Problem(fault.field, fault.what) for fault in faults]
    return DatasetError("not a valid sample", where=where, problems=problems, fix=_fixes(faults))


def many_bad(name: str, found: Sequence[tuple[str, Fault]], *, stopped: bool = False) -> DatasetError:
    """The error for a whole dataset, with the faults of all its samples by place."""
    count = f"{len(found)} problem" + ("s" if len(found) > 1 else "")
    end = "; reading stopped there" if stopped else ""
    return DatasetError(
        f"{count} in the dataset{end}",
        where=name,
        problems=[Problem(place, str(fault)) for place, fault in found],
        fix=_fixes([fault for _, fault in found]),
    )


def found(value: object) -> str:
    """A value in words, as an error message shows what was found.

    >>> found(42), found(True), found(None), found([1])
    ('a number: 42', 'a boolean: true', 'null', 'a list')
    """
    kind = kind_of(value)
    if isinstance(value, bool):
        return f"{kind}: {str(value).lower()}"
    if isinstance(value, str | int | float):
        return f"{kind}: {shortened(repr(value))}"
    return kind


def shortened(text: str) -> str:
    """A text cut to what fits in a message."""
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def _fixes(faults: Sequence[Fault]) -> str:
    different = list(dict.fromkeys(fault.fix for fault in faults if fault.fix))
    return ";\n  ".join(different[:FIXES_SHOWN])
