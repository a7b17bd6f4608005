"""The cache of answers: its keys, what it stores, and what it does not."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.identity import compute_digest
from proctor.models.clients.python import FunctionAdapter
from proctor.models.model_calls import call_key, find_response, read_stored_call, store_response
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Message, Usage
from tests.models.providers.scripted import Scripted, asked


class Memory:
    """A store in memory."""

    def __init__(self) -> None:
        self.things: dict[str, bytes] = {}

    def find(self, key: str) -> bytes | None:
        return self.things.get(key)

    def put(self, key: str, data: bytes) -> None:
        self.things[key] = data


texts = st.text(max_size=20)
requests = st.builds(
    ModelRequest,
    st.lists(st.builds(Message, st.sampled_from(["system", "user"]), texts), max_size=3).map(tuple),
    schema=st.none() | st.dictionaries(texts, st.integers(), max_size=2),
    temperature=st.none() | st.floats(0, 2),
    max_tokens=st.none() | st.integers(1, 9),
    seed=st.none() | st.integers(0, 9),
    opinion=st.integers(0, 3),
)
responses = st.builds(
    ModelResponse,
    texts,
    usage=st.builds(Usage, st.none() | st.integers(0, 99), st.none() | st.integers(0, 99)),
    finish_reason=st.none() | texts,
    latency_ms=st.none() | st.floats(0, 1e6),
    raw=st.none() | st.dictionaries(texts, st.lists(st.integers(-9, 9)), max_size=2),
)


@given(requests, requests, responses)
def test_an_answer_is_found_by_its_own_question_only(
    one: ModelRequest, other: ModelRequest, response: ModelResponse
) -> None:
    """And comes back as it was, marked as cached."""
    store, model = Memory(), Scripted()
    store_response(store, model, one, response)
    assert find_response(store, model, one) == msgspec.structs.replace(response, cached=True)
    assert (find_response(store, model, other) is None) == (one != other)


def test_keys_do_not_depend_on_the_order_of_a_schema() -> None:
    """The same schema written in another order is the same question."""
    item, two = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert call_key(Scripted(), asked(schema=item)) == call_key(Scripted(), asked(schema=two))


def test_the_parsed_answer_is_not_stored() -> None:
    """It is parsed again, maybe as another type."""
    store, model = Memory(), Scripted()
    store_response(store, model, asked(), ModelResponse("1", output=1))
    result = find_response(store, model, asked())
    assert result is not None
    assert (result.text, result.output) == ("1", None)


def test_values_without_a_json_form_are_not_stored() -> None:
    """An object with only a repr, and a list that contains itself."""
    store, model = Memory(), Scripted()
    endless: list[Any] = []
    endless.append(endless)
    for raw in (object(), endless):
        store_response(store, model, asked(), ModelResponse("1", raw=raw))
    assert store.things == {}


def test_other_bytes_are_not_an_answer() -> None:
    """Outputs of targets may lie in the same store."""
    for data in (b"", b"{", b'{"output": 1}', b"\xff"):
        assert read_stored_call(data) is None


def test_an_evaluator_knows_the_code_of_the_function_it_asks() -> None:
    """A judge function that was changed makes another evaluator; the key of a model does not."""

    def judging(model: Any) -> Any:
        return lambda output: model

    item, two = (FunctionAdapter(f, name="judge") for f in (lambda m: "a", lambda m: "b"))
    assert compute_digest(judging(item)) == compute_digest(judging(item))
    assert compute_digest(judging(item)) != compute_digest(judging(two))
    assert compute_digest(judging(Scripted())) == compute_digest(judging(Scripted(seconds=1)))
