"""In what two evaluators of one name differ: which of their options, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from proctor import codec
from proctor.identity import is_other_scheme
from proctor.records.rubric_scores import RUBRIC
from proctor.records.run import EvaluatorSpec

# What is longer is not told word for word.
LONGEST = 40
WEIGHT = f"{RUBRIC}.weight"
_NOTHING = object()
# How a model or an embedder is called that is a function of the user's.
_FUNCTION = "python:"


class Term(NamedTuple):
    """An option by its path, as one run has it and as the other; without one it is the usual."""

    path: str
    mine: str
    theirs: str

    def told(self, a: str, b: str) -> str:
        """In words, with the names of both runs.

        >>> Term("weight", "2", "3").told("new", "old")
        'weight is 2 in new and 3 in old'
        """
        if max(len(self.mine), len(self.theirs)) > LONGEST:
            return f"{self.path} reads otherwise"
        return f"{self.path} is {self.mine} in {a} and {self.theirs} in {b}"


def terms_apart(mine: EvaluatorSpec, theirs: EvaluatorSpec) -> tuple[Term, ...]:
    """What two evaluators have not in common; nothing where only their code may differ."""
    what = [Term("it", mine.uses, theirs.uses)] if mine.uses != theirs.uses else []
    options = [mine.parameters, theirs.parameters]
    if is_other_scheme(mine.identity, theirs.identity):
        options = [_without_identities(parameters) for parameters in options]
    return (*what, *_apart("", *options))


def _without_identities(value: Any) -> Any:
    """Options without the identities of the evaluators in them."""
    if isinstance(value, Mapping):
        is_evaluator = "uses" in value and "name" in value
        return {
            key: _without_identities(item)
            for key, item in value.items()
            if not (is_evaluator and key == "identity")
        }
    return [_without_identities(item) for item in value] if isinstance(value, list) else value


def code_of(evaluator: EvaluatorSpec) -> str:
    """What may differ in an evaluator whose options are the same: a function that it asks.

    >>> code_of(EvaluatorSpec("tone", "rubric", {"adapter": "python:judge"}, "1f"))
    'the code of python:judge, or what it uses'
    """
    given = (value for value in evaluator.parameters.values() if isinstance(value, str))
    asked = next((value for value in given if value.startswith(_FUNCTION)), "")
    return f"the code{f' of {asked}' if asked else ''}, or what it uses"


def only_weight(apart: Iterable[Term]) -> bool:
    """True if nothing differs but how much a rubric counts in the total."""
    return [term.path for term in apart] == [WEIGHT]


def _apart(path: str, mine: Any, theirs: Any) -> Iterator[Term]:
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        for name in dict.fromkeys([*mine, *theirs]):
            inner = f"{path}.{name}" if path else str(name)
            yield from _apart(inner, mine.get(name, _NOTHING), theirs.get(name, _NOTHING))
    elif mine != theirs:
        yield Term(path, _shown(mine), _shown(theirs))


def _shown(value: Any) -> str:
    if value is _NOTHING:
        return "the usual"
    return value if isinstance(value, str) else codec.in_text(value)
