"""The tool calls of a session, in one shape, whoever recorded them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.errors import EvaluatorError, Problem
from proctor.evaluators.calling import NO_SESSION
from proctor.evaluators.matching import exact_match, json_subset
from proctor.evaluators.verdict import shown
from proctor.records import codec
from proctor.records.sample import kind_of
from proctor.records.score import Score
from proctor.records.session import CustomEvent, Event, Message, Session, SessionView, ToolCall

_MISSING = object()
_TOOL_NAMES = ("tool_name", "tool")
_ARGUMENTS = ("arguments", "params", "args", "input", "tool_input")
_OUTCOMES = ("success", "is_error", "isError", "error")
_STATUSES = {
    **dict.fromkeys(("ok", "success", "succeeded", "completed", "done"), True),
    **dict.fromkeys(("error", "failed", "failure", "cancelled", "timeout"), False),
}
# How tools without a field for it say in words that they failed, in small letters.
_FAILURES = (
    "error:",
    "error -",
    "error executing tool",
    "error invoking tool",
    "an error occurred while running the tool",
    "traceback (most recent call last)",
)


SessionCheck = Callable[..., Score]
Seen = Session | SessionView | None


def view_of(session: Seen) -> SessionView:
    """The session to look at; who calls an evaluator by hand may pass a session, or none."""
    if session is None:
        return SessionView(recorded=False)
    return session.view() if isinstance(session, Session) else session


def if_recorded(evaluate: SessionCheck) -> SessionCheck:
    """The check, skipped where no session was recorded: then nothing is known of the calls."""

    def checked(output: Any, expected: Any = None, session: Seen = None) -> Score:
        view = view_of(session)
        if not view.recorded:
            return Score.skipped(NO_SESSION)
        return evaluate(output, expected, view)

    return checked


class Call(NamedTuple):
    """A tool that was called; `went_well` is None where nothing tells how it went."""

    name: str
    arguments: Mapping[str, Any] = {}
    went_well: bool | None = None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.name}({_listed(self.arguments)})"


def calls_of(session: SessionView, *, words: bool = False) -> list[Call]:
    """The tool calls of a session, in order.

    They are its `ToolCall` events and the users' own objects or mappings that look like one: they
    have a text as `tool_name` or `tool`, or a `name` beside arguments (`arguments`, `params`,
    `args`, `input`, `tool_input`) or an outcome (`success`, `is_error`, `error`). A session
    without any is read by the calls that its messages ask for. With `words`, one whose result
    begins as errors do ("Error:", a traceback) failed.

    >>> events = ToolCall("search", {"q": "Paris"}), CustomEvent("dict", {"tool": "go"})
    >>> [str(call) for call in calls_of(SessionView(events))]
    ["search(q='Paris')", 'go()']
    """
    happened = [call for event in session if (call := _call(event, words)) is not None]
    return happened or [
        Call(asked.name, asked.arguments, None, "it was asked for; nothing tells whether it ran")
        for message in session[Message]
        for asked in message.tool_calls
    ]


def names_of(calls: list[Call]) -> str:
    """Which tools were called, for a reason: each once, in order."""
    listed = ", ".join(dict.fromkeys(call.name for call in calls))
    return f"called: {listed}" if listed else "no tool was called"


def read(thing: Any, field: str, default: Any = None) -> Any:
    """A field of a mapping or an attribute of an object.

    >>> read({"success": True}, "success"), read(ToolCall("search", error="down"), "success")
    (True, False)
    """
    if isinstance(thing, Mapping):
        return thing.get(field, default)
    return getattr(thing, field, default)


def _call(event: Event, words: bool) -> Call | None:
    if isinstance(event, ToolCall):
        return Call(event.name, event.arguments, *_outcome_of_ours(event, words))
    if not isinstance(event, CustomEvent):
        return None
    name = _name(event.data)
    if name is None:
        return None
    return Call(name, _arguments(event.data), *_outcome(event.data, words))


def _outcome_of_ours(call: ToolCall, words: bool) -> tuple[bool, str]:
    """Any error is one, even where its text is empty; without one the result may tell of it."""
    if call.error is not None:
        return False, shown(call.error)
    return next((sign for sign in _result_signs(call.result, words) if not sign[0]), (True, ""))


def _name(data: Any) -> str | None:
    """The tool's name in an object that looks like a call, or None in one that does not."""
    fields: tuple[str, ...] = _TOOL_NAMES
    if any(read(data, field, _MISSING) is not _MISSING for field in (*_ARGUMENTS, *_OUTCOMES)):
        fields = (*_TOOL_NAMES, "name")
    found = (read(data, field) for field in fields)
    return next((name for name in found if isinstance(name, str)), None)


