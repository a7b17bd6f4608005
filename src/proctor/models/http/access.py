"""Access to a provider's server: its URL, and the API key, which is never shown."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypedDict
from urllib.parse import SplitResult, unquote, urlsplit

from proctor.core.redaction.known_secrets import known_secrets
from proctor.core.retry_policy import RetryPolicy, make_retry_policy
from proctor.errors import ModelError
from proctor.models import connect as connections

# Shorter strings in a response could match the key by chance.
MIN_KEY_IN_RESPONSE = 16
_SENDABLE = re.compile(r"[\x21-\x7e]+")
# The environment variable for the key of any other server; no provider's key is sent there.
FALLBACK_KEY_VARIABLE = "PROCTOR_API_KEY"


def parse_server_url(url: str, *, where: str) -> tuple[str, str]:
    """Check a base URL; return it without a trailing slash, and its origin; rate limits are tracked per origin."""
    parts = split_http_url(url)
    # The message does not quote the URL, which may contain a password.
    if parts is None:
        raise ModelError(
            "the address of the server is not an http or https URL", where=where, fix="write it as https://host/v1"
        )
    if "@" in parts.netloc or parts.query:
        raise ModelError(
            "the URL of the server contains a password or a query, and URLs are stored with results",
            where=where,
            fix="pass the key as api_key=… or in the environment",
        )
    origin = f"{parts.scheme}://{parts.netloc}"
    return f"{origin}{parts.path}".rstrip("/"), origin


def split_http_url(url: str) -> SplitResult | None:
    """Split an http or https URL; return None for anything else."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError):
        return None
    return parts if is_usable else None


def model_name(address: str) -> str:
    scheme, _, name = address.partition(":")
    if not name.strip():
        raise ModelError("the model name is missing", where=address, fix=f"write it as {scheme}:NAME")
    return name.strip()


def split_server_address(address: str, options: ServerOptions) -> tuple[str, str]:
    """Split `http://host/v1#NAME` into the base URL and the name of the model, which may be empty."""
    base, _, name = address.partition("#")
    if "base_url" in options:
        raise ModelError("the address is already a base URL", where=base, fix="leave out base_url")
    return base, unquote(name)


class ApiKey:
    """A secret for a request header, and the name of its source.

    It cannot be printed, copied or pickled. Without a secret, no header is sent.
    """

    __slots__ = ("_secret", "source")

    def __init__(self, secret: str = "", source: str = "api_key") -> None:
        self._secret = secret
        self.source = source

    def __repr__(self) -> str:
        return f"ApiKey({self.source})"

    def __bool__(self) -> bool:
        return bool(self._secret)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key cannot be copied or pickled; connect again where you need it")

    def format_header(self, template: str) -> str:
        return template.format(self._secret)

    def redact(self, text: str) -> str:
        """Redact the key in a text, in any encoding that a server may use to quote it."""
        return known_secrets((self._secret,)).redact(text)

    def redact_response(self, body: bytes) -> bytes:
        return known_secrets((self._secret,), MIN_KEY_IN_RESPONSE).redact_bytes(body)


def find_key(
    variables: Sequence[str],
    *,
    api_key: Any = None,
    api_key_env: str | None = None,
    is_required: bool = True,
    where: str,
    environ: Mapping[str, str] | None = None,
) -> ApiKey:
    """Return the caller's key, or the key in the first environment variable that is set."""
    if api_key is not None:
        return _check_key(api_key, "api_key", where)
    environ = os.environ if environ is None else environ
    names = [api_key_env] if api_key_env is not None else list(variables)
    for name in names:
        if environ.get(name, "").strip():
            return _check_key(environ[name], name, where)
    if is_required or api_key_env is not None:
        raise ModelError(
            f"no API key: {' or '.join(names)} is not set",
            where=where,
            fix=f"export {names[0]}=… (in Python, you can also pass api_key=…)",
        )
    return ApiKey("", variables[0])


