"""Some hundred results as one row: their figures packed side by side, the rest as lines of JSON.

A row for each result would cost more than running a quick target does, and reading one number of
fifty thousand results would mean reading all of them.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import msgspec

from proctor.history.payload import written
from proctor.records.run import RunMetadata
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import OUTCOMES, EvalResult, Verdict

RESULTS_A_BLOCK = 256
STORED = ("figures", "sample_ids", "clusters", "error_kinds", "results")
COLUMNS = ", ".join(("run", *OUTCOMES, *STORED))
NAN = float("nan")
LARGEST = sys.float_info.max
OUTCOME_BYTE = struct.calcsize("<IHI")

# One letter per evaluator: passed, failed, evaluator error, skipped, the target failed.
PASSED, FAILED, ERROR, SKIPPED, NO_OUTPUT = "pfesx"

_encode = msgspec.json.encode
_decode_list = msgspec.json.Decoder(list[Any]).decode


# What is known of a result without reading it, by its place among the figures; NaN stands for a
# number that there is not. After them comes one number for each evaluator.
POSITION, CONFIGURATION, EPOCH, OUTCOME, MARKS, VALUE, LATENCY, TOKENS, FIRST_NUMBER = range(9)


class Packed(NamedTuple):
    """A result on its way into a block."""

    outcome: int
    figures: bytes
    sample_id: str
    cluster: str | None
    error_kind: str | None
    json: bytes


def record_of(evaluators: int) -> struct.Struct:
    """How the figures of one result lie on disk."""
    return struct.Struct(f"<IHIB{evaluators}s{3 + evaluators}d")


def packer(run: RunMetadata) -> Callable[[int, EvalResult, Verdict], Packed]:
    """The function that packs a run's results; what is the same for all of them is settled here."""
    names = tuple(spec.name for spec in run.evaluators)
    configurations = {c.name: index for index, c in enumerate(run.configurations)}
    outcomes = {outcome: index for index, outcome in enumerate(OUTCOMES)}
    pack = record_of(len(names)).pack
    no_marks, no_numbers = (NO_OUTPUT * len(names)).encode(), [NAN] * len(names)

    def packed(position: int, result: EvalResult, verdict: Verdict) -> Packed:
        json, result = written(result)
        trial = result.trial
        error_kind = None
        if trial.error is None:
            get = result.scores.get
            scores = [get(name) for name in names]
            marks = "".join([_mark(score) for score in scores]).encode()
            numbers = [_number(score) for score in scores]
        else:
            marks, numbers, error_kind = no_marks, no_numbers, trial.error.kind
        outcome, value = verdict
        place = outcomes[outcome]
        figures = pack(
            position,
            configurations[trial.configuration],
            trial.epoch,
            place,
            marks,
            NAN if value is None else value,
            trial.latency_ms,
            _tokens(trial.usage),
            *numbers,
        )
        sample = trial.sample
        return Packed(place, figures, sample.id, sample.cluster or None, error_kind, json)

    return packed


def rows(run_key: int, results: Sequence[Packed]) -> Iterator[tuple[Any, ...]]:
    """Packed results as rows of the table of blocks."""
    for start in range(0, len(results), RESULTS_A_BLOCK):
        part = results[start : start + RESULTS_A_BLOCK]
        outcomes, figures, sample_ids, clusters, error_kinds, lines = zip(*part, strict=True)
        yield (
            run_key,
            *(outcomes.count(index) for index in range(len(OUTCOMES))),
            b"".join(figures),
            _encode(sample_ids),
            _encode(clusters) if any(clusters) else None,
            _encode(error_kinds) if any(error_kinds) else None,
            b"\n".join(lines),
        )


def kept(row: Sequence[Any], size: int, wanted: Callable[[int], bool]) -> list[Packed]:
    """The results of a stored row whose outcome is wanted, packed as they were."""
    figures, sample_ids, clusters, error_kinds, lines = row
    ids = _decode_list(sample_ids)
    records = [figures[start : start + size] for start in range(0, len(figures), size)]
    outcomes = [record[OUTCOME_BYTE] for record in records]
    everything = zip(
        outcomes,
        records,
        ids,
        listed(clusters, len(ids)),
        listed(error_kinds, len(ids)),
        lines.split(b"\n"),
        strict=True,
    )
    return [Packed(*one) for one in compress(everything, map(wanted, outcomes))]


def listed(data: bytes | None, length: int) -> list[Any]:
    """A stored list, or as many Nones where nothing was stored."""
    return [None] * length if data is None else _decode_list(data)


def _mark(score: Score | None) -> str:
    if score is None:
        return SKIPPED
    if score.value is None:
        return ERROR if score.status == "error" else SKIPPED
    return PASSED if score.passed else FAILED


def _tokens(usage: Usage | None) -> float:
    total = None if usage is None else usage.total_tokens
    return NAN if total is None or total > LARGEST else total


def _number(score: Score | None) -> float:
    return NAN if score is None or score.value is None else score.value
