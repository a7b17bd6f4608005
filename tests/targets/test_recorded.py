"""Recorded outputs as a target."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import evaluate, exact_match
from proctor.errors import CallFailed, TargetError
from proctor.records.sample import Sample
from proctor.records.session import Message, Session, Usage
from proctor.records.trial import Reply
from proctor.targets.recorded import RecordedTarget


def written(folder: Path, *rows: Any) -> Path:
    path = folder / "outputs.jsonl"
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def ask(target: RecordedTarget, sample_id: str = "1", **options: Any) -> Reply:
    return asyncio.run(target.call(Sample(sample_id, "hello"), options))


def failure(target: RecordedTarget, sample_id: str = "1", **options: Any) -> str:
    with pytest.raises(CallFailed) as caught:
        ask(target, sample_id, **options)
    assert not caught.value.retryable
    return str(caught.value)


def test_outputs_come_from_a_file_by_id(tmp_path: Path) -> None:
    """Each sample gets the output recorded under its id, in any order."""
    path = written(tmp_path, {"id": "1", "output": "é"}, "", {"id": "2", "output": {"a": [1]}})
    target = RecordedTarget(str(path))
    assert [ask(target, "2"), ask(target, "1")] == [Reply({"a": [1]}), Reply("é")]


def test_usage_session_and_latency_are_returned(tmp_path: Path) -> None:
    """As they were recorded."""
    row = {
        "id": "1",
        "output": None,
        "usage": {"input_tokens": 3},
        "latency_ms": 12.5,
        "session": {"events": [{"type": "message", "role": "user", "content": "hello"}]},
    }
    expected = Reply(None, Usage(3), Session([Message("user", "hello")]), 12.5)
    assert ask(RecordedTarget(written(tmp_path, row))) == expected
    assert ask(RecordedTarget([row])) == expected


def test_a_mapping_of_ids_is_enough() -> None:
    """In memory, ids and outputs are all it takes, and outputs keep their types."""
    output = {1, 2}
    assert ask(RecordedTarget({"1": output})).output is output


def test_numbers_as_ids_are_their_digits(tmp_path: Path) -> None:
    """Many files number their samples; sample ids are strings."""
    assert ask(RecordedTarget(written(tmp_path, {"id": 1, "output": "a"}))) == Reply("a")


def test_without_outputs_the_samples_have_their_own() -> None:
    """`metadata["output"]` is the output; a sample without one fails, and says so."""
    target = RecordedTarget()
    sample = Sample[str, str]("1", "hello", metadata={"output": None})
    assert asyncio.run(target.call(sample, {})) == Reply(None)
    assert failure(target) == "sample '1' has no output recorded in its metadata"
    assert target.check_options({"configuration": "a"}) == []


def test_a_missing_recording_names_the_sample(tmp_path: Path) -> None:
    """Ruling 2: a sample without a recording fails alone, with its id."""
    target = RecordedTarget(written(tmp_path, {"id": "1", "output": "a"}))
    assert failure(target, "2") == "there is no recording for sample '2'"


def test_a_recorded_error_is_raised() -> None:
    """Ruling 1: a recorded error stays an error, with its own text."""
    assert failure(RecordedTarget([{"id": "1", "error": "TimeoutError: 30 s"}])) == ("TimeoutError: 30 s")


def test_all_bad_lines_are_reported_with_their_numbers(tmp_path: Path) -> None:
    """All faults of a file at once; line numbers count real lines."""
    path = written(
        tmp_path,
        {"id": "1", "output": "a"},
        "",
        "[1]",
        {"id": "1", "output": "b"},
        {"id": "2"},
        {"id": "3", "output": 1, "latency": 5},
        {"id": "4", "output": 1, "epoch": -1},
    )
    with pytest.raises(TargetError) as caught:
        RecordedTarget(path)
    told = [(where.rpartition("/")[2], what) for where, what, _ in caught.value.problems]
    assert told == [
        ("outputs.jsonl:3", "it must be a mapping, got a list"),
        ("outputs.jsonl:4", "the id '1' is recorded already"),
        ("outputs.jsonl:5", "there is neither an output nor an error"),
        ("outputs.jsonl:6", "unknown key 'latency'"),
        ("outputs.jsonl:7", "epoch must be an integer, 0 or more"),
    ]


def test_bad_recordings_in_memory_are_reported_by_number() -> None:
    """Recordings in a list follow the same rules as lines of a file."""
    with pytest.raises(TargetError) as caught:
        RecordedTarget([{"id": "1", "output": 1}, {"output": 2}, {"id": "1", "output": 3}])
    assert [problem.where for problem in caught.value.problems] == ["recording 2", "recording 3"]


def test_a_file_that_starts_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    """Some programs write a mark before UTF-8; the first recording is found all the same."""
    path = tmp_path / "outputs.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "1", "output": "a"}\r\n{"id": "2", "output": "b"}')
    target = RecordedTarget(path)
    assert [ask(target, "1"), ask(target, "2")] == [Reply("a"), Reply("b")]


def test_a_file_that_changes_after_indexing_fails_the_call(tmp_path: Path) -> None:
    """The indexed content is read, or the call fails."""
    path = written(tmp_path, {"id": "1", "output": "a"})
    target = RecordedTarget(path)
    stamp = path.stat()
    path.write_text('{"id": "1", "output": "b"}\n', encoding="utf-8")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    assert failure(target).endswith("has changed since its recordings were read")
    path.unlink()
    assert "cannot be read any more: No such file" in failure(target)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ("no-such-file.jsonl", "file not found"),
        ([], "the file has no recordings"),
        ({}, "the file has no recordings"),
        (7, "int cannot contain recordings"),
        (b"1", "bytes cannot contain recordings"),
    ],
)
def test_invalid_recordings_are_refused(outputs: Any, message: str) -> None:
    """A missing file, no recordings and other objects are usage errors."""
    with pytest.raises(TargetError, match=message):
        RecordedTarget(outputs)


BY_CONFIGURATION = [
    {"id": "1", "output": "a1", "configuration": "a"},
    {"id": "1", "output": "b1", "configuration": "b"},
    {"id": "2", "output": "b2", "configuration": "b"},
]


def test_a_configuration_is_chosen_by_the_option_of_that_name() -> None:
    """`configuration` says whose recordings are wanted."""
    target = RecordedTarget(BY_CONFIGURATION)
    assert ask(target, "1", configuration="a") == Reply("a1")
    assert ask(target, "1", configuration="b") == Reply("b1")
    assert failure(target, "2", configuration="a") == ("there is no recording for sample '2' in configuration 'a'")


def test_options_are_checked_against_what_was_recorded() -> None:
    """A configuration that is needed, unknown or misspelt is told before the run."""
    target = RecordedTarget(BY_CONFIGURATION)
    assert target.check_options({"configuration": "a"}) == []
    assert target.check_options({}) == ["the option 'configuration' is required to select recordings: a, b"]
    assert target.check_options({"configuration": "c", "model": "x", "epoch": 0}) == [
        "unknown option 'model' for recordings: choose one of: configuration",
        "unknown option 'epoch' for recordings: choose one of: configuration",
        "the file has no recordings of configuration 'c': choose one of: a, b",
    ]


def test_a_single_configuration_need_not_be_chosen() -> None:
    """Where all recordings are of one configuration, that one is meant."""
    target = RecordedTarget([{"id": "1", "output": "a", "configuration": "default"}])
    assert target.check_options({}) == []
    assert ask(target) == Reply("a")


def test_recordings_without_a_configuration_apply_to_all() -> None:
    """A configuration's own recording comes first."""
    target = RecordedTarget([{"id": "1", "output": "all"}, *BY_CONFIGURATION[1:]])
    assert target.check_options({"configuration": "zzz"}) == []
    assert ask(target, "1", configuration="b") == Reply("b1")
    assert ask(target, "1", configuration="zzz") == Reply("all")