def _check_key(secret: Any, source: str, where: str) -> ApiKey:
    # The message never quotes the value.
    if not isinstance(secret, str) or not _SENDABLE.fullmatch(secret.strip()):
        raise ModelError(
            f"the key in {source} is empty or contains invalid characters",
            where=where,
            fix="remove spaces, quotes and line breaks from it",
        )
    return ApiKey(secret.strip(), source)


def endpoint_digest(origin: str, headers: Mapping[str, str]) -> str:
    """Return a digest that identifies an endpoint and its key without revealing the key."""
    state = hashlib.sha256(origin.encode())
    for name, value in sorted(headers.items()):
        state.update(f"\n{len(name)}:{name}{value}".encode())
    return state.hexdigest()


class ServerOptions(TypedDict, total=False):
    """The server and the key."""

    base_url: str | None
    api_key: str | None
    api_key_env: str | None


class ConnectionOptions(ServerOptions, total=False):
    """The server, and the fields of `RetryPolicy`."""

    retries: int
    retry_delay: float
    timeout: float | None


class ModelOptions(ConnectionOptions, total=False):
    """The options of a model; `OpenAIAdapter` describes them."""

    prices: Any
    supports_json_schema: bool
    name: str | None


class Provider(NamedTuple):
    """A provider: its scheme, its URL, and the environment variables for a gateway's URL and for the key.

    `path` and `models_path` are the URL paths for completions (`{model}` is the model) and for the model list.
    `version` is an optional suffix of a base URL. `key_header` is the name of the key's header and a format string for
    its value.
    """

    scheme: str
    base_url: str
    base_url_variable: str
    keys: tuple[str, ...]
    path: str
    models_path: str
    key_header: tuple[str, str]
    version: str = ""
    other_headers: Mapping[str, str] = {}

    def headers(self, key: ApiKey) -> dict[str, str]:
        name, template = self.key_header
        return {**self.other_headers, **({name: key.format_header(template)} if key else {})}


class ServerAccess(NamedTuple):
    """A server and its key. `is_explicit` is True if the caller chose the server, in code or in a file; a
    server from the provider's own environment variable is a gateway to the same models.
    """

    base: str
    origin: str
    key: ApiKey
    is_official: bool
    is_explicit: bool

    def identity(self, model: str, address: str) -> str:
        """Return the parts of the address and the server that are not in the model's name."""
        missing = [] if model == address else [address]
        if not self.is_official and not model.startswith(self.base):
            missing.append(self.base)
        return " ".join(missing)


def resolve_access(provider: Provider, options: ServerOptions, option_type: Any, where: str) -> ServerAccess:
    """Choose the server and its key; reject options that `option_type` does not define.

    A provider's key is sent to the provider, or to a gateway that is set in the provider's environment variable. A
    server that is set with `base_url` gets the key that is set with it, or else PROCTOR_API_KEY, or no key.
    """
    # Python does not check the names of a TypedDict at run time.
    error = connections.unknown_options_error(options, list(option_type.__annotations__), where)
    if error is not None:
        raise error
    explicit_url = options.get("base_url")
    url = explicit_url or os.environ.get(provider.base_url_variable) or provider.base_url
    base, origin = parse_server_url(url, where=where)
    base = base.removesuffix(provider.version)
    is_official = base == provider.base_url
    key = find_key(
        provider.keys if is_official or not explicit_url else [FALLBACK_KEY_VARIABLE],
        api_key=options.get("api_key"),
        api_key_env=options.get("api_key_env"),
        is_required=is_official,
        where=where,
    )
    return ServerAccess(base, origin, key, is_official, bool(explicit_url))


def retry_policy(options: ConnectionOptions, where: str) -> RetryPolicy:
    defaults = RetryPolicy()
    return make_retry_policy(
        options.get("retries", defaults.retries),
        options.get("retry_delay", defaults.retry_delay),
        options.get("timeout", defaults.timeout),
        where=where,
    )
