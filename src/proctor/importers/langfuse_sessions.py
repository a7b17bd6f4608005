"""A session of Langfuse, given with its traces: the turns of one conversation, told as one."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from proctor.importers.imported import Imported
from proctor.importers.shapes import moment, without
from proctor.importers.trace import first_asked, last_answer, models_in
from proctor.records.session import CustomEvent, Event, Message, Session, ToolCall
from proctor.records.telling import call_in, which

# What is recorded of the whole; each trace keeps the rest under its id.
_OF_ALL = ("scores", "score_rows", "observations", "model", "models")
_NEVER = datetime.max.replace(tzinfo=UTC)


def joined(name: str, about: Mapping[str, Any], turns: Sequence[Imported]) -> Imported:
    """Traces as one session, in the order of their times.

    Each turn of a chat is given what was said before: that is told once, and the trace's `repeats`
    are the places where it stands. `about` is what is known of the whole.
    """
    in_order = sorted(turns, key=lambda turn: _moment(turn, "started_at") or _NEVER)
    conversation = _Conversation()
    recorded: dict[str, Any] = {"scores": {}, "score_rows": [], "observations": []}
    passed_over: Counter[str] = Counter()
    traces: list[dict[str, Any]] = []
    for turn in in_order:
        told = turn.recorded
        repeats, moved = conversation.add(turn.session, told.get("observations", ()))
        again = {"repeats": repeats} if repeats else {}
        traces.append({"id": turn.id, **without(told, *_OF_ALL), **again})
        recorded["observations"] += moved
        recorded["scores"] |= told.get("scores", {})
        recorded["score_rows"] += told.get("score_rows", ())
        passed_over.update(turn.passed_over)
    session = Session(conversation.events)
    first, *others = in_order
    last = max(filter(None, (_moment(turn, "ended_at") for turn in turns)), default=None)
    costs = [turn.recorded["cost"] for turn in in_order if "cost" in turn.recorded]
    recorded |= {
        "title": first.recorded.get("title"),
        "user_id": first.recorded.get("user_id"),
        "session_id": name,
        "started_at": first.recorded.get("started_at"),
        "ended_at": None if last is None else last.isoformat(),
        "cost": sum(costs) if costs else None,
        **models_in(session),
        "traces": traces,
        "session_row": dict(about),
    }
    return Imported(
        name,
        session,
        first.format,
        turns[0].source,
        _or(first_asked(session), first.input),
        _or(last_answer(session), (others or [first])[-1].output),
        {key: value for key, value in recorded.items() if value not in (None, "", [], {})},
        dict(passed_over),
        is_named=True,
    )


def without_traces(name: str, about: Mapping[str, Any], form: str, source: str) -> Imported:
    """A session in which nothing took place: the log names it all the same."""
    recorded = {"session_id": name, **({"session_row": dict(about)} if about else {})}
    return Imported(name, Session(), form, source, recorded=recorded, is_named=True)


def _moment(turn: Imported, name: str) -> datetime | None:
    return moment(turn.recorded.get(name))


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


class _Conversation:
    """Events of one trace after the other, without the messages and calls that a turn repeats."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._told: defaultdict[str, list[int]] = defaultdict(list)
        self._called: dict[tuple[str, str], int] = {}

    def add(
        self, turn: Session, observations: Sequence[Mapping[str, Any]]
    ) -> tuple[list[int], list[dict[str, Any]]]:
        """Take the events of a trace; where those stand that it repeats, and its observations."""
        events = list(turn)
        known = self._repeated_in(events)
        own = {one["event"] for one in observations}
        stands = known | self._called_before(events, known, own)
        places: list[int] = []
        for place, event in enumerate(events):
            places.append(stands.get(place, len(self.events)))
            if place in stands:
                continue
            if isinstance(event, Message):
                self._told[repr(event)].append(len(self.events))
            elif isinstance(event, ToolCall):
                self._called[which(event)] = len(self.events)
            self.events.append(event)
        moved = []
        for one in observations:
            entry = {**_moved(one, places), "event": places[one["event"]]}
            event = self.events[entry["event"]]
            if isinstance(event, CustomEvent):
                found = _moved(event.data["found"], places)
                self.events[entry["event"]] = CustomEvent(event.kind, {"found": found})
            moved.append(entry)
        return list(known.values()), moved

    def _called_before(
        self, events: Sequence[Event], known: Mapping[int, int], own: Collection[int]
    ) -> dict[int, int]:
        """The calls that messages of other turns ask for, and where those stand that took place.

        A trace in which nobody tells of them but the history that the model was given makes them
        up from it; what a span of its own tells of, took place in this turn.
        """
        said = [event for place, event in enumerate(events) if place in known]
        asked = Counter(which(c) for e in said if isinstance(e, Message) for c in e.tool_calls)
        found: dict[int, int] = {}
        for place, event in enumerate(events):
            call = call_in(event)
            if call is None or place in own or not asked[which(call)]:
                continue
            if which(call) in self._called:
                asked[which(call)] -= 1
                found[place] = self._called[which(call)]
        return found

    def _repeated_in(self, events: Sequence[Event]) -> dict[int, int]:
        """The messages that stood in a conversation already, and where.

        All before the user's last words may be what was said in other turns: if it begins with
        something of those, whatever stands there in the same order is.
        """
        said = [(place, e) for place, e in enumerate(events) if isinstance(e, Message)]
        last = max((number for number, (_, e) in enumerate(said) if e.role == "user"), default=0)
        found: dict[int, int] = {}
        reached = -1
        for place, message in said[:last]:
            told = self._told.get(repr(message), [])
            if message.role == "system":
                found |= {place: told[0]} if told else {}
                continue
            number = bisect_left(told, reached + 1)
            if number < len(told):
                reached = found[place] = told[number]
            elif reached < 0:
                break
        return found


def _moved(entry: Mapping[str, Any], places: Sequence[int]) -> dict[str, Any]:
    """An observation whose model was given messages, which now stand elsewhere."""
    asked = entry.get("asked")
    return {**entry, **({"asked": [places[place] for place in asked]} if asked else {})}
