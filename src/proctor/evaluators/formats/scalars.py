"""Single values: numbers, booleans, encodings, versions, and texts that match a pattern."""

from __future__ import annotations

import base64
import binascii
import functools
import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from proctor.errors import EvaluatorError
from proctor.evaluators.formats.fault import Fault, Terms, at
from proctor.evaluators.verdict import shown

if TYPE_CHECKING:
    from jsonschema_rs import Validator


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_BOOLEAN = re.compile(r"true|false", re.IGNORECASE)
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]+")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=]")
_NOT_BASE64URL = re.compile(r"[^A-Za-z0-9_=-]")
_PART = r"(?:0|[1-9][0-9]*)"
_LABEL = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    rf"{_PART}\.{_PART}\.{_PART}(?:-{_LABEL}(?:\.{_LABEL})*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
# So many steps back and forth a pattern may take; without look-around and back references it
# needs none.
_STEPS = 1_000_000


def number(text: str, _: Terms) -> Fault | None:
    """A decimal number with a point, without separators, units, NaN or infinity."""
    return _matched(_NUMBER, text, "a number")


def integer(text: str, _: Terms) -> Fault | None:
    """A whole number in decimal digits."""
    return _matched(_INTEGER, text, "a whole number")


def boolean(text: str, _: Terms) -> Fault | None:
    """The word true or false, in any case."""
    return _matched(_BOOLEAN, text, "true or false")


def hexadecimal(text: str, _: Terms) -> Fault | None:
    """Hexadecimal digits, with or without 0x before them."""
    return _matched(_HEX, text, "hexadecimal digits")


def semver(text: str, _: Terms) -> Fault | None:
    """A version by Semantic Versioning 2.0.0."""
    return _matched(_SEMVER, text, "a semantic version (such as 1.4.0 or 2.0.0-rc.1)")


def base64_standard(text: str, _: Terms) -> Fault | None:
    """Base64 of RFC 4648, padded, in one piece."""
    return _base64(text, _NOT_BASE64, None)


def base64_url(text: str, _: Terms) -> Fault | None:
    """Base64 with the alphabet for addresses and file names; its padding may be left out."""
    return _base64(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), _NOT_BASE64URL, b"-_")


def regex(text: str, terms: Terms) -> Fault | None:
    """A text that matches a pattern as a whole."""
    pattern = terms.pattern or ""
    error = next(matcher(pattern).iter_errors(text), None)
    if error is None:
        return None
    if error.message.startswith("Error executing regex"):
        raise EvaluatorError(f"the pattern {shown(pattern)} was given up after {_STEPS:,} steps")
    return Fault(f"{shown(text)} does not match {shown(pattern)} as a whole")


@functools.cache
def matcher(pattern: str) -> Validator:
    """A pattern compiled for an engine that takes linear time wherever that is possible."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            {"pattern": f"^(?:{pattern})$"},
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_STEPS),
        )
    except jsonschema_rs.ValidationError:
        raise EvaluatorError(
            f"{pattern!r} is not a regular expression",
            where="format_compliance",
            fix="it is written as in JSON Schema (ECMA 262)",
        ) from None


def _matched(pattern: re.Pattern[str], text: str, what: str) -> Fault | None:
    return None if pattern.fullmatch(text) else Fault(f"{shown(text)} is not {what}")


def _base64(text: str, foreign: re.Pattern[str], others: bytes | None) -> Fault | None:
    if not text:
        return Fault("the text is empty")
    if (found := foreign.search(text)) is not None:
        return at(text, found.start(), f"{found[0]!r} is not in the alphabet of Base64")
    try:
        base64.b64decode(text, altchars=others, validate=True)
    except binascii.Error as error:
        return Fault(f"it is not Base64: {str(error).lower()}")
    return None


_PHONE = re.compile(r"\+[1-9][0-9]{1,14}")
_NOTES = {
    "email": "an email address (RFC 5321)",
    "uri": "a URI (RFC 3986)",
    "hostname": "the name of a host (RFC 1123)",
    "uuid": "a UUID (RFC 9562)",
}


def email(text: str, _: Terms) -> Fault | None:
    """An address by RFC 5321, without a display name; whether anyone reads it is not known."""
    return _parsed("email", text)


def uri(text: str, _: Terms) -> Fault | None:
    """An absolute address of any kind by RFC 3986, such as mailto:ann@example.org."""
    return _parsed("uri", text)


def url(text: str, terms: Terms) -> Fault | None:
    """An absolute address with a host by RFC 3986; `schemes` are those it may begin with."""
    fault = _parsed("uri", text)
    if fault is not None:
        return fault
    parts = urlsplit(text)
    if not parts.hostname:
        return Fault(f"{shown(text)} names no host")
    try:
        _ = parts.port
    except ValueError as error:
        return Fault(str(error).lower())
    if terms.schemes is not None and parts.scheme not in terms.schemes:
        return Fault(f"it begins with {parts.scheme}:, not with {' or '.join(terms.schemes)}")
    return None


def hostname(text: str, _: Terms) -> Fault | None:
    """The name of a machine by RFC 1123; international names in their ASCII form."""
    return _parsed("hostname", text)


def uuid(text: str, _: Terms) -> Fault | None:
    """A UUID in its usual form of 8-4-4-4-12 digits, of any version."""
    return _parsed("uuid", text)


def ipv4(text: str, _: Terms) -> Fault | None:
    """An IPv4 address in four decimal numbers."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError as error:
        return Fault(f"it is not an IPv4 address: {error}")
    return None


def ipv6(text: str, _: Terms) -> Fault | None:
    """An IPv6 address, without a zone."""
    if "%" in text:
        return Fault("an IPv6 address that means the same everywhere has no zone (%)")
    try:
        ipaddress.IPv6Address(text)
    except ValueError as error:
        return Fault(f"it is not an IPv6 address: {error}")
    return None


def phone(text: str, _: Terms) -> Fault | None:
    """A telephone number as E.164 writes it: + and at most 15 digits, without spaces or hyphens.

    Whether it is in use is not known.
    """
    if _PHONE.fullmatch(text):
        return None
    return Fault(f"{shown(text)} is not + and up to 15 digits, the first not 0 (E.164)")


def _parsed(name: str, text: str) -> Fault | None:
    if _parser(name).is_valid(text):
        return None
    return Fault(f"{shown(text)} is not {_NOTES[name]}")


@functools.cache
def _parser(name: str) -> Validator:
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        {"format": name},
        validate_formats=True,
        email_options=jsonschema_rs.EmailOptions(allow_display_text=False),
    )
