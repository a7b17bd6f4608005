"""The main loop: call a model and run its tools until it answers."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar, Unpack, cast, get_args, get_origin

import msgspec

from proctor.core import bridge, resource_scope
from proctor.core.aliases import AdapterAlias, accept_aliases
from proctor.core.clock import Clock, SystemClock
from proctor.errors import LoopStopped, StopRun, TargetError
from proctor.models.answer_format import JsonFormat
from proctor.models.connect import provider
from proctor.models.model_calls import AskOptions, aask, call_context
from proctor.models.prompts import Prompt
from proctor.models.spending import Spending
from proctor.records import codec
from proctor.records.run import Budget
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.sessions import current as sessions
from proctor.targets.main_loop.bus import EventBus, LoopEnded, ModelAnswered, PromptRendered, ToolInvoked
from proctor.targets.main_loop.tools import Tool, Toolbox

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

CANCELLED = "cancelled before it answered"


class ExecutionBudget(Spending):
    """The budget of one execution; its spending also counts against the run's budget.

    When it is spent, only the execution ends, not the run.
    """

    def __init__(self, budget: Budget | Mapping[str, Any], run_spending: Spending | None) -> None:
        super().__init__(budget)
        self._run_spending = run_spending

    def begin(self) -> None:
        """Count one call of the execution and of the run."""
        try:
            super().begin()
        except StopRun as error:
            raise LoopStopped(error.what, limit="budget") from None
        if self._run_spending is not None:
            self._run_spending.begin()

    def take_back(self) -> None:
        super().take_back()
        if self._run_spending is not None:
            self._run_spending.take_back()

    def end(self, model: str, usage: Usage) -> None:
        if self._run_spending is not None:
            self._run_spending.end(model, usage)
        try:
            super().end(model, usage)
        except StopRun as error:
            raise LoopStopped(f"{error.what}; {error.fix}", limit="budget") from None


def seconds_to_deadline(deadline: datetime | float | None, clock: Clock) -> float | None:
    """Return the seconds to a point in time; a number is already in seconds."""
    if deadline is None:
        return None
    if isinstance(deadline, datetime):
        if deadline.tzinfo is None:
            raise TargetError(
                "the deadline has no time zone",
                fix="pass an aware time, such as datetime.now(UTC) + timedelta(seconds=30)",
            )
        return (deadline - clock.now()).total_seconds()
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or math.isnan(deadline):
        raise TargetError(f"{deadline!r} is not a deadline", fix="pass an aware datetime, or seconds from now")
    return float(deadline)


class Response(msgspec.Struct, Generic[OutputT], frozen=True):
    """The result of a main loop: the output in its type, and the text of the answer.

    `usage` is the total of all model calls, `turns` the number of the model's answers.

    >>> Response("Paris", "Paris", Usage(12, 1), turns=1).output
    'Paris'
    """

    output: OutputT
    text: str
    usage: Usage = Usage()
    turns: int = 1


class MainLoop(Generic[InputT, OutputT]):
    """An agent: a prompt for each request, a model, and tools that the model calls until it answers.

    A subclass defines `initialize`, which returns the prompt and the session. `model` is a model or its
    address. The answer is parsed into the type of the prompt, `PromptTemplate[Output]`, or else of the loop,
    `MainLoop[Input, Output]`; a text answer is not parsed. The `bus` reports the progress.

    >>> from proctor.models.prompts import MarkdownSection, PromptTemplate
    >>> section = MarkdownSection("Question", "Answer in one word: $question", key="q")
    >>> class QALoop(MainLoop[str, str]):
    ...     template = PromptTemplate[str]("qa", "answer", [section])
    ...     def initialize(self, request):
    ...         return Prompt(self.template).bind(question=request), Session()
    >>> def model(prompt: str) -> str:
    ...     return "Paris"
    >>> response, session = QALoop(model=model).execute("Capital of France?")
    >>> response.output, [message.role for message in session[Message]]
    ('Paris', ['user', 'assistant'])
    """

    @accept_aliases
    def __init__(
        self,
        *,
        model: Any = None,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        bus: EventBus | None = None,
        max_turns: int = 20,
        temperature: float | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        clock: Clock = SystemClock(),  # noqa: B008 - it has no state
        **_aliases: Unpack[AdapterAlias],
    ) -> None:
        if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
            raise TargetError(f"must be an integer, 1 or more, got {max_turns!r}", where="max_turns", fix="write 20")
        self.adapter = provider(model)
        self.bus = EventBus() if bus is None else bus
        self.max_turns = max_turns
        self._toolbox = Toolbox(tools)
        settings = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
        self._settings = {name: value for name, value in settings.items() if value is not None}
        self._clock = clock

    def initialize(self, request: InputT) -> tuple[Prompt[OutputT], Session]:
        """Return the prompt for a request, and the session to record in; it may be async."""
        raise NotImplementedError(f"{type(self).__name__} has no initialize, which returns the prompt and a session")

    def execute(
        self,
        request: InputT,
        *,
        deadline: datetime | float | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
    ) -> tuple[Response[OutputT], Session]:
        """Run one request and wait for the answer; see `aexecute`."""
        return bridge.run(self.aexecute(request, deadline=deadline, budget=budget))

    async def aexecute(
        self,
        request: InputT,
        *,
        deadline: datetime | float | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
    ) -> tuple[Response[OutputT], Session]:
        """Run one request until the model answers.

        `deadline` is an aware time, or seconds from now; `budget` covers this execution, including the model
        calls of its tools. An execution that exceeds one of them, or `max_turns`, raises `LoopStopped`.
        """
        seconds = seconds_to_deadline(deadline, self._clock)
        with _apply_budget(budget), _record() as record:
            try:
                async with resource_scope.ResourceScope(), asyncio.timeout(seconds) as timer:
                    if seconds is not None and seconds <= 0:
                        raise LoopStopped("the deadline passed before the execution began", limit="time")
                    prompt = await self._initialize(request, record)
                    response = await self._converse(prompt, record)
            except BaseException as error:
                if isinstance(error, TimeoutError) and timer.expired():
                    error = LoopStopped("the deadline has passed", limit="time")
                self._end(record, error)
                raise error from error.__cause__
            self._end(record, None)
        return response, record.session

    async def _initialize(self, request: InputT, record: _Record) -> Prompt[OutputT]:
        result: Any = self.initialize(request)
        prompt, session = await result if inspect.isawaitable(result) else result
        if not isinstance(prompt, Prompt) or not isinstance(session, Session):
            raise TargetError(
                "initialize must return a Prompt and a Session, "
                f"not {type(prompt).__name__} and {type(session).__name__}",
                where=type(self).__name__,
            )
        record.move_to(session)
        return prompt

    async def _converse(self, prompt: Prompt[OutputT], record: _Record) -> Response[OutputT]:
        """Call the model, and run the tools that it calls, until it answers."""
        messages = prompt.messages()
        self.bus.publish(PromptRendered(record.session, messages, prompt.template.id))
        output_type = _find_output_type(prompt, type(self))
        answer_format = None if output_type is None else JsonFormat(output_type)
        recorded_count = 0
        while record.turns < self.max_turns:
            options = {**self._settings, "tools": self._toolbox.specs, "recorded_count": recorded_count}
            answer = await aask(self.adapter, messages, answer_format, **cast("AskOptions", options))
            record.turns += 1
            record.forward()
            self.bus.publish(ModelAnswered(record.session, answer, record.turns))
            if not answer.tool_calls:
                text = answer.text if answer.refusal is None else answer.refusal
                output: Any = text if answer_format is None else answer.output
                return Response(output, text, record.usage(), record.turns)
            if record.turns >= self.max_turns:
                # The model would not see the results, so the tools do not run.
                break
            reply = Message("assistant", answer.text, tool_calls=answer.tool_calls)
            recorded_count = len(messages) + 1
            results = await self._run_tools(answer.tool_calls, record)
            messages = (*messages, reply, *map(_to_message, results))
        raise LoopStopped(f"the model still called tools in its last turn, number {self.max_turns}", limit="turns")

    async def _run_tools(self, calls: Sequence[ToolCall], record: _Record) -> list[ToolCall]:
        """Run tools concurrently; record them in the order of the calls."""
        results = [msgspec.structs.replace(call, error=CANCELLED) for call in calls]

        async def run(index: int, call: ToolCall) -> None:
            results[index] = await self._toolbox.run_call(call, self._clock)

        tasks = [asyncio.ensure_future(run(index, call)) for index, call in enumerate(calls)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for result in results:
                record.session.append(result)
                self.bus.publish(ToolInvoked(record.session, result, record.turns))
            record.forward()
        return results

    def _end(self, record: _Record, error: BaseException | None) -> None:
        reason = None if error is None else f"{type(error).__name__}: {error}".removesuffix(": ")
        if isinstance(error, LoopStopped):
            error.usage = record.usage()
        self.bus.publish(LoopEnded(record.session, record.turns, record.usage(), reason))


class _Record:
    """The record of an execution: a separate session, which is copied to the trial's session."""

    def __init__(self, outer_session: Session | None) -> None:
        self.session = Session()
        self.turns = 0
        self._outer_session = outer_session
        self._start = 0
        self._forwarded = 0

    def move_to(self, session: Session) -> None:
        """Continue with the session that `initialize` returned; move earlier events to it."""
        if session is self.session:
            return
        if session is self._outer_session:
            self._outer_session = None
        self._start = self._forwarded = len(session)
        for event in self.session:
            session.append(event)
        self.session = session
        sessions.current.set(session)

    def forward(self) -> None:
        """Copy new events to the outer session, so that they survive a failure."""
        if self._outer_session is not None:
            for event in self.session.events[self._forwarded :]:
                self._outer_session.append(event)
            self._forwarded = len(self.session)

    def usage(self) -> Usage:
        events = self.session.events[self._start :]
        return sum((event.usage for event in events if isinstance(event, ModelCall)), Usage())


