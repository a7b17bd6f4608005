"""Pack several hundred results into one row: figures as packed columns, the rest as lines of JSON.

One row per result would cost more than a fast target, and reading one number would read whole results.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from typing import Any

import msgspec

from proctor.history.payload import encode_result
from proctor.records.results import ModelUsage, find_model_usage
from proctor.records.run import RunMetadata
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import OUTCOMES, EvalResult, Outcome, Verdict

RESULTS_PER_BLOCK = 256
STORED_COLUMNS = ("figures", "sample_ids", "clusters", "error_kinds", "spent", "results")
COLUMNS = ", ".join(("run", *OUTCOMES, *STORED_COLUMNS, "checksums"))
# The checksums cover the counts and each stored column, in this order.
CHECKSUM_COLUMNS = ("counts", *STORED_COLUMNS)
_CHECKSUMS = struct.Struct(f"<{len(CHECKSUM_COLUMNS)}I")
_COUNTS = struct.Struct(f"<{len(OUTCOMES)}Q")
NAN = float("nan")
MAX_FLOAT = sys.float_info.max
# The fastest level makes JSON eight times smaller; higher levels take twice the time for a tenth more.
# Shorter content is not compressed.
COMPRESSION_LEVEL, MIN_COMPRESSED_LENGTH = 1, 300
COMPRESSED_PREFIX = zlib.compress(b"")[:1]
OUTCOME_BYTE = struct.calcsize("<IHI")
FIRST_MARK = OUTCOME_BYTE + 1
DOUBLE = struct.calcsize("<d")

# One letter per evaluator: passed, failed, evaluator error, skipped, the target failed.
PASSED, FAILED, ERROR, SKIPPED, NO_OUTPUT = "pfesx"
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


def make_packer(run: RunMetadata) -> Callable[[int, EvalResult, Verdict], Packed]:
    """Return the function that packs a run's results."""
    names = tuple(spec.name for spec in run.evaluators)
    configurations = {c.name: index for index, c in enumerate(run.configurations)}
    outcomes = {outcome: index for index, outcome in enumerate(OUTCOMES)}
    pack = make_record_layout(len(names)).pack
    no_marks, no_numbers = (NO_OUTPUT * len(names)).encode(), [NAN] * len(names)

    def pack_result(position: int, result: EvalResult, verdict: Verdict) -> Packed:
        json, result = encode_result(result)
        trial = result.trial
        sample = trial.sample
        error_kind = None
        if trial.error is None:
            marks, numbers = _mark_scores(names, result.scores)
        else:
            marks, numbers, error_kind = no_marks, no_numbers, trial.error.kind
        outcome, value = verdict
        outcome_index = outcomes[outcome]
        figures = pack(
            position,
            configurations[trial.configuration],
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

    return pack_result


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
        # No column is stored empty, and an empty column has the checksum of a missing one.
        return False
    written: int = _CHECKSUMS.unpack(checksums)[CHECKSUM_COLUMNS.index(name)]
    return written == _checksum(value)


def pack_counts(counts: Sequence[int]) -> bytes:
    """Return the counts of a block in the form that their checksum covers."""
    return _COUNTS.pack(*counts)


def _checksum(value: bytes | None) -> int:
    return 0 if value is None else zlib.crc32(value)


def select_complete_results(row: Sequence[Any], evaluators: int) -> list[Packed]:
    """Return the packed results of a stored row in which nothing failed."""
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
        [each and ModelUsage(*each) for each in decode_list(spent, len(ids))],
        split_lines(lines),
        strict=True,
    )
    return list(compress(packed_results, (_has_no_errors(record, evaluators) for record in records)))


def _has_no_errors(record: bytes, evaluators: int) -> bool:
    failed = OUTCOMES[record[OUTCOME_BYTE]] in ("error", "unscored")
    return not failed and ord(ERROR) not in record[FIRST_MARK : FIRST_MARK + evaluators]


def list_numbers(figures: bytes, evaluators: int, index: int) -> tuple[float, ...]:
    """Return one number of each result without unpacking the other figures."""
    size = make_record_layout(evaluators).size
    return _make_column_layout(evaluators, index, len(figures) // size).unpack(figures)


@lru_cache(maxsize=64)
def _make_column_layout(evaluators: int, index: int, results: int) -> struct.Struct:
    before = FIRST_MARK + evaluators + DOUBLE * (index - VALUE)
    after = make_record_layout(evaluators).size - before - DOUBLE
    return struct.Struct("<" + f"{before}xd{after}x" * results)


def split_lines(stored: bytes) -> list[bytes]:
    """Return stored results as lines of JSON; the first byte tells whether they are compressed."""
    return (zlib.decompress(stored) if stored.startswith(COMPRESSED_PREFIX) else stored).split(b"\n")


def _compress_lines(lines: bytes) -> bytes:
    if len(lines) < MIN_COMPRESSED_LENGTH:
        return lines
    return zlib.compress(lines, COMPRESSION_LEVEL)


def decode_list(data: bytes | None, length: int) -> list[Any]:
    """Decode a stored list, or return as many Nones if nothing was stored."""
    return [None] * length if data is None else _decode_list(data)


def _mark_scores(names: Sequence[str], scores: Mapping[str, Score]) -> tuple[bytes, list[float]]:
    marks, numbers = [], []
    for name in names:
        score = scores.get(name)
        if score is not None and (value := score.value) is not None:
            marks.append(_PASSED if score.passed else _FAILED)
            numbers.append(value)
        else:
            failed = score is not None and score.status == "error"
            marks.append(ord(ERROR) if failed else ord(SKIPPED))
            numbers.append(NAN)
    return bytes(marks), numbers


def _tokens(usage: Usage) -> float:
    total = usage.total_tokens
    return NAN if total is None or total > MAX_FLOAT else total
