"""Known secrets are hidden in every form that a server may write."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from proctor.core.redaction.known_secrets import REPLACEMENT, KnownSecrets
from tests.tables import each_row

SECRET = 'sk-proj/0123+456"789&ab'


def escaped(text: str, escape: str) -> str:
    return "".join(escape.format(ord(character)) for character in text)


WRITTEN = {
    "as it is": SECRET,
    "as JSON": json.dumps(SECRET)[1:-1],
    "as JSON with slashes escaped": json.dumps(SECRET)[1:-1].replace("/", "\\/"),
    "as JSON in JSON": json.dumps(json.dumps(SECRET))[1:-1],
    "as JSON in JSON in JSON": json.dumps(json.dumps(json.dumps({"key": SECRET}))),
    "with a dash as an escape": SECRET.replace("-", "\\u002d"),
    "with a dash as an escape in capitals": SECRET.replace("-", "\\u002D"),
    "all escaped": escaped(SECRET, "\\u{:04x}"),
    "all escaped twice": escaped(SECRET, "\\\\u{:04x}"),
    "in a URL": quote(SECRET, safe=""),
    "all in percents": escaped(SECRET, "%{:02x}"),
    "in percents twice": escaped(SECRET, "%25{:02X}"),
    "as HTML": html.escape(SECRET),
    "as numbers of HTML": escaped(SECRET, "&#{};"),
    "as bytes in hexadecimal": SECRET.encode().hex(),
    **{
        f"in base64 after {before!r}": base64.b64encode(f"{before}{SECRET} x".encode()).decode()
        for before in ("", "a", "ab", "user:")
    },
    "in base64 of URLs": base64.urlsafe_b64encode(f"??{SECRET}".encode()).decode(),
}


@each_row("form", WRITTEN)
def test_a_secret_is_hidden_in_every_form(form: str) -> None:
    """Neither the text nor its decoded form contains the secret."""
    text = f'{{"message": "wrong key {WRITTEN[form]} given"}}'
    hidden = KnownSecrets([SECRET]).redact(text)
    assert REPLACEMENT in hidden
    assert WRITTEN[form] not in hidden
    assert KnownSecrets([SECRET]).redact_bytes(text.encode()) == hidden.encode()


@given(
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=40),
    st.integers(1, 4),
    st.text("жщ \n\t", max_size=20),
)
def test_a_secret_in_nested_json_is_hidden(secret: str, depth: int, beside: str) -> None:
    text: str = beside + secret + beside
    for _ in range(depth):
        text = json.dumps({"said": text})
    hidden = KnownSecrets([secret]).redact(text)
    for _ in range(depth):
        hidden = json.loads(hidden)["said"]
    assert hidden == beside + REPLACEMENT + beside


@given(st.binary(max_size=200))
def test_bytes_without_the_secret_do_not_change(body: bytes) -> None:
    assert KnownSecrets(["sk-proj-0123456789"]).redact_bytes(body) == body


def test_longer_secrets_are_hidden_first() -> None:
    """Nothing remains of a header value that contains a token."""
    secrets = KnownSecrets(["token-0123", "Bearer token-0123", "abc"])
    assert secrets.redact("sent Bearer token-0123, abc") == "sent [hidden], abc"
    assert "token" not in repr(secrets)


def test_many_backslashes_and_escapes_are_read_to_their_end() -> None:
    """`make growth` measures that they take linear time."""
    text = "\\" * 20_000 + "%2" * 20_000 + "&#" * 20_000
    assert KnownSecrets([SECRET]).redact(f"{text}{SECRET}") == f"{text}[hidden]"