def test_the_epochs_of_a_run_are_those_of_the_recordings() -> None:
    """Repeats that were recorded are told apart; one that was not is an error, not a copy."""
    target = RecordedTarget([{"id": "1", "output": n, "epoch": n} for n in range(2)])
    report = evaluate(target, [Sample("1", "?", 1)], exact_match, epochs=3, history=False)
    assert [result.output for result in report.results] == [0, 1, None]
    message = "CallFailed: there is no recording for sample '1' in epoch 2"
    assert report.results[2].error == message


def test_the_identity_is_the_content(tmp_path: Path) -> None:
    """Another output makes another target; the same file read again does not."""
    first = RecordedTarget(written(tmp_path, {"id": "1", "output": "a"})).spec
    again = RecordedTarget(tmp_path / "outputs.jsonl").spec
    other = RecordedTarget(written(tmp_path, {"id": "1", "output": "b"})).spec
    assert (first.name, first.kind) == ("outputs", "recorded")
    assert first == again
    assert first.identity != other.identity
    assert RecordedTarget({"1": "a"}).spec.identity != RecordedTarget({"1": "b"}).spec.identity


def test_no_file_stays_open() -> None:
    """Closing does nothing; the representation is the name."""
    target = RecordedTarget({"1": "a"}, name="march")
    asyncio.run(target.close())
    assert repr(target) == "RecordedTarget('march')"
    assert not target.blocking


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=30), min_size=1, max_size=20))
def test_a_file_and_memory_give_the_same(tmp_path_factory: Any, outputs: dict[str, str]) -> None:
    """Whatever is written to a file is found in it, as it would be in memory."""
    rows = [{"id": key, "output": output} for key, output in outputs.items()]
    filed = RecordedTarget(written(tmp_path_factory.mktemp("recorded"), *rows))
    held = RecordedTarget(outputs)
    for key, output in outputs.items():
        assert ask(filed, key) == ask(held, key) == Reply(output)


def test_recordings_may_be_a_json_list(tmp_path: Path) -> None:
    """A JSON list of recordings, over one line or several, is read as JSON Lines are."""
    rows = [{"id": "1", "output": "Paris"}, {"id": 2, "error": "no"}]
    for indent in (None, 2):
        path = tmp_path / "outputs.json"
        path.write_text(json.dumps(rows, indent=indent), encoding="utf-8")
        target = RecordedTarget(path)
        assert target.spec.name == "outputs"
        assert asyncio.run(target.call(Sample("1", "q"), {})).output == "Paris"
    path.write_text('[{"id": "1"}, {"id": "1", "output": 1, "x": 2}]', encoding="utf-8")
    with pytest.raises(TargetError) as caught:
        RecordedTarget(path)
    assert [problem.where for problem in caught.value.problems] == ["recording 1", "recording 2"]
    path.write_text('[{"id": "1", "output": "Par', encoding="utf-8")
    with pytest.raises(TargetError, match="not a JSON list"):
        RecordedTarget(path)
