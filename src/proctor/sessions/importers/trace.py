"""How a trace becomes a session: its steps in the order they began, and every call once."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.core.names import NamesApart
from proctor.records.session import CustomEvent, Event, Message, ModelCall, Session, ToolCall
from proctor.sessions.genai.spans import Reading
from proctor.sessions.genai.transcript import Transcript
from proctor.sessions.importers.chronicle import unanswered
from proctor.sessions.importers.shapes import named, odd_parts, plain


class _Waiting:
    """Numbers that wait under several keys each, in order; each is given once."""

    def __init__(self) -> None:
        self._numbers: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        self._given: set[int] = set()

    def put(self, number: int, *keys: Hashable) -> None:
        for key in keys:
            self._numbers[key].append(number)

    def take(self, *keys: Hashable) -> int | None:
        """The first that waits under a key, looked for under one key after the other."""
        for key in keys:
            numbers = self._numbers.get(key, ())
            while numbers:
                number = numbers.popleft()
                if number not in self._given:
                    self._given.add(number)
                    return number
        return None


class ToolSpans:
    """Finds, for each tool that was asked for, the span that tells of it; a span is found once.

    `asked` are all that are asked for anywhere: what a model is told of earlier turns must not take
    the span, by its name alone, of the call that it belongs to.

    >>> call = ToolCall("weather", call_id="c1")
    >>> spans = ToolSpans([(7, ToolCall("weather", call_id="c1"))], [call])
    >>> spans.of(call), spans.of(call)
    (7, None)
    """

    def __init__(self, told: Iterable[tuple[int, ToolCall]], asked: Iterable[ToolCall]) -> None:
        self._waiting = _Waiting()
        self._found: dict[Hashable, int] = {}
        for number, call in told:
            given = _given(call)
            self._waiting.put(number, ("any", *given), ("any", call.name))
            if call.call_id is None:
                self._waiting.put(number, ("bare", *given), ("bare", call.name))
            else:
                self._waiting.put(number, ("id", call.call_id))
        for call in asked:
            key = call.call_id, *_given(call)
            if key not in self._found and (place := self._exactly(call)) is not None:
                self._found[key] = place

    def of(self, call: ToolCall) -> int | None:
        """By its id; else by what it was given, and else by its name alone."""
        if (number := self._found.pop((call.call_id, *_given(call)), None)) is not None:
            return number
        number = self._exactly(call)
        which = "any" if call.call_id is None else "bare"
        return self._waiting.take((which, call.name)) if number is None else number

    def _exactly(self, call: ToolCall) -> int | None:
        if call.call_id is None:
            return self._waiting.take(("any", *_given(call)))
        return self._waiting.take(("id", call.call_id), ("bare", *_given(call)))


class ToolAnswers:
    """Finds, for each answer that a model was given, the call that it is for.

    Ids are used again, by one model in its next turn and by several at the same time: an answer
    goes to the call that stands before it in its own conversation.

    >>> answers = ToolAnswers()
    >>> answers.expect(3, ToolCall("weather", call_id="c1"))
    >>> answers.place_for(Message("tool", "Sunny", call_id="c1"), None)
    3
    """

    def __init__(self) -> None:
        self._waiting = _Waiting()
        self._asked: Counter[str] = Counter()

    def expect(self, place: int, call: ToolCall) -> None:
        """A call waits for its answer; its place is a number of its own."""
        self._waiting.put(place, (call.call_id, *_given(call)), ("name", call.name))
        if call.call_id is None:
            self._waiting.put(place, ("bare",))
        else:
            self._asked[call.call_id] += 1
            self._waiting.put(place, ("id", call.call_id))

    def place_for(self, answer: Message, asked: ToolCall | None) -> int | None:
        """The place of the call; `asked` is the call before it in the same conversation."""
        keys: list[Hashable] = []
        if asked is not None:
            keys.append((asked.call_id, *_given(asked)))
        if answer.call_id is None:
            keys.append(("bare",) if answer.name is None else ("name", answer.name))
        elif asked is None or self._asked[answer.call_id] == 1:
            keys.append(("id", answer.call_id))
        return self._waiting.take(*keys)


def calls_before(asked: Sequence[Message]) -> list[ToolCall | None]:
    """For each message of a conversation that is a tool's answer, the call that it answers.

    >>> call = ToolCall("weather", call_id="c1")
    >>> calls_before([Message("assistant", "", None, (call,)), Message("tool", "!", call_id="c1")])
    [None, ToolCall(name='weather', call_id='c1')]
    """
    by_id: dict[str, deque[ToolCall]] = {}
    # Under None all of them: an answer may have neither an id nor a name.
    by_name: defaultdict[str | None, deque[ToolCall]] = defaultdict(deque)
    answered: set[int] = set()
    found: list[ToolCall | None] = []
    for message in asked:
        call = None
        if message.role == "tool" and message.call_id is not None:
            waiting = by_id.get(message.call_id)
            call = waiting.popleft() if waiting else None
        elif message.role == "tool":
            call = _first_open(by_name[message.name], answered)
        if call is not None:
            answered.add(id(call))
        found.append(call)
        # Where a later message uses an id again, the answers are its own.
        by_id |= {call.call_id: deque() for call in message.tool_calls if call.call_id is not None}
        for call in message.tool_calls:
            by_name[call.name].append(call)
            by_name[None].append(call)
            if call.call_id is not None:
                by_id[call.call_id].append(call)
    return found


def _first_open(calls: deque[ToolCall], answered: set[int]) -> ToolCall | None:
    while calls:
        call = calls.popleft()
        if id(call) not in answered:
            return call
    return None


def _given(call: ToolCall) -> tuple[str, str]:
    return call.name, repr(sorted(call.arguments.items()))


THINKING = "thinking"
# What the record calls things of a span.
_OURS = frozenset(
    (
        *("id", "parent", "name", "began", "ended", "attributes", "body", "events", "scope", "odd"),
        *("at", "observed", "asked", "event"),
    )
)


class Step(NamedTuple):
    """One span: `reading` is what it tells of a model or a tool, `label` what it is called else.

    `id` is a number where it has none of its own, which nobody can have as a parent.
    `is_plain` if what was said is known as a text only, which messages of a span around it beat.
    `moment` is set if it may be a moment of a call: see `steps`.
    """

    id: str | int
    parent: str | None
    began: float | None
    label: str
    reading: Reading | None = None
    is_plain: bool = False
    moment: str = ""


class Assembled(NamedTuple):
    """The events of a session, and what each step has to do with them.

    `places` are those of the steps' own events: a step that is no call of its own stands there as a
    `CustomEvent` without data. `own` are the events that a step tells of, and `asked` the places of
    the messages that a model was given, as far as they stand there word for word.
    """

    events: list[Event]
    places: list[int]
    own: list[list[Event]]
    asked: list[list[int]]


def assemble(steps: Sequence[Step]) -> Assembled:
    """Put steps into one session.

    A framework's span around a client's tells of the same call: the inner one is the call, and the
    messages and the usage are those of whichever has them. What every call repeats is told once. A
    tool that was asked for, and of which no span tells, is a call too, with the answer that the
    model was given.
    """
    depths = _depths(steps)
    order = _in_order(steps, depths)
    telling = _Telling(steps, _Nests(steps, depths), order)
    for number in order:
        telling.tell(number)
    telling.finish()
    numbers = range(len(steps))
    return Assembled(
        telling.events,
        [telling.places[number] for number in numbers],
        [telling.own(number) for number in numbers],
        [telling.asked(number) for number in numbers],
    )


class _Telling:
    def __init__(self, steps: Sequence[Step], nests: _Nests, order: Sequence[int]) -> None:
        self._steps = steps
        self._nests = nests
        self._transcript = Transcript()
        self._said: dict[str, int] = {}
        self._thought: set[str] = set()
        readings = [step.reading for step in steps if step.reading is not None]
        said = (message for it in readings for message in (*it.asked, *it.said))
        asked = (call for message in said for call in message.tool_calls)
        self._spans = ToolSpans(
            [
                (number, reading.call)
                for number in order
                if (reading := steps[number].reading) is not None
                and isinstance(reading.call, ToolCall)
                and nests.is_call(number)
            ],
            asked,
        )
        self._answers = ToolAnswers()
        self._open: dict[int, ToolCall] = {}
        self._ids: dict[int, str] = {}
        self._order = order
        self.events: list[Event] = []
        self.places: dict[int, int] = {}

    def tell(self, number: int) -> None:
        """Put what a step tells at the end."""
        step = self._steps[number]
        reading = step.reading
        has_messages = reading is not None and self._nests.has_messages(number)
        if reading is not None and has_messages:
            self._tell_messages(reading)
        self.places[number] = len(self.events)
        if reading is not None and self._nests.is_call(number):
            self.events.append(self._nests.call(number, reading.call))
        else:
            self.events.append(CustomEvent(step.label, None))
        if reading is not None and has_messages:
            there = _run_there(reading)
            calls = (call for message in reading.said for call in message.tool_calls)
            self._ask([call for call in calls if id(call) not in there])

    def _tell_messages(self, reading: Reading) -> None:
        new = self._transcript.add(reading.asked, reading.said)
        answered = self._calls_before(reading)
        for message in new[: len(new) - len(reading.said)]:
            self._say(message)
            self._ask(message.tool_calls)
            self._answer(message, answered)
        for thought in reading.thoughts:
            if (key := repr(thought)) not in self._thought:
                self._thought.add(key)
                self.events.append(CustomEvent(THINKING, thought))
        there, before = _run_there(reading), calls_before(reading.said)
        for message, call in zip(reading.said, before, strict=True):
            self._say(message)
            self._ask([call for call in message.tool_calls if id(call) in there])
            self._answer(message, {id(message): call})

    def _say(self, message: Message) -> None:
        self._said[repr(message)] = len(self.events)
        self.events.append(message)

    def _ask(self, calls: Sequence[ToolCall]) -> None:
        """Calls of which no span tells wait for their answers, and say so until those come."""
        for call in calls:
            number = self._spans.of(call)
            if number is None:
                self._open[len(self.events)] = call
                self._answers.expect(len(self.events), call)
                self.events.append(unanswered(call))
                continue
            self._answers.expect(-1 - number, call)
            if call.call_id is not None:
                self._ids[number] = call.call_id

    @staticmethod
    def _calls_before(reading: Reading) -> dict[int, ToolCall | None]:
        before = calls_before(reading.asked)
        return {id(message): call for message, call in zip(reading.asked, before, strict=True)}

    def _answer(self, message: Message, answered: Mapping[int, ToolCall | None]) -> None:
        if message.role != "tool":
            return
        place = self._answers.place_for(message, answered[id(message)])
        call = None if place is None else self._open.pop(place, None)
        if place is not None and call is not None:
            self.events[place] = msgspec.structs.replace(call, result=message.content)

    def finish(self) -> None:
        """What only spans know that are not told: answers of tools, and the ids of calls."""
        seen: set[str] = set()
        for number in self._order if self._open else ():
            reading = self._steps[number].reading
            results = [] if reading is None else [m for m in reading.asked if m.role == "tool"]
            answered = self._calls_before(reading) if reading is not None and results else {}
            for message in results:
                if (key := repr(message)) not in self._said and key not in seen:
                    seen.add(key)
                    self._answer(message, answered)
        for number, call_id in self._ids.items():
            place = self.places[number]
            call = self.events[place]
            if isinstance(call, ToolCall) and call.call_id is None:
                self.events[place] = msgspec.structs.replace(call, call_id=call_id)

    def own(self, number: int) -> list[Event]:
        """What stands in the session of what a step tells, word for word."""
        reading = self._steps[number].reading
        if reading is None:
            return []
        asked, said = ([m for m in told if repr(m) in self._said] for told in (reading.asked, reading.said))
        thoughts = [CustomEvent(THINKING, t) for t in reading.thoughts if repr(t) in self._thought]
        call = [reading.call] if self._nests.is_call(number) else []
        return [*asked, *thoughts, *said, *call]

    def asked(self, number: int) -> list[int]:
        """Where the messages stand that a model was given."""
        reading = self._steps[number].reading
        keys = [] if reading is None else map(repr, reading.asked)
        return [self._said[key] for key in keys if key in self._said]


class _Nests:
    """Which of the spans that stand in each other tell of one and the same call."""

    def __init__(self, steps: Sequence[Step], depths: Sequence[int]) -> None:
        self._steps = steps
        self._best_inside: dict[int, int] = {}
        self._best_outside: dict[int, int] = {}
        outer = {
            number: around
            for number, around in _around(steps, depths).items()
            if _is_same_call(steps[around].reading, steps[number].reading)
        }
        for inner, around in outer.items():
            told = max(_telling(steps[around]), self._best_outside.get(around, 0))
            self._best_outside[inner] = told
        for inner, around in reversed(outer.items()):
            told = max(_telling(steps[inner]), self._best_inside.get(inner, 0))
            self._best_inside[around] = max(self._best_inside.get(around, 0), told)
        self._used_around = _used_around(steps, outer, depths)

    def is_call(self, number: int) -> bool:
        """True if no span inside tells of the same call."""
        return number not in self._best_inside

    def call(self, number: int, call: ModelCall | ToolCall) -> ModelCall | ToolCall:
        """The call with what only spans around it tell of what it used."""
        more = self._used_around.get(number)
        if more is None or not isinstance(call, ModelCall):
            return call
        return msgspec.structs.replace(call, usage=msgspec.structs.replace(call.usage, **more))

    def has_messages(self, number: int) -> bool:
        """True if the messages of the call are taken from here."""
        told = _telling(self._steps[number])
        better_outside = self._best_outside.get(number, 0) > told
        return told > self._best_inside.get(number, 0) and not better_outside


def _used_around(
    steps: Sequence[Step], outer: Mapping[int, int], depths: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """What the spans around calls tell of their usage, where no call inside tells it.

    The nearest span that tells it is believed. Where several calls stand in it, nobody knows which
    of them used how much: all of it is noted with the last one.
    """
    known: dict[int, dict[str, Any]] = {}
    innermost: dict[int, int] = {}
    found: dict[int, dict[str, Any]] = {}
    for number in sorted({*outer, *outer.values()}, key=depths.__getitem__, reverse=True):
        inside, call = known.pop(number, {}), innermost.pop(number, number)
        own = {name: it for name, it in _used(steps[number]).items() if name not in inside}
        if call != number and own:
            found.setdefault(call, {}).update(own)
        around = outer.get(number)
        if around is not None:
            known.setdefault(around, {}).update(inside | own)
            innermost[around] = max(call, innermost.get(around, call))
    return found


def _used(step: Step) -> dict[str, Any]:
    call = None if step.reading is None else step.reading.call
    if not isinstance(call, ModelCall):
        return {}
    used = msgspec.structs.asdict(call.usage)
    return {name: it for name, it in used.items() if it is not None}


def _telling(step: Step) -> int:
    """How much a step tells of what was said: nothing, a text, or messages."""
    if step.reading is None or not (step.reading.asked or step.reading.said):
        return 0
    return 1 if step.is_plain else 2


def _around(steps: Sequence[Step], depths: Sequence[int]) -> dict[int, int]:
    """For each span that tells of a call the next around it that does, the outer ones first."""
    known: dict[str | int, int] = {step.id: n for n, step in reversed(list(enumerate(steps)))}
    nearest: dict[int, int] = {}
    for number in sorted(range(len(steps)), key=depths.__getitem__):
        parent = known.get(steps[number].parent or "")
        if parent is not None and depths[parent] < depths[number]:
            around = nearest.get(parent) if steps[parent].reading is None else parent
            if around is not None:
                nearest[number] = around
    return {number: around for number, around in nearest.items() if steps[number].reading}


def _run_there(reading: Reading) -> set[int]:
    """Which calls a provider ran itself: what came of them stands in the same answer."""
    return {id(call) for call in calls_before(reading.said) if call is not None}


def _is_same_call(outer: Reading | None, inner: Reading | None) -> bool:
    """A model that is asked inside a tool answers another question than the one that called it."""
    if outer is None or inner is None or outer.kind != inner.kind:
        return False
    if not isinstance(outer.call, ToolCall):
        return True
    return isinstance(inner.call, ToolCall) and outer.call.name == inner.call.name


def _in_order(steps: Sequence[Step], depths: Sequence[int]) -> list[int]:
    """By time; of those that began together the outer ones first."""
    never = float("inf")

    def rank(number: int) -> tuple[float, int, int]:
        began = steps[number].began
        return never if began is None else began, depths[number], number

    return sorted(range(len(steps)), key=rank)


def _depths(steps: Sequence[Step]) -> list[int]:
    parents: dict[str | int, str | None] = {step.id: step.parent for step in reversed(steps)}
    found: dict[str | int | None, int] = {None: -1}
    for step in steps:
        path: list[str | int] = []
        place: str | int | None = step.id
        while place not in found and place in parents:
            assert place is not None
            path.append(place)
            found[place] = 0  # so that a circle ends
            place = parents[place]
        depth = found.get(place, -1)
        for inner in reversed(path):
            depth += 1
            found[inner] = depth
    return [found[step.id] for step in steps]


def with_theirs(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """What we know of a span beside its own fields; one of theirs that has a name of ours says so.

    >>> with_theirs({"id": "s1"}, {"id": 7, "flags": 1})
    {'id': 's1', 'their id': 7, 'flags': 1}
    """
    told = {**ours, **theirs_beside(_OURS, theirs)}
    return {name: it for name, it in told.items() if it not in (None, {}, [], "")}


def theirs_beside(ours: Collection[str], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a log by names that are not ours; none takes the place of another.

    >>> theirs_beside(["id"], {"id": 7, "their id": 8})
    {'their id 2': 7, 'their id': 8}
    """
    apart = NamesApart(" ")
    for name in theirs:
        if name not in ours:
            apart.of(name)
    return {apart.of(f"their {name}") if name in ours else name: it for name, it in theirs.items()}


