"""Telephone numbers, by the rules of their countries.

With + and a country's code the number must be as long as that country's are. Without it, the
shape must be one that a country writes its numbers in; any other row of 7 to 15 digits is a
number only after a word such as "phone".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proctor.redaction.finding import Finding, finding
from proctor.redaction.numbers import OTHER_NUMBER, before

_FIRST = r"(?<![\w.+/=:@-])(?<!\d[ ,])"
_LAST = r"(?![\w=@]|[.,:/-]\d| \d{2})"
_ABROAD = re.compile(r"(?<![\w+])(?:\+|00)[ ]?[1-9](?:[ ./()-]{0,2}\d){6,14}(?!\d|[.-]\d)")
_ANY = re.compile(_FIRST + r"\(?\d(?:[ ./()-]{0,2}\d){6,14}" + _LAST)
_NAME = re.compile(
    r"\b(?:(?:phone|telephone|tel|mobile|cell|cellphone|fax|whatsapp|hotline|sms|telefon|handy"
    r"|téléphone|teléfono|móvil|cellulare|telefono|ph)\b[^\n\d]{0,24}"
    r"|(?:call|ring|text|dial|contact)(?: (?:me|us|him|her|them|my|our|the|office|number|now|today"
    r"|back|at|on|is)){0,5}[ :]{1,3})\Z",
    re.IGNORECASE,
)

# How long the numbers of a country are behind its code; the usual rule where it is not listed.
_COUNTRIES = (
    "1:10-10 7:10-10 20:8-10 27:9-9 30:10-10 31:9-9 32:8-9 33:9-9 34:9-9 36:8-9 39:6-11 40:9-9 "
    "41:9-9 43:7-13 44:9-10 45:8-8 46:7-10 47:8-8 48:9-9 49:6-12 51:8-9 52:10-11 53:6-8 "
    "54:10-11 55:10-11 56:9-9 57:10-10 58:10-10 60:8-10 61:9-9 62:8-12 63:8-10 64:8-10 65:8-8 "
    "66:8-9 81:9-10 82:8-11 84:9-10 86:10-11 90:10-10 91:10-10 92:9-10 93:9-9 94:9-9 95:7-10 "
    "98:10-10 351:9-9 352:4-9 353:7-9 354:7-7 358:5-12 359:8-9 370:8-8 371:8-8 372:7-8 380:9-9 "
    "385:8-9 386:8-8 420:9-9 421:9-9 852:8-8 886:8-9 966:8-9 971:8-9 972:8-9 974:8-8 "
)
_LENGTHS = {
    code: (int(low), int(high)) for code, low, high in re.findall(r"(\d+):(\d+)-(\d+)", _COUNTRIES)
}
_USUAL_LENGTH = (6, 12)
_CODE = re.compile(
    r"1|7|2(?:0|7|1[1-3689]|[2346]\d|5[0-8]|9[01789])|3(?:[0-469]|[57]\d|8[0-25-79])"
    r"|4(?:[013-9]|2[013])|5(?:[1-8]|[09]\d)|6(?:[0-6]|7[02-9]|8[0-35-9]|9[0-2])"
    r"|8(?:[1246]|0[08]|5[02356]|7[08]|8[0-368])|9(?:[0-58]|6[0-8]|7[0-79]|9[2-68])"
)

# How countries write their own numbers, where that cannot be taken for anything else.
_AT_HOME = {
    "us": r"(?:1[-. ])?(?:\([2-9]\d\d\) ?|[2-9]\d\d(?P<a>[-. ]))(?!11)[2-9]\d\d[-. ]\d{4}",
    "uk": r"\(?0(?:20|11\d|1\d1|[1-3]\d{2,4}|7\d{3}|8\d{2})\)? \d{3,4} ?\d{3,4}",
    "france": r"0[1-9](?:(?P<f>[ .-])\d\d)(?:(?P=f)\d\d){3}",
    "australia": r"(?:04\d\d \d{3} \d{3}|\(0[2378]\) \d{4} \d{4})",
    "brazil": r"\(\d\d\) ?9?\d{4}-\d{4}",
    "japan": r"0[5789]0-\d{4}-\d{4}|0\d-\d{4}-\d{4}",
    "germany": r"\(0\d{2,5}\) ?\d{3,8}|0(?:15\d|16[023]|17\d)\d?[ /-]\d{3,4} ?\d{3,5}",
}
_HOME = re.compile(
    _FIRST + "(?:" + "|".join(f"(?:{one})" for one in _AT_HOME.values()) + ")" + _LAST
)
_DATE = re.compile(
    r"\d{4}([-./])\d{1,2}\1\d{1,2}(?:[ T].*)?|\d{1,2}([-./])\d{1,2}\2\d{2,4}(?: .*)?"
)


def find_phones(text: str) -> Iterator[Finding]:
    """Telephone numbers: international ones, those in a country's own shape, and those so named."""
    for match in _ABROAD.finditer(text):
        # The zero in +44 (0)20 is dialled at home only.
        if _assigned(re.sub(r"\(0\)|\D", "", match[0]).removeprefix("00")):
            yield finding("phone", text, match.start(), match.end(), keep=2)
    for shape, needs_name in ((_HOME, False), (_ANY, True)):
        for match in shape.finditer(text):
            around = before(text, match.start())
            if needs_name and (not _NAME.search(around) or _DATE.fullmatch(match[0])):
                continue
            if not OTHER_NUMBER.search(around):
                yield finding("phone", text, match.start(), match.end())


def _assigned(digits: str) -> bool:
    """True if the digits are a country's code and as many as its numbers have."""
    code = _CODE.match(digits)
    if code is None:
        return False
    low, high = _LENGTHS.get(code[0], _USUAL_LENGTH)
    rest = digits[code.end() :]
    return low <= len(rest) <= high and (code[0] != "1" or _north_american(rest))


def _north_american(digits: str) -> bool:
    return digits[0] > "1" and digits[3] > "1" and digits[1:3] != "11"
