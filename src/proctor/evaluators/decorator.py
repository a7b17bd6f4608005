"""The `evaluator` decorator, and the name, category and options it gives a function."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import msgspec

from proctor.core.aliases import COMMON_NAMES, use_common_names
from proctor.core.identity import get_callable_name
from proctor.errors import EvaluatorError, Problem, join_choices, suggest_name
from proctor.evaluators.options import (
    SESSION_MARK,
    ParameterInfo,
    find_literal_problems,
    find_wrong_types,
    format_type,
    read_factory_options,
    read_function_options,
    read_signature,
)
from proctor.evaluators.score_conversion import preview
from proctor.records.run import EvaluatorSpec
from proctor.records.score import Score

MARK = "__evaluator__"
# Holds the async original of a function that can also be called outside an event loop.
ASYNC_ATTRIBUTE = "__async_evaluator__"
# Holds the original of a built-in evaluator that checks its arguments.
UNCHECKED = "__unchecked_evaluator__"
_BUILT_IN = "proctor.evaluators."
# A union that is not inside brackets.
_UNION = re.compile(r" \| (?![^\[]*\])")

F = TypeVar("F", bound=Callable[..., Any])
CheckOptions = Callable[[Mapping[str, Any]], None]
Spread = Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]


class EvaluatorInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The catalogue entry of an evaluator.

    `needs` lists required evidence: "expected", "session", "epochs". `pure` means fast and without input or output. A
    `factory` makes the evaluator from its parameters; `parts` names the parameter that holds other evaluators.
    `threshold` is the lowest passing value; `field` is the path it reads by default.
    """

    name: str
    category: str = "custom"
    summary: str = ""
    parameters: tuple[ParameterInfo, ...] = ()
    needs: tuple[str, ...] = ()
    pure: bool = False
    factory: bool = False
    parts: str = ""
    threshold: float = 0.5
    field: str = "output"


class CallError(EvaluatorError, TypeError):
    """A built-in evaluator was called with wrong arguments."""


def raise_for_types(function: Callable[..., Any], values: Mapping[str, Any], label: str) -> None:
    """Raise a `CallError` that names the values which do not have the declared type of their parameter."""
    info = get_info(function)
    types = {parameter.name: parameter.type for parameter in info.parameters} if info is not None else {}
    problems = []
    for name, hint in find_wrong_types(function, values).items():
        expected = join_choices(_UNION.split(types.get(name, format_type(hint))))
        # The type of evaluators is a union of all their forms, which nobody wants to read.
        expected = {"list[evaluator]": "a list of evaluators", "evaluator": "an evaluator"}.get(expected, expected)
        fix = f"write {name}=[exact_match]" if "list of evaluators" in expected else f"pass another value as {name}"
        problems.append(Problem(name, f"must be {expected}, got {preview(values[name])}", fix))
    raise_call_error(problems, label)


def raise_call_error(problems: Sequence[Problem], label: str) -> None:
    """Raise a `CallError` that lists all problems of a call, if there are any."""
    if len(problems) == 1:
        fix = problems[0].fix or f"pass another value as {problems[0].where}"
        raise CallError(str(problems[0]), where=label, fix=fix) from None
    if problems:
        raise CallError("its parameters are invalid", where=label, fix="pass other values", problems=problems) from None


def raise_for_literals(
    function: Callable[..., Any], values: Mapping[str, Any], label: str, check: CheckOptions | None
) -> None:
    """Raise a `CallError` for values that are not among the literal values, with the problems that `check` finds."""
    problems = find_literal_problems(function, values)
    if problems and check is not None:
        try:
            check(values)
        except EvaluatorError as error:
            problems += error.problems or [Problem("", error.what)]
        except (TypeError, AttributeError):
            # A value of a wrong type; the literal values are named first.
            pass
    raise_call_error(problems, label)


class EvaluatorMark(NamedTuple):
    """The catalogue entry of an evaluator, its option check, and the options that its factory received.

    `spread` turns the parameters of one eval file entry into the parameters of several evaluators.
    """

    info: EvaluatorInfo
    check: CheckOptions | None = None
    options: Mapping[str, Any] | None = None
    spread: Spread | None = None


