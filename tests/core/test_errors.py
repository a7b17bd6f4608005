"""Errors say what is wrong, where, and how to fix it."""

from __future__ import annotations

import inspect

import pytest
from inline_snapshot import snapshot

from proctor import errors
from proctor.errors import CallFailed, Problem, ProctorError, RunInterrupted, RunStopped, suggest_name


def test_an_error_says_what_where_and_how_to_fix_it() -> None:
    """The text contains its three parts, and each is an attribute."""
    error = ProctorError("the file is empty", where="qa.jsonl", fix="write a sample")
    assert str(error) == snapshot("""\
qa.jsonl: the file is empty
Fix: write a sample\
""")
    assert (error.what, error.where, error.fix) == ("the file is empty", "qa.jsonl", "write a sample")
    assert str(ProctorError("it is so")) == "it is so"


def test_all_problems_are_reported_at_once() -> None:
    """The text shows the first twenty and the number of the others."""
    few = ProctorError("2 faults", problems=[Problem("line 3", "no id"), Problem("", "no input")])
    assert str(few) == snapshot("""\
2 faults
  - line 3: no id
  - no input\
""")
    many = ProctorError("faults", problems=[Problem("", str(n)) for n in range(25)])
    assert len(many.problems) == 25
    assert str(many).endswith("  - 19\n  … and 5 more")


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("exact_macth", ["exact_match", "contains"], "did you mean 'exact_match'?"),
        ("zzz", ["b", "a"], "choose one of: a, b"),
        ("zzz", [], "there are none"),
        ("zzz", [f"n{i:02}" for i in range(20)], "choose one of: " + ", ".join(f"n{i:02}" for i in range(20))),
    ],
)
def test_the_nearest_name_is_suggested(name: str, known: list[str], said: str) -> None:
    """Or all names if none is similar."""
    assert suggest_name(name, known) == said


def test_a_long_list_of_names_is_shortened() -> None:
    """Twenty are shown."""
    assert suggest_name("zzz", [f"n{i:03}" for i in range(300)]).endswith("n019, … and 280 more")


def test_errors_with_additional_attributes() -> None:
    """A stopped run has its id; a failed call says whether to retry."""
    assert RunStopped("too many errors", run_id="r1", fix="resume").run_id == "r1"
    assert RunInterrupted("r1").run_id == "r1"
    assert "r1" in str(RunInterrupted("r1"))
    failed = CallFailed("no answer", retryable=True, retry_after=2.0)
    assert (failed.retryable, failed.retry_after) == (True, 2.0)


def test_except_exception_does_not_catch_an_interrupt() -> None:
    assert issubclass(RunInterrupted, KeyboardInterrupt)
    assert not issubclass(RunInterrupted, Exception)


def test_the_docstring_lists_every_error() -> None:
    """Each class below its parent."""
    drawing = errors.__doc__ or ""
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, BaseException):
            assert name in drawing
    above: list[type] = [ProctorError]
    for line in drawing.splitlines():
        bare = line.lstrip("│├└─ ")
        depth = (len(line) - len(bare)) // 4
        if depth:
            kind = getattr(errors, bare.partition(" ")[0])
            assert kind.__base__ is above[depth - 1]
            above[depth:] = [kind]
