"""Reports as files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.errors import UsageError
from proctor.reports import JSONReporter, MarkdownReporter, files
from tests.reports.examples import mixed_report


@pytest.mark.parametrize("reporter", [MarkdownReporter(), JSONReporter()])
def test_a_report_is_saved_with_its_folders(tmp_path: Path, reporter: MarkdownReporter | JSONReporter) -> None:
    """Missing folders are made; the file is the text in UTF-8, with a line end at its end."""
    path = tmp_path / "a" / "b" / "report"
    reporter.save(mixed_report(), path)
    assert path.read_bytes() == reporter.generate(mixed_report()).encode("utf-8")
    assert path.read_bytes().endswith(b"\n")
    assert [result.name for result in path.parent.iterdir()] == ["report"]


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    """`save(report, "report.md")` is what people write."""
    MarkdownReporter().save(mixed_report(), str(tmp_path / "report.md"))
    assert (tmp_path / "report.md").is_file()


@pytest.mark.parametrize("reporter", [MarkdownReporter(), JSONReporter()])
def test_a_folder_is_not_a_file(tmp_path: Path, reporter: MarkdownReporter | JSONReporter) -> None:
    """Saving to a folder is an error that suggests a file name."""
    with pytest.raises(UsageError, match="this is a folder, not a file") as caught:
        reporter.save(mixed_report(), tmp_path)
    assert "report.md" in caught.value.fix


def test_an_old_report_stands_until_the_new_one_is_complete(tmp_path: Path) -> None:
    """What fails in the middle leaves the old file whole and no other behind."""
    path = tmp_path / "report.json"
    path.write_text("old")

    def chunks() -> Iterator[bytes]:
        yield b"new"
        raise RuntimeError("the history went away")

    with pytest.raises(RuntimeError, match="went away"):
        files.write_file(path, chunks())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    files.write_file(path, [b"new"])
    assert path.read_text() == "new"


def test_a_link_is_followed(tmp_path: Path) -> None:
    """A link stays a link; the file it leads to is written."""
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write_file(tmp_path / "link", [b"x"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """A path such as /dev/stdout receives the report and stays what it is."""
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    files.write_file(pipe, [b"a", b"b"])
    reader.join(timeout=60)
    assert received == [b"ab"]
    assert pipe.is_fifo()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where a folder should be: the error names the path and what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written") as caught:
        files.write_file(tmp_path / "file" / "report.md", [b""])
    assert caught.value.where.endswith("report.md")