@overload
def evaluator(function: F, /) -> F: ...
@overload
def evaluator(
    *,
    name: str | None = None,
    category: str = "custom",
    pure: bool = False,
    factory: bool = False,
    threshold: float = 0.5,
    needs: tuple[str, ...] | None = None,
    parts: str = "",
    field: str = "output",
    check: CheckOptions | None = None,
    spread: Spread | None = None,
) -> Callable[[F], F]: ...
def evaluator(
    function: Any = None, /, *, check: CheckOptions | None = None, spread: Spread | None = None, **info: Any
) -> Any:
    """Give a function a name and category as an evaluator; you can still call it as before.

    Its keyword-only parameters are its options. With `factory=True` all its parameters are options and it returns the
    evaluator; `needs` then lists the evidence that the returned evaluator needs. `pure=True` promises that it is fast
    and does no input or output, so it may run without a thread. `check` validates options and raises an
    `EvaluatorError`. `field` is the path it reads by default, such as `usage.total_tokens`. `spread` lets one entry of
    an eval file define several evaluators.

    >>> @evaluator(category="style", pure=True)
    ... def shouts(output):
    ...     "Passes if the output is in capitals."
    ...     return output.isupper()
    >>> shouts("HELLO")
    True
    >>> get_info(shouts).summary
    'Passes if the output is in capitals.'
    """

    def mark(function: F) -> F:
        evaluator_mark = EvaluatorMark(describe_evaluator(function, **info), check, spread=spread)
        # Also set on the original: the mark is part of the identity of the code that a run calls.
        setattr(function, MARK, evaluator_mark)
        if inspect.isfunction(function) and function.__module__.startswith(_BUILT_IN):
            return _explain_wrong_calls(function, evaluator_mark)  # type: ignore[return-value]
        return function

    return mark if function is None else mark(function)


def _explain_wrong_calls(function: Callable[..., Any], mark: EvaluatorMark) -> Callable[..., Any]:
    explain, label, check = functools.partial(_raise_wrong_call, mark.info, function), mark.info.name, mark.check
    raise_literals = raise_for_literals
    parameters, aliases, rename = inspect.signature(function).parameters, COMMON_NAMES.keys(), use_common_names

    def call(*args: Any, **options: Any) -> Any:
        if not aliases.isdisjoint(options):
            options = rename(options, parameters)
        if options and options.keys() <= parameters.keys():
            raise_literals(function, options, label, check)
        try:
            return function(*args, **options)
        except (TypeError, AttributeError):
            explain(args, options)
            raise

    # Uses the globals of the module, so that doctest finds the function there.
    wrapper = types.FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    setattr(wrapper, UNCHECKED, function)
    return functools.wraps(function)(wrapper)


