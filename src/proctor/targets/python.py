"""Python objects as targets: functions, LangChain runnables, and loops with `execute`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import Parameter
from types import FunctionType
from typing import Any, NamedTuple

from proctor.core import optional as extras
from proctor.core.callables import code_of, is_async_callable
from proctor.core.identity import Identity, examine
from proctor.errors import TargetError, suggest_name
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Reply
from proctor.sessions import current as sessions

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)
_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_WEAKINCENTIVES = "weakincentives"
_TOKEN_COUNTS = ("input_tokens", "output_tokens", "cached_tokens")
# Attributes of a loop that do not affect its answers: its listeners, its source of requests, and,
# in loops of weakincentives, its process.
_TRANSIENT_ATTRIBUTES = frozenset({
    "bus", "_bus", "_dlq", "_heartbeat", "_lease_extender", "_lock", "_requests", "_running",
    "_shutdown_event", "_worker_id",
})  # fmt: skip

Call = Callable[..., Any]


class Parameters(NamedTuple):
    """The options of a target.

    `input_name` is the parameter for the input, if an option could have the same name; `known` are the
    options, `required` those without a default; `takes_any` is True for `**kwargs`.
    """

    input_name: str | None
    known: frozenset[str]
    required: tuple[str, ...]
    takes_any: bool

    def check(self, options: Mapping[str, Any]) -> list[str]:
        """Return one sentence for each fault in a configuration's options."""
        faults = [fault for name in options if (fault := self._find_fault(name))]
        missing = [name for name in self.required if name not in options]
        return faults + [f"the option {name!r} is required" for name in missing]

    def _find_fault(self, name: str) -> str:
        if name == self.input_name:
            return f"the option {name!r} has the name of the parameter for the input"
        if self.takes_any or name in self.known:
            return ""
        hint = suggest_name(name, self.known) if self.known else "the target takes no options"
        return f"there is no option {name!r}: {hint}"


def parameters_of(function: Callable[..., Any], where: str) -> Parameters:
    """Read the signature of a callable that is called as `function(input, **options)`."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        # Some functions written in C have no signature.
        return Parameters(None, frozenset(), (), takes_any=True)
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise TargetError(
            "it has no positional parameter for the input",
            where=where,
            fix="make the first parameter take the input, as in `def answer(question): ...`",
        )
    first, *rest = parameters
    for parameter in rest:
        if parameter.kind is Parameter.POSITIONAL_ONLY and parameter.default is Parameter.empty:
            raise TargetError(
                f"the parameter {parameter.name!r} is positional-only, but options are passed by name",
                where=where,
                fix="add a default, or bind it with functools.partial",
            )
    options = [parameter for parameter in rest if parameter.kind in _KEYWORD]
    return Parameters(
        first.name if first.kind is Parameter.POSITIONAL_OR_KEYWORD else None,
        frozenset(parameter.name for parameter in options),
        tuple(parameter.name for parameter in options if parameter.default is Parameter.empty),
        takes_any=any(parameter.kind is Parameter.VAR_KEYWORD for parameter in rest),
    )


class PythonTarget:
    """A target that runs in this process.

    `call` is a closure, so that a call costs no more than the function itself.
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
        """Do nothing: the callable belongs to the user."""


