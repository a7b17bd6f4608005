"""Tools: typed functions that a model may call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints, overload

import msgspec

from proctor.core import optional as extras
from proctor.core.clock import Clock
from proctor.core.identity import name_of
from proctor.core.threads import in_thread
from proctor.errors import Problem, StopRun, TargetError, nearest
from proctor.models.answer_forms import inlined
from proctor.records import codec
from proctor.records.model import ToolSpec
from proctor.records.session import ToolCall

# Defaults that stand in a schema as they are; others are made when the tool is called.
_SHOWN = str | int | float | bool | None


class BadArguments(ValueError):
    """A model called a tool with arguments that do not fit; says which, so that it can mend it."""


class Arguments(NamedTuple):
    """How the arguments of a tool are described to a model, and how they are read."""

    schema: dict[str, Any]
    read: Callable[[Mapping[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


def of_type(kind: Any, where: str) -> Arguments:
    """Arguments that are the fields of one dataclass, struct or pydantic model.

    >>> class Query(msgspec.Struct):
    ...     text: str
    >>> of_type(Query, "search").read({"text": "Paris"})
    ((Query(text='Paris'),), {})
    """
    if not is_record(kind):
        raise TargetError(
            f"the parameters of a tool cannot be of the type {kind!r}",
            where=where,
            fix="give a dataclass, a struct or a pydantic model, whose fields they are",
        )
    schema = _schema(kind, where)

    def read(given: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        known = () if schema.get("additionalProperties") else schema.get("properties", {})
        faults = [_unknown(name, known) for name in given if known and name not in known]
        try:
            made = _decoded(codec.encode(given), kind)
        except ValueError as error:
            faults.append(_described_type(error))
        if faults:
            raise _bad(faults)
        return (made,), {}

    return Arguments(schema, read)


def of_function(function: Callable[..., Any], where: str) -> Arguments:
    """Arguments that are the parameters of a function, or the fields of its only parameter.

    >>> def add(a: int, b: int = 1) -> int: ...
    >>> of_function(add, "add").read({"a": 2})
    ((), {'a': 2})
    """
    parameters = inspect.signature(function).parameters
    hints = _hints(function, where)
    faults = [
        Problem(name, fault) for name, parameter in parameters.items() if (fault := _fault(parameter, hints))
    ]
    if faults:
        raise TargetError("it cannot be a tool as it is", where=where, problems=faults)
    if len(parameters) == 1 and is_record(only := hints[next(iter(parameters))]):
        return of_type(only, where)
    kinds = {name: _described(hints[name]) for name in parameters}
    needed = [name for name, each in parameters.items() if each.default is Parameter.empty]
    fields = [(name, kinds[name], _default(each)) for name, each in parameters.items()]
    made = msgspec.defstruct(
        where, [field if field[0] not in needed else field[:2] for field in fields], kw_only=True
    )
    schema = {**_schema(made, where), "additionalProperties": False}

    def read(given: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        faults = [_unknown(name, kinds) for name in given if name not in kinds]
        faults += [f"{name} is missing" for name in needed if name not in given]
        values = {}
        for name, value in given.items():
            try:
                values[name] = _decoded(codec.encode(value), kinds.get(name, Any))
            except ValueError as error:
                faults.append(f"{name}: {_described_type(error)}")
        if faults:
            raise _bad(faults)
        return (), values

    return Arguments(schema, read)


def is_record(kind: Any) -> bool:
    """True for a dataclass, a struct or a pydantic model.

    >>> is_record(int)
    False
    """
    return isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__")
        or issubclass(kind, msgspec.Struct)
        or extras.is_pydantic_model(kind)
    )


def _hints(function: Callable[..., Any], where: str) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    code = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(code, include_extras=True)
    except NameError as error:
        raise TargetError(
            f"a type of its parameters cannot be found: {error}",
            where=where,
            fix="import it where the tool is defined, and not for type checkers only",
        ) from None


def _fault(parameter: Parameter, hints: Mapping[str, Any]) -> str:
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return "a model cannot be told what it takes; name the parameters one by one"
    if parameter.kind is Parameter.POSITIONAL_ONLY:
        return "a model gives arguments by name, and this one goes only by place"
    return "" if parameter.name in hints else "it has no type"


def _described(kind: Any) -> Any:
    """A type in which a plain text beside it, as in `Annotated[str, "a city"]`, describes it."""
    if get_origin(kind) is not Annotated:
        return kind
    inside, *notes = get_args(kind)
    kept = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[inside, *kept]


def _default(parameter: Parameter) -> Any:
    value = parameter.default
    return value if isinstance(value, _SHOWN) else msgspec.field(default_factory=lambda: value)


def _schema(kind: Any, where: str) -> dict[str, Any]:
    if extras.is_pydantic_model(kind):
        return dict(kind.model_json_schema())
    definitions: dict[str, Any] = {}

    def inside(part: type) -> dict[str, Any]:
        if not extras.is_pydantic_model(part):
            raise TypeError(f"{part!r} has no JSON Schema")
        found = dict(part.model_json_schema())  # type: ignore[attr-defined]
        definitions.update(found.pop("$defs", {}))
        return found

    try:
        found = inlined(msgspec.json.schema(kind, schema_hook=inside))
    except TypeError as error:
        raise TargetError(f"a model cannot be told what it takes: {error}", where=where) from None
    if definitions:
        found = {**found, "$defs": {**definitions, **found.get("$defs", {})}}
    return found


def _decoded(data: bytes, kind: Any) -> Any:
    if extras.is_pydantic_model(kind):
        return kind.model_validate_json(data, strict=True)
    return msgspec.json.decode(data, type=kind, dec_hook=_foreign)


def _foreign(kind: type, value: Any) -> Any:
    """A pydantic model inside of something else."""
    try:
        return _decoded(codec.encode(value), kind)
    except ValueError as error:
        raise ValueError(_described_type(error)) from None


def _described_type(error: ValueError) -> str:
    """What is wrong, in one line; pydantic has several things to say."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors())


