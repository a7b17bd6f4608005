"""Formats of single values: numbers, encodings, addresses, and texts that match a pattern."""

from __future__ import annotations

import base64
import binascii
import functools
import ipaddress
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from proctor.errors import EvaluatorError
from proctor.evaluators.formats.fault import Fault, Terms, at
from proctor.evaluators.score_conversion import preview

if TYPE_CHECKING:
    from jsonschema_rs import Validator

Check = Callable[[str, Terms], Fault | None]

_NUMBER = r"(?:0|[1-9][0-9]*)"
_LABEL = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
SEMVER = (
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_LABEL}(?:\.{_LABEL})*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
# Only patterns with look-around or back references need backtracking.
_MAX_BACKTRACKING = 1_000_000


def matches(pattern: str, description: str) -> Check:
    """Create a check of the complete text against a pattern."""
    compiled = re.compile(pattern)

    def check(text: str, _: Terms) -> Fault | None:
        return None if compiled.fullmatch(text) else Fault(f"{preview(text)} is not {description}")

    return check


def is_valid(name: str, description: str) -> Check:
    """Create a check of a format that the JSON Schema validator knows."""

    def check(text: str, _: Terms) -> Fault | None:
        return None if _validator(name).is_valid(text) else Fault(f"{preview(text)} is not {description}")

    return check


@functools.cache
def _validator(name: str) -> Validator:
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        {"format": name}, validate_formats=True, email_options=jsonschema_rs.EmailOptions(allow_display_text=False)
    )


is_uri = is_valid("uri", "a URI (RFC 3986)")


def url(text: str, terms: Terms) -> Fault | None:
    """Check an absolute address with a host (RFC 3986); `schemes` are the allowed ones."""
    fault = is_uri(text, terms)
    if fault is not None:
        return fault
    address = urlsplit(text)
    if not address.hostname:
        return Fault(f"{preview(text)} has no host")
    try:
        _ = address.port
    except ValueError as error:
        return Fault(str(error).lower())
    if terms.schemes is not None and address.scheme not in terms.schemes:
        return Fault(f"its scheme is {address.scheme}, not {' or '.join(terms.schemes)}")
    return None


def ipv4(text: str, _: Terms) -> Fault | None:
    """Check an IPv4 address in four decimal numbers."""
    return _check_address(ipaddress.IPv4Address, text, "IPv4")


def ipv6(text: str, _: Terms) -> Fault | None:
    """Check an IPv6 address without a zone."""
    if "%" in text:
        return Fault("it has a zone (%), which is valid on one machine only")
    return _check_address(ipaddress.IPv6Address, text, "IPv6")


def _check_address(parse: Callable[[str], object], text: str, version: str) -> Fault | None:
    try:
        parse(text)
    except ValueError as error:
        return Fault(f"it is not an {version} address: {error}")
    return None


def base64_standard(text: str, _: Terms) -> Fault | None:
    """Check padded Base64 (RFC 4648) without line breaks."""
    return _check_base64(text, r"[^A-Za-z0-9+/=]", None)


def base64_url(text: str, _: Terms) -> Fault | None:
    """Check Base64 with the alphabet for addresses and file names; padding is optional."""
    unpadded = text.rstrip("=")
    return _check_base64(unpadded + "=" * (-len(unpadded) % 4), r"[^A-Za-z0-9_=-]", b"-_")


def _check_base64(text: str, invalid: str, alternatives: bytes | None) -> Fault | None:
    if not text:
        return Fault("the text is empty")
    if (match := re.search(invalid, text)) is not None:
        return at(text, match.start(), f"{match[0]!r} is not in the alphabet of Base64")
    try:
        base64.b64decode(text, altchars=alternatives, validate=True)
    except binascii.Error as error:
        return Fault(f"it is not Base64: {str(error).lower()}")
    return None


def regex(text: str, terms: Terms) -> Fault | None:
    """Check that the complete text matches a pattern."""
    pattern = terms.pattern or ""
    error = next(compile_regex(pattern).iter_errors(text), None)
    if error is None:
        return None
    if error.message.startswith("Error executing regex"):
        what = f"the pattern {preview(pattern)} was stopped after {_MAX_BACKTRACKING:,} steps"
        raise EvaluatorError(what)
    return Fault(f"{preview(text)} does not fully match {preview(pattern)}")


@functools.cache
def compile_regex(pattern: str) -> Validator:
    """Compile a pattern for an engine with linear time, if the pattern allows it."""
    import jsonschema_rs

    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=_MAX_BACKTRACKING)
    try:
        return jsonschema_rs.validator_for({"pattern": f"^(?:{pattern})$"}, pattern_options=options)
    except jsonschema_rs.ValidationError:
        raise EvaluatorError(
            f"{pattern!r} is not a regular expression",
            where="format_compliance",
            fix="write it as in JSON Schema (ECMA 262)",
        ) from None
