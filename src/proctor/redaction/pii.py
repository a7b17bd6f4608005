"""Personal data in a text, by shapes and check digits: a pure function from a text to findings.

Found are e-mail addresses, telephone numbers, payment cards, IBANs, IP addresses, and national
numbers of persons whose check digit or shape makes them sure. Names, street addresses and dates
of birth are not: no shape tells them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator

from proctor.redaction.finding import Finding, apart, finding
from proctor.redaction.numbers import (
    before,
    find_accounts,
    find_cards,
    find_national,
)
from proctor.redaction.phones import find_phones

# RFC 5321 allows 64 characters before the @ and 255 after it.
_EMAIL = re.compile(
    r"(?<![\w.+%'-])(?P<name>[\w+%-](?:[\w.+%'-]{0,62}[\w+%-])?)"
    r"@(?P<host>(?:[^\W_](?:[^\W_]|-){0,62}\.){1,8}(?P<top>[^\W\d_]{2,24}|xn--[a-z0-9-]{2,59}))"
    r"(?![\w@]|-\w|\.\w)"
)
_FILE_ENDING = re.compile(r"png|jpe?g|gif|svg|webp|css|js|json|html|map|ico|pdf", re.IGNORECASE)
_AUTHORITY = re.compile(r"://[^\s/@]*\Z")
_V4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)(?P<net>/\d{1,2}(?!\d))?")
_V6 = re.compile(r"(?<![\w:.])(?=[^:\s]{0,4}:)[0-9A-Fa-f:]{3,39}(?:(?:\.\d{1,3}){3})?(?![\w:])")
_VERSION = re.compile(
    r"(?:\b(?:v|ver|version|release|build|firmware|driver|section|chapter|update|upgrade\w*|from"
    r"|to|sdk|runtime|oid|figure|clause|package)[ .:=\"']{0,3}|[§=~^><]=?[ ]?)\Z",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b(?:ip|address|host|server|client|login|connect\w*|ping|peer)\b", re.I)
_V6_IN_USE = tuple(map(ipaddress.IPv6Network, ("2000::/3", "fc00::/7", "fe80::/10")))


def find_pii(text: str, kinds: Iterable[str] | None = None) -> list[Finding]:
    """Personal data in a text, in its order, each masked; `kinds` names those wanted.

    >>> [one.kind for one in find_pii("Write to ann@example.com or call +44 20 7946 0958.")]
    ['email', 'phone']
    >>> find_pii("Order 4111111111111112 of version 1.2.3")
    []
    """
    wanted = tuple(FINDERS) if kinds is None else tuple(kinds)
    return apart(one for kind in wanted for one in FINDERS[kind](text))


def find_emails(text: str) -> Iterator[Finding]:
    """E-mail addresses; not names of files, "your_name@…", nor a password before a host."""
    for match in _EMAIL.finditer(text):
        name = match["name"]
        if ".." in name or name.lower().startswith("your") or _FILE_ENDING.fullmatch(match["top"]):
            continue
        shell = name == "git" and text[match.end() : match.end() + 1] == ":"
        if not shell and not _AUTHORITY.search(text[max(0, match.start() - 80) : match.start()]):
            yield finding("email", text, match.start(), match.end())


def find_addresses(text: str) -> Iterator[Finding]:
    """IP addresses of machines; not networks, masks, this machine itself, or versions."""
    for match in _V4.finditer(text):
        try:
            address = ipaddress.IPv4Address(match[0].partition("/")[0])
        except ValueError:
            continue
        if match["net"] not in (None, "/32") or not _of_a_machine(address):
            continue
        around = before(text, match.start())
        if _ADDRESS.search(around) or not _VERSION.search(around):
            yield finding("ip_address", text, match.start(), match.end())
    for match in _V6.finditer(text):
        try:
            found = ipaddress.IPv6Address(match[0])
        except ValueError:
            continue
        if any(found in net for net in _V6_IN_USE) and any(map(str.isdigit, match[0])):
            yield finding("ip_address", text, match.start(), match.end())


def _of_a_machine(address: ipaddress.IPv4Address) -> bool:
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return False
    # What begins with 255 is a mask; what begins with 0 is never a machine.
    return address.packed[0] not in (0, 255)


FINDERS: dict[str, Callable[[str], Iterator[Finding]]] = {
    "email": find_emails,
    "phone": find_phones,
    "card": find_cards,
    "iban": find_accounts,
    "national_id": find_national,
    "ip_address": find_addresses,
}
