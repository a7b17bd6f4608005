"""Who is asked, where and with which key: settled in the same way for all providers."""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

from proctor import connections
from proctor.providers.transport import addresses, keys

# For servers that are nobody's own: no provider's key is sent to them.
OTHER_KEY = "PROCTOR_API_KEY"


class Server(TypedDict, total=False):
    """Which server is asked, and with which key."""

    base_url: str | None
    api_key: str | None
    api_key_env: str | None


class Reach(Server, total=False):
    """How it is asked: see `Patience`."""

    retries: int
    retry_delay: float
    timeout: float | None


class Options(Reach, total=False):
    """How a model is connected; what each means is told by `OpenAIAdapter`."""

    prices: Any
    fits_schema: bool
    name: str | None


class Provider(NamedTuple):
    """A provider: its scheme, its own server, and the variables for a gateway and for the key.

    `version` is an end of base URLs that may be written or left out.
    """

    scheme: str
    base_url: str
    base: str
    keys: tuple[str, ...]
    version: str = ""


class Access(NamedTuple):
    """A server and the key for it. `named` says that the caller named the server, in code or a
    file; a server that the provider's own variable names is a gateway to the same models.
    """

    base: str
    origin: str
    key: keys.Key
    official: bool
    named: bool

    def identity(self, model: str, address: str) -> str:
        """What tells models of one name apart: the address and the server that it hides."""
        hidden = [] if model == address else [address]
        if not self.official and not model.startswith(self.base):
            hidden.append(self.base)
        return " ".join(hidden)


def access(provider: Provider, options: Server, kind: Any, where: str) -> Access:
    """The server that is asked, and its key. Options that `kind` does not name are refused.

    A provider's key is for the provider, and for a gateway that its own variable names. A server
    that the caller names gets what is given with it, or PROCTOR_API_KEY, or no key.
    """
    # Python itself takes whatever options a TypedDict describes, and others too.
    refused = connections.misfit(options, list(kind.__annotations__), where)
    if refused is not None:
        raise refused
    given = options.get("base_url")
    url = addresses.base_url(given, provider.base, provider.base_url)
    found = addresses.server(url, where=where)
    base = found.base.removesuffix(provider.version)
    official = base == provider.base_url
    named = bool(given)
    key = keys.find(
        provider.keys if official or not named else [OTHER_KEY],
        api_key=options.get("api_key"),
        api_key_env=options.get("api_key_env"),
        needed=official,
        where=where,
    )
    return Access(base, found.origin, key, official, named)