def _unknown(name: str, known: Mapping[str, Any] | tuple[()]) -> str:
    return f"there is no parameter {name!r}: {nearest(name, known)}"


def _bad(faults: list[str]) -> BadArguments:
    return BadArguments(f"the arguments do not fit: {'; '.join(faults)}")


# What all providers take.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class Tool:
    """A function that a model may call: its name, what it is for, and what it takes.

    `parameters` is a dataclass, struct or pydantic model, of which the handler gets one; without
    it they are those of the handler's signature. The handler may be async; a plain one runs in a
    thread. What it raises, and arguments that do not fit, are told to the model, which may mend
    them. `timeout` is for one call, in seconds.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> Tool("add", "Add two numbers.", add).spec.parameters["required"]
    ['a', 'b']
    """

    def __init__(
        self,
        name: str,
        description: str,
        handler: Callable[..., Any],
        parameters: Any = None,
        *,
        timeout: float | None = None,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise TargetError(
                f"{name!r} cannot be the name of a tool",
                fix="use letters, digits, _ and -, at most 64, and no digit first",
            )
        self.handler = handler
        self.timeout = timeout
        self._arguments = of_function(handler, name) if parameters is None else of_type(parameters, name)
        self.spec = ToolSpec(name, description, self._arguments.schema)

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return self.spec.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the handler as if it were no tool."""
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    async def answer(self, call: ToolCall, clock: Clock) -> ToolCall:
        """The call with its result or its error, and how long it took."""
        began = clock.monotonic()
        result, error = None, call.error
        if error is None:
            try:
                result = await self._run(call.arguments)
            except (StopRun, asyncio.CancelledError) as ended:
                if isinstance(ended, StopRun) or _is_cancelled():
                    raise
                error = "CancelledError: the tool was cancelled from inside"
            except BadArguments as misfit:
                error = str(misfit)
            except (Exception, SystemExit) as failure:
                # Command lines that are called as functions end like that.
                error = _told(failure)
        taken = (clock.monotonic() - began) * 1000.0
        return msgspec.structs.replace(call, result=result, error=error, duration_ms=taken)

    async def _run(self, arguments: dict[str, Any]) -> Any:
        args, kwargs = self._arguments.read(arguments)
        try:
            async with asyncio.timeout(self.timeout) as limit:
                result = await self._called(*args, **kwargs)
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"no answer within {self.timeout:g} s") from None
            raise
        try:
            return codec.plain(result)
        except codec.UNWRITABLE as error:
            raise TypeError(f"its result cannot be written as JSON: {error}") from None

    async def _called(self, *args: Any, **kwargs: Any) -> Any:
        waits = inspect.iscoroutinefunction(self.handler) or inspect.iscoroutinefunction(
            getattr(self.handler, "__call__", None)  # noqa: B004 - of objects too
        )
        if waits:
            return await self.handler(*args, **kwargs)
        result = await in_thread(functools.partial(self.handler, *args, **kwargs))
        return await result if inspect.isawaitable(result) else result


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, timeout: float | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
) -> Any:
    """Make a tool of a typed function; the first paragraph of its docstring says what it is for.

    >>> @tool
    ... def add(a: int, b: int) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> add.spec.description, add(2, 3)
    ('Add two numbers.', 5)
    """

    def made(function: Callable[..., Any]) -> Tool:
        told = _summary(function) if description is None else description
        return Tool(name or name_of(function), told, function, timeout=timeout)

    return made if function is None else made(function)


class Toolbox:
    """The tools of a main loop, by name.

    >>> def now() -> str: ...
    >>> [spec.name for spec in Toolbox([now]).specs]
    ['now']
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]]) -> None:
        made = [each if isinstance(each, Tool) else tool(each) for each in tools]
        self._tools = {each.name: each for each in made}
        twice = [each.name for each in made if self._tools[each.name] is not each]
        if twice:
            raise TargetError(
                "the tools cannot be told apart",
                problems=[Problem(name, "two tools have this name") for name in twice],
            )
        self.specs = tuple(each.spec for each in made)

    async def answer(self, call: ToolCall, clock: Clock) -> ToolCall:
        """The call as the tool answered it; a tool that is not there is told as an error."""
        found = self._tools.get(call.name)
        if found is not None:
            return await found.answer(call, clock)
        hint = nearest(call.name, self._tools)
        return msgspec.structs.replace(call, error=f"there is no tool {call.name!r}: {hint}")


def _summary(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    text = inspect.getdoc(function) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _told(failure: BaseException) -> str:
    try:
        return f"{type(failure).__name__}: {failure}"
    except Exception:
        return type(failure).__name__


def _is_cancelled() -> bool:
    """True if this task was told to end, rather than the tool having cancelled itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
