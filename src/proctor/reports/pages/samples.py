"""The pages of samples: the grid, its columns and rows, one sample with all results, and a search."""

from __future__ import annotations

import base64
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import eq
from typing import Any

from proctor.records.grid import NOWHERE, Grid
from proctor.records.results import Results
from proctor.records.sample import Sample
from proctor.records.session import Session
from proctor.records.trial import EvalResult
from proctor.reports.format import to_text

PREVIEW_LENGTH = 300
IMAGE_TYPES = ("image", "image_url", "input_image")
# More distinct values of a metadata key make no useful filter.
MAX_VALUES = 1_000
NO_VALUE = 65_535
# A search answers after this time, with a cursor to continue.
SEARCH_SECONDS = 0.05


def grid_page(grid: Grid) -> dict[str, Any]:
    """Describe all results as columns; see `Grid` for their order."""
    return {
        "sample_ids": grid.sample_ids,
        "configurations": list(grid.configurations),
        "epochs": grid.epochs,
        "outcomes": encode_bytes(grid.outcomes),
        "values": encode_numbers(grid.values),
        "numbers": list(number_columns(grid)),
        "evaluators": list(grid.marks),
        "marks": {name: encode_bytes(marks) for name, marks in grid.marks.items()},
    }


def number_columns(grid: Grid) -> dict[str, array[float]]:
    """Return the columns of numbers that a grid loads when it sorts or filters by them, without empty ones."""
    columns = {"latency": grid.latencies, "tokens": grid.tokens, "cost": grid.costs}
    return {name: column for name, column in columns.items() if column and any(map(eq, column, column))}


def encode_bytes(data: bytes) -> str:
    return base64.b64encode(data).decode()


def encode_numbers(numbers: array[Any]) -> str:
    """Encode numbers as base64, in the byte order that browsers expect."""
    if sys.byteorder == "big":
        numbers = array(numbers.typecode, numbers)
        numbers.byteswap()
    return encode_bytes(numbers.tobytes())


