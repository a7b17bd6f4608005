"""Tools: typed functions that a model may call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, overload

import msgspec

from proctor import codec
from proctor.clock import Clock
from proctor.errors import Problem, StopRun, TargetError, nearest
from proctor.identity import name_of
from proctor.mainloop.arguments import BadArguments, of_function, of_type
from proctor.records.model import ToolSpec
from proctor.records.session import ToolCall
from proctor.threads import in_thread

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
        self._arguments = (
            of_function(handler, name) if parameters is None else of_type(parameters, name)
        )
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
