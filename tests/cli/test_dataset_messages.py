"""The errors of `proctor run` for files without samples name the actual fault, and only that."""

from __future__ import annotations

import pytest

from tests.cli.project import Project


def error_of(project: Project, name: str, content: bytes) -> str:
    project.write(name, content)
    result = project.proctor("run", "--target", "app.py:shout", "--dataset", name, "--evaluator", "exact_match")
    assert result.code == 2
    return result.err


@pytest.mark.parametrize("content", [b"[]", b"[ ]\n", b'{"samples": []}'])
def test_an_empty_list_has_no_samples(project: Project, content: bytes) -> None:
    """Formats of chats and traces are no help there."""
    result = error_of(project, "empty.json", content)
    assert "no samples: the list is empty" in result
    assert "langfuse" not in result


@pytest.mark.parametrize("name", ["bad.jsonl.gz", "bad.json.gz", "bad.csv.gz"])
def test_a_file_that_is_not_gzip_says_so(project: Project, name: str) -> None:
    """The name ends in .gz, but the content is not compressed."""
    result = error_of(project, name, b"not gzip")
    assert "the file name ends in .gz, but the file is not compressed with gzip" in result
    assert "session" not in result


@pytest.mark.parametrize("content", [b"id,input\n1,caf\xe9\n", b"id,input,caf\xe9\n1,x,y\n"])
def test_a_table_in_latin_1_has_one_fault(project: Project, content: bytes) -> None:
    """In a row or in the header: the error does not mention missing rows or columns."""
    result = error_of(project, "table.csv", content)
    assert "1 problem" in result
    assert "not UTF-8" in result
    assert "no samples" not in result


def test_a_table_with_only_a_header_has_no_samples(project: Project) -> None:
    """The message names the cause."""
    assert "no samples: the file has only a header" in error_of(project, "table.csv", b"id,input\n")


@pytest.mark.parametrize(
    ("value", "expected"), [("0.9%", "90% or 0.9"), (".85 %", "85% or 0.85"), ("0.5%", "50% or 0.5")]
)
def test_a_percentage_below_one_is_refused_with_both_readings(project: Project, value: str, expected: str) -> None:
    """0.9% is 0.009, and every run with one right answer of a hundred reaches it."""
    result = project.proctor("run", "eval.yaml", "--fail-under", value)
    assert (result.code, f"Fix: write {expected}" in result.err) == (2, True)


@pytest.mark.parametrize("value", ["0%", "1%", "0.009"])
def test_low_thresholds_can_still_be_written(project: Project, value: str) -> None:
    """The four right answers of five reach of them."""
    assert project.proctor("run", "eval.yaml", "-q", "--fail-under", value).code == 0
