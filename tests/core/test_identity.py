"""An identity changes if and only if the code or data behind it changes."""

from __future__ import annotations

import builtins
import datetime as dt
import functools
import json
import math
import operator
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from proctor.core.identity import compute_digest, compute_identity, get_callable_name
from proctor.core.identity.walk import MAX_PARTS, Walk
from tests.tables import each_row


def define(code: str) -> Any:
    """Return the function `f` that some code defines."""
    names: dict[str, Any] = {"__name__": "made", "functools": functools}
    exec(code, names)
    return names["f"]


def identity(code: str) -> str:
    return compute_digest(define(code))


@each_row(
    ("one", "other"),
    [
        ("def f(x): return x + 1", "def f(x): return x - 1"),
        ("def f(x): return x + 1", "def f(x): return x + 2"),
        ("def f(x): return [1, 23]", "def f(x): return [12, 3]"),
        ("def f(x): return 1", "def f(x): return True"),
        ("def f(x): return 0.0", "def f(x): return -0.0"),
        ("def f(x): return x.upper()", "def f(x): return x.lower()"),
        ("def f(x): return x in {1, 2}", "def f(x): return x in {1, 3}"),
        ("def f(x, y=1): return x", "def f(x, y=2): return x"),
        ("def f(x, *, y=1): return x", "def f(x, *, y=2): return x"),
        ("def f(x): return (lambda: 1)()", "def f(x): return (lambda: 2)()"),
        ("def f(x): return x", "def g(x): return x\nf = g"),
        ("def f(x): return x", "async def f(x): return x"),
        ("def f(x, y=[1, 2]): return x", "def f(x, y=[[1], 2]): return x"),
        ("def f(x, y=('ab', 'c')): return x", "def f(x, y=('a', 'bc')): return x"),
        ("def f(x, y={'a': 1}): return x", "def f(x, y={'a': 2}): return x"),
        ("def f(x, y={'a': 1, 'b': f}): return x".replace("f}", "len}"), "def f(x, y={'a': 2, 'b': len}): return x"),
        ("def f(x, y={1, 2}): return x", "def f(x, y={1, 3}): return x"),
        ("def f(x, y=len): return x", "def f(x, y=sum): return x"),
        ("def f(x, y=10**5000): return x", "def f(x, y=10**5000 + 1): return x"),
        ("def f(x, y=list(range(900))): return x", "def f(x, y=list(range(901))): return x"),
    ],
)
def test_different_functions_have_different_identities(one: str, other: str) -> None:
    """Code, constants, names, defaults, inner functions."""
    assert identity(one) != identity(other)
    assert identity(one) == identity(one)
    assert identity(other) == identity(other)


def test_values_bound_by_a_closure_or_partial_count() -> None:

    def closure(bound: Any) -> Callable[[], Any]:
        return lambda: bound

    def add(x: int, y: int = 0) -> int:
        return x + y

    def tell(thing: Any) -> str:
        return compute_digest(thing)

    assert tell(closure(1)) == tell(closure(1)) != tell(closure(2))
    assert tell(closure({"t": 1, "f": add})) != tell(closure({"t": 2, "f": add}))
    partials = [
        functools.partial(add),
        functools.partial(add, 1),
        functools.partial(add, 2),
        functools.partial(add, 1, 2),
        functools.partial(add, 1, y=2),
        functools.partial(add, 1, y=3),
        functools.partial(max, 1, y=3),
    ]
    assert len({tell(partial) for partial in partials}) == len(partials)
    assert tell(functools.partial(add, x=1, y=2)) == tell(functools.partial(add, y=2, x=1))


class Judge:
    """An object with `__call__`, attributes and a method."""

    def __init__(self, threshold: float, **more: Any) -> None:
        self.threshold = threshold
        self.__dict__.update(more)

    def __call__(self, output: str) -> bool:
        return len(output) > self.threshold

    def judge(self, output: str) -> bool:
        return self(output)

    def other(self, output: str) -> bool:
        return not self(output)


