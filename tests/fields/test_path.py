"""Paths to fields: all kinds of values work alike, and a missing field is named."""

from __future__ import annotations

import functools
import sys
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import msgspec
import pydantic
import pytest
from benchmarks.fields import seconds_per_round
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.errors import ConfigError, FieldMissing
from proctor.records.fields.path import parse_path
from tests.tables import each_row


@dataclass
class Tokens:
    total: int = 12

    @property
    def double(self) -> int:
        return 2 * self.total


class Struct(msgspec.Struct):
    tokens: Tokens = msgspec.field(default_factory=Tokens)

    @property
    def words(self) -> int:
        return 7


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    tokens: dict[str, int] = {"total": 12}

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def words(self) -> int:
        return 7


class Slotted:
    __slots__ = ("tokens",)

    def __init__(self) -> None:
        self.tokens = {"total": 12}


class Plain:
    def __init__(self) -> None:
        self.tokens = {"total": 12}
        self._secret = "hidden"

    @functools.cached_property
    def words(self) -> int:
        return 7


Pair = namedtuple("Pair", ["tokens", "other"])


@each_row(
    "thing",
    [
        {"tokens": {"total": 12}},
        MappingProxyType({"tokens": {"total": 12}}),
        {"tokens": Tokens()},
        Struct(),
        Model(),
        Slotted(),
        Plain(),
        Pair({"total": 12}, None),
    ],
)
def test_all_kinds_of_values_with_fields_work_alike(thing: Any) -> None:
    """Mappings, dataclasses, structs, models, slots, plain objects and named tuples."""
    assert parse_path("tokens.total").find(thing) == 12
    assert parse_path("tokens.total").exists(thing)
    assert not parse_path("tokens.totals").exists(thing)


def test_properties_are_fields_too() -> None:
    """Computed on demand, for any class; also extra fields of a model."""
    assert parse_path("tokens.double").find(Struct()) == 24
    assert [parse_path("words").find(thing) for thing in (Struct(), Model(), Plain())] == [7, 7, 7]
    assert parse_path("colour").find(Model(colour="red")) == "red"  # type: ignore[call-arg]


def test_private_names_are_not_fields() -> None:
    """Neither an attribute with an underscore nor a method."""
    for path in ("_secret", "__class__", "model_dump"):
        assert not parse_path(path).exists(Plain())
        assert not parse_path(path).exists(Model())


@each_row(
    ("path", "found"),
    [
        ("items.0.name", "a"),
        ("items.-1.name", "c"),
        ("items.*.name", ["a", "b", "c"]),
        ("items.*.tags.*", [1, 2, 3]),
        ("items.*.tags.0", [1, 2, 3]),
        ("items.*", [{"name": n, "tags": [i]} for i, n in enumerate("abc", 1)]),
        ("by_name.*.n", [5, 6]),
        (r"a\.b.c", "dotted"),
        ("numbers.3", "three"),
        ("nothing", None),
        ("pair.1", 2),
        ("stars.*", "a key of its own"),
        ("many.*.*", [1, 2]),
    ],
)
def test_indices_stars_and_dots(path: str, found: Any) -> None:
    """List indices from both ends, every item, items of items, keys with dots, null as a value."""
    thing = {
        "items": [{"name": n, "tags": [i]} for i, n in enumerate("abc", 1)],
        "by_name": {"x": {"n": 5}, "y": {"n": 6}},
        "a.b": {"c": "dotted"},
        "numbers": {3: "three"},
        "nothing": None,
        "pair": (1, 2),
        "stars": {"*": "a key of its own", "x": 1},
        "many": [{"*": 1, "z": 9}, {"*": 2}],
    }
    assert parse_path(path).find(thing) == found


def test_a_star_over_nothing_is_an_empty_list() -> None:
    """An empty list is not a missing field."""
    assert parse_path("items.*.name").find({"items": []}) == []
    assert parse_path("items.*.name.*").find({"items": {}}) == []


def missing(path: str, thing: Any) -> str:
    with pytest.raises(FieldMissing) as caught:
        parse_path(path).find(thing)
    assert isinstance(caught.value, LookupError)
    return str(caught.value)


def test_a_missing_field_is_named_with_the_existing_ones() -> None:
    """The error names the path, the key, and the keys that are there."""
    thing = {"usage": {"total_tokens": 1, "cost": 2}, "items": [{"n": 1}, {"m": 2}], "no": None}
    assert missing("usage.total_token", thing) == snapshot(
        """\
usage.total_token: 'usage' has no field 'total_token'
Fix: did you mean 'total_tokens'? Fields: total_tokens, cost\
"""
    )
    assert missing("latency_ms", thing) == snapshot(
        """\
latency_ms: the result has no field 'latency_ms'
Fix: choose one of: usage, items, no\
"""
    )
    assert missing("items.7.n", thing) == snapshot(
        """\
items.7.n: 'items' has no item 7
Fix: use an index from 0 to 1, or * for all items\
"""
    )
    assert missing("items.*.n", thing) == snapshot(
        """\
items.1.n: 'items.1' has no field 'n'
Fix: choose one of: m\
"""
    )
    assert missing("no.more", thing) == snapshot("no.more: 'no' is null and has no field 'more'")
    assert missing("usage.cost.*", thing) == snapshot("usage.cost.*: 'usage.cost' is of type int and has no items")
    assert missing("usage.cost.cents", thing) == snapshot(
        "usage.cost.cents: 'usage.cost' is of type int and has no field 'cents'"
    )
    assert missing("x.0", {"x": []}) == snapshot("x.0: 'x' is an empty list and has no item 0")


