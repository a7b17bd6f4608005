"""Tools that a model asked for, and what is known of how they answered."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence

from proctor.records.session import Message, ToolCall


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
