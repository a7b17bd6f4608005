"""A damaged file is rejected with the place of the damage, and no part of a run is stored."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor.errors import UsageError
from proctor.history.exchange.parts import FORMATS, Format
from proctor.history.exchange.read import import_runs
from proctor.history.sqlite import SQLiteHistory
from proctor.records.metric import MetricValue
from tests.exchange.examples import RUN, everything, filled, take, write
from tests.history.history_contract import make_result, make_run, run_ids, store_run


def changed(line: dict[str, Any], /, **values: Any) -> str:
    return json.dumps({**line, **values})


@pytest.fixture
def parts(tmp_path: Path) -> list[Any]:
    """The lines of an export of one small run and another."""
    history = SQLiteHistory(tmp_path / "first.db")
    store_run(history, make_run("r1"), [make_result("a"), make_result("b")])
    store_run(history, make_run("r2"), [make_result("c")])
    text = write(history, tmp_path / "first.jsonl", "jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def refusal(tmp_path: Path, lines: list[str]) -> tuple[str, list[str]]:
    """The error for a file of these lines without its fix, and the runs that were imported."""
    file = tmp_path / "bad.jsonl"
    file.write_text("\n".join(lines) + "\n")
    history = SQLiteHistory(tmp_path / "into.db")
    with pytest.raises(UsageError) as error:
        take(history, file)
    return str(error.value).partition("\nFix: ")[0].replace(str(tmp_path) + "/", ""), run_ids(history.runs())


DAMAGE = "the file is damaged, or not an export of runs: "


def test_every_kind_of_damage_is_reported_with_its_line(tmp_path: Path, parts: list[Any]) -> None:
    """Truncated, swapped, missing, repeated, misspelled: only the runs before are imported."""
    good = [json.dumps(part) for part in parts]
    head, first, second, end, head2, third, end2 = parts
    trial = second["result"]["trial"]
    message, runs = refusal(tmp_path, [*good[:4], good[4][:40]])
    assert message.startswith(f"bad.jsonl:5: {DAMAGE}JSON is malformed")
    assert runs == ["r1"]
    message, runs = refusal(tmp_path, [*good[:4], good[4], good[6]])
    assert message.endswith("run r2 has 0 results here, but its end is for run r2 with 1 result")
    assert runs == ["r1"]
    (tmp_path / "into.db").unlink()
    for lines, line, messages in [
        (good[:3], 3, "it ends in the middle of run r1"),
        ([good[0], good[2], good[1], good[3]], 3, "the result has the position 0, which is repeated"),
        ([good[0], good[1], good[1], good[3]], 3, "the result has the position 0, which is repeated"),
        (good[1:], 1, "this line belongs to no run"),
        ([good[0], good[4]], 2, "run r1 has no end"),
        ([good[0], *good[4:]], 2, "run r1 has no end"),
        ([good[0], good[1], good[6]], 3, "run r1 has 1 result here, but its end is for run r2 with 1 result"),
        (["hello"], 1, "JSON is malformed"),
        ([changed(head, part="runs")], 1, "part: invalid value 'runs'"),
        ([changed(head, metadata={"run_id": "r1"})], 1, "metadata.name is missing"),
        (
            [good[0], changed(second, result={"trial": {**trial, "configuration": "x"}})],
            2,
            "the run has no configuration 'x'",
        ),
        ([good[0], changed(second, result={"trial": {**trial, "epoch": -1}})], 2, "the epoch -1 is not valid"),
        ([good[0], changed(second, position=10**9)], 2, "the result has the position 1000000000"),
        ([good[0], changed(first, position=-1)], 2, "the result has the position -1"),
        ([good[0], changed(first, position=1.5)], 2, "position must be an integer, got a number"),
        ([good[0], changed(first, more=1)], 2, "unknown key 'more'"),
        ([good[0], "[" * 100_000], 2, ""),
    ]:
        message, runs = refusal(tmp_path, lines)
        assert message.startswith(f"bad.jsonl:{line}: {DAMAGE}{messages}"), message
        assert runs == []
    assert (end["results"], third["position"], end2["run_id"], head2["part"]) == (2, 0, "r2", "run")


@pytest.mark.parametrize("run_id", ["../../escape", "a/b", "", "latest", ".hidden", "-x", "a b", "x" * 300])
def test_an_id_that_is_a_path_is_refused(tmp_path: Path, parts: list[Any], run_id: str) -> None:
    """Ids become names of files, and must not be read as an option or another word."""
    parts[0]["metadata"]["run_id"] = run_id
    message, runs = refusal(tmp_path, [json.dumps(part) for part in parts])
    assert message.startswith("bad.jsonl:1: ")
    assert "is not a valid run id" in message
    assert runs == []


def test_a_file_of_a_newer_proctor_is_refused(tmp_path: Path, parts: list[Any]) -> None:
    """The error names the version of the file and the supported version."""
    message, _ = refusal(tmp_path, [changed(parts[0], proctor_run=2)])
    assert message == "bad.jsonl:1: the file has version 2; this version of Proctor reads 1"


@pytest.mark.parametrize("name", ["none.jsonl", "none.csv", "none.parquet"])
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    """By name."""
    with pytest.raises(UsageError, match=f"file not found: .*{name}"):
        take(SQLiteHistory(tmp_path / "h.db"), tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b"", "it is empty"),
        ("a.jsonl", b"\n \n", "it is empty"),
        ("a.jsonl", b'{"a": 1}\n', "a.jsonl:1: this is not an export of runs"),
        ("a.csv", b"", "unknown column 'record'"),
        ("a.csv", b"id,record\n1,x\n", "unknown column 'run_record'"),
        ("a.csv", b"record,run_record\n1\n", "a.csv:2: .*this row has 1 cells; the header has 2"),
        ("a.csv", b"record,run_record\n{,\n", "a.csv:2: .*input data was truncated"),
        ("a.csv", b'record,run_record\n"\n', "a.csv:2: .*unexpected end of data"),
        ("a.csv", b"record,run_record\n\xff\xfe,\n", "a.csv:2: .*can't decode"),
        ("a.csv", b"record,run_record\n", "it is empty"),
        ("a.parquet", b"PAR1 and nothing more", "a.parquet, row 1: "),
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    """Empty, truncated, with other columns, or not text."""
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        take(SQLiteHistory(tmp_path / "h.db"), file)
    assert not (tmp_path / "h.db").exists()


def test_parquet_of_another_program_is_refused(tmp_path: Path) -> None:
    """It has no column with the records."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="unknown column 'record'"):
        take(SQLiteHistory(tmp_path / "h.db"), tmp_path / "a.parquet")


