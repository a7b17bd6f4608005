"""Tools: their description for the model, their arguments, and their errors."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import ToolCall
from proctor.core.clock import SystemClock
from proctor.errors import StopRun, TargetError
from proctor.targets.main_loop.tools import Tool, Toolbox, tool
from tests.support import ManualClock


def answered(tool: Tool, /, **arguments: Any) -> ToolCall:
    """Call a tool with these arguments."""
    return asyncio.run(tool.run_call(ToolCall(tool.name, arguments, call_id="c1"), SystemClock()))


@tool
def search(query: str, limit: int = 3, *, scale: float = 1.0) -> list[str]:
    """Search the
    library.

    More that only people read.
    """
    return [query] * limit if scale == 1.0 else [query]


def test_a_tool_is_described_by_its_function() -> None:
    """The first paragraph of the docstring is the description, the signature is the schema."""
    spec = search.spec
    assert (spec.name, spec.description) == ("search", "Search the library.")
    assert spec.parameters["type"] == "object"
    assert spec.parameters["required"] == ["query"]
    assert spec.parameters["additionalProperties"] is False
    assert spec.parameters["properties"] == {
        "query": {"type": "string"},
        "limit": {"type": "integer", "default": 3},
        "scale": {"type": "number", "default": 1.0},
    }


def test_a_tool_can_be_called_as_a_function() -> None:
    """As before."""
    assert search("a", limit=1) == ["a"]
    assert repr(search) == "Tool('search')"


def test_arguments_are_converted_to_their_types() -> None:
    """The call has its result and its duration."""
    call = answered(search, query="b", limit=2, scale=1)
    assert (call.result, call.error, call.call_id) == (["b", "b"], None, "c1")
    assert call.arguments == {"query": "b", "limit": 2, "scale": 1}
    assert call.duration_ms is not None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": "a", "limit": True}, "limit: Expected `int`, got `bool`"),
        ({"query": "a", "limit": "3"}, "limit: Expected `int`, got `str`"),
        ({"querry": "a"}, "unknown parameter 'querry': did you mean 'query'?; query is missing"),
        ({"query": 1, "limit": 1.5}, "query: Expected `str`, got `int`; limit: Expected `int`, got"),
        ({}, "query is missing"),
    ],
)
def test_invalid_arguments_are_reported_at_once(arguments: dict[str, Any], error: str) -> None:
    """The model can correct them; the tool does not run."""
    call = answered(search, **arguments)
    assert call.result is None
    assert call.error is not None
    assert call.error.startswith(f"the arguments are invalid: {error}")


class Colour(Enum):
    RED = "red"


class Place(pydantic.BaseModel):
    name: str
    inside: Place | None = None


def test_rich_types_are_converted() -> None:
    """Dates, enums, literals, lists, mappings, unions and nested pydantic models."""

    def plan(
        day: date,
        colour: Colour,
        mode: Literal["fast", "slow"],
        places: list[Place],
        counts: dict[int, float],
        note: Annotated[str | None, "what to say"] = None,
        labels: tuple[str, ...] = ("a",),
    ) -> dict[str, Any]:
        return {"day": day, "inside": places[0].inside, "counts": counts, "labels": [*labels]}

    made = tool(plan)
    schema = made.spec.parameters
    assert schema["properties"]["note"]["description"] == "what to say"
    assert set(schema["$defs"]) >= {"Place"}
    inside = {"name": "France", "inside": {"name": "Europe"}}
    call = answered(made, day="2026-02-03", colour="red", mode="fast", places=[inside], counts={"1": 2})
    assert call.error is None
    assert call.result == {
        "day": "2026-02-03",
        "inside": {"name": "Europe", "inside": None},
        "counts": {"1": 2.0},
        "labels": ["a"],
    }
    wrong = answered(made, day="2026-02-03", colour="red", mode="fast", places=[{"name": 1}], counts={})
    assert "places: name: Input should be a valid string" in str(wrong.error)


@dataclass
class Query:
    text: str
    limit: int = 3


class StrictQuery(msgspec.Struct):
    text: str
    limit: int = 3


class ModelQuery(pydantic.BaseModel):
    text: str
    limit: int = 3


@pytest.mark.parametrize("kind", [Query, StrictQuery, ModelQuery])
def test_a_record_defines_the_parameters(kind: Any) -> None:
    """A dataclass, a struct or a pydantic model."""
    made = Tool("search", "Search.", lambda query: [query.text] * query.limit, kind)
    assert made.spec.parameters["type"] == "object"
    assert set(made.spec.parameters["properties"]) == {"text", "limit"}
    assert answered(made, text="a", limit=2).result == ["a", "a"]
    assert "unknown parameter 'txt'" in str(answered(made, text="a", txt="b").error)
    for wrong in (True, "2"):
        assert "limit" in str(answered(made, text="a", limit=wrong).error)


def test_a_function_whose_only_parameter_is_a_record_takes_its_fields() -> None:
    """The model does not have to nest an object."""

    def find(query: Query) -> str:
        return query.text

    assert answered(tool(find), text="a").result == "a"
    assert set(tool(find).spec.parameters["properties"]) == {"text", "limit"}


def test_extra_fields_are_passed_if_allowed() -> None:
    """By the pydantic model."""

    class Loose(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        text: str

    made = Tool("loose", "", lambda given: given.model_dump(), Loose)
    assert answered(made, text="a", more=1).result == {"text": "a", "more": 1}


def test_a_tool_without_parameters_takes_none() -> None:
    """Its schema is an empty object, and arguments are an error."""

    def now() -> str:
        return "noon"

    assert answered(tool(now)).result == "noon"
    assert answered(tool(now), zone="x").error == (
        "the arguments are invalid: unknown parameter 'zone': there are none"
    )


def test_async_handlers_objects_and_partials_are_tools() -> None:
    """Awaitable results are awaited."""

    async def later(text: str) -> str:
        """Wait for it."""
        return text

    class Speaker:
        async def __call__(self, text: str) -> str:
            return text.upper()

    def soon(text: str) -> Any:
        return later(text)

    assert answered(tool(later), text="a").result == "a"
    assert answered(tool(name="speak")(Speaker()), text="a").result == "A"
    assert answered(tool(soon), text="a").result == "a"
    bound = tool(functools.partial(later))
    assert (bound.name, bound.spec.description) == ("later", "Wait for it.")
    assert answered(bound, text="b").result == "b"


def test_a_sync_tool_runs_in_a_thread() -> None:
    """It does not block the event loop."""

    def where() -> str:
        return threading.current_thread().name

    assert answered(tool(where)).result == "proctor-call"


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ValueError("no such page"), "ValueError: no such page"),
        (TimeoutError("of its own"), "TimeoutError: of its own"),
        (asyncio.CancelledError(), "CancelledError: the tool cancelled itself"),
        (Unspeakable(), "Unspeakable"),
        (SystemExit(0), "SystemExit: 0"),
    ],
)
def test_an_exception_is_the_error_of_the_call(failure: BaseException, error: str) -> None:
    """With its duration."""

    async def fails() -> None:
        raise failure

    call = answered(tool(fails))
    assert call.error == error
    assert call.duration_ms is not None
    assert not call.success


def test_stop_run_is_not_a_tool_error() -> None:
    """A spent budget ends the run."""

    async def spends() -> None:
        raise StopRun("the budget is spent")

    with pytest.raises(StopRun):
        answered(tool(spends))


@pytest.mark.parametrize("waits", [True, False])
def test_a_tool_has_its_own_timeout(waits: bool) -> None:
    """The model sees an error after it."""

    over = threading.Event()

    async def slow() -> None:
        await asyncio.sleep(60)

    def slow_plain() -> None:
        over.wait(60)

    made = tool(name="slow", timeout=0.05)(slow if waits else slow_plain)
    assert answered(made).error == "TimeoutError: no answer within 0.05 s"
    over.set()


def test_a_result_that_cannot_be_encoded_is_an_error() -> None:
    """Such as a list that contains itself."""

    def endless() -> list[Any]:
        found: list[Any] = []
        found.append(found)
        return found

    assert "its result cannot be written as JSON" in str(answered(tool(endless)).error)


def test_arguments_that_are_not_json_are_an_error() -> None:
    """The tool does not run."""
    broken = ToolCall("search", error="the model's arguments are not a JSON object: '{q'")
    found = asyncio.run(search.run_call(broken, ManualClock()))
    assert found == msgspec.structs.replace(broken, duration_ms=0.0)


def test_an_unknown_tool_is_an_error_with_a_suggestion() -> None:
    """The model can correct the name."""
    found = asyncio.run(Toolbox([search]).run_call(ToolCall("serach"), ManualClock()))
    assert found.error == "unknown tool 'serach': did you mean 'search'?"


def takes_anything(*args: int, **options: int) -> None: ...
def by_place(a: int, /) -> None: ...
def untyped(a, b: int) -> None: ...  # type: ignore[no-untyped-def]
def of_no_schema(a: threading.Lock) -> None: ...
def of_no_schema_either(a: Callable[[], int]) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (takes_anything, "options: a schema cannot describe it"),
        (by_place, "a: a model passes arguments by name"),
        (untyped, "a: it has no type"),
        (of_no_schema, "a schema cannot describe its parameters"),
        (of_no_schema_either, "a schema cannot describe its parameters"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(function: Any, why: str) -> None:
    """The error names the tool and each parameter without a schema."""
    with pytest.raises(TargetError) as caught:
        tool(function)
    assert why in str(caught.value)
    assert caught.value.where == function.__name__


def test_an_unknown_annotation_is_an_error() -> None:
    """When the tool is defined."""

    def broken(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TargetError, match="name 'Nowhere' is not defined"):
        tool(broken)


def test_tool_names_are_valid_for_every_provider() -> None:
    """No spaces, no lambdas, no duplicates."""
    with pytest.raises(TargetError, match="'my tool' is not a valid tool name"):
        Tool("my tool", "", lambda: None)
    with pytest.raises(TargetError, match="is not a valid tool name"):
        tool(lambda: None)
    with pytest.raises(TargetError, match="search: two tools have this name"):
        Toolbox([search, search.handler])


def test_parameters_must_be_a_record() -> None:
    """A list has no fields."""
    with pytest.raises(TargetError, match="cannot have the type"):
        Tool("search", "", lambda query: query, list[int])


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(["query", "limit", "scale", "other"]),
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    )
)
def test_every_call_has_a_result_or_an_error(arguments: dict[str, Any]) -> None:
    """Property: no arguments make a tool raise, and it only gets the declared types."""
    seen: list[Any] = []

    async def looked(query: str, limit: int = 3, *, scale: float = 1.0) -> str:
        seen.append((query, limit, scale))
        return "found"

    call = answered(tool(name="search")(looked), **arguments)
    if call.error is None:
        ((query, limit, scale),) = seen
        assert (type(query), type(limit), type(scale)) == (str, int, float)
    else:
        assert seen == []
        assert call.error.startswith("the arguments are invalid: ")
