"""Python callables as targets: called as `function(input, **options)`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import Parameter
from types import FunctionType
from typing import Any, NamedTuple

from proctor.core import optional as extras
from proctor.core.identity import Identity, examine
from proctor.errors import TargetError, nearest
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Reply
from proctor.sessions import current as sessions

_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class Parameters(NamedTuple):
    """The options a target takes.

    `input_name` is the parameter that gets the input if an option could clash with it, `known`
    the options by name, `required` those without a default; `anything` is True for `**kwargs`.
    """

    input_name: str | None
    known: frozenset[str]
    required: tuple[str, ...]
    anything: bool

    def check(self, options: Mapping[str, Any]) -> list[str]:
        """What is wrong with a configuration's options, one sentence for each fault.

        >>> def answer(question, *, temperature=0.0): ...
        >>> parameters_of(answer, "answer").check({"temprature": 1.0})
        ["there is no option 'temprature': did you mean 'temperature'?"]
        """
        faults = [fault for name in options if (fault := self._fault(name))]
        missing = [name for name in self.required if name not in options]
        return faults + [f"the option {name!r} is needed and not given" for name in missing]

    def _fault(self, name: str) -> str:
        if name == self.input_name:
            return f"the option {name!r} clashes with the parameter that takes the input"
        if self.anything or name in self.known:
            return ""
        hint = nearest(name, self.known) if self.known else "the target takes no options"
        return f"there is no option {name!r}: {hint}"


def parameters_of(function: Callable[..., Any], where: str) -> Parameters:
    """Read what a callable takes, or say why it cannot be called as `function(input, **options)`.

    >>> def answer(question, model, *, temperature=0.0): ...
    >>> parameters_of(answer, "answer").required
    ('model',)
    """
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        # Some functions written in C do not tell what they take.
        return Parameters(None, frozenset(), (), anything=True)
    if not parameters or parameters[0].kind not in _BY_PLACE:
        raise TargetError(
            "nothing takes the input: there is no positional parameter",
            where=where,
            fix="let the first parameter take the input, as in `def answer(question): ...`",
        )
    first, *rest = parameters
    _refuse_unreachable(rest, where)
    named = [parameter for parameter in rest if parameter.kind in _BY_NAME]
    return Parameters(
        first.name if first.kind is Parameter.POSITIONAL_OR_KEYWORD else None,
        frozenset(parameter.name for parameter in named),
        tuple(parameter.name for parameter in named if parameter.default is Parameter.empty),
        anything=any(parameter.kind is Parameter.VAR_KEYWORD for parameter in rest),
    )


def _refuse_unreachable(rest: list[Parameter], where: str) -> None:
    """Options come by name, so a second parameter that goes only by place can never be given."""
    for parameter in rest:
        if parameter.kind is Parameter.POSITIONAL_ONLY and parameter.default is Parameter.empty:
            raise TargetError(
                f"the parameter {parameter.name!r} cannot be given: it has no name to callers",
                where=where,
                fix="give it a default, or bind it with functools.partial",
            )


Call = Callable[..., Any]


class PythonTarget:
    """A target that runs in this process; how it is called is settled when it is made.

    `call` is a ready-made closure, so that a call costs no more than the function itself.
    """

    __slots__ = ("blocking", "call", "check_options", "spec")

    def __init__(self, spec: TargetSpec, call: Call, parameters: Parameters, *, blocking: bool) -> None:
        self.spec = spec
        self.blocking = blocking
        self.call = call
        self.check_options = parameters.check

    def __repr__(self) -> str:
        return f"{self.spec.kind} target {self.spec.name!r}"

    async def close(self) -> None:
        """Nothing is held: the callable belongs to whoever made it."""


def from_function(function: Callable[..., Any], name: str) -> PythonTarget:
    """A sync or async function, lambda, partial, bound method or callable object as a target.

    >>> target = from_function(str.upper, "shout")
    >>> target.call(Sample("1", "hello"), {})
    'HELLO'
    """
    _refuse_generator(function, name)
    waits = is_async(function)

    def call(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return function(sample.input, **options)

    def call_plain(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return finished(function(sample.input, **options))

    return PythonTarget(
        TargetSpec(name, "function", *examine(function)),
        call if waits else call_plain,
        parameters_of(function, name),
        blocking=not waits,
    )


def reading(function: Callable[..., Any], read: Callable[[Any], Any], *, waits: bool) -> Call:
    """A call of the function whose answer is passed through `read`, awaited first if it waits."""

    def call(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return read(finished(function(sample.input, **options)))

    async def call_and_wait(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return read(await function(sample.input, **options))

    return call_and_wait if waits else call


def finished(answer: Any) -> Any:
    """The answer of a plain function, which must not be something that still has to be awaited."""
    if not inspect.isawaitable(answer):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
    raise TargetError(
        "the target gave something to await and does not look as if it would",
        fix="write it with `async def`, and await inside",
    )


def is_async(function: Callable[..., Any]) -> bool:
    """True if calling it gives something to await: partials and callable objects are seen through.

    >>> import asyncio
    >>> is_async(functools.partial(asyncio.sleep, 0)), is_async(len)
    (True, False)
    """
    return inspect.iscoroutinefunction(_code_of(function))


def _code_of(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _refuse_generator(function: Callable[..., Any], name: str) -> None:
    code = _code_of(function)
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise TargetError(
            "it yields its output piece by piece, and only a whole output can be scored",
            where=name,
            fix="collect the pieces and return them together",
        )


def from_runnable(runnable: Any, name: str) -> PythonTarget:
    """A runnable as a target: `ainvoke` if it has one, else `invoke`; options go by keyword.

    The answer of a chat model is read where all outputs are: its text is the output, its tool
    calls and its usage are in the session. Any other chat message gives its content; every other
    result stays as it is.

    >>> from proctor.records.sample import Sample
    >>> class Echo:
    ...     def invoke(self, input, config=None):
    ...         return input
    >>> from_runnable(Echo(), "echo").call(Sample("1", "hello"), {})
    'hello'
    """
    method = "ainvoke" if hasattr(runnable, "ainvoke") else "invoke"
    invoke = getattr(runnable, method)
    waits = method == "ainvoke" or is_async(invoke)
    return PythonTarget(
        TargetSpec(name, "runnable", *_runnable_identity(runnable)),
        reading(invoke, runnable_reply, waits=waits),
        parameters_of(invoke, f"{name}.{method}"),
        blocking=not waits,
    )


def runnable_reply(result: Any) -> Any:
    """The content of a chat message that is no answer of a model; anything else as it is.

    >>> reply_of({"answer": 4})
    {'answer': 4}
    """
    messages = extras.loaded("langchain_core.messages")
    if messages is None or not isinstance(result, messages.BaseMessage):
        return result
    return result if isinstance(result, messages.AIMessage) else Reply(result.content)


def _runnable_identity(runnable: Any) -> Identity:
    """What tells one runnable from another: its code and, of a chain, every step and prompt."""
    steps = getattr(runnable, "steps", ())
    parts = list(steps) if isinstance(steps, list | tuple) else []
    return examine([runnable, parts, _without_repr(_description(runnable))])


def _description(runnable: Any) -> Any:
    """LangChain's own description, which names secrets but does not hold them; None without one."""
    load = extras.loaded("langchain_core.load")
    try:
        return None if load is None else load.dumpd(runnable)
    except (TypeError, ValueError):
        return None


