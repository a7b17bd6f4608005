"""Results are stored compressed, and those from before are read as they are."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from proctor.history import block
from proctor.history.sqlite import SQLiteHistory
from proctor.records.sample import Sample
from proctor.records.trial import EvalResult, Trial
from tests.records.examples import run_of, scored


def stored(history: SQLiteHistory, results: list[EvalResult]) -> int:
    """Return the stored size of all results in bytes."""
    history.begin(run_of("r"))
    with history.writer("r") as writer:
        for place, result in enumerate(results):
            writer.add(place, result)
    assert list(history.results("r")) == results
    history.close()
    database = sqlite3.connect(history.path)
    (length,) = database.execute("SELECT sum(length(results)) FROM blocks").fetchone()
    database.close()
    return int(length)


def test_many_results_take_a_fraction_of_their_size(tmp_path: Path) -> None:
    """Short results, of which much is the same, take a fifth at most."""
    results = [scored(f"s{i}", (i % 11) / 10, 1.0, latency_ms=i / 7) for i in range(1_000)]
    plain = sum(len(msgspec.json.encode(result)) for result in results)
    assert stored(SQLiteHistory(tmp_path / "h.db"), results) < plain / 5


def test_a_single_long_result_is_compressed(tmp_path: Path) -> None:
    """Results that come one by one are compressed one by one."""
    text = " ".join(f"The answer to question {i} is {i * i}." for i in range(200))
    result = EvalResult(Trial(Sample("s", text), text))
    assert stored(SQLiteHistory(tmp_path / "h.db"), [result]) < len(text) / 2


@given(st.lists(st.binary(max_size=400).map(lambda b: b'{"a":"' + b.hex().encode() + b'"}'), min_size=1))
def test_lines_come_back_whatever_their_length(lines: list[bytes]) -> None:
    """Short or long, compressed or not: what is read is what was written."""
    made = block._compress_lines(b"\n".join(lines))
    assert block.split_lines(made) == lines
    assert block.split_lines(b"\n".join(lines)) == lines
    assert len(made) <= max(len(b"\n".join(lines)), block.MIN_COMPRESSED_LENGTH)
