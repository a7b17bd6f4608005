"""The readers on small files written by hand, so that each rule has its own case."""

from __future__ import annotations

import contextlib
import copy
import json
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from proctor.errors import ConfigError, DatasetError, MissingExtra
from proctor.interop import files, run_builder
from proctor.interop.formats import READERS, read_file, recognize_format
from proctor.records.score import Score
from proctor.records.session import Message, ToolCall
from proctor.wiring.store_imports import store_file
from tests.interop.examples import (
    PROMPTFOO_CONFIG,
    deepeval_run,
    inspect_log,
    openai_log,
    promptfoo_results,
    promptfoo_row,
    write_eval,
)


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_promptfoo_results_keep_errors_apart_from_failures(tmp_path: Path) -> None:
    """Two rows pass, one fails with its parts, and the error has no score; rows are in the order of the tests."""
    imported = read_file(write_json(tmp_path / "results.json", promptfoo_results()))
    (run,) = imported.runs
    assert [(r.sample_id, r.trial.configuration, r.outcome) for r in run.results] == [
        ("test-1", "model 0", "passed"),
        ("test-1", "model 1", "passed"),
        ("test-2", "model 0", "failed"),
        ("test-2", "model 1", "error"),
    ]
    failed, error = run.results[2:]
    assert failed.scores["assertions"].details["parts"] == {
        "is-json": Score(1.0, True, "ok"),
        "contains": Score(0.0, False, "no x"),
    }
    assert failed.scores["Topic"] == Score(0.5, False)
    assert (str(error.trial.error), error.scores) == ("ProviderError: Error: boom", {})
    assert run.reported == {"passed": 2.0, "failed": 1.0, "errors": 1.0, "tokens.total": 21.0}
    assert imported.version == "0.121.20"


def test_promptfoo_rows_with_equal_tests_are_epochs_only_if_the_run_repeats(tmp_path: Path) -> None:
    """Without `repeat` two equal tests are two samples."""
    rows = [promptfoo_row(index, 0, vars={"q": "x"}, testCase={"vars": {"q": "x"}}) for index in (0, 1)]
    document: dict[str, Any] = {"results": {"results": rows}, "config": {}}
    (run,) = read_file(write_json(tmp_path / "a.json", document), "promptfoo").runs
    assert [(result.sample_id, result.trial.epoch) for result in run.results] == [("test-1", 0), ("test-2", 0)]
    document["config"] = {"evaluateOptions": {"repeat": 2}}
    (run,) = read_file(write_json(tmp_path / "a.json", document), "promptfoo").runs
    assert [(result.sample_id, result.trial.epoch) for result in run.results] == [("test-1", 0), ("test-1", 1)]


def test_a_promptfoo_config_becomes_samples_with_their_own_evaluators(tmp_path: Path) -> None:
    """A matrix expands, templates are filled, a threshold becomes a weighted mean, and code is listed."""
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(PROMPTFOO_CONFIG)
    imported = read_file(path)
    first, second, third = imported.samples
    assert [sample.input for sample in imported.samples] == [
        {"word": "hello", "language": "French"},
        {"word": "bye", "language": "French"},
        {"word": "two", "language": "2"},
    ]
    (mean,) = first.evaluators
    assert (mean["uses"], mean["threshold"]) == ("weighted", 0.5)
    assert [(part["evaluator"]["name"], part["weight"]) for part in mean["evaluators"]] == [
        ("icontains", 1),
        ("Echo", 3),
        ("not-regex", 1),
    ]
    assert mean["evaluators"][1]["evaluator"]["include"] == ["hello"]
    assert second.metadata["description"] == "matrix"
    assert third.expected == "deux"
    assert [entry["uses"] for entry in third.evaluators] == ["keywords", "exact_match"]
    assert [text for text in imported.untranslated if "javascript" in text]
    assert imported.target == {"model": "openai:gpt-4.1-mini", "prompt": "Say $word in $language"}
    assert list(imported.configurations) == ["openai:gpt-4.1-mini", "claude"]


def test_a_promptfoo_config_reads_no_file_outside_its_folder(tmp_path: Path) -> None:
    """Paths that leave the folder, absolute or with dots, are left out with the reason."""
    secret = tmp_path / "secret.csv"
    secret.write_text("password\nhunter2\n")
    folder = tmp_path / "project"
    folder.mkdir()
    tests = [f"file://{secret}", "file://../secret.csv", {"vars": {"x": "1"}}]
    config = {"prompts": ["{{x}}"], "providers": ["echo"], "tests": tests}
    imported = read_file(write_json(folder / "config.json", config), "promptfoo")
    assert "hunter2" not in str(imported)
    assert len([text for text in imported.warnings if "outside the folder" in text]) == 2


