"""Prices: the table, its order of precedence, and unknown costs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from proctor.core import resources
from proctor.errors import ModelError
from proctor.models.prices import Price, Prices, load_prices
from proctor.records.session import Usage
from tests.tables import each_row

USED = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)
MINI = Price(input=0.15, output=0.60, cached_input=0.075)


def test_cached_input_has_its_own_price() -> None:
    """0.6 M fresh at 0.15, 0.4 M cached at 0.075, 0.1 M output at 0.60: 0.09 + 0.03 + 0.06."""
    assert Prices({"m": MINI}).cost("m", USED) == pytest.approx(0.18)


def test_unknown_costs_are_not_guessed() -> None:
    """No price, no tokens, no price for the cache, too long an input: no cost."""
    prices = Prices({"m": Price(1, 2), "short": Price(1, 2, up_to=1000)})
    assert prices.cost("other", Usage(1, 1)) is None
    assert prices.cost("m", Usage(input_tokens=1)) is None
    assert prices.cost("m", Usage(output_tokens=1)) is None
    assert prices.cost("m", Usage(10, 1, cached_tokens=5)) is None
    assert prices.cost("short", Usage(1001, 1)) is None
    assert prices.cost("short", Usage(1000, 1)) == pytest.approx(0.001002)


@each_row(
    ("model", "found"),
    [
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("openai:gpt-4o-mini", "gpt-4o-mini"),
        ("openai:gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-opus-4-8", None),
        ("gemini:gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("gpt-4o-audio-preview", None),
        ("http://127.0.0.1:8080/v1#gpt-4o-mini", None),
        ("https://other.example/v1#gpt-4o", "https://other.example/v1#gpt-4o"),
    ],
)
def test_a_model_is_found_by_its_name_with_or_without_a_date(model: str, found: str | None) -> None:
    """A date or a revision is the same model, a version is another; private servers do not use the
    provider's prices.
    """
    names = ["gpt-4o", "gpt-4o-mini", "gpt-4o-2024-05-13", "claude-opus-4", "gemini-2.0-flash"]
    names.append("https://other.example/v1#gpt-4o")
    table = {name: Price(float(place), 1.0) for place, name in enumerate(names)}
    assert Prices(table).find(model) == (None if found is None else table[found])


def test_the_built_in_table_is_dated_and_valid() -> None:
    """Every entry can be read, and the file says that it can be replaced."""
    text = resources.text("models", "prices.yaml")
    assert yaml.safe_load(text)["as_of"].year >= 2026
    assert "To add or replace prices" in text
    price = Prices.standard({}).find("openai:gpt-4o-mini")
    assert price == MINI


def test_a_price_file_extends_and_overrides(tmp_path: Path) -> None:
    """The entries of PROCTOR_PRICES come first."""
    own = tmp_path / "prices.yaml"
    own.write_text("models: {gpt-4o-mini: {input: 1, output: 2}, house: {input: 3, output: 4}}")
    prices = Prices.standard({"PROCTOR_PRICES": str(own)})
    assert prices.find("openai:gpt-4o-mini") == Price(1, 2)
    assert prices.find("house") == Price(3, 4)
    assert prices.find("gpt-4o") is not None


def test_prices_are_accepted_in_every_form(tmp_path: Path) -> None:
    """A table, a file, a mapping, or None; all but a table extend the built-in one."""
    own = tmp_path / "own.json"
    own.write_text('{"house": {"input": 3, "output": 4}}')
    table = Prices({})
    assert load_prices(table) is table
    assert load_prices(str(own)).find("house") == Price(3, 4)
    assert load_prices({"house": {"input": 5, "output": 6}}).find("house") == Price(5, 6)
    assert load_prices({"models": {"house": {"input": 7, "output": 8}}}).find("house") == Price(7, 8)
    assert load_prices(None).find("gpt-4o") is not None
    with pytest.raises(ModelError, match="prices must be a file or a mapping, not int"):
        load_prices(3)


def test_all_faults_of_a_table_are_reported_at_once(tmp_path: Path) -> None:
    """Two wrong entries are two problems, each with its model."""
    own = tmp_path / "own.yaml"
    own.write_text("a: {input: -1, output: 2}\nb: {input: 1}\nc: {input: 1, output: 1}")
    with pytest.raises(ModelError) as caught:
        Prices.load(own)
    assert [problem.where for problem in caught.value.problems] == ["a.input", "b.output"]
    assert caught.value.where == str(own)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a: [", "not valid YAML: a list or mapping is not closed"),
        ("- 1", "is not a mapping"),
        ("", "is not a mapping"),
    ],
)
def test_an_invalid_table_is_refused(tmp_path: Path, content: str, expected: str) -> None:
    """A file that is not YAML, or not a mapping, is named with the reason."""
    own = tmp_path / "own.yaml"
    own.write_text(content)
    with pytest.raises(ModelError, match=expected):
        Prices.load(own)


def test_a_table_needs_no_models_key(tmp_path: Path) -> None:
    """{NAME: {input, output}} is read like one under `models:`."""
    own = tmp_path / "flat.yaml"
    own.write_text('"http://h/v1#m": {input: 3, output: 4}')
    prices = Prices.standard({"PROCTOR_PRICES": str(own)})
    assert prices.cost("http://h/v1#m", Usage(1_000_000, 1_000_000)) == 7.0


def test_a_missing_table_is_an_error(tmp_path: Path) -> None:
    """On connection, not later."""
    with pytest.raises(ModelError, match=r"file not found: .*none\.yaml"):
        Prices.standard({"PROCTOR_PRICES": str(tmp_path / "none.yaml")})


@given(st.integers(0, 10**7), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_cost_is_never_negative(tokens: int, output: int, cached: int) -> None:
    """Also where a provider counts more from its cache than went in."""
    cost = MINI.cost(Usage(tokens, output, cached))
    assert cost is not None
    assert cost >= 0
