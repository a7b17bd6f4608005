"""Addresses of people, machines and things, by the parsers of the JSON Schema validator."""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from proctor.evaluators.formats.fault import Fault
from proctor.evaluators.formats.terms import Terms
from proctor.evaluators.verdict import shown

if TYPE_CHECKING:
    from jsonschema_rs import Validator

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
