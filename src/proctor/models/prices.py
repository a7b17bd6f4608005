"""The cost of a call, from a built-in price table that users can extend."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from proctor.core import resources
from proctor.core.resources import describe_os_error
from proctor.core.yaml_text import InvalidYAML, load_yaml
from proctor.errors import ModelError, Problem
from proctor.records.session import Usage
from proctor.records.validation import explain_parts

VARIABLE = "PROCTOR_PRICES"
# A date (2024-07-18, 20250929) or a revision (001): the same model at the same price.
_SNAPSHOT = re.compile(r"(.+)-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3})")
_FIX = "write each model as NAME: {input: …, output: …}, in USD for a million tokens"
_Amount = Annotated[float, msgspec.Meta(ge=0)]


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """USD for a million tokens; `up_to` is the longest input that the price applies to."""

    input: _Amount
    output: _Amount
    cached_input: _Amount | None = None
    up_to: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def cost(self, usage: Usage) -> float | None:
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        if self.up_to is not None and usage.input_tokens > self.up_to:
            return None
        cached = usage.cached_tokens or 0
        if cached and self.cached_input is None:
            return None
        uncached = max(0, usage.input_tokens - cached)
        total = uncached * self.input + usage.output_tokens * self.output
        return (total + cached * (self.cached_input or 0.0)) / 1_000_000


class Prices:
    """Prices by the name of the model, or by its whole address."""

    __slots__ = ("_by_name", "_default")

    def __init__(self, by_name: Mapping[str, Price], default: Price | None = None) -> None:
        self._by_name = dict(by_name)
        self._default = default

    @classmethod
    def standard(cls, environ: Mapping[str, str] | None = None) -> Prices:
        """Return the built-in table, extended by the file in PROCTOR_PRICES."""
        path = (os.environ if environ is None else environ).get(VARIABLE, "")
        return _built_in().extended(cls.load(path)) if path else _built_in()

    @classmethod
    def load(cls, path: str | Path) -> Prices:
        """Read a YAML or JSON file of {model: {input, output, …}}, with or without `models:` above it as in
        the built-in table.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            what = describe_os_error(error, "the price table cannot be read")
            raise ModelError(what, where=str(path), fix="check the path in prices= or PROCTOR_PRICES") from None
        return cls(_parse_table(text, str(path)))

    @classmethod
    def free(cls) -> Prices:
        """Return prices of 0, for models that run on this machine."""
        return cls({}, Price(0.0, 0.0, 0.0))

    def extended(self, other: Prices) -> Prices:
        """Merge two tables; the other table wins."""
        return Prices({**self._by_name, **other._by_name}, other._default or self._default)

    def find(self, model: str) -> Price | None:
        if model in self._by_name:
            return self._by_name[model]
        # The models of a private server can have any name, so only the whole address counts there.
        if "//" not in model:
            name = model.partition(":")[2] or model
            snapshot = _SNAPSHOT.fullmatch(name)
            for key in (name, snapshot[1] if snapshot else name):
                if key in self._by_name:
                    return self._by_name[key]
        return self._default

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return the cost of a call in USD, or None if it is unknown; it is never estimated."""
        price = self.find(model)
        return None if price is None else price.cost(usage)


def load_prices(prices: Any) -> Prices:
    """Read the option `prices=`: a table, a file, a mapping {model: {input, output}}, or None."""
    if prices is None:
        return Prices.standard()
    if callable(getattr(prices, "cost", None)):
        return prices  # type: ignore[no-any-return]
    if isinstance(prices, str | Path):
        return Prices.standard().extended(Prices.load(prices))
    if isinstance(prices, Mapping):
        return Prices.standard().extended(Prices(_check_table(prices, "prices")))
    raise ModelError(
        f"prices must be a file or a mapping, not {type(prices).__name__}",
        fix="pass a file, or a mapping {model: {input: …, output: …}} in USD per million tokens",
    )


@cache
def _built_in() -> Prices:
    return Prices(_parse_table(resources.text("models", "prices.yaml"), "prices.yaml"))


def _parse_table(text: str, where: str) -> dict[str, Price]:
    try:
        table = load_yaml(text)
    except InvalidYAML as error:
        what = f"not valid YAML: {error.what}"
        raise ModelError(what, where=error.where(where), fix=error.fix) from None
    return _check_table(table, where)


def _check_table(table: Any, where: str) -> dict[str, Price]:
    if isinstance(table, Mapping) and isinstance(table.get("models"), Mapping):
        table = table["models"]
    if not isinstance(table, Mapping):
        raise ModelError("the price table is not a mapping of models to prices", where=where, fix=_FIX)
    prices, problems = {}, []
    for name, price in table.items():
        try:
            prices[str(name)] = msgspec.convert(price, Price)
        except msgspec.ValidationError as error:
            problems.append(Problem(*explain_parts(error, str(name))))
    if problems:
        raise ModelError("the price table cannot be used", where=where, problems=problems, fix=_FIX)
    return prices
