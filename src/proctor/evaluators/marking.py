"""The mark that gives a function its name and category as an evaluator."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import msgspec

from proctor.core.identity import name_of
from proctor.errors import EvaluatorError, nearest
from proctor.evaluators.evidence import SESSION_MARK, shape_of
from proctor.evaluators.options import ParameterInfo, options_of_factory, options_of_function
from proctor.evaluators.verdict import shown
from proctor.records.run import EvaluatorSpec

MARK = "__evaluator__"
# Where a function that can be called anywhere has the async one.
ASYNC = "__async_evaluator__"
# Where a built-in evaluator that checks how it is called has the function itself.
UNCHECKED = "__unchecked_evaluator__"
_BUILT_IN = "proctor.evaluators."

F = TypeVar("F", bound=Callable[..., Any])
CheckOptions = Callable[[Mapping[str, Any]], None]
Spread = Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]


class EvaluatorInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An evaluator as the catalogue shows it.

    `needs` names what it has nothing to say without: "expected", "session", "epochs". `pure` is
    quick and without input or output. A `factory` makes the evaluator from its parameters; `parts`
    names the parameter that holds other evaluators. `threshold` is the least number that passes,
    `field` the path of what it looks at where no field is chosen for it.
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
    """A built-in evaluator was called with arguments that it does not take."""


class Marking(NamedTuple):
    """What the mark holds: the catalogue's entry, a check of the options, and how it was made.

    `spread` tells parameters that stand for several evaluators apart.
    """

    info: EvaluatorInfo
    check: CheckOptions | None = None
    given: Mapping[str, Any] | None = None
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
    function: Any = None, /, *, check: CheckOptions | None = None, spread: Spread | None = None, **terms: Any
) -> Any:
    """Give a function its name and category as an evaluator; it stays the same function.

    Its keyword-only parameters are its options. With `factory=True` all its parameters are, and
    it returns the evaluator; what that needs cannot be read from the factory, so `needs` says it.
    `pure=True` promises that it is quick and neither reads nor writes anything, so that it may
    run without a thread. `check` looks at given options and raises an `EvaluatorError`. `field`
    is the path of what it looks at, `usage.total_tokens` say, where no field is chosen for it.
    `spread` gives the parameters of each, where one entry of an eval file stands for several.

    >>> @evaluator(category="style", pure=True)
    ... def shouts(output):
    ...     "Passes if the output is in capitals."
    ...     return output.isupper()
    >>> shouts("HELLO")
    True
    >>> info_of(shouts).summary
    'Passes if the output is in capitals.'
    """

    def mark(function: F) -> F:
        marking = Marking(describe(function, **terms), check, spread=spread)
        # On the function itself too: the mark is part of the identity of what a run calls.
        setattr(function, MARK, marking)
        if inspect.isfunction(function) and function.__module__.startswith(_BUILT_IN):
            return _with_checked_call(function, marking.info)  # type: ignore[return-value]
        return function

    return mark if function is None else mark(function)


def _with_checked_call(function: Callable[..., Any], info: EvaluatorInfo) -> Callable[..., Any]:
    """A built-in evaluator that explains a call with wrong arguments; runs call it directly."""
    explain = functools.partial(_raise_call_error, info, function)

    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError:
            explain(args, options)
            raise

    # With the globals of its module, or doctest would not find it there.
    found = types.FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    setattr(found, UNCHECKED, function)
    return functools.wraps(function)(found)


def _raise_call_error(
    info: EvaluatorInfo, function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> None:
    """Raise a `CallError` if the arguments do not fit; a TypeError from inside is left alone."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        raise _call_error(info, signature, args, options, str(error)) from None


def _call_error(
    info: EvaluatorInfo,
    signature: inspect.Signature,
    args: Sequence[Any],
    options: Mapping[str, Any],
    fault: str,
) -> CallError:
    """What is wrong with a call, and how the evaluator is called."""
    names = [parameter.name for parameter in info.parameters]
    unknown = [name for name in options if name not in signature.parameters]
    if unknown:
        listed = ", ".join(names) or "none"
        fix = f"{nearest(unknown[0], names)} Its parameters are: {listed}"
        return CallError(f"there is no parameter {unknown[0]!r}", where=info.name, fix=fix)
    if not info.factory and not args:
        given = ", ".join([info.name, *(f"{name}={value!r}" for name, value in options.items())])
        fix = f"set its parameters with functools.partial({given})"
        return CallError("it is called without an output to judge", where=info.name, fix=fix)
    return CallError(f"{fault}", where=info.name, fix=f"call {info.name}{signature}")


def needs_session(function: F) -> F:
    """Mark an evaluator that wants the session where its parameters do not tell.

    >>> @needs_session
    ... def quiet(*evidence):
    ...     output, expected, session = evidence
    ...     return len(session) == 0
    """
    setattr(function, SESSION_MARK, True)
    marking = marking_of(function)
    if marking is not None:
        needs = tuple(dict.fromkeys((*marking.info.needs, "session")))
        info = msgspec.structs.replace(marking.info, needs=needs)
        setattr(function, MARK, marking._replace(info=info))
    return function


def made(function: F, *, by: Callable[..., Any], **given: Any) -> F:
    """Mark an evaluator that a factory made with the factory's name and the options it was given.

    >>> @evaluator(factory=True, needs=())
    ... def longer_than(length):
    ...     def evaluate(output):
    ...         return len(output) > length
    ...     return made(evaluate, by=longer_than, length=length)
    >>> info_of(longer_than(3)).name
    'longer_than'
    """
    info = msgspec.structs.replace(describe(by, factory=True), factory=False)
    if inspect.iscoroutinefunction(function):
        function = _callable_anywhere(function)
    setattr(function, MARK, Marking(info, given=given))
    return function