def list_metadata(samples: Iterable[Sample[Any, Any]], rows: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Return a column for each metadata key, with the distinct values as text and a code for each row.

    Each tag is a key of its own, `tags.NAME`, with the values yes and no.
    """
    values: dict[str, dict[str, int]] = {}
    codes: dict[str, array[int]] = {}
    for sample in samples:
        row = rows.get(sample.id)
        if row is None:
            continue
        for key, value in _flatten(sample.metadata):
            known = values.setdefault(key, {})
            if value not in known and len(known) >= MAX_VALUES:
                continue
            column = codes.get(key)
            if column is None:
                column = codes[key] = array("H", [NO_VALUE]) * len(rows)
            column[row] = known.setdefault(value, len(known))
    return {
        key: {
            "key": key,
            "values": list(values[key]),
            "codes": encode_numbers(codes[key]),
            "too_many": len(values[key]) >= MAX_VALUES,
        }
        for key in sorted(codes)
    }


def _flatten(metadata: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in metadata.items() if isinstance(metadata, dict) else ():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{name}.")
        elif key == "tags" and isinstance(value, list | tuple):
            yield from ((f"{name}.{tag}", "yes") for tag in value)
        elif isinstance(value, str | int | float | bool):
            # A whole number is its own JSON; writing a hundred thousand of them as JSON takes long.
            text = str(value) if type(value) is int else to_text(value)
            if len(text) <= PREVIEW_LENGTH:
                yield name, text


def _leaves(value: Any) -> Iterator[str]:
    """Yield the values inside lists and objects as texts, and whole numbers as in JavaScript, without a fraction."""
    if isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(part)
    elif value is not None:
        yield to_text(int(value) if isinstance(value, float) and value.is_integer() else value)


def preview(value: Any) -> str:
    """Return the start of a value as one line of text."""
    if value is None:
        return ""
    line = " ".join(to_text(_join_parts(value))[: 2 * PREVIEW_LENGTH].split())
    return line if len(line) <= PREVIEW_LENGTH else f"{line[: PREVIEW_LENGTH - 1]}…"


def _join_parts(value: Any) -> Any:
    """Write a list of content parts as their texts, with a word for each image; return any other value as it is."""
    if not isinstance(value, list | tuple) or not all(isinstance(part, Mapping) for part in value):
        return value
    texts = ["[image]" if part.get("type") in IMAGE_TYPES else part.get("text") for part in value]
    has_image = any(part.get("type") in IMAGE_TYPES for part in value)
    return " ".join(texts) if has_image and all(isinstance(text, str) for text in texts) else value


def row_pages(results: Results, grid: Grid, rows: Sequence[int]) -> list[dict[str, Any]]:
    """Describe rows of the grid with the start of their texts."""
    cells = [(row, cell) for row in rows if 0 <= row < len(grid.sample_ids) for cell in _cells(grid, row)]
    page_results = results.read([grid.places[cell] for _, cell in cells])
    by_row: dict[int, list[tuple[int, EvalResult]]] = {}
    for (row, cell), result in zip(cells, page_results, strict=True):
        by_row.setdefault(row, []).append((cell, result))
    return [_describe_row(row, grid.sample_ids[row], by_row[row]) for row in rows if row in by_row]


def _cells(grid: Grid, row: int) -> Iterator[int]:
    first = row * grid.width
    return (cell for cell in range(first, first + grid.width) if grid.places[cell] != NOWHERE)


def _describe_row(row: int, sample_id: str, cells: Sequence[tuple[int, EvalResult]]) -> dict[str, Any]:
    sample = cells[0][1].trial.sample
    return {
        "row": row,
        "sample_id": sample_id,
        "input": preview(sample.input),
        "expected": preview(sample.expected),
        "cells": [_describe_cell(cell, result) for cell, result in cells],
    }


def _describe_cell(cell: int, result: EvalResult) -> dict[str, Any]:
    described: dict[str, Any] = {"cell": cell, "output": preview(result.trial.output)}
    if result.trial.error is not None:
        described["error"] = preview(str(result.trial.error))
    for name, score in result.scores.items():
        if score.passed is not True and (score.status != "skipped" or "reason" not in described):
            described["evaluator"], described["reason"] = name, preview(score.reason)
            if score.status != "skipped":
                break
    return described


def sample_page(results: Sequence[EvalResult], row: int) -> dict[str, Any]:
    """Describe a sample with everything about its results."""
    sample = results[0].trial.sample
    return {
        "sample": {"id": sample.id, "input": sample.input, "expected": sample.expected, "metadata": sample.metadata},
        "row": row,
        "results": [_describe_result(result) for result in results],
    }


def _describe_result(result: EvalResult) -> dict[str, Any]:
    trial = result.trial
    outcome, value = result.verdict()
    return {
        "configuration": trial.configuration,
        "epoch": trial.epoch,
        "outcome": outcome,
        "value": value,
        "output": trial.output,
        "error": trial.error,
        "latency_ms": trial.latency_ms,
        "usage": trial.usage,
        "attempts": trial.attempts,
        "cached": trial.cached,
        "started_at": trial.started_at,
        "scores": {
            name: {
                "value": score.value,
                "passed": score.passed,
                "status": score.status,
                "reason": score.reason,
                "details": score.details,
            }
            for name, score in result.scores.items()
        },
        "session": _describe_session(trial.session),
        "judging": {name: _describe_session(session) for name, session in result.sessions.items()},
        "delivery": result.delivery,
        "raw_output": trial.raw_output,
    }


def _describe_session(session: Session | None) -> Any:
    return None if session is None else {"events": list(session.events)}


def search_page(
    results: Results, rows: Mapping[str, int], text: str, after: int = 0, *, error: str = ""
) -> dict[str, Any]:
    """Search for results with all words in their texts, regardless of case, for a short time.

    The texts are those of the sample, output, error and reasons. With `error`, only results with this kind of error
    are hits. `rows` are the rows of the samples. `cursor` is where to continue, None at the end; `share` is how much
    has been searched.
    """
    words = text.lower().split()
    deadline = time.monotonic() + SEARCH_SECONDS
    hits: set[int] = set()
    cursor, share = after, 1.0
    # The stored texts can be searched for one string only: the longest is in the fewest results.
    for position, places, searched in results.search(error or max(words, key=len, default=""), after):
        cursor, share = position, searched
        batch = results.read(places)
        hits.update(rows[result.sample_id] for result in batch if _matches(result, words, error))
        if time.monotonic() > deadline:
            break
    return {"rows": sorted(hits), "cursor": cursor if share < 1 else None, "share": share}


def _matches(result: EvalResult, words: Sequence[str], error: str) -> bool:
    if error and (result.trial.error is None or result.trial.error.kind != error):
        return False
    texts = [text.lower() for text in _texts(result)]
    return all(any(word in text for text in texts) for word in words)


# `containsText` in source.js searches the same texts of a one-file report; a test runs both on the same cases.
def _texts(result: EvalResult) -> Iterator[str]:
    trial, sample = result.trial, result.trial.sample
    yield from _leaves([sample.id, sample.input, trial.output, sample.expected, sample.metadata])
    if trial.error is not None:
        yield from (trial.error.kind, trial.error.message)
    yield from (score.reason for score in result.scores.values())