def test_an_empty_threshold_cell_of_promptfoo_is_an_error(tmp_path: Path) -> None:
    """As in promptfoo, and the message says where."""
    path = tmp_path / "tests.csv"
    path.write_text("q,__expected,__config:__expected:threshold\na,similar: b,\n")
    with pytest.raises(DatasetError, match=r"tests.csv:2, threshold must be a number"):
        read_file(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_inspect_archive_is_its_document(tmp_path: Path, compression: int) -> None:
    """The `.eval` and the `.json` of one log give the same runs."""
    write_eval(tmp_path / "a.eval", inspect_log(), compression)
    document = read_file(write_json(tmp_path / "a.json", inspect_log()))
    assert read_file(tmp_path / "a.eval").runs == document.runs


def test_an_inspect_archive_with_zstandard_is_read(tmp_path: Path) -> None:
    """Python before 3.14 cannot read this compression itself."""
    zstandard = pytest.importorskip("zstandard")
    log = inspect_log()
    content = json.dumps({key: log[key] for key in log}).encode()
    packed = zstandard.ZstdCompressor().compress(content)
    path = tmp_path / "a.eval"
    path.write_bytes(make_zip("header.json", packed, content, 93))
    with files.ZipReader(path) as archive:
        assert archive.read("header.json") == content
    damaged = {
        "its size or its checksum": make_zip("header.json", packed, content[::-1], 93),
        "cannot be decompressed": make_zip("header.json", b"x" + packed, content, 93),
    }
    for message, data in damaged.items():
        path.write_bytes(data)
        with pytest.raises(DatasetError, match=message) as caught:
            read_file(path)
        assert "a.eval, header.json" in str(caught.value)
        assert "Fix: " in str(caught.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, 93])
def test_a_member_with_a_wrong_checksum_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: int
) -> None:
    """Every compression: the size and the CRC-32 of a member must be those of the archive."""
    monkeypatch.setattr(files, "_open_zstandard", lambda file: file)
    path = tmp_path / "a.eval"
    good = make_zip("header.json", b"{}", b"{}", method)
    path.write_bytes(good)
    with files.ZipReader(path) as archive:
        assert archive.read_json("header.json") == {}
    for damaged in (good.replace(b"{}", b"[]"), make_zip("header.json", b"{}", b"{} ", method)):
        path.write_bytes(damaged)
        with pytest.raises(DatasetError, match=r"a.eval, header.json"):
            read_file(path)


def test_an_archive_with_zstandard_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, the message says what to install."""
    if sys.version_info >= (3, 14):
        pytest.skip("Python reads Zstandard itself")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.eval").write_bytes(make_zip("header.json", b"x", b"x", 93))
    with pytest.raises(MissingExtra) as caught:
        read_file(tmp_path / "a.eval")
    assert caught.value.fix == 'pip install "proctor[inspect]"'


def make_zip(name: str, packed: bytes, content: bytes, method: int) -> bytes:
    """Return a zip file with one member that is already compressed."""
    sizes = zlib.crc32(content), len(packed), len(content)
    fields = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, *sizes, len(name), 0)
    local = b"PK\3\4" + fields + name.encode() + packed
    central = b"PK\1\2\x14\0" + fields + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name.encode()
    return local + central + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)


def test_an_inspect_log_becomes_results_with_sessions(tmp_path: Path) -> None:
    """Grades are values, NaN is an error, an error has no output, and tool calls have their results."""
    imported = read_file(write_json(tmp_path / "log.json", inspect_log()))
    (run,) = imported.runs
    assert [result.outcome for result in run.results] == ["passed", "failed", "unscored", "error"]
    assert [{name: score.value for name, score in result.scores.items()} for result in run.results] == [
        {"match": 1.0},
        {"match": 0.5},
        {"match": None},
        {},
    ]
    first = run.results[0].trial
    assert first.session is not None
    assert first.session[ToolCall] == (ToolCall("lookup", {"key": "a"}, "1", call_id="c1"),)
    assert first.session[Message][-1].content == "It is 1"
    assert (first.usage and first.usage.total_tokens, first.latency_ms) == (13, 500.0)
    assert str(run.results[3].trial.error) == "ValueError: no"
    assert run.reported == {"match.accuracy": 0.75, "tokens": 52.0}
    assert imported.evaluators == ({"contains": {"case_sensitive": False}},)


def test_an_inspect_log_without_its_header_was_interrupted(tmp_path: Path) -> None:
    """A run that crashed has only the journal."""
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": {"task": "t", "model": "m"}}))
    assert read_file(path).runs[0].status == "interrupted"


def test_a_deepeval_metric_that_raised_is_not_a_score_of_zero(tmp_path: Path) -> None:
    """The case has no verdict; DeepEval counts it as failed, and reports that number."""
    (run,) = read_file(write_json(tmp_path / "run.json", deepeval_run())).runs
    assert [result.outcome for result in run.results] == ["passed", "failed", "unscored"]
    assert run.results[2].scores["Faithfulness"] == Score.error("ValueError: exploded", {"threshold": 0.5})
    assert (run.reported["passed"], run.reported["failed"]) == (1, 2)
    first = run.results[0]
    assert (first.latency_ms, first.trial.usage and first.trial.usage.cost) == (1500.0, 0.25)
    assert first.judging is not None
    assert first.judging.cost == 0.5


def test_openai_evals_events_are_joined_by_sample(tmp_path: Path) -> None:
    """Samples are in the order of their numbers; the last sampling of a graded sample is the grader's."""
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in openai_log()))
    (run,) = read_file(path).runs
    assert [(result.sample_id, result.output, result.outcome) for result in run.results] == [
        ("geo.dev.0", "Paris", "passed"),
        ("geo.dev.1", "Paris", "unscored"),
    ]
    assert run.results[0].trial.usage is not None
    assert run.results[0].trial.usage.total_tokens == 15
    assert run.results[0].judging is not None
    assert run.results[0].judging.total_tokens == 15


