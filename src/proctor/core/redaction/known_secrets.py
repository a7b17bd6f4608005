"""Secrets that are known, such as a key that was sent: hidden however a server writes them."""

from __future__ import annotations

import functools
import re
from base64 import b64encode
from collections.abc import Iterable

HIDDEN = "[hidden]"
# Shorter texts are no secrets, and hiding them would garble what is said.
SHORTEST = 4
# An encoded text is searched for only if it is this long: shorter ones turn up by chance.
SHORTEST_ENCODED = 8
# Escapes of printable ASCII: ordinary JSON and ordinary texts have few or none of them.
_ESCAPED = {
    "\\u00": re.compile(r"\\u00[2-7]"),
    "\\x": re.compile(r"\\x[2-7]"),
    "%": re.compile("%(?:25)*[2-7]"),
    "&#": re.compile("&#"),
}
BACKSLASH = "\\"
# JSON within JSON, as often as this.
MOST_DOUBLINGS = 6
# An escape of another character just before the secret: its digits are no part of the secret.
_OTHER_ESCAPE = r"(\\[uU](?:0000)?[0-9a-fA-F]{4})?"
_RUN = re.compile(r"[A-Za-z0-9]+")
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}


class KnownSecrets:
    r"""Hides secrets in texts: as they are, escaped as in JSON (also JSON inside JSON), as in URLs
    and HTML, and in base64 or hexadecimal.

    >>> KnownSecrets(["sk-0123/456789"]).hide(r"wrong key: sk\u002d0123\/456789")
    'wrong key: [hidden]'
    """

    __slots__ = ("_patterns",)

    def __init__(self, secrets: Iterable[str], shortest: int = SHORTEST) -> None:
        # Longest first: one secret may be part of another.
        kept = sorted({each for each in secrets if len(each) >= shortest}, key=len, reverse=True)
        self._patterns = [_Secret(each) for each in kept]

    def __repr__(self) -> str:
        return f"<{len(self._patterns)} known secrets>"

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def hide(self, text: str) -> str:
        """The text without any of the secrets."""
        for secret in self._patterns:
            text = secret.hide(text)
        return text

    def hide_in_bytes(self, body: bytes) -> bytes:
        """The same for bytes in UTF-8 or any other encoding that writes ASCII as it is."""
        if not self._patterns:
            return body
        # Latin-1 keeps every byte as it is; the secrets are ASCII.
        text = body.decode("latin-1")
        hidden = self.hide(text)
        return body if hidden is text or hidden == text else hidden.encode("latin-1")


class _Secret:
    __slots__ = ("_encoded", "_longest_run", "_pattern")

    def __init__(self, secret: str) -> None:
        before = secret.rstrip(BACKSLASH)
        end = _backslashes_at_the_end(len(secret) - len(before))
        self._pattern = re.compile(_OTHER_ESCAPE + "".join(map(_written, before)) + end)
        self._longest_run = max(_RUN.findall(secret), key=len, default="")[:12]
        forms = dict.fromkeys(_encoded(secret)) if len(secret) >= SHORTEST_ENCODED else ()
        self._encoded = tuple((form[:8], form) for form in forms)

    def hide(self, text: str) -> str:
        for start, form in self._encoded:
            # Looking for a short text is many times quicker.
            if start in text and form in text:
                text = text.replace(form, HIDDEN)
        # The pattern is slow. Letters and digits are hardly ever escaped, so that without a run of
        # them there is nothing to find, unless something is escaped that need not be.
        if self._longest_run in text or _has_escapes(text):
            text = self._pattern.sub(_hide_match, text)
        return text


def _hide_match(match: re.Match[str]) -> str:
    return (match[1] or "") + HIDDEN


def _has_escapes(text: str) -> bool:
    return any(mark in text and sign.search(text) for mark, sign in _ESCAPED.items())


def _written(character: str) -> str:
    """A pattern of every way to write a character; escapes may be escaped again a few times."""
    plain = re.escape(character) if character.isalnum() else rf"\\{{0,64}}{re.escape(character)}"
    return f"(?:{plain}|{_escapes(character)})"


def _backslashes_at_the_end(count: int) -> str:
    """A pattern of a secret's last backslashes, without those that escape what comes after them.

    JSON doubles them each time it is put into JSON, and what follows has fewer than one of them has
    become: so the most doublings that fit are those that were made.
    """
    if not count:
        return ""
    doubled = [rf"\\{{{count << times}}}" for times in range(MOST_DOUBLINGS, -1, -1)]
    escaped = f"(?:{_escapes(BACKSLASH)}){{{count}}}"
    mixed = f"{_written(BACKSLASH)}{{{count}}}"
    return f"(?:{'|'.join([escaped, *doubled, mixed])})"


def _escapes(character: str) -> str:
    code = ord(character)
    ways = [
        rf"\\{{1,64}}[uU](?:0000)?{_any_case(f'{code:04x}')}",
        rf"\\{{1,64}}x{_any_case(f'{code:02x}')}",
        rf"%(?:25){{0,3}}{_any_case(f'{code:02x}')}",
        rf"&\#(?:0*{code}|[xX]0*{_any_case(f'{code:x}')});",
    ]
    if character in _ENTITIES:
        ways.append(f"&{_ENTITIES[character]};")
    return "|".join(ways)


def _any_case(digits: str) -> str:
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in digits)


def _encoded(secret: str) -> Iterable[str]:
    """What every base64 and hexadecimal text has in it that has the secret in it."""
    data = secret.encode()
    for offset in range(3):
        # Bytes before it move it by 0 to 2 places; characters that its neighbours share are cut.
        text = b64encode(bytes(offset) + data).decode().rstrip("=")
        start = (0, 2, 3)[offset]
        end = len(text) - (1 if (offset + len(data)) % 3 else 0)
        yield text[start:end]
        yield text[start:end].replace("+", "-").replace("/", "_")
    yield data.hex()
    yield data.hex().upper()


@functools.lru_cache(maxsize=256)
def known_secrets(secrets: tuple[str, ...], shortest: int = SHORTEST) -> KnownSecrets:
    """The same secrets once: patterns are not made for every answer."""
    return KnownSecrets(secrets, shortest)
