"""Each format by what it takes and what it refuses, with the reason and the place."""

from __future__ import annotations

import csv
import datetime as dt
import uuid
from typing import Any

import pytest

from proctor import attach
from proctor.evaluators.formats.catalogue import FORMATS
from proctor.evaluators.structural import format_compliance
from tests.evaluators.growth import grows_linearly
from tests.tables import each_row

DOCUMENT = "<!DOCTYPE html>\n<html><body>\n<h1>x</h1><p>one<p>two<br></body></html>"

TAKEN: dict[str, list[Any]] = {
    "email": ["ann@example.org", '"a b"@example.org', " a@b "],
    "url": ["https://example.org/a?b=c#d", "ftp://[::1]:21/x"],
    "uri": ["mailto:ann@example.org", "urn:isbn:0451450523"],
    "hostname": ["example.org", "localhost"],
    "ipv4": ["192.168.0.1"],
    "ipv6": ["::1", "::ffff:1.2.3.4"],
    "phone": ["+4915123456789"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", uuid.UUID(int=7)],
    "date": ["2024-02-29", dt.date(2024, 2, 29)],
    "time": ["12:00", "23:59:60Z", "24:00:00", "08:30:00.125+05:30"],
    "datetime": ["2024-02-29T12:00:00", "2024-02-29 12:00Z", "2024-02-29t12:00:00,5-0800"],
    "rfc3339": ["2024-02-29T12:00:00Z", "2024-02-29T12:00:00.25+01:00"],
    "duration": ["P3DT12H", "PT0.5S", "P2W", "P1Y2M"],
    "number": ["1", "-0.5", ".5", "6.02e23", 5, 5.5],
    "integer": ["42", "-7", 42],
    "boolean": ["true", "False", True],
    "base64": ["aGVsbG8=", "aGVsbG8h"],
    "base64url": ["-_-_", "aGVsbG8", "aGVsbG8="],
    "hex": ["0xDEADbeef", "ff0"],
    "semver": ["1.0.0", "2.0.0-rc.1+build.5", "1.0.0-0a"],
    "json": ['{"a": 1}', {"a": 1}],
    "yaml": ["a: 1\nb:\n  - x", "- 1\n- 2", "a: &x {k: 1}\nb:\n  <<: *x\n  c: *x"],
    "toml": ['[tool]\nname = "x"\n'],
    "python": ["def f(x):\n    return x\n", '"\\d"'],
    "xml": ["<a><b c='d'/></a>", "\n <?xml version='1.0'?><a/>", "<!DOCTYPE a SYSTEM 'x.dtd'><a/>"],
    "html": [DOCUMENT, "<svg><path/></svg>", "a < b <b>c</b>", "<script>if (a<b) {}</script>"],
    "markdown": [
        "# A\n\n## B\n\nplain *text*, [a link](http://x) and [another][ref]\n\n[ref]: http://y",
        "```py\nx = [1](2\n```\n\n> ~~~~\n> ```\n> ~~~~",
        "| a | b |\n|---|:-:|\n| 1 \\| 2 | 3 |",
        "a|b\n-|-\n1|2",
        "as in [1][2], or a[i][j], or f[x](y)",
    ],
    "csv": ['a,b\n1,"x, y\nz"\n\n3,4\n', b"a,b\n1,2"],
    "tsv": ["a\tb\n\n1\t2\n"],
}
REFUSED: dict[str, list[tuple[Any, str]]] = {
    "email": [("ann@", "not an email address"), ("Ann <a@b.de>", "not an email address")],
    "url": [("example.org", "not a URI"), ("mailto:x@y.z", "has no host"), ("http://a:99999", "port out of range")],
    "uri": [("not one", "not a URI")],
    "hostname": [("-a.de", "not the name of a host")],
    "ipv4": [("1.2.3.400", "Octet 400"), ("01.2.3.4", "Leading zeros")],
    "ipv6": [("1::2::3", "At most one"), ("fe80::1%eth0", "has a zone")],
    "phone": [("0049 30 123", "E.164"), ("+1234567890123456", "E.164")],
    "uuid": [("123e4567", "not a UUID")],
    "date": [("2023-02-29", "out of range for month"), ("29.02.2024", "YYYY-MM-DD")],
    "time": [("25:00", "is not a time of day"), ("noon", "HH:MM"), ("12:00+24:00", "+24:00 is not an offset")],
    "datetime": [("2024-02-29", "YYYY-MM-DDTHH"), ("2023-02-29T12:00", "is not a date")],
    "rfc3339": [
        ("2024-02-29T12:00:00", "no offset"),
        ("2024-02-29T12:00Z", "no seconds"),
        ("2024-02-29T24:00:00Z", "midnight"),
        ("soon", "does not have the form"),
    ],
    "duration": [("P", "a duration"), ("PT", "a duration"), ("P0.5DT1H", "a duration")],
    "number": [("1,000", "not a number"), (True, "a boolean"), (float("nan"), "no nan")],
    "integer": [("5.0", "not an integer"), (5.5, "it is a number, not a string: 5.5")],
    "boolean": [("yes", "not true or false"), (1, "it is a number")],
    "base64": [("a b=", "line 1, column 2"), ("aGk", "incorrect padding"), ("", "empty")],
    "base64url": [("a+b", "line 1, column 2: '+'")],
    "hex": [("0x", "not hexadecimal")],
    "semver": [("1.0", "not a semantic version"), ("1.0.0-01", "not a semantic version")],
    "json": [("{'a': 1}", "line 1, column 2"), ({"a": object()}, "cannot be written")],
    "yaml": [
        ("a: [1", "line 1, column 6"),
        ("a: 1\nb: 2\na: 3", "line 3, column 1: the key 'a' occurs twice"),
        ("!!python/object:os.system {}", "does not create plain data"),
        ("Dear Sir or Madam", "a single value"),
        ("", "empty"),
        ("a: \x00", "unacceptable character"),
        ("- " * 2000, "too deeply nested"),
    ],
    "toml": [
        ("a = 1\nb == 2", "line 2, column 4: Invalid value"),
        ("a =", "line 1, column 4: Invalid value"),
        (" ", "empty"),
        ("a = " + "[" * 2000, "too deeply nested"),
    ],
    "python": [
        ("x = 1\ny = (", "line 2"),
        ("", "empty"),
        ("\x00", "null bytes"),
        ("-" * 50_000 + "1", "too deeply nested"),
    ],
    "xml": [
        ("\n\n<a>\n<b>\n</a>", "line 5, column 3: mismatched tag"),
        ("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "declares an entity"),
        ("<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>", "declares an entity"),
        ("plain", "line 1, column 1"),
    ],
    "html": [
        ("<div>\n<p>a", "line 1, column 1: <div> is not closed"),
        ("<b><i>x</b></i>", "line 1, column 4: <i> is not closed before </b>"),
        ("<p>x</p></b>", "</b> has no start tag"),
        ("<div/>", "<div> is not closed"),
        ("<p>x<a href=", "is not finished"),
        ("<p>x<!-- y", "is not finished"),
        ("plain", "it has no tag"),
    ],
    "markdown": [
        ("text\n\n```py\nx = 1", "line 3: the code fence ``` is not closed"),
        ("````\nx\n```", "the code fence ```` is not closed"),
        ("```", "the code fence ``` is not closed"),
        ("|a|b|\n|-|-|\n|1|2|3|", "line 3: the row has 3 cells, the header has 2"),
        ("|a|b|c|\n|-|-|\n|1|2|", "line 2: the table's header has 3 cells, its delimiter row has 2"),
        ("# A\n\n### B", "line 3: a heading of level 3 follows one of level 1"),
        ("[a]()", "line 1: a link has no address"),
        ("see [a](http://x y)", "line 1: the link [a](…) is broken"),
        ("see [a][ref]", "line 1: the link [a] has no definition"),
        (" ", "empty"),
    ],
    "csv": [
        ("a,b\n1,2,3", "line 2: the row has 3 values, the first row has 2"),
        ('a,b\n"x\ny",2\n3', "line 4: the row has 1 value"),
        ('a,b\n"x,2', "line 2: unexpected end of data"),
        ("just prose", "only one column"),
        ("a,a\n1,2", "2 columns are called 'a'"),
        ("a,\n1,2", "column 2 has no name"),
        ("", "there is no row"),
        (b"\xff,\n", "not UTF-8"),
        ([1], "it is a list"),
    ],
    "tsv": [("a\tb\n1", "line 2: the row has 1 value"), ("a b", "only one column")],
}


def test_every_format_has_examples_in_this_file() -> None:
    assert set(TAKEN) == set(REFUSED) == set(FORMATS) - {"regex"}


@each_row("name", TAKEN)
def test_a_format_accepts_valid_texts(name: str) -> None:
    for output in TAKEN[name]:
        score = format_compliance(name)(output)
        assert (score.value, score.reason, output) == (1.0, "", output)
        assert score.details["format"] == name


@each_row("name", REFUSED)
def test_a_format_rejects_invalid_texts_with_a_reason(name: str) -> None:
    for output, reason_part in REFUSED[name]:
        score = format_compliance(name)(output)
        assert (score.value, output, reason_part in score.reason) == (0.0, output, True), score.reason


def test_a_pattern_must_match_the_complete_text() -> None:
    code = format_compliance("regex", pattern=r"(?P<letters>[A-Z]{2})-\d+")
    assert code("AB-12").passed
    assert not code("AB-12\n").passed
    assert code("xAB-12").reason == ("'xAB-12' does not fully match '(?P<letters>[A-Z]{2})-\\\\d+'")


def test_alternatives_in_a_pattern_must_match_the_complete_text() -> None:
    either = format_compliance("regex", pattern="a|b")
    assert [either(text).passed for text in ("a", "b", "ax", "xb")] == [True, True, False, False]


def test_the_schemes_of_an_address_can_be_named() -> None:
    web = format_compliance("url", schemes=["http", "https"])
    assert web("https://x").passed
    assert web("ftp://x").reason == "its scheme is ftp, not http or https"


def test_the_columns_of_a_table_can_be_named_or_numbered() -> None:
    assert format_compliance("csv", columns=["a", "b"])("a,b\n1,2").passed
    named = format_compliance("csv", columns=["a", "c"])("a,b\n1,2")
    assert named.reason == "line 1: the columns are a, b, not a, c"
    assert format_compliance("csv", columns=1)("only\none").passed
    counted = format_compliance("tsv", columns=3, header=False)("1\t1")
    assert counted.reason == "line 1: it has 2 columns, not 3"


def test_a_table_without_a_header_and_with_another_delimiter() -> None:
    assert format_compliance("csv", header=False, delimiter=";")("1;1\n2;2").passed


def test_a_csv_value_beyond_the_parsers_limit_is_an_error() -> None:
    csv.field_size_limit(131_072)  # a dataset that was read before may have raised it
    assert format_compliance("csv")("a,b\n1," + "x" * 200_000).status == "error"


@each_row("name", sorted(set(TAKEN) - {"json"}))
def test_every_format_rejects_half_of_a_surrogate_pair(name: str) -> None:
    assert format_compliance(name)("a\ud800").reason.endswith("a lone surrogate is not a character")


def test_aliases_of_formats_are_accepted() -> None:
    assert format_compliance("date-time")("2024-02-29T12:00:00Z").details["format"] == "date-time"


def test_a_fence_can_be_allowed_around_any_format() -> None:
    python = format_compliance("python", allow_fences=True)
    assert python("```python\nx = 1\n```").passed
    assert python("```python\nx = \n```").reason == "line 2, column 5: invalid syntax"


@pytest.mark.parametrize(
    ("name", "text"), [("yaml", "[" * 300), ("toml", "a." * 300 + "a = 1"), ("markdown", "[" * 600)]
)
def test_texts_that_a_parser_reads_in_quadratic_time_are_errors(name: str, text: str) -> None:
    score = format_compliance(name)(text)
    assert score.status == "error"
    assert "more than" in score.reason


@pytest.mark.no_cover
@each_row(
    ("name", "unit"),
    [
        ("markdown", " "),
        ("markdown", "|-"),
        ("markdown", "[a][a"),
        ("markdown", "[a](b) "),
        ("html", "<a "),
        ("html", "<a b='"),
        ("html", "<!--"),
        ("html", "<b>"),
        ("html", "<script>"),
        ("yaml", "["),
        ("yaml", "- a\n"),
        ("toml", "a."),
        ("csv", '"'),
        ("xml", "<a>"),
        ("python", "("),
        ("email", "a."),
        ("duration", "P1"),
    ],
)
def test_the_time_grows_linearly_with_the_text(name: str, unit: str) -> None:
    head = "a|b\n[a][" if name == "markdown" else ""
    assert grows_linearly(format_compliance(name), lambda size: head + unit * (size // len(unit)), 5_000)


@pytest.mark.parametrize(
    ("text", "reason_part"),
    [
        ("<![CDATA[ x", "is not finished"),
        ("<!-- x", "is not finished"),
        ("<p>a <b", "is not finished"),
        ("<a href='x>y</a>", "is not finished"),
        ("<script>if (a < b) '</b>'", "<script> is not closed"),
    ],
)
def test_unfinished_html_is_rejected(text: str, reason_part: str) -> None:
    score = format_compliance("html")(text)
    assert (score.value, reason_part in score.reason) == (0.0, True), score.reason


def test_html_may_contain_text_that_looks_like_a_tag() -> None:
    text = "<!DOCTYPE html><!-- <b> --><script>'<b>'</SCRIPT ><a title='>' b=it's>3 < 4</a><br/>"
    assert format_compliance("html")(text + "<svg><path/></svg><title><b></title>").passed


def test_a_format_does_not_block_the_loop() -> None:
    assert attach(format_compliance("markdown")).mode == "compute"