class Slotted:
    __slots__ = "limit"

    def __init__(self, limit: int) -> None:
        self.limit = limit


@dataclass(slots=True, repr=False)
class SlottedData:
    limit: int
    unset: int = 0


class Options(msgspec.Struct):
    limit: int
    inner: Any = None


@each_row(
    ("one", "other"),
    [
        (Judge(1), Judge(2)),
        (Judge(1).judge, Judge(2).judge),
        (Judge(1).judge, Judge(1).other),
        (Judge(1, inner=Judge(1)), Judge(1, inner=Judge(2))),
        (Judge(1, options={"model": "a", "lock": object()}), Judge(1, options={"model": "b", "lock": object()})),
        (Slotted(1), Slotted(2)),
        (SlottedData(1), SlottedData(2)),
        (Options(1), Options(2)),
        (Options(1, Judge(1)), Options(1, Judge(2))),
        (operator.itemgetter("a"), operator.itemgetter("b")),
        (re.compile("a"), re.compile("b")),
        ("ab".startswith, "ac".startswith),
        (len, sum),
        (str.upper, str.lower),
        (math.floor, math.ceil),
        (json, re),
        (Judge, Options),
        (Path("a"), Path("b")),
        (dt.date(2026, 1, 1), dt.date(2026, 1, 2)),
        (ValueError("a"), ValueError("b")),
        (frozenset({"a"}), frozenset({"b"})),
        (frozenset(map(str, range(600))), frozenset(map(str, range(601)))),
        (functools.lru_cache(Judge(1).judge), functools.lru_cache(Judge(2).judge)),
    ],
)
def test_different_objects_have_different_identities(one: Any, other: Any) -> None:
    """Attributes, slots, fields, arguments of built-ins."""
    assert compute_digest(one) != compute_digest(other)


def test_equal_objects_have_the_same_identity() -> None:
    assert compute_digest(Judge(1, a=1, b=2)) == compute_digest(Judge(1, b=2, a=1))
    assert compute_digest(Judge(1).judge) == compute_digest(Judge(1).judge)
    assert compute_digest(Options(1, [Judge(1)])) == compute_digest(Options(1, [Judge(1)]))


def test_the_code_of_a_callable_object_counts() -> None:
    """A changed `__call__` is another evaluator."""
    first, other = (define(f"class F:\n    def __call__(self, x): return x + {n}\nf = F()") for n in (1, 2))
    assert compute_digest(first) != compute_digest(other)


class Silent:
    __slots__ = ()

    def __repr__(self) -> str:
        raise RuntimeError("no words")


@each_row(
    "make",
    [
        object,
        threading.Lock,
        Silent,
        lambda: [object(), {object()}, {"k": object()}],
        lambda: Judge(1, lock=threading.Lock(), inner=Judge(1, it=iter([]))),
        lambda: functools.partial(print, file=object()),
        lambda: (n for n in [1]),
        lambda: Judge(1).judge.__repr__,
        lambda: {i: object() for i in range(600)},
    ],
)
def test_memory_addresses_do_not_count(make: Callable[[], Any]) -> None:
    first, second = make(), make()
    assert compute_digest(first) == compute_digest(second)


def test_recursive_objects_are_followed_to_a_limit() -> None:
    endless: list[Any] = []
    endless.append(endless)
    table: dict[str, Any] = {}
    table["self"] = table
    item, two = Judge(1), Judge(2)
    item.friend, two.friend = two, item  # type: ignore[attr-defined]
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]

    def recursive(n: int) -> int:
        return n and recursive(n - 1)

    later: Callable[[], Any] = lambda: endless  # noqa: E731
    for value in (endless, table, item, deep, recursive, later, {"k": endless}, (endless, {1: table})):
        assert compute_digest(value) == compute_digest(value)
    while deep:
        deep = deep[0]


def test_an_unbound_closure_variable_is_allowed() -> None:

    late: int

    def function() -> int:
        return late

    before = compute_digest(function)
    late = 1
    assert compute_digest(function) != before


