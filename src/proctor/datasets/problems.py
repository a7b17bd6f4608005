"""Problems in samples, and the errors that report them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from proctor.errors import DatasetError, Problem
from proctor.records.sample import Sample, type_name

MAX_SHOWN = 60
# The default name of a dataset in memory.
IN_MEMORY = "memory"
MAX_FIXES = 3
# The position of a problem that concerns all items in memory; for files it is line 0.
WHOLE_DATASET = -1


class InvalidRecord(ValueError):
    """Raised inside this package when a record is not a sample; holds every problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(*problems)
        self.problems = problems


class SharedLine(int):
    """The line of a sample that is not alone on its line; `sample` is its position there, starting at 1."""

    sample: int

    def __new__(cls, line: int, sample: int) -> SharedLine:
        shared = super().__new__(cls, line)
        shared.sample = sample
        return shared


# Takes a position (a line or an index; 0 is the file itself) and its problems; may raise to stop.
ReportProblems = Callable[[int, Sequence[Problem]], None]

# One pass over the samples with their positions; problems go to the given function.
Rows = Callable[[ReportProblems], Iterator[tuple[int, Sample[Any, Any]]]]

# Names a position: "qa.jsonl:3", "item 3".
Locate = Callable[[int], str]


def sample_error(where: str, problems: Sequence[Problem]) -> DatasetError:
    """Return the error for one sample with all its problems."""
    if len(problems) == 1:
        return DatasetError(str(problems[0]), where=where, fix=_join_fixes(problems))
    return DatasetError("not a valid sample", where=where, problems=problems, fix=_join_fixes(problems))


def dataset_error(name: str, problems: Sequence[tuple[str, Problem]], *, stopped: bool = False) -> DatasetError:
    """Return the error for a dataset with the problems of all its samples."""
    count = f"{len(problems)} problem" + ("s" if len(problems) > 1 else "")
    return DatasetError(
        f"{count} in the dataset{'; reading stopped there' if stopped else ''}",
        where="" if name == IN_MEMORY else name,
        problems=[Problem(where, str(problem)) for where, problem in problems],
        fix=_join_fixes([problem for _, problem in problems]),
    )


def describe_value(value: object) -> str:
    """Describe a value for an error message."""
    kind = type_name(value)
    if isinstance(value, bool):
        return f"{kind}: {str(value).lower()}"
    return f"{kind}: {shorten(repr(value))}" if isinstance(value, str | int | float) else kind


def shorten(text: str) -> str:
    """Truncate a string so that it fits in a message."""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _join_fixes(problems: Sequence[Problem]) -> str:
    return ";\n  ".join(list(dict.fromkeys(problem.fix for problem in problems if problem.fix))[:MAX_FIXES])