def _arguments(data: Any) -> Mapping[str, Any]:
    """The arguments as a mapping: as they are, out of JSON, or from an object's fields."""
    found: Any = next((given for f in _ARGUMENTS if (given := read(data, f)) is not None), {})
    if isinstance(found, str | bytes):
        try:
            found = msgspec.json.decode(found)
        except msgspec.DecodeError:
            return {"": found}
    elif not isinstance(found, Mapping):
        found = codec.plain(found)
    return found if isinstance(found, Mapping) else {"": found}


def _outcome(data: Any, words: bool) -> tuple[bool | None, str]:
    """How a call went: one sign of failure decides, else one of success."""
    signs = [*_signs(data), *_status(data), *_result_signs(read(data, "result"), words)]
    return next((sign for sign in signs if not sign[0]), signs[0] if signs else (None, ""))


def _result_signs(result: Any, words: bool) -> Iterator[tuple[bool, str]]:
    """What a tool's result says of how it went: as data, as JSON in a text, or in words."""
    text = _text(result)
    if text is None:
        yield from _signs(result)
        return
    if (data := _json(text)) is not None:
        yield from _signs(data)
    elif words:
        begins = text[: max(map(len, _FAILURES))].casefold()
        if begins.startswith(_FAILURES):
            yield False, f"its result begins with {shown(text.splitlines()[0])}"


def _text(result: Any) -> str | None:
    """The text of a result that is one, alone or as the first of a list of parts."""
    if isinstance(result, list | tuple) and result and isinstance(result[0], Mapping):
        result = result[0].get("text")
    return result.lstrip() if isinstance(result, str) else None


def _json(text: str) -> Mapping[str, Any] | None:
    """The mapping that a text holds, where it may tell how a call went."""
    if not text.startswith("{") or not any(f'"{field}"' in text for field in _OUTCOMES):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def _signs(data: Any) -> Iterator[tuple[bool, str]]:
    """What an event, or a tool's result, says of how it went."""
    success = read(data, "success")
    if isinstance(success, bool):
        yield success, "" if success else _said(data, "success is False")
    for field in ("is_error", "isError"):
        failed = read(data, field)
        if isinstance(failed, bool):
            yield not failed, _said(data, f"{field} is True") if failed else ""
    error = read(data, "error", _MISSING)
    if isinstance(error, str | BaseException | Mapping | bool | None):
        yield not error, _said(data, "error is True") if error else ""


def _status(data: Any) -> Iterator[tuple[bool, str]]:
    """What an event's status says. That of a result is not asked: it may be that of an order."""
    status = read(data, "status")
    told = getattr(status, "value", status)
    well = _STATUSES.get(told.casefold()) if isinstance(told, str) else None
    if well is not None:
        yield well, "" if well else _said(data, f"status is {told}")


def _said(data: Any, otherwise: str) -> str:
    """What is said about a failure, in its own words where there are some."""
    for field in ("error", "message"):
        words = read(data, field)
        if words and isinstance(words, str | BaseException | Mapping):
            return shown(words if isinstance(words, str | Mapping) else str(words))
    return otherwise


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={shown(v)}" if k else shown(v) for k, v in arguments.items())


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
        Problem(f"expected[{place}]", fault) for place, one in enumerate(items) for fault in _odd(one)
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
    fits = [[one.name == call.name and not _faults(one, call, terms) for call in calls] for one in wanted]
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