def _callable_anywhere(function: F) -> F:
    """An async evaluator that gives its score outside an event loop, and is awaited inside one."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return settled(function(*args, **options))

    setattr(call, ASYNC, function)
    return call  # type: ignore[return-value]


def settled(score: Any) -> Any:
    """What a coroutine comes to, outside a running event loop; inside one, the coroutine.

    >>> async def later():
    ...     return 0.75
    >>> settled(later())
    0.75
    """
    # Imported by now if a loop can be running at all.
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return score
    from proctor.core import bridge

    return bridge.run(score)


def marking_of(thing: Any) -> Marking | None:
    """The mark of a function or object, or None."""
    found = getattr(thing, MARK, None)
    return found if isinstance(found, Marking) else None


def info_of(thing: Any) -> EvaluatorInfo | None:
    """What the catalogue shows of a marked function, or None for an unmarked one."""
    marking = marking_of(thing)
    return None if marking is None else marking.info


def is_factory(thing: Any) -> bool:
    """True for what makes an evaluator and is none itself: marked factories, and classes."""
    info = info_of(thing)
    marked = info is not None and info.factory and inspect.isroutine(thing)
    return isinstance(thing, type) or marked


def describe(
    thing: Any, *, name: str | None = None, factory: bool = False, parts: str = "", **terms: Any
) -> EvaluatorInfo:
    """What the catalogue shows of any evaluator, marked or not.

    >>> def short(output, *, limit: int = 80):
    ...     "Passes if the output is short."
    >>> describe(short).parameters[0].default
    80
    """
    found = info_of(thing)
    if found is not None and is_factory(thing) == found.factory:
        return found
    label = name or known_as(thing)
    needs = terms.pop("needs", None)
    if factory or isinstance(thing, type):
        parameters = options_of_factory(thing, label).describe()
        if isinstance(thing, type):
            parameters += _options_of_evaluate(thing, parameters, label)
        factory = True
    else:
        call = call_of(thing, label)
        shape = shape_of(call, label)
        parameters = options_of_function(call, shape).describe()
        needs = shape.needs if needs is None else needs
    return EvaluatorInfo(
        label,
        summary=_first_line(thing),
        parameters=tuple(_named_part(p) if p.name == parts else p for p in parameters),
        needs=needs or (),
        factory=factory,
        parts=parts,
        **terms,
    )


def _options_of_evaluate(
    kind: type, before: tuple[ParameterInfo, ...], label: str
) -> tuple[ParameterInfo, ...]:
    """What the `evaluate` of a class takes besides what its objects are made with."""
    method = getattr(kind, "evaluate", None)
    if not inspect.isfunction(method):
        return ()
    bound = method.__get__(kind)
    names = {parameter.name for parameter in before}
    found = options_of_function(bound, shape_of(bound, label)).describe()
    return tuple(parameter for parameter in found if parameter.name not in names)


def call_of(thing: Any, label: str) -> Callable[..., Any]:
    """What is called: the thing itself, or the `evaluate` of an object that has one."""
    method = None if inspect.isroutine(thing) else getattr(thing, "evaluate", None)
    if callable(method):
        return method  # type: ignore[no-any-return]
    thing = getattr(thing, ASYNC, None) or getattr(thing, UNCHECKED, thing)
    if callable(thing):
        return thing  # type: ignore[no-any-return]
    if isinstance(thing, str):
        raise EvaluatorError(
            f"{thing!r} is the name of an evaluator, not an evaluator",
            fix=f"give the function itself, or Registry.standard().build({thing!r})",
        )
    raise EvaluatorError(f"{shown(thing)} is neither callable nor has it an `evaluate` method", where=label)


def known_as(thing: Any) -> str:
    """The name that people know an evaluator by.

    >>> known_as(functools.partial(known_as)), known_as(lambda output: True)
    ('known_as', 'lambda')
    """
    while isinstance(thing, functools.partial):
        thing = thing.func
    told = getattr(thing, "spec", None) or info_of(thing)
    if isinstance(told, EvaluatorSpec | EvaluatorInfo):
        return told.name
    if isinstance(thing, type):
        return _own_name(thing) or thing.__name__
    if own := _told_name(thing):
        return own
    name = name_of(thing)
    owner = getattr(thing, "__self__", None)
    if inspect.ismethod(thing) and name in ("evaluate", "__call__"):
        return known_as(owner)
    outside, inside, _ = str(getattr(thing, "__qualname__", "")).rpartition(".<locals>.evaluate")
    if inside and name == "evaluate":
        # The usual way to write a factory: the function inside has no name of its own.
        return outside.rpartition(".")[2]
    return "lambda" if name == "<lambda>" else name


def _own_name(kind: type) -> str:
    """The name that a class gives its evaluators."""
    name = _told_name(kind) or getattr(kind, "name", None)
    return name if isinstance(name, str) else ""


def _told_name(thing: Any) -> str:
    """What `evaluator_name` says, a text or a method without arguments."""
    name = getattr(thing, "evaluator_name", None)
    if callable(name):
        name = name()
    return name if isinstance(name, str) else ""


def _first_line(thing: Any) -> str:
    while isinstance(thing, functools.partial):
        thing = thing.func
    return (inspect.getdoc(thing) or "").strip().partition("\n")[0]


def _named_part(parameter: ParameterInfo) -> ParameterInfo:
    many = parameter.type.startswith("list")
    return msgspec.structs.replace(parameter, type="list[evaluator]" if many else "evaluator")
