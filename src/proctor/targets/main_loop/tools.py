"""Tools: typed functions that a model can call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from typing import Annotated, Any, NamedTuple, get_args, get_origin, overload

import msgspec

from proctor.core import optional as extras
from proctor.core.callables import is_async_callable, resolve_hints, unwrap_partial
from proctor.core.clock import Clock
from proctor.core.identity import get_callable_name
from proctor.core.threads import run_in_thread
from proctor.errors import Problem, StopRun, TargetError, suggest_name
from proctor.models.answer_format import decode_pydantic, describe_error, inline_root
from proctor.records import codec
from proctor.records.model import ToolSpec
from proctor.records.session import ToolCall

# Types of defaults that a schema can show.
_PLAIN_TYPES = str | int | float | bool | None
# The names that all providers accept.
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")

ParsedArguments = tuple[tuple[Any, ...], dict[str, Any]]


class InvalidArguments(ValueError):
    """A model called a tool with invalid arguments; the message helps the model to correct them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(f"the arguments are invalid: {'; '.join(problems)}")


class Arguments(NamedTuple):
    """The JSON Schema of a tool's arguments, and their parser."""

    schema: dict[str, Any]
    parse: Callable[[Mapping[str, Any]], ParsedArguments]


def make_type_arguments(record_type: Any, where: str) -> Arguments:
    """Use the fields of a dataclass, struct or pydantic model as the arguments."""
    if not is_record(record_type):
        raise TargetError(
            f"the parameters of a tool cannot have the type {record_type!r}",
            where=where,
            fix="pass a dataclass, a struct or a pydantic model with a field for each parameter",
        )
    schema = _make_schema(record_type, where)

    def parse(values: Mapping[str, Any]) -> ParsedArguments:
        known_parameters = () if schema.get("additionalProperties") else schema.get("properties", {})
        problems = [
            _unknown_parameter(name, known_parameters)
            for name in values
            if known_parameters and name not in known_parameters
        ]
        try:
            record = _decode(codec.encode(values), record_type)
        except ValueError as error:
            problems.append(describe_error(error))
        if problems:
            raise InvalidArguments(problems)
        return (record,), {}

    return Arguments(schema, parse)


def make_function_arguments(function: Callable[..., Any], where: str) -> Arguments:
    """Use the parameters of a function as the arguments, or the fields of its only parameter."""
    parameters = inspect.signature(function).parameters
    try:
        hints = resolve_hints(function, include_extras=True)
    except NameError as error:
        raise TargetError(
            f"the type of a parameter cannot be resolved: {error}",
            where=where,
            fix="import it where the tool is defined, and not only for type checkers",
        ) from None
    problems = [
        Problem(name, problem) for name, parameter in parameters.items() if (problem := _find_problem(parameter, hints))
    ]
    if problems:
        fix = "give every parameter a name and a type: def search(query: str, limit: int = 5)"
        raise TargetError("the function cannot be a tool", where=where, problems=problems, fix=fix)
    if len(parameters) == 1 and is_record(record_type := hints[next(iter(parameters))]):
        return make_type_arguments(record_type, where)
    types = {name: _describe_type(hints[name]) for name in parameters}
    required = [name for name, parameter in parameters.items() if parameter.default is Parameter.empty]
    fields: list[Any] = [
        (name, types[name]) if name in required else (name, types[name], _make_default(parameter))
        for name, parameter in parameters.items()
    ]
    struct = msgspec.defstruct(where, fields, kw_only=True)
    schema = {**_make_schema(struct, where), "additionalProperties": False}

    def parse(values: Mapping[str, Any]) -> ParsedArguments:
        problems = [_unknown_parameter(name, types) for name in values if name not in types]
        problems += [f"{name} is missing" for name in required if name not in values]
        parsed = {}
        for name, value in values.items():
            try:
                parsed[name] = _decode(codec.encode(value), types.get(name, Any))
            except ValueError as error:
                problems.append(f"{name}: {describe_error(error)}")
        if problems:
            raise InvalidArguments(problems)
        return (), parsed

    return Arguments(schema, parse)


def is_record(candidate: Any) -> bool:
    return isinstance(candidate, type) and (
        hasattr(candidate, "__dataclass_fields__")
        or issubclass(candidate, msgspec.Struct)
        or extras.is_pydantic_model(candidate)
    )


def _find_problem(parameter: Parameter, hints: Mapping[str, Any]) -> str:
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return "a schema cannot describe it; name the parameters one by one"
    if parameter.kind is Parameter.POSITIONAL_ONLY:
        return "a model passes arguments by name, and this one is positional-only"
    return "" if parameter.name in hints else "it has no type"


def _describe_type(hint: Any) -> Any:
    """Use a plain string in `Annotated[str, "a city"]` as the description."""
    if get_origin(hint) is not Annotated:
        return hint
    inner, *notes = get_args(hint)
    metadata = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[inner, *metadata]


def _make_default(parameter: Parameter) -> Any:
    value = parameter.default
    return value if isinstance(value, _PLAIN_TYPES) else msgspec.field(default_factory=lambda: value)


