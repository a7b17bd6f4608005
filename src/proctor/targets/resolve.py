"""Turn a function, an address, a mapping or an object into a target."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from types import FunctionType
from typing import Any, NamedTuple, cast

import msgspec

from proctor.core import imports as importing
from proctor.core import optional as extras
from proctor.core.callables import is_async_callable, is_generator_callable
from proctor.core.identity import compute_identity, get_callable_name
from proctor.errors import Problem, TargetError, UsageError, suggest_name
from proctor.models.connect import is_model_address, suggest_address
from proctor.ports import Target, TargetLike
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample, type_name
from proctor.targets.agents import convert_agent_result, find_agent, has_frameworks, wrap_graph_input
from proctor.targets.replies import convert_execute_result, convert_runnable_result

# The options of each key of a mapping; None if its class checks them. The key `http` makes an `http.HttpTarget`. It
# is imported on first use: most programs need none, and a conversation resolves the target that it talks to here. The
# value of `uses` is the target itself, or its address.
_OPTIONS: Mapping[str, tuple[str, ...] | None] = {
    "command": ("cwd", "env"),
    "conversation": ("history", "max_turns", "output", "user"),
    "http": ("body", "headers", "method", "response", "stream", "timeout", "usage"),
    "model": None,
    "recorded": (),
    "uses": (),
}
_COMMON_KEYS = ("name", "version")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)
_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
# Attributes of a loop that do not affect its answers: its listeners, its source of requests, and,
# in loops of weakincentives, its process.
_TRANSIENT_ATTRIBUTES = frozenset({
    "bus", "_bus", "_dlq", "_heartbeat", "_lease_extender", "_lock", "_requests", "_running",
    "_shutdown_event", "_worker_id",
})  # fmt: skip


def as_target(target: TargetLike | None, *, name: str | None = None, version: str | None = None) -> Target:
    """Make a target from a function, an agent, a runnable, an address or a mapping.

    A string is `module:attribute`, `file.py:attribute`, a URL, or the address of a model such as
    `openai:gpt-4o-mini`; a mapping has one of `command`, `conversation`, `http`, `model` and `recorded`, or such a
    string under `uses`. `version` becomes part of the target's identity: change it after a change that Proctor cannot
    detect. With a version, runs do not warn about parts that the identity does not cover.

    >>> as_target(lambda question: "Paris", name="atlas").spec.name
    'atlas'
    >>> as_target({"command": ["cat"]}).spec.kind
    'command'
    """
    if isinstance(target, str):
        target, name = _read_address(target, name)
    if isinstance(target, Mapping):
        name = name or target.get("name")
        if version is None and target.get("version") is not None:
            version = str(target["version"])
        return _relabel(_from_mapping(target, name), name, version)
    if isinstance(getattr(target, "spec", None), TargetSpec):
        return _relabel(cast(Target, target), name, version)
    return _relabel(from_object(target, name), name, version)


def _read_address(address: str, name: str | None) -> tuple[Any, str | None]:
    """Return the mapping or the object at an address, and the name of the target."""
    if address.startswith(("http://", "https://")):
        # Only the address of a model contains a #; it is never sent to an endpoint.
        return {"model" if "#" in address else "http": address}, name
    if ".py:" not in address and is_model_address(address):
        return {"model": address}, name
    try:
        target = importing.import_object(address)
    except UsageError as error:
        model_hint = suggest_address(address)
        if ":" not in address:
            raise TargetError(
                f"{address!r} is not a target address",
                fix=f"name the function as well: {address}:FUNCTION"
                if address.endswith(".py")
                else f"{model_hint}; write a Python function as module:attribute or file.py:attribute",
            ) from None
        raise TargetError(
            f"the target cannot be used: {error.what}",
            where=error.where or address,
            fix=f"{model_hint} Otherwise {error.fix}" if model_hint else error.fix,
        ) from None
    if isinstance(target, str):
        raise TargetError("this is a string, not a function", where=address, fix="name a function of the module")
    if isinstance(getattr(target, "spec", None), TargetSpec):
        return target, name
    return target, name or address.rpartition(":")[2]


def _from_mapping(target: Mapping[str, Any], name: str | None) -> Target:
    kinds = [kind for kind in _OPTIONS if kind in target]
    if len(kinds) != 1:
        present_keys = ", ".join(kinds or map(str, target)) or "none"
        hints = "; ".join(f"{key}: {suggest_name(str(key), _OPTIONS)}" for key in target if key not in _COMMON_KEYS)
        raise TargetError(
            f"a target mapping needs exactly one of the keys {', '.join(_OPTIONS)}; got {present_keys}",
            where=name or "target",
            fix=f"keep only {kinds[0]}" if kinds else hints or 'write {"model": "openai:gpt-4o"}, for example',
        )
    (kind,) = kinds
    nested_keys: tuple[str, ...] = ()
    if kind == "http" and isinstance(target[kind], Mapping):
        # The endpoint may also be one mapping: {http: {url: …, body: …}}.
        nested_keys = ("url",)
        target = {**target, **target[kind], kind: target[kind].get("url")}
        target.pop("url", None)
    known_options = _OPTIONS[kind]
    options = {str(key): target[key] for key in target if key not in (kind, *_COMMON_KEYS)}
    unknown_options = [] if known_options is None else [key for key in options if key not in known_options]
    if unknown_options:
        names = (*(nested_keys or (kind,)), *(known_options or ()), *_COMMON_KEYS)
        raise TargetError(
            "some keys are unknown",
            where=name or "target",
            problems=[Problem(key, suggest_name(key, names)) for key in unknown_options],
            fix="correct or delete these keys",
        )
    if kind == "uses":
        return as_target(target[kind], name=name)
    make_target = getattr(importlib.import_module(f"proctor.targets.{kind}"), f"{kind.capitalize()}Target")
    made: Target = make_target(target[kind], **options)
    return made


def _relabel(target: Target, name: str | None, version: str | None) -> Target:
    """Give the target a name and a version; with a version, its identity covers everything."""
    spec = target.spec
    if name is not None:
        spec = msgspec.structs.replace(spec, name=name)
    if version is not None:
        spec = msgspec.structs.replace(spec, identity=f"{spec.identity}@{version}", uncovered=())
    return target if spec == target.spec else _RelabelledTarget(target, spec)


class _RelabelledTarget:
    """A target with another name or version."""

    __slots__ = ("blocking", "call", "check_options", "check_sample", "close", "spec")

    def __init__(self, target: Target, spec: TargetSpec) -> None:
        self.spec = spec
        self.blocking = target.blocking
        self.call = target.call
        self.check_options = target.check_options
        self.check_sample = getattr(target, "check_sample", None)
        self.close = target.close

    def __repr__(self) -> str:
        return f"{self.spec.kind} target {self.spec.name!r}"


def from_object(target: Any, name: str | None = None) -> PythonTarget:
    """Wrap an agent, an object with `execute` or `invoke`, or a function, partial, method or other callable."""
    if target is None:
        raise TargetError(
            "no target is set",
            fix="name one, such as app.py:answer; for recorded sessions, which need none, add --dataset-format auto "
            "(eval file: dataset: {path: …, format: auto}; Python: SessionDataset)",
        )
    name = name or get_callable_name(target)
    if inspect.isclass(target):
        has_call = any("__call__" in vars(base) for base in target.__mro__)
        is_runnable = has_call or any(hasattr(target, method) for method in ("execute", "ainvoke", "invoke"))
        example = f"an instance, such as {name}()" if is_runnable else f"a function, such as lambda text: {name}(text)"
        raise TargetError("a class is not a target", where=name, fix=f"pass {example}")
    if not inspect.isroutine(target) and not isinstance(target, functools.partial):
        if (agent := find_agent(target)) is not None:
            spec = TargetSpec(agent.name or name, "agent")
            return _make_target(agent.run, spec, agent.contents, is_async=agent.is_async)
        if callable(getattr(target, "execute", None)):
            return from_execute(target, name)
        if any(callable(getattr(target, method, None)) for method in ("ainvoke", "invoke")):
            return from_runnable(target, name)
    if callable(target):
        # Only a program with an agent framework pays for looking at its results.
        convert = convert_agent_result if has_frameworks() else None
        return _make_target(target, TargetSpec(name, "function"), target, convert)
    raise TargetError(
        f"{type_name(target)} is not a target",
        where="target",
        fix="pass a function, an agent, an object with execute or invoke, an address or a mapping",
    )


def _make_target(
    target: Callable[..., Any],
    spec: TargetSpec,
    contents: Any,
    convert: Callable[[Any], Any] | None = None,
    *,
    method: str = "",
    is_async: bool = False,
) -> PythonTarget:
    """Make a target that calls a function and, with `convert`, converts its result; its identity covers `contents`."""
    where = f"{spec.name}.{method}" if method else spec.name
    parameters = read_parameters(target, where)
    if is_generator_callable(target):
        raise TargetError(
            "the target is a generator, but only a complete output can be scored",
            where=where,
            fix="collect the pieces and return them together",
        )
    is_async = is_async or is_async_callable(target)
    identity, uncovered, parts = compute_identity(contents)
    spec = msgspec.structs.replace(spec, identity=identity, uncovered=uncovered, parts=dict(parts))
    return PythonTarget(spec, _make_call(target, convert, is_async=is_async), parameters, blocking=not is_async)


def _make_call(
    target: Callable[..., Any], convert: Callable[[Any], Any] | None, *, is_async: bool
) -> Callable[..., Any]:
    def call(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return _require_result(target(sample.input, **options))

    def call_async(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return target(sample.input, **options) if options else target(sample.input)

    if convert is None:
        return call_async if is_async else call

    def convert_result(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return convert(call(sample, options))

    async def convert_awaited(sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Any:
        return convert(await call_async(sample, options))

    return convert_awaited if is_async else convert_result


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


def from_runnable(target: Any, name: str) -> PythonTarget:
    """Wrap a runnable: call `ainvoke` if it has one, else `invoke`; options are keyword arguments.

    As elsewhere, the text of a chat model's reply is the output, and its tool calls and usage go into the session. The
    content of other chat messages is the output; other results are not changed.
    """
    method = "ainvoke" if hasattr(target, "ainvoke") else "invoke"
    invoke = getattr(target, method)
    if (wrap_input := wrap_graph_input(target)) is not None:
        invoke = _wrap_invoke(invoke, wrap_input)
    return _make_target(
        invoke,
        TargetSpec(name, "runnable"),
        _runnable_contents(target),
        convert_runnable_result,
        method=method,
        is_async=method == "ainvoke",
    )


def _wrap_invoke(invoke: Callable[..., Any], wrap_input: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(invoke)
    def invoke_with_messages(value: Any, *arguments: Any, **options: Any) -> Any:
        return invoke(wrap_input(value), *arguments, **options)

    return invoke_with_messages


def _runnable_contents(target: Any) -> list[Any]:
    """Return the contents that identify a runnable: its code and, for a chain, every step and prompt."""
    steps = getattr(target, "steps", ())
    load = extras.loaded_module("langchain_core.load")
    try:
        # LangChain's description contains the names of secrets, but not their values.
        description = None if load is None else load.dumpd(target)
    except (TypeError, ValueError):
        description = None
    return [target, list(steps) if isinstance(steps, list | tuple) else [], _without_repr(description)]


def _without_repr(description: Any) -> Any:
    """Remove `repr` strings, which may contain memory addresses."""
    if isinstance(description, dict):
        return {key: _without_repr(value) for key, value in description.items() if key != "repr"}
    return [_without_repr(item) for item in description] if isinstance(description, list) else description


def from_execute(target: Any, name: str) -> PythonTarget:
    """Wrap a main loop: the output is `response.output`, with the session.

    A loop with an async `aexecute` is called through that method.
    """
    contents = _loop_contents(target)
    return _make_target(
        _choose_method(target), TargetSpec(name, "execute"), contents, convert_execute_result, method="execute"
    )


def _choose_method(target: Any) -> Any:
    """Return `aexecute`, unless a subclass overrides only `execute`."""
    aexecute = getattr(target, "aexecute", None)
    if not callable(aexecute) or not is_async_callable(aexecute):
        return target.execute
    defined = (vars(base).keys() & {"execute", "aexecute"} for base in type(target).__mro__)
    return aexecute if "aexecute" in next(filter(None, defined), {"aexecute"}) else target.execute


def _loop_contents(target: Any) -> list[Any]:
    """Return the contents that identify a loop: the code of its classes, and its attributes.

    `execute` alone is not enough: it is often inherited, and the prompts are elsewhere.
    """
    code = [
        # The function behind a property, a static method or a class method.
        [f"{base.__qualname__}.{name}", getattr(value, "fget", None) or getattr(value, "__func__", value)]
        for base in type(target).__mro__
        if base is not object
        for name, value in vars(base).items()
        if isinstance(value, FunctionType) or not name.startswith("__")
    ]
    if not hasattr(target, "__dict__"):
        return [code, target.execute]
    state = {name: value for name, value in vars(target).items() if name not in _TRANSIENT_ATTRIBUTES}
    return [code, state]


class Parameters(NamedTuple):
    """The options of a target.

    `input_name` is the parameter for the input, if an option could have the same name; `option_names` are the options,
    `required` the options without a default; `takes_any` is True for `**kwargs`.
    """

    input_name: str | None
    option_names: frozenset[str]
    required: tuple[str, ...]
    takes_any: bool

    def check(self, options: Mapping[str, Any]) -> list[str]:
        """Return one sentence for each problem with a configuration's options."""
        problems = [problem for name in options if (problem := self._find_problem(name))]
        missing = [name for name in self.required if name not in options]
        return problems + [f"no configuration sets the required parameter {name!r}" for name in missing]

    def _find_problem(self, name: str) -> str:
        if name == self.input_name:
            return f"the option {name!r} has the name of the parameter for the input"
        if self.takes_any or name in self.option_names:
            return ""
        hint = suggest_name(name, self.option_names) if self.option_names else "the target takes no options"
        return f"unknown option {name!r}: {hint}"


def read_parameters(target: Callable[..., Any], where: str) -> Parameters:
    """Read the signature of a callable that is called as `function(input, **options)`."""
    try:
        parameters = [*inspect.signature(target).parameters.values()]
    except (TypeError, ValueError):
        # Some functions written in C have no signature.
        return Parameters(None, frozenset(), (), takes_any=True)
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise TargetError(
            "the target takes no input: it has no positional parameter",
            where=where,
            fix="add a first parameter for the input, as in def answer(question): …",
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

    def __init__(self, spec: TargetSpec, call: Callable[..., Any], parameters: Parameters, *, blocking: bool) -> None:
        self.spec = spec
        self.blocking = blocking
        self.call = call
        self.check_options = parameters.check

    def __repr__(self) -> str:
        return f"{self.spec.kind} target {self.spec.name!r}"

    async def close(self) -> None:
        """Do nothing: the callable belongs to the user."""
