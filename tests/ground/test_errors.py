"""Errors say what happened, where, and how to mend it."""

from __future__ import annotations

import inspect

import pytest
from inline_snapshot import snapshot

from proctor import errors
from proctor.errors import CallFailed, Problem, ProctorError, RunInterrupted, RunStopped, suggest_name


def test_an_error_says_what_where_and_how_to_mend_it() -> None:
    """The text of an error holds its three parts, and each can be asked for."""
    error = ProctorError("the file is empty", where="qa.jsonl", fix="write a sample")
    assert str(error) == snapshot("""\
qa.jsonl: the file is empty
Fix: write a sample\
""")
    assert (error.what, error.where, error.fix) == ("the file is empty", "qa.jsonl", "write a sample")
    assert str(ProctorError("it is so")) == "it is so"


def test_many_problems_are_told_at_once_and_cut_when_there_are_too_many() -> None:
    """All single faults are kept; the text shows the first twenty and counts the rest."""
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
        (
            "zzz",
            [f"n{i:02}" for i in range(20)],
            "choose one of: " + ", ".join(f"n{i:02}" for i in range(20)),
        ),
    ],
)
def test_the_nearest_name_is_offered(name: str, known: list[str], said: str) -> None:
    """A misspelt name comes with the one that was probably meant, or with all there are."""
    assert suggest_name(name, known) == said


def test_a_long_list_of_names_is_cut() -> None:
    """Hundreds of names do not help anybody: twenty are shown and the rest is counted."""
    assert suggest_name("zzz", [f"n{i:03}" for i in range(300)]).endswith("n019, … and 280 more")


def test_errors_that_carry_more() -> None:
    """A stopped or interrupted run names itself; a failed call says whether to try again."""
    assert RunStopped("too many errors", run_id="r1", fix="resume").run_id == "r1"
    assert RunInterrupted("r1").run_id == "r1"
    assert "r1" in str(RunInterrupted("r1"))
    failed = CallFailed("no answer", retryable=True, retry_after=2.0)
    assert (failed.retryable, failed.retry_after) == (True, 2.0)


def test_a_handler_of_errors_does_not_swallow_an_interrupt() -> None:
    """`except Exception` must not stop Ctrl-C."""
    assert issubclass(RunInterrupted, KeyboardInterrupt)
    assert not issubclass(RunInterrupted, Exception)


def test_the_drawing_of_the_tree_names_every_error() -> None:
    """The docstring of the module is the whole tree, each class under its parent."""
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