@contextlib.contextmanager
def _record() -> Iterator[_Record]:
    record = _Record(sessions.current_session())
    token = sessions.current.set(record.session)
    try:
        yield record
    finally:
        record.forward()
        sessions.current.reset(token)


@contextlib.contextmanager
def _apply_budget(budget: Budget | Mapping[str, Any] | None) -> Iterator[None]:
    """Count all model calls inside the block against this budget and against the run's budget."""
    if budget is None:
        yield
        return
    outer = call_context.get()
    token = call_context.set(outer._replace(spending=ExecutionBudget(budget, outer.spending)))
    try:
        yield
    finally:
        call_context.reset(token)


def _to_message(call: ToolCall) -> Message:
    """Return the tool message for the model; lists become text, so that they are not content parts."""
    content = call.result if call.error is None else f"Error: {call.error}"
    if not isinstance(content, str | dict):
        content = codec.encode(content).decode()
    return Message("tool", content, name=call.name, call_id=call.call_id)


def _find_output_type(prompt: Prompt[Any], loop_class: type) -> Any:
    """Return the type of the answer; None for text."""
    output_type = prompt.output_type
    if output_type is None:
        bases = [base for parent in loop_class.__mro__ for base in vars(parent).get("__orig_bases__", ())]
        arguments = [get_args(base) for base in bases if get_origin(base) is MainLoop]
        if arguments and not isinstance(arguments[0][1], TypeVar):
            output_type = arguments[0][1]
    return None if output_type in (None, str, Any) else output_type