def _without_repr(described: Any) -> Any:
    """The description without `repr` texts, which may hold addresses in memory."""
    if isinstance(described, dict):
        return {key: _without_repr(part) for key, part in described.items() if key != "repr"}
    return [_without_repr(part) for part in described] if isinstance(described, list) else described


PACKAGE = "weakincentives"


def session_from(thing: Any) -> Session | None:
    """What a session of weakincentives has logged, in order, then the user's own slices.

    None if it is no such session, or the package is not in use.
    """
    home = extras.loaded(f"{PACKAGE}.runtime.session")
    logged = extras.loaded(f"{PACKAGE}.runtime.events")
    if home is None or logged is None or not isinstance(thing, home.Session):
        return None
    told: Mapping[type, Callable[[Any], Iterator[Any]]] = {
        logged.PromptRendered: _rendered,
        logged.ToolInvoked: _invoked,
        logged.PromptExecuted: _executed,
    }
    entries = [(entry, tell) for kind, tell in told.items() for entry in thing[kind].all()]
    entries.sort(key=lambda pair: pair[0].created_at)
    session = Session()
    for entry, tell in entries:
        for event in tell(entry):
            session.append(event)
    for kept in _slices(thing, home):
        session.append(kept)
    return session


def _rendered(entry: Any) -> Iterator[Message]:
    yield Message("user", entry.rendered_prompt)


def _invoked(entry: Any) -> Iterator[ToolCall]:
    arguments = codec.plain(entry.params)
    result, error = entry.result, None
    if hasattr(result, "success") and hasattr(result, "value"):
        error = None if result.success else result.message or "it failed"
        result = result.value
    yield ToolCall(
        entry.name,
        arguments if isinstance(arguments, dict) else {"params": arguments} if arguments else {},
        codec.plain(result),
        error,
        call_id=entry.call_id,
    )


