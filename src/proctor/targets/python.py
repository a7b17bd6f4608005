"""Python callables as targets: called as `function(input, **options)`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from proctor.errors import TargetError
from proctor.identity import examine
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.targets.parameters import Parameters, parameters_of

Call = Callable[..., Any]


class PythonTarget:
    """A target that runs in this process; how it is called is settled when it is made.

    `call` is a ready-made closure, so that a call costs no more than the function itself.
    """

    __slots__ = ("blocking", "call", "check_options", "spec")

    def __init__(
        self, spec: TargetSpec, call: Call, parameters: Parameters, *, blocking: bool
    ) -> None:
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

    async def call_and_wait(
        sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0
    ) -> Any:
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
