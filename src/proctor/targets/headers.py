"""HTTP headers whose values come from the environment and are shown to nobody."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from string import Template
from typing import Any

from proctor.errors import CallFailed, Problem, TargetError
from proctor.redaction.known import known_secrets

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
# Headers, variables and parameters of an address whose values are secrets.
_SECRET = re.compile(
    r"auth|key|token|secret|passw|credential|cookie|signature|^sig$|^code$", re.IGNORECASE
)
# In an output a shorter text may be something else than the secret.
_SHORTEST_IN_ANSWERS = 8


class Headers:
    """Header values, in which `$NAME` or `${NAME}` stands for an environment variable.

    A dollar sign is written `$$`. Variables are looked for when the headers are made and read
    again for each call, so that a renewed token is used. No value is ever shown, nor is any of the
    values given `besides`, by name.

    >>> Headers({"Accept-Language": "en"}).filled()
    {'Accept-Language': 'en'}
    """

    def __init__(self, headers: Mapping[str, str], besides: Iterable[tuple[str, str]] = ()) -> None:
        problems = [Problem(f"headers.{key}", why) for key, why in _faults(headers)]
        if problems:
            raise TargetError("the headers cannot be used", problems=problems)
        self._templates = {name: Template(value) for name, value in headers.items()}
        self._besides = tuple(besides)

    def __repr__(self) -> str:
        return f"Headers({', '.join(self._templates)})"

    def filled(self) -> dict[str, str]:
        """The headers as they are sent."""
        try:
            return {
                name: template.substitute(os.environ).strip()
                for name, template in self._templates.items()
            }
        except KeyError as error:
            name = error.args[0]
            raise CallFailed(f"the environment variable {name!r} is no longer set") from None

    def hide(self, text: str) -> str:
        """The text without any header value or variable that a server may have quoted in it."""
        return known_secrets(self._values(lambda _name: True)).hide(text)

    def hide_in_answer(self, body: bytes) -> bytes:
        """An answer without the secrets among them; other values may well be part of an output."""
        secrets = self._values(is_secret)
        return known_secrets(secrets, _SHORTEST_IN_ANSWERS).hide_in_bytes(body)

    def as_written(self) -> dict[str, str]:
        """The headers without secrets, for what tells one endpoint from another."""
        return {
            name: "" if is_secret(name) else template.template
            for name, template in self._templates.items()
        }

    def _values(self, wanted: Callable[[str], bool]) -> tuple[str, ...]:
        """The values of headers and variables by name, and of a token without its scheme."""
        values = [value for name, value in self._besides if wanted(name)]
        for header, template in self._templates.items():
            variables = template.get_identifiers()
            if wanted(header) or any(map(wanted, variables)):
                whole = template.safe_substitute(os.environ).strip()
                values += [whole, whole.rpartition(" ")[2]] if is_secret(header) else [whole]
            values += [os.environ.get(name, "").strip() for name in variables if wanted(name)]
        return tuple(sorted(set(values)))


def is_secret(name: str) -> bool:
    """True for the name of a header, variable or parameter that holds a secret.

    >>> is_secret("X-API-Key"), is_secret("Accept-Language")
    (True, False)
    """
    return _SECRET.search(name) is not None


def _faults(headers: Any) -> list[tuple[str, str]]:
    """Which headers cannot be sent, and why; the values themselves are not told."""
    if not isinstance(headers, Mapping):
        return [("", "expected a mapping of names to values")]
    found = [(str(name), _fault(name, value)) for name, value in headers.items()]
    return [(name, why) for name, why in found if why]


def _fault(name: Any, value: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "this is not a header name"
    if not isinstance(value, str):
        return "the value is not a string"
    template = Template(value)
    if not template.is_valid():
        return "a $ is not followed by a variable's name; write $$ for a dollar sign"
    missing = [variable for variable in template.get_identifiers() if variable not in os.environ]
    if missing:
        return f"the environment variable {missing[0]!r} is not set"
    if not _VALUE.fullmatch(template.substitute(os.environ).strip()):
        return "the value has characters that a header cannot hold"
    return ""
