"""Files and folders of logs in any state; the content decides the format."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.errors import ConfigError, DatasetError
from proctor.sessions.importers import codex
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.sessions.importers.session_files import (
    FORMATS,
    IMPORTER_FAILED,
    MAX_PROBLEMS,
    SessionFiles,
    decode_line,
    detect_format,
    load_format,
)
from tests.importers.examples import EXAMPLES, OPENAI
from tests.importers.logs import real

CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


def lines(values: list[Any]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def put(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_format_is_detected_by_its_content(name: str, tmp_path: Path) -> None:
    """Each example is detected, as lines and as a document."""
    result = detect_format(EXAMPLES[name])
    assert result is not None
    assert name == result.NAME
    for path in (
        put(tmp_path, "a.jsonl", lines(EXAMPLES[name])),
        put(tmp_path, "b.json", json.dumps(EXAMPLES[name], indent=1)),
    ):
        assert {session.format for session in SessionFiles(path)} == {name}


def test_every_format_has_a_module() -> None:
    """The list of formats and the modules that read them agree."""
    assert [load_format(name).NAME for name in FORMATS] == list(FORMATS)
    with pytest.raises(ConfigError, match="did you mean 'claude-code'"):
        load_format("claude_code")


def test_other_files_have_no_format() -> None:
    """Samples, settings and numbers are no sessions."""
    assert detect_format([{"id": "1", "input": "2 + 2", "expected": "4"}]) is None
    assert detect_format([{"name": "proctor", "version": "1"}, 4, None, []]) is None
    assert detect_format([]) is None


def test_documents_and_lines_are_distinguished(tmp_path: Path) -> None:
    """By content, not by name: indented JSON, one line, a byte order mark, compressed."""
    document = json.dumps(CHAT, indent=2).encode()
    for name, data in {
        "pretty.jsonl": document,
        "one_line.jsonl": json.dumps(CHAT).encode(),
        "lines.json": lines(CHAT),
        "mark.json": b"\xef\xbb\xbf" + document,
        "packed.json": gzip.compress(document),
        "packed.jsonl.gz": gzip.compress(lines(CHAT)),
        "blank.jsonl": b"\n\r\n" + lines(CHAT).replace(b"\n", b"\r\n\r\n"),
    }.items():
        (session,) = SessionFiles(put(tmp_path, name, data))
        assert (session.input, session.output) == ("Hello", "Hi"), name


def test_damaged_lines_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    """Each with its file and line, the first and the last too."""
    data = b'{"cut\n\n' + lines(OPENAI) + b"nonsense\n" + lines(OPENAI)[:20]
    path = put(tmp_path, "log.jsonl", data)
    files = SessionFiles(path)
    assert [session.id for session in files] == ["7-1", "second"]
    assert files.problem_count == 3
    assert [problem.where for problem in files.problems] == [f"{path}:{n}" for n in (1, 5, 6)]
    assert "not valid JSON" in files.problems[1].what


def test_values_that_json_does_not_allow_are_repaired(tmp_path: Path) -> None:
    """Half characters, NaN and infinite numbers become texts, and are reported."""
    text = '{"messages": [{"role": "user", "content": "a\\ud83d"}], "x": NaN, "y": 1%s}' % ("0" * 30)
    files = SessionFiles(put(tmp_path, "odd.jsonl", text))
    (session,) = files
    assert session.input == "a?"
    assert session.recorded["x"] == "nan"
    assert float(session.recorded["y"]) == 1e30
    assert "were replaced" in files.problems[0].what
    assert decode_line(b"[" * 5000 + b"]" * 5000) == (None, "the JSON is too deeply nested")
    assert decode_line(b'["' + b"[" * 5000 + b'"]') == (["[" * 5000], None)
    assert decode_line(b'"\xff"')[0] == "\N{REPLACEMENT CHARACTER}"


def test_a_folder_is_walked_in_order(tmp_path: Path) -> None:
    """Files with known extensions or that match; unreadable ones are reported and do not stop it."""
    put(tmp_path, "b/chat.json", json.dumps(CHAT))
    put(tmp_path, "a/chat.jsonl", lines(CHAT))
    put(tmp_path, "a/settings.json", "{}")
    put(tmp_path, "a/broken.json.gz", gzip.compress(lines(CHAT))[:20])
    put(tmp_path, "notes.txt", "no log")
    files = SessionFiles(tmp_path)
    assert [Path(session.source).parent.name for session in files] == ["a", "b"]
    assert files.files == 4
    texts = [str(problem) for problem in files.problems]
    assert len(texts) == 2
    assert "broken.json.gz: cannot be read" in texts[0]
    assert "settings.json: unknown log format" in texts[1]
    assert len(list(SessionFiles(tmp_path, pattern="b/*"))) == 1
    assert len(list(SessionFiles(tmp_path, pattern="*.jsonl"))) == 1
    assert len(list(files)) == 2  # a second pass starts anew
    assert files.problem_count == 2


def test_an_unreadable_folder_is_reported(tmp_path: Path) -> None:
    """One that is gone when its turn comes is a problem with its name."""
    put(tmp_path, "a.json", json.dumps(CHAT))
    gone = put(tmp_path, "gone/b.json", json.dumps(CHAT))
    files = SessionFiles(tmp_path)
    sessions = iter(files)
    next(sessions)
    gone.unlink()
    gone.parent.rmdir()
    assert list(sessions) == []
    assert [(p.where, p.what) for p in files.problems] == [(str(gone.parent), "file not found")]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_without_permission_is_reported(tmp_path: Path) -> None:
    """Whether its names may be read or not; if it is the only one, that is the error."""
    closed = put(tmp_path / "logs", "closed/b.json", json.dumps(CHAT)).parent
    try:
        for mode in (0o000, 0o400):
            closed.chmod(mode)
            with pytest.raises(DatasetError, match="Permission denied"):
                list(SessionFiles(tmp_path))
    finally:
        closed.chmod(0o700)


def test_an_error_explains_why_nothing_can_be_read(tmp_path: Path) -> None:
    """No such file, an empty folder, a pattern that fits nothing, a file without a session."""
    empty = tmp_path / "empty"
    empty.mkdir()
    for path, pattern, message in (
        (tmp_path / "gone.json", None, "not found"),
        (empty, None, "no file in this folder ends in .json"),
        (empty, "*.log", "no file in this folder matches"),
        (put(tmp_path / "x", "cut.json", '[{"role": "us'), None, "no session could be read"),
        (put(tmp_path / "x", "empty.json", ""), None, "empty.json: no session could be read: the file is empty"),
        (put(tmp_path / "x", "blank.json", " \n"), None, "blank.json: no session could be read: the file is empty"),
    ):
        with pytest.raises(DatasetError, match=message) as raised:
            list(SessionFiles(path, pattern=pattern))
        assert "--format" not in raised.value.fix  # no format would help
    with pytest.raises(DatasetError, match="the first record is an empty object") as raised:
        list(SessionFiles(put(tmp_path / "x", "braces.jsonl", "{}\n{}\n")))
    assert "add --format NAME, one of: " in raised.value.fix
    with pytest.raises(DatasetError, match=r"the file contains no codex session \(1 × mapping with a\)"):
        list(SessionFiles(put(tmp_path / "x", "o.json", '{"a": 1}'), "codex"))


def test_a_truncated_document_is_one_problem(tmp_path: Path) -> None:
    """It is named with the line at which it breaks off, and not line by line."""
    pretty = json.dumps([*CHAT, *CHAT], indent=2)[:-30]
    one_a_line = "[\n" + ",\n".join(map(json.dumps, [*CHAT, *CHAT]))
    for name, text, line in (("pretty", pretty, 15), ("one_a_line", one_a_line, 5)):
        path = put(tmp_path, f"{name}.json", "\n" + text)
        files = SessionFiles(path)
        with pytest.raises(DatasetError):
            list(files)
        assert [problem.where for problem in files.problems] == [f"{path}:{line + 1}"]


def test_a_truncated_first_line_loses_no_other_line(tmp_path: Path) -> None:
    """Lines stay lines, wherever the first of them is cut."""
    first = json.dumps(OPENAI[0]).encode()
    for cut in range(1, len(first)):
        path = put(tmp_path, "log.jsonl", first[:cut] + b"\n" + lines(OPENAI[1:]))
        assert [session.id for session in SessionFiles(path)] == ["second"], first[:cut]


def test_a_session_without_messages_is_reported(tmp_path: Path) -> None:
    """It is reported as empty with its line, and not merged into its neighbour."""
    rows = [{"id": "a", "messages": []}, {"id": "b", "messages": CHAT}]
    path = put(tmp_path, "chats.json", json.dumps(rows))
    files = SessionFiles(path)
    (session,) = files
    assert (session.id, session.unknown_parts) == ("b", {})
    assert [str(problem) for problem in files.problems] == [
        f"{path}:1: the file contains no openai session (no messages)"
    ]
    alone = put(tmp_path, "alone.json", json.dumps(rows[0]))
    with pytest.raises(DatasetError, match=r"the file contains no openai session \(no messages\)"):
        list(SessionFiles(alone))


def test_an_unknown_format_is_described(tmp_path: Path) -> None:
    """Keys and roles of the first item describe the file and the likely format."""
    for data, result in (
        ([{"role": "critic", "text": "x"}], 'a list of 1, first an object with the keys role "critic", text'),
        ([{"conversations": []}, 1], "a list of 2, first an object with the keys conversations"),
        (
            {"conversations": [{"from": "human", "value": "x"}]},
            'conversations (a list of 1, first an object with the keys from "human", value)',
        ),
        ([[]], "a list of 1, first a list"),
        ([], "the first record is an empty list"),
    ):
        path = put(tmp_path, "a.json", json.dumps(data))
        with pytest.raises(DatasetError) as caught:
            list(SessionFiles(path))
        assert caught.value.what.endswith(result)
    path = put(tmp_path, "b.jsonl", lines(EXAMPLES["codex"]))
    with pytest.raises(DatasetError, match=r"the file contains no gemini session .*; it looks like codex"):
        list(SessionFiles(path, "gemini"))


def test_problems_are_counted_by_file(tmp_path: Path) -> None:
    """A long damaged file is one entry and does not hide the others."""
    put(tmp_path, "a.jsonl", "x\n" * (MAX_PROBLEMS + 5))
    put(tmp_path, "b.json", json.dumps([{"messages": []}, {"messages": []}, {"messages": CHAT}]))
    put(tmp_path, "c.jsonl", b"x\ny\n" + lines([{"messages": []}]))
    put(tmp_path, "d.json", "")
    files = SessionFiles(tmp_path)
    assert len(list(files)) == 1
    assert files.problem_count == MAX_PROBLEMS + 11
    texts = [str(problem).removeprefix(f"{tmp_path}/") for problem in files.read_problems.by_file]
    assert texts[0].startswith("a.jsonl: 1,005 lines with problems, such as line 1: not valid JSON")
    assert texts[1].startswith("b.json: 2 sessions with problems, such as session 1")
    assert texts[2].startswith("c.jsonl: 3 parts")
    assert texts[3] == "d.json: the file is empty"


def test_a_problem_of_all_files_is_reported_once(tmp_path: Path) -> None:
    """A folder read as the wrong format has one line for all of it."""
    for name in "abc":
        put(tmp_path, f"{name}.json", json.dumps(CHAT))
    put(tmp_path, "d.json", "")
    with pytest.raises(DatasetError) as caught:
        list(SessionFiles(tmp_path, "otlp"))
    same, empty = caught.value.problems
    assert same.where.endswith("a.json")
    assert same.what.endswith("it looks like openai; the same in 2 other files")
    assert empty.what == "the file contains no otlp session"


def test_a_broken_link_is_reported(tmp_path: Path) -> None:
    """A missing log must not go unnoticed."""
    put(tmp_path, "chat.json", json.dumps(CHAT))
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    files = SessionFiles(tmp_path)
    assert len(list(files)) == 1
    (problem,) = files.problems
    assert problem.where.endswith("gone.json")
    assert problem.what == "file not found"


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    """What can be read only once, or not at all, is named; in a folder it is no file."""
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(DatasetError, match="not a regular file"):
        list(SessionFiles(tmp_path / "pipe.json"))
    put(tmp_path, "chat.json", json.dumps(CHAT))
    assert len(list(SessionFiles(tmp_path))) == 1


def test_a_fault_of_an_importer_does_not_stop_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a problem of the file that it came up with; the others are read."""

    def read(values: Any, source: str) -> Iterator[ImportedSession]:
        yield from codex.read(values, source)
        raise AttributeError("there is no such thing")

    module = SimpleNamespace(NAME="codex", looks_like=codex.looks_like, read=read)
    monkeypatch.setitem(sys.modules, "proctor.sessions.importers.codex", module)
    put(tmp_path, "a.jsonl", lines(EXAMPLES["codex"]))
    put(tmp_path, "b.json", json.dumps(CHAT))
    files = SessionFiles(tmp_path)
    assert [session.format for session in files] == ["codex", "openai"]
    (problem,) = files.problems
    assert problem.where.endswith("a.jsonl")
    assert problem.what == f"{IMPORTER_FAILED}: AttributeError: there is no such thing"


