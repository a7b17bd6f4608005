"""Data frames of pandas and Polars as records of a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from proctor.datasets.problems import dataset_error
from proctor.errors import DatasetError, Problem

NAME = "DataFrame"


def is_frame(value: object) -> bool:
    """True if a value is a data frame of pandas or Polars; this imports neither."""
    return _library(value) != "" and type(value).__name__ in (NAME, "LazyFrame")


def read_frame(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a data frame as mappings; missing values (None, NaN, NaT) are left out.

    A named index is a column too. pandas stores integers as floats if a value of the column is missing; they become
    integers again.
    """
    if type(frame).__name__ != NAME:
        raise DatasetError(
            f"a {type(frame).__name__} has no rows yet", where=NAME, fix="pass its rows: dataset=frame.collect()"
        )
    columns = _pandas_columns(frame) if _library(frame) == "pandas" else _polars_columns(frame)
    names = [name for name, _ in columns]
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        problem = Problem("", f"several columns are called {repeated[0]!r}", "rename them")
        raise dataset_error(NAME, [(NAME, problem)])
    return [
        {name: cell for name, cell in zip(names, row, strict=True) if cell is not None}
        for row in zip(*(cells for _, cells in columns), strict=True)
    ]


def _library(value: object) -> str:
    library = type(value).__module__.partition(".")[0]
    return library if library in ("pandas", "polars") else ""


def _polars_columns(frame: Any) -> list[tuple[str, list[Any]]]:
    return [(name, [_clean(cell) for cell in frame[name].to_list()]) for name in frame.columns]


def _pandas_columns(frame: Any) -> list[tuple[str, list[Any]]]:
    columns = [(str(name), frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
    index = frame.index
    if getattr(index, "nlevels", 1) == 1 and index.name is not None and str(index.name) not in dict(columns):
        columns.insert(0, (str(index.name), index.to_series()))
    return [(name, list(_pandas_cells(series))) for name, series in columns]


def _pandas_cells(series: Any) -> Iterator[Any]:
    cells, missing = series.tolist(), series.isna().tolist()
    were_integers = (
        any(missing)
        and not all(missing)
        and all(
            is_missing or (isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53)
            for cell, is_missing in zip(cells, missing, strict=True)
        )
    )
    for cell, is_missing in zip(cells, missing, strict=True):
        if is_missing:
            yield None
        else:
            yield int(cell) if were_integers else _clean(cell)


def _clean(cell: Any) -> Any:
    """Return a cell as a plain value: None for NaN, lists for arrays, and Python's own dates."""
    if isinstance(cell, float) and cell != cell:
        return None
    for method in ("to_pydatetime", "tolist"):
        if hasattr(cell, method):
            return getattr(cell, method)()
    return cell
