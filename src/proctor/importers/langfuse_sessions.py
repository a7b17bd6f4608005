"""A session of Langfuse, given with its traces: the turns of one conversation, told as one."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from proctor.importers.imported import Imported
from proctor.importers.shapes import moment, without
from proctor.importers.trace import first_asked, last_answer, models_in
from proctor.records.session import CustomEvent, Event, Message, Session

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


def _moment(turn: Imported, name: str) -> datetime | None:
    return moment(turn.recorded.get(name))


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


class _Conversation:
    """Events of one trace after the other, without the messages that a turn repeats."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._told: defaultdict[str, list[int]] = defaultdict(list)

    def add(
        self, turn: Session, observations: Sequence[Mapping[str, Any]]
    ) -> tuple[list[int], list[dict[str, Any]]]:
        """Take the events of a trace; where those stand that it repeats, and its observations."""
        events = list(turn)
        known = self._repeated_in(events)
        places: list[int] = []
        for place, event in enumerate(events):
            places.append(known.get(place, len(self.events)))
            if place in known:
                continue
            if isinstance(event, Message):
                self._told[repr(event)].append(len(self.events))
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
