"""Where a server is: base URLs, checked once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from proctor.errors import ModelError


class Server(NamedTuple):
    """A base URL without a slash at its end, and the origin that its limits belong to."""

    base: str
    origin: str


def server(url: str, *, where: str) -> Server:
    """The server behind a base URL, or what is wrong with the URL.

    >>> server("http://127.0.0.1:8080/v1/", where="base_url")
    Server(base='http://127.0.0.1:8080/v1', origin='http://127.0.0.1:8080')
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError):
        usable = False
    # The URL itself is not told: it may hold a password.
    if not usable:
        raise ModelError(
            "the address of the server is not an http or https URL",
            where=where,
            fix="write it as https://host/v1",
        )
    if "@" in parts.netloc or parts.query:
        raise ModelError(
            "the address of the server holds a password or a query, and addresses are stored",
            where=where,
            fix="give the key as api_key=… or in the environment",
        )
    origin = f"{parts.scheme}://{parts.netloc}"
    return Server(f"{origin}{parts.path}".rstrip("/"), origin)


def base_url(given: str | None, variable: str, usual: str, environ: Mapping[str, str] | None = None) -> str:
    """The caller's base URL, or that of the environment, or the provider's own.

    >>> base_url(None, "OPENAI_BASE_URL", "https://api.openai.com/v1", {})
    'https://api.openai.com/v1'
    """
    return given or (os.environ if environ is None else environ).get(variable) or usual


def name_in(address: str, scheme: str) -> str:
    """The model's name after the colon of an address.

    >>> name_in("openai:gpt-4o-mini", "openai")
    'gpt-4o-mini'
    """
    name = address.partition(":")[2].strip()
    if not name:
        raise ModelError("the model is not named", where=address, fix=f"write it as {scheme}:NAME")
    return name
