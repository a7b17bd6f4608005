"""The formats by their names, and which options each of them takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from proctor.evaluators.formats import (
    addresses,
    markdown,
    markup,
    notations,
    scalars,
    tables,
    times,
)
from proctor.evaluators.formats.fault import Fault
from proctor.evaluators.formats.terms import Terms

Check = Callable[[str, Terms], Fault | None]


class Format(NamedTuple):
    """How a format is checked, which options it takes, and whether white space around it counts.

    `data` are the plain types that comply without being text.
    """

    check: Check
    options: tuple[str, ...] = ()
    strip: bool = True
    data: tuple[type, ...] = ()


FORMATS: dict[str, Format] = {
    "email": Format(addresses.email),
    "url": Format(addresses.url, ("schemes",)),
    "uri": Format(addresses.uri),
    "hostname": Format(addresses.hostname),
    "ipv4": Format(addresses.ipv4),
    "ipv6": Format(addresses.ipv6),
    "phone": Format(addresses.phone),
    "uuid": Format(addresses.uuid),
    "date": Format(times.date),
    "time": Format(times.time),
    "datetime": Format(times.datetime),
    "rfc3339": Format(times.rfc3339),
    "duration": Format(times.duration),
    "number": Format(scalars.number, data=(int, float)),
    "integer": Format(scalars.integer, data=(int,)),
    "boolean": Format(scalars.boolean, data=(bool,)),
    "base64": Format(scalars.base64_standard),
    "base64url": Format(scalars.base64_url),
    "hex": Format(scalars.hexadecimal),
    "semver": Format(scalars.semver),
    "regex": Format(scalars.regex, ("pattern",), strip=False),
    "json": Format(notations.json, strip=False, data=(object,)),
    "yaml": Format(notations.yaml, strip=False),
    "toml": Format(notations.toml, strip=False),
    "python": Format(notations.python, strip=False),
    "xml": Format(markup.xml),
    "html": Format(markup.html, strip=False),
    "markdown": Format(markdown.markdown, strip=False),
    "csv": Format(tables.comma_separated, ("columns", "header", "delimiter"), strip=False),
    "tsv": Format(tables.tab_separated, ("columns", "header"), strip=False),
}
# Other names that people use for the same thing.
ALSO = {
    "date-time": "datetime",
    "iso8601": "datetime",
    "e164": "phone",
    "int": "integer",
    "bool": "boolean",
    "md": "markdown",
    "yml": "yaml",
}