@pytest.mark.parametrize("as_", FORMATS)
def test_a_truncated_table_is_refused(tmp_path: Path, as_: Format) -> None:
    """The first line has the number of results; complete runs are imported."""
    history = filled(tmp_path / "h.db")
    file = write(history, tmp_path / f"runs.{as_}", as_)
    if as_ == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(parquet.read_table(file).slice(0, 6), file)
    else:
        parts = file.read_bytes().split(b"\n" if as_ == "jsonl" else b"\n2026")
        stored = parts[:4] if as_ == "jsonl" else parts[:3]
        file.write_bytes((b"\n" if as_ == "jsonl" else b"\n2026").join(stored) + b"\n")
    other = SQLiteHistory(tmp_path / "other.db")
    with pytest.raises(UsageError, match=r"results? here, but its end is for|in the middle of run"):
        take(other, file)
    assert run_ids(other.runs()) == ([RUN.run_id] if as_ == "parquet" else [])


def test_another_run_under_the_same_id_is_refused(tmp_path: Path) -> None:
    """Differences are named, nothing is changed, and the runs before it are imported."""
    history = filled(tmp_path / "h.db")
    file = write(history, tmp_path / "runs.jsonl", "jsonl")
    text = file.read_text()
    for before, after, what in [
        ('"attempts":3', '"attempts":4', "its result at position 0"),
        ('"duration_seconds":9.000001', '"duration_seconds":9.5', "its metadata"),
        ('"interval":[0.06,0.79]', '"interval":[0.07,0.79]', "its metrics"),
    ]:
        assert before in text
        file.write_text(text.replace(before, after, 1))
        state = everything(history)
        with pytest.raises(UsageError) as error:
            take(history, file)
        assert f"the history has a different run {RUN.run_id}; they differ in {what}" in str(error.value)
        assert f"proctor delete {RUN.run_id}" in error.value.fix
        assert everything(history) == state


def test_a_run_with_fewer_results_than_the_stored_one_is_another(tmp_path: Path) -> None:
    """It was exported before it was finished, for example."""
    history = SQLiteHistory(tmp_path / "h.db")
    store_run(history, make_run("r1"), [make_result("a")])
    file = write(history, tmp_path / "runs.jsonl", "jsonl")
    with history.writer("r1") as writer:
        writer.add(1, make_result("b"))
    with pytest.raises(UsageError, match="they differ in the number of results"):
        take(history, file)


def test_an_existing_baseline_is_kept(tmp_path: Path) -> None:
    """The other baselines are imported with their run, and both are reported."""
    history = filled(tmp_path / "h.db")
    other = SQLiteHistory(tmp_path / "other.db")
    store_run(other, make_run("mine"))
    other.set_baseline("main", "mine")
    imports = take(other, write(history, tmp_path / "runs.csv", "csv"))
    assert (imports[0].baselines, imports[0].conflicting_baselines) == (["größer"], ["main"])
    assert {name: run.run_id for name, run in other.baselines().items()} == {
        "größer": RUN.run_id,
        "main": "mine",
        "old": "gaps",
    }


