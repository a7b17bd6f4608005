"""Parameters of an evaluator, set on an object by a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proctor.errors import EvaluatorError, nearest
from proctor.evaluators.marking import describe
from proctor.registry import Registry


class Settings:
    """What a function sets is a parameter of the evaluator; what is none is refused."""

    def __init__(self, evaluator: str, known: tuple[str, ...]) -> None:
        vars(self).update(_evaluator=evaluator, _known=known, _given={})

    def __setattr__(self, name: str, value: Any) -> None:
        if self._known and name not in self._known:
            raise EvaluatorError(
                f"it has no parameter {name!r}",
                where=self._evaluator,
                fix=nearest(name, self._known),
            )
        self._given[name] = value

    def __getattr__(self, name: str) -> Any:
        given = vars(self)["_given"]
        if name in given:
            return given[name]
        raise AttributeError(f"{name!r} was not set")


def settings_of(
    configure: Callable[[Any], object], evaluator: Any, registry: Registry
) -> dict[str, Any]:
    """The parameters that a function sets.

    >>> def strict(config):
    ...     config.case_sensitive = True
    >>> settings_of(strict, "contains", Registry.standard())
    {'case_sensitive': True}
    """
    named = isinstance(evaluator, str)
    info = registry.describe(evaluator) if named else describe(evaluator)
    settings = Settings(info.name, tuple(parameter.name for parameter in info.parameters))
    configure(settings)
    given: dict[str, Any] = vars(settings)["_given"]
    return given
