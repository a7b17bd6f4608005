"""Expected tool calls held against those that happened: which fit which, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from proctor.errors import EvaluatorError, Problem
from proctor.evaluators.matching import exact_match, json_subset
from proctor.evaluators.tool_calls import Call
from proctor.evaluators.verdict import shown
from proctor.records.sample import kind_of
from proctor.records.score import Score
from proctor.records.session import ToolCall

SequenceMode = Literal["in_order", "any_order", "exact"]
ArgumentRule = Literal["exact", "subset", "ignore"]
Pairs = dict[int, int]
Fits = list[list[bool]]


class Wanted(NamedTuple):
    """A tool call that is expected; without arguments any will do."""

    name: str
    arguments: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        if self.arguments is None:
            return f"{self.name}(…)"
        listed = ", ".join(f"{name}={_worded(value)}" for name, value in self.arguments.items())
        return f"{self.name}({listed})"


class Terms(NamedTuple):
    """How calls are compared: their order, whether others may come between, their arguments."""

    mode: SequenceMode = "in_order"
    arguments: ArgumentRule = "exact"
    allow_extra: bool = True
    compare: Mapping[str, Callable[[Any, Any], Any]] = {}

    @property
    def complete(self) -> bool:
        """True if every call must have been expected."""
        return self.mode == "exact" or not self.allow_extra


def wanted_of(expected: Any) -> list[Wanted]:
    """Expected calls from a name, {name, arguments}, a list of these, or {tools: list}.

    >>> [str(one) for one in wanted_of(["search", {"name": "open", "arguments": {"page": 1}}])]
    ['search(…)', 'open(page=1)']
    """
    if isinstance(expected, Mapping) and "tools" in expected:
        expected = expected["tools"]
    several = isinstance(expected, Sequence) and not isinstance(expected, str | bytes | Wanted)
    items = list(expected) if several else [expected]
    problems = [
        Problem(f"expected[{place}]", fault)
        for place, one in enumerate(items)
        for fault in _odd(one)
    ]
    if problems:
        raise EvaluatorError(
            "the expected tool calls cannot be read",
            where="tool_sequence",
            fix="write a name, or {name: search, arguments: {query: Paris}}",
            problems=problems,
        )
    return [_wanted(one) for one in items]


def compared(wanted: Sequence[Wanted], calls: Sequence[Call], terms: Terms) -> Score:
    """The share of expected calls that happened, with what differs.

    >>> compared(wanted_of(["search", "open"]), [Call("search"), Call("close")], Terms()).value
    0.5
    """
    fits = [
        [one.name == call.name and not _faults(one, call, terms) for call in calls]
        for one in wanted
    ]
    pairs = _any_pairs(fits) if terms.mode == "any_order" else _ordered_pairs(fits, len(calls))
    whole = max(len(wanted), len(calls)) if terms.complete else len(wanted)
    extra = [call for place, call in enumerate(calls) if place not in pairs.values()]
    missing = [
        f"{one}{_nearly(one, place, fits, extra, terms)}"
        for place, one in enumerate(wanted)
        if place not in pairs
    ]
    passed = not missing and not (terms.complete and extra)
    lines = _unordered(wanted, calls, pairs) if terms.mode == "any_order" else None
    details = {
        "expected": [str(one) for one in wanted],
        "actual": [str(call) for call in calls],
        "matched": len(pairs),
        "diff": list(lines or _aligned(wanted, calls, pairs)),
    }
    reason = "" if passed else _reason(len(wanted), missing, extra if terms.complete else [])
    return Score(len(pairs) / whole if whole else 1.0, passed, reason, details)


def _odd(item: Any) -> Iterator[str]:
    """What is wrong with one expected call."""
    if isinstance(item, ToolCall | Wanted):
        return
    if isinstance(item, Mapping):
        unknown = [str(key) for key in item if key not in ("name", "arguments")]
        if unknown:
            yield f"it has name and arguments, not {', '.join(map(repr, unknown))}"
        if not isinstance(item.get("arguments"), Mapping | None):
            yield f"arguments is a mapping, got {kind_of(item['arguments'])}"
        item = item.get("name")
    if not (isinstance(item, str) and item):
        yield f"a tool has a name, got {shown(item)}"


def _wanted(item: Any) -> Wanted:
    if isinstance(item, str):
        return Wanted(item)
    if isinstance(item, Mapping):
        return Wanted(item["name"], item.get("arguments"))
    return Wanted(item.name, item.arguments)


def _faults(wanted: Wanted, call: Call, terms: Terms) -> list[str]:
    """What is wrong with the arguments of a call to the right tool."""
    if wanted.arguments is None or terms.arguments == "ignore":
        return []
    faults = [
        fault
        for name, value in wanted.arguments.items()
        if (fault := _argument_fault(name, value, call.arguments, terms))
    ]
    if terms.arguments == "exact":
        faults += [f"unexpected: {name}" for name in call.arguments if name not in wanted.arguments]
    return faults


def _argument_fault(name: str, value: Any, given: Mapping[str, Any], terms: Terms) -> str:
    if name not in given:
        return f"missing: {name}"
    found, compare = given[name], terms.compare.get(name)
    if callable(value):
        fine = bool(value(found))
    elif compare is not None:
        fine = bool(compare(found, value))
    else:
        # In mappings: a bare list of texts would mean that any of them is right.
        same = json_subset if terms.arguments == "subset" else exact_match
        fine = same({name: found}, {name: value}).passed is True
    return "" if fine else f"wrong: {name} (expected {_worded(value)}, got {shown(found)})"


def _ordered_pairs(fits: Fits, calls: int) -> Pairs:
    """The longest common subsequence, as places in the one and the other."""
    longest = [[0] * (calls + 1) for _ in range(len(fits) + 1)]
    for i in range(len(fits) - 1, -1, -1):
        for j in range(calls - 1, -1, -1):
            aside = max(longest[i + 1][j], longest[i][j + 1])
            longest[i][j] = longest[i + 1][j + 1] + 1 if fits[i][j] else aside
    pairs: Pairs = {}
    i = j = 0
    while i < len(fits) and j < calls:
        if fits[i][j]:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif longest[i + 1][j] > longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _any_pairs(fits: Fits) -> Pairs:
    """The most pairs that can be made: a call that fits two is given to the one that needs it."""
    holder: dict[int, int] = {}

    def placed(one: int, tried: set[int]) -> bool:
        for call, fit in enumerate(fits[one]):
            if fit and call not in tried:
                tried.add(call)
                if call not in holder or placed(holder[call], tried):
                    holder[call] = one
                    return True
        return False

    for one in range(len(fits)):
        placed(one, set())
    return {one: call for call, one in holder.items()}


def _nearly(wanted: Wanted, place: int, fits: Fits, extra: Sequence[Call], terms: Terms) -> str:
    """What was called instead of a missing call, if it was the same tool."""
    if terms.mode != "any_order" and any(fits[place]):
        return " (called, but not in this place)"
    for call in extra:
        if call.name == wanted.name:
            return f" (called as {call}: {', '.join(_faults(wanted, call, terms))})"
    return ""


def _aligned(wanted: Sequence[Wanted], calls: Sequence[Call], pairs: Pairs) -> Iterator[str]:
    """Both sequences side by side: `-` is missing, `+` was not expected, a space fits."""
    done_wanted = done_calls = 0
    for one, call in [*sorted(pairs.items()), (len(wanted), len(calls))]:
        yield from (f"- {missing}" for missing in wanted[done_wanted:one])
        yield from (f"+ {extra}" for extra in calls[done_calls:call])
        yield from (f"  {fitting}" for fitting in calls[call : call + 1])
        done_wanted, done_calls = one + 1, call + 1


def _unordered(wanted: Sequence[Wanted], calls: Sequence[Call], pairs: Pairs) -> Iterator[str]:
    for place, one in enumerate(wanted):
        yield f"  {calls[pairs[place]]}" if place in pairs else f"- {one}"
    yield from (f"+ {call}" for place, call in enumerate(calls) if place not in pairs.values())


def _reason(expected: int, missing: Sequence[str], extra: Sequence[Call]) -> str:
    parts = [f"{expected - len(missing)} of {expected} expected calls"]
    if missing:
        parts.append("missing: " + ", ".join(missing))
    if extra:
        parts.append("not expected: " + ", ".join(map(str, extra)))
    return "; ".join(parts)


def _worded(value: Any) -> str:
    """An expected argument for people: a function by its name."""
    return str(getattr(value, "__name__", "a function")) if callable(value) else shown(value)