def _make_schema(record_type: Any, where: str) -> dict[str, Any]:
    if extras.is_pydantic_model(record_type):
        return dict(record_type.model_json_schema())
    definitions: dict[str, Any] = {}

    def pydantic_schema(inner: type) -> dict[str, Any]:
        if not extras.is_pydantic_model(inner):
            raise TypeError(f"{inner!r} has no JSON Schema")
        nested = dict(inner.model_json_schema())  # type: ignore[attr-defined]
        definitions.update(nested.pop("$defs", {}))
        return nested

    try:
        schema = inline_root(msgspec.json.schema(record_type, schema_hook=pydantic_schema))
    except TypeError as error:
        fix = "use str, int, float, bool, list, dict, a dataclass, a struct or a pydantic model as types"
        raise TargetError(f"a schema cannot describe its parameters: {error}", where=where, fix=fix) from None
    if definitions:
        schema = {**schema, "$defs": {**definitions, **schema.get("$defs", {})}}
    return schema


def _decode(data: bytes, value_type: Any) -> Any:
    if extras.is_pydantic_model(value_type):
        return value_type.model_validate_json(data, strict=True)
    return msgspec.json.decode(data, type=value_type, dec_hook=decode_pydantic)


def _unknown_parameter(name: str, known_parameters: Mapping[str, Any] | tuple[()]) -> str:
    return f"unknown parameter {name!r}: {suggest_name(name, known_parameters)}"


class Tool:
    """A function that a model can call: its name, its purpose and its parameters.

    `parameters` is a dataclass, struct or pydantic model, and the handler gets an instance of it; without it, the
    handler's signature defines the parameters. The handler may be async; a plain function runs in a thread. The model
    sees the handler's exceptions and invalid arguments, so that it can correct them. `timeout` limits one call, in
    seconds.

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
        if not _TOOL_NAME.fullmatch(name):
            raise TargetError(
                f"{name!r} is not a valid tool name",
                fix="use up to 64 letters, digits, _ and -; do not start with a digit",
            )
        self.handler = handler
        self.timeout = timeout
        self._arguments = (
            make_function_arguments(handler, name) if parameters is None else make_type_arguments(parameters, name)
        )
        self.spec = ToolSpec(name, description, self._arguments.schema)

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return self.spec.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the handler as a plain function."""
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    async def run_call(self, call: ToolCall, clock: Clock) -> ToolCall:
        """Run the tool; return the call with its result or error, and its duration."""
        started = clock.monotonic()
        result, error = None, call.error
        if error is None:
            try:
                result = await self._run(call.arguments)
            except (StopRun, asyncio.CancelledError) as stopped:
                if isinstance(stopped, StopRun) or _is_cancelled():
                    raise
                error = "CancelledError: the tool cancelled itself"
            except InvalidArguments as invalid_arguments:
                error = str(invalid_arguments)
            except (Exception, SystemExit) as failure:
                # Command-line programs that are called as functions raise SystemExit.
                error = _describe_exception(failure)
        duration_ms = (clock.monotonic() - started) * 1000.0
        return msgspec.structs.replace(call, result=result, error=error, duration_ms=duration_ms)

    async def _run(self, arguments: dict[str, Any]) -> Any:
        args, kwargs = self._arguments.parse(arguments)
        try:
            async with asyncio.timeout(self.timeout) as timer:
                if is_async_callable(self.handler):
                    result = await self.handler(*args, **kwargs)
                else:
                    result = await run_in_thread(functools.partial(self.handler, *args, **kwargs))
                    result = await result if inspect.isawaitable(result) else result
        except TimeoutError:
            if timer.expired():
                raise TimeoutError(f"no answer within {self.timeout:g} s") from None
            raise
        try:
            return codec.to_plain(result)
        except codec.ENCODE_ERRORS as error:
            raise TypeError(f"its result cannot be written as JSON: {error}") from None


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
    """Make a tool from a typed function; the first paragraph of its docstring is the description.

    >>> @tool
    ... def add(a: int, b: int) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> add.spec.description, add(2, 3)
    ('Add two numbers.', 5)
    """

    def make(function: Callable[..., Any]) -> Tool:
        text = description
        if text is None:
            docstring = inspect.getdoc(unwrap_partial(function)) or ""
            text = " ".join(docstring.partition("\n\n")[0].split())
        return Tool(name or get_callable_name(function), text, function, timeout=timeout)

    return make if function is None else make(function)


class Toolbox:
    """The tools of a main loop, by name."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]]) -> None:
        toolset = [item if isinstance(item, Tool) else tool(item) for item in tools]
        self._tools = {item.name: item for item in toolset}
        duplicates = [item.name for item in toolset if self._tools[item.name] is not item]
        if duplicates:
            raise TargetError(
                "tool names must be unique", problems=[Problem(name, "two tools have this name") for name in duplicates]
            )
        self.specs = tuple(item.spec for item in toolset)

    async def run_call(self, call: ToolCall, clock: Clock) -> ToolCall:
        """Run the tool that a call names; for an unknown tool, set the call's error."""
        handler = self._tools.get(call.name)
        if handler is not None:
            return await handler.run_call(call, clock)
        hint = suggest_name(call.name, self._tools)
        return msgspec.structs.replace(call, error=f"unknown tool {call.name!r}: {hint}")


def _describe_exception(failure: BaseException) -> str:
    try:
        return f"{type(failure).__name__}: {failure}"
    except Exception:
        return type(failure).__name__


def _is_cancelled() -> bool:
    """Return True if something other than the tool cancelled this task."""
    return (task := asyncio.current_task()) is not None and task.cancelling() > 0
