"""Samples with one id and different contents are not paired, and a note says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import Sample, SQLiteHistory, compare, evaluate
from proctor.comparison.contents import content_key
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.errors import ConfigError
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


def test_where_no_sample_is_the_same_nothing_is_compared(tmp_path: Path) -> None:
    """The ids agree and the contents do not: a comparison of two groups has to be requested."""
    with pytest.raises(ConfigError, match="they have no sample with the same content in common"):
        compared(tmp_path, rows(["0"] * 30), rows([str(n + 1) for n in range(30)]))


def test_a_sample_with_other_tags_is_still_the_same(tmp_path: Path) -> None:
    """Other tags and another order of keys: the question is the same."""
    changed = rows([{"b": 2, "a": n} for n in range(12)], metadata={"tags": ["new"]})
    result = compared(tmp_path, changed, rows([{"a": n, "b": 2} for n in range(12)]))
    assert (result.samples, result.other_content) == (12, ())
    assert "the datasets are not the same" in result.notes


def change_keys(count: int) -> list[dict[str, Any]]:
    """Thirty samples, of which the first have the expected value that the target returns."""
    return [{**row, "expected": row["input"]} if n < count else row for n, row in enumerate(rows(QUESTIONS))]


QUESTIONS = [f"question {n}" for n in range(30)]


def test_a_few_corrected_expected_values_are_left_out(tmp_path: Path) -> None:
    """Their verdicts are about different answers: the other 27 decide."""
    result = compared(tmp_path, change_keys(3), rows(QUESTIONS))
    assert (result.samples, result.metrics["pass_rate"].n, result.flips) == (27, 27, ())
    note = (
        "3 samples have another expected value in old and are left out: s0, s1, s2. --accept-changes compares them too"
    )
    assert note in result.notes


@pytest.mark.parametrize("count", [4, 30])
def test_a_new_answer_key_makes_no_run_better(tmp_path: Path, count: int) -> None:
    """The target is the same: with the key of its own answers it would seem better."""
    result = compared(tmp_path, change_keys(count), rows(QUESTIONS))
    assert result.metrics["pass_rate"].verdict == "not comparable"
    reason = f"{count} of 30 samples have another expected value in old"
    assert result.answer == f"new and old cannot be compared: {reason}."


@pytest.mark.parametrize("unpaired", [False, True])
def test_a_gate_does_not_decide_between_answer_keys(tmp_path: Path, unpaired: bool) -> None:
    """Neither with pairs nor as two groups; with accept_changes it does."""
    compared(tmp_path, change_keys(30), rows(QUESTIONS))
    new, old = (load_report(SQLiteHistory(tmp_path / "h.db"), name).side("default", name) for name in ("new", "old"))
    config = GateConfig({"strict_pass_rate": 0.02}, unpaired=unpaired)
    [check] = decide([(new, old)], config).checks
    assert check.verdict == "inconclusive"
    assert check.sentence.endswith("make a new baseline, or add --accept-changes")
    accepting = msgspec.structs.replace(config, accept_changes=True)
    assert decide([(new, old)], accepting).verdict == "pass"


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
