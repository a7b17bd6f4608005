"""HTTP headers whose values come from the environment and are shown to nobody."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from string import Template
from typing import Any

from proctor.errors import CallFailed, Problem, TargetError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_HIDDEN = "[hidden]"
_SHORTEST_HIDDEN = 4


class Headers:
    """Header values, in which `$NAME` or `${NAME}` stands for an environment variable.

    A dollar sign is written `$$`. Variables are looked for when the headers are made and read
    again for each call, so that a renewed token is used. No value is ever shown, nor is any of the
    secrets given `besides`.

    >>> Headers({"Accept-Language": "en"}).filled()
    {'Accept-Language': 'en'}
    """

    def __init__(self, headers: Mapping[str, str], besides: Iterable[str] = ()) -> None:
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
        secrets = {value.strip() for value in self._secrets()}
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= _SHORTEST_HIDDEN:
                text = text.replace(secret, _HIDDEN)
        return text

    def _secrets(self) -> list[str]:
        variables = [name for each in self._templates.values() for name in each.get_identifiers()]
        whole = [each.safe_substitute(os.environ) for each in self._templates.values()]
        return [*whole, *(os.environ.get(name, "") for name in variables), *self._besides]


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
