"""A run stores the answers that it could use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from proctor.errors import Unreadable
from proctor.models.answer_format import JsonFormat
from proctor.models.model_calls import CallContext, ask, call_context
from proctor.records.model import ModelResponse
from proctor.records.session import Usage
from tests.models.providers.scripted import Scripted
from tests.models.test_answer_cache import Memory


@pytest.fixture
def stored() -> Iterator[Memory]:
    """The store of one run."""
    memory = Memory()
    token = call_context.set(CallContext(None, memory))
    yield memory
    call_context.reset(token)


def says(*answers: Any) -> Scripted:
    """A model that gives its answers one after the other."""
    left = list(answers)
    return Scripted(lambda request: left.pop(0))


def test_an_unreadable_stored_answer_is_requested_again(stored: Memory) -> None:
    """Neither answer is stored, so the next request is a new call."""
    model = says("no", "never", "[1]")
    with pytest.raises(Unreadable):
        ask(model, "x", list[int])
    assert stored.things == {}
    assert ask(model, "x", list[int]).output == [1]
    assert len(stored.things) == 1


def test_a_refusal_is_not_stored(stored: Memory) -> None:
    """The model may answer next time."""
    model = says(ModelResponse("", refusal="I would rather not."), "[1]")
    with pytest.raises(Unreadable):
        ask(model, "x", list[int])
    assert ask(model, "x", list[int]).output == [1]


def test_answers_to_a_reminder_are_reused(stored: Memory) -> None:
    """Both answers are stored: the second is found after the first."""
    model = says(ModelResponse("no", usage=Usage(1, 1)), ModelResponse("[1]", usage=Usage(2, 2)))
    first = ask(model, "x", list[int])
    again = ask(model, "x", list[int])
    assert (first.usage, first.cached) == (Usage(3, 3), False)
    assert (again.output, again.cached, len(model.requests)) == ([1], True, 2)


def test_a_stored_answer_that_no_longer_fits_leads_to_a_reminder(stored: Memory) -> None:
    """Then both answers are found."""
    model = says("[0]", "[1]")
    ask(model, "x", list[int])

    class Positive:
        schema = JsonFormat(list[int]).schema
        instructions = JsonFormat(list[int]).instructions

        def read(self, text: str, *, structured: bool) -> str:
            if text == "[0]":
                raise ValueError("nothing above 0")
            return text

    assert ask(model, "x", Positive()).output == "[1]"
    assert len(model.requests) == 2
