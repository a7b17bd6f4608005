"""Langfuse: traces as its pages, its API and its exports give them.

One trace is one session: its generations and tools are calls, its other observations are kept. A
session that is given with its traces is one, and they are its turns.
Rows of a trace may stand anywhere in a file, so it is read to its end before the first session is
given. Scores are recorded by name; one that has several values keeps the last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from proctor.records.session import CustomEvent, Event, Message, Role, Session, ToolCall
from proctor.records.telling import call_in, which
from proctor.sessions.genai.bodies import asked_in, said_in
from proctor.sessions.genai.spans import Reading
from proctor.sessions.genai.turns import Turns
from proctor.sessions.genai.values import decoded, is_known
from proctor.sessions.importers.langfuse_rows import (
    TYPES,
    Rows,
    attributes_of,
    is_blank,
    looks_like_rows,
    sort,
    told_by,
    took,
)
from proctor.sessions.importers.otlp_wire import as_it_was
from proctor.sessions.importers.shapes import Imported, amount, found_in, mapping, moment, stem, text, without
from proctor.sessions.importers.trace import (
    Step,
    assemble,
    first_asked,
    last_answer,
    models_in,
    odd_parts_in,
    theirs_beside,
)
from proctor.sessions.importers.trace_steps import Held, fold_moments, moment_in, with_instructions

# Names under which programs log the one text that was asked, and the one that was answered.
_WORDS: Mapping[Role, frozenset[str]] = {
    "user": frozenset(
        (
            *("question", "query", "q", "input", "prompt", "message", "text", "content"),
            *("user_input", "user_message", "user_query"),
        )
    ),
    "assistant": frozenset(
        (
            *("answer", "output", "result", "response", "text", "content", "message", "reply"),
            *("completion", "final_answer"),
        )
    ),
}
_ARGUMENTS = frozenset(("args", "kwargs"))


class Ends(NamedTuple):
    """The messages before and after all else; `said` are those that were written as messages."""

    before: list[Event]
    after: list[Event]
    said: list[Event]


def ends_of(given: Any, answer: Any, events: Iterable[Event]) -> Ends:
    """What was asked and answered, as far as nobody says it in the events.

    What is neither a message nor a text is told as the data that it is.

    >>> ends_of({"question": "Where?"}, {"answer": "There.", "sources": 2}, []).before
    [Message(role='user', content='Where?')]
    >>> ends_of({"question": "Where?"}, {"answer": "There.", "sources": 2}, []).after
    [Message(role='assistant', content={'answer': 'There.', 'sources': 2})]
    """
    roles = {event.role for event in events if isinstance(event, Message)}
    given, answer = _arguments(opened(given)), opened(answer)
    asked, said = asked_in(given), said_in(answer)
    before, after = _told(asked, given, "user", roles), _told(said, answer, "assistant", roles)
    if before and after[: len(before)] == before:
        # A graph gives back the whole conversation.
        after = after[len(before) :]
    written = [*(before if asked else ()), *(after if said else ())]
    return Ends([*before], [*after], [*written])


def opened(given: Any) -> Any:
    """What a trace was given, or None: Langfuse's pages write JSON in JSON."""
    found = decoded(decoded(given))
    return None if is_blank(found) else found