def test_huge_objects_are_visited_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long list, a large mapping, a wide network of objects: the work does not grow with the size."""
    visits = 0
    visit = Walk.visit

    def count(walk: Walk, obj: Any) -> None:
        nonlocal visits
        visits += 1
        visit(walk, obj)

    monkeypatch.setattr(Walk, "visit", count)
    objects = [object() for _ in range(50_000)]
    network = [Judge(i, inner=[Judge(j) for j in range(100)]) for i in range(500)]
    for value in (list(range(50_000)), {str(i): i for i in range(50_000)}, network, objects, set(objects)):
        visits = 0
        assert len(compute_digest(functools.partial(len, value))) == 18
        assert visits <= 2 * MAX_PARTS


STABLE = """
import functools, operator, pathlib, re
from proctor.core.identity import compute_digest

def f(x, y={"a", "b", "c"}, *, z=frozenset("defg")):
    return x in {"h", "i", "j", "k"}, [n for n in (1, 2)], lambda: {"l", "m"}

class Judge:
    def __init__(self):
        self.words = {"one", "two", "three", None, 4}
        self.table = {w: {w} for w in self.words}
        self.path = pathlib.Path("a")
        hash(self.path)
        self.lock = object()
    def __call__(self, x): return x

judge = Judge()
things = [f, functools.partial(f, {"p", "q", "r"}), judge, judge.__call__, operator.itemgetter("a"),
          re.compile("a"), set(map(str, range(600))), {"k": judge}, len, Judge]
print(*map(compute_digest, things))
"""


def test_the_identity_is_the_same_in_every_process() -> None:
    """It does not depend on hash seeds or addresses."""
    results = {
        subprocess.run(
            [sys.executable, "-c", STABLE],
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(results) == 1
    assert len(set(results.pop().split())) == 10


@each_row(
    ("thing", "name"),
    [
        (len, "len"),
        (functools.partial(functools.partial(len)), "len"),
        (Judge, "Judge"),
        (Judge(1), "Judge"),
        (Judge(1).judge, "judge"),
        (SimpleNamespace(name="mine"), "mine"),
        (SimpleNamespace(name=3), "SimpleNamespace"),
        (SimpleNamespace(name="", __name__="inner"), "inner"),
        (builtins, "builtins"),
    ],
)
def test_the_name_of_a_callable(thing: Any, name: str) -> None:
    """Its `name`, else the function's, else the class's; for partials that of the function."""
    assert get_callable_name(thing) == name


SECRET = "Zq7" * 10


def ask(question: Any, *, api_key: str = SECRET, url: str = "", retries: int = 3) -> str:
    return f"{question}{api_key}{url}{retries}"


ALWAYS_NAMED = {"the function ask", "the default url of ask", "the default retries of ask"}


@each_row(
    ("obj", "named"),
    [
        (ask, set[str]()),
        (functools.partial(ask, api_key="4711"), set[str]()),
        (functools.partial(ask, url="https://host/path"), {"url bound to ask"}),
        (functools.partial(ask, url="postgres://user:4711@host/db"), set[str]()),
        (functools.partial(ask, url="key AKIA1234567890ABCDEF"), set[str]()),
        (functools.partial(ask, {"headers": [{"Authorization": "4711"}]}), set[str]()),
        (functools.partial(ask, {"headers": [{"accept": "text"}]}), {"argument 1 bound to ask"}),
    ],
)
def test_no_digest_of_a_possible_secret_is_stored(obj: Any, named: set[str]) -> None:
    """The digest of a single value could be guessed; that of the whole target cannot."""
    labels = {label.partition(" in ")[0] for label in compute_identity(obj).parts}
    assert labels == ALWAYS_NAMED | named


def test_long_integers_and_generated_code_have_an_identity() -> None:
    """Python refuses to convert integers of more than 4,300 digits to text; methods of dataclasses have no file."""
    names: dict[str, Any] = {}
    exec(f"def answer(q): return {{0x{'f' * 5_000}, (0x{'e' * 5_000}, 1)}}", names)
    assert compute_identity(names["answer"]).digest