def _executed(entry: Any) -> Iterator[Message | ModelCall]:
    text = getattr(entry.result, "text", None)
    if text:
        yield Message("assistant", text)
    used = entry.usage
    told = Usage() if used is None else Usage(*(getattr(used, name) for name in _COUNTS))
    yield ModelCall(str(entry.adapter), told)


_COUNTS = ("input_tokens", "output_tokens", "cached_tokens")


def _slices(thing: Any, home: Any) -> Iterator[Any]:
    """The user's own state; that of the package itself says nothing about the answer."""
    try:
        slices = thing.snapshot(include_all=True).slices
    except home.SnapshotSerializationError:
        # Something in it cannot be written down, by the package's own rules.
        return
    for kind, kept in slices.items():
        if kind.__module__.partition(".")[0] != PACKAGE:
            yield from kept


# What a loop holds that is not what it answers: who listens to it, where its requests come from,
# and, in loops of weakincentives, in which process it works.
_PASSING = frozenset({
    "bus", "_bus", "_dlq", "_heartbeat", "_lease_extender", "_lock", "_requests", "_running",
    "_shutdown_event", "_worker_id",
})  # fmt: skip


def from_execute(loop: Any, name: str) -> PythonTarget:
    """A main loop as a target: the output is `response.output`, and the session is kept.

    A loop that has an async `aexecute` beside its `execute` is run by that.

    >>> from proctor.records.sample import Sample
    >>> class Greeter:
    ...     def execute(self, request):
    ...         return f"Hello {request}", Session()
    >>> from_execute(Greeter(), "greeter").call(Sample("1", "Ada"), {}).output
    'Hello Ada'
    """
    execute = _entry(loop)
    waits = is_async(execute)
    return PythonTarget(
        TargetSpec(name, "execute", *_identity(loop)),
        reading(execute, reply_of, waits=waits),
        parameters_of(execute, f"{name}.execute"),
        blocking=not waits,
    )


def _entry(loop: Any) -> Any:
    """`aexecute` if there is one; but not if `execute` alone was written anew below it."""
    beside = getattr(loop, "aexecute", None)
    if not callable(beside) or not is_async(beside):
        return loop.execute
    written = (vars(kind).keys() & {"execute", "aexecute"} for kind in type(loop).__mro__)
    return beside if "aexecute" in next(filter(None, written), {"aexecute"}) else loop.execute


def _identity(loop: Any) -> Identity:
    """What tells one loop from another: what its classes define, and what it holds.

    `execute` alone would not do, for it is often inherited, and what is asked stands elsewhere.
    """
    code = [
        [f"{kind.__qualname__}.{name}", _bare(part)]
        for kind in type(loop).__mro__
        if kind is not object
        for name, part in vars(kind).items()
        if isinstance(part, FunctionType) or not name.startswith("__")
    ]
    if not hasattr(loop, "__dict__"):
        return examine([code, loop.execute])
    held = {name: part for name, part in vars(loop).items() if name not in _PASSING}
    return examine([code, held])


def _bare(part: Any) -> Any:
    """The function behind a property, a static method or a class method."""
    return getattr(part, "fget", None) or getattr(part, "__func__", part)


def reply_of(answer: Any) -> Reply:
    """What `execute` gave, as a reply.

    A pair is a response with its session if the response has an `output`, or if the second part
    is a session or None; any other pair is itself the output.

    >>> reply_of(("Paris", None)).output
    'Paris'
    >>> reply_of((48.9, 2.4)).output
    (48.9, 2.4)
    """
    if isinstance(answer, Reply):
        return answer
    response, session = answer, None
    if isinstance(answer, tuple) and len(answer) == 2:
        kept = _session_of(answer[1])
        if kept is not None or answer[1] is None or hasattr(answer[0], "output"):
            response, session = answer[0], kept
    if isinstance(response, Reply):
        return Reply(response.output, response.usage, session, response.latency_ms)
    return Reply(getattr(response, "output", response), _usage(response, session), session)


def _usage(response: Any, session: Session | None) -> Usage | None:
    """What a response or its session tells of usage.

    None if the session of the trial says the same: there, failed attempts are counted too.
    """
    told = getattr(response, "usage", None)
    if not isinstance(told, Usage):
        told = None if session is None else session.known_usage()
    around = sessions.current_session()
    return None if around is not None and around.usage == told else told


def _session_of(thing: Any) -> Session | None:
    """A session as ours: itself, or the events of an object that has them."""
    if isinstance(thing, Session):
        return thing
    if (known := session_from(thing)) is not None:
        return known
    events = getattr(thing, "events", None)
    if not isinstance(events, Iterable) or isinstance(events, str | bytes):
        return None
    session = Session()
    for event in events:
        session.append(event)
    return session
