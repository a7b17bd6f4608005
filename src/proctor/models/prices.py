"""What a call costs: from a table that ships with the package and is the user's to replace."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from proctor.core import resources
from proctor.core.yaml_text import load_yaml
from proctor.errors import ModelError, Problem
from proctor.records.session import Usage

VARIABLE = "PROCTOR_PRICES"
_MILLION = 1_000_000
# A day (2024-07-18, 20250929) or a revision (001): the same model at the same price.
_SNAPSHOT = re.compile(r"(.+)-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3})")
_SHAPE = "write each model as NAME: {input: …, output: …}, in USD for a million tokens"
_Amount = Annotated[float, msgspec.Meta(ge=0)]


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a million tokens cost in USD; `up_to` is the longest input for which this holds."""

    input: _Amount
    output: _Amount
    cached_input: _Amount | None = None
    up_to: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def of(self, usage: Usage) -> float | None:
        """What this usage costs, or None if the table does not say."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        if self.up_to is not None and usage.input_tokens > self.up_to:
            return None
        cached = usage.cached_tokens or 0
        if cached and self.cached_input is None:
            return None
        fresh = max(0, usage.input_tokens - cached)
        spent = fresh * self.input + usage.output_tokens * self.output
        return (spent + cached * (self.cached_input or 0.0)) / _MILLION


class Prices:
    """Prices by the name of the model, or by its whole address.

    >>> prices = Prices({"gpt-4o-mini": Price(input=0.15, output=0.60)})
    >>> prices.cost("openai:gpt-4o-mini-2024-07-18", Usage(input_tokens=1000, output_tokens=100))
    0.00021
    >>> prices.cost("openai:gpt-4o", Usage(input_tokens=1000, output_tokens=100)) is None
    True
    """

    __slots__ = ("_by_name", "_otherwise")

    def __init__(self, by_name: Mapping[str, Price], otherwise: Price | None = None) -> None:
        self._by_name = dict(by_name)
        self._otherwise = otherwise

    @classmethod
    def standard(cls, environ: Mapping[str, str] | None = None) -> Prices:
        """The table that ships with the package, with the file named in PROCTOR_PRICES over it.

        >>> Prices.standard({}).find("openai:gpt-4o").output
        10.0
        """
        own = (os.environ if environ is None else environ).get(VARIABLE, "")
        return _shipped().extended(cls.load(own)) if own else _shipped()

    @classmethod
    def load(cls, path: str | Path) -> Prices:
        """A table of one's own: a YAML or JSON file of {model: {input, output, …}}, which may
        stand under `models:` as in the table that ships with the package.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"the price table cannot be read: {error}", where=str(path)) from None
        return cls(_read(text, str(path)))

    @classmethod
    def free(cls) -> Prices:
        """For models that run on one's own machine: everything costs nothing.

        >>> Prices.free().cost("local:smollm2", Usage(input_tokens=9, output_tokens=1))
        0.0
        """
        return cls({}, Price(0.0, 0.0, 0.0))

    def extended(self, other: Prices) -> Prices:
        """Both tables together; where both name a model, the other one counts."""
        return Prices({**self._by_name, **other._by_name}, other._otherwise or self._otherwise)

    def find(self, model: str) -> Price | None:
        """The price of a model, or None if the table does not have it."""
        if model in self._by_name:
            return self._by_name[model]
        # A server of one's own may call its models what it likes, so there only the whole
        # address counts.
        if "//" not in model:
            name = model.partition(":")[2] or model
            for each in (name, _without_snapshot(name)):
                if each in self._by_name:
                    return self._by_name[each]
        return self._otherwise

    def cost(self, model: str, usage: Usage) -> float | None:
        """What a call cost in USD, or None where it is not known; it is never guessed."""
        price = self.find(model)
        return None if price is None else price.of(usage)


def prices_from(given: Any) -> Prices:
    """What was given as `prices=`: a table, a file, a mapping {model: {input, output}}, nothing."""
    if given is None:
        return Prices.standard()
    if callable(getattr(given, "cost", None)):
        return given  # type: ignore[no-any-return]
    if isinstance(given, str | Path):
        return Prices.standard().extended(Prices.load(given))
    if isinstance(given, Mapping):
        return Prices.standard().extended(Prices(_checked(given, "prices")))
    raise ModelError(
        f"prices cannot be a {type(given).__name__}",
        fix="give a file, or a mapping {model: {input: …, output: …}} in USD per million tokens",
    )


@cache
def _shipped() -> Prices:
    # Read once: it is part of the package and does not change.
    return Prices(_read(resources.text("models", "prices.yaml"), "prices.yaml"))


def _without_snapshot(name: str) -> str:
    found = _SNAPSHOT.fullmatch(name)
    return found[1] if found else name


def _read(text: str, where: str) -> dict[str, Price]:
    import yaml

    try:
        table = load_yaml(text)
    except (yaml.YAMLError, ValueError) as error:
        told = " ".join(str(error).split())
        raise ModelError(f"the price table is not YAML: {told}", where=where) from None
    return _checked(table, where)


def _checked(table: Any, where: str) -> dict[str, Price]:
    """Prices by name, with or without `models:` above them."""
    if isinstance(table, Mapping) and isinstance(table.get("models"), Mapping):
        table = table["models"]
    if not isinstance(table, Mapping):
        raise ModelError("the price table is not a mapping of models to prices", where=where, fix=_SHAPE)
    found, problems = {}, []
    for name, price in table.items():
        try:
            found[str(name)] = msgspec.convert(price, Price)
        except msgspec.ValidationError as error:
            problems.append(Problem(str(name), str(error)))
    if problems:
        raise ModelError("the price table cannot be used", where=where, problems=problems, fix=_SHAPE)
    return found
