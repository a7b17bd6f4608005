"""What is taken out before it is stored: all that the finders find, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.redaction.findings import says_secret
from proctor.core.redaction.pii import find_pii
from proctor.core.redaction.redact import Redaction, may_hold_secret, may_hold_secrets
from proctor.core.redaction.secrets import find_secrets
from proctor.records import codec
from tests.redaction.lines import PII, SECRETS, rows

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
def test_a_text_that_is_not_looked_at_holds_nothing(text: str) -> None:
    """The quick look says no only where the finders find nothing."""
    assert may_hold_secret(text) or not find_secrets(text)
    assert may_hold_secret(json.dumps({"a": text})) or not find_secrets(text)


@pytest.mark.parametrize("text", LINES, ids=lambda text: text[:40])
def test_every_secret_is_taken_out_and_everything_else_stays(text: str) -> None:
    """What stood around the secrets is there unchanged; a second time finds nothing."""
    redaction = Redaction()
    found, without = find_secrets(text), redaction.text(text)
    assert not any(text[one.start : one.end] in without for one in found)
    assert redaction.counts.total() == len(found)
    ends = [0, *(one.end for one in found)]
    starts = [*(one.start for one in found), len(text)]
    kept = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    assert all(part in without for part in kept)
    assert Redaction().text(without) == without
    assert found or without is text


def test_ordinary_texts_are_not_looked_at_twice() -> None:
    """Sentences of every day go by with the quick look; that is what makes it cheap."""
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
def test_a_name_says_whether_its_value_is_secret(names: str, secret: bool) -> None:
    """Names of secrets in any manner of writing; not numbers of tokens nor keys of tables."""
    assert {name: says_secret(name) for name in names.split()} == dict.fromkeys(names.split(), secret)


def test_options_under_a_secret_name_are_taken_out_whatever_they_are() -> None:
    """Texts, numbers and everything below; that one was set, or was empty, may be told."""
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
    kept = redaction.value(options, by_name=True)
    assert kept == {
        "model": "m",
        "api_key": hidden,
        "pwd": hidden,
        "auth": {"user": hidden, "codes": [hidden, hidden]},
        "token": None,
        "secret": "",
        "cookies": True,
    }
    assert redaction.counts == {"assigned secret": 5}
    assert Redaction().value(kept, by_name=True) == kept


def test_data_under_a_secret_name_is_taken_out_only_if_it_looks_like_one() -> None:
    """In data under test a token may be a word; a password in a field of its own is one."""
    data = {"token": "the", "max": 3, "api_key": "q7Xp2LmZ9vRt4KbN", "password": "tr0ub4dor"}
    kept = Redaction().value(data)
    assert kept == {
        "token": "the",
        "max": 3,
        "api_key": "[secret: assigned secret]",
        "password": "[secret: password]",
    }


def test_what_lies_deeper_under_a_secret_name_is_looked_at_as_if_it_stood_there() -> None:
    """Lists, objects and numbers; but not what only tells of a secret, nor tokens of a text."""
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


def test_what_only_has_such_names_stays_the_same_object() -> None:
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


def test_a_long_text_is_looked_through_for_personal_data_in_pieces() -> None:
    """What lies where two pieces meet is found once and whole, wherever the text is cut."""
    sentence = "Write to ann.lee@example.com or call +44 20 7946 0958, by IP 203.0.113.42 at noon. "
    for shift in range(0, 90, 7):
        text = "." * shift + sentence * 800
        redaction = Redaction(personal=True)
        mark = "Write to [personal: email] or call [personal: phone], by IP [personal: ip address]"
        assert redaction.text(text) == "." * shift + f"{mark} at noon. " * 800
        assert redaction.counts == {"email": 800, "phone": 800, "ip address": 800}


def test_data_without_a_secret_is_the_same_object() -> None:
    """Nothing is copied for nothing, however deep it is."""
    data = {"a": [1, ("b", {"c": "a sentence"})], 3: None}
    assert Redaction().value(data) is data


def test_secrets_in_lists_tuples_and_keys_are_taken_out() -> None:
    """Two keys that become the same stay two."""
    other = KEY[::-1].replace("AIKA", "") + "7"
    data = {KEY: 1, f"AKIA{other[:16]}": 2, "list": [KEY, ("x", KEY)]}
    redaction = Redaction()
    kept = redaction.value(data)
    mark = "[secret: aws access key]"
    assert kept == {mark: 1, f"{mark} 2": 2, "list": [mark, ("x", mark)]}
    assert redaction.counts == {"aws access key": 4}


def test_personal_data_stays_unless_it_is_asked_for() -> None:
    """It is what is tested; with `personal` it goes too, beside secrets."""
    text = f"ann@example.com has {KEY}"
    assert Redaction().text(text) == "ann@example.com has [secret: aws access key]"
    both = Redaction(personal=True)
    assert both.may_find("")
    assert both.text(text) == "[personal: email] has [secret: aws access key]"
    assert both.value({"ann@example.com": 1}) == {"[personal: email]": 1}


@pytest.mark.parametrize("text", [text for _, text in rows(PII)], ids=lambda text: text[:40])
def test_all_personal_data_is_taken_out(text: str) -> None:
    """After it nothing is found any more."""
    assert find_pii(Redaction(personal=True).text(text)) == []


@given(
    st.recursive(
        st.none() | st.integers() | st.lists(pieces, max_size=4).map("".join),
        lambda inner: st.lists(inner) | st.dictionaries(pieces | st.text(max_size=5), inner),
        max_leaves=8,
    )
)
def test_where_json_is_passed_over_nothing_would_be_taken_out(value: Any) -> None:
    """The quick look at JSON never misses what the slow one finds, names and escapes included."""
    data = codec.encode(value).decode()
    plain = msgspec.json.decode(data)
    if not may_hold_secrets(data):
        assert Redaction().value(plain) is plain


@pytest.mark.parametrize("line", [line for line in LINES if find_secrets(line)])
def test_a_secret_in_json_is_worth_a_look(line: str) -> None:
    """Also where it is escaped; as a value and as a key."""
    assert may_hold_secrets(codec.encode({"a": [line]}).decode())
    assert may_hold_secrets(codec.encode({line: 1}).decode())
