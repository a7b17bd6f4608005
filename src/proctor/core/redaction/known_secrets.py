"""Redact known secrets, such as an API key that was sent, in every form that a server may echo."""

from __future__ import annotations

import functools
import re
from base64 import b64encode
from collections.abc import Iterable

REPLACEMENT = "[hidden]"
# Shorter strings are not redacted: they match by chance.
MIN_LENGTH = 4
# Shorter secrets are not searched for in encoded form.
MIN_ENCODED_LENGTH = 8
# Escapes of printable ASCII, which are rare in ordinary JSON and text.
_ESCAPED = {
    "\\u00": re.compile(r"\\u00[2-7]"),
    "\\x": re.compile(r"\\x[2-7]"),
    "%": re.compile("%(?:25)*[2-7]"),
    "&#": re.compile("&#"),
}
BACKSLASH = "\\"
# How many levels of JSON inside JSON are recognized.
MAX_DOUBLINGS = 6
# An escape of another character before the secret: its digits are not part of the secret.
_OTHER_ESCAPE = r"(\\[uU](?:0000)?[0-9a-fA-F]{4})?"
_RUN = re.compile(r"[A-Za-z0-9]+")
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}


class KnownSecrets:
    r"""Redacts secrets in texts: verbatim, escaped as in JSON (also nested), URLs and HTML, and in
    base64 or hexadecimal.
    """

    __slots__ = ("_patterns",)

    def __init__(self, secrets: Iterable[str], shortest: int = MIN_LENGTH) -> None:
        # Longest first: one secret may be part of another.
        ordered = sorted({text for text in secrets if len(text) >= shortest}, key=len, reverse=True)
        self._patterns = [_Secret(text) for text in ordered]

    def __repr__(self) -> str:
        return f"<{len(self._patterns)} known secrets>"

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def redact(self, text: str) -> str:
        """Return the text with every secret replaced by [hidden]."""
        for secret in self._patterns:
            text = secret.redact(text)
        return text

    def redact_bytes(self, body: bytes) -> bytes:
        """Redact the secrets in bytes of an ASCII-compatible encoding such as UTF-8."""
        if not self._patterns:
            return body
        # Latin-1 maps every byte to itself; the secrets are ASCII.
        text = body.decode("latin-1")
        redacted_text = self.redact(text)
        return body if redacted_text is text or redacted_text == text else redacted_text.encode("latin-1")


class _Secret:
    __slots__ = ("_encoded", "_longest_run", "_pattern")

    def __init__(self, secret: str) -> None:
        body = secret.rstrip(BACKSLASH)
        end = _trailing_backslashes(len(secret) - len(body))
        self._pattern = re.compile(_OTHER_ESCAPE + "".join(map(_any_spelling, body)) + end)
        self._longest_run = max(_RUN.findall(secret), key=len, default="")[:12]
        forms = dict.fromkeys(_list_encodings(secret)) if len(secret) >= MIN_ENCODED_LENGTH else ()
        self._encoded = tuple((form[:8], form) for form in forms)

    def redact(self, text: str) -> str:
        for start, form in self._encoded:
            # Searching for a short string first is many times faster.
            if start in text and form in text:
                text = text.replace(form, REPLACEMENT)
        # The pattern is slow. Letters and digits are rarely escaped, so it only runs if the longest
        # run of them occurs, or if the text contains unnecessary escapes.
        if self._longest_run in text or _has_escapes(text):
            text = self._pattern.sub(_hide_match, text)
        return text


def _hide_match(match: re.Match[str]) -> str:
    return (match[1] or "") + REPLACEMENT


def _has_escapes(text: str) -> bool:
    return any(mark in text and sign.search(text) for mark, sign in _ESCAPED.items())


def _any_spelling(character: str) -> str:
    """Return a pattern for every spelling of a character, including nested escapes."""
    plain = re.escape(character) if character.isalnum() else rf"\\{{0,64}}{re.escape(character)}"
    return f"(?:{plain}|{_escapes(character)})"


def _trailing_backslashes(count: int) -> str:
    """Return a pattern for the last backslashes of a secret, without the escapes after them.

    Each level of JSON doubles the backslashes; the largest number of doublings that fits is right,
    because the next character has fewer backslashes before it.
    """
    if not count:
        return ""
    doubled = [rf"\\{{{count << times}}}" for times in range(MAX_DOUBLINGS, -1, -1)]
    escaped = f"(?:{_escapes(BACKSLASH)}){{{count}}}"
    mixed = f"{_any_spelling(BACKSLASH)}{{{count}}}"
    return f"(?:{'|'.join([escaped, *doubled, mixed])})"


def _escapes(character: str) -> str:
    code = ord(character)
    spellings = [
        rf"\\{{1,64}}[uU](?:0000)?{_any_case(f'{code:04x}')}",
        rf"\\{{1,64}}x{_any_case(f'{code:02x}')}",
        rf"%(?:25){{0,3}}{_any_case(f'{code:02x}')}",
        rf"&\#(?:0*{code}|[xX]0*{_any_case(f'{code:x}')});",
    ]
    if character in _ENTITIES:
        spellings.append(f"&{_ENTITIES[character]};")
    return "|".join(spellings)


def _any_case(digits: str) -> str:
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in digits)


def _list_encodings(secret: str) -> Iterable[str]:
    """Yield strings, one of which occurs wherever the secret is encoded in base64 or hexadecimal."""
    data = secret.encode()
    for offset in range(3):
        # Preceding bytes shift it by 0 to 2 places; shared characters at both ends are cut off.
        text = b64encode(bytes(offset) + data).decode().rstrip("=")
        start = (0, 2, 3)[offset]
        end = len(text) - (1 if (offset + len(data)) % 3 else 0)
        yield text[start:end]
        yield text[start:end].replace("+", "-").replace("/", "_")
    yield data.hex()
    yield data.hex().upper()


@functools.lru_cache(maxsize=256)
def known_secrets(secrets: tuple[str, ...], shortest: int = MIN_LENGTH) -> KnownSecrets:
    """Return a cached `KnownSecrets`: compiling the patterns for every response is slow."""
    return KnownSecrets(secrets, shortest)