def test_a_registry_reads_no_samples_outside_its_data_folder(tmp_path: Path) -> None:
    """A path that leaves the folder is refused."""
    (tmp_path / "evals").mkdir()
    (tmp_path / "secret.jsonl").write_text('{"input": "hunter2", "ideal": "x"}\n')
    path = tmp_path / "evals" / "a.yaml"
    path.write_text("a.dev.v0:\n  class: evals.elsuite.basic.match:Match\n  args: {samples_jsonl: ../secret.jsonl}\n")
    with pytest.raises(DatasetError, match="outside the registry's data folder"):
        read_file(path, "openai-evals")


def test_a_number_outside_0_to_1_is_no_score() -> None:
    """It is skipped, with the number in its details; NaN and text are no score at all."""
    assert run_builder.make_score(4.5) == Score.skipped("4.5 is not between 0 and 1", {"value": 4.5})
    assert run_builder.make_score(True) == Score(1.0, True)
    assert [run_builder.make_score(value) for value in (None, float("nan"), "0.5")] == [None, None, None]


HOSTILE = {
    "a.json": (b'{"version": 2, "status": "success", "eval": {"task"', "a.json:1"),
    "b.eval": (b"PK\3\4 this is no archive header.json", "not a zip file"),
    "c.csv": (b'q,__expected\n"a', "not a CSV table"),
    "d.yaml": (b"prompts: !!python/object/apply:os.system ['echo x']\nproviders: [echo]\n", "unknown tag"),
    "e.yaml": (b"prompts: [a]\nproviders: [b]\na: &a [x]\nb: &b [" + b"*a," * 999 + b"]\nc: [" + b"*b," * 999 + b"]\n",
               "expand into more than"),
    "f.jsonl": (b'{"spec": {"eval_name": "x"}}\n{"sample_id": broken\n', "f.jsonl:2"),
    "g.json": (b'{"metricsData": 1, "testCases": ' + b"[" * 100_000, "too deeply nested"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_damaged_or_hostile_file_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    """Damage names the line, tags create no objects, and aliases and nesting are limited."""
    content, message = HOSTILE[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        read_file(path)
    assert message in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_a_zip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts the decompressed bytes of all members, whatever the headers claim."""
    monkeypatch.setattr(files, "MAX_BYTES", 10_000)
    write_eval(tmp_path / "a.eval", inspect_log(metadata={"zeros": "0" * 20_000}))
    with pytest.raises(DatasetError, match="larger than 10,000 bytes in all"):
        read_file(tmp_path / "a.eval")


def test_an_unknown_file_lists_the_formats(tmp_path: Path) -> None:
    """The message says what was tried and what to type."""
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(DatasetError) as caught:
        read_file(path)
    assert all(name in str(caught.value) for name in READERS)
    assert "--format NAME" in str(caught.value)
    with pytest.raises(ConfigError, match="did you mean 'inspect'"):
        read_file(path, "inspet")


JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    float("nan"),
    "",
    [],
    {},
    ["a", 1],
    {"a": {"b": 1}},
    10**30,
    "\ud800",
    "C",
    [[1]],
)


def list_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of every value inside."""
    for key in range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ():
        yield value, key
        yield from list_places(value[key])


@pytest.mark.parametrize(
    ("name", "example"), [("promptfoo", promptfoo_results), ("inspect", inspect_log), ("deepeval", deepeval_run)]
)
def test_a_changed_file_is_read_or_refused(tmp_path: Path, name: str, example: Callable[[], Any]) -> None:
    """A value of another type anywhere gives a run or an error of Proctor, never another exception."""
    random = Random(0)
    for number in range(40):
        document = example()
        container, key = random.choice(list(list_places(document)))
        container[key] = copy.deepcopy(random.choice(JUNK))
        path = write_json(tmp_path / f"{number}.json", document)
        with contextlib.suppress(DatasetError):
            assert all(not stored.stored for stored in store_file(read_file(path, name), path, None))


@pytest.mark.parametrize("name", READERS)
def test_every_reader_refuses_json_of_another_shape(tmp_path: Path, name: str) -> None:
    """Any JSON value gives an error of Proctor, never another exception."""
    for number, value in enumerate([[], {}, [[1]], {"results": 5}, {"eval": 1}, {"testCases": {}}, "x", 3]):
        for ending in (".json", ".jsonl"):
            path = write_json(tmp_path / f"{number}{ending}", value)
            with contextlib.suppress(DatasetError):
                assert read_file(path, name).format == name
            assert recognize_format(path) in (None, *READERS)
