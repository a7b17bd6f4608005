"""One test for a table of cases: it runs every row, and names each row that fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]


def each_row(
    names: str | Sequence[str], rows: Iterable[Any], ids: Iterable[object] | None = None
) -> Callable[[Test], Test]:
    """Run a test with every row of a table, like `pytest.mark.parametrize` but as one test.

    A test of its own per row costs more than most rows do, so this is for long tables. Rows share their fixtures.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [_values(row, len(keys)) for row in rows]
    labels = cases if ids is None else list(ids)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[tuple[object, BaseException]] = []
            for label, case in zip(labels, cases, strict=True):
                try:
                    test(**fixtures, **dict(zip(keys, case, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failures.append((label, error))
            if failures:
                lines = "\n".join(f"- {label!s:.200}: {type(error).__name__}: {error}" for label, error in failures)
                message = f"{len(failures)} of {len(cases)} rows fail:\n{lines}"
                raise AssertionError(message) from failures[0][1]

        parameters = inspect.signature(test).parameters
        fixtures = [parameter for name, parameter in parameters.items() if name not in keys]
        run.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


def _values(row: Any, count: int) -> tuple[Any, ...]:
    values = (row,) if count == 1 else tuple(row)
    assert len(values) == count, f"{count} values are expected, not {row!r}"
    return values
