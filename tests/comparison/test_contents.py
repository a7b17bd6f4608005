"""Samples with one id and different contents are not paired, and a note says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import Sample, SQLiteHistory, compare, evaluate
from proctor.comparison.contents import content_key
from proctor.records.comparison import Comparison
from proctor.records.session import Message, Session
from proctor.wiring.open_history import load_report


def chat(*message: str, answer: str = "Yes.", **metadata: Any) -> Sample[Any, Any]:
    """A recorded session: what the user said, each with an answer."""
    session = Session()
    for text in message:
        session.append(Message("user", text))
        session.append(Message("assistant", answer))
    recorded = {"output": answer, "session": session, **metadata}
    return Sample("1", message[0], metadata=recorded)


def echo(options: Any) -> str:
    return str(options)


def compared(tmp_path: Path, *datasets: list[dict[str, Any]]) -> Comparison:
    """Two runs of a target that gives back its input, each of its own dataset."""
    history = SQLiteHistory(tmp_path / "h.db")
    for name, dataset in zip(("new", "old"), datasets, strict=True):
        evaluate(echo, dataset, ["exact_match"], name=name, history=history, progress=False)
    return compare("new", "old", history=history)


def rows(inputs: list[Any], **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"s{n}", "input": i, "expected": "0", **more} for n, i in enumerate(inputs)]


def test_samples_that_ask_something_else_are_no_pairs(tmp_path: Path) -> None:
    """Twenty of thirty are other questions: the ten that are the same are compared, and counted."""
    old = [str(n) for n in range(30)]
    result = compared(tmp_path, rows([*old[:10], *(f"{n}?" for n in range(20))]), rows(old))
    assert (result.samples, len(result.other_content)) == (10, 20)
    assert result.metrics["pass_rate"].n == 10
    assert result.metrics["pass_rate"].paired
    assert (result.only_a, result.only_b) == ((), ())
    assert "the datasets are not the same" in result.notes
    assert "20 samples have different contents under the same id and cannot be paired: s10, s11, s12, …" in result.notes


def test_where_no_sample_is_the_same_there_are_two_groups(tmp_path: Path) -> None:
    """Flips would be of samples that have nothing to do with each other: there are none."""
    result = compared(tmp_path, rows(["0"] * 30), rows([str(n + 1) for n in range(30)]))
    rate = result.metrics["pass_rate"]
    assert (rate.verdict, rate.paired, result.samples, result.flips) == ("better", False, 0, ())
    assert result.answer.endswith("No sample is the same in both: they are compared as two independent groups.")


@pytest.mark.parametrize(
    "changed",
    [
        rows([{"b": 2, "a": n} for n in range(12)], metadata={"tags": ["new"]}),
        [{**item, "expected": "1"} for item in rows([{"a": n, "b": 2} for n in range(12)])],
    ],
)
def test_a_corrected_sample_is_still_the_same(tmp_path: Path, changed: list[dict[str, Any]]) -> None:
    """Other tags, a corrected answer, another order of keys: the question is the same."""
    result = compared(tmp_path, changed, rows([{"a": n, "b": 2} for n in range(12)]))
    assert (result.samples, result.other_content) == (12, ())
    assert "the datasets are not the same" in result.notes


def test_the_content_of_a_session_is_its_user_messages() -> None:
    """Other answers are what is measured; another conversation that begins alike is another."""
    item = content_key(chat("Hello", "Where is it?"))
    assert content_key(chat("Hello", "Where is it?", answer="No.", title="x")) == item
    assert content_key(chat("Hello", "I want a refund")) != item
    assert content_key(chat("Hello")) != item


def test_recordings_of_one_task_are_one_sample() -> None:
    """A simulated user words it otherwise each time; the task is what is asked."""
    assert content_key(chat("Hi, a flight", task_id=3)) == content_key(chat("A flight?", task_id=3))
    assert content_key(chat("Hi, a flight", task_id=3)) != content_key(chat("A flight?", task_id=4))


def test_what_is_stored_tells_the_same_as_what_is_in_memory(tmp_path: Path) -> None:
    """A session is a record before it is stored, and plain data after."""
    sample = chat("Hello", "Where is it?")
    history = SQLiteHistory(tmp_path / "h.db")
    evaluate(echo, [sample], ["exact_match"], name="one", history=history, progress=False)
    [stored] = load_report(history, "one").results.samples()
    assert content_key(stored) == content_key(sample)


def test_an_object_without_content_counts_as_the_same() -> None:
    """It is written by its address, which is another in each process."""
    assert content_key(Sample("1", object())) is None