def first_told(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    """What the first row that tells something has under a name, or None."""
    told = (row.get(name) for row in rows)
    return next((value for value in told if opened(value) is not None), None)


def _told(turns: Turns | None, value: Any, role: Role, roles: set[Role]) -> list[Message]:
    if role in roles:
        return []
    messages = [] if turns is None else turns.messages
    if roles:
        # The rest of the conversation is told already.
        messages = [message for message in messages if message.role == role]
    if messages or turns is not None or value is None:
        return messages
    return [Message(role, _words(value, role))]


def _words(value: Any, role: Role) -> Any:
    """The one text that a mapping holds under a name for it, else all of the value."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, words),) = value.items()
        if name in _WORDS[role] and isinstance(words, str) and words:
            return words
    return value


def _arguments(given: Any) -> Any:
    """What a function was called with, as decorators log it: by place, by name, or both."""
    if not isinstance(given, dict) or not given or given.keys() - _ARGUMENTS:
        return given
    told = [value for value in given.values() if not is_blank(value)]
    if len(told) != 1:
        return given if told else None
    (only,) = told
    return only[0] if isinstance(only, list) and len(only) == 1 else only


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


NAME = "langfuse"

_OBSERVATION = frozenset(
    (
        *("id", "traceId", "parentObservationId", "type", "name", "level", "statusMessage"),
        *("startTime", "endTime", "completionStartTime", "createdAt", "updatedAt", "latency"),
        *("input", "output", "metadata", "model", "modelId", "modelParameters", "environment"),
        *("usage", "usageDetails", "costDetails", "providedCostDetails", "providedUsageDetails"),
        *("inputCost", "outputCost", "totalCost", "inputUsage", "outputUsage", "totalUsage"),
        *("calculatedInputCost", "calculatedOutputCost", "calculatedTotalCost", "unit"),
        *("promptTokens", "completionTokens", "totalTokens", "inputPrice", "outputPrice"),
        *("totalPrice", "timeToFirstToken", "promptId", "promptName", "promptVersion", "version"),
        *("internalModel", "internalModelId", "projectId", "usagePricingTierId", "also"),
        *("usagePricingTierName", "toolDefinitions", "toolCalls", "toolCallNames", "bookmarked"),
    )
)
_AROUND = ("SPAN", "AGENT", "CHAIN")


def looks_like(values: Sequence[Any]) -> bool:
    """True for a trace with its observations, and for rows of either."""
    return any(map(looks_like_rows, values))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The sessions of a file, one for each trace, in the order in which they are first named.

    The traces that are given in a session are one together.
    What belongs to no trace is kept with the first session, and counted there.
    """
    strays: list[tuple[str, Any]] = []
    lines: list[int] = []

    def noticed() -> Iterator[tuple[int, Any]]:
        for line, value in values:
            lines.append(line)
            yield line, value

    traces, sessions, empty = sort(noticed(), strays)
    together: dict[tuple[str, str], list[Rows]] = {}
    for rows in traces.values():
        key = ("trace", rows.id) if rows.session is None else ("session", rows.session)
        together.setdefault(key, []).append(rows)
    for (kind, name), group in together.items():
        found = []
        for rows in group:
            place = f"{source}:{rows.line}" if len(lines) > 1 else source
            found.append(_Telling(rows).imported(place, strays))
            strays = []
        yield found[0] if kind == "trace" else joined(name, sessions[name], found)
    for name, line in empty.items():
        if ("session", name) not in together:
            place = f"{source}:{line}" if len(lines) > 1 else source
            yield without_traces(name, sessions[name], NAME, place)
    if strays:
        counted = Counter(kind for kind, _ in strays)
        events: list[Event] = [found_in(kind, as_it_was(value)) for kind, value in strays]
        yield Imported(stem(source), Session(events), NAME, source, passed_over=dict(counted))


class _Telling:
    """One trace on its way to be a session."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._passed_over: Counter[str] = Counter()

    def imported(self, source: str, strays: Iterable[tuple[str, Any]]) -> Imported:
        """The session, with everything that was recorded beside it."""
        rows = list(self._rows.observations.items())
        steps = fold_moments([_step(name, row) for name, row in rows])
        steps = with_instructions(steps, (attributes_of(row) for _, row in rows))
        parts, places, own, asked = assemble(steps)
        ends = self._ends(steps, parts)
        before = len(ends.before)
        events = [*ends.before, *parts, *ends.after]
        observations: list[dict[str, Any]] = []
        for number, ((_, row), step) in enumerate(zip(rows, steps, strict=True)):
            place = before + places[number]
            entry = self._entry(row, step.reading, Held(own[number]))
            if asked[number]:
                entry["asked"] = [before + given for given in asked[number]]
            if isinstance(events[place], CustomEvent):
                events[place] = found_in(step.label, entry)
                if step.reading is None and _type(row) not in TYPES:
                    self._passed_over[step.label] += 1
                entry = {key: row[key] for key in ("id", "name") if key in row}
            observations.append({**entry, "event": place})
        for kind, value in (*strays, *(("odd row", odd) for odd in self._rows.odd)):
            events.append(found_in(kind, as_it_was(value)))
            self._passed_over[kind] += 1
        self._passed_over.update(odd_parts_in(Session([*parts, *ends.said])))
        held = Held([*ends.before, *ends.after])
        return self._sum_up(source, Session(events), observations, held)

    def _ends(self, steps: Sequence[Step], parts: Sequence[Event]) -> Ends:
        """What the whole was asked and said, where none of its parts tells of it.

        Where no row tells of the whole, the outermost observations do.
        """
        rows = self._rows.observations
        outer = [
            rows[step.id]
            for step in sorted(steps, key=lambda step: step.began or 0)
            if step.parent not in rows and _may_be_whole(rows[step.id], step.reading)
        ]
        trace = self._rows.trace
        return ends_of(
            first_told([trace, *outer], "input"), first_told([trace, *reversed(outer)], "output"), parts
        )

    def _entry(self, row: Mapping[str, Any], reading: Reading | None, held: Held) -> dict[str, Any]:
        """Everything about an observation but what was read from it and stands in the session."""
        sources = () if reading is None else reading.sources
        for name in row.keys() - _OBSERVATION:
            self._passed_over[f"field: {str(name)[:60]}"] += 1
        attributes = attributes_of(row)
        for name in attributes:
            if not is_known(name):
                self._passed_over[f"attribute: {name[:80]}"] += 1
        left = {
            name: value
            for name, value in row.items()
            if not is_blank(value) and not (name in sources and held.takes(value))
        }
        entry = theirs_beside(("asked", "event"), left)
        if attributes:
            about = mapping(decoded(row.get("metadata")))
            entry["metadata"] = {**about, "attributes": held.lean(attributes, sources)}
        return entry

    def _sum_up(
        self, source: str, session: Session, observations: list[dict[str, Any]], held: Held
    ) -> Imported:
        trace = self._rows.trace
        given, answer = opened(trace.get("input")), opened(trace.get("output"))
        rows = [trace, *self._rows.observations.values()]
        times = [row.get(name) for row in rows for name in ("timestamp", "startTime", "endTime")]
        known = sorted(filter(None, map(moment, times)))
        kept = {
            name: value
            for name, value in trace.items()
            if not is_blank(value) and not (name in ("input", "output") and held.takes(value))
        }
        scores = list(self._rows.scores.values())
        recorded: dict[str, Any] = {
            "title": trace.get("name"),
            "tags": trace.get("tags"),
            "user_id": trace.get("userId"),
            "session_id": trace.get("sessionId"),
            "started_at": known[0].isoformat() if known else None,
            "ended_at": known[-1].isoformat() if known else None,
            "latency_ms": took(trace),
            "cost": amount(trace.get("totalCost")),
            **models_in(session),
            "scores": {str(row.get("name")): _value(row) for row in scores},
            "score_rows": scores,
            "trace": without(kept, "id", "name", "tags", "userId", "sessionId"),
            "observations": observations,
        }
        asked, last = first_asked(session), last_answer(session)
        return Imported(
            self._rows.id,
            session,
            NAME,
            source,
            given if asked is None and asked_in(given) is None else asked,
            answer if last is None and said_in(answer) is None else last,
            {name: value for name, value in recorded.items() if not is_blank(value)},
            dict(self._passed_over),
            is_named=True,
        )


def _step(name: str | int, row: Mapping[str, Any]) -> Step:
    told = told_by(row)
    began = moment(row.get("startTime"))
    return Step(
        name,
        text(row.get("parentObservationId")),
        None if began is None else began.timestamp(),
        f"observation: {_type(row).lower()[:60]}",
        told.reading,
        told.is_plain,
        moment_in(text(row.get("name")) or "", attributes_of(row)),
    )


def _type(row: Mapping[str, Any]) -> str:
    return str(row.get("type")).upper()


def _may_be_whole(row: Mapping[str, Any], reading: Reading | None) -> bool:
    """What a tool was given, or an embedding, nobody said."""
    return _type(row) in _AROUND if reading is None else reading.kind == "model"


def _value(score: Mapping[str, Any]) -> Any:
    """A number, or the word of a category."""
    value, word = score.get("value"), score.get("stringValue")
    return word if word and (value is None or score.get("dataType") == "CATEGORICAL") else value
