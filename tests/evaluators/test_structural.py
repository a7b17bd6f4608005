"""The three structural evaluators, as a run sees them."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest
from benchmarks.quality import structure

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.structural import Draft, format_compliance, json_validity, schema_match
from proctor.wiring.registry import Registry
from tests.support import ROOT
from tests.tables import each_row

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "mail": {"type": "string", "format": "email"},
        "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


class Struct(msgspec.Struct):
    name: str
    age: int = 0


class Model(pydantic.BaseModel):
    name: str
    age: int = 0


@dataclasses.dataclass
class Data:
    name: str
    age: int = 0


def folder(name: str) -> Path:
    """A folder of the data, or the test is skipped and says why."""
    found = DATA / name
    if not found.is_dir():
        pytest.skip(f"there is no {found} (set PROCTOR_DATA)")
    return found


def registry() -> Registry:
    """Return a registry of built-in evaluators that does not depend on installed entry points."""
    registry = Registry()
    for name in ("structural", "rules", "numeric.numbers", "combination"):
        registry.load_plugin(f"proctor.evaluators.{name}")
    return registry


@pytest.mark.no_cover
def test_json_is_judged_as_the_parsing_suite_does() -> None:
    figure = structure.json_suite(folder("09_json/JSONTestSuite/test_parsing"))
    assert figure.value == 0


@pytest.mark.parametrize("draft", ["7", "2020-12"])
def test_schemas_are_judged_as_the_schema_suite_does(draft: str) -> None:
    figures = structure.schema_suite(folder("09_json/JSON-Schema-Test-Suite"), draft)
    assert [figure.value for figure in figures] == [0, 0]


def test_valid_json_says_what_it_was_judged_by() -> None:
    score = json_validity('{"a": [1, 2.5e3, null]}')
    assert (score.value, score.reason, score.details) == (1.0, "", {"method": "rfc8259"})


def test_the_reason_has_the_position_of_broken_json() -> None:
    score = json_validity('{\n  "a": NaN\n}')
    assert score.reason == "line 2, column 8: JSON has no NaN"
    assert (score.details["line"], score.details["column"]) == (2, 8)


def test_repeated_keys_pass_with_a_word() -> None:
    score = json_validity('{"a": 1,\n "\\u0061": 2}')
    assert score.passed
    assert score.details["duplicate_keys"] == ["a (line 2, column 2)"]
    assert "duplicate keys: a (line 2, column 2)" in score.reason


class Color(enum.Enum):
    RED = 1


class Name(enum.StrEnum):
    RED = "red"


@each_row(
    ("output", "passed"),
    [
        ("```json\n[1]\n```", True),
        ("\n~~~\n[1]\n~~~~\n", True),
        (b"```\n[1]\n```", True),
        ("[1]", True),
        ("```json\n[1]", False),
        ("Here you are:\n```json\n[1]\n```", False),
        ("```json\n[1]\n``", False),
        (b"```\n\xff\n```", False),
    ],
)
def test_a_fence_is_allowed_when_asked_for(output: Any, passed: bool) -> None:
    assert json_validity(output, allow_fences=True).passed is passed


def test_places_count_the_lines_of_the_fence() -> None:
    score = json_validity("\n```json\n[1,\n2,]\n```", allow_fences=True)
    assert score.reason == "line 4, column 3: trailing comma before ']'"


@pytest.mark.parametrize(
    ("output", "reason_part"),
    [
        ({"a": [1, None, "x"]}, ""),
        ([None], ""),
        (Struct("Ann"), ""),
        (Model(name="Ann"), ""),
        ({"a": {"b": float("inf")}}, "a.b: JSON has no inf"),
        (["\ud800"], "0: a lone surrogate is not a character"),
        ([object()], "0: an object of type object cannot be written as JSON"),
        ((1, ("x",)), ""),
        ([date(2024, 2, 29)], "0: JSON has no date"),
        ({"price": Decimal("0.5")}, "price: JSON has no Decimal"),
        (datetime(2024, 2, 29, tzinfo=UTC), "JSON has no datetime"),
        ({"id": UUID(int=1)}, "id: JSON has no UUID"),
        ({"color": Color.RED}, "color: JSON has no Color"),
        ({"color": Name.RED}, ""),
        (dataclasses.make_dataclass("Order", ["prices"])([Decimal("0.5")]), ""),
        ({3, 4}, "JSON has no set"),
        ({"tags": [{"b"}]}, "tags.0: JSON has no set"),
        ([frozenset[int]()], "0: JSON has no frozenset"),
        ({"file": b"%PDF"}, "file: JSON has no bytes"),
        ({"a": 1}.keys(), "JSON has no dict_keys"),
        (dataclasses.make_dataclass("Note", ["tags"])({"b"}), "tags: JSON has no set"),
        (msgspec.defstruct("Note", ["file"])([b"%PDF"]), "file.0: JSON has no bytes"),
        (msgspec.defstruct("Note", ["file"])(date(2024, 2, 29)), ""),
        ({"a": {(1, 2): 3}}, "a: JSON has no keys of type tuple"),
        ({b"a": 1}, "JSON has no keys of type bytes"),
        ({4: 1, None: 2}, ""),
    ],
)
def test_data_is_valid_if_it_can_be_written(output: Any, reason_part: str) -> None:
    score = json_validity(output)
    assert (score.passed, score.reason) == (not reason_part, reason_part)


def test_data_that_contains_itself_is_not_json() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert json_validity(endless).reason == "a list cannot be written as JSON (RecursionError)"


def test_every_misfit_is_listed_with_its_path() -> None:
    score = schema_match(PERSON)({"age": -1, "tags": ["a", 5, 6], "x": 1})
    assert (score.value, score.details["error_count"]) == (0.0, 5)
    message = {(one["path"], one["rule"]) for one in score.details["errors"]}
    assert message == {
        ("", "additionalProperties"),
        ("age", "minimum"),
        ("tags.1", "anyOf"),
        ("tags.2", "anyOf"),
        ("", "required"),
    }
    assert score.reason.endswith("; and 2 more")
    one_of = next(one for one in score.details["errors"] if one["path"] == "tags.1")
    assert one_of["branches"] == [['tags.1: 5 is not of type "string"'], ['tags.1: 5 is not of type "null"']]


def test_a_long_value_is_cut_in_the_words() -> None:
    score = schema_match({"type": "integer"})({"text": "x" * 10_000})
    assert len(score.reason) < 120
    assert score.reason.endswith('is not of type "integer"')


def test_at_most_a_hundred_schema_errors_are_listed() -> None:
    score = schema_match({"items": {"type": "integer"}})(["x"] * 500)
    assert len(score.details["errors"]) == 100
    assert score.reason.endswith("and more than 97 more")


def test_a_text_is_read_as_json_first() -> None:
    fits = schema_match({"type": "object"})
    assert fits('{"a": 1}').passed
    assert fits("{a: 1}").reason == "not JSON: line 1, column 2: expected a key in double quotes, got 'a'"
    assert not fits("```\n{}\n```").passed
    assert schema_match({"type": "object"}, allow_fences=True)("```\n{}\n```").passed


def test_a_text_can_be_the_data_itself() -> None:
    short = schema_match({"type": "string", "maxLength": 3}, parse=False)
    assert short("abc").passed
    assert not short("[12]").passed
    assert schema_match({"type": "array"})("[12]").passed


def test_numbers_too_great_for_a_float_are_numbers() -> None:
    """1e400 is JSON; it must not become infinity, nor pass for small."""
    assert schema_match({"type": "number"})("1e400").passed
    assert not schema_match({"maximum": 5})("1e400").passed


def test_json_nested_too_deep_is_an_error_and_no_verdict() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert json_validity(deep).passed
    assert schema_match(True)(deep).status == "error"


def test_data_that_cannot_be_json_fails_the_schema() -> None:
    assert schema_match(True)({"a": float("nan")}).reason == "not JSON: a: JSON has no nan"


def test_half_of_a_surrogate_pair_is_an_error() -> None:
    assert json_validity('"\\ud800"').passed
    assert schema_match({"maxLength": 5})('"\\ud800"').status == "error"


def test_formats_are_asserted_unless_switched_off() -> None:
    output = {"name": "Ann", "mail": "nobody"}
    assert not schema_match(PERSON)(output).passed
    assert not schema_match(PERSON, draft="7")(output).passed
    assert schema_match(PERSON, formats=False)(output).passed


@pytest.mark.parametrize("draft", ["4", "6", "7", "2019-09", "2020-12"])
@pytest.mark.parametrize(
    ("name", "valid", "invalid"),
    [
        ("uuid", "12345678-1234-4234-8234-123456789abc", "12345678"),
        ("duration", "P3DT4H", "3 days"),
        ("email", "ann@example.org", "Ann <ann@example.org>"),
        ("date", "2024-02-29", "2023-02-29"),
    ],
)
def test_formats_are_asserted_in_every_draft(draft: Draft, name: str, valid: str, invalid: str) -> None:
    match = schema_match({"format": name}, draft=draft, parse=False)
    assert match(valid).passed
    assert not match(invalid).passed


def test_the_draft_is_what_the_schema_says_or_the_option() -> None:
    """Tuples are told by prefixItems since 2020-12, by items before."""
    new = {"prefixItems": [{"type": "integer"}]}
    assert not schema_match(new)(["x"]).passed
    assert schema_match(new, draft="7")(["x"]).passed
    message = {"$schema": "http://json-schema.org/draft-07/schema#", **new}
    assert schema_match(message, draft="2020-12")(["x"]).passed
    assert schema_match(True, draft="7")(1).passed


@pytest.mark.parametrize("kind", [Struct, Model, Data, f"{__name__}:Struct"])
def test_a_class_can_be_the_schema(kind: Any) -> None:
    fits = schema_match(kind)
    assert fits('{"name": "Ann", "age": 3}').passed
    assert fits({"name": "Ann", "age": "old"}).reason == "age: 'old' is not of type \"integer\""


def test_generic_types_can_be_the_schema() -> None:
    assert not schema_match(list[Struct])('[{"name": 1}]').passed


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_file_can_be_the_schema(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"schema.{ending}"
    path.write_text(json.dumps(PERSON), encoding="utf-8")
    assert schema_match(str(path))({"name": "Ann"}).passed
    attached = attach(schema_match(path))
    assert attached.spec.parameters["schema"] == PERSON


def test_nothing_is_downloaded() -> None:
    elsewhere = {"$ref": "http://localhost:9/person.json"}
    with pytest.raises(EvaluatorError, match="is not in schemas") as refused:
        schema_match(elsewhere)
    assert "schemas={…}" in refused.value.fix
    given = schema_match(elsewhere, schemas={"http://localhost:9/person.json": PERSON})
    assert not given({}).passed


@each_row(
    ("schema", "message"),
    [
        ({"properties": {"a": {"minimum": "x"}}}, "properties.a.minimum: 'x' is not of type"),
        ({"pattern": "(a"}, "'(a' is not a \"regex\""),
        ({"$ref": "#/$defs/nowhere"}, "does not exist"),
        ('{"type": ', "the schema is not JSON: line 1, column 10"),
        ("nowhere.json", "file not found: nowhere.json"),
        (f"{__name__}:Nobody", "has no attribute 'Nobody'"),
        (42, "42 is not a schema"),
        (type("Odd", (), {"__module__": "odd"}), "has no schema"),
    ],
)
def test_a_broken_schema_is_refused_when_it_is_made(schema: Any, message: str) -> None:
    with pytest.raises(EvaluatorError) as refused:
        schema_match(schema)
    assert message in str(refused.value)


def test_a_broken_yaml_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "schema.yml"
    path.write_text("a: [", encoding="utf-8")
    with pytest.raises(EvaluatorError, match=r"schema\.yml:1: not valid YAML: a list or mapping is not closed"):
        schema_match(path)


def test_other_schemas_are_looked_at_too() -> None:
    with pytest.raises(EvaluatorError, match="Invalid URI"):
        schema_match({}, schemas={":::": {}})


def test_an_unknown_draft_is_refused() -> None:
    with pytest.raises(EvaluatorError, match=r"draft must be .*, got '9'"):
        schema_match({}, draft="9")  # type: ignore[arg-type]


def test_a_pattern_that_takes_too_long_is_an_error() -> None:
    slow = {"properties": {"a": {"pattern": r"^(a|a)*\1c$"}}}
    assert schema_match(slow)({"a": "a" * 60}).status == "error"
    assert schema_match({**slow, "required": ["b"]})({"a": "a" * 60}).value == 0.0


def test_the_evaluators_can_be_written_in_an_eval_file() -> None:
    built = registry().build({"schema_match": {"schema": PERSON, "draft": "7"}})
    again = registry().build(msgspec.json.decode(msgspec.json.encode(built.spec), type=type(built.spec)))
    assert built.spec.identity == again.spec.identity
    assert again({"name": "Ann"}).passed
    assert registry().build({"format_compliance": "date"})("2024-02-29").passed
    either = {"format_compliance": {"format": ["uuid", "csv"], "columns": ["a", "b"]}}
    assert registry().build(either)("a,b\n1,2").passed
    assert registry().build("json_validity")("[]").passed


def test_loading_the_evaluators_loads_no_parser() -> None:
    import subprocess

    code = "import sys, proctor.evaluators.structural; print(*sys.modules)"
    message = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jsonschema_rs", "markdown_it", "yaml", "html.parser"} & set(message.stdout.split())


def test_of_several_formats_any_will_do() -> None:
    either = format_compliance(["ipv4", "uuid"])
    assert either("10.0.0.1").details == {"method": "parser", "format": "ipv4"}
    assert either("ten").reason == (
        "not ipv4: it is not an IPv4 address: Expected 4 octets in 'ten'; not uuid: 'ten' is not a UUID (RFC 9562)"
    )


def test_a_given_up_pattern_is_an_error_unless_another_format_fits() -> None:
    pattern = r"(a|a)*\1c"
    slow = "a" * 60
    assert format_compliance("regex", pattern=pattern)(slow).status == "error"
    assert format_compliance(["regex", "hex"], pattern=pattern)(slow).passed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "emial"}, "did you mean 'email'?"),
        ({"format": []}, "no format is selected"),
        ({"format": 5}, "unknown format 5"),
        ({"format": "date", "pattern": "x"}, "pattern: not an option of date"),
        ({"format": "regex"}, "pattern: the format regex requires a pattern"),
        ({"format": "regex", "pattern": "("}, "'(' is not a regular expression"),
        ({"format": "csv", "delimiter": ";;"}, "delimiter must be one character"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError) as refused:
        format_compliance(**options)
    assert message in str(refused.value)


def test_a_target_that_returns_none_fails() -> None:
    score = json_validity(None)
    assert (score.passed, score.reason) == (False, "the output is None: the target returned nothing")
    assert json_validity("null").passed is True
