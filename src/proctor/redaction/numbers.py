"""Numbers that stand for a person: cards, accounts and national numbers, by check digit or shape.

A number without a check digit of its own counts only in an unmistakable shape, or with a word
before it that says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from proctor.redaction import checksums
from proctor.redaction.finding import Finding, finding

# How far before a number its name may stand.
_NAME_BEFORE = 30
_FIRST = r"(?<![\w.+/=-])"
_LAST = r"(?![\w/=]|[.,-]\w)"

# The first digits of each issuer, as ranges of their first six, and how long its numbers are.
_ISSUERS = (
    ("340000", "349999", (15,)),
    ("370000", "379999", (15,)),
    ("400000", "499999", (16, 19)),
    ("510000", "559999", (16,)),
    ("222100", "272099", (16,)),
    ("220000", "220499", (16, 17, 18, 19)),
    ("601100", "601199", (16, 19)),
    ("644000", "659999", (16, 19)),
    ("620000", "629999", (16, 17, 18, 19)),
    ("352800", "358999", (16, 19)),
    ("300000", "305999", (14, 16, 19)),
    ("309500", "309599", (14, 16, 19)),
    ("360000", "369999", (14, 16, 19)),
    ("380000", "399999", (14, 16, 19)),
    ("501800", "501899", (12, 13, 16, 19)),
    ("502000", "502099", (12, 13, 16, 19)),
    ("503800", "503899", (12, 13, 16, 19)),
    ("589300", "589399", (12, 13, 16, 19)),
    ("630400", "630499", (12, 13, 16, 19)),
    ("675900", "676399", (12, 13, 16, 19)),
)
_CARD = re.compile(
    _FIRST + r"(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{1,3})?|\d{4}([ -])\d{6}\2\d{4,5}|\d{14,19})"
    r"(?![\w/=]|[.,-]\d)"
)
# What a number is said to be, if it is neither a card nor a phone.
OTHER_NUMBER = re.compile(
    r"(?:\b(?:order|invoice|ticket|tracking|reference|ref|case|serial|part|item|sku|isbn|issn|imei"
    r"|ean|gtin|upc|barcode|batch|lot|build|version|release|parcel|shipment|id|uuid|hash|timestamp"
    r"|article|product|transaction|request|commit|model|patent|grant|section)s?\b[\w ]{0,8}"
    r"|[#№])[ \"':=.#-]{0,4}(?:no|nr|number|num|id)?[ .:#\"'=-]{0,3}\Z",
    re.IGNORECASE,
)

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}")
_COUNTRIES = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 "
    "DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 "
    "IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 "
    "MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 "
    "SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30 "
)
_IBAN_LENGTHS = {name: int(size) for name, size in re.findall(r"([A-Z]{2})(\d+)", _COUNTRIES)}

_SSN_SHAPE = r"(?!000|666|9)\d{3}{sep}(?!00)\d{2}{sep}(?!0000)\d{4}"
# Printed in advertisements once, and never given to anyone since.
_SSN_PRINTED = frozenset({"078051120", "219099999"})


class Kind(NamedTuple):
    """A national number: its shape, its check, and the name it needs before it if any."""

    kind: str
    shape: re.Pattern[str]
    check: Callable[[str], bool]
    name: re.Pattern[str] | None = None


def _named(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b[^\n]{{0,20}}\Z", re.IGNORECASE)


def _shape(pattern: str) -> re.Pattern[str]:
    return re.compile(_FIRST + f"(?:{pattern})" + _LAST)


def _assigned(digits: str) -> bool:
    return digits not in _SSN_PRINTED


def _always(_: str) -> bool:
    return True


def _passport(line: str) -> bool:
    """All four check digits of the second line of a passport."""
    fields = ((0, 9), (13, 19), (21, 27))
    return all(checksums.mrz(line[a:b], line[b]) for a, b in fields) and checksums.mrz(
        line[0:10] + line[13:20] + line[21:43], line[43]
    )


_SOCIAL_SECURITY = _named(r"ssn|social security|social-security|sozialversicherung\w*")
_KINDS = (
    Kind("us_ssn", _shape(_SSN_SHAPE.replace("{sep}", "-")), _assigned),
    Kind("us_ssn", _shape(_SSN_SHAPE.replace("{sep}", "[ ]?")), _assigned, _SOCIAL_SECURITY),
    Kind(
        "uk_nino",
        _shape(
            r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]"
            r"(?: \d\d \d\d \d\d |\d{6})[A-D]"
        ),
        _always,
    ),
    Kind(
        "canada_sin",
        _shape(r"\d{3}([ -]?)\d{3}\1\d{3}"),
        checksums.luhn,
        _named("sin|social insurance|nas"),
    ),
    Kind("spain_dni", _shape(r"\d{8}-?[A-HJ-NP-TV-Z]|[XYZ]-?\d{7}-?[A-HJ-NP-TV-Z]"), checksums.dni),
    Kind("brazil_cpf", _shape(r"\d{3}\.\d{3}\.\d{3}-\d{2}"), checksums.cpf),
    Kind("brazil_cpf", _shape(r"\d{11}"), checksums.cpf, _named("cpf")),
    Kind(
        "france_nir",
        _shape(
            r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?"
            r"(?:0[1-9]|[1-8]\d|9[0-7])"
        ),
        checksums.nir,
    ),
    Kind(
        "italy_codice_fiscale",
        _shape(r"[A-Z]{6}\d\d[ABCDEHLMPRST](?:[0-6]\d|7[01])[A-Z]\d{3}[A-Z]"),
        checksums.codice_fiscale,
    ),
    Kind("india_aadhaar", _shape(r"[2-9]\d{3} \d{4} \d{4}"), checksums.verhoeff),
    Kind(
        "india_aadhaar", _shape(r"[2-9]\d{3}-?\d{4}-?\d{4}"), checksums.verhoeff, _named("aadhaar")
    ),
    Kind(
        "passport_mrz",
        re.compile(
            r"(?<![A-Z0-9<])[A-Z0-9<]{9}\d[A-Z]{1,3}<{0,2}\d{6}\d[MFX<]\d{6}\d[A-Z0-9<]{14}[\d<]\d"
            r"(?![A-Z0-9<])"
        ),
        _passport,
    ),
)


def find_cards(text: str) -> Iterator[Finding]:
    """Payment cards: the length and first digits of an issuer, and the check digit."""
    for match in _CARD.finditer(text):
        digits = _bare(match[0])
        if not (_issued(digits) and checksums.luhn(digits)) or len(set(digits)) == 1:
            continue
        if match[0].isdigit() and OTHER_NUMBER.search(before(text, match.start())):
            continue
        yield finding("card", text, match.start(), match.end())


def find_accounts(text: str) -> Iterator[Finding]:
    """International bank account numbers: the length of their country, and mod 97."""
    for match in _IBAN.finditer(text):
        length = _IBAN_LENGTHS.get(match[0][:2])
        end = length and _end_of(match[0], length)
        if not end or text[match.start() + end : match.start() + end + 1].isalnum():
            continue
        if checksums.mod_97(match[0][:end].replace(" ", "")):
            yield finding("iban", text, match.start(), match.start() + end)


def find_national(text: str) -> Iterator[Finding]:
    """National numbers of persons, each by the rules of its country."""
    for kind, shape, check, name in _KINDS:
        for match in shape.finditer(text):
            if name is not None and not name.search(before(text, match.start())):
                continue
            bare = match[0] if kind == "passport_mrz" else re.sub(r"[ .-]", "", match[0])
            if check(bare):
                yield finding(kind, text, match.start(), match.end())


def before(text: str, start: int) -> str:
    """What stands shortly before a place."""
    return text[max(0, start - _NAME_BEFORE) : start]


def _bare(number: str) -> str:
    return number.replace(" ", "").replace("-", "")


def _issued(digits: str) -> bool:
    first = digits[:6]
    return any(low <= first <= high and len(digits) in sizes for low, high, sizes in _ISSUERS)


def _end_of(spaced: str, length: int) -> int:
    """Where the letter or digit with this number ends; 0 if there are fewer."""
    for place, one in enumerate(spaced):
        length -= one != " "
        if not length:
            return place + 1
    return 0