def test_a_forced_format_is_used(tmp_path: Path) -> None:
    """Even where the content looks like another; `auto` is the same as none."""
    path = put(tmp_path, "a.json", json.dumps(EXAMPLES["gemini"]))
    assert {session.format for session in SessionFiles(path, "auto")} == {"gemini"}
    with pytest.raises(ConfigError):
        SessionFiles(path, "gemin")
    assert repr(SessionFiles(path)) == f"SessionFiles({str(path)!r})"


def test_a_trace_without_spans_is_reported(tmp_path: Path) -> None:
    """A file of a known format without sessions is reported."""
    put(tmp_path, "empty.json", '{"resourceSpans": []}')
    put(tmp_path, "chat.json", '[{"role": "user", "content": "Hello"}]')
    files = SessionFiles(tmp_path)
    assert [session.input for session in files] == ["Hello"]
    assert [problem.what for problem in files.problems] == ["the file contains no otlp session"]


def test_a_folder_of_large_files_streams(tmp_path: Path) -> None:
    """Many files need no more memory than a few."""
    for number in range(200):
        chat = [{"role": "user", "content": f"{number} " + "x" * 100_000}]
        put(tmp_path, f"{number:04}.json", json.dumps(chat) if number % 2 else "{")
    files = SessionFiles(tmp_path)
    tracemalloc.start()
    count = sum(1 for _ in files)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (count, files.problem_count) == (100, 100)
    assert peak < 5_000_000


def test_all_real_logs_are_found() -> None:
    """Every log of the data folder is read, in its own format, with nothing left unnamed."""
    files = SessionFiles(real("."))
    formats = [session.format for session in files]
    assert {name: formats.count(name) for name in set(formats)} == {
        "openai": 200, "claude-code": 15, "codex": 3, "qwen": 3, "gemini": 1,
    }  # fmt: skip
    assert {Path(problem.where).name for problem in files.problems} == {
        "claude_code.expected.json",
        "gemini.expected.json",
    }
