"""Formats of single values: numbers, encodings, addresses, and strings that match a pattern."""

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
from proctor.evaluators.formats.format_error import FormatError, FormatOptions, make_error_at
from proctor.evaluators.score_conversion import preview

if TYPE_CHECKING:
    from jsonschema_rs import Validator

Check = Callable[[str, FormatOptions], FormatError | None]

_NUMBER = r"(?:0|[1-9][0-9]*)"
_LABEL = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
SEMVER = (
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_LABEL}(?:\.{_LABEL})*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
# Only patterns with look-around or back references need backtracking.
_MAX_BACKTRACKING = 1_000_000


def make_pattern_check(pattern: str, description: str) -> Check:
    """Create a check of the complete text against a pattern."""
    compiled = re.compile(pattern)

    def check(text: str, _: FormatOptions) -> FormatError | None:
        return None if compiled.fullmatch(text) else FormatError(f"{preview(text)} is not {description}")

    return check


def make_validator_check(name: str, description: str) -> Check:
    """Create a check of a format that the JSON Schema validator supports."""

    def check(text: str, _: FormatOptions) -> FormatError | None:
        return None if _load_validator(name).is_valid(text) else FormatError(f"{preview(text)} is not {description}")

    return check


@functools.cache
def _load_validator(name: str) -> Validator:
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        {"format": name}, validate_formats=True, email_options=jsonschema_rs.EmailOptions(allow_display_text=False)
    )


check_uri = make_validator_check("uri", "a URI (RFC 3986)")


def check_url(text: str, options: FormatOptions) -> FormatError | None:
    """Check an absolute address with a host (RFC 3986); `schemes` lists the allowed schemes."""
    error = check_uri(text, options)
    if error is not None:
        return error
    address = urlsplit(text)
    if not address.hostname:
        return FormatError(f"{preview(text)} has no host")
    try:
        _ = address.port
    except ValueError as exception:
        return FormatError(str(exception).lower())
    if options.schemes is not None and address.scheme not in options.schemes:
        return FormatError(f"its scheme is {address.scheme}, not {' or '.join(options.schemes)}")
    return None


def check_ipv4(text: str, _: FormatOptions) -> FormatError | None:
    """Check an IPv4 address in four decimal numbers."""
    return _check_address(ipaddress.IPv4Address, text, "IPv4")


def check_ipv6(text: str, _: FormatOptions) -> FormatError | None:
    """Check an IPv6 address without a zone."""
    if "%" in text:
        return FormatError("it has a zone (%), which is valid on one machine only")
    return _check_address(ipaddress.IPv6Address, text, "IPv6")


def _check_address(parse: Callable[[str], object], text: str, version: str) -> FormatError | None:
    try:
        parse(text)
    except ValueError as error:
        return FormatError(f"it is not an {version} address: {error}")
    return None


def check_base64(text: str, _: FormatOptions) -> FormatError | None:
    """Check padded Base64 (RFC 4648) without line breaks."""
    return _decode_base64(text, r"[^A-Za-z0-9+/=]", None)


def check_base64_url(text: str, _: FormatOptions) -> FormatError | None:
    """Check Base64 with the alphabet for addresses and file names; padding is optional."""
    unpadded = text.rstrip("=")
    return _decode_base64(unpadded + "=" * (-len(unpadded) % 4), r"[^A-Za-z0-9_=-]", b"-_")


def _decode_base64(text: str, invalid: str, alternatives: bytes | None) -> FormatError | None:
    if not text:
        return FormatError("it is empty")
    if (match := re.search(invalid, text)) is not None:
        return make_error_at(text, match.start(), f"{match[0]!r} is not in the alphabet of Base64")
    try:
        base64.b64decode(text, altchars=alternatives, validate=True)
    except binascii.Error as error:
        return FormatError(f"it is not Base64: {str(error).lower()}")
    return None


def check_regex(text: str, options: FormatOptions) -> FormatError | None:
    """Check that the complete text matches a pattern."""
    pattern = options.pattern or ""
    error = next(compile_regex(pattern).iter_errors(text), None)
    if error is None:
        return None
    if error.message.startswith("Error executing regex"):
        what = f"the pattern {preview(pattern)} was stopped after {_MAX_BACKTRACKING:,} steps"
        raise EvaluatorError(what)
    return FormatError(f"{preview(text)} does not fully match {preview(pattern)}")


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
