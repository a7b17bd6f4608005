"""What a callable takes besides its input, read once so that options are checked before a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, NamedTuple

from proctor.errors import TargetError, nearest

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
