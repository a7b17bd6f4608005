"""Find personal data in a text by format and check digits.

Covers e-mail addresses, phone numbers, payment cards, IBANs, IP addresses and national identity
numbers. Names, street addresses and dates of birth have no recognizable format and are not found.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from proctor.core.redaction.findings import Finding, drop_overlaps, make_finding

# Verhoeff's permutation of digits.
_PERMUTATION = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
# Values of letters and digits at odd positions of an Italian tax code.
_ODD_POSITION_VALUES = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_MRZ_WEIGHTS = (7, 3, 1)


def luhn(digits: str) -> bool:
    """Check payment cards and Canadian insurance numbers."""
    doubled_digits = (int(digit) * 2 for digit in digits[-2::-2])
    total = sum(map(int, digits[-1::-2])) + sum(n - 9 if n > 9 else n for n in doubled_digits)
    return total % 10 == 0


def mod_97(iban: str) -> bool:
    """Check an IBAN in upper case without spaces."""
    rotated = iban[4:] + iban[:4]
    return int("".join(str(int(letter, 36)) for letter in rotated)) % 97 == 1


def verhoeff(digits: str) -> bool:
    """Check Indian Aadhaar numbers."""
    check = 0
    for i, digit in enumerate(reversed(digits)):
        number = int(digit)
        for _ in range(i % 8):
            number = _PERMUTATION[number]
        # Multiplication in the dihedral group of order 10.
        product = check + number if check < 5 else check - number
        check = product % 5 + 5 * ((check < 5) == (number >= 5))
    return check == 0


def cpf(digits: str) -> bool:
    """Check the two check digits of a Brazilian CPF."""
    if len(set(digits)) == 1:
        return False
    for size in (9, 10):
        total = sum(int(digit) * (size + 1 - i) for i, digit in enumerate(digits[:size]))
        if total * 10 % 11 % 10 != int(digits[size]):
            return False
    return True


def dni(number: str) -> bool:
    """Check the letter of a Spanish DNI or NIE."""
    digits = number[:-1].translate(str.maketrans("XYZ", "012"))
    return _DNI_LETTERS[int(digits) % 23] == number[-1]


def nir(number: str) -> bool:
    """Check a French social security number, including the letters of Corsica."""
    body = number[:13].replace("2A", "19").replace("2B", "18")
    return (97 - int(body) % 97) == int(number[13:])


def resident_id(number: str) -> bool:
    """Check the last sign of a Chinese resident identity number (ISO 7064, modulus 11)."""
    total = sum(int(digit) * pow(2, 17 - i, 11) for i, digit in enumerate(number[:17]))
    return "10X98765432"[total % 11] == number[17].upper()


def codice_fiscale(code: str) -> bool:
    """Check the last letter of an Italian tax code."""
    values = [int(char) if char.isdigit() else ord(char) - ord("A") for char in code[:15]]
    total = sum(n if i % 2 else _ODD_POSITION_VALUES[n] for i, n in enumerate(values))
    return chr(ord("A") + total % 26) == code[15]


def mrz(field: str, check: str) -> bool:
    """Check a field of the machine-readable zone of a passport."""
    total = sum((0 if char == "<" else int(char, 36)) * _MRZ_WEIGHTS[i % 3] for i, char in enumerate(field))
    return str(total % 10) == check


# How far before a number its name may be.
_CONTEXT_LENGTH = 30
_FIRST = r"(?<![\w.+/=-])"
_LAST = r"(?![\w/=]|[.,-]\w)"

# The lengths of card numbers, and the ranges of their first six digits.
_ISSUERS = (
    ((15,), "340000-349999 370000-379999"),
    ((16,), "222100-272099 510000-559999"),
    ((16, 17, 18, 19), "220000-220499 620000-629999"),
    ((16, 19), "352800-358999 400000-499999 601100-601199 644000-659999"),
    ((14, 16, 19), "300000-305999 309500-309599 360000-369999 380000-399999"),
    ((12, 13, 16, 19), "501800-501899 502000-502099 503800-503899 589300-589399 630400-630499 675900-676399"),
)
_SHORTEST_UNNAMED_CARD = 14
_CARD = re.compile(
    _FIRST + r"(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{1,3})?|\d{4}([ -])\d{6}\2\d{4,5}|\d{12,19})"
    r"(?![\w/=]|[.,-]\d)"
)
# After these words, the check digit is enough: issuers use ranges and lengths that are not listed.
_CARD_NAME = re.compile(
    r"\b(?:card|cc|visa|mastercard|amex)s?\b[^\w\n]{0,3}(?:(?:no|nr|number|is)\b[^\w\n]{0,3}){0,2}\Z", re.I
)
# Words before a number that is neither a card number nor a phone number.
OTHER_NUMBER = re.compile(
    r"(?:\b(?:order|invoice|ticket|tracking|reference|ref|case|serial|part|item|sku|isbn|issn|imei"
    r"|ean|gtin|upc|barcode|batch|lot|build|version|release|parcel|shipment|id|uuid|hash|timestamp"
    r"|article|product|transaction|request|commit|model|patent|grant|section)s?\b[\w ]{0,8}"
    r"|[#№])[ \"':=.#-]{0,4}(?:no|nr|number|num|id)?[ .:#\"'=-]{0,3}\Z",
    re.IGNORECASE,
)

_IBAN = re.compile(r"(?<![A-Za-z0-9])(?:[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}|[a-z]{2}\d{2}(?: ?[a-z0-9]){11,30})")
_COUNTRIES = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 "
    "DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 "
    "IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 "
    "MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 "
    "SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30 "
)
_IBAN_LENGTHS = {name: int(size) for name, size in re.findall(r"([A-Z]{2})(\d+)", _COUNTRIES)}

_SSN_SHAPE = r"(?!000|666|9)\d{3}{sep}(?!00)\d{2}{sep}(?!0000)\d{4}"
# Printed in advertisements, and never assigned to a person.
_SSN_PRINTED = frozenset({"078051120", "219099999"})


class NationalNumber(NamedTuple):
    """A national identity number: its format, its check, and the name required before it, if any."""

    kind: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool]
    name: re.Pattern[str] | None = None


def _national(kind: str, pattern: str, check: Callable[[str], bool], name: str = "") -> NationalNumber:
    name_pattern = re.compile(rf"\b(?:{name})\b[^\n]{{0,20}}\Z", re.IGNORECASE) if name else None
    return NationalNumber(kind, re.compile(f"{_FIRST}(?:{pattern}){_LAST}"), check, name_pattern)


def _is_assigned_ssn(digits: str) -> bool:
    return digits not in _SSN_PRINTED


def _passport(line: str) -> bool:
    """Check all four check digits of the second line of a passport."""
    fields = ((0, 9), (13, 19), (21, 27))
    return all(mrz(line[a:b], line[b]) for a, b in fields) and mrz(line[0:10] + line[13:20] + line[21:43], line[43])


_PASSPORT = re.compile(
    r"(?<![A-Z0-9<])[A-Z0-9<]{9}\d[A-Z]{1,3}<{0,2}\d{6}\d[MFX<]\d{6}\d[A-Z0-9<]{14}[\d<]\d(?![A-Z0-9<])"
)
# Region, date of birth, sequence and check sign; Chinese characters may touch it.
_RESIDENT_ID = re.compile(
    r"(?<![A-Za-z0-9_.+/=-])[1-68]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![A-Za-z0-9_/=])"
)
_NATIONAL_NUMBERS = (
    _national("us_ssn", _SSN_SHAPE.replace("{sep}", "-"), _is_assigned_ssn),
    _national(
        "us_ssn",
        _SSN_SHAPE.replace("{sep}", "[ ]?"),
        _is_assigned_ssn,
        r"ssn|social security|social-security|sozialversicherung\w*",
    ),
    _national(
        "uk_nino",
        r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: \d\d \d\d \d\d |\d{6})[A-D]",
        lambda _: True,
    ),
    _national("canada_sin", r"\d{3}([ -]?)\d{3}\1\d{3}", luhn, "sin|social insurance|nas"),
    _national("spain_dni", r"\d{8}-?[A-HJ-NP-TV-Z]|[XYZ]-?\d{7}-?[A-HJ-NP-TV-Z]", dni),
    _national("brazil_cpf", r"\d{3}\.\d{3}\.\d{3}-\d{2}", cpf),
    _national("brazil_cpf", r"\d{11}", cpf, "cpf"),
    _national(
        "france_nir",
        r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?(?:0[1-9]|[1-8]\d|9[0-7])",
        nir,
    ),
    _national("italy_codice_fiscale", r"[A-Z]{6}\d\d[ABCDEHLMPRST](?:[0-6]\d|7[01])[A-Z]\d{3}[A-Z]", codice_fiscale),
    _national("india_aadhaar", r"[2-9]\d{3} \d{4} \d{4}", verhoeff),
    _national("india_aadhaar", r"[2-9]\d{3}-?\d{4}-?\d{4}", verhoeff, "aadhaar"),
    NationalNumber("china_resident_id", _RESIDENT_ID, resident_id),
    NationalNumber("passport_mrz", _PASSPORT, _passport),
)


def find_cards(text: str) -> Iterator[Finding]:
    """Find payment cards by issuer, length and check digit."""
    for match in _CARD.finditer(text):
        digits, around = _strip_separators(match[0]), get_context(text, match.start())
        if not luhn(digits) or len(set(digits)) == 1:
            continue
        if not _CARD_NAME.search(around):
            is_short = len(digits) < _SHORTEST_UNNAMED_CARD
            if is_short or not _has_issuer(digits) or (match[0].isdigit() and OTHER_NUMBER.search(around)):
                continue
        yield make_finding("card", text, match.start(), match.end())


def find_accounts(text: str) -> Iterator[Finding]:
    """Find IBANs by country, length and checksum."""
    for match in _IBAN.finditer(text):
        account = match[0].upper()
        length = _IBAN_LENGTHS.get(account[:2])
        end = length and _find_end(account, length)
        if not end or text[match.start() + end : match.start() + end + 1].isalnum():
            continue
        if mod_97(account[:end].replace(" ", "")):
            yield make_finding("iban", text, match.start(), match.start() + end)


def find_national(text: str) -> Iterator[Finding]:
    """Find national identity numbers by the rules of each country."""
    for kind, pattern, check, name in _NATIONAL_NUMBERS:
        for match in pattern.finditer(text):
            if name is not None and not name.search(get_context(text, match.start())):
                continue
            compact_number = match[0] if kind == "passport_mrz" else re.sub(r"[ .-]", "", match[0])
            if check(compact_number):
                yield make_finding(kind, text, match.start(), match.end())


def get_context(text: str, start: int) -> str:
    """Return the text just before a position."""
    return text[max(0, start - _CONTEXT_LENGTH) : start]


def _strip_separators(number: str) -> str:
    return number.replace(" ", "").replace("-", "")


def _has_issuer(digits: str) -> bool:
    ranges = " ".join(ranges for lengths, ranges in _ISSUERS if len(digits) in lengths)
    return any(low <= digits[:6] <= high for low, _, high in (r.partition("-") for r in ranges.split()))


def _find_end(spaced_text: str, length: int) -> int:
    """Return the end of the nth character that is not a space, or 0 if there are fewer."""
    for i, char in enumerate(spaced_text):
        length -= char != " "
        if not length:
            return i + 1
    return 0


_FIRST_IN_PHONE = r"(?<![\w.+/=:@-])(?<!\d[ ,])"
_EXTENSION = r"(?:[ ,]{0,2}(?:x|ext\.?)[ ]?\d{1,6})?"
_LAST_IN_PHONE = _EXTENSION + r"(?![\w=@]|[.,:/-]\d| \d{2})"
_INTERNATIONAL = re.compile(r"(?<![\w+])(?:\+|00)[ ]?[1-9](?:[ ./()-]{0,2}\d){6,14}" + _EXTENSION + r"(?!\d|[.-]\d)")
_ANY = re.compile(_FIRST_IN_PHONE + r"\(?\d(?:[ ./()-]{0,2}\d){6,14}" + _LAST_IN_PHONE)
_NAME = re.compile(
    r"\b(?:(?:phone|telephone|tel|desk|mobile|cell|cellphone|fax|whatsapp|hotline|sms|telefon|handy"
    r"|téléphone|teléfono|móvil|cellulare|telefono|ph)\b[^\n\d]{0,24}\n?"
    r"|(?:call|ring|text|dial|contact)(?: (?:me|us|him|her|them|my|our|the|office|number|now|today"
    r"|back|at|on|is)){0,5}[ :]{1,3}"
    r"|(?:messages?|answering|reach(?:ed|able)?|registered)(?: (?:me|us|him|her|them|to|at|on|from|under"
    r"|number)){0,3}[ :]{1,3})\Z",
    re.IGNORECASE,
)
_NAME_AFTER = re.compile(r"[ -]{1,2}(?:office|fax|mobile|desk|cell)\b", re.IGNORECASE)

# Lengths of a country's numbers after its calling code; other countries use `_USUAL_LENGTH`.
_CALLING_CODES = (
    "1:10-10 7:10-10 20:8-10 27:9-9 30:10-10 31:9-9 32:8-9 33:9-9 34:9-9 36:8-9 39:6-11 40:9-9 "
    "41:9-9 43:7-13 44:9-10 45:8-8 46:7-10 47:8-8 48:9-9 49:6-12 51:8-9 52:10-11 53:6-8 "
    "54:10-11 55:10-11 56:9-9 57:10-10 58:10-10 60:8-10 61:9-9 62:8-12 63:8-10 64:8-10 65:8-8 "
    "66:8-9 81:9-10 82:8-11 84:9-10 86:10-11 90:10-10 91:10-10 92:9-10 93:9-9 94:9-9 95:7-10 "
    "98:10-10 351:9-9 352:4-9 353:7-9 354:7-7 358:5-12 359:8-9 370:8-8 371:8-8 372:7-8 380:9-9 "
    "385:8-9 386:8-8 420:9-9 421:9-9 852:8-8 886:8-9 966:8-9 971:8-9 972:8-9 974:8-8 "
)
_LENGTHS = {code: (int(low), int(high)) for code, low, high in re.findall(r"(\d+):(\d+)-(\d+)", _CALLING_CODES)}
_USUAL_LENGTH = (6, 12)
_CODE = re.compile(
    r"1|7|2(?:0|7|1[1-3689]|[2346]\d|5[0-8]|9[01789])|3(?:[0-469]|[57]\d|8[0-25-79])"
    r"|4(?:[013-9]|2[013])|5(?:[1-8]|[09]\d)|6(?:[0-6]|7[02-9]|8[0-35-9]|9[0-2])"
    r"|8(?:[1246]|0[08]|5[02356]|7[08]|8[0-368])|9(?:[0-58]|6[0-8]|7[0-79]|9[2-68])"
)

# National formats that are unambiguous.
_NATIONAL_FORMATS = {
    "us": r"(?:1[-. ])?(?:\([2-9]\d\d\) ?|[2-9]\d\d(?P<a>[-. ]))(?!11)[2-9]\d\d[-. ]\d{4}",
    "uk": r"\(?0(?:20|11\d|1\d1|[1-3]\d{2,4}|7\d{3}|8\d{2})\)? \d{3,4} ?\d{3,4}",
    "france": r"0[1-9](?:(?P<f>[ .-])\d\d)(?:(?P=f)\d\d){3}",
    "australia": r"(?:04\d\d \d{3} \d{3}|\(0[2378]\) \d{4} \d{4})",
    "brazil": r"\(\d\d\) ?9?\d{4}-\d{4}",
    "japan": r"0[5789]0-\d{4}-\d{4}|0\d-\d{4}-\d{4}",
    "germany": r"\(0\d{2,5}\) ?\d{3,8}|0(?:15\d|16[023]|17\d)\d?[ /-]\d{3,4} ?\d{3,5}",
}
_NATIONAL = re.compile(
    _FIRST_IN_PHONE
    + "(?:"
    + "|".join(f"(?:{pattern})" for pattern in _NATIONAL_FORMATS.values())
    + ")"
    + _LAST_IN_PHONE
)
_DATE = re.compile(r"\d{4}([-./])\d{1,2}\1\d{1,2}(?:[ T].*)?|\d{1,2}([-./])\d{1,2}\2\d{2,4}(?: .*)?")


def find_phones(text: str) -> Iterator[Finding]:
    """Find phone numbers: international and national formats, and digits after a word like "call"."""
    for match in _INTERNATIONAL.finditer(text):
        # The zero in +44 (0)20 is only dialed inside the country.
        if _is_assigned_phone(re.sub(r"\(0\)|[ ,]*[xe].*|\D", "", match[0]).removeprefix("00")):
            yield make_finding("phone", text, match.start(), match.end(), keep=2)
    for pattern, needs_name in ((_NATIONAL, False), (_ANY, True)):
        for match in pattern.finditer(text):
            around = get_context(text, match.start())
            is_named = _NAME.search(around) or _NAME_AFTER.match(text, match.end())
            if needs_name and (not is_named or _DATE.fullmatch(match[0])):
                continue
            if not OTHER_NUMBER.search(around):
                yield make_finding("phone", text, match.start(), match.end())


def _is_assigned_phone(digits: str) -> bool:
    """True if the digits are a calling code and a number of the right length."""
    code = _CODE.match(digits)
    if code is None:
        return False
    low, high = _LENGTHS.get(code[0], _USUAL_LENGTH)
    number = digits[code.end() :]
    return low <= len(number) <= high and (code[0] != "1" or _is_north_american(number))


def _is_north_american(digits: str) -> bool:
    return digits[0] > "1" and digits[3] > "1" and digits[1:3] != "11"


# RFC 5321 allows 64 characters before the @ and 255 after it.
_EMAIL = re.compile(
    r"(?<![\w.+%'-])(?P<name>[\w+%-](?:[\w.+%'-]{0,62}[\w+%-])?)"
    r"@(?P<host>(?:[^\W_](?:[^\W_]|-){0,62}\.){1,8}(?P<top>[^\W\d_]{2,24}|xn--[a-z0-9-]{2,59}))"
    r"(?![\w@]|-\w|\.\w)"
)
# Spelled out against robots: "ann dot lee at mail dot com", "ann[at]mail[dot]com". A plain "at" needs a plain "dot", a
# usual top-level domain, and before it no word of a sentence ("look at shop dot com").
_DOT = r"(?:[ ]?[\[({<][ ]?(?:dot|\.)[ ]?[\])}>][ ]?|[ ]dot[ ]|[ ]?\.[ ]?)"
_TOP = (
    r"(?:com|net|org|edu|gov|info|io|co|uk|de|fr|es|it|nl|eu|us|ca|au|in|ch|at|cz|pl|se|dk|fi|pt|ie|nz|ru|jp|br|biz"
    r"|dev|app|ai|me)"
)
_SPELLED_EMAIL = re.compile(
    rf"(?<![\w.+@-])(?P<name>[\w+-]{{1,40}}(?:(?:{_DOT}|[ ](?:underscore|dash|minus|hyphen)[ ])[\w+-]{{1,40}}){{0,3}})"
    rf"(?:[ ]?[\[({{<][ ]?(?:at|@)[ ]?[\])}}>][ ]?|[ ](?P<plain>at|AT)[ ]|[ ]@[ ])"
    rf"(?P<host>[a-z0-9-]{{1,40}}(?:{_DOT}[a-z0-9-]{{2,40}}){{0,2}}?)(?P<dot>{_DOT}){_TOP}(?![\w@]|-\w)",
    re.IGNORECASE,
)
_SENTENCE_WORD = re.compile(
    r"(?:me|us|it|you|him|her|them|look|looks?ing|available|found|here|there|is|are|was|be|buy|bought|shop|order|ordered|visit"
    r"|more|page|site|website|online|only|and|or|out|up|in|work|works|working|worked|job|read|see|seen|posted|hosted|live|start"
    r"|team|people|everyone|engineer|office|located|sold|sign|signed|not|now|today|free|begin|details?|info|information)",
    re.IGNORECASE,
)
# Domains that nobody can own (RFC 2606, RFC 6761).
_RESERVED_DOMAIN = re.compile(
    r"(?:[\w-]+\.)*(?:example\.(?:com|net|org)|example|test|invalid|localhost)", re.IGNORECASE
)
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3002: ord("."),
    0xFE52: ord("."),
    0xFE6B: ord("@"),
}
_FILE_ENDING = re.compile(r"png|jpe?g|gif|svg|webp|css|js|json|html|map|ico|pdf", re.IGNORECASE)
_AUTHORITY = re.compile(r"://[^\s/@]*\Z")
_V4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)(?P<net>/\d{1,2}(?!\d))?")
_V6 = re.compile(r"(?<![\w:.])(?=[^:\s]{0,4}:)[0-9A-Fa-f:]{3,39}(?:(?:\.\d{1,3}){3})?(?![\w:])")
_VERSION = re.compile(
    r"(?:\b(?:v|ver|version|release|build|firmware|driver|section|chapter|update|upgrade\w*|from"
    r"|to|sdk|runtime|oid|figure|clause|package)[ .:=\"']{0,3}|[§=~^><]=?[ ]?)\Z",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"\b(?:ip|address|host|server|client|login|log(?:ged|ging|s)?[ -](?:in|on)|visitors?|requests?|traffic"
    r"|connect\w*|ping|peer)\b",
    re.I,
)
_V6_COLONS = 7
_V6_IN_USE = tuple(map(ipaddress.IPv6Network, ("2000::/3", "fc00::/7", "fe80::/10")))


def find_pii(text: str, kinds: Iterable[str] | None = None, *, reserved_domains: bool = True) -> list[Finding]:
    """Find personal data in a text, in order, with masked excerpts; `kinds` limits the search.

    Without `reserved_domains`, addresses such as ann@example.com, which nobody can own, are left out.
    """
    names = FINDERS if kinds is None else kinds
    # Full-width characters are replaced one by one, so the positions stay.
    text = text if text.isascii() else text.translate(_FULL_WIDTH)
    findings = drop_overlaps(item for name in names for item in FINDERS[name](text))
    return findings if reserved_domains else [item for item in findings if not _is_reserved(item, text)]


def _is_reserved(finding: Finding, text: str) -> bool:
    host = re.split(r"@|\bat\b", text[finding.start : finding.end], flags=re.IGNORECASE)[-1]
    plain = re.sub(r"[\s\[\](){}<>]", "", re.sub(r"\bdot\b", ".", host, flags=re.IGNORECASE))
    return finding.kind == "email" and _RESERVED_DOMAIN.fullmatch(plain) is not None


def find_emails(text: str) -> Iterator[Finding]:
    """Find e-mail addresses, also spelled out, except file names, "your_name@…" and passwords before a host."""
    for match in _EMAIL.finditer(text):
        name = match["name"]
        if ".." in name or name.lower().startswith("your") or _FILE_ENDING.fullmatch(match["top"]):
            continue
        is_git_remote = name == "git" and text[match.end() : match.end() + 1] == ":"
        if not is_git_remote and not _AUTHORITY.search(text[max(0, match.start() - 80) : match.start()]):
            yield make_finding("email", text, match.start(), match.end())
    for match in _SPELLED_EMAIL.finditer(text):
        last_word = re.split(r"\W+", match["name"])[-1]
        is_sentence = match["plain"] and ("dot" not in match[0].lower() or _SENTENCE_WORD.fullmatch(last_word))
        if not is_sentence and not last_word.lower().startswith("your"):
            start = match.start() + (len(match["name"]) - len(match["name"].lstrip("-+")))
            yield make_finding("email", text, start, match.end())


def find_addresses(text: str) -> Iterator[Finding]:
    """Find IP addresses of machines, except networks, masks, loopback and version numbers."""
    for match in _V4.finditer(text):
        try:
            address = ipaddress.IPv4Address(match[0].partition("/")[0])
        except ValueError:
            continue
        if match["net"] not in (None, "/32") or not _is_machine(address):
            continue
        around = get_context(text, match.start())
        if _ADDRESS.search(around) or not _VERSION.search(around):
            yield make_finding("ip_address", text, match.start(), match.end())
    for match in _V6.finditer(text):
        try:
            address_v6 = ipaddress.IPv6Address(match[0])
        except ValueError:
            continue
        is_named = _ADDRESS.search(get_context(text, match.start())) and match[0].count(":") == _V6_COLONS
        if (is_named or any(address_v6 in net for net in _V6_IN_USE)) and any(map(str.isdigit, match[0])):
            yield make_finding("ip_address", text, match.start(), match.end())


def _is_machine(address: ipaddress.IPv4Address) -> bool:
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return False
    # 255.x is a mask; 0.x is never a machine.
    return address.packed[0] not in (0, 255)


FINDERS: dict[str, Callable[[str], Iterator[Finding]]] = {
    "email": find_emails,
    "phone": find_phones,
    "card": find_cards,
    "iban": find_accounts,
    "national_id": find_national,
    "ip_address": find_addresses,
}
