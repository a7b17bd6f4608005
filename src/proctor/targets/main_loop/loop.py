"""The main loop: ask a model, run the tools it calls, until it answers."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar, cast, get_args, get_origin

import msgspec

from proctor.core import bridge, lifetimes
from proctor.core.clock import Clock, SystemClock
from proctor.errors import LoopStopped, StopRun, TargetError
from proctor.models.answer_forms import JsonForm
from proctor.models.asking import AskOptions, aask, conditions
from proctor.models.connect import provider
from proctor.models.prompts import Prompt
from proctor.models.spending import Spending
from proctor.records import codec
from proctor.records.model import ModelResponse
from proctor.records.run import Budget
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.sessions import current as sessions
from proctor.targets.main_loop.bus import EventBus, LoopEnded, ModelAnswered, PromptRendered, ToolInvoked
from proctor.targets.main_loop.tools import Tool, Toolbox


class Allowance(Spending):
    """The budget of one execution; what it uses counts against the run's budget as well.

    Unlike that of a run, a budget that is spent ends only the execution.

    >>> allowance = Allowance(Budget(calls=1), None)
    >>> allowance.begin()
    >>> allowance.begin()
    Traceback (most recent call last):
        ...
    proctor.errors.LoopStopped: the budget is spent: 1 of 1 calls
    """

    def __init__(self, budget: Budget | Mapping[str, Any], around: Spending | None) -> None:
        super().__init__(budget)
        self._around = around

    def begin(self) -> None:
        """Take leave for one call, of the execution and of the run."""
        try:
            super().begin()
        except StopRun as spent:
            raise LoopStopped(spent.what, limit="budget") from None
        if self._around is not None:
            self._around.begin()

    def take_back(self) -> None:
        """Give the leave for a call back."""
        super().take_back()
        if self._around is not None:
            self._around.take_back()

    def end(self, model: str, usage: Usage) -> None:
        """Note what a call used."""
        if self._around is not None:
            self._around.end(model, usage)
        try:
            super().end(model, usage)
        except StopRun as unknown:
            raise LoopStopped(f"{unknown.what}; {unknown.fix}", limit="budget") from None


def seconds_until(deadline: datetime | float | None, clock: Clock) -> float | None:
    """How long an execution may take: up to a point in time, or so many seconds from now.

    >>> from proctor.core.clock import SystemClock
    >>> seconds_until(2.5, SystemClock())
    2.5
    """
    if deadline is None:
        return None
    if isinstance(deadline, datetime):
        if deadline.tzinfo is None:
            raise TargetError(
                "the deadline does not say in which time zone it is",
                fix="give an aware time, such as datetime.now(UTC) + timedelta(seconds=30)",
            )
        return (deadline - clock.now()).total_seconds()
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or math.isnan(deadline):
        raise TargetError(f"{deadline!r} is no deadline", fix="give an aware datetime, or seconds from now")
    return float(deadline)


InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

GIVEN_UP = "given up before it had answered"


class Response(msgspec.Struct, Generic[OutputT], frozen=True):
    """What a main loop came to: the output in its type, and the text it was read from.

    `usage` is what all model calls of the execution used, `turns` how often the model answered.

    >>> Response("Paris", "Paris", Usage(12, 1), turns=1).output
    'Paris'
    """

    output: OutputT
    text: str
    usage: Usage = Usage()
    turns: int = 1


class MainLoop(Generic[InputT, OutputT]):
    """An agent: a prompt for each request, a model, and tools that it may call until it answers.

    Write `initialize` in a class of your own; it says what is asked, and in which session it is
    recorded. `adapter` is a model, or its address. The answer is read into the type of the prompt,
    `PromptTemplate[Output]`, or else of the loop, `MainLoop[Input, Output]`; text stays as it is.
    Whoever subscribed to the `bus` is told what happens.

    >>> from proctor.models.prompts import MarkdownSection, PromptTemplate
    >>> section = MarkdownSection("Question", "Answer in one word: $question", key="q")
    >>> class QALoop(MainLoop[str, str]):
    ...     template = PromptTemplate[str]("qa", "answer", [section])
    ...     def initialize(self, request):
    ...         return Prompt(self.template).bind(question=request), Session()
    >>> def model(prompt: str) -> str:
    ...     return "Paris"
    >>> response, session = QALoop(adapter=model).execute("Capital of France?")
    >>> response.output, [message.role for message in session[Message]]
    ('Paris', ['user', 'assistant'])
    """

    def __init__(
        self,
        *,
        adapter: Any,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        bus: EventBus | None = None,
        max_turns: int = 20,
        temperature: float | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        clock: Clock = SystemClock(),  # noqa: B008 - it has no state
    ) -> None:
        if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
            raise TargetError(f"max_turns is a number from 1 on, not {max_turns!r}")
        self.adapter = provider(adapter)
        self.bus = EventBus() if bus is None else bus
        self.max_turns = max_turns
        self._toolbox = Toolbox(tools)
        settings = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
        self._settings = {name: value for name, value in settings.items() if value is not None}
        self._clock = clock

    def initialize(self, request: InputT) -> tuple[Prompt[OutputT], Session]:
        """What is asked for a request, and the session it is recorded in; it may be async."""
        raise NotImplementedError(
            f"{type(self).__name__} has no initialize: it gives the prompt and a session"
        )

    def execute(
        self,
        request: InputT,
        *,
        deadline: datetime | float | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
    ) -> tuple[Response[OutputT], Session]:
        """Run one request to its answer, and wait for it; see `aexecute`."""
        return bridge.run(self.aexecute(request, deadline=deadline, budget=budget))

    async def aexecute(
        self,
        request: InputT,
        *,
        deadline: datetime | float | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
    ) -> tuple[Response[OutputT], Session]:
        """Run one request to its answer.

        `deadline` is an aware time, or seconds from now; `budget` is for this execution alone, all
        that its tools ask of models included. An execution that has used up one of them, or its
        turns, ends with `LoopStopped`.
        """
        seconds = seconds_until(deadline, self._clock)
        with _within(budget), _recorded() as record:
            try:
                async with lifetimes.in_use(), asyncio.timeout(seconds) as limit:
                    _refuse_past(seconds)
                    prompt = await self._begun(request, record)
                    response = await self._converse(prompt, record)
            except BaseException as error:
                if isinstance(error, TimeoutError) and limit.expired():
                    error = LoopStopped("its time is over: the deadline has passed", limit="time")
                self._end(record, error)
                raise error from error.__cause__
            self._end(record, None)
        return response, record.session

    async def _begun(self, request: InputT, record: _Record) -> Prompt[OutputT]:
        begun: Any = self.initialize(request)
        prompt, session = await begun if inspect.isawaitable(begun) else begun
        if not isinstance(prompt, Prompt) or not isinstance(session, Session):
            raise TargetError(
                "initialize gives a Prompt and a Session, "
                f"not {type(prompt).__name__} and {type(session).__name__}",
                where=type(self).__name__,
            )
        record.move_to(session)
        return prompt

    async def _converse(self, prompt: Prompt[OutputT], record: _Record) -> Response[OutputT]:
        """Turn by turn: the model answers, or calls tools and is told what came of it."""
        messages = prompt.messages()
        self.bus.publish(PromptRendered(record.session, messages, prompt.template.id))
        kind = _output_type(prompt, type(self))
        form = None if kind is None else JsonForm(kind)
        known = 0
        while record.turns < self.max_turns:
            asked = {**self._settings, "tools": self._toolbox.specs, "known": known}
            answer = await aask(self.adapter, messages, form, **cast("AskOptions", asked))
            record.turns += 1
            record.pass_on()
            self.bus.publish(ModelAnswered(record.session, answer, record.turns))
            if not answer.tool_calls:
                return self._response(answer, record, form)
            if record.turns >= self.max_turns:
                # Nobody would hear what came of the tools, so they are not run.
                break
            said = Message("assistant", answer.text, tool_calls=answer.tool_calls)
            known = len(messages) + 1
            called = await self._call(answer.tool_calls, record)
            messages = (*messages, said, *map(_result, called))
        raise LoopStopped(
            f"the model still called tools in its last turn, number {self.max_turns}", limit="turns"
        )

    async def _call(self, calls: Sequence[ToolCall], record: _Record) -> list[ToolCall]:
        """Run tools side by side; they are recorded in the order in which they were called."""
        done: dict[int, ToolCall] = {}

        async def one(place: int, call: ToolCall) -> None:
            done[place] = await self._toolbox.answer(call, self._clock)

        tasks = [asyncio.ensure_future(one(place, call)) for place, call in enumerate(calls)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for place, call in enumerate(calls):
                given_up = msgspec.structs.replace(call, error=GIVEN_UP)
                record.session.append(done.get(place, given_up))
                self.bus.publish(ToolInvoked(record.session, done.get(place, given_up), record.turns))
            record.pass_on()
        return [done[place] for place in range(len(calls))]

    def _response(self, answer: ModelResponse, record: _Record, form: JsonForm | None) -> Response[OutputT]:
        text = answer.text if answer.refusal is None else answer.refusal
        output: Any = text if form is None else answer.output
        return Response(output, text, record.usage(), record.turns)

    def _end(self, record: _Record, error: BaseException | None) -> None:
        why = None if error is None else f"{type(error).__name__}: {error}".removesuffix(": ")
        if isinstance(error, LoopStopped):
            error.usage = record.usage()
        self.bus.publish(LoopEnded(record.session, record.turns, record.usage(), why))


class _Record:
    """What an execution leaves behind: in its own session, and in that of the trial around it."""

    def __init__(self, around: Session | None) -> None:
        self.session = Session()
        self.turns = 0
        self._around = around
        self._before = 0
        self._passed_on = 0

    def move_to(self, session: Session) -> None:
        """Go on in the session that `initialize` gave, with what it has recorded on the way."""
        if session is self.session:
            return
        if session is self._around:
            self._around = None
        self._before = self._passed_on = len(session)
        for event in self.session:
            session.append(event)
        self.session = session
        sessions.current.set(session)

    def pass_on(self) -> None:
        """Let the session around have what is new, so that it is not lost if this one is."""
        if self._around is not None:
            for event in self.session.events[self._passed_on :]:
                self._around.append(event)
            self._passed_on = len(self.session)

    def usage(self) -> Usage:
        """What the model calls of this execution used."""
        new = self.session.events[self._before :]
        return sum((event.usage for event in new if isinstance(event, ModelCall)), Usage())


@contextlib.contextmanager
def _recorded() -> Iterator[_Record]:
    record = _Record(sessions.current_session())
    before = sessions.current.set(record.session)
    try:
        yield record
    finally:
        record.pass_on()
        sessions.current.reset(before)


@contextlib.contextmanager
def _within(budget: Budget | Mapping[str, Any] | None) -> Iterator[None]:
    """Whatever is asked inside counts against the budget, and still against the run's."""
    if budget is None:
        yield
        return
    under = conditions.get()
    before = conditions.set(under._replace(spending=Allowance(budget, under.spending)))
    try:
        yield
    finally:
        conditions.reset(before)


def _refuse_past(seconds: float | None) -> None:
    if seconds is not None and seconds <= 0:
        raise LoopStopped("its time was over before it began: the deadline has passed", limit="time")


def _result(call: ToolCall) -> Message:
    """What the model is told of a call; lists go as text, which no provider takes for parts."""
    content = call.result if call.error is None else f"Error: {call.error}"
    if not isinstance(content, str | dict):
        content = codec.encode(content).decode()
    return Message("tool", content, name=call.name, call_id=call.call_id)


def _output_type(prompt: Prompt[Any], kind: type) -> Any:
    """The type of the answer; None for text."""
    found = prompt.output_type
    if found is None:
        bases = [base for each in kind.__mro__ for base in vars(each).get("__orig_bases__", ())]
        loops = [get_args(base) for base in bases if get_origin(base) is MainLoop]
        found = loops[0][1] if loops and not isinstance(loops[0][1], TypeVar) else None
    return None if found in (None, str, Any) else found
