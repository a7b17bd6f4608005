"""An evaluator that changes its arguments changes only its own copy."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Sample, Session, ToolCall, all_of, evaluate, exact_match, record
from proctor.core.private_copy import private_copies
from proctor.evaluators.fields import field as of_field
from tests.tables import each_row

ROW: dict[str, Any] = {"id": "s", "input": {"n": [1]}, "expected": {"items": [2, 1]}, "metadata": {"tags": ["a"]}}


def row() -> dict[str, Any]:
    return private_copies([ROW])[0]  # type: ignore[no-any-return]


def target(_: Any) -> dict[str, Any]:
    return {"items": [1, 2]}


def sorts_both(output: Any, expected: Any) -> bool:
    """Right for an evaluator that ignores the order, and it changes both in place."""
    output["items"].sort()
    expected["items"].sort()
    return bool(output == expected)


async def sorts_later(output: Any, expected: Any) -> bool:
    return sorts_both(output, expected)


def empties(output: Any) -> bool:
    output.clear()
    return True


def changes_the_sample(output: Any, sample: Sample[Any, Any]) -> bool:
    assert sample.expected is not None
    sample.expected.clear()
    sample.expected["items"] = output["items"]
    sample.metadata["seen"] = True
    sample.input["n"].append(2)
    return True


def same(output: Any, expected: Any) -> bool:
    return bool(output == expected)


EVALUATORS: dict[str, tuple[Callable[..., Any], bool]] = {
    "sorts_both": (sorts_both, True),
    "sorts_later": (sorts_later, True),
    "empties": (empties, True),
    "changes_the_sample": (changes_the_sample, True),
    "same": (same, False),
    "exact_match": (exact_match, False),
}


@each_row("order", list(itertools.permutations(EVALUATORS, 2)))
def test_verdicts_do_not_depend_on_the_order(order: tuple[str, ...]) -> None:
    """No two evaluators influence each other: each says what it says alone, the stored output is
    what the target returned, and the caller's dataset is as before."""
    mine = row()
    report = evaluate(target, [mine], [EVALUATORS[name][0] for name in order], history=False)
    result = report.results[0]
    assert {name: score.passed for name, score in result.scores.items()} == {
        name: EVALUATORS[name][1] for name in order
    }
    assert result.trial.output == {"items": [1, 2]}
    assert result.trial.sample.metadata == {"tags": ["a"]}
    assert mine == ROW


@pytest.mark.parametrize(
    "combined",
    [
        lambda: all_of(sorts_both, same),
        lambda: all_of(same, sorts_both),
        lambda: all_of(sorts_later, same),
        lambda: of_field("output", [sorts_both, same]),
        lambda: of_field("output", [sorts_later, exact_match]),
    ],
)
def test_parts_of_a_combination_share_nothing(combined: Callable[[], Any]) -> None:
    """`same` fails although another part sorts the output, in either order; so the combination fails."""
    mine = row()
    report = evaluate(target, [mine], [combined(), exact_match], history=False)
    result = report.results[0]
    assert [score.passed for score in result.scores.values()] == [False, False]
    assert result.trial.output == {"items": [1, 2]}
    assert mine == ROW


def test_samples_made_by_the_caller_stay_as_they_are() -> None:
    sample = Sample("s", "question", {"items": [2, 1]}, metadata={"tags": ["a"]})
    evaluate(target, [sample], [sorts_both], history=False)
    assert sample == Sample("s", "question", {"items": [2, 1]}, metadata={"tags": ["a"]})


def test_a_recorded_session_stays_as_it_was() -> None:
    """The arguments of a tool call are a mapping that an evaluator could change."""

    def agent(_: Any) -> str:
        record(ToolCall("search", {"q": "capital"}))
        return "Paris"

    def forgets(output: str, session: Session) -> bool:
        session[ToolCall][0].arguments.clear()
        return True

    def asks_for_it(output: str, session: Session) -> bool:
        return bool(session[ToolCall][0].arguments == {"q": "capital"})

    report = evaluate(agent, [{"id": "s", "input": 1}], [forgets, asks_for_it], history=False)
    assert report.results[0].scores["asks_for_it"].passed is True
    session = report.results[0].trial.session
    assert session is not None
    assert session[ToolCall][0].arguments == {"q": "capital"}


@dataclass
class Basket:
    items: list[int] = field(default_factory=list)


def test_objects_are_copied_as_well() -> None:
    def makes(_: Any) -> Basket:
        return Basket([1])

    def adds(output: Basket) -> bool:
        output.items.append(2)
        return True

    def has_one(output: Basket) -> bool:
        return output.items == [1]

    report = evaluate(makes, [{"id": "s", "input": 1}], [adds, has_one], history=False)
    assert report.results[0].scores["has_one"].passed is True
    assert report.results[0].trial.output == {"items": [1]}


def test_a_value_that_cannot_be_copied_is_a_warning() -> None:
    def makes(_: Any) -> Any:
        return {"lock": threading.Lock()}

    def has_a_lock(output: Any) -> bool:
        return "lock" in output

    data = [{"id": f"s{i}", "input": 1} for i in range(3)]
    report = evaluate(makes, data, has_a_lock, history=False)
    assert report.pass_rate == 1.0
    assert report.metadata is not None
    lines = [text for text in report.metadata.warnings if "cannot be copied" in text]
    assert len(lines) == 1
    assert lines[0].startswith("the arguments of an evaluator cannot be copied, so an evaluator that")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


def containers(value: Any) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else value
    own = [value] if isinstance(value, list | dict) else []
    if not isinstance(value, list | dict | tuple):
        return []
    return [*own, *(container for part in inside for container in containers(part))]


@given(PLAIN)
def test_a_copy_is_equal_and_shares_no_container(value: Any) -> None:
    """Whatever plain data it is: the copy is equal, and no list or mapping is in both."""
    (copied,) = private_copies([value])
    assert copied == value
    assert not {id(container) for container in containers(copied)} & {id(container) for container in containers(value)}


def test_texts_and_numbers_are_not_copied() -> None:
    values = ("text", 1, None)
    assert private_copies(values) is values
