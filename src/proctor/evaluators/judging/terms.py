"""The terms that every judge is asked on: which model, how warm, how long, from where it passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from proctor.errors import EvaluatorError
from proctor.records.numbers import is_fraction, is_number

if TYPE_CHECKING:
    from proctor.evaluators.judging.opinion import Asking

Temperature = float | Literal["auto"] | None


def connected(adapter: Any) -> Any:
    """The model that is meant, by its address or as it is."""
    # Addresses are looked up among what is installed, which takes a moment.
    from proctor.connections import provider

    return provider(adapter)


def asking(
    temperature: Temperature,
    max_tokens: int | None,
    *,
    logprobs: bool = False,
    samples: int = 1,
    remind: bool = True,
) -> Asking:
    """How a judge is asked, or what is wrong with it."""
    from proctor.evaluators.judging.opinion import Asking

    if temperature == "auto":
        # Several opinions at temperature 0 would be one opinion, several times.
        temperature = 0.0 if samples == 1 else None
    if temperature is not None and not (is_number(temperature) and temperature >= 0):
        raise EvaluatorError(f"a temperature is a number from 0 up, got {temperature!r}")
    return Asking(temperature, max_tokens, logprobs, remind)


def check_terms(
    where: str,
    threshold: float | None,
    *,
    combine: str = "mean",
    **counts: int | None,
) -> None:
    """Refuse a pass mark, a rule or a count that cannot be one."""
    if combine not in ("mean", "vote"):
        raise EvaluatorError(f"opinions combine by mean or vote, not {combine!r}", where=where)
    if threshold is not None and not is_fraction(threshold):
        raise EvaluatorError(f"a pass mark is from 0 to 1, got {threshold!r}", where=where)
    for name, count in counts.items():
        if count is not None and not (is_number(count) and count == int(count) >= 1):
            raise EvaluatorError(f"{name} is a whole number from 1 up, got {count!r}", where=where)
