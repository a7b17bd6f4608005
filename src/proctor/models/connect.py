"""Addresses of models, embedders and mailboxes become live: what stands before the colon connects.

They are offered as entry points (`proctor.providers`, `proctor.embedders`, `proctor.mailboxes`),
the built-in ones too. Judges, targets and workers therefore need not know any of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proctor.core import imports as importing
from proctor.core import imports as plugins
from proctor.errors import ConfigError, ModelError, UsageError, nearest
from proctor.ports import Embedder, Mailbox, ProviderAdapter

# Under this name a package offers to wrap functions, chat models and clients that users hold.
PYTHON = "python"
# The user and password of an address, also of one that is badly written.
_SECRET = re.compile(r"^(\w*:?/*).*@", re.DOTALL)
# How the names of a provider's models begin.
_MODEL_NAMES = {
    "openai": re.compile(r"(?:gpt|chatgpt|o\d)(?:-|$)"),
    "anthropic": re.compile(r"claude-"),
    "gemini": re.compile(r"gemini-"),
}
# What is said with each question and not where a model is connected.
_OF_THE_QUESTION = frozenset({"temperature", "max_tokens", "seed", "top_logprobs"})


def provider(model: Any, **options: Any) -> ProviderAdapter:
    """A model by its address, a mapping {model, …options}, or whatever the user holds.

    `openai:gpt-4o-mini`, `anthropic:…`, `gemini:…`, `http://host/v1#model`, `local:smollm2`,
    `replay:FILE`, `module:attribute`; functions, LangChain chat models and SDK clients as they are.

    >>> provider(lambda messages: "Paris").model
    'python:<lambda>'
    """
    found: ProviderAdapter = _connected(model, options, plugins.PROVIDERS, "model", ("complete", "model"))
    return found


def embedder(model: Any, **options: Any) -> Embedder:
    """An embedder by its address, a mapping {model, …options}, or whatever the user holds.

    `local:minilm`, `openai:text-embedding-3-small`, `http://host/v1#model`, `lexical`,
    `module:attribute`; functions and LangChain embeddings as they are.
    """
    found: Embedder = _connected(model, options, plugins.EMBEDDERS, "embedder", ("embed", "name"))
    return found


def mailbox(address: str, body_type: type[Any], **options: Any) -> Mailbox[Any]:
    """A mailbox by its address, for bodies of one type.

    `redis://host:6379/0/NAME` (or `rediss://`), `sqs://NAME`, `memory://NAME`.
    """
    scheme, colon, _ = address.partition(":")
    connect = plugins.find(plugins.MAILBOXES, scheme) if colon else None
    if connect is None:
        known = plugins.names(plugins.MAILBOXES)
        raise ConfigError(
            f"{hidden(address)!r} is not the address of a mailbox",
            fix="write it as redis://host:6379/0/NAME or sqs://NAME"
            + ("" if scheme in known else f"; {nearest(scheme, known)}"),
        )
    found: Mailbox[Any] = connect(address, body_type, **options)
    return found


def hidden(address: str) -> str:
    """An address as it may be shown: without user, password and options.

    >>> hidden("redis://:secret@localhost:6379/0/requests?password=secret")
    'redis://localhost:6379/0/requests'
    """
    return _SECRET.sub(r"\1", address).partition("?")[0]


def is_model_address(text: str) -> bool:
    """True if a text names a model, rather than a Python object, by the name before its colon.

    >>> is_model_address("openai:gpt-4o-mini"), is_model_address("my_agent:answer")
    (True, False)
    """
    scheme, colon, _ = text.partition(":")
    return bool(colon) and scheme != PYTHON and scheme in plugins.names(plugins.PROVIDERS)


def like_a_provider(text: str) -> str:
    """Which provider was probably meant by an address that names none; empty if none is like it.

    >>> like_a_provider("opnai:gpt-4o-mini")
    "did you mean 'openai'?"
    """
    known = [name for name in plugins.names(plugins.PROVIDERS) if name != PYTHON]
    told = nearest(text.partition(":")[0], known)
    return told if told.startswith("did you mean") else ""


def suggest_address(name: str) -> str:
    """Suggest how to write the name of a model as an address.

    >>> suggest_address("gpt-4o")
    'write a model as PROVIDER:NAME, for example openai:gpt-4o'
    >>> suggest_address("mistral-7b")
    'write a model as PROVIDER:NAME, for example openai:gpt-4o-mini'
    """
    provider_name = next((prefix for prefix, pattern in _MODEL_NAMES.items() if pattern.match(name)), None)
    example = f"{provider_name}:{name}" if provider_name else "openai:gpt-4o-mini"
    return f"write a model as PROVIDER:NAME, for example {example}"


def _connected(thing: Any, options: Mapping[str, Any], group: str, kind: str, port: tuple[str, str]) -> Any:
    if isinstance(thing, Mapping):
        given = {str(key): value for key, value in thing.items()}
        if "model" not in given:
            raise ModelError(
                f"the {kind} is not named", fix="write {model: address, …options} or the address"
            )
        return _connected(given.pop("model"), {**given, **options}, group, kind, port)
    if isinstance(thing, str):
        return _at_address(thing, options, group, kind, port)
    call, name = port
    if callable(getattr(thing, call, None)) and isinstance(getattr(thing, name, None), str):
        if options:
            raise ModelError(
                f"options for {_a(kind)} that is ready: {', '.join(options)}",
                where=getattr(thing, name),
                fix="give them where it is made",
            )
        return thing
    return _made(plugins.find(group, PYTHON), thing, options, repr(type(thing).__name__))


def _at_address(
    address: str, options: Mapping[str, Any], group: str, kind: str, port: tuple[str, str]
) -> Any:
    scheme, colon, rest = address.partition(":")
    if scheme != PYTHON:
        connect = plugins.find(group, scheme)
        if connect is not None:
            return _made(connect, address, options, address)
    known = [name for name in plugins.names(group) if name != PYTHON]
    if not colon:
        raise ModelError(
            f"{address!r} is not the address of {_a(kind)}",
            fix=f"{_how_to_write(kind, address)}, or a Python object as module:attribute; "
            f"providers: {', '.join(known)}",
        )
    try:
        found = importing.load(rest if scheme == PYTHON else address)
    except UsageError as error:
        raise ModelError(
            f"there is no provider {scheme!r}, and {error.what}",
            where=address,
            fix=f"{nearest(scheme, known)}; or mend the address of the object",
        ) from None
    if isinstance(found, str) and found == address:
        raise ModelError("it names itself", where=address)
    return _connected(found, options, group, kind, port)


def _how_to_write(kind: str, address: str) -> str:
    return suggest_address(address) if kind == "model" else f"write {_a(kind)} as PROVIDER:NAME"


def misfit(options: Iterable[str], taken: Sequence[str], where: str) -> ModelError | None:
    """The error for options that are not among those taken, or None if all are.

    >>> print(misfit(["temperature"], ["retries"], "openai:gpt-4o"))
    openai:gpt-4o: its options do not fit: there is no 'temperature'
    Fix: it takes retries; temperature belongs to the judge or the target that asks
    """
    unknown = [name for name in options if name not in taken]
    if not unknown:
        return None
    fix = f"it takes {', '.join(taken) or 'no options'}"
    if asking := [name for name in unknown if name in _OF_THE_QUESTION]:
        verb = "belongs" if len(asking) == 1 else "belong"
        fix = f"{fix}; {' and '.join(asking)} {verb} to the judge or the target that asks"
    names = ", ".join(map(repr, unknown))
    return ModelError(f"its options do not fit: there is no {names}", where=where, fix=fix)


def _made(connect: Any, thing: Any, options: Mapping[str, Any], where: str) -> Any:
    signature = inspect.signature(connect)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    taken = list(signature.parameters)[1:]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        refused = misfit(options, taken, where)
        if refused is not None:
            raise refused
    try:
        signature.bind(thing, **options)
    except TypeError as error:
        told = ", ".join(taken) or "no options"
        raise ModelError(f"its options do not fit: {error}", where=where, fix=f"it takes {told}") from None
    try:
        return connect(thing, **options)
    except TypeError as error:
        if not options:
            raise  # not about options, so a fault inside
        raise ModelError(f"its options do not fit: {error}", where=where) from error


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
