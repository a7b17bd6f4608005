"""Pack several hundred results into one row: numbers as packed columns, the rest as lines of JSON.

One row per result would cost more time than a fast target, and reading one number would read whole results.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from typing import Any

import msgspec

from proctor.history.payload import encode_result, encode_text_results
from proctor.records.results import ModelUsage, find_model_usage
from proctor.records.run import RunMetadata
from proctor.records.score import Score, make_passed_scores
from proctor.records.session import Usage
from proctor.records.trial import ALL_PASSED, OUTCOMES, EvalResult, Outcome, PositionedResult, Verdict

RESULTS_PER_BLOCK = 256
STORED_COLUMNS = ("figures", "sample_ids", "clusters", "error_kinds", "spent", "results")
COLUMNS = ", ".join(("run", *OUTCOMES, *STORED_COLUMNS, "checksums"))
# The checksums cover the counts and each stored column, in this order.
CHECKSUM_COLUMNS = ("counts", *STORED_COLUMNS)
_CHECKSUMS = struct.Struct(f"<{len(CHECKSUM_COLUMNS)}I")
_COUNTS = struct.Struct(f"<{len(OUTCOMES)}Q")
NAN = float("nan")
MAX_FLOAT = sys.float_info.max
# The fastest level makes JSON eight times smaller; higher levels take twice the time to save another tenth.
# Shorter content is not compressed.
COMPRESSION_LEVEL, MIN_COMPRESSED_LENGTH = 1, 300
COMPRESSED_PREFIX = zlib.compress(b"")[:1]
# The offset and width of the integers of a record.
POSITION_BYTES, CONFIGURATION_BYTES, EPOCH_BYTES = (0, 4), (4, 2), (6, 4)
OUTCOME_BYTE = struct.calcsize("<IHI")
FIRST_MARK = OUTCOME_BYTE + 1
DOUBLE = struct.calcsize("<d")

OUTCOME_INDEXES = {outcome: index for index, outcome in enumerate(OUTCOMES)}
# One letter per evaluator: passed, failed, evaluator error, skipped, the target failed, not an evaluator of the sample.
PASSED, FAILED, ERROR, SKIPPED, NO_OUTPUT, ABSENT = "pfesx-"
_PASSED, _FAILED = ord(PASSED), ord(FAILED)
MARKS_BY_OUTCOME: dict[Outcome, int] = {
    "passed": ord(PASSED),
    "failed": ord(FAILED),
    "error": ord(NO_OUTPUT),
    "unscored": ord(ERROR),
    "skipped": ord(SKIPPED),
}

_encode = msgspec.json.encode
_decode_list = msgspec.json.Decoder(list[Any]).decode


# The index of each figure of a result; NaN means a missing number. One number per evaluator follows.
POSITION, CONFIGURATION, EPOCH, OUTCOME, MARKS, VALUE, LATENCY, TOKENS, FIRST_NUMBER = range(9)


# A packed result: outcome index, figures, sample id, cluster, error type, spending, and JSON. It is a
# plain tuple for speed.
Packed = tuple[int, bytes, str, str | None, str | None, ModelUsage | None, bytes]


@lru_cache(maxsize=64)
def make_record_layout(evaluators: int) -> struct.Struct:
    """Return the binary layout of the figures of one result."""
    return struct.Struct(f"<IHIB{evaluators}s{3 + evaluators}d")


class ResultPacker:
    """Packs the results of a run."""

    def __init__(self, run: RunMetadata) -> None:
        self._names = names = tuple(spec.name for spec in run.evaluators)
        self._own_names = frozenset(spec.name for spec in run.evaluators if spec.samples is not None)
        self._configurations = {c.name: index for index, c in enumerate(run.configurations)}
        self._pack_figures = make_record_layout(len(names)).pack
        self._no_marks, self._no_numbers = (NO_OUTPUT * len(names)).encode(), [NAN] * len(names)
        # If all scores passed, the figures differ only in the numbers of the trial and its latency.
        self._passed_scores = make_passed_scores(names)
        marks, ones = (PASSED * len(names)).encode(), [1.0] * len(names)
        figures = self._pack_figures(0, 0, 0, OUTCOME_INDEXES["passed"], marks, 1.0, 0.0, NAN, *ones)
        latency = FIRST_MARK + len(names) + DOUBLE
        self._figures_around_latency = figures[OUTCOME_BYTE:latency], figures[latency + DOUBLE :]
        before, after = map(len, self._figures_around_latency)
        self._pack_passed_figures = struct.Struct(f"<IHI{before}sd{after}s").pack

    def pack(self, position: int, result: EvalResult, verdict: Verdict) -> Packed:
        """Pack one result."""
        json, result = encode_result(result)
        return self._pack(position, result, verdict, json)

    def pack_batch(self, batch: Sequence[PositionedResult]) -> list[Packed]:
        """Pack several results; those that hold only text are encoded together, which is faster."""
        lines = encode_text_results([result for _, result, _ in batch])
        if lines is None:
            return [self.pack(*item) for item in batch]
        passed_scores, configurations = self._passed_scores, self._configurations
        pack, (before, after) = self._pack_passed_figures, self._figures_around_latency
        passed = OUTCOME_INDEXES["passed"]
        packed: list[Packed] = []
        for (position, result, verdict), line in zip(batch, lines, strict=True):
            trial = result.trial
            if verdict == ALL_PASSED and result.scores == passed_scores:
                figures = pack(
                    position, configurations[trial.configuration], trial.epoch, before, trial.latency_ms, after
                )
                packed.append((passed, figures, trial.sample.id, None, None, None, line))
            else:
                packed.append(self._pack(position, result, verdict, line))
        return packed

    def _pack(self, position: int, result: EvalResult, verdict: Verdict, json: bytes) -> Packed:
        trial = result.trial
        sample = trial.sample
        error_kind = None
        if trial.error is None:
            marks, numbers = _mark_scores(self._names, result.scores, self._own_names)
        else:
            marks, numbers, error_kind = self._no_marks, self._no_numbers, trial.error.kind
            if self._own_names:
                absent = self._own_names.difference(sample.check_names)
                marks = "".join(ABSENT if name in absent else NO_OUTPUT for name in self._names).encode()
        outcome, value = verdict
        outcome_index = OUTCOME_INDEXES[outcome]
        figures = self._pack_figures(
            position,
            self._configurations[trial.configuration],
            trial.epoch,
            outcome_index,
            marks,
            NAN if value is None else value,
            NAN if trial.latency_ms is None else trial.latency_ms,
            NAN if trial.usage is None else _tokens(trial.usage),
            *numbers,
        )
        cluster = sample.cluster or None if sample.metadata else None
        spent = find_model_usage(result) if trial.usage is not None or result.sessions else None
        return outcome_index, figures, sample.id, cluster, error_kind, spent, json


def make_rows(run_key: int, results: Sequence[Packed]) -> Iterator[tuple[Any, ...]]:
    """Yield packed results as rows of the table of blocks."""
    for start in range(0, len(results), RESULTS_PER_BLOCK):
        part = results[start : start + RESULTS_PER_BLOCK]
        outcomes, figures, ids, clusters, error_kinds, spent, lines = zip(*part, strict=True)
        counts = tuple(outcomes.count(index) for index in range(len(OUTCOMES)))
        stored = (
            b"".join(figures),
            _encode(ids),
            _encode(clusters) if any(clusters) else None,
            _encode(error_kinds) if any(error_kinds) else None,
            _encode(spent) if any(spent) else None,
            _compress_lines(b"\n".join(lines)),
        )
        sums = map(_checksum, (_COUNTS.pack(*counts), *stored))
        yield run_key, *counts, *stored, _CHECKSUMS.pack(*sums)


def is_intact(checksums: Any, name: str, value: Any) -> bool:
    """Return whether a column matches its checksum; older blocks have no checksums."""
    if checksums is None:
        return True
    if not isinstance(checksums, bytes) or len(checksums) != _CHECKSUMS.size:
        return False
    if value == b"":
        # No column is stored empty; an empty column has the checksum of a missing column.
        return False
    written: int = _CHECKSUMS.unpack(checksums)[CHECKSUM_COLUMNS.index(name)]
    return written == _checksum(value)


def pack_counts(counts: Sequence[int]) -> bytes:
    """Return the counts of a block in the format that their checksum covers."""
    return _COUNTS.pack(*counts)


def _checksum(value: bytes | None) -> int:
    return 0 if value is None else zlib.crc32(value)


def select_complete_results(row: Sequence[Any], evaluators: int) -> list[Packed]:
    """Return the packed results of a stored row, without failed results."""
    size = make_record_layout(evaluators).size
    figures, sample_ids, clusters, error_kinds, spent, lines = row
    ids = _decode_list(sample_ids)
    records = [figures[start : start + size] for start in range(0, len(figures), size)]
    outcomes = [record[OUTCOME_BYTE] for record in records]
    packed_results = zip(
        outcomes,
        records,
        ids,
        decode_list(clusters, len(ids)),
        decode_list(error_kinds, len(ids)),
        [usage and ModelUsage(*usage) for usage in decode_list(spent, len(ids))],
        split_lines(lines),
        strict=True,
    )
    return list(compress(packed_results, (_has_no_errors(record, evaluators) for record in records)))


def _has_no_errors(record: bytes, evaluators: int) -> bool:
    failed = OUTCOMES[record[OUTCOME_BYTE]] in ("error", "unscored")
    return not failed and ord(ERROR) not in record[FIRST_MARK : FIRST_MARK + evaluators]


def read_numbers(figures: bytes, evaluators: int, index: int) -> array[float]:
    """Return one number of each result without unpacking the other figures."""
    size = make_record_layout(evaluators).size
    first = FIRST_MARK + evaluators + DOUBLE * (index - VALUE)
    # Eight strided copies, one per byte of a double, are ten times as fast as unpacking.
    column = bytearray(len(figures) // size * DOUBLE)
    for offset in range(DOUBLE):
        column[offset::DOUBLE] = figures[first + offset :: size]
    numbers = array("d", bytes(column))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def read_integers(figures: bytes, evaluators: int, offset: int, width: int) -> array[int]:
    """Return an integer of each result, of `width` bytes at `offset`, without unpacking the other figures."""
    size = make_record_layout(evaluators).size
    column = bytearray(len(figures) // size * 4)
    for index in range(width):
        column[index::4] = figures[offset + index :: size]
    numbers = array("I", bytes(column))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def split_lines(stored: bytes) -> list[bytes]:
    """Return stored results as lines of JSON."""
    return decompress(stored).split(b"\n")


def decompress(stored: bytes) -> bytes:
    """Return stored results as one text; the first byte shows whether they are compressed."""
    return zlib.decompress(stored) if stored.startswith(COMPRESSED_PREFIX) else stored


def _compress_lines(lines: bytes) -> bytes:
    if len(lines) < MIN_COMPRESSED_LENGTH:
        return lines
    return zlib.compress(lines, COMPRESSION_LEVEL)


def decode_list(data: bytes | None, length: int) -> list[Any]:
    """Decode a stored list, or return a list of `length` Nones if nothing was stored."""
    return [None] * length if data is None else _decode_list(data)


def _mark_scores(
    names: Sequence[str], scores: Mapping[str, Score], own_names: Container[str]
) -> tuple[bytes, list[float]]:
    marks, numbers = [], []
    for name in names:
        score = scores.get(name)
        if score is not None and (value := score.value) is not None:
            marks.append(_PASSED if score.passed else _FAILED)
            numbers.append(value)
        else:
            is_absent, failed = score is None and name in own_names, score is not None and score.status == "error"
            marks.append(ord(ABSENT if is_absent else ERROR if failed else SKIPPED))
            numbers.append(NAN)
    return bytes(marks), numbers


def _tokens(usage: Usage) -> float:
    total = usage.total_tokens
    return NAN if total is None or total > MAX_FLOAT else total