def first_asked(session: Session) -> Any:
    """What the user said first, or None."""
    said = (e.content for e in session if isinstance(e, Message) and e.role == "user")
    return next((_text_of(words, "user") for words in said if words), None)


def _text_of(content: Any, role: str) -> Any:
    """The text of the parts of a message; any other content as it is."""
    is_parts = isinstance(content, list) and all(
        isinstance(part, str) or (isinstance(part, dict) and ("type" in part or len(part) == 1))
        for part in content
    )
    return (plain(content, role) or content) if is_parts else content


def last_answer(session: Session) -> Any:
    """What the assistant said last, or None."""
    said = [e.content for e in session if isinstance(e, Message) and e.role == "assistant"]
    return next((_text_of(words, "assistant") for words in reversed(said) if words), None)


def odd_parts_in(session: Session) -> dict[str, int]:
    """How many parts of messages are of no kind that is known, by what they call themselves."""
    said = (event.content for event in session if isinstance(event, Message))
    return Counter(f"part: {named(part)}" for content in said for part in odd_parts(content))


def models_in(session: Session) -> dict[str, Any]:
    """The models that were asked: `model`, and `models` where there are several."""
    asked = list(dict.fromkeys(call.model for call in session[ModelCall]))
    if not asked:
        return {}
    return {"model": asked[0], **({"models": asked} if len(asked) > 1 else {})}
