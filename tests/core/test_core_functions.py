"""Small functions of the core, each by a few examples."""

from __future__ import annotations

import asyncio
import functools
from datetime import UTC, datetime
from typing import Any

import pytest

from proctor.core.callables import is_async_callable, resolve_hints
from proctor.core.http_status import is_loopback, parse_retry_after
from proctor.core.identity import contents, have_different_schemes
from proctor.core.identity.contents import is_project_file
from proctor.core.identity.named_files import is_key_file
from proctor.core.lazy import lazy_names
from proctor.core.names import UniqueNames
from proctor.core.optional import is_pydantic_model, loaded_module
from proctor.core.private_copy import private_copies
from proctor.core.resources import describe_conversion, describe_decode_error
from proctor.core.yaml_text import InvalidYAML, load_yaml, read_yaml
from tests.tables import each_row

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_repeated_names_get_numbers() -> None:
    names = UniqueNames()
    assert [names.make_unique(name) for name in ("chat", "chat", "chat-2", "chat")] == [
        *("chat", "chat-2", "chat-2-2", "chat-3")
    ]
    without_case = UniqueNames("_", key=str.casefold)
    assert [without_case.make_unique(name) for name in ("Chat", "chat")] == ["Chat", "chat_2"]


def test_a_value_that_occurs_twice_is_copied_once() -> None:
    output = ["a"]
    first, second = private_copies([output, output])
    first.append("b")
    assert (output, second) == (["a"], ["a", "b"])


def test_callables_are_looked_through_partials() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    assert is_async_callable(functools.partial(asyncio.sleep, 0))
    assert not is_async_callable(len)
    assert resolve_hints(functools.partial(add, 1))["b"] is int


@each_row(
    ("text", "seconds"),
    [
        ("1.5", 1.5),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("2026-05-01T12:00:30Z", 30.0),
        ("Fri, 01 May 2026 12:01:00 GMT", 60.0),
        ("1777636805", 5.0),
        ("1777636805000", 5.0),
        ("soon", None),
    ],
)
def test_retry_after_is_a_number_a_duration_or_a_date(text: str, seconds: float | None) -> None:
    assert parse_retry_after(text, NOON) == seconds


@pytest.mark.parametrize(
    ("host", "expected"), [("localhost", True), ("a.localhost", True), ("127.0.0.1", True), ("a.com", False)]
)
def test_loopback_hosts(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_text_that_is_not_utf8_is_located_with_its_likely_character() -> None:
    with pytest.raises(UnicodeDecodeError) as caught:
        b"name: a\ncity: caf\xe9".decode()
    assert describe_decode_error(caught.value) == "line 2 is not UTF-8 text: byte 0xe9 ('é' in Windows-1252)"
    assert describe_conversion("UTF-16", "qa.csv") == (
        "convert the file to UTF-8, for example: iconv -f UTF-16 -t UTF-8 qa.csv > utf8-qa.csv"
    )


def test_optional_modules_are_not_imported() -> None:
    assert loaded_module("surely_not_imported") is None
    assert not is_pydantic_model(int)


def test_names_of_a_package_are_loaded_on_first_use() -> None:
    load, names = lazy_names("proctor.core", {"errors": ("ProctorError",)})
    assert names() == ["ProctorError"]
    assert load("ProctorError").__name__ == "ProctorError"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'proctor.core' has no attribute 'Other'"):
        load("Other")


@pytest.mark.parametrize(
    ("value", "expected"), [([], True), (3, True), ({"a": 1}, True), ({"system": "be nice"}, False)]
)
def test_values_without_text_count_as_empty(value: Any, expected: bool) -> None:
    assert contents.is_empty_value(value) is expected


def test_files_of_the_project() -> None:
    assert is_project_file("<ipython-input-1>")
    assert not is_project_file(asyncio.__file__)
    assert not is_project_file(str(pytest.__file__))
    names = (".env", "tls/server.pem", "answer-key.md", "key.txt")
    assert [is_key_file(name) for name in names] == [True, True, False, False]


def test_the_package_itself_is_not_part_of_a_project() -> None:
    import proctor.engine.run

    assert not is_project_file(str(proctor.engine.run.__file__))


def test_identities_of_different_schemes_cannot_be_compared() -> None:
    assert have_different_schemes("0123456789abcdef", "2:0123456789abcdef")
    assert not have_different_schemes("2:0123456789abcdef@v1", "2:fedcba9876543210")
    assert not have_different_schemes("mine", "2:0123456789abcdef")


def test_yaml_is_read_with_the_lines_of_its_entries() -> None:
    value, lines = read_yaml("a: 1\nb:\n  - c: 2\n    c: 3\n  - 4\na: 5\n")
    assert value == {"a": 5, "b": [{"c": 3}, 4]}
    assert lines.repeated == [(("b", 0, "c"), 4), (("a",), 6)]
    assert lines.describe(("b", 1, "missing"), "eval.yaml") == "eval.yaml:5, b[1].missing"


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("a:\n\tb: 1", "the line is indented with a tab", 2),
        ("a: &a [*a]", "a part of the document contains itself", None),
        ("day: 2024-99-99", "month must be in 1..12", None),
        ("a: [", "a list or mapping is not closed", 1),
        ("vars: {question: How are you?}", "unexpected '?' in a list or mapping", 1),
    ],
)
def test_invalid_yaml_is_explained(text: str, what: str, line: int | None) -> None:
    with pytest.raises(InvalidYAML) as caught:
        load_yaml(text)
    assert (caught.value.what, caught.value.line) == (what, line)
    assert caught.value.where("f.yaml") == ("f.yaml" if line is None else f"f.yaml:{line}")