def _raise_wrong_call(
    info: EvaluatorInfo, function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> None:
    """Raise a `CallError` if the arguments do not match; ignore an error from inside the function."""
    signature = inspect.signature(function)
    try:
        arguments = signature.bind(*args, **options).arguments
    except TypeError as error:
        bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        what, fix = str(error), f"call {info.name}{inspect.Signature(bare)}"
    else:
        raise_for_types(function, arguments, info.name)
        return
    names = [parameter.name for parameter in info.parameters]
    unknown_name = next((name for name in options if name not in signature.parameters), None)
    if unknown_name is not None:
        what = f"unknown parameter {unknown_name!r}"
        aliases = [alias for alias, name in COMMON_NAMES.items() if name in names]
        hint = suggest_name(unknown_name, [*names, *aliases])
        parameter_list = f"its parameters are {', '.join(names) or 'none'}"
        fix = f"{hint} ({parameter_list})" if hint.startswith("did you mean") else parameter_list
    elif not info.factory and not args:
        listed = ", ".join([info.name, *(f"{name}={value!r}" for name, value in options.items())])
        what, fix = "it was called without an output", f"use functools.partial({listed}) to set options"
    raise CallError(what, where=info.name, fix=fix) from None


def needs_session(function: F) -> F:
    """Mark an evaluator that needs the session although its signature does not show it."""
    setattr(function, SESSION_MARK, True)
    mark = get_mark(function)
    if mark is not None:
        needs = tuple(dict.fromkeys((*mark.info.needs, "session")))
        info = msgspec.structs.replace(mark.info, needs=needs)
        setattr(function, MARK, mark._replace(info=info))
    return function


def tag_evaluator(function: F, *, factory: Callable[..., Any], **options: Any) -> F:
    """Add the factory's name and options to an evaluator that the factory made."""
    info = msgspec.structs.replace(describe_evaluator(factory, factory=True), factory=False)
    product: Any = function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        def call_anywhere(*args: Any, **arguments: Any) -> Any:
            return resolve_score(function(*args, **arguments))

        setattr(call_anywhere, ASYNC_ATTRIBUTE, function)
        product = call_anywhere
    setattr(product, MARK, EvaluatorMark(info, options=options))
    return product  # type: ignore[no-any-return]


def resolve_score(score: Any) -> Any:
    """Return the result of a coroutine, or the coroutine itself inside a running event loop."""
    # No loop can be running unless asyncio has been imported.
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return score
    from proctor.core import bridge

    return bridge.run(score)


def get_mark(obj: Any) -> EvaluatorMark | None:
    mark = getattr(obj, MARK, None)
    return mark if isinstance(mark, EvaluatorMark) else None


def get_info(obj: Any) -> EvaluatorInfo | None:
    mark = get_mark(obj)
    return None if mark is None else mark.info


def is_factory(obj: Any) -> bool:
    """Return True for marked factories and for classes."""
    info = get_info(obj)
    return isinstance(obj, type) or (info is not None and info.factory and inspect.isroutine(obj))


def describe_evaluator(
    obj: Any, *, name: str | None = None, factory: bool = False, parts: str = "", **details: Any
) -> EvaluatorInfo:
    """Return the catalogue entry of any evaluator, marked or not."""
    info = get_info(obj)
    if info is not None and is_factory(obj) == info.factory:
        return info
    label = name or get_name(obj)
    needs = details.pop("needs", None)
    if factory or isinstance(obj, type):
        parameters = read_factory_options(obj, label).describe()
        if isinstance(obj, type):
            parameters += _describe_evaluate_options(obj, parameters, label)
        factory = True
    else:
        call = get_callable(obj, label)
        signature = read_signature(call, label)
        parameters = read_function_options(call, signature).describe()
        needs = signature.needs if needs is None else needs
    while isinstance(obj, functools.partial):
        obj = obj.func
    return EvaluatorInfo(
        label,
        summary=(inspect.getdoc(obj) or "").strip().partition("\n")[0],
        parameters=tuple(_set_evaluator_type(p) if p.name == parts else p for p in parameters),
        needs=needs or (),
        factory=factory,
        parts=parts,
        **details,
    )


def _describe_evaluate_options(
    evaluator_class: type, constructor: tuple[ParameterInfo, ...], label: str
) -> tuple[ParameterInfo, ...]:
    method = getattr(evaluator_class, "evaluate", None)
    if not inspect.isfunction(method):
        return ()
    bound = method.__get__(evaluator_class)
    names = {parameter.name for parameter in constructor}
    options = read_function_options(bound, read_signature(bound, label)).describe()
    return tuple(parameter for parameter in options if parameter.name not in names)


def get_callable(obj: Any, label: str) -> Callable[..., Any]:
    """Return the function to call: the evaluator itself, or the `evaluate` method of an object."""
    method = None if inspect.isroutine(obj) else getattr(obj, "evaluate", None)
    if callable(method):
        return method  # type: ignore[no-any-return]
    obj = getattr(obj, ASYNC_ATTRIBUTE, None) or getattr(obj, UNCHECKED, obj)
    if callable(obj):
        return obj  # type: ignore[no-any-return]
    if isinstance(obj, str):
        raise EvaluatorError(
            f"{obj!r} is the name of an evaluator, not an evaluator",
            fix=f"pass the function itself, or Registry.standard().build({obj!r})",
        )
    fix = "pass a function that returns a Score, a boolean or a number from 0 to 1, or the name of an evaluator"
    if isinstance(obj, Score):
        fix = "pass the evaluator without calling it, such as exact_match instead of exact_match(output, expected)"
    raise EvaluatorError(f"{preview(obj)} is not callable and has no `evaluate` method", where=label, fix=fix)


def get_name(obj: Any) -> str:
    """Return the name of an evaluator."""
    while isinstance(obj, functools.partial):
        obj = obj.func
    info = getattr(obj, "spec", None) or get_info(obj)
    if isinstance(info, EvaluatorSpec | EvaluatorInfo):
        return info.name
    custom_name = _read_custom_name(obj)
    if custom_name or isinstance(obj, type):
        class_name = getattr(obj, "name", None)
        return custom_name or (class_name if isinstance(class_name, str) else "") or obj.__name__
    name = get_callable_name(obj)
    if inspect.ismethod(obj) and name in ("evaluate", "__call__"):
        return get_name(obj.__self__)
    outer, separator, _ = str(getattr(obj, "__qualname__", "")).rpartition(".<locals>.evaluate")
    if separator and name == "evaluate":
        # A factory usually calls its inner function `evaluate`, so use the factory's name.
        return outer.rpartition(".")[2]
    return "lambda" if name == "<lambda>" else name


def _read_custom_name(obj: Any) -> str:
    """Return `evaluator_name`, which is a string or a method without arguments."""
    name = getattr(obj, "evaluator_name", None)
    if callable(name):
        name = name()
    return name if isinstance(name, str) else ""


def _set_evaluator_type(parameter: ParameterInfo) -> ParameterInfo:
    is_list = parameter.type.startswith("list")
    return msgspec.structs.replace(parameter, type="list[evaluator]" if is_list else "evaluator")
