"""Runs go from a file to a server and back, and are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import UsageError
from proctor.history.exchange.parts import FORMATS, Format
from proctor.history.postgres import PostgresHistory
from proctor.history.sqlite import SQLiteHistory
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial
from tests.exchange.examples import everything, filled, take, write
from tests.history.history_contract import make_run, run_ids, store_run


@pytest.mark.parametrize("as_", FORMATS)
def test_a_server_stores_what_the_file_stored(tmp_path: Path, url: str, as_: Format) -> None:
    """Out of SQLite, into PostgreSQL, out of it, into SQLite: nothing is lost on the way."""
    here, there, back = (filled(tmp_path / "h.db"), PostgresHistory(url), SQLiteHistory(tmp_path / "b"))
    take(there, write(here, tmp_path / f"1.{as_}", as_))
    assert everything(there) == everything(here)
    take(back, write(there, tmp_path / f"2.{as_}", as_))
    assert everything(back) == everything(here)
    for history in (here, there, back):
        history.close()


def test_a_damaged_file_leaves_nothing_on_a_server(tmp_path: Path, url: str) -> None:
    """The incomplete run is not stored, and can be imported later."""
    here, there = SQLiteHistory(tmp_path / "h.db"), PostgresHistory(url)
    results = [EvalResult(Trial(Sample(f"s{n}", n), n), {"exact": Score(1.0, True)}) for n in range(700)]
    store_run(here, make_run("r1"), results)
    file = write(here, tmp_path / "runs.jsonl", "jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole[:-500])
    with pytest.raises(UsageError, match="damaged"):
        take(there, file)
    assert run_ids(there.runs()) == []
    file.write_bytes(whole)
    assert [one.results for one in take(there, file)] == [700]
    assert everything(there) == everything(here)
    for history in (here, there):
        history.close()