def from_function(function: Callable[..., Any], name: str) -> PythonTarget:
    """Wrap a sync or async function, lambda, partial, bound method or callable object."""
    code = code_of(function)
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise TargetError(
            "it is a generator, and only a complete output can be scored",
            where=name,
            fix="collect the pieces and return them together",
        )
    is_async = is_async_callable(function)

    def call_async(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return function(sample.input, **options)

    def call(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return _require_result(function(sample.input, **options))

    return PythonTarget(
        TargetSpec(name, "function", *examine(function)),
        call_async if is_async else call,
        parameters_of(function, name),
        blocking=not is_async,
    )


def _make_call(function: Callable[..., Any], convert: Callable[[Any], Any], *, is_async: bool) -> Call:
    def call(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return convert(_require_result(function(sample.input, **options)))

    async def call_async(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return convert(await function(sample.input, **options))

    return call_async if is_async else call


def _require_result(result: Any) -> Any:
    """Raise an error if a plain function returned an awaitable."""
    if not inspect.isawaitable(result):
        return result
    if inspect.iscoroutine(result):
        result.close()
    raise TargetError(
        "the target returned an awaitable, but it is not an async function",
        fix="write it with `async def`, and await inside",
    )


def from_runnable(runnable: Any, name: str) -> PythonTarget:
    """Wrap a runnable: call `ainvoke` if it has one, else `invoke`; options are keyword arguments.

    The reply of a chat model is read as everywhere: its text is the output, and its tool calls and usage go
    into the session. Other chat messages become their content; other results stay.
    """
    method = "ainvoke" if hasattr(runnable, "ainvoke") else "invoke"
    invoke = getattr(runnable, method)
    is_async = method == "ainvoke" or is_async_callable(invoke)
    return PythonTarget(
        TargetSpec(name, "runnable", *_runnable_identity(runnable)),
        _make_call(invoke, _runnable_reply, is_async=is_async),
        parameters_of(invoke, f"{name}.{method}"),
        blocking=not is_async,
    )


def _runnable_reply(result: Any) -> Any:
    messages = extras.loaded_module("langchain_core.messages")
    if messages is None or not isinstance(result, messages.BaseMessage):
        return result
    return result if isinstance(result, messages.AIMessage) else Reply(result.content)


def _runnable_identity(runnable: Any) -> Identity:
    """Identify a runnable by its code and, for a chain, by every step and prompt."""
    steps = getattr(runnable, "steps", ())
    load = extras.loaded_module("langchain_core.load")
    try:
        # LangChain's own description, which has the names of secrets but not their values.
        description = None if load is None else load.dumpd(runnable)
    except (TypeError, ValueError):
        description = None
    return examine([runnable, list(steps) if isinstance(steps, list | tuple) else [], _without_repr(description)])


def _without_repr(description: Any) -> Any:
    """Remove `repr` texts, which may contain memory addresses."""
    if isinstance(description, dict):
        return {key: _without_repr(value) for key, value in description.items() if key != "repr"}
    return [_without_repr(item) for item in description] if isinstance(description, list) else description


def from_execute(loop: Any, name: str) -> PythonTarget:
    """Wrap a main loop: the output is `response.output`, with the session.

    A loop with an async `aexecute` is called by that.
    """
    execute = _choose_method(loop)
    is_async = is_async_callable(execute)
    return PythonTarget(
        TargetSpec(name, "execute", *_loop_identity(loop)),
        _make_call(execute, execute_reply, is_async=is_async),
        parameters_of(execute, f"{name}.execute"),
        blocking=not is_async,
    )


def _choose_method(loop: Any) -> Any:
    """Return `aexecute`, unless a subclass overrides only `execute`."""
    aexecute = getattr(loop, "aexecute", None)
    if not callable(aexecute) or not is_async_callable(aexecute):
        return loop.execute
    defined = (vars(base).keys() & {"execute", "aexecute"} for base in type(loop).__mro__)
    return aexecute if "aexecute" in next(filter(None, defined), {"aexecute"}) else loop.execute


def _loop_identity(loop: Any) -> Identity:
    """Identify a loop by the code of its classes and by its attributes.

    `execute` alone is not enough: it is often inherited, and the prompts are elsewhere.
    """
    code = [
        # The function behind a property, a static method or a class method.
        [f"{base.__qualname__}.{name}", getattr(value, "fget", None) or getattr(value, "__func__", value)]
        for base in type(loop).__mro__
        if base is not object
        for name, value in vars(base).items()
        if isinstance(value, FunctionType) or not name.startswith("__")
    ]
    if not hasattr(loop, "__dict__"):
        return examine([code, loop.execute])
    state = {name: value for name, value in vars(loop).items() if name not in _TRANSIENT_ATTRIBUTES}
    return examine([code, state])


def execute_reply(result: Any) -> Reply:
    """Convert the result of `execute` to a reply.

    A pair is a response with its session if the response has an `output`, or if the second item is a session
    or None; any other pair is the output.
    """
    if isinstance(result, Reply):
        return result
    response, session = result, None
    if isinstance(result, tuple) and len(result) == 2:
        candidate = _to_session(result[1])
        if candidate is not None or result[1] is None or hasattr(result[0], "output"):
            response, session = result[0], candidate
    if isinstance(response, Reply):
        return Reply(response.output, response.usage, session, response.latency_ms)
    return Reply(getattr(response, "output", response), _find_usage(response, session), session)


def _find_usage(response: Any, session: Session | None) -> Usage | None:
    """Return the usage of a response or its session.

    None if the trial's session has the same: that one counts failed attempts too.
    """
    usage = getattr(response, "usage", None)
    if not isinstance(usage, Usage):
        usage = None if session is None else session.known_usage()
    trial_session = sessions.current_session()
    return None if trial_session is not None and trial_session.usage == usage else usage


def _to_session(source: Any) -> Session | None:
    """Convert a session of another package, or an object with `events`."""
    if isinstance(source, Session):
        return source
    if (session := _from_weakincentives(source)) is not None:
        return session
    events = getattr(source, "events", None)
    if not isinstance(events, Iterable) or isinstance(events, str | bytes):
        return None
    session = Session()
    for event in events:
        session.append(event)
    return session


def _from_weakincentives(source: Any) -> Session | None:
    """Convert a session of weakincentives: its log in order, then the user's own slices.

    None if it is another object, or if the package is not loaded.
    """
    package = extras.loaded_module(f"{_WEAKINCENTIVES}.runtime.session")
    events = extras.loaded_module(f"{_WEAKINCENTIVES}.runtime.events")
    if package is None or events is None or not isinstance(source, package.Session):
        return None
    converters: Mapping[type, Callable[[Any], Iterator[Any]]] = {
        events.PromptRendered: _convert_prompt,
        events.ToolInvoked: _convert_tool_call,
        events.PromptExecuted: _convert_response,
    }
    entries = [(entry, convert) for kind, convert in converters.items() for entry in source[kind].all()]
    entries.sort(key=lambda pair: pair[0].created_at)
    session = Session()
    for entry, convert in entries:
        for event in convert(entry):
            session.append(event)
    for item in _user_slices(source, package):
        session.append(item)
    return session


def _convert_prompt(entry: Any) -> Iterator[Message]:
    yield Message("user", entry.rendered_prompt)


def _convert_tool_call(entry: Any) -> Iterator[ToolCall]:
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


def _convert_response(entry: Any) -> Iterator[Message | ModelCall]:
    text = getattr(entry.result, "text", None)
    if text:
        yield Message("assistant", text)
    usage = Usage() if entry.usage is None else Usage(*(getattr(entry.usage, n) for n in _TOKEN_COUNTS))
    yield ModelCall(str(entry.adapter), usage)


def _user_slices(source: Any, package: Any) -> Iterator[Any]:
    """Yield the user's own state; the package's own state does not concern the answer."""
    try:
        slices = source.snapshot(include_all=True).slices
    except package.SnapshotSerializationError:
        # The package cannot serialize part of the state.
        return
    for kind, items in slices.items():
        if kind.__module__.partition(".")[0] != _WEAKINCENTIVES:
            yield from items