def test_an_existing_baseline_moves_on_request(tmp_path: Path) -> None:
    """The message names the earlier run."""
    history = filled(tmp_path / "h.db")
    other = SQLiteHistory(tmp_path / "other.db")
    store_run(other, make_run("mine"))
    other.set_baseline("main", "mine")
    file = write(history, tmp_path / "runs.csv", "csv")
    imports = list(import_runs(other, file, move_baselines=True))
    assert (imports[0].baselines, imports[0].conflicting_baselines) == (["größer", "main"], [])
    assert imports[0].moved == {"main": "mine"}
    assert other.baseline("main").run_id == RUN.run_id


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({'"passed":false': '"passed":true'}, "pass_rate is 0.5 (n=2), but the results give 1 (n=2)"),
        ({'"value":0.0': '"value":0.4'}, "mean_score is 0.5 (n=2), but the results give 0.7 (n=2)"),
        ({'"exact.mean"': '"exact.was"', '"value":0.0': '"value":0.4'}, "mean_score is 0.5 (n=2)"),
        (
            {'"mean_score"': '"was"', '"value":0.0': '"value":0.4'},
            "exact.mean is 0.5 (n=2), but the results give 0.7 (n=2)",
        ),
        ({'"n":2': '"n":3'}, "pass_rate is 0.5 (n=3), but the results give 0.5 (n=2)"),
        ({'"configuration":"b"': '"configuration":"a"'}, "pass_rate of a is 1 (n=1), but the results"),
        ({'"pass_rate":{"value":0.5': '"pass_rate":{"value":null'}, "pass_rate is none (n=2)"),
    ],
)
def test_results_that_do_not_match_their_metrics_are_refused(
    tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    """A file with edited verdicts or scores contradicts its own metrics."""
    history = SQLiteHistory(tmp_path / "h.db")
    run = make_run("r1", configurations=("a", "b"))
    store_run(history, run, [make_result("x", configuration="a"), make_result("x", 0.0, configuration="b")])
    names = ("pass_rate", "mean_score", "exact.pass_rate", "exact.mean", "my.own")
    tables = {
        of: {name: MetricValue(value, n) for name in names}
        for of, value, n in (("", 0.5, 2), ("a", 1.0, 1), ("b", 0.0, 1))
    }
    history.finish(run, tables.pop(""), tables)
    file = write(history, tmp_path / "runs.jsonl", "jsonl")
    take(SQLiteHistory(tmp_path / "good.db"), file)
    text = file.read_text()
    for before, after in changes.items():
        assert before in text
        where = text.rindex('"part":"end"') if before.startswith(('"n"', '"pass_rate"')) else 0
        text = text[:where] + text[where:].replace(before, after, 1 if where else -1)
    message, runs = refusal(tmp_path, text.splitlines())
    assert f"the stored {said}" in message
    assert runs == []


def test_the_fix_mentions_runs_that_were_imported(tmp_path: Path, parts: list[Any]) -> None:
    """Only if there are any before the damaged line."""
    good = [json.dumps(part) for part in parts]
    for lines, fix in [
        (["hello"], "use a file that `proctor history export` wrote, or export the run again"),
        ([*good[:4], "hello"], "export the run again; the run before this line is already imported"),
        ([*good, "hello"], "export the run again; the 2 runs before this line are already imported"),
    ]:
        file = tmp_path / "bad.jsonl"
        file.write_text("\n".join(lines))
        with pytest.raises(UsageError) as error:
            take(SQLiteHistory(tmp_path / "into.db"), file)
        assert error.value.fix == fix


KILLED = """
import os, signal, sys
from pathlib import Path
from proctor.history.sqlite import SQLiteHistory
from proctor.history.exchange import read as importing

read = importing.READERS["jsonl"]

def killing(path):
    for number, part in enumerate(read(path)):
        if number == 1500:
            os.kill(os.getpid(), signal.SIGKILL)
        yield part

importing.READERS["jsonl"] = killing
list(importing.import_runs(SQLiteHistory(sys.argv[1]), Path(sys.argv[2])))
"""


def test_a_killed_import_leaves_no_partial_run(tmp_path: Path) -> None:
    """Killed in the middle of the second run: the first is there, the second comes in later."""
    history = SQLiteHistory(tmp_path / "h.db")
    for run_id in ("r1", "r2"):
        store_run(history, make_run(run_id), [make_result(f"s{n}") for n in range(1_000)])
    file = write(history, tmp_path / "runs.jsonl", "jsonl")
    into = tmp_path / "into.db"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(into), str(file)], check=False)
    assert ended.returncode == -signal.SIGKILL
    other = SQLiteHistory(into)
    assert run_ids(other.runs()) == ["r1"]
    assert other.report("r1").total == 1_000
    assert other._query("SELECT count(*) FROM blocks WHERE run NOT IN (SELECT id FROM runs)") == [(0,)]
    assert [item.new for item in take(other, file)] == [False, True]
    assert everything(other) == everything(history)


def test_a_run_without_a_zone_or_configuration_is_refused(tmp_path: Path, parts: list[Any]) -> None:
    """Neither could be stored."""
    changes: list[dict[str, Any]] = [{"started_at": "2026-01-01T00:00:00"}, {"configurations": []}]
    for change in changes:
        metadata = {**parts[0]["metadata"], **change}
        message, runs = refusal(tmp_path, [changed(parts[0], metadata=metadata)])
        assert "the run has no configuration, or its start has no time zone" in message
        assert runs == []
    assert msgspec.json.encode(make_run("r1"))
