"""Keys of providers: taken from the environment or the caller, and shown to nobody."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypedDict

from proctor.core.redaction.known_secrets import known_secrets
from proctor.errors import ModelError
from proctor.models import connect as connections
from proctor.models.http import addresses

# In an answer only what can be nothing but the key is hidden.
SHORTEST_IN_ANSWERS = 16
_SENDABLE = re.compile(r"[\x21-\x7e]+")


class Key:
    """A secret that is sent in a header, and the name of where it came from.

    It is not written, printed, copied or pickled. Without a secret nothing is sent.

    >>> Key("sk-0123456789", "OPENAI_API_KEY")
    Key(OPENAI_API_KEY)
    >>> Key("sk-0123456789", "OPENAI_API_KEY").hide("wrong key sk-0123456789")
    'wrong key [hidden]'
    """

    __slots__ = ("_secret", "source")

    def __init__(self, secret: str = "", source: str = "api_key") -> None:
        self._secret = secret
        self.source = source

    def __repr__(self) -> str:
        return f"Key({self.source})"

    def __bool__(self) -> bool:
        return bool(self._secret)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not copied or pickled; connect again where it is needed")

    def sent_as(self, form: str) -> str:
        """The header value with the key in place of `{}`."""
        return form.format(self._secret)

    def hide(self, text: str) -> str:
        """The text without the key, which a server may have quoted in it in any encoding."""
        return known_secrets((self._secret,)).hide(text)

    def hide_in_answer(self, body: bytes) -> bytes:
        """The same for an answer that will be kept."""
        return known_secrets((self._secret,), SHORTEST_IN_ANSWERS).hide_in_bytes(body)


def find(
    variables: Sequence[str],
    *,
    api_key: Any = None,
    api_key_env: str | None = None,
    needed: bool = True,
    where: str,
    environ: Mapping[str, str] | None = None,
) -> Key:
    """The caller's key, or that of the first variable which is set.

    >>> find(["OPENAI_API_KEY"], where="openai:gpt-4o-mini", environ={"OPENAI_API_KEY": "sk-1"})
    Key(OPENAI_API_KEY)
    """
    if api_key is not None:
        return _checked(api_key, "api_key", where)
    environ = os.environ if environ is None else environ
    asked = [api_key_env] if api_key_env is not None else list(variables)
    for name in asked:
        if environ.get(name, "").strip():
            return _checked(environ[name], name, where)
    if needed or api_key_env is not None:
        raise ModelError(
            f"there is no key: {' or '.join(asked)} is not set in the environment",
            where=where,
            fix=f"export {asked[0]}=…, or give api_key=… where the model is made",
        )
    return Key("", variables[0])


def digest(origin: str, headers: Mapping[str, str]) -> str:
    """What tells one endpoint and key from another without telling the key."""
    state = hashlib.sha256(origin.encode())
    for name, value in sorted(headers.items()):
        state.update(f"\n{len(name)}:{name}{value}".encode())
    return state.hexdigest()


def _checked(secret: Any, source: str, where: str) -> Key:
    # The value itself is never told.
    if not isinstance(secret, str) or not _SENDABLE.fullmatch(secret.strip()):
        raise ModelError(
            f"the key in {source} has characters that no key has, or none at all",
            where=where,
            fix="look for spaces, quotes or line ends around it",
        )
    return Key(secret.strip(), source)


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
    key: Key
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
    key = find(
        provider.keys if official or not named else [OTHER_KEY],
        api_key=options.get("api_key"),
        api_key_env=options.get("api_key_env"),
        needed=official,
        where=where,
    )
    return Access(base, found.origin, key, official, named)
