"""Redaction before storing: everything that the finders find, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.redaction.findings import is_secret_name
from proctor.core.redaction.pii import find_pii
from proctor.core.redaction.redact import Redaction, may_hold_secret, may_hold_secrets
from proctor.core.redaction.secrets import find_secrets
from proctor.records import codec
from tests.redaction.lines import PII, SECRETS, rows
from tests.tables import each_row

KEY = "AKIA" + "Z7QW2MKX5RTB6PLN"
LINES = [text for _, text in rows(SECRETS)]

pieces = st.one_of(
    st.sampled_from(
        [
            *("password", "Passwd", "PWD", "passphrase", "passcode", "api_key", "access key"),
            *("secret", "auth token", "credential", "=", ": ", " is ", "\tis\t", '"', "'", "\n"),
            *("Bearer ", "Basic ", "Token ", "eyJhbGciOiJub25lIn0", ".", "://", "@", "user:"),
            *("DB_PASS", "pw", "pass", "cookie: a=", "curl -u a:", "?sig=", "Authorization: Basic "),
            *("YW5uOmh1bnRlcjI", "hunter2", "\\\\", "%3D", "OPENAI_KEY", " --user ann:"),
            *("AKIA", "ghp_", "sk-", "sk_live_", "xoxb-", "SG.", "ya29.", "glpat-", "12345678:A"),
        ]
    ),
    st.text("abcXYZ0189_-+/=.~!", max_size=40),
)


@given(st.lists(pieces, max_size=8).map("".join))
def test_texts_that_the_quick_check_skips_contain_nothing(text: str) -> None:
    assert may_hold_secret(text) or not find_secrets(text)
    assert may_hold_secret(json.dumps({"a": text})) or not find_secrets(text)


@given(st.text("0123456789abcdef", min_size=20, max_size=128))
def test_digests_are_neither_searched_nor_secrets(digest: str) -> None:
    """Every secret contains a character that is no hexadecimal digit."""
    assert not may_hold_secret(digest)
    assert not find_secrets(digest)


@each_row("text", LINES)
def test_secrets_are_replaced_and_the_rest_stays(text: str) -> None:
    """A second pass finds nothing."""
    redaction = Redaction()
    result, without = find_secrets(text), redaction.text(text)
    assert not any(text[item.start : item.end] in without for item in result)
    assert redaction.counts.total() == len(result)
    ends = [0, *(item.end for item in result)]
    starts = [*(item.start for item in result), len(text)]
    remaining = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    assert all(part in without for part in remaining)
    assert Redaction().text(without) == without
    assert result or without is text


def test_ordinary_texts_pass_the_quick_check() -> None:
    ordinary = [
        "What is the capital of France?",
        "Paris is the capital of France: it lies on the Seine.",
        "expected 'NON', got 'NO'",
        '{"value":1.0,"passed":true,"latency_ms":12.345678901234567}',
        "2026-01-01T12:00:00.123456Z",
    ]
    assert [may_hold_secret(text) for text in ordinary] == [False] * 5


@pytest.mark.parametrize(
    ("names", "secret"),
    [
        ("api_key apiKey API_KEY x-api-key OPENAI_API_KEY private_key secretAccessKey", True),
        ("token auth_token sessionToken password db_password pwd secret client_secret", True),
        ("Authorization --api-key credentials cookie judge.api_key accessKeys", True),
        ("DB_PASS pass dbPass pw OPENAI_KEY AZURE_OPENAI_KEY langsmith-key authKey", True),
        ("first_pass bypass passes forwardPass pass_rate map_key cacheKey group_key", False),
        ("max_tokens total_tokens pad_token eos_token usd_per_token stopToken", False),
        ("key keys sort_key primary_key keyboard temperature author secretary passed _ 7", False),
    ],
)
def test_names_of_secrets_in_any_spelling(names: str, secret: bool) -> None:
    """Not counts of tokens, nor keys of tables."""
    assert {name: is_secret_name(name) for name in names.split()} == dict.fromkeys(names.split(), secret)


def test_every_option_below_a_secret_name_is_redacted() -> None:
    """Whether it was set, or empty, stays visible."""
    options = {
        "model": "m",
        "api_key": "abc",
        "pwd": 1234,
        "auth": {"user": "ann", "codes": [1, "x"]},
        "token": None,
        "secret": "",
        "cookies": True,
    }
    hidden = "[secret: assigned secret]"
    redaction = Redaction()
    remaining = redaction.value(options, by_name=True)
    assert remaining == {
        "model": "m",
        "api_key": hidden,
        "pwd": hidden,
        "auth": {"user": hidden, "codes": [hidden, hidden]},
        "token": None,
        "secret": "",
        "cookies": True,
    }
    assert redaction.counts == {"assigned secret": 5}
    assert Redaction().value(remaining, by_name=True) == remaining


def test_data_below_a_secret_name_is_redacted_if_it_looks_like_a_secret() -> None:
    """In data under test a token may be a word."""
    data = {"token": "the", "max": 3, "api_key": "q7Xp2LmZ9vRt4KbN", "password": "tr0ub4dor"}
    remaining = Redaction().value(data)
    assert remaining == {
        "token": "the",
        "max": 3,
        "api_key": "[secret: assigned secret]",
        "password": "[secret: password]",
    }


def test_nested_values_below_a_secret_name_are_checked() -> None:
    """Except fields that only describe the secret."""
    key = "q7Xp2LmZ9vRt4KbN"
    data = {
        "token": {"value": key, "id": key, "created_at": 20240101},
        "secret": [key, "word", (key, 3)],
        "password": 12345678,
        "db": {"pwd": 1234, "DB_PASS": "hunter2", "pw": "hunter3"},
    }
    redaction = Redaction()
    hidden, word = "[secret: assigned secret]", "[secret: password]"
    assert redaction.value(data) == {
        "token": {"value": hidden, "id": key, "created_at": 20240101},
        "secret": [hidden, "word", (hidden, 3)],
        "password": word,
        "db": {"pwd": word, "DB_PASS": word, "pw": word},
    }
    assert redaction.counts == {"assigned secret": 3, "password": 4}


def test_similar_names_leave_the_object_unchanged() -> None:
    """Tokens of a text, counts of passes, ages of passwords."""
    data = {
        "token": {"id": 31373, "text": "hello", "bytes": [104, 105]},
        "tokens": [31373, 12345678],
        "pass": 1200,
        "password": True,
        "passwords": {"password": 90, "secret": {}},
        "secret": ["butter", ()],
    }
    assert Redaction().value(data) is data


def test_personal_data_at_the_edge_of_two_pieces_is_found_once() -> None:
    """Long texts are searched in pieces."""
    sentence = "Write to ann.lee@example.com or call +44 20 7946 0958, by IP 203.0.113.42 at noon. "
    for shift in range(0, 90, 7):
        text = "." * shift + sentence * 500
        redaction = Redaction(personal=True)
        mark = "Write to [personal: email] or call [personal: phone], by IP [personal: ip address]"
        assert redaction.text(text) == "." * shift + f"{mark} at noon. " * 500
        assert redaction.counts == {"email": 500, "phone": 500, "ip address": 500}


def test_data_without_a_secret_is_the_same_object() -> None:
    data = {"a": [1, ("b", {"c": "a sentence"})], 3: None}
    assert Redaction().value(data) is data


def test_secrets_in_lists_tuples_and_keys_are_redacted() -> None:
    """Two keys that become equal stay two."""
    other = KEY[::-1].replace("AIKA", "") + "7"
    data = {KEY: 1, f"AKIA{other[:16]}": 2, "list": [KEY, ("x", KEY)]}
    redaction = Redaction()
    remaining = redaction.value(data)
    mark = "[secret: aws access key]"
    assert remaining == {mark: 1, f"{mark} 2": 2, "list": [mark, ("x", mark)]}
    assert redaction.counts == {"aws access key": 4}


def test_personal_data_is_only_redacted_on_request() -> None:
    """It is often what is tested; `personal` redacts it as well as secrets."""
    text = f"ann@example.com has {KEY}"
    assert Redaction().text(text) == "ann@example.com has [secret: aws access key]"
    both = Redaction(personal=True)
    assert both.may_find("")
    assert both.text(text) == "[personal: email] has [secret: aws access key]"
    assert both.value({"ann@example.com": 1}) == {"[personal: email]": 1}


@each_row("text", [text for _, text in rows(PII)])
def test_all_personal_data_is_redacted(text: str) -> None:
    assert find_pii(Redaction(personal=True).text(text)) == []


@given(
    st.recursive(
        st.none() | st.integers() | st.lists(pieces, max_size=4).map("".join),
        lambda inner: st.lists(inner) | st.dictionaries(pieces | st.text(max_size=5), inner),
        max_leaves=8,
    )
)
def test_json_that_the_quick_check_skips_contains_nothing(value: Any) -> None:
    """Names and escapes included."""
    data = codec.encode(value).decode()
    plain = msgspec.json.decode(data)
    if not may_hold_secrets(data):
        assert Redaction().value(plain) is plain


@each_row("line", [line for line in LINES if find_secrets(line)])
def test_json_with_a_secret_is_searched(line: str) -> None:
    """Also if it is escaped, as a value or a key."""
    assert may_hold_secrets(codec.encode({"a": [line]}).decode())
    assert may_hold_secrets(codec.encode({line: 1}).decode())