@pytest.mark.parametrize("thing", [datetime(2026, 1, 1, tzinfo=UTC), {1}, object(), len, 3, "text"])
def test_a_value_without_fields_is_refused(thing: Any) -> None:
    """Never another error than that the field is missing."""
    assert "has no field 'nothing'" in missing("x.nothing", {"x": thing})
    assert "has no " in missing("x." + "9" * 5_000, {"x": thing})


def test_an_error_names_the_key_of_a_mapping_under_a_star() -> None:
    """Not the number of the item."""
    assert "'runs.b' has no field 'n'" in missing("runs.*.n", {"runs": {"a": {"n": 1}, "b": {}}})


def test_many_keys_are_cut() -> None:
    """Twenty are shown, and that there are more."""
    output = missing("zzz", {f"key{i}": i for i in range(50)})
    assert output.count("key") == 20
    assert output.endswith("…")


@each_row(
    ("path", "words"),
    [
        ("", "the path is empty"),
        ("  ", "the path is empty"),
        (".a", "it has an extra dot"),
        ("a.", "it has an extra dot"),
        ("a..b", "it has an extra dot"),
        ("a. b", "a key starts or ends with a space"),
        ("items[0]", "write items.0 for a list index"),
        ("items[0].name", "write items.0 for a list index"),
        (3, "must be a string, got int"),
        (["a"], "must be a string, got list"),
        (None, "must be a string, got NoneType"),
    ],
)
def test_an_invalid_path_is_refused(path: Any, words: str) -> None:
    """The error shows the fault and the notation of paths."""
    with pytest.raises(ConfigError, match=words) as caught:
        parse_path(path)
    assert "usage.total_tokens" in caught.value.fix


def test_a_path_is_parsed_once() -> None:
    """The same object is returned again."""
    assert parse_path("usage.total_tokens") is parse_path("usage.total_tokens")


KEYS = st.text(min_size=1).filter(lambda k: k == k.strip() and "\\" not in k and k != "*")
LEAVES = st.none() | st.booleans() | st.integers() | st.text()
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)


def leaves(thing: Any, keys: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    if isinstance(thing, dict):
        return [leaf for key, part in thing.items() for leaf in leaves(part, (*keys, key))]
    if isinstance(thing, list):
        return [leaf for at, part in enumerate(thing) for leaf in leaves(part, (*keys, str(at)))]
    return [(keys, thing)]


@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=5))
def test_every_leaf_is_found_by_its_path(tree: dict[str, Any]) -> None:
    """In any nesting, with escaped dots."""
    for keys, value in leaves(tree):
        text = ".".join(key.replace(".", "\\.") for key in keys)
        if any(key.endswith("]") for key in keys):
            continue
        assert parse_path(text).find(tree) is value
        assert parse_path(text).exists(tree)


@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=5), st.lists(KEYS, min_size=1, max_size=4))
def test_finding_agrees_with_existing(tree: dict[str, Any], keys: list[str]) -> None:
    """A path either gives a value or raises FieldMissing; `exists` says which, and nothing else."""
    text = ".".join(key.replace(".", "\\.") for key in keys)
    if "]" in text:
        return
    way = parse_path(text)
    if way.exists(tree):
        way.find(tree)
    else:
        with pytest.raises(FieldMissing):
            way.find(tree)


@given(st.lists(st.lists(st.integers(), max_size=4), max_size=4))
def test_two_stars_give_one_flat_list(rows: list[list[int]]) -> None:
    """Items of items, in order."""
    assert parse_path("rows.*.*").find({"rows": rows}) == [n for row in rows for n in row]


def test_a_hundred_fields_are_extracted_quickly() -> None:
    """About 100 µs for 100 fields on a quiet machine; the best of ten rounds takes at most 5 ms."""
    if sys.gettrace() is not None:
        pytest.skip("every line is being traced")
    assert min(seconds_per_round() for _ in range(10)) < 5e-3


@dataclass
class Unread:
    """Reading one of its fields fails."""

    fine: int = 1
    more: list[int] = field(default_factory=list)

    @property
    def broken(self) -> int:
        raise RuntimeError("not today")


def test_the_error_of_a_property_is_shown() -> None:
    """It is not reported as a missing field."""
    assert parse_path("fine").find(Unread()) == 1
    with pytest.raises(RuntimeError, match="not today"):
        parse_path("broken").find(Unread())
