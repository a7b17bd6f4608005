"""The results of a run as rows of a table, and as data frames of pandas and Polars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from proctor.core.optional import require
from proctor.records import codec
from proctor.records.sample import Sample
from proctor.records.trial import EvalResult

Row = dict[str, Any]

METADATA = "metadata."
# Recorded sessions are too large for a cell.
SESSION_COLUMN = f"{METADATA}session"
_VALUES = ("input", "expected", "output")
_SCALARS = (bool, int, float, str)


def make_row(result: EvalResult, fields: Mapping[str, Any]) -> Row:
    """Return everything about a trial that fits in a row.

    `fields` are the selected fields; a field replaces the column of the same name.
    """
    trial, usage, judging = result.trial, result.trial.usage, result.judging
    outcome, value = result.verdict()
    row: Row = {
        "sample_id": result.sample_id,
        "configuration": trial.configuration,
        "epoch": trial.epoch,
        "outcome": outcome,
        "score": value,
        "input": trial.sample.input,
        "expected": trial.sample.expected,
        "output": trial.output,
        "error": result.error,
    }
    for name, score in result.scores.items():
        row |= {
            f"{name}.score": score.value,
            f"{name}.passed": score.passed,
            f"{name}.status": score.status,
            f"{name}.reason": score.reason,
        }
    row |= {
        **_metadata_columns(trial.sample),
        "latency_ms": trial.latency_ms,
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "total_tokens": usage.total_tokens if usage else None,
        "cost": usage.cost if usage else None,
        "judge_tokens": judging.total_tokens if judging else None,
        "judge_cost": judging.cost if judging else None,
        "attempts": trial.attempts,
        "cached": trial.cached,
    }
    return {**row, **fields}


def _metadata_columns(sample: Sample[Any, Any]) -> Row:
    return {f"{METADATA}{key}": value for key, value in sample.metadata.items()}


def list_columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns of all rows; a column that only later rows have comes before the next one of its row."""
    columns: list[str] = []
    known: set[str] = set()
    for row in rows:
        if known.issuperset(row):
            continue
        position = len(columns)
        for name in reversed(list(row)):
            if name in known:
                position = columns.index(name)
            else:
                columns.insert(position, name)
                known.add(name)
    return columns


def to_pandas(rows: list[Row]) -> Any:
    """Return rows as a pandas DataFrame."""
    pandas = require("pandas", extra="pandas", why="report.to_pandas()")
    columns = {name: [row.get(name) for row in rows] for name in list_columns(rows)}
    # Otherwise pandas would turn integers into floats where a value is missing.
    data = {name: pandas.Series(v, dtype=object) if name in _VALUES else v for name, v in columns.items()}
    return pandas.DataFrame(data, columns=list(data))


def to_polars(rows: list[Row]) -> Any:
    """Return rows as a Polars DataFrame; columns of several types, lists and mappings become JSON texts."""
    polars = require("polars", extra="polars", why="report.to_polars()")
    columns = {name: _to_column([row.get(name) for row in rows]) for name in list_columns(rows)}
    return polars.DataFrame([polars.Series(name, values, strict=False) for name, values in columns.items()])


def _to_column(values: list[Any]) -> list[Any]:
    """Return values of one type that a data frame can store, without changing any silently."""
    types = {type(value) for value in values if value is not None}
    if types <= {int, float}:
        # An integer that a float cannot hold exactly stays text.
        if types == {int} or all(value is None or float(value) == value for value in values):
            is_small = all(value is None or abs(value) < 2**63 or isinstance(value, float) for value in values)
            return values if is_small else [_to_text(value) for value in values]
    elif len(types) == 1 and types <= set(_SCALARS):
        return values
    return [_to_text(value) for value in values]


def _to_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else codec.to_text(value)
